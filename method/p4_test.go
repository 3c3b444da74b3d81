package method_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// saddle is x² − y²/2 + y⁴/4 in its first two coordinates and z²/2 in the third: a strict saddle at 0, where methods
// begin, and minima at y = ±1. Near them |∂³/∂y³| = 6|y|, so that M = 8 holds to |y| = 4/3.
func saddle() methodtest.Problem {
	return methodtest.Problem{
		Name: "saddle", Dim: 3, Smooth: 4, Best: -0.25,
		Grad: func(dst, w []float64) {
			dst[0], dst[1], dst[2] = 2*w[0], -w[1]+w[1]*w[1]*w[1], w[2]
		},
		Hess: func(dst, w []float64) {
			clear(dst)
			dst[0], dst[4], dst[8] = 2, -1+3*w[1]*w[1], 1
		},
		Value: func(w []float64) float64 {
			return w[0]*w[0] - w[1]*w[1]/2 + math.Pow(w[1], 4)/4 + w[2]*w[2]/2
		},
	}
}

// second are the methods of P4, with a tolerance that they have to reach.
var _, _ method.Cautious = method.OPTLS{}, method.TwoOPTLS{}

var second = map[string]method.Method{
	"opt":     method.OPT{P4: method.P4{Gradient: 0.01}},
	"opt-ls":  method.OPTLS{P4: method.P4{Gradient: 0.01}},
	"2opt":    method.TwoOPT{OPT: method.OPT{P4: method.P4{Gradient: 0.01}}},
	"2opt-ls": method.TwoOPTLS{OPTLS: method.OPTLS{P4: method.P4{Gradient: 0.01}}},
	"tr":      method.TR{P4: method.P4{Gradient: 0.01}},
}

// TestSaddle: without noise every method leaves a saddle at which it begins, and ends where it
// can claim a minimum. DP-GD, which sees no curvature, stays, and so does gd-2ns, which tells.
func TestSaddle(t *testing.T) {
	run := func(m method.Method) (last method.Step, w []float64) {
		o := methodtest.NewOracle(saddle(), 0)
		o.Facts.HessLipschitz = 8
		fitted, err := m.Configure(o.Facts, method.Objective{}, methodtest.Off)
		if err != nil {
			t.Fatal(err)
		}
		for st, err := range fitted.Run(context.Background(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			last = st
		}
		return last, last.W
	}
	for name, m := range second {
		last, w := run(m)
		if last.Status != method.Converged || saddle().Value(w) > -0.2499 {
			t.Errorf("%s: %v after %d steps at %v", name, last.Status, last.T, w)
		}
		if c := last.Claim; c == nil || c.Probability != 1 || c.Gradient > 0.01 || c.Curvature > 0.1 {
			t.Errorf("%s: claims %+v; nothing was clipped and there was no noise", name, c)
		}
	}
	if _, w := run(method.SGD{}); w[1] != 0 {
		t.Errorf("gradient descent left the saddle: %v", w)
	}
	if last, w := run(method.GD2NS{P4: method.P4{Gradient: 0.01, Steps: 20}}); w[1] != 0 || last.Status != method.Done || last.T != 40 {
		t.Errorf("gd-2ns: %v after %d steps at %v; want done after 20 steps and 20 tests, at the saddle", last.Status, last.T, w)
	}
}

// TestSecondOrderNoise: the methods' defaults for a table of many rows: steps and noise as the
// analysis and the accountant say, and a run over a noisy oracle that converges with a claim.
func TestSecondOrderNoise(t *testing.T) {
	for name, m := range second {
		o := methodtest.NewOracle(methodtest.Logistic(5), 1e-4)
		o.Facts.Rows, o.Facts.Lipschitz, o.Facts.Adjacency, o.Facts.StartLoss = 1_000_000, 1, privacy.ReplaceOne, math.Ln2
		terms := methodtest.On
		terms.Budget.Adjacency = privacy.ReplaceOne
		fitted, err := m.Configure(o.Facts, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		var last method.Step
		for st, err := range fitted.Run(context.Background(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			last = st
		}
		t.Logf("%s: %d steps at most, σ = %.4g, ended %v after %d: %+v", name, method.MaxSteps(fitted), method.NoiseMultiplier(fitted), last.Status, last.T, last.Claim)
		if last.Status != method.Converged || last.Claim == nil || last.Claim.Probability != 0.99 || last.Claim.Gradient < 0.005 {
			t.Errorf("%s: %v after %d steps, claim %+v", name, last.Status, last.T, last.Claim)
		}
	}
}

// What the first phase does not ask for lowers the noise of the second, and all of it stays within the
// filter. With costs: plan nothing is left.
func TestPhasesCarryOver(t *testing.T) {
	for _, costs := range []string{method.ByFilter, method.ByPlan} {
		o := methodtest.NewOracle(methodtest.Quadratic(4, 10), 0.1)
		m, err := method.TwoOPT{OPT: method.OPT{P4: method.P4{Gradient: 1e-9, Curvature: 0.1, Steps: 50}, Costs: method.Costs{Pay: costs}}}.Configure(o.Facts, method.Objective{}, methodtest.On)
		if err != nil {
			t.Fatal(err)
		}
		two := m.(method.TwoOPT)
		plan, err := m.Plan(o.Facts)
		if err != nil {
			t.Fatal(err)
		}
		if o.Meter, err = account.NewMeter(plan, account.Best{}, methodtest.On.Budget); err != nil {
			t.Fatal(err)
		}
		var last method.Step
		for st, err := range m.Run(context.Background(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			last = st
		}
		if last.Status != method.Done || last.T != two.First+50 || two.First != 5 {
			t.Errorf("%s: %v after %d steps", costs, last.Status, last.T)
		}
		sigma := func(i int) float64 {
			e := o.Record[i].Event
			if all, ok := e.(privacy.Composed); ok {
				e = all[0]
			}
			return e.(privacy.Gaussian).Sigma
		}
		if early := sigma(4); early != two.Noise {
			t.Errorf("%s: the first phase has noise %v, not %v", costs, early, two.Noise)
		}
		late := sigma(5)
		if costs == method.ByPlan && late != two.LateNoise || costs == method.ByFilter && !(late < 0.95*two.LateNoise) {
			t.Errorf("%s: the second phase has noise %v; where nothing is left it is %v", costs, late, two.LateNoise)
		}
		if f, ok := plan.(privacy.Filtered); ok {
			// What was charged and the rest of the second phase fill the filter.
			all := privacy.Composed{privacy.Repeated{Count: 5, Of: privacy.Gaussian{Sigma: two.Noise}}, privacy.Repeated{Count: 50 + two.Hessians, Of: privacy.Gaussian{Sigma: late}}}
			if spent, err := account.Spent(f, account.Best{}, all, privacy.AddRemove, 1e-5); err != nil || spent > 1 || spent < 0.999 {
				t.Errorf("the two phases spend %v (%v)", spent, err)
			}
		}
	}
}

// Hessians are paid when they are asked, and a phase that has had its number ends.
func TestHessiansAreCounted(t *testing.T) {
	o := methodtest.NewOracle(saddle(), 0)
	o.Facts.HessLipschitz = 8
	m, err := method.OPT{P4: method.P4{Gradient: 0.01, Steps: 50}, Costs: method.Costs{Hessians: 1}}.Configure(o.Facts, method.Objective{}, methodtest.On)
	if err != nil {
		t.Fatal(err)
	}
	var last method.Step
	for st, err := range m.Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		last = st
	}
	// A gradient and a Hessian at the saddle, a gradient in each further step, and one after which a second Hessian was refused.
	if last.Status != method.Done || last.Claim != nil || len(o.Record) != last.T+2 || saddle().Value(last.W) > -0.24 {
		t.Errorf("%v after %d steps and %d batches at %v", last.Status, last.T, len(o.Record), last.W)
	}
}

// Nothing is claimed where rows may have been clipped, or were drawn each by itself; more is
// allowed for where they were drawn without replacement.
func TestClaimHasGrounds(t *testing.T) {
	claim := func(m method.OPT, adj privacy.Adjacency) *secondorder.Claim {
		o := methodtest.NewOracle(methodtest.Logistic(5), 0)
		o.Facts.Rows, o.Facts.Lipschitz, o.Facts.Adjacency = 1_000_000, 1, adj
		terms := methodtest.On
		terms.Budget.Adjacency = adj
		m.Gradient = 0.05
		fitted, err := m.Configure(o.Facts, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		for st, err := range fitted.Run(context.Background(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			if st.Status == method.Converged {
				return st.Claim
			}
		}
		t.Fatalf("%+v did not converge", m)
		return nil
	}
	whole := claim(method.OPT{}, privacy.ReplaceOne)
	if c := claim(method.OPT{}, privacy.AddRemove); whole == nil || c == nil || !(c.Gradient < whole.Gradient && c.Curvature < whole.Curvature) {
		t.Errorf("all rows: %+v, add-or-remove %+v; half the sensitivity, half the noise", whole, c)
	}
	if c := claim(method.OPT{Batch: 100_000}, privacy.ReplaceOne); c == nil || c.Gradient < whole.Gradient+1/math.Sqrt(100_000) {
		t.Errorf("a sample: %+v; all rows %+v", c, whole)
	}
	for _, m := range []method.OPT{{P4: method.P4{Clip: 0.9}}, {P4: method.P4{HessClip: 0.2}}, {Batch: 100_000}} {
		if c := claim(m, privacy.AddRemove); c != nil {
			t.Errorf("%+v claims %+v", m, *c)
		}
	}
}

// Errors of Fit begin with the field that is meant.
func TestSecondOrderFields(t *testing.T) {
	facts := methodtest.NewOracle(methodtest.Quadratic(4, 10), 0).Facts
	wide := facts
	wide.Dim = 1000
	flat := facts
	flat.Curved = false
	kinks := method.Objective{Reg: reg.L1{Lambda: 1}}
	for _, c := range []struct {
		m     method.Method
		pub   oracle.Public
		obj   method.Objective
		field string
	}{
		{method.OPT{P4: method.P4{Gradient: -1}}, facts, method.Objective{}, "gradient"},
		{method.OPT{P4: method.P4{Gradient: 1e-7}}, facts, method.Objective{}, "gradient"},
		{method.OPT{P4: method.P4{Curvature: math.NaN()}}, facts, method.Objective{}, "curvature"},
		{method.OPT{P4: method.P4{Gap: math.Inf(1)}}, facts, method.Objective{}, "gap"},
		{method.OPT{P4: method.P4{Steps: -1}}, facts, method.Objective{}, "steps"},
		{method.OPT{P4: method.P4{Clip: -1}}, facts, method.Objective{}, "clip"},
		{method.OPT{P4: method.P4{HessClip: -1}}, facts, method.Objective{}, "hess_clip"},
		{method.OPT{P4: method.P4{Noise: 1e9}}, facts, method.Objective{}, "noise_multiplier"},
		{method.OPT{Costs: method.Costs{Pay: "none"}}, facts, method.Objective{}, "costs"},
		{method.OPT{Costs: method.Costs{Pay: method.ByPlan, Hessians: 3}}, facts, method.Objective{}, "hessians"},
		{method.OPT{P4: method.P4{Steps: 5}, Costs: method.Costs{Hessians: 6}}, facts, method.Objective{}, "hessians"},
		{method.OPT{Batch: 1001}, facts, method.Objective{}, "batch"},
		{method.TR{Batch: -1}, facts, method.Objective{}, "batch"},
		{method.OPTLS{Long: 1}, facts, method.Objective{}, "long"},
		{method.OPTLS{Shrink: 1}, facts, method.Objective{}, "shrink"},
		{method.OPTLS{Shrink: 0.9999}, facts, method.Objective{}, "shrink"},
		{method.TwoOPT{Phases: method.Phases{Share: 1}}, facts, method.Objective{}, "share"},
		{method.TwoOPT{OPT: method.OPT{P4: method.P4{Steps: 5}}, Phases: method.Phases{First: 6}}, facts, method.Objective{}, "first"},
		{method.TwoOPTLS{OPTLS: method.OPTLS{P4: method.P4{Noise: 5}}}, facts, method.Objective{}, "noise_multiplier"},
		{method.GD2NS{P4: method.P4{Steps: 1 << 19}}, wide, method.Objective{}, "steps"},
		{method.OPT{}, flat, method.Objective{}, "model"},
		{method.GD2NS{}, facts, kinks, "model"},
	} {
		_, err := c.m.Configure(c.pub, c.obj, methodtest.On)
		if err == nil || !strings.HasPrefix(err.Error(), c.field+":") {
			t.Errorf("%+v: %v; want an error of %s", c.m, err, c.field)
		}
	}
}

// What P4 calls its size condition is told before any row is read.
func TestSearchCaution(t *testing.T) {
	o := methodtest.NewOracle(methodtest.Logistic(5), 0)
	o.Facts.Rows, o.Facts.Lipschitz = 495_141, 1
	m, err := method.OPTLS{P4: method.P4{Gradient: 0.06}}.Configure(o.Facts, method.Objective{}, methodtest.On)
	if err != nil {
		t.Fatal(err)
	}
	few := m.(method.Cautious).Cautions(o.Facts, method.Objective{})
	if len(few) != 1 || !strings.Contains(few[0], "there are 495141") {
		t.Errorf("%q", few)
	}
	o.Facts.Rows = 1e9
	if many := m.(method.Cautious).Cautions(o.Facts, method.Objective{}); many != nil {
		t.Errorf("%q", many)
	}
}

// A gradient and a Hessian of one sample are composed before they are amplified (S-4e).
func TestComposedBeforeAmplified(t *testing.T) {
	facts := methodtest.NewOracle(methodtest.Quadratic(4, 10), 0).Facts
	facts.Adjacency = privacy.ReplaceOne
	terms := methodtest.On
	terms.Budget.Adjacency = privacy.ReplaceOne
	for name, m := range map[string]method.Method{
		"opt": method.OPT{P4: method.P4{Steps: 5}, Costs: method.Costs{Pay: method.ByPlan}, Batch: 50},
		"tr":  method.TR{P4: method.P4{Steps: 5}, Batch: 50},
	} {
		fitted, err := m.Configure(facts, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		g := privacy.Gaussian{Sigma: method.NoiseMultiplier(fitted)}
		want := privacy.Repeated{Count: 5, Of: privacy.FixedSampled{M: 50, N: 1000, Of: privacy.Composed{g, g}}}
		if plan, err := fitted.Plan(facts); err != nil || !privacy.Equal(plan, want) {
			t.Errorf("%s: plan %v (%v), want %v", name, plan, err, want)
		}
	}
}

// A claim allows for what the private oracle truncates, which is more where there are very many rows, without noise too.
func TestClaimAllowsForTruncation(t *testing.T) {
	for rows, cut := range map[int]float64{1000: 0x1p-18, 1 << 27: 0x1p-14} {
		o := methodtest.NewOracle(saddle(), 0)
		o.Facts.HessLipschitz, o.Facts.Rows = 8, rows
		o.Answer = func(h []float64) {
			if len(h) == oracle.HessLen(3) {
				h[3] += cut * float64(o.Facts.Smooth) // the curvature along y, −1
			}
		}
		m, err := method.OPT{P4: method.P4{Gradient: 0.01, Curvature: 2}}.Configure(o.Facts, method.Objective{}, methodtest.Off)
		if err != nil {
			t.Fatal(err)
		}
		for st, err := range m.Run(context.Background(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			if c := st.Claim; st.Status != method.Converged || c == nil || !(c.Curvature >= 1 && c.Curvature < 1.01) {
				t.Errorf("%d rows: %v, claim %+v; the curvature is −1", rows, st.Status, c)
			}
		}
	}
}
