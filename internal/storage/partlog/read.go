package partlog

import (
	"context"
	"fmt"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog/datafile"
	"github.com/daybook-mq/daybook/internal/storage/partlog/index"
)

// runMax bounds the extents that are taken out under a log's lock at once.
const runMax = 1024

// Read returns whole batches from the one that contains from on (or the next
// one after a gap), all below end, of at most maxBytes; the first batch comes
// whole even when it alone is larger, if atLeastOne. ClassOutOfRange outside
// [Start, End]; ClassCorrupt or ClassStorage where the disk's bytes are damaged.
func (l *Log) Read(ctx context.Context, from, end model.Offset, maxBytes int, atLeastOne bool) (Chunk, error) {
	if from < l.Start() || from > l.End() {
		return Chunk{}, l.outOfRange(from)
	}
	c := cutter{end: min(end, l.End()), budget: maxBytes, whole: atLeastOne, chunk: Chunk{Next: from}}
	for !c.full && c.chunk.Next < c.end {
		err := context.Cause(ctx)
		if err == nil {
			err = l.readSome(&c)
		}
		// What was read before the damage is good; the next read meets it first.
		if err != nil && c.chunk.Bytes > 0 {
			return c.chunk, nil
		}
		if err != nil {
			return Chunk{}, err
		}
	}
	return c.chunk, nil
}

// readSome adds to the chunk from one place: memory, a journal file or a segment.
func (l *Log) readSome(c *cutter) error {
	p, err := l.find(c.chunk.Next, max(c.budget-c.chunk.Bytes, 1))
	if err != nil {
		return err
	}
	defer p.unpin()
	if p.file == nil {
		for _, m := range p.memory {
			if err := c.add(m.data, m.base, m.last); err != nil || c.full {
				return err
			}
		}
		return nil
	}
	blocks, err := p.list(l.store.blocks)
	if err == nil && len(blocks) == 0 {
		err = model.Err(model.ClassCorrupt, "the index ends too early")
	}
	if err != nil {
		return l.damaged(newDamaged(p.seg.idx.Path(), &Damaged{First: p.base, Last: p.last, Where: "index", Cause: err}), c.chunk.Next)
	}
	recent := &l.store.recent
	take := func(b index.Block, data []byte) (more bool, err error) {
		if err := c.add(data, b.Base, b.Last); err != nil {
			return false, damagedBlock(p.file, b, err)
		}
		if c.full && c.chunk.Next <= b.Last {
			recent.Put(p.file, b.Pos, data)
		}
		return !c.full && c.chunk.Next < c.end, nil
	}
	if data := recent.Get(p.file, blocks[0].Pos, int(blocks[0].Len)); data != nil {
		more, err := take(blocks[0], data)
		if blocks = blocks[1:]; err != nil || !more || len(blocks) == 0 {
			return err
		}
	}
	return l.damaged(eachBlock(p.file, blocks, func() int { return c.budget - c.chunk.Bytes }, take), c.chunk.Next)
}

// place is where batches can be had: memory, extents of one journal file, or a
// span of one segment. Its files are pinned until unpin.
type place struct {
	memory []inMemory
	file   *datafile.File
	blocks []index.Block // of a journal file
	seg    *segment      // or the span's, whose blocks are in its index
	sec    index.Section
	from   model.Offset
	base   model.Offset // of the span
	last   model.Offset
}

type inMemory struct {
	data       []byte
	base, last model.Offset
}

func (p *place) unpin() {
	switch {
	case p.seg != nil:
		p.seg.unpin()
	case p.file != nil:
		p.file.Unpin()
	}
}

// list gives the blocks from the one that ends at or after from on.
func (p *place) list(cache *datafile.Blocks) ([]index.Block, error) {
	if p.seg == nil {
		return p.blocks, nil
	}
	blocks, err := cache.Get(p.seg.idx, p.sec)
	if err != nil {
		return nil, err
	}
	return blocks[blockAt(blocks, p.from):], nil
}

// find looks up where the batches from from on are; about want bytes of them.
func (l *Log) find(from model.Offset, want int) (place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < l.Start() {
		return place{}, l.outOfRange(from)
	}
	if d := l.damageAtLocked(from); d != nil && d.base <= from {
		return place{}, l.quarantined(*d)
	}
	if len(l.extents) > 0 && l.extents[0].base <= from {
		return l.findExtentsLocked(l.extentAtLocked(from), want)
	}
	i := l.spanAtLocked(from)
	if i == len(l.spans) {
		return place{}, l.quarantined(damage{from, from, reasonMissing})
	}
	s := &l.spans[i]
	s.seg.pin()
	return place{file: s.seg.data, seg: s.seg, sec: s.sec, from: from, base: s.base, last: s.last}, nil
}

// findExtentsLocked takes extents from the i-th on that are all in memory, or all
// in one journal file.
func (l *Log) findExtentsLocked(i, want int) (place, error) {
	var p place
	first := l.extents[i]
	held := first.slot != nil && first.slot.data != nil
	for n := 0; i < len(l.extents) && n < runMax && want > 0; i, n = i+1, n+1 {
		e := l.extents[i]
		switch {
		case held && e.slot != nil && e.slot.data != nil:
			p.memory = append(p.memory, inMemory{e.slot.data, e.base, e.last})
		case !held && e.in == first.in && (e.slot == nil || e.slot.data == nil):
			p.blocks = append(p.blocks, e.block())
		default:
			want = 0
			continue
		}
		want -= int(e.size)
	}
	if !held {
		p.file = first.in.file
		p.file.Pin()
	}
	return p, nil
}

// cutter fills a chunk with whole batches between Next and end.
type cutter struct {
	end    model.Offset
	budget int
	whole  bool // the first batch comes whole, over any budget
	full   bool
	chunk  Chunk
}

// add takes what fits of data, batches that cover the offsets base to last.
func (c *cutter) add(data []byte, base, last model.Offset) error {
	if base >= c.chunk.Next && last < c.end && c.chunk.Bytes+len(data) <= c.budget {
		c.take(data)
		c.chunk.Next = last + 1
		c.full = c.spent()
		return nil
	}
	from, to := 0, 0 // the range of data to take
	for rest := data; len(rest) > 0 && !c.full; {
		b, next, err := model.NextBatch(rest)
		if err != nil {
			return &model.Error{Class: model.ClassCorrupt, Op: "read", Detail: "the stored batches cannot be told apart", Cause: err}
		}
		rest = next
		switch {
		case b.LastOffset() < c.chunk.Next:
			from, to = to+len(b), to+len(b)
		case b.LastOffset() >= c.end,
			c.chunk.Bytes+to-from+len(b) > c.budget && !(c.whole && c.chunk.Bytes+to-from == 0):
			c.full = true
		default:
			to += len(b)
			c.chunk.Next = b.LastOffset() + 1
		}
	}
	c.take(data[from:to:to])
	if !c.full {
		c.chunk.Next = max(c.chunk.Next, min(last+1, c.end))
		c.full = c.spent()
	}
	return nil
}

// spent reports that no further batch can fit.
func (c *cutter) spent() bool {
	return c.chunk.Bytes+model.BatchHeaderSize > c.budget && (c.chunk.Bytes > 0 || !c.whole)
}

func (c *cutter) take(data []byte) {
	if len(data) > 0 {
		c.chunk.Data = append(c.chunk.Data, data)
		c.chunk.Bytes += len(data)
	}
}

func (l *Log) outOfRange(o model.Offset) error {
	return &model.Error{
		Class: model.ClassOutOfRange, Op: "read", Object: l.id.String(),
		Detail: fmt.Sprintf("offset %d is outside the log, which holds %d to %d", o, l.Start(), l.End()),
	}
}
