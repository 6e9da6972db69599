package cli

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

// DefaultHTTP is where a local broker's metrics and health pages are; the
// variable is the one that `daybook serve` reads.
func DefaultHTTP() string { return "http://" + envOr("DAYBOOK_HTTP_ADDR", "127.0.0.1:8080") }

// maxMetrics bounds a metrics page, in bytes.
const maxMetrics = 64 << 20

// Metrics are the samples of a Prometheus page, each under its name and under
// its name with labels; the former is the sum over all labels.
type Metrics map[string]float64

// ReadMetrics gets a broker's metrics page, and its clock by the way (zero when
// the page does not tell).
func ReadMetrics(ctx context.Context, url string) (Metrics, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, time.Time{}, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	clock, _ := http.ParseTime(resp.Header.Get("Date"))
	m, err := ParseMetrics(io.LimitReader(resp.Body, maxMetrics))
	return m, clock, err
}

// ParseMetrics reads a Prometheus page in the text format.
func ParseMetrics(r io.Reader) (Metrics, error) {
	out := Metrics{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || i < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			continue // not a sample that we know
		}
		name, _, labelled := strings.Cut(line[:i], "{")
		out[name] += v
		if labelled {
			out[line[:i]] = v
		}
	}
	return out, lines.Err()
}

// Has reports whether there is a sample of this name.
func (m Metrics) Has(name string) bool {
	_, ok := m[name]
	return ok
}

// DefaultData is the data directory that `daybook serve` uses when told nothing.
func DefaultData() string { return envOr("DAYBOOK_DATA", "./daybook-data") }
