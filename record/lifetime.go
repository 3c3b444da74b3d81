package record

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
)

// LifetimeOf is what a ledger holds of a dataset, and what is left of its budget for runs of that cost.
func LifetimeOf(h *ledger.History, each privacy.Budget) *Lifetime {
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
	l.lasts(ledger.Caps{Epsilon: each.Epsilon, Delta: each.Delta})
	return l
}

// AllRuns is how many runs there were, those that are not listed among them.
func (l *Lifetime) AllRuns() int { return l.EarlierRuns + len(l.Runs) }

// AllUnprotected is likewise the number of accesses without protection.
func (l *Lifetime) AllUnprotected() int { return l.EarlierUnprotected + len(l.Unprotected) }

// lasts says how long the budget lasts for runs of that cost.
func (l *Lifetime) lasts(each ledger.Caps) {
	switch {
	case l.Total == nil:
		return
	case l.Budget == nil:
		l.Lasts = "No lifetime budget is set: later runs are recorded and not refused, and each adds to the total."
		return
	case l.Currency != ledger.InCaps:
		l.Lasts = fmt.Sprintf("The ledger refuses runs beyond the lifetime budget, ε = %s and δ = %s. What is left depends on what the runs released, so it is not stated.",
			exact(l.Budget.Epsilon), exact(l.Budget.Delta))
		return
	}
	l.Left = &ledger.Caps{Epsilon: max(0, l.Budget.Epsilon-l.Total.Epsilon), Delta: max(0, l.Budget.Delta-l.Total.Delta)}
	times := func(left, each float64) float64 {
		if each == 0 {
			return math.Inf(1)
		}
		return math.Floor(left / each * (1 + 1e-9)) // a total of decimals is rounded up
	}
	byEpsilon, byDelta := times(l.Left.Epsilon, each.Epsilon), times(l.Left.Delta, each.Delta)
	l.More = new(int(min(byEpsilon, byDelta, 1e9)))
	why := ""
	if byDelta < byEpsilon {
		why = ", as δ is the scarcer"
	}
	of := fmt.Sprintf("Of the lifetime budget, ε = %s and δ = %s, there was", exact(l.Budget.Epsilon),
		exact(l.Budget.Delta))
	left := fmt.Sprintf("ε = %s and δ = %s left at entry %d of the ledger", downward(l.Left.Epsilon),
		downward(l.Left.Delta), l.Head.Seq)
	switch *l.More {
	case 0:
		l.Lasts = fmt.Sprintf("%s %s, not enough for another run like this one%s: the ledger refuses it.", of, left, why)
	case 1:
		l.Lasts = fmt.Sprintf("%s %s, enough for one more run like this one%s.", of, left, why)
	default:
		l.Lasts = fmt.Sprintf("%s %s, enough for %s more runs like this one%s.", of, left, integer(*l.More), why)
	}
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
