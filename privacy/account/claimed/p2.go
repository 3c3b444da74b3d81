package claimed

import (
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// p2Orders are the orders that P2 keeps budgets for: 2 to this.
const p2Orders = 500

func p2Example() ([]Claim, error) {
	gauss := privacy.Gaussian{Sigma: 1}
	joint, err := account.RDP{}.Divergence(privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{gauss, gauss}},
		privacy.AddRemove, 2)
	if err != nil {
		return nil, err
	}
	oneCharge := "all that is asked of one sample is one charge: compose first, amplify once"
	claims := []Claim{{
		Paper: "P2", About: "two releases with noise multiplier 1 on one Poisson sample, rate 0.1",
		Quantity: "divergence of order 2",
		Formula:  "Algorithm 2: each release of an iteration amplified by itself",
		Claimed:  2 * math.Log1p(0.01*math.Expm1(1)),
		Sound:    []Figure{{joint, "accountant rdp"}}, Verdict: Unsound, Why: oneCharge, Source: "S-2a",
	}}

	const calls = 100
	claims = append(claims, Claim{
		Paper: "P2", About: fmt.Sprintf("%d searches with one candidate and ε = 1 on one Poisson sample, rate 0.1", calls),
		Quantity: "divergence of order 8",
		Formula:  "the least of Lemma 4 and pure amplification, times the number of calls", Claimed: calls * searchCharge(),
		Sound: []Figure{{sameBatchSearches(calls, 0.1, 1, 8), "a lower bound: two concrete tables"}}, Verdict: Unsound,
		Why: oneCharge + "; Algorithm 2 calls the search in a loop without an end", Source: "S-2a",
	})

	forward, _ := sizeLeak(300, 795010, 2)
	claims = append(claims, Claim{
		Paper: "P2", About: "the network of 795010 parameters, batches of 300",
		Quantity: "divergence of order 2 of one step, by its scale alone",
		Formula:  "the sum is divided by the size of the batch that was drawn, and nothing is charged for it", Claimed: 0,
		Sound: []Figure{{forward, "given the rest of the batch"}}, Verdict: Unsound,
		Why: "the noise's scale tells the size, and so the record; divide by a public number", Source: "S-2b",
	})

	delta := 1e-5
	claims = append(claims, Claim{
		Paper: "P2", About: "a search that goes on while one of the orders 2 to 500 has budget left", Quantity: "δ",
		Formula: "each order's budget from Proposition 1 at this δ", Claimed: delta,
		Sound: []Figure{{delta * filterSum(orders(2, p2Orders, func(a int) int {
			return a + 1
		})), "sum of the orders' weights"},
			{delta * filterCounterexample(0.03), "attained with the orders 8 and 64"}}, Verdict: Unsound,
		Why:    "which order certifies depends on what was seen, so the orders must share δ; the orders 2, 4, …, 512 fit one δ",
		Source: "S-2c",
	})

	for _, order := range []int{2, 8} {
		search := privacy.AboveThreshold{Threshold: 2, Query: 4, Max: 1 << 20}
		sound, err := account.RDP{}.Divergence(search, privacy.AddRemove, float64(order))
		if err != nil {
			return nil, err
		}
		claims = append(claims, Claim{
			Paper: "P2", About: "a search with Laplace noise and ε = 1", Quantity: fmt.Sprintf("divergence of order %d", order),
			Formula: "Theorem 2, (4)",
			Claimed: theorem2(0.5, 0.25)(order), Sound: []Figure{{sound, "accountant rdp"}}, Verdict: Unproven,
			Why: "the proof sums over the outcomes under a law that is no longer normalized", Source: "S-2d",
		})
	}

	before, after := gaussianTables()
	s1, s2 := math.Sqrt(30), math.Sqrt(60)
	thm3 := theorem3(s1, s2, 8)
	claims = append(claims, Claim{
		Paper: "P2", About: "a search with Gaussian noise, ρ = 0.05, over 1000 candidates", Quantity: "divergence of order 8",
		Formula: "Theorem 3, (5)",
		Claimed: thm3,
		Sound: []Figure{{gaussianSearch(before, after, s1, s2, 8), "a lower bound: two concrete tables"},
			{thm3 + math.Log(1001)/7, "upper bound"}}, Verdict: Unsound,
		Why: "the noise of many answers concentrates, so it stops protecting as their number grows; Sotto has no Gaussian search", Source: "S-2d",
	}, Claim{
		Paper: "P2", About: "the baseline DP-AGD's public code: the least of 21 noisy values, ε = 0.01", Quantity: "pure ε",
		Formula: "exponential noise added on the wrong side", Claimed: 0.01,
		Sound: []Figure{{wrongMinimum(21, 0.01), "computed"}}, Verdict: Unsound,
		Why: "with its sign turned the choice is private; Gumbel noise is what Sotto adds", Source: "S-B1",
	})
	return claims, nil
}

// searchCharge is what P2 charges for a search of ε = 1 on a sample of rate 0.1 at order 8.
func searchCharge() float64 {
	return math.Min(lemma4(0.1, 8, theorem2(0.5, 0.25)), amplifiedPure(0.1, 1, 8))
}

// gaussianTables are the answers of two neighboring tables to 1000 candidates: the record
// moves 200 of them up and 800, which lie lower, down. The deviations of the search's noise
// are √30 and √60 (S-2d).
func gaussianTables() (before, after []float64) {
	for i := range 1000 {
		answer, move := -2.0, 1.0
		if i >= 200 {
			answer, move = -3, -1
		}
		answer *= math.Sqrt(60)
		before, after = append(before, answer), append(after, answer+move)
	}
	return before, after
}

// orders lists from first to last in the strides of next.
func orders(first, last int, next func(int) int) []float64 {
	var all []float64
	for a := first; a <= last; a = next(a) {
		all = append(all, float64(a))
	}
	return all
}

// filterSum is the factor in δ of a run that stops when the last of the orders has spent
// its budget (S-2c, Lemma).
func filterSum(orders []float64) float64 {
	sum := 0.0
	for _, a := range orders {
		sum += filterWeight(a)
	}
	return sum
}

// filterCounterexample is how many times the δ that was claimed a run incurs which keeps
// budgets at the orders 8 and 64 with the improved conversion: after randomized response of
// that small ε it spends the rest of order 64 on one answer and of order 8 on the other (S-2c).
func filterCounterexample(first float64) float64 {
	// The first answer weighs w(α) = 1/(1 + e^{−(2α−1)a}) in the divergence of order α.
	weight := func(order float64) float64 { return 1 / (1 + math.Exp(-(2*order-1)*first)) }
	return weight(64) + 1 - weight(8)
}

// amplifiedPure is the divergence of a pure release on a Poisson sample by P2's other route.
func amplifiedPure(q, epsilon, order float64) float64 {
	e := math.Log1p(q * math.Expm1(epsilon))
	return math.Log((math.Sinh(order*e)-math.Sinh((order-1)*e))/math.Sinh(e)) / (order - 1)
}

// P2Most is how often P2's account, add-or-remove, admits repeated after first in a run of that ε and δ:
// while one of its orders has budget left. Both are Poisson samples, or mechanisms on all rows; 0 also
// for events that P2 does not cover.
func P2Most(first, repeated privacy.Event, epsilon, delta float64) int {
	cost := func(e privacy.Event) []float64 {
		units, ok := flatten(e)
		if _, known := p2Of(units, privacy.AddRemove, delta); !ok || !known {
			return nil
		}
		return p2Total(units)
	}
	a, b := cost(first), cost(repeated)
	if a == nil || b == nil {
		return 0
	}
	most := 0.0
	for order := 2; order <= p2Orders; order++ {
		left := epsilon - math.Log(1/delta)/float64(order-1) - a[order]
		most = math.Max(most, math.Floor(left/b[order]))
	}
	return int(most)
}

// P2Orders is ε at δ of a run that goes on while one of P2's orders has budget left, where each
// keeps the budget that Proposition 1 gives it for that ε at δ: the orders share δ (S-2c, Lemma).
func P2Orders(epsilon, delta float64) float64 {
	all := orders(2, p2Orders, func(a int) int { return a + 1 })
	sum := func(more float64) float64 { // of δ_α/δ at ε + more
		s := 0.0
		for _, a := range all {
			s += filterWeight(a) * math.Exp(-(a-1)*more)
		}
		return s
	}
	lo, hi := 0.0, 1.0
	for range 60 {
		if mid := (lo + hi) / 2; sum(mid) > 1 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return epsilon + hi
}

// p2Of is P2's account: each release amplified by itself by Lemma 4, classic conversion.
func p2Of(units []unit, adj privacy.Adjacency, delta float64) (Claim, bool) {
	verdict, why, source := Loose, "true for a plan that is fixed beforehand", "S-2c"
	known := func(u unit, e privacy.Event) bool {
		_, ok := p2Base(e)
		return ok && u.fixed == 0
	}
	if adj != privacy.AddRemove || !only(units, known) || delta <= 0 {
		return Claim{}, false
	}
	search := func(_ unit, e privacy.Event) bool {
		_, ok := e.(privacy.AboveThreshold)
		return !ok
	}
	switch {
	case slices.ContainsFunc(units, func(u unit) bool { return u.poisson > 0 && len(u.releases) > 1 }):
		verdict, why, source = Unsound,
			"each release of a sample is amplified by itself; all that is asked of one sample is one charge", "S-2a"
	case !only(units, search):
		verdict, why, source = Unproven, "Theorem 2, the cost of a search, is not established by its proof", "S-2d"
	}
	total := p2Total(units)
	epsilon := classic(func(order int) float64 { return total[order] }, p2Orders, delta)
	return Claim{Paper: "P2", Formula: "Lemma 4 for each release, orders 2 to 500, classic conversion", Claimed: epsilon,
		Verdict: verdict, Why: why, Source: source}, true
}

// p2Total is P2's divergence of each order: each release amplified by itself.
func p2Total(units []unit) []float64 {
	total := make([]float64, p2Orders+1)
	for _, u := range units {
		seen := map[privacy.Event]bool{}
		for _, e := range u.releases {
			if seen[e] {
				continue
			}
			seen[e] = true
			same := 0.0
			for _, other := range u.releases {
				if other == e {
					same++
				}
			}
			base, _ := p2Base(e)
			for order := 2; order <= p2Orders; order++ {
				d := base(order)
				if u.poisson > 0 && u.poisson < 1 {
					d = lemma4(u.poisson, order, base)
				}
				total[order] += u.times * same * d
			}
		}
	}
	return total
}

// p2Base is the divergence that P2 gives a release.
func p2Base(e privacy.Event) (func(order int) float64, bool) {
	switch e := e.(type) {
	case privacy.Gaussian:
		return gaussianRDP(e.Sigma), true
	case privacy.Laplace:
		return laplaceRDP(e.Scale), true
	case privacy.PureDP: // Lemma 2
		return func(order int) float64 { return float64(order) * e.Epsilon * e.Epsilon / 2 }, true
	case privacy.AboveThreshold:
		return theorem2(1/e.Threshold, 1/e.Query), true
	}
	return nil, false
}
