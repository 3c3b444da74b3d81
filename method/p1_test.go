package method_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// run runs a method on a problem, with noise from a fixed seed.
func run(t *testing.T, m method.Method, p methodtest.Problem, noise float64, visit func(step int, w []float64)) {
	t.Helper()
	for st, err := range m.Run(context.Background(), methodtest.NewOracle(p, noise), method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		if st.Status == method.Running {
			visit(st.T, st.W)
		}
	}
}

// TestHeavyBallIsAnAverage: (3.1) gives the iterates of (3.6) and (3.7), up to rounding.
func TestHeavyBallIsAnAverage(t *testing.T) {
	p := methodtest.Quadratic(5, 30)
	m := method.SHB{P1: method.P1{Steps: 300, Rate: 0.3, Mu: 0.05, Gradient: method.Gradient{Off: true}}}
	beta := schedule.Momentum(m.Rate, m.Mu)
	o := methodtest.NewOracle(p, 0.5) // the same noise again
	q := oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}
	x, u := make([]float64, p.Dim), make([]float64, p.Dim) // ū before the first step is 0
	run(t, m, p, 0.5, func(step int, w []float64) {
		if _, err := o.Batch(context.Background(), sample.Full{}, q); err != nil {
			t.Fatal(err)
		}
		g, err := o.Grad(q, x)
		if err != nil {
			t.Fatal(err)
		}
		for j := range x {
			u[j] = beta*u[j] + (1-beta)*g[j]
			x[j] -= m.Rate / (1 - beta) * u[j]
			if math.Abs(x[j]-w[j]) > 1e-12*math.Max(1, math.Abs(x[j])) {
				t.Fatalf("step %d: %v, by the average %v", step, w, x)
			}
		}
	})
}

// TestRatesOnAQuadratic: without noise and along the eigenvector of μ, where each method is
// slowest, the error is what theory says to the last digits: with q = √(αμ) it is (1−q²)^t
// for GD, (1−q)^t·(1+qt) for NAG, and for heavy ball it falls with its spectral rate.
func TestRatesOnAQuadratic(t *testing.T) {
	const rate, mu, steps = 1.0, 0.01, 150
	p := methodtest.Problem{Dim: 1, Smooth: 1, Grad: func(dst, w []float64) { dst[0] = mu * (w[0] - 1) }}
	common := method.P1{Steps: steps, Rate: rate, Mu: mu, Gradient: method.Gradient{Off: true}}
	q := math.Sqrt(rate * mu)
	run(t, method.GD{P1: common}, p, 0, func(step int, w []float64) {
		if want := math.Pow(1-q*q, float64(step)); math.Abs(1-w[0]-want) > 1e-10*want {
			t.Fatalf("gd, step %d: error %v, want %v", step, 1-w[0], want)
		}
	})
	run(t, method.NAG{P1: common}, p, 0, func(step int, w []float64) {
		if want := math.Pow(1-q, float64(step)) * (1 + q*float64(step)); math.Abs(1-w[0]-want) > 1e-12 {
			t.Fatalf("nag, step %d: error %v, want %v", step, 1-w[0], want)
		}
	})
	hb := schedule.HeavyBall{Convex: schedule.Convex{Mu: mu, L: mu}, Rate: rate, Beta: schedule.Momentum(rate, mu)}
	worst := 0.0
	run(t, method.SHB{P1: common}, p, 0, func(step int, w []float64) {
		worst = math.Max(worst, math.Abs(1-w[0])/math.Pow(hb.Spectral(), float64(step)))
	})
	if !(worst < 20 && worst > 0.5) {
		t.Errorf("shb: the error is up to %v times ρ^t", worst)
	}
}

// TestGDIsSGD: on all rows, with the same numbers, DP-GD is DP-SGD, bit for bit.
func TestGDIsSGD(t *testing.T) {
	p := methodtest.Logistic(4)
	var want [][]float64
	run(t, method.SGD{Steps: 20, Rate: 0.7, Gradient: method.Gradient{Clip: 1, Noise: 3}}, p, 0.3, func(_ int, w []float64) { want = append(want, append([]float64(nil), w...)) })
	run(t, method.GD{P1: method.P1{Steps: 20, Rate: 0.7, Mu: 0.1, Gradient: method.Gradient{Clip: 1, Noise: 3}}}, p, 0.3, func(step int, w []float64) {
		for j := range w {
			if w[j] != want[step-1][j] {
				t.Fatalf("step %d: %v and %v", step, w, want[step-1])
			}
		}
	})
}

// facts are those of logistic regression on rows within L1 norm 1.
func facts(adj privacy.Adjacency) oracle.Public {
	return oracle.Public{Dim: 10, Rows: 10000, Classes: 2, Adjacency: adj, NormBound: 1, L1Bound: 1, Lipschitz: 1, Smooth: 0.25}
}

// TestOptimalSchedules: the noise of the opt methods falls where the bound's weights rise, as
// P1 has it, the whole costs the budget and not more, and T′ is not less than with even noise.
func TestOptimalSchedules(t *testing.T) {
	for _, delta := range []float64{0, 1e-6} {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			terms := method.Terms{Budget: privacy.Budget{Epsilon: 0.5, Delta: delta, Adjacency: adj}, Accountant: account.Best{}}
			even, err := method.NAG{}.Configure(facts(adj), method.Objective{}, terms)
			if err != nil {
				t.Fatal(err)
			}
			fitted, err := method.NAGOpt{}.Configure(facts(adj), method.Objective{}, terms)
			if err != nil {
				t.Fatal(err)
			}
			m := fitted.(method.NAGOpt)
			if m.Steps != len(m.Schedule) || m.Steps < method.MaxSteps(even) || m.Gradient.Laplace != (delta == 0) {
				t.Errorf("δ = %v: T = %d with %d noises, laplace %v; with even noise T = %d", delta, m.Steps, len(m.Schedule), m.Gradient.Laplace, method.MaxSteps(even))
			}
			_, a := schedule.Convex{Mu: m.Mu, L: 1 / m.Rate}.Weights([]schedule.Stage{{Steps: m.Steps, Rate: m.Rate}})
			power := 1. / 3
			if delta > 0 {
				power = 1. / 4
			}
			last := len(a) - 1
			for i := range a {
				if want := m.Schedule[last] * math.Pow(a[last]/a[i], power); math.Abs(m.Schedule[i]-want) > 1e-9*want {
					t.Errorf("δ = %v, step %d: noise %v, want %v", delta, i+1, m.Schedule[i], want)
				}
			}
			plan, err := m.Plan(facts(adj))
			if err != nil {
				t.Fatal(err)
			}
			loss, err := account.Best{}.Loss(plan, adj)
			if err != nil {
				t.Fatal(err)
			}
			if e := loss.Epsilon(delta); e > 0.5 || e < 0.5*(1-1e-5) {
				t.Errorf("δ = %v: the plan costs ε = %v of 0.5", delta, e)
			}
		}
	}
}

// TestSchedulesOnSamples: on samples, too, the plan is of samples, noise falls toward the
// last step, and the whole costs the budget and not more.
func TestSchedulesOnSamples(t *testing.T) {
	for _, delta := range []float64{0, 1e-6} {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			terms := method.Terms{Budget: privacy.Budget{Epsilon: 0.5, Delta: delta, Adjacency: adj}, Accountant: account.Best{}}
			fitted, err := method.NAGOpt{NAG: method.NAG{P1: method.P1{Steps: 30, Gradient: method.Gradient{Batch: 500}}}}.Configure(facts(adj), method.Objective{}, terms)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := fitted.Plan(facts(adj))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range plan.(privacy.Composed) {
				_, fixed := part.(privacy.FixedSampled)
				_, poisson := part.(privacy.PoissonSampled)
				if fixed != (adj == privacy.ReplaceOne) || poisson == fixed {
					t.Fatalf("%v: a step is %v", adj, part)
				}
			}
			s := fitted.(method.NAGOpt).Schedule
			for i := 1; i < len(s); i++ {
				if s[i] > s[i-1] {
					t.Errorf("δ = %v, %v: noise %v after %v", delta, adj, s[i], s[i-1])
				}
			}
			if s[0] < 1.2*s[len(s)-1] {
				t.Errorf("δ = %v, %v: noise from %v to %v", delta, adj, s[0], s[len(s)-1])
			}
			loss, err := account.Best{}.Loss(plan, adj)
			if err != nil {
				t.Fatal(err)
			}
			if e := loss.Epsilon(delta); e > 0.5 || e < 0.5*(1-1e-4) {
				t.Errorf("δ = %v, %v: the plan costs ε = %v of 0.5", delta, adj, e)
			}
		}
	}
}

// TestStages: MASG's step size falls by 16, then by 4, at the steps of (4.7), and its noise
// grows where a stage begins.
func TestStages(t *testing.T) {
	terms := method.Terms{Budget: privacy.Budget{Epsilon: 5, Adjacency: privacy.ReplaceOne}, Accountant: account.Best{}}
	fitted, err := method.MASGOpt{MASG: method.MASG{P1: method.P1{Steps: 200, Rate: 1, Mu: 0.05}}}.Configure(facts(privacy.ReplaceOne), method.Objective{}, terms)
	if err != nil {
		t.Fatal(err)
	}
	m := fitted.(method.MASGOpt)
	p := methodtest.Quadratic(3, 10)
	o := methodtest.NewOracle(p, 0)
	var rates []float64
	last, g := make([]float64, p.Dim), make([]float64, p.Dim)
	for st, err := range m.Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		if st.Status == method.Running {
			rates = append(rates, st.Rate)
		}
		if st.T == 15 || st.T == 55 { // the first step of a stage has no momentum
			p.Grad(g, last)
			for j := range g {
				if want := last[j] - st.Rate*g[j]; math.Abs(st.W[j]-want) > 1e-15 {
					t.Errorf("step %d: %v, want %v", st.T, st.W[j], want)
				}
			}
		}
		copy(last, st.W)
	}
	for step, want := range map[int]float64{1: 1, 14: 1, 15: 1. / 16, 54: 1. / 16, 55: 1. / 64, 134: 1. / 64, 135: 1. / 256, 200: 1. / 256} {
		if rates[step-1] != want {
			t.Errorf("step %d: rate %v, want %v", step, rates[step-1], want)
		}
	}
	if m.Schedule[14] <= m.Schedule[13] {
		t.Errorf("noise %v at the end of a stage, %v at the beginning of the next", m.Schedule[13], m.Schedule[14])
	}
}

// TestP1Refuses: errors begin with the field that is meant.
func TestP1Refuses(t *testing.T) {
	pure := method.Terms{Budget: privacy.Budget{Epsilon: 1, Adjacency: privacy.ReplaceOne}, Accountant: account.Best{}}
	p1 := func(m method.P1) method.Method { return method.NAG{P1: m} }
	for _, c := range []struct {
		m     method.Method
		terms method.Terms
		want  string
	}{
		{p1(method.P1{Steps: -1}), pure, "steps: found -1"},
		{p1(method.P1{Rate: math.Inf(1)}), pure, "rate: found +Inf"},
		{p1(method.P1{Rate: 2, Mu: 1}), pure, "mu: found 1; choose at most 1/rate, which is 0.5 here"},
		{p1(method.P1{Mu: math.NaN()}), pure, "mu: found NaN"},
		{p1(method.P1{Rate: 1, Mu: 0.5, Smooth: 0.1}), pure, "smooth: found 0.1; choose a number from mu"},
		{p1(method.P1{Gradient: method.Gradient{Clip: -1}}), pure, "clip: found -1"},
		{p1(method.P1{Gradient: method.Gradient{Batch: 10001}}), pure, "batch: found 10001"},
		{method.NAGOpt{NAG: method.NAG{P1: method.P1{Gradient: method.Gradient{Noise: 2}}}}, pure, "noise_multiplier: found 2; this method has one for each step"},
		{p1(method.P1{Gradient: method.Gradient{Noise: 2}}), methodtest.Off, "noise_multiplier: found 2; leave it out"},
		{p1(method.P1{}), method.Terms{Budget: privacy.Budget{Epsilon: 1e-9, Adjacency: privacy.ReplaceOne}, Accountant: account.Best{}}, "noise_multiplier: this budget needs"},
	} {
		if _, err := c.m.Configure(facts(privacy.ReplaceOne), method.Objective{}, c.terms); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s …", err, c.want)
		}
	}
	// A regularizer of more strong convexity than the default counts is counted on.
	m, err := method.SHB{}.Configure(facts(privacy.ReplaceOne), method.Objective{Reg: reg.L2{Lambda: 0.001}}, pure)
	if err != nil || m.(method.SHB).Mu != 0.001 {
		t.Errorf("μ = %v (%v), want 0.001", m.(method.SHB).Mu, err)
	}
}
