package model

import (
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
)

// A glm is a model with one margin per row.
//
//	z_i = ⟨w, x_i⟩          margin; w, x_i ∈ R^d
//	ℓ_i = φ(z_i, y_i)       loss, φ the link of the model
//	s_i = ∂φ/∂z (z_i, y_i)  slope
//	∇ℓ_i = s_i·x_i,  ‖∇ℓ_i‖_p = |s_i|·‖x_i‖_p,  Σ c_i ∇ℓ_i = Xᵀ(c∘s)
//	h_i = ∂²φ/∂z² (z_i, y_i) ≥ 0
//	∇²ℓ_i = h_i·x_i·x_iᵀ,  ‖∇²ℓ_i‖ = h_i·‖x_i‖²
//
// So a pass is one product with X, one pointwise step, and one product with Xᵀ.
type glm struct {
	name     string
	features int
	classes  int // 2, or 0 for a numeric label
	facts    Facts
	link     link
	offset   float64 // of every margin
}

// A link is the pointwise part of a glm. For two classes y_i is +1 for class 1,
// −1 for class 0, and NaN for anything else; for a numeric label it is the value.
type link interface {
	loss(dst, z, y []float64)  // dst_i = φ(z_i, y_i)
	slope(dst, z, y []float64) // dst_i = ∂φ/∂z (z_i, y_i)
	curve(dst, z, y []float64) // dst_i = ∂²φ/∂z² (z_i, y_i) ≥ 0; at a kink of the slope, one side's
}

// A meaner is the link of a numeric label whose prediction is not the margin.
type meaner interface {
	mean(z []float64) // turns margins into predictions
	stage() Stage     // the same for programs other than Sotto
}

func (m *glm) Name() string { return m.name }
func (m *glm) Dim() int     { return m.features }
func (m *glm) Facts() Facts { return m.facts }

func (m *glm) Outputs() int { return max(m.classes, 1) }

func (m *glm) Eval(w []float64, v data.View, ws *Workspace) Pass {
	check(m, m.features, w, v)
	p := m.labeled(v, ws)
	m.margins(p.z, w, v, ws)
	if p.center = ws.Center; p.center != nil {
		needFloats(v, "a center")
	}
	p.center.margins(p.z)
	return p
}

// margins sets z_i = ⟨w, x_i⟩ + offset.
func (m *glm) margins(z, w []float64, v data.View, ws *Workspace) {
	v.Margins(z, w, 1, &ws.rows)
	if m.offset != 0 {
		for i := range z {
			z[i] += m.offset
		}
	}
}

// Margins implements Marginal.
func (m *glm) Margins(dst, w []float64, v data.View, ws *Workspace) {
	check(m, m.features, w, v)
	needLength("dst", len(dst), v.Len())
	m.margins(dst, w, v, ws)
}

// labeled is the pass of v without its margins.
func (m *glm) labeled(v data.View, ws *Workspace) *glmPass {
	needLabels(v)
	n, p := v.Len(), &ws.glm
	p.view, p.link, p.center, p.ws, p.sloped, p.curved = v, m.link, nil, ws, false, false
	p.z, p.y = grow(p.z, n), grow(p.y, n)
	if v.Rows == nil {
		for i, y := range v.Y[v.From:v.To] {
			p.y[i] = float64(y)
		}
	}
	for i, row := range v.Rows {
		p.y[i] = float64(v.Y[row])
	}
	if m.classes == 2 {
		signs(p.y)
	}
	return p
}

// signs turns classes into signs. A class that does not exist becomes NaN, so
// that no figure of its row is finite and no clip rule lets it in.
func signs(y []float64) {
	for i, v := range y {
		s := 2*v - 1
		if s*s != 1 { // exact for what classes there may be
			s = math.NaN()
		}
		y[i] = s
	}
}

// Predict gives σ(−z), σ(z) for two classes: the probabilities of the logistic
// model, an increasing function of the margin for the others.
func (m *glm) Predict(dst, w []float64, v data.View, ws *Workspace) {
	check(m, m.features, w, v)
	n := v.Len()
	needLength("dst", len(dst), n*m.Outputs())
	if m.classes == 0 {
		m.margins(dst, w, v, ws)
		if l, ok := m.link.(meaner); ok {
			l.mean(dst)
		}
		return
	}
	ws.z = grow(ws.z, n)
	m.margins(ws.z, w, v, ws)
	for i, z := range ws.z {
		dst[i] = -z
	}
	kern.Sigmoid(ws.z, ws.z)       // P(class 1)
	kern.Sigmoid(dst[:n], dst[:n]) // P(class 0), with all its digits also where it is small
	for i := n - 1; i >= 0; i-- {
		dst[2*i], dst[2*i+1] = dst[i], ws.z[i]
	}
}

// A glmPass is the Pass of a glm. It lives in a Workspace.
type glmPass struct {
	view   data.View
	link   link
	center *Center // nil: none
	ws     *Workspace
	z, y   []float64
	s, a   []float64 // slopes; coefficients
	sloped bool      // s is computed
	h, v   []float64 // curvatures; scaled rows
	curved bool      // h is computed
}

func (p *glmPass) Len() int { return len(p.z) }

func (p *glmPass) Loss(dst []float64) {
	needLength("dst", len(dst), len(p.z))
	p.link.loss(dst, p.z, p.y)
}

// slopes computes s at its first use: a pass that asks only for losses does not need it.
func (p *glmPass) slopes() []float64 {
	if !p.sloped {
		p.s = grow(p.s, len(p.z))
		p.link.slope(p.s, p.z, p.y)
		p.sloped = true
	}
	return p.s
}

func (p *glmPass) GradNorm(dst []float64, norm int) {
	needLength("dst", len(dst), len(p.z))
	p.center.rowNorms(dst, p.view, norm, p.ws)
	for i, s := range p.slopes() {
		dst[i] = up(math.Abs(s), dst[i])
	}
}

func (p *glmPass) AddGrad(dst, c []float64, unit float64) {
	needLength("dst", len(dst), p.view.Block.Dim)
	needLength("c", len(c), len(p.z))
	needUnit(unit)
	p.a = grow(p.a, len(c))
	kern.Coef(p.a, p.view.Weights(c, &p.ws.rows), p.slopes(), unit)
	p.center.take(p.a)
	p.view.Add(dst, p.a, 1, unit, &p.ws.rows)
}
