// Package reg holds the regularizers of an objective: pure functions of the parameters w. They see no record, so they
// are outside the clipped part of a gradient and cost no privacy. A nil Regularizer is none.
//
// Every parameter is regularized, the intercept too: rows are scaled to a norm bound with their intercept inside, and
// an intercept without a penalty would leave a direction without curvature.
package reg

import (
	"fmt"
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

// Rise is the increase of r from w to w − η p; r may be nil.
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

// The regularizers, each with a weight λ ≥ 0.
type (
	// L2 is r(w) = λ/2·Σ w_j².
	L2 struct{ Lambda float64 }
	// L1 is r(w) = λ·Σ |w_j|.
	L1 struct{ Lambda float64 }
	// NonConvex is r(w) = λ·Σ w_j²/(1+w_j²). It is bounded, so large parameters cost no more than
	// medium ones (algorithms.md §5.4, the experiments of P4).
	NonConvex struct{ Lambda float64 }
)

var (
	_ Curved      = L2{}
	_ Regularizer = L1{}
	_ Curved      = NonConvex{}
)

// registry is the one list of names.
var registry = []struct {
	name string
	make func(lambda float64) Regularizer
}{
	{"l2", func(l float64) Regularizer { return L2{l} }},
	{"l1", func(l float64) Regularizer { return L1{l} }},
	{"nonconvex", func(l float64) Regularizer { return NonConvex{l} }},
}

// Names lists the regularizers that New knows.
func Names() []string {
	var names []string
	for _, r := range registry {
		names = append(names, r.name)
	}
	return names
}

// New makes the regularizer of that name with weight lambda ≥ 0.
func New(name string, lambda float64) (Regularizer, error) {
	i := slices.Index(Names(), name)
	switch {
	case i < 0:
		return nil, fmt.Errorf("reg: unknown regularizer %q; choose %s", name, strings.Join(Names(), ", "))
	case !(lambda >= 0) || math.IsInf(lambda, 1):
		return nil, fmt.Errorf("reg: %s: lambda is %v; it must be a finite number, 0 or more", name, lambda)
	}
	return registry[i].make(lambda), nil
}

// sum adds up f over the coordinates of w.
func sum(w []float64, f func(v float64) float64) (s float64) {
	for _, v := range w {
		s += f(v)
	}
	return s
}

// add adds f of each coordinate of w to dst.
func add(dst, w []float64, f func(v float64) float64) {
	for j, v := range w {
		dst[j] += f(v)
	}
}

// Value is λ/2·Σ w_j².
func (r L2) Value(w []float64) float64 {
	return r.Lambda / 2 * sum(w, func(v float64) float64 { return v * v })
}

// AddGrad adds λ·w.
func (r L2) AddGrad(dst, w []float64) {
	add(dst, w, func(v float64) float64 { return r.Lambda * v })
}

// Smooth is λ.
func (r L2) Smooth() float64 { return r.Lambda }

// StrongConvexity is λ.
func (r L2) StrongConvexity() float64 { return r.Lambda }

// AddHess adds λ.
func (r L2) AddHess(dst, w []float64) {
	add(dst, w, func(float64) float64 { return r.Lambda })
}

// HessLipschitz is 0.
func (r L2) HessLipschitz() float64 { return 0 }

// Value is λ·Σ |w_j|.
func (r L1) Value(w []float64) float64 { return r.Lambda * sum(w, math.Abs) }

// AddGrad adds λ·sign(w), with sign(0) = 0.
func (r L1) AddGrad(dst, w []float64) {
	add(dst, w, func(v float64) float64 {
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

// Value is λ·Σ w_j²/(1+w_j²), each term in [0, 1) also where w_j² overflows.
func (r NonConvex) Value(w []float64) float64 {
	return r.Lambda * sum(w, func(v float64) float64 {
		if math.Abs(v) > 1 {
			return 1 / (1 + 1/v/v)
		}
		return v * v / (1 + v*v)
	})
}

// AddGrad adds 2λ·w_j/(1+w_j²)².
func (r NonConvex) AddGrad(dst, w []float64) {
	add(dst, w, func(v float64) float64 {
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
	add(dst, w, func(v float64) float64 {
		q := 1 + v*v
		return r.Lambda * (8/q - 6) / q / q
	})
}

// HessLipschitz is the largest third derivative, λ·24w(1−w²)/(1+w²)⁴ at w = √(1−2/√5), rounded up.
func (r NonConvex) HessLipschitz() float64 { return 4.668559284156 * r.Lambda }
