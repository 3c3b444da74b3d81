package method

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/schema"
)

// fewestCurves is the number of columns from which on their bumps are smoothed: James and Stein's estimate needs three.
const fewestCurves = 3

// Smooths says whether a run of m smooths the curves of its columns.
func (m Auto) Smooths(pub oracle.Public) bool {
	g := m.Gradient
	return !m.RawBumps && len(pub.Numeric) >= fewestCurves && m.Solve != SolveStatistics && !g.Off && !g.Laplace &&
		g.Clipping != ByValue && (g.Batch == 0 || g.Batch == pub.Rows)
}

// Smooth takes from the output w of a finished run, a tail average, what its known noise adds to its curves. Waves are
// an orthogonal basis of curves; the weights of k bumps are written in one, from flat to wavy (schema.Shapes). For each
// shape the coefficients of all columns with as many bumps or waves, and of all classes, are brought closer to 0 by
// what noise adds to their length (shrink). So a table of straight lines loses its waves, and one of curves keeps them.
// The noise of a coefficient is that of any parameter, pulled back by the curvature that marginNoise counts on. This is
// post-processing.
func (m Auto) Smooth(w []float64, pub oracle.Public, obj Objective, last Step) {
	if !m.SmoothBumps || last.T < m.Steps {
		return
	}
	m, pub = m.within(pub, last.Width)
	m = m.skewed(pub, last.Shift)
	c := m.facts(pub, obj)
	curvature := m.Gradient.Clip / c.usual() * c.smooth / c.dim
	if last.Center != nil {
		var part float64
		m, part = m.around(pub, obj, last.Center)
		curvature *= part
	}
	variance := m.NoiseVariance(pub, curvature)
	done := map[oracle.Numeric]bool{}
	for _, first := range pub.Numeric {
		first.At = 0
		if done[first] {
			continue
		}
		done[first] = true
		var like []int // where curves of this kind begin, behind their line, in each class
		for class := 0; class < pub.Dim; class += pub.Dim / pub.Margins() {
			for _, n := range pub.Numeric {
				if n.Bumps == first.Bumps && n.Waves == first.Waves {
					like = append(like, class+n.At+1)
				}
			}
		}
		for _, shape := range shapesOf(first) {
			before := make([]float64, len(like))
			for i, at := range like {
				before[i] = floats.Dot(shape, w[at:at+len(shape)])
			}
			after := slices.Clone(before)
			shrink(after, variance)
			for i, at := range like {
				floats.AddScaled(w[at:at+len(shape)], after[i]-before[i], shape)
			}
		}
	}
}

// usual is the gradient that an ordinary record has at a good model: that of a wrong class, or of a number that is off
// by a part of the width of labels.
func (c *autoChoice) usual() float64 {
	if c.quad {
		return math.Max(c.Gradient.Clip, usualMiss*c.whole)
	}
	return c.whole
}

// usualMiss is how far predictions of numbers are usually off, over the width of labels.
const usualMiss = 0.15

// shapesOf is an orthonormal basis of what the features beside a column's line can say.
func shapesOf(n oracle.Numeric) [][]float64 {
	if n.Waves == 0 {
		return schema.Shapes(n.Bumps)
	}
	all := make([][]float64, n.Waves)
	for t := range all {
		all[t] = make([]float64, n.Waves)
		all[t][t] = 1
	}
	return all
}
