package index

import (
	"bytes"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
)

func sample() (*Builder, model.PartitionID, model.PartitionID) {
	var b Builder
	p := model.PartitionID{Topic: model.TopicID{7}, Index: 1}
	q := model.PartitionID{Topic: model.TopicID{3}, Index: 9}
	b.Add(p, Block{Pos: 100, Base: 0, Last: 4, MaxTimestamp: 50, Len: 200, CRC: 1})
	b.Add(q, Block{Pos: 400, Base: 10, Last: 10, MaxTimestamp: -1, Len: 80, CRC: 2})
	b.Add(p, Block{Pos: 600, Base: 5, Last: 9, MaxTimestamp: 40, Len: 300, CRC: 3})
	b.Add(p, Block{Pos: 900, Base: 20, Last: 29, MaxTimestamp: 60, Len: 0, CRC: 0})
	return &b, p, q
}

func TestRoundTrip(t *testing.T) {
	b, p, q := sample()
	buf, want := b.Encode(77, 4096)
	got, err := Load(bytes.NewReader(buf), int64(len(buf)))
	if err != nil {
		t.Fatal(err)
	}
	if got.File != 77 || got.DataSize != 4096 || len(got.Runs) != 3 {
		t.Fatalf("summary %+v", got)
	}
	for i := range want.Runs {
		if got.Runs[i] != want.Runs[i] {
			t.Errorf("run %d: %+v, encoded as %+v", i, got.Runs[i], want.Runs[i])
		}
	}
	// By partition, then offset; a gap in offsets starts a new run.
	for i, w := range []struct {
		part       model.PartitionID
		base, last model.Offset
		bytes      int64
		ts         int64
	}{{q, 10, 10, 80, -1}, {p, 0, 9, 500, 50}, {p, 20, 29, 0, 60}} {
		r := got.Runs[i]
		if r.Part != w.part || r.Base != w.base || r.Last != w.last || r.Bytes != w.bytes || r.MaxTimestamp != w.ts {
			t.Errorf("run %d: %+v, want %+v", i, r, w)
		}
	}
	blocks, err := LoadBlocks(bytes.NewReader(buf), got.Runs[1].Section)
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 2 || blocks[1] != (Block{Pos: 600, Base: 5, Last: 9, MaxTimestamp: 40, Len: 300, CRC: 3}) {
		t.Errorf("blocks %+v", blocks)
	}
}

func TestBreakBeginsARun(t *testing.T) {
	var b Builder
	p := model.PartitionID{Index: 1}
	b.Add(p, Block{Base: 0, Last: 4})
	b.Add(p, Block{Base: 5, Last: 9})
	b.Break()
	b.Add(p, Block{Base: 10, Last: 14})
	b.Add(p, Block{Base: 15, Last: 19})
	_, s := b.Encode(1, 100)
	if len(s.Runs) != 2 || s.Runs[0].Last != 9 || s.Runs[1].Base != 10 || s.Runs[1].Section.Blocks != 2 {
		t.Errorf("%+v", s.Runs)
	}
}

func TestEmpty(t *testing.T) {
	var b Builder
	buf, _ := b.Encode(1, 0)
	s, err := Load(bytes.NewReader(buf), int64(len(buf)))
	if err != nil || len(s.Runs) != 0 || s.File != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
}

// Every single flipped bit is found, by Load or by LoadBlocks of some run.
func TestEveryFlipIsFound(t *testing.T) {
	b, _, _ := sample()
	buf, _ := b.Encode(77, 4096)
	for i := range buf {
		for bit := range 8 {
			bad := bytes.Clone(buf)
			bad[i] ^= 1 << bit
			if err := loadAll(bad); model.ClassOf(err) != model.ClassCorrupt {
				t.Fatalf("flip of byte %d bit %d: %v", i, bit, err)
			}
		}
	}
	for n := range buf {
		if err := loadAll(buf[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes load as whole", n, len(buf))
		}
	}
}

func loadAll(buf []byte) error {
	s, err := Load(bytes.NewReader(buf), int64(len(buf)))
	if err != nil {
		return err
	}
	for _, r := range s.Runs {
		if _, err := LoadBlocks(bytes.NewReader(buf), r.Section); err != nil {
			return err
		}
	}
	return nil
}

// No input makes the decoder panic or read beyond the input; what loads is
// in order and within the file.
func FuzzLoad(f *testing.F) {
	b, _, _ := sample()
	buf, _ := b.Encode(77, 4096)
	f.Add(buf)
	f.Add(buf[:headerSize+footerSize])
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := Load(bytes.NewReader(in), int64(len(in)))
		if err != nil {
			return
		}
		for i, r := range s.Runs {
			if r.Section.Pos+int64(r.Section.Blocks)*blockSize > int64(len(in)) {
				t.Fatalf("run %d lies outside: %+v", i, r)
			}
			if i > 0 && compareRuns(s.Runs[i-1], r) >= 0 {
				t.Fatal("runs out of order")
			}
			if _, err := LoadBlocks(bytes.NewReader(in), r.Section); err != nil && model.ClassOf(err) != model.ClassCorrupt {
				t.Fatal(err)
			}
		}
	})
}
