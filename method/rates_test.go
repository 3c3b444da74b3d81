package method_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/privacy"
)

// scheduled are the methods that have a schedule, with a step size of 1.
func scheduled(steps int, text string) map[string]method.Method {
	s := method.SGD{Steps: steps, Rate: 1, Schedule: text}
	return map[string]method.Method{"sgd": s, "momentum": method.Momentum{Steps: steps, Rate: 1, Schedule: text}, "adam": method.Adam{Steps: steps, Schedule: text, Rate: 1}}
}

// ratesOf are the step sizes that a run takes.
func ratesOf(m method.Method) (all []float64, err error) {
	o := methodtest.NewOracle(methodtest.Quadratic(1, 1), 0)
	fitted, err := m.Configure(o.Facts, method.Objective{}, methodtest.Off)
	if err != nil {
		return nil, err
	}
	for st, err := range fitted.Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			return nil, err
		}
		if st.Status == method.Running {
			all = append(all, st.Rate)
		}
	}
	return all, nil
}

// TestSchedules: each has the shape that it is declared to have, in every method.
func TestSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(3, 40).Draw(t, "steps")
		warm := rapid.IntRange(0, steps-1).Draw(t, "warm")
		f := rapid.Float64Range(0.01, 1).Draw(t, "to")
		s := rapid.Float64Range(0.5, 20).Draw(t, "steady")
		n := float64(steps - warm)
		want := map[string]func(u float64) float64{
			"constant":                     func(float64) float64 { return 1 },
			"cosine":                       func(u float64) float64 { return math.Pow(math.Cos(math.Pi*u/n/2), 2) },
			"linear":                       func(u float64) float64 { return (n - u) / n },
			"sqrt":                         func(u float64) float64 { return 1 / math.Sqrt(u+1) },
			"inverse":                      func(u float64) float64 { return 1 / (u + 1) },
			fmt.Sprintf("cosine to %v", f): func(u float64) float64 { return f + (1-f)*math.Pow(math.Cos(math.Pi*u/n/2), 2) },
			fmt.Sprintf("linear to %v", f): func(u float64) float64 { return ((n-u)*1 + u*f) / n },
			fmt.Sprintf("sqrt %v", s):      func(u float64) float64 { return math.Sqrt(math.Min(1, s/(u+1))) },
			fmt.Sprintf("inverse %v", s):   func(u float64) float64 { return math.Min(1, s/(u+1)) },
		}
		for text, part := range want {
			if warm > 0 {
				text = fmt.Sprintf("warmup %d %s", warm, text)
			}
			for name, m := range scheduled(steps, text) {
				got, err := ratesOf(m)
				if err != nil || len(got) != steps {
					t.Fatalf("%s, %q: %d steps of %d, %v", name, text, len(got), steps, err)
				}
				for k, rate := range got {
					want := float64(k+1) / float64(warm+1)
					if k >= warm {
						want = part(float64(k - warm))
					}
					if math.Abs(rate-want) > 1e-12 {
						t.Fatalf("%s, %q: step %d of %d has the part %v; want %v", name, text, k+1, steps, rate, want)
					}
				}
			}
		}
	})
}

// TestScheduleErrors: what is no schedule is refused by the field's name; without one sgd and momentum are constant and adam
// falls as 1/t in the end.
func TestScheduleErrors(t *testing.T) {
	for _, text := range []string{"warmup", "warmup 3", "warmup 0 cosine", "warmup 2.5 cosine", "warmup 9 cosine", "warmup -1 linear", "cosin", "cosine 0.1", "cosine to 2",
		"cosine to", "linear to NaN", "constant 3", "sqrt 0", "sqrt -1", "inverse Inf", "inverse 3 4", "cosine to 0.1 warmup 3"} {
		for name, m := range scheduled(9, text) {
			if _, err := m.Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.Off); err == nil || !strings.HasPrefix(err.Error(), "schedule: found ") {
				t.Errorf("%s, %q: %v", name, text, err)
			}
		}
	}
	for name, m := range scheduled(300, "") {
		last := 1.0
		if name == "adam" {
			last = 1. / 3
		}
		if got, err := ratesOf(m); err != nil || got[99] != 1 || math.Abs(got[299]-last) > 1e-12 {
			t.Errorf("%s: by default the parts of step 100 and 300 are %v and %v (%v)", name, got[99], got[299], err)
		}
	}
}
