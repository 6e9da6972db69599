//go:build unix

package flights

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Source is a file that goes in: records in the order of their numbers. Record number i has
// the value that starts with "i,". A share holds every step-th number only.
type Source struct {
	Path   string
	first  int
	step   int
	keys   [][]byte
	values [][]byte
}

// ReadSource reads lines of key, tab, value, numbered from zero.
func ReadSource(path string) (*Source, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Source{Path: path, step: 1}
	for line := range bytes.Lines(data) {
		key, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if n, err := number(value); !ok || err != nil || n != len(s.keys) {
			return nil, fmt.Errorf("%s: line %d is not key, tab, number: %q", path, len(s.keys)+1, line)
		}
		s.keys = append(s.keys, key)
		s.values = append(s.values, value)
	}
	return s, nil
}

// Share writes the first, first+step, first+2*step… records to path and returns them.
func (s *Source) Share(path string, first, step int) (*Source, error) {
	share := &Source{Path: path, first: first, step: step}
	var text bytes.Buffer
	for i := first; i < s.Len(); i += step {
		share.keys = append(share.keys, s.keys[i])
		share.values = append(share.values, s.values[i])
		fmt.Fprintf(&text, "%s\t%s\n", s.keys[i], s.values[i])
	}
	return share, os.WriteFile(path, text.Bytes(), 0o644)
}

// index is the place of record number n in the source, or false when it is none of it.
func (s *Source) index(n int) (int, bool) {
	i := (n - s.first) / s.step
	return i, n >= s.first && (n-s.first)%s.step == 0 && i < s.Len()
}

// Len is the count of records.
func (s *Source) Len() int { return len(s.keys) }

// number reads the record number that a value starts with.
func number(value []byte) (int, error) {
	digits, _, ok := bytes.Cut(value, []byte(","))
	if !ok {
		return 0, fmt.Errorf("value %q has no number", value)
	}
	return strconv.Atoi(string(digits))
}
