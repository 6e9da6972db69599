package ledgers

import (
	"encoding/binary"
	"fmt"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/model"
)

// Key names a ledger: who subscribes ("share/<group>", "queue/<vhost>/<name>")
// and to which partition.
type Key struct {
	Owner string
	Part  model.PartitionID
}

// The records of the ledgers' topic (docs/formats/ledger.md). The key is the
// ledger's; the value begins with version and kind.
const (
	recordVersion = 1

	kindDelta    = 1 // deltas, to be applied in order
	kindSnapshot = 2 // one part of a snapshot; the last part makes it count
)

// snapshotPart bounds the deltas of one part of a snapshot, and so its record.
const snapshotPart = 50_000

func (k Key) encode() []byte {
	out := make([]byte, 0, len(k.Owner)+20)
	out = append(out, k.Part.Topic[:]...)
	out = binary.BigEndian.AppendUint32(out, uint32(k.Part.Index))
	return append(out, k.Owner...)
}

func decodeKey(b []byte) (k Key, err error) {
	if len(b) < 20 {
		return k, corrupt("key")
	}
	copy(k.Part.Topic[:], b)
	k.Part.Index = int32(binary.BigEndian.Uint32(b[16:]))
	k.Owner = string(b[20:])
	return k, nil
}

// part is a decoded value. seq numbers the delta records of one ledger; a
// snapshot's seq is that of the last one it covers.
type part struct {
	kind       byte
	seq        int64
	index, of  int // kindSnapshot: which part, of how many
	start, end model.Offset
	deltas     []ledger.Delta
	at         model.Offset // kindSnapshot, first part: where it lies
}

func encodeDeltas(seq int64, ds []ledger.Delta) []byte {
	return appendDeltas(binary.AppendVarint([]byte{recordVersion, kindDelta}, seq), ds)
}

// encodeSnapshot gives the values of a snapshot's parts, in order.
func encodeSnapshot(seq int64, s ledger.Snapshot) [][]byte {
	n := max(1, (len(s.Deltas)+snapshotPart-1)/snapshotPart)
	out := make([][]byte, n)
	for i := range out {
		v := []byte{recordVersion, kindSnapshot}
		for _, x := range []int64{seq, int64(i), int64(n), int64(s.Start), int64(s.End)} {
			v = binary.AppendVarint(v, x)
		}
		chunk := s.Deltas[i*snapshotPart : min((i+1)*snapshotPart, len(s.Deltas))]
		out[i] = appendDeltas(v, chunk)
	}
	return out
}

// appendDeltas writes deltas as differences: ledgers are mostly ascending.
func appendDeltas(out []byte, ds []ledger.Delta) []byte {
	out = binary.AppendVarint(out, int64(len(ds)))
	at, until := model.Offset(0), int64(0)
	for _, d := range ds {
		out = binary.AppendVarint(out, int64(d.First-at))
		out = binary.AppendVarint(out, int64(d.Last-d.First))
		out = append(out, byte(d.State))
		out = binary.AppendVarint(out, int64(d.Count))
		if d.State == ledger.Delayed {
			out = binary.AppendVarint(out, d.Until-until)
			until = d.Until
		}
		at = d.Last + 1
	}
	return out
}

func decodeValue(b []byte) (p part, err error) {
	if len(b) < 2 || b[0] != recordVersion {
		return p, corrupt("version")
	}
	p.kind = b[1]
	r := reader{buf: b[2:]}
	p.seq = r.varint()
	switch p.kind {
	case kindDelta:
	case kindSnapshot:
		p.index, p.of = int(r.varint()), int(r.varint())
		p.start, p.end = model.Offset(r.varint()), model.Offset(r.varint())
		if p.index < 0 || p.index >= p.of || p.start < 0 || p.end < p.start {
			return p, corrupt("snapshot")
		}
	default:
		return p, corrupt("kind")
	}
	p.deltas = r.deltas()
	if r.bad || len(r.buf) != 0 {
		return p, corrupt("length")
	}
	return p, nil
}

type reader struct {
	buf []byte
	bad bool
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.buf)
	if n <= 0 {
		r.bad, r.buf = true, nil
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) deltas() []ledger.Delta {
	n := r.varint()
	if n < 0 || n > int64(len(r.buf)/4) { // a delta takes four bytes at least
		r.bad = true
		return nil
	}
	ds := make([]ledger.Delta, 0, n)
	at, until := model.Offset(0), int64(0)
	for range n {
		var d ledger.Delta
		d.First = at + model.Offset(r.varint())
		d.Last = d.First + model.Offset(r.varint())
		if len(r.buf) == 0 {
			r.bad = true
			return nil
		}
		d.State = ledger.State(r.buf[0])
		r.buf = r.buf[1:]
		count := r.varint()
		d.Count = uint16(count)
		if d.State == ledger.Delayed {
			until += r.varint()
			d.Until = until
		}
		at = d.Last + 1
		ok := d.First >= 0 && d.Last >= d.First && int64(d.Count) == count &&
			(d.State == ledger.Ready || d.State == ledger.Delayed || d.State == ledger.Settled)
		if !ok {
			r.bad = true
			return nil
		}
		ds = append(ds, d)
	}
	return ds
}

func corrupt(what string) error {
	return &model.Error{Class: model.ClassCorrupt, Op: "read ledger record", Detail: fmt.Sprintf("bad %s", what)}
}
