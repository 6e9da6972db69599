package kafka

import (
	"encoding/binary"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
)

// fetchResponse encodes itself around the batches' own bytes, where the generated
// codec would copy them. A test compares both. Only error, session and throttle
// are taken from the embedded response.
type fetchResponse struct {
	*kmsg.FetchResponse
	parts []fetchPart
}

// AppendPieces continues head with the response (conn.Encoder).
func (r *fetchResponse) AppendPieces(head []byte) [][]byte {
	w := fetchWriter{buf: head, flexible: r.Version >= 12}
	w.int32(r.ThrottleMillis)
	if r.Version >= 7 {
		w.int16(r.ErrorCode)
		w.int32(r.SessionID)
	}
	groups := topicRuns(r.parts)
	w.arrayLen(len(groups))
	for _, g := range groups {
		if r.Version >= 13 {
			w.buf = append(w.buf, g[0].want.ID[:]...)
		} else {
			w.string(g[0].want.Name)
		}
		w.arrayLen(len(g))
		for i := range g {
			w.partition(&g[i], r.Version)
		}
		w.noTags()
	}
	w.noTags()
	return w.finish()
}

// topicRuns cuts parts into runs of one topic each, keeping the order.
func topicRuns(parts []fetchPart) (runs [][]fetchPart) {
	for from := 0; from < len(parts); {
		to := from + 1
		for to < len(parts) && parts[to].want.ID == parts[from].want.ID && parts[to].want.Name == parts[from].want.Name {
			to++
		}
		runs = append(runs, parts[from:to])
		from = to
	}
	return runs
}

// fetchWriter collects pieces: written bytes and, between them, the batches.
type fetchWriter struct {
	pieces   [][]byte
	buf      []byte // what is written since the last batch
	flexible bool   // KIP-482: compact lengths and tagged fields
}

func (w *fetchWriter) partition(fp *fetchPart, version int16) {
	w.int32(fp.want.Index)
	w.int16(codes.For(keyFetch, fp.err))
	if fp.err != nil {
		w.int64(-1, -1)
	} else {
		w.int64(int64(fp.found.HighWatermark), int64(fp.found.LastStable))
	}
	if version >= 5 {
		if fp.err != nil {
			w.int64(-1)
		} else {
			w.int64(int64(fp.found.LogStart))
		}
	}
	w.aborted(fp.found.Aborted)
	if version >= 11 {
		w.int32(-1) // no preferred read replica
	}
	data := fp.found.Data
	if fp.err != nil {
		data = nil
	}
	w.batches(data)
	if !w.flexible {
		return
	}
	if fp.diverging == nil {
		w.noTags()
		return
	}
	// One tagged field, 0: epoch, end offset, and no tags of its own.
	w.buf = append(w.buf, 1, 0, 4+8+1)
	w.int32(fp.diverging.epoch)
	w.int64(int64(fp.diverging.end))
	w.noTags()
}

func (w *fetchWriter) aborted(list []partition.AbortedTxn) {
	if list == nil {
		w.nullLen()
		return
	}
	w.arrayLen(len(list))
	for _, a := range list {
		w.int64(a.ProducerID, int64(a.First))
		w.noTags()
	}
}

// batches adds data as it is, each element a piece of its own.
func (w *fetchWriter) batches(data [][]byte) {
	n := 0
	for _, d := range data {
		n += len(d)
	}
	w.bytesLen(n)
	if n == 0 {
		return
	}
	w.pieces = append(w.pieces, w.buf)
	w.pieces = append(w.pieces, data...)
	w.buf = make([]byte, 0, 128)
}

func (w *fetchWriter) finish() [][]byte { return append(w.pieces, w.buf) }

func (w *fetchWriter) int16(v int16) { w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(v)) }
func (w *fetchWriter) int32(v int32) { w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(v)) }

func (w *fetchWriter) int64(vs ...int64) {
	for _, v := range vs {
		w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(v))
	}
}

func (w *fetchWriter) string(s string) {
	if w.flexible {
		w.buf = binary.AppendUvarint(w.buf, uint64(len(s))+1)
	} else {
		w.int16(int16(min(len(s), math.MaxInt16)))
	}
	w.buf = append(w.buf, s...)
}

func (w *fetchWriter) arrayLen(n int) { w.bytesLen(n) }

// bytesLen writes a length; arrays and byte strings have the same form.
func (w *fetchWriter) bytesLen(n int) {
	if w.flexible {
		w.buf = binary.AppendUvarint(w.buf, uint64(n)+1)
	} else {
		w.int32(int32(n))
	}
}

func (w *fetchWriter) nullLen() {
	if w.flexible {
		w.buf = append(w.buf, 0)
	} else {
		w.int32(-1)
	}
}

func (w *fetchWriter) noTags() {
	if w.flexible {
		w.buf = append(w.buf, 0)
	}
}
