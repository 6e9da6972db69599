package cli

import "fmt"

// Finish ends a command that did several things, some of which failed:
// all but the last failure are told now, and the last is the command's own
// error, so that each is told once. A printing error comes before them.
func (g *Globals) Finish(printing error, failures []error) error {
	if printing != nil || len(failures) == 0 {
		return printing
	}
	last := len(failures) - 1
	for _, f := range failures[:last] {
		fmt.Fprintf(g.Err, "daybook: %v\n", f)
	}
	return failures[last]
}
