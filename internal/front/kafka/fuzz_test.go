package kafka

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzRequests sends any body under any key and version to a whole broker. The
// broker must answer with a frame that carries the correlation id, or close, or
// (long polls, group joins) keep the client waiting; and it must go on serving.
func FuzzRequests(f *testing.F) {
	b := startBroker(f)
	b.topic("t", 2)
	for _, k := range b.front.net.Table().Ranges() {
		for v := k.MinVersion; v <= k.MaxVersion; v++ {
			req := kmsg.RequestForKey(k.ApiKey)
			req.SetVersion(v)
			f.Add(k.ApiKey, v, req.AppendTo(nil))
		}
	}
	f.Add(int16(0), int16(9), withVersion(produceRequest("t", 0, batch(f, 0, 1, values("x")...)), 9))
	f.Add(int16(1), int16(11), withVersion(fetchRequest("t", 0, 1), 11))
	f.Add(int16(3), int16(9), withVersion(metadataRequest("t"), 9))
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		patience := 10 * time.Second
		if mayWait(key) {
			patience = 50 * time.Millisecond
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := c.Write(frameOf(key, version, body)); err != nil {
			return
		}
		var head [8]byte
		switch _, err := io.ReadFull(c, head[:]); {
		case err == nil:
			if id := binary.BigEndian.Uint32(head[4:]); id != 77 {
				t.Fatalf("key %d version %d: answer to request %d", key, version, id)
			}
		case errors.Is(err, os.ErrDeadlineExceeded) && !mayWait(key):
			t.Fatalf("key %d version %d: neither an answer nor an end", key, version)
		}
	})
}

// mayWait holds for keys whose answers take time: acks=0, long polls, rebalances.
func mayWait(key int16) bool { return key == 0 || key == 1 || key == 11 || key == 14 }

func withVersion(req kmsg.Request, v int16) []byte {
	req.SetVersion(v)
	return req.AppendTo(nil)
}

// frameOf is a request frame with correlation id 77.
func frameOf(key, version int16, body []byte) []byte {
	out := make([]byte, 4, len(body)+32)
	out = binary.BigEndian.AppendUint16(out, uint16(key))
	out = binary.BigEndian.AppendUint16(out, uint16(version))
	out = binary.BigEndian.AppendUint32(out, 77)
	out = append(out, 0, 1, 'f')
	if req := kmsg.RequestForKey(key); req != nil {
		req.SetVersion(version)
		if req.IsFlexible() {
			out = append(out, 0)
		}
	}
	out = append(out, body...)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}
