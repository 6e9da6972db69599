// Package records reads and builds the records inside a batch (Kafka message
// format v2): iteration, building, control records, and compression. It keeps
// nothing and checks every length against what is there.
package records

import (
	"encoding/binary"
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
)

// Record is one record. Its slices point into the batch's (decompressed) bytes.
type Record struct {
	Attributes     int8
	TimestampDelta int64 // milliseconds after the batch's first timestamp
	OffsetDelta    int32
	Key, Value     []byte // nil is null
	NumHeaders     int
	RawHeaders     []byte // NumHeaders headers, encoded; see Headers
}

// Header is one record header. A nil Value is null.
type Header struct {
	Key   string
	Value []byte
}

// Headers decodes the record's headers.
func (r Record) Headers() ([]Header, error) {
	hs := make([]Header, 0, r.NumHeaders)
	buf := r.RawHeaders
	for range r.NumHeaders {
		key, rest, err := takeBytes(buf)
		if err != nil {
			return nil, fmt.Errorf("header key: %w", err)
		}
		if key == nil {
			return nil, errMalformed("header key is null")
		}
		value, rest, err := takeBytes(rest)
		if err != nil {
			return nil, fmt.Errorf("header value: %w", err)
		}
		hs = append(hs, Header{string(key), value})
		buf = rest
	}
	if len(buf) != 0 {
		return nil, errMalformed("bytes after the last header")
	}
	return hs, nil
}

// Reader iterates over a decompressed records section.
type Reader struct {
	buf []byte
}

// Open decompresses b's records (at most limit bytes, 0 for DefaultLimit) and
// gives a reader over them.
func Open(b model.Batch, limit int) (Reader, error) {
	buf, err := Decompress(b.Compression(), b.Payload(), limit)
	return Reader{buf}, err
}

// Next returns the next record; ok is false at the end.
func (r *Reader) Next() (rec Record, ok bool, err error) {
	if len(r.buf) == 0 {
		return rec, false, nil
	}
	n, used := binary.Varint(r.buf)
	if used <= 0 || n < 0 || n > int64(len(r.buf)-used) {
		return rec, false, errMalformed("record length")
	}
	body := r.buf[used : used+int(n)]
	r.buf = r.buf[used+int(n):]
	rec, err = parse(body)
	return rec, err == nil, err
}

func parse(b []byte) (rec Record, err error) {
	if len(b) == 0 {
		return rec, errMalformed("empty record")
	}
	rec.Attributes = int8(b[0])
	b = b[1:]
	var n int64
	if rec.TimestampDelta, b, err = takeVarint(b); err != nil {
		return rec, err
	}
	if n, b, err = takeVarint(b); err != nil {
		return rec, err
	}
	if rec.OffsetDelta = int32(n); int64(rec.OffsetDelta) != n {
		return rec, errMalformed("offset delta")
	}
	if rec.Key, b, err = takeBytes(b); err != nil {
		return rec, fmt.Errorf("key: %w", err)
	}
	if rec.Value, b, err = takeBytes(b); err != nil {
		return rec, fmt.Errorf("value: %w", err)
	}
	if n, b, err = takeVarint(b); err != nil {
		return rec, err
	}
	// A header takes two bytes at least.
	if n < 0 || n > int64(len(b)/2) {
		return rec, errMalformed("header count")
	}
	rec.NumHeaders, rec.RawHeaders = int(n), b
	if n == 0 && len(b) != 0 {
		return rec, errMalformed("bytes after the record")
	}
	return rec, nil
}

// Check iterates over b and proves that it holds exactly NumRecords well-formed
// records with rising offset deltas inside the batch's range.
func Check(b model.Batch, limit int) error {
	r, err := Open(b, limit)
	if err != nil {
		return err
	}
	count, last := int32(0), int32(-1)
	for {
		rec, ok, err := r.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if rec.OffsetDelta <= last || rec.OffsetDelta > b.LastOffsetDelta() {
			return errMalformed("offset deltas do not rise inside the batch")
		}
		if _, err := rec.Headers(); err != nil {
			return err
		}
		last = rec.OffsetDelta
		count++
	}
	if count != b.NumRecords() {
		return errMalformed(fmt.Sprintf("batch says %d records and holds %d", b.NumRecords(), count))
	}
	return nil
}

func takeVarint(b []byte) (int64, []byte, error) {
	n, used := binary.Varint(b)
	if used <= 0 {
		return 0, b, errMalformed("varint")
	}
	return n, b[used:], nil
}

// takeBytes reads a varint length (−1 is null) and that many bytes.
func takeBytes(b []byte) (v, rest []byte, err error) {
	n, b, err := takeVarint(b)
	if err != nil {
		return nil, b, err
	}
	if n == -1 {
		return nil, b, nil
	}
	if n < 0 || n > int64(len(b)) {
		return nil, b, errMalformed("length")
	}
	return b[:n:n], b[n:], nil
}

func errMalformed(what string) error {
	return &model.Error{Class: model.ClassCorrupt, Detail: "malformed record: " + what}
}
