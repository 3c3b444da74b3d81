package model_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
)

// TestGradBound: the bound is never below the norm, and is the norm where there is one margin.
func TestGradBound(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		if !p.Facts().Bounded {
			return
		}
		bound, loss := make([]float64, p.dense.N), make([]float64, p.dense.N)
		norm := p.norms(p.w, 2)
		pass := p.Eval(p.w, whole(p.dense), new(model.Workspace))
		pass.Loss(loss)
		must[model.BoundedPass](pass).GradBound(bound)
		for i, b := range bound {
			if !(b >= norm[i]) {
				t.Fatalf("row %d: GradBound is %v, %.3g below GradNorm, %v; value clipping rests on it. Correct its formula, a "+
					"function of the row's loss, or write Bounded: false in Facts", i, b, norm[i]-b, norm[i])
			}
			a := 1.0 // what the record counts
			if p.classWeights != nil {
				a = p.classWeights[int(p.dense.Y[i])] / slices.Max(p.classWeights)
			}
			loss[i] /= a
			r := a * float64(p.dense.Norm[i])
			// The formulas in the loss, and P0's constants, which are larger.
			want, paper := 0.0, 0.0
			switch p.Name() {
			case "logistic":
				want, paper = -math.Expm1(-loss[i])*r, math.Min(1, math.Sqrt(2*loss[i]))*r
			case "linear":
				want = math.Sqrt(2*loss[i]) * r
				paper = want
			case "softmax":
				want, paper = -math.Expm1(-loss[i])*math.Sqrt2*r, 2*math.Min(1, math.Sqrt(2*loss[i]))*r
			default:
				return
			}
			if math.Abs(b-want) > 1e-9*want+1e-12 || b > paper*(1+1e-12)+1e-12 {
				t.Fatalf("row %d: GradBound is %v; by the formula of this model in TestGradBound it is %v at loss %v, and P0's "+
					"constant %v is a limit", i, b, want, loss[i], paper)
			}
		}
	})
}

// TestSpectralBound: never below the largest singular value by another program, and within
// 1 + 2⁻⁷·ln r of it. The matrix of reference-values.json, specnorm_upper, p = 5.
func TestSpectralBound(t *testing.T) {
	if got := model.SpectralBound([]float64{1, -.5, .25, .75}, 2, 2); !(got >= 1.12874833352963 && got < 1.12874833352963*(1+0x1p-19)) {
		t.Errorf("specnorm_upper: %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "cols")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		scale := math.Pow(10, rapid.Float64Range(-200, 200).Draw(t, "scale"))
		unit, w := make([]float64, rows*cols), make([]float64, rows*cols)
		flat := rapid.Bool().Draw(t, "rank one")
		for i := range unit {
			unit[i] = rnd.NormFloat64()
			if flat {
				unit[i] = float64(i/cols+1) * float64(i%cols+1)
			}
			w[i] = unit[i] * scale
		}
		var svd mat.SVD
		if !svd.Factorize(mat.NewDense(rows, cols, unit), mat.SVDNone) {
			t.Fatal("gonum finds no singular values")
		}
		want := svd.Values(nil)[0]
		got := model.SpectralBound(w, rows, cols) / scale
		if most := want * math.Pow(float64(min(rows, cols)), 1./128) * (1 + 1e-5); got < want || got > most {
			t.Fatalf("%v; the norm is %v, the bound may be %v", got, want, most)
		}
	})
	for _, w := range [][]float64{{math.NaN(), 1}, {math.Inf(1), 1}} {
		if got := model.SpectralBound(w, 1, 2); !math.IsNaN(got) {
			t.Errorf("%v: %v", w, got)
		}
	}
	if got := model.SpectralBound([]float64{0, 0}, 2, 1); got != 0 {
		t.Errorf("zeros: %v", got)
	}
}

// TestNetworkOfReference: the network WGC_net of reference-values.json, which has no biases; with them the square of the bound
// is (1 + ‖W₂‖²)·‖δ₂‖² more, and the spectral norm of W₂ is a bound.
func TestNetworkOfReference(t *testing.T) {
	for _, bare := range []bool{false, true} {
		m, err := model.New("mlp", model.Options{Dim: 2, Classes: 3, NormBound: 3, Config: model.MLP{Layers: []string{"2"}, Compute: "float64", BiasFree: bare}})
		if err != nil {
			t.Fatal(err)
		}
		w := []float64{1, .25, -.5, .75, 0, 0 /* W₂ */, .5, -1, .25, 1, .5, -.75, 0, 0, 0}
		biases := []int{4, 5, 12, 13, 14}
		if bare {
			w, biases = append(w[:4:4], w[6:12]...), nil
		}
		b := modeltest.Dense([][]float64{{1, 2}}, []float64{0}, 0x1p-20)
		loss, bound, norm, grad := []float64{0}, []float64{0}, []float64{0}, make([]float64, m.Dim())
		pass := m.Eval(w, whole(b), new(model.Workspace))
		pass.Loss(loss)
		pass.GradNorm(norm, 2)
		pass.(model.BoundedPass).GradBound(bound)
		pass.AddGrad(grad, []float64{1}, 0)
		for _, bias := range biases {
			grad[bias] = 0
		}
		if got := modeltest.Norm(grad, 2); math.Abs(loss[0]-0.380921456498574) > 1e-14 || math.Abs(got-0.86920735720955) > 1e-13 || bare && math.Abs(norm[0]-got) > 1e-13 {
			t.Errorf("loss %v, norm without biases %v, %v", loss[0], got, norm[0])
		}
		const forward, spectral = 1.50652572090522, 1.36930639376292
		const last = math.Sqrt2 * 1.69506499956795 / 1.77759683639495 // over 1 − e^−ℓ: the two bounds by the loss and by the residual
		want := forward
		if !bare {
			delta := last * -math.Expm1(-loss[0])
			want = math.Sqrt(forward*forward + delta*delta*(1+spectral*spectral))
		}
		if got := bound[0]; got < want*(1-1e-13) || got > want*1.006 {
			t.Errorf("bare %v: bound %v, want %v", bare, got, want)
		}
	}
}

// TestBareNetwork: without biases a network has as many parameters and stages as its matrices; the start of PyTorch is ±1/√n everywhere.
func TestBareNetwork(t *testing.T) {
	opt := model.Options{Dim: 4, Classes: 3, NormBound: 7, Config: model.MLP{Layers: []string{"9"}, BiasFree: true, Start: "pytorch"}}
	m, err := model.New("mlp", opt)
	if err != nil || m.Dim() != 4*9+9*3 {
		t.Fatal(m.Dim(), err)
	}
	if got := m.(model.Starter).Start(); !slices.Equal(got, []model.Span{{36, .5}, {0, .5}, {27, 1. / 3}, {0, 1. / 3}}) {
		t.Error(got)
	}
	for _, s := range m.(model.Staged).Stages(make([]float64, m.Dim())) {
		if s.B != nil {
			t.Error(s.Kind, "has biases")
		}
	}
	opt.Config = model.MLP{Layers: []string{"9"}, Start: "pytorch"}
	if m, err = model.New("mlp", opt); err != nil {
		t.Fatal(err)
	}
	if got := m.(model.Starter).Start(); !slices.Equal(got, []model.Span{{36, .5}, {9, .5}, {27, 1. / 3}, {3, 1. / 3}}) {
		t.Error(got)
	}
}
