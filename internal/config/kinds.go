package config

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseSize reads "64MiB", "1GB" or a plain number of bytes.
func ParseSize(s string) (Size, error) {
	digits, unit := s, int64(1)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(s, u.suffix); ok {
			digits, unit = strings.TrimSpace(d), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > (1<<63-1)/unit {
		return 0, fmt.Errorf("%q is not a size; write a number of bytes, or a number with KiB, MiB, GiB, KB, MB or GB", s)
	}
	return Size(n * unit), nil
}

// String gives the largest binary unit that divides the size.
func (n Size) String() string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		for _, k := range sizeUnits {
			if k.suffix == u && n > 0 && int64(n)%k.bytes == 0 {
				return strconv.FormatInt(int64(n)/k.bytes, 10) + u
			}
		}
	}
	return strconv.FormatInt(int64(n), 10)
}

var text = kind[string]{
	parse:  func(s string) (string, error) { return s, nil },
	format: func(s string) string { return s },
}

var nonEmpty = kind[string]{
	parse: func(s string) (string, error) {
		if s == "" {
			return "", fmt.Errorf("must not be empty")
		}
		return s, nil
	},
	format: text.format,
}

var address = kind[string]{parse: parseAddress, format: text.format}

func parseAddress(s string) (string, error) {
	if s == Off {
		return s, nil
	}
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", fmt.Errorf("%q is not an address; write host:port such as 127.0.0.1:9092 (port 0 picks a free one), or off", s)
	}
	return s, nil
}

var hostPort = kind[string]{
	parse: func(s string) (string, error) {
		if s == "" {
			return s, nil
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil { // no port
			host, port = Unbracket(s), "1"
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ ") {
			return "", fmt.Errorf("%q is not an address that a client can dial; write host or host:port, such as broker.example.com:9092", s)
		}
		return s, nil
	},
	format: text.format,
}

// Unbracket takes the brackets of an IPv6 address away.
func Unbracket(host string) string { return strings.Trim(host, "[]") }

var boolean = kind[bool]{
	parse: func(s string) (bool, error) {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return false, fmt.Errorf("%q is neither true nor false", s)
		}
		return b, nil
	},
	format: strconv.FormatBool,
}

func sizeBetween(low, high Size) kind[Size] {
	return kind[Size]{
		parse: func(s string) (Size, error) {
			n, err := ParseSize(s)
			if err == nil && (n < low || n > high) {
				err = fmt.Errorf("%s is out of range; it may be %s to %s", n, low, high)
			}
			return n, err
		},
		format: Size.String,
	}
}

func intBetween[T int | int32](low, high int64) kind[T] {
	return kind[T]{
		parse: func(s string) (T, error) {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < low || n > high {
				return 0, fmt.Errorf("%q is not a whole number from %d to %d", s, low, high)
			}
			return T(n), nil
		},
		format: func(n T) string { return strconv.FormatInt(int64(n), 10) },
	}
}

func durationFrom(low time.Duration) kind[time.Duration] {
	return kind[time.Duration]{
		parse: func(s string) (time.Duration, error) {
			d, err := parseDuration(s)
			if err == nil && d < low {
				err = fmt.Errorf("%s is too short; it must be at least %s", d, low)
			}
			return d, err
		},
		format: formatDuration,
	}
}

const day = 24 * time.Hour

// parseDuration reads Go's durations, and whole days such as "7d".
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseInt(days, 10, 32); err == nil && n >= 0 && n <= 100*365 {
			return time.Duration(n) * day, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration; write a number with ms, s, m, h or d, such as 100ms or 7d", s)
	}
	return d, nil
}

func formatDuration(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

var syncMode = kind[Sync]{
	parse: func(s string) (Sync, error) {
		mode, interval, hasInterval := strings.Cut(s, "=")
		switch {
		case SyncMode(mode) == SyncInterval && hasInterval:
			d, err := parseDuration(interval)
			if err == nil && (d < time.Millisecond || d > time.Minute) {
				err = fmt.Errorf("%s is out of range; the interval may be 1ms to 1m", d)
			}
			return Sync{SyncInterval, d}, err
		case !hasInterval && (SyncMode(mode) == SyncAlways || SyncMode(mode) == SyncNone):
			return Sync{Mode: SyncMode(mode)}, nil
		}
		return Sync{}, fmt.Errorf("%q is not a sync mode; write always, interval=DURATION (such as interval=50ms) or none", s)
	},
	format: Sync.String,
}

// String gives the form that the option takes.
func (s Sync) String() string {
	if s.Mode == SyncInterval {
		return "interval=" + s.Interval.String()
	}
	return string(s.Mode)
}

var logLevel = kind[slog.Level]{
	parse: func(s string) (l slog.Level, err error) {
		if l.UnmarshalText([]byte(s)) != nil {
			err = fmt.Errorf("%q is not a level; write debug, info, warn or error", s)
		}
		return l, err
	},
	format: func(l slog.Level) string { return strings.ToLower(l.String()) },
}

func oneOf(words ...string) kind[string] {
	return kind[string]{
		parse: func(s string) (string, error) {
			if !slices.Contains(words, s) {
				return "", fmt.Errorf("%q is none of %s", s, strings.Join(words, ", "))
			}
			return s, nil
		},
		format: text.format,
	}
}
