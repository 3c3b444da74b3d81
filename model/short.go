package model

import (
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
)

// Rows of 16-bit numbers (data.Short): x_i = f_i·v_i with whole numbers v_i and f_i, a power of two. Both products are
// those of whole numbers, exact in any order:
//
//	z_ik = f_i·Σ_j v_ij·w_kj               with w_kj rounded to 15 digits of the largest
//	Σ_i c_i·∇_k ℓ_i = u·Σ_i a_ik·v_i       with a_ik = c_i·(f_i/u)·r_ik truncated to the unit, u the unit of the table
//
// As for bytes, no bound on a record rests on the rounded parameters.

// shortSpace is what a pass over rows of 16-bit numbers needs.
type shortSpace struct {
	words   kern.Shorts
	loaded  *float64 // the parameters of words, while they are held
	factor  []float64
	weights []kern.ShortLimbs
}

// shortsOf are the rows of v.
func shortsOf(v data.View) []int16 { return v.Shorts[v.From*v.Short.Stride : v.To*v.Short.Stride] }

// shortMargins sets z[c·n+i] to the margins of the n rows of v, for k classes.
func (ws *Workspace) shortMargins(z, w []float64, k int, v data.View) {
	s := &ws.short
	if ws.held != &w[0] || s.loaded != &w[0] {
		s.words.Set(w, k, v.Block.Dim, v.Short.Stride)
		if s.loaded = nil; ws.held == &w[0] {
			s.loaded = ws.held
		}
	}
	s.factor = grow(s.factor, v.Len())
	for i := range s.factor {
		s.factor[i] = v.Scale(v.From + i)
	}
	s.words.Dot(z, v.Len(), shortsOf(v), s.factor)
}

// shortSizes sets dst_i = ‖x_i‖₁, exactly.
func shortSizes(dst []float64, v data.View) {
	rows := shortsOf(v)
	for i := range dst {
		var sum int64
		for _, x := range rows[i*v.Short.Stride:][:v.Block.Dim] {
			sum += max(int64(x), -int64(x))
		}
		dst[i] = float64(sum) * v.Scale(v.From+i)
	}
}

// addShorts adds u·Σ_i a_ik·v_i to the sums of k classes. The coefficients a[c·n+i], which it may change, are multiples
// of the unit, so every number here is one of u·unit.
func (ws *Workspace) addShorts(dst, a []float64, k int, v data.View, unit float64) {
	s, n, d, stride := &ws.short, v.Len(), v.Block.Dim, v.Short.Stride
	for len(s.weights) < k {
		s.weights = append(s.weights, kern.ShortLimbs{})
	}
	x := shortsOf(v)
	for from := 0; from < n; from += kern.ShortRows {
		m := min(n-from, kern.ShortRows)
		rows := x[from*stride:][:m*stride]
		for c := range k {
			some := a[c*n+from:][:m]
			if s.weights[c].Set(some, unit) {
				continue
			}
			// Those that are no words: of short rows, and such with few numbers that count.
			for i, ai := range some {
				if math.Abs(ai) <= kern.ShortMost*unit {
					continue
				}
				for j, b := range rows[i*stride:][:d] {
					dst[c*d+j] += ai * (float64(b) * v.Short.Unit)
				}
				some[i] = 0
			}
			s.weights[c].Set(some, unit)
		}
		kern.AddShorts(dst, d, s.weights[:k], rows, stride, m, unit*v.Short.Unit)
	}
}
