// Package p0 reproduces the experiments of P0, Improved Convergence of Differential Private SGD with Gradient Clipping:
// its Figures 1 to 5 and Table 2, its claims as inequalities, its ε beside Sotto's, and what tighter bounds of
// gradients by losses recover of what value clipping loses with P0's constants.
//
// It uses the library as anyone would: method.SGD on a private oracle, with noise from a fixed seed. Accuracies and
// clipping frequencies are computed without noise, which is for public tables only.
package p0

import (
	"context"
	"fmt"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
)

// A Size says how much of the experiment to run.
type Size struct {
	Name     string
	Rows     int       // at most, to train on
	Scored   int       // the same for rows to score on
	Epochs   int       // at most; 0: those of the paper
	Rates    []float64 // of MNIST, to choose the best from
	Epsilons []float64 // of Figure 5, at δ = 1e-5
	Deltas   []float64 // of Figure 5, at ε = 1
	Timed    int       // steps of each method that are timed
	Theorem  Grid      // of the experiment on Theorem 4.5
}

// Full has the rows and epochs of the paper. Small takes less than a minute: a tenth of the rows and few epochs, with
// the paper's batches and noise.
var (
	Full = Size{"full", 60_000, 10_000, 0, []float64{2e-3, 5e-3, 1e-2}, []float64{0.01, 1, 10},
		[]float64{1e-7, 1e-3}, 300, Grid{[]int{4000, 8000, 16000}, []int{16, 64, 256, 1024}, []float64{1, 2, 4}, 5}}
	Small = Size{"small", 6_000, 2_000, 3, []float64{1e-2}, []float64{0.01, 10}, []float64{1e-7, 1e-3}, 100,
		Grid{[]int{4000, 8000}, []int{16, 64}, []float64{1, 2}, 2}}
)

// The constants of P0 §6, and the clip norm of Figure 5, which it does not state.
const (
	batch = 128
	sigma = 1.0
	delta = 1e-5
	one   = 1.0 // ε of the runs along δ
	fifth = 20.0
	seed  = 1
)

// The kinds of runs.
const (
	gc    = "GC"
	vc    = "VC"
	vcOld = "VC, P0's constants"

	// Of the ladder, with P0's constants otherwise.
	vcLeast = "VC, min(1, 2f) of Appendix D"
	vcPower = "VC, norms by one step of power iteration"
	vcBoth  = "VC, min(1, 2f) and one step of power iteration"
)

// compared are the clip norms of Figures 2 and 3 on MNIST; of other tables all of Figure 1 are.
var compared = []float64{10, 20, 40}

// A Curve is one run, by epochs.
type Curve struct {
	Table, Model, Kind string
	Setting            string // of the ladder; "" elsewhere
	Clip, Rate, Noise  float64
	Epsilon, Delta     float64 // of Figure 5; 0 elsewhere
	Train, Test        []float64
	Loss               []float64 // on training rows
	Clipped            []float64 // share of rows whose gradient, or bound on it, is above the clip norm

	RightTrain, RightTest []bool // for each row that is scored, whether the last model predicts its class
}

// Last is a curve's last value.
func Last(v []float64) float64 { return v[len(v)-1] }

// run does the job.
func (j job) run(ctx context.Context, size Size) (*Curve, error) {
	t, c := j.t, j.curve
	p, err := t.problem(c.Model)
	if err != nil {
		return nil, err
	}
	if c.Kind != gc && c.Kind != vc {
		p.Model = newWGC(p.Model, c.Kind)
	}
	perEpoch := max(1, p.Public.Rows/batch)
	epochs := t.epochs
	if size.Epochs > 0 {
		epochs = min(epochs, size.Epochs)
	}
	sgd := method.SGD{Steps: epochs * perEpoch, Rate: c.Rate,
		Gradient: method.Gradient{Clip: c.Clip, Batch: batch, Sampling: method.Poisson, Noise: c.Noise}}
	if c.Kind != gc {
		sgd.Gradient.Clipping = method.ByValue
	}
	name := fmt.Sprint(c.Table, c.Model, c.Clip, c.Rate, c.Epsilon, c.Delta) // the same batches and noise for each kind
	o, err := p.Oracle(nil, noise.NewSeeded(seed, name, 0).Uint64(), 1)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	var last []float64
	for step, err := range sgd.Run(ctx, o, method.Objective{}) {
		if err != nil {
			return nil, fmt.Errorf("%s, %s, %s: %w", c.Table, c.Model, c.Kind, err)
		}
		if step.Status != method.Running || step.T%perEpoch != 0 {
			continue
		}
		last = step.W
		over, bounds := 0.0, make([]float64, data.BlockRows)
		loss, right := paper.Score(p.Model, step.W, t.sample, func(v data.View, pass model.Pass) {
			b := bounds[:v.To]
			if c.Kind == gc {
				pass.GradNorm(b, 2)
			} else {
				pass.(model.BoundedPass).GradBound(b)
			}
			for _, bound := range b {
				if bound > c.Clip {
					over += 1 / float64(t.sample.Rows())
				}
			}
		})
		_, test := paper.Score(p.Model, step.W, t.test, nil)
		c.Loss, c.Train, c.Test, c.Clipped = append(c.Loss, loss), append(c.Train, right), append(c.Test, test),
			append(c.Clipped, over)
	}
	c.RightTrain, c.RightTest = right(p.Model, last, t.sample), right(p.Model, last, t.test)
	return &c, nil
}

// right says of each row of a table whether its class is predicted; nil of a regression.
func right(m model.Model, w []float64, t *data.Table) (list []bool) {
	var ws model.Workspace
	k := m.Outputs()
	out := make([]float64, data.BlockRows*k)
	if t.Classes == 0 {
		return nil
	}
	for _, b := range t.Blocks {
		m.Predict(out[:b.N*k], w, data.View{Block: b, To: b.N}, &ws)
		for i := range b.N {
			scores := out[i*k : (i+1)*k]
			list = append(list, slices.Index(scores, slices.Max(scores)) == int(b.Y[i]))
		}
	}
	return list
}

// noiseFor is the multiplier that a budget asks for at the paper's size.
func (t *task) noiseFor(epsilon, delta float64) (float64, error) {
	return account.Calibrate(account.Best{}, privacy.Budget{Epsilon: epsilon, Delta: delta, Adjacency: privacy.AddRemove},
		func(noise float64) privacy.Event {
			step := privacy.PoissonSampled{Rate: batch / float64(t.rows), Of: privacy.Gaussian{Sigma: noise}}
			return privacy.Repeated{Count: t.epochs * (t.rows / batch), Of: step}
		})
}

// A job is a planned run. Those of one Group differ in the rate, and the best of them is kept.
type job struct {
	t     *task
	curve Curve
	group int
}

// jobs are the runs of Figures 1 to 4, of Figure 5 and of the ladder, for which scaled is MNIST in its settings.
func jobs(size Size, tasks []*task, scaled map[string]*task) (list []job, groups int, err error) {
	add := func(t *task, c Curve, rates []float64) {
		for _, c.Rate = range rates {
			list = append(list, job{t, c, groups})
		}
		groups++
	}
	for _, t := range tasks {
		models := models
		if t.train.Classes == 0 {
			models = models[:1]
		}
		for _, name := range models {
			for _, clip := range t.clips {
				for _, kind := range []string{gc, vc, vcOld} {
					if kind == gc || t.name != "MNIST" || clip >= compared[0] {
						add(t, Curve{Table: t.name, Model: name, Kind: kind, Clip: clip, Noise: sigma}, t.rates)
					}
				}
			}
		}
	}
	budgets := []privacy.Budget{}
	for _, e := range size.Epsilons {
		budgets = append(budgets, privacy.Budget{Epsilon: e, Delta: delta})
	}
	for _, d := range size.Deltas {
		budgets = append(budgets, privacy.Budget{Epsilon: one, Delta: d})
	}
	t := tasks[0]
	for _, b := range budgets {
		sigma, err := t.noiseFor(b.Epsilon, b.Delta)
		if err != nil {
			return nil, 0, err
		}
		for _, name := range []string{linear, network} {
			for _, kind := range []string{gc, vcOld} {
				add(t, Curve{Table: t.name, Model: name, Kind: kind, Clip: fifth, Noise: sigma, Epsilon: b.Epsilon, Delta: b.Delta},
					t.rates)
			}
		}
	}
	for _, clip := range compared {
		for _, name := range models {
			for _, setting := range []string{pixels, signed} {
				for _, kind := range []string{gc, vcOld} {
					c := Curve{Table: t.name, Model: name, Kind: kind, Setting: setting, Clip: clip, Noise: sigma}
					add(scaled[setting], c, t.rates)
				}
			}
			add(t, Curve{Table: t.name, Model: name, Kind: vcLeast, Clip: clip, Noise: sigma}, t.rates)
		}
		for _, kind := range []string{vcPower, vcBoth} {
			add(t, Curve{Table: t.name, Model: network, Kind: kind, Clip: clip, Noise: sigma}, t.rates)
		}
		all := Curve{Table: t.name, Model: network, Kind: vcBoth, Setting: pixels, Clip: clip, Noise: sigma}
		add(scaled[pixels], all, t.rates)
	}
	return list, groups, nil
}

// best keeps the best of each group: by accuracy on training rows as P0 does, which is for the lab. Of equal ones it
// keeps the one with the smaller rate.
func best(list []job, groups int, curves []*Curve) []*Curve {
	kept := make([]*Curve, groups)
	for i, c := range curves {
		old := &kept[list[i].group]
		if *old == nil || Last(c.Train) > Last((*old).Train) || Last(c.Train) == Last((*old).Train) && c.Rate < (*old).Rate {
			*old = c
		}
	}
	return kept
}
