package checkpoint

import (
	"bytes"
	"errors"
	"path"
	"reflect"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func sample(seq uint64) State {
	return State{
		Seq: seq, Incarnation: 3, From: 1234,
		Segments: []Segment{{File: 1, Size: 4096}, {File: 9, Size: 1 << 40, Adopted: true}},
		Partitions: []Partition{
			{ID: model.PartitionID{Topic: model.TopicID{1}}, Start: 5, End: 9, Clean: 6, UpTo: 8, Snapshot: []byte("state")},
			{ID: model.PartitionID{Topic: model.TopicID{2}, Index: 7}, End: 1 << 50},
		},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range []State{sample(1), {Segments: []Segment{}, Partitions: []Partition{}}} {
		got, err := Decode(Encode(want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

func TestEveryFlipIsFound(t *testing.T) {
	buf := Encode(sample(1))
	for i := range buf {
		for bit := range 8 {
			bad := bytes.Clone(buf)
			bad[i] ^= 1 << bit
			if _, err := Decode(bad); model.ClassOf(err) != model.ClassCorrupt {
				t.Fatalf("flip of byte %d bit %d: %v", i, bit, err)
			}
		}
	}
	for n := range buf {
		if _, err := Decode(buf[:n]); model.ClassOf(err) != model.ClassCorrupt {
			t.Fatalf("the first %d of %d bytes: %v", n, len(buf), err)
		}
	}
}

func TestTwins(t *testing.T) {
	fs := vfs.NewMem(0)
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(fs, "d"); !errors.Is(err, ErrNone) {
		t.Fatalf("empty directory: %v", err)
	}
	write := func(seq uint64) {
		t.Helper()
		if _, err := Write(fs, "d", sample(seq)); err != nil {
			t.Fatal(err)
		}
	}
	load := func(seq uint64, damaged int) {
		t.Helper()
		s, damage, err := Load(fs, "d")
		if err != nil || s.Seq != seq || len(damage) != damaged {
			t.Fatalf("seq %d, damage %v, %v; want seq %d and %d damaged", s.Seq, damage, err, seq, damaged)
		}
	}
	flip := func(name string) {
		t.Helper()
		f, err := fs.OpenRW(path.Join("d", name))
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := f.ReadAt(b[:], 70); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1
		if _, err := f.WriteAt(b[:], 70); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	write(1)
	write(2)
	load(2, 0)
	flip(Names[0])
	load(2, 1)
	write(3) // heals
	load(3, 0)
	flip(Names[1])
	load(3, 1)
	flip(Names[0])
	if _, damage, err := Load(fs, "d"); model.ClassOf(err) != model.ClassCorrupt || len(damage) != 2 {
		t.Fatalf("both damaged: %v, %v", damage, err)
	}
	write(4)
	if err := fs.Remove("d/" + Names[1]); err != nil {
		t.Fatal(err)
	}
	load(4, 1)
}

// No input makes Decode panic; what it accepts, it writes again byte for byte.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(sample(1)))
	f.Add(Encode(State{}))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := Decode(in)
		if err != nil {
			if model.ClassOf(err) != model.ClassCorrupt {
				t.Fatal(err)
			}
			return
		}
		if again, err := Decode(Encode(s)); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v, %v; first %+v", again, err, s)
		}
	})
}
