package method_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// scripted answers gradients and searches from lists and keeps the lines that were searched.
type scripted struct {
	unasked
	facts oracle.Public
	grads [][]float64
	found []int
	lines []oracle.Line
	paid  []oracle.Query
}

type unasked = oracle.Batch // what a test does not ask

func (s *scripted) Public() oracle.Public { return s.facts }

func (s *scripted) Batch(_ context.Context, _ sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	if len(s.grads)+len(s.found) == 0 {
		return nil, privacy.ErrExhausted
	}
	s.paid = append(s.paid, pay...)
	return s, nil
}

func (s *scripted) Grad(oracle.Grad, []float64) ([]float64, error) {
	g := s.grads[0]
	s.grads = s.grads[1:]
	return g, nil
}

func (s *scripted) Hess(oracle.Hess, []float64) ([]float64, error) { panic("not asked") }

func (s *scripted) Search(_ oracle.Search, l oracle.Line) (int, error) {
	k := s.found[0]
	s.found = s.found[1:]
	s.lines = append(s.lines, oracle.Line{From: slices.Clone(l.From), Along: slices.Clone(l.Along), Steps: slices.Clone(l.Steps), Least: slices.Clone(l.Least)})
	return k, nil
}

// TestBLSGDByHand: on ½(w−1)², a step of η is good enough where η ≤ 2(1−α). With α = ½, η₀ = 8 and β = ½ that is the
// fourth, and it lands on the minimum. With two tries a search, the third is the first to find it.
func TestBLSGDByHand(t *testing.T) {
	p := methodtest.Problem{
		Dim: 1, Smooth: 1,
		Grad:  func(dst, w []float64) { dst[0] = w[0] - 1 },
		Value: func(w []float64) float64 { return (w[0] - 1) * (w[0] - 1) / 2 },
	}
	m := method.BLSGD{Steps: 1, Gradient: method.Gradient{Off: true}, Rate: 8, Shrink: 0.5, Armijo: 0.5, MaxBacktracks: 4}
	run(t, m, p, 0, func(step int, w []float64) {
		if w[0] != 1 {
			t.Errorf("step %d: %v, want 1", step, w[0])
		}
	})
	m.Steps, m.MaxBacktracks = 3, 2
	want := []float64{0, 0, 1}
	run(t, m, p, 0, func(step int, w []float64) {
		if w[0] != want[step-1] {
			t.Errorf("step %d of two tries each: %v, want %v", step, w[0], want[step-1])
		}
	})
}

// TestBLSGDLines: where a search finds nothing w stays and gradients there are averaged; what a step must
// bring leaves out the noise's share of ‖p‖² and adds the regularizer's rise; η₀ falls by the rule.
func TestBLSGDLines(t *testing.T) {
	const sigma, c, rows, lambda = 2, 0.5, 100, 0.25
	s := &scripted{
		facts: oracle.Public{Dim: 2, Rows: rows, Adjacency: privacy.ReplaceOne, NormBound: 1, Lipschitz: 1},
		grads: [][]float64{{1, 0}, {0, 2}, {3, 3}},
		found: []int{-1, 1, 0},
	}
	m := method.BLSGD{Steps: 10, Gradient: method.Gradient{Clip: c, Noise: sigma}, Rate: 4, Shrink: 0.25, Armijo: 0.5, Fall: 1, Search: 1, MaxBacktracks: 2}
	var ends []method.Step
	for st, err := range m.Run(context.Background(), s, method.Objective{Reg: reg.L2{Lambda: lambda}}) {
		if err != nil {
			t.Fatal(err)
		}
		st.W = slices.Clone(st.W)
		ends = append(ends, st)
	}
	if len(ends) != 4 || ends[0].Rate != 0 || ends[1].Rate != 0.25 || ends[3].Status != method.OutOfBudget {
		t.Fatalf("steps %+v", ends)
	}
	// First line: from 0 along (1, 0).
	noise := 2 * math.Pow(sigma*2*c/rows, 2) // dimensions × variance of a mean's coordinate
	least := 4*0.5*(1-noise) + lambda/2*16
	if l := s.lines[0]; !slices.Equal(l.Along, []float64{1, 0}) || !slices.Equal(l.Steps, []float64{4, 1}) || math.Abs(l.Least[0]-least) > 1e-12 {
		t.Errorf("first line %+v, want %v at least", l, least)
	}
	// Second: nothing was found, so half as far down, along the mean.
	least = 1 * 0.5 * (1.25 - noise/2) // η = 1, and from 0
	least += lambda / 2 * 1.25
	if l := s.lines[1]; !slices.Equal(l.From, []float64{0, 0}) || !slices.Equal(l.Along, []float64{0.5, 1}) || !slices.Equal(l.Steps, []float64{1, 0.25}) || math.Abs(l.Least[0]-least) > 1e-12 {
		t.Errorf("second line %+v, want %v at least", l, least)
	}
	// Third: from where the step led, along the new gradient alone and the regularizer's.
	at := []float64{-0.125, -0.25}
	if l := s.lines[2]; !slices.Equal(l.From, at) || !slices.Equal(l.Along, []float64{3 - 0.125*lambda, 3 - 0.25*lambda}) {
		t.Errorf("third line %+v", l)
	}
}

// TestBLSGDAsPublished: P2's test has the noisy gradient's norm as it is, and its fallback moves w by β^max_it·η₀
// where the search finds nothing; what is charged is the same.
func TestBLSGDAsPublished(t *testing.T) {
	facts := oracle.Public{Dim: 2, Rows: 100, Adjacency: privacy.ReplaceOne, NormBound: 1, Lipschitz: 1}
	m := method.BLSGD{Steps: 2, Gradient: method.Gradient{Clip: 0.5, Noise: 2}, Rate: 4, Shrink: 0.25, Armijo: 0.5, Fall: 1, Search: 1, MaxBacktracks: 2}
	published := m
	published.NoisyNorm, published.Fallback = true, true
	var paid [2][]oracle.Query
	for i, m := range []method.BLSGD{m, published} {
		s := &scripted{facts: facts, grads: [][]float64{{1, 0}, {0, 2}}, found: []int{-1, 1}}
		var ends [][]float64
		for st, err := range m.Run(context.Background(), s, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, slices.Clone(st.W))
		}
		paid[i] = s.paid
		if i == 0 {
			continue
		}
		if !slices.Equal(ends[0], []float64{-0.25, 0}) || !slices.Equal(ends[1], []float64{-0.25, -2}) {
			t.Errorf("w is %v", ends)
		}
		if l := s.lines; !slices.Equal(l[0].Least, []float64{2, 0.5}) || !slices.Equal(l[1].Least, []float64{8, 2}) || !slices.Equal(l[1].Along, []float64{0, 2}) {
			t.Errorf("lines %+v", l)
		}
	}
	if !slices.EqualFunc(paid[0], paid[1], func(a, b oracle.Query) bool { return privacy.Equal(a.Event(), b.Event()) }) {
		t.Errorf("charged %v, and as published %v", paid[0], paid[1])
	}
	with, _ := published.Plan(facts)
	without, _ := m.Plan(facts)
	if with == nil || !privacy.Equal(with, without) {
		t.Errorf("plans %v, and as published %v", without, with)
	}
}

// TestBLSGDStepRule: after ten steps η₀ is 1.2 times the largest of them, and never above Rate.
func TestBLSGDStepRule(t *testing.T) {
	s := &scripted{facts: oracle.Public{Dim: 1, Rows: 10, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1}}
	for i := range 21 {
		s.grads = append(s.grads, []float64{1})
		s.found = append(s.found, 2) // a quarter of η₀
		if i >= 10 {
			s.found[i] = 0
		}
	}
	m := method.BLSGD{Steps: 21, Gradient: method.Gradient{Clip: 1, Noise: 1}, Rate: 8, Shrink: 0.5, Armijo: 0.5, Fall: 1, Search: 1, MaxBacktracks: 3}
	for _, err := range m.Run(context.Background(), s, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range map[int]float64{0: 8, 9: 8, 10: 2.4, 19: 2.4, 20: 2.88} {
		if got := s.lines[i].Steps[0]; math.Abs(got-want) > 1e-12 {
			t.Errorf("step %d begins with %v, want %v", i+1, got, want)
		}
	}
}

// TestBLSGDPlan: a gradient and a search a step, each of a sample of its own (S-2a), and the whole costs
// the budget and not more.
func TestBLSGDPlan(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, batch := range []int{0, 500} {
			terms := method.Terms{Budget: privacy.Budget{Epsilon: 0.7, Delta: 1e-6, Adjacency: adj}, Accountant: account.Best{}}
			fitted, err := method.BLSGD{Steps: 20, Gradient: method.Gradient{Batch: batch}, Search: 0.8, MaxBacktracks: 5}.Configure(facts(adj), method.Objective{}, terms)
			if err != nil {
				t.Fatal(err)
			}
			sigma := method.NoiseMultiplier(fitted)
			of := func(e privacy.Event) privacy.Event {
				switch {
				case batch == 0:
					return e
				case adj == privacy.ReplaceOne:
					return privacy.FixedSampled{M: batch, N: 10000, Of: e}
				}
				return privacy.PoissonSampled{Rate: 0.05, Of: e}
			}
			want := privacy.Repeated{Count: 20, Of: privacy.Composed{
				of(privacy.Gaussian{Sigma: sigma}), of(privacy.AboveThreshold{Threshold: 2 * (sigma / 0.8), Query: 4 * (sigma / 0.8), Max: 5}),
			}}
			plan, err := fitted.Plan(facts(adj))
			if err != nil || !privacy.Equal(plan, want) {
				t.Fatalf("%v: plan %v (%v), want %v", adj, plan, err, want)
			}
			loss, err := account.Best{}.Loss(plan, adj)
			if err != nil {
				t.Fatal(err)
			}
			if e := loss.Epsilon(1e-6); e > 0.7 || e < 0.7*(1-1e-4) {
				t.Errorf("%v, batch %d: the plan costs ε = %v of 0.7", adj, batch, e)
			}
		}
	}
}

// TestBLSGDGrowth: where a search fails, the next gradient is CHEB's. By the angle between the two the gradient's
// budget grows, the search's, or none; gradients are averaged by the inverse of their variances; AC shrinks the bounds
// once until w moves. With a full batch what grows is bought as a release of its own.
func TestBLSGDGrowth(t *testing.T) {
	const sigma, raise, decay = 8, 0.5, 0.1
	east, west, north, near := []float64{1, 0}, []float64{-1, 0.1}, []float64{0, 1}, []float64{1, 0.1}
	grow := math.Sqrt(1 + raise)
	for name, c := range map[string]struct {
		growth       string
		batch        int
		grads        [][]float64
		found        []int
		noise, scale []float64 // of each gradient, and of each search
		clips        []float64
		last         []float64 // the direction last searched along
	}{
		"no":             {"no", 10, [][]float64{east, west, west}, []int{-1, -1, -1}, []float64{8, 8, 8}, []float64{8, 8, 8}, []float64{1, 1, 1}, []float64{-1. / 3, 0.2 / 3}},
		"blames noise":   {"adaptive", 10, [][]float64{east, west, near}, []int{-1, 0, 0}, []float64{8, 8, 8 / grow}, []float64{8, 8, 8}, []float64{1, 1, 0.9}, near},
		"blames search":  {"adaptive", 10, [][]float64{east, near, near}, []int{-1, 0, 0}, []float64{8, 8, 8}, []float64{8, 8 / 1.5, 8 / 1.5}, []float64{1, 1, 1}, near},
		"blames neither": {"adaptive", 10, [][]float64{east, north, near}, []int{-1, 0, 0}, []float64{8, 8, 8}, []float64{8, 8, 8}, []float64{1, 1, 1}, near},
		"must":           {"must", 10, [][]float64{east, near, near}, []int{-1, 0, 0}, []float64{8, 8, 8 / grow}, []float64{8, 8 / 1.5, 8 / 1.5}, []float64{1, 1, 0.9}, near},
		// ρ twice raised, the clip norm once: the third gradient has 1.5/0.81 times the first's precision.
		"twice": {"adaptive", 10, [][]float64{east, west, west}, []int{-1, -1, -1}, []float64{8, 8, 8 / grow}, []float64{8, 8, 8}, []float64{1, 1, 0.9},
			[]float64{-1.5 / 0.81 / (2 + 1.5/0.81), (0.1 + 0.1*1.5/0.81) / (2 + 1.5/0.81)}},
		// Half of ρ more is bought, and weighs half.
		"full": {"adaptive", 0, [][]float64{east, west, near}, []int{-1, -1, 0}, []float64{8, 8 / math.Sqrt(raise), 8 / grow / math.Sqrt(raise)}, []float64{8, 8, 8 / 1.5}, []float64{1, 1, 0.9}, nil},
	} {
		s := &scripted{facts: oracle.Public{Dim: 2, Rows: 100, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1}, grads: slices.Clone(c.grads), found: slices.Clone(c.found)}
		m := method.BLSGD{Steps: 3, Gradient: method.Gradient{Clip: 1, Noise: sigma, Batch: c.batch}, Rate: 4, Shrink: 0.5, Armijo: 0.5, Fall: 1, Search: 1, MaxBacktracks: 2, Growth: c.growth, Raise: raise, Decay: decay}
		if c.growth == "no" {
			m.Raise = 0
		}
		for _, err := range m.Run(context.Background(), s, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			g, q := s.paid[2*i].(oracle.Grad), s.paid[2*i+1].(oracle.Search)
			if got := g.Noise.(mech.Gaussian).Sigma; math.Abs(got-c.noise[i]) > 1e-12 {
				t.Errorf("%s: gradient %d has noise %v, want %v", name, i, got, c.noise[i])
			}
			if got := g.Clip.Bound(); math.Abs(got-c.clips[i]) > 1e-12 {
				t.Errorf("%s: gradient %d is clipped to %v, want %v", name, i, got, c.clips[i])
			}
			if math.Abs(q.Noise.Threshold-2*c.scale[i]) > 1e-12 || math.Abs(q.Noise.Query-4*c.scale[i]) > 1e-12 {
				t.Errorf("%s: search %d has noise %+v, want scale %v", name, i, q.Noise, c.scale[i])
			}
		}
		if along := s.lines[2].Along; c.last != nil && (math.Abs(along[0]-c.last[0]) > 1e-12 || math.Abs(along[1]-c.last[1]) > 1e-12) {
			t.Errorf("%s: searched along %v, want %v", name, along, c.last)
		}
		if along := s.lines[1].Along; name == "full" && (math.Abs(along[0]-(1-0.5)/1.5) > 1e-12 || math.Abs(along[1]-0.05/1.5) > 1e-12) {
			t.Errorf("%s: searched along %v", name, along)
		}
	}
}

// TestBLSGDTurn: what angle is blamed on noise follows the angles between gradients so far (7), and AC shrinks the bounds
// again once w has moved.
func TestBLSGDTurn(t *testing.T) {
	degrees := func(a float64) []float64 { return []float64{math.Cos(a * math.Pi / 180), math.Sin(a * math.Pi / 180)} }
	s := &scripted{
		facts: oracle.Public{Dim: 2, Rows: 100, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1},
		// θ̄ = 0.8·90° + 0.2·10° = 74° after two moves, so 85° is beyond 1.1·θ̄ = 81.4°, as it would not be of 90°.
		grads: [][]float64{degrees(0), degrees(10), degrees(0), degrees(85), degrees(0), degrees(170), degrees(0)},
		found: []int{0, 0, -1, 0, -1, 0, 0},
	}
	m := method.BLSGD{Steps: 7, Gradient: method.Gradient{Clip: 1, Noise: 8, Batch: 10}, Rate: 4, Shrink: 0.5, Armijo: 0.5, Fall: 1, Search: 1, MaxBacktracks: 2, Growth: "adaptive", Raise: 0.5, Decay: 0.1}
	for _, err := range m.Run(context.Background(), s, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []float64{0, 0, 0, 0, 1, 1, 2} {
		g, q := s.paid[2*i].(oracle.Grad), s.paid[2*i+1].(oracle.Search)
		if got := math.Log(8/g.Noise.(mech.Gaussian).Sigma) / math.Log(1.5) * 2; math.Abs(got-want) > 1e-9 {
			t.Errorf("gradient %d: its budget grew %v times, want %v", i, got, want)
		}
		if got := math.Log(g.Clip.Bound()) / math.Log(0.9); math.Abs(got-want) > 1e-9 {
			t.Errorf("gradient %d: its bound shrank %v times, want %v", i, got, want)
		}
		if q.Noise.Threshold != 16 {
			t.Errorf("search %d has noise %v", i, q.Noise)
		}
	}
}

// TestBLSGDRefuses: errors begin with the field that is meant.
func TestBLSGDRefuses(t *testing.T) {
	for want, m := range map[string]method.BLSGD{
		"rate: found -1":              {Rate: -1},
		"shrink: found 1":             {Shrink: 1},
		"tries: found -2":             {MaxBacktracks: -2},
		"tries: found 1001":           {MaxBacktracks: 1001},
		"armijo: found 1":             {Armijo: 1},
		"fall: found NaN":             {Fall: math.NaN()},
		"fall: found 1e-200":          {Fall: 1e-200},
		"search: found +Inf":          {Search: math.Inf(1)},
		"growth: found \"fast\"":      {Growth: "fast"},
		"growth: found \"no\" beside": {Decay: 0.1},
		"growth: found \"must\"":      {Growth: "must", Fallback: true},
		"raise: found -1":             {Growth: "must", Raise: -1},
		"decay: found 1":              {Growth: "must", Decay: 1},
		"clip: found -1":              {Gradient: method.Gradient{Clip: -1}},
		"batch: found 10001":          {Gradient: method.Gradient{Batch: 10001}},
		"sampling: found \"by\"":      {Gradient: method.Gradient{Batch: 5, Sampling: "by"}},
	} {
		if _, err := m.Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s …", err, want)
		}
	}
	if _, err := (method.BLSGD{}).Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.Pure); err == nil || !strings.HasPrefix(err.Error(), "privacy.delta: found 0") {
		t.Errorf("without δ: %v", err)
	}
	terms := methodtest.On
	terms.Accountant = account.GDP{}
	if _, err := (method.BLSGD{}).Configure(facts(privacy.AddRemove), method.Objective{}, terms); err == nil || !strings.HasPrefix(err.Error(), "privacy.accountant: ") {
		t.Errorf("an accountant without a theorem for searches: %v", err)
	}
}
