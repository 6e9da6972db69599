package conn

import (
	"encoding/binary"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// used reads what the budget has given out.
func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// TestLiarsCostWhatTheySend: clients that promise much and send little take
// little, and others are served.
func TestLiarsCostWhatTheySend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{MaxInFlight: 64 << 20})
		const liars = 200
		for range liars {
			c := f.dial()
			lie := binary.BigEndian.AppendUint32(nil, 100<<20)
			if _, err := c.Write(append(lie, make([]byte, 1000)...)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := f.budget.inUse(); got != 0 {
			t.Errorf("%d bytes are taken for frames of which 1000 bytes have come", got)
		}
		honest := f.dial()
		honest.send(bigProduce(1 << 20))
		f.waitPending(1)[0](kmsg.NewPtrProduceResponse(), nil)
		honest.receive()
	})
}

// TestStalledFramesMakeRoom: when half-sent frames fill the budget, the one that
// stalled longest is given up for a client that sends.
func TestStalledFramesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{MaxInFlight: 1 << 20, FrameTimeout: time.Hour})
		var stalled []*client
		for range 30 {
			c := f.dial()
			part := append(binary.BigEndian.AppendUint32(nil, 10<<20), make([]byte, trustedFrame+1)...)
			if _, err := c.Write(part); err != nil {
				t.Fatal(err)
			}
			stalled = append(stalled, c)
		}
		time.Sleep(2 * readStall)
		honest := f.dial()
		honest.send(bigProduce(512 << 10))
		f.waitPending(1)[0](kmsg.NewPtrProduceResponse(), nil)
		honest.receive()
		stalled[0].ended()
		if n := f.Connections(); n < 2 || n > 30 {
			t.Errorf("%d connections are left; only as many as needed should have been given up", n)
		}
	})
}

func TestBudgetComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{MaxInFlight: 1 << 20})
		c := f.dial()
		for range 10 {
			c.send(bigProduce(900 << 10))
			f.waitPending(1)[0](kmsg.NewPtrProduceResponse(), nil)
			c.receive()
		}
		synctest.Wait()
		if got := f.budget.inUse(); got != 0 {
			t.Errorf("%d bytes were not given back", got)
		}
	})
}

// TestFullBudgetHoldsBackTheNext: a frame waits while others hold the budget, and
// is read when they are answered.
func TestFullBudgetHoldsBackTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{MaxInFlight: 1 << 20})
		a, b := f.dial(), f.dial()
		a.send(bigProduce(900 << 10))
		first := f.waitPending(1)[0]
		go b.send(bigProduce(900 << 10))
		time.Sleep(time.Second)
		synctest.Wait()
		f.mu.Lock()
		if len(f.pending) != 0 {
			t.Error("the second request was read while the first held the budget")
		}
		f.mu.Unlock()
		first(kmsg.NewPtrProduceResponse(), nil)
		a.receive()
		f.waitPending(1)[0](kmsg.NewPtrProduceResponse(), nil)
		b.receive()
	})
}

// TestPlainRequestsAreBounded: what is no bulk data becomes many times its size
// when it is decoded.
func TestPlainRequestsAreBounded(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.dial()
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(1)
	req.Topics = make([]kmsg.MetadataRequestTopic, maxPlainFrame/2+10)
	empty := ""
	for i := range req.Topics {
		req.Topics[i].Topic = &empty
	}
	_, _ = c.Write(encodeRequest(req, 1))
	c.ended()
}

func fetchRequest(bytes int32) kmsg.Request {
	r := kmsg.NewPtrFetchRequest()
	r.SetVersion(11)
	r.MaxBytes = bytes
	return r
}

// TestSlowReadersGiveWay: answers that nobody reads take up the memory for
// answers, until somebody else needs it.
func TestSlowReadersGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{MaxAnswers: 8 << 20, WriteTimeout: time.Hour})
		for range 20 {
			f.dial().send(fetchRequest(4 << 20))
		}
		synctest.Wait()
		if got := f.answers.inUse(); got > 8<<20 {
			t.Errorf("%d bytes of answers are in memory, the bound is %d", got, 8<<20)
		}
		time.Sleep(2 * writeStall)
		quick := f.dial()
		id := quick.send(fetchRequest(4 << 20))
		got, body := quick.receive()
		if got != id || len(body) < answerLeast {
			t.Errorf("answer to request %d with %d bytes", got, len(body))
		}
	})
}

func TestRoomComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{MaxAnswers: 8 << 20})
		c := f.dial()
		for range 20 {
			c.send(fetchRequest(4 << 20))
			c.receive()
		}
		synctest.Wait()
		if got := f.answers.inUse(); got != 0 {
			t.Errorf("%d bytes were not given back", got)
		}
	})
}

// TestIdleConnectionsAreCheap measures what an idle connection holds.
func TestIdleConnectionsAreCheap(t *testing.T) {
	const conns, limit = 2000, 12 << 10
	f := newFixture(t, Options{})
	before := memory()
	held := make([]*client, conns)
	for i := range held {
		held[i] = f.dial()
		held[i].send(metadataRequest())
		held[i].receive()
	}
	if each := (memory() - before) / conns; each > limit {
		t.Errorf("an idle connection holds %d bytes, %d are allowed", each, limit)
	}
	runtime.KeepAlive(held)
}

func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// bigProduce is a produce request of about size bytes.
func bigProduce(size int) *kmsg.ProduceRequest {
	r := produceRequest()
	t := kmsg.NewProduceRequestTopic()
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = make([]byte, size)
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}
