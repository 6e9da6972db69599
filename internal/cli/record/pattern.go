package record

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// PatternHelp lists what a pattern may hold.
const PatternHelp = `  %t topic     %p partition  %o offset    %T timestamp (ms)  %D timestamp (RFC 3339)
  %k key       %v value      %h headers   (k=v,k=v)
  %K length of the key, %V of the value (-1: null)           %H number of headers
  %xk %xv hex  %bk %bv base64             %% percent
  \n newline   \t tab        \0 zero byte \xHH any byte      \\ backslash`

// Printer appends the printed form of a record to b.
type Printer func(b []byte, r *kgo.Record) []byte

// Pattern compiles a pattern of literal text, % fields and \ escapes. Null is
// what stands for a null key or value.
func Pattern(pattern, null string) (Printer, error) {
	var parts []Printer
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			text := literal
			literal = nil
			parts = append(parts, func(b []byte, _ *kgo.Record) []byte { return append(b, text...) })
		}
	}
	for rest := pattern; rest != ""; {
		switch rest[0] {
		case '\\':
			c, n, err := escape(rest)
			if err != nil {
				return nil, err
			}
			literal = append(literal, c)
			rest = rest[n:]
		case '%':
			if strings.HasPrefix(rest, "%%") {
				literal = append(literal, '%')
				rest = rest[2:]
				continue
			}
			field, n, err := lookUp(rest, null)
			if err != nil {
				return nil, err
			}
			flush()
			parts = append(parts, field)
			rest = rest[n:]
		default:
			literal = append(literal, rest[0])
			rest = rest[1:]
		}
	}
	flush()
	return func(b []byte, r *kgo.Record) []byte {
		for _, p := range parts {
			b = p(b, r)
		}
		return b
	}, nil
}

// lookUp finds the field that s begins with, and its length.
func lookUp(s, null string) (Printer, int, error) {
	orNull := func(data []byte, encode func([]byte) string) []byte {
		if data == nil {
			return []byte(null)
		}
		return []byte(encode(data))
	}
	plain := func(b []byte) string { return string(b) }
	fields := map[string]Printer{
		"%t": func(b []byte, r *kgo.Record) []byte { return append(b, r.Topic...) },
		"%p": func(b []byte, r *kgo.Record) []byte { return strconv.AppendInt(b, int64(r.Partition), 10) },
		"%o": func(b []byte, r *kgo.Record) []byte { return strconv.AppendInt(b, r.Offset, 10) },
		"%T": func(b []byte, r *kgo.Record) []byte { return strconv.AppendInt(b, r.Timestamp.UnixMilli(), 10) },
		"%D": func(b []byte, r *kgo.Record) []byte {
			return r.Timestamp.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
		},
		"%k":  func(b []byte, r *kgo.Record) []byte { return append(b, orNull(r.Key, plain)...) },
		"%v":  func(b []byte, r *kgo.Record) []byte { return append(b, orNull(r.Value, plain)...) },
		"%s":  func(b []byte, r *kgo.Record) []byte { return append(b, orNull(r.Value, plain)...) },
		"%xk": func(b []byte, r *kgo.Record) []byte { return append(b, orNull(r.Key, hex.EncodeToString)...) },
		"%xv": func(b []byte, r *kgo.Record) []byte { return append(b, orNull(r.Value, hex.EncodeToString)...) },
		"%bk": func(b []byte, r *kgo.Record) []byte {
			return append(b, orNull(r.Key, base64.StdEncoding.EncodeToString)...)
		},
		"%bv": func(b []byte, r *kgo.Record) []byte {
			return append(b, orNull(r.Value, base64.StdEncoding.EncodeToString)...)
		},
		"%K": func(b []byte, r *kgo.Record) []byte { return appendLength(b, r.Key) },
		"%V": func(b []byte, r *kgo.Record) []byte { return appendLength(b, r.Value) },
		"%S": func(b []byte, r *kgo.Record) []byte { return appendLength(b, r.Value) },
		"%H": func(b []byte, r *kgo.Record) []byte { return strconv.AppendInt(b, int64(len(r.Headers)), 10) },
		"%h": func(b []byte, r *kgo.Record) []byte { return appendHeaders(b, r, null) },
	}
	for _, n := range []int{3, 2} {
		if len(s) >= n && fields[s[:n]] != nil {
			return fields[s[:n]], n, nil
		}
	}
	return nil, 0, fmt.Errorf("%q is not a field; the fields are\n%s", s[:min(len(s), 2)], PatternHelp)
}

func appendLength(b, data []byte) []byte {
	if data == nil {
		return append(b, "-1"...)
	}
	return strconv.AppendInt(b, int64(len(data)), 10)
}

func appendHeaders(b []byte, r *kgo.Record, null string) []byte {
	for i, h := range r.Headers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, h.Key...), '=')
		if h.Value == nil {
			b = append(b, null...)
		} else {
			b = append(b, h.Value...)
		}
	}
	return b
}

// Unescape gives the bytes that s stands for with its \ escapes.
func Unescape(s string) ([]byte, error) {
	var out []byte
	for s != "" {
		if s[0] != '\\' {
			out, s = append(out, s[0]), s[1:]
			continue
		}
		c, n, err := escape(s)
		if err != nil {
			return nil, err
		}
		out, s = append(out, c), s[n:]
	}
	return out, nil
}

// escape reads the escape that s begins with: the byte, and how long it is.
func escape(s string) (byte, int, error) {
	if len(s) >= 2 {
		switch s[1] {
		case 'n':
			return '\n', 2, nil
		case 't':
			return '\t', 2, nil
		case 'r':
			return '\r', 2, nil
		case '0':
			return 0, 2, nil
		case '\\':
			return '\\', 2, nil
		case 'x':
			if len(s) >= 4 {
				if n, err := strconv.ParseUint(s[2:4], 16, 8); err == nil {
					return byte(n), 4, nil
				}
			}
		}
	}
	return 0, 0, fmt.Errorf(`%q is not an escape; there are \n, \t, \r, \0, \\ and \xHH`, s[:min(len(s), 4)])
}

// Named gives the printer of a format by name, or of a pattern when the format
// holds a % or a \.
func Named(format, null string) (Printer, error) {
	switch {
	case format == "" || format == "text":
		return Pattern(`%v\n`, null)
	case format == "json":
		return printJSON, nil
	case format == "raw":
		return Pattern("%v", "")
	case format == "hex":
		return Pattern(`%xv\n`, null)
	case format == "base64":
		return Pattern(`%bv\n`, null)
	case strings.ContainsAny(format, `%\`):
		return Pattern(format, null)
	}
	return nil, fmt.Errorf("%q is not a format: it is text, json, raw, hex, base64, or a pattern such as '%%k\\t%%v\\n'", format)
}

func printJSON(b []byte, r *kgo.Record) []byte {
	line, err := marshal(ToObject(r))
	if err != nil { // an Object always marshals: its fields are strings and numbers
		return append(b, fmt.Sprintf("{\"error\":%q}\n", err)...)
	}
	return append(b, line...)
}
