package method

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/oracle"
)

// The noise up to which the columns of a table keep their curves, ν√d over 4s(1 − s), s the share of a class: the rarer
// one of two classes is, the fewer rows say what tells it from the other (docs/measurements/methods.md#a-rare-class).
const (
	rareWaves = 0.08
	rareBumps = 0.04
)

// setRare lets a run leave out its curves, if it chose all of them and its rule is free.
func (c *autoChoice) setRare(pub oracle.Public) {
	g := c.given
	given := slices.ContainsFunc(pub.Numeric, func(n oracle.Numeric) bool { return !n.Free })
	logistic := pub.Classes == 2 && pub.OneMargin && pub.StartLoss == math.Ln2 // without class weights
	if c.Rare = 0; c.FirstNoise > 0 && logistic && !given && g.Gradient.Clip == 0 && g.Rate == 0 && g.Momentum == 0 &&
		g.Center != CenterMean {
		c.Rare = rareWaves
		if pub.Numeric[0].Bumps > 0 {
			c.Rare = rareBumps
		}
	}
}

// unit is the standard deviation of the noise in a mean gradient of clip norm 1 that has what all steps have together.
func (m Auto) unit(pub oracle.Public) float64 {
	return math.Sqrt(Gradient{Clip: 1, Noise: m.Gradient.Noise}.Variance(pub) / float64(m.Steps))
}

// rare says whether the noisy share of a class leaves too much noise for curves.
func (m Auto) rare(f *first) bool {
	return m.Rare > 0 && m.unit(f.pub)*math.Sqrt(perClass(f.pub)) > m.Rare*4*f.share[0]*f.share[1]
}

// straight is m for rows of lines alone, of those facts: their clip norm and their time, for the same steps and the
// same noise multiplier. They are not centered: gradients of the rare class are clipped and those of the other are not,
// so that what the center is off would have a part in their sum.
func (m Auto) straight(pub oracle.Public, obj Objective) Auto {
	c := m.facts(pub, obj)
	c.given = Auto{}
	c.weigh(m.unit(pub))
	c.walk(pub)
	return c.Auto
}
