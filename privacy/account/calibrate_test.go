package account

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

func TestCalibrateIsSafeAndTight(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	events := map[string]func(t *rapid.T) (Accountant, func(float64) privacy.Event){
		"sampled Gaussian": func(t *rapid.T) (Accountant, func(float64) privacy.Event) {
			q, n := logRange(1e-5, 1).Draw(t, "q"), rapid.IntRange(1, 1e5).Draw(t, "steps")
			return Best{}, func(s float64) privacy.Event { return sampled(q, s, n) }
		},
		"Gaussian": func(t *rapid.T) (Accountant, func(float64) privacy.Event) {
			a := []Accountant{GDP{}, ZCDP{}, RDP{}, Best{}}[rapid.IntRange(0, 3).Draw(t, "accountant")]
			return a, func(s float64) privacy.Event { return privacy.Gaussian{Sigma: s} }
		},
		"schedule": func(t *rapid.T) (Accountant, func(float64) privacy.Event) {
			noise := rapid.SliceOfN(logRange(0.1, 10), 1, 20).Draw(t, "schedule")
			return RDP{}, func(factor float64) privacy.Event {
				steps := make(privacy.Composed, len(noise))
				for i, s := range noise {
					steps[i] = privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: s * factor}}
				}
				return steps
			}
		},
		"Laplace": func(t *rapid.T) (Accountant, func(float64) privacy.Event) {
			n := rapid.IntRange(1, 1e7).Draw(t, "steps")
			return Pure{}, func(b float64) privacy.Event {
				return privacy.Repeated{Count: n, Of: privacy.Laplace{Scale: b}}
			}
		},
	}
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			draws := 0
			rapid.Check(t, func(t *rapid.T) {
				if draws++; name == "sampled Gaussian" && (draws > 10 && race.Enabled || draws > 30) {
					return
				}
				a, of := event(t)
				b := budget(logRange(0.01, 100).Draw(t, "epsilon"), logRange(1e-10, 1e-2).Draw(t, "delta"))
				noise, err := Calibrate(a, b, of)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := NewPlan(of(noise), a, b); err != nil {
					t.Fatalf("the noise %v is refused: %v", noise, err)
				}
				less, _ := a.Loss(of(noise*(1-2e-6)), b.Adjacency)
				bracket := 0.0
				if name == "sampled Gaussian" { // of PLD's grid, with few steps
					bracket = 1e-4
				}
				if eps := less.Epsilon(b.Delta); eps < b.Epsilon*(1-bracket) {
					t.Fatalf("less noise than %v is enough: ε = %.17g of %.17g", noise, eps, b.Epsilon)
				}
			})
		})
	}
}

func TestCalibrateRefuses(t *testing.T) {
	gauss := func(s float64) privacy.Event { return privacy.Gaussian{Sigma: s} }
	if _, err := Calibrate(RDP{}, budget(1, 1e-5), func(float64) privacy.Event { return privacy.Gaussian{Sigma: 1} }); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("noise that does nothing: %v", err)
	}
	if _, err := Calibrate(GDP{}, budget(1, 0), gauss); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("δ = 0: %v", err)
	}
	var unsupported *UnsupportedError
	b := budget(1, 1e-5)
	if _, err := Calibrate(Best{}, b, func(s float64) privacy.Event {
		return privacy.FixedSampled{M: 1, N: 10, Of: privacy.Gaussian{Sigma: s}}
	}); !errors.As(err, &unsupported) {
		t.Errorf("no theorem: %v", err)
	}
	if _, err := Calibrate(RDP{}, privacy.Budget{}, gauss); err == nil {
		t.Error("no budget, no error")
	}
	if _, err := Calibrate(RDP{}, budget(1, 1e-5), nil); err == nil {
		t.Error("no event, no error")
	}
	for _, top := range []float64{0, -1, math.Inf(1), math.NaN()} {
		if _, err := CalibrateMost(RDP{}, budget(1, 1e-5), top, gauss); err == nil {
			t.Errorf("top %v, no error", top)
		}
	}
	count := func(n int) privacy.Event { return sampled(0.1, 1, n) }
	if _, err := CalibrateCount(RDP{}, budget(1, 1e-5), 0, count); err == nil {
		t.Error("top 0, no error")
	}
	if _, err := CalibrateCount(nil, budget(1, 1e-5), 1, count); err == nil {
		t.Error("no accountant, no error")
	}
	if n, err := CalibrateCount(RDP{}, budget(0.01, 1e-5), 10, func(int) privacy.Event { return privacy.Gaussian{Sigma: 1} }); n != 0 || !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("steps that cost too much: %d, %v", n, err)
	}
	if x, err := CalibrateMost(RDP{}, budget(1, 1e-5), 0.5, func(q float64) privacy.Event { return sampled(q, 100, 1) }); x != 0.5 || err != nil {
		t.Errorf("all that is allowed fits: %v, %v", x, err)
	}
	noise, err := Calibrate(RDP{}, budget(1, 1e-5), func(float64) privacy.Event { return privacy.Composed{} })
	if err != nil || noise != leastNoise {
		t.Errorf("nothing to pay: %v, %v", noise, err)
	}
}

// A counted accountant counts what it is asked.
type counted struct {
	Accountant
	calls *int
}

func (c counted) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	*c.calls++
	return c.Accountant.Loss(e, adj)
}

// TestCalibrateAsksSeldom: an accountant may take a tenth of a second.
func TestCalibrateAsksSeldom(t *testing.T) {
	for _, a := range []Accountant{RDP{}, GDP{}} {
		for _, epsilon := range []float64{0.01, 0.1, 1, 10, 100} {
			for _, q := range []float64{1e-4, 0.01, 0.3, 1} {
				step := func(q, sigma float64) privacy.Event {
					if a == (GDP{}) {
						return privacy.Gaussian{Sigma: sigma / q}
					}
					return privacy.PoissonSampled{Rate: q, Of: privacy.Gaussian{Sigma: sigma}}
				}
				most := 12
				if epsilon <= 0.1 {
					most = 30 // where δ alone is nearly the budget, costs jump
				}
				for name, calibrate := range map[string]func(a Accountant) error{
					"noise": func(a Accountant) error {
						_, err := Calibrate(a, budget(epsilon, 1e-5), func(s float64) privacy.Event { return privacy.Repeated{Count: 1000, Of: step(q, s)} })
						return err
					},
					"rate": func(a Accountant) error {
						_, err := CalibrateMost(a, budget(epsilon, 1e-5), 1, func(r float64) privacy.Event { return privacy.Repeated{Count: 1000, Of: step(r, 2)} })
						return err
					},
					"steps": func(a Accountant) error {
						_, err := CalibrateCount(a, budget(epsilon, 1e-5), 1e7, func(n int) privacy.Event { return privacy.Repeated{Count: n, Of: step(q, 2)} })
						return err
					},
				} {
					calls := 0
					if err := calibrate(counted{a, &calls}); err != nil && !errors.Is(err, privacy.ErrExhausted) {
						t.Fatal(err)
					}
					if calls > most {
						t.Errorf("%v, ε = %v, rate %v: the %s took %d calls", a, epsilon, q, name, calls)
					}
				}
			}
		}
	}
}

func TestCalibrateMostIsSafeAndTight(t *testing.T) {
	race.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		sigma, n := logRange(0.5, 20).Draw(t, "sigma"), rapid.IntRange(1, 1e4).Draw(t, "steps")
		top := logRange(0.01, 1).Draw(t, "top")
		b := budget(logRange(0.1, 30).Draw(t, "epsilon"), logRange(1e-9, 1e-3).Draw(t, "delta"))
		rate := func(q float64) privacy.Event { return sampled(q, sigma, n) }
		clip := func(c float64) privacy.Event { return sampled(0.05, sigma/c, n) } // noise fixed, clip bound c
		for name, of := range map[string]func(float64) privacy.Event{"rate": rate, "clip": clip} {
			x, err := CalibrateMost(RDP{}, b, top, of)
			if errors.Is(err, privacy.ErrExhausted) {
				if _, err := NewPlan(of(top*1e-29), RDP{}, b); err == nil {
					t.Fatalf("%s: something small fits", name)
				}
				continue
			}
			if err != nil || x > top {
				t.Fatalf("%s: %v of %v, %v", name, x, top, err)
			}
			if _, err := NewPlan(of(x), RDP{}, b); err != nil {
				t.Fatalf("%s: %v is refused: %v", name, x, err)
			}
			if more := x * (1 + 2e-6); more <= top {
				if l, _ := (RDP{}).Loss(of(more), b.Adjacency); l.Epsilon(b.Delta) <= b.Epsilon {
					t.Fatalf("%s: more than %v fits", name, x)
				}
			}
		}
	})
}

func TestCalibrateCountIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, sigma := logRange(1e-4, 1).Draw(t, "q"), logRange(0.5, 50).Draw(t, "sigma")
		top := rapid.IntRange(1, 1e7).Draw(t, "top")
		b := budget(logRange(0.1, 30).Draw(t, "epsilon"), logRange(1e-9, 1e-3).Draw(t, "delta"))
		fits := func(n int) bool {
			l, err := RDP{}.Loss(sampled(q, sigma, n), b.Adjacency)
			return err == nil && l.Epsilon(b.Delta) <= b.Epsilon
		}
		n, err := CalibrateCount(RDP{}, b, top, func(n int) privacy.Event { return sampled(q, sigma, n) })
		switch {
		case errors.Is(err, privacy.ErrExhausted):
			if fits(1) {
				t.Fatal("one fits")
			}
		case err != nil:
			t.Fatal(err)
		case n < 1 || n > top || !fits(n) || n < top && fits(n+1):
			t.Fatalf("found %d of %d: fits %v, one more %v", n, top, fits(n), fits(n+1))
		}
	})
}

// Where no noise is enough because δ is 0, the error says so; more noise or ε would not help.
func TestCalibrateWithoutDelta(t *testing.T) {
	b := privacy.Budget{Epsilon: 1, Adjacency: privacy.AddRemove}
	for _, of := range []func(noise float64) privacy.Event{
		func(noise float64) privacy.Event { return privacy.Gaussian{Sigma: noise} },
		func(noise float64) privacy.Event {
			return privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: noise}}
		},
	} {
		if _, err := Calibrate(Best{}, b, of); !errors.Is(err, privacy.ErrExhausted) || !strings.Contains(err.Error(), "has no guarantee without a δ above 0") {
			t.Errorf("%v", err)
		}
	}
}
