package method_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
)

// smooth are facts of a loss that newton takes.
func smooth(adj privacy.Adjacency) oracle.Public {
	return oracle.Public{Dim: 2, Rows: 100, Classes: 2, Adjacency: adj, NormBound: 1, Lipschitz: 1, Smooth: 0.25, HessLipschitz: 0.1, Curved: true}
}

// On a quadratic one step of size 1 is enough, whatever its condition; and one of size ½ goes half of the way.
func TestNewtonByHand(t *testing.T) {
	p := methodtest.Quadratic(5, 1e6)
	for _, rate := range []float64{1, 0.5} {
		run(t, method.Newton{Steps: 1, Hessians: 1, Rate: rate, Gradient: method.Gradient{Off: true}}, p, 0, func(_ int, w []float64) {
			for _, v := range w {
				if math.Abs(v-rate) > 1e-6 {
					t.Errorf("after a step of size %v: %v", rate, w)
				}
			}
		})
	}
}

// known releases what it is told, for one batch.
type known struct {
	oracle.Batch
	grad, hess []float64
	paid       []oracle.Query
}

func (k *known) Public() oracle.Public { return smooth(privacy.AddRemove) }

func (k *known) Grad(oracle.Grad, []float64) ([]float64, error) { return k.grad, nil }
func (k *known) Hess(oracle.Hess, []float64) ([]float64, error) { return k.hess, nil }

// knows sells one batch.
type knows struct{ *known }

func (k knows) Batch(_ context.Context, _ sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	if k.paid != nil {
		return nil, privacy.ErrExhausted
	}
	k.paid = pay
	return k.known, nil
}

// What is released of [[2 1][1 2]] has eigenvalues 3 and 1 along (1, 1) and (1, −1). Those below the floor count as the
// floor, and the regularizer's curvature is added before, times the step size, which its part of a step takes back.
func TestNewtonFloor(t *testing.T) {
	for _, c := range []struct {
		floor, rate, lambda float64
		want                []float64 // −η·M⁻¹g for g = (3, 1): along (1, 1) 2, along (1, −1) 1
	}{
		{0.5, 1, 0, []float64{-2./3 - 1, -2./3 + 1}},
		{2, 1, 0, []float64{-2./3 - 0.5, -2./3 + 0.5}},
		{5, 2, 0, []float64{-0.8 - 0.4, -0.8 + 0.4}},
		{0.5, 2, 1.5, []float64{-4./6 - 2./4, -4./6 + 2./4}},
	} {
		k := knows{&known{grad: []float64{3, 1}, hess: []float64{2, 1, 2}}}
		m := method.Newton{Steps: 2, Hessians: 1, Share: 0.5, Floor: c.floor, Rate: c.rate, Gradient: method.Gradient{Clip: 1, Noise: 1}}
		var ends []method.Step
		for st, err := range m.Run(context.Background(), k, method.Objective{Reg: reg.L2{Lambda: c.lambda}}) {
			if err != nil {
				t.Fatal(err)
			}
			st.W = slices.Clone(st.W)
			ends = append(ends, st)
		}
		w := ends[0].W
		if len(ends) != 2 || ends[1].Status != method.OutOfBudget || math.Abs(w[0]-c.want[0]) > 1e-12 || math.Abs(w[1]-c.want[1]) > 1e-12 {
			t.Errorf("%+v: %v after %d steps", c, w, len(ends))
		}
		if len(k.paid) != 2 {
			t.Errorf("paid for %v", k.paid)
		}
	}
}

// The parts of the plan cost what the share says, the Hessians are spread evenly, and the noise of a Hessian is
// over the sensitivity of rank one.
func TestNewtonPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		hessians := rapid.IntRange(1, steps).Draw(t, "hessians")
		share := rapid.Float64Range(0.01, 0.99).Draw(t, "share")
		terms := methodtest.On
		terms.Accountant = account.ZCDP{}
		fitted, err := method.Newton{Steps: steps, Hessians: hessians, Share: share}.Configure(smooth(privacy.AddRemove), method.Objective{}, terms)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := fitted.Plan(smooth(privacy.AddRemove))
		if err != nil {
			t.Fatal(err)
		}
		sigma := method.NoiseMultiplier(fitted)
		var grads, hess int
		var rho float64 // of the Hessians
		var walk func(e privacy.Event, times int)
		walk = func(e privacy.Event, times int) {
			switch e := e.(type) {
			case privacy.Composed:
				if len(e) == 2 && times == 1 {
					if h, ok := e[0].(privacy.Gaussian); ok { // a Hessian, then a gradient
						hess++
						rho += 1 / (2 * h.Sigma * h.Sigma)
						walk(e[1], 1)
						return
					}
				}
				for _, part := range e {
					walk(part, times)
				}
			case privacy.Repeated:
				walk(e.Of, times*e.Count)
			case privacy.Gaussian:
				if e.Sigma != sigma {
					t.Fatalf("a gradient with noise %v, the method says %v", e.Sigma, sigma)
				}
				grads += times
			}
		}
		walk(privacy.Composed{plan, privacy.Composed{}}, 1)
		if grads != steps || hess != hessians {
			t.Fatalf("%d gradients and %d Hessians, want %d and %d: %v", grads, hess, steps, hessians, plan)
		}
		all := rho + float64(steps)/(2*sigma*sigma)
		if math.Abs(rho/all-share) > 1e-9 {
			t.Fatalf("the Hessians cost %v of all, want %v", rho/all, share)
		}
	})
}

// The floor is the size of the Hessian's noise: under replace-one √2 times as much for the same noise multiplier.
func TestNewtonFloorFollowsNoise(t *testing.T) {
	floor := func(adj privacy.Adjacency) float64 {
		fitted, err := method.Newton{Share: 0.15, Gradient: method.Gradient{Noise: 30}}.Configure(smooth(adj), method.Objective{}, methodtest.On)
		if err != nil {
			t.Fatal(err)
		}
		return fitted.(method.Newton).Floor
	}
	want := 30 * math.Sqrt(0.85/(32*0.15)) * 0.25 / 100 * 2
	if got := floor(privacy.AddRemove); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("floor %v, want %v", got, want)
	}
	if got := floor(privacy.ReplaceOne); math.Abs(got/want/math.Sqrt2-1) > 1e-12 {
		t.Errorf("floor %v under replace-one, want √2 × %v", got, want)
	}
}

// What newton refuses, and by which field.
func TestNewtonRefuses(t *testing.T) {
	kinks := smooth(privacy.AddRemove)
	kinks.HessLipschitz = oracle.Bound(math.Inf(1))
	flat := smooth(privacy.AddRemove)
	flat.Curved = false
	for _, c := range []struct {
		m     method.Newton
		pub   oracle.Public
		terms method.Terms
		field string
	}{
		{method.Newton{}, kinks, methodtest.On, "hessians: "},
		{method.Newton{}, flat, methodtest.On, "hessians: "},
		{method.Newton{Steps: -1}, smooth(privacy.AddRemove), methodtest.On, "steps: "},
		{method.Newton{Steps: 3, Hessians: 4}, smooth(privacy.AddRemove), methodtest.On, "hessians: "},
		{method.Newton{Share: 1}, smooth(privacy.AddRemove), methodtest.On, "share: "},
		{method.Newton{Floor: -1}, smooth(privacy.AddRemove), methodtest.On, "floor: "},
		{method.Newton{Rate: math.NaN(), Steps: 1}, smooth(privacy.AddRemove), methodtest.On, "rate: "},
		{method.Newton{Gradient: method.Gradient{Clip: math.Inf(1)}}, smooth(privacy.AddRemove), methodtest.On, "clip: "},
		{method.Newton{Gradient: method.Gradient{Noise: 1}}, smooth(privacy.AddRemove), methodtest.Off, "noise_multiplier: "},
		{method.Newton{}, smooth(privacy.AddRemove), methodtest.Pure, "privacy.delta: "},
		{method.Newton{Share: 1e-14, Gradient: method.Gradient{Noise: 1}}, smooth(privacy.AddRemove), methodtest.On, "noise_multiplier: "},
	} {
		if _, err := c.m.Configure(c.pub, method.Objective{}, c.terms); err == nil || !strings.HasPrefix(err.Error(), c.field) {
			t.Errorf("%+v: %v; want an error that begins with %q", c.m, err, c.field)
		}
	}
}
