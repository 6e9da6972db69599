package admin

import (
	"context"
	"crypto/rand"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

const (
	// noSubscription is the id of the one subscription there is: to nothing.
	noSubscription = 0
	// telemetryInterval is when clients ask again, in milliseconds.
	telemetryInterval = 300_000
	telemetryMaxBytes = 1 << 20
)

// GetTelemetrySubscriptions, 0 (KIP-714): the broker asks for no client metrics.
// A client without an instance id gets one.
func (h *Handlers) getTelemetrySubscriptions(_ context.Context, _ *conn.Request, in *kmsg.GetTelemetrySubscriptionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrGetTelemetrySubscriptionsResponse()
	resp.ClientInstanceID = in.ClientInstanceID
	if in.ClientInstanceID == [16]byte{} {
		_, _ = rand.Read(resp.ClientInstanceID[:]) // never fails
		resp.ClientInstanceID[6] = resp.ClientInstanceID[6]&0x0f | 0x40
		resp.ClientInstanceID[8] = resp.ClientInstanceID[8]&0x3f | 0x80
	}
	resp.SubscriptionID = noSubscription
	resp.AcceptedCompressionTypes = []int8{4, 3, 1, 2} // zstd, lz4, gzip, snappy
	resp.PushIntervalMillis, resp.TelemetryMaxBytes, resp.DeltaTemporality = telemetryInterval, telemetryMaxBytes, true
	resp.RequestedMetrics = []string{}
	return resp, nil
}

// PushTelemetry, 0: metrics that nobody asked for are dropped.
func (h *Handlers) pushTelemetry(_ context.Context, _ *conn.Request, in *kmsg.PushTelemetryRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrPushTelemetryResponse()
	switch {
	case in.ClientInstanceID == [16]byte{}:
		resp.ErrorCode = codes.InvalidRequest
	case in.SubscriptionID != noSubscription:
		resp.ErrorCode = codes.UnknownSubscriptionID
	case len(in.Metrics) > telemetryMaxBytes:
		resp.ErrorCode = codes.TelemetryTooLarge
	case in.CompressionType < 0 || in.CompressionType > 4:
		resp.ErrorCode = codes.UnsupportedCompressionType
	}
	return resp, nil
}
