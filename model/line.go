package model

import "github.com/sottodp/sotto/data"

// LineLoss sets dst[k][i] = ℓ_i(from − steps[k]·along) for the rows of v: losses along a
// line, as a search for a step size asks. Where margins are linear in w, as in every
// model of this package but a network, they are taken twice, of from and of along, however many steps there are.
func LineLoss(m Model, dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace) {
	if l, ok := m.(liner); ok {
		l.lineLoss(dst, from, along, steps, v, ws)
		return
	}
	w := make([]float64, len(from))
	for k, eta := range steps {
		for j := range w {
			w[j] = from[j] - eta*along[j]
		}
		m.Eval(w, v, ws).Loss(dst[k])
	}
}

// A liner is a model whose margins are linear in w.
type liner interface {
	lineLoss(dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace)
}

var _, _ liner = &glm{}, &softmax{}

func (m *glm) lineLoss(dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace) {
	check(m, m.features, along, v)
	p := m.Eval(from, v, ws).(*glmPass)
	ws.z, ws.fall = grow(ws.z, p.Len()), grow(ws.fall, p.Len())
	margins(ws.fall, along, v)
	copy(ws.z, p.z)
	for k, eta := range steps {
		step(p.z, ws.z, ws.fall, eta)
		p.Loss(dst[k])
	}
}

func (m *softmax) lineLoss(dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace) {
	check(m, m.features, along, v)
	p := m.Eval(from, v, ws).(*softmaxPass)
	ws.z, ws.fall = grow(ws.z, len(p.z)), grow(ws.fall, len(p.z))
	m.margins(ws.fall, along, v)
	copy(ws.z, p.z)
	for k, eta := range steps {
		step(p.z, ws.z, ws.fall, eta)
		p.Loss(dst[k])
	}
}

// step sets dst = z − eta·fall.
func step(dst, z, fall []float64, eta float64) {
	for i, v := range z {
		dst[i] = v - eta*fall[i]
	}
}
