package private

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// TestWrongAnswers: 0-1 losses are those of a count by hand, in sparse and dense rows, with an offset or none; noise has the deviation
// that is charged, the same under both relations; other models, bounds and points are refused.
func TestWrongAnswers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 5))
	const n, dim = 2500, 5
	rows := randomRows(rnd, n, dim)
	ask := func(t *testing.T, o *Oracle, noise mech.Additive, at []float64) (float64, error) {
		q := oracle.Loss{Bound: 1, Noise: noise, Wrong: true}
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			return 0, err
		}
		return b.Loss(q, at)
	}
	for _, sparse := range []bool{false, true} {
		o := openOracle(t, centeredConfig(t, table(rows, 2, sparse), privacy.AddRemove, n))
		for _, offset := range []float64{0, 0.3, -0.3, 9, -9} {
			at := make([]float64, dim, dim+1)
			for j := range at {
				at[j] = rnd.NormFloat64()
			}
			at = append(at, offset)
			want := 0.0
			for _, r := range rows {
				z, class := offset, float32(0)
				for j, x := range r.x {
					z += at[j] * float64(x)
				}
				if z > 0 {
					class = 1
				}
				if r.y != class {
					want += 1.0 / n
				}
			}
			if got, err := ask(t, o, mech.None{}, at); err != nil || math.Abs(got-want) > 1e-9 {
				t.Errorf("sparse %t, offset %v: %v, %v; want %v", sparse, offset, got, err, want)
			}
		}
		for _, at := range [][]float64{nil, {1}, make([]float64, dim), {0, 0, 0, 0, 0, math.NaN()}, {0, 0, 0, 0, 0, math.Inf(1)}} {
			if got, err := ask(t, o, mech.None{}, at); err == nil {
				t.Errorf("asked at %v: %v", at, got)
			}
		}
		if _, err := o.Batch(t.Context(), sample.Full{}, oracle.Loss{Bound: 2, Noise: mech.Gaussian{Sigma: 1}, Wrong: true}); err == nil {
			t.Error("a 0-1 loss with the bound 2")
		}
	}
	three := config(t, table(rows, 3, false), privacy.AddRemove, n)
	three.Model, _ = model.New("softmax", model.Options{Dim: dim, Classes: 3, NormBound: 1})
	three.Facts.Dim, three.Facts.Classes = 3*dim, 3
	if _, err := openOracle(t, three).Batch(t.Context(), sample.Full{}, oracle.Loss{Bound: 1, Noise: mech.Gaussian{Sigma: 1}, Wrong: true}); err == nil {
		t.Error("0-1 losses of a model without two classes by one margin")
	}
	// 4,000 draws: the relative deviation of the estimate is 0.011; 5 of them fail with probability 6e-7, and the seed is fixed.
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		const few, sigma, draws = 50, 3, 4000
		o := openOracle(t, centeredConfig(t, table(slices.Repeat([]row{{x: make([]float32, 2)}}, few), 2, false), adj, few))
		square := 0.0
		for range draws {
			v, err := ask(t, o, mech.Gaussian{Sigma: sigma}, []float64{0, 0, -1}) // all are right
			if err != nil {
				t.Fatal(err)
			}
			square += v * v / draws
		}
		if got, want := math.Sqrt(square), float64(sigma)/few; math.Abs(got/want-1) > 0.056 {
			t.Errorf("%v: noise of standard deviation %v, want %v", adj, got, want)
		}
	}
}
