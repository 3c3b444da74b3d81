package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// VerifyLedger checks the chain of a ledger, and that the ledger holds the last entry that each run saw whose
// directory is in dirs or directly below one of them. It prints what it finds.
func VerifyLedger(ctx context.Context, w io.Writer, l *ledger.Ledger, dirs []string) error {
	n, err := l.Verify(ctx)
	if err != nil {
		return err
	}
	head, err := l.Head(ctx)
	if err != nil {
		return err
	}
	runs, err := below(dirs)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s entries, the chain holds; head %d %s\n", l.Where(), chart.Integer(n), head.Seq, head.Hash)
	var lacks []string
	for _, dir := range runs {
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			return &InputError{Err: err}
		}
		if info.LedgerHead == "" {
			fmt.Fprintf(w, "%s: keeps no entry of a ledger\n", dir)
			continue
		}
		h, err := headOf(info.LedgerHead)
		if err != nil {
			return inputError("", "%s: %s: %v", dir, runlog.InfoFile, err)
		}
		err = l.Contains(ctx, h)
		var broken *ledger.ChainError
		switch {
		case err == nil:
			fmt.Fprintf(w, "%s: holds: entry %d\n", dir, h.Seq)
		case errors.As(err, &broken):
			lacks = append(lacks, dir)
			fmt.Fprintf(w, "%s: DOES NOT HOLD: it saw entry %d of %s, which is not in this ledger\n", dir, h.Seq, info.Ledger)
		default:
			return err
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%s does not hold what these runs saw: %s", l.Where(), strings.Join(lacks, ", "))
	}
	return nil
}

// headOf reads ledger_head of a run.
func headOf(text string) (h ledger.Head, err error) {
	if _, err := fmt.Sscanf(text, "%d %s", &h.Seq, &h.Hash); err != nil {
		return h, fmt.Errorf("ledger_head: found %q; it is the number of an entry and its hash", text)
	}
	return h, nil
}

// below lists the run directories among dirs and directly below them. It is an error if a dir has none.
func below(dirs []string) ([]string, error) {
	var runs []string
	holds := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, runlog.InfoFile))
		return err == nil
	}
	for _, dir := range dirs {
		known := len(runs)
		if holds(dir) {
			runs = append(runs, dir)
		}
		below, err := os.ReadDir(dir)
		if err != nil {
			return nil, &InputError{Err: err}
		}
		for _, f := range below {
			if run := filepath.Join(dir, f.Name()); holds(run) {
				runs = append(runs, run)
			}
		}
		if len(runs) == known {
			return nil, inputError("", "%s: found no run directory; a run directory holds %s", dir, runlog.InfoFile)
		}
	}
	return runs, nil
}
