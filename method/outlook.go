package method

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
)

// The known noise above which a person is warned (docs/measurements/methods.md): in a margin, in the difference of the
// margins of two of several classes, and in a prediction, over the width of labels.
const (
	outlookLoud      = 1.5
	outlookLoudLabel = 1. / labelScales
)

// outlookMost is by how much the ε and the rows that would do may be above those of a run, to be named.
const outlookMost = 1000

// outlookSlopes: labels less their predictions spread over about this part of the width of labels.
const outlookSlopes = 1. / 6

// An Outlook says that noise decides most of what a model predicts, and with what it would not. It follows from public
// facts, and is of a run of Auto, whatever the method: the smallest noise that is known for the budget.
type Outlook struct {
	Noise    float64 `json:"noise"`    // one standard deviation, in a margin or a prediction
	Features int     `json:"features"` // of the table
	// the smallest ε, and the smallest number of rows, that would do; 0: none up to outlookMost times those of the run
	Epsilon float64 `json:"epsilon,omitempty"`
	Rows    int     `json:"rows,omitempty"`
	Fewer   int     `json:"fewer,omitempty"` // the largest number of features that would do; 0: there is none
	Model   string  `json:"model,omitempty"` // that it is of, where it is not the run's; empty: it is
}

// marginNoise is the standard deviation of the known noise in the margin of a row of norm R at the output, if rows
// spread evenly over all d directions: the loss curves by L/d in each, its clipped gradients by about as much less as C
// is below the largest gradient. Of several classes it is that in the difference of two of them. unit is the noise of a
// mean gradient of clip norm 1 that takes the whole budget.
func (m Auto) marginNoise(pub oracle.Public, obj Objective, unit float64) float64 {
	c := m.facts(pub, obj)
	if m.Gradient.Laplace {
		unit = c.fewest(unit)
	} else {
		c.setCenter(pub, unit, 1)
		unit /= math.Sqrt(c.left())
		c.weigh(unit)
	}
	c.walk(pub)
	set := unit * math.Sqrt(float64(c.Steps)) * c.Gradient.Clip // of a step's mean gradient
	part, curve, pair := c.Gradient.Clip/c.whole, c.smooth, 1.0
	switch {
	case c.quad:
		part = math.Min(1, part/outlookSlopes)
	case pub.Classes > 2:
		curve, pair = c.calm, math.Sqrt2
	}
	return pair * c.row * set * math.Sqrt(c.Auto.response(part*curve/c.dim))
}

// loudness is the noise in what the model predicts, over that from which on a person is warned, and the latter. Of
// numeric labels it counts the noise in their mean, at which predictions begin: where that is too large to be asked
// for, they begin off by about as much.
func (m Auto) loudness(pub oracle.Public, obj Objective, unit float64) (times, loud float64) {
	noise := m.marginNoise(pub, obj, unit)
	if pub.Classes > 0 {
		return noise / outlookLoud, outlookLoud
	}
	if loud = outlookLoudLabel * labelWidth(pub); pub.LabelScale > 0 {
		loud = math.Min(loud, pub.LabelScale)
	}
	if delta, err := clip.Sensitivity(1, pub.Adjacency); err == nil {
		noise = math.Hypot(noise, pub.LabelSpan*math.Min(0.5, unit/delta/math.Sqrt(labelShare)))
	}
	return noise / loud, loud
}

// foreseen says whether marginNoise is what a run has.
func (m Auto) foreseen(pub oracle.Public) bool {
	return pub.OneMargin && pub.Classes == 2 && m.Gradient.Noise == 0 && m.Gradient.Batch == 0
}

// foresee computes the noise in a margin of two classes.
func (c *autoChoice) foresee(pub oracle.Public, obj Objective, unit float64) {
	if !c.given.foreseen(pub) {
		return
	}
	c.expected = c.given.marginNoise(pub, obj, unit)
	if math.IsNaN(c.expected) || math.IsInf(c.expected, 0) { // by a step size that is given
		c.expected = 0
	}
}

// Foresee returns nil where noise does not decide, and where no noise is known. m are the fields that are given, of
// which those that set noise and batches do not count.
func (m Auto) Foresee(pub oracle.Public, obj Objective, terms Terms) (*Outlook, error) {
	if terms.Off || !pub.Lipschitz.Finite() && !pub.Smooth.Finite() {
		return nil, nil
	}
	if m.Gradient.Noise != 0 || m.Gradient.Batch != 0 || m.Gradient.Off {
		m = Auto{}
	}
	m.Gradient.Laplace = terms.Budget.Delta == 0
	pub = pub.WithSlots(0) // as rows are whatever pairs a run chooses
	unit, err := m.one(pub, terms)
	if err != nil {
		return nil, err
	}
	// a step size that is given may let noise grow without bound
	times, loud := m.loudness(pub, obj, unit)
	if !(times > 1) || math.IsInf(times, 0) {
		return nil, nil
	}
	o := &Outlook{Noise: digits(times*loud, math.Round), Features: int(perClass(pub))}
	quiet := func(with oracle.Public, unit float64) bool {
		times, _ := m.loudness(with, obj, unit)
		return times <= 1
	}
	few, many := 0, o.Features // few features are not loud, many are
	for with := pub; many-few > 1; {
		middle := (few + many) / 2
		with.Dim = middle * (pub.Dim / o.Features)
		if pub.L1Bound > pub.NormBound { // which follows from the L2 norm
			with.L1Bound = pub.L1Bound * math.Sqrt(float64(middle)/float64(o.Features))
		}
		if quiet(with, unit) {
			few = middle
		} else {
			many = middle
		}
	}
	o.Fewer = few
	rows, err := leastTimes(func(times float64) (bool, error) {
		with := pub
		with.Rows = int(math.Min(math.MaxInt32, times*float64(pub.Rows)))
		return quiet(with, unit/times), nil
	})
	if err != nil {
		return nil, err
	}
	if v := digits(rows*float64(pub.Rows), math.Ceil); v <= math.MaxInt32 {
		o.Rows = int(v)
	}
	epsilon, err := leastTimes(func(times float64) (bool, error) {
		with := terms
		with.Budget.Epsilon *= times
		unit, err := m.one(pub, with)
		return err == nil && quiet(pub, unit), err
	})
	if epsilon > 0 {
		o.Epsilon = digits(epsilon*terms.Budget.Epsilon, math.Ceil)
	}
	return o, err
}

// leastTimes is the least number from 1 to outlookMost that does, within a fiftieth; 0: none does.
func leastTimes(does func(times float64) (bool, error)) (float64, error) {
	low, high := 1.0, outlookMost+0.0
	for high > 1.02*low {
		middle := math.Sqrt(low * high)
		ok, err := does(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	if high == outlookMost {
		return 0, nil
	}
	return high, nil
}

// digits rounds a number above 0 to two digits.
func digits(v float64, round func(float64) float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	v, _ = strconv.ParseFloat(strconv.FormatFloat(round(v/unit*(1-1e-12))*unit, 'g', 2, 64), 64)
	return v
}

// Cautions says which columns are left out since noise would win, and of a run written before there was an Outlook,
// where it does.
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
