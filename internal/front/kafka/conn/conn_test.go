package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestPipelinedAnswersLeaveInOrder(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.dial()
	for range 3 {
		c.send(produceRequest())
	}
	dones := f.waitPending(3)
	for i := len(dones) - 1; i >= 0; i-- {
		dones[i](kmsg.NewPtrProduceResponse(), nil)
	}
	for want := int32(1); want <= 3; want++ {
		if got, _ := c.receive(); got != want {
			t.Fatalf("answer to request %d where %d was due", got, want)
		}
	}
}

// TestSerialRequestsWaitForPipelinedOnes is Kafka's order: a request that is not
// pipelined starts when all before it are answered.
func TestSerialRequestsWaitForPipelinedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{})
		c := f.dial()
		c.send(produceRequest())
		c.send(metadataRequest())
		synctest.Wait()
		f.mu.Lock()
		if len(f.served) != 0 {
			t.Error("metadata was served before the produce was answered")
		}
		f.mu.Unlock()
		f.waitPending(1)[0](kmsg.NewPtrProduceResponse(), nil)
		for want := int32(1); want <= 2; want++ {
			if got, _ := c.receive(); got != want {
				t.Fatalf("answer to request %d where %d was due", got, want)
			}
		}
	})
}

func TestPipelineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{MaxPipelined: 2})
		c := f.dial()
		go func() {
			for range 5 {
				c.id++
				_, _ = c.Write(encodeRequest(produceRequest(), c.id))
			}
		}()
		synctest.Wait()
		f.mu.Lock()
		started := len(f.pending)
		f.mu.Unlock()
		if started != 2 {
			t.Fatalf("%d requests were started, the bound is 2", started)
		}
		for want := int32(1); want <= 5; want++ {
			f.waitPending(1)[0](kmsg.NewPtrProduceResponse(), nil)
			if got, _ := c.receive(); got != want {
				t.Fatalf("answer to request %d where %d was due", got, want)
			}
			synctest.Wait()
		}
	})
}

func TestNoAnswerKeepsTheLine(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.dial()
	c.send(produceRequest())
	c.send(produceRequest())
	d := f.waitPending(2)
	d[0](nil, nil)
	d[1](kmsg.NewPtrProduceResponse(), nil)
	if got, _ := c.receive(); got != 2 {
		t.Fatalf("answer to request %d, only 2 has one", got)
	}
}

func TestPipelinedErrorCloses(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.dial()
	c.send(produceRequest())
	c.send(produceRequest())
	d := f.waitPending(2)
	d[1](kmsg.NewPtrProduceResponse(), nil)
	d[0](nil, errors.New("acks=0 and an error"))
	c.ended()
}

func TestWhatClosesAConnection(t *testing.T) {
	unknown := []byte{0, 99, 0, 0, 0, 0, 0, 1, 0xff, 0xff}
	tooNew := encodeRequest(metadataRequest(), 1)[4:]
	binary.BigEndian.PutUint16(tooNew[2:], 14)
	refused := encodeRequest(produceRequest(), 1)[4:]
	binary.BigEndian.PutUint16(refused[2:], 2)
	body := encodeRequest(metadataRequest(), 1)[4:]
	body = body[:len(body)-3]
	for _, tc := range []struct {
		name  string
		frame []byte
		log   string
	}{
		{"unknown key", unknown, "api key 99 is not offered"},
		{"version above the range", tooNew, "api key 3 version 14 is not offered"},
		{"version below the range", refused, "api key 0 version 2 is not offered"},
		{"truncated body", body, "unreadable request, key 3 version 12"},
		{"client id longer than the frame", []byte{0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff}, "request ends inside its header"},
		{"endless tags", []byte{0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x7f}, "tagged fields"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, Options{})
			c := f.dial()
			if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(tc.frame))), tc.frame...)); err != nil {
				t.Fatal(err)
			}
			c.ended()
			if err := f.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(f.logs.String(), tc.log) {
				t.Errorf("the log does not say %q:\n%s", tc.log, f.logs)
			}
		})
	}
}

func TestFrameLengthIsChecked(t *testing.T) {
	for name, length := range map[string]uint32{
		"negative": 1 << 31, "none": 0, "shorter than a header": 7, "above the limit": 1<<20 + 1, "HTTP": 0x47455420,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Options{MaxFrame: 1 << 20})
			c := f.dial()
			start := time.Now()
			if _, err := c.Write(binary.BigEndian.AppendUint32(nil, length)); err != nil {
				t.Fatal(err)
			}
			c.ended()
			if d := time.Since(start); d > 0 {
				t.Errorf("%s: the connection ended after %v, not at once", name, d)
			}
		})
	}
}

func TestLogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{})
		bad := func() {
			c := f.dial()
			_, _ = c.Write([]byte{0, 0, 0, 0})
			c.ended()
			synctest.Wait()
		}
		for range 20 {
			bad()
		}
		if n := strings.Count(f.logs.String(), "\n"); n != 1 {
			t.Errorf("%d lines in one second, want 1", n)
		}
		time.Sleep(logEvery)
		bad()
		if !strings.Contains(f.logs.String(), "left_out=19") {
			t.Errorf("the log does not count what it left out:\n%s", f.logs)
		}
	})
}

func TestIdleConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{IdleTimeout: time.Minute})
		c := f.dial()
		time.Sleep(50 * time.Second)
		id := c.send(metadataRequest())
		if got, _ := c.receive(); got != id {
			t.Fatal("no answer")
		}
		start := time.Now()
		c.ended()
		if d := time.Since(start); d != time.Minute {
			t.Errorf("ended after %v, want a minute after the last request", d)
		}
	})
}

func TestIdleConnectionMayStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{IdleTimeout: -1})
		c := f.dial()
		time.Sleep(24 * time.Hour)
		c.send(metadataRequest())
		c.receive()
	})
}

func TestHalfAFrameEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{FrameTimeout: 5 * time.Second})
		c := f.dial()
		if _, err := c.Write([]byte{0, 0, 1}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		c.ended()
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("ended after %v, want 5s", d)
		}
	})
}

// TestRow30ThrottleAnswersFirst: the answer comes at once and carries the time;
// the next request waits (KIP-219).
func TestRow30ThrottleAnswersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttled := false
		f := newFixture(t, Options{Throttle: func(*Request, kmsg.Response) time.Duration {
			throttled = !throttled
			if throttled {
				return 3 * time.Second
			}
			return 0
		}})
		for name, req := range map[string]kmsg.Request{"serial": metadataRequest(), "pipelined": produceRequest()} {
			c := f.dial()
			start := time.Now()
			c.send(req)
			if name == "pipelined" {
				f.waitPending(1)[0](kmsg.NewPtrProduceResponse(), nil)
			}
			_, body := c.receive()
			if d := time.Since(start); d >= time.Second {
				t.Errorf("%s: the answer took %v", name, d)
			}
			resp := req.ResponseKind()
			resp.SetVersion(req.GetVersion())
			if err := resp.ReadFrom(body[1:]); err != nil {
				t.Fatal(err)
			}
			if ms, _ := resp.(kmsg.ThrottleResponse).Throttle(); ms != 3000 {
				t.Errorf("%s: throttle_time_ms is %d, want 3000", name, ms)
			}
			c.send(metadataRequest())
			c.receive()
			if d := time.Since(start); d < 3*time.Second {
				t.Errorf("%s: the next request was served after %v, want 3s", name, d)
			}
		}
	})
}

// TestSlowReaderHurtsNobody: a client that does not read is cut off, and others
// are served meanwhile.
func TestSlowReaderHurtsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{WriteTimeout: 10 * time.Second})
		slow, quick := f.dial(), f.dial()
		slow.send(metadataRequest())
		synctest.Wait() // the answer is being written and nobody reads
		id := quick.send(metadataRequest())
		if got, _ := quick.receive(); got != id {
			t.Fatal("no answer")
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := f.Connections(); n != 1 {
			t.Errorf("%d connections are open, the slow one should be cut off", n)
		}
	})
}

func TestCloseLetsBegunRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{})
		c := f.dial()
		id := c.send(produceRequest())
		done := f.waitPending(1)[0]
		closed := make(chan error, 1)
		go func() { closed <- f.Close(context.Background()) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("closed while a request was under way")
		default:
		}
		done(kmsg.NewPtrProduceResponse(), nil)
		if got, _ := c.receive(); got != id {
			t.Fatal("the begun request got no answer")
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		c.ended()
	})
}

func TestCloseCutsOffAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{WriteTimeout: time.Hour})
		f.dial().send(metadataRequest()) // and never reads
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("close: %v", err)
		}
	})
}

func TestConnectionLimit(t *testing.T) {
	f := newFixture(t, Options{MaxConns: 1})
	first := f.dial()
	f.dial().ended()
	first.send(metadataRequest())
	first.receive()
}

func TestTableRefusesMistakes(t *testing.T) {
	f := &fixture{}
	for name, rows := range map[string][]API{
		"a key twice":         {Handle(0, 13, f.metadata), Handle(0, 1, f.metadata)},
		"an unknown version":  {Handle(0, 14, f.metadata)},
		"an upside-down pair": {Handle(3, 2, f.metadata)},
	} {
		if _, err := NewTable(rows...); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(encodeRequest(metadataRequest(), 1)[4:], true)
	f.Add(encodeRequest(produceRequest(), 1)[4:], true)
	f.Add([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0, 1, 'c'}, false)
	f.Fuzz(func(t *testing.T, frame []byte, flexible bool) {
		h, rest, err := parseFixed(frame)
		if err != nil {
			return
		}
		body, err := h.parseRest(rest, flexible)
		if err == nil && len(body) > len(frame)-headerMin {
			t.Fatalf("a body of %d bytes out of a frame of %d", len(body), len(frame))
		}
	})
}

// TestParkedAnswersHoldUpNoClose: a group's rebalance may take minutes.
func TestParkedAnswersHoldUpNoClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{})
		f.dial().send(joinRequest())
		synctest.Wait()
		start := time.Now()
		if err := f.Close(context.Background()); err != nil || time.Since(start) > 0 {
			t.Fatalf("close took %v: %v", time.Since(start), err)
		}
		f.waitPending(1)[0](kmsg.NewPtrJoinGroupResponse(), nil) // a late answer does no harm
	})
}

func TestParkedAnswersDoNotKeepAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{})
		c := f.dial()
		c.send(joinRequest())
		synctest.Wait()
		_ = c.Close()
		synctest.Wait()
		if n := f.Connections(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// TestStuckAnswersAreGivenUp: when the disk hangs, closing ends at its deadline.
func TestStuckAnswersAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{})
		f.dial().send(produceRequest())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("close: %v", err)
		}
	})
}

func joinRequest() kmsg.Request {
	r := kmsg.NewPtrJoinGroupRequest()
	r.SetVersion(5)
	return r
}
