package ledger

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Where owners share the noise of runs, statement, list, entries and history name the fewest colluders, and add up what the runs cost against all
// other owners: 2.5 and 3 of two such runs, and the whole 1 of one that shares nothing. Without what the plan assumes the ledger reserves nothing.
func TestSharing(t *testing.T) {
	for _, currency := range []string{InCaps, InGDP} {
		l, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := l.SetBudget(t.Context(), "d", "record", currency, privacy.Budget{Epsilon: 9, Delta: 1e-4, Adjacency: privacy.AddRemove}); err != nil {
			t.Fatal(err)
		}
		reserve := func(run string, colluders int, alone *float64, known bool) error {
			plan := privacy.Event(privacy.Repeated{Count: 10, Of: privacy.Gaussian{Sigma: 40}})
			r := Reservation{Dataset: "d", Unit: "record", Adjacency: privacy.AddRemove, Run: run, Epsilon: 1, Delta: 1e-6, Plan: plan}
			if colluders >= 0 {
				r.Plan = privacy.InShares(plan, 10, colluders)
				if known {
					r.Shares = &account.Shares{Sharing: privacy.SharingOf(r.Plan), Alone: alone}
				}
			}
			_, err := l.Reserve(t.Context(), r)
			return err
		}
		state := func() (Dataset, *History) {
			d, err := l.Dataset(t.Context(), "d")
			if err != nil {
				t.Fatal(err)
			}
			h, err := l.History(t.Context(), "d", nil)
			if err != nil {
				t.Fatal(err)
			}
			return d, h
		}
		if err := reserve("plain", -1, nil, false); err != nil {
			t.Fatal(err)
		}
		if d, h := state(); d.Sharing != nil || h.Facts.Sharing != nil || strings.Contains(d.Statement, "owners") {
			t.Errorf("%s: nobody shares noise: %+v", currency, d)
		}
		if err := reserve("blind", 3, nil, false); err == nil || !strings.Contains(err.Error(), "Reservation.Shares is required") {
			t.Errorf("%s: a plan of shares without what it assumes: %v", currency, err)
		}
		for i, alone := range []float64{2.5, 3} {
			if err := reserve(fmt.Sprint("sum", i), 4-i, &alone, true); err != nil {
				t.Fatal(err)
			}
		}
		d, h := state()
		for _, s := range []*Sharing{d.Sharing, h.Facts.Sharing} {
			if s == nil || s.Runs != 2 || s.Colluders != 3 || s.Alone == nil || s.Alone.Epsilon != 6.5 || math.Abs(s.Alone.Delta-3e-6) > 1e-18 {
				t.Fatalf("%s: found %+v", currency, s)
			}
		}
		const words = " Of these runs, 2 share their noise among owners of a network: every ε and δ said here holds against the hub and any 3 other owners, while masks hold." +
			" Against all other owners together, or if masks were broken, all runs so far are together private with (ε 6.5, δ 0.000003), which no budget limits."
		if !strings.HasSuffix(d.Statement, words) {
			t.Errorf("%s: found %q", currency, d.Statement)
		}
		entries, err := l.Entries(t.Context(), "d")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := l.WriteDatasets(&out, []Dataset{d}); err != nil {
			t.Fatal(err)
		}
		if err := d.Write(&out, entries); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ε against the hub and any 3 other owners: see its statement", "against the hub and any 4 other owners, while masks hold; against all other owners together, or if masks were broken ε is 2.5"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: the ledger does not show %q:\n%s", currency, want, out.String())
			}
		}
		// So do a forecast of more such runs, and what is said when one is settled by hand.
		known, err := l.Run(t.Context(), "sum0")
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if err := d.WriteForecasts(&out, Reservation{Epsilon: 1, Delta: 1e-6, Shares: known.Shares}, nil); err != nil {
			t.Fatal(err)
		}
		const four = ", against the hub and any 4 other owners, while masks hold; against all other owners together, or if masks were broken ε is 2.5"
		if want := "A run like this one has the budget (ε 1, δ 0.000001)" + four + "."; !strings.Contains(out.String(), want) {
			t.Errorf("%s: the forecast does not say %q:\n%s", currency, want, out.String())
		}
		if currency == InCaps && !strings.HasSuffix(d.Settled(known), "1 of ε and 0.000001 of δ stay spent"+four) {
			t.Errorf("settled: %q", d.Settled(known))
		}
		if n, err := l.Verify(t.Context()); err != nil || n != len(entries) {
			t.Errorf("%s: %d entries hold, %v", currency, n, err)
		}
		if err := reserve("more", 3, nil, true); err != nil {
			t.Fatal(err)
		}
		if d, _ = state(); d.Sharing.Alone != nil || !strings.HasSuffix(d.Statement, "no finite ε is proven.") {
			t.Errorf("%s: nothing is proven alone: %+v", currency, d)
		}
	}
}
