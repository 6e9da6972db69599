package index

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/daybook-mq/daybook/internal/model"
)

func TestJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(rng.Int())
	}
	sum := func(b []byte) uint32 { return crc32.Checksum(b, model.Castagnoli) }
	for range 500 {
		n := rng.IntN(1 << rng.IntN(20))
		cut := rng.IntN(n + 1)
		a := Block{Pos: 100, Base: 5, Last: 9, MaxTimestamp: 7, Len: uint32(cut), CRC: sum(data[:cut])}
		b := Block{Pos: 100 + int64(cut), Base: 10, Last: 20, MaxTimestamp: 3, Len: uint32(n - cut), CRC: sum(data[cut:n])}
		want := Block{Pos: 100, Base: 5, Last: 20, MaxTimestamp: 7, Len: uint32(n), CRC: sum(data[:n])}
		if got := Join(a, b); got != want {
			t.Fatalf("%d + %d bytes: %+v, want %+v", cut, n-cut, got, want)
		}
	}
}
