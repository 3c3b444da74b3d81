package model

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
)

// A Center is a public point m that a pass takes from every row, without a row less m being stored:
//
//	z_ik = ⟨w_k, x_i⟩ − ⟨w_k, m⟩
//	‖∇ℓ_i‖ = ‖s_i‖·‖x_i − m‖,  ‖x_i − m‖² = ‖x_i‖² − 2⟨x_i, m⟩ + ‖m‖²
//	Σ c_i ∇_k ℓ_i = Σ a_ik·x_i − m·Σ a_ik,  a_ik = c_i·s_ik
//
// for each margin k, one or one for each class. AddGrad adds Σ a_ik·x_i to the gradient and Σ a_ik to Taken: the caller
// takes m·Σ a_ik from the gradient, once for all rows.
type Center struct {
	X       []float64 // m: multiples of the table's unit, of norm up to Bound
	Square  float64   // ‖m‖²
	Bound   float64   // R: every row has ‖x‖₂ ≤ R; from 2⁻⁴⁰⁰ to 2⁴⁰⁰
	Margins []float64 // ⟨w_k, m⟩ at the pass's parameters
	// norms of the rows of a tile as an earlier pass over them found them, 0 for one that none has; nil: none are kept
	Known []float64
	Taken []float64 // Σ a_ik
}

// leastNorm: norms of centered rows count as at least R/8. A row near the center so has no coefficient above 8·C/R, and
// sums of a block stay exact (oracle/private/PROOFS.md#center).
const leastNorm = 1. / 8

// norms sets dst_i to the larger of ‖x_i − m‖₂, never understated, and R/8. Products of rows with m are sums of whole
// numbers of unit², exact as each is below 2⁴⁰ in all; what the other additions round is below the 2⁻⁴⁹·R² that is
// added.
func (c *Center) norms(dst []float64, v data.View, p int, ws *Workspace) {
	if p != 2 {
		panic("model: norms of centered rows exist for p = 2")
	}
	if len(c.Known) == len(dst) && !slices.Contains(c.Known, 0) {
		copy(dst, c.Known)
		return
	}
	v.Exact(dst, c.X, &ws.rows)
	slack := c.Square + 0x1p-49*c.Bound*c.Bound
	for i, xm := range dst {
		n := float64(v.Norm[v.Row(i)])
		s := float64(n*n) - 2*xm + slack
		dst[i] = max(math.Sqrt(max(s, 0))*(1+0x1p-51), leastNorm*c.Bound)
	}
	copy(c.Known, dst)
}

// margins takes the center from margins, margin after margin; of none, it does nothing.
func (c *Center) margins(z []float64) {
	if c == nil {
		return
	}
	n := len(z) / len(c.Margins)
	for k, margin := range c.Margins {
		for i := range z[k*n : (k+1)*n] {
			z[k*n+i] -= margin
		}
	}
}

// rowNorms are those of rows less a center, or as they are if there is none.
func (c *Center) rowNorms(dst []float64, v data.View, norm int, ws *Workspace) {
	if c == nil {
		RowNorms(dst, v, norm)
		return
	}
	c.norms(dst, v, norm, ws)
}

// take keeps the sums of a tile's coefficients, margin after margin, which are exact: whole numbers of their unit, each
// below 2²². Of no center, it does nothing.
func (c *Center) take(a []float64) {
	if c == nil {
		return
	}
	n := len(a) / len(c.Taken)
	for k := range c.Taken {
		for _, ai := range a[k*n : (k+1)*n] {
			c.Taken[k] += ai
		}
	}
}

// uncentered panics where a figure is asked of a pass over centered rows that is not one of gradients: a programmer
// error.
func (p *glmPass) uncentered() {
	if p.center != nil {
		panic("model: a center is taken from rows for gradients alone")
	}
}

// AddRows adds Σ c_i·x_i to dst, with each c_i, a finite number, first truncated toward zero to a multiple of unit, a
// power of two. The sum is exact, as the package comment says.
func AddRows(dst, c []float64, unit float64, v data.View, ws *Workspace) {
	needLength("dst", len(dst), v.Block.Dim)
	needLength("c", len(c), v.Len())
	needFloats(v, "a sum")
	for i, ci := range c {
		c[i] = math.Trunc(ci/unit) * unit
	}
	v.Add(dst, c, 1, unit, &ws.rows)
}
