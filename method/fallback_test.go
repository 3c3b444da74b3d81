package method_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// wide are the facts of a table of two classes with unit rows, for which noise is large.
func wide(rows, dim int) oracle.Public {
	return oracle.Public{Dim: dim, Rows: rows, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1, Smooth: 0.25,
		StartLoss: oracle.Bound(math.Ln2), Intercept: dim, OneMargin: true, Centered: true}
}

func autoAt(t *testing.T, m method.Auto, pub oracle.Public, epsilon float64) method.Auto {
	t.Helper()
	fitted, err := m.Configure(pub, method.Objective{}, method.Terms{Budget: privacy.Budget{Epsilon: epsilon, Delta: 1e-5, Adjacency: pub.Adjacency}, Accountant: account.Best{}})
	if err != nil {
		t.Fatal(err)
	}
	return fitted.(method.Auto)
}

// TestFallbackRule: counts are planned where predictions cannot begin at a share, noise in a margin is large and they decide,
// with an eightieth of the budget under add-or-remove, or more where they would have much noise, up to a twentieth, as far as
// Gaussian noise adds up.
func TestFallbackRule(t *testing.T) {
	for _, c := range []struct {
		m       method.Auto
		rows    int
		dim     int
		epsilon float64
		replace bool
		want    string
		share   float64
	}{
		{method.Auto{}, 4000, 1001, 0.1, false, method.FallbackClass, 0.0125},
		{method.Auto{}, 2000, 101, 0.1, false, method.FallbackClass, 0.0236},
		{method.Auto{}, 4000, 1001, 1, false, method.FallbackClass, 0.0125},
		{method.Auto{}, 4000, 1001, 1, true, method.FallbackClass, 0.05},
		{method.Auto{}, 2000, 101, 0.1, true, "", 0}, // the counts' noise would be above a tenth of the rows
		{method.Auto{}, 300, 11, 0.1, false, "", 0},  // or most of them
		{method.Auto{}, 30000, 100, 1, false, "", 0}, // there is little noise in a margin
		{method.Auto{Fallback: method.FallbackNone}, 4000, 1001, 0.1, false, method.FallbackNone, 0},
		{method.Auto{Fallback: method.FallbackClass}, 300, 11, 0.1, false, method.FallbackClass, 0.05},
		{method.Auto{Gradient: method.Gradient{Noise: 900}}, 4000, 1001, 0.1, false, "", 0},
	} {
		pub := wide(c.rows, c.dim)
		pub.StartLoss = 1 // of the hinge loss
		if c.replace {
			pub.Adjacency = privacy.ReplaceOne
		}
		m := autoAt(t, c.m, pub, c.epsilon)
		if m.Fallback != c.want || (m.FallbackNoise > 0) != (c.want == method.FallbackClass) || m.FallbackSigned != (m.FallbackNoise > 0) {
			t.Errorf("%d rows, %d features, ε = %v: %+v; want the fallback %q", c.rows, c.dim, c.epsilon, m, c.want)
		}
		if m.FallbackNoise == 0 {
			continue
		}
		counts, all := 2/(m.FallbackNoise*m.FallbackNoise), float64(m.Steps)/(m.Gradient.Noise*m.Gradient.Noise)
		if m.CenterNoise > 0 {
			all += 1 / (m.CenterNoise * m.CenterNoise)
		}
		if share := counts / (counts + all); math.Abs(share-c.share) > 1e-3 {
			t.Errorf("%d rows, replaced %t: the counts take %v of the budget, want %v", c.rows, c.replace, share, c.share)
		}
	}
	weighted := wide(4000, 1001)
	weighted.StartLoss = 0
	if m := autoAt(t, method.Auto{}, weighted, 0.1); m.Fallback != "" {
		t.Errorf("with class weights: %+v", m)
	}
	alone := wide(4000, 1001)
	alone.Centered = false
	for want, m := range map[string]method.Auto{"fallback: found \"mean\"": {Fallback: "mean"}, "fallback: found class": {Fallback: method.FallbackClass}} {
		if _, err := m.Configure(alone, method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s …", m, err, want)
		}
	}
}

// TestFallbackStep: the last step leans to the class that gets fewer rows wrong, and only then; no margin of a leaning model has the
// other sign, and their order stays.
func TestFallbackStep(t *testing.T) {
	for _, c := range []struct {
		model, one float64 // shares that they get wrong
		pull       float64 // the length of w
		lean       float64
	}{{0.5, 0.2, 2, 1}, {0.5, 0.8, 0.1, -1}, {0.2, 0.3, 1, 0}, {0.2, 0.8, 1, 0}, {0.31, 0.3, 1, 0}} {
		for _, signed := range []bool{false, true} {
			o := methodtest.NewOracle(methodtest.Problem{Dim: 3, Smooth: 0.25, Grad: func(dst, w []float64) {
				for j := range w {
					dst[j] = 0.25*w[j] - c.pull
				}
			}, Value: func(w []float64) float64 {
				if w[0] == 0 {
					return c.one
				}
				return c.model
			}}, 0)
			m := method.Auto{Steps: 5, Rate: 1, Fallback: method.FallbackClass, FallbackNoise: 20, FallbackSigned: signed, Gradient: method.Gradient{Clip: 1, Noise: 1}}
			var last method.Step
			w := output(t, m, o, method.Objective{}, func(st method.Step) { last = st })
			if last.Status != method.Done || last.Lean*c.lean < 0 || (last.Lean != 0) != (c.lean != 0) {
				t.Fatalf("%+v: ends with %+v", c, last)
			}
			if c.lean == 0 {
				continue
			}
			if want := 1 - min(c.one, 1-c.one); last.Share != want {
				t.Errorf("%+v: the class has a share of %v, want %v", c, last.Share, want)
			}
			norm := 0.0
			for _, v := range w {
				norm += v * v
			}
			if offset := last.Offset(w)[0]; !(math.Abs(offset) > math.Sqrt(norm)) || offset*c.lean < 0 {
				t.Errorf("%+v: a margin of norm %v may keep its sign beside the offset %v", c, math.Sqrt(norm), offset)
			}
			factor := m.MarginFactor(wide(1000, 3), method.Objective{})
			for st, err := range m.Run(t.Context(), o, method.Objective{}) {
				if err != nil {
					t.Fatal(err)
				}
				factor.Add(st)
			}
			half := func(factor float64) float64 { return 1 / (1 + math.Exp(-math.Abs(factor*last.Offset(w)[0]))) } // of a row in the middle
			if a, want := factor.Of(w), math.Min(last.Share, half(1)); !(a > 0 && a <= 1) || math.Abs(half(a)-want) > 1e-3 {
				t.Errorf("%+v: factor %v, a row in the middle has the probability %v, want %v", c, a, half(a), want)
			}
		}
	}
}

// TestOutlook: a table that is too small is told so, with what would do: that is not told so, and a little less is. This holds for every
// kind of label, relation, law of noise and unit, and for steps, norms and noise that are given.
func TestOutlook(t *testing.T) {
	several, number, poor := wide(600, 5*200), wide(600, 200), wide(600, 200)
	several.Classes, several.OneMargin, several.Centered, several.Intercept = 5, false, false, 200
	number.Classes, number.Lipschitz, number.Smooth, number.StartLoss = 0, oracle.Bound(math.Inf(1)), 1, 0
	number.LabelSpan, number.LabelMin, number.Shifted = 50, 10, true
	poor.Smooth = oracle.Bound(math.Inf(1)) // svm
	huber := number
	huber.Lipschitz, huber.Shifted, huber.LabelMin = 1, false, 0
	scaled := number
	scaled.LabelScale = 1
	for name, pub := range map[string]oracle.Public{"two classes": wide(600, 200), "five classes": several, "a number": number, "kinks": poor,
		"huber": huber, "a number with a scale": scaled} {
		for _, adjacency := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			for _, delta := range []float64{1e-5, 0} {
				for way, m := range map[string]method.Auto{"": {}, "steps": {Steps: 30}, "noise": {Gradient: method.Gradient{Noise: 1}}, "batch": {Gradient: method.Gradient{Batch: 9}}} {
					if way != "" && (delta == 0 || adjacency != privacy.AddRemove) {
						continue
					}
					pub.Adjacency, pub.L1Bound = adjacency, math.Sqrt(200)
					at := func(pub oracle.Public, epsilon float64) *method.Outlook {
						t.Helper()
						o, err := m.Foresee(pub, method.Objective{}, method.Terms{Budget: privacy.Budget{Epsilon: epsilon, Delta: delta, Adjacency: adjacency}, Accountant: account.Best{}})
						if err != nil {
							t.Fatal(err)
						}
						return o
					}
					where := fmt.Sprintf("%s, %v, δ = %v, %s", name, adjacency, delta, way)
					o := at(pub, 0.1)
					if o == nil || o.Features != 200 || !(o.Epsilon > 0.1) || !(o.Rows > 600) {
						t.Fatalf("%s: %+v", where, o)
					}
					if with := at(pub.WithSlots(4), 0.1); *with != *o {
						t.Errorf("%s: with places for pairs %+v, without %+v", where, with, o)
					}
					rows, fewer := pub, pub
					rows.Rows = o.Rows
					for _, o := range []*method.Outlook{at(pub, o.Epsilon), at(rows, 0.1)} {
						if o != nil {
							t.Errorf("%s: with what would do: %+v", where, o)
						}
					}
					rows.Rows = o.Rows * 8 / 10
					for _, o := range []*method.Outlook{at(pub, 0.8*o.Epsilon), at(rows, 0.1)} {
						if o == nil && pub.LabelScale == 0 { // beside which a run on little noise has less than a longer one on less
							t.Errorf("%s: a fifth less is enough", where)
						}
					}
					if o.Fewer > 0 {
						fewer.Dim, fewer.L1Bound = o.Fewer*max(1, pub.Classes/5*5), math.Sqrt(float64(o.Fewer))
						if o := at(fewer, 0.1); o != nil {
							t.Errorf("%s: with fewer features: %+v", where, o)
						}
					}
				}
			}
		}
	}
	none := method.Terms{Off: true}
	if o, err := (method.Auto{}).Foresee(wide(600, 200), method.Objective{}, none); o != nil || err != nil {
		t.Errorf("without noise: %+v, %v", o, err)
	}
}

// TestChooseColumns: the first columns are taken, as many as no warning follows from, and the run says so; all where there is
// none, and where the rule has no noise to go by.
func TestChooseColumns(t *testing.T) {
	pub, budget := wide(1000, 201), privacy.Budget{Epsilon: 0.1, Delta: 1e-5, Adjacency: privacy.AddRemove}
	dims := make([]int, 100) // two features a column, and an intercept
	for i := range dims {
		dims[i] = 2*i + 3
	}
	choose := func(m method.Auto, pub oracle.Public, b privacy.Budget) (method.Auto, string) {
		t.Helper()
		m, why, err := m.ChooseColumns(pub, method.Objective{}, dims, method.Terms{Budget: b, Accountant: account.Best{}})
		if err != nil {
			t.Fatal(err)
		}
		return m, why
	}
	m, why := choose(method.Auto{}, pub, budget)
	if m.Columns < 2 || m.OfColumns != 100 || !(m.AllNoise > 1.5) || !strings.HasPrefix(why, "the first ") {
		t.Fatalf("%+v: %s", m, why)
	}
	for n, loud := range map[int]bool{m.Columns: false, m.Columns + 1: true} {
		few := pub
		few.Dim, few.Intercept = dims[n-1], dims[n-1]
		set := autoAt(t, m, few, 0.1)
		text := set.Cautions(few, method.Objective{})
		o, err := m.Foresee(few, method.Objective{}, method.Terms{Budget: budget, Accountant: account.Best{}})
		if err != nil || len(text) != 1 || !strings.Contains(text[0], "of 100; with all") || (o != nil) != loud || set.Columns != m.Columns {
			t.Errorf("%d columns: %q, %+v, %v", n, text, o, err)
		}
	}
	if m, why := choose(method.Auto{}, wide(1, 201), budget); m.Columns != 1 {
		t.Errorf("a table of one row: %+v, %s", m, why)
	}
	quiet, pure := budget, budget
	quiet.Epsilon, pure.Delta = 10, 0
	for name, c := range map[string]struct {
		m   method.Auto
		pub oracle.Public
		b   privacy.Budget
	}{
		"little noise":     {method.Auto{}, pub, quiet},
		"pure":             {method.Auto{}, pub, pure},
		"a noise is given": {method.Auto{Gradient: method.Gradient{Noise: 900}}, pub, budget},
		"a batch is given": {method.Auto{Gradient: method.Gradient{Batch: 9}}, pub, budget},
		"three classes":    {method.Auto{}, oracle.Public{Dim: 201, Rows: 1000, Classes: 3, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 1, Smooth: 0.25}, budget},
	} {
		if m, why := choose(c.m, c.pub, c.b); m.Columns != 0 || !strings.HasPrefix(why, "all 100: ") {
			t.Errorf("%s: %+v, %s", name, m, why)
		}
	}
}
