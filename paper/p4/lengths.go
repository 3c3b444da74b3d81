package p4

import (
	"context"
	"errors"
	"fmt"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/paper"
)

// A Meeting is where gradient descent without noise first meets a tolerance of gradients, on rows of some length. The
// paper states neither the length of its rows nor where runs begin, and both decide the loss at the first such point.
type Meeting struct {
	Table   string
	Setting Setting
	Length  float64 // the largest norm of a row; 1 in the runs above
	Steps   int
	Loss    float64
}

// lengths of rows; powers of two keep the values exact.
var lengths = []float64{0.5, 1, 2, 4}

// longer is a table whose rows are k times as long.
func longer(t *data.Table, k float64) *data.Table {
	scaled := func(v []float32) []float32 {
		out := make([]float32, len(v))
		for i := range v {
			out[i] = v[i] * float32(k)
		}
		return out
	}
	out := *t
	out.NormBound, out.Unit, out.Blocks = t.NormBound*k, t.Unit*k, nil
	for _, b := range t.Blocks {
		c := *b
		c.X, c.Val, c.Norm = scaled(b.X), scaled(b.Val), scaled(b.Norm)
		out.Blocks = append(out.Blocks, &c)
	}
	return &out
}

// meets descends from the first start of the runs, divided by k so that its margins are the same.
func (p *problem) meets(ctx context.Context, s Setting, k float64) (Meeting, error) {
	m := Meeting{Table: p.name, Setting: s, Length: k}
	penalty, err := reg.New(s.Reg, lambda)
	if err != nil {
		return m, err
	}
	q, err := newProblem(p.name, longer(p.Table, k), 1)
	if err != nil {
		return m, err
	}
	w0 := p.start(0)
	for j := range w0 {
		w0[j] /= k
	}
	o, err := q.Oracle(nil, seed, 0)
	if err != nil {
		return m, err
	}
	defer o.Close()
	const most = 20_000
	descent := method.GD{P1: method.P1{Steps: most, Rate: 1 / (float64(q.Public.Smooth) + 2*lambda),
		Gradient: method.Gradient{Off: true}}}
	obj := method.Objective{Reg: paper.Around{Curved: penalty.(reg.Curved), W0: w0}}
	for st, err := range descent.Run(ctx, &paper.From{Oracle: o, W0: w0}, obj) {
		if err != nil {
			return m, err
		}
		w := paper.Plus(st.W, w0)
		gradient, _, err := secondorder.Exact(ctx, o, penalty, w)
		if err != nil {
			return m, err
		}
		if gradient <= s.Gradient {
			m.Steps, m.Loss = st.T, paper.Loss(q.Model, w, q.Table, nil)+penalty.Value(w)
			return m, nil
		}
	}
	return m, errors.New("p4: gradient descent met no tolerance")
}

// meetings are those of the real tables, in the settings for which the paper's losses are farthest from ours.
func meetings(ctx context.Context, l *paper.Lab, tables []*problem) ([]Meeting, error) {
	type job struct {
		p *problem
		s Setting
		k float64
	}
	var jobs []job
	for _, p := range tables {
		if p.name == shaped || p.of != p.name {
			continue
		}
		for _, s := range []Setting{Settings[0], Settings[2]} {
			for _, k := range lengths {
				jobs = append(jobs, job{p, s, k})
			}
		}
	}
	return paper.Each(ctx, l, jobs, func(ctx context.Context, j job) (Meeting, error) { return j.p.meets(ctx, j.s, j.k) })
}

// met is the table of meetings.
func (r *Report) met() paper.Table {
	t := paper.Table{Title: "Why losses differ from the paper's",
		Note: "A run ends at the first point that it certifies, so that its loss is decided by where gradients become short, and that by the length of the rows: a row k times as long has a gradient k times as long. " +
			"The paper normalizes the numeric columns, prints no norm of a row and no start; here rows have norm 1. Gradient descent without noise, from the same margins, first meets ‖∇F‖ ≤ ε_g at these losses; " +
			"the paper's stands where a method of its table ends on average at ε = 1.",
		Head: []string{"table", "setting", "largest norm of a row", "steps", "loss", "the paper's loss"}}
	for _, m := range r.Meetings {
		printed := ""
		if cells := paperCells[m.Table+" "+m.Setting.Name]; cells != nil {
			if p := cells["2OPT"][len(epsilons)-1].loss; p > 0 {
				printed = fmt.Sprintf("%.3f (2OPT)", p)
			} else if p := cells["2OPT-B"][len(epsilons)-1].loss; p > 0 {
				printed = fmt.Sprintf("%.3f (2OPT-B)", p)
			}
		}
		t.Add(m.Table, m.Setting.Name, m.Length, m.Steps, fmt.Sprintf("%.3f", m.Loss), printed)
	}
	return t
}
