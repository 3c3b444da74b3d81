package ledger

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

// modelRun is what the model remembers of a run. Costs are counted in whole
// thousandths, so the model adds without rounding.
type modelRun struct {
	dataset string
	token   string
	old     []string
	settled bool
}

type modelDataset struct {
	entered     bool
	epsilon     int // budget in thousandths; -1: none
	delta       int
	spent, lost int // Σε, Σδ in thousandths
	void, seen  bool
	runs        int
}

// Random operations, with reopening among them, against a model that fits on a
// screen: the same ones are admitted, and the sums agree.
func TestAgainstAModel(t *testing.T) {
	race.Skip(t)
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		reopen := func() *Ledger {
			l, err := Open(ctx, where)
			must(t, err)
			if !postgres.IsURL(where) { // thousands of commits, none of which need outlast a power cut
				_, err = l.store.db.Exec(`PRAGMA synchronous = OFF`)
				must(t, err)
			}
			return l
		}
		l := reopen()
		defer func() { l.Close() }()
		var round atomic.Int64
		rapid.Check(t, func(t *rapid.T) {
			id := round.Add(1)
			runs := map[string]*modelRun{}
			datasets := map[string]*modelDataset{}
			for _, name := range []string{"a", "b"} {
				datasets[fmt.Sprint(name, id)] = &modelDataset{epsilon: -1}
			}
			pick := func() (string, *modelDataset) {
				name := fmt.Sprint(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "dataset"), id)
				return name, datasets[name]
			}
			anyRun := func() (string, *modelRun) {
				if len(runs) == 0 {
					t.Skip("no run yet")
				}
				name := fmt.Sprint("r", id, ".", rapid.IntRange(0, len(runs)-1).Draw(t, "run"))
				return name, runs[name]
			}
			anyToken := func(r *modelRun) string {
				if i := rapid.IntRange(-1, len(r.old)).Draw(t, "token"); i >= 0 && i < len(r.old) {
					return r.old[i]
				}
				return r.token
			}
			thousandths := func(n int) float64 { return float64(n) / 1000 }
			t.Repeat(map[string]func(*rapid.T){
				"reserve": func(t *rapid.T) {
					name, d := pick()
					e, dl := rapid.IntRange(1, 400).Draw(t, "ε"), rapid.IntRange(0, 300).Draw(t, "δ")
					run := fmt.Sprint("r", id, ".", len(runs))
					lab := rapid.IntRange(0, 9).Draw(t, "lab") == 0
					token, err := l.Reserve(ctx, Reservation{Dataset: name, Unit: "record", Adjacency: privacy.ReplaceOne, Run: run,
						Epsilon: thousandths(e), Delta: thousandths(dl), Lab: lab})
					fits := d.epsilon < 0 || d.spent+e <= d.epsilon && d.lost+dl <= d.delta
					if fits != (err == nil) {
						t.Fatalf("spent %d and %d of %d and %d; asked %d and %d: found %v", d.spent, d.lost, d.epsilon, d.delta, e, dl, err)
					}
					if !fits {
						wantError(t, err, privacy.ErrExhausted)
						return
					}
					d.entered, d.void = true, d.void || lab
					d.spent, d.lost, d.runs = d.spent+e, d.lost+dl, d.runs+1
					runs[run] = &modelRun{dataset: name, token: token}
				},
				"budget": func(t *rapid.T) {
					name, d := pick()
					e, dl := rapid.IntRange(1, 2000).Draw(t, "ε"), rapid.IntRange(0, 999).Draw(t, "δ")
					must(t, l.SetBudget(ctx, name, "record", "", privacy.Budget{Epsilon: thousandths(e), Delta: thousandths(dl), Adjacency: privacy.ReplaceOne}))
					d.entered, d.epsilon, d.delta = true, e, dl
				},
				"look": func(t *rapid.T) {
					name, d := pick()
					must(t, l.RecordAccess(ctx, name, nil, "eval", "scores"))
					d.void, d.seen = d.void || d.entered, true
				},
				"resume": func(t *rapid.T) {
					name, r := anyRun()
					token, next := anyToken(r), NewToken()
					err := l.Resume(ctx, name, token, next, nil)
					switch {
					case r.settled:
						wantError(t, err, ErrSettled)
					case token != r.token:
						wantError(t, err, ErrStaleToken)
					default:
						must(t, err)
						r.old, r.token = append(r.old, token), next
					}
				},
				"settle": func(t *rapid.T) {
					name, r := anyRun()
					token := anyToken(r)
					err := l.Settle(ctx, name, token, Settlement{Outcome: Done, Epsilon: 0.001})
					switch {
					case r.settled:
						wantError(t, err, ErrSettled)
					case token != r.token:
						wantError(t, err, ErrStaleToken)
					default:
						must(t, err)
						r.settled = true
					}
				},
				"reopen": func(t *rapid.T) {
					must(t, l.Close())
					l = reopen()
				},
				"": func(t *rapid.T) {
					for name, d := range datasets {
						got, err := l.Dataset(ctx, name)
						if !d.entered && !d.seen {
							wantError(t, err, ErrUnknownDataset)
							continue
						}
						must(t, err)
						if got.Spent != (Caps{thousandths(d.spent), thousandths(d.lost)}) || got.Runs != d.runs || (got.Void != nil) != (d.void || !d.entered) {
							t.Fatalf("found %+v; want %+v", got, d)
						}
					}
				},
			})
			for name, r := range runs {
				err := l.Check(ctx, name, r.token)
				if r.settled {
					wantError(t, err, ErrSettled)
				} else {
					must(t, err)
				}
			}
		})
		verify(t, l)
	})
}
