package method

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// The ways of method auto to minimize the squared loss.
const (
	SolveGradients  = "gradients"
	SolveStatistics = "statistics"
)

// labelShare is the part of the budget that the mean label takes: of μ², which adds up over Gaussian noise on all rows.
const labelShare = 0.05

// The width of labels in a run: spreadWide times how far they are from their mean, by a release of spreadShare of the
// budget (docs/measurements/methods.md#how-widely-labels-lie).
const (
	spreadShare = 0.01
	spreadWide  = 5.0
)

// labelScales: a label is taken to lie within as many of pub.LabelScale on both sides of the mean together.
const labelScales = 12

// labelWidth is how widely labels lie: the width of their bounds, or less where a person wrote what is typical.
func labelWidth(pub oracle.Public) float64 {
	if pub.LabelScale > 0 {
		return math.Min(pub.LabelSpan, labelScales*pub.LabelScale)
	}
	return pub.LabelSpan
}

// labelQuery asks for the mean label, above the lower bound of labels, with that noise multiplier; 0: without noise.
func labelQuery(pub oracle.Public, noise float64) oracle.Loss {
	q := oracle.Loss{Bound: pub.LabelSpan, Noise: mech.None{}, Labels: true}
	if noise > 0 {
		q.Noise = mech.Gaussian{Sigma: noise}
	}
	return q
}

// labelCost is the event of labelQuery, on all rows.
func labelCost(pub oracle.Public, noise float64) privacy.Event {
	return pub.Cost(sample.Full{}, []oracle.Query{labelQuery(pub, noise)})
}

// askLabel asks for the mean label and brings it within the bounds of labels.
func askLabel(ctx context.Context, o oracle.Oracle, noise float64) (float64, error) {
	pub, q := o.Public(), labelQuery(o.Public(), noise)
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return 0, err
	}
	above, err := b.Loss(q, make([]float64, pub.Dim))
	if err != nil {
		return 0, err
	}
	if !(above > 0) { // NaN, too
		above = 0
	}
	return pub.LabelMin + math.Min(above, pub.LabelSpan), nil
}

// spreadQuery asks for the mean square of how far labels are from their mean, each at most that at which their width is
// the known one.
func spreadQuery(pub oracle.Public, noise float64) oracle.Loss {
	far := labelWidth(pub) / spreadWide
	return oracle.Loss{Bound: far * far, Noise: mech.Gaussian{Sigma: noise}, Labels: true, Squares: true}
}

// spreadCost is its event, on all rows.
func spreadCost(pub oracle.Public, noise float64) privacy.Event {
	return pub.Cost(sample.Full{}, []oracle.Query{spreadQuery(pub, noise)})
}

// askWidth asks how far labels are from a released mean, and returns how widely they lie: a deviation of the noise more
// than the answer says, and no more than is known.
func (m Auto) askWidth(ctx context.Context, o oracle.Oracle, mean float64) (float64, error) {
	pub, q := o.Public(), spreadQuery(o.Public(), m.SpreadNoise)
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return 0, err
	}
	at := make([]float64, pub.Dim+1)
	at[pub.Dim] = mean
	square, err := b.Loss(q, at)
	if err != nil {
		return 0, err
	}
	deviation := q.Bound * m.SpreadNoise / float64(pub.Rows)
	if !(square > 0) { // NaN, too
		square = 0
	}
	return spreadWide * math.Sqrt(math.Min(q.Bound, square+deviation)), nil
}

// within is m for labels that lie as widely as a release says, and the facts with that: its clip norm is a part of
// their width, and its length is one over which noise moves predictions by a part of it.
func (m Auto) within(pub oracle.Public, width float64) (Auto, oracle.Public) {
	if width > 0 {
		m.Gradient.Clip *= width / labelWidth(pub)
		pub.LabelScale = width / labelScales
	}
	return m, pub
}

// startOf is what predictions begin at without a mean label: the middle of the label's bounds.
func startOf(pub oracle.Public) float64 {
	if !pub.Shifted {
		return 0
	}
	return pub.LabelMin + pub.LabelSpan/2
}

// setLabel asks for the mean label where its noise is short, and, if columns have curves, for how far labels are from
// it. one is the noise of a mean gradient of clip norm 1 that takes the whole budget, delta that norm's sensitivity.
func (c *autoChoice) setLabel(pub oracle.Public, one, delta float64) {
	if !pub.Shifted || c.Gradient.Batch != 0 {
		return
	}
	whole := one * float64(pub.Rows) / delta
	if c.FirstNoise == 0 {
		noise := whole / math.Sqrt(labelShare)
		c.label = noise / float64(pub.Rows)
		if c.given.Gradient.Noise == 0 && c.label <= autoLabel {
			c.LabelNoise, c.Shift = noise, 0
		}
	}
	if c.quad && len(pub.Numeric) > 0 && c.given.Gradient.Clip == 0 && (c.LabelNoise > 0 || c.FirstNoise > 0) {
		noise := whole / math.Sqrt(spreadShare)
		if spreadQuery(pub, noise).Validate() == nil { // its bound, a square, is a number
			c.SpreadNoise = noise
		}
	}
}

// ofLabels says what is asked of labels.
func (c *autoChoice) ofLabels() (said []string) {
	if c.quad && c.label > 0 {
		begin := fmt.Sprintf("predictions begin at %.6g, the middle of the label's bounds", c.Shift)
		if c.LabelNoise > 0 {
			begin = "predictions begin there"
		}
		said = append(said, fmt.Sprintf("label: its mean, released with %g of the budget, would have noise of %.3g of the width of its bounds; %s",
			labelShare, c.label, begin))
	}
	if c.SpreadNoise > 0 {
		said = append(said, fmt.Sprintf("width: how far labels are from their mean is released with %g of the budget; "+
			"they count as %g times as wide as that from then on, and the clip norm is as much smaller", spreadShare, spreadWide))
	}
	return said
}

// skewed is m where the mean label is near a bound: most labels lie there then, and few far on the other side. Clipping
// takes from these alone, and would draw predictions toward the median; so the clip norm is larger, the more so with
// less noise, and the run shorter along the gradient, as it would have been chosen for that norm.
func (m Auto) skewed(pub oracle.Public, mean float64) Auto {
	near := math.Min(mean-pub.LabelMin, pub.LabelMin+pub.LabelSpan-mean)
	// nothing is longer than the latter
	norm := math.Min(m.Raise*near, pub.NormBound*math.Min(labelWidth(pub), pub.LabelSpan-near))
	if near > pub.LabelSpan/3 || norm <= m.Gradient.Clip {
		return m
	}
	forget := (1 - m.Momentum) * norm / m.Gradient.Clip
	m.Gradient.Clip, m.Rate, m.Momentum = norm, m.Rate/math.Max(1, forget), math.Max(0, 1-forget)
	return m
}

// statistics is AdaSSP as m is configured for it.
func (m Auto) statistics() AdaSSP { return AdaSSP{Share: m.MatrixShare, Gradient: m.Gradient} }

// solve sets the field Solve, and says whether the squared loss is solved by statistics. It is, if no field is set that
// these do not take, where their ridge hides little of the curvature, d of whose eigenvalues add up to at most R².
func (c *autoChoice) solve(pub oracle.Public, obj Objective, terms Terms) (bool, error) {
	way, g := c.Solve, c.given.Gradient
	if err := (Word{"solve", &way, []string{SolveGradients, SolveStatistics}}).check(); err != nil {
		return false, err
	}
	only := Auto{Solve: way, RawMargins: c.given.RawMargins, RawBumps: c.given.RawBumps,
		Gradient: Gradient{Off: g.Off, Laplace: g.Laplace}}
	if way == SolveStatistics {
		only.Gradient.Clip, only.Gradient.Noise = g.Clip, g.Noise
	}
	switch able := c.quad && pub.Shifted; {
	case way == SolveStatistics && !able:
		return false,
			fmt.Errorf("solve: found %s; choose %s, as sums of rows and labels are for the model linear, and for a run of its own", way, SolveGradients)
	case way == SolveStatistics && c.given != only:
		return false,
			errors.New("solve: found statistics beside fields of steps, centers or batches; set only clip and noise_multiplier beside it")
	case way == SolveGradients || !able || way == "" && (c.given != only || g.Off || g.Laplace):
		return false, nil
	}
	m, err := AdaSSP{Gradient: only.Gradient}.Configure(pub, obj, terms)
	if err != nil {
		if way == "" {
			err = nil // gradients are less particular, and say what is wrong with them
		}
		return false, err
	}
	s := m.(AdaSSP)
	c.ridge = s.ridge(pub) * c.dim / (pub.NormBound * pub.NormBound)
	if way == "" && c.ridge > autoExact {
		return false, nil
	}
	c.Auto = Auto{Solve: SolveStatistics, Steps: 1, MatrixShare: s.Share, Gradient: s.Gradient,
		RawMargins: c.given.RawMargins, RawBumps: c.given.RawBumps}
	return true, nil
}
