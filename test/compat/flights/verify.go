//go:build unix

package flights

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Output is what one member of a group wrote.
type Output struct {
	Path      string
	Killed    bool
	Committed int // lines known to be committed when it was killed
}

// Summary counts what a check read.
type Summary struct {
	Records    int
	Duplicates int
	Checksum   string // over the values of each record once, in the file's order
}

// place is where a record was first seen.
type place struct {
	partition int32 // -1: not yet
	offset    int64
	tail      bool // seen by the killed member after its last known commit
}

// topicCheck gathers what came of one topic.
type topicCheck struct {
	source     *Source
	partitions int32
	places     []place // by record number
	duplicates int
	offsets    []map[int64]int // per partition: offset to record number
}

// Check reads the outputs of one group and holds them against what was sent to each topic:
// all must have been read whole. The error names the first thing that is wrong.
func Check(topics map[string]*Source, partitions int32, outputs []Output) (map[string]Summary, error) {
	checks := make(map[string]*topicCheck, len(topics))
	for topic, source := range topics {
		checks[topic] = newTopicCheck(source, partitions)
	}
	// The killed member's records are told apart, so they are read first.
	for _, killed := range []bool{true, false} {
		for _, out := range outputs {
			if out.Killed != killed {
				continue
			}
			if err := readOutput(checks, out); err != nil {
				return nil, err
			}
		}
	}
	sums := make(map[string]Summary, len(topics))
	for topic, c := range checks {
		sum, err := c.finish()
		if err != nil {
			return nil, fmt.Errorf("topic %s: %w", topic, err)
		}
		sums[topic] = sum
	}
	return sums, nil
}

func newTopicCheck(s *Source, partitions int32) *topicCheck {
	c := &topicCheck{source: s, partitions: partitions, places: make([]place, s.Len())}
	for i := range c.places {
		c.places[i].partition = -1
	}
	for range partitions {
		c.offsets = append(c.offsets, make(map[int64]int))
	}
	return c
}

func readOutput(checks map[string]*topicCheck, out Output) error {
	data, err := os.ReadFile(out.Path)
	if err != nil {
		return err
	}
	lines := 0
	last := make(map[string]int64) // offset by topic and partition: one member sees them rise
	for line := range bytes.Lines(data) {
		if line[len(line)-1] != '\n' {
			// SIGKILL may cut the last line; a commit never covers it.
			if !out.Killed || lines < out.Committed {
				return fmt.Errorf("%s: line %d is cut", out.Path, lines+1)
			}
			break
		}
		lines++
		f := bytes.SplitN(line[:len(line)-1], []byte("\t"), 5)
		if len(f) != 5 {
			return fmt.Errorf("%s: line %d: %q has %d fields", out.Path, lines, line, len(f))
		}
		c, ok := checks[string(f[0])]
		if !ok {
			return fmt.Errorf("%s: line %d: topic %q was not subscribed", out.Path, lines, f[0])
		}
		offset, err := c.add(f[1:], out.Killed && lines > out.Committed)
		if err != nil {
			return fmt.Errorf("%s: line %d: topic %s: %w", out.Path, lines, f[0], err)
		}
		at := string(f[0]) + "\t" + string(f[1])
		if before, ok := last[at]; ok && offset <= before {
			return fmt.Errorf("%s: line %d: offset %d came after %d", out.Path, lines, offset, before)
		}
		last[at] = offset
	}
	if lines < out.Committed {
		return fmt.Errorf("%s: %d lines, but %d were committed", out.Path, lines, out.Committed)
	}
	return nil
}

// add takes one delivery: partition, offset, key, value. It returns the offset.
func (c *topicCheck) add(f [][]byte, tail bool) (int64, error) {
	partition, err := strconv.ParseInt(string(f[0]), 10, 32)
	if err != nil || partition < 0 || int32(partition) >= c.partitions {
		return 0, fmt.Errorf("partition %q", f[0])
	}
	offset, err := strconv.ParseInt(string(f[1]), 10, 64)
	if err != nil {
		return 0, err
	}
	return offset, c.record(int32(partition), offset, f[2], f[3], tail)
}

func (c *topicCheck) record(partition int32, offset int64, key, value []byte, tail bool) error {
	n, err := number(value)
	if err != nil {
		return err
	}
	i, ok := c.source.index(n)
	if !ok {
		return fmt.Errorf("value %q was not sent to this topic", value)
	}
	if !bytes.Equal(value, c.source.values[i]) || !bytes.Equal(key, c.source.keys[i]) {
		return fmt.Errorf("record %d came as %q %q, sent as %q %q", n, key, value, c.source.keys[i], c.source.values[i])
	}
	at := &c.places[i]
	switch {
	case at.partition < 0:
		*at = place{partition, offset, tail}
	case at.partition != partition || at.offset != offset:
		return fmt.Errorf("record %d is stored twice: %d@%d and %d@%d", n, at.partition, at.offset, partition, offset)
	case !at.tail:
		return fmt.Errorf("record %d (%d@%d) was delivered again though its offset was committed", n, partition, offset)
	default:
		// Once more is what the kill explains.
		at.tail = false
		c.duplicates++
	}
	if before, ok := c.offsets[partition][offset]; ok && before != n {
		return fmt.Errorf("offset %d@%d has records %d and %d", partition, offset, before, n)
	}
	c.offsets[partition][offset] = n
	return nil
}

func (c *topicCheck) finish() (Summary, error) {
	lastOffset := make(map[string]int64)
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic("")
	sum := fnv.New64a()
	for n := range c.places {
		at, key := c.places[n], c.source.keys[n]
		if at.partition < 0 {
			return Summary{}, fmt.Errorf("record %d (key %s) is lost%s", n, key, c.missing())
		}
		want := partitioner.Partition(&kgo.Record{Key: key}, int(c.partitions))
		if int(at.partition) != want {
			return Summary{}, fmt.Errorf("key %s is in partition %d, murmur2 says %d", key, at.partition, want)
		}
		if last, ok := lastOffset[string(key)]; ok && at.offset <= last {
			return Summary{}, fmt.Errorf("record %d of key %s has offset %d, an earlier one has %d", n, key, at.offset, last)
		}
		lastOffset[string(key)] = at.offset
		sum.Write(c.source.values[n])
	}
	return Summary{Records: len(c.places), Duplicates: c.duplicates, Checksum: fmt.Sprintf("%016x", sum.Sum64())}, nil
}

// missing describes how much is lost, for a message.
func (c *topicCheck) missing() string {
	perPartition := make([]string, 0, c.partitions)
	for p, offsets := range c.offsets {
		perPartition = append(perPartition, fmt.Sprintf("%d:%d", p, len(offsets)))
	}
	lost := 0
	for _, at := range c.places {
		if at.partition < 0 {
			lost++
		}
	}
	return fmt.Sprintf(" (%d lost in all; read per partition %s)", lost, strings.Join(perPartition, " "))
}
