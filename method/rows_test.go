package method

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// With the rows that P4's analysis needs, the noise of every step is within (9); with one in twenty fewer it is not.
func TestNeeded(t *testing.T) {
	obj := Objective{Reg: reg.NonConvex{Lambda: 1e-3}}
	facts := func(rows int) oracle.Public {
		return oracle.Public{Dim: 54, Rows: rows, Adjacency: privacy.ReplaceOne, NormBound: 1, Lipschitz: 1, Smooth: 0.25, HessLipschitz: 1 / (6 * oracle.Bound(math.Sqrt(3))), Curved: true, StartLoss: math.Ln2}
	}
	terms := Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.ReplaceOne}, Accountant: account.Best{}}
	common := P4{Gradient: 0.06, Curvature: 0.245, Gap: math.Ln2}
	// within says whether the noise of a full step at n rows is within (9), with what a search needs.
	within := func(m Method, rows float64) bool {
		pub := facts(int(rows))
		m, err := m.Configure(pub, obj, terms)
		if err != nil {
			t.Fatal(err)
		}
		var q secondorder.Queries
		var phase secondorder.Phase
		search := 0.
		c, err := secondorder.Analysis(pub, obj.Reg, common.Gradient, common.Curvature)
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case OPT:
			q, phase = m.queries(pub), m.phase(m.Noise, 0)
		case TwoOPT:
			q, phase = m.queries(pub), m.phase(m.LateNoise, 0)
		case OPTLS:
			q, phase = m.queries(pub), m.phase(m.Noise, 0)
			search = c.SearchRows(m.Noise, m.tries(), m.Steps, secondorder.Miss/2, m.Clip, m.Long, m.Long)
		case TwoOPTLS:
			q, phase = m.queries(pub), m.phase(m.LateNoise, 0)
			search = c.SearchRows(m.LateNoise, m.tries(), m.Steps, secondorder.Miss/2, m.Clip, m.Long, m.Long)
		}
		each := secondorder.Miss / (4 * float64(phase.Steps))
		return q.GradientNoise(phase.Noise, each) <= min(0.1*0.06, 0.1*0.245*0.245/c.HessLipschitz) && q.HessianNoise(phase.Noise, each) <= 0.1*0.245 && rows >= search
	}
	for name, m := range map[string]Method{"opt": OPT{P4: common}, "opt-ls": OPTLS{P4: common}, "2opt": TwoOPT{OPT: OPT{P4: common}}, "2opt-ls": TwoOPTLS{OPTLS: OPTLS{P4: common}}} {
		n, err := Needed(m, facts(10_000), obj, terms)
		if err != nil || !within(m, n.Rows) || within(m, 0.95*n.Rows) {
			t.Errorf("%s: %+v, %v: within (9) with as many rows: %v, with fewer: %v", name, n, err, within(m, n.Rows), within(m, 0.95*n.Rows))
		}
	}
	batch := OPT{P4: common, Batch: 1000}
	whole, err := Needed(OPT{P4: common}, facts(10_000), obj, terms)
	if part, err2 := Needed(batch, facts(10_000), obj, terms); err != nil || err2 != nil || part.From != "(25)" || part.Rows < 2*whole.Rows {
		t.Errorf("a tenth of the rows: %+v, all: %+v, %v, %v", part, whole, err, err2)
	}
	poisson := facts(10_000)
	poisson.Adjacency = privacy.AddRemove
	terms.Budget.Adjacency = privacy.AddRemove
	if n, err := Needed(batch, poisson, obj, terms); err == nil {
		t.Errorf("Poisson samples: %+v", n)
	}
	if n, err := Needed(GD{}, poisson, obj, terms); n != nil || err != nil {
		t.Errorf("a method of P1: %+v, %v", n, err)
	}
}
