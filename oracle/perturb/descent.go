package perturb

import (
	"context"
	"math"
	"slices"

	"github.com/sottodp/sotto/oracle"
)

// mostSteps of a descent: the bounds on rounding are for no more.
const mostSteps = 1 << 27

// Descend runs gradient descent from w = 0, without noise: OutPert-GD, and with several batches
// OutPert-RSGD. sum sets g to the sum of the records' gradients at w over a batch; size divides it,
// for a smaller last batch too. With Average w ends as the mean of the iterates.
func Descend(ctx context.Context, w []float64, d oracle.Descent, l2, size float64, batches int,
	sum func(g, w []float64, batch int)) error {
	g, mean := make([]float64, len(w)), make([]float64, len(w))
	t := 0
	for range d.Passes {
		if err := ctx.Err(); err != nil {
			return err
		}
		for batch := range batches {
			t++
			eta := stepSize(d, l2, t)
			sum(g, w, batch)
			for j := range w {
				w[j] -= eta * (g[j]/size + l2*w[j])
				mean[j] += w[j]
			}
		}
	}
	if d.Average {
		for j, sum := range mean {
			w[j] = sum / float64(t)
		}
	}
	return nil
}

// Batches is how many batches of a pass there are of so many records.
func Batches(d oracle.Descent, records int) int {
	if d.Batch == 0 || d.Batch >= records {
		return 1
	}
	return (records + d.Batch - 1) / d.Batch
}

// Size divides the sum of a batch: the nominal batch.
func Size(d oracle.Descent, rows int) float64 {
	if d.Batch == 0 {
		return float64(rows)
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

// Descent bounds, in the ℓ2 norm, by how much replacing one record moves the last iterate, or their mean, and every
// iterate itself. PROOFS.md#descent, #rounding.
func (p Problem) Descent(d oracle.Descent, l2 float64) (sens, reach float64) {
	m := Batches(d, p.Records)
	steps := d.Passes * m
	up := 1 + float64(steps)*0x1p-49 // covers the rounding of this function itself
	for t := 1; t <= steps; t++ {
		eta := stepSize(d, l2, t)
		reach = max(reach, math.Abs(1-eta*l2)*reach+eta*p.Lipschitz*(1+0x1p-20))
	}
	reach = 2 * reach * up // twice: room for all rounding, which is less by far
	batch := p.Records
	if m > 1 {
		batch = d.Batch
	}
	off := p.GradientError(reach, batch)
	moved := make([]float64, m) // by a record in the batch of this number
	// left: what remains at the end of a distance after this step; of a mean, what it adds up to there.
	rounding, left, more := 0.0, 1.0, 0.0
	if d.Average {
		left, more = 1/float64(steps), 1/float64(steps)
		rounding = float64(steps+1) * 0x1p-51 * reach
	}
	for t := steps; t >= 1; t-- {
		eta := stepSize(d, l2, t)
		moved[(t-1)%m] += left * eta * 2 * p.Lipschitz / Size(d, p.Records)
		rounding += left * 2 * (eta*off + 0x1p-50*(reach+eta*(p.Lipschitz+l2*reach)))
		// I − ηH, the spectrum of H in [λ, λ+β].
		left = left*(max(math.Abs(1-eta*l2), math.Abs(1-eta*(l2+p.Smooth)))+0x1p-51) + more
	}
	return (slices.Max(moved) + rounding) * up, reach
}

// GradientError bounds, in the ℓ2 norm, how far a computed mean of gradients is from the true one,
// at parameters of norm up to reach, for a sum of n records and a divisor of at least as much.
// PROOFS.md#rounding; ../private/PROOFS.md#units.
func (p Problem) GradientError(reach float64, n int) float64 {
	const unit = 0x1p-53
	r := p.NormBound
	margin := unit * float64(p.Features+16) * reach * r
	slope := p.Smooth/(r*r)*(margin+4*unit) + float64(p.Outputs+16)*4*unit
	adds := 8.
	if k := p.UnitRows; k > 0 {
		n, adds = n*k, 9 // rows; and each is multiplied by its share
	}
	adds += float64(min(n, p.Block)) + float64(n)/(float64(p.Block)/2)
	return 1.01 * (r*slope + unit*adds*p.Lipschitz)
}
