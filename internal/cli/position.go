package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Position is a place in a topic's partitions as a person writes it.
type Position struct {
	kind   positionKind
	offset int64     // positionOffset, positionTail
	time   time.Time // positionTime
}

type positionKind uint8

const (
	positionStart  positionKind = iota
	positionEnd                 // the next offset to be written
	positionOffset              // a number
	positionTail                // so many records before the end
	positionTime                // the first record at or after a time
)

// Start is the first record there is, End the next one to come.
var (
	Start = Position{kind: positionStart}
	End   = Position{kind: positionEnd}
)

// positionForms is the help text on what ParsePosition reads.
const positionForms = "start, end, an offset (42), the last N records (-42), a time (2026-01-31, 2026-01-31T08:00:00Z, @1769846400) or a time ago (-1h, -7d)"

// ParsePosition reads one of the forms that positionForms lists. Now is the
// time that ages count back from.
func ParsePosition(s string, now time.Time) (Position, error) {
	switch s {
	case "start", "beginning", "earliest":
		return Start, nil
	case "end", "latest":
		return End, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if strings.HasPrefix(s, "-") {
			return Position{kind: positionTail, offset: -n}, nil
		}
		return Position{kind: positionOffset, offset: n}, nil
	}
	if age, ok := strings.CutPrefix(s, "-"); ok {
		if d, err := ParseDuration(age); err == nil && d >= 0 {
			return At(now.Add(-d)), nil
		}
	}
	if t, ok := ParseTime(s); ok {
		return At(t), nil
	}
	return Position{}, fmt.Errorf("%q is not a position; write %s", s, positionForms)
}

// ParseTime reads a moment: a date, a date and time (local unless it names a
// zone), or @ and Unix seconds or milliseconds.
func ParseTime(s string) (time.Time, bool) {
	if unix, ok := strings.CutPrefix(s, "@"); ok {
		n, err := strconv.ParseInt(unix, 10, 64)
		switch {
		case err != nil || n < 0:
			return time.Time{}, false
		case n >= 1e11: // as seconds, beyond the year 5000
			return time.UnixMilli(n), true
		}
		return time.Unix(n, 0), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// At is the position of the first record at or after t.
func At(t time.Time) Position { return Position{kind: positionTime, time: t} }

// Offset is a fixed offset, the same in every partition.
func Offset(n int64) Position { return Position{kind: positionOffset, offset: n} }

// IsStart reports whether p is the start of the log.
func (p Position) IsStart() bool { return p.kind == positionStart }

// IsEnd reports whether p is the end of the log.
func (p Position) IsEnd() bool { return p.kind == positionEnd }

// ClientOffset is p as an option of the consuming client.
func (p Position) ClientOffset() kgo.Offset {
	o := kgo.NewOffset()
	switch p.kind {
	case positionEnd:
		return o.AtEnd()
	case positionOffset:
		return o.At(p.offset)
	case positionTail:
		return o.AtEnd().Relative(-p.offset)
	case positionTime:
		return o.AfterMilli(p.time.UnixMilli())
	}
	return o.AtStart()
}

// Span is what a partition holds: its first offset and the next one to come.
type Span struct{ Start, End int64 }

// Records is the number of offsets in the span.
func (s Span) Records() int64 { return s.End - s.Start }

// Spans are the spans of topics' partitions.
type Spans map[string]map[int32]Span

// ListSpans asks for the first and next offsets of every partition of topics.
func ListSpans(ctx context.Context, admin *kadm.Client, topics ...string) (Spans, error) {
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, Failed("ask for first offsets", err)
	}
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, Failed("ask for end offsets", err)
	}
	spans := Spans{}
	var bad error
	starts.Each(func(o kadm.ListedOffset) {
		end, ok := ends.Lookup(o.Topic, o.Partition)
		switch {
		case o.Err != nil:
			bad = Refused(fmt.Sprintf("ask for the offsets of %s", o.Topic), o.Err, "")
			return
		case !ok || end.Err != nil:
			bad = Refused(fmt.Sprintf("ask for the offsets of %s", o.Topic), end.Err, "")
			return
		}
		if spans[o.Topic] == nil {
			spans[o.Topic] = map[int32]Span{}
		}
		spans[o.Topic][o.Partition] = Span{o.Offset, end.Offset}
	})
	return spans, bad
}

// Resolve turns p into one offset for each partition in spans, within what the
// partition holds. A time later than the last record gives the end.
func (p Position) Resolve(ctx context.Context, admin *kadm.Client, spans Spans) (map[string]map[int32]int64, error) {
	var byTime kadm.ListedOffsets
	if p.kind == positionTime {
		topics := make([]string, 0, len(spans))
		for t := range spans {
			topics = append(topics, t)
		}
		var err error
		if byTime, err = admin.ListOffsetsAfterMilli(ctx, p.time.UnixMilli(), topics...); err != nil {
			return nil, Failed("look a time up", err)
		}
	}
	out := make(map[string]map[int32]int64, len(spans))
	for topic, partitions := range spans {
		out[topic] = make(map[int32]int64, len(partitions))
		for partition, span := range partitions {
			var at int64
			switch p.kind {
			case positionStart:
				at = span.Start
			case positionEnd:
				at = span.End
			case positionOffset:
				at = p.offset
			case positionTail:
				at = span.End - p.offset
			case positionTime:
				found, _ := byTime.Lookup(topic, partition)
				if found.Err != nil {
					return nil, Refused(fmt.Sprintf("look a time up in %s-%d", topic, partition), found.Err, "")
				}
				if at = found.Offset; at < 0 {
					at = span.End
				}
			}
			out[topic][partition] = min(max(at, span.Start), span.End)
		}
	}
	return out, nil
}

// Stable lowers the ends to the last stable offsets: what a reader of committed
// records can get to.
func (s Spans) Stable(ctx context.Context, admin *kadm.Client, topics ...string) error {
	stable, err := admin.ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return Failed("ask for stable offsets", err)
	}
	var bad error
	stable.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			bad = Refused("ask for the stable offset of "+o.Topic, o.Err, "")
			return
		}
		if span, ok := s[o.Topic][o.Partition]; ok {
			span.End = min(span.End, max(o.Offset, span.Start))
			s[o.Topic][o.Partition] = span
		}
	})
	return bad
}
