package method_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/privacy"
)

// TestMomentumIsHeavyBall: with weight 1−β on a gradient, a step size of η is P1's heavy ball of η(1−β), the step that auto takes; with
// β near 0 it is sgd.
func TestMomentumIsHeavyBall(t *testing.T) {
	p := methodtest.Quadratic(5, 30)
	var want [][]float64
	run(t, method.Auto{Steps: 200, Rate: 0.6 * (1 - 0.8), Momentum: 0.8, Gradient: method.Gradient{Off: true}}, p, 0.5, func(_ int, w []float64) { want = append(want, append([]float64(nil), w...)) })
	same := func(m method.Method) {
		steps := 0
		run(t, m, p, 0.5, func(step int, w []float64) {
			steps = step
			for j, v := range w {
				if math.Abs(v-want[step-1][j]) > 1e-12 {
					t.Fatalf("step %d: %v, want %v", step, w, want[step-1])
				}
			}
		})
		if steps != len(want) {
			t.Errorf("%d steps of %d", steps, len(want))
		}
	}
	same(method.Momentum{Steps: 200, Rate: 0.6, Gradient: method.Gradient{Off: true}, Beta: 0.8})
	want = nil
	run(t, method.SGD{Steps: 30, Rate: 0.6, Gradient: method.Gradient{Off: true}}, p, 0.5, func(_ int, w []float64) { want = append(want, append([]float64(nil), w...)) })
	same(method.Momentum{Steps: 30, Rate: 0.6, Gradient: method.Gradient{Off: true}, Beta: 1e-300, Nesterov: true})
}

// TestNesterovByHand: g = w − 1, β = ½, η = 1. g_0 = −1, u_1 = −½, w_1 = 0 + ½·½ + ½·1 = ¾; g_1 = −¼, u_2 = −¼ − ⅛ = −⅜, w_2 = ¾ + 3/16 + ⅛.
func TestNesterovByHand(t *testing.T) {
	p := methodtest.Problem{Dim: 1, Smooth: 1, Grad: func(dst, w []float64) { dst[0] = w[0] - 1 }}
	want := []float64{0.75, 0.75 + 3./16 + 1./8}
	run(t, method.Momentum{Steps: 2, Rate: 1, Gradient: method.Gradient{Off: true}, Beta: 0.5, Nesterov: true}, p, 0, func(step int, w []float64) {
		if w[0] != want[step-1] {
			t.Errorf("step %d: %v, want %v", step, w[0], want[step-1])
		}
	})
}

// TestMomentumCostsWhatSGDCosts: the same plan, whatever follows the gradients.
func TestMomentumCostsWhatSGDCosts(t *testing.T) {
	pub := facts(privacy.AddRemove)
	base := method.SGD{Steps: 30, Gradient: method.Gradient{Batch: 50}}
	scheduled := base
	scheduled.Schedule = "warmup 5 cosine"
	var plans []privacy.Event
	for _, m := range []method.Method{base, scheduled, method.Momentum{Steps: 30, Gradient: base.Gradient}, method.Momentum{Steps: 30, Gradient: base.Gradient, Schedule: scheduled.Schedule, Beta: 0.5, Nesterov: true}, method.AdaGrad{Steps: 30, Gradient: base.Gradient}} {
		fitted, err := m.Configure(pub, method.Objective{}, methodtest.On)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := fitted.Plan(pub)
		if err != nil {
			t.Fatal(err)
		}
		if plans = append(plans, plan); !privacy.Equal(plan, plans[0]) {
			t.Errorf("%+v plans %v, sgd %v", m, plan, plans[0])
		}
	}
	for _, beta := range []float64{-0.1, 1, math.NaN()} {
		if _, err := (method.Momentum{Beta: beta}).Configure(pub, method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), "momentum: found") {
			t.Errorf("momentum %v: %v", beta, err)
		}
	}
}
