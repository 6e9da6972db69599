package records

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
)

func sample(t testing.TB, codec int8, n int) model.Batch {
	t.Helper()
	b := NewBuilder(Meta{FirstTimestamp: 1000, Compression: codec, ProducerID: 7, ProducerEpoch: 1, BaseSequence: 5})
	for i := range n {
		b.Add(int64(i), []byte{byte(i)}, bytes.Repeat([]byte("value "), i), []Header{{"h", nil}, {"i", []byte("x")}})
	}
	batch, err := b.Build(0)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func TestRoundTripOfEveryCodec(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		batch := sample(t, codec, 20)
		if !batch.ValidCRC() || batch.NumRecords() != 20 || batch.LastOffsetDelta() != 19 || batch.MaxTimestamp() != 1019 || batch.Size() != len(batch) {
			t.Fatalf("codec %d: header %v", codec, batch[:model.BatchHeaderSize])
		}
		if err := Check(batch, 0); err != nil {
			t.Fatalf("codec %d: %v", codec, err)
		}
		r, err := Open(batch, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			rec, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				if i != 20 {
					t.Fatalf("codec %d: %d records", codec, i)
				}
				break
			}
			hs, err := rec.Headers()
			if err != nil || len(hs) != 2 || hs[0].Value != nil || string(hs[1].Value) != "x" {
				t.Fatalf("codec %d: headers %v %v", codec, hs, err)
			}
			if len(rec.Value) != 6*i || rec.Key[0] != byte(i) || rec.OffsetDelta != int32(i) {
				t.Fatalf("codec %d: record %d is %+v", codec, i, rec)
			}
		}
	}
}

func TestDecompressionIsBounded(t *testing.T) {
	for codec := Gzip; codec <= Zstd; codec++ {
		bomb, err := Compress(codec, make([]byte, 8<<20))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decompress(codec, bomb, 1<<20); model.ClassOf(err) != model.ClassTooLarge {
			t.Errorf("codec %d: %v", codec, err)
		}
	}
}

func TestPlainSnappyBlockIsRead(t *testing.T) {
	framed, err := Compress(Snappy, []byte("some text"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Decompress(Snappy, framed[20:], 0) // past the stream header and the block length
	if err != nil || string(plain) != "some text" {
		t.Fatalf("%q %v", plain, err)
	}
}

func TestFilterKeepsOffsetsAndEnd(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		b := sample(t, codec, 20)
		b.SetBaseOffset(100)
		got, err := Filter(b, 0, func(r Record) bool { return r.OffsetDelta%7 == 3 })
		if err != nil {
			t.Fatal(err)
		}
		if !got.ValidCRC() || got.NumRecords() != 3 || got.LastOffset() != 119 || got.BaseOffset() != 100 || got.Compression() != None || got.Size() != len(got) || got.ProducerID() != 7 {
			t.Fatalf("codec %d: %v", codec, got[:model.BatchHeaderSize])
		}
		if err := Check(got, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMarkerRoundTrip(t *testing.T) {
	for _, commit := range []bool{true, false} {
		b := MarkerBatch(time.UnixMilli(5), 9, 3, Marker{Commit: commit, CoordinatorEpoch: 4})
		m, ok, err := ReadMarker(b)
		if err != nil || !ok || m.Commit != commit || m.CoordinatorEpoch != 4 || !b.IsControl() || !b.IsTransactional() {
			t.Fatalf("%+v %v %v", m, ok, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for codec := None; codec <= Zstd; codec++ {
		f.Add([]byte(sample(f, codec, 3)))
	}
	f.Add([]byte(MarkerBatch(time.UnixMilli(5), 9, 3, Marker{})))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, _, err := model.NextBatch(data)
		if err != nil {
			return
		}
		err = Check(b, 1<<20)
		if e := (*model.Error)(nil); err != nil && !errors.As(err, &e) {
			t.Fatalf("error without a class: %v", err)
		}
		_, _, _ = ReadMarker(b)
	})
}
