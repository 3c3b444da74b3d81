package p2

import (
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/account/claimed"
)

// An Account is what a run of the published algorithm costs that P2 says is ε.
type Account struct {
	Claimed    float64
	Iterations int     // of one gradient and one search, both of one sample, as often as P2's account admits
	Fixed      float64 // sound ε of as many, fixed beforehand
	Searches   int     // the same for one iteration whose searches all fail
	OneSample  float64 // sound ε of that
	Adaptive   float64 // what Claimed is where orders share δ, since the run continues while one of them has budget
}

// asked are the gradient and the search of an iteration of Algorithm 2 with ε_BT = ε/100 and ρ_grad = (ε/100)²/2, as
// they are at first.
func asked(e float64) (gradient privacy.Gaussian, search privacy.AboveThreshold) {
	each := e / (2 * iters)
	return privacy.Gaussian{Sigma: 1 / each}, privacy.AboveThreshold{Threshold: 2 / each, Query: 4 / each, Max: 20}
}

// admitted is how many such iterations P2's own account admits on samples of that share of the rows.
func admitted(share, e float64) int {
	gradient, search := asked(e)
	var iteration privacy.Event = privacy.Composed{gradient, search}
	if share < 1 {
		iteration = privacy.PoissonSampled{Rate: share, Of: iteration}
	}
	return 1 + claimed.P2Most(iteration, iteration, e, delta)
}

// accounts compares P2's account with the sound one at its own settings: Algorithm 2 at
// q = 0.1 with ε_BT = ε/100 and ρ_grad = (ε/100)²/2 as they are at first.
func accounts(epsilons []float64) ([]Account, error) {
	var all []Account
	for _, e := range epsilons {
		gradient, search := asked(e)
		sampled := func(of privacy.Event) privacy.Event { return privacy.PoissonSampled{Rate: rate, Of: of} }
		iteration := sampled(privacy.Composed{gradient, search})
		a := Account{Claimed: e, Adaptive: claimed.P2Orders(e, delta)}
		a.Iterations = admitted(rate, e)
		a.Searches = claimed.P2Most(sampled(gradient), sampled(search), e, delta)
		for _, of := range []struct {
			plan privacy.Event
			to   *float64
		}{
			{privacy.Repeated{Count: a.Iterations, Of: iteration}, &a.Fixed},
			{sampled(privacy.Composed{gradient, privacy.Repeated{Count: max(1, a.Searches), Of: search}}), &a.OneSample},
		} {
			loss, err := account.Best{}.Loss(of.plan, privacy.AddRemove)
			if err != nil {
				return nil, err
			}
			*of.to = loss.Epsilon(delta)
		}
		all = append(all, a)
	}
	return all, nil
}
