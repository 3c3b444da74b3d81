package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

func reportCommand() *cobra.Command {
	var where string
	var asJSON bool
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Verify a run and rebuild its report from its directory",
		Long: `Report verifies a finished run, as sotto verify does without a ledger, and rebuilds its report. What does not
hold is in red at the top of the page, and the exit code is 1. The new report is report.new.html: the one that
the run wrote stays, since the ledger holds its hash. The report says what the dataset's whole life costs if the ledger is at hand.

--json prints the record of the run instead, and writes no file: all that the page shows, as one JSON object of numbers and
words. docs/record.schema.json describes it.`,
		Example: `  sotto report runs/20261120-154800-0a1b2c3d
  sotto report runs/20261120-154800-0a1b2c3d --json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := recordOf(c.Context(), args[0], where)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(c.OutOrStdout(), r)
			} else {
				err = rebuild(c.OutOrStdout(), args[0], r)
			}
			if err != nil {
				return err
			}
			err = record.NewVerdict(r.Findings, false).Err(args[0])
			if err != nil && !asJSON {
				err = fmt.Errorf("%w; the report says so at its top", err)
			}
			return err
		},
	}
	c.Flags().StringVar(&where, "ledger", "",
		"the ledger of the run (default: the one in which it was reserved, if it is at hand)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the record of the run as one JSON object, and write no file")
	return c
}

// rebuild writes the report of a record and prints its path.
func rebuild(w io.Writer, dir string, r *record.Record) error {
	path, err := page.Rebuild(dir, r)
	var place *os.LinkError // of the rename to the final name
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.As(err, &place):
		return usageError("%v", err)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(w, path)
	return err
}

// recordOf is the record of a run, with what a verification of a finished one finds not to hold.
func recordOf(ctx context.Context, dir, where string) (*record.Record, error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		return nil, usageError("%v", err)
	}
	broken, how := []record.Finding{}, "not verified, since the run is not finished"
	if info.Status == runlog.Finished && info.Network == "" {
		how = "verified against its log when this page was made"
		found, err := run.Verify(ctx, dir, nil)
		switch {
		case errors.Is(err, runlog.ErrOtherBuild):
			return nil, err // this build cannot verify it
		case err != nil: // the files contradict each other
			broken = append(broken, record.Finding{What: "the record", Detail: err.Error()})
		}
		for _, f := range found {
			if !f.Holds {
				broken = append(broken, f)
			}
		}
	}
	life, err := lifeOf(ctx, info, where)
	if err != nil {
		return nil, err
	}
	r, err := record.Read(dir, life)
	if errors.Is(err, record.ErrPart) {
		return nil, usageError("%s: %v", dir, err)
	}
	if err != nil {
		return nil, err
	}
	r.Findings, r.Verified = broken, how
	return r, nil
}

// lifeOf is what a ledger holds of a run's dataset; nil for a lab run, and where no ledger was named and the run's is
// not at hand.
func lifeOf(ctx context.Context, info *runlog.Info, where string) (*ledger.History, error) {
	if info.Lab || info.Network != "" || where == "" && info.Ledger == "" {
		return nil, nil
	}
	l, err := run.ViewLedger(ctx, cmp.Or(where, info.Ledger))
	if err != nil {
		if where == "" {
			return nil, nil // the report says what the directory gives
		}
		return nil, err
	}
	defer l.Close()
	h, err := l.History(ctx, info.Dataset, nil)
	switch {
	case errors.Is(err, ledger.ErrUnknownDataset) && where == "":
		return nil, nil
	case errors.Is(err, ledger.ErrUnknownDataset):
		return nil, usageError("--ledger: %v", err)
	}
	return h, err
}
