package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-mq/daybook/internal/cli"
)

// broker tells whether one answers where clients look.
func (e *exam) broker(ctx context.Context) {
	const check = "broker"
	conn, err := e.g.Connect(ctx)
	if errors.Is(err, cli.ErrNoBroker) {
		e.noBroker(check)
		return
	}
	if err != nil {
		e.add(check, Fail, "see which program listens there: `ss -ltnp`; check --tls and --sasl-mechanism", "%v", err)
		return
	}
	defer conn.Close()
	limited, cancel := e.g.Limit(ctx)
	defer cancel()
	begin := time.Now()
	meta, err := conn.Admin.BrokerMetadata(limited)
	if err != nil {
		e.add(check, Fail, "see which program listens there: `ss -ltnp`; check --tls and --sasl-mechanism", "%s: %v", e.g.Bootstrap, err)
		return
	}
	e.answers = true
	e.add(check, OK, "", "answers at %s in %s (cluster %s, %d brokers)", e.g.Bootstrap, cli.Brief(time.Since(begin)), meta.Cluster, len(meta.Brokers))
}

func (e *exam) noBroker(check string) {
	if e.inUse {
		e.add(check, Fail, "name its address with --bootstrap HOST:PORT; its log says where it listens", "a broker holds the data directory, but none answers at %s", e.g.Bootstrap)
		return
	}
	e.add(check, Warn, "`daybook serve` starts one", "none answers at %s", e.g.Bootstrap)
}

// ports tells whether a broker could listen where it is asked for.
func (e *exam) ports(context.Context) {
	const check = "ports"
	if e.answers || e.inUse {
		return // the broker that runs has them
	}
	addrs := e.g.Seeds()
	if u, err := url.Parse(e.o.HTTP); err == nil && u.Host != "" {
		addrs = append(addrs, u.Host)
	}
	var taken []string
	for _, a := range addrs {
		host, port, err := net.SplitHostPort(a)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			continue // another machine's
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			taken = append(taken, a)
			continue
		}
		_ = l.Close() // it was only tried
	}
	if len(taken) > 0 {
		_, port, _ := net.SplitHostPort(taken[0])
		e.add(check, Fail, fmt.Sprintf("`ss -ltnp 'sport = :%s'` names the program; `daybook serve --kafka HOST:PORT --http HOST:PORT` uses others", port), "taken by another program: %s", strings.Join(taken, ", "))
		return
	}
	e.add(check, OK, "", "free: %s", strings.Join(addrs, ", "))
}

// ready asks the broker itself whether it can produce and consume, and reads its
// metrics and its clock.
func (e *exam) ready(ctx context.Context) {
	const check = "readiness"
	if !e.answers || e.o.HTTP == "" {
		return
	}
	m, clock, err := cli.ReadMetrics(ctx, strings.TrimSuffix(e.o.HTTP, "/")+"/metrics")
	switch {
	case err != nil:
		e.add(check, Warn, "name the address with --http http://HOST:PORT", "no metrics page at %s: %v", e.o.HTTP, err)
	case !m.Has("daybook_serving"):
		e.add(check, OK, "", "%s is not Daybook's; its checks are left out", e.o.HTTP)
	case m["daybook_serving"] != 1:
		e.metrics, e.clock = m, clock
		e.add(check, Warn, "wait; the broker's log says how far it is", "the broker is starting or stopping")
	case m["daybook_storage_errors_total"] > 0:
		e.metrics, e.clock = m, clock
		e.add(check, Fail, fmt.Sprintf("see the broker's log and `daybook log verify %s`", e.o.Data), "the broker has met %.0f disk errors since its start", m["daybook_storage_errors_total"])
	default:
		e.metrics, e.clock = m, clock
		e.add(check, OK, "", "serving for %s", cli.Brief(time.Duration(m["daybook_uptime_seconds"]*float64(time.Second))))
	}
}

// sync is about when the running broker acknowledges.
func (e *exam) sync(context.Context) {
	const check, name = "sync mode", "daybook_sync_mode"
	remedy := "`daybook serve --sync=always` acknowledges only what is on disk"
	switch {
	case !e.metrics.Has(name):
		return
	case e.metrics[name+`{mode="always"}`] == 1:
		e.add(check, OK, "", "always: nothing is acknowledged before it is on disk")
	case e.metrics[name+`{mode="interval"}`] == 1:
		e.add(check, Warn, remedy, "interval: a crash of the machine loses the newest acknowledged records")
	default:
		e.add(check, Warn, remedy, "none: a crash of the machine loses acknowledged records")
	}
}

// advertised tells whether the addresses that the broker sends its clients to
// lead to it from here.
func (e *exam) advertised(ctx context.Context) {
	const check = "advertised addresses"
	if !e.answers {
		return
	}
	conn, err := e.g.Connect(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	limited, cancel := e.g.Limit(ctx)
	defer cancel()
	meta, err := conn.Admin.BrokerMetadata(limited)
	if err != nil {
		e.add(check, Fail, "", "%v", err)
		return
	}
	var good, bad []string
	for _, b := range meta.Brokers {
		addr := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		c, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", addr)
		if err != nil {
			bad = append(bad, addr)
			continue
		}
		_ = c.Close() // it was only tried
		good = append(good, addr)
	}
	sort.Strings(good)
	if len(bad) > 0 {
		e.add(check, Fail, "`daybook serve --advertise HOST:PORT` with an address that clients can reach", "cannot be reached from here: %s", strings.Join(bad, ", "))
		return
	}
	e.add(check, OK, "", "reached: %s", strings.Join(good, ", "))
}
