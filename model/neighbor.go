package model

import (
	"math"

	"github.com/sottodp/sotto/data"
)

// Falls are the decreases of rows' losses by moves of one parameter each: of row Row[e] of a view by Up[e] if
// parameter Param[e] grows, by Down[e] if it shrinks. What is not listed is 0.
type Falls struct {
	Row, Param []int32
	Up, Down   []float64
}

func (f *Falls) list(row, param int) {
	f.Row, f.Param = append(f.Row, int32(row)), append(f.Param, int32(param))
}

// NeighborFalls sets f to ℓ_i(from) − ℓ_i(from ± step·e_j), for all rows of v and all parameters j. Where margins are
// linear in w, a row's margins are computed once, and only its features that are not 0 are read. A row's figures do not
// depend on the others. Figures of a row without a finite loss are not numbers, or infinite.
func NeighborFalls(m Model, f *Falls, from []float64, step float64, v data.View, ws *Workspace) {
	f.Row, f.Param, f.Up, f.Down = f.Row[:0], f.Param[:0], f.Up[:0], f.Down[:0]
	if n, ok := m.(neighbor); ok {
		n.neighborFalls(f, from, step, v, ws)
		return
	}
	n := v.Len()
	before, after, w := make([]float64, n), make([]float64, n), append([]float64(nil), from...)
	m.Eval(from, v, ws).Loss(before)
	for j := range w {
		for _, to := range []struct {
			fall *[]float64
			at   float64
		}{{&f.Up, from[j] + step}, {&f.Down, from[j] - step}} {
			w[j] = to.at
			m.Eval(w, v, ws).Loss(after)
			for i, l := range after {
				*to.fall = append(*to.fall, before[i]-l)
			}
		}
		for i := range n {
			f.list(i, j)
		}
		w[j] = from[j]
	}
}

// A neighbor is a model whose margins are linear in w.
type neighbor interface {
	neighborFalls(f *Falls, from []float64, step float64, v data.View, ws *Workspace)
}

var _, _ neighbor = &glm{}, &softmax{}

// features calls yield for each feature of row i of v that is not 0.
func (ws *Workspace) features(v data.View, i int, yield func(j int, x float64)) {
	col, val := v.Values(v.Row(i), &ws.row)
	for k, x := range val {
		j := k
		if col != nil {
			j = int(col[k])
		}
		if x != 0 {
			yield(j, float64(x))
		}
	}
}

func (m *glm) neighborFalls(f *Falls, from []float64, step float64, v data.View, ws *Workspace) {
	p := m.Eval(from, v, ws).(*glmPass)
	ws.z, ws.fall = ws.z[:0], ws.fall[:0] // margins up, then down; labels
	y := ws.y[:0]
	for i, z := range p.z {
		ws.features(v, i, func(j int, x float64) {
			f.list(i, j)
			ws.z, ws.fall, y = append(ws.z, z+step*x), append(ws.fall, z-step*x), append(y, p.y[i])
		})
	}
	n := len(y)
	ws.y, f.Up, f.Down = y, grow(f.Up, n), grow(f.Down, n)
	m.link.loss(f.Up, ws.z, y)
	m.link.loss(f.Down, ws.fall, y)
	ws.z = grow(ws.z, len(p.z))
	m.link.loss(ws.z, p.z, p.y)
	for e, i := range f.Row {
		f.Up[e], f.Down[e] = ws.z[i]-f.Up[e], ws.z[i]-f.Down[e]
	}
}

// With t the change of z_k, ℓ falls by t·[k = y] − ln(1 + p_k(e^t − 1)).
func (m *softmax) neighborFalls(f *Falls, from []float64, step float64, v data.View, ws *Workspace) {
	p := m.Eval(from, v, ws).(*softmaxPass)
	share := make([]float64, p.k)
	fall := func(k, y int, t float64) float64 {
		d := -math.Log1p(share[k] * math.Expm1(t))
		if k == y {
			d += t
		}
		return d * weight(m.weights, max(y, 0))
	}
	for i := range p.n {
		y, z := p.class(i), p.z[i:]
		top := largest(z, p.n, p.k)
		var sum float64
		for k := range share {
			share[k] = math.Exp(z[k*p.n] - z[top*p.n])
			sum += share[k]
		}
		if y < 0 {
			sum = math.NaN() // no figure of the row is a number: it weighs nothing
		}
		for k := range share {
			share[k] /= sum
		}
		ws.features(v, i, func(j int, x float64) {
			for k := range share {
				f.list(i, k*p.d+j)
				f.Up, f.Down = append(f.Up, fall(k, y, step*x)), append(f.Down, fall(k, y, -step*x))
			}
		})
	}
}
