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
//	‖∂f‖ ≤ √(8f) · ‖x‖ · √Π, Π = Σ_i Π_{j≠i} ‖W_j‖²
//
// This is the pair of Algorithm 3 and §6.2, for layers without biases: β₁ = 8‖x‖²Π and β₂ = 0.
// Appendix D ends with min(1, 2f) instead of 2f, which is no pair. Of the squared loss of one layer the pair is
// (2L, 0) of Lemma 3.2 with one L = R² for all rows, with which the bound is R·√(2f).
type wgc struct {
	model.Staged
	linear bool // squared loss, and R in place of ‖x‖
	single bool // has one layer
	least  bool // min(1, 2f) instead of 2f
	power  bool // norms by one step of power iteration, which bounds nothing (S-0c)

	mu    sync.Mutex
	w     []float64 // of the last layers
	dense []float64 // their norms
}

type wgcPass struct {
	model.Pass
	m     *wgc
	view  data.View
	dense []float64
}

func newWGC(m model.Model, kind string) *wgc {
	s := m.(model.Staged)
	layers := 0
	for _, stage := range s.Stages(make([]float64, m.Dim())) {
		if stage.Kind == "dense" {
			layers++
		}
	}
	return &wgc{Staged: s, linear: m.Outputs() == 1, single: layers == 1, dense: []float64{1},
		power: kind == vcPower || kind == vcBoth, least: kind == vcLeast || kind == vcBoth}
}

// Eval makes the bound of the losses that the model computes.
func (m *wgc) Eval(w []float64, v data.View, ws *model.Workspace) model.Pass {
	return wgcPass{m.Staged.Eval(w, v, ws), m, v, m.layers(w)}
}

// layers computes what does not depend on the row, once for each w. The norm of a single layer is in no bound.
func (m *wgc) layers(w []float64) []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.single {
		return m.dense
	}
	if slices.Equal(m.w, w) {
		return m.dense
	}
	m.w, m.dense = append(m.w[:0], w...), nil
	for _, s := range m.Stages(w) {
		if s.Kind != "dense" {
			continue // relu and tanh make nothing longer
		}
		norm := model.SpectralBound
		if m.power {
			norm = powerNorm
		}
		m.dense = append(m.dense, norm(s.W, s.In, s.Out))
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
		if p.m.linear {
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

// sizeOf is x·√Π.
func sizeOf(dense []float64, x float64) float64 {
	sum := 0.0 // of the layers so far, times the norms of those after them
	for _, norm := range dense {
		sum = sum*norm*norm + x*x
		x *= norm
	}
	return math.Sqrt(sum)
}
