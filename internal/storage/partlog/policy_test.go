package partlog

import (
	"testing"
	"time"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/journal"
)

func TestExpired(t *testing.T) {
	now := epoch2020
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	units := []unit{{9, ago(5 * time.Hour), 100}, {19, ago(3 * time.Hour), 100}, {29, ago(time.Hour), 100}}
	for _, c := range []struct {
		name   string
		units  []unit
		policy Policy
		upTo   model.Offset
		any    bool
	}{
		{"nothing asked", units, Policy{Delete: true}, 0, false},
		{"not for compacted topics", units, Policy{Compact: true, RetentionTime: time.Hour, RetentionBytes: 1}, 0, false},
		{"by time", units, Policy{Delete: true, RetentionTime: 4 * time.Hour}, 10, true},
		{"by time, all", units, Policy{Delete: true, RetentionTime: time.Minute}, 30, true},
		{"an old unit behind a young one stays", []unit{units[2], units[0]}, Policy{Delete: true, RetentionTime: 2 * time.Hour}, 0, false},
		{"no time stamp never ages", []unit{{9, -1, 100}, units[0]}, Policy{Delete: true, RetentionTime: time.Minute}, 0, false},
		{"a time in the future never ages", []unit{{9, ago(-time.Hour), 100}}, Policy{Delete: true, RetentionTime: time.Minute}, 0, false},
		{"by size keeps at least the bytes", units, Policy{Delete: true, RetentionBytes: 150}, 10, true},
		{"by size, exactly", units, Policy{Delete: true, RetentionBytes: 200}, 10, true},
		{"by size, under", units, Policy{Delete: true, RetentionBytes: 201}, 0, false},
		{"the newest unit does not go by size", units, Policy{Delete: true, RetentionBytes: 1}, 20, true},
		{"time and size together", units, Policy{Delete: true, RetentionTime: 4 * time.Hour, RetentionBytes: 100}, 20, true},
		{"empty", nil, Policy{Delete: true, RetentionTime: 1, RetentionBytes: 1}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			upTo, any := expired(c.units, c.policy, now)
			if upTo != c.upTo || any != c.any {
				t.Errorf("%d, %v; want %d, %v", upTo, any, c.upTo, c.any)
			}
		})
	}
}

func TestNextStep(t *testing.T) {
	now := epoch2020
	const mib = 1 << 20
	file := func(bulk bool, age time.Duration) *sealedFile {
		f := &sealedFile{Sealed: journal.Sealed{Bytes: 64 * mib}, content: &journalFile{entries: 100_000, runs: 100_000, bytes: 60 * mib}, at: now.Add(-age)}
		f.content.logs = make([]*Log, 100)
		if bulk {
			f.content.runs = 1000
		}
		return f
	}
	small, bulk := func() *sealedFile { return file(false, 0) }, func() *sealedFile { return file(true, 0) }
	many := file(true, time.Hour)
	many.content.logs = make([]*Log, 10_000)
	for _, c := range []struct {
		name   string
		sealed []*sealedFile
		want   step
	}{
		{"nothing", nil, step{}},
		{"small ones are gathered", []*sealedFile{small(), small(), small()}, step{}},
		{"until there are enough", []*sealedFile{small(), small(), small(), small(), small()}, step{files: 4}},
		{"or the first is old", []*sealedFile{file(false, gatherAge), small()}, step{files: 2}},
		{"or one of bulk is behind them", []*sealedFile{small(), bulk(), small()}, step{files: 1}},
		{"bulk stays readable from memory for a while", []*sealedFile{bulk()}, step{}},
		{"then it is adopted", []*sealedFile{file(true, adoptAge)}, step{files: 1, adopt: true}},
		{"or when the next is there", []*sealedFile{bulk(), small()}, step{files: 1, adopt: true}},
		{"long extents of very many logs are not bulk", []*sealedFile{many}, step{files: 1}},
		{"a file without batches", []*sealedFile{{Sealed: journal.Sealed{Bytes: 64 * mib}, at: now.Add(-gatherAge)}}, step{files: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := nextStep(c.sealed, 1<<30, now); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestShortSeries(t *testing.T) {
	flushed, adopted := &segment{}, &segment{adopted: true}
	row := func(seg *segment, n int, size int64, tsStep int64) (spans []span) {
		for i := range n {
			o := model.Offset(i * 10)
			spans = append(spans, span{seg: seg, base: o, last: o + 9, bytes: size, maxTs: int64(i) * tsStep})
		}
		return spans
	}
	holed := row(flushed, 10, 100, 1)
	holed[5].base++
	for _, c := range []struct {
		name   string
		spans  []span
		policy Policy
		want   []int // lengths
	}{
		{"enough in a row", row(flushed, 9, 100, 1), Policy{}, []int{9}},
		{"too few", row(flushed, 7, 100, 1), Policy{}, nil},
		{"long ones stay", row(flushed, 20, shortSpan, 1), Policy{}, nil},
		{"adopted ones are long sooner", row(adopted, 20, shortSpanAdopted, 1), Policy{}, nil},
		{"adopted and short", row(adopted, 20, shortSpanAdopted-1, 1), Policy{}, []int{20}},
		{"not over segment.bytes", row(flushed, 20, 100, 1), Policy{SegmentBytes: 1000}, []int{10, 10}},
		{"not over a quarter of the retention time", row(flushed, 20, 100, 1000), Policy{RetentionTime: 36 * time.Second}, []int{10, 10}},
		{"not over segment.ms", row(flushed, 20, 100, 1000), Policy{SegmentTime: 9 * time.Second}, []int{10, 10}},
		{"not over a hole", holed, Policy{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shortSeries(c.spans, c.policy, manySpans, 1<<30)
			if len(got) != len(c.want) {
				t.Fatalf("%d series, want %v", len(got), c.want)
			}
			for i, s := range got {
				if len(s) != c.want[i] {
					t.Errorf("series %d has %d spans, want %d", i, len(s), c.want[i])
				}
			}
		})
	}
}

// TestCheckpointBoundsTheReplay: what is adopted is read again by a start until a
// checkpoint says so, however young that is.
func TestCheckpointBoundsTheReplay(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &Store{o: Options{JournalCap: 400, Clock: func() time.Time { return now }}}
	s.keeper.checkpoint, s.keeper.dirty = now, true
	for _, c := range []struct {
		adopted int64
		due     bool
	}{{0, false}, {99, false}, {100, true}} {
		s.keeper.adopted = c.adopted
		if got := s.checkpointDue(); got != c.due {
			t.Errorf("%d of %d bytes adopted: due %v", c.adopted, s.o.JournalCap, got)
		}
	}
}
