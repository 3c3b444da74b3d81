package method

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// What ends a run of classes.
const (
	LastMargins = "margins" // a release of what the model's probabilities are off
	LastNone    = "none"
)

// The last release of a run of classes, measured on tables (docs/measurements/methods.md#the-last-release).
const (
	lastShare  = 0.03 // of the budget, of μ²
	lastLoud   = 0.2  // the deviation of the sum of what probabilities are off, over the rows, up to which there is one
	lastBound  = 6.0  // oracle.Margins.Bound
	lastWeight = 0.5  // oracle.Margins.Weight
	lastFactor = 0.5  // deviation of the law of the factor, over the factor
	lastOffset = 1.0  // deviation of the law of an offset
)

// A Made is the model that a finished run makes of its iterates by itself: their tail average, smoothed, and brought to
// the probabilities that its last release shows.
type Made struct {
	W      []float64
	Offset float64 // of all margins
	Noise  float64 // as ParameterNoise
}

// lastQuery asks how far the model's probabilities are from the labels.
func (m Auto) lastQuery() oracle.Margins {
	return oracle.Margins{Bound: lastBound, Weight: lastWeight, Noise: mech.Gaussian{Sigma: m.LastNoise}}
}

// lastCost is its event, on all rows.
func (m Auto) lastCost(pub oracle.Public) privacy.Event {
	return pub.Cost(sample.Full{}, []oracle.Query{m.lastQuery()})
}

// checkLast says what is wrong with the field, and whether it may be set.
func (c *autoChoice) checkLast(pub oracle.Public) error {
	if err := (Word{"last", &c.Last, []string{LastMargins, LastNone}}).check(); err != nil {
		return err
	}
	if c.Last == LastMargins && !c.lastable(pub) {
		return fmt.Errorf("last: found %s; choose %s, as a run ends so for logistic and softmax models without class weights, with Gaussian noise and the tail average, and with none of fallback: class, noise_multiplier, batch, clipping: value and raw_margins",
			LastMargins, LastNone)
	}
	return nil
}

// lastable says whether a run can end with a release.
func (c *autoChoice) lastable(pub oracle.Public) bool {
	return pub.Calibrated && pub.StartLoss > 0 && !c.RawMargins && c.given.Fallback != FallbackClass &&
		c.given.Gradient.Noise == 0 && c.Gradient.Batch == 0 && c.Gradient.Clipping != ByValue && !c.Gradient.Off &&
		!c.Gradient.Laplace
}

// setLast ends a run of classes with a release where its noise is short beside the rows. one is the noise of a mean
// gradient of clip norm 1 that takes the whole budget, delta the sensitivity of its sum.
func (c *autoChoice) setLast(pub oracle.Public, one, delta float64) {
	if c.Last == LastNone || !c.lastable(pub) {
		return
	}
	c.LastNoise = one * float64(pub.Rows) / delta / math.Sqrt(lastShare)
	if c.off = c.LastNoise * c.lastQuery().Sensitivity(pub) / float64(pub.Rows); c.Last == "" && c.off > lastLoud {
		c.LastNoise = 0
		return
	}
	c.Last = LastMargins
}

// endWith runs the steps of a run that ends with a release, and makes its model.
func (m Auto) endWith(ctx context.Context, o oracle.Oracle, obj Objective, center []float64,
	yield func(Step) bool) (Step, error) {
	pub := o.Public()
	output, factor, goes := TailAverage.Averager(m.Steps, pub.Dim), m.marginFactor(pub, obj), true
	st, err := m.p1().ball(ctx, o, obj, m.Momentum, center, 0, func(st Step) bool {
		output.Add(st)
		if factor != nil {
			factor.Add(st)
		}
		goes = yield(st)
		return goes
	})
	if err != nil || !goes {
		return st, err
	}
	st.Made, err = m.make(ctx, o, obj, factor, st.Center, slices.Clone(output.W()))
	return st, err
}

// make asks for the last release and makes the model of the tail average w.
func (m Auto) make(ctx context.Context, o oracle.Oracle, obj Objective, factor *MarginFactor,
	center, w []float64) (*Made, error) {
	pub, q := o.Public(), m.lastQuery()
	if m.SmoothBumps {
		m.smooth(w, pub, obj, partOf(pub, center))
	}
	size := floats.Dot(w, w)
	if !(size > 0) || math.IsInf(size, 1) {
		return nil, nil // the run diverged, or there is nothing to bring to probabilities
	}
	expected := 1 - math.Min(1, float64(len(w))*m.NoiseVariance(pub, obj.convex())/size)/2
	if factor != nil {
		expected = factor.Of(w)
	}
	shifts := make([]float64, marginsOf(pub))
	if center != nil {
		shifts[0] = -floats.Dot(w, center)
	}
	floats.Scale(expected, w)
	floats.Scale(expected, shifts)
	offsets := make([]float64, len(shifts))
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return nil, err
	}
	answer, err := b.Margins(q, slices.Concat(w, shifts, []float64{1}, offsets))
	if err != nil {
		return nil, err
	}
	made, a, rows, deviation := &Made{W: w}, 1.0, float64(pub.Rows), m.LastNoise*q.Sensitivity(pub)
	if pub.OneMargin {
		a, offsets[0] = calibrated(answer, rows, deviation, q.Bound, 1, 0, lastFactor, lastOffset)
		made.Offset = a*shifts[0] + offsets[0]
	} else { // a model file has no offsets of classes, which are near 0
		a, _ = calibratedClasses(answer, rows, deviation, q.Bound, 1, offsets, lastFactor, lastOffset)
	}
	floats.Scale(a, w)
	made.Noise = expected * a * math.Sqrt(m.NoiseVariance(pub, 0))
	return made, nil
}

// marginsOf is how many margins a linear model of classes has.
func marginsOf(pub oracle.Public) int {
	if pub.OneMargin || pub.Classes == 0 {
		return 1
	}
	return pub.Classes
}

// partOf is the part of R² that the square of the norm of rows less a center is taken as; nil: all of it.
func partOf(pub oracle.Public, center []float64) float64 {
	return math.Max(leastPart, 1-kern.SumSquares(center)/(pub.NormBound*pub.NormBound))
}
