package method

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/oracle"
)

// A Curve says where the bumps of a numeric column are among the parameters: first beside its linear feature, one after
// the other.
type Curve struct{ At, Bumps int }

// fewestCurves is the number of columns from which on their bumps are smoothed: James and Stein's estimate needs three.
const fewestCurves = 3

// Smooths says whether a run of m with such curves smooths them.
func (m Auto) Smooths(pub oracle.Public, curves []Curve) bool {
	g := m.Gradient
	return !m.RawBumps && len(curves) >= fewestCurves && pub.OneMargin && pub.Classes == 2 && !g.Off && !g.Laplace &&
		g.Clipping != ByValue && (g.Batch == 0 || g.Batch == pub.Rows)
}

// Smooth takes from the output w of a finished run, a tail average, what its known noise adds to its curves. The
// weights of a column's k bumps are written in an orthonormal basis of k shapes, from flat to wavy: a constant, a line,
// and cosines less what they have of these. For each shape the coefficients of all columns with k bumps are brought
// closer to 0 by what noise adds to their length (shrink). So a table of straight lines loses its waves, and one of
// curves keeps them. The noise of a coefficient is that of any parameter, pulled back by the curvature that marginNoise
// counts on. This is post-processing.
func (m Auto) Smooth(w []float64, curves []Curve, pub oracle.Public, obj Objective, last Step) {
	if !m.SmoothBumps || last.T < m.Steps {
		return
	}
	c := m.facts(pub, obj)
	curvature := m.Gradient.Clip / c.whole * c.smooth / c.dim
	if last.Center != nil {
		var part float64
		m, part = m.around(pub, obj, last.Center)
		curvature *= part
	}
	variance := m.NoiseVariance(pub, curvature)
	done := map[int]bool{}
	for _, first := range curves {
		if done[first.Bumps] {
			continue
		}
		done[first.Bumps] = true
		var like []Curve // first and those with as many bumps
		for _, c := range curves {
			if c.Bumps == first.Bumps {
				like = append(like, c)
			}
		}
		for _, shape := range shapes(first.Bumps) {
			before := make([]float64, len(like))
			for i, c := range like {
				before[i] = floats.Dot(shape, w[c.At:c.At+c.Bumps])
			}
			after := slices.Clone(before)
			shrink(after, variance)
			for i, c := range like {
				floats.AddScaled(w[c.At:c.At+c.Bumps], after[i]-before[i], shape)
			}
		}
	}
}

// shapes is an orthonormal basis: a constant, a line, and cosines of more and more turns less what they have of the
// shapes before.
func shapes(k int) [][]float64 {
	var all [][]float64
	for turns := range k {
		s := make([]float64, k)
		for i := range s {
			switch turns {
			case 0:
				s[i] = 1
			case 1:
				s[i] = float64(i) - float64(k-1)/2
			default:
				s[i] = math.Cos(math.Pi * float64(turns) * (float64(i) + 0.5) / float64(k))
			}
		}
		for _, before := range all {
			floats.AddScaled(s, -floats.Dot(s, before), before)
		}
		floats.Scale(1/norm2(s), s)
		all = append(all, s)
	}
	return all
}
