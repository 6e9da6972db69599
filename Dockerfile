# docker build -t daybook . && docker run -p 9092:9092 -v daybook:/data daybook
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /daybook ./cmd/daybook && mkdir /empty

FROM scratch
COPY --from=build /daybook /daybook
COPY --from=build --chown=65532:65532 /empty /data
USER 65532:65532
VOLUME /data
EXPOSE 9092 8080
# Inside a container loopback reaches no one, so the listeners are open here. The
# debug pages stay off (--debug-remote); put no untrusted network in front of them.
ENV DAYBOOK_DATA=/data DAYBOOK_KAFKA_ADDR=0.0.0.0:9092 DAYBOOK_HTTP_ADDR=0.0.0.0:8080
ENTRYPOINT ["/daybook"]
CMD ["serve"]
