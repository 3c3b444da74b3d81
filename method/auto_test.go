package method_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// drawFacts draws the public facts of a table and a model, over the whole range.
func drawFacts(t *rapid.T) oracle.Public {
	log := func(name string, lo, hi float64) float64 {
		return math.Exp(rapid.Float64Range(math.Log(lo), math.Log(hi)).Draw(t, name))
	}
	norm := log("norm", 1e-6, 1e6)
	pub := oracle.Public{
		Dim: int(log("dim", 1, 1e7)), Rows: int(log("rows", 1, 2e9)), NormBound: norm,
		Adjacency: rapid.SampledFrom([]privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne}).Draw(t, "adjacency"),
	}
	pub.Centered = rapid.Bool().Draw(t, "centered")
	pub.L1Bound = norm * rapid.SampledFrom([]float64{1, math.Sqrt(float64(pub.Dim))}).Draw(t, "l1")
	switch rapid.IntRange(0, 3).Draw(t, "loss") {
	case 0: // logistic
		pub.Classes, pub.Lipschitz, pub.Smooth = 2, oracle.Bound(norm), oracle.Bound(norm*norm/4)
	case 1: // svm
		pub.Classes, pub.Lipschitz, pub.Smooth = 2, oracle.Bound(norm), oracle.Bound(math.Inf(1))
	case 2: // softmax
		pub.Classes = rapid.IntRange(3, 1000).Draw(t, "classes")
		pub.Dim = max(pub.Dim, pub.Classes) // a parameter of each class, at least
		pub.Lipschitz, pub.Smooth = oracle.Bound(math.Sqrt2*norm), oracle.Bound(norm*norm/2)
	default: // linear
		pub.LabelSpan = log("span", 1e-6, 1e6)
		pub.Lipschitz, pub.Smooth = oracle.Bound(math.Inf(1)), oracle.Bound(norm*norm)
	}
	return pub
}

// TestAutoChoices: for all public facts and budgets the choice is finite, stable and within
// the budget, or the noise is beyond what Sotto computes with and the error says so.
func TestAutoChoices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pub := drawFacts(t)
		b := privacy.Budget{Adjacency: pub.Adjacency, Epsilon: math.Exp(rapid.Float64Range(math.Log(1e-3), math.Log(50)).Draw(t, "epsilon"))}
		b.Delta = rapid.SampledFrom([]float64{0, 1e-12, 1e-6, 1e-3}).Draw(t, "delta")
		obj := method.Objective{Reg: reg.L2{Lambda: rapid.SampledFrom([]float64{0, 1e-4, 1}).Draw(t, "lambda")}}
		fitted, err := method.Auto{}.Configure(pub, obj, method.Terms{Budget: b, Accountant: account.Best{}})
		if err != nil {
			if strings.HasPrefix(err.Error(), "noise_multiplier: this budget needs") {
				return
			}
			t.Fatal(err)
		}
		m := fitted.(method.Auto)
		for _, v := range []float64{m.Rate, m.Gradient.Clip, m.Gradient.Noise} {
			if !(v > 0) || math.IsInf(v, 0) {
				t.Fatalf("found %+v", m)
			}
		}
		if m.Steps < 8 || m.Steps > 400 || !(m.Momentum >= 0 && m.Momentum < 1) || m.Gradient.Laplace != (b.Delta == 0) {
			t.Fatalf("found %+v", m)
		}
		calm := 1.0 // of the loss's curvature, where a table of so many products has fewer steps than it asks for
		if pub.Classes > 2 && float64(pub.Rows)*float64(pub.Dim)*0.4 > 5e8 {
			calm = math.Max(0.2, 2/float64(pub.Classes))
		}
		if smooth := calm*float64(pub.Smooth) + obj.Reg.Smooth(); pub.Smooth.Finite() && pub.L1Bound > pub.NormBound && m.Rate*smooth >= 2*(1+m.Momentum) && m.Momentum > 0.5 {
			t.Fatalf("a step of %v and momentum %v are not stable at curvature %v", m.Rate, m.Momentum, smooth)
		}
		plan, err := m.Plan(pub)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := account.NewPlan(plan, account.Best{}, b); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAutoFollowsItsRule: more budget, a longer run and a larger clip norm; units do not matter.
func TestAutoFollowsItsRule(t *testing.T) {
	fit := func(norm, epsilon float64) method.Auto {
		pub := facts(privacy.AddRemove)
		pub.NormBound, pub.Lipschitz, pub.Smooth = norm, oracle.Bound(norm), oracle.Bound(norm*norm/4)
		m, err := method.Auto{}.Configure(pub, method.Objective{}, method.Terms{Budget: privacy.Budget{Epsilon: epsilon, Delta: 1e-6, Adjacency: privacy.AddRemove}, Accountant: account.Best{}})
		if err != nil {
			t.Fatal(err)
		}
		return m.(method.Auto)
	}
	time := func(m method.Auto) float64 { return m.Rate * float64(m.Steps) / (1 - m.Momentum) }
	before := fit(1, 0.01)
	for _, epsilon := range []float64{0.1, 1, 10} {
		m := fit(1, epsilon)
		if time(m) <= time(before) || m.Gradient.Clip < before.Gradient.Clip {
			t.Errorf("ε = %v: %+v after %+v", epsilon, m, before)
		}
		scaled := fit(1000, epsilon)
		if scaled.Steps != m.Steps || math.Abs(scaled.Rate*1e6/m.Rate-1) > 1e-9 || math.Abs(scaled.Gradient.Clip/1000/m.Gradient.Clip-1) > 1e-9 || scaled.Gradient.Noise != m.Gradient.Noise {
			t.Errorf("rows 1000 times as long: %+v beside %+v", scaled, m)
		}
		before = m
	}
}

// TestAutoOnManyProducts: ten classes of 3,969 columns have fewer steps than the length asks for, and longer ones, unless the
// step is given, the regularizer is what bends the objective, or there is no noise. Ten classes of 784 columns do not.
func TestAutoOnManyProducts(t *testing.T) {
	pub := oracle.Public{Dim: 39690, Rows: 60000, NormBound: 1, L1Bound: 63, Classes: 10, Lipschitz: math.Sqrt2, Smooth: 0.5, Adjacency: privacy.AddRemove}
	fit := func(m method.Auto, pub oracle.Public, lambda float64, terms method.Terms) method.Auto {
		fitted, err := m.Configure(pub, method.Objective{Reg: reg.L2{Lambda: lambda}}, terms)
		if err != nil {
			t.Fatal(err)
		}
		return fitted.(method.Auto)
	}
	on := func(epsilon float64) method.Terms {
		return method.Terms{Budget: privacy.Budget{Epsilon: epsilon, Delta: 1e-5, Adjacency: privacy.AddRemove}, Accountant: account.Best{}}
	}
	for _, c := range []struct {
		epsilon float64
		steps   int
		rate    float64
	}{{0.1, 187, 6}, {1, 210, 16.86}, {3, 210, 30}} {
		if m := fit(method.Auto{}, pub, 0, on(c.epsilon)); m.Steps != c.steps || math.Abs(m.Rate-c.rate) > 0.01 {
			t.Errorf("ε = %v: %d steps of %v, want %d of %v", c.epsilon, m.Steps, m.Rate, c.steps, c.rate)
		}
	}
	if m := fit(method.Auto{Rate: 2}, pub, 0, on(3)); m.Rate != 2 {
		t.Errorf("given a step of 2: %v", m.Rate)
	}
	if m := fit(method.Auto{}, pub, 10, on(3)); m.Rate*10.5 > 3.2 {
		t.Errorf("λ = 10: a step of %v", m.Rate)
	}
	if m := fit(method.Auto{}, pub, 0, method.Terms{Off: true}); m.Rate != 6 {
		t.Errorf("without noise: a step of %v", m.Rate)
	}
	pub.Dim = 7840
	if m := fit(method.Auto{}, pub, 0, on(3)); m.Steps != 400 || m.Rate != 6 {
		t.Errorf("pixels: %d steps of %v", m.Steps, m.Rate)
	}
}

// TestAutoKeepsWhatIsGiven, and says what is wrong with it.
func TestAutoKeepsWhatIsGiven(t *testing.T) {
	for _, m := range []method.Auto{{Steps: 7}, {Rate: 0.5}, {Momentum: 0.25}, {Gradient: method.Gradient{Clip: 3}}, {Gradient: method.Gradient{Batch: 20}}, {Gradient: method.Gradient{Noise: 1e5}}} {
		fitted, err := m.Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		f := fitted.(method.Auto)
		for _, v := range [][2]float64{{float64(m.Steps), float64(f.Steps)}, {m.Rate, f.Rate}, {m.Momentum, f.Momentum}, {m.Gradient.Clip, f.Gradient.Clip}, {float64(m.Gradient.Batch), float64(f.Gradient.Batch)}, {m.Gradient.Noise, f.Gradient.Noise}} {
			if v[0] != 0 && v[0] != v[1] {
				t.Errorf("given %+v, chosen %+v", m, f)
			}
		}
	}
	for want, m := range map[string]method.Auto{
		"momentum: found 1":  {Momentum: 1},
		"rate: found -1":     {Rate: -1},
		"steps: found -3":    {Steps: -3},
		"batch: found 99999": {Gradient: method.Gradient{Batch: 99999}},
	} {
		if _, err := m.Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s …", err, want)
		}
	}
}

// TestExplain: every field that can be set is there with its fitted value, no matter who set it
// told, and no other figure than public ones can be meant: nothing but these went in.
func TestExplain(t *testing.T) {
	for _, terms := range []method.Terms{methodtest.On, {Off: true}} {
		out, err := method.Explain(method.Auto{Gradient: method.Gradient{Clip: 0.25}}, facts(privacy.AddRemove), method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		fitted, err := method.Auto{Gradient: method.Gradient{Clip: 0.25}}.Configure(facts(privacy.AddRemove), method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Fields) != 11 || len(out.Rests) < 2 {
			t.Fatalf("found %+v", out)
		}
		for _, f := range out.Fields {
			if f.Given != (f.Field == "clip") || (f.Why == "given") != f.Given || f.Why == "" {
				t.Errorf("found %+v", f)
			}
		}
		if want := fmt.Sprint(fitted.(method.Auto).Steps); out.Fields[0].Value != want || out.Fields[4].Value != "0.25" {
			t.Errorf("found %+v; want %s steps and a clip norm of 0.25", out.Fields, want)
		}
	}
	if out, err := method.Explain(method.SGD{}, facts(privacy.AddRemove), method.Objective{}, methodtest.On); err != nil || len(out.Rests) > 0 || out.Fields[0].Value != "100" {
		t.Errorf("sgd: %+v, %v", out, err)
	}
	if _, err := method.Explain(method.Auto{Steps: -1}, facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil {
		t.Error("steps of -1 are explained")
	}
}

// TestAutoCenters: rows are centered where the noise in their mean is short, with a tenth of the budget, as far as Gaussian noise
// adds up; and not where that is refused, or what rows are taken relative to is given.
func TestAutoCenters(t *testing.T) {
	pub := facts(privacy.AddRemove)
	pub.Centered, pub.OneMargin = true, true
	fit := func(m method.Auto, epsilon float64) method.Auto {
		fitted, err := m.Configure(pub, method.Objective{}, method.Terms{Budget: privacy.Budget{Epsilon: epsilon, Delta: 1e-6, Adjacency: pub.Adjacency}, Accountant: account.Best{}})
		if err != nil {
			t.Fatal(err)
		}
		return fitted.(method.Auto)
	}
	for _, c := range []struct {
		m       method.Auto
		epsilon float64
		center  string
	}{
		{method.Auto{}, 1, method.CenterMean},
		{method.Auto{}, 1e-3, ""},
		{method.Auto{Center: method.CenterNone}, 1, method.CenterNone},
		{method.Auto{Center: method.CenterMean}, 1e-3, method.CenterMean},
		{method.Auto{Gradient: method.Gradient{Noise: 900}}, 1, ""},
		{method.Auto{Gradient: method.Gradient{Batch: 20}}, 1, ""},
	} {
		m := fit(c.m, c.epsilon)
		if m.Center != c.center || (m.CenterNoise > 0) != (c.center == method.CenterMean) {
			t.Errorf("%+v at ε = %v: %+v", c.m, c.epsilon, m)
		}
		if m.Center != method.CenterMean {
			continue
		}
		mean, all := 1/(m.CenterNoise*m.CenterNoise), float64(m.Steps)/(m.Gradient.Noise*m.Gradient.Noise)
		if share := mean / (mean + all); math.Abs(share-0.1) > 1e-3 {
			t.Errorf("the mean takes %v of the budget", share)
		}
	}
	if m := fit(method.Auto{Gradient: method.Gradient{Clip: 0.2}}, 1); m.Center != method.CenterMean || m.Shorter {
		t.Errorf("a clip norm that is given: %+v", m)
	}
	for _, m := range []method.Auto{{Center: "median"}, {Center: method.CenterMean, Gradient: method.Gradient{Batch: 20}}} {
		if _, err := m.Configure(pub, method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), "center: found") {
			t.Errorf("%+v: %v", m, err)
		}
	}
	one := pub
	pub.Classes, pub.OneMargin, pub.Dim = 3, false, 3*one.Dim
	if m := fit(method.Auto{}, 1); m.Center != "" {
		t.Errorf("several classes without curves: %+v", m)
	}
	pub.Numeric = []oracle.Numeric{{At: 0, Waves: 2}}
	m := fit(method.Auto{}, 1)
	mean, all := 1/(m.CenterNoise*m.CenterNoise), float64(m.Steps)/(m.Gradient.Noise*m.Gradient.Noise)
	if share := mean / (mean + all); m.Center != method.CenterMean || math.Abs(share-0.05) > 1e-3 {
		t.Errorf("several classes over curves, %v of the budget for the mean: %+v", share, m)
	}
	pub = one
	pub.Centered = false
	if m := fit(method.Auto{}, 1); m.Center != "" {
		t.Errorf("rows that cannot be centered: %+v", m)
	}
	if _, err := (method.Auto{Center: method.CenterMean}).Configure(pub, method.Objective{}, methodtest.On); err == nil {
		t.Error("rows that cannot be centered are")
	}
}
