package method_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// TestBumps: more rows and budget give more bumps, more columns fewer; where nothing was measured there are none.
func TestBumps(t *testing.T) {
	adult := oracle.Public{Dim: 48, Rows: 32561, Classes: 2, NormBound: 1, L1Bound: 7, Lipschitz: 1, Smooth: 0.25, Adjacency: privacy.AddRemove}
	budget := func(epsilon, delta float64) method.Terms {
		return method.Terms{Budget: privacy.Budget{Epsilon: epsilon, Delta: delta, Adjacency: privacy.AddRemove}, Accountant: account.Best{}}
	}
	with := func(change func(*oracle.Public)) oracle.Public {
		pub := adult
		change(&pub)
		return pub
	}
	number := func(p *oracle.Public) {
		p.Classes, p.Lipschitz, p.Shifted, p.LabelSpan = 0, oracle.Bound(math.Inf(1)), true, 9
	}
	for _, c := range []struct {
		name    string
		pub     oracle.Public
		columns int
		terms   method.Terms
		hats    int
		waves   int
		why     string
	}{
		{"much budget", adult, 5, budget(1, 1e-5), 16, 0, "16 bumps beside each linear feature: with 16 bumps, d = 128, noise ν√d = 0.0013"},
		{"little budget", adult, 5, budget(0.05, 1e-5), 0, 5, "with 5 waves, d = 73, noise ν√d = 0.0152 (at most 0.06) and 446 rows"},
		{"least budget", adult, 5, budget(0.005, 1e-5), 0, 0, "no bumps: with 5 waves, d = 73"},
		{"many columns", adult, 60, budget(1, 1e-5), 0, 0, "rows per feature (at least 100)"},
		{"no free column", adult, 0, budget(1, 1e-5), 0, 0, ""},
		{"three classes", with(func(p *oracle.Public) { p.Classes, p.Dim = 3, 3*48 }), 5, budget(1, 1e-5), 16, 0, "d = 128"},
		{"many rows", with(func(p *oracle.Public) { p.Rows = 2e6 }), 20, budget(1, 1e-5), 8, 0, "with 8 bumps, d = 208"},
		{"more rows", with(func(p *oracle.Public) { p.Rows = 5e6 }), 20, budget(1, 1e-5), 0, 0, "no bumps: with 5 waves, d = 148, and 5000000 rows would take more than 2 GiB"},
		{"few rows", with(func(p *oracle.Public) { p.Rows = 4000 }), 5, budget(3, 1e-5), 0, 0, "54.8 rows per feature (at least 100)"},
		{"no noise", adult, 5, method.Terms{Off: true}, 16, 0, "ν√d = 0 "},
		{"pure ε", adult, 5, budget(1, 0), 0, 0, "no bumps: the rule is for rows held to an L2 norm and Gaussian noise"},
		{"L1 rows", with(func(p *oracle.Public) { p.L1Bound = 1 }), 5, budget(1, 1e-5), 0, 0, "no bumps: the rule is for rows held to an L2 norm"},
		{"a number", with(number), 5, budget(1, 1e-5), 0, 2, "2 waves beside each linear feature: with 2 waves, d = 58"},
		{"a number, little budget", with(number), 5, budget(0.02, 1e-5), 0, 0, "no bumps: with 2 waves"},
		{"twelve classes", with(func(p *oracle.Public) { p.Classes, p.Dim = 12, 12*48 }), 5, budget(0.05, 1e-5), 0, 5, "noise ν√d = 0.0276"},
		{"no slope", with(func(p *oracle.Public) { p.Lipschitz = oracle.Bound(math.Inf(1)) }), 5, budget(1, 1e-5), 0, 0, "no bumps: the rule is for classes, and for numbers with the squared loss"},
	} {
		b, err := method.Auto{}.Bumps(c.pub, c.columns, c.terms)
		if err != nil || b.Hats != c.hats || b.Waves != c.waves || !strings.Contains(b.Why, c.why) {
			t.Errorf("%s: %+v, %v", c.name, b, err)
		}
	}
}
