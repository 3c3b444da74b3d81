package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// TestPlanWords: text says where nothing is proven, and that another relation is another guarantee.
func TestPlanWords(t *testing.T) {
	epsilon := 0.5
	p := &Plan{Steps: 4, Delta: 1e-9, Growth: &Growth{Steps: []Point{{At: 2, Epsilon: &epsilon}, {At: 4}}}}
	var text strings.Builder
	p.printGrowth(&text)
	if !strings.Contains(text.String(), "not proven") {
		t.Error(text.String())
	}
	for adj, multiplier := range map[privacy.Adjacency]float64{privacy.ReplaceOne: 4, privacy.AddRemove: 16} {
		r := &Relation{Adjacency: adj, NoiseMultiplier: multiplier, Sampler: "Poisson samples", Translated: true, Opinion: Opinion{Epsilon: &epsilon}}
		if text := relationWords(r); !strings.Contains(text, "Not the same guarantee") || !strings.Contains(text, "multiplier of") || !strings.Contains(text, "on Poisson samples: ε = 0.5") {
			t.Error(text)
		}
	}
}

// Of owners who add up masked sums every table, file and chart has both ε, and says against whom each is.
func TestGrowthOfShares(t *testing.T) {
	plan := func(sigma float64, steps int) privacy.Event {
		return privacy.Retried{Of: privacy.InShares(privacy.Repeated{Count: steps, Of: privacy.Gaussian{Sigma: sigma}}, 5, 1), Retries: 2}
	}
	p := &Plan{Steps: 64, Delta: 1e-6, NoiseMultiplier: 40, Adjacency: privacy.AddRemove, event: plan(40, 64), accountant: account.RDP{}}
	if err := p.solve(); err != nil {
		t.Fatal(err)
	}
	p.Sum = account.SharesOf(p.event, p.accountant, p.Adjacency, p.Delta)
	p.Grow()
	for _, c := range []struct {
		of     string
		points []Point
		want   func(at float64) privacy.Event
	}{
		{"steps", p.Growth.Steps, func(at float64) privacy.Event { return plan(40, int(at)) }},
		{"noise", p.Growth.Noise, func(at float64) privacy.Event { return plan(at, 64) }},
	} {
		if len(c.points) != len(tableFactors) {
			t.Errorf("%s: %d points", c.of, len(c.points))
		}
		for _, q := range c.points {
			e := c.want(q.At)
			if sum, alone := p.epsilon(e), account.Alone(e, p.accountant, p.Adjacency, p.Delta); *q.Epsilon != sum || *q.Alone != alone || !(alone > sum) {
				t.Errorf("%s %v: ε = %v and %v, want %v and %v", c.of, q.At, *q.Epsilon, *q.Alone, sum, alone)
			}
		}
	}
	terms := method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}, Accountant: account.Best{}}
	pub := oracle.Public{Dim: 3, Rows: 4000, Owners: 5, Colluders: 1, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1, Smooth: 0.25}
	choice, err := Explain("auto", method.Auto{}, pub, method.Objective{}, terms)
	if err != nil {
		t.Fatal(err)
	}
	var chosen, text, markdown, table strings.Builder
	choice.Text(&chosen)
	p.Text(&text)
	if err := errors.Join(p.Markdown(&markdown), p.CSV(&table)); err != nil {
		t.Fatal(err)
	}
	const hub, all = "against the hub and any one other owner", "against all other owners together, or if masks were broken"
	sum, alone := chart.AtMost(p.Epsilon, 6), chart.AtMost(*p.Sum.Alone, 6)
	for _, c := range []struct{ in, want string }{
		{chosen.String(), "Budget            ε = 1 at δ = 0.00001, add-or-remove, " + hub + ", while masks hold\n"},
		{text.String(), "             steps             ε  against all others\n"},
		{text.String(), fmt.Sprintf("%12s  %18s  this plan\n", sum, alone)},
		{markdown.String(), "It is " + hub + ", while masks hold; the last column is " + all + "."},
		{markdown.String(), fmt.Sprintf("| **64** | **%s** | **%s** |\n", sum, alone)},
		{table.String(), "varied,value,epsilon,this_plan,epsilon_alone\n"},
		{table.String(), fmt.Sprintf("steps,64,%v,true,%v\n", p.Epsilon, *p.Sum.Alone)},
		{p.Chart(), ">against all other owners<"},
		{p.Chart(), all},
		{p.Chart(), ">" + hub + "<"},
	} {
		if !strings.Contains(c.in, c.want) {
			t.Errorf("found no %q in\n%s", c.want, c.in[:min(len(c.in), 3000)])
		}
	}
}
