package model

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/internal/kern"
)

// Bounds of gradients by losses (P0 §4: weak growth conditions), for value clipping. The
// paper's constants are not the smallest ones (soundness.md, S-0b); these are:
//
//	log loss, two classes  |s| = σ(−yz) = 1 − e^(−ℓ)
//	squared loss           |s| = √(2ℓ)
//	cross-entropy          ‖r‖ ≤ √2·(1 − e^(−ℓ)): r_y = −(1−p_y), p_y = e^(−ℓ), and the other
//	                       r_k = p_k ≥ 0 sum up to 1 − p_y, so that their squares sum up to (1−p_y)² at most
//
// times ‖x‖, the row's own norm (oracle/private/PROOFS.md, value clipping). For one margin these are equalities, so the
// bound uses the slope, which keeps its digits where 1 − e^(−ℓ) loses them, and is the norm of the gradient.

// GradBound sets dst_i = |s_i|·‖x_i‖.
func (p *glmPass) GradBound(dst []float64) {
	p.GradNorm(dst, 2)
}

// GradBound sets dst_i = √2·(1 − p_iy)·‖x_i‖.
func (p *softmaxPass) GradBound(dst []float64) {
	needLength("dst", len(dst), p.n)
	RowNorms(dst, p.view, 2)
	r := p.residuals()
	// above the rounding of K additions and of √2, and above GradNorm's slack
	slack := math.Sqrt2 * (1 + float64(p.k+2)*0x1p-49)
	for i, y := range p.y {
		dst[i] = up(-r[y*p.n+i]*slack, dst[i])
	}
}

// spectralSquarings: the bound is within a factor r^(1/2^(squarings+2)) of the spectral norm
// of a matrix of rank r, 1 + 2⁻⁷·ln r.
const spectralSquarings = 5

// SpectralBound returns an upper bound on the largest singular value of w, rows×cols, row
// after row, and never an estimate from below, as power iteration gives (S-0c):
//
//	‖W‖₂ = ‖(WᵀW)^(2ᵖ)‖₂^(1/2ᵖ⁺¹) ≤ ‖(WᵀW)^(2ᵖ)‖_F^(1/2ᵖ⁺¹)
//
// with the smaller of WᵀW and WWᵀ. It is NaN where w is not finite. The smaller side is at
// most 2¹⁵ and rows·cols at most 2³²; anything else panics.
//
// Rounding, with u = 2⁻⁵³ and k the smaller side. A computed AᵀA with m terms is off by E,
// ‖E‖₂ ≤ m·u·‖A‖_F² to first order, and ‖A‖₂² ≥ ‖A‖_F²/k; so its spectral norm is at least
// ‖A‖₂²·(1 − m·k·u). The first product has max(rows, cols) terms, the others k. The root
// takes a half, a quarter, … of these losses: 2⁻²¹ together at most, and the factor 1 + 2⁻²⁰
// covers that and the arithmetic of norms and roots.
func SpectralBound(w []float64, rows, cols int) float64 {
	return new(spectral).bound(w, rows, cols)
}

// spectral is the memory of a SpectralBound.
type spectral struct{ scaled, a, b []float64 }

func (s *spectral) bound(w []float64, rows, cols int) float64 {
	k, long := min(rows, cols), max(rows, cols)
	if k < 1 || len(w) != rows*cols || k > 1<<15 || long > 1<<32/k {
		panic(fmt.Sprintf("model: no spectral bound of a matrix of %d×%d in %d numbers", rows, cols, len(w)))
	}
	top := 0.0
	for _, v := range w {
		if !(math.Abs(v) <= math.MaxFloat64) {
			return math.NaN()
		}
		top = max(top, math.Abs(v))
	}
	if top == 0 {
		return 0
	}
	// By a power of two, so that squares neither overflow nor, where it matters, underflow.
	_, exp := math.Frexp(top)
	s.scaled, s.a, s.b = grow(s.scaled, len(w)), grow(s.a, k*k), grow(s.b, k*k)
	scaled, a, b := s.scaled, s.a, s.b
	half, rest := math.Ldexp(1, -exp/2), math.Ldexp(1, -exp+exp/2) // each in range
	for i, v := range w {
		scaled[i] = v * half * rest
	}
	clear(a)
	kern.Gemm(rows >= cols, rows < cols, k, k, long, scaled, cols, scaled, cols, a, k)
	log := float64(exp) * math.Ln2
	for p := 0; ; p++ {
		square := 0.0
		for _, v := range a {
			square += v * v
		}
		log += math.Ldexp(math.Log(square)/2, -(p + 1))
		if p == spectralSquarings {
			return math.Exp(log) * (1 + 0x1p-20)
		}
		for i := range a {
			a[i] /= math.Sqrt(square)
		}
		clear(b)
		kern.Gemm(true, false, k, k, k, a, k, a, k, b, k)
		a, b = b, a
	}
}
