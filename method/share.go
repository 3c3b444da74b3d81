package method

import (
	"context"
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/sample"
)

// Where predictions of two classes begin: at the log-odds of the noisy share of class 1, which a release before the
// gradients counts. Rows less their noisy mean, their intercept too, then have no part in which class is more frequent:
// a model that noise decides can be drawn toward the share (docs/measurements/methods.md#the-share-of-a-class).
const (
	shareShare  = 0.03 // of the budget, of μ²
	shareMost   = 0.2  // of it, where the deviation of the share would be above shareSure otherwise
	shareSure   = 0.05
	shareLoud   = 0.03 // ν√d from which on a run begins there
	shareNoise  = 1.5  // κ of such a run: noise that may gather in a margin
	shareFade   = 0.05 // ν√d with which margins are halved
	shareOffset = 0.3  // deviation of the law of an offset beside that of the noise in the log-odds
	leastOdds   = 1e-3 // of a share, at least, and at most that much below 1
)

// shareable says whether a run can begin at the share of a class: it centers rows, and its loss is that of the
// log-odds, for each record alike.
func (c *autoChoice) shareable(pub oracle.Public) bool {
	return c.centerable(pub) && c.Center != CenterNone && c.Fallback != FallbackClass && pub.OneMargin &&
		pub.Classes == 2 && pub.StartLoss == math.Ln2 && pub.UnitRows == 0 && pub.Intercept > 0 && pub.Owners == 0 &&
		len(pub.Numeric) == 0 && c.Gradient.Clipping != ByValue && c.given.Gradient.Noise == 0
}

// setShare begins a run at the share of a class. one is the noise of a mean gradient of clip norm 1 that takes the
// whole budget, delta the sensitivity of its sum.
func (c *autoChoice) setShare(pub oracle.Public, one, delta float64) {
	if !c.shareable(pub) || one/math.Sqrt(1-shareShare-centerShare)*math.Sqrt(c.dim) < shareLoud {
		return
	}
	c.most = shareNoise
	c.ShareNoise = one * float64(pub.Rows) / delta
	whole := c.shareDeviation(pub) / shareSure
	c.sharePart = math.Min(shareMost, math.Max(shareShare, whole*whole))
	c.ShareNoise /= math.Sqrt(c.sharePart)
}

// setFactor chooses what the margins of such a run are multiplied by, once ν is known.
func (c *autoChoice) setFactor(pub oracle.Public) {
	if c.ShareNoise > 0 && pub.Calibrated && !c.RawMargins {
		c.Factor = 1 / (1 + c.nu*math.Sqrt(c.dim)/shareFade)
	}
}

// atShare says where predictions begin.
func (c *autoChoice) atShare(pub oracle.Public) string {
	return fmt.Sprintf("share: predictions begin at the share of class 1, released with %.2g of the budget and noise of %.3g, as ν√d is at least %g and no column has a curve",
		c.sharePart, c.shareDeviation(pub), shareLoud)
}

// shareCost is the event of a count of class 1, on all rows: of the answers of a model that always says 1.
func shareCost(pub oracle.Public, noise float64) privacy.Event {
	return pub.Cost(sample.Full{}, []oracle.Query{signedWrong(noise)})
}

// askShare asks for the share of class 1, and returns its log-odds.
func (m Auto) askShare(ctx context.Context, o oracle.Oracle) (float64, error) {
	pub, q := o.Public(), signedWrong(m.ShareNoise)
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return 0, err
	}
	always := make([]float64, pub.Dim+1)
	always[pub.Dim] = 1 // a margin of 1 for every row
	others, err := b.Loss(q, always)
	if err != nil {
		return 0, err
	}
	return logOdds(0.5-others, m.shareDeviation(pub)), nil
}

// shareDeviation is the deviation of the noise in the share of class 1.
func (m Auto) shareDeviation(pub oracle.Public) float64 {
	return m.ShareNoise * signedWrong(m.ShareNoise).Sensitivity(pub.Adjacency) / float64(pub.Rows)
}

// oddsDeviation is about that of the noise in the log-odds of the share.
func (m Auto) oddsDeviation(pub oracle.Public, odds float64) float64 {
	p := 1 / (1 + math.Exp(-odds))
	return m.shareDeviation(pub) / (p * (1 - p))
}

// logOdds of a noisy share, which stays away from 0 and 1 by half the deviation of its noise.
func logOdds(share, deviation float64) float64 {
	least := math.Min(0.5, math.Max(leastOdds, deviation/2))
	if share = math.Min(1-least, math.Max(least, share)); math.IsNaN(share) {
		share = 0.5
	}
	return math.Log(share / (1 - share))
}
