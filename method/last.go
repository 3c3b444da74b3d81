package method

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

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
	lastBound  = 6.0  // oracle.Margins.Bound, at least
	lastReach  = 0.1  // the deviation of the slope in a factor, over the rows, up to which the bound follows margins
	lastWeight = 0.5  // oracle.Margins.Weight
	lastFactor = 0.5  // deviation of the law of the factor, over the factor
	lastOffset = 1.0  // deviation of the law of an offset
	lastMedian = 0.8  // of the best factors of models of more than two classes
	lastClear  = 2.0  // deviations of its noise that the curvature of a factor has at least
)

// A Made is the model that a finished run makes of its iterates by itself: their tail average, smoothed, and brought to
// the probabilities that its last release shows.
type Made struct {
	W      []float64
	Offset []float64 // of margins, as Step.Offset
	Noise  float64   // as ParameterNoise
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
	if c.Last = LastMargins; !pub.OneMargin {
		c.LastMedian = lastMedian
	}
	if pub.Classes > 2 {
		c.LastReach = lastReach
	}
}

// finish makes the model of w, the tail average of a run that ended with st, after the last release where there is one.
// m is as it was chosen, for rows that are not centered; chosen are the facts of the features that rows have. nil: the
// run diverged, or it stands where it began, and its output is the model.
func (m Auto) finish(ctx context.Context, o oracle.Oracle, obj Objective, factor *MarginFactor, w []float64,
	chosen oracle.Public, st Step) (*Made, error) {
	pub, q := o.Public(), m.lastQuery()
	m.Smooth(w, pub, obj, st)
	size := floats.Dot(w, w)
	if !(size > 0) || math.IsInf(size, 1) {
		return nil, nil
	}
	noise, clear := m.ParameterNoise(pub, obj, st), 0.0
	if st.Center != nil {
		m, _ = m.around(pub, obj, st.Center)
	}
	expected := 1 - math.Min(1, float64(chosen.Dim)*m.NoiseVariance(pub, obj.convex())/size)/2
	switch {
	case m.Factor > 0:
		expected = m.Factor
	case factor != nil:
		expected = factor.Of(w)
	case m.LastMedian > 0: // known noise says too much where the loss curves, and nothing of clipping
		expected, clear = math.Sqrt(expected*m.LastMedian), lastClear
	}
	shifts := make([]float64, pub.Margins())
	if n := len(st.Center); n > 0 {
		for k := range shifts {
			shifts[k] = -floats.Dot(w[k*n:(k+1)*n], st.Center)
		}
	}
	floats.Scale(expected, w)
	floats.Scale(expected, shifts)
	offsets := make([]float64, len(shifts))
	offsets[0] = st.Shift
	if m.LastNoise == 0 {
		floats.Add(shifts, offsets)
		return &Made{W: w, Offset: something(shifts), Noise: expected * noise}, nil
	}
	a, rows, deviation := 1.0, float64(pub.Rows), m.LastNoise*q.Sensitivity(pub)
	// Twice the length that margins have of a row that lies in all directions alike: beyond the bound a factor's error
	// does not show.
	long := 2 * pub.NormBound * norm2(w) / math.Sqrt(float64(chosen.Features()))
	q.Bound = math.Max(q.Bound, math.Min(long, m.LastReach*rows/deviation))
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return nil, err
	}
	answer, err := b.Margins(q, slices.Concat(w, shifts, []float64{1}, offsets))
	if err != nil {
		return nil, err
	}
	if pub.OneMargin {
		loose := lastOffset
		if m.ShareNoise > 0 {
			loose = math.Hypot(shareOffset, m.oddsDeviation(pub, st.Shift))
		}
		a, offsets[0] = calibrated(answer, rows, deviation, q.Bound, 1, st.Shift, lastFactor, loose)
	} else { // its own offsets of classes are near 0
		a, _ = calibratedClasses(answer, rows, deviation, q.Bound, 1, offsets, lastFactor, lastOffset, clear)
	}
	floats.Scale(a, w)
	floats.AddScaled(offsets, a, shifts)
	return &Made{W: w, Offset: something(offsets), Noise: expected * a * noise}, nil
}
