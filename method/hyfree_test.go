package method_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
)

// probed keeps where losses are asked, beside the gradients of their batch.
type probed struct {
	*methodtest.Oracle
	at    [][]float64
	grads [][]float64
	loss  func(w []float64) float64 // nil: the problem's
}

func (o *probed) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	_, err := o.Oracle.Batch(ctx, s, queries...)
	return o, err
}

func (o *probed) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	g, err := o.Oracle.Grad(q, w)
	o.grads = append(o.grads, slices.Clone(g))
	return g, err
}

func (o *probed) Loss(q oracle.Loss, w []float64) (float64, error) {
	o.at = append(o.at, slices.Clone(w))
	v, err := o.Oracle.Loss(q, w)
	if o.loss != nil {
		v = o.loss(w)
	}
	return v, err
}

// TestHyFreeProbes: probes are at w + ηp, w and w − ηp, p the gradient of their own batch; the step size becomes b/a of the parabola where
// there is no noise, at most twice and at least a quarter of what it was, and stays where probes say nothing.
func TestHyFreeProbes(t *testing.T) {
	for name, c := range map[string]struct {
		rate, curve, noise float64 // losses are ½·curve·‖w − 1‖²; gradients w − 1
		want               []float64
	}{
		"exact":     {0.4, 2, 0, []float64{0.5, 0.5}},
		"rises":     {0.01, 2, 0, []float64{0.02, 0.04}},
		"falls":     {100, 2, 0, []float64{25, 6.25}},
		"says less": {0.4, 0, 3, []float64{0.4, 0.4}},
	} {
		p := methodtest.Problem{Dim: 2, Smooth: 1, Grad: func(dst, w []float64) { dst[0], dst[1] = c.curve*(w[0]-1), c.curve*(w[1]-1) }}
		p.Value = func(w []float64) float64 { return c.curve / 2 * ((w[0]-1)*(w[0]-1) + (w[1]-1)*(w[1]-1)) }
		o := &probed{Oracle: methodtest.NewOracle(p, 0)}
		m := method.HyFree{Steps: 2, Rate: c.rate, Every: 1, LossBound: 1, ProbeNoise: c.noise, Off: c.noise == 0, Noise: c.noise}
		if c.noise > 0 {
			m.Stability = 1
		}
		var rates []float64
		w := [][]float64{{0, 0}}
		for st, err := range m.Run(t.Context(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			if st.Status == method.Running {
				rates, w = append(rates, st.Rate), append(w, slices.Clone(st.W))
			}
		}
		for k, want := range c.want {
			if math.Abs(rates[k]/want-1) > 1e-9 {
				t.Errorf("%s: step sizes %v, want %v", name, rates, c.want)
			}
			eta := append([]float64{c.rate}, rates...)[k]
			for i, by := range []float64{-eta, 0, eta} {
				for j := range 2 {
					if want := w[k][j] - by*o.grads[k][j]; o.at[3*k+i][j] != want {
						t.Errorf("%s: probe %d of step %d is at %v, want %v", name, i, k, o.at[3*k+i], want)
					}
				}
			}
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		o := &probed{Oracle: methodtest.NewOracle(methodtest.Quadratic(2, 3), 0), loss: func(w []float64) float64 { return v * w[0] }}
		for st, err := range (method.HyFree{Steps: 30, Rate: 0.5, Every: 1, LossBound: 1, ProbeNoise: 1, Noise: 1, Stability: 1}).Run(t.Context(), o, method.Objective{}) {
			if err != nil || !(st.Rate >= 0 && st.Rate <= 0.5*(1<<30)) {
				t.Fatalf("%v: step size %v, %v", v, st.Rate, err)
			}
		}
	}
}

// TestHyFreeCosts: probes raise the noise of gradients by 1 % where all rows are used; a step that probes costs what one Gaussian of all
// four moves costs, on Poisson samples, too, under replace-one with both moves.
func TestHyFreeCosts(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		terms := methodtest.On
		terms.Budget.Adjacency = adj
		pub := facts(adj)
		pub.Presence = true
		set, err := method.HyFree{Steps: 40}.Configure(pub, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		m := set.(method.HyFree)
		sgd, err := method.SGD{Steps: 40}.Configure(pub, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		if least := sgd.(method.SGD).Gradient.Noise; math.Abs(m.Noise/least-1.01) > 1e-3 || m.Every != 5 || math.Abs(m.LossBound-2*math.Ln2) > 1e-12 {
			t.Errorf("%v: noise %v beside %v of sgd, %+v", adj, m.Noise, least, m)
		}

		on := method.HyFree{Steps: 12, Every: 1, Batch: 300, Noise: 1.3, ProbeNoise: 4, LossBound: 1, Rate: 1, Stability: 0.1, Sampling: method.Poisson}
		plan, err := on.Plan(pub)
		if err != nil {
			t.Fatal(err)
		}
		presence, replacement := 1/(1.3*1.3)+3/16., 1/(1.3*1.3)+3/16.
		var one privacy.Event = privacy.Gaussian{Sigma: 1 / math.Sqrt(presence)}
		if adj == privacy.ReplaceOne {
			presence = 1/(2.6*2.6) + 3/16.
			one = privacy.GaussianSum{Presence: 1 / math.Sqrt(presence), Replacement: 1 / math.Sqrt(replacement)}
		}
		want := privacy.Repeated{Count: 12, Of: privacy.PoissonSampled{Rate: 0.03, Of: one}}
		for _, by := range []account.Accountant{account.Best{}, account.RDP{}, account.PLD{}} {
			a, err1 := by.Loss(plan, adj)
			b, err2 := by.Loss(want, adj)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if got, want := a.Epsilon(1e-5), b.Epsilon(1e-5); math.Abs(got/want-1) > 1e-4 {
				t.Errorf("%v, %v: ε = %v, of one Gaussian %v", adj, by, got, want)
			}
		}
	}
	for field, m := range map[string]method.HyFree{
		"every": {Every: -1}, "loss_bound": {LossBound: math.Inf(1)}, "probe_noise": {ProbeNoise: -1}, "stability": {Stability: math.NaN()},
		"noise_multiplier": {ProbeNoise: 1e-3}, "steps": {Steps: -1},
	} {
		if _, err := m.Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
