package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// OpenLedger opens a ledger and creates it if it does not exist. A location that cannot hold a ledger is
// an *InputError.
func OpenLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return machine.openLedger(ctx, where)
}

// ErrNoLedger says that the user has no ledger yet.
var ErrNoLedger = errors.New("there is no ledger yet; the first run makes it")

// FindLedger opens an existing ledger. A missing file is an *InputError, and nothing is created. "" is the
// user's own; if that does not exist, the error wraps ErrNoLedger.
func FindLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return machine.findLedger(ctx, where)
}

// ViewLedger is FindLedger for commands that only read; it writes nothing.
func ViewLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return reachLedger(ctx, where, ledger.View)
}

// OwnLedger is ViewLedger for the ledger that a finished run or an evaluation itself names. Where that is not at hand,
// or is not the one that the run saw, there is none, and why says so.
func OwnLedger(ctx context.Context, dir string) (l *ledger.Ledger, why string, err error) {
	var id, place, head string
	switch {
	case IsEvaluation(dir):
		e, err := runlog.ReadEvaluation(dir)
		if err != nil {
			return nil, "", &InputError{Err: err}
		}
		id, place = e.ID, e.Ledger
	case IsDescription(dir):
		e, err := runlog.ReadDescription(dir)
		if err != nil {
			return nil, "", &InputError{Err: err}
		}
		id, place = e.ID, e.Ledger
	default:
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			return nil, "", &InputError{Err: err}
		}
		if info.Lab {
			return nil, "", nil // nothing is reserved for it
		}
		id, place, head = info.ID, info.Ledger, info.LedgerHead
	}
	if place == "" {
		return nil, "the directory names no ledger", nil
	}
	if l, err = ViewLedger(ctx, place); err != nil {
		if ctx.Err() != nil {
			return nil, "", err
		}
		return nil, fmt.Sprintf("the ledger that the directory names is not at hand (%v)", err), nil
	}
	_, err = l.Run(ctx, id)
	if !errors.Is(err, ledger.ErrUnknownRun) {
		return l, "", err
	}
	// A ledger with the entry that the run saw should know the run. Another machine may have another ledger at the same
	// place.
	if h, err := headOf(head); err == nil && l.Contains(ctx, h) == nil {
		return l, "", nil
	}
	return nil, fmt.Sprintf("%s, which the directory names, knows neither it nor the ledger entry before it, so it may be another machine's", l.Where()), l.Close()
}

func reachLedger(ctx context.Context, where string,
	open func(context.Context, string) (*ledger.Ledger, error)) (*ledger.Ledger, error) {
	l, err := open(ctx, where)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, os.ErrNotExist) && where == "":
		return nil, &InputError{Err: ErrNoLedger}
	case errors.Is(err, os.ErrNotExist) && !strings.Contains(where, "://"):
		return nil, inputError("", "ledger %s: is not there; give one that a run or `sotto ledger budget` has made", where)
	case postgres.IsURL(where) || ctx.Err() != nil:
		return nil, err
	}
	return nil, LedgerError(err)
}

// LedgerError wraps what a person can correct in an *InputError: a location that is no ledger or may not
// be written, an argument that a ledger refuses. Errors of the machine or a server stay as they are.
func LedgerError(err error) error {
	var lite interface{ Code() int }
	var server interface{ SQLState() string }
	var network *net.OpError
	var broken *ledger.ChainError
	switch {
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case 8, 14, 26: // read-only, cannot be opened, is no database
		default:
			return err
		}
	case errors.As(err, &server):
		switch server.SQLState() {
		case "42501", "25006": // may not write, is read-only
		default:
			return err
		}
	case errors.As(err, &network), errors.As(err, &broken), errors.Is(err, context.Canceled):
		return err
	}
	return &InputError{Err: err}
}
