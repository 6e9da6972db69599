package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The counters of a Daybook broker that tell how it used its disk.
const (
	metricSyncs    = "daybook_journal_sync_seconds_count"
	metricData     = "daybook_journal_data_bytes_total"
	metricWritten  = "daybook_journal_written_bytes_total"
	metricSegments = "daybook_segment_written_bytes_total"
)

// readMetrics reads the samples of a Prometheus page, summed over their labels.
func readMetrics(ctx context.Context, url string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return parseMetrics(io.LimitReader(resp.Body, 64<<20))
}

func parseMetrics(r io.Reader) (map[string]float64, error) {
	out := map[string]float64{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			continue // a sample with a timestamp, or a comment we do not know
		}
		name, _, _ := strings.Cut(line[:i], "{")
		out[name] += v
	}
	return out, lines.Err()
}
