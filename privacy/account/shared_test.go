package account

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// A sum whose noise owners share costs what the sum with all noise costs, by each accountant and meter, and says that it rests on
// sharing; a part alone costs what its share covers. Samples that owners cannot draw by themselves are refused.
func TestShared(t *testing.T) {
	shared := func(of privacy.Event) privacy.Event { return privacy.Shared{Owners: 10, Colluders: 3, Of: of} }
	gauss := privacy.Gaussian{Sigma: 30}
	both := privacy.GaussianSum{Presence: 40, Replacement: 30}
	for _, c := range []struct{ event, as privacy.Event }{
		{shared(gauss), gauss},
		{privacy.Repeated{Count: 50, Of: shared(gauss)}, privacy.Repeated{Count: 50, Of: gauss}},
		{privacy.Composed{shared(both), privacy.PureDP{Epsilon: 0.1}}, privacy.Composed{both, privacy.PureDP{Epsilon: 0.1}}},
		{privacy.Repeated{Count: 50, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{shared(both), gauss}}},
			privacy.Repeated{Count: 50, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{both, gauss}}}},
	} {
		for _, a := range accountants {
			for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
				want, refused := a.Loss(c.as, adj)
				got, err := a.Loss(c.event, adj)
				if refused != nil {
					if err == nil {
						t.Errorf("%v, %v: no error for %v", a, adj, c.event)
					}
					continue
				}
				if err != nil {
					t.Errorf("%v, %v: %v: %v", a, adj, c.event, err)
					continue
				}
				if x, y := got.Epsilon(1e-6), want.Epsilon(1e-6); x != y {
					t.Errorf("%v, %v: ε of %v is %v; want %v", a, adj, c.event, x, y)
				}
				if !slices.ContainsFunc(Basis(got), func(th Theorem) bool { return th.Anchor == "shared" }) {
					t.Errorf("%v: the basis of %v does not name what is shared", a, c.event)
				}
			}
		}
	}
	d, err := RDP{}.Divergence(shared(gauss), privacy.AddRemove, 5)
	if want := mustDivergence(t, gauss, 5); d != want || err != nil {
		t.Errorf("divergence %v, %v; want %v", d, err, want)
	}
	lower, upper, err := PLD{}.Bracket(shared(privacy.Laplace{Scale: 1}), privacy.AddRemove, 1e-6)
	if err == nil {
		t.Errorf("Laplace noise in shares: no error; %v, %v", lower, upper)
	}
	for _, e := range []privacy.Event{
		privacy.FixedSampled{M: 5, N: 100, Of: shared(gauss)},
		privacy.FixedSampled{M: 100, N: 100, Of: shared(gauss)},
		privacy.Allocated{Batches: 4, Of: shared(gauss)},
		privacy.Tuned{Among: []privacy.Event{shared(gauss)}, Eta: 1, Gamma: 0.1},
	} {
		for _, a := range accountants {
			var refused *UnsupportedError
			if _, err := a.Loss(e, privacy.ReplaceOne); !errors.As(err, &refused) {
				t.Errorf("%v: %v: %v", a, e, err)
			}
		}
	}

	// The other line: a full pass at ε = 1, δ = 1e-5 of which ten owners make the noise, three of them colluders.
	budget := privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}
	sigma, err := Calibrate(GDP{}, budget, func(s float64) privacy.Event { return shared(privacy.Gaussian{Sigma: s}) })
	if err != nil {
		t.Fatal(err)
	}
	whole := mustLoss(t, GDP{}, shared(privacy.Gaussian{Sigma: sigma})).Epsilon(1e-5)
	alone := mustLoss(t, GDP{}, privacy.Alone(shared(privacy.Gaussian{Sigma: sigma}))).Epsilon(1e-5)
	if math.Abs(whole-1) > 1e-6 || math.Abs(alone-2.95) > 0.05 {
		t.Errorf("ε is %v against the hub and three owners, %v against nine; want 1 and 2.95", whole, alone)
	}
}
