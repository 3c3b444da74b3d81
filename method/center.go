package method

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// What rows are taken relative to.
const (
	CenterMean = "mean" // their noisy mean
	CenterNone = "none" // nothing
)

// The part of the budget that the mean row takes, of one margin and of those of classes: of μ², which adds up over
// Gaussian noise on all rows.
const (
	centerShare        = 0.1
	centerClassesShare = 0.05
)

// leastPart: rows less their mean count as at least half as long as rows are, which the noise in the mean may make
// them.
const leastPart = 0.25

// centerQuery asks for the mean row with that noise multiplier.
func centerQuery(pub oracle.Public, noise float64) oracle.Mean {
	return oracle.Mean{Clip: pub.NormBound, Noise: mech.Gaussian{Sigma: noise}}
}

// centerCost is the event of centerQuery, on all rows.
func centerCost(pub oracle.Public, noise float64) privacy.Event {
	return pub.Cost(sample.Full{}, []oracle.Query{centerQuery(pub, noise)})
}

// askCenter asks for the mean row and makes it a center.
func (m Auto) askCenter(ctx context.Context, o oracle.Oracle) ([]float64, error) {
	pub, q := o.Public(), centerQuery(o.Public(), m.CenterNoise)
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return nil, err
	}
	released, err := b.Mean(q)
	if err != nil {
		return nil, err
	}
	center := slices.Clone(released)
	m.toCenter(pub, center, Gradient{Clip: q.Clip, Noise: m.CenterNoise}.Variance(pub))
	return center, nil
}

// toCenter makes a center of a noisy mean row, whose numbers have noise of that variance. Every row has an intercept,
// which stays in rows unless predictions begin at the share of a class: that has its part.
func (m Auto) toCenter(pub oracle.Public, mean []float64, variance float64) {
	one := 0.0
	if pub.Intercept > 0 {
		one, mean[pub.Intercept-1] = mean[pub.Intercept-1], 0
	}
	shrink(mean, variance)
	if m.ShareNoise > 0 {
		mean[pub.Intercept-1] = math.Min(pub.NormBound, math.Max(0, one)) // 0 if it is not a number
	}
	pub.Center(mean)
}

// around is m for rows less a center. The mean of ‖x − m‖² over rows of norm up to R is at most R² − ‖m‖², m their
// mean: what was chosen for rows of norm R is scaled as the rule scales with the length of rows, which is √part of R.
func (m Auto) around(pub oracle.Public, obj Objective, center []float64) (with Auto, part float64) {
	part = math.Max(leastPart, 1-kern.SumSquares(center)/(pub.NormBound*pub.NormBound))
	if !m.Shorter {
		return m, part
	}
	smooth := autoKinked * pub.NormBound * pub.NormBound
	if pub.Smooth.Finite() {
		smooth = float64(pub.Smooth)
	}
	m.Gradient.Clip *= math.Sqrt(part)
	m.Rate *= (smooth + obj.smooth()) / (part*smooth + obj.smooth())
	return m, part
}

// shrink brings a noisy vector closer to 0 by what its noise adds to its length (James and Stein 1961, positive part):
// to 0 where it may be all noise. variance is that of the noise in a number.
func shrink(v []float64, variance float64) {
	if len(v) < 3 {
		return
	}
	square := 0.0
	for _, x := range v {
		square += x * x
	}
	factor := math.Max(0, 1-float64(len(v)-2)*variance/square)
	for j := range v {
		v[j] *= factor
	}
}

// checkCenter says what is wrong with the field, and whether it may be set.
func (c *autoChoice) checkCenter(pub oracle.Public) error {
	switch {
	case c.Center != "" && c.Center != CenterMean && c.Center != CenterNone:
		return fmt.Errorf("center: found %q; choose %s or %s", c.Center, CenterMean, CenterNone)
	case c.Center == CenterMean && !c.centerable(pub):
		return fmt.Errorf("center: found %s; choose %s, as rows are centered only for linear models over rows of numbers, with Gaussian noise and without batch", c.Center, CenterNone)
	}
	return nil
}

// centerable says whether rows can be centered.
func (c *autoChoice) centerable(pub oracle.Public) bool {
	return pub.Centered && !c.Gradient.Off && !c.Gradient.Laplace && c.Gradient.Batch == 0
}

// longestCenter is the length of the noise in the mean row, over the bound on a row, up to which rows are centered by
// default; 0: never.
func (c *autoChoice) longestCenter(pub oracle.Public) float64 {
	switch {
	case pub.Classes == 2 && pub.OneMargin, pub.Classes > 0 && len(pub.Numeric) > 0:
		return autoCenter
	case c.quad && pub.Shifted && len(pub.Numeric) > 0:
		return autoNumberCenter
	}
	return 0
}

// setCenter chooses where the field is free: rows are centered where predictions begin at the share of a class, or
// where the noise in their mean is short beside a row, so that the point that is taken from all of them is near their
// mean. one is the noise of a mean gradient of clip norm 1 that takes the whole budget, delta the sensitivity of its
// sum.
func (c *autoChoice) setCenter(pub oracle.Public, one, delta float64) {
	if !c.centerable(pub) {
		return
	}
	if c.centerPart = centerShare; pub.Margins() > 1 {
		c.centerPart = centerClassesShare
	}
	noise := one / math.Sqrt(c.centerPart)
	c.long = noise * math.Sqrt(rowFeatures(pub)) // over the bound on a row
	if c.FirstNoise > 0 {
		c.long = c.firstLength(pub)
	}
	if c.Center == "" && c.given.Gradient.Noise == 0 && (c.long <= c.longestCenter(pub) || c.ShareNoise > 0) {
		c.Center = CenterMean
	}
	if c.Center == CenterMean {
		c.Shorter = c.given.Rate == 0 && c.given.Gradient.Clip == 0
		if c.FirstNoise == 0 {
			c.CenterNoise = noise * float64(pub.Rows) / delta
		}
	}
}
