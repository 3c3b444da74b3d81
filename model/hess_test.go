package model_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model"
)

// hess is Σ c_i ∇²ℓ_i at w over v, as AddHess leaves it.
func (p *problem) hess(w []float64, v data.View, c []float64, unit float64) []float64 {
	side := kern.Padded(p.Dim())
	dst := make([]float64, side*side)
	must[model.CurvedPass](p.Eval(w, v, new(model.Workspace))).AddHess(dst, c, unit)
	return dst
}

// curved runs f on random problems of every model that has Hessians.
func curved(t *testing.T, f func(t *rapid.T, p *problem)) {
	check(t, func(t *rapid.T, p *problem) {
		if p.Facts().Curved {
			f(t, p)
		}
	})
}

// TestHess compares every record's Hessian with central differences of its gradient. With Facts.HessLipschitz +Inf the
// gradient may have kinks: there an entry lies between the slopes of both sides.
func TestHess(t *testing.T) {
	const h, unit = 1e-6, 0x1p-24
	curved(t, func(t *rapid.T, p *problem) {
		side := kern.Padded(p.Dim())
		for i := range p.dense.N {
			one := data.View{Block: p.dense, From: i, To: i + 1}
			got := p.hess(p.w, one, []float64{1}, unit)
			for j := range p.w {
				up, down := slices.Clone(p.w), slices.Clone(p.w)
				up[j] += h
				down[j] -= h
				gradUp, grad, gradDown := p.gradOf(up, i, 1, 0), p.gradOf(p.w, i, 1, 0), p.gradOf(down, i, 1, 0)
				for k := j; k < p.Dim(); k++ {
					want := (gradUp[k] - gradDown[k]) / (2 * h)
					v, tol := got[j*side+k]*unit*unit, 1e-5*(1+math.Abs(want))
					kink := math.IsInf(p.Facts().HessLipschitz, 1) && between(v, (gradUp[k]-grad[k])/h, (grad[k]-gradDown[k])/h, tol)
					if !(math.Abs(v-want) <= tol) && !kink {
						t.Fatalf("row %d: AddHess adds %v at %d, %d; central differences of AddGrad give %v, and they may be %.2g "+
							"apart. Correct AddHess (of a glm: curve, the derivative of slope). A gradient with kinks states "+
							"HessLipschitz: +Inf in its Facts; at a kink any curvature between those of both sides will do", i, v, j, k,
							want, tol)
					}
				}
			}
		}
	})
}

// TestHessNorm: a record's rounded Hessian, whatever the weight and the unit, never has a norm above weight times
// HessNorm, in exact arithmetic; and the model's Smooth bounds HessNorm.
func TestHessNorm(t *testing.T) {
	curved(t, func(t *rapid.T, p *problem) {
		norm := make([]float64, p.dense.N)
		must[model.CurvedPass](p.Eval(p.w, whole(p.dense), new(model.Workspace))).HessNorm(norm)
		side := kern.Padded(p.Dim())
		for i := range p.dense.N {
			if smooth := p.Facts().Smooth; !(norm[i] <= smooth*(1+1e-6)) {
				t.Fatalf("row %d: HessNorm is %v, above Facts().Smooth, %v; state a bound that holds for every w and every row, "+
					"or write Curved: false", i, norm[i], smooth)
			}
			c := rapid.SampledFrom([]float64{1, 0.3, 1e-9, 0}).Draw(t, "c")
			unit := rapid.SampledFrom([]float64{0x1p-24, 0x1p-10, 1, 0x1p-200}).Draw(t, "unit")
			got := p.hess(p.w, data.View{Block: p.dense, From: i, To: i + 1}, []float64{c}, unit)
			// ‖v·vᵀ‖ = ‖v‖² is the trace.
			trace := new(big.Float).SetPrec(3000)
			for j := range p.Dim() {
				trace.Add(trace, big.NewFloat(got[j*side+j]))
			}
			trace.Mul(trace, big.NewFloat(unit*unit))
			bound := new(big.Float).SetPrec(3000).Mul(big.NewFloat(c), big.NewFloat(norm[i]))
			if unit > 0x1p-100 && trace.Cmp(bound) > 0 { // below that squares do not fit a float64
				t.Fatalf("row %d: AddHess with unit %g adds a matrix of norm %v, above its weight × HessNorm, %v; round the "+
					"vector toward zero, and HessNorm up (func up in model/rows.go)", i, unit, trace, bound)
			}
		}
	})
}

// TestHessForms: listed, dense and sparse rows give the same whole numbers, padding is 0.
func TestHessForms(t *testing.T) {
	curved(t, func(t *rapid.T, p *problem) {
		c, unit := p.weights(p.dense.N), 0x1p-18
		side := kern.Padded(p.Dim())
		upper := func(m []float64) (out []float64) {
			for i := range side {
				out = append(out, m[i*side+i:(i+1)*side]...)
			}
			return out
		}
		want := upper(p.hess(p.w, whole(p.dense), c, unit))
		if got := upper(p.hess(p.w, whole(p.sparse), c, unit)); !slices.Equal(got, want) {
			t.Fatalf("AddHess of sparse rows gives %v, of the same rows dense %v; its whole numbers may depend on the rows "+
				"alone", got, want)
		}
		list := make([]int32, p.dense.N)
		for i := range list {
			list[i] = int32(i)
		}
		for _, b := range []*data.Block{p.dense, p.sparse} {
			if got := upper(p.hess(p.w, data.View{Block: b, Rows: list}, c, unit)); !slices.Equal(got, want) {
				t.Fatalf("AddHess of rows in a list gives %v, of the whole block %v; its whole numbers may depend on the rows "+
					"alone", got, want)
			}
		}
	})
}
