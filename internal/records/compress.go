package records

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/daybook-mq/daybook/internal/model"
)

// Codec numbers, as in a batch's attributes.
const (
	None int8 = iota
	Gzip
	Snappy
	Lz4
	Zstd
)

// DefaultLimit bounds what one batch may decompress to, in bytes.
const DefaultLimit = 256 << 20

// CodecByName gives the number of a compression.type value.
func CodecByName(name string) (int8, bool) {
	switch name {
	case "uncompressed", "none":
		return None, true
	case "gzip":
		return Gzip, true
	case "snappy":
		return Snappy, true
	case "lz4":
		return Lz4, true
	case "zstd":
		return Zstd, true
	}
	return 0, false
}

var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialBlock = 32 << 10

var (
	gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
	lz4Readers  = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
	lz4Writers  = sync.Pool{New: func() any { return lz4.NewWriter(nil) }}
	zstdReaders = sync.Pool{New: func() any {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
		return d
	}}
	zstdWriters = sync.Pool{New: func() any {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
		return e
	}}
)

// Decompress gives the records section in plain, at most limit bytes (0 for
// DefaultLimit). The result may share src.
func Decompress(codec int8, src []byte, limit int) ([]byte, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	switch codec {
	case None:
		return src, nil
	case Gzip:
		r := gzipReaders.Get().(*gzip.Reader)
		defer gzipReaders.Put(r)
		if err := r.Reset(bytes.NewReader(src)); err != nil {
			return nil, errCodec("gzip", err)
		}
		return readLimited("gzip", r, len(src), limit)
	case Snappy:
		return unsnappy(src, limit)
	case Lz4:
		r := lz4Readers.Get().(*lz4.Reader)
		defer lz4Readers.Put(r)
		r.Reset(bytes.NewReader(src))
		return readLimited("lz4", r, len(src), limit)
	case Zstd:
		r := zstdReaders.Get().(*zstd.Decoder)
		defer zstdReaders.Put(r)
		if err := r.Reset(bytes.NewReader(src)); err != nil {
			return nil, errCodec("zstd", err)
		}
		return readLimited("zstd", r, len(src), limit)
	}
	return nil, errCodec(fmt.Sprintf("codec %d", codec), errors.New("unknown"))
}

func readLimited(name string, r io.Reader, srcLen, limit int) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(min(4*srcLen+512, limit))
	n, err := buf.ReadFrom(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, errCodec(name, err)
	}
	if n > int64(limit) {
		return nil, errLimit(limit)
	}
	return buf.Bytes(), nil
}

// unsnappy reads plain snappy blocks and the framing of Java's snappy streams.
func unsnappy(src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerialMagic) {
		return snappyBlock(nil, src, limit)
	}
	if len(src) < 16 {
		return nil, errCodec("snappy", io.ErrUnexpectedEOF)
	}
	var out []byte
	for src = src[16:]; len(src) > 0; {
		if len(src) < 4 {
			return nil, errCodec("snappy", io.ErrUnexpectedEOF)
		}
		n := binary.BigEndian.Uint32(src)
		if uint64(n) > uint64(len(src)-4) {
			return nil, errCodec("snappy", io.ErrUnexpectedEOF)
		}
		var err error
		if out, err = snappyBlock(out, src[4:4+n], limit); err != nil {
			return nil, err
		}
		src = src[4+n:]
	}
	return out, nil
}

func snappyBlock(dst, src []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, errCodec("snappy", err)
	}
	if n > limit-len(dst) {
		return nil, errLimit(limit)
	}
	plain, err := snappy.Decode(nil, src)
	if err != nil {
		return nil, errCodec("snappy", err)
	}
	if dst == nil {
		return plain, nil
	}
	return append(dst, plain...), nil
}

// Compress encodes a records section. The result may share src.
func Compress(codec int8, src []byte) ([]byte, error) {
	var buf bytes.Buffer
	switch codec {
	case None:
		return src, nil
	case Gzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(&buf)
		return finish(&buf, w, src)
	case Snappy:
		buf.Write(xerialMagic)
		buf.Write([]byte{0, 0, 0, 1, 0, 0, 0, 1})
		for len(src) > 0 {
			n := min(len(src), xerialBlock)
			block := snappy.Encode(nil, src[:n])
			buf.Write(binary.BigEndian.AppendUint32(nil, uint32(len(block))))
			buf.Write(block)
			src = src[n:]
		}
		return buf.Bytes(), nil
	case Lz4:
		w := lz4Writers.Get().(*lz4.Writer)
		defer lz4Writers.Put(w)
		w.Reset(&buf)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb)); err != nil {
			return nil, errCodec("lz4", err)
		}
		return finish(&buf, w, src)
	case Zstd:
		w := zstdWriters.Get().(*zstd.Encoder)
		defer zstdWriters.Put(w)
		return w.EncodeAll(src, nil), nil
	}
	return nil, errCodec(fmt.Sprintf("codec %d", codec), errors.New("unknown"))
}

func finish(buf *bytes.Buffer, w io.WriteCloser, src []byte) ([]byte, error) {
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func errCodec(name string, err error) error {
	return &model.Error{Class: model.ClassCorrupt, Detail: "the records do not decompress as " + name, Cause: err}
}

func errLimit(limit int) error {
	return &model.Error{Class: model.ClassTooLarge, Detail: fmt.Sprintf("the records decompress to more than %d bytes", limit)}
}
