package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"pgregory.net/rapid"
)

// planned is a reservation of so many batches of Gaussian noise on the whole table.
func planned(run string, batches int, sigma float64) Reservation {
	r := reservation("clinic", run)
	r.Plan = privacy.Repeated{Count: batches, Of: privacy.Gaussian{Sigma: sigma}}
	return r
}

// batchesOf is the first so many batches of such a run.
func batchesOf(batches int, sigma float64) []Charges {
	if batches == 0 {
		return nil
	}
	return []Charges{{0, batches, privacy.Gaussian{Sigma: sigma}}}
}

// charged is the end of a run that charged so many batches.
func charged(batches int, sigma float64) Settlement {
	text, err := privacy.MarshalEvent(privacy.Repeated{Count: batches, Of: privacy.Gaussian{Sigma: sigma}})
	if err != nil {
		panic(err)
	}
	if batches == 0 {
		text = []byte(`{"event":"composed"}`)
	}
	return Settlement{Outcome: Stopped, Delta: 1e-7, Batches: batches, Charged: text}
}

// part is how much of the budget of "clinic" is held or settled.
func part(t *testing.T, l *Ledger) float64 {
	t.Helper()
	d, err := l.Dataset(t.Context(), "clinic")
	must(t, err)
	return *d.Part
}

// A run holds its plan and settles for what it charged; a crash leaves it held.
func TestFilterHoldsAndSettles(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		for _, currency := range Currencies()[1:] {
			t.Run(currency, func(t *testing.T) {
				where := another(t, where)
				ctx := t.Context()
				l := open(t, where)
				must(t, l.SetBudget(ctx, "clinic", "record", currency, budget(1, 1e-5)))
				const sigma = 100
				first := reserve(t, l, planned("first", 200, sigma))
				held := part(t, l)
				if !(held > 0.2 && held < 0.5) {
					t.Fatalf("one run holds %v of the budget", held)
				}
				reserve(t, l, planned("crashed", 200, sigma))
				near := func(want float64) {
					t.Helper()
					if got := part(t, l); math.Abs(got-want) > 1e-12 {
						t.Errorf("%v of the budget is held or settled, want %v", got, want)
					}
				}
				near(2 * held)
				big := planned("big", 400, sigma)
				_, err := l.Reserve(ctx, big)
				wantError(t, err, privacy.ErrExhausted)
				for _, words := range []string{`"clinic"`, `"big"`, Percent(2 * held), Percent(4 * held), "(ε 1, δ 0.00001)", currency} {
					if !strings.Contains(err.Error(), words) {
						t.Errorf("the refusal does not say %s: %v", words, err)
					}
				}
				must(t, l.Reach(ctx, "first", first, 50, batchesOf(50, sigma)))
				wantError(t, l.Settle(ctx, "first", first, charged(49, sigma)), ErrBehind)
				near(2 * held)
				must(t, l.Settle(ctx, "first", first, charged(50, sigma)))
				near(1.25 * held)
				wantError(t, l.Settle(ctx, "first", first, charged(50, sigma)), ErrSettled)
				must(t, l.Close())
				l = open(t, where)
				near(1.25 * held)
				verify(t, l)
				run, err := l.Run(ctx, "first")
				must(t, err)
				if run.Settlement.Batches != 50 || run.Caps != (Caps{0.1, 1e-7}) {
					t.Errorf("the run reads %+v", run)
				}
				d, err := l.Dataset(ctx, "clinic")
				must(t, err)
				want := "All runs on this dataset, including future ones, are together (ε 1, δ 0.00001)-differentially private for each record, under add-or-remove. " +
					"Runs spend it in " + currency + ": each holds the cost of its plan until it settles for what it charged. So far " + Percent(1.25*held) +
					" is held or settled; that is information, and no smaller guarantee. Accesses before " + day(d.Created) + " are not recorded here."
				if d.Statement != want || d.Currency != currency || d.Left != nil || d.Runs != 2 || d.Open != 1 || *d.Guarantee != (Caps{1, 1e-5}) {
					t.Errorf("found %+v; want the statement %q", d, want)
				}
				if !(d.Spent.Epsilon > 0 && d.Spent.Epsilon < 1) || d.Spent.Delta != 1e-5 {
					t.Errorf("a budget of %v would cover what is held or settled", d.Spent)
				}
				if _, err := json.Marshal(d); err != nil {
					t.Error(err)
				}
				entries, err := l.Entries(ctx, "clinic")
				must(t, err)
				for i, words := range map[int]string{
					2: "holds the plan 200 × Gaussian(σ=100) of a run within (ε 0.1, δ 10⁻⁷)",
					4: "stopped; settled in " + currency + " for the 50 batches that were charged, which by themselves cost (ε 0, δ 10⁻⁷)",
				} {
					if got := entries[i].Words(); got != words {
						t.Errorf("entry %d reads %q; want %q", i+1, got, words)
					}
				}
			})
		}
	})
}

// R1: what a dataset counts in is fixed, and only what has a theorem there passes.
func TestFilterRefusals(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		if err := l.SetBudget(ctx, "clinic", "record", "pld", budget(1, 1e-5)); err == nil || !strings.Contains(err.Error(), "choose caps, zcdp, gdp, rdp") {
			t.Errorf("an unknown currency: %v", err)
		}
		wantError(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 0)), privacy.ErrExhausted)
		if n := verify(t, l); n != 0 {
			t.Errorf("refusals left %d entries", n)
		}
		must(t, l.SetBudget(ctx, "clinic", "record", InGDP, budget(1, 1e-5)))
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5)))
		var mismatch *MismatchError
		if err := l.SetBudget(ctx, "clinic", "record", InCaps, budget(1, 1e-5)); !errors.As(err, &mismatch) || mismatch.Field != "currency" {
			t.Errorf("another currency: %v", err)
		}
		other := planned("r", 10, 100)
		other.Adjacency = privacy.ReplaceOne
		if _, err := l.Reserve(ctx, other); !errors.As(err, &mismatch) || mismatch.Field != "adjacency" {
			t.Errorf("another adjacency: %v", err)
		}
		if _, err := l.Reserve(ctx, reservation("clinic", "r")); err == nil {
			t.Error("a run without a plan passed")
		}
		sampled := planned("r", 10, 100)
		sampled.Plan = privacy.Repeated{Count: 10, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: 5}}}
		var unsupported *account.UnsupportedError
		if _, err := l.Reserve(ctx, sampled); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "Poisson") || !strings.Contains(err.Error(), "counts in gdp") {
			t.Errorf("no theorem: %v", err)
		}
		invalid := planned("r", 10, -1)
		if _, err := l.Reserve(ctx, invalid); err == nil {
			t.Error("an event that means nothing passed")
		}
		if n := verify(t, l); n != 3 {
			t.Errorf("refusals left entries: %d", n)
		}
		must(t, l.SetBudget(ctx, "sampled", "record", InRDP, budget(1, 1e-5)))
		sampled.Dataset = "sampled"
		reserve(t, l, sampled)
		// A look voids, whatever the currency.
		must(t, l.RecordAccess(ctx, "sampled", nil, "eval", "scores"))
		d, err := l.Dataset(ctx, "sampled")
		must(t, err)
		if d.Void == nil || !strings.HasPrefix(d.Statement, "There is no lifetime guarantee: since") || !strings.Contains(d.Statement, "counted in rdp") {
			t.Errorf("after a look: %+v", d)
		}
	})
}

// A smaller budget set later refuses runs and promises nothing new.
func TestFilterBudgetChanges(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		set := func(epsilon, delta float64) Dataset {
			t.Helper()
			must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(epsilon, delta)))
			d, err := l.Dataset(ctx, "clinic")
			must(t, err)
			return d
		}
		set(1, 1e-5)
		token := reserve(t, l, planned("r", 500, 100))
		d := set(0.5, 1e-5)
		if *d.Part <= 1 || *d.Guarantee != (Caps{1, 1e-5}) || !strings.Contains(d.Statement, "together (ε 1, δ 0.00001)-") || !strings.Contains(d.Statement, "new runs are admitted within (ε 0.5, δ 0.00001) only") {
			t.Errorf("lowered: %+v", d)
		}
		_, err := l.Reserve(ctx, planned("s", 1, 1e6))
		wantError(t, err, privacy.ErrExhausted)
		must(t, l.Reach(ctx, "r", token, 50, batchesOf(50, 100)))
		must(t, l.Settle(ctx, "r", token, charged(50, 100)))
		reserve(t, l, planned("s", 1, 100))
		if d = set(0.4, 1e-4); *d.Guarantee != (Caps{1, 1e-4}) || !strings.Contains(d.Statement, "The budget was raised on") {
			t.Errorf("less ε and more δ: %+v", d)
		}
		verify(t, l)
	})
}

// Random operations under a filter against a model that adds whole numbers: a batch
// is a thousandth of the budget.
func TestFilterAgainstAModel(t *testing.T) {
	race.Skip(t)
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		reopen := func() *Ledger {
			l, err := Open(ctx, where)
			must(t, err)
			if !postgres.IsURL(where) {
				_, err = l.store.db.Exec(`PRAGMA synchronous = OFF`)
				must(t, err)
			}
			return l
		}
		l := reopen()
		defer func() { l.Close() }()
		f, err := account.NewFilter(account.ZCDPCurrency{}, budget(1, 1e-5))
		must(t, err)
		sigma := math.Sqrt(1000 / (2 * f.Limit()) * (1 + 1e-9)) // a batch costs just below a thousandth
		type modelRun struct {
			token     string
			held, did int
			settled   bool
		}
		var round atomic.Int64
		rapid.Check(t, func(t *rapid.T) {
			name := fmt.Sprint("d", round.Add(1))
			must(t, l.SetBudget(ctx, name, "record", InZCDP, budget(1, 1e-5)))
			var runs []*modelRun
			total := 0
			pick := func(t *rapid.T) (string, *modelRun) {
				if len(runs) == 0 {
					t.Skip("no run yet")
				}
				i := rapid.IntRange(0, len(runs)-1).Draw(t, "run")
				return fmt.Sprint(name, ".", i), runs[i]
			}
			t.Repeat(map[string]func(*rapid.T){
				"reserve": func(t *rapid.T) {
					n := rapid.IntRange(1, 600).Draw(t, "batches")
					r := planned(fmt.Sprint(name, ".", len(runs)), n, sigma)
					r.Dataset = name
					token, err := l.Reserve(ctx, r)
					if fits := total+n <= 1000; fits != (err == nil) {
						t.Fatalf("%d of 1000 held or settled, asked %d: %v", total, n, err)
					} else if !fits {
						wantError(t, err, privacy.ErrExhausted)
						return
					}
					runs, total = append(runs, &modelRun{token: token, held: n}), total+n
				},
				"release": func(t *rapid.T) {
					id, r := pick(t)
					if r.settled {
						return
					}
					r.did = rapid.IntRange(r.did, r.held).Draw(t, "did")
					must(t, l.Reach(ctx, id, r.token, r.did, batchesOf(r.did, sigma)))
				},
				"resume": func(t *rapid.T) {
					id, r := pick(t)
					next := NewToken()
					err := l.Resume(ctx, id, r.token, next, batchesOf(r.did, sigma))
					if r.settled {
						wantError(t, err, ErrSettled)
						return
					}
					must(t, err)
					r.token = next
				},
				"settle": func(t *rapid.T) {
					id, r := pick(t)
					n := rapid.IntRange(0, r.held).Draw(t, "charged")
					err := l.Settle(ctx, id, r.token, charged(n, sigma))
					switch {
					case r.settled:
						wantError(t, err, ErrSettled)
					case n < r.did:
						wantError(t, err, ErrBehind)
					default:
						must(t, err)
						if n > r.did { // more than the ledger recorded: the whole plan stays spent
							n = r.held
						}
						r.settled, total = true, total-r.held+n
					}
				},
				"reopen": func(t *rapid.T) {
					must(t, l.Close())
					l = reopen()
				},
				"": func(t *rapid.T) {
					d, err := l.Dataset(ctx, name)
					must(t, err)
					if math.Abs(*d.Part-float64(total)/1000) > 1e-6 || d.Runs != len(runs) {
						t.Fatalf("found %v of %d runs; want %d thousandths of %d", *d.Part, d.Runs, total, len(runs))
					}
				},
			})
		})
		verify(t, l)
	})
}

// With hashes that fit, a filter's entries must still make sense.
func TestFilterTampering(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-5)))
		token := reserve(t, l, planned("r", 500, 100))
		must(t, l.Reach(ctx, "r", token, 300, batchesOf(300, 100)))
		must(t, l.Settle(ctx, "r", token, charged(300, 100)))
		reserve(t, l, planned("s", 300, 100))
		all, err := l.Entries(ctx, "")
		must(t, err)
		change := func(seq int, from, to string) func([]Entry) []Entry {
			return func([]Entry) []Entry {
				e := append([]Entry(nil), all...)
				e[seq-1].Payload = json.RawMessage(strings.Replace(string(e[seq-1].Payload), from, to, 1))
				if reflect.DeepEqual(e[seq-1], all[seq-1]) {
					t.Fatalf("%q is not in %s", from, e[seq-1].Payload)
				}
				return e
			}
		}
		for _, c := range []struct {
			name   string
			change func([]Entry) []Entry
			seq    int64
		}{
			{"another currency", change(1, "zcdp", "caps"), 3},
			{"a smaller budget", change(2, `"epsilon":1`, `"epsilon":0.01`), 3},
			{"a plan of more", change(5, `"count":300`, `"count":900`), 5},
			{"a plan that is none", change(5, `"sigma":100`, `"sigma":-1`), 5},
			{"settled for cheaper events", change(4, `"sigma":100`, `"sigma":999`), 4},
			{"settled for other batches", change(4, `"batches":300`, `"batches":3`), 4},
			{"settled in no currency", change(4, `,"currency":"zcdp"`, ``), 4},
		} {
			rewrite(t, l, c.change)
			_, err := l.Verify(ctx)
			var broken *ChainError
			if !errors.As(err, &broken) || broken.Seq != c.seq {
				t.Errorf("%s: found %v; want a break at entry %d", c.name, err, c.seq)
			}
			rewrite(t, l, func([]Entry) []Entry { return all })
			verify(t, l)
		}
		// What goes beyond the budget by this version's accounts voids the statement,
		// and refuses runs.
		rewrite(t, l, change(5, `"count":300`, `"count":900`))
		d, err := l.Dataset(ctx, "clinic")
		must(t, err)
		if !strings.HasPrefix(d.Statement, "There is no lifetime guarantee: by the accounts of this version run \"s\" went beyond") {
			t.Errorf("found %q", d.Statement)
		}
		forget(t, l)
		_, err = l.Reserve(ctx, planned("t", 1, 1e6))
		wantError(t, err, privacy.ErrExhausted)
		// An event of a later version.
		rewrite(t, l, change(1, "zcdp", "gdp"))
		rewrite(t, l, func(e []Entry) []Entry {
			e[2].Payload = json.RawMessage(strings.Replace(string(e[2].Payload), `{"event":"gaussian","sigma":100}`, `{"event":"laplace","scale":100}`, 1))
			return e
		})
		if _, err := l.Dataset(ctx, "clinic"); !errors.Is(err, errNewer) {
			t.Errorf("an event that this version has no theorem for: %v", err)
		}
	})
}

// A ledger that an earlier version wrote, before there were filters.
func TestLedgerFromBeforeFilters(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := context.Background()
		l := open(t, where)
		token := strings.Repeat("ab", 16)
		rewrite(t, l, func([]Entry) []Entry {
			e := func(kind Kind, run, payload string) Entry {
				return Entry{Kind: kind, Dataset: "clinic", Run: run, Payload: json.RawMessage(payload)}
			}
			return []Entry{
				e(KindDataset, "", `{"unit":"record","adjacency":"add-or-remove","currency":"caps"}`),
				e(KindBudget, "", `{"epsilon":1.5,"delta":0.0001}`),
				e(KindReserve, "a", `{"epsilon":1,"delta":0.00001,"token":"`+tokenHash(token)+`","mark":"`+noHash+`","plan":"`+noHash+`"}`),
				e(KindResume, "a", `{"from":"`+tokenHash(token)+`","to":"`+tokenHash(strings.Repeat("cd", 16))+`"}`),
				e(KindSettle, "a", `{"outcome":"done","epsilon":0.9,"delta":0.00001,"charged":{"event":"repeated","count":2,"of":{"event":"gaussian","sigma":9}}}`),
				e(KindReserve, "b", `{"epsilon":0.25,"delta":0.00001,"token":"`+tokenHash(token)+`"}`),
				e(KindNotPrivate, "c", `{"why":"lab run"}`),
			}
		})
		if n := verify(t, l); n != 7 {
			t.Fatalf("found %d entries", n)
		}
		must(t, l.Settle(ctx, "b", token, Settlement{Outcome: Done}))
		d, err := l.Dataset(ctx, "clinic")
		must(t, err)
		if d.Spent != (Caps{1.25, 2e-5}) || *d.Left != (Caps{0.25, 8e-5}) || d.Part != nil || d.Void == nil {
			t.Errorf("found %+v", d)
		}
		verify(t, l)
	})
}
