package method_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
)

// An adversary answers whatever drives a method through its branches. It charges as the private oracle
// does, and of what was paid for one sample it answers each query once.
type adversary struct {
	t       *rapid.T
	facts   oracle.Public
	small   float64 // a gradient's norm below which a method of P4 tests a point
	meter   account.Meter
	pay     []oracle.Query
	charged privacy.Composed
	refused bool
	last    []float64
}

func (a *adversary) Public() oracle.Public { return a.facts }

func (a *adversary) Batch(_ context.Context, s sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	if a.refused {
		a.t.Fatal("asked again after a refusal")
	}
	for _, q := range pay {
		if err := q.Validate(); err != nil {
			return nil, err
		}
	}
	cost := a.Public().Cost(s, pay)
	if err := a.meter.Charge(cost); err != nil {
		a.refused = true
		return nil, err
	}
	a.charged = append(a.charged, cost)
	a.pay = append([]oracle.Query{}, pay...)
	return a, nil
}

func (a *adversary) take(q oracle.Query) {
	for i, p := range a.pay {
		if p == q {
			a.pay = append(a.pay[:i], a.pay[i+1:]...)
			return
		}
	}
	a.t.Fatalf("asked of a sample what was not paid for it: %+v", q)
}

func (a *adversary) pick(n int) int { return rapid.IntRange(0, n-1).Draw(a.t, "answer") }

func (a *adversary) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	a.take(q)
	g := make([]float64, len(w))
	switch a.pick(6) {
	case 0: // 0
	case 1, 2:
		g[a.pick(len(g))] = a.small / 2
	case 3:
		for j := range g {
			g[j] = float64(a.pick(5)-2) / 3
		}
	case 4: // against the last
		for j := range a.last {
			g[j] = -a.last[j]
		}
	default:
		g[0] = 1e3
	}
	a.last = g
	return append([]float64(nil), g...), nil
}

func (a *adversary) Mean(q oracle.Mean) ([]float64, error) {
	a.take(q)
	return make([]float64, a.facts.Dim), nil
}

func (a *adversary) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	a.take(q)
	h := make([]float64, oracle.HessLen(len(w)))
	if a.pick(3) > 0 {
		h[0] = float64(a.pick(3) - 2)
	}
	return h, nil
}

func (a *adversary) Search(q oracle.Search, l oracle.Line) (int, error) {
	a.take(q)
	return a.pick(len(l.Steps)+1) - 1, nil
}

func (a *adversary) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	a.take(q)
	n, err := oracle.CheckChoice(q, among, a.facts)
	if err != nil || a.pick(2) == 0 {
		return 0, err
	}
	return a.pick(n), nil
}

func (a *adversary) Totals(q oracle.Totals) ([]float64, error) {
	a.take(q)
	return make([]float64, q.Len(a.facts)), nil
}

func (a *adversary) Refine(_ context.Context, c oracle.Choice) error { return c.Check(a.facts) }

func (a *adversary) Loss(oracle.Loss, []float64) (float64, error) { panic("not asked") }

func (a *adversary) Margins(q oracle.Margins, _ []float64) ([]float64, error) {
	a.take(q)
	sums := make([]float64, q.Len(a.facts))
	sums[a.pick(len(sums))] = float64(a.pick(5)-2) * 1e3
	return sums, nil
}

func (a *adversary) Minimize(oracle.Minimize) ([]float64, error)      { panic("not asked") }
func (a *adversary) Score(oracle.Score, []float64) ([]float64, error) { panic("not asked") }

// Whatever is answered, a method asks no more than its plan or its filter admits, each thing once of a
// sample, and nothing after a refusal; what it asked costs no more than the budget. A plan covers all branches, and so does
// the filter of a run that may ask no more than what its noise was set by.
func TestAdversarialAnswers(t *testing.T) {
	race.Skip(t)
	p4 := method.P4{Steps: 6, Gradient: 0.1, Curvature: 0.1}
	type config struct {
		m       method.Method
		whole   bool // what the budget is for is the most that it asks
		sampled bool
	}
	var all []config
	for _, batch := range []int{0, 100} {
		for _, growth := range []string{"no", "must", "adaptive"} {
			for _, decay := range []float64{0, 0.05} {
				if m := (method.BLSGD{Steps: 6, Gradient: method.Gradient{Batch: batch}, Growth: growth, Decay: decay}); growth != "no" || decay == 0 {
					all = append(all, config{m, growth == "no", batch > 0})
				}
			}
		}
		for _, costs := range []method.Costs{{}, {Pay: method.ByPlan}, {Hessians: 2}} {
			opt := method.OPT{P4: p4, Costs: costs, Batch: batch}
			all = append(all, config{opt, true, batch > 0}, config{method.TwoOPT{OPT: opt, Phases: method.Phases{First: 4}}, true, batch > 0})
			if batch == 0 {
				ls := method.OPTLS{P4: p4, Costs: costs}
				all = append(all, config{ls, true, false}, config{method.TwoOPTLS{OPTLS: ls, Phases: method.Phases{First: 4}}, true, false})
			}
		}
		all = append(all, config{method.TR{P4: p4, Batch: batch}, true, batch > 0})
	}
	all = append(all, config{method.GD2NS{P4: p4}, true, false}, config{method.AGD{Splits: 5}, false, false})
	for i, c := range all {
		for k, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			if c.sampled && i%2 != k {
				continue // theorems for samples take their time
			}
			t.Run(fmt.Sprintf("%d %T %v", i, c.m, adj), func(t *testing.T) {
				facts := methodtest.NewOracle(methodtest.Logistic(3), 0).Facts
				facts.Adjacency, facts.Lipschitz, facts.StartLoss = adj, 1, math.Ln2
				terms := methodtest.On
				terms.Budget.Adjacency = adj
				obj := method.Objective{Reg: reg.L2{Lambda: 0.01}}
				m, err := c.m.Configure(facts, obj, terms)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := m.Plan(facts)
				if err != nil {
					t.Fatal(err)
				}
				rapid.Check(t, func(t *rapid.T) {
					meter, err := account.NewMeter(plan, terms.Accountant, terms.Budget)
					if err != nil {
						t.Fatal(err)
					}
					a := &adversary{t: t, facts: facts, small: 0.1, meter: meter}
					var last method.Step
					for st, err := range m.Run(context.Background(), a, obj) {
						if err != nil {
							t.Fatalf("after %d batches: %v", len(a.charged), err)
						}
						last = st
					}
					if last.Status == method.Running || a.refused != (last.Status == method.OutOfBudget) || c.whole && a.refused {
						t.Fatalf("ended %v, refused %v, after %v", last.Status, a.refused, a.charged)
					}
					spent, err := account.Spent(plan, terms.Accountant, a.charged, adj, terms.Budget.Delta)
					if err != nil || spent > terms.Budget.Epsilon*(1+1e-12) {
						t.Fatalf("spent %v, %v", spent, err)
					}
				})
			})
		}
	}
}
