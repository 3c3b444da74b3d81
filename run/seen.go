package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// Below lists the run directories among dirs and directly below them. It is an error if a dir has none.
func Below(dirs []string) ([]string, error) {
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
			return nil, &InputError{"", err}
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

// SeenEntry is the last entry of a ledger that a run saw.
type SeenEntry struct {
	Dir, Ledger string
	Entry       int64 // 0: the run kept none
	Holds       bool  // the ledger has it
}

// Seen says of each run directory whether the ledger holds the last entry that the run saw.
func Seen(ctx context.Context, l *ledger.Ledger, dirs []string) ([]SeenEntry, error) {
	var all []SeenEntry
	for _, dir := range dirs {
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			return nil, &InputError{"", err}
		}
		s := SeenEntry{Dir: dir, Ledger: info.Ledger}
		if info.LedgerHead != "" {
			var h ledger.Head
			if _, err := fmt.Sscanf(info.LedgerHead, "%d %s", &h.Seq, &h.Hash); err != nil {
				return nil, inputError("", "%s: %s: ledger_head: found %q; allowed is the number of an entry and its hash", dir, runlog.InfoFile, info.LedgerHead)
			}
			err := l.Contains(ctx, h)
			var broken *ledger.ChainError
			if err != nil && !errors.As(err, &broken) {
				return nil, err
			}
			s.Entry, s.Holds = h.Seq, err == nil
		}
		all = append(all, s)
	}
	return all, nil
}
