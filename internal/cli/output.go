package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Table is text in columns. Columns of numbers are aligned to the right.
type Table struct {
	head  []string
	right []bool
	rows  [][]string
}

// NewTable makes a table with these column heads; a head that begins with '>'
// is a column of numbers.
func NewTable(heads ...string) *Table {
	t := &Table{}
	for _, h := range heads {
		name, number := strings.CutPrefix(h, ">")
		t.head = append(t.head, name)
		t.right = append(t.right, number)
	}
	return t
}

// Row adds a row; each cell is printed as by fmt.Sprint.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// WriteTo prints the table, without blanks at the ends of lines.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	width := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], visibleWidth(cell))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-visibleWidth(cell))
			if t.right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// visibleWidth counts runes, leaving out colour sequences.
func visibleWidth(s string) int {
	n := utf8.RuneCountInString(s)
	for rest := s; ; {
		i := strings.Index(rest, "\x1b[")
		if i < 0 {
			return n
		}
		j := strings.IndexByte(rest[i:], 'm')
		if j < 0 {
			return n
		}
		n -= j + 1
		rest = rest[i+j+1:]
	}
}

// Print shows a result: v as indented JSON under -o json, else what table builds.
func (g *Globals) Print(v any, table func(w io.Writer) error) error {
	if g.JSON() {
		return g.PrintJSON(v)
	}
	return table(g.Out)
}

// PrintJSON prints v as indented JSON.
func (g *Globals) PrintJSON(v any) error {
	enc := json.NewEncoder(g.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// JSONLines encodes each value it is given as one line, for streams.
func JSONLines(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// Note prints a remark for a person on the error stream, so that it never
// mixes with results; it is silent under -o json.
func (g *Globals) Note(format string, args ...any) {
	if !g.JSON() {
		fmt.Fprintf(g.Err, format+"\n", args...)
	}
}

// Colour is how a word stands out on a terminal.
type Colour string

// The colours in use.
const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Bold   Colour = "1"
)

// Paint colours s when results go to a terminal and NO_COLOR is not set
// (https://no-color.org).
func (g *Globals) Paint(c Colour, s string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !Interactive(g.Out) {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}
