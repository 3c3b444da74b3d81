package model_test

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
)

// TestCenterNorms: norms of rows less a center are never understated, and not by much more than they are, where a row is not near the
// center; margins and gradients are those of the differences.
func TestCenterNorms(t *testing.T) {
	rnd := rand.New(rand.NewPCG(44, 1))
	for range 3000 {
		dim, size := 1+rnd.IntN(9), math.Exp2(float64(rnd.IntN(60)-30))
		unit := size * 0x1p-20
		draw := func(length float64) []float64 {
			v, square := make([]float64, dim), 0.0
			for j := range v {
				v[j] = rnd.NormFloat64()
				square += v[j] * v[j]
			}
			for j := range v {
				v[j] = math.Trunc(v[j]/math.Sqrt(square)*length/unit) * unit
			}
			return v
		}
		m, x := draw(size*rnd.Float64()), draw(size*math.Exp2(-20*rnd.Float64()))
		if rnd.IntN(3) == 0 { // near the center, or opposite to it
			far := float64(1 - 2*rnd.IntN(2))
			for j := range x {
				x[j] = far * m[j]
			}
			x[0] = math.Trunc(x[0]*(1-math.Exp2(-20*rnd.Float64()))/unit) * unit
		}
		b := &data.Block{N: 1, Dim: dim, X: make([]float32, dim), Y: []float32{1}}
		norm, square, from := new(big.Float).SetPrec(300), 0.0, new(big.Float).SetPrec(300)
		w, margin := make([]float64, dim), 0.0
		c := &model.Center{X: m, Bound: size, Margins: make([]float64, 1), Taken: make([]float64, 1)}
		for j, v := range x {
			b.X[j] = float32(v)
			d, xj := big.NewFloat(v-m[j]).SetPrec(300), big.NewFloat(v).SetPrec(300)
			norm.Add(norm, d.Mul(d, d))
			from.Add(from, xj.Mul(xj, xj))
			square += m[j] * m[j]
			w[j] = rnd.NormFloat64() / size
			c.Margins[0] += w[j] * m[j]
			margin += w[j] * (v - m[j])
		}
		c.Square = square
		length, _ := from.Sqrt(from).Float64()
		b.Norm = []float32{math.Nextafter32(float32(length), math.MaxFloat32)}
		glm, err := model.New("linear", model.Options{Dim: dim, NormBound: size})
		if err != nil {
			t.Fatal(err)
		}
		ws := model.Workspace{Center: c}
		pass := glm.Eval(w, data.View{Block: b, To: 1}, &ws)
		got, loss := make([]float64, 1), make([]float64, 1)
		pass.GradNorm(got, 2)
		slope := margin - 1
		if pass.Loss(loss); math.Abs(loss[0]-slope*slope/2) > 1e-9*(1+slope*slope) {
			t.Fatalf("the loss is %v, want that of a margin of %v", loss[0], margin)
		}
		exact, _ := norm.Sqrt(norm).Float64()
		own := got[0] / math.Sqrt(2*loss[0])
		if own < exact*(1-1e-15) || own > math.Max(exact*(1+1e-4), size/8)*(1+1e-12) {
			t.Fatalf("a row of norm %v less a center of norm %v: %v, the exact length is %v", length, math.Sqrt(square), own, exact)
		}
		g := make([]float64, dim)
		pass.AddGrad(g, []float64{1}, 0)
		taken := c.Taken[0]
		for j := range g {
			if want := slope * (x[j] - m[j]); math.Abs(g[j]-taken*m[j]-want) > 1e-9*(1+math.Abs(slope))*size {
				t.Fatalf("number %d of the gradient is %v, want %v", j, g[j]-taken*m[j], want)
			}
		}
	}
}

// TestCenterOfClasses: losses, norms and gradients of softmax less a center are those of rows that were moved.
func TestCenterOfClasses(t *testing.T) {
	const dim, classes, unit = 5, 3, 0x1p-12
	rnd := rand.New(rand.NewPCG(44, 2))
	m, err := model.New("softmax", model.Options{Dim: dim, Classes: classes, NormBound: 4, Weights: []float64{1, 0.5, 0.25}})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		n := 1 + rnd.IntN(9)
		point := func() float64 { return math.Trunc(rnd.NormFloat64()/2/unit) * unit }
		c := &model.Center{X: make([]float64, dim), Bound: 4, Margins: make([]float64, classes), Taken: make([]float64, classes)}
		w := make([]float64, dim*classes)
		for j := range w {
			w[j] = rnd.NormFloat64()
		}
		for j := range c.X {
			c.X[j] = point()
			c.Square += c.X[j] * c.X[j]
			for k := range c.Margins {
				c.Margins[k] += w[k*dim+j] * c.X[j]
			}
		}
		block := func() *data.Block {
			return &data.Block{N: n, Dim: dim, X: make([]float32, n*dim), Y: make([]float32, n), Norm: make([]float32, n)}
		}
		rows, moved := block(), block()
		for i := range n {
			y := float32(rnd.IntN(classes))
			rows.Y[i], moved.Y[i] = y, y
			square, apart := 0.0, 0.0
			for j := range dim {
				v := point()
				rows.X[i*dim+j], moved.X[i*dim+j] = float32(v), float32(v-c.X[j])
				square, apart = square+v*v, apart+(v-c.X[j])*(v-c.X[j])
			}
			rows.Norm[i], moved.Norm[i] = float32(math.Sqrt(square)*(1+1e-6)), float32(math.Sqrt(apart)*(1+1e-6))
		}
		coef := make([]float64, n)
		for i := range coef {
			coef[i] = rnd.Float64()
		}
		figures := func(b *data.Block, center *model.Center) (loss, norm, g []float64) {
			ws := model.Workspace{Center: center}
			pass := m.Eval(w, data.View{Block: b, To: n}, &ws)
			loss, norm, g = make([]float64, n), make([]float64, n), make([]float64, len(w))
			pass.Loss(loss)
			pass.GradNorm(norm, 2)
			pass.AddGrad(g, slices.Clone(coef), 0)
			return loss, norm, g
		}
		loss, norm, g := figures(rows, c)
		wantLoss, wantNorm, wantG := figures(moved, nil)
		for j := range g {
			if got := g[j] - c.Taken[j/dim]*c.X[j%dim]; math.Abs(got-wantG[j]) > 1e-9 {
				t.Fatalf("number %d of the gradient is %v, over moved rows %v", j, got, wantG[j])
			}
		}
		for i := range n {
			near := float64(moved.Norm[i]) < 0.5 // such a row counts as one of norm R/8
			if math.Abs(loss[i]-wantLoss[i]) > 1e-9 || norm[i] < wantNorm[i]*(1-2e-6) || norm[i] > wantNorm[i]*(1+1e-4) && !near {
				t.Fatalf("a loss of %v and a norm of %v, over moved rows %v and %v", loss[i], norm[i], wantLoss[i], wantNorm[i])
			}
		}
	}
}

// TestOffset: a model with Facts.Centered takes an offset, with which it predicts as one whose rows were moved, by
// stages too; others have none.
func TestOffset(t *testing.T) {
	b := &data.Block{N: 1, Dim: 2, X: []float32{0.5, -0.25}, Norm: []float32{1}, Y: []float32{1}}
	v := data.View{Block: b, To: 1}
	for _, name := range model.Names() {
		m, err := model.New(name, model.Options{Dim: 2, NormBound: 1, Classes: classesOf(name, 2), Config: smallOf(name, 2)})
		if err != nil {
			t.Fatal(err)
		}
		offset := make([]float64, max(1, m.Dim()/2))
		w, by := make([]float64, m.Dim()), make([]float64, m.Dim()) // each margin of w is 0, and that of by its offset
		for k := range offset {
			offset[k] = 0.75 - float64(k)
			copy(w[2*k:], []float64{2, 4})
			copy(by[2*k:], []float64{2 + 2*offset[k], 4})
		}
		moved, err := model.WithOffset(m, offset...)
		if centered := m.Facts().Centered; centered != (err == nil) {
			t.Errorf("%s: Facts().Centered is %v, but WithOffset says %v; only a linear model is Centered", name, centered, err)
		}
		if err != nil {
			continue
		}
		var ws model.Workspace
		got, want := make([]float64, m.Outputs()), make([]float64, m.Outputs())
		moved.Predict(got, w, v, &ws)
		m.Predict(want, by, v, &ws)
		for k := range got {
			if got[k] != want[k] {
				t.Errorf("%s: with an offset Predict gives %v, and %v with the same margins by w; it depends on margins alone",
					name, got, want)
			}
		}
		one, other := make([]float64, 1), make([]float64, 1)
		moved.Eval(w, v, &ws).Loss(one)
		m.Eval(by, v, &ws).Loss(other)
		if one[0] != other[0] {
			t.Errorf("%s: with an offset Loss is %v, and %v with the same margins by w; it depends on margins alone", name,
				one[0], other[0])
		}
		if staged, ok := moved.(model.Staged); ok { // see TestClaims
			if s := staged.Stages(w); !slices.Equal(s[0].B, offset) {
				t.Errorf("%s: with an offset the first of its Stages has the biases %v; write the offset there", name, s[0].B)
			}
		}
		for _, none := range [][]float64{{math.NaN()}, append(slices.Clone(offset), 1)} {
			if len(none) == 1 {
				none = append(none, offset[1:]...)
			}
			if _, err := model.WithOffset(m, none...); err == nil {
				t.Errorf("%s: takes the offset %v", name, none)
			}
		}
	}
}

// TestOffsetInFiles: one margin's offset is a number in JSON, those of classes are a list.
func TestOffsetInFiles(t *testing.T) {
	for _, c := range []struct {
		offset model.Offset
		text   string
	}{{model.Offset{0.5}, "0.5"}, {model.Offset{0.5, -1}, "[0.5,-1]"}} {
		text, err := json.Marshal(c.offset)
		if err != nil || string(text) != c.text {
			t.Errorf("%v is %s: %v", c.offset, text, err)
		}
		var again model.Offset
		if err := json.Unmarshal(text, &again); err != nil || !slices.Equal(again, c.offset) {
			t.Errorf("%s is %v: %v", text, again, err)
		}
	}
	for _, text := range []string{`"1"`, `{}`, `["a"]`, `[null, 1]`, `null`} {
		var o model.Offset
		if err := json.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%s is %v", text, o)
		}
	}
}
