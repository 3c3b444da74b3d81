package method

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// What stands in for a model that loses against it.
const (
	FallbackClass = "class" // the more frequent class
	FallbackNone  = "none"  // nothing
)

// The rule, measured on tables (docs/measurements/methods.md). The counts are asked where the known noise in a margin
// is large enough to decide classes. They take a share of the budget: fallbackShare times the square of what a record
// moves a count by, and where their own noise would be large beside the rows, more, up to fallbackShare.
const (
	fallbackShare = 0.05
	fallbackNoise = 0.8 // noise in a margin from which on
	fallbackLoud  = 0.1 // and the deviation of the difference of two counts is at most this part of the rows
)

// countQuery asks for the share of rows that a model gets wrong, less a half where FallbackSigned.
func (m Auto) countQuery() oracle.Loss {
	if m.FallbackSigned {
		return signedWrong(m.FallbackNoise)
	}
	return oracle.Loss{Bound: 1, Noise: mech.Gaussian{Sigma: m.FallbackNoise}, Wrong: true}
}

// signedWrong counts wrong answers as ½ and right ones as −½.
func signedWrong(noise float64) oracle.Loss {
	return oracle.Loss{Bound: 0.5, Noise: mech.Gaussian{Sigma: noise}, Wrong: true, Signed: true}
}

// countQueries are of the model, and of class 1 for every row.
func (m Auto) countQueries() []oracle.Query {
	return []oracle.Query{m.countQuery(), m.countQuery()}
}

// countNoise is the deviation of the difference of the counts, over the rows.
func (m Auto) countNoise(pub oracle.Public) float64 {
	return math.Sqrt2 * m.FallbackNoise * m.countQuery().Sensitivity(pub.Adjacency) / float64(pub.Rows)
}

// checkFallback says what is wrong with the field, and whether it may be set.
func (c *autoChoice) checkFallback(pub oracle.Public) error {
	switch {
	case c.Fallback != "" && c.Fallback != FallbackClass && c.Fallback != FallbackNone:
		return fmt.Errorf("fallback: found %q; choose %s or %s", c.Fallback, FallbackClass, FallbackNone)
	case c.Fallback == FallbackClass && !c.countable(pub):
		return fmt.Errorf("fallback: found %s; choose %s, as wrong answers are counted only for two classes by one margin over rows of numbers, with Gaussian noise, without batch and without class weights", c.Fallback, FallbackNone)
	}
	return nil
}

// countable says whether wrong answers can be counted, and count alike: a loss that starts at the same value for all
// records has no class weights.
func (c *autoChoice) countable(pub oracle.Public) bool {
	return c.centerable(pub) && pub.OneMargin && pub.Classes == 2 && pub.StartLoss > 0
}

// setFallback chooses where the field is free; one and delta are as in setCenter.
func (c *autoChoice) setFallback(pub oracle.Public, one, delta float64) {
	if !c.countable(pub) {
		return
	}
	m := Auto{FallbackSigned: true}
	moves := m.countQuery().Sensitivity(pub.Adjacency)
	whole := one * float64(pub.Rows) / delta // the noise multiplier of one count that takes the whole budget
	at := func(share float64) float64 {
		m.FallbackNoise = whole / math.Sqrt(share/2)
		return m.countNoise(pub)
	}
	c.countShare = fallbackShare * moves * moves
	if loud := at(c.countShare) / fallbackLoud; loud > 1 {
		c.countShare = math.Min(fallbackShare, c.countShare*loud*loud*(1+1e-9))
	}
	c.counts = at(c.countShare)
	if c.Fallback == "" && c.given.Gradient.Noise == 0 && c.counts <= fallbackLoud && c.expected >= fallbackNoise {
		c.Fallback = FallbackClass
	}
	if c.Fallback == FallbackClass {
		c.FallbackNoise, c.FallbackSigned = m.FallbackNoise, true
	}
}

// orClass ends a run: it counts the rows that w, its output, and each class for every row get wrong. Where w loses
// by more than the deviation of that difference, the step leans to the class.
func (m Auto) orClass(ctx context.Context, o oracle.Oracle, w []float64, st Step) (Step, error) {
	pub, q := o.Public(), m.countQuery()
	at := append(slices.Clone(w), floats.Sum(st.Offset(w)))
	for _, v := range at {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return st, nil // the run diverged
		}
	}
	b, err := o.Batch(ctx, sample.Full{}, m.countQueries()...)
	if err != nil {
		return st, err
	}
	wrong, err := b.Loss(q, at)
	if err != nil {
		return st, err
	}
	clear(at)
	at[len(w)] = 1 // a margin of 1 for every row
	others, err := b.Loss(q, at)
	if err != nil {
		return st, err
	}
	if m.FallbackSigned {
		wrong, others = wrong+0.5, others+0.5
	}
	class, least := 1.0, others
	if others > 0.5 {
		class, least = -1, 1-others
	}
	if wrong-least > m.countNoise(pub) {
		st.Lean = class * leanMargin * (pub.NormBound + norm2(st.Center))
		st.Share = math.Min(mostShare, math.Max(leastShare, 1-least))
	}
	return st, nil
}

// A leaning model has no margin of the other sign, and a class that was chosen has a share of the rows within these.
const (
	leanMargin = 1 + 1e-6
	leastShare = 0.55
	mostShare  = 0.99
)
