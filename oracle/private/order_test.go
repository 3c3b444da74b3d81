package private

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// A diary is a meter, a journal and a Summer that write down when they are called. One that is to fail does so, and is written down.
type diary struct {
	sum.Summer
	adj   privacy.Adjacency
	lines []string
	fail  string
}

var errFail = errors.New("failed")

func (d *diary) note(what string) error {
	d.lines = append(d.lines, what)
	if what == d.fail {
		return errFail
	}
	return nil
}

func (d *diary) Adjacency() privacy.Adjacency { return d.adj }
func (d *diary) Charge(privacy.Event) error   { return d.note("meter") }

func (d *diary) Draw(ctx context.Context, draw sum.Draw) error {
	if err := d.note("sample"); err != nil {
		return err
	}
	return d.Summer.Draw(ctx, draw)
}

func (d *diary) Sum(ctx context.Context, s *sum.Sum) error {
	if err := d.note("sum"); err != nil {
		return err
	}
	return d.Summer.Sum(ctx, s)
}

func (d *diary) Take(dst []int64, from int) {
	d.note("take")
	d.Summer.Take(dst, from)
}

// A logbook is the journal's side of a diary.
type logbook struct{ *diary }

func (l logbook) Charge(privacy.Event) error { return l.note("log") }
func (l logbook) Release([][]float64) error  { return l.note("release") }

// Every query charges the meter, then logs the charge, then draws, then sums, then releases, in this order: what fails ends
// it there, and the rows are not touched before the charge is logged.
func TestChargeBeforeRows(t *testing.T) {
	tab := table([]row{{x: []float32{1, 0.5}, y: 1}, {x: []float32{-1, 0.25}, y: 0}}, 2, false)
	line := oracle.Line{From: []float64{0, 0}, Along: []float64{1, 1}, Steps: []float64{1}, Least: []float64{0.1}}
	grad := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	loss := oracle.Loss{Bound: 1, Noise: mech.Gaussian{Sigma: 1}}
	find := oracle.Search{Bound: 1, Noise: mech.AboveThreshold{Threshold: 4, Query: 8, Max: 20}}
	hess := oracle.Hess{Clip: 1, Noise: mech.SymmetricGaussian{Sigma: 1}}
	pick := oracle.Select{Epsilon: 1, Bound: 1}
	mean, around := oracle.Mean{Clip: 1, Noise: mech.Gaussian{Sigma: 1}}, grad
	first := oracle.Totals{Cells: 2, Count: 1, Pairs: 1, Noise: mech.Gaussian{Sigma: 1}}
	around.Centered = true
	look := oracle.Margins{Bound: 6, Weight: 0.5, Noise: mech.Gaussian{Sigma: 1}}
	queries := map[oracle.Query]func(oracle.Batch) error{
		look:   func(b oracle.Batch) error { _, err := b.Margins(look, []float64{0, 0, 0.5, 1, 0}); return err },
		grad:   func(b oracle.Batch) error { _, err := b.Grad(grad, line.From); return err },
		mean:   func(b oracle.Batch) error { _, err := b.Mean(mean); return err },
		first:  func(b oracle.Batch) error { _, err := b.Totals(first); return err },
		around: func(b oracle.Batch) error { _, err := b.Grad(around, []float64{0, 0, 0.25, -0.5}); return err },
		loss:   func(b oracle.Batch) error { _, err := b.Loss(loss, line.From); return err },
		find:   func(b oracle.Batch) error { _, err := b.Search(find, line); return err },
		hess:   func(b oracle.Batch) error { _, err := b.Hess(hess, line.From); return err },
		pick: func(b oracle.Batch) error {
			_, err := b.Select(pick, oracle.Neighbors{From: line.From, Step: 1})
			return err
		},
	}
	order := []string{"meter", "log", "sample", "sum", "take", "release"}
	for q, ask := range queries {
		for end, fail := range append([]string{""}, "meter", "log", "sample", "sum") {
			cfg := config(t, tab, privacy.AddRemove, 2)
			cfg.Facts.Centered, cfg.Facts.OneMargin, cfg.Facts.Calibrated, cfg.Facts.Totals = true, true, true, true
			local, err := NewLocal(tab, cfg.Model, cfg.Facts, 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(local.Close)
			d := &diary{Summer: local, adj: privacy.AddRemove, fail: fail}
			cfg.Table, cfg.Summer, cfg.Meter, cfg.Journal = &data.Table{Dim: 2, Classes: 2, NormBound: 1, Unit: testUnit, Labeled: true}, d, d, logbook{d}
			o := openOracle(t, cfg)
			b, err := o.Batch(t.Context(), sample.Full{}, q)
			if err == nil {
				err = ask(b)
			}
			want := order
			if fail != "" {
				want = order[:end]
			}
			if got := slices.Compact(slices.Clone(d.lines)); !slices.Equal(got, want) || (fail != "") != errors.Is(err, errFail) {
				t.Errorf("%T, %q fails: %s (%v); want %s", q, fail, strings.Join(got, ", "), err, strings.Join(want, ", "))
			}
			if err := o.Close(); err != nil || !slices.Equal(slices.Compact(slices.Clone(d.lines)), want) {
				t.Errorf("%T, %q fails: closing releases more: %v (%v)", q, fail, d.lines, err)
			}
		}
	}
}

// A witness is a model that writes down when rows are read.
type witness struct {
	model.Model
	*diary
}

func (m witness) Eval(w []float64, v data.View, ws *model.Workspace) model.Pass {
	m.note("rows")
	return m.Model.Eval(w, v, ws)
}

// Minimizations, and sums without a bound, of the lab, pass over the rows of Local beside the Summer: these too are read only
// after the charge is logged and the sample is drawn, and what fails before reads none.
func TestChargeBeforeRowsOfLocal(t *testing.T) {
	tab := table([]row{{x: []float32{1, 0.5}, y: 1}, {x: []float32{-1, 0.25}, y: 0}}, 2, false)
	w := []float64{0, 0}
	line := oracle.Line{From: w, Along: []float64{1, 1}, Steps: []float64{1}, Least: []float64{0.1}}
	grad := oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}
	loss := oracle.Loss{Noise: mech.None{}}
	find := oracle.Search{Noise: mech.AboveThreshold{Max: 3}, Off: true}
	pick := oracle.Select{Off: true}
	queries := map[oracle.Query]func(oracle.Batch) error{
		grad: func(b oracle.Batch) error { _, err := b.Grad(grad, w); return err },
		loss: func(b oracle.Batch) error { _, err := b.Loss(loss, w); return err },
		find: func(b oracle.Batch) error { _, err := b.Search(find, line); return err },
		pick: func(b oracle.Batch) error { _, err := b.Select(pick, line); return err },
	}
	for _, how := range []oracle.How{
		oracle.Descent{Passes: 2, Rate: 1, Noise: mech.Gaussian{Sigma: 1}},
		oracle.Descent{Passes: 2, Rate: 1, Batch: 1, Noise: mech.Gaussian{Sigma: 1}},
		oracle.Objective{Epsilon: 1, Delta: 1e-5, Lambda: 3},
		oracle.Exact{},
	} {
		q := oracle.Minimize{How: how, L2: 0.1}
		queries[q] = func(b oracle.Batch) error { _, err := b.Minimize(q); return err }
	}
	order := []string{"meter", "log", "sample", "rows", "release"}
	for q, ask := range queries {
		for end, fail := range append([]string{""}, "meter", "log", "sample") {
			cfg := config(t, tab, privacy.ReplaceOne, 2)
			d := &diary{adj: privacy.ReplaceOne, fail: fail}
			cfg.Model, cfg.Meter, cfg.Journal = witness{cfg.Model, d}, d, logbook{d}
			o := openOracle(t, cfg)
			d.Summer, o.summer = o.summer, d
			b, err := o.Batch(t.Context(), sample.Full{}, q)
			if err == nil {
				err = ask(b)
			}
			want := order
			if fail != "" {
				want = order[:end]
			}
			if got := slices.Compact(slices.Clone(d.lines)); !slices.Equal(got, want) || (fail != "") != errors.Is(err, errFail) {
				t.Errorf("%#v, %q fails: %s (%v); want %s", q, fail, strings.Join(got, ", "), err, strings.Join(want, ", "))
			}
		}
	}
}

// What public values refuse costs nothing and reads no row: among them, of any Summer but Local, what needs the rows in this process.
func TestRefusedChargeReadsNothing(t *testing.T) {
	tab := table([]row{{x: []float32{1, 0.5}, y: 1}}, 2, false)
	cfg := config(t, tab, privacy.AddRemove, 1)
	local, err := NewLocal(tab, cfg.Model, cfg.Facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	d := &diary{Summer: local, adj: privacy.AddRemove}
	cfg.Table, cfg.Summer, cfg.Meter, cfg.Journal = &data.Table{Dim: 2, Classes: 2, NormBound: 1, Unit: testUnit, Labeled: true}, d, d, logbook{d}
	o := openOracle(t, cfg)
	for _, q := range []oracle.Query{
		oracle.Grad{Clip: clip.None{}, Noise: mech.None{}},
		oracle.Grad{Clip: clip.Norm{C: math.Inf(1)}, Noise: mech.Gaussian{Sigma: 1}},
		oracle.Loss{Noise: mech.None{}},
		oracle.Search{Noise: mech.AboveThreshold{Max: 3}, Off: true},
		oracle.Select{Off: true},
		oracle.Minimize{How: oracle.Exact{}},
		oracle.Mean{Clip: 1, Noise: mech.Gaussian{Sigma: 1}}, // not of this run's facts
		oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}, Centered: true},
		oracle.Margins{Bound: 6, Noise: mech.Gaussian{Sigma: 1}},
		oracle.Totals{Cells: 2, Count: 1, Noise: mech.Gaussian{Sigma: 1}},
	} {
		if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil || len(d.lines) > 0 {
			t.Errorf("%#v: %v after %v", q, err, d.lines)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Batch(canceled, sample.Full{}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}); err == nil || len(d.lines) > 0 {
		t.Errorf("a canceled batch: %v after %v", err, d.lines)
	}
	// A Summer counts in its own unit only: the sensitivity is stated in it.
	s := sum.Sum{Of: sum.Losses, Bound: 1, Unit: 0.5, W: []float64{0, 0}}
	if err := local.Sum(t.Context(), &s); err == nil || !strings.Contains(err.Error(), "units of 0.5") {
		t.Errorf("sums in another unit: %v", err)
	}
}

// TestMovesOfSums: what the events of sums on a Poisson sample say under replace-one is what the noise is, relative to how
// far presence and replacement move the rounded sum; elsewhere, and in runs written before, nothing changes.
func TestMovesOfSums(t *testing.T) {
	poisson := sample.Poisson{Rate: 0.5}
	for _, bound := range []float64{1e-9, 0.3, 1, 700} {
		const dim, sigma = 9, 0.7
		facts := oracle.Public{Dim: dim, Rows: 1000, Adjacency: privacy.ReplaceOne, Presence: true}
		o := &Oracle{cfg: Config{Facts: facts}, scale: scale{rowNorm: 1, rowUnit: 0x1p-20, bits: coefBits, spare: spareRows}}
		grad := oracle.Grad{Clip: clip.Norm{C: bound}, Noise: mech.Gaussian{Sigma: sigma}}
		hess := oracle.Hess{Clip: bound, Noise: mech.SymmetricGaussian{Sigma: sigma}}
		for _, c := range []struct {
			q    oracle.Query
			of   func(both bool) (release, error)
			size int // of the vector that is rounded
			far  float64
		}{
			{grad, func(both bool) (release, error) { return o.gradients(grad, both) }, dim, 2},
			{oracle.Mean{Clip: bound, Noise: grad.Noise}, func(both bool) (release, error) {
				return o.gradients(oracle.Mean{Clip: bound, Noise: grad.Noise}.Grad(), both)
			}, dim, 2},
			{hess, func(both bool) (release, error) { return o.hessians(bound, both) }, dim * dim, math.Sqrt2},
		} {
			r, err := c.of(true)
			if err != nil {
				t.Fatal(err)
			}
			said := facts.Cost(poisson, []oracle.Query{c.q}).(privacy.PoissonSampled).Of.(privacy.GaussianSum)
			if err := said.Validate(); err != nil {
				t.Fatal(err)
			}
			slack := mech.Slack(r.grid, c.size, 2)
			deviation := sigma * r.sens
			if deviation < said.Presence*(bound+slack)*(1-1e-15) || deviation < said.Replacement*(c.far*bound+slack) || said.Replacement != sigma || math.Abs(said.Presence/sigma/c.far-1) > 1e-12 {
				t.Errorf("%T of bound %v: deviation %v, which the event %v says of moves %v and %v", c.q, bound, deviation, said, bound+slack, c.far*bound+slack)
			}
			before, err := c.of(false)
			if err != nil || before.sens > r.sens || r.sens > before.sens+2*slack {
				t.Errorf("%T: sensitivity %v, without presence %v: %v", c.q, r.sens, before.sens, err)
			}
			for _, other := range []oracle.Public{{Adjacency: privacy.ReplaceOne}, {Adjacency: privacy.AddRemove, Presence: true}} {
				if e := other.Cost(poisson, []oracle.Query{c.q}); !privacy.Equal(e, poisson.Event(c.q.Event())) {
					t.Errorf("%T under %v: %v", c.q, other.Adjacency, e)
				}
			}
			for _, s := range []sample.Sampler{sample.Full{}, sample.Poisson{Rate: 1}, sample.Fixed{M: 5, N: 10}} {
				if e := facts.Cost(s, []oracle.Query{c.q}); !privacy.Equal(e, s.Event(c.q.Event())) {
					t.Errorf("%T on %v: %v", c.q, s, e)
				}
			}
		}
	}
	loss, laplace := oracle.Loss{Bound: 1, Noise: mech.Gaussian{Sigma: 2}}, oracle.Grad{Clip: clip.Norm{C: 1, P: 1}, Noise: mech.Laplace{Scale: 2}}
	for _, q := range []oracle.Query{loss, laplace, oracle.Hess{Off: true}, oracle.Select{Epsilon: 1}} {
		if e := (oracle.Public{Adjacency: privacy.ReplaceOne, Presence: true}).Cost(poisson, []oracle.Query{q}); !privacy.Equal(e, poisson.Event(q.Event())) {
			t.Errorf("%T: %v", q, e)
		}
	}
}

// No sensitivity of a rounded sum is below the exact one, of which √2 and √dim are the only parts that no float64 is: rules without
// a margin would understate it otherwise.
func TestSensitivitiesRoundUp(t *testing.T) {
	exactly := func(v float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(v) }
	root := func(n int) *big.Float { return new(big.Float).SetPrec(300).Sqrt(exactly(float64(n))) }
	rapid.Check(t, func(t *rapid.T) {
		bound, dim := rapid.Float64Range(1e-3, 1e3).Draw(t, "bound"), rapid.IntRange(1, 3000).Draw(t, "dim")
		adj, both := privacy.AddRemove, false
		if rapid.Bool().Draw(t, "replace") {
			adj, both = privacy.ReplaceOne, rapid.Bool().Draw(t, "both")
		}
		o := &Oracle{cfg: Config{Facts: oracle.Public{Dim: dim, Rows: 1000, Adjacency: adj}}, scale: scale{rowNorm: 1, rowUnit: 0x1p-20, bits: coefBits, spare: spareRows}}
		least := func(r release, times, slack *big.Float) {
			want := new(big.Float).Mul(exactly(bound), times)
			slack.Mul(slack, exactly(r.grid))
			if both {
				slack.Mul(slack, times)
			}
			if want.Add(want, slack); exactly(r.sens).Cmp(want) < 0 {
				t.Fatalf("sensitivity %v, below the exact %v", r.sens, want)
			}
		}
		moves := exactly(1)
		if adj == privacy.ReplaceOne {
			moves = exactly(2)
		}
		for _, rule := range []clip.Rule{clip.Norm{C: bound}, clip.Value{C: bound}, clip.Automatic{C: bound}, clip.Lipschitz{L: bound}, clip.PerLayer{C: bound, Layers: 3}} {
			r, err := o.gradients(oracle.Grad{Clip: rule, Noise: mech.Gaussian{Sigma: 1}}, both)
			if err != nil {
				t.Fatal(err)
			}
			slack := root(dim)
			if rule.Norm() == 1 {
				slack = exactly(float64(dim))
			}
			least(r, moves, slack)
		}
		if adj == privacy.ReplaceOne {
			moves = root(2)
		}
		r, err := o.hessians(bound, both)
		if err != nil {
			t.Fatal(err)
		}
		least(r, moves, exactly(float64(dim)))
	})
}
