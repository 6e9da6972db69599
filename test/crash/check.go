package crash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// ID names a record: who sent it, under which key, and its place in that key.
type ID struct {
	Producer, Key uint32
	Seq           uint64
}

const idSize = 16

// KeyBytes is the record's key on the wire.
func (id ID) KeyBytes() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, id.Producer), id.Key)
}

// Value is the record's value: the ID, then bytes that nobody else has.
func (id ID) Value() []byte {
	b := binary.BigEndian.AppendUint64(id.KeyBytes(), id.Seq)
	rng := rand.New(rand.NewPCG(uint64(id.Producer)<<32|uint64(id.Key), id.Seq))
	for n := rng.IntN(60); n >= 0; n-- {
		b = binary.BigEndian.AppendUint64(b, rng.Uint64())
	}
	return b
}

// ParseValue gives the ID that value was made from, or an error if a byte of it changed.
func ParseValue(value []byte) (ID, error) {
	if len(value) < idSize {
		return ID{}, fmt.Errorf("a value of %d bytes", len(value))
	}
	id := ID{binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:]), binary.BigEndian.Uint64(value[8:])}
	if !bytes.Equal(value, id.Value()) {
		return id, fmt.Errorf("the value of %v is not what was sent", id)
	}
	return id, nil
}

// Place is a record's partition and offset.
type Place struct {
	Partition int32
	Offset    int64
}

// Acked is an acknowledged record and where the broker said it is.
type Acked struct {
	ID
	Place
}

// Stored is a record as it was read.
type Stored struct {
	Offset     int64
	Key, Value []byte
}

// Ledger is what was acknowledged, by partition and offset.
type Ledger struct {
	acked []map[int64]ID
}

// NewLedger makes a ledger of partitions 0 to n-1.
func NewLedger(n int) *Ledger {
	l := &Ledger{make([]map[int64]ID, n)}
	for i := range l.acked {
		l.acked[i] = map[int64]ID{}
	}
	return l
}

// Add notes an acknowledgement. An offset that was given away before is an error.
func (l *Ledger) Add(a Acked) error {
	m := l.acked[a.Partition]
	if was, ok := m[a.Offset]; ok {
		return fmt.Errorf("partition %d offset %d was acknowledged for %v and for %v", a.Partition, a.Offset, was, a.ID)
	}
	m[a.Offset] = a.ID
	return nil
}

// Len is how many acknowledgements stand.
func (l *Ledger) Len() (n int) {
	for _, m := range l.acked {
		n += len(m)
	}
	return n
}

// Forget takes back what was acknowledged at end and after it, where a broker that
// may lose its tail ends now, and tells how many that were.
func (l *Ledger) Forget(partition int32, end int64) (lost int) {
	for o := range l.acked[partition] {
		if o >= end {
			delete(l.acked[partition], o)
			lost++
		}
	}
	return lost
}

// Check compares a partition's records from offset `from` to its end with what was
// acknowledged there: offsets without a gap, each value as sent and under its key, each
// acknowledged record at its offset, and each key's records in the order of sending
// (producers do not send again what failed, so a record is there once at most).
func (l *Ledger) Check(partition int32, from int64, stored []Stored) (errs []error) {
	report := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("partition %d: "+format, append([]any{partition}, args...)...))
	}
	last := map[[2]uint32]uint64{}
	for i, s := range stored {
		if want := from + int64(i); s.Offset != want {
			report("offset %d follows where %d must be", s.Offset, want)
			return errs
		}
		id, err := ParseValue(s.Value)
		if err != nil {
			report("offset %d: %v", s.Offset, err)
			continue
		}
		if !bytes.Equal(s.Key, id.KeyBytes()) {
			report("offset %d: %v has the key %x", s.Offset, id, s.Key)
		}
		key := [2]uint32{id.Producer, id.Key}
		if before, ok := last[key]; ok && id.Seq <= before {
			report("offset %d: %v comes after number %d of its key", s.Offset, id, before)
		}
		last[key] = id.Seq
		if want, ok := l.acked[partition][s.Offset]; ok && want != id {
			report("offset %d: %v was acknowledged, %v is there", s.Offset, want, id)
		}
	}
	end := from + int64(len(stored))
	for o, id := range l.acked[partition] {
		if o >= end {
			report("acknowledged %v at %d is not there, the end is %d", id, o, end)
		}
	}
	return errs
}
