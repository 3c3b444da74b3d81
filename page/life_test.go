package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// The page says what all runs cost together, lists the last runs, and names every access without protection.
func TestLifetime(t *testing.T) {
	at := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	h := &ledger.History{
		Head:        ledger.Head{Seq: 123, Hash: "abcdef"},
		Facts:       ledger.Dataset{Unit: "patient", Currency: ledger.InCaps, Created: at, Budget: &ledger.Caps{Epsilon: 8, Delta: 1e-5}},
		Total:       &ledger.Caps{Epsilon: 6, Delta: 1e-6},
		Unprotected: []ledger.Access{{Since: at, Why: "a lab run"}},
		Earlier:     1,
	}
	for i := range mostRuns + 10 {
		h.Runs = append(h.Runs, ledger.Run{ID: fmt.Sprintf("run%02d", i), Caps: ledger.Caps{Epsilon: 0.1, Delta: 1e-8}, Reserved: at})
	}
	text := func() string {
		r := record.Of(&runlog.Info{ID: "run59"}, nil)
		if h != nil {
			r.Lifetime = record.LifetimeOf(h, privacy.Budget{Epsilon: 1, Delta: 1e-6})
		}
		b, err := Render(r)
		if err != nil {
			t.Fatal(err)
		}
		_, page, _ := strings.Cut(string(b), `<section id="life">`)
		page, _, _ = strings.Cut(page, "</section>")
		return strings.ReplaceAll(page, "&nbsp;", " ")
	}
	page := text()
	for _, want := range []string{
		"All runs on this dataset up to entry 123 of the ledger are together (ε, δ)-differentially private for each patient, with ε = 6 and δ = 0.000001: their own ε and δ, added up. Later runs can bring this to ε = 8 and δ = 0.00001, the lifetime budget. Accesses before 2026-11-24 are not recorded there.",
		"The last runs are listed; 10 came before them.", "<code>run59</code> (this run)", "a lab run (before the dataset entered the ledger", "entry 123 has the hash",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if n := strings.Count(page, "<code>run"); n != mostRuns {
		t.Errorf("%d runs are listed, want %d", n, mostRuns)
	}
	h.Facts.Budget = &ledger.Caps{Epsilon: 5, Delta: 1e-5}
	if page = text(); !strings.Contains(page, "That is more than the lifetime budget, ε = 5 and δ = 0.00001, which was lowered later") {
		t.Errorf("beyond a lowered budget the page says\n%s", page)
	}
	h.Total, h.Why, h.Earlier = nil, "the records were accessed", 0
	if page = text(); !strings.Contains(page, "There is no lifetime guarantee: the records were accessed.") || strings.Contains(page, "before the dataset entered") {
		t.Errorf("without a guarantee the page says\n%s", page)
	}
	h = nil
	if page = text(); page != "" {
		t.Errorf("without a ledger the page says\n%s", page)
	}
}
