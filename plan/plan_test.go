package plan

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// network is a plan of several mechanisms and samples.
var network = privacy.Composed{
	privacy.Repeated{Count: 40, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Laplace{Scale: 8}}}},
	privacy.FixedSampled{M: 3, N: 8, Of: privacy.PureDP{Epsilon: 0.5}},
	privacy.AboveThreshold{Threshold: 2, Query: 4, Max: 5},
	privacy.Select{Epsilon: 0.25},
}

func TestChangedEvents(t *testing.T) {
	for _, c := range []struct {
		name string
		got  func() (privacy.Event, bool)
		want string
	}{
		{"noise", func() (privacy.Event, bool) { return privacy.WithNoise(network, 2) }, "40 × Poisson(q=0.1, Gaussian(σ=4) + Laplace(b=16)) + Fixed(3 of 8, pure(ε=0.25)) + AboveThreshold(b=4, 8, at most 5) + Select(ε=0.125)"},
		{"rate", func() (privacy.Event, bool) { return withRate(network, 0.5) }, "40 × Poisson(q=0.05, Gaussian(σ=2) + Laplace(b=8)) + Fixed(2 of 8, pure(ε=0.5)) + AboveThreshold(b=2, 4, at most 5) + Select(ε=0.25)"},
		{"rate above 1", func() (privacy.Event, bool) { return withRate(network[:1], 99) }, "40 × Poisson(q=1, Gaussian(σ=2) + Laplace(b=8))"},
		{"half the list", func() (privacy.Event, bool) { return withSteps(network, 0.5) }, "20 × Poisson(q=0.1, Gaussian(σ=2) + Laplace(b=8)) + Fixed(3 of 8, pure(ε=0.5)) + AboveThreshold(b=2, 4, at most 5) + Select(ε=0.25)"},
		{"half a list without counts", func() (privacy.Event, bool) { return withSteps(network[1:], 0.5) }, network[1:3].String()},
		{"half the count", func() (privacy.Event, bool) { return withSteps(network[0], 0.5) }, "20 × Poisson(q=0.1, Gaussian(σ=2) + Laplace(b=8))"},
		{"a longer list", func() (privacy.Event, bool) { return withSteps(network[1:], 2) }, ""},
		{"half of one", func() (privacy.Event, bool) { return withSteps(privacy.Repeated{Count: 1, Of: network[3]}, 0.25) }, ""},
		{"rate of all", func() (privacy.Event, bool) { return withRate(network[3], 0.5) }, ""},
		{"noise of a claim", func() (privacy.Event, bool) { return privacy.WithNoise(privacy.ApproxDP{Epsilon: 1, Delta: 1e-9}, 2) }, ""},
	} {
		got, ok := c.got()
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", c.name, got, ok, c.want)
		}
	}
	if network.String() != (privacy.Composed{network[0], network[1], network[2], network[3]}).String() || network[0].(privacy.Repeated).Count != 40 {
		t.Error("the event itself was changed")
	}
}

// TestDescribe: short events are told in full, long ones by kind.
func TestDescribe(t *testing.T) {
	if got := Describe(network); got != network.String() {
		t.Error(got)
	}
	long := privacy.Composed{network}
	for i := range 30 {
		long = append(long, privacy.Repeated{Count: 10, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: 3 + float64(i)}}})
	}
	want := "340 × Poisson(q=0.1) of Gaussian, noise from 2 to 32; 40 × Poisson(q=0.1) of Laplace, noise from 8 to 8; 1 × Fixed(3 of 8) of pure; 1 × AboveThreshold; 1 × Select"
	if got := Describe(long); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestParts: the parts of a plan of two kinds cost less alone than together, and each
// is what is left without the other.
func TestParts(t *testing.T) {
	p := Plan{Delta: 1e-5, Adjacency: privacy.AddRemove, accountant: account.RDP{}, event: privacy.Composed{
		privacy.Repeated{Count: 10, Of: privacy.Gaussian{Sigma: 9}}, privacy.Repeated{Count: 3, Of: privacy.Laplace{Scale: 20}}}}
	if err := p.solve(); err != nil {
		t.Fatal(err)
	}
	if len(p.Parts) != 2 {
		t.Fatalf("%d parts", len(p.Parts))
	}
	for i, part := range p.Parts {
		if part.Alone == nil || part.Without == nil || *part.Alone >= p.Epsilon || *part.Alone != *p.Parts[1-i].Without {
			t.Errorf("%+v; the plan costs %v", part, p.Epsilon)
		}
	}
	for i := range 20 { // many kinds: told apart by type
		p.event = privacy.Composed{p.event, privacy.Gaussian{Sigma: 20 + float64(i)}}
	}
	if parts := p.parts(); len(parts) != 2 || parts[0].Mechanism != "Gaussian releases" || parts[1].Mechanism != "Laplace releases" {
		t.Errorf("parts of many kinds: %+v", parts)
	}
	p.event = privacy.Gaussian{Sigma: 9}
	if parts := p.parts(); parts != nil {
		t.Errorf("a plan of one kind has parts: %+v", parts)
	}
}

// TestWeighing: what would change ε is what the accountant says of the changed plan,
// the strongest first.
func TestWeighing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{Delta: 1e-6, Adjacency: privacy.AddRemove, accountant: account.RDP{}, NoiseMultiplier: 1, Steps: 1000}
		sigma, steps := rapid.Float64Range(0.7, 20).Draw(t, "sigma"), rapid.IntRange(2, 10_000).Draw(t, "steps")
		rate := rapid.Float64Range(0.001, 0.5).Draw(t, "rate")
		plan := func(sigma, rate float64, steps int) privacy.Event {
			return privacy.Repeated{Count: steps, Of: privacy.PoissonSampled{Rate: rate, Of: privacy.Gaussian{Sigma: sigma}}}
		}
		p.event = plan(sigma, rate, steps)
		if err := p.solve(); err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{
			"twice the noise":        p.epsilon(plan(2*sigma, rate, steps)),
			"half the sampling rate": p.epsilon(plan(sigma, rate/2, steps)),
			"half the steps":         p.epsilon(plan(sigma, rate, int(math.Round(float64(steps)/2)))),
			"ten times the δ":        p.epsilonAt(p.event, 1e-5),
		}
		last := 0.0
		for _, w := range p.WhatIf {
			if w.Epsilon != want[w.Change] || w.Epsilon < last || w.Epsilon >= p.Epsilon {
				t.Errorf("%s: ε = %v after %v, want %v below %v", w.Change, w.Epsilon, last, want[w.Change], p.Epsilon)
			}
			last = w.Epsilon
		}
		if len(p.WhatIf) == 0 || len(p.Dominates) == 0 || p.Dominates[0] != p.WhatIf[0].thing {
			t.Errorf("%v dominates of %v", p.Dominates, p.WhatIf)
		}
		g := p.grow(tableFactors, tableFactors, tableDeltas)
		for _, q := range g.Noise {
			if want := p.epsilon(plan(sigma*q.At, rate, steps)); *q.Epsilon != want { // the multiplier is said to be 1
				t.Errorf("noise %v: ε = %v, want %v", q.At, *q.Epsilon, want)
			}
		}
		for _, q := range g.Delta {
			if want := p.epsilonAt(p.event, q.At); *q.Epsilon != want {
				t.Errorf("δ %v: ε = %v, want %v", q.At, *q.Epsilon, want)
			}
		}
		for name, points := range map[string][]Point{"steps": g.Steps, "noise": g.Noise, "δ": g.Delta} {
			for i := 1; i < len(points); i++ {
				a, b := *points[i-1].Epsilon, *points[i].Epsilon
				if points[i].At <= points[i-1].At || (name == "steps") != (a <= b) && a != b {
					t.Errorf("%s: ε goes from %v at %v to %v at %v", name, a, points[i-1].At, b, points[i].At)
				}
			}
		}
	})
}

// TestNothingProven: where an accountant proves nothing, tables and JSON say so.
func TestNothingProven(t *testing.T) {
	p := Plan{Delta: 1e-9, Adjacency: privacy.AddRemove, accountant: account.PLD{}, NoiseMultiplier: 0.3, Steps: 4, event: privacy.Repeated{Count: 4, Of: privacy.Composed{privacy.Gaussian{Sigma: 0.3}, privacy.NonPrivate{Why: "look"}}}}
	g := p.grow(tableFactors, tableFactors, tableDeltas)
	if g.Steps[0].Epsilon != nil {
		t.Errorf("a look without noise costs %v", *g.Steps[0].Epsilon)
	}
	b, err := json.Marshal(g)
	if err != nil || !strings.Contains(string(b), `"epsilon":null`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestOtherRelation: the noise itself stays, so under the other relation the multiplier
// is half or twice; what is no sum is not translated.
func TestOtherRelation(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		p := Plan{Delta: 1e-5, Adjacency: adj, accountant: account.GDP{}, NoiseMultiplier: 8, event: privacy.Repeated{Count: 4, Of: privacy.Gaussian{Sigma: 8}}}
		want := 4.0
		if adj == privacy.ReplaceOne {
			want = 16
		}
		r := p.otherRelation()
		cost := *ask(account.GDP{}, privacy.Repeated{Count: 4, Of: privacy.Gaussian{Sigma: want}}, adj, 1e-5).Epsilon
		if r.Adjacency == adj || !r.Adjacency.Valid() || r.NoiseMultiplier != want || r.Epsilon == nil || *r.Epsilon != cost {
			t.Errorf("from %v: %+v, want a multiplier of %v and ε = %v", adj, r, want, cost)
		}
		p.event = privacy.Composed{p.event, privacy.PureDP{Epsilon: 1}}
		if r := p.otherRelation(); r.Epsilon != nil || r.Why == "" || r.NoiseMultiplier != 0 {
			t.Errorf("a plan with a pure release: %+v", r)
		}
		var here, there privacy.Event = privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: 8}}, privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: want}}
		if adj == privacy.AddRemove {
			there = privacy.PoissonSampled{Rate: 0.1, Of: privacy.GaussianSum{Presence: 8, Replacement: 4}}
		} else {
			here, there = privacy.FixedSampled{M: 100, N: 1000, Of: privacy.Gaussian{Sigma: 8}}, privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: want}}
		}
		p.event = privacy.Repeated{Count: 5, Of: here}
		if r := p.otherRelation(); r.Epsilon != nil || !strings.Contains(r.Why, "no theorem") || !r.Translated {
			t.Errorf("a plan without a theorem: %+v", r)
		}
		p.accountant, p.Rows = account.RDP{}, 1000
		cost = *ask(account.RDP{}, privacy.Repeated{Count: 5, Of: there}, r.Adjacency, 1e-5).Epsilon
		if r := p.otherRelation(); r.Epsilon == nil || *r.Epsilon != cost || (r.Sampler != "") != (adj == privacy.ReplaceOne) {
			t.Errorf("a plan on samples: %+v, want %v", r, cost)
		}
		if adj == privacy.ReplaceOne { // noise over C is what it was
			p.event = privacy.Repeated{Count: 5, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.GaussianSum{Presence: 16, Replacement: 8}}}
			if r := p.otherRelation(); r.Epsilon == nil || *r.Epsilon != cost || r.Sampler != "" {
				t.Errorf("a plan on Poisson samples: %+v, want %v", r, cost)
			}
		}
	}
}

// TestPlanSolvesForAnything: with the ε that a plan costs as its budget, leaving out any
// number gives that number back, or one as good, and never one that the budget does not cover.
func TestPlanSolvesForAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		noise := rapid.Float64Range(0.6, 50).Draw(t, "noise")
		steps := rapid.IntRange(1, 20_000).Draw(t, "steps")
		rate := rapid.Float64Range(1e-4, 1).Draw(t, "rate")
		all := Numbers{Sampler: "poisson", NoiseMultiplier: &noise, Steps: &steps, SamplingRate: &rate,
			Delta: 1e-6, Adjacency: privacy.AddRemove, Accountant: account.RDP{}}
		cost, err := all.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if cost.Solved != "epsilon" || cost.Budget != nil {
			t.Errorf("solved for %q", cost.Solved)
		}
		all.Epsilon = &cost.Epsilon
		for name, without := range map[string]func(*Numbers){
			"noise-multiplier": func(n *Numbers) { n.NoiseMultiplier = nil },
			"steps":            func(n *Numbers) { n.Steps = nil },
			"sampling-rate":    func(n *Numbers) { n.SamplingRate = nil },
		} {
			n := all
			without(&n)
			p, err := n.Plan()
			if err != nil {
				t.Fatal(err)
			}
			if p.Solved != name || p.Fits == nil || !*p.Fits || p.Epsilon > cost.Epsilon {
				t.Errorf("without --%s: %q, ε = %v of %v", name, p.Solved, p.Epsilon, cost.Epsilon)
			}
			if p.NoiseMultiplier > noise*(1+2e-6) || p.Steps < steps || p.SamplingRate < rate*(1-2e-6) {
				t.Errorf("without --%s: noise %v of %v, steps %d of %d, rate %v of %v", name, p.NoiseMultiplier, noise, p.Steps, steps, p.SamplingRate, rate)
			}
		}
	})
}
