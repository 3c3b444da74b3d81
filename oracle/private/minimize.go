package private

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/perturb"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// problem is what package perturb is told: public bounds, no row.
func (o *Oracle) problem() perturb.Problem {
	f, p, m := o.cfg.Model.Facts(), o.cfg.Facts, o.cfg.Model
	return perturb.Problem{
		Model: m.Name(), Adjacency: p.Adjacency, Records: p.Rows, UnitRows: p.UnitRows, Dim: p.Dim,
		Features: o.cfg.Table.Dim, Outputs: m.Outputs(), Block: data.BlockRows,
		RowNorm: o.cfg.Table.NormBound, NormBound: f.NormBound, Lipschitz: f.Lipschitz, Smooth: f.Smooth,
		Convex: f.Convex, OneMargin: f.OneMargin,
	}
}

// noiseless says whether a minimization is released without noise: lab only.
func noiseless(how oracle.How) bool {
	d, ok := how.(oracle.Descent)
	return how == (oracle.Exact{}) || ok && d.Noise == (mech.None{})
}

// fitsMinimize checks that a theorem covers a minimization.
func (o *Oracle) fitsMinimize(q oracle.Minimize) error {
	if noiseless(q.How) {
		return nil
	}
	if _, err := o.problem().Release(q); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	return nil
}

// Minimize answers a charged minimization. The line where private becomes public is the call of publish.
// If the context of the batch ends first, there is no answer.
func (b *batch) Minimize(q oracle.Minimize) ([]float64, error) {
	o := b.o
	if err := b.take(q); err != nil {
		return nil, err
	}
	w := b.memory(o.cfg.Facts.Dim)
	clear(w) // w₀ = 0, for every table
	if err := o.minimize(b.ctx, w, q); err != nil {
		return nil, err
	}
	if !noiseless(q.How) {
		r, err := o.problem().Release(q)
		if err != nil {
			return nil, err
		}
		if err := o.publish(w, r); err != nil {
			return nil, err
		}
	}
	return w, b.answered(w)
}

// publish rounds w to the grid and adds the noise.
func (o *Oracle) publish(w []float64, r perturb.Release) error {
	counts := make([]int64, len(w))
	for j, v := range w {
		// |v| ≤ Reach by the theorem; bringing it there moves no two closer tables apart.
		counts[j] = int64(math.RoundToEven(min(max(v, -r.Reach), r.Reach) / r.Grid))
	}
	if err := r.Noise.Add(counts, r.Grid, r.Sensitivity, &o.noise); err != nil {
		return err
	}
	for j, c := range counts {
		w[j] = float64(c) * r.Grid
	}
	return nil
}

// minimize sets w, which is 0, to the minimizer that q asks for. It is private.
func (o *Oracle) minimize(ctx context.Context, w []float64, q oracle.Minimize) error {
	switch how := q.How.(type) {
	case oracle.Descent:
		return o.descend(ctx, w, how, q.L2)
	case oracle.Objective:
		p, err := o.problem().Objective(how, q.L2)
		if err != nil {
			return err
		}
		return p.Solve(ctx, w, o.mean(p.Curve, o.tilt(p)))
	}
	return perturb.Exact(ctx, w, o.cfg.Model.Facts().Smooth, o.mean(q.L2, nil))
}

// mean is the objective over all rows.
func (o *Oracle) mean(curve float64, tilt []float64) *perturb.Mean {
	sum := func(g, w []float64) { o.local.plain(g, w, clip.None{}, nil, true) }
	return &perturb.Mean{Sum: sum, N: float64(o.cfg.Facts.Rows), Curve: curve, Tilt: tilt}
}

// tilt draws the linear term of an objective perturbation.
func (o *Oracle) tilt(p perturb.Objective) []float64 {
	counts := make([]int64, o.cfg.Facts.Dim)
	o.noise.AddGaussian(counts, p.Tilt/p.Grid*(1+0x1p-50))
	b := make([]float64, len(counts))
	for j, c := range counts {
		b[j] = float64(c) * p.Grid
	}
	return b
}

// descend runs gradient descent over all rows, or over batches of one secret order of the records.
func (o *Oracle) descend(ctx context.Context, w []float64, d oracle.Descent, l2 float64) error {
	var batches [][]int32
	all := perturb.Batches(d, o.units) == 1
	if all {
		batches = [][]int32{nil}
	} else {
		for batch := range slices.Chunk(o.permutation(), d.Batch) {
			slices.Sort(batch) // near rows lie together
			if o.local.shares != nil {
				batch = o.local.rowsOf(nil, batch)
			}
			batches = append(batches, batch)
		}
	}
	return perturb.Descend(ctx, w, d, l2, perturb.Size(d, o.cfg.Facts.Rows), len(batches),
		func(g, w []float64, batch int) {
			o.local.plain(g, w, clip.None{}, batches[batch], all)
		})
}

// permutation draws an order of the records, every one equally likely. It stays secret.
func (o *Oracle) permutation() []int32 {
	order := make([]int32, o.units)
	for i := range order {
		order[i] = int32(i)
	}
	for i := len(order) - 1; i > 0; i-- {
		j := o.local.sampling.Below(uint64(i + 1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}
