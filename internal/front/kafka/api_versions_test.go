package kafka

import (
	"context"
	"encoding/binary"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/cluster"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

// serveFront starts a front on loopback and returns its address.
func serveFront(t *testing.T, o Options) (*Server, string) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("closing the front: %v", err)
		}
		<-served
	})
	return s, l.Addr().String()
}

func versionsRequest() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "raw-client", "1.0"
	return req
}

// TestRow01ApiVersionsAboveMax is also K05 of the reported cases.
func TestRow01ApiVersionsAboveMax(t *testing.T) {
	_, addr := serveFront(t, Options{})
	c := dialRaw(t, addr)
	// Version 99 with a flexible header and a body from the future.
	frame := []byte{0, 0, 0, 0, 0, 18, 0, 99, 0, 0, 0, 7, 0, 3, 'r', 'a', 'w', 1, 5, 1, 0xff, 0xde, 0xad, 0xbe, 0xef}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := c.Write(frame); err != nil {
		t.Fatal(err)
	}
	id, body := c.frame()
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(body); err != nil || id != 7 {
		t.Fatalf("answer %d is no version 0 body: %v", id, err)
	}
	if resp.ErrorCode != codes.UnsupportedVersion || len(resp.ApiKeys) != 1 ||
		resp.ApiKeys[0].ApiKey != 18 || resp.ApiKeys[0].MaxVersion != 5 {
		t.Fatalf("got %+v", resp)
	}
	again := call[*kmsg.ApiVersionsResponse](c, versionsRequest(), 3)
	if again.ErrorCode != 0 || len(again.ApiKeys) == 0 {
		t.Fatalf("on the same connection, version 3: %+v", again)
	}
}

func TestRow03ApiVersionsFeaturesAndTarget(t *testing.T) {
	_, addr := serveFront(t, Options{Cluster: cluster.Solo{ClusterID: "c1", NodeID: 4}})
	c := dialRaw(t, addr)
	for v := int16(0); v <= 5; v++ {
		resp := call[*kmsg.ApiVersionsResponse](c, versionsRequest(), v)
		if resp.ErrorCode != 0 || len(resp.ApiKeys) == 0 {
			t.Fatalf("version %d: %+v", v, resp)
		}
		if v >= 3 && (resp.FinalizedFeaturesEpoch < 0 || len(resp.FinalizedFeatures) == 0) {
			t.Errorf("version %d lists no finalized features: %+v", v, resp)
		}
	}
	for _, tc := range []struct {
		name    string
		cluster *string
		node    int32
		want    codes.Code
	}{
		{"right", kmsg.StringPtr("c1"), 4, codes.None},
		{"bootstrapping", nil, -1, codes.None},
		{"other cluster", kmsg.StringPtr("c2"), 4, codes.RebootstrapRequired},
		{"other node", kmsg.StringPtr("c1"), 5, codes.RebootstrapRequired},
		{"node only", nil, 4, codes.InvalidRequest},
		{"cluster only", kmsg.StringPtr("c1"), -1, codes.InvalidRequest},
	} {
		req := versionsRequest()
		req.ClusterID, req.NodeID = tc.cluster, tc.node
		if resp := call[*kmsg.ApiVersionsResponse](c, req, 5); resp.ErrorCode != tc.want {
			t.Errorf("%s: error %d, want %d", tc.name, resp.ErrorCode, tc.want)
		}
	}
}

func TestApiVersionsSoftwareName(t *testing.T) {
	_, addr := serveFront(t, Options{})
	c := dialRaw(t, addr)
	for name, want := range map[string]codes.Code{
		"a": 0, "apache-kafka-java": 0, "": codes.InvalidRequest, "-x": codes.InvalidRequest,
		"x.": codes.InvalidRequest, "a b": codes.InvalidRequest,
	} {
		req := versionsRequest()
		req.ClientSoftwareName = name
		if resp := call[*kmsg.ApiVersionsResponse](c, req, 3); resp.ErrorCode != want {
			t.Errorf("name %q: error %d, want %d", name, resp.ErrorCode, want)
		}
	}
}
