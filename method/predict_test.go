package method_test

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// TestPredict: each method of P1 has an forecast, whose best is the least of its curve; a larger
// budget promises less error, and a spread budget no more than an even one.
func TestPredict(t *testing.T) {
	obj := method.Objective{Reg: reg.L2{Lambda: 0.05}}
	least := map[string][]float64{}
	for _, name := range []string{"gd", "shb", "nag", "nag-opt", "masg", "masg-opt"} {
		e, err := method.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, epsilon := range []float64{0.1, 1, 10} {
			if e.Name == "shb" && (epsilon == 0.1 || race.Enabled) { // its certificates take a second or two
				least[e.Name] = append(least[e.Name], 1/epsilon)
				continue
			}
			terms := method.Terms{Budget: privacy.Budget{Epsilon: epsilon, Adjacency: privacy.ReplaceOne}, Accountant: account.Best{}}
			out, err := method.Predict(e.Method, facts(privacy.ReplaceOne), obj, terms)
			if err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
			if len(out.Trust) > 0 || out.Mu != 0.05 || math.Abs(out.L-0.3) > 1e-12 {
				t.Errorf("%s: μ = %v, L = %v, on trust %q", e.Name, out.Mu, out.L, out.Trust)
			}
			for _, p := range out.Curve {
				if p.Error < out.Best.Error || math.Abs(p.Start+p.Noise-p.Error) > 1e-12 {
					t.Errorf("%s: %+v beside the best %+v", e.Name, p, out.Best)
				}
			}
			least[e.Name] = append(least[e.Name], out.Best.Error)
		}
	}
	for name, v := range least {
		if !(v[0] > v[1] && v[1] > v[2]) {
			t.Errorf("%s: errors %v for growing budgets", name, v)
		}
	}
	for i := range 3 {
		if least["nag-opt"][i] > least["nag"][i] || least["masg-opt"][i] > least["masg"][i] {
			t.Errorf("even noise has a smaller bound: %v", least)
		}
	}
	if _, err := method.Predict(method.SGD{}, facts(privacy.ReplaceOne), obj, method.Terms{}); err == nil {
		t.Error("sgd has a bound")
	}
}
