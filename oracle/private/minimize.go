package private

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// mostSteps of a descent: the bounds on rounding are for no more.
const mostSteps = 1 << 27

// checkMinimize refuses samples.
func (o *Oracle) checkMinimize(s sample.Sampler, pay []oracle.Query) error {
	for _, query := range pay {
		if _, ok := query.(oracle.Minimize); ok && s != (sample.Full{}) {
			return errors.New("private: a minimisation is over all rows; no sample of them has a theorem")
		}
	}
	return nil
}

// knownHow refuses what the door does not know by its concrete type, as known does.
func knownHow(how oracle.How) error {
	switch h := how.(type) {
	case oracle.Objective, oracle.Exact:
		return nil
	case oracle.Descent:
		switch h.Noise.(type) {
		case mech.Gaussian, mech.None:
			return nil
		}
		return fmt.Errorf("private: the door does not know the noise %T of a descent", h.Noise)
	}
	return fmt.Errorf("private: the door does not know the minimisation %T", how)
}

// fitsMinimize checks the numbers of a minimisation.
func (o *Oracle) fitsMinimize(q oracle.Minimize) error {
	f := o.cfg.Model.Facts()
	noise := mech.Additive(mech.None{})
	sens, reach := 0.0, 0.0
	switch how := q.How.(type) {
	case oracle.Exact:
		return nil
	case oracle.Descent:
		if how.Noise == (mech.None{}) {
			return nil
		}
		if err := o.private(); err != nil {
			return err
		}
		if how.Passes > mostSteps || how.Passes*o.perPass(how) > mostSteps {
			return fmt.Errorf("private: a descent of more than %d steps", mostSteps)
		}
		if curve := f.Smooth + q.L2; !(how.Rate*curve <= 2) {
			return fmt.Errorf("private: a descent of step size %v; allowed is at most %v, 2 over the curvature of the loss and of L2", how.Rate, 2/curve)
		}
		noise = how.Noise
		sens, reach = o.descentSensitivity(how, q.L2)
	case oracle.Objective:
		if err := o.private(); err != nil {
			return err
		}
		if !f.OneMargin {
			return fmt.Errorf("private: objective perturbation is proven for losses of one margin; %s is none", o.cfg.Model.Name())
		}
		if k := o.cfg.Facts.UnitRows; k > 1 {
			return fmt.Errorf("private: objective perturbation is proven for records of one row; a unit of up to %d has a loss of as many margins", k)
		}
		p, err := o.perturbation(how, q.L2)
		if err != nil {
			return err
		}
		noise, sens, reach = mech.Gaussian{Sigma: p.sigma}, p.sensitivity(), p.reach
	}
	grid := mech.Grid(sens, o.cfg.Facts.Dim, 2)
	if !(reach/grid < 1<<60) {
		return fmt.Errorf("private: parameters up to %.3g at a sensitivity of %.3g do not fit", reach, sens)
	}
	return noise.Check(grid, sens+mech.Slack(grid, o.cfg.Facts.Dim, 2))
}

// private says whether a minimiser of this table's loss has a sensitivity at all (R20).
func (o *Oracle) private() error {
	f := o.cfg.Model.Facts()
	switch {
	case o.cfg.Facts.Adjacency != privacy.ReplaceOne:
		return fmt.Errorf("private: a minimiser has a sensitivity under %v only: with a private row count the curvature of the mean has no bound", privacy.ReplaceOne)
	case !f.Convex || math.IsInf(f.Smooth, 1) || math.IsInf(f.Lipschitz, 1):
		return fmt.Errorf("private: the loss of %s is not convex, smooth and of bounded slope; its minimiser has no sensitivity", o.cfg.Model.Name())
	case !(o.cfg.Table.NormBound <= f.NormBound):
		return fmt.Errorf("private: rows of norm up to %v, the model counts on %v", o.cfg.Table.NormBound, f.NormBound)
	}
	return nil
}

// Minimize answers a paid minimisation. The line where private becomes public is the call of publish. Where the context of
// its purchase ends first, there is no answer.
func (b *batch) Minimize(q oracle.Minimize) ([]float64, error) {
	o := b.o
	if err := b.take(q); err != nil {
		return nil, err
	}
	w := b.room(o.cfg.Facts.Dim)
	clear(w) // w_0 = 0, for every table
	var err error
	switch how := q.How.(type) {
	case oracle.Exact:
		err = o.exact(b.ctx, w, q.L2)
	case oracle.Descent:
		if err = o.descend(b.ctx, w, how, q.L2); err == nil && how.Noise != (mech.None{}) {
			sens, reach := o.descentSensitivity(how, q.L2)
			err = o.publish(w, how.Noise, sens, reach)
		}
	case oracle.Objective:
		var p perturbation
		if p, err = o.perturbation(how, q.L2); err == nil {
			err = o.objective(b.ctx, w, p)
		}
		if err == nil {
			err = o.publish(w, mech.Gaussian{Sigma: p.sigma}, p.sensitivity(), p.reach)
		}
	}
	if err != nil {
		return nil, err
	}
	return w, b.answered(w)
}

// publish rounds w to the grid and adds the noise.
func (o *Oracle) publish(w []float64, noise mech.Additive, sens, reach float64) error {
	grid := mech.Grid(sens, len(w), 2)
	counts := make([]int64, len(w))
	for j, v := range w {
		// |v| ≤ reach by the theorem; bringing it there moves no two closer tables apart.
		counts[j] = int64(math.RoundToEven(min(max(v, -reach), reach) / grid))
	}
	if err := noise.Add(counts, grid, sens+mech.Slack(grid, len(w), 2), &o.noise); err != nil {
		return err
	}
	for j, c := range counts {
		w[j] = float64(c) * grid
	}
	return nil
}

// perPass is the number of batches of a pass, which is public under replace-one.
func (o *Oracle) perPass(d oracle.Descent) int {
	if d.Batch == 0 || d.Batch >= o.units {
		return 1
	}
	return (o.units + d.Batch - 1) / d.Batch
}

// size is the divisor of a step: the nominal batch, also of a last batch that is smaller.
func (o *Oracle) size(d oracle.Descent) float64 {
	if d.Batch == 0 {
		return float64(o.cfg.Facts.Rows)
	}
	return float64(d.Batch)
}

// stepSize of step t = 1, 2, ….
func stepSize(d oracle.Descent, l2 float64, t int) float64 {
	if d.Decay {
		return min(d.Rate, 1/(l2*float64(t)))
	}
	return d.Rate
}

// descend runs gradient descent from w = 0, without noise: OutPert-GD, and with batches OutPert-RSGD.
func (o *Oracle) descend(ctx context.Context, w []float64, d oracle.Descent, l2 float64) error {
	g := make([]float64, len(w))
	size, all := o.size(d), o.perPass(d) == 1
	var batches [][]int32
	if !all {
		for batch := range slices.Chunk(o.permutation(), d.Batch) {
			slices.Sort(batch) // near rows lie together
			if o.local.shares != nil {
				batch = o.local.rowsOf(nil, batch)
			}
			batches = append(batches, batch)
		}
	}
	t := 0
	step := func(rows []int32) {
		t++
		eta := stepSize(d, l2, t)
		o.local.plain(g, w, clip.None{}, rows, all)
		for j := range w {
			w[j] -= eta * (g[j]/size + l2*w[j])
		}
	}
	for range d.Passes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if all {
			step(nil)
			continue
		}
		for _, batch := range batches {
			step(batch)
		}
	}
	return nil
}

// permutation draws an order of the units, every one equally likely. It stays secret.
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

// descentSensitivity bounds by how much replacing one row moves the last iterate in the ℓ2 norm, and the norm
// of every iterate. PROOFS.md#descent, #rounding.
func (o *Oracle) descentSensitivity(d oracle.Descent, l2 float64) (sens, reach float64) {
	f, m := o.cfg.Model.Facts(), o.perPass(d)
	steps := d.Passes * m
	up := 1 + float64(steps)*0x1p-49 // covers the rounding of this function itself
	for t := 1; t <= steps; t++ {
		eta := stepSize(d, l2, t)
		reach = max(reach, math.Abs(1-eta*l2)*reach+eta*f.Lipschitz*(1+0x1p-20))
	}
	reach = 2 * reach * up // twice: room for all rounding, which is less by far
	batch := o.units
	if m > 1 {
		batch = d.Batch
	}
	off := o.gradientError(reach, batch)
	moved := make([]float64, m) // by a row in the batch of this number
	rounding, left := 0.0, 1.0  // left: what remains at the end of a distance after this step
	for t := steps; t >= 1; t-- {
		eta := stepSize(d, l2, t)
		moved[(t-1)%m] += left * eta * 2 * f.Lipschitz / o.size(d)
		rounding += left * 2 * (eta*off + 0x1p-50*(reach+eta*(f.Lipschitz+l2*reach)))
		// I − ηH, the spectrum of H in [λ, λ+β].
		left *= max(math.Abs(1-eta*l2), math.Abs(1-eta*(l2+f.Smooth))) + 0x1p-51
	}
	return (slices.Max(moved) + rounding) * up, reach
}

// gradientError bounds, in the ℓ2 norm, how far a mean of gradients as Local.plain computes it is from the true one,
// at parameters of norm up to reach, for a sum of n records and a divisor of at least as much. PROOFS.md#rounding, #units.
func (o *Oracle) gradientError(reach float64, n int) float64 {
	const unit = 0x1p-53
	f := o.cfg.Model.Facts()
	r := f.NormBound
	margin := unit * float64(o.cfg.Table.Dim+16) * reach * r
	slope := f.Smooth/(r*r)*(margin+4*unit) + float64(o.cfg.Model.Outputs()+16)*4*unit
	adds := 8.
	if k := o.cfg.Facts.UnitRows; k > 0 {
		n, adds = n*k, 9 // rows; and each is multiplied by its share
	}
	adds += float64(min(n, data.BlockRows)) + float64(n)/(data.BlockRows/2)
	return 1.01 * (r*slope + unit*adds*f.Lipschitz)
}
