package method

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/schema"
)

// A Curve says where the features beside a numeric column's linear one are among those of a row: so many bumps, or so
// many waves.
type Curve struct{ At, Bumps, Waves int }

// fewestCurves is the number of columns from which on their bumps are smoothed: James and Stein's estimate needs three.
const fewestCurves = 3

// Smooths says whether a run of m with such curves smooths them.
func (m Auto) Smooths(pub oracle.Public, curves []Curve) bool {
	g := m.Gradient
	return !m.RawBumps && len(curves) >= fewestCurves && m.Solve != SolveStatistics && !g.Off && !g.Laplace &&
		g.Clipping != ByValue && (g.Batch == 0 || g.Batch == pub.Rows)
}

// Smooth takes from the output w of a finished run, a tail average, what its known noise adds to its curves. Waves are
// an orthogonal basis of curves; the weights of k bumps are written in one, from flat to wavy (schema.Shapes). For each
// shape the coefficients of all columns with as many bumps or waves, and of all classes, are brought closer to 0 by what
// noise adds to their length (shrink). So a table of straight lines loses its waves, and one of curves keeps them. The
// noise of a coefficient is that of any parameter, pulled back by the curvature that marginNoise counts on. This is
// post-processing.
func (m Auto) Smooth(w []float64, curves []Curve, pub oracle.Public, obj Objective, last Step) {
	if !m.SmoothBumps || last.T < m.Steps {
		return
	}
	m = m.skewed(pub, last.Shift)
	part := 1.0
	if last.Center != nil {
		m, part = m.around(pub, obj, last.Center)
	}
	m.smooth(w, curves, pub, obj, part)
}

// smooth is Smooth for a run whose rows count as that part of R² long, squared.
func (m Auto) smooth(w []float64, curves []Curve, pub oracle.Public, obj Objective, part float64) {
	c := m.facts(pub, obj)
	curvature := m.Gradient.Clip / c.usual() * c.smooth / c.dim * part
	variance := m.NoiseVariance(pub, curvature)
	done := map[Curve]bool{}
	for _, first := range curves {
		kind := Curve{Bumps: first.Bumps, Waves: first.Waves}
		if done[kind] {
			continue
		}
		done[kind] = true
		var like []int // where curves of the kind begin, in each class
		for at := 0; at < pub.Dim; at += int(c.dim) {
			for _, c := range curves {
				if c.Bumps == kind.Bumps && c.Waves == kind.Waves {
					like = append(like, at+c.At)
				}
			}
		}
		for _, shape := range kind.shapes() {
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

// shapes is an orthonormal basis of what the features can say.
func (c Curve) shapes() [][]float64 {
	if c.Waves == 0 {
		return schema.Shapes(c.Bumps)
	}
	all := make([][]float64, c.Waves)
	for t := range all {
		all[t] = make([]float64, c.Waves)
		all[t][t] = 1
	}
	return all
}
