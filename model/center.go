package model

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
)

// A Center is a public point m that a pass takes from every row, without a row less m being stored:
//
//	z_i = ⟨w, x_i⟩ − ⟨w, m⟩
//	‖∇ℓ_i‖ = |s_i|·‖x_i − m‖,  ‖x_i − m‖² = ‖x_i‖² − 2⟨x_i, m⟩ + ‖m‖²
//	Σ c_i ∇ℓ_i = Σ a_i·x_i − m·Σ a_i,  a_i = c_i·s_i
//
// AddGrad adds Σ a_i·x_i and keeps Σ a_i, which Taken hands out: the caller takes m·Σ a_i from the sum, once for all
// rows.
type Center struct {
	X      []float64 // m: multiples of the table's unit, of norm up to Bound
	Square float64   // ‖m‖²
	Bound  float64   // R: every row has ‖x‖₂ ≤ R; from 2⁻⁴⁰⁰ to 2⁴⁰⁰
	Margin float64   // ⟨w, m⟩ at the pass's parameters
	// norms of the rows of a tile as an earlier pass over them found them, 0 for one that none has; nil: none are kept
	Known []float64

	taken float64
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
	v.Margins(dst, c.X, 1, &ws.rows)
	slack := c.Square + 0x1p-49*c.Bound*c.Bound
	for i, xm := range dst {
		n := float64(v.Norm[v.Row(i)])
		s := float64(n*n) - 2*xm + slack
		dst[i] = math.Max(math.Sqrt(math.Max(s, 0))*(1+0x1p-51), leastNorm*c.Bound)
	}
	copy(c.Known, dst)
}

// take keeps the sum of the coefficients of a tile, which is exact: whole numbers of their unit, each below 2²².
func (c *Center) take(a []float64) {
	for _, ai := range a {
		c.taken += ai
	}
}

// Taken is the sum of the coefficients since the last call.
func (c *Center) Taken() float64 {
	sum := c.taken
	c.taken = 0
	return sum
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
