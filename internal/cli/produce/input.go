package produce

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/cli/record"
)

// maxRecordBytes bounds one record of the input, in its written form.
const maxRecordBytes = 256 << 20

// Input says where records come from and how they are written there.
type Input struct {
	Files        []string // none, or "-": the input stream
	Format       string   // lines, json, hex, base64, file
	Delimiter    string   // between records, with \ escapes; "" is a newline
	KeyDelimiter string   // between key and value within a record, with \ escapes
	Key          *string  // the key of every record
	Value        *string  // send this instead of reading
	Null         *string  // a key or value that is exactly this is null
	Headers      []string // k=v, added to every record
	Count        int64    // stop after so many records; 0 is all there are
}

func (in Input) fromStdin() bool {
	return in.Value == nil && (len(in.Files) == 0 || in.Files[0] == "-")
}

// source yields records one by one.
type source struct {
	in        Input
	delimiter []byte
	keyMark   []byte
	headers   []kgo.RecordHeader

	files  []string // not yet opened
	stdin  io.Reader
	name   string // of the open one
	file   *os.File
	reader *bufio.Reader
	number int   // of the record within the open one, from 1
	given  int64 // records so far
}

// open checks the options and prepares reading. Stdin is what "-" stands for.
func (in Input) open(stdin io.Reader) (*source, error) {
	s := &source{in: in, stdin: stdin, files: in.Files}
	var err error
	if s.delimiter, err = record.Unescape(in.Delimiter); err != nil {
		return nil, cli.Usagef("--delimiter: %v", err)
	}
	if len(s.delimiter) == 0 {
		s.delimiter = []byte("\n")
	}
	if s.keyMark, err = record.Unescape(in.KeyDelimiter); err != nil {
		return nil, cli.Usagef("--key-delimiter: %v", err)
	}
	for _, pair := range in.Headers {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return nil, cli.Usagef("--header %q is not name=value", pair)
		}
		s.headers = append(s.headers, kgo.RecordHeader{Key: k, Value: []byte(v)})
	}
	switch {
	case !slices.Contains([]string{"lines", "json", "hex", "base64", "file"}, in.Format):
		return nil, cli.Usagef("--format is %q: it must be lines, json, hex, base64 or file", in.Format)
	case in.Key != nil && in.KeyDelimiter != "":
		return nil, cli.Usagef("--key and --key-delimiter exclude each other")
	case in.KeyDelimiter != "" && (in.Format == "json" || in.Format == "file"):
		return nil, cli.Usagef("--key-delimiter does not go with --format %s", in.Format)
	case in.Value != nil && len(in.Files) > 0:
		return nil, cli.Usagef("--value and a file exclude each other")
	case in.Count < 0:
		return nil, cli.Usagef("--count is %d: it must be 0 (all) or more", in.Count)
	}
	if len(s.files) == 0 {
		s.files = []string{"-"}
	}
	for _, f := range s.files { // a missing file is told before anything is sent
		if in.Value == nil && f != "-" {
			if _, err := os.Stat(f); err != nil {
				return nil, cli.Usagef("%v", err)
			}
		}
	}
	return s, nil
}

func (s *source) close() {
	if s.file != nil {
		_ = s.file.Close() // it was only read
	}
}

// next gives the next record, or io.EOF.
func (s *source) next() (*kgo.Record, error) {
	if s.in.Count > 0 && s.given >= s.in.Count {
		return nil, io.EOF
	}
	var rec *kgo.Record
	var err error
	if s.in.Value != nil {
		if s.in.Count == 0 && s.given > 0 {
			return nil, io.EOF
		}
		rec, err = s.parse([]byte(*s.in.Value))
	} else {
		rec, err = s.read()
	}
	if err != nil {
		return nil, err
	}
	s.given++
	rec.Headers = append(rec.Headers, s.headers...)
	return rec, nil
}

// read takes the next piece of the input and parses it.
func (s *source) read() (*kgo.Record, error) {
	for {
		if s.reader == nil {
			if err := s.openNext(); err != nil {
				return nil, err
			}
		}
		piece, err := s.piece()
		if err == io.EOF {
			s.close()
			s.reader, s.file = nil, nil
			continue
		}
		if err == nil && s.in.Format == "json" && len(bytes.TrimSpace(piece)) == 0 {
			continue // a blank line between JSON objects
		}
		var rec *kgo.Record
		if err == nil {
			rec, err = s.parse(piece)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, record %d: %w", s.name, s.number, err)
		}
		return rec, nil
	}
}

func (s *source) openNext() error {
	if len(s.files) == 0 {
		return io.EOF
	}
	s.name, s.files, s.number = s.files[0], s.files[1:], 0
	if s.name == "-" {
		s.name, s.reader = "standard input", bufio.NewReaderSize(s.stdin, 256<<10)
		return nil
	}
	f, err := os.Open(s.name)
	if err != nil {
		return err
	}
	s.file, s.reader = f, bufio.NewReaderSize(f, 256<<10)
	return nil
}

// piece reads up to the next delimiter, or the whole file. The bytes are the
// caller's.
func (s *source) piece() ([]byte, error) {
	s.number++
	if s.in.Format == "file" {
		if s.number > 1 {
			return nil, io.EOF
		}
		b, err := io.ReadAll(io.LimitReader(s.reader, maxRecordBytes+1))
		if err == nil && len(b) > maxRecordBytes {
			err = errTooLong
		}
		return b, err
	}
	last := s.delimiter[len(s.delimiter)-1]
	var piece []byte
	for {
		part, err := s.reader.ReadSlice(last)
		piece = append(piece, part...)
		switch {
		case len(piece) > maxRecordBytes:
			return nil, errTooLong
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(piece) > 0:
			return piece, nil
		case err != nil:
			return nil, err
		case bytes.HasSuffix(piece, s.delimiter):
			return piece[:len(piece)-len(s.delimiter)], nil
		}
	}
}

var errTooLong = errors.New("longer than 256 MiB; is --delimiter right?")

// parse turns one piece of input into a record.
func (s *source) parse(piece []byte) (*kgo.Record, error) {
	if s.in.Format == "json" {
		rec, err := record.FromJSON(piece)
		if err == nil && s.in.Key != nil {
			rec.Key = []byte(*s.in.Key)
		}
		return rec, err
	}
	rec := &kgo.Record{Partition: -1, Value: piece}
	if len(s.keyMark) > 0 {
		key, value, ok := bytes.Cut(piece, s.keyMark)
		if !ok {
			return nil, fmt.Errorf("there is no %q to part the key from the value", s.keyMark)
		}
		rec.Key, rec.Value = key, value
	} else if s.in.Key != nil {
		rec.Key = []byte(*s.in.Key)
	}
	if s.isNull(rec.Key) && len(s.keyMark) > 0 {
		rec.Key = nil
	}
	if s.isNull(rec.Value) {
		rec.Value = nil
		return rec, s.decode(&rec.Key, len(s.keyMark) > 0)
	}
	if err := s.decode(&rec.Key, len(s.keyMark) > 0); err != nil {
		return nil, err
	}
	if err := s.decode(&rec.Value, true); err != nil {
		return nil, err
	}
	return rec, nil
}

func (s *source) isNull(b []byte) bool { return s.in.Null != nil && string(b) == *s.in.Null }

// decode replaces what was read in hex or base64 by the bytes it stands for.
func (s *source) decode(b *[]byte, written bool) error {
	if *b == nil || !written {
		return nil
	}
	var err error
	switch s.in.Format {
	case "hex":
		out := make([]byte, hex.DecodedLen(len(*b)))
		_, err = hex.Decode(out, *b)
		*b = out
	case "base64":
		out := make([]byte, base64.StdEncoding.DecodedLen(len(*b)))
		var n int
		n, err = base64.StdEncoding.Decode(out, *b)
		*b = out[:n]
	}
	return err
}
