package ledger

import (
	"errors"
	"fmt"

	"github.com/sottodp/sotto/privacy"
)

// Errors that callers tell apart, wrapped in a text that names the run or dataset. A refused
// reservation wraps [privacy.ErrExhausted].
var (
	// ErrStaleToken: the token was swapped for another one, or never was this run's.
	ErrStaleToken = errors.New("this is not the run's current token: a copy of the directory, or a second resume, needs a new reservation")
	// ErrBehind: batches of the run were charged that the directory does not know.
	ErrBehind = errors.New("the run went on after this copy of its directory was made: what it released since cannot be drawn again; resume its own directory, or reserve a new run")
	// ErrOtherCharges: the directory holds other charged events than the ledger recorded.
	ErrOtherCharges = errors.New("the charged events in its directory are not those that the ledger recorded, so it cannot go on; put back the directory's own events.jsonl, or settle the run: its whole plan then stays spent")
	// ErrSettled: the run has ended; it can neither resume nor settle again.
	ErrSettled = errors.New("the run is settled")
	// ErrRunExists: the run has reserved already; a run reserves once.
	ErrRunExists = errors.New("a run of this name has reserved already")
	// ErrUnknownRun: no run of this name has reserved.
	ErrUnknownRun = errors.New("no such run in this ledger")
	// ErrUnknownDataset: no dataset of this name has entered.
	ErrUnknownDataset = errors.New("no such dataset in this ledger")
	// ErrNoBudget: the dataset has no lifetime budget.
	ErrNoBudget = errors.New("it has no lifetime budget, so runs are recorded and none is refused; `sotto ledger budget` sets one")
	// ErrNotLedger: the file or database is not a ledger. It stays unchanged.
	ErrNotLedger = errors.New("this is not a ledger, and it was not changed; name a ledger, or a file that does not exist yet")
	// ErrGone: the ledger's file was deleted, moved or replaced after it was opened. That file holds what
	// this process reserved or charged.
	ErrGone = errors.New("the ledger's file was deleted, moved or replaced after it was opened; put it back")
	// ErrUncertain: the reservation failed during its commit, so it may exist. The run keeps its
	// directory and token; a resume finds out.
	ErrUncertain = errors.New("it is not known whether the budget was reserved")
)

// errNewer: the ledger holds what a later version wrote.
var errNewer = errors.New("written by a newer version of Sotto")

// A MismatchError says that a run's unit, adjacency or currency differs from its dataset's, which
// was fixed when the dataset entered.
type MismatchError struct {
	Dataset string
	Field   string // "unit", "adjacency" or "currency"
	Fixed   string // what the dataset has
	Found   string // what was asked for
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("dataset %q: found %s %q; its ledger was opened with %q, which cannot change", e.Dataset, e.Field,
		e.Found, e.Fixed)
}

// compare returns the first fact in which two descriptions of a dataset differ. An empty currency
// stands for the dataset's own.
func (d *dataset) compare(found datasetFacts) error {
	for _, f := range []struct{ field, fixed, found string }{
		{"unit", d.facts.Unit, found.Unit},
		{"adjacency", d.facts.Adjacency.String(), found.Adjacency.String()},
		{"currency", d.facts.Currency, found.Currency},
	} {
		if f.fixed != f.found && !(f.field == "currency" && f.found == "") {
			return &MismatchError{d.name, f.field, f.fixed, f.found}
		}
	}
	return nil
}

func (d *dataset) refuse(run string, asked Caps) error {
	return fmt.Errorf("dataset %q: run %q asks for %v; of the lifetime budget of %v, %v is reserved and %v is left, the most that a run may ask for: %w",
		d.name, run, asked, *d.budget, d.spent.caps(), d.spent.left(*d.budget), privacy.ErrExhausted)
}
