package produce

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// Summary is what a command has done, under -o json.
type Summary struct {
	Topic      string           `json:"topic"`
	Read       int64            `json:"records_read"`
	Acked      int64            `json:"records_acknowledged"`
	Failed     int64            `json:"records_failed"` // not acknowledged; after a timeout they may be stored all the same
	Bytes      int64            `json:"bytes_acknowledged"`
	Seconds    float64          `json:"seconds"`
	Partitions []PartitionCount `json:"partitions"`
}

// PartitionCount is what went to one partition. The offsets are -1 with acks 0,
// when the broker does not tell.
type PartitionCount struct {
	Partition int32 `json:"partition"`
	Records   int64 `json:"records"`
	First     int64 `json:"first_offset"`
	Last      int64 `json:"last_offset"`
}

// finish prints the summary and turns err, or the first record that failed,
// into the command's result.
func (r *run) finish(g *cli.Globals, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := time.Since(r.started)
	s := Summary{
		Topic: r.o.Topic, Read: r.read, Acked: r.acked, Failed: r.read - r.acked,
		Bytes: r.bytes, Seconds: took.Seconds(), Partitions: []PartitionCount{},
	}
	for _, p := range r.partitions {
		s.Partitions = append(s.Partitions, *p)
	}
	slices.SortFunc(s.Partitions, func(a, b PartitionCount) int { return int(a.Partition - b.Partition) })
	printErr := g.Print(s, func(io.Writer) error {
		verb := "Acknowledged"
		if r.o.Acks == "0" {
			verb = "Sent" // nothing is acknowledged with acks 0
		}
		g.Note("%s %s to %s in %s (%s records/s, %s/s)", verb, cli.Plural(s.Acked, "record"), s.Topic, cli.Brief(took),
			cli.Count(int64(float64(s.Acked)/took.Seconds())), cli.Bytes(int64(float64(s.Bytes)/took.Seconds())))
		return nil
	})
	switch {
	case err != nil && r.firstErr == nil:
		if s.Failed > 0 {
			g.Note("%s without an acknowledgement.", cli.Plural(s.Failed, "record"))
		}
		return err
	case r.firstErr != nil:
		return fmt.Errorf("%s of %s not acknowledged: %w", cli.Count(s.Failed), cli.Plural(s.Read, "record"), r.explain(r.firstErr))
	}
	return printErr
}

// progress shows how far a long command is, when a person watches.
func (r *run) progress(g *cli.Globals) (stop func()) {
	if !cli.Interactive(g.Err) || cli.Interactive(g.In) && r.o.Input.fromStdin() {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				fmt.Fprint(g.Err, "\r\x1b[K")
				return
			case <-tick.C:
				r.mu.Lock()
				acked, bytes := r.acked, r.bytes
				r.mu.Unlock()
				took := time.Since(r.started).Seconds()
				fmt.Fprintf(g.Err, "\r\x1b[K%s acknowledged, %s records/s, %s/s",
					cli.Plural(acked, "record"), cli.Count(int64(float64(acked)/took)), cli.Bytes(int64(float64(bytes)/took)))
			}
		}
	}()
	return func() { close(quit); <-gone }
}
