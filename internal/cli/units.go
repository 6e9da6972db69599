package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads what time.ParseDuration does, and days and weeks ("7d",
// "2w") besides.
func ParseDuration(s string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(s, suffix); ok {
			if n, err := strconv.ParseFloat(number, 64); err == nil {
				return time.Duration(n * float64(unit)), nil
			}
		}
	}
	return time.ParseDuration(s)
}

// ParseBytes reads a size in bytes: "1048576", "1MiB", "64k", "1.5GB". Suffixes
// of one letter and those with an i are powers of 1,024, those with a plain B
// powers of 1,000.
func ParseBytes(s string) (int64, error) {
	number := strings.TrimRight(s, "kKmMgGtTiIbB")
	unit := strings.ToLower(s[len(number):])
	factors := map[string]float64{
		"": 1, "b": 1,
		"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
		"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
		"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
		"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
	}
	factor, known := factors[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(n >= 0 && n*factor <= 1<<60) { // so that NaN is refused too
		return 0, fmt.Errorf("%q is not a size; write it like 512, 64KiB or 1.5GB", s)
	}
	return int64(n * factor), nil
}

// Bytes prints a size for a person.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n), 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", f, " KMGT"[unit])
}

// Count prints a number with its thousands apart.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Plural is "1 record" or "2 records", with thousands apart.
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(n) + " " + noun
}

// Brief prints a duration for a person: three significant digits or so.
func Brief(d time.Duration) string {
	switch abs := d.Abs(); {
	case abs >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case abs >= time.Hour:
		return d.Round(time.Minute).String()
	case abs >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case abs >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case abs >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}
