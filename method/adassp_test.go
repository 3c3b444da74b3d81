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

// five answers from five rows, without noise, whatever noise is asked for.
type five struct{ adj privacy.Adjacency }

// answers of it.
type answers struct{ oracle.Batch }

var (
	fiveX = [][2]float64{{0.6, 0.8}, {0.8, -0.6}, {1, 0}, {0, 0.5}, {-0.6, 0.8}}
	fiveY = []float64{1, 3, 2.5, -1, 0.5}
)

// quadratic are the facts of model linear on n rows, with labels from −2 to 4.
func quadratic(dim, n int, adj privacy.Adjacency) oracle.Public {
	return oracle.Public{Dim: dim, Rows: n, Adjacency: adj, NormBound: 1, L1Bound: math.Sqrt(float64(dim)), Lipschitz: oracle.Bound(math.Inf(1)), Smooth: 1,
		Curved: true, Bounded: true, Centered: true, Shifted: true, LabelMin: -2, LabelSpan: 6}
}

func (f five) Public() oracle.Public { return quadratic(2, 5, f.adj) }
func (f five) Batch(context.Context, sample.Sampler, ...oracle.Query) (oracle.Batch, error) {
	return answers{}, nil
}

func (answers) Loss(q oracle.Loss, _ []float64) (float64, error) {
	mean := 0.0
	for _, y := range fiveY {
		mean += (y + 2) / 5
	}
	return mean, nil
}

func (answers) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	g := make([]float64, 2)
	for i, x := range fiveX {
		s := w[0]*x[0] + w[1]*x[1] + q.Shift - fiveY[i]
		g[0], g[1] = g[0]+s*x[0]/5, g[1]+s*x[1]/5
	}
	return g, nil
}

func (answers) Hess(oracle.Hess, []float64) ([]float64, error) {
	h := make([]float64, 3)
	for _, x := range fiveX {
		h[0], h[1], h[2] = h[0]+x[0]*x[0]/5, h[1]+x[0]*x[1]/5, h[2]+x[1]*x[1]/5
	}
	return h, nil
}

// TestAdaSSP: the solutions of numpy 2.4 (linalg.lstsq for labels less their mean 1.2, without noise; linalg.solve of XᵀX/5 + λI with
// λ from the formula for the noise, and for a regularizer of 0.1).
func TestAdaSSP(t *testing.T) {
	noisy := func(sigma float64) method.AdaSSP {
		return method.AdaSSP{Share: 0.45, Gradient: method.Gradient{Clip: 6, Noise: sigma}}
	}
	for _, c := range []struct {
		m    method.AdaSSP
		adj  privacy.Adjacency
		l2   float64
		want [2]float64
	}{
		{method.AdaSSP{Share: 0.45, Gradient: method.Gradient{Off: true}}, privacy.AddRemove, 0, [2]float64{1.02921986, -1.27300236}},
		{method.AdaSSP{Share: 0.45, Gradient: method.Gradient{Off: true}}, privacy.AddRemove, 0.1, [2]float64{0.88926571, -1.03479182}},
		{noisy(0.2), privacy.AddRemove, 0, [2]float64{1.02921986, -1.27300236}},
		{noisy(2), privacy.AddRemove, 0, [2]float64{0.38125893, -0.38725518}},
		{noisy(2), privacy.ReplaceOne, 0, [2]float64{0.28287343, -0.28211690}},
	} {
		var obj method.Objective
		if c.l2 > 0 {
			obj.Reg = reg.L2{Lambda: c.l2}
		}
		var last method.Step
		for st, err := range c.m.Run(t.Context(), five{adj: c.adj}, obj) {
			if err != nil {
				t.Fatal(err)
			}
			last = st
		}
		if math.Abs(last.Shift-1.2) > 1e-12 || !slices.Equal(last.Offset(last.W), []float64{last.Shift}) {
			t.Errorf("predictions begin at %v", last.Shift)
		}
		for j, w := range last.W {
			if math.Abs(w-c.want[j]) > 1e-7 {
				t.Errorf("%+v, %v, l2 %v: found %v, want %v", c.m, c.adj, c.l2, last.W, c.want)
				break
			}
		}
	}
}

// The budget is split as the fields say, and the noise of the matrix has the sensitivity of R16.
func TestAdaSSPCost(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		terms := method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: adj}, Accountant: account.Best{}}
		pub := quadratic(10, 1000, adj)
		m, err := method.AdaSSP{Share: 0.25}.Configure(pub, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := m.Plan(pub)
		if err != nil {
			t.Fatal(err)
		}
		var parts []float64
		privacy.Walk(plan, func(e privacy.Event) bool {
			if g, ok := e.(privacy.Gaussian); ok {
				parts = append(parts, 1/(g.Sigma*g.Sigma))
			}
			return true
		})
		if len(parts) != 3 {
			t.Fatalf("the plan is %v", plan)
		}
		all := parts[0] + parts[1] + parts[2]
		for i, want := range []float64{0.05, 0.25, 0.7} {
			if math.Abs(parts[i]/all-want) > 1e-9 {
				t.Errorf("%v: part %d takes %v of the budget, want %v", adj, i, parts[i]/all, want)
			}
		}
		loss, err := account.Best{}.Loss(plan, adj)
		if err != nil {
			t.Fatal(err)
		}
		if e := loss.Epsilon(1e-5); e > 1 || e < 0.999 {
			t.Errorf("%v: the plan costs %v", adj, e)
		}
	}
}

func TestAdaSSPRefuses(t *testing.T) {
	pub := quadratic(10, 1000, privacy.AddRemove)
	for _, c := range []struct {
		want string
		set  func(pub *oracle.Public, m *method.AdaSSP, obj *method.Objective, terms *method.Terms)
	}{
		{"model.name: found another loss", func(p *oracle.Public, _ *method.AdaSSP, _ *method.Objective, _ *method.Terms) { p.Classes = 2 }},
		{"model.name: found 5000 parameters", func(p *oracle.Public, _ *method.AdaSSP, _ *method.Objective, _ *method.Terms) {
			p.Dim, p.Curved = 5000, false
		}},
		{"name: found adassp", func(p *oracle.Public, _ *method.AdaSSP, _ *method.Objective, _ *method.Terms) { p.Shifted = false }},
		{"model: found a regularizer", func(_ *oracle.Public, _ *method.AdaSSP, o *method.Objective, _ *method.Terms) {
			o.Reg = reg.L1{Lambda: 1}
		}},
		{"share: found 0.95", func(_ *oracle.Public, m *method.AdaSSP, _ *method.Objective, _ *method.Terms) { m.Share = 0.95 }},
		{"batch: found 7", func(_ *oracle.Public, m *method.AdaSSP, _ *method.Objective, _ *method.Terms) { m.Gradient.Batch = 7 }},
		{"privacy.delta: found 0", func(_ *oracle.Public, _ *method.AdaSSP, _ *method.Objective, t *method.Terms) { t.Budget.Delta = 0 }},
	} {
		pub, m, obj, terms := pub, method.AdaSSP{}, method.Objective{}, methodtest.On
		c.set(&pub, &m, &obj, &terms)
		if _, err := m.Configure(pub, obj, terms); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("found %v, want %q", err, c.want)
		}
	}
}

// TestAutoRegression: the public rule. Statistics where their noise is small and no other field is set; the mean label where its noise is
// short; else predictions begin in the middle.
func TestAutoRegression(t *testing.T) {
	at := func(m method.Auto, rows int, epsilon float64, change func(*oracle.Public)) method.Auto {
		t.Helper()
		pub, terms := quadratic(10, rows, privacy.AddRemove), methodtest.On
		terms.Budget.Epsilon = epsilon
		if change != nil {
			change(&pub)
		}
		got, err := m.Configure(pub, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		if ex, err := method.Explain(m, pub, method.Objective{}, terms); err != nil || ex.Fields[4].Field != "solve" || ex.Fields[4].Why == "" {
			t.Errorf("explained as %+v, %v", ex, err)
		}
		return got.(method.Auto)
	}
	if m := at(method.Auto{}, 1000000, 1, nil); m.Solve != method.SolveStatistics || m.MatrixShare != 0.45 || m.Gradient.Clip != 6 || m.Steps != 1 {
		t.Errorf("many rows: %+v", m)
	}
	m := at(method.Auto{}, 20000, 1, nil)
	if m.Solve != "" || m.LabelNoise == 0 || m.Shift != 0 || m.Raise == 0 {
		t.Errorf("some rows: %+v", m)
	}
	if part := 1 / (m.LabelNoise * m.LabelNoise) / (1/(m.LabelNoise*m.LabelNoise) + float64(m.Steps)/(m.Gradient.Noise*m.Gradient.Noise)); math.Abs(part-0.05) > 1e-3 {
		t.Errorf("the mean label takes %v of the budget", part)
	}
	if m := at(method.Auto{}, 300, 0.05, nil); m.LabelNoise != 0 || m.Shift != 1 || m.Raise != 0 {
		t.Errorf("few rows: %+v", m)
	}
	if m := at(method.Auto{Rate: 1}, 1000000, 1, nil); m.Solve != "" || m.Raise != 0 {
		t.Errorf("with a step size: %+v", m)
	}
	if m := at(method.Auto{Solve: method.SolveStatistics}, 300, 0.05, nil); m.Solve != method.SolveStatistics {
		t.Errorf("as it is told: %+v", m)
	}
	if m := at(method.Auto{}, 20000, 1, func(p *oracle.Public) { p.Shifted, p.LabelMin = false, 0 }); m.LabelNoise != 0 || m.Shift != 0 {
		t.Errorf("labels that cannot be asked for: %+v", m)
	}
	wide := at(method.Auto{}, 20000, 1, func(p *oracle.Public) { p.LabelSpan = 600 })
	scaled := at(method.Auto{}, 20000, 1, func(p *oracle.Public) { p.LabelSpan, p.LabelScale = 600, 0.5 })
	if math.Abs(wide.Gradient.Clip/m.Gradient.Clip-100) > 1e-9 || math.Abs(scaled.Gradient.Clip/m.Gradient.Clip-1) > 1e-9 {
		t.Errorf("clip norms %v, %v for wide bounds, %v with a scale", m.Gradient.Clip, wide.Gradient.Clip, scaled.Gradient.Clip)
	}
	for _, c := range []struct {
		m    method.Auto
		want string
	}{
		{method.Auto{Solve: "exactly"}, "solve: found"},
		{method.Auto{Solve: method.SolveStatistics, Steps: 7}, "solve: found statistics beside"},
	} {
		if _, err := c.m.Configure(quadratic(10, 1000, privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("found %v, want %q", err, c.want)
		}
	}
	if _, err := (method.Auto{Solve: method.SolveStatistics}).Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), "solve: found statistics; choose gradients") {
		t.Errorf("statistics of a logistic model: %v", err)
	}
}
