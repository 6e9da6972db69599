package index

// Join makes one block of two that follow each other in the file and in offsets.
// Its checksum comes from theirs, without reading the bytes again.
func Join(a, b Block) Block {
	return Block{
		Pos: a.Pos, Base: a.Base, Last: b.Last, MaxTimestamp: max(a.MaxTimestamp, b.MaxTimestamp),
		Len: a.Len + b.Len, CRC: combine(a.CRC, b.CRC, b.Len),
	}
}

// castagnoli is the CRC-32C polynomial, bits reversed: bit 31 stands for x^0.
const castagnoli = 0x82f63b78

// powers holds x to the power of 2^i, modulo the polynomial.
var powers = func() (t [32]uint32) {
	p := uint32(1) << 30
	for i := range t {
		t[i] = p
		p = multiply(p, p)
	}
	return t
}()

// multiply gives a times b, as polynomials over GF(2) modulo castagnoli.
func multiply(a, b uint32) (product uint32) {
	for m := uint32(1) << 31; m != 0; m >>= 1 {
		if a&m != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= castagnoli
		}
	}
	return product
}

// combine gives the checksum of two strings put together from theirs: appending n
// bytes multiplies the first one's by x^8n.
func combine(a, b, n uint32) uint32 {
	p := uint32(1) << 31
	for i := 3; n != 0; n, i = n>>1, i+1 {
		if n&1 != 0 {
			p = multiply(powers[i&31], p)
		}
	}
	return multiply(p, a) ^ b
}
