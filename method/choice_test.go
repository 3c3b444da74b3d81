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
	"github.com/sottodp/sotto/privacy/sample"
)

// chooser answers choices from a list and keeps what was asked.
type chooser struct {
	unasked
	facts  oracle.Public
	chosen []int
	asked  []oracle.Select
	among  []oracle.Candidates
}

func (c *chooser) Public() oracle.Public { return c.facts }

func (c *chooser) Batch(context.Context, sample.Sampler, ...oracle.Query) (oracle.Batch, error) {
	if len(c.chosen) == 0 {
		return nil, privacy.ErrExhausted
	}
	return c, nil
}

func (c *chooser) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	k := c.chosen[0]
	c.chosen, c.asked = c.chosen[1:], append(c.asked, q)
	if n, ok := among.(oracle.Neighbors); ok {
		n.From, n.Least = slices.Clone(n.From), slices.Clone(n.Least)
		among = n
	}
	c.among = append(c.among, among)
	return k, nil
}

// TestPrivGeneByHand: moves, the bound that follows them, the regularizer's part, and where it leads.
func TestPrivGeneByHand(t *testing.T) {
	m := method.PrivGene{Steps: 4, Move: 2, Decay: 0.5, Clip: 3, Choice: 0.1}
	c := &chooser{facts: oracle.Public{Dim: 2}, chosen: []int{1, 0, 4, 2}}
	var got [][]float64
	var last method.Step
	for st, err := range m.Run(context.Background(), c, method.Objective{Reg: reg.L2{Lambda: 2}}) {
		if err != nil {
			t.Fatal(err)
		}
		got, last = append(got, slices.Clone(st.W)), st
	}
	want := [][]float64{{2, 0}, {2, 0}, {2, -0.5}, {1.75, -0.5}, {1.75, -0.5}}
	if !slices.EqualFunc(got, want, slices.Equal) || last.Status != method.Done || last.T != 4 {
		t.Errorf("went %v, want %v; %v after %d", got, want, last.Status, last.T)
	}
	for i, move := range []float64{2, 1, 0.5, 0.25} {
		if want := (oracle.Select{Epsilon: 0.1, Bound: 3 * move}); c.asked[i] != want {
			t.Errorf("round %d asks %+v, want %+v", i, c.asked[i], want)
		}
		if n := c.among[i].(oracle.Neighbors); n.Step != move {
			t.Errorf("round %d moves by %v, want %v", i, n.Step, move)
		}
	}
	// λ/2·‖w‖² with λ = 2, from (2, 0) by 1: to (3, 0), (1, 0), (2, ±1).
	if n := c.among[1].(oracle.Neighbors); !slices.Equal(n.From, []float64{2, 0}) || !slices.Equal(n.Least, []float64{0, 5, -3, 1, 1}) {
		t.Errorf("the second round is %+v", n)
	}
}

// TestChoicePlans: a fitted method costs its budget and not more, by a choice of bounded range, or where δ is 0 by a pure
// one.
func TestChoicePlans(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, delta := range []float64{0, 1e-6} {
			for _, c := range []struct {
				m    method.Method
				plan func(privacy.Event) privacy.Event
			}{
				{method.PrivGene{Steps: 20}, func(e privacy.Event) privacy.Event { return privacy.Repeated{Count: 20, Of: e} }},
				{method.Majority{}, func(e privacy.Event) privacy.Event { return e }},
			} {
				pub := facts(adj)
				pub.Classes, pub.Intercept = 2, pub.Dim
				terms := method.Terms{Budget: privacy.Budget{Epsilon: 0.7, Delta: delta, Adjacency: adj}, Accountant: account.Best{}}
				fitted, err := c.m.Configure(pub, method.Objective{}, terms)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := fitted.Plan(pub)
				if err != nil {
					t.Fatal(err)
				}
				var epsilon float64
				switch m := fitted.(type) {
				case method.PrivGene:
					epsilon = m.Choice
				case method.Majority:
					epsilon = m.Choice
				}
				want := c.plan(privacy.Select{Epsilon: epsilon})
				if delta == 0 {
					want = c.plan(privacy.PureDP{Epsilon: epsilon})
				}
				if !privacy.Equal(plan, want) {
					t.Errorf("%T, δ = %v: plan %v, want %v", fitted, delta, plan, want)
				}
				loss, err := account.Best{}.Loss(plan, adj)
				if err != nil {
					t.Fatal(err)
				}
				if e := loss.Epsilon(delta); e > 0.7 || e < 0.7*(1-1e-4) {
					t.Errorf("%T, δ = %v: the plan costs ε = %v of 0.7", fitted, delta, e)
				}
			}
		}
	}
}

// TestMajorityModel: the class that was chosen is the one that the model predicts for any row, of models with
// one margin and with one for each class.
func TestMajorityModel(t *testing.T) {
	for _, c := range []struct {
		pub   oracle.Public
		class int
		want  []float64
	}{
		{oracle.Public{Dim: 3, Classes: 2, Intercept: 3}, 0, []float64{0, 0, -1}},
		{oracle.Public{Dim: 3, Classes: 2, Intercept: 3}, 1, []float64{0, 0, 1}},
		{oracle.Public{Dim: 4, Classes: 2, Intercept: 2}, 0, []float64{0, 1, 0, 0}},
		{oracle.Public{Dim: 6, Classes: 3, Intercept: 2}, 2, []float64{0, 0, 0, 0, 0, 1}},
	} {
		o := &chooser{facts: c.pub, chosen: []int{c.class}}
		var last method.Step
		for st, err := range (method.Majority{Choice: 1}).Run(context.Background(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			last = st
		}
		if !slices.Equal(last.W, c.want) || last.Status != method.Done || o.among[0] != (oracle.Classes{}) {
			t.Errorf("class %d of %+v: %v, want %v; asked among %T", c.class, c.pub, last.W, c.want, o.among[0])
		}
	}
}

// TestChoicesRefuse: errors begin with the field that is meant.
func TestChoicesRefuse(t *testing.T) {
	pub := facts(privacy.AddRemove)
	pub.Classes, pub.Intercept = 2, pub.Dim
	number, bare := pub, pub
	number.Classes, bare.Intercept = 0, 0
	off := method.Terms{Off: true}
	blind := methodtest.On
	blind.Accountant = account.GDP{}
	for _, c := range []struct {
		want  string
		m     method.Method
		pub   oracle.Public
		terms method.Terms
	}{
		{"steps: found -1", method.PrivGene{Steps: -1}, pub, methodtest.On},
		{"move: found NaN", method.PrivGene{Move: math.NaN()}, pub, methodtest.On},
		{"move: found 1e-200", method.PrivGene{Move: 1e-200}, pub, methodtest.On},
		{"decay: found 1.5", method.PrivGene{Decay: 1.5}, pub, methodtest.On},
		{"decay: found 0.1", method.PrivGene{Decay: 0.1, Steps: 500}, pub, methodtest.On},
		{"clip: found +Inf", method.PrivGene{Clip: math.Inf(1)}, pub, methodtest.On},
		{"choice: found -1", method.PrivGene{Choice: -1}, pub, methodtest.On},
		{"choice: found 2", method.PrivGene{Choice: 2}, pub, off},
		{"choice: found NaN", method.Majority{Choice: math.NaN()}, pub, methodtest.On},
		{"privacy.accountant: ", method.PrivGene{}, pub, blind},
		{"name: majority needs a label of classes", method.Majority{}, number, methodtest.On},
		{"name: majority says its class by the intercept", method.Majority{}, bare, methodtest.On},
	} {
		if _, err := c.m.Configure(c.pub, method.Objective{}, c.terms); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s …", c.m, err, c.want)
		}
	}
}
