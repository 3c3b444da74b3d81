package method_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/sample"
)

// counted answers counts by a function of the clip norm, and keeps the norms that were asked.
type counted struct {
	*methodtest.Oracle
	share func(bound float64) float64
	norms []float64
}

func (o *counted) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	_, err := o.Oracle.Batch(ctx, s, queries...)
	return o, err
}

func (o *counted) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	o.norms = append(o.norms, q.Clip.(clip.Norm).C)
	return o.Oracle.Grad(q, w)
}

func (o *counted) Loss(q oracle.Loss, w []float64) (float64, error) {
	if bound := w[len(w)-1]; !q.Within || bound != o.norms[len(o.norms)-1] {
		panic("the count is of another norm than the sum")
	}
	_, err := o.Oracle.Loss(q, w)
	return o.share(w[len(w)-1]) - 0.5, err
}

// TestQuantileClipFollows: the clip norm is C·exp(−η_C(b̃ − γ)) of the counts before, it comes to the quantile from far below and above,
// no answer takes it out of its range, and every step is charged the same.
func TestQuantileClipFollows(t *testing.T) {
	m := method.QuantileClip{Steps: 200, Rate: 0.01, Clip: 1, Quantile: 0.7, ClipRate: 0.2, CountNoise: 50, Noise: 2}
	ask := func(t *testing.T, m method.QuantileClip, share func(float64) float64) []float64 {
		o := &counted{Oracle: methodtest.NewOracle(methodtest.Quadratic(3, 5), 0), share: share}
		for _, err := range m.Run(t.Context(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range o.Record {
			if !privacy.Equal(r.Event, privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Gaussian{Sigma: 50}}) {
				t.Fatalf("a step is charged %v", r.Event)
			}
		}
		return o.norms
	}
	// norms are even on [0, 10]
	for _, start := range []float64{1e-4, 0.1, 1000} {
		m.Clip = start
		uniform := func(c float64) float64 { return math.Min(1, c/10) }
		norms := ask(t, m, uniform)
		for k := 1; k < len(norms); k++ {
			if want := norms[k-1] * math.Exp(-0.2*(uniform(norms[k-1])-0.7)); math.Abs(norms[k]/want-1) > 1e-12 {
				t.Fatalf("norm %d is %v after %v, want %v", k, norms[k], norms[k-1], want)
			}
		}
		if last := norms[len(norms)-1]; norms[0] != start || math.Abs(last-7) > 0.01 {
			t.Errorf("from %v the clip norm comes to %v in %d steps", norms[0], last, len(norms))
		}
	}
	m.Clip = 3
	for _, share := range []float64{-1e300, 1e300, math.NaN()} {
		for _, c := range ask(t, m, func(float64) float64 { return share }) {
			if !(c >= 3e-9 && c <= 3e9) {
				t.Fatalf("share %v: clip norm %v", share, c)
			}
		}
	}
}

// TestQuantileClipCosts: a run costs what one of sgd costs whose noise multiplier is Andrew's z, under both relations and all samplers that
// the method has, by all accountants with a theorem; and its default share of the noise is that of the paper.
func TestQuantileClipCosts(t *testing.T) {
	for _, c := range []struct {
		adj      privacy.Adjacency
		batch    int
		sampling string
		presence bool
		size     float64
	}{
		{privacy.AddRemove, 0, "", false, 10000}, {privacy.AddRemove, 200, "", false, 200}, {privacy.AddRemove, 20, "", false, 20},
		{privacy.ReplaceOne, 0, "", true, 10000}, {privacy.ReplaceOne, 200, method.Fixed, true, 200}, {privacy.ReplaceOne, 200, method.Poisson, true, 200},
		{privacy.ReplaceOne, 200, method.Poisson, false, 200},
	} {
		terms := methodtest.On
		terms.Budget.Adjacency = c.adj
		pub := facts(c.adj)
		pub.Presence = c.presence
		set, err := method.QuantileClip{Steps: 40, Batch: c.batch, Sampling: c.sampling}.Configure(pub, method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		m := set.(method.QuantileClip)
		if want := math.Max(c.size/10, 5*m.Noise); m.CountNoise != want {
			t.Errorf("%+v: count noise %v, want %v", c, m.CountNoise, want)
		}
		// z of Theorem 1, with 2σ_b for CountNoise
		z := 1 / math.Sqrt(1/(m.Noise*m.Noise)+1/(m.CountNoise*m.CountNoise))
		sgd, err := method.SGD{Steps: 40, Gradient: method.Gradient{Batch: c.batch, Sampling: c.sampling, Noise: z}}.Configure(pub, method.Objective{}, terms)
		if err != nil {
			t.Errorf("%+v: sgd of z = %v: %v", c, z, err)
			continue
		}
		a, err1 := m.Plan(pub)
		b, err2 := sgd.Plan(pub)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, by := range []account.Accountant{account.Best{}, account.RDP{}, account.PLD{}} {
			x, err1 := by.Loss(a, c.adj)
			y, err2 := by.Loss(b, c.adj)
			if err1 != nil || err2 != nil {
				t.Fatal(by, err1, err2)
			}
			if got, want := x.Epsilon(1e-5), y.Epsilon(1e-5); math.Abs(got/want-1) > 1e-4 || by == (account.Best{}) && got > 1 {
				t.Errorf("%+v, %v: ε = %v, of sgd with z = %v %v", c, by, got, z, want)
			}
		}
	}
	for field, m := range map[string]method.QuantileClip{
		"quantile": {Quantile: 1}, "clip_rate": {ClipRate: -1}, "count_noise": {CountNoise: -1}, "clip": {Clip: math.Inf(1)},
		"noise_multiplier": {CountNoise: 1e-3}, // the count alone costs more than the budget
	} {
		if _, err := m.Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
