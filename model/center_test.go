package model_test

import (
	"math"
	"math/big"
	"math/rand/v2"
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
		c := &model.Center{X: m, Bound: size}
		for j, v := range x {
			b.X[j] = float32(v)
			d, xj := big.NewFloat(v-m[j]).SetPrec(300), big.NewFloat(v).SetPrec(300)
			norm.Add(norm, d.Mul(d, d))
			from.Add(from, xj.Mul(xj, xj))
			square += m[j] * m[j]
			w[j] = rnd.NormFloat64() / size
			c.Margin += w[j] * m[j]
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
		taken := c.Taken()
		for j := range g {
			if want := slope * (x[j] - m[j]); math.Abs(g[j]-taken*m[j]-want) > 1e-9*(1+math.Abs(slope))*size {
				t.Fatalf("number %d of the gradient is %v, want %v", j, g[j]-taken*m[j], want)
			}
		}
	}
}

// TestOffset: a model with Facts.Centered takes an offset, with which it predicts as one whose rows were moved, by
// stages too; others have none.
func TestOffset(t *testing.T) {
	b := &data.Block{N: 1, Dim: 2, X: []float32{0.5, -0.25}, Norm: []float32{1}, Y: []float32{1}}
	w, v := []float64{2, 4}, data.View{Block: b, To: 1}
	for _, name := range model.Names() {
		m, err := model.New(name, model.Options{Dim: 2, NormBound: 1, Classes: classesOf(name, 2), Config: smallOf(name, 2)})
		if err != nil {
			t.Fatal(err)
		}
		moved, err := model.WithOffset(m, 0.75) // w·x is 0
		if centered := m.Facts().Centered; centered != (err == nil) {
			t.Errorf("%s: Facts().Centered is %v, but WithOffset says %v; only a model with one margin (a glm) is Centered",
				name, centered, err)
		}
		if err != nil {
			continue
		}
		var ws model.Workspace
		got, want := make([]float64, m.Outputs()), make([]float64, m.Outputs())
		moved.Predict(got, w, v, &ws)
		m.Predict(want, []float64{3.5, 4}, v, &ws) // w·x is 0.75
		for k := range got {
			if got[k] != want[k] {
				t.Errorf("%s: with an offset of 0.75 Predict gives %v, and %v with the same margin by w; it depends on the "+
					"margin alone", name, got, want)
			}
		}
		one, other := make([]float64, 1), make([]float64, 1)
		moved.Eval(w, v, &ws).Loss(one)
		m.Eval([]float64{3.5, 4}, v, &ws).Loss(other)
		if one[0] != other[0] {
			t.Errorf("%s: with an offset of 0.75 Loss is %v, and %v with the same margin by w; it depends on the margin alone",
				name, one[0], other[0])
		}
		if staged, ok := moved.(model.Staged); ok { // see TestClaims
			if s := staged.Stages(w); len(s[0].B) != 1 || s[0].B[0] != 0.75 {
				t.Errorf("%s: with an offset of 0.75 the first of its Stages has the biases %v; write the offset there", name,
					s[0].B)
			}
		}
		if _, err := model.WithOffset(m, math.NaN()); err == nil {
			t.Errorf("%s: an offset that is not a number", name)
		}
	}
}
