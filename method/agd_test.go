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
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// stepper answers gradients and choices from lists and keeps what was paid and among what was chosen.
type stepper struct {
	unasked
	facts  oracle.Public
	grads  [][]float64
	chosen []int
	paid   [][]oracle.Query
	lines  []oracle.Line
}

func (s *stepper) Public() oracle.Public { return s.facts }

func (s *stepper) Batch(_ context.Context, _ sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	if len(s.chosen) == 0 {
		return nil, privacy.ErrExhausted
	}
	s.paid = append(s.paid, pay)
	return s, nil
}

func (s *stepper) Grad(oracle.Grad, []float64) ([]float64, error) {
	g := s.grads[0]
	s.grads = s.grads[1:]
	return g, nil
}

func (s *stepper) Select(_ oracle.Select, among oracle.Candidates) (int, error) {
	k, l := s.chosen[0], among.(oracle.Line)
	s.chosen = s.chosen[1:]
	s.lines = append(s.lines, oracle.Line{From: slices.Clone(l.From), Along: slices.Clone(l.Along), Steps: slices.Clone(l.Steps), Least: slices.Clone(l.Least)})
	return k, nil
}

// TestAGDByHand: a step; to stay, after which the gradient is bought better by the part γ of its precision and averaged by
// precisions, and step sizes are halved; and a step along it.
func TestAGDByHand(t *testing.T) {
	m := method.AGD{Steps: 9, Rate: 4, MaxBacktracks: 4, Clip: 3, Fall: 0.5, Choice: 1, Growth: 0.25, Noise: 2}
	s := &stepper{
		facts: oracle.Public{Dim: 2, Adjacency: privacy.AddRemove},
		grads: [][]float64{{0, 2}, {3, 0}, {3, 5}, {0, 1}}, chosen: []int{2, 0, 4, 1},
	}
	var got [][]float64
	var last method.Step
	for st, err := range m.Run(context.Background(), s, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		got, last = append(got, slices.Clone(st.W)), st
	}
	if last.Status != method.OutOfBudget || last.T != 4 {
		t.Errorf("ended %v after %d", last.Status, last.T)
	}
	// The third step goes along (3, 0) + ¼/1¼·((3, 5) − (3, 0)) = (3, 1), by 2.
	root := math.Sqrt(10)
	want := [][]float64{{0, -2}, {0, -2}, {-6 / root, -2 - 2/root}, {-6 / root, -2.5 - 2/root}, {-6 / root, -2.5 - 2/root}}
	for i := range want {
		for j := range want[i] {
			if math.Abs(got[i][j]-want[i][j]) > 1e-12 {
				t.Fatalf("went %v, want %v", got, want)
			}
		}
	}
	for i, top := range []float64{4, 4, 2, 2} {
		for k, eta := range s.lines[i].Steps {
			if math.Abs(eta-top*float64(k)/4) > 1e-12 || s.lines[i].Least[k] != 0 {
				t.Errorf("choice %d is among %v, %v", i, s.lines[i].Steps, s.lines[i].Least)
				break
			}
		}
	}
	for i, precision := range []float64{0.25, 0.25, 0.0625, 0.3125} { // 1/σ²: what is added by the third is ¼ of ¼
		g, q := s.paid[i][0].(oracle.Grad), s.paid[i][1].(oracle.Select)
		if sigma := g.Noise.(mech.Gaussian).Sigma; math.Abs(1/(sigma*sigma)-precision) > 1e-12 || g.Clip != (clip.Norm{C: 3}) {
			t.Errorf("gradient %d: %+v, want precision %v", i, g, precision)
		}
		if q != (oracle.Select{Epsilon: 0.5, Bound: 0.5}) {
			t.Errorf("choice %d: %+v", i, q)
		}
	}
}

// TestAGDRegularized: the regularizer is part of the direction and of what a step must bring; the longest step follows
// those that were taken.
func TestAGDRegularized(t *testing.T) {
	m := method.AGD{Steps: 12, Rate: 4, MaxBacktracks: 4, Clip: 3, Fall: 0.5, Choice: 1, Growth: 0.25, Noise: 2}
	s := &stepper{facts: oracle.Public{Dim: 1, Adjacency: privacy.AddRemove}}
	for range 12 {
		s.grads, s.chosen = append(s.grads, []float64{1}), append(s.chosen, 1)
	}
	var w []float64
	for st, err := range m.Run(context.Background(), s, method.Objective{Reg: reg.L2{Lambda: 2}}) {
		if err != nil {
			t.Fatal(err)
		}
		if st.T < 12 {
			w = append(w, st.W[0])
		}
	}
	// From 0 to −1, where 1 + 2·(−1) turns the direction round.
	if w[0] != -1 || w[1] != 0 {
		t.Errorf("went %v", w)
	}
	if l := s.lines[1]; !slices.Equal(l.Along, []float64{-1}) || !slices.Equal(l.Least, []float64{0, -1, 0, 3, 8}) {
		t.Errorf("the second choice is %+v", l) // (−1 + η)² − 1
	}
	if top := s.lines[10].Steps[4]; math.Abs(top-1.1) > 1e-12 {
		t.Errorf("after ten steps of 1 the longest is %v, want 1.1", top)
	}
}

// TestAGDBudget: as many steps as splits, none of them to stay, fit the filter, and no more than one further; runs that
// always stay end within the cap too.
func TestAGDBudget(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, chosen := range []int{0, 1} {
			pub := facts(adj)
			terms := method.Terms{Budget: privacy.Budget{Epsilon: 0.7, Delta: 1e-6, Adjacency: adj}, Accountant: account.Best{}}
			m, err := method.AGD{Splits: 30, Steps: 10_000}.Configure(pub, method.Objective{}, terms)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := m.Plan(pub)
			if err != nil {
				t.Fatal(err)
			}
			meter, err := account.NewMeter(plan, terms.Accountant, terms.Budget)
			if err != nil {
				t.Fatal(err)
			}
			s := &paying{meter: meter, stepper: stepper{facts: pub}}
			s.chosen, s.grads = slices.Repeat([]int{chosen}, 10_000), slices.Repeat([][]float64{make([]float64, 10)}, 10_000)
			var last method.Step
			for st, err := range m.Run(context.Background(), s, method.Objective{}) {
				if err != nil {
					t.Fatal(err)
				}
				last = st
			}
			if last.Status != method.OutOfBudget || chosen > 0 && (last.T < 30 || last.T > 31) || chosen == 0 && last.T < 15 {
				t.Errorf("%v, choosing %d: %v after %d steps of 30 that fit", adj, chosen, last.Status, last.T)
			}
			loss, err := account.ZCDP{}.Loss(s.charged, adj)
			if err != nil {
				t.Fatal(err)
			}
			if e := loss.Epsilon(1e-6); e > 0.7*(1+1e-9) {
				t.Errorf("%v, choosing %d: charged ε = %v of 0.7", adj, chosen, e)
			}
		}
	}
}

// paying is a stepper that charges.
type paying struct {
	stepper
	meter   account.Meter
	charged privacy.Composed
}

func (p *paying) Batch(_ context.Context, s sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	if err := p.meter.Charge(p.Public().Cost(s, pay)); err != nil {
		return nil, err
	}
	p.charged = append(p.charged, p.Public().Cost(s, pay))
	return p, nil
}

// TestAGDRefuses: errors begin with the field that is meant.
func TestAGDRefuses(t *testing.T) {
	for want, m := range map[string]method.AGD{
		"splits: found -1":                    {Splits: -1},
		"steps: found -1":                     {Steps: -1},
		"tries: found 1001":                   {MaxBacktracks: 1001},
		"rate: found NaN":                     {Rate: math.NaN()},
		"clip: found 1e-200":                  {Clip: 1e-200},
		"fall: found +Inf":                    {Fall: math.Inf(1)},
		"choice: found -1":                    {Choice: -1},
		"growth: found 2":                     {Growth: 2},
		"noise_multiplier: found 1e+07":       {Noise: 1e7},
		"noise_multiplier: this budget needs": {Splits: 1e6, Choice: 1e6},
	} {
		if _, err := m.Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s …", err, want)
		}
	}
	if _, err := (method.AGD{}).Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.Pure); err == nil || !strings.HasPrefix(err.Error(), "privacy.delta: found 0") {
		t.Errorf("without δ: %v", err)
	}
	if _, err := (method.AGD{Noise: 3}).Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.Off); err == nil || !strings.HasPrefix(err.Error(), "noise_multiplier: found 3") {
		t.Errorf("noise without noise: %v", err)
	}
}
