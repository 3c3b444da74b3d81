package record

import (
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
)

// A lifetime says for how many more runs like the one at hand its budget lasts, by ε or by δ, and nothing where a filter counts.
func TestLasts(t *testing.T) {
	for _, c := range []struct {
		currency      string
		total, budget *ledger.Caps
		each          privacy.Budget
		more          int // -1: none is stated
		words         string
	}{
		{ledger.InCaps, &ledger.Caps{Epsilon: 1, Delta: 1e-5}, &ledger.Caps{Epsilon: 5, Delta: 1e-4}, privacy.Budget{Epsilon: 1, Delta: 1e-5}, 4, "enough for 4 more runs"},
		{ledger.InCaps, &ledger.Caps{Epsilon: 1, Delta: 9e-5}, &ledger.Caps{Epsilon: 5, Delta: 1e-4}, privacy.Budget{Epsilon: 1, Delta: 1e-5}, 1, "enough for one more run like this one, as δ is the scarcer"},
		{ledger.InCaps, &ledger.Caps{Epsilon: 0.1 + 0.2}, &ledger.Caps{Epsilon: 1}, privacy.Budget{Epsilon: 0.1}, 7, "ε = 0.7 and δ = 0 left"},
		{ledger.InCaps, &ledger.Caps{Epsilon: 4.5}, &ledger.Caps{Epsilon: 5}, privacy.Budget{Epsilon: 1}, 0, "not enough for another run like this one: the ledger refuses it"},
		{ledger.InCaps, &ledger.Caps{Epsilon: 6}, &ledger.Caps{Epsilon: 5}, privacy.Budget{Epsilon: 1}, 0, "ε = 0 and δ = 0 left at entry 0 of the ledger, not enough"},
		{ledger.InCaps, &ledger.Caps{Epsilon: 6}, nil, privacy.Budget{Epsilon: 1}, -1, "No lifetime budget is set"},
		{"zcdp", &ledger.Caps{Epsilon: 5}, &ledger.Caps{Epsilon: 5}, privacy.Budget{Epsilon: 1}, -1, "so it is not stated"},
		{ledger.InCaps, nil, &ledger.Caps{Epsilon: 5}, privacy.Budget{Epsilon: 1}, -1, ""},
	} {
		l := LifetimeOf(&ledger.History{Facts: ledger.Dataset{Currency: c.currency, Budget: c.budget}, Total: c.total, Why: "rows were accessed"}, c.each)
		more := -1
		if l.More != nil {
			more = *l.More
		}
		if more != c.more || !strings.Contains(l.Lasts, c.words) || c.words == "" && l.Lasts != "" {
			t.Errorf("%+v: %d more, %q", c, more, l.Lasts)
		}
	}
}
