package method

import (
	"math"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// A price says what noise costs, in a currency that adds up over steps. It shapes
// schedules and picks the number of steps; what is charged is the accountant's.
type price struct {
	optimal func(a []float64) (noise []float64, err error) // least Σ a_t·noise_t²
	uniform func(steps int) float64                        // the same noise for each of that many steps
}

// even is the same noise for each step.
func (p *price) even(a []float64) ([]float64, error) {
	noise, s := make([]float64, len(a)), p.uniform(len(a))
	for t := range noise {
		noise[t] = s
	}
	return noise, nil
}

// price is the price of m's steps under the terms.
func (m *P1) price(pub oracle.Public, terms Terms) (*price, error) {
	n, batch := pub.Rows, m.Gradient.Batch
	if batch == 0 {
		batch = n
	}
	b := terms.Budget
	switch {
	case m.Gradient.Laplace:
		// Pure ε: 1/b on all rows, and amplified by (3.3), for Poisson samples too.
		return &price{
			optimal: func(a []float64) ([]float64, error) {
				shares, err := schedule.PureSampled(a, b.Epsilon, batch, n)
				for t, e := range shares {
					shares[t] = 1 / schedule.Inner(e, batch, n)
				}
				return shares, err
			},
			uniform: func(steps int) float64 { return 1 / schedule.Inner(b.Epsilon/float64(steps), batch, n) },
		}, nil
	case batch == n:
		// On all rows Σ 1/σ_t² adds, by every accountant, and may be 1/one².
		one, err := account.Calibrate(terms.Accountant, b, func(noise float64) privacy.Event {
			return privacy.Gaussian{Sigma: noise}
		})
		return &price{
			optimal: func(a []float64) ([]float64, error) {
				shares, err := schedule.ZCDP(a, 1/(one*one))
				for t, p := range shares {
					shares[t] = 1 / math.Sqrt(p)
				}
				return shares, err
			},
			uniform: func(steps int) float64 { return one * math.Sqrt(float64(steps)) },
		}, err
	}
	// On a sample: Rényi divergence at one order, the integer near which a budget of
	// (ε, δ) is usually settled.
	order := math.Min(256, math.Max(2, math.Round(1+2*math.Log(1/b.Delta)/b.Epsilon)))
	budget := b.Epsilon / 2
	inner := func(noise float64) privacy.Event {
		return m.ask(pub, 0).Sampler(pub).Event(privacy.Gaussian{Sigma: noise})
	}
	if _, err := terms.Accountant.Loss(inner(1), b.Adjacency); err != nil {
		return nil, err
	}
	if _, err := (account.RDP{}).Divergence(inner(1), b.Adjacency, order); err != nil {
		return nil, err
	}
	cost := func(noise float64) float64 {
		d, err := account.RDP{}.Divergence(inner(noise), b.Adjacency, order)
		if err != nil {
			return math.Inf(1)
		}
		return d
	}
	return &price{
		optimal: func(a []float64) ([]float64, error) {
			noise, err := schedule.Numeric(a, budget, cost)
			for t, s := range noise { // steps 2% apart: what is equal is accounted once
				noise[t] = math.Exp(math.Round(math.Log(s)*50) / 50)
			}
			return noise, err
		},
		uniform: func(steps int) float64 {
			lo, hi := 1e-3, 1e6
			for range 40 {
				if mid := math.Sqrt(lo * hi); float64(steps)*cost(mid) <= budget {
					hi = mid
				} else {
					lo = mid
				}
			}
			return hi
		},
	}, nil
}
