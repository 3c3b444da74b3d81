package model_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
)

// drawNet is a network of some architecture with rows like images, zeros side by side, and parameters as at a start.
func drawNet(t *rapid.T, compute string) *problem {
	dim := rapid.SampledFrom([]int{1, 3, 17, 100, 420}).Draw(t, "dim")
	hidden := []string{"1", "5 tanh", "16", "40 linear", "33 tanh", "64 relu"}
	opt := model.Options{
		Dim: dim, NormBound: 1, Classes: rapid.SampledFrom([]int{0, 2, 10, 17}).Draw(t, "classes"), Config: model.MLP{Layers: rapid.SliceOfN(rapid.SampledFrom(hidden), 1, 3).Draw(t, "layers"), Compute: compute, BiasFree: rapid.Bool().Draw(t, "bare")},
	}
	m, err := model.New("mlp", opt)
	if err != nil {
		t.Fatal(err)
	}
	p := &problem{Model: m, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))}
	n := rapid.IntRange(1, 70).Draw(t, "rows")
	x, y := make([][]float64, n), make([]float64, n)
	for i := range x {
		x[i] = make([]float64, dim)
		from := p.rng.IntN(dim)
		for j := from; j < min(dim, from+1+p.rng.IntN(dim)); j++ {
			x[i][j] = p.rng.Float64() / math.Sqrt(float64(dim))
		}
		y[i] = p.rng.NormFloat64()
		if opt.Classes > 0 {
			y[i] = float64(p.rng.IntN(opt.Classes))
		}
	}
	p.dense = modeltest.Dense(x, y, modeltest.Unit(1))
	for _, span := range m.(model.Starter).Start() {
		for range span.Count {
			p.w = append(p.w, (span.Bound+0.01)*(2*p.rng.Float64()-1))
		}
	}
	if net := opt.Config.(model.MLP); net.BiasFree {
		net.BiasFree = false
		opt.Config = net
		p.twin = &problem{rng: p.rng, dense: p.dense}
		if p.twin.Model, err = model.New("mlp", opt); err != nil {
			t.Fatal(err)
		}
		at := 0
		for k, span := range p.twin.Model.(model.Starter).Start() {
			if k%2 == 0 {
				p.twin.w = append(p.twin.w, p.w[at:at+span.Count]...)
				at += span.Count
			} else {
				p.twin.w = append(p.twin.w, make([]float64, span.Count)...)
			}
		}
	}
	return p
}

// TestNetworkSums: the clipped sum is that of gradients that are formed and clipped one by one, to the digits of what the
// network computes in; on the grid it is so to the digits of the grid.
func TestNetworkSums(t *testing.T) {
	race.Skip(t) // see names
	for compute, most := range map[string]float64{"float32": 1e-5, "float64": 1e-12} {
		t.Run(compute, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := drawNet(t, compute)
				clip := rapid.SampledFrom([]float64{0.05, 0.5, 100}).Draw(t, "clip")
				c := p.norms(p.w, 2)
				for i, norm := range c {
					c[i] = min(1, clip/norm)
				}
				with := p // what a bare network leaves out for precision is that of its twin
				if p.twin != nil {
					with = p.twin
					if !slices.Equal(with.losses(with.w), p.losses(p.w)) {
						t.Fatal("biases of 0 change the losses")
					}
				}
				want := modeltest.MicroBatch(p, p.w, []data.View{whole(p.dense)}, clip, 2)
				for unit, most := range map[float64]float64{0: most, math.Ldexp(1, -36): 1e-5} {
					got := p.grad(p.w, whole(p.dense), c, unit)
					far, size := 0.0, 0.0
					for i, ci := range c {
						size += ci * with.norms(with.w, 2)[i]
					}
					for j, g := range got {
						far = math.Hypot(far, g-want[j])
					}
					if far > most*size {
						t.Fatalf("unit %v: %v off sums of size %v", unit, far, size)
					}
				}
			})
		})
	}
}

// TestNetworkRows: what a network in float32 computes of a row is the same bits alone and in company, whichever kernels take
// it: the guarantee of a clipped sum rests on it.
func TestNetworkRows(t *testing.T) {
	race.Skip(t) // see names
	rapid.Check(t, func(t *rapid.T) {
		p := drawNet(t, "")
		if rapid.IntRange(0, 3).Draw(t, "wild") == 0 {
			p.w[p.rng.IntN(len(p.w))] = []float64{1e300, math.Inf(-1), math.NaN(), 1e-300}[p.rng.IntN(4)]
		}
		n, unit := p.dense.N, math.Ldexp(1, -30)
		norm, c := p.norms(p.w, 2), p.weights(p.dense.N)
		bound, ws := make([]float64, n), new(model.Workspace)
		p.Eval(p.w, whole(p.dense), ws).(model.BoundedPass).GradBound(bound)
		sum := make([]float64, p.Dim())
		for i := range n {
			if !(c[i]*norm[i] <= 4) {
				c[i] = 0
			}
		}
		for i := range n {
			one, of := []float64{0}, []float64{0}
			pass := p.Eval(p.w, data.View{Block: p.dense, From: i, To: i + 1}, ws)
			pass.GradNorm(one, 2)
			pass.(model.BoundedPass).GradBound(of)
			pass.AddGrad(sum, c[i:i+1], unit)
			if same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }; !same(one[0], norm[i]) || !same(of[0], bound[i]) {
				t.Fatalf("row %d: norm %v alone, %v in company; bound %v and %v", i, one[0], norm[i], of[0], bound[i])
			}
			if bound[i] < norm[i] {
				t.Fatalf("row %d: bound %v, norm %v", i, bound[i], norm[i])
			}
		}
		for j, g := range p.grad(p.w, whole(p.dense), c, unit) {
			if g != sum[j] {
				t.Fatalf("coordinate %d: %v together, %v one by one", j, g, sum[j])
			}
		}
	})
}
