package p0

import (
	"math"
	"slices"
	"sync"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/noise"
)

// wgc is a model whose losses bound its gradients with P0's own constants (Appendix D), for networks of
// dense layers and cross-entropy:
//
//	‖∂f‖ ≤ √(8f) · √(Σ_l (Π_{j>l} ‖W_j‖)²·(A_{l−1}² + [bias]))
//
// A_l bounds a layer's output from its input's: A_0 = ‖x‖, A_l = ‖W_l‖·A_{l−1} + ‖b_l‖. Without biases, which P0
// does not have, this is the pair of Algorithm 3 and §6.2: β₁ = 8‖x‖²Π, Π = Σ_i Π_{j≠i} ‖W_j‖², and β₂ = 0.
// Appendix D ends with min(1, 2f) instead of 2f, which is no pair. Of the squared loss of one layer the pair is
// (2L, 0) of Lemma 3.2 with one L = R² for all rows, with which the bound is R·√(2f).
type wgc struct {
	model.Staged
	linear bool // squared loss
	public bool // R in place of ‖x‖
	least  bool // min(1, 2f) instead of 2f
	power  bool // norms by one step of power iteration, which bounds nothing (S-0c)

	mu    sync.Mutex
	w     []float64 // of the last layers
	dense []norms
}

// norms are of a dense layer: those of its weights and its biases; without biases the last is negative.
type norms struct{ weights, bias float64 }

type wgcPass struct {
	model.Pass
	m     *wgc
	view  data.View
	dense []norms
}

func newWGC(m model.Model, kind string) *wgc {
	linear := m.Outputs() == 1
	return &wgc{Staged: m.(model.Staged), linear: linear, public: linear || kind == vcPublic, power: kind == vcPower,
		least: kind == vcLeast}
}

// Eval makes the bound of the losses that the model computes.
func (m *wgc) Eval(w []float64, v data.View, ws *model.Workspace) model.Pass {
	return wgcPass{m.Staged.Eval(w, v, ws), m, v, m.layers(w)}
}

// layers computes what does not depend on the row, once for each w.
func (m *wgc) layers(w []float64) []norms {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Equal(m.w, w) {
		return m.dense
	}
	m.w, m.dense = append(m.w[:0], w...), nil
	for _, s := range m.Stages(w) {
		if s.Kind != "dense" {
			continue // relu and tanh make nothing longer
		}
		l := norms{bias: -1}
		if m.power {
			l.weights = powerNorm(s.W, s.In, s.Out)
		} else {
			l.weights = model.SpectralBound(s.W, s.In, s.Out)
		}
		if s.B != nil {
			l.bias = paper.Norm(s.B)
		}
		m.dense = append(m.dense, l)
	}
	return m.dense
}

// powerNorm is ‖Wv‖, v after one step of power iteration from a random start.
func powerNorm(w []float64, rows, cols int) float64 {
	src := noise.NewSeeded(seed, "power", 0)
	v, u := make([]float64, cols), make([]float64, rows)
	for j := range v {
		v[j] = paper.Normal(src)
	}
	times := func() {
		for i := range u {
			u[i] = 0
			for j, x := range w[i*cols : (i+1)*cols] {
				u[i] += x * v[j]
			}
		}
	}
	times()
	clear(v)
	for i, y := range u {
		for j, x := range w[i*cols : (i+1)*cols] {
			v[j] += x * y
		}
	}
	times()
	return paper.Norm(u) / max(paper.Norm(v), math.SmallestNonzeroFloat64)
}

// GradBound implements model.BoundedPass.
func (p wgcPass) GradBound(dst []float64) {
	p.Loss(dst)
	for i, f := range dst {
		x := float64(p.view.Norm[p.view.Row(i)])
		if p.m.public {
			x = p.m.Facts().NormBound
		}
		size := sizeOf(p.dense, x) * (1 + 0x1p-30) // above the rounding of a few products
		if p.m.linear {
			dst[i] = composed(size, f)
		} else {
			if p.m.least {
				f = min(0.5, f)
			}
			dst[i] = composed(2*size, f) // ‖∂g/∂ŷ‖ ≤ 2, (18)
		}
	}
}

// composed bounds the gradient of ℓ∘g where its value is f, by Lemma D.1: ℓ is convex, nonnegative and 1-smooth, and
// g is β-Lipschitz. So ℓ∘g is (2β², 0)-WGC: ‖∂f‖ ≤ β·√(2f).
func composed(beta, f float64) float64 { return beta * math.Sqrt(2*f) }

// sizeOf is √(Σ_l (Π_{j>l} ‖W_j‖)²·(A_{l−1}² + [bias])), A_0 = x.
func sizeOf(dense []norms, x float64) float64 {
	sum := 0.0 // of the layers so far, times the norms of those after them
	for _, l := range dense {
		sum = sum*l.weights*l.weights + x*x
		if x *= l.weights; l.bias >= 0 {
			sum, x = sum+1, x+l.bias
		}
	}
	return math.Sqrt(sum)
}
