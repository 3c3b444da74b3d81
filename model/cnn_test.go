package model_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
)

// TestLayersOfImages: what a layer's text says, by the parameters that the network then has, and what is refused.
func TestLayersOfImages(t *testing.T) {
	const dense = 32*10 + 10
	for _, c := range []struct {
		layers string
		want   any // parameters, or what the error says
	}{
		{"conv 16 8x8 stride 2 pad 3 relu; max 2 stride 1; conv 32 4x4 stride 2; max 2 stride 1; 32", 16*65 + 32*257 + 513*32 + dense}, // Opacus' example: 26,010
		{"conv 16 8 pad 3 stride 2; 32", 16*65 + (14*14*16+1)*32 + dense},
		{"mean 28x14; 32", 3*32 + dense},
		{"max 2 stride 4x2; 32", (7*14+1)*32 + dense},
		{"max 5 stride 3; 32", (8*8+1)*32 + dense},
		{"conv 6 5 linear; group 3 tanh; max 2; 32", 6*26 + 12 + (12*12*6+1)*32 + dense},
		{"conv", "too short"},
		{"conv 0 3x3", `"0" is no number from 1`},
		{"conv 3 3y3", `"3y3" is no number`},
		{"conv 3 29x3", "larger than the image of 28x28"},
		{"conv 3 3 pad 3", "pad 3 leaves windows of 3x3 without"},
		{"conv 3 3 stride", "what is behind the window"},
		{"conv 3 3 gelu", "what is behind the window"},
		{"max 2 pad 1", "what is behind the window"},
		{"mean", "too short"},
		{"group 1; conv 5 3; group 2", "divides the 5 channels"},
		{"group", "divides the 1 channels"},
		{"batch 4", "every record's gradient depend on the others"},
		{"batchnorm", "every record's gradient depend on the others"},
		{"relu", "write a number of units"},
		{"", "needs layers"},
		{"conv 30000 1", "makes 23520000 numbers of a row"},
		{"conv 4000 1; conv 4000 2", "more than 25000000 parameters"},
	} {
		opt := model.Options{Dim: 784, Classes: 10, NormBound: 1, Shape: []int{28, 28}}
		if c.layers != "" {
			opt.Config = model.CNN{Layers: strings.Split(c.layers, ";")}
		}
		m, err := model.New("cnn", opt)
		switch want := c.want.(type) {
		case int:
			if err != nil || m.Dim() != want {
				t.Errorf("%s: %v, want %d parameters", c.layers, err, want)
			}
		case string:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", c.layers, err, want)
			}
		}
	}
	for _, shape := range [][]int{nil, {784}, {28, 29}, {28, 28, 2}, {-28, -28}, {7, 7, 4, 4}} {
		_, err := model.New("cnn", model.Options{Dim: 784, Classes: 10, NormBound: 1, Shape: shape, Config: model.CNN{Layers: []string{"3"}}})
		if err == nil || !strings.Contains(err.Error(), "cnn takes images") {
			t.Errorf("shape %v: error %v", shape, err)
		}
	}
}

// TestConvolutionOfAll: a window as large as the image is a dense layer, whose gradients, norms and bounds come another way.
func TestConvolutionOfAll(t *testing.T) {
	p := newProblem(t, "mlp", 30, 12, 3, 1, 7) // its layer is 2 tanh
	c, err := model.New("cnn", model.Options{Dim: 12, Classes: 3, NormBound: 1, Shape: []int{2, 3, 2}, Config: model.CNN{Layers: []string{"conv 2 2x3 tanh"}, Compute: "float64"}})
	if err != nil {
		t.Fatal(err)
	}
	from := make([]int, p.Dim()) // where a parameter of the convolution is in the dense layer
	for j := range from {
		from[j] = j
		if j < 24 {
			from[j] = j%12*2 + j/12
		}
	}
	q := &problem{Model: c, dense: p.dense, w: make([]float64, p.Dim())}
	for j, k := range from {
		q.w[j] = p.w[k]
	}
	weights := p.weights(30)
	a, b := p.grad(p.w, whole(p.dense), weights, 0), q.grad(q.w, whole(p.dense), weights, 0)
	for j, k := range from {
		if math.Abs(b[j]-a[k]) > 1e-12 {
			t.Errorf("coordinate %d: %v, of the dense layer %v", j, b[j], a[k])
		}
	}
	for order := 1; order <= 2; order++ {
		for i, norm := range q.norms(q.w, order) {
			if want := p.norms(p.w, order)[i]; math.Abs(norm-want) > 1e-6*want {
				t.Errorf("row %d: ‖∇ℓ‖_%d = %v, of the dense layer %v", i, order, norm, want)
			}
		}
	}
	bound := func(m model.Model, w []float64) []float64 {
		dst := make([]float64, 30)
		m.Eval(w, data.View{Block: p.dense, To: 30}, new(model.Workspace)).(model.BoundedPass).GradBound(dst)
		return dst
	}
	dense := bound(p, p.w)
	for i, v := range bound(c, q.w) {
		if math.Abs(v-dense[i]) > 1e-6*v {
			t.Errorf("row %d: bound %v, of the dense layer %v", i, v, dense[i])
		}
	}
}
