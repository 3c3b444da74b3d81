// Package lbfgs minimizes smooth convex functions by L-BFGS, from gradients only. Recorded seeded runs
// depend on its bits, so gonum's L-BFGS cannot replace it.
package lbfgs

import "math"

// memory is how many pairs of a step and its change of the gradient are kept.
const memory = 20

// Minimize moves w to a minimum (Nocedal and Wright, Algorithm 7.5). It ends when found accepts a
// point with its gradient, and returns true, or after most gradients; w is then the point of the
// least gradient. The curvature of the function is at most steep.
//
// The line search uses slopes only: along a convex function they rise, so the least value is
// where the slope is 0. Values lose half of their digits near a minimum; slopes do not.
func Minimize(grad func(g, w []float64), w []float64, steep float64, most int, found func(w, g []float64) bool) bool {
	d := len(w)
	g, p := make([]float64, d), make([]float64, d)
	next, nextG := make([]float64, d), make([]float64, d)
	var s, y [][]float64 // steps and what they changed the gradient by, the oldest first
	grad(g, w)
	best, bestNorm := append([]float64(nil), w...), Norm(g)
	for taken := 1; ; {
		if found(w, g) {
			return true
		}
		direction(p, g, s, y, steep)
		slope := dot(p, g)
		if !(slope < 0) { // rounding outweighs the memory
			if s == nil {
				break
			}
			s, y = nil, nil
			continue
		}
		// A point where the slope has fallen to half, in size, between low and high.
		low, high, at := 0.0, math.Inf(1), 1.0
		lowSlope, highSlope := slope, 0.0
		arrived := false
		for ; taken < most && !arrived; taken++ {
			for i := range w {
				next[i] = w[i] + at*p[i]
			}
			grad(nextG, next)
			now := dot(p, nextG)
			switch {
			case math.Abs(now) <= -slope/2 || at == low || at == high:
				arrived = true
				continue
			case now < 0:
				low, lowSlope = at, now
			default: // NaN too
				high, highSlope = at, now
			}
			switch {
			case math.IsInf(high, 1):
				at *= 4
			case !(highSlope < math.Inf(1)):
				at = low + (high-low)/8
			default: // the secant, off the ends
				part := lowSlope / (lowSlope - highSlope)
				at = low + (high-low)*min(max(part, 0.1), 0.9)
			}
		}
		if !arrived {
			break
		}
		step, change := make([]float64, d), make([]float64, d)
		for i := range w {
			step[i], change[i] = next[i]-w[i], nextG[i]-g[i]
		}
		copy(w, next)
		copy(g, nextG)
		if size := Norm(g); size < bestNorm {
			bestNorm = size
			copy(best, w)
		}
		if dot(step, change) > 0 {
			if len(s) == memory {
				s, y = s[1:], y[1:]
			}
			s, y = append(s, step), append(y, change)
		} else if Norm(step) == 0 {
			if s == nil {
				break
			}
			s, y = nil, nil
		}
	}
	copy(w, best)
	return false
}

// direction sets p = −Hg, H the inverse of the curvature as s and y show it (Nocedal and Wright, Algorithm 7.4).
func direction(p, g []float64, s, y [][]float64, steep float64) {
	for i, v := range g {
		p[i] = -v
	}
	if len(s) == 0 {
		for i := range p {
			p[i] /= steep
		}
		return
	}
	var alpha [memory]float64
	for k := len(s) - 1; k >= 0; k-- {
		alpha[k] = dot(s[k], p) / dot(s[k], y[k])
		for i := range p {
			p[i] -= alpha[k] * y[k][i]
		}
	}
	last := len(s) - 1
	scale := dot(s[last], y[last]) / dot(y[last], y[last])
	for i := range p {
		p[i] *= scale
	}
	for k := range s {
		beta := dot(y[k], p) / dot(s[k], y[k])
		for i := range p {
			p[i] += (alpha[k] - beta) * s[k][i]
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// Norm is ‖v‖₂.
func Norm(v []float64) float64 { return math.Sqrt(dot(v, v)) }
