package config

import (
	"slices"
	"strings"
)

// Option is one row of the table.
type Option struct {
	Name    string // of the flag and of the key in the file
	Env     string // the whole variable name
	Arg     string // what the value is, for the help
	Default string
	Doc     string

	set func(*Config, string) error
	get func(*Config) string
}

// kind reads and writes values of one type.
type kind[T any] struct {
	parse  func(string) (T, error)
	format func(T) string
}

func opt[T any](name, arg, def, doc string, field func(*Config) *T, k kind[T]) Option {
	return Option{
		Name: name, Arg: arg, Default: def, Doc: doc,
		Env: "DAYBOOK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")),
		set: func(c *Config, s string) error {
			v, err := k.parse(s)
			if err != nil {
				return err
			}
			*field(c) = v
			return nil
		},
		get: func(c *Config) string { return k.format(*field(c)) },
	}
}

// env gives the option another variable name, without the DAYBOOK_ prefix.
func (o Option) env(name string) Option {
	o.Env = "DAYBOOK_" + name
	return o
}

// Options lists every option.
func Options() []Option { return slices.Clone(options) }

func lookup(match func(Option) bool) (Option, bool) {
	if i := slices.IndexFunc(options, match); i >= 0 {
		return options[i], true
	}
	return Option{}, false
}

// nearest finds the word that s was probably meant to be, or "".
func nearest(s string, words []string) string {
	norm := func(w string) string { return strings.ToLower(strings.ReplaceAll(w, "_", "-")) }
	best, bestDistance := "", 3
	for _, w := range words {
		if d := distance(norm(s), norm(w)); d < bestDistance && d < len(w) {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between a and b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
