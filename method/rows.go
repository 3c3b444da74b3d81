package method

import (
	"math"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
)

// A Need is how many rows a method of P4 needs before its theorem promises to find an (ε_g, ε_H)-2NS: n_min.
type Need struct {
	Rows      float64 `json:"rows_needed"`
	From      string  `json:"by"` // the theorem's number in P4
	Gradient  float64 `json:"gradient"`
	Curvature float64 `json:"curvature"`
	Steps     int     `json:"steps"` // T, in which it finds one
	Miss      float64 `json:"miss"`  // but for this probability
}

// Needed is the Need of opt, opt-ls, 2opt and 2opt-ls with the terms; nil of any other method.
func Needed(m Method, pub oracle.Public, obj Objective, terms Terms) (*Need, error) {
	if _, ok := m.(needy); !ok {
		return nil, nil
	}
	m, err := m.Configure(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	return m.(needy).need(pub, obj)
}

type needy interface {
	need(oracle.Public, Objective) (*Need, error)
}

// need is that of steps with the noise of phase.
func (m *P4) need(pub oracle.Public, obj Objective, q secondorder.Queries, from string,
	phase secondorder.Phase) (*Need, secondorder.Constants, error) {
	c, err := secondorder.Analysis(pub, obj.Reg, m.Gradient, m.Curvature)
	if err != nil {
		return nil, c, err
	}
	rows, err := q.Rows(c, phase)
	return &Need{rows, from, m.Gradient, m.Curvature, phase.Steps, secondorder.Miss}, c, err
}

// (12), and (25) with a batch.
func (m OPT) need(pub oracle.Public, obj Objective) (*Need, error) {
	return m.needAt(pub, obj, m.phase(m.Noise, m.Hessians))
}

func (m *OPT) needAt(pub oracle.Public, obj Objective, phase secondorder.Phase) (*Need, error) {
	from := "(12)"
	if m.Batch > 0 {
		from = "(25)"
	}
	n, _, err := m.P4.need(pub, obj, m.queries(pub), from, phase)
	return n, err
}

// (18).
func (m OPTLS) need(pub oracle.Public, obj Objective) (*Need, error) {
	return m.needAt(pub, obj, m.phase(m.Noise, m.Hessians))
}

func (m *OPTLS) needAt(pub oracle.Public, obj Objective, phase secondorder.Phase) (*Need, error) {
	n, c, err := m.P4.need(pub, obj, m.queries(pub), "(18)", phase)
	if err == nil {
		n.Rows = math.Max(n.Rows,
			math.Ceil(c.SearchRows(phase.Noise, m.tries(), phase.Steps, secondorder.Miss/2, m.Clip, m.Long, m.Long)))
	}
	return n, err
}

// The analysis covers the second phase, which has as many steps as it needs.
func (m TwoOPT) need(pub oracle.Public, obj Objective) (*Need, error) {
	return m.needAt(pub, obj, m.phase(m.LateNoise, m.Hessians))
}

func (m TwoOPTLS) need(pub oracle.Public, obj Objective) (*Need, error) {
	return m.needAt(pub, obj, m.phase(m.LateNoise, m.Hessians))
}
