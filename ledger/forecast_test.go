package ledger

import (
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// The ledger admits as many runs as the forecast said and no more, in each currency, after a run of another kind, which holds its
// plan, and one that has settled for half of it.
func TestForecastIsWhatTheLedgerAdmits(t *testing.T) {
	race.Skip(t)
	ctx := t.Context()
	for _, plan := range []privacy.Event{
		privacy.Repeated{Count: 60, Of: privacy.Gaussian{Sigma: 100}},
		privacy.Filtered{Currency: privacy.InZCDP, Epsilon: 0.1, Delta: 1e-7},
	} {
		for _, currency := range Currencies() {
			l := open(t, another(t, ""))
			must(t, l.SetBudget(ctx, "clinic", "record", currency, budget(1, 1e-5)))
			token := reserve(t, l, planned("settled", 60, 100))
			must(t, l.Reach(ctx, "settled", token, 30, batchesOf(30, 100)))
			must(t, l.Settle(ctx, "settled", token, charged(30, 100)))
			reserve(t, l, planned("other", 20, 70))
			r := reservation("clinic", "")
			r.Plan = plan
			all, err := l.Forecast(ctx, r)
			must(t, err)
			var own Forecast
			for _, f := range all {
				if f.Own {
					own = f
				}
			}
			if own.Currency != currency {
				t.Fatalf("%+v", all)
			}
			if own.Why != "" {
				if _, err := l.Reserve(ctx, with(r, "next")); err == nil {
					t.Errorf("%s: %s, but the ledger admits it", currency, own.Why)
				}
				continue
			}
			if own.Runs < 1 || own.Runs > 120 || own.More {
				t.Fatalf("%s: %+v", currency, own)
			}
			for k := range own.Runs {
				reserve(t, l, with(r, "run"+strings.Repeat("x", k)))
			}
			_, err = l.Reserve(ctx, with(r, "more"))
			wantError(t, err, privacy.ErrExhausted)
			if all, err = l.Forecast(ctx, r); err != nil {
				t.Fatal(err)
			}
			for _, f := range all {
				if f.Own && f.Runs != 0 {
					t.Errorf("%s: %+v in a ledger that is full", currency, f)
				}
			}
		}
	}
}

func with(r Reservation, run string) Reservation {
	r.Run = run
	return r
}

// In another currency the forecast is that of a new dataset with what is left by the runs' own ε and δ, which rounds down; what
// has no theorem is said, and what costs next to nothing has no end.
func TestForecastInOtherCurrencies(t *testing.T) {
	ctx := t.Context()
	l := open(t, another(t, ""))
	must(t, l.SetBudget(ctx, "clinic", "record", InCaps, budget(1, 1e-5)))
	for _, run := range []string{"a", "b", "c"} {
		reserve(t, l, planned(run, 40, 100)) // 0.1 and 1e-7 each: 0.7 and 9.7e-6 are left
	}
	r := planned("", 40, 250)
	all, err := l.Forecast(ctx, r)
	must(t, err)
	if len(all) != 4 || all[0] != (Forecast{Currency: InCaps, Own: true, Runs: 7}) {
		t.Fatalf("%+v", all)
	}
	for _, f := range all[1:] {
		fresh := open(t, another(t, ""))
		must(t, fresh.SetBudget(ctx, "clinic", "record", f.Currency, budget(0.7, 9.7e-6)))
		other, err := fresh.Forecast(ctx, r)
		must(t, err)
		for _, own := range other {
			if own.Own && (own.Runs != f.Runs || f.Runs <= 7 || f.Own) {
				t.Errorf("%+v, in a dataset of its own %+v", f, own)
			}
		}
	}
	r.Plan = privacy.Repeated{Count: 10, Of: privacy.PoissonSampled{Rate: 0.01, Of: privacy.Gaussian{Sigma: 10}}}
	all, err = l.Forecast(ctx, r)
	must(t, err)
	if !strings.Contains(all[1].Why, "no theorem for") || all[1].Runs != 0 || all[2].Why == "" || all[3].Why != "" || all[3].Runs < 1 {
		t.Errorf("sampled: %+v", all)
	}
	r.Epsilon, r.Delta, r.Plan = 1e-9, 0, privacy.Gaussian{Sigma: 1e9}
	all, err = l.Forecast(ctx, r)
	must(t, err)
	for _, f := range all {
		if !f.More || f.Runs < MostForecast {
			t.Errorf("%+v", f)
		}
	}
	// Nothing is left, none is known, or the run is of another relation.
	must(t, l.SetBudget(ctx, "clinic", "record", "", budget(0.3, 1e-5)))
	all, err = l.Forecast(ctx, planned("", 40, 100))
	must(t, err)
	for _, f := range all {
		if f.Runs != 0 || f.Why != "" {
			t.Errorf("%+v of a budget that is spent", f)
		}
	}
	r = planned("", 1, 100)
	r.Dataset = "nobody"
	_, err = l.Forecast(ctx, r)
	wantError(t, err, ErrUnknownDataset)
	reserve(t, l, reservation("free", "d"))
	r.Dataset = "free"
	_, err = l.Forecast(ctx, r)
	wantError(t, err, ErrNoBudget)
	r.Dataset, r.Adjacency = "clinic", privacy.ReplaceOne
	if _, err := l.Forecast(ctx, r); err == nil || !strings.Contains(err.Error(), "cannot change") {
		t.Errorf("%v", err)
	}
}
