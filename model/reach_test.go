package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// norm2Of is the largest singular value of a linear map on n numbers.
func norm2Of(n, m int, f func(unit []float64) []float64) float64 {
	a := mat.NewDense(m, n, nil)
	for j := range n {
		unit := make([]float64, n)
		unit[j] = 1
		a.SetCol(j, f(unit))
	}
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDNone) {
		panic("no singular values")
	}
	return svd.Values(nil)[0]
}

// TestReach: what value clipping takes for the norms of the maps from a layer's error to that of its input, and to
// the gradient, is never below them; the images are those where they are large.
func TestReach(t *testing.T) {
	image := shape{5, 4, 2}
	r := rand.New(rand.NewPCG(5, 5))
	images := map[string]func(y, x, c int) float64{
		"random":           func(_, _, _ int) float64 { return r.NormFloat64() },
		"constant":         func(_, _, _ int) float64 { return 1 },
		"peak":             func(y, x, _ int) float64 { return -math.Abs(float64(y-2)) - math.Abs(float64(x-2)) },
		"constant channel": func(_, _, c int) float64 { return float64(c) },
	}
	tight := map[string]float64{} // the least that a bound is above a norm
	for _, text := range []string{"conv 3 3x2 linear", "conv 1 2 pad 1 linear", "conv 4 3 stride 2 pad 2 linear", "max 2 stride 1", "max 3x2 stride 2x1", "mean 2 stride 1", "mean 2x3", "group 1", "group 2"} {
		layers, err := parseLayer(text, image)
		if err != nil {
			t.Fatal(err)
		}
		l := layers[0]
		for what, pixel := range images {
			for round := range 4 {
				var w, a []float64
				for range l.params() {
					w = append(w, r.NormFloat64())
					if round == 0 {
						w[len(w)-1] = 1 // all filters pull the same way
					}
				}
				for i := range image.size() {
					a = append(a, pixel(i/2/image.width, i/2%image.width, i%2)*[]float64{1, 1e-3, 10, 1e3}[round])
				}
				k := newWorker[float64](l)
				k.load(w)
				k.forward(make([]float64, l.out().size()), a, 1)
				check := func(name string, norm float64, bound []float64) {
					if !(bound[0] >= norm*(1-1e-9)) {
						t.Errorf("%s, %s image, round %d%s has norm %v, the bound is %v", text, what, round, name, norm, bound[0])
					}
					if norm > 0 && (tight[text+name] == 0 || bound[0]/norm < tight[text+name]) {
						tight[text+name] = bound[0] / norm
					}
				}
				bound := []float64{1}
				k.reach(bound)
				check(", the error", norm2Of(l.out().size(), l.in(), func(unit []float64) []float64 {
					back := make([]float64, l.in())
					k.backward(back, unit)
					return back
				}), bound)
				if l.params() == 0 {
					continue
				}
				bound[0] = 0
				k.addBound(bound, []float64{1})
				check(", the gradient", norm2Of(l.out().size(), l.params(), func(unit []float64) []float64 {
					grad := make([]float64, l.params())
					k.backward(nil, unit)
					k.addGrad(grad, []float64{1}, 0)
					return grad
				}), bound)
			}
		}
	}
	for what, factor := range tight {
		if factor > 3 {
			t.Errorf("%s: the bound is never within a factor of 3, but %v", what, factor)
		}
	}
}
