package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

// ZCDP accounts in zero-concentrated differential privacy: one number ρ that
// bounds the Rényi divergence of every order α by ρα. It knows every mechanism on
// whole tables; sampling has no bound of this form.
type ZCDP struct {
	// Classic converts by ρ + 2√(ρ ln(1/δ)) instead of the best order of the
	// improved conversion, which is never larger.
	Classic bool
}

func (ZCDP) String() string { return "zcdp" }

// Loss implements Accountant.
func (a ZCDP) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if l, err := trivial(a, e, adj); l != nil || err != nil {
		return l, err
	}
	rho, leak, err := a.cost(e, adj)
	if err != nil {
		return nil, err
	}
	if rho.value == 0 {
		return bound{none{}, leak, rho.rests}, nil
	}
	return bound{zcdpLoss{rho: rho.value, classic: a.Classic}, leak, append(rho.rests, conversion(a.Classic))}, nil
}

// cost adds up the parts, and the δ of (ε, δ) releases. PROOFS.md#zcdp-composition.
func (a ZCDP) cost(e privacy.Event, adj privacy.Adjacency) (rho cost, leak float64, err error) {
	var total, leaks sum
	rests := anchors{"zcdp-composition": true}
	err = leaves(e, 1, func(leaf privacy.Event, times float64) error {
		if _, ok := sampledBy(leaf); ok {
			return unsupported(a, leaf, adj, onlyUnsampled)
		}
		k, ok := facts(leaf)
		if !ok || !k.zcdp.proven {
			return unsupported(a, leaf, adj, unknown(leaf))
		}
		total.addProduct(times, k.zcdp.value)
		leaks.addProduct(times, k.leak)
		rests.note(k.zcdp.rests...)
		return nil
	})
	return proven(total.up(), rests.list()...), leaks.up(), err
}

// conversion is the section of a conversion to (ε, δ).
func conversion(classic bool) string {
	if classic {
		return "classic-conversion"
	}
	return "improved-conversion"
}

type zcdpLoss struct {
	rho     float64
	classic bool
}

// Epsilon implements Loss.
func (l zcdpLoss) Epsilon(delta float64) float64 {
	if e := edge(delta, -1); e >= 0 {
		return e
	}
	if delta == 0 || math.IsInf(l.rho, 1) {
		return math.Inf(1)
	}
	logDelta := math.Log(delta)
	if l.classic {
		return (l.rho + 2*math.Sqrt(-l.rho*logDelta)) * (1 + 1e-14)
	}
	return math.Max(0, l.least(func(t float64) float64 {
		return improvedEpsilon(t, (1+t)*l.rho, logDelta)
	}))
}

// Delta implements Loss.
func (l zcdpLoss) Delta(epsilon float64) float64 {
	if !(epsilon >= 0) || math.IsInf(l.rho, 1) {
		return 1
	}
	if l.classic {
		over := math.Max(0, epsilon-l.rho)
		return deltaOf(-over * over / 4 / l.rho)
	}
	return deltaOf(l.least(func(t float64) float64 {
		return improvedLogDelta(t, (1+t)*l.rho, epsilon)
	}))
}

// least is the least value of f over t = α−1, searched in ln t.
// PROOFS.md#best-order.
func (zcdpLoss) least(f func(t float64) float64) float64 {
	return minimize(-60, 60, 1e-9, func(logT float64) float64 { return f(math.Exp(logT)) })
}
