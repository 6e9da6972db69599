package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/daybook-mq/daybook/internal/cli"
	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/inspect"
	"github.com/daybook-mq/daybook/internal/storage/vfs"
)

func newLog(g *cli.Globals) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "log",
		Short: "Dump, verify and repair the files of a data directory",
		Long: `Look at a broker's files without the broker. "dump" and "verify" only read and are
safe beside a running broker; "repair" wants it stopped.`,
		Example: "  daybook log verify\n  daybook log dump --data /var/lib/daybook --batches | less\n  daybook log repair --dry-run",
	},
		logDump(g), logVerify(g), logRepair(g))
}

// dataFlag adds the flag that names the directory.
func dataFlag(c *cobra.Command, data *string) {
	c.Flags().StringVar(data, "data", cli.DefaultData(), "the broker's data directory (env DAYBOOK_DATA)")
}

// openData lists the data directory.
func openData(data string) (*inspect.Dir, error) {
	d, err := inspect.Open(vfs.OS{}, filepath.ToSlash(data))
	if errors.Is(err, fs.ErrNotExist) || model.ClassOf(err) == model.ClassNotFound {
		return nil, cli.Hintf(fmt.Errorf("%s is not a data directory of Daybook", data), "name the one that the broker uses: --data DIR")
	}
	return d, err
}

func logDump(g *cli.Globals) *cobra.Command {
	var data string
	var o inspect.DumpOptions
	c := &cobra.Command{
		Use:   "dump [FILE...]",
		Short: "Print what data files hold",
		Long: `Print data files, frames and entries, and on request batches and records. FILE is a
data file's name or id; without one, all are printed. Under -o json each line is
one JSON value; keys and values are base64 there.`,
		Example: "  daybook log dump\n  daybook log dump 1f --batches\n  daybook log dump --partition VHCaRVXgQxaWkuGZxtTQHg-0 --records",
		Args:    takes("[FILE...]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openData(data)
			if err != nil {
				return err
			}
			o.Files = args
			out := bufio.NewWriterSize(g.Out, 64<<10)
			err = d.Dump(cmd.Context(), o, printer(g, out))
			return errors.Join(err, out.Flush())
		},
	}
	dataFlag(c, &data)
	f := c.Flags()
	f.StringVar(&o.Partition, "partition", "", "only this partition: topic id, dash, index")
	f.Uint64Var((*uint64)(&o.FromLSN), "from-lsn", 0, "leave out frames below this LSN")
	f.BoolVar(&o.Frames, "frames", false, "frames only, without their entries")
	f.BoolVar(&o.Batches, "batches", false, "down to record batches")
	f.BoolVar(&o.Records, "records", false, "down to records")
	return c
}

// printer prints rows as they come.
func printer(g *cli.Globals, w io.Writer) func(inspect.Row) error {
	if g.JSON() {
		enc := cli.JSONLines(w)
		return func(r inspect.Row) error { return enc.Encode(r) }
	}
	return func(r inspect.Row) error {
		_, err := fmt.Fprintln(w, r.Text())
		return err
	}
}

func logVerify(g *cli.Globals) *cobra.Command {
	var data string
	c := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Check every file of a data directory",
		Long: `Read all data files, indexes and checkpoints and check every checksum, sequence and
offset. Each damage is named with its file, position, frames and partitions, and
what to do. Safe beside a running broker. Exits with 1 when there is damage.`,
		Example: "  daybook log verify\n  daybook log verify /var/lib/daybook -o json",
		Args:    takes("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				data = args[0]
			}
			d, err := openData(data)
			if err != nil {
				return err
			}
			r, err := inspect.Verify(cmd.Context(), d)
			if err != nil {
				return err
			}
			if err := g.Print(r, func(w io.Writer) error { return r.WriteText(w) }); err != nil {
				return err
			}
			if r.Damaged() {
				return cli.ErrSilent
			}
			return nil
		},
	}
	dataFlag(c, &data)
	return c
}

func logRepair(g *cli.Globals) *cobra.Command {
	var data string
	var dryRun, yes bool
	c := &cobra.Command{
		Use:   "repair [DIR]",
		Short: "Mend what verify finds damaged",
		Long: `Mend a data directory whose broker is stopped. Damaged data files are written anew:
what can be read is kept, and readers pass over the offsets that are lost. Indexes
are set aside and built again by the next start. Nothing is deleted: each file
that is replaced is kept under another name. Make a copy of the directory first.`,
		Example: "  daybook log repair --dry-run\n  daybook log repair /var/lib/daybook --yes",
		Args:    takes("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				data = args[0]
			}
			d, err := openData(data)
			if err != nil {
				return err
			}
			plan, err := inspect.Repair(cmd.Context(), d, true)
			if err != nil {
				return err
			}
			if len(plan) == 0 || dryRun {
				return printActions(g, plan, "would mend")
			}
			for i := range plan {
				g.Note("%s", plan[i].Text())
			}
			if err := g.Confirm(cmd.Context(), yes, fmt.Sprintf("Mend %d files in %s?", len(plan), data)); err != nil {
				return err
			}
			done, err := inspect.Repair(cmd.Context(), d, false)
			if errors.Is(err, vfs.ErrLocked) {
				return cli.Hintf(fmt.Errorf("%s is in use by a running broker", data), "stop the broker first, then repair")
			}
			return errors.Join(err, printActions(g, done, "mended"))
		},
	}
	dataFlag(c, &data)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// printActions prints what repair did or would do.
func printActions(g *cli.Globals, actions []inspect.Action, verb string) error {
	if actions == nil {
		actions = []inspect.Action{}
	}
	return g.Print(actions, func(w io.Writer) error {
		if len(actions) == 0 {
			_, err := fmt.Fprintln(w, "nothing to mend")
			return err
		}
		for i := range actions {
			if _, err := fmt.Fprintf(w, "%s  %s\n", verb, actions[i].Text()); err != nil {
				return err
			}
		}
		return nil
	})
}
