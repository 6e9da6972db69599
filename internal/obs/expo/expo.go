// Package expo shows obs instruments in Prometheus's form. Metrics are declared as
// data, a Desc each; a scrape calls one function that hands over the values. It
// keeps no state and starts nothing.
package expo

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/daybook-mq/daybook/internal/obs"
)

// Kind is the kind of a metric.
type Kind uint8

// The kinds. Seconds is a histogram of durations, Numbers one of plain numbers.
const (
	Counter Kind = iota
	Gauge
	Seconds
	Numbers
)

// Desc declares one metric. Names are daybook_<noun>_<unit>, counters end in _total.
type Desc struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
}

// Emitter takes the values of one scrape. A name that is not declared, or with
// another number of labels, is a programming error and panics.
type Emitter struct {
	descs map[string]declared
	out   chan<- prometheus.Metric
}

type declared struct {
	Desc
	prom *prometheus.Desc
}

// Value emits a counter's or gauge's value.
func (e Emitter) Value(name string, v float64, labels ...string) {
	d := e.desc(name)
	kind := prometheus.GaugeValue
	if d.Kind == Counter {
		kind = prometheus.CounterValue
	}
	e.out <- prometheus.MustNewConstMetric(d.prom, kind, v, labels...)
}

// Histogram emits a histogram.
func (e Emitter) Histogram(name string, h *obs.Histogram, labels ...string) {
	d, s := e.desc(name), h.Snapshot()
	unit, sum := 1.0, float64(s.Sum)
	if d.Kind == Seconds {
		unit, sum = 1e-6, float64(s.Sum)/1e9
	}
	buckets := make(map[float64]uint64, len(s.Below))
	for i, n := range s.Below {
		buckets[float64(int64(1)<<i)*unit] = uint64(n)
	}
	e.Buckets(name, uint64(s.Count), sum, buckets, labels...)
}

// Buckets emits a histogram that somebody else has counted: below maps each bound
// to the number of values up to it.
func (e Emitter) Buckets(name string, count uint64, sum float64, below map[float64]uint64, labels ...string) {
	e.out <- prometheus.MustNewConstHistogram(e.desc(name).prom, count, sum, below, labels...)
}

func (e Emitter) desc(name string) declared {
	d, ok := e.descs[name]
	if !ok {
		panic(fmt.Sprintf("metric %s is not declared", name))
	}
	return d
}

type collector struct {
	descs   map[string]declared
	collect func(Emitter)
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d.prom
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.collect(Emitter{c.descs, out})
}

// Handler serves the metrics, and those of the Go runtime and the process. Each
// scrape calls collect.
func Handler(descs []Desc, collect func(Emitter)) http.Handler {
	c := &collector{descs: map[string]declared{}, collect: collect}
	for _, d := range descs {
		c.descs[d.Name] = declared{d, prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)}
	}
	r := prometheus.NewRegistry()
	r.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}
