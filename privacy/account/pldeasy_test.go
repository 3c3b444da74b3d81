package account

import (
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// TestPLDEasy: a direction is left out by Chernoff's bound, no answer changes by it, and its bound is above what the
// direction certainly costs.
func TestPLDEasy(t *testing.T) {
	race.Skip(t)
	sampled := func(count int, rate float64, of privacy.Event) privacy.Event {
		return privacy.Repeated{Count: count, Of: privacy.PoissonSampled{Rate: rate, Of: of}}
	}
	left := 0
	for _, e := range []privacy.Event{
		sampled(1, 0.01, privacy.Gaussian{Sigma: 1.4}),
		sampled(1272, 0.00786, privacy.Gaussian{Sigma: 1.42}),
		sampled(300, 0.1, privacy.Gaussian{Sigma: 8}),
		sampled(5, 0.5, privacy.Gaussian{Sigma: 0.5}),
		sampled(20, 0.02, privacy.Laplace{Scale: 0.8}),
		sampled(50, 0.05, privacy.PureDP{Epsilon: 1}),
		privacy.Composed{sampled(500, 0.01, privacy.Gaussian{Sigma: 1}), privacy.Gaussian{Sigma: 20}},
		sampled(10, 0.05, privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Laplace{Scale: 2}}),
	} {
		loss, err := PLD{}.loss(e, privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		l := loss.(*pldLoss)
		for _, goal := range []pldGoal{goalAt(1e-6), {epsilon: 0.5, atEpsilon: true}} {
			whole, answer := l.whole(goal)
			both := pldWhole{all: l.compose(goal, false)}
			if want, _ := both.answer(goal); answer != want {
				t.Errorf("%v: with %d directions %v, with both %v", e, len(whole.all), answer, want)
			}
			if whole.easy == nil {
				continue
			}
			left++
			epsilon := answer
			if goal.atEpsilon {
				epsilon = goal.epsilon
			}
			delta, sharp := whole.delta(epsilon)
			if !sharp {
				t.Errorf("%v: left out although its bound raises the answer", e)
			}
			for i, c := range l.compose(goal, true) {
				if least := c.lowerDelta(epsilon); least > delta {
					t.Errorf("%v: δ = %v at ε = %v, but direction %d costs at least %v", e, delta, epsilon, i, least)
				}
			}
		}
	}
	if left < 8 {
		t.Errorf("a direction was left out %d times only", left)
	}
}
