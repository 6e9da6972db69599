package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Confirm asks before something that cannot be undone. With yes it does not
// ask; without a terminal to ask on it is a usage error.
func (g *Globals) Confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !Interactive(g.In) || !Interactive(g.Err) {
		return Usagef("%s Add --yes to confirm.", question)
	}
	fmt.Fprintf(g.Err, "%s Type yes to go on: ", question)
	answer := make(chan string, 1)
	go func() { // ends with the process: a read of a terminal cannot be cancelled
		line, _ := bufio.NewReader(g.In).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-answer:
		if a == "yes" || a == "y" {
			return nil
		}
		return fmt.Errorf("not confirmed; nothing was changed")
	}
}
