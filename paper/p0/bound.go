package p0

import (
	"math"
	"slices"
	"sync"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
)

// wgc is a model whose losses bound its gradients with P0's own constants (Appendix D), for networks of
// dense layers and cross-entropy:
//
//	‖∂f‖ ≤ 2·√min(1, 2f) · √(Σ_l (Π_{j>l} ‖W_j‖)²·(A_{l−1}² + [bias]))
//
// A_l bounds a layer's output from its input's: A_0 = R, A_l = ‖W_l‖·A_{l−1} + ‖b_l‖. Without biases, which P0
// does not have, this is its 2‖x‖√Π·√min(1, 2f), Π = Σ_i Π_{j≠i} ‖W_j‖². Of the squared loss of one layer
// the pair is (2‖x‖², 0), with which the bound is R·√(2f).
type wgc struct {
	model.Staged
	linear bool // squared loss

	mu   sync.Mutex
	w    []float64 // of the last size
	size float64
}

type wgcPass struct {
	model.Pass
	m    *wgc
	size float64
}

func newWGC(m model.Model) *wgc { return &wgc{Staged: m.(model.Staged), linear: m.Outputs() == 1} }

// Eval makes the bound of the losses that the model computes.
func (m *wgc) Eval(w []float64, v data.View, ws *model.Workspace) model.Pass {
	return wgcPass{m.Staged.Eval(w, v, ws), m, m.sizeAt(w)}
}

// sizeAt computes what does not depend on the row, once for each w.
func (m *wgc) sizeAt(w []float64) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Equal(m.w, w) {
		return m.size
	}
	m.w = append(m.w[:0], w...)
	var inputs []float64 // A_{l−1}² + [bias]
	var norms []float64  // ‖W_l‖
	reach := m.Facts().NormBound
	for _, s := range m.Stages(w) {
		if s.Kind != "dense" {
			continue // relu and tanh make nothing longer
		}
		square, bias := reach*reach, 0.0
		if s.B != nil {
			square++
			for _, b := range s.B {
				bias += b * b
			}
		}
		norm := model.SpectralBound(s.W, s.In, s.Out)
		inputs, norms = append(inputs, square), append(norms, norm)
		reach = norm*reach + math.Sqrt(bias)
	}
	sum, later := 0.0, 1.0
	for l := len(norms) - 1; l >= 0; l-- {
		sum += later * later * inputs[l]
		later *= norms[l]
	}
	m.size = math.Sqrt(sum) * (1 + 0x1p-30) // above the rounding of a few products
	return m.size
}

// GradBound implements model.BoundedPass.
func (p wgcPass) GradBound(dst []float64) {
	p.Loss(dst)
	for i, f := range dst {
		if p.m.linear {
			dst[i] = p.size * math.Sqrt(2*f)
		} else {
			dst[i] = 2 * p.size * math.Sqrt(min(1, 2*f))
		}
	}
}
