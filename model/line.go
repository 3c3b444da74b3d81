package model

import "github.com/sottodp/sotto/data"

// LineLoss sets dst[k][i] = ℓ_i(from − steps[k]·along) for the rows of v: losses along a
// line, as a search for a step size asks. Where margins are linear in w, as in every
// model of this package except a network, they are computed twice, for from and for along, for any number of steps;
// a further call for the same rows, line and kept does not compute them again.
func LineLoss(m Model, dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace, kept *Margins) {
	if l, ok := m.(liner); ok {
		l.lineLoss(dst, from, along, steps, v, ws, kept)
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

// Margins are those of the two ends of a line, [LineWidth] numbers a row: what LineLoss keeps for a
// further call. They are as private as the rows.
type Margins struct {
	From, Along []float64
	Known       bool // from a call before
}

// LineWidth is how many numbers a row takes in Margins; 0 where nothing can be kept.
func LineWidth(m Model) int {
	if l, ok := m.(liner); ok {
		return l.lineWidth()
	}
	return 0
}

// A liner is a model whose margins are linear in w.
type liner interface {
	lineLoss(dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace, kept *Margins)
	lineWidth() int
}

var _, _ liner = &glm{}, &softmax{}

// margins are kept, or the workspace's own where nothing is.
func (ws *Workspace) margins(kept *Margins, n int) *Margins {
	if kept != nil {
		needLength("kept margins", len(kept.From), n)
		needLength("kept margins", len(kept.Along), n)
		return kept
	}
	ws.z, ws.fall = grow(ws.z, n), grow(ws.fall, n)
	return &Margins{From: ws.z, Along: ws.fall}
}

func (m *glm) lineWidth() int { return 1 }

func (m *glm) lineLoss(dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace, kept *Margins) {
	check(m, m.features, from, v)
	check(m, m.features, along, v)
	p, k := m.labeled(v, ws), ws.margins(kept, v.Len())
	if !k.Known {
		m.margins(k.From, from, v, ws)
		v.Margins(k.Along, along, 1, &ws.rows)
	}
	for i, eta := range steps {
		step(p.z, k.From, k.Along, eta)
		p.Loss(dst[i])
	}
}

func (m *softmax) lineWidth() int { return m.classes }

func (m *softmax) lineLoss(dst [][]float64, from, along, steps []float64, v data.View, ws *Workspace, kept *Margins) {
	check(m, m.features, from, v)
	check(m, m.features, along, v)
	p, k := m.labeled(v, ws), ws.margins(kept, v.Len()*m.classes)
	if !k.Known {
		v.Margins(k.From, from, m.classes, &ws.rows)
		v.Margins(k.Along, along, m.classes, &ws.rows)
	}
	for i, eta := range steps {
		step(p.z, k.From, k.Along, eta)
		p.Loss(dst[i])
	}
}

// step sets dst = z − eta·fall.
func step(dst, z, fall []float64, eta float64) {
	for i, v := range z {
		dst[i] = v - eta*fall[i]
	}
}
