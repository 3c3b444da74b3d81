package private

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
)

// A wild is a network with parameters, a rule and rows that are meant to break the bound on a row's part.
type wild struct {
	*rand.Rand
	model.Model
	shape []int
	rule  clip.Rule
	views [][]int32
	table *data.Table
}

func drawWild(t *rapid.T) wild {
	x := wild{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))}
	x.shape = rapid.SampledFrom([][]int{{3, 2, 2}, {5, 4}, {6, 7, 3}, {1, 9}, {4, 4, 16}}).Draw(t, "shape")
	opt := model.Options{Dim: 1, Shape: x.shape, NormBound: 1, Classes: pick(x, 0, 2, 3, 17)}
	net := model.CNN{Compute: pick(x, "float32", "float64")}
	for _, n := range x.shape {
		opt.Dim *= n
	}
	for x.Model == nil { // most windows do not fit
		net.Layers = nil
		for range 1 + x.IntN(4) {
			net.Layers = append(net.Layers, x.layer())
		}
		opt.Config = net
		x.Model, _ = model.New("cnn", opt)
	}
	t.Log(net.Layers, opt.Classes, net.Compute)

	c := math.Ldexp(0.5+x.Float64()/2, pick(x, -300, -140, -30, 0, 8, 100, 300))
	x.rule = pick[clip.Rule](x, clip.Norm{C: c}, clip.Norm{C: c, P: 1}, clip.Value{C: c}, clip.Value{C: c}, clip.Automatic{C: c}, clip.PerLayer{C: c, Layers: x.Facts().Layers})
	if x.rule == (clip.Norm{C: c}) && x.IntN(2) == 0 && len(x.shape) > 1 {
		x.views, _ = oracle.Augmentation{Count: 2 + x.IntN(6), Shift: min(1, x.shape[0]-1), Flip: true}.Of(x.shape, x.IntN(9))
	}

	rows := randomRows(x.Rand, 1+x.IntN(30), opt.Dim)
	for i := range rows {
		rows[i].y = float32(x.IntN(max(1, opt.Classes)))
		if opt.Classes == 0 {
			rows[i].y = float32(x.NormFloat64() * math.Pow(10, float64(pick(x, 0, 0, 10, 37))))
		}
		if x.IntN(12) == 0 {
			rows[i].y = pick(x, -1, 99, float32(math.NaN()), float32(math.Inf(1)))
		}
		kind, first := x.IntN(4), rows[i].x[0]
		for j := range rows[i].x {
			switch {
			case kind == 0: // all alike
				rows[i].x[j] = float32(math.Trunc(float64(first)/math.Sqrt(float64(opt.Dim))/testUnit) * testUnit)
			case x.IntN(4) < kind:
				rows[i].x[j] = 0
			}
		}
	}
	x.table = table(rows, max(1, opt.Classes), x.IntN(2) == 0)
	for _, b := range x.table.Blocks {
		for range b.N {
			b.Drop = append(b.Drop, x.IntN(9) == 0)
		}
	}
	return x
}

func pick[T any](x wild, from ...T) T { return from[x.IntN(len(from))] }

// layer is one of any kind: windows with gaps and pads, groups of one channel.
func (x wild) layer() string {
	act := pick(x, "relu", "tanh", "linear")
	from1 := func(n int) int { return 1 + x.IntN(n) }
	switch x.IntN(5) {
	case 0, 1:
		return fmt.Sprintf("conv %d %dx%d stride %dx%d pad %d %s", pick(x, 1, 2, 8, 16, 20), from1(4), from1(4), from1(4), from1(4), x.IntN(3), act)
	case 2:
		return fmt.Sprintf("group %d %s", pick(x, 1, 2, 3, 8, 16), act)
	case 3:
		return fmt.Sprintf("%s %dx%d stride %dx%d", pick(x, "max", "mean"), from1(3), from1(3), from1(3), from1(3))
	}
	return fmt.Sprintf("%d %s", pick(x, 1, 3, 8, 16, 33), act)
}

// weights are of one size or of many, all alike or not, some of them beyond float32 or no numbers.
func (x wild) weights() []float64 {
	w, scale, kind := make([]float64, x.Dim()), 0.0, x.IntN(3)
	far, run := pick(x, 0, 1, 6, 25, 37.0), 1+x.IntN(20)
	for j := range w {
		if j == 0 || kind == 0 && j%run == 0 {
			scale = math.Pow(10, far*(2*x.Float64()-1))
		}
		w[j] = scale
		if kind < 2 {
			w[j] *= x.NormFloat64()
		}
		if x.IntN(20) == 0 {
			w[j] *= pick(x, 0, -1.0)
		}
	}
	for range x.IntN(3) * x.IntN(2) {
		w[x.IntN(len(w))] = pick(x, 1e300, -1e200, 1e-300, 1e38, -3e38, 1e19, math.Inf(1), math.NaN())
	}
	return w
}

// TestNetworkOfAnyKind: whatever the layers, the parameters, the rule and the views, a row's part of a clipped sum is within the clip norm, in
// exact arithmetic; it is the same bits in company, wherever it stands, and after whatever passed before; sums are exact; rows that
// are dropped add nothing; and value bounds are not below norms.
func TestNetworkOfAnyKind(t *testing.T) {
	race.Skip(t) // arithmetic alone
	rapid.Check(t, func(t *rapid.T) {
		x := drawWild(t)
		w, b, rows := x.weights(), x.table.Blocks[0], x.table.Rows()
		bound, norm := make([]float64, rows), make([]float64, rows)
		pass := x.Eval(w, data.View{Block: b, To: rows}, new(model.Workspace))
		pass.(model.BoundedPass).GradBound(bound)
		pass.GradNorm(norm, 2)

		var s Local
		s.open(x.table, x.Model, 2)
		defer s.Close()
		s.views, s.split, s.tile = x.views, 1+x.IntN(20), 1+x.IntN(40)
		unit, at := 0.0, make([]float64, x.Dim()) // parameters change where they stand
		sum := func(w []float64, list ...int32) []int64 {
			copy(at, w)
			u, counts, err := s.sum(at, x.rule, oracle.Public{Rows: 60000}, list, list == nil)
			if err != nil {
				t.Fatal(err)
			}
			unit = u
			return counts
		}
		sum(x.weights())
		total, all := make([]int64, x.Dim()), make([]int32, rows)
		for i := range all {
			all[i] = int32(i)
			if x.IntN(4) == 0 {
				sum(x.weights(), int32(x.IntN(rows)))
			}
			part := sum(w, int32(i))
			for j, v := range part {
				total[j] += v
				if v != 0 && b.Drop[i] {
					t.Fatalf("row %d is dropped and adds something", i)
				}
			}
			if size := sizeOf(part, unit, x.rule.Norm()); size.Cmp(big.NewFloat(x.rule.Bound())) > 0 {
				t.Fatalf("row %d: a part of norm %v by %+v", i, size, x.rule)
			}
			if finite := bound[i]+norm[i] <= math.MaxFloat64; finite && bound[i] < norm[i]*(1-1e-13) { // norms are rounded up, too
				t.Fatalf("row %d: bound %v of a norm of %v", i, bound[i], norm[i])
			}
		}
		if !slices.Equal(sum(w), total) || !slices.Equal(sum(w, all...), total) {
			t.Fatalf("by %+v rows add something else together than one by one", x.rule)
		}
		if x.Dim() < 300 && x.IntN(9) == 0 {
			const times = 2*data.BlockRows + 50
			part := sum(w, 0)
			for j, v := range sum(w, make([]int32, times)...) {
				if v != times*part[j] {
					t.Fatalf("coordinate %d: %d rows alike add %d, one %d", j, times, v, part[j])
				}
			}
		}
	})
}

// sizeOf is a norm of counts of unit.
func sizeOf(counts []int64, unit float64, p int) *big.Float {
	sum := new(big.Int)
	for _, c := range counts {
		v := big.NewInt(c)
		if p == 2 {
			v.Mul(v, v)
		}
		sum.Add(sum, v.Abs(v))
	}
	size := new(big.Float).SetPrec(300).SetInt(sum)
	if p == 2 {
		size.Sqrt(size)
	}
	return size.Mul(size, big.NewFloat(unit))
}
