package kafka

import (
	"encoding/binary"
	"errors"
)

var errShortProduce = errors.New("produce request ends too early")

// countProduce walks over a Produce body and counts its topics and partitions
// without allocating, so that a request of many empty ones is refused before it
// becomes memory. It stops at the bound of conn by itself: each takes bytes.
func countProduce(version int16, body []byte) (int, error) {
	w := bodyWalker{buf: body, flexible: version >= 9}
	w.skipString() // transactional id
	w.skip(2 + 4)  // acks, timeout
	n := 0
	for topics := w.arrayLen(); topics > 0 && !w.short; topics-- {
		n++
		if version >= 13 {
			w.skip(16)
		} else {
			w.skipString()
		}
		for parts := w.arrayLen(); parts > 0 && !w.short; parts-- {
			n++
			w.skip(4)
			w.skipBytes()
			n += w.skipTags()
		}
		n += w.skipTags()
	}
	n += w.skipTags()
	if w.short {
		return 0, errShortProduce
	}
	return n, nil
}

// bodyWalker passes over the fields of a request body.
type bodyWalker struct {
	buf      []byte
	flexible bool // KIP-482
	short    bool // the body ended inside a field
}

func (w *bodyWalker) skip(n int) {
	if n < 0 || n > len(w.buf) {
		w.short, w.buf = true, nil
		return
	}
	w.buf = w.buf[n:]
}

func (w *bodyWalker) uvarint() int {
	v, n := binary.Uvarint(w.buf)
	if n <= 0 || v > 1<<31-1 {
		w.short, w.buf = true, nil
		return 0
	}
	w.buf = w.buf[n:]
	return int(v)
}

func (w *bodyWalker) int32() int {
	if len(w.buf) < 4 {
		w.short, w.buf = true, nil
		return 0
	}
	v := int32(binary.BigEndian.Uint32(w.buf))
	w.buf = w.buf[4:]
	return int(v)
}

// arrayLen reads an array's length; 0 for null.
func (w *bodyWalker) arrayLen() int {
	if w.flexible {
		return w.uvarint() - 1
	}
	return w.int32()
}

// skipBytes passes over a byte string, which may be null.
func (w *bodyWalker) skipBytes() { w.skip(max(0, w.arrayLen())) }

// skipString passes over a string, which may be null.
func (w *bodyWalker) skipString() {
	if w.flexible {
		w.skipBytes()
		return
	}
	if len(w.buf) < 2 {
		w.short = true
		return
	}
	n := int16(binary.BigEndian.Uint16(w.buf))
	w.skip(2 + max(0, int(n)))
}

// skipTags passes over tagged fields and counts them.
func (w *bodyWalker) skipTags() (n int) {
	if !w.flexible {
		return 0
	}
	for left := w.uvarint(); left > 0 && !w.short; left-- {
		n++
		w.uvarint()
		w.skip(w.uvarint())
	}
	return n
}
