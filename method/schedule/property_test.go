package schedule_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// drawWeights draws a problem of NAG or MASG with its weights.
func drawWeights(t *rapid.T) []float64 {
	f := schedule.Convex{L: 1, Mu: math.Exp(rapid.Float64Range(-7, -0.01).Draw(t, "ln μ"))}
	steps := rapid.IntRange(1, 60).Draw(t, "steps")
	rate := rapid.Float64Range(0.05, 1).Draw(t, "rate")
	stages := []schedule.Stage{{Steps: steps, Rate: rate}}
	if rapid.Bool().Draw(t, "multistage") {
		stages = schedule.MASG(steps, f, rate, rapid.IntRange(1, 20).Draw(t, "first"), 1)
	}
	_, a := f.Weights(stages)
	return a
}

// drawShares draws parts of total.
func drawShares(t *rapid.T, n int, total float64) []float64 {
	out, sum := make([]float64, n), 0.0
	for i := range out {
		out[i] = math.Exp(rapid.Float64Range(-4, 4).Draw(t, "share"))
		sum += out[i]
	}
	for i := range out {
		out[i] *= total / sum
	}
	return out
}

func equalShares(n int, total float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = total / float64(n)
	}
	return out
}

// TestOptimal: each optimal schedule spends its budget and no more, and no other
// way to share it has a smaller bound: not the same for all, not a random one, not
// the optimum with a little moved from one step to another.
func TestOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawWeights(t)
		n := 10000
		m := rapid.SampledFrom([]int{10, 300, 5000, 10000}).Draw(t, "m")
		budget := math.Exp(rapid.Float64Range(-4, 3).Draw(t, "ln budget"))
		kinds := map[string]struct {
			optimum  func() ([]float64, error)
			variance func(share float64) float64
		}{
			"pure":    {func() ([]float64, error) { return schedule.Pure(a, budget) }, func(e float64) float64 { return 1 / (e * e) }},
			"zcdp":    {func() ([]float64, error) { return schedule.ZCDP(a, budget) }, func(r float64) float64 { return 1 / r }},
			"sampled": {func() ([]float64, error) { return schedule.PureSampled(a, budget, m, n) }, func(e float64) float64 { u := schedule.Inner(e, m, n); return 1 / (u * u) }},
		}
		shares := drawShares(t, len(a), budget)
		from, to := rapid.IntRange(0, len(a)-1).Draw(t, "from"), rapid.IntRange(0, len(a)-1).Draw(t, "to")
		part := rapid.Float64Range(0.001, 0.9).Draw(t, "part")
		for name, k := range kinds {
			best, err := k.optimum()
			if err != nil {
				t.Fatal(err)
			}
			value := func(shares []float64) (sum float64) {
				for i, e := range shares {
					sum += a[i] * k.variance(e)
				}
				return sum
			}
			spent := 0.0
			for _, e := range best {
				spent += e
			}
			if math.Abs(spent-budget) > 1e-12*budget {
				t.Errorf("%s: spends %v of %v", name, spent, budget)
			}
			moved := append([]float64(nil), best...)
			moved[to] += moved[from] * part
			moved[from] -= best[from] * part
			if from == to {
				copy(moved, best)
			}
			for other, s := range map[string][]float64{"uniform": equalShares(len(a), budget), "random": shares, "moved": moved} {
				if value(best) > value(s)*(1+1e-10) {
					t.Errorf("%s: bound %v, the %s schedule has %v", name, value(best), other, value(s))
				}
			}
		}
	})
}

// TestNumeric: it fits, beats uniform and random noise of the same cost, and meets
// the exact optimum where there is one to 1e-3.
func TestNumeric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawWeights(t)
		budget := math.Exp(rapid.Float64Range(-4, 2).Draw(t, "ln budget"))
		rate := rapid.SampledFrom([]float64{0.001, 0.05, 0.5, 1}).Draw(t, "q")
		order := rapid.SampledFrom([]float64{2, 8, 32}).Draw(t, "order")
		cost := func(noise float64) float64 {
			d, err := account.RDP{}.Divergence(privacy.PoissonSampled{Rate: rate, Of: privacy.Gaussian{Sigma: noise}}, privacy.AddRemove, order)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		got, err := schedule.Numeric(a, budget, cost)
		if err != nil {
			t.Fatal(err)
		}
		value := func(noise []float64) (sum, spent float64) {
			for i, s := range noise {
				sum += a[i] * s * s
				spent += cost(s)
			}
			return sum, spent
		}
		v, spent := value(got)
		if spent > budget {
			t.Errorf("costs %v of %v", spent, budget)
		}
		// Others, scaled until they cost what the budget allows.
		fitted := func(shape []float64) float64 {
			lo, hi := -30.0, 30.0
			scaled := make([]float64, len(shape))
			var v float64
			for range 50 {
				mid := (lo + hi) / 2
				for i := range shape {
					scaled[i] = shape[i] * math.Exp(mid)
				}
				sum, spent := value(scaled)
				if spent > budget {
					lo = mid
				} else {
					hi, v = mid, sum
				}
			}
			return v
		}
		if u := fitted(equalShares(len(a), 1)); v > u*(1+1e-3) {
			t.Errorf("bound %v, with the same noise in all steps %v", v, u)
		}
		if r := fitted(drawShares(t, len(a), 1)); v > r*(1+1e-3) {
			t.Errorf("bound %v, with random noise %v", v, r)
		}
		if rate == 1 {
			sum := 0.0
			for _, w := range a {
				sum += math.Sqrt(w)
			}
			if exact := order / 2 * sum * sum / budget; v > exact*(1+1e-3) || v < exact*(1-1e-9) {
				t.Errorf("bound %v, the optimum is %v", v, exact)
			}
		}
	})
}

// TestInner: Inner with m and n exchanged is (3.3), which undoes it.
func TestInner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 1000).Draw(t, "m")
		e := math.Exp(rapid.Float64Range(-20, 4).Draw(t, "ln ε"))
		if got := schedule.Inner(schedule.Inner(e, m, 1000), 1000, m); math.Abs(got-e) > 1e-9*e {
			t.Errorf("m = %d: ε = %v comes back as %v", m, e, got)
		}
	})
}

// run is DP-SHB, NAG or GD on the quadratic Σ λ_i x_i²/2 from (1, …, 1): E F over the
// noise, exactly, by the second moments along each eigenvector.
func run(stages []schedule.Stage, f schedule.Convex, eigen []float64, v []float64, momentum bool) float64 {
	sum := 0.0
	for _, l := range eigen {
		xx, xy, yy := 1.0, 1.0, 1.0
		t := 0
		for _, s := range stages {
			xy, yy = xx, xx // x_{−1} = x_0 at each stage
			b := 0.0
			if momentum {
				b = schedule.Momentum(s.Rate, f.Mu)
			}
			k := 1 - s.Rate*l
			p, q := k*(1+b), -k*b
			for range s.Steps {
				xx, xy, yy = p*p*xx+2*p*q*xy+q*q*yy+s.Rate*s.Rate*v[t], p*xx+q*xy, xx
				t++
			}
		}
		sum += l / 2 * xx
	}
	return sum
}

// TestBoundsHold: the bounds (4.3), (4.8) and that of gradient descent are above
// the exact error on quadratics, with noise that changes from step to step.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := schedule.Convex{L: 1, Mu: math.Exp(rapid.Float64Range(-6, -0.1).Draw(t, "ln μ"))}
		eigen := []float64{f.Mu, rapid.Float64Range(f.Mu, 1).Draw(t, "λ"), 1}
		rate := rapid.Float64Range(0.05, 1).Draw(t, "rate")
		steps := rapid.IntRange(1, 80).Draw(t, "steps")
		stages := []schedule.Stage{{Steps: steps, Rate: rate}}
		if rapid.Bool().Draw(t, "multistage") {
			stages = schedule.MASG(steps, f, rate, rapid.IntRange(1, 20).Draw(t, "first"), 1)
		}
		v := make([]float64, steps)
		for i := range v {
			v[i] = math.Exp(rapid.Float64Range(-12, 2).Draw(t, "ln v"))
		}
		e0 := 0.0
		for _, l := range eigen {
			e0 += l / 2
		}
		a0, a := f.Weights(stages)
		if got, bound := run(stages, f, eigen, v, true), schedule.Error(a0, e0, a, v, len(eigen), 0); got > bound {
			t.Errorf("NAG: error %v, bound %v", got, bound)
		}
		a0, a = f.GradientWeights(steps, rate)
		if got, bound := run([]schedule.Stage{{Steps: steps, Rate: rate}}, f, eigen, v, false), schedule.Error(a0, e0, a, v, len(eigen), 0); got > bound*(1+1e-12) {
			t.Errorf("GD: error %v, bound %v", got, bound)
		}
	})
}

// TestCertificate: the certificate of Proposition 3.4 bounds the exact error of heavy
// ball on quadratics, and at β = 0 it is about gradient descent's.
func TestCertificate(t *testing.T) {
	race.Skip(t) // a second or two of arithmetic, ten under the race detector
	for _, c := range []struct{ mu, rate, beta float64 }{
		{0.1, 1, 0}, {0.1, 0.5, 0.2}, {0.1, 0.2, 0.4}, {0.02, 0.1, 0.5}, {0.5, 1, 0.1},
	} {
		h := schedule.HeavyBall{Convex: schedule.Convex{Mu: c.mu, L: 1}, Rate: c.rate, Beta: c.beta}
		eigen := []float64{c.mu, (c.mu + 1) / 2, 1}
		start2 := []float64{1, 1, 1}
		e0 := (eigen[0] + eigen[1] + eigen[2]) / 2
		for _, v := range []float64{0, 0.1} {
			for _, steps := range []int{5, 400} {
				cert, err := h.Certify(steps, e0, 3, 3*v)
				if err != nil {
					t.Errorf("%+v: %v", h, err)
					continue
				}
				got, bound := h.QuadraticError(steps, eigen, start2, v), h.Error(cert, steps, e0, 3, 3*v)
				if got > bound*(1+1e-9) {
					t.Errorf("%+v after %d steps with v = %v: error %v, bound %v", h, steps, v, got, bound)
				}
				t.Logf("%+v, %d steps, v = %g: ρ = %.4f (spectral %.4f), error %.3g, bound %.3g", h, steps, v, cert.Rho, h.Spectral(), got, bound)
			}
		}
	}
	// Without momentum the rate of gradient descent with α = 1/L is 1 − μ/L or better.
	h := schedule.HeavyBall{Convex: schedule.Convex{Mu: 0.1, L: 1}, Rate: 1}
	cert, err := h.Certify(2000, 1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r2 := cert.Rho * cert.Rho; r2 > 0.9*1.002 || r2 < 0.81*0.999 {
		t.Errorf("gradient descent: ρ² = %v, known is between (1−μ/L)² and 1−μ/L", r2)
	}
	if _, err := (schedule.HeavyBall{Convex: schedule.Convex{Mu: 0.1, L: 1}, Rate: 3, Beta: 0}).Certify(10, 1, 1, 0); err == nil {
		t.Error("a step size of 3/L has a certificate")
	}
}

// TestQuadratic: the exact error comes to rest at ½ Σ λ_i·Var_i, which Stationary
// bounds, and (3.17) holds.
func TestQuadratic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mu := rapid.Float64Range(0.05, 0.9).Draw(t, "μ")
		h := schedule.HeavyBall{Convex: schedule.Convex{Mu: mu, L: 1}, Rate: rapid.Float64Range(0.05, 1).Draw(t, "α"), Beta: rapid.Float64Range(0, 0.9).Draw(t, "β")}
		if rho := h.Spectral(); !(rho < 1) {
			t.Fatalf("ρ = %v for α ≤ 1/L", rho)
		}
		eigen := []float64{mu, 1}
		v := 0.01
		got := h.QuadraticError(20000, eigen, []float64{1, 1}, v)
		want := mu/2*v*h.Stationary(eigen[:1]) + 0.5*v*h.Stationary(eigen[1:])
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("error at rest %v, want %v", got, want)
		}
		for _, steps := range []int{20, 100, 1000} {
			if got, bound := h.QuadraticError(steps, eigen, []float64{1, 1}, v), h.QuadraticBound(steps, eigen, 4, v); got > bound {
				t.Errorf("after %d steps: error %v, bound %v", steps, got, bound)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	for name, f := range map[string]func() error{
		"no weights": func() error { _, err := schedule.Pure(nil, 1); return err },
		"no budget":  func() error { _, err := schedule.ZCDP([]float64{1}, 0); return err },
		"weight 0":   func() error { _, err := schedule.PureSampled([]float64{1, 0}, 1, 1, 10); return err },
		"infinite cost": func() error {
			_, err := schedule.Numeric([]float64{1}, 1, func(float64) float64 { return math.Inf(1) })
			return err
		},
		"no cost": func() error {
			_, err := schedule.Numeric([]float64{1}, 1, func(float64) float64 { return 0 })
			return err
		},
		"μ above L": func() error { return schedule.Convex{Mu: 2, L: 1}.Validate() },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
