package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

// tunedCurve bounds the divergences of the best of a random number of releases. PROOFS.md#tuned.
type tunedCurve struct {
	among []*rdpCurve
	extra float64 // at every order
	log   float64 // of the mean number, over α − 1
}

func (c *tunedCurve) at(alpha float64) float64 {
	return (mostOf(c.among, alpha) + c.extra + c.log/(alpha-1)) * (1 + slack)
}

// mostOf is the largest divergence of an order.
func mostOf(curves []*rdpCurve, alpha float64) float64 {
	most := 0.0
	for _, c := range curves {
		most = math.Max(most, c.at(alpha))
	}
	return most
}

// tunedStride is how many orders of the grid are passed over in the choice of the second order: any will do.
const tunedStride = 8

// tuned is the curve of e. A δ that is spent inside has no theorem.
func (a RDP) tuned(e privacy.Tuned, adj privacy.Adjacency) (curve, error) {
	rests := anchors{"tuned": true}
	c := &tunedCurve{log: math.Log(e.Mean()) + 1e-12}
	rough := false
	for _, one := range e.Among {
		if err := refuseDelta(a, one, adj); err != nil {
			return curve{}, err
		}
		inner, err := a.curve(one, adj)
		if err != nil {
			return curve{}, err
		}
		c.among = append(c.among, inner)
		rests.note(inner.rests.list()...)
		rough = rough || inner.rough
	}
	least := math.Inf(1)
	for i, order := range defaultOrders() {
		if i%tunedStride == 0 {
			least = math.Min(least, (1-1/order)*mostOf(c.among, order)-math.Log(e.Gamma)/order)
		}
	}
	c.extra = (1 + e.Eta) * least * (1 + slack)
	return curve{c, rests.list(), rough || len(c.among) > 1}, nil
}

// tunedPure is the pure ε of e: 2 + η times that of the costliest release. PROOFS.md#tuned.
func tunedPure(a Accountant, e privacy.Tuned, adj privacy.Adjacency) (cost, error) {
	rests := anchors{"tuned": true}
	most := 0.0
	for _, one := range e.Among {
		if err := refuseDelta(a, one, adj); err != nil {
			return cost{}, err
		}
		inner, _, err := pureCost(a, one, adj)
		if err != nil {
			return cost{}, err
		}
		most = math.Max(most, inner.value)
		rests.note(inner.rests...)
	}
	return proven(most*(2+e.Eta)*(1+1e-15), rests.list()...), nil
}
