package model_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
)

// smallOf is a configuration for the model of that name, of rows of dim numbers.
func smallOf(name string, dim int) model.Config {
	if name == "cnn" {
		return model.CNN{Layers: []string{"conv 2 1 tanh", "mean 1", "group 1", "3"}, Shape: []int{1, dim}}
	}
	e, err := model.Lookup(name)
	if err != nil {
		panic(err)
	}
	return e.Small
}

// labelOf is what the model of that name takes.
func labelOf(name string) model.Label {
	e, err := model.Lookup(name)
	if err != nil {
		panic(err)
	}
	return e.Label
}

// classesOf is how many classes the model of that name takes: 0 for a numeric label, else k or 2.
func classesOf(name string, k int) int {
	for _, classes := range []int{k, 2} {
		if _, err := model.New(name, model.Options{Dim: 1, Classes: classes, NormBound: 1, Config: smallOf(name, 1)}); err == nil {
			return classes
		}
	}
	return 0
}

// A problem is a model with random rows in both forms and random parameters.
type problem struct {
	model.Model
	dense, sparse *data.Block
	w             []float64
	single        bool // computes in float32
	rng           *rand.Rand
	unit          float64     // grid of the values
	sum           float64     // grid of sums over that of coefficients
	classWeights  []float64   // nil: all 1
	plain         model.Model // the same without
	twin          *problem    // of a network without biases: the same with biases of 0
}

// newProblem makes n rows of norm at most bound, about half of them zeros.
func newProblem(t interface{ Fatal(...any) }, name string, n, dim, classes int, bound float64, seed uint64) *problem {
	var layers []string
	var shape []int
	compute := ""
	scale := 3.0
	switch name {
	case "cnn", singleCNN:
		if name == "cnn" {
			compute = "float64"
		}
		name = "cnn"
		c := cnns[seed%uint64(len(cnns))]
		shape, layers, dim = c.shape, c.layers, 1
		for _, k := range shape {
			dim *= k
		}
		if seed%13 == 0 {
			classes = 0
		}
		scale = 0.7
	case "mlp", single:
		if name == "mlp" {
			compute = "float64"
		}
		name = "mlp"
		layers = [][]string{{"3"}, {"4 tanh", "2 linear"}, {"5 relu", "3 tanh"}, {"2 tanh"}}[seed%4]
		if seed/4%3 == 0 {
			classes = 0
		}
		scale = 0.7
	default:
		classes = map[model.Label]int{model.TwoClasses: 2, model.SomeClasses: classes}[labelOf(name)]
	}
	var weights []float64
	if classes > 0 && seed%3 == 2 {
		weights = []float64{2, 0.3, 1, 5, 0.7, 4, 3, 0.1, 6}[:classes]
	}
	opt := model.Options{Dim: dim, Classes: classes, NormBound: bound, Weights: weights, Config: smallOf(name, dim)}
	input := 0.0
	if seed%5 == 3 {
		input = 1.7
	}
	switch name {
	case "mlp":
		opt.Config = model.MLP{Layers: layers, Compute: compute, InputScale: input}
	case "cnn":
		opt.Config = model.CNN{Layers: layers, Compute: compute, InputScale: input, Shape: shape}
	}
	m, err := model.New(name, opt)
	if err != nil && weights != nil { // see TestClassWeights
		weights, opt.Weights = nil, nil
		m, err = model.New(name, opt)
	}
	if err != nil {
		t.Fatal(err)
	}
	opt.Weights = nil
	plain, err := model.New(name, opt)
	if err != nil {
		t.Fatal(err)
	}
	p := &problem{Model: m, plain: plain, classWeights: weights, single: (name == "mlp" || name == "cnn") && compute == "", rng: rand.New(rand.NewPCG(seed, 7)), unit: modeltest.Unit(bound)}
	x, y := make([][]float64, n), make([]float64, n)
	for i := range x {
		x[i] = make([]float64, dim)
		for j := range x[i] {
			if p.rng.IntN(2) == 0 {
				x[i][j] = p.rng.NormFloat64()
			}
		}
		norm := modeltest.Norm(x[i], 2)
		length := bound * p.rng.Float64()
		for j := range x[i] {
			if norm > 0 {
				x[i][j] *= length / norm
			}
		}
		y[i] = float64(p.rng.IntN(max(classes, 1)))
		if classes == 0 {
			y[i] = p.rng.NormFloat64()
			if labelOf(name) == model.Count {
				y[i] = math.Floor(math.Abs(3 * y[i]))
			}
		}
	}
	p.dense = modeltest.Dense(x, y, p.unit)
	p.sparse = modeltest.Sparse(p.dense)
	p.w = p.vector(m.Dim(), scale)
	if p.sum = m.Facts().Unit; p.sum == 0 {
		p.sum = p.unit
	}
	return p
}

func (p *problem) vector(n int, scale float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = scale * p.rng.NormFloat64()
	}
	return v
}

// weights are clip weights: in [0, 1], a fifth of them 0.
func (p *problem) weights(n int) []float64 {
	c := make([]float64, n)
	for i := range c {
		c[i] = max(0, p.rng.Float64()*1.25-0.25)
	}
	return c
}

func whole(b *data.Block) data.View { return data.View{Block: b, To: b.N} }

// grad is Σ c_i ∇ℓ_i at w over v.
func (p *problem) grad(w []float64, v data.View, c []float64, unit float64) []float64 {
	dst := make([]float64, p.Dim())
	p.Eval(w, v, new(model.Workspace)).AddGrad(dst, c, unit)
	return dst
}

// gradOf is the gradient of row i alone.
func (p *problem) gradOf(w []float64, i int, c, unit float64) []float64 {
	return p.grad(w, data.View{Block: p.dense, From: i, To: i + 1}, []float64{c}, unit)
}

func (p *problem) losses(w []float64) []float64 {
	dst := make([]float64, p.dense.N)
	p.Eval(w, whole(p.dense), new(model.Workspace)).Loss(dst)
	return dst
}

func (p *problem) norms(w []float64, order int) []float64 {
	dst := make([]float64, p.dense.N)
	p.Eval(w, whole(p.dense), new(model.Workspace)).GradNorm(dst, order)
	return dst
}

// single and singleCNN are networks that compute in float32; in these tests the others compute in float64.
const single, singleCNN = "mlp in float32", "cnn in float32"

// cnns are small networks of layers of every kind.
var cnns = []struct {
	shape  []int
	layers []string
}{
	{[]int{3, 4}, []string{"conv 2 2x3 tanh", "3 linear"}},
	{[]int{4, 3, 2}, []string{"conv 3 3 stride 2 pad 1 relu", "max 2 stride 1", "2 tanh"}},
	{[]int{5, 5}, []string{"conv 4 2 linear", "group 2 tanh", "mean 2"}},
	{[]int{4, 4, 2}, []string{"mean 2 stride 1x2", "group 1", "conv 2 2 stride 2 relu", "conv 3 2 pad 1 tanh"}},
	{[]int{6, 5}, []string{"max 3x2 stride 2x1", "conv 5 2x1 stride 1x2 relu", "max 1x2 stride 1", "group 5 relu", "2"}},
	{[]int{1, 20}, []string{"conv 2 1x8 stride 3 pad 0 tanh", "max 1x2"}},
}

// names are those of the models, and single and singleCNN; under the race detector without networks: it empties the pools in
// which products of matrices keep their memory.
func names() []string {
	return slices.DeleteFunc(append(model.Names(), single, singleCNN), func(name string) bool {
		return race.Enabled && (strings.HasPrefix(name, "mlp") || strings.HasPrefix(name, "cnn"))
	})
}

// check runs f on random problems of every model.
func check(t *testing.T, f func(t *rapid.T, p *problem)) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f(t, newProblem(t, name,
					rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 12).Draw(t, "dim"),
					rapid.IntRange(2, 5).Draw(t, "classes"), rapid.SampledFrom([]float64{1, 0.3, 5}).Draw(t, "bound"),
					rapid.Uint64().Draw(t, "seed")))
			})
		})
	}
}

// must is v as an optional interface that the model's Facts, or its use, claim.
func must[T any](v any) T {
	t, ok := v.(T)
	if !ok {
		panic(fmt.Sprintf("%T lacks methods of %v; see TestClaims", v, reflect.TypeFor[T]()))
	}
	return t
}

// TestClaims: a model has the methods that its Facts claim.
func TestClaims(t *testing.T) {
	for _, name := range append(model.Names(), single, singleCNN) {
		p := newProblem(t, name, 4, 5, 3, 1, 3)
		f, pass := p.plain.Facts(), p.plain.Eval(p.w, whole(p.dense), new(model.Workspace))
		for _, c := range []struct {
			field   string
			claimed bool
			has     bool
			needs   string
		}{
			{"Curved", f.Curved, is[model.CurvedPass](pass), "HessNorm and AddHess (model.CurvedPass)"},
			{"Bounded", f.Bounded, is[model.BoundedPass](pass), "GradBound (model.BoundedPass)"},
			{"Layers", f.Layers > 0, is[model.LayeredPass](pass), "LayerNorms and AddLayers (model.LayeredPass)"},
			{"Viewed", f.Viewed, is[model.ViewedPass](pass), "MeanNorm and AddMean (model.ViewedPass)"},
		} {
			if c.claimed && !c.has {
				t.Errorf("%s: Facts().%s claims methods that what Eval returns, a %T, does not have: write %s, or leave %s at "+
					"its zero value", name, c.field, pass, c.needs, c.field)
			}
		}
		if !is[model.Staged](p.plain) {
			t.Errorf("%s: the model, a %T, has no method Stages (model.Staged), without which sotto export cannot write it; "+
				"write it", name, p.plain)
		}
	}
}

func is[T any](v any) bool { _, ok := v.(T); return ok }

func bits(v []float64) []uint64 {
	out := make([]uint64, len(v))
	for i, x := range v {
		out[i] = math.Float64bits(x + 0) // −0 is 0
	}
	return out
}

// between says whether v lies between a and b, give or take tol.
func between(v, a, b, tol float64) bool { return v >= min(a, b)-tol && v <= max(a, b)+tol }

// TestGradient compares every record's gradient with central differences of its
// loss, whose own error differences twice as far tell: a group of nearly equal numbers, normalized, bends much.
// With Facts.Smooth +Inf the loss may have kinks: there a gradient lies between the slopes of both sides.
func TestGradient(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		if p.single {
			return // too coarse for differences: see TestSingle
		}
		const h = 1e-6
		at := p.losses(p.w)
		grads := make([][]float64, len(at))
		for i := range at {
			grads[i] = p.gradOf(p.w, i, 1, 0)
		}
		for j := range p.w {
			moved := func(by float64) []float64 {
				w := slices.Clone(p.w)
				w[j] += by
				return p.losses(w)
			}
			lossUp, lossDown, farUp, farDown := moved(h), moved(-h), moved(2*h), moved(-2*h)
			for i := range at {
				slope, far := (lossUp[i]-lossDown[i])/(2*h), (farUp[i]-farDown[i])/(4*h)
				got, tol := grads[i][j], 1e-7*(1+at[i])+math.Abs(far-slope)
				kink := math.IsInf(p.Facts().Smooth, 1) && between(got, (lossUp[i]-at[i])/h, (at[i]-lossDown[i])/h, tol)
				if !(math.Abs(got-slope) <= tol) && !kink {
					t.Fatalf("row %d, parameter %d: AddGrad adds the derivative %v, central differences of Loss give %v; they may "+
						"be %.2g apart. Correct AddGrad (of a glm: slope, the derivative of loss). A loss with kinks states Smooth: "+
						"+Inf in its Facts; at a kink any slope between those of both sides will do", i, j, got, slope, tol)
				}
			}
		}
	})
}

// TestGradNorm: the norm of a record's gradient is that of the vector, never
// below it, and not above it by more than the rounding of Norm to float32.
func TestGradNorm(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		for order, slack := range map[int]float64{1: 1e-13, 2: 3e-7} {
			got := p.norms(p.w, order)
			for i, norm := range got {
				want := modeltest.Norm(p.gradOf(p.w, i, 1, 0), order)
				// The products of the reference are rounded; GradNorm is of the
				// exact ones, so it may only fall short by that.
				if !(norm >= want*(1-0x1p-51) && norm <= want*(1+slack)+1e-300) {
					t.Fatalf("row %d: GradNorm of order %d is %v, the norm of what AddGrad adds %v. It may never be below it (the "+
						"guarantee rests on it), and above it by %.1g of it at most: compute the norm of that gradient, all parameters "+
						"included, and round up (func up in model/rows.go)", i, order, norm, want, slack)
				}
				// On the grid the vector is exact, and so is the comparison.
				exact := new(big.Float).SetPrec(2000)
				for _, g := range p.gradOf(p.w, i, 1, 0x1p-24) {
					v := big.NewFloat(math.Abs(g)).SetPrec(2000)
					if order == 2 {
						v.Mul(v, v)
					}
					exact.Add(exact, v)
				}
				bound := big.NewFloat(norm).SetPrec(2000)
				if order == 2 {
					bound.Mul(bound, bound)
				}
				if bound.Cmp(exact) < 0 {
					t.Fatalf("row %d: GradNorm of order %d, %v, is below the exact norm of what AddGrad adds, by its last digits: "+
						"round up each product (func up in model/rows.go)", i, order, norm)
				}
			}
		}
	})
}

func TestUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := math.Ldexp(rapid.Float64Range(0, 1).Draw(t, "a"), rapid.IntRange(-1040, 3).Draw(t, "exp"))
		b := rapid.Float64Range(0, 10).Draw(t, "b")
		got := model.Up(a, b)
		want := new(big.Float).SetPrec(200).Mul(big.NewFloat(a), big.NewFloat(b))
		w, _ := want.Float64()
		if big.NewFloat(got).Cmp(want) < 0 || got > w*(1+1e-15)+1e-323 {
			t.Fatalf("up(%v, %v) = %v, the product is %v", a, b, got, want)
		}
	})
}

// TestAddGrad: the weighted sum is the sum of the weighted vectors.
func TestAddGrad(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		c := p.weights(p.dense.N)
		want, scale := make([]float64, p.Dim()), 0.0
		for i, ci := range c {
			for j, g := range p.gradOf(p.w, i, 1, 0) {
				want[j] += ci * g
				scale += math.Abs(ci * g)
			}
		}
		for _, b := range []*data.Block{p.dense, p.sparse} {
			for j, g := range p.grad(p.w, whole(b), c, 0) {
				far := 1e-12
				if p.single && p.Name() == "cnn" {
					far = 1e-6 // it adds up rows in float32
				}
				if math.Abs(g-want[j]) > far*scale {
					t.Fatalf("parameter %d: AddGrad of all rows gives %v, the sum of c_i·∇ℓ_i row by row %v; they may be %.2g "+
						"apart. A row's term may not depend on other rows: weigh each gradient by its own c_i and add to dst", j, g,
						want[j], far*scale)
				}
			}
		}
	})
}

// TestSingle: gradients in float32 are those in float64, but for their digits.
func TestSingle(t *testing.T) {
	race.Skip(t) // see names
	rapid.Check(t, func(t *rapid.T) {
		rows, seed := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.Uint64().Draw(t, "seed")
		name := rapid.SampledFrom([]string{"mlp", "cnn"}).Draw(t, "name")
		p, q := newProblem(t, name+" in float32", rows, 9, 4, 1, seed), newProblem(t, name, rows, 9, 4, 1, seed)
		c := p.weights(rows)
		got, want := p.grad(p.w, whole(p.dense), c, 0), q.grad(q.w, whole(q.dense), c, 0)
		for j := range got {
			got[j] -= want[j]
		}
		if far, size := modeltest.Norm(got, 2), modeltest.Norm(want, 2); far > 1e-5*size || size > 0 && far == 0 {
			t.Fatalf("the gradient in float32 is %v off one of %v", far, size)
		}
	})
}

// inexact is the message of a sum that depends on how its rows were dealt out.
const inexact = "AddGrad with a unit over the block %s gives %v, the exact sum of its rows is %v. It adds to dst, " +
	"and every coefficient " +
	"must be a multiple of unit that depends on its row alone, whether rows are dense, sparse or in a list (View.Add in " +
	"package data does it)"

// TestExact: on the grid, the sum equals the sum of the single rows in exact
// arithmetic, whatever the order, the views and the form of the rows.
func TestExact(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		unit := math.Ldexp(1, rapid.IntRange(-26, -3).Draw(t, "unit"))
		n := p.dense.N
		c := p.weights(n)
		if f := p.Facts(); math.IsInf(f.Lipschitz, 1) && math.IsInf(f.Smooth, 1) { // whose gradients have no bound: clipped to 2²⁰ units, as in the private oracle
			for i, norm := range p.norms(p.w, 2) {
				c[i] = min(c[i], 0x1p20*unit/norm)
			}
		}

		want := make([]float64, p.Dim())
		sums := make([]*big.Float, p.Dim())
		for j := range sums {
			sums[j] = new(big.Float).SetPrec(500)
		}
		for i := range n {
			single, free := p.gradOf(p.w, i, c[i], unit), p.gradOf(p.w, i, 1, 0)
			for j, g := range single {
				if k := g / (unit * p.sum); k != math.Trunc(k) {
					t.Fatalf("row %d, parameter %d: AddGrad with unit %g adds %v, no multiple of unit × %g (Facts().Unit, or the "+
						"table's), so sums are not exact: truncate each coefficient toward zero to a multiple of unit (kern.Coef)", i, j,
						unit, g, p.sum)
				}
				if math.Abs(g) > c[i]*math.Abs(free[j])*(1+0x1p-51) || g*free[j] < 0 {
					t.Fatalf("row %d, parameter %d: AddGrad with unit %g adds %v, more than its weight %v × the derivative %v: "+
						"truncate toward zero, never away from it (kern.Coef), so that a clipped row stays within its bound", i, j, unit,
						g, c[i], free[j])
				}
				sums[j].Add(sums[j], big.NewFloat(g))
			}
		}
		for j, s := range sums {
			var acc big.Accuracy
			if want[j], acc = s.Float64(); acc != big.Exact {
				t.Fatalf("parameter %d: the sum of %d rows with unit %g, %v, does not fit the 53 bits of a float64. A "+
					"coefficient of a row may be 2²² units at most: state a Lipschitz bound in Facts, or +Inf for it and for Smooth "+
					"if there is none", j, n, unit, s)
			}
		}

		for _, b := range []*data.Block{p.dense, p.sparse} {
			if got := p.grad(p.w, whole(b), c, unit); !slices.Equal(bits(got), bits(want)) {
				t.Fatalf(inexact, "as a whole", got, want)
			}
			// Rows dealt into lists, the lists in any order, one accumulator.
			hands := make([][]int32, rapid.IntRange(1, 5).Draw(t, "hands"))
			for i := range n {
				k := p.rng.IntN(len(hands))
				hands[k] = append(hands[k], int32(i))
			}
			p.rng.Shuffle(len(hands), func(i, j int) { hands[i], hands[j] = hands[j], hands[i] })
			got, ws := make([]float64, p.Dim()), new(model.Workspace)
			for _, rows := range hands {
				if rows == nil {
					rows = []int32{}
				}
				ch := make([]float64, len(rows))
				for i, r := range rows {
					ch[i] = c[r]
				}
				p.Eval(p.w, data.View{Block: b, Rows: rows}, ws).AddGrad(got, ch, unit)
			}
			if !slices.Equal(bits(got), bits(want)) {
				t.Fatalf(inexact, "in lists", got, want)
			}
			// Ranges, last first.
			clear(got)
			cut := p.rng.IntN(n + 1)
			p.Eval(p.w, data.View{Block: b, From: cut, To: n}, ws).AddGrad(got, c[cut:], unit)
			p.Eval(p.w, data.View{Block: b, To: cut}, ws).AddGrad(got, c[:cut], unit)
			if !slices.Equal(bits(got), bits(want)) {
				t.Fatalf(inexact, "in ranges", got, want)
			}
		}
	})
}

// TestExactFullBlock: a full block in which all coefficients have the same sign
// and nearly the full 23 bits, all features the full 20: the largest sum that
// the 53 bits of a double are meant for.
func TestExactFullBlock(t *testing.T) {
	const unit = 0x1p-23
	p := newProblem(t, "svm", data.BlockRows, 3, 2, 1, 9)
	for i := range p.dense.X {
		p.dense.X[i] = 1 - 0x1p-20
	}
	clear(p.dense.Y)
	for i := range p.w {
		p.w[i] = 1
	}
	c := make([]float64, data.BlockRows)
	var units int64
	for i := range c {
		c[i] = 1 - float64(1+i%7)*unit
		units += int64(c[i] / unit)
	}
	want := float64(units) * (1<<20 - 1) // below 2⁵³: exact
	for j, g := range p.grad(p.w, whole(p.dense), c, unit) {
		if got := g / (unit * 0x1p-20); got != want || want >= 0x1p53 || want < 0x1p52 {
			t.Errorf("coordinate %d: %v units, want %v", j, got, want)
		}
	}
}

// TestFigures: losses, norms and predictions of a row depend on nothing but the
// row: not on its form, its view or its neighbors.
func TestFigures(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		n, k := p.dense.N, p.Outputs()
		loss, norm1, norm2 := p.losses(p.w), p.norms(p.w, 1), p.norms(p.w, 2)
		pred := make([]float64, n*k)
		p.Predict(pred, p.w, whole(p.dense), new(model.Workspace))
		ws := new(model.Workspace)
		for _, b := range []*data.Block{p.dense, p.sparse} {
			rows := []int32{}
			for i := range n {
				if p.rng.IntN(2) == 0 {
					rows = append(rows, int32(i))
				}
			}
			v := data.View{Block: b, Rows: rows}
			got, out := make([]float64, len(rows)), make([]float64, len(rows)*k)
			pass := p.Eval(p.w, v, ws)
			if pass.Len() != len(rows) {
				t.Fatalf("Len of a view of %d rows is %d; return View.Len", len(rows), pass.Len())
			}
			for what, want := range map[string][]float64{"Loss": loss, "GradNorm of order 1": norm1,
				"GradNorm of order 2": norm2} {
				switch what {
				case "Loss":
					pass.Loss(got)
				case "GradNorm of order 1":
					pass.GradNorm(got, 1)
				case "GradNorm of order 2":
					pass.GradNorm(got, 2)
				}
				for i, r := range rows {
					if got[i] != want[r] {
						t.Fatalf("%s of row %d is %v in a list (sparse: %v), but %v in the whole dense block; compute it from the row "+
							"and w alone, by View.Row, with the same operations for dense and sparse rows", what, r, got[i], b == p.sparse,
							want[r])
					}
				}
			}
			p.Predict(out, p.w, v, ws)
			for i, r := range rows {
				if !slices.Equal(out[i*k:(i+1)*k], pred[int(r)*k:(int(r)+1)*k]) {
					t.Fatalf("Predict gives row %d %v in a list (sparse: %v), but %v in the whole dense block; compute it from the "+
						"row and w alone", r, out[i*k:(i+1)*k], b == p.sparse, pred[int(r)*k:(int(r)+1)*k])
				}
			}
		}
	})
}

// TestFacts holds the constants against random records and parameters.
func TestFacts(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		f, n := p.Facts(), p.dense.N
		scale := rapid.SampledFrom([]float64{1e-3, 0.1, 1}).Draw(t, "scale")
		h := p.vector(p.Dim(), scale)
		up, down := slices.Clone(p.w), slices.Clone(p.w)
		for j := range h {
			up[j] += h[j]
			down[j] -= h[j]
		}
		length := modeltest.Norm(h, 2)
		la, lm, lb := p.losses(up), p.losses(p.w), p.losses(down)
		for i := range n {
			a, m, b := p.gradOf(up, i, 1, 0), p.gradOf(p.w, i, 1, 0), p.gradOf(down, i, 1, 0)
			first, second := make([]float64, len(m)), make([]float64, len(m))
			for j := range m {
				first[j], second[j] = a[j]-m[j], a[j]-2*m[j]+b[j]
			}
			above := func(field string, got, bound, slack float64, what string) {
				t.Helper()
				if !(got <= bound+slack) {
					t.Fatalf("row %d: %s is %v, %.3g above what Facts().%s allows, %v. State a bound that holds for every w and "+
						"every row of norm up to NormBound, or +Inf if there is none: the noise is scaled by it", i, what, got, got-bound,
						field, bound)
				}
			}
			above("Lipschitz", modeltest.Norm(m, 2), f.Lipschitz, 1e-12*f.Lipschitz, "‖∇ℓ(w)‖")
			above("Smooth", modeltest.Norm(first, 2), f.Smooth*length, 1e-12*f.Smooth*length+1e-14,
				fmt.Sprintf("‖∇ℓ(w+h) − ∇ℓ(w)‖, for ‖h‖ = %v and so at most Smooth·‖h‖,", length))
			bend := f.HessLipschitz * length * length
			above("HessLipschitz", modeltest.Norm(second, 2), bend, 1e-9*bend+1e-12,
				fmt.Sprintf("‖∇ℓ(w+h) − 2∇ℓ(w) + ∇ℓ(w−h)‖, for ‖h‖ = %v and so at most HessLipschitz·‖h‖²,", length))
			if zero := p.losses(make([]float64, p.Dim()))[i]; !math.IsInf(f.Start, 1) && math.Abs(zero-f.Start) > 1e-14 {
				t.Fatalf("row %d: the loss at w = 0 is %v, Facts().Start is %v; state that loss, or +Inf if it depends on the "+
					"label", i, zero, f.Start)
			}
			if mean := (la[i] + lb[i]) / 2; f.Convex && lm[i] > mean+1e-9*(1+lm[i]) {
				t.Fatalf("row %d: the loss at w, %v, is %.3g above the mean of those at w+h and w−h: it is not convex. Write "+
					"Convex: false in Facts, or correct Loss", i, lm[i], lm[i]-mean)
			}
		}
	})
}

// sameFacts names the fields of m's Facts that are not as where says.
func sameFacts(t *testing.T, where string, m model.Model, want model.Facts) {
	t.Helper()
	is, says := reflect.ValueOf(m.Facts()), reflect.ValueOf(want)
	for i := range is.NumField() {
		if a, b := is.Field(i).Interface(), says.Field(i).Interface(); a != b {
			t.Errorf("%s: Facts().%s is %v, %s says %v; correct the one that does not follow from the formula of the loss",
				m.Name(), is.Type().Field(i).Name, a, where, b)
		}
	}
}

// TestConstants: the bounds are the ones of the formulas, and attained where a
// short argument says so.
func TestConstants(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name    string
		classes int
		width   float64
		want    model.Facts
	}{
		{"logistic", 2, 0, model.Facts{NormBound: 2, Lipschitz: 2, Smooth: 1, HessLipschitz: 8 / (6 * math.Sqrt(3)), Convex: true, OneMargin: true, Curved: true, Bounded: true, Coded: true, Probabilities: true, Centered: true, Start: math.Ln2}},
		{"linear", 0, 0, model.Facts{NormBound: 2, Lipschitz: inf, Smooth: 4, Convex: true, Curved: true, Bounded: true, Centered: true, Shifted: true, Start: inf}},
		{"poisson", 0, 0, model.Facts{NormBound: 2, Lipschitz: inf, Smooth: inf, HessLipschitz: inf, Convex: true, Centered: true, Start: inf}},
		{"svm", 2, 0, model.Facts{NormBound: 2, Lipschitz: 2, Smooth: inf, HessLipschitz: inf, Convex: true, OneMargin: true, Coded: true, Centered: true, Start: 1}},
		{"huber-svm", 2, 0, model.Facts{NormBound: 2, Lipschitz: 2, Smooth: 4, HessLipschitz: inf, Convex: true, OneMargin: true, Curved: true, Coded: true, Centered: true, Start: 1}},
		{"huber-svm", 2, 2, model.Facts{NormBound: 2, Lipschitz: 2, Smooth: 1, HessLipschitz: inf, Convex: true, OneMargin: true, Curved: true, Coded: true, Centered: true, Start: 9. / 8}},
		{"softmax", 3, 0, model.Facts{NormBound: 2, Lipschitz: 2 * math.Sqrt2, Smooth: 2, HessLipschitz: 8 * math.Sqrt2 / (3 * math.Sqrt(3)), Convex: true, Centered: true, Bounded: true, Coded: true, Probabilities: true, Start: math.Log(3)}},
	} {
		opt := model.Options{Dim: 3, Classes: c.classes, NormBound: 2}
		switch c.name {
		case "huber-svm":
			opt.Config = model.HuberSVM{Width: c.width}
		}
		m, err := model.New(c.name, opt)
		if err != nil {
			t.Fatal(err)
		}
		sameFacts(t, "the table in TestConstants, model/model_test.go,", m, c.want)
	}
}

// TestLosses: values at hand-made margins. The one feature is 1, so the margin is w.
func TestLosses(t *testing.T) {
	for _, c := range []struct {
		name          string
		w, y          float64
		loss, grad, h float64
	}{
		{name: "logistic", w: 0, y: 1, loss: math.Ln2, grad: -0.5},
		{name: "logistic", w: math.Log(3), y: 1, loss: math.Log(4. / 3), grad: -0.25},
		{name: "logistic", w: math.Log(3), y: 0, loss: math.Log(4), grad: 0.75},
		{name: "linear", w: 3, y: 1, loss: 2, grad: 2},
		{name: "poisson", w: math.Log(2), y: 2, loss: 0, grad: 0},
		{name: "poisson", w: 0, y: 3, loss: 3*math.Log(3) - 2, grad: -2},
		{name: "poisson", w: math.Log(4), y: 0, loss: 4, grad: 4},
		{name: "svm", w: 0.25, y: 1, loss: 0.75, grad: -1},
		{name: "svm", w: 0.25, y: 0, loss: 1.25, grad: 1},
		{name: "svm", w: 1, y: 1, loss: 0, grad: 0},
		{name: "huber-svm", w: 1.5, y: 1, loss: 0, grad: 0},
		{name: "huber-svm", w: 1, y: 1, loss: 0.125, grad: -0.5},
		{name: "huber-svm", w: 0.5, y: 1, loss: 0.5, grad: -1},
		{name: "huber-svm", w: -2, y: 1, loss: 3, grad: -1},
		{name: "huber-svm", w: -1, y: 0, loss: 0.125, grad: 0.5},
		{name: "huber-svm", w: 0, y: 1, h: 2, loss: 1.125, grad: -0.75},
	} {
		classes := classesOf(c.name, 2)
		opt := model.Options{Dim: 1, Classes: classes, NormBound: 1, Config: smallOf(c.name, 1)}
		if c.name == "huber-svm" {
			opt.Config = model.HuberSVM{Width: c.h}
		}
		m, err := model.New(c.name, opt)
		if err != nil {
			t.Fatal(err)
		}
		b := modeltest.Dense([][]float64{{1}}, []float64{c.y}, 0x1p-20)
		loss, grad := []float64{0}, []float64{0}
		p := m.Eval([]float64{c.w}, whole(b), new(model.Workspace))
		p.Loss(loss)
		p.AddGrad(grad, []float64{1}, 0)
		if math.Abs(loss[0]-c.loss) > 1e-15 || math.Abs(grad[0]-c.grad) > 1e-15 {
			t.Errorf("%s (h %v), margin %v, label %v: loss %v, gradient %v; want %v, %v", c.name, c.h, c.w, c.y, loss[0], grad[0], c.loss, c.grad)
		}
	}
}

// TestOneMargin: models with Facts.OneMargin have slopes of one sign for each label, within the Lipschitz bound: what
// objective perturbation rests on. One of two classes and one margin whose slopes are so states it.
func TestOneMargin(t *testing.T) {
	for _, name := range model.Names() {
		classes := classesOf(name, 2)
		m, err := model.New(name, model.Options{Dim: 1, Classes: classes, NormBound: 1, Config: smallOf(name, 1)})
		if err != nil {
			t.Fatal(err)
		}
		f := m.Facts()
		if classes == 0 || m.Dim() != 1 || isNetwork(name) {
			if f.OneMargin {
				t.Errorf("%s: Facts().OneMargin is true, but the model has no loss of two classes by one margin ⟨w, x⟩; leave it "+
					"false", name)
			}
			continue
		}
		wrong := ""
		for y, sign := range []float64{1, -1} {
			b := modeltest.Dense([][]float64{{1}}, []float64{float64(y)}, 0x1p-20)
			for z := -40.0; z <= 40; z += 0.25 {
				slope := []float64{0}
				m.Eval([]float64{z}, whole(b), new(model.Workspace)).AddGrad(slope, []float64{1}, 0)
				if !(slope[0]*sign >= 0 && slope[0]*sign <= f.Lipschitz) {
					wrong = fmt.Sprintf("for label %d the slope at margin %v is %v; it is from 0 to %v (Facts().Lipschitz) times %v",
						y, z, slope[0], f.Lipschitz, sign)
				}
			}
		}
		if f.OneMargin && wrong != "" {
			t.Errorf("%s: Facts().OneMargin is true, but %s. Correct the bound or the slope, or leave OneMargin false", name,
				wrong)
		}
		if !f.OneMargin && wrong == "" {
			t.Errorf("%s: its loss falls or rises with the margin for each label; write OneMargin: true in its Facts, so that "+
				"amp takes it", name)
		}
	}
}

// TestSoftmaxOfTwo: with two classes softmax is the logistic model of w₁ − w₀.
func TestSoftmaxOfTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newProblem(t, "softmax", 20, 6, 2, 1, rapid.Uint64().Draw(t, "seed"))
		l, err := model.New("logistic", model.Options{Dim: 6, Classes: 2, NormBound: 1, Weights: s.classWeights})
		if err != nil {
			t.Fatal(err)
		}
		w := make([]float64, 6)
		for j := range w {
			w[j] = s.w[6+j] - s.w[j]
		}
		two, ws := &problem{Model: l, dense: s.dense}, new(model.Workspace)
		for i, want := range two.losses(w) {
			if got := s.losses(s.w)[i]; math.Abs(got-want) > 1e-12*(1+want) {
				t.Fatalf("row %d: softmax loss %v, logistic %v", i, got, want)
			}
			g, gw := s.gradOf(s.w, i, 1, 0), two.gradOf(w, i, 1, 0)
			for j := range gw {
				if math.Abs(g[6+j]-gw[j]) > 1e-13 || math.Abs(g[j]+gw[j]) > 1e-13 {
					t.Fatalf("row %d: softmax gradient %v, logistic %v", i, g, gw)
				}
			}
		}
		a, b := make([]float64, 40), make([]float64, 40)
		s.Predict(a, s.w, whole(s.dense), ws)
		l.Predict(b, w, whole(s.dense), ws)
		for i := range a {
			if math.Abs(a[i]-b[i]) > 1e-13 {
				t.Fatalf("predictions %v and %v", a, b)
			}
		}
	})
}

// means are the models of a numeric label whose prediction is not ⟨w, x⟩, but this function of it.
var means = map[string]func(margin float64) float64{"poisson": math.Exp}

// TestPredict: K columns that sum to 1, the larger where the loss is smaller;
// labels are not looked at.
func TestPredict(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		p.Model = p.plain // its losses say what it predicts
		n, k := p.dense.N, p.Outputs()
		blank := *p.dense
		blank.Y = nil
		scale := rapid.SampledFrom([]float64{1, 1e4, 1e300}).Draw(t, "scale")
		if isNetwork(p.Name()) && scale > 1 {
			scale = 1e90 // through three layers it stays a number
			if p.single {
				scale = 1e9
			}
		}
		for j := range p.w {
			p.w[j] *= scale
		}
		pred := make([]float64, n*k)
		p.Predict(pred, p.w, whole(&blank), new(model.Workspace))
		if isNetwork(p.Name()) && k == 1 {
			for i, loss := range p.losses(p.w) { // of the value predicted
				e := pred[i] - float64(p.dense.Y[i])
				if math.Abs(loss-e*e/2) > 1e-12*(1+loss) {
					t.Fatalf("row %d: Loss is %v, but that of Predict's value is %v: half the square of its distance from the "+
						"label, for a network with a numeric label", i, loss, e*e/2)
				}
			}
			return
		}
		if k == 1 {
			for i, v := range pred {
				var want float64
				for j, w := range p.w {
					want += w * float64(p.dense.X[i*p.dense.Dim+j])
				}
				tol := 1e-11 * scale
				if f, ok := means[p.Name()]; ok {
					if scale > 1 {
						continue // its digits are those of the margin
					}
					want = f(want)
					tol = 1e-12 * math.Abs(want)
				}
				if !(math.Abs(v-want) <= tol) {
					t.Fatalf("row %d: Predict gives %v, the prediction of a regression is %v; they may be %.2g apart. A regression "+
						"predicts ⟨w, x⟩; one whose prediction is a function of it (a glm: method mean of its link) stands with that "+
						"function in the map means, model/model_test.go", i, v, want, tol)
				}
			}
			return
		}
		byClass := make([][]float64, k)
		for c := range k {
			b := *p.dense
			b.Y = slices.Repeat([]float32{float32(c)}, n)
			byClass[c] = (&problem{Model: p.Model, dense: &b}).losses(p.w)
		}
		for i := range n {
			row, sum := pred[i*k:(i+1)*k], 0.0
			for c, v := range row {
				if !(v >= 0 && v <= 1) {
					t.Fatalf("row %d: Predict gives the class %d the probability %v; a classifier's columns are from 0 to 1", i, c, v)
				}
				sum += v
				for o, u := range row {
					if u > v && byClass[o][i] > byClass[c][i]+1e-9*scale {
						t.Fatalf("row %d: Predict gives class %d more than class %d (%v, %v), but its loss as the label is larger (%v, "+
							"%v); the class with the least loss must have the largest column", i, o, c, u, v, byClass[o][i], byClass[c][i])
					}
				}
				if want := math.Exp(-byClass[c][i]); p.Facts().Probabilities && math.Abs(v-want) > 1e-12 {
					t.Fatalf("row %d: Facts().Probabilities is true, but Predict gives class %d the probability %v, and exp(−Loss) "+
						"is %v; write Probabilities: false for a loss that is not −ln of a probability", i, c, v, want)
				}
			}
			if math.Abs(sum-1) > 1e-14 {
				t.Fatalf("row %d: the columns of Predict add up to %v; they are probabilities of the classes, with sum 1", i, sum)
			}
		}
	})
}

// TestExtremes: with margins of ±1e4, overflow, NaN and Inf in w, and a label
// that does not exist, a row of weight 0 adds nothing, and on the grid no row
// poisons the sum, whatever its weight.
func TestExtremes(t *testing.T) {
	for _, name := range append(model.Names(), single, singleCNN) {
		p := newProblem(t, name, 12, 5, 3, 1, 3)
		p.dense.Y[0], p.sparse.Y[0] = 9, 9
		p.dense.Y[1], p.sparse.Y[1] = float32(math.NaN()), float32(math.NaN())
		finite := slices.Repeat([]float64{1e4, -1e4}, p.Dim())[:p.Dim()]
		for what, w := range map[string][]float64{
			"1e4": finite, "1e308": slices.Repeat([]float64{1e308}, p.Dim()),
			"NaN": slices.Repeat([]float64{math.NaN()}, p.Dim()), "Inf": slices.Repeat([]float64{math.Inf(1)}, p.Dim()),
		} {
			for _, b := range []*data.Block{p.dense, p.sparse} {
				c := make([]float64, b.N)
				for _, unit := range []float64{0, 0x1p-20} {
					for j, g := range p.grad(w, whole(b), c, unit) {
						if g != 0 {
							t.Errorf("%s: with all w %s and unit %v, rows of weight 0 add %v to parameter %d; AddGrad adds nothing for "+
								"them, even if their gradient is NaN (kern.Coef does so)", name, what, unit, g, j)
							break
						}
					}
				}
				for i := range c {
					c[i] = 1
				}
				for j, g := range p.grad(w, whole(b), c, 0x1p-20) {
					if math.IsNaN(g) || math.IsInf(g, 0) {
						t.Errorf("%s: with all w %s, parameter %d of AddGrad's sum with a unit is %v; a coefficient that is not finite "+
							"counts as 0 (kern.Coef does so)", name, what, j, g)
						break
					}
				}
				norm, loss := make([]float64, b.N), make([]float64, b.N)
				pass := p.Eval(w, whole(b), new(model.Workspace))
				pass.GradNorm(norm, 2)
				pass.Loss(loss)
				for i := range norm {
					bad := p.Outputs() > 1 && i == 0 || i == 1
					if what == "1e4" && (bad != math.IsNaN(norm[i]) || bad != math.IsNaN(loss[i])) {
						t.Errorf("%s: with w ±1e4, row %d has GradNorm %v and Loss %v. Both are NaN for a label that does not exist "+
							"(row 0 of a classifier, and row 1), which no clip rule admits, and numbers for others", name, i, norm[i],
							loss[i])
					}
				}
			}
		}
	}
}

// TestMicroBatch: norms, weights and one sum give what clipping every gradient
// by itself gives.
func TestMicroBatch(t *testing.T) {
	check(t, func(t *rapid.T, p *problem) {
		p.dense.Drop = make([]bool, p.dense.N)
		p.dense.Drop[0] = true
		clip := rapid.SampledFrom([]float64{0.01, 0.3, 10}).Draw(t, "clip")
		for _, order := range []int{1, 2} {
			want := modeltest.MicroBatch(p, p.w, []data.View{whole(p.dense)}, clip, order)
			c := p.norms(p.w, order)
			for i, norm := range c {
				c[i] = min(1, clip/norm)
			}
			c[0] = 0
			for j, g := range p.grad(p.w, whole(p.dense), c, 0) {
				if math.Abs(g-want[j]) > 1e-6*clip*float64(p.dense.N) {
					t.Fatalf("clipped to %v by norms of order %d, parameter %d of the sum is %v; clipping each row's gradient by "+
						"itself gives %v. GradNorm and AddGrad do not speak of the same gradient", clip, order, j, g, want[j])
				}
			}
		}
	})
}

func TestAllocations(t *testing.T) {
	for _, name := range names() {
		p := newProblem(t, name, 300, 30, 4, 1, 5)
		ws, n := new(model.Workspace), p.dense.N
		figures, c, grad, pred := make([]float64, n), p.weights(n), make([]float64, p.Dim()), make([]float64, n*p.Outputs())
		views := []data.View{whole(p.dense), whole(p.sparse), {Block: p.dense, Rows: []int32{1, 5, 7}}, {Block: p.sparse, Rows: []int32{0}}}
		if got := testing.AllocsPerRun(5, func() {
			for _, v := range views {
				k := v.Len()
				pass := p.Eval(p.w, v, ws)
				pass.Loss(figures[:k])
				pass.GradNorm(figures[:k], 1)
				pass.GradNorm(figures[:k], 2)
				pass.AddGrad(grad, c[:k], 0x1p-22)
				p.Predict(pred[:k*p.Outputs()], p.w, v, ws)
			}
		}); got != 0 {
			t.Errorf("%s: Eval, Loss, GradNorm, AddGrad and Predict allocate %v times a round; keep their buffers in the "+
				"Workspace (func grow)", name, got)
		}
	}
}

func TestNew(t *testing.T) {
	ok := model.Options{Dim: 4, Classes: 2, NormBound: 1}
	with := func(f func(*model.Options)) model.Options { o := ok; f(&o); return o }
	for _, c := range []struct {
		name string
		opt  model.Options
		want string
	}{
		{"tree", ok, `unknown model "tree"; choose logistic, linear`},
		{"logistic", with(func(o *model.Options) { o.Classes = 3 }), "the label has 3; use softmax"},
		{"svm", with(func(o *model.Options) { o.Classes = 0 }), "the label is numeric; use linear"},
		{"linear", ok, "the label has 2 classes; use logistic"},
		{"poisson", ok, "the label has 2 classes; use logistic"},
		{"poisson", with(func(o *model.Options) { o.Classes, o.LabelMin = 0, -1 }), "the label's bounds begin at -1"},
		{"softmax", with(func(o *model.Options) { o.Classes = 0 }), "the label is numeric; use linear"},
		{"softmax", with(func(o *model.Options) { o.Classes = 1 }), "1 classes"},
		{"softmax", with(func(o *model.Options) { o.Classes = -2 }), "-2 classes"},
		{"logistic", with(func(o *model.Options) { o.Dim = 0 }), "0 features"},
		{"logistic", with(func(o *model.Options) { o.NormBound = 0 }), "norm bound 0"},
		{"logistic", with(func(o *model.Options) { o.NormBound = math.NaN() }), "norm bound NaN"},
		{"logistic", with(func(o *model.Options) { o.NormBound = math.Inf(1) }), "norm bound +Inf"},
		{"logistic", with(func(o *model.Options) { o.Config = model.HuberSVM{Width: 1} }), "logistic has a configuration of type model.Logistic, got model.HuberSVM"},
		{"huber-svm", with(func(o *model.Options) { o.Config = model.HuberSVM{Width: -1} }), "width -1"},
		{"huber-svm", with(func(o *model.Options) { o.Config = model.HuberSVM{Width: math.NaN()} }), "width NaN"},
		{"mlp", ok, "mlp needs layers"},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"3", "relu"}} }), `found "relu"; write a number of units`},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"3 gelu"}} }), `found "3 gelu"`},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"0"}} }), `found "0"`},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{""}} }), `found ""`},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"3"}, Compute: "float16"} }), `compute: found "float16"`},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"3"}, Start: "zero"} }), `start: found "zero"`},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"3"}, InputScale: -2} }), "input_scale: found -2"},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"3"}, InputScale: math.NaN()} }), "input_scale: found NaN"},
		{"svm", with(func(o *model.Options) { o.Weights = []float64{1, 0} }), "a class weight is 0; write finite numbers above 0"},
		{"svm", with(func(o *model.Options) { o.Weights = []float64{1, math.Inf(1)} }), "a class weight is +Inf"},
		{"svm", with(func(o *model.Options) { o.Weights = []float64{1, 2e8} }), "class weights are from 1 to 2e+08; the largest can be at most 1e+08 times the least"},
		{"softmax", with(func(o *model.Options) { o.Weights = []float64{1, 2, 3} }), "found 3 class weights"},
		{"linear", with(func(o *model.Options) { o.Classes, o.Weights = 0, []float64{1} }), "found 1 class weights"},
		{"mlp", with(func(o *model.Options) { o.Config = model.MLP{Layers: []string{"30000", "30000"}} }), "more than 25000000 parameters"},
		{"mlp", with(func(o *model.Options) { o.Dim, o.Config = 1<<62, model.MLP{Layers: []string{"4"}} }), "more than 25000000 parameters"}, // 2⁶⁴ of them
	} {
		if _, err := model.New(c.name, c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q, %+v): %v, want %q", c.name, c.opt, err, c.want)
		}
	}
	for _, name := range model.Names() {
		opt := ok
		opt.Config = smallOf(name, opt.Dim)
		opt.Classes = classesOf(name, 2)
		m, err := model.New(name, opt)
		if err != nil {
			t.Errorf("New(%q) without more than its Entry.Small: %v; write a Small that New takes", name, err)
		} else if m.Name() != name {
			t.Errorf("New(%q) makes a model whose Name is %q; return the name of its Entry", name, m.Name())
		}
	}
}

// TestMisuse: what does not fit together stops the program.
func TestMisuse(t *testing.T) {
	p := newProblem(t, "logistic", 4, 3, 2, 1, 1)
	ws := new(model.Workspace)
	v := whole(p.dense)
	blank := *p.dense
	blank.Y = nil
	for what, f := range map[string]func(){
		"parameters": func() { p.Eval(p.w[:2], v, ws) },
		"features":   func() { p.Eval(p.w, whole(newProblem(t, "logistic", 4, 5, 2, 1, 1).dense), ws) },
		"no labels":  func() { p.Eval(p.w, whole(&blank), ws) },
		"dst":        func() { p.Eval(p.w, v, ws).Loss(make([]float64, 3)) },
		"c":          func() { p.Eval(p.w, v, ws).AddGrad(make([]float64, 3), make([]float64, 3), 0) },
		"unit":       func() { p.Eval(p.w, v, ws).AddGrad(make([]float64, 3), make([]float64, 4), 0.3) },
		"norm":       func() { p.Eval(p.w, v, ws).GradNorm(make([]float64, 4), 3) },
		"predict":    func() { p.Predict(make([]float64, 4), p.w, v, ws) },
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if e := recover(); e == nil || !strings.HasPrefix(fmt.Sprint(e), "model: ") {
					t.Errorf("recovered %v, want a text of package model", e)
				}
			}()
			f()
		})
	}
}

// isNetwork says whether the model of that name is a chain of layers.
func isNetwork(name string) bool {
	e, err := model.Lookup(name)
	return err == nil && e.Net
}
