package group

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// maxLedgers bounds a ledger page, in bytes.
const maxLedgers = 64 << 20

// Ledger is a share group's settlement state over one partition, as the broker's
// debug page tells it. Counts are records.
type Ledger struct {
	Topic       string           `json:"topic"`
	Partition   int32            `json:"partition"`
	Start       int64            `json:"start"`
	End         int64            `json:"end"`
	LogEnd      int64            `json:"log_end"`
	ReadyTotal  int64            `json:"ready"`
	Waiting     int64            `json:"waiting"`
	InFlight    int64            `json:"in_flight"`
	Delayed     int64            `json:"delayed"`
	Dead        int64            `json:"dead"`
	OldestAgeMS int64            `json:"oldest_age_ms"`
	Held        map[string]int64 `json:"held_by"`
	Blocked     []string         `json:"blocked"`
	Spans       []string         `json:"spans"`
}

// UnmarshalJSON reads the debug page, whose names are the machine's own.
func (l *Ledger) UnmarshalJSON(b []byte) error {
	var page struct {
		Topic                                                     string
		Partition                                                 int32
		Start, End, LogEnd                                        int64
		ReadyTotal, Waiting, InFlight, Delayed, Dead, OldestAgeMS int64
		Held                                                      map[string]int64
		Blocked, Spans                                            []string
	}
	if err := json.Unmarshal(b, &page); err != nil {
		return err
	}
	*l = Ledger(page)
	return nil
}

// Ledgers prints what a share group is owed on each partition: ready, waiting for
// their key, in flight, delayed, dead, and why keys wait. It needs the broker's
// HTTP address, since Kafka's protocol does not tell.
func Ledgers(ctx context.Context, g *cli.Globals, base, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ledgers, err := readLedgers(ctx, base, name)
	if err != nil {
		return err
	}
	return g.Print(ledgers, func(w io.Writer) error {
		table := cli.NewTable("TOPIC", ">PARTITION", ">START", ">READY", ">WAITING", ">IN FLIGHT", ">DELAYED", ">DEAD", ">OLDEST")
		for _, l := range ledgers {
			oldest := "-"
			if l.OldestAgeMS >= 0 {
				oldest = (time.Duration(l.OldestAgeMS) * time.Millisecond).String()
			}
			table.Row(l.Topic, l.Partition, l.Start, l.ReadyTotal, l.Waiting, l.InFlight, l.Delayed, l.Dead, oldest)
		}
		if _, err := table.WriteTo(w); err != nil {
			return err
		}
		for _, l := range ledgers {
			for _, b := range l.Blocked {
				fmt.Fprintf(w, "%s-%d: %s\n", l.Topic, l.Partition, b)
			}
		}
		return nil
	})
}

func readLedgers(ctx context.Context, base, name string) ([]Ledger, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/debug/ledger/"+url.PathEscape(name), nil)
	if err != nil {
		return nil, cli.Usagef("--http %s: %v", base, err)
	}
	var out []Ledger
	err = getJSON(req, name, &out)
	return out, err
}

// getJSON does a request about a share group and reads its answer.
func getJSON(req *http.Request, name string, out any) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &cli.HintError{Err: err, Hint: "Name the broker's HTTP address with --http; `daybook serve` prints it at start."}
	}
	defer resp.Body.Close()
	body := io.LimitReader(resp.Body, maxLedgers)
	if resp.StatusCode != http.StatusOK {
		var told struct {
			Error string `json:"error"`
		}
		_ = json.NewDecoder(body).Decode(&told) // the status says enough
		err := fmt.Errorf("share group %s: %s", name, cmp.Or(told.Error, resp.Status))
		if resp.StatusCode == http.StatusNotFound {
			return &cli.HintError{Err: err, Hint: "`daybook group list --type share` shows the share groups there are."}
		}
		return err
	}
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return fmt.Errorf("read the answer about group %s: %w", name, err)
	}
	return nil
}
