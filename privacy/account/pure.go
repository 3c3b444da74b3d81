package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

// Pure accounts in pure ε: Laplace noise costs 1/Scale, costs add up, and a sample
// of rate q, Poisson or under replace-one of fixed size, turns
// ε into ln(1 + q(e^ε − 1)). Gaussian noise has no pure ε.
type Pure struct{}

func (Pure) String() string { return "pure" }

// Loss implements Accountant.
func (a Pure) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if l, err := trivial(a, e, adj); l != nil || err != nil {
		return l, err
	}
	epsilon, leak, err := pureCost(a, e, adj)
	if err != nil {
		return nil, err
	}
	return bound{pureLoss(epsilon.value), leak, append(epsilon.rests, "pure-delta")}, nil
}

func (a Pure) cost(e privacy.Event, adj privacy.Adjacency) (epsilon cost, leak float64, err error) {
	return pureCost(a, e, adj)
}

// pureEpsilon is the pure ε of a valid event, in which no δ may be left over.
// Errors name the accountant that asked.
func pureEpsilon(a Accountant, e privacy.Event, adj privacy.Adjacency) (float64, error) {
	if err := refuseDelta(a, e, adj); err != nil {
		return 0, err
	}
	epsilon, _, err := pureCost(a, e, adj)
	return epsilon.value, err
}

// pureCost adds up pure costs, and the δ of (ε, δ) releases. Errors name the
// accountant that asked. PROOFS.md#pure-composition.
func pureCost(a Accountant, e privacy.Event, adj privacy.Adjacency) (epsilon cost, leak float64, err error) {
	var total, leaks sum
	rests := anchors{"pure-composition": true}
	err = leaves(e, 1, func(leaf privacy.Event, times float64) error {
		if s, ok := sampledBy(leaf); ok {
			s, why := s.under(adj)
			if why != "" {
				return unsupported(a, leaf, adj, why)
			}
			if nested(s.of) {
				return unsupported(a, leaf, adj, nestedSampling)
			}
			inner, leak, err := pureCost(a, s.of, adj)
			if err != nil {
				return err
			}
			total.addProduct(times, amplifyPure(s.rate, inner.value))
			leaks.addProduct(times, mulUp(s.rate, leak))
			rests.note(inner.rests...)
			rests.note(s.rests("poisson-pure", "fixed-pure")...)
			return nil
		}
		if t, ok := leaf.(privacy.Tuned); ok {
			one, err := tunedPure(a, t, adj)
			if err != nil {
				return err
			}
			total.addProduct(times, one.value)
			rests.note(one.rests...)
			return nil
		}
		k, ok := facts(leaf)
		switch {
		case !ok:
			return unsupported(a, leaf, adj, unknown(leaf))
		case !k.pure.proven:
			return unsupported(a, leaf, adj, "Gaussian noise is not ε-private for any ε; δ must be above 0")
		}
		total.addProduct(times, k.pure.value)
		leaks.addProduct(times, k.leak)
		rests.note(k.pure.rests...)
		return nil
	})
	return proven(total.up(), rests.list()...), leaks.up(), err
}

// nested says whether e holds a sample.
func nested(e privacy.Event) bool {
	return leaves(e, 1, func(leaf privacy.Event, _ float64) error {
		if _, ok := sampledBy(leaf); ok {
			return errFound
		}
		return nil
	}) != nil
}

// amplifyPure: ln(1 + q(e^ε − 1)), rounded up. PROOFS.md#poisson-pure.
func amplifyPure(q, epsilon float64) float64 {
	if q >= 1 || math.IsInf(epsilon, 1) {
		return epsilon
	}
	v := math.Log1p(q * math.Expm1(epsilon))
	if epsilon > 700 {
		rest := math.Log1p(-q)
		v = rest + log1pExp(epsilon+math.Log(q)-rest)
	}
	return math.Max(v*(1+1e-14), math.SmallestNonzeroFloat64)
}

// pureLoss is the cost ε > 0 of a pure release.
type pureLoss float64

// Epsilon implements Loss. A release of ε is (ε', δ)-private for every ε' with
// δ ≥ (e^ε − e^ε')/(1 + e^ε); as a plain statement, ε is kept for every δ below 1.
func (l pureLoss) Epsilon(delta float64) float64 { return edge(delta, float64(l)) }

// Delta implements Loss: 0 from ε on; below it the δ of randomized response,
// (e^ε − e^ε')/(1 + e^ε), the worst of all ε-private mechanisms.
// PROOFS.md#pure-delta.
func (l pureLoss) Delta(epsilon float64) float64 {
	e := float64(l)
	switch {
	case !(epsilon >= 0):
		return 1
	case epsilon >= e:
		return 0
	}
	delta := -math.Expm1(epsilon-e) / (1 + math.Exp(-e)) * (1 + 1e-14)
	return math.Min(1, math.Max(delta, math.SmallestNonzeroFloat64))
}
