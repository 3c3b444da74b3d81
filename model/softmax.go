package model

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
)

// A softmax model is the multinomial logistic regression of K classes.
//
//	w = (w_0, …, w_{K−1}) ∈ R^{K·d}, class after class
//	z_ik = ⟨w_k, x_i⟩
//	p_ik = e^{z_ik} / Σ_l e^{z_il}
//	ℓ_i = ln Σ_k e^{z_ik} − z_iy
//	r_ik = p_ik − [k = y],  ∇_k ℓ_i = r_ik·x_i,  ‖∇ℓ_i‖_p = ‖r_i‖_p·‖x_i‖_p
//
// Bounds with R ≥ ‖x‖₂: ‖r‖₂ ≤ √2. The second and third derivatives of ln Σ e^z
// in a unit direction u are the variance and the third central moment of u_k
// under p. The u_k lie in an interval of length at most √2, so the first is at
// most 2/4 and the second, largest for a law on two points, at most
// √2³·max q(1−q)(1−2q) = √2³/(6√3).
//
// Matrices are stored class after class: z_ik is z[k·n+i].
type softmax struct {
	features, classes int
	weights           []float64 // of the classes; nil: all 1
	facts             Facts
	offset            []float64 // of the margins of each class; nil: none
}

// Softmax is the configuration of softmax regression, which has no field.
type Softmax struct{}

var softmaxEntry = Entry{Name: "softmax", About: "softmax regression of two or more classes", Label: SomeClasses,
	Config: Softmax{}}

func (Softmax) New(opt Options) (Model, error) {
	if opt.Classes == 0 {
		return nil, fmt.Errorf("model: softmax needs classes, but the label is numeric; use linear")
	}
	r := opt.NormBound
	return &softmax{features: opt.Dim, classes: opt.Classes, facts: Facts{
		NormBound: r, Lipschitz: math.Sqrt2 * r, Smooth: r * r / 2,
		HessLipschitz: r * r * r * math.Sqrt2 / (3 * math.Sqrt(3)),
		Convex:        true, Centered: true, Bounded: true, Coded: true, Probabilities: true,
		Start: math.Log(float64(opt.Classes)),
	}}, nil
}

func (m *softmax) Name() string { return "softmax" }
func (m *softmax) Dim() int     { return m.classes * m.features }
func (m *softmax) Outputs() int { return m.classes }
func (m *softmax) Facts() Facts { return m.facts }

// Margins implements Marginal.
func (m *softmax) Margins(dst, w []float64, v data.View, ws *Workspace) {
	check(m, m.features, w, v)
	needLength("dst", len(dst), v.Len()*m.classes)
	m.margins(dst, w, v, ws)
}

// margins sets z_ik = ⟨w_k, x_i⟩ + offset_k.
func (m *softmax) margins(z, w []float64, v data.View, ws *Workspace) {
	v.Margins(z, w, m.classes, &ws.rows)
	for k, offset := range m.offset {
		for i := k * v.Len(); i < (k+1)*v.Len(); i++ {
			z[i] += offset
		}
	}
}

func (m *softmax) Eval(w []float64, v data.View, ws *Workspace) Pass {
	check(m, m.features, w, v)
	p := m.labeled(v, ws)
	m.margins(p.z, w, v, ws)
	if p.center = ws.Center; p.center != nil {
		needFloats(v, "a center")
	}
	p.center.margins(p.z)
	return p
}

// labeled is the pass of v without its margins.
func (m *softmax) labeled(v data.View, ws *Workspace) *softmaxPass {
	needLabels(v)
	n, p := v.Len(), &ws.softmax
	p.view, p.ws, p.weights, p.k, p.d, p.n, p.reduced = v, ws, m.weights, m.classes, m.features, n, false
	p.center = nil
	p.z = grow(p.z, n*m.classes)
	return p
}

func (m *softmax) Predict(dst, w []float64, v data.View, ws *Workspace) {
	check(m, m.features, w, v)
	n := v.Len()
	needLength("dst", len(dst), n*m.classes)
	ws.z = grow(ws.z, n*m.classes)
	m.margins(ws.z, w, v, ws)
	for i := range n {
		top := largest(ws.z[i:], n, m.classes)
		out := dst[i*m.classes : (i+1)*m.classes]
		var sum float64
		for k := range out {
			out[k] = math.Exp(ws.z[k*n+i] - ws.z[top*n+i])
			sum += out[k]
		}
		for k := range out {
			out[k] /= sum
		}
	}
}

// largest is the class of the largest of z[0], z[n], z[2n], ….
func largest(z []float64, n, classes int) int {
	top := 0
	for k := 1; k < classes; k++ {
		if z[k*n] > z[top*n] {
			top = k
		}
	}
	return top
}

// A softmaxPass is the Pass of a softmax model. It lives in a Workspace.
type softmaxPass struct {
	view    data.View
	ws      *Workspace
	weights []float64 // of the classes; nil: all 1
	center  *Center   // nil: none
	k, d, n int
	z       []float64 // margins
	r       []float64 // residuals
	a       []float64 // coefficients
	top     []float64 // largest margin of each row
	sum     []float64 // a sum for each row
	y       []int     // classes
	reduced bool      // r is computed
}

func (p *softmaxPass) Len() int { return p.n }

// class is the label of row i, or −1 where it is no class.
func (p *softmaxPass) class(i int) int {
	y := p.view.Y[p.view.Row(i)]
	if k := int(y); y >= 0 && y < float32(p.k) && float32(k) == y {
		return k
	}
	return -1
}

// Loss is z_top − z_y + ln(1 + Σ_{k≠top} e^{z_k − z_top}): two terms ≥ 0, so
// that a small loss keeps its digits and a large one does not overflow.
func (p *softmaxPass) Loss(dst []float64) {
	needLength("dst", len(dst), p.n)
	for i := range dst {
		y := p.class(i)
		if y < 0 {
			dst[i] = math.NaN()
			continue
		}
		z := p.z[i:]
		top := largest(z, p.n, p.k)
		var rest float64
		for k := range p.k {
			if k != top {
				rest += math.Exp(z[k*p.n] - z[top*p.n])
			}
		}
		dst[i] = (z[top*p.n] - z[y*p.n] + math.Log1p(rest)) * weight(p.weights, y)
	}
}

// residuals computes r at its first use. The residual of the label is minus the
// sum of the others, which keeps its digits where p_y is near 1.
func (p *softmaxPass) residuals() []float64 {
	if p.reduced {
		return p.r
	}
	n := p.n
	p.r, p.top, p.sum = grow(p.r, n*p.k), grow(p.top, n), grow(p.sum, n)
	top, sum := p.top, p.sum
	copy(top, p.z[:n])
	for k := 1; k < p.k; k++ {
		for i, z := range p.z[k*n : (k+1)*n] {
			if z > top[i] {
				top[i] = z
			}
		}
	}
	for k := range p.k {
		r := p.r[k*n : (k+1)*n]
		for i, z := range p.z[k*n : (k+1)*n] {
			r[i] = z - top[i]
		}
	}
	kern.Exp(p.r, p.r)
	clear(sum)
	for k := range p.k {
		for i, e := range p.r[k*n : (k+1)*n] {
			sum[i] += e
		}
	}
	p.y = grow(p.y, n)
	for i := range sum {
		if p.y[i] = p.class(i); p.y[i] < 0 {
			sum[i], p.y[i] = math.NaN(), 0 // no figure of the row is finite: no clip rule lets it in
		}
		p.r[p.y[i]*n+i] = 0 // not one of the others
	}
	others := top // from here on
	clear(others)
	for k := range p.k {
		r := p.r[k*n : (k+1)*n]
		for i := range r {
			r[i] /= sum[i]
			others[i] += r[i]
		}
	}
	for i, y := range p.y {
		p.r[y*n+i] = -others[i]
		if p.weights != nil {
			for k := range p.k {
				p.r[k*n+i] *= p.weights[y]
			}
		}
	}
	p.reduced = true
	return p.r
}

func (p *softmaxPass) GradNorm(dst []float64, norm int) {
	needLength("dst", len(dst), p.n)
	p.center.rowNorms(dst, p.view, norm, p.ws)
	r, n := p.residuals(), p.n
	// above the rounding of K additions of squares and a root, or K hypotenuses of 2 ulp each
	slack := 1 + float64(p.k)*0x1p-50
	p.sum = grow(p.sum, n)
	clear(p.sum)
	for k := range p.k {
		for i, v := range r[k*n : (k+1)*n] {
			if norm == 1 {
				p.sum[i] += math.Abs(v)
			} else {
				p.sum[i] += v * v
			}
		}
	}
	for i, s := range p.sum {
		if norm == 2 && s >= 0x1p-900 {
			s = math.Sqrt(s)
		} else if norm == 2 {
			s = 0
			for k := range p.k {
				s = math.Hypot(s, r[k*n+i]) // no square that underflows
			}
		}
		dst[i] = up(s*slack, dst[i])
	}
}

func (p *softmaxPass) AddGrad(dst, c []float64, unit float64) {
	needLength("dst", len(dst), p.k*p.d)
	needLength("c", len(c), p.n)
	needUnit(unit)
	r := p.residuals()
	p.a = grow(p.a, p.k*p.n)
	c = p.view.Weights(c, &p.ws.rows)
	for k := range p.k {
		kern.Coef(p.a[k*p.n:(k+1)*p.n], c, r[k*p.n:(k+1)*p.n], unit)
	}
	p.center.take(p.a)
	p.view.Add(dst, p.a, p.k, unit, &p.ws.rows)
}
