package record

import (
	"fmt"

	"github.com/sottodp/sotto/ledger"
)

// LifetimeOf is what a ledger holds of a dataset.
func LifetimeOf(h *ledger.History) *Lifetime {
	l := &Lifetime{Head: Head(h.Head), Currency: h.Facts.Currency, Total: h.Total, Why: h.Why, Budget: h.Facts.Budget,
		Since: day(h.Facts.Created), Runs: []LedgerRun{}, Unprotected: []Access{}, Sharing: h.Facts.Sharing,
		EarlierRuns: h.RunsBefore, EarlierUnprotected: h.UnprotectedBefore,
		Words: lifetimeWords(h)}
	for _, run := range h.Runs {
		l.Runs = append(l.Runs, LedgerRun{run.ID, day(run.Reserved), run.Caps.Epsilon, run.Caps.Delta, run.Shares})
	}
	for i, a := range h.Unprotected {
		l.Unprotected = append(l.Unprotected, Access{day(a.Since), a.Run, a.Why, i < h.Earlier})
	}
	for _, restored := range h.Facts.Restored {
		l.Restored = append(l.Restored, restored.Words())
	}
	return l
}

// lifetimeWords says what a dataset's whole life costs, by a ledger up to an entry.
func lifetimeWords(h *ledger.History) string {
	caps := func(c ledger.Caps) string {
		return fmt.Sprintf("ε = %s and δ = %s", exact(c.Epsilon), exact(c.Delta))
	}
	words := ""
	switch budget := h.Facts.Budget; {
	case h.Total == nil:
		words = "There is no lifetime guarantee: " + h.Why + "."
	case h.Facts.Currency == ledger.InCaps:
		words = fmt.Sprintf("All runs on this dataset up to entry %d of the ledger are together (ε, δ)-differentially private for each %s, with %s: their own ε and δ, added up.", h.Head.Seq, h.Facts.Unit, caps(*h.Total))
		switch {
		case budget == nil:
			words += " No lifetime budget limits later runs."
		case h.Total.Epsilon > budget.Epsilon || h.Total.Delta > budget.Delta:
			words += fmt.Sprintf(" That is more than the lifetime budget, %s, which was lowered later; no more runs are allowed.", caps(*budget))
		default:
			words += fmt.Sprintf(" Later runs can bring this to %s, the lifetime budget.", caps(*budget))
		}
	default:
		words = fmt.Sprintf("All runs on this dataset, later ones within this budget included, are together (ε, δ)-differentially private for each %s, with %s: the largest lifetime budget that was set up to entry %d of the ledger, counted in %s.", h.Facts.Unit, caps(*h.Total), h.Head.Seq, h.Facts.Currency)
	}
	return words + h.Facts.Sharing.Words(h.Total == nil, caps) +
		fmt.Sprintf(" Accesses before %s are not recorded there.", day(h.Facts.Created))
}
