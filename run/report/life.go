package report

import (
	"fmt"
	"time"

	"github.com/sottodp/sotto/ledger"
)

// A life is what a ledger holds of the dataset, for the page.
type life struct {
	Words    string
	Restored []string
	Runs     []lifeRun
	MoreRuns string // earlier ones that are not listed
	Accesses []fact // days, and what was accessed without protection
	Head     ledger.Head
}

type lifeRun struct {
	ID, Day, Epsilon, Delta string
	Here                    bool
}

// mostRuns bounds the runs on the page: the last ones.
const mostRuns = 50

func (v *view) lifetime(h *ledger.History) {
	if h == nil {
		return
	}
	l := &life{Words: LifetimeWords(h), Head: h.Head}
	runs := h.Runs
	if n := len(runs) - mostRuns; n > 0 {
		l.MoreRuns, runs = integer(n), runs[n:]
	}
	for _, r := range runs {
		l.Runs = append(l.Runs,
			lifeRun{r.ID, day(r.Reserved), exact(r.Caps.Epsilon) + aloneWords(r), exact(r.Caps.Delta), r.ID == v.Info.ID})
	}
	for i, a := range h.Unprotected {
		why := a.Why
		if i < h.Earlier {
			why += " (before the dataset entered the ledger: it ends the guarantee only of a run on the same rows)"
		}
		l.Accesses = append(l.Accesses, fact{day(a.Since), why})
	}
	for _, r := range h.Facts.Restored {
		l.Restored = append(l.Restored, r.Words())
	}
	v.Life = l
}

// aloneWords follow the ε of a run whose noise owners share.
func aloneWords(r ledger.Run) string {
	if r.Shares == nil {
		return ""
	}
	return fmt.Sprintf(" (%s against all other owners)", proven(r.Shares.Alone))
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// LifetimeWords says what a dataset's whole life costs, by a ledger up to an entry.
func LifetimeWords(h *ledger.History) string {
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
