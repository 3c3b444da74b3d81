package model_test

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
)

// TestHuber: values at hand-made errors on both sides of the width, bounds, and the width that follows from the label.
func TestHuber(t *testing.T) {
	m, err := model.New("huber", model.Options{Dim: 1, NormBound: 2, Config: model.Huber{Width: 3}})
	if err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(1)
	sameFacts(t, "TestHuber", m, model.Facts{NormBound: 2, Lipschitz: 6, Smooth: 4, HessLipschitz: inf, Convex: true,
		Curved: true, Bounded: true, Centered: true, Shifted: true, Start: inf})
	for _, c := range []struct{ w, y, loss, grad float64 }{
		{1, 1, 0, 0}, {3, 1, 2, 2}, {1, 3, 2, -2}, {4, 1, 4.5, 3}, {5, 1, 7.5, 3}, {-5, 1, 13.5, -3},
	} {
		b := modeltest.Dense([][]float64{{1}}, []float64{c.y}, 0x1p-20)
		loss, grad := []float64{0}, []float64{0}
		p := m.Eval([]float64{c.w}, whole(b), new(model.Workspace))
		p.Loss(loss)
		p.AddGrad(grad, []float64{1}, 0)
		if loss[0] != c.loss || grad[0] != c.grad {
			t.Errorf("margin %v, label %v: loss %v, gradient %v; want %v, %v", c.w, c.y, loss[0], grad[0], c.loss, c.grad)
		}
	}
	for _, c := range []struct {
		opt  model.Options
		want float64
	}{{model.Options{LabelMin: -2, LabelMax: 8}, 1}, {model.Options{LabelMin: -2, LabelMax: 8, LabelScale: 1}, 0.5}} {
		if got := (model.Huber{}).Choose(c.opt); got != (model.Huber{Width: c.want}) {
			t.Errorf("%+v: %+v, want a width of %v", c.opt, got, c.want)
		}
	}
	if _, err := model.New("huber", model.Options{Dim: 1, NormBound: 1}); err == nil {
		t.Error("a width of 0 is taken")
	}
}
