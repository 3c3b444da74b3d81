package method

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
)

// outlookLoud is the known noise in a margin above which a person is warned (docs/measurements/methods.md).
const outlookLoud = 1.5

// outlookMost is by how much an ε that would do may be above that of the budget, to be named.
const outlookMost = 1000

// marginNoise is the standard deviation of the known noise in the margin of a row of norm R at the output, if rows
// spread evenly over all d directions: the loss curves by L/d in each, its clipped gradients by about as much less as C
// is below the largest gradient. unit is the noise of a mean gradient of clip norm 1 that takes the whole budget.
func (m Auto) marginNoise(pub oracle.Public, obj Objective, unit float64) float64 {
	c := m.facts(pub, obj)
	c.setCenter(pub, unit, 1)
	unit /= math.Sqrt(c.left())
	c.weigh(unit)
	c.walk(pub)
	set := unit * math.Sqrt(float64(c.Steps)) * c.Gradient.Clip // of a step's mean gradient
	return c.row * set * math.Sqrt(c.Auto.response(c.Gradient.Clip/c.whole*c.smooth/c.dim))
}

// foreseen says whether marginNoise is what a run has.
func (m Auto) foreseen(pub oracle.Public) bool {
	return pub.OneMargin && pub.Classes == 2 && m.Gradient.Noise == 0 && m.Gradient.Batch == 0
}

// foresee computes the noise in a margin, and notes it where it is loud, with the ε and the number of features with
// which it would not be.
func (c *autoChoice) foresee(pub oracle.Public, obj Objective, terms Terms, unit float64) error {
	if !c.given.foreseen(pub) {
		return nil
	}
	c.expected = c.given.marginNoise(pub, obj, unit)
	if math.IsNaN(c.expected) || math.IsInf(c.expected, 0) { // by a step size that is given
		c.expected = 0
	}
	if c.expected <= outlookLoud {
		return nil
	}
	c.MarginNoise = digits(c.expected, math.Round)
	quiet := func(dim int, unit float64) bool {
		with := pub
		with.Dim = dim
		return c.given.marginNoise(with, obj, unit) <= outlookLoud
	}
	few, many := 0, pub.Dim // few features are not loud, many are
	for many-few > 1 {
		if middle := (few + many) / 2; quiet(middle, unit) {
			few = middle
		} else {
			many = middle
		}
	}
	c.QuietFeatures = few
	low, high := 1.0, outlookMost+0.0 // times ε
	for high > 1.02*low {
		with, middle := terms, math.Sqrt(low*high)
		with.Budget.Epsilon *= middle
		unit, err := c.given.one(pub, with)
		if err != nil {
			return err
		}
		if quiet(pub.Dim, unit) {
			high = middle
		} else {
			low = middle
		}
	}
	if high < outlookMost {
		c.QuietEpsilon = digits(high*terms.Budget.Epsilon, math.Ceil)
	}
	return nil
}

// digits rounds a number above 0 to two digits.
func digits(v float64, round func(float64) float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return round(v/unit*(1-1e-12)) * unit
}

// Cautions says where noise wins, as far as public numbers tell, and which columns are left out for it.
func (m Auto) Cautions(pub oracle.Public, _ Objective) (cautions []string) {
	if m.Columns > 0 {
		cautions = append(cautions,
			fmt.Sprintf("columns of the schema that are used: the first %d of %d; with all, noise in a margin would be about %.2g", m.Columns, m.OfColumns, m.AllNoise))
	}
	if m.MarginNoise == 0 {
		return cautions
	}
	text := fmt.Sprintf("noise in a margin is about %.2g: at this ε the table is too small for %d features", m.MarginNoise,
		pub.Dim)
	switch {
	case m.QuietEpsilon > 0 && m.QuietFeatures > 0:
		text += fmt.Sprintf("; choose ε ≥ %.2g or at most %d features", m.QuietEpsilon, m.QuietFeatures)
	case m.QuietEpsilon > 0:
		text += fmt.Sprintf("; choose ε ≥ %.2g", m.QuietEpsilon)
	}
	return append(cautions, text)
}
