package model_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
)

// At the maximum of the likelihood, found by Newton's method in code that shares nothing with the
// model, its gradient is 0, its losses are half the deviance and its predictions the means.
func TestPoissonOptimum(t *testing.T) {
	const n, dim = 400, 4
	rnd := rand.New(rand.NewPCG(4, 2))
	truth := []float64{0.4, -1.2, 0.8, 0.5}
	x, y := make([][]float64, n), make([]float64, n)
	for i := range x {
		eta := 0.0
		for j := range dim {
			v := 2*rnd.Float64() - 1
			if j == dim-1 {
				v = 1
			}
			x[i] = append(x[i], math.Trunc(v*0x1p18)/0x1p18) // on the table's grid
			eta += truth[j] * x[i][j]
		}
		for p := rnd.Float64(); p > math.Exp(-math.Exp(eta)); p *= rnd.Float64() { // Knuth
			y[i]++
		}
	}
	b := modeltest.Dense(x, y, modeltest.Unit(2))
	w := mat.NewVecDense(dim, nil)
	for range 30 {
		grad, hess := mat.NewVecDense(dim, nil), mat.NewSymDense(dim, nil)
		for i := range x {
			row := mat.NewVecDense(dim, x[i])
			mu := math.Exp(mat.Dot(row, w))
			grad.AddScaledVec(grad, mu-y[i], row)
			hess.SymRankOne(hess, mu, row)
		}
		var step mat.VecDense
		if err := step.SolveVec(hess, grad); err != nil {
			t.Fatal(err)
		}
		w.SubVec(w, &step)
	}
	m, err := model.New("poisson", model.Options{Dim: dim, NormBound: 2})
	if err != nil {
		t.Fatal(err)
	}
	grad, loss, mean, one := make([]float64, dim), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range one {
		one[i] = 1
	}
	var ws model.Workspace
	p := m.Eval(w.RawVector().Data, whole(b), &ws)
	p.Loss(loss)
	p.AddGrad(grad, one, 0)
	m.Predict(mean, w.RawVector().Data, whole(b), new(model.Workspace))
	if far := modeltest.Norm(grad, 2); far > 1e-9 {
		t.Errorf("the gradient at the optimum is %v", far)
	}
	for i := range y {
		mu := math.Exp(mat.Dot(mat.NewVecDense(dim, x[i]), w))
		deviance := 2 * (mu - y[i])
		if y[i] > 0 {
			deviance += 2 * y[i] * math.Log(y[i]/mu)
		}
		if math.Abs(2*loss[i]-deviance) > 1e-12*(1+y[i]) || math.Abs(mean[i]-mu) > 1e-13*mu {
			t.Fatalf("row %d: loss %v and mean %v, want deviance %v and %v", i, loss[i], mean[i], deviance, mu)
		}
	}
}

// A negative count has no figures, so that no clip rule lets the row in.
func TestPoissonNegative(t *testing.T) {
	m, err := model.New("poisson", model.Options{Dim: 1, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := modeltest.Dense([][]float64{{1}}, []float64{-1}, 0x1p-20)
	loss, norm, grad := []float64{0}, []float64{0}, []float64{0}
	p := m.Eval([]float64{0.5}, whole(b), new(model.Workspace))
	p.Loss(loss)
	p.GradNorm(norm, 2)
	p.AddGrad(grad, []float64{1}, 0x1p-20)
	if !math.IsNaN(loss[0]) || !math.IsNaN(norm[0]) || grad[0] != 0 {
		t.Errorf("loss %v, norm %v, gradient %v; want NaN, NaN, 0", loss[0], norm[0], grad[0])
	}
}
