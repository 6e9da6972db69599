package cli

import (
	"bytes"
	"testing"
	"time"
)

func TestParseBytes(t *testing.T) {
	good := map[string]int64{"0": 0, "512": 512, "1k": 1024, "1KiB": 1024, "1kb": 1000, "1.5MB": 1_500_000, "2GiB": 2 << 30, "1t": 1 << 40, "7B": 7}
	for in, want := range good {
		if n, err := ParseBytes(in); err != nil || n != want {
			t.Errorf("%s: %d, %v; want %d", in, n, err, want)
		}
	}
	for _, bad := range []string{"", "k", "-1", "1KiBB", "1 k", "one", "1e30", "NaN", "9999999T", "1ib"} {
		if n, err := ParseBytes(bad); err == nil {
			t.Errorf("%q is taken as %d", bad, n)
		}
	}
}

func TestPrinting(t *testing.T) {
	for want, got := range map[string]string{
		"0 B": Bytes(0), "1023 B": Bytes(1023), "1.0 KiB": Bytes(1024), "1.5 MiB": Bytes(3 << 19), "2048.0 TiB": Bytes(2 << 50),
		"0": Count(0), "999": Count(999), "1,000": Count(1000), "-1,234,567": Count(-1234567),
		"1 record": Plural(1, "record"), "0 records": Plural(0, "record"), "2,000 records": Plural(2000, "record"),
		"49d": Brief(49*24*time.Hour + time.Hour), "1h1m0s": Brief(time.Hour + 61*time.Second), "1.23s": Brief(1234 * time.Millisecond), "12.3s": Brief(12345 * time.Millisecond), "1.5ms": Brief(1500 * time.Microsecond), "0s": Brief(0),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := NewTable("NAME", ">N", "LAST")
	table.Row("a", 1, "")
	table.Row("größer", 1000, "x")
	table.Row("\x1b[31mred\x1b[0m", 22, "y")
	var b bytes.Buffer
	if _, err := table.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	want := "NAME       N  LAST\na          1\ngrößer  1000  x\n\x1b[31mred\x1b[0m       22  y\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestParsePosition(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	good := map[string]Position{
		"start": Start, "earliest": Start, "end": End, "latest": End, "0": Offset(0), "42": Offset(42),
		"-42": {kind: positionTail, offset: 42}, "-1h": At(now.Add(-time.Hour)), "-7d": At(now.Add(-7 * 24 * time.Hour)), "-2w": At(now.Add(-14 * 24 * time.Hour)),
		"@1700000000": At(time.Unix(1700000000, 0)), "@1700000000123": At(time.UnixMilli(1700000000123)),
		"2026-01-31T08:00:00Z": At(time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)),
		"2026-01-31":           At(time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local)),
	}
	for in, want := range good {
		got, err := ParsePosition(in, now)
		if err != nil || got.kind != want.kind || got.offset != want.offset || !got.time.Equal(want.time) {
			t.Errorf("%s: %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "soon", "--1h", "1h", "@", "@-5", "@x", "2026-13-01", "99999999999999999999"} {
		if p, err := ParsePosition(bad, now); err == nil {
			t.Errorf("%q is taken as %+v", bad, p)
		}
	}
}
