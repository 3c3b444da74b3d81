// Package reg holds the regularizers of an objective: pure functions of the
// parameters w. They see no record, so they stand outside the clipped part of a
// gradient and cost no privacy.
//
// Every parameter is regularized, the intercept too, unless its coordinate is
// listed in Free. The default is no free coordinate: rows are scaled to a norm
// bound with their intercept inside, and a free intercept would leave a
// direction without curvature.
package reg

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
)

// A Regularizer is a penalty r(w) with its gradient and its curvature bounds.
type Regularizer interface {
	// Value is r(w).
	Value(w []float64) float64
	// AddGrad adds ∇r(w) to dst, which has the length of w; a subgradient
	// where r has a kink (0 at the kink).
	AddGrad(dst, w []float64)
	// Smooth bounds the Lipschitz constant of ∇r; +Inf where r has a kink.
	Smooth() float64
	// StrongConvexity is the largest μ for which r(w) − μ/2·‖w‖² is convex.
	// It is negative where r is not convex.
	StrongConvexity() float64
}

// Curved is a regularizer with a Hessian, which is diagonal for all of them; L1 has none.
type Curved interface {
	Regularizer
	// AddHess adds the diagonal of ∇²r(w) to dst, which has the length of w.
	AddHess(dst, w []float64)
	// HessLipschitz is the Lipschitz constant of ∇²r in the spectral norm.
	HessLipschitz() float64
}

// Rise is by how much r grows from w to w − η p; r may be nil.
func Rise(r Regularizer, w, p []float64, eta float64) float64 {
	if r == nil {
		return 0
	}
	to := make([]float64, len(w))
	for j := range w {
		to[j] = w[j] - eta*p[j]
	}
	return r.Value(to) - r.Value(w)
}

// None is r(w) = 0.
type None struct{}

// L2 is r(w) = λ/2·Σ w_j².
type L2 struct {
	Lambda float64 // λ ≥ 0
	Free   []int   // coordinates left alone, ascending; usually none
}

// L1 is r(w) = λ·Σ |w_j|.
type L1 struct {
	Lambda float64 // λ ≥ 0
	Free   []int   // coordinates left alone, ascending; usually none
}

// NonConvex is r(w) = λ·Σ w_j²/(1+w_j²): it is bounded, so large parameters
// cost no more than middling ones. (algorithms.md §5.4, the experiments of P4)
type NonConvex struct {
	Lambda float64 // λ ≥ 0
	Free   []int   // coordinates left alone, ascending; usually none
}

var (
	_ Curved      = None{}
	_ Curved      = L2{}
	_ Regularizer = L1{}
	_ Curved      = NonConvex{}
)

// registry is the one place of the names.
var registry = []struct {
	name string
	make func(lambda float64, free []int) Regularizer
}{
	{"none", func(float64, []int) Regularizer { return None{} }},
	{"l2", func(l float64, free []int) Regularizer { return L2{l, free} }},
	{"l1", func(l float64, free []int) Regularizer { return L1{l, free} }},
	{"nonconvex", func(l float64, free []int) Regularizer { return NonConvex{l, free} }},
}

// Names lists the regularizers that New knows.
func Names() []string {
	var names []string
	for _, r := range registry {
		names = append(names, r.name)
	}
	return names
}

// New makes the regularizer of that name with weight lambda ≥ 0, leaving the
// coordinates in free alone. "none" takes the weight 0 only.
func New(name string, lambda float64, free ...int) (Regularizer, error) {
	for _, r := range registry {
		if r.name != name {
			continue
		}
		if !(lambda >= 0) || math.IsInf(lambda, 1) {
			return nil, fmt.Errorf("reg: %s: lambda is %v; it must be a finite number, 0 or more", name, lambda)
		}
		if name == "none" && lambda != 0 {
			return nil, fmt.Errorf("reg: none has no lambda, found %v; choose one of %s", lambda, strings.Join(Names()[1:], ", "))
		}
		free = slices.Compact(slices.Sorted(slices.Values(free)))
		if len(free) > 0 && free[0] < 0 {
			return nil, fmt.Errorf("reg: %s: free coordinate %d; coordinates count from 0", name, free[0])
		}
		return r.make(lambda, free), nil
	}
	return nil, fmt.Errorf("reg: unknown regularizer %q; allowed: %s", name, strings.Join(Names(), ", "))
}

// sum adds up f over the coordinates of w that are not free.
func sum(w []float64, free []int, f func(v float64) float64) (s float64) {
	for from, to := range pieces(len(w), free) {
		for _, v := range w[from:to] {
			s += f(v)
		}
	}
	return s
}

// add adds f of each coordinate of w that is not free to dst.
func add(dst, w []float64, free []int, f func(v float64) float64) {
	for from, to := range pieces(len(w), free) {
		for j := from; j < to; j++ {
			dst[j] += f(w[j])
		}
	}
}

// pieces yields the stretches [from, to) of 0 … n−1 between the free coordinates.
func pieces(n int, free []int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from := 0
		for _, f := range free {
			if f >= n {
				break
			}
			if from < f && !yield(from, f) {
				return
			}
			from = f + 1
		}
		if from < n {
			yield(from, n)
		}
	}
}

// Value is 0.
func (None) Value([]float64) float64 { return 0 }

// AddGrad adds nothing.
func (None) AddGrad(dst, w []float64) {}

// Smooth is 0.
func (None) Smooth() float64 { return 0 }

// StrongConvexity is 0.
func (None) StrongConvexity() float64 { return 0 }

// AddHess adds nothing.
func (None) AddHess(dst, w []float64) {}

// HessLipschitz is 0.
func (None) HessLipschitz() float64 { return 0 }

// Value is λ/2·Σ w_j².
func (r L2) Value(w []float64) float64 {
	return r.Lambda / 2 * sum(w, r.Free, func(v float64) float64 { return v * v })
}

// AddGrad adds λ·w.
func (r L2) AddGrad(dst, w []float64) {
	add(dst, w, r.Free, func(v float64) float64 { return r.Lambda * v })
}

// Smooth is λ.
func (r L2) Smooth() float64 { return r.Lambda }

// StrongConvexity is λ; 0 with a free coordinate, along which r is flat.
func (r L2) StrongConvexity() float64 {
	if len(r.Free) > 0 {
		return 0
	}
	return r.Lambda
}

// AddHess adds λ.
func (r L2) AddHess(dst, w []float64) {
	add(dst, w, r.Free, func(float64) float64 { return r.Lambda })
}

// HessLipschitz is 0.
func (r L2) HessLipschitz() float64 { return 0 }

// Value is λ·Σ |w_j|.
func (r L1) Value(w []float64) float64 {
	return r.Lambda * sum(w, r.Free, math.Abs)
}

// AddGrad adds λ·sign(w), with sign(0) = 0.
func (r L1) AddGrad(dst, w []float64) {
	add(dst, w, r.Free, func(v float64) float64 {
		if v == 0 || math.IsNaN(v) {
			return 0
		}
		return math.Copysign(r.Lambda, v)
	})
}

// Smooth is +Inf: the gradient jumps at 0. With λ = 0 it is 0.
func (r L1) Smooth() float64 {
	if r.Lambda == 0 {
		return 0
	}
	return math.Inf(1)
}

// StrongConvexity is 0.
func (r L1) StrongConvexity() float64 { return 0 }

// Prox replaces w by argmin_u ½‖u−w‖² + step·r(u): every coordinate moves
// toward 0 by step·λ and stops there.
func (r L1) Prox(w []float64, step float64) {
	t := step * r.Lambda
	for from, to := range pieces(len(w), r.Free) {
		for j := from; j < to; j++ {
			w[j] = math.Copysign(max(math.Abs(w[j])-t, 0), w[j])
		}
	}
}

// Value is λ·Σ w_j²/(1+w_j²), each term in [0, 1) also where w_j² overflows.
func (r NonConvex) Value(w []float64) float64 {
	return r.Lambda * sum(w, r.Free, func(v float64) float64 {
		if math.Abs(v) > 1 {
			return 1 / (1 + 1/v/v)
		}
		return v * v / (1 + v*v)
	})
}

// AddGrad adds 2λ·w_j/(1+w_j²)².
func (r NonConvex) AddGrad(dst, w []float64) {
	add(dst, w, r.Free, func(v float64) float64 {
		q := 1 + v*v
		return 2 * r.Lambda * (v / q / q)
	})
}

// Smooth is 2λ: the second derivative λ·(2−6w²)/(1+w²)³ is largest at w = 0.
func (r NonConvex) Smooth() float64 { return 2 * r.Lambda }

// StrongConvexity is −λ/2: the second derivative is smallest at w = ±1.
func (r NonConvex) StrongConvexity() float64 { return -r.Lambda / 2 }

// AddHess adds λ·(2−6w_j²)/(1+w_j²)³.
func (r NonConvex) AddHess(dst, w []float64) {
	add(dst, w, r.Free, func(v float64) float64 {
		q := 1 + v*v
		return r.Lambda * (8/q - 6) / q / q
	})
}

// HessLipschitz is the largest third derivative, λ·24w(1−w²)/(1+w²)⁴ at w = √(1−2/√5), rounded up.
func (r NonConvex) HessLipschitz() float64 { return 4.668559284156 * r.Lambda }
