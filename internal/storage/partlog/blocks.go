package partlog

import (
	"hash/crc32"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/datafile"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

const (
	// windowBytes bounds one read from a file, unless one block is larger.
	windowBytes = 1 << 20
	// windowWaste bounds the bytes between two blocks that are read along
	// because one read is cheaper than two.
	windowWaste = 16 << 10
)

// eachBlock reads blocks of one file, neighbours together, checks each one's
// checksum and calls f until it says no. want says, before each read, about how
// many bytes are still useful; it may be nil. The caller pins the file.
func eachBlock(file *datafile.File, blocks []index.Block, want func() int, f func(index.Block, []byte) (more bool, err error)) error {
	for len(blocks) > 0 {
		limit := windowBytes
		if want != nil {
			limit = want()
		}
		n, at := window(blocks, limit), blocks[0].Pos
		buf, err := readWindow(file, blocks[:n])
		if err != nil && n > 1 {
			// What cannot be read may lie in a later block, or between them.
			n = 1
			buf, err = readWindow(file, blocks[:n])
		}
		if err != nil {
			return damagedBlock(file, blocks[0], err)
		}
		for _, b := range blocks[:n] {
			data := buf[b.Pos-at:][:b.Len:b.Len]
			if crc32.Checksum(data, model.Castagnoli) != b.CRC {
				return damagedBlock(file, b, errChecksum)
			}
			if more, err := f(b, data); err != nil || !more {
				return err
			}
		}
		blocks = blocks[n:]
	}
	return nil
}

func readWindow(file *datafile.File, blocks []index.Block) ([]byte, error) {
	last := blocks[len(blocks)-1]
	buf := make([]byte, last.Pos+int64(last.Len)-blocks[0].Pos)
	_, err := file.ReadAt(buf, blocks[0].Pos)
	return buf, err
}

// window says how many of blocks one read should bring: at least one, at most
// about want bytes, with little that is not wanted between them.
func window(blocks []index.Block, want int) int {
	n, useful := 1, int(blocks[0].Len)
	for n < len(blocks) && useful < want {
		gap := blocks[n].Pos - blocks[n-1].Pos - int64(blocks[n-1].Len)
		size := blocks[n].Pos + int64(blocks[n].Len) - blocks[0].Pos
		if gap < 0 || gap > windowWaste || size > windowBytes {
			break
		}
		useful += int(blocks[n].Len)
		n++
	}
	return n
}
