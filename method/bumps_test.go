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
	for _, c := range []struct {
		name    string
		pub     oracle.Public
		columns int
		terms   method.Terms
		count   int
		why     string
	}{
		{"much budget", adult, 5, budget(1, 1e-5), 16, "16 bumps beside each linear feature: with 16, d = 128, noise ν√d = 0.0013"},
		{"little budget", adult, 5, budget(0.05, 1e-5), 8, "with 8, d = 88, noise ν√d = 0.0166 (at most 0.06) and 370 rows"},
		{"least budget", adult, 5, budget(0.005, 1e-5), 0, "no bumps: with 8, d = 88"},
		{"many columns", adult, 50, budget(1, 1e-5), 0, "72.7 rows per feature (at least 80)"},
		{"no free column", adult, 0, budget(1, 1e-5), 0, ""},
		{"three classes", with(func(p *oracle.Public) { p.Classes, p.Dim = 3, 3*48 }), 5, budget(1, 1e-5), 16, "d = 128"},
		{"many rows", with(func(p *oracle.Public) { p.Rows = 2e6 }), 20, budget(1, 1e-5), 8, "with 8, d = 208"},
		{"more rows", with(func(p *oracle.Public) { p.Rows = 5e6 }), 20, budget(1, 1e-5), 0, "no bumps: with 8, d = 208, and 5000000 rows would take more than 2 GiB"},
		{"few rows", with(func(p *oracle.Public) { p.Rows = 4000 }), 5, budget(3, 1e-5), 0, "45.5 rows per feature (at least 80)"},
		{"no noise", adult, 5, method.Terms{Off: true}, 16, "ν√d = 0 "},
		{"pure ε", adult, 5, budget(1, 0), 0, "no bumps: the rule is for rows held to an L2 norm and Gaussian noise"},
		{"L1 rows", with(func(p *oracle.Public) { p.L1Bound = 1 }), 5, budget(1, 1e-5), 0, "no bumps: the rule is for rows held to an L2 norm"},
		{"no slope", with(func(p *oracle.Public) { p.Lipschitz = oracle.Bound(math.Inf(1)) }), 5, budget(1, 1e-5), 0, "no bumps: the rule is for losses with a bound on their slope"},
	} {
		b, err := method.Auto{}.Bumps(c.pub, c.columns, c.terms)
		if err != nil || b.Count != c.count || !strings.Contains(b.Why, c.why) {
			t.Errorf("%s: %+v, %v", c.name, b, err)
		}
	}
}
