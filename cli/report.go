package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/report"
	"github.com/sottodp/sotto/run/runlog"
)

func reportCommand() *cobra.Command {
	var where string
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Verify a run and rebuild its report from its directory",
		Long: `Report verifies a finished run, as sotto verify does without a ledger, and rebuilds its report. What does not
hold is in red at the top of the page, and the exit code is 1. The new report is report.new.html: the one that
the run wrote stays, since the ledger holds its hash. The report says what the dataset's whole life costs if the ledger is at hand.`,
		Example: "  sotto report runs/20261120-154800-0a1b2c3d",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := runlog.ReadInfo(args[0])
			if err != nil {
				return usageError("%v", err)
			}
			var broken, names []string
			verified := info.Status == runlog.Finished && info.Network == ""
			if verified {
				found, err := run.Verify(c.Context(), args[0], nil)
				switch {
				case errors.Is(err, run.ErrOtherBuild):
					return err // this build cannot verify it
				case err != nil: // the files contradict each other
					broken, names = append(broken, err.Error()), append(names, "the record")
				}
				for _, f := range found {
					if !f.Holds {
						broken, names = append(broken, f.What+": "+f.Detail), append(names, f.What)
					}
				}
			}
			life, err := lifeOf(c.Context(), info, where)
			if err != nil {
				return err
			}
			path, err := report.Rebuild(args[0], verified, broken, life)
			var place *os.LinkError // of the rename to the final name
			switch {
			case errors.Is(err, report.ErrPart):
				return usageError("%s: %v", args[0], report.ErrPart)
			case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.As(err, &place):
				return usageError("%v", err)
			case err != nil:
				return err
			}
			if _, err := fmt.Fprintln(c.OutOrStdout(), path); err != nil {
				return err
			}
			if len(broken) > 0 {
				return fmt.Errorf("%s: does not hold: %s; the report says so at its top", args[0], strings.Join(names, ", "))
			}
			return nil
		},
	}
	c.Flags().StringVar(&where, "ledger", "",
		"the ledger of the run (default: the one in which it was reserved, if it is at hand)")
	return c
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
