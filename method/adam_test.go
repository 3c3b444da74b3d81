package method_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// TestAdamByHand: the first steps against figures worked out by hand. With g = w − 1, so g_1 = −1, and β₁ = ½,
// β₂ = ¾, η = 1: m̂_1 = −1, v̂_1 = 1, w_1 = 1. Then g_2 = 0: m_2 = −¼, m̂_2 = −⅓, v_2 = 3/16, v̂_2 = 3/7.
func TestAdamByHand(t *testing.T) {
	p := methodtest.Problem{Dim: 1, Smooth: 1, Grad: func(dst, w []float64) { dst[0] = w[0] - 1 }}
	m := method.Adam{Steps: 2, Gradient: method.Gradient{Off: true}, Rate: 1, Beta1: 0.5, Beta2: 0.75}
	want := []float64{1, 1 + 1/(3*math.Sqrt(3./7))}
	run(t, m, p, 0, func(step int, w []float64) {
		if math.Abs(w[0]-want[step-1]) > 1e-15 {
			t.Errorf("step %d: %v, want %v", step, w[0], want[step-1])
		}
	})
}

// TestAdamCostsWhatSGDCosts: the same plan, and errors that begin with the field.
func TestAdamCostsWhatSGDCosts(t *testing.T) {
	pub := facts(privacy.AddRemove)
	adam, err := method.Adam{Gradient: method.Gradient{Batch: 50}}.Configure(pub, method.Objective{}, methodtest.On)
	if err != nil {
		t.Fatal(err)
	}
	sgd, err := method.SGD{Gradient: method.Gradient{Batch: 50}}.Configure(pub, method.Objective{}, methodtest.On)
	if err != nil {
		t.Fatal(err)
	}
	a, err := adam.Plan(pub)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := sgd.Plan(pub); err != nil || !privacy.Equal(a, s) {
		t.Errorf("adam plans %v, sgd %v (%v)", a, s, err)
	}
	for want, m := range map[string]method.Adam{
		"rate: found -1":     {Rate: -1},
		"beta1: found 1":     {Beta1: 1},
		"beta2: found NaN":   {Beta2: math.NaN()},
		"damping: found +In": {Regularization: math.Inf(1)},
		"steps: found -3":    {Steps: -3},
	} {
		if _, err := m.Configure(pub, method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s …", err, want)
		}
	}
}

// TestAdamCorrection: of gradients that are all noise, of the very variance that is taken off, the root is the floor; of a gradient far above
// the noise it is the gradient's own.
func TestAdamCorrection(t *testing.T) {
	const steps, rate = 400, 0.01
	m := method.Adam{Steps: steps, Schedule: "constant", Gradient: method.Gradient{Clip: 1, Noise: 100}, Rate: rate, Beta1: 1e-300, Beta2: 0.999, Correction: "noise"}
	deviation := 100. / 1000 // of the noise: σ·C/n
	for _, c := range []struct{ gradient, noise, root float64 }{{0, deviation, 0.3 * deviation}, {50 * deviation, 0, 50 * deviation}} {
		p := methodtest.Problem{Dim: 2000, Smooth: 1, Grad: func(dst, _ []float64) {
			for j := range dst {
				dst[j] = c.gradient
			}
		}}
		var norm, moved float64
		for st, err := range m.Run(t.Context(), methodtest.NewOracle(p, c.noise), method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
			if st.Status == method.Running {
				norm, moved = st.GradNorm, st.Moved
			}
		}
		// A tenth of the means of some 400 squares is above 1.09 of what it should be: the floor holds for most coordinates, not for all.
		if got := moved / rate * c.root / norm; !(got > 0.85 && got < 1.001) {
			t.Errorf("gradient %v, noise %v: the last step is %v of what the root %v makes it", c.gradient, c.noise, got, c.root)
		}
	}
	if _, err := (method.Adam{Correction: "bias"}).Configure(facts(privacy.AddRemove), method.Objective{}, methodtest.On); err == nil || !strings.HasPrefix(err.Error(), "correction: found") {
		t.Errorf("an unknown correction: %v", err)
	}
	net := facts(privacy.AddRemove)
	net.Initial = []oracle.Span{{Count: net.Dim, Bound: 1}}
	fitted, err := method.Adam{}.Configure(net, method.Objective{}, methodtest.On)
	if a := fitted.(method.Adam); err != nil || a.Correction != "noise" || a.Schedule != "constant" {
		t.Errorf("of a network: %+v (%v)", fitted, err)
	}
}
