package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

// entry makes an entry of n bytes of data with the offsets base to last.
func entry(topic byte, base, last model.Offset, n int) storage.Entry {
	data := bytes.Repeat([]byte{topic ^ byte(base)}, n)
	return storage.Entry{
		Kind: storage.EntryBatches, Part: model.PartitionID{Topic: model.TopicID{topic}, Index: 7},
		Base: base, Last: last, MaxTimestamp: 1000 - int64(base), Data: data,
	}
}

// encode gives a frame's bytes.
func encode(t testing.TB, h FrameHeader, pos int64, entries ...storage.Entry) []byte {
	t.Helper()
	var b Builder
	for i := range entries {
		b.Add(&entries[i])
	}
	vecs, err := b.Encode(&h, pos)
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Concat(vecs...)
	if len(out) != int(h.Length) || len(out)%Align != 0 || int64(len(out)) > EncodedMax(b.Entries(), b.DataBytes()) {
		t.Fatalf("%d bytes encoded, header says %d, bound %d", len(out), h.Length, EncodedMax(b.Entries(), b.DataBytes()))
	}
	for _, e := range entries {
		if at := e.At.Pos - pos; e.At.File != h.File || !bytes.Equal(out[at:at+int64(len(e.Data))], e.Data) {
			t.Fatalf("At %+v is not where the data is", e.At)
		}
	}
	return out
}

func sample(t testing.TB) []byte {
	return encode(t, FrameHeader{File: 9, LSN: 41, Durable: 40}, 4096,
		entry(2, 10, 12, 300), entry(1, 5, 5, 100), entry(2, 13, 13, 50),
		storage.Entry{Kind: storage.EntryTrim, Part: model.PartitionID{Topic: model.TopicID{1}, Index: 7}, Base: 3},
		entry(1, 6, 9, 20), entry(2, 15, 15, 1))
}

func TestFrameGathersAndJoins(t *testing.T) {
	var f Frame
	if err := f.Decode(sample(t), 4096); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range f.Items {
		got = append(got, fmt.Sprintf("%d:%d %d-%d t%d %d@%d", it.Kind, it.Part.Topic[0], it.Base, it.Last, it.MaxTimestamp, it.Size, it.At.Pos))
		if int(it.Size) != len(it.Data) || it.At.File != 9 {
			t.Errorf("item %+v", it)
		}
	}
	first := 4096 + FrameHeaderSize + 5*EntryHeaderSize
	want := []string{
		// 10-12 and 13 continue each other; 15 does not.
		fmt.Sprintf("1:2 10-13 t990 350@%d", first),
		fmt.Sprintf("1:2 15-15 t985 1@%d", first+350),
		// The partition's trim keeps its place between its batches.
		fmt.Sprintf("1:1 5-5 t995 100@%d", first+351),
		fmt.Sprintf("2:1 3-0 t0 0@%d", first+451),
		fmt.Sprintf("1:1 6-9 t994 20@%d", first+451),
	}
	if !slices.Equal(got, want) {
		t.Fatalf("items\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if f.LSN != 41 || f.Durable != 40 || f.File != 9 || f.Pos != 4096 {
		t.Fatalf("header %+v", f.FrameHeader)
	}
}

// TestEveryBitOfAFrameCounts is what turns red when a checksum is not compared.
func TestEveryBitOfAFrameCounts(t *testing.T) {
	b := sample(t)
	var f Frame
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			err := f.Decode(b, 4096)
			if err == nil {
				t.Fatalf("bit %d of byte %d of %d can flip", bit, i, len(b))
			}
			if inData := int64(i) >= FrameHeaderSize+5*EntryHeaderSize; inData != errors.Is(err, ErrDataCRC) {
				t.Fatalf("byte %d: %v", i, err)
			}
			b[i] ^= 1 << bit
		}
	}
	for n := range b {
		if f.Decode(b[:n], 4096) == nil {
			t.Fatalf("%d of %d bytes are taken as the frame", n, len(b))
		}
	}
}

func TestFixBit(t *testing.T) {
	want := sample(t)
	b := slices.Clone(want)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if at, ok := FixBit(b); !ok || at != i || !bytes.Equal(b, want) {
				t.Fatalf("bit %d of byte %d: found at %d (%v)", bit, i, at, ok)
			}
		}
	}
	if at, ok := FixBit(b); ok {
		t.Fatalf("a right frame is changed at %d", at)
	}
	b[700], b[900] = b[700]^1, b[900]^1
	damaged := slices.Clone(b)
	if at, ok := FixBit(b); ok || !bytes.Equal(b, damaged) {
		t.Fatalf("two flipped bits are taken for one at %d", at)
	}
	if _, ok := FixBit(b[:40]); ok {
		t.Fatal("a piece of a frame is mended")
	}
}

func TestEveryBitOfAFileHeaderCounts(t *testing.T) {
	want := FileHeader{Version: Version, Kind: KindSegment, ID: 1 << 60, FirstLSN: 77, Incarnation: 5}
	b := want.Encode()
	if got, err := DecodeFileHeader(b); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range b {
		b[i] ^= 0x10
		if _, err := DecodeFileHeader(b); err == nil {
			t.Fatalf("byte %d can flip", i)
		}
		b[i] ^= 0x10
	}
	if _, err := DecodeFileHeader(b[:HeaderSize-1]); !errors.Is(err, ErrNotDataFile) {
		t.Fatal(err)
	}
	want.Version = Version + 1
	if _, err := DecodeFileHeader(want.Encode()); !errors.Is(err, ErrVersion) {
		t.Fatal(err)
	}
}

func TestFileNames(t *testing.T) {
	if n := FileName(0xAB12, ExtData); n != "000000000000ab12.data" {
		t.Fatal(n)
	}
	if id, ext, ok := ParseFileName("000000000000ab12.spare"); id != 0xAB12 || ext != ExtSpare || !ok {
		t.Fatal(id, ext, ok)
	}
	for _, bad := range []string{"", "LOCK", "000000000000AB12.data", "00000000000ab12.data", "00000000000+ab12.data", "000000000000ab12"} {
		if _, _, ok := ParseFileName(bad); ok {
			t.Fatalf("%q is taken as a data file", bad)
		}
	}
}

func TestBuilderRefusesTooMuch(t *testing.T) {
	big := entry(1, 1, 1, MaxFrame)
	var b Builder
	b.Add(&big)
	if _, err := b.Encode(&FrameHeader{}, 0); !errors.Is(err, ErrLength) {
		t.Fatal(err)
	}
}

// segment writes a few frames with a Writer.
func segment(t *testing.T) (*vfs.Mem, []storage.Entry) {
	t.Helper()
	mem := vfs.NewMem(0)
	w, err := Create(mem, "s", FileHeader{Kind: KindSegment, ID: 3})
	if err != nil {
		t.Fatal(err)
	}
	var all []storage.Entry
	for i := range 5 {
		es := []storage.Entry{entry(1, model.Offset(i), model.Offset(i), 700), entry(2, model.Offset(2*i), model.Offset(2*i), 1)}
		if err := w.Append(es); err != nil {
			t.Fatal(err)
		}
		all = append(all, es...)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if size, err := mem.Size("s"); err != nil || size != w.Size() {
		t.Fatalf("size %d, %v; the writer says %d", size, err, w.Size())
	}
	return mem, all
}

func scanner(t *testing.T, mem *vfs.Mem, mode ScanMode) *Scanner {
	t.Helper()
	f, err := mem.OpenRW("s")
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	return NewScanner(f, 3, size, mode)
}

func TestWriterAndScanner(t *testing.T) {
	mem, all := segment(t)
	for _, mode := range []ScanMode{Whole, Heads} {
		s := scanner(t, mem, mode)
		if h, err := s.Header(); err != nil || h.Kind != KindSegment || h.FirstLSN != 1 || h.ID != 3 {
			t.Fatalf("%+v, %v", h, err)
		}
		i, lsn := 0, model.LSN(1)
		var flags Flags
		for {
			f, err := s.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.LSN != lsn || f.Flags&FlagSegment == 0 {
				t.Fatalf("frame %+v, want LSN %d", f.FrameHeader, lsn)
			}
			lsn++
			flags = f.Flags
			for _, it := range f.Items {
				want := all[i]
				if it.Part != want.Part || it.Base != want.Base || it.At != want.At || it.Size != int64(len(want.Data)) || mode == Whole && !bytes.Equal(it.Data, want.Data) {
					t.Fatalf("item %+v, want %+v", it, want)
				}
				i++
			}
		}
		if i != len(all) || flags&FlagLast == 0 {
			t.Fatalf("%d items of %d, flags of the last frame %d", i, len(all), flags)
		}
	}
}

func TestScannerFindsItsWay(t *testing.T) {
	frameLen := Padded(FrameHeaderSize + 2*EntryHeaderSize + 701)
	second := HeaderSize + frameLen
	cases := []struct {
		name   string
		damage func(f vfs.File) error
		pos    int64
		err    error
		head   bool
		next   model.LSN // found by Search; 0 for none
	}{
		{"data", func(f vfs.File) error { return flip(f, second+300) }, second, ErrDataCRC, true, 3},
		{"head", func(f vfs.File) error { return flip(f, second+60) }, second, ErrHeadCRC, false, 3},
		{"magic", func(f vfs.File) error { return flip(f, second) }, second, ErrMagic, false, 3},
		{"length", func(f vfs.File) error { return flip(f, second+43) }, second, ErrLength, false, 3},
		{"other file", func(f vfs.File) error { return flip(f, second+23) }, second, ErrStale, false, 3},
		{"zeros", func(f vfs.File) error { _, err := f.WriteAt(make([]byte, frameLen), second); return err }, second, ErrBlank, false, 3},
		{"cut", func(f vfs.File) error { return f.Truncate(second + Align) }, second, ErrShort, false, 0},
		{"repeated", func(f vfs.File) error {
			b := make([]byte, frameLen)
			if _, err := f.ReadAt(b, HeaderSize); err != nil {
				return err
			}
			_, err := f.WriteAt(b, second)
			return err
		}, second, ErrSequence, false, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem, _ := segment(t)
			f, err := mem.OpenRW("s")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.damage(f); err != nil {
				t.Fatal(err)
			}
			s := scanner(t, mem, Whole)
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
			_, err = s.Next()
			bad, ok := errors.AsType[*BadFrame](err)
			if !ok || bad.Pos != c.pos || !errors.Is(err, c.err) || (bad.Head != nil) != c.head {
				t.Fatalf("error %v", err)
			}
			if found := s.Search(); found != (c.next != 0) {
				t.Fatalf("search found: %v", found)
			} else if !found {
				if s.Pos() != c.pos {
					t.Fatalf("position %d after a search in vain", s.Pos())
				}
				return
			}
			if frame, err := s.Next(); err != nil || frame.LSN != c.next {
				t.Fatalf("after the search: %+v, %v", frame, err)
			}
		})
	}
}

func flip(f vfs.File, pos int64) error {
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, pos); err != nil {
		return err
	}
	b[0] ^= 1
	_, err := f.WriteAt(b, pos)
	return err
}

func TestScannerPassesUnreadableBytes(t *testing.T) {
	mem, _ := segment(t)
	fault := vfs.NewFault(mem)
	f, err := fault.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	size, _ := f.Size()
	s := NewScanner(f, 3, size, Whole)
	fault.Inject(vfs.Rule{Op: vfs.OpRead, Times: 2, Err: io.ErrUnexpectedEOF})
	if _, err := s.Next(); !errors.Is(err, ErrUnread) {
		t.Fatal(err)
	}
	if !s.Search() {
		t.Fatal("no frame is found behind what cannot be read")
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(sample(f), int64(4096))
	f.Add(encode(f, FrameHeader{File: 1, LSN: 1, Flags: FlagLast}, 512), int64(0))
	f.Add(encode(f, FrameHeader{File: 1, LSN: 1}, 512, entry(1, 1, 1, 10)), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, pos int64) {
		// The checksums are made right, so that what lies behind them is reached.
		b = slices.Clone(b)
		reseal(b)
		var frame Frame
		err := frame.Decode(b, pos)
		if frame.Length > MaxFrame && !errors.Is(err, ErrLength) || len(frame.Items) > len(b)/EntryHeaderSize {
			t.Fatalf("%+v from %d bytes: %v", frame.FrameHeader, len(b), err)
		}
		if err != nil {
			return
		}
		if int(frame.Length) > len(b) {
			t.Fatalf("consumed %d of %d bytes", frame.Length, len(b))
		}
		again := reencode(t, &frame)
		if !bytes.Equal(again, b[:frame.Length]) {
			t.Fatalf("encodes to other bytes\n%x\n%x", again, b[:frame.Length])
		}
	})
}

// reseal makes a frame's checksums right, as far as its lengths allow.
func reseal(b []byte) {
	h, err := decodeFrameHeader(b)
	if err != nil || len(b) < int(h.Length) {
		return
	}
	binary.BigEndian.PutUint32(b[framePosDataCRC:], checksum(b[h.HeadSize():h.Length]))
	binary.BigEndian.PutUint32(b[framePosHeadCRC:], checksum(b[framePosDataCRC:h.HeadSize()]))
}

func resealHeader(b []byte) {
	binary.BigEndian.PutUint32(b[headerCRCPos:], checksum(b[:headerCRCPos]))
}

// reencode lays the frame out once more, without the Builder's gathering.
func reencode(t *testing.T, f *Frame) []byte {
	t.Helper()
	b := Builder{head: make([]byte, FrameHeaderSize), vecs: [][]byte{nil}}
	for i := range f.Items {
		b.head = appendEntry(b.head, &f.Items[i].Entry)
		b.vecs = append(b.vecs, f.Items[i].Data)
		b.data += f.Items[i].Size
	}
	b.vecs = append(b.vecs, make([]byte, int64(f.Length)-int64(len(b.head))-b.data))
	h := f.FrameHeader
	b.sealHead(&h)
	b.vecs[0] = b.head
	return slices.Concat(b.vecs...)
}

func FuzzFileHeader(f *testing.F) {
	f.Add(FileHeader{Kind: KindJournal, ID: 1, FirstLSN: 2, Incarnation: 3}.Encode()[:64])
	f.Fuzz(func(t *testing.T, start []byte) {
		b := make([]byte, HeaderSize)
		copy(b, start)
		resealHeader(b)
		h, err := DecodeFileHeader(b)
		if err != nil {
			return
		}
		if again := h.Encode(); !bytes.Equal(again[:12], b[:12]) || !bytes.Equal(again[16:40], b[16:40]) {
			t.Fatalf("encodes to other bytes\n%x\n%x", again[:64], b[:64])
		}
	})
}

// FuzzScanner reads arbitrary files.
func FuzzScanner(f *testing.F) {
	f.Add(append(sample(f), sample(f)...), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		mem := vfs.NewMem(0)
		file, err := mem.Create("s")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(b, HeaderSize+int64(at%8)*Align); err != nil {
			t.Fatal(err)
		}
		size, _ := file.Size()
		s := NewScanner(file, 9, size, ScanMode(at%2))
		_, _ = s.Header()
		for last := int64(0); ; {
			frame, err := s.Next()
			if err == io.EOF || err != nil && !s.Search() {
				return
			}
			if err == nil && (frame.Pos < last || frame.Pos+int64(frame.Length) > size) {
				t.Fatalf("frame at %d of %d bytes in a file of %d, after %d", frame.Pos, frame.Length, size, last)
			}
			last = s.Pos()
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{1, 16, 1000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			entries := make([]storage.Entry, n)
			for i := range entries {
				entries[i] = entry(byte(rand.IntN(16)), model.Offset(i), model.Offset(i), 1024)
			}
			var bu Builder
			b.SetBytes(int64(n) * 1024)
			b.ReportAllocs()
			for b.Loop() {
				bu.Reset()
				for i := range entries {
					bu.Add(&entries[i])
				}
				if _, err := bu.Encode(&FrameHeader{File: 1, LSN: 1}, 4096); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
