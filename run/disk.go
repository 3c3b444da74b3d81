package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// A disk is where run directories and ledgers are.
type disk struct {
	runlog.Disk
	ledgers ledger.Disk
}

var machine = disk{runlog.Disk{FS: vfs.OS{}}, ledger.Disk{FS: vfs.OS{}}}

const lockFile = ".lock"

// LockDir keeps a second process out of a run directory. The lock goes with the process, also when it is killed.
// Where the system has no such locks, the ledger alone does it: the one-time token of a run (R7) lets one process
// at a time publish.
func LockDir(dir string) (unlock func(), err error) { return machine.lockDir(dir) }

func (d *disk) lockDir(dir string) (unlock func(), err error) {
	for range 10 { // Abandoned has the lock for a moment
		if unlock, err = readfile.Lock(d.FS, filepath.Join(dir, lockFile), 0o600, false); err != vfs.ErrHeld {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return func() {}, nil
	case err == vfs.ErrHeld:
		return nil, fmt.Errorf("%s: another process is at work on this run", dir)
	}
	return unlock, err
}

// openLedger and findLedger are OpenLedger and FindLedger on the disk.
func (d *disk) openLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return reachLedger(ctx, where, d.ledgers.Open)
}

func (d *disk) findLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return reachLedger(ctx, where, d.ledgers.Find)
}
