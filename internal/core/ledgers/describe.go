package ledgers

import (
	"context"
	"fmt"

	"github.com/daybook-mq/daybook/internal/core/ledger"
	"github.com/daybook-mq/daybook/internal/core/partition"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/records"
)

// Description is a look at a ledger. Counts are records.
type Description struct {
	Key        Key
	Start, End model.Offset // of the ledger
	LogEnd     model.Offset
	ledger.Counts
	ReadyTotal int64 // with those from End on
	Dead       int64 // died since the broker started
	Parked     int   // keys closed by a dead record
}

// Describe looks at the ledger.
func (s *Subscription) Describe() Description {
	w := s.part.Watermarks()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := Description{
		Key: s.key, Start: s.l.Start(), End: s.l.End(), LogEnd: w.HighWatermark,
		Counts: s.l.Counts(), Dead: s.dead, Parked: len(s.l.ParkedKeys()),
	}
	d.ReadyTotal = d.Ready + int64(max(0, w.HighWatermark-max(d.End, w.LogStart)))
	return d
}

// Debug is the machine's own state, for the debug page.
type Debug struct {
	Description
	OldestAgeMS int64            // of the first record that is not settled; -1: none
	Held        map[string]int64 // records in flight, by member
	Blocked     []string         // keys whose records wait, and for what
	Spans       []string         // the runs between start and end
}

// debugLines bounds the lists of a debug page.
const debugLines = 100

// Debug looks at everything.
func (s *Subscription) Debug(ctx context.Context) Debug {
	d := Debug{Description: s.Describe(), OldestAgeMS: s.oldest(ctx), Held: map[string]int64{}}
	now := s.k.o.Now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.l.Held(func(span ledger.Span, m ledger.Member) { d.Held[s.nameLocked(m)] += span.Len() })
	for _, b := range s.l.Blocks(debugLines) {
		d.Blocked = append(d.Blocked, s.blockLocked(b, now))
	}
	s.l.Spans(func(span ledger.Span, st ledger.State, count int, until int64, owner ledger.Member) bool {
		line := fmt.Sprintf("%d-%d %s, delivered %d times", span.First, span.Last, st, count)
		if owner != 0 {
			line += ", held by " + s.nameLocked(owner)
		}
		if until != 0 {
			line += fmt.Sprintf(", for %d ms", until-now)
		}
		d.Spans = append(d.Spans, line)
		return len(d.Spans) < debugLines
	})
	return d
}

func (s *Subscription) nameLocked(m ledger.Member) string {
	if m == 0 || int(m) > len(s.names) {
		return ""
	}
	return s.names[m-1]
}

func (s *Subscription) blockLocked(b ledger.Block, now int64) string {
	if b.Holder < 0 {
		return fmt.Sprintf("%d records wait: their key is parked, since a record of it died", b.Waiting)
	}
	line := fmt.Sprintf("%d records wait for offset %d, which is %s", b.Waiting, b.Holder, b.State)
	if b.Owner != 0 {
		line += " by " + s.nameLocked(b.Owner)
	}
	if b.Until != 0 {
		line += fmt.Sprintf(" for %d ms", b.Until-now)
	}
	return line
}

// oldest is the age of the first record that is not settled, in milliseconds; -1
// if there is none or it cannot be read.
func (s *Subscription) oldest(ctx context.Context) int64 {
	s.mu.Lock()
	at := s.l.Start()
	s.mu.Unlock()
	res, err := s.part.Read(ctx, max(at, s.part.Watermarks().LogStart), 1, true, partition.ReadUncommitted)
	if err != nil || res.Bytes == 0 {
		return -1
	}
	age := int64(-1)
	_ = EachRecord(res.Data, func(o model.Offset, r records.Record) error {
		if o >= at && age < 0 {
			b := model.Batch(res.Data[0])
			age = max(0, s.k.o.Now().UnixMilli()-b.FirstTimestamp()-r.TimestampDelta)
		}
		return nil
	})
	return age
}
