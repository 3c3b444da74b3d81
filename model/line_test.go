package model_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
)

// plainly hides what a model knows of lines, as one without linear margins knows nothing.
type plainly struct{ model.Model }

// Losses along a line are those of the points on it, dense, sparse, and by the way of a model
// that can only evaluate points.
func TestLineLoss(t *testing.T) {
	for _, name := range model.Names() {
		p := newProblem(t, name, 40, 5, 4, 1, 9)
		along := make([]float64, len(p.w))
		for j := range along {
			along[j] = p.rng.NormFloat64()
		}
		steps := []float64{0, 0.5, -2, 3}
		var ws model.Workspace
		for _, b := range []*data.Block{p.dense, p.sparse} {
			v := data.View{Block: b, From: 3, To: 37}
			got, slow := make([][]float64, len(steps)), make([][]float64, len(steps))
			for k := range steps {
				got[k], slow[k] = make([]float64, v.Len()), make([]float64, v.Len())
			}
			model.LineLoss(p.Model, got, p.w, along, steps, v, &ws, nil)
			// The same again, from margins that were kept.
			n := v.Len() * model.LineWidth(p.Model)
			kept := &model.Margins{From: make([]float64, n), Along: make([]float64, n)}
			model.LineLoss(p.Model, slow, p.w, along, steps, v, &ws, kept)
			for k := range slow {
				if !slices.Equal(slow[k], got[k]) {
					t.Errorf("%s: LineLoss that keeps its margins gives other losses than without; keeping must not change them", name)
				}
				clear(slow[k])
			}
			if kept.Known = true; n == 0 {
				continue // nothing can be kept
			}
			model.LineLoss(p.Model, slow, make([]float64, len(p.w)), along, steps, v, &ws, kept)
			for k := range slow {
				if !slices.Equal(slow[k], got[k]) {
					t.Errorf("%s: LineLoss from margins that were kept gives other losses than from w", name)
				}
			}
			model.LineLoss(plainly{p.Model}, slow, p.w, along, steps, v, &ws, nil)
			for k, eta := range steps {
				at, want := make([]float64, len(p.w)), make([]float64, v.Len())
				for j := range at {
					at[j] = p.w[j] - eta*along[j]
				}
				p.Eval(at, v, &ws).Loss(want)
				for i, x := range want {
					// Margins of the line are rounded in another order, to float32 inside a row.
					if slow[k][i] != x || math.Abs(got[k][i]-x) > 1e-4*(1+math.Abs(x)) {
						t.Errorf("%s, step %v, row %d: LineLoss gives %v, and %v by evaluating points; Loss there is %v, and the first "+
							"may be %.1g off. Correct the model's LineLoss, or leave it out", name, eta, i, got[k][i], slow[k][i], x,
							1e-4*(1+math.Abs(x)))
					}
				}
			}
		}
	}
}
