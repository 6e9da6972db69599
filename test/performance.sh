#!/usr/bin/env bash
# The runs behind docs/performance.md, each on a fresh broker: test/performance.sh [NAME...]
# Run it on a quiet machine. Every figure of speed is a ratio to what the disk, or
# another run, showed at the same time.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${PERF_DIR:-${TMPDIR:-/tmp}}/daybook-perf-XXXXXX")
bin=$work/daybook
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin" ./cmd/daybook
broker=
stop() { if [ -n "$broker" ]; then kill "$broker" 2>/dev/null || true; wait "$broker" 2>/dev/null || true; broker=; fi; }
trap 'stop; rm -rf "$work"' EXIT

export DAYBOOK_BOOTSTRAP DAYBOOK_HTTP_ADDR
# start ARGS...: a broker on an empty directory
start() {
  stop
  rm -rf "$work/data" "$work/addr.json"
  "$bin" serve --data "$work/data" --kafka 127.0.0.1:0 --http 127.0.0.1:0 --addr-file "$work/addr.json" "$@" >"$work/log" 2>&1 &
  broker=$!
  until [ -s "$work/addr.json" ]; do kill -0 "$broker"; sleep 0.02; done
  DAYBOOK_BOOTSTRAP=$(sed -n 's/.*"kafka": *"\([^"]*\)".*/\1/p' "$work/addr.json")
  DAYBOOK_HTTP_ADDR=$(sed -n 's/.*"http": *"\([^"]*\)".*/\1/p' "$work/addr.json")
}
run() { echo "\$ daybook $*" | sed "s#$work#DIR#g"; "$bin" "$@" | sed "s#$work#DIR#g"; echo; }

produce() { # throughput beside the disk, three times
  for _ in 1 2 3; do start; run bench produce --records 2000000 --size 1000 --partitions 16 --with-disk "$work"; done
}
amplification() { # bytes written for each byte, work behind the scenes included
  start; run bench produce --records 3000000 --size 1000 --partitions 16 --keep --settle 20s
}
partitions() { # the cost of many partitions
  for n in 1 16 100 1000; do start; run bench produce --records 1000000 --size 1000 --partitions $n; done
}
latency() { # at half of the load that the first run shows
  start
  local max half
  max=$("$bin" bench produce --records 1000000 --size 1000 --partitions 16 -o json | sed -n 's/.*"records_per_second": \([0-9]*\).*/\1/p')
  half=$((max / 2))
  echo "at full load: $max records/s; half is $half"
  run bench latency --rate $half --size 1000 --partitions 16 --duration 20s --with-disk "$work"
  run bench latency --rate 1000 --size 1000 --partitions 16 --duration 20s --end-to-end --with-disk "$work"
}
connections() { # the cost of many producers
  for n in 1 10 100 1000; do start; run bench produce --records 500000 --size 1000 --partitions 16 --producers $n; done
}
readback() { # catch-up reading from segments beside producing
  start; run bench consume --records 2000000 --size 1000 --partitions 16 --settle 5s
}
backlog() { # producing does not slow down on top of a long log
  start
  run topic create backlog -p 16
  for _ in 1 2 3 4; do run bench produce --topic backlog --records 2000000 --size 1000; done
}
share() { # share groups beside Kafka's own, and with keys kept in order: three rounds, then medians
  local load=(--records "${SHARE_RECORDS:-100000}" --size 1000 --partitions 1) kafka=$work/kafka
  : >"$work/shares"
  trap 'stop; test/compat/kafka stop "$work/kafka" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
  for _ in 1 2 3; do
    start
    rate daybook "${load[@]}"
    rate unordered "${load[@]}" --keys 10000
    rate key-order "${load[@]}" --keys 10000 --key-order
    stop
    DAYBOOK_BOOTSTRAP=$(test/compat/kafka start "$kafka")
    rate kafka "${load[@]}"
    test/compat/kafka stop "$kafka"
    rm -rf "$kafka"
  done
  awk '{ v[$1] = v[$1] " " $2 }
    function median(name,  a, t) { split(v[name], a, " "); if (a[1]+0 > a[2]+0) { t = a[1]; a[1] = a[2]; a[2] = t }
      return a[3]+0 < a[1]+0 ? a[1]+0 : a[3]+0 > a[2]+0 ? a[2]+0 : a[3]+0 }
    END { for (n in v) print n ": median " median(n) " records/s of" v[n]
      printf "daybook / kafka: %.2f\nkey-order / unordered: %.2f\n", median("daybook") / median("kafka"), median("key-order") / median("unordered") }' "$work/shares"
}
rate() { # rate NAME ARGS...: one run of bench share, its rate noted
  local name=$1 got
  shift
  echo "\$ daybook bench share --members 8 $* # $name; load $(cut -d' ' -f1 /proc/loadavg)"
  got=$("$bin" bench share --members 8 "$@" -o json | sed -n 's/.*"records_per_second": \([0-9]*\).*/\1/p')
  echo "$name $got" | tee -a "$work/shares"
}

for name in "${@:-produce amplification partitions latency connections readback backlog}"; do # the default is one word of many
  for one in $name; do echo "== $one"; "$one"; done
done
