package p2

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A gaussian is an oracle whose searches have P2's Gaussian noise (Algorithm 1), of ρ = ε_BT²/2. It charges nothing for
// them: they cost more than Theorem 3 says (S-2d), so that Sotto has no such search. It is for a panel of Figure 1, on
// a public table.
type gaussian struct {
	oracle.Oracle
	src  *noise.Source
	size float64 // of a batch
}

type gaussianBatch struct {
	oracle.Batch
	of gaussian
}

// Batch asks for searches without noise.
func (g gaussian) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	asked := slices.Clone(queries)
	for i, q := range asked {
		if search, ok := q.(oracle.Search); ok {
			search.Off = true
			asked[i] = search
		}
	}
	b, err := g.Oracle.Batch(ctx, s, asked...)
	return gaussianBatch{b, g}, err
}

// Search adds the noise of threshold and answers, σ₁² = 3/(2ρ) and σ₂² = 3/ρ in units of the sensitivity, to what each
// step must reach.
func (b gaussianBatch) Search(q oracle.Search, l oracle.Line) (int, error) {
	unit := q.Bound / b.of.size * q.Noise.Threshold / 2 // the sensitivity over ε_BT
	threshold := math.Sqrt(3) * unit * paper.Normal(b.of.src)
	l.Least = slices.Clone(l.Least)
	for i := range l.Least {
		l.Least[i] += threshold - math.Sqrt(6)*unit*paper.Normal(b.of.src)
	}
	q.Off = true
	return b.Batch.Search(q, l)
}

// A Noise is the accuracy of DP-BLSGD by the noise of its search.
type Noise struct {
	Epsilon  float64
	Gaussian bool
	Seed     int
	Accuracy float64
}

// noises are trainings of either kind, on nine tenths of Adult each, with P2's budget for an iteration.
func (x *experiment) noises(ctx context.Context) ([]Noise, error) {
	var whole []*data.Table
	for _, f := range datasets[0].files {
		t, err := paper.Read(ctx, datasets[0].schema, filepath.Join(x.Data, f))
		if err != nil {
			return nil, err
		}
		whole = append(whole, t)
	}
	lab := *x.Lab
	lab.Progress = func(int, int) { x.tell(1) }
	return paper.Each(ctx, &lab, x.size.noises(), func(ctx context.Context, j Noise) (Noise, error) {
		part := func(test bool) *data.Table {
			return data.Subset(whole, func(row int) bool { return (row%10 == j.Seed%10) == test })
		}
		p, err := paper.NewProblem(part(false), logistic, privacy.AddRemove)
		if err != nil {
			return j, err
		}
		start, err := strconv.ParseFloat(x.size.start[j.Epsilon][0], 64)
		if err != nil {
			return j, err
		}
		batch := int(rate * float64(p.Table.Rows()))
		obj := method.Objective{Reg: reg.L2{Lambda: lambda}}
		m, err := method.BLSGD{Steps: x.size.Steps,
			Gradient: method.Gradient{Batch: batch, Clip: 3, Noise: 2 * iters / j.Epsilon}, Armijo: 0.5 / float64(batch),
			Rate: start, Shrink: 0.8, MaxBacktracks: tries, Fall: 1, Search: 1, Growth: "adaptive", NoisyNorm: true}.
			Configure(p.Public, obj,
				method.Terms{Budget: privacy.Budget{Epsilon: j.Epsilon, Delta: delta, Adjacency: privacy.AddRemove},
					Accountant: account.Best{}})
		if err != nil {
			return j, err
		}
		o, err := p.Oracle(nil, uint64(j.Seed), 1)
		if err != nil {
			return j, err
		}
		defer o.Close()
		var from oracle.Oracle = o
		if j.Gaussian {
			from = gaussian{o, noise.NewSeeded(uint64(j.Seed), "gaussian", 0), float64(batch)}
		}
		w := make([]float64, p.Public.Dim)
		for st, err := range m.Run(ctx, from, obj) {
			if err != nil {
				return j, err
			}
			copy(w, st.W)
		}
		_, j.Accuracy = paper.Score(p.Model, w, part(true), nil)
		return j, nil
	})
}

// noises are the trainings of the panel.
func (s Size) noises() []Noise {
	var all []Noise
	for _, e := range s.Hyper {
		for seed := range s.Seeds {
			all = append(all, Noise{Epsilon: e, Seed: seed}, Noise{Epsilon: e, Seed: seed, Gaussian: true})
		}
	}
	return all
}

// byNoise is the accuracy in percent at an ε by the noise of the search.
func (r *results) byNoise(epsilon float64, gaussian bool) paper.Mean {
	var of []Noise
	for _, n := range r.noises {
		if n.Epsilon == epsilon && n.Gaussian == gaussian {
			of = append(of, n)
		}
	}
	return paper.MeanOf(of, func(n Noise) float64 { return 100 * n.Accuracy })
}
