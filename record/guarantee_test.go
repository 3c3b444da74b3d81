package record

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// The noise shown is the plan's, not the one that a file names.
func TestTerms(t *testing.T) {
	one := privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Gaussian{Sigma: 3}}}
	for _, c := range []struct {
		e               privacy.Event
		noise, sampling string
	}{
		{privacy.Repeated{Count: 3, Of: privacy.Gaussian{Sigma: 1.5}}, "1.5", "none: every step uses all records"},
		{privacy.Laplace{Scale: 4}, "Laplace, 4", "none: every step uses all records"},
		{one, "differs from step to step: see “What was released”", "Poisson: each record enters a step with probability 0.1"},
		{privacy.Composed{}, "none", "none"},
	} {
		if noise, sampling := terms(c.e); noise != c.noise || sampling != c.sampling {
			t.Errorf("%v: %q, %q", c.e, noise, sampling)
		}
	}
}

func TestPosteriorAndGuess(t *testing.T) {
	for _, epsilon := range []float64{0.01, 1, 8} {
		if got, want := posterior(0.5, epsilon), math.Exp(epsilon)/(1+math.Exp(epsilon)); math.Abs(got-want) > 1e-12 {
			t.Errorf("posterior(½, %v) = %v, want %v", epsilon, got, want)
		}
		// By search: the best attacker against P(S) ≤ e^ε Q(S) + δ both ways.
		best, delta := 0.0, 0.01
		for i := range 100_001 {
			fpr := float64(i) / 100_000
			tpr := math.Min(math.Exp(epsilon)*fpr+delta, 1-math.Exp(-epsilon)*(1-fpr-delta))
			best = math.Max(best, (math.Min(tpr, 1)+1-fpr)/2)
		}
		if got := guess(privacy.Budget{Epsilon: epsilon, Delta: delta}); math.Abs(got-best) > 1e-4 {
			t.Errorf("guess at ε = %v is %v, by search %v", epsilon, got, best)
		}
	}
}

// A record of any budget has a JSON form: infinite numbers are null.
func TestExtremes(t *testing.T) {
	for _, b := range []privacy.Budget{{Epsilon: 1e308, Delta: 5e-324, Adjacency: privacy.AddRemove}, {Epsilon: 5e-324, Delta: 0.999, Adjacency: privacy.ReplaceOne}} {
		info := &runlog.Info{Budget: b, MaxSteps: 1, Config: json.RawMessage(`{"center_noise":1e-200}`)}
		if _, err := json.Marshal(Of(info, nil)); err != nil {
			t.Errorf("%+v: %v", b, err)
		}
	}
}
