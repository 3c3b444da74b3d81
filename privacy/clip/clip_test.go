package clip

import (
	"math"
	"math/big"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

var (
	inf, nan = math.Inf(1), math.NaN()

	// extreme draws floats of every size, and the special ones.
	extreme = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) float64 { return math.Float64frombits(rapid.Uint64().Draw(t, "bits")) }),
		rapid.Float64Range(0, 4),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 5e-324, 0x1p-1022, 1e-310, 1, 1e308, math.MaxFloat64, inf, -inf, nan, -1}),
	)
	bounds = rapid.Custom(func(t *rapid.T) float64 {
		return rapid.OneOf(extreme, rapid.Float64Range(0.1, 10)).Filter(func(c float64) bool {
			return c >= 0x1p-1022 && c <= math.MaxFloat64
		}).Draw(t, "bound")
	})
)

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

// What Rule promises, for every figure and every bound.
func TestWeightsKeepTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := bounds.Draw(t, "C")
		for _, r := range []Rule{Norm{C: bound}, Norm{C: bound, P: 1}, Lipschitz{bound}, None{}} {
			figures := rapid.OneOf(extreme, rapid.Custom(func(t *rapid.T) float64 {
				return bound * rapid.Float64Range(1-0x1p-18, 1+0x1p-18).Draw(t, "near the bound")
			}))
			norm := rapid.SliceOfN(figures, 0, 8).Draw(t, "norm")
			loss := rapid.SliceOfN(extreme, len(norm), len(norm)).Draw(t, "loss")
			if rapid.Bool().Draw(t, "no loss") {
				loss = nil
			}
			c := make([]float64, len(norm))
			r.Weights(c, norm, loss)
			for i := range c {
				ok := finite(norm[i]) && norm[i] >= 0 && (loss == nil || finite(loss[i]))
				switch {
				case !(c[i] >= 0 && c[i] <= 1):
					t.Fatalf("%#v: norm %v has weight %v", r, norm[i], c[i])
				case !ok:
					if c[i] != 0 {
						t.Fatalf("%#v: norm %v, loss not finite or norm not valid: weight %v", r, norm[i], c[i])
					}
				case norm[i] == 0 || norm[i] <= r.Bound()*(1-0x1p-19):
					if c[i] != 1 {
						t.Fatalf("%#v: norm %v is within the bound and has weight %v", r, norm[i], c[i])
					}
				case finite(r.Bound()):
					product := new(big.Rat).SetFloat64(c[i])
					product.Mul(product, new(big.Rat).SetFloat64(norm[i]))
					limit := new(big.Rat).SetFloat64(r.Bound())
					if product.Cmp(limit) > 0 {
						t.Fatalf("%#v: norm %v has weight %v: above the bound", r, norm[i], c[i])
					}
					// Nor is more lost than the margin, unless the weight underflows.
					if c[i] > 0 && c[i]*norm[i] < r.Bound()*(1-0x1p-19) {
						t.Fatalf("%#v: norm %v has weight %v: loses too much", r, norm[i], c[i])
					}
				}
			}
		}
	})
}

func TestWeights(t *testing.T) {
	norm := []float64{0, 0.5, 1, 2, 4, inf, nan, -1, 1e308}
	for _, c := range []struct {
		rule Rule
		want []float64
	}{
		{Norm{C: 1}, []float64{1, 1, margin, margin / 2, margin / 4, 0, 0, 0, margin / 1e308}},
		{Norm{C: 2, P: 1}, []float64{1, 1, 1, margin, margin / 2, 0, 0, 0, 2 * margin / 1e308}},
		{Lipschitz{1}, []float64{1, 1, 1, margin / 2, margin / 4, 0, 0, 0, margin / 1e308}},
		{None{}, []float64{1, 1, 1, 1, 1, 0, 0, 0, 1}},
		{Norm{}, make([]float64, 9)},
		{Norm{C: inf}, make([]float64, 9)},
		{Norm{C: nan}, make([]float64, 9)},
		{Norm{C: 5e-324}, make([]float64, 9)},
		{Norm{C: -1}, make([]float64, 9)},
		{Norm{C: 1, P: 3}, make([]float64, 9)},
		{Lipschitz{}, make([]float64, 9)},
		{Lipschitz{nan}, make([]float64, 9)},
	} {
		got := make([]float64, len(norm))
		for i := range got {
			got[i] = nan // what was there before must not matter
		}
		c.rule.Weights(got, norm, nil)
		for i := range got {
			want := c.want[i]
			if want < 0x1p-1022 {
				want = 0
			}
			if got[i] != want {
				t.Errorf("%#v: norm %v has weight %v; want %v", c.rule, norm[i], got[i], want)
			}
		}
	}
}

func TestNorms(t *testing.T) {
	for _, c := range []struct {
		rule  Rule
		norm  int
		bound float64
	}{
		{Norm{C: 3}, 2, 3}, {Norm{C: 3, P: 1}, 1, 3}, {Norm{C: 3, P: 2}, 2, 3}, {Lipschitz{4}, 2, 4}, {None{}, 2, inf},
	} {
		if c.rule.Norm() != c.norm || c.rule.Bound() != c.bound {
			t.Errorf("%#v: norm %d, bound %v", c.rule, c.rule.Norm(), c.rule.Bound())
		}
	}
}

// A rule is refused by its own Validate, and by Sensitivity or its Norm where it is used.
func TestValidate(t *testing.T) {
	for _, good := range []interface{ Validate() error }{Norm{C: 1}, Norm{C: 0x1p-1022, P: 1}, Lipschitz{math.MaxFloat64}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%#v: %v", good, err)
		}
	}
	for _, bad := range []interface{ Validate() error }{
		Norm{}, Norm{C: -1}, Norm{C: inf}, Norm{C: nan}, Norm{C: 1e-310}, Norm{C: 1, P: 3}, Norm{C: 1, P: -1},
		Lipschitz{}, Lipschitz{-1}, Lipschitz{inf}, Lipschitz{nan},
	} {
		if bad.Validate() == nil {
			t.Errorf("%#v: no error", bad)
		}
	}
}

func TestLengthsPanic(t *testing.T) {
	for _, f := range []func(){
		func() { Norm{C: 1}.Weights(make([]float64, 2), make([]float64, 3), nil) },
		func() { Norm{C: 1}.Weights(make([]float64, 2), make([]float64, 2), make([]float64, 1)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("different lengths did not panic")
				}
			}()
			f()
		}()
	}
}

func TestSensitivity(t *testing.T) {
	for _, c := range []struct {
		bound float64
		adj   privacy.Adjacency
		want  float64
	}{
		{0.5, privacy.AddRemove, 0.5}, {0.5, privacy.ReplaceOne, 1},
		{math.MaxFloat64, privacy.AddRemove, math.MaxFloat64},
	} {
		if got, err := Sensitivity(c.bound, c.adj); err != nil || got != c.want {
			t.Errorf("Sensitivity(%v, %v) = %v, %v; want %v", c.bound, c.adj, got, err, c.want)
		}
	}
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, bound := range []float64{0, -1, inf, -inf, nan} {
			if s, err := Sensitivity(bound, adj); err == nil {
				t.Errorf("Sensitivity(%v, %v) = %v", bound, adj, s)
			}
		}
	}
	if _, err := Sensitivity(math.MaxFloat64, privacy.ReplaceOne); err == nil {
		t.Error("an infinite sensitivity is no error")
	}
	for _, adj := range []privacy.Adjacency{0, 3} {
		if _, err := Sensitivity(1, adj); err == nil {
			t.Errorf("relation %v is no error", adj)
		}
	}
}

func BenchmarkWeights(b *testing.B) {
	c, norm := make([]float64, 1024), make([]float64, 1024)
	for i := range norm {
		norm[i] = float64(i) / 512
	}
	for b.Loop() {
		Norm{C: 1}.Weights(c, norm, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/record")
}

// A contribution stays below C, in exact arithmetic, whatever its norm; a long one comes near C, and shorter ones keep
// their order. What is not finite weighs 0.
func TestAutomaticKeepsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Automatic{C: bounds.Draw(t, "C")}
		norm := []float64{extreme.Draw(t, "norm"), 1000 * r.C}
		c := make([]float64, 2)
		r.Weights(c, norm, nil)
		for i, w := range c {
			if !finite(norm[i]) || norm[i] < 0 {
				if w != 0 {
					t.Fatalf("%#v: norm %v weighs %v", r, norm[i], w)
				}
				continue
			}
			product := new(big.Rat).SetFloat64(w)
			product.Mul(product, new(big.Rat).SetFloat64(norm[i]))
			if w < 0 || w > 1 || product.Cmp(new(big.Rat).SetFloat64(r.Bound())) > 0 {
				t.Fatalf("%#v: norm %v with weight %v is beyond the bound", r, norm[i], w)
			}
		}
		if got := c[1] * norm[1]; finite(norm[1]) && c[1] > 0 && got < 0.998*r.C {
			t.Fatalf("%#v: norm %v is brought to %v", r, norm[1], got)
		}
	})
	c := make([]float64, 3)
	(Automatic{C: 0.01}).Weights(c, []float64{0.01, 1, 1}, []float64{1, 1, math.NaN()})
	if math.Abs(c[0]-0.5) > 1e-6 || math.Abs(c[1]-0.01/1.01) > 1e-7 || c[2] != 0 {
		t.Errorf("weights %v", c)
	}
	if (Automatic{}).Validate() == nil {
		t.Error("a rule without a bound is valid")
	}
}

// Parts that are clipped by themselves stay within C together, in exact arithmetic; those within C/√L are left alone.
func TestPerLayerKeepsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := PerLayer{C: bounds.Draw(t, "C"), Layers: rapid.IntRange(1, 12).Draw(t, "layers")}
		part := r.C / math.Sqrt(float64(r.Layers))
		norm := rapid.SliceOfN(rapid.OneOf(extreme, rapid.Custom(func(t *rapid.T) float64 {
			return part * rapid.Float64Range(1-0x1p-18, 1+0x1p-18).Draw(t, "near the bound")
		})), r.Layers, r.Layers).Draw(t, "norm")
		c := make([]float64, r.Layers)
		r.Weights(c, norm, nil)
		square := new(big.Rat)
		for i, w := range c {
			if !finite(norm[i]) || norm[i] < 0 {
				if w != 0 {
					t.Fatalf("%#v: norm %v weighs %v", r, norm[i], w)
				}
				continue
			}
			if w != 1 && norm[i] < part*(1-0x1p-19) && part >= 0x1p-1022 {
				t.Fatalf("%#v: norm %v is within its share and weighs %v", r, norm[i], w)
			}
			product := new(big.Rat).SetFloat64(w)
			product.Mul(product, new(big.Rat).SetFloat64(norm[i]))
			square.Add(square, product.Mul(product, product))
		}
		bound := new(big.Rat).SetFloat64(r.Bound())
		if square.Cmp(bound.Mul(bound, bound)) > 0 {
			t.Fatalf("%#v: parts of norms %v with weights %v are beyond the bound", r, norm, c)
		}
	})
	if (PerLayer{C: 1}).Validate() == nil || (PerLayer{C: math.NaN(), Layers: 2}).Validate() == nil {
		t.Error("a rule without layers or without a bound is valid")
	}
}
