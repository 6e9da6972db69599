package format

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// FixBit looks for the one bit of the damaged frame at the start of b whose flip
// makes the frame right, and flips it. It reports the byte. b is left as it was if
// there is no such bit. Damage to several bits can, rarely, look like one: the
// caller checks what the frame holds by the batches' own checksums.
func FixBit(b []byte) (at int, ok bool) {
	if len(b) < FrameHeaderSize {
		return 0, false
	}
	at, bit, found := badBit(b)
	if !found {
		return 0, false
	}
	b[at] ^= 1 << bit
	var f Frame
	if f.Decode(b, 0) == nil {
		return at, true
	}
	b[at] ^= 1 << bit
	return 0, false
}

// badBit finds the bit that is most likely flipped.
func badBit(b []byte) (at int, bit uint, ok bool) {
	if d := binary.BigEndian.Uint32(b[framePosMagic:]) ^ frameMagic; d != 0 {
		return inWord(framePosMagic, d)
	}
	if d, ok := badCount(b); ok {
		return inWord(framePosEntries, d)
	}
	head := headSize(b)
	if head > int64(len(b)) {
		return 0, 0, false
	}
	got, want := checksum(b[framePosDataCRC:head]), binary.BigEndian.Uint32(b[framePosHeadCRC:])
	switch {
	case got == want:
		return badDataBit(b, head)
	case bits.OnesCount32(got^want) == 1:
		return inWord(framePosHeadCRC, got^want)
	}
	at, bit, ok = flippedBit(b[framePosDataCRC:head], got, want)
	return at + framePosDataCRC, bit, ok
}

func headSize(b []byte) int64 {
	return FrameHeaderSize + int64(binary.BigEndian.Uint32(b[framePosEntries:]))*EntryHeaderSize
}

// badCount tries each bit of the count of entries, which says how far the head
// reaches, and gives the one that makes the head right.
func badCount(b []byte) (d uint32, ok bool) {
	count, want := b[framePosEntries:framePosEntries+4], binary.BigEndian.Uint32(b[framePosHeadCRC:])
	n := binary.BigEndian.Uint32(count)
	defer binary.BigEndian.PutUint32(count, n)
	for d = 1; d != 0; d <<= 1 {
		binary.BigEndian.PutUint32(count, n^d)
		if head := headSize(b); head <= int64(len(b)) && checksum(b[framePosDataCRC:head]) == want {
			return d, true
		}
	}
	return 0, false
}

func badDataBit(b []byte, head int64) (at int, bit uint, ok bool) {
	length := int64(binary.BigEndian.Uint32(b[framePosLength:]))
	if length < head || length > int64(len(b)) {
		return 0, 0, false
	}
	at, bit, ok = flippedBit(b[head:length], checksum(b[head:length]), binary.BigEndian.Uint32(b[framePosDataCRC:]))
	return at + int(head), bit, ok
}

// inWord turns the lone bit of the big-endian word at pos into byte and bit.
func inWord(pos int, d uint32) (at int, bit uint, ok bool) {
	i := bits.TrailingZeros32(d)
	return pos + 3 - i/8, uint(i % 8), bits.OnesCount32(d) == 1
}

// flippedBit finds the one bit of data whose flip explains that its CRC-32C is got
// instead of want: byte and bit, or ok false if no single bit does.
//
// A CRC is linear: a flipped bit changes it by a value that depends only on the
// bit's distance from the end, and for CRC-32C these values are different for all
// bits of less than 2^31. So the values are gone through from the end, one step of
// the shift register per bit. More than one flipped bit can look like one; the
// caller checks what comes out by the batches' own checksums.
func flippedBit(data []byte, got, want uint32) (at int, bit uint, ok bool) {
	// In the reflected form the register shifts right, and bit 7 of a byte goes in
	// last: at the very end it leaves the polynomial itself.
	diff, v := got^want, uint32(crc32.Castagnoli)
	if diff == 0 {
		return 0, 0, false
	}
	for at = len(data) - 1; at >= 0; at-- {
		for bit = 8; bit > 0; {
			bit--
			if v == diff {
				return at, bit, true
			}
			v = v>>1 ^ (v&1)*crc32.Castagnoli
		}
	}
	return 0, 0, false
}
