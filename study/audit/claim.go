package audit

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Failure bounds the probability that an audit's bound is above the true ε.
const Failure = 0.05

// louder returns a plan with all noise divided by x: it reveals more for x above 1, and less below.
func louder(plan privacy.Event, x float64) (privacy.Event, error) {
	if f, ok := plan.(privacy.Filtered); ok {
		f.Epsilon *= x
		return f, nil
	}
	if e, ok := privacy.WithNoise(plan, 1/x); ok {
		return e, nil
	}
	return nil, fmt.Errorf("no measure of the noise of %v; %w", plan, ErrBlind)
}

// A family is a claim at x = 1 and similar claims that reveal more (x above 1) or less.
type family func(x float64) (account.Loss, error)

// points of a curve.
const points = 100

// curve returns δ of a loss at the given number of ε.
func curve(l account.Loss) audit.Curve {
	most := l.Epsilon(1e-9)
	if !(most <= 60) { // as for pure releases: beyond it no number of guesses shows anything
		most = 60
	}
	var c audit.Curve
	for k := range points {
		epsilon := most * float64(k) / (points - 1)
		c.Epsilon, c.Delta = append(c.Epsilon, epsilon), append(c.Delta, l.Delta(epsilon))
	}
	return c
}

// guessed is the outcome of an audit of one run.
type guessed struct{ Records, Guesses, Right int }

// reach limits the search for x to 2^±reach.
const reach = 12

// refutes returns the test of curves that fails with that probability at most.
func (g guessed) refutes(failure float64) func(audit.Curve) bool {
	return func(c audit.Curve) bool { return c.Refuted(g.Records, g.Guesses, g.Right, failure) }
}

// least is the largest x whose claim is refuted, and its ε at delta; zeros if none is.
func (f family) least(refutes func(audit.Curve) bool, delta float64) (x, epsilon float64, err error) {
	for lo, hi := -float64(reach), float64(reach); hi-lo > 0.01; {
		mid := (lo + hi) / 2
		l, err := f(math.Exp2(mid))
		if err != nil {
			return 0, 0, err
		}
		if refutes(curve(l)) {
			lo, x, epsilon = mid, math.Exp2(mid), l.Epsilon(delta)
		} else {
			hi = mid
		}
	}
	return x, epsilon, nil
}

// claims is the family of a plan.
func claims(plan privacy.Event, a account.Accountant, adj privacy.Adjacency) family {
	return func(x float64) (account.Loss, error) {
		e, err := louder(plan, x)
		if err != nil {
			return nil, err
		}
		l, err := a.Loss(e, adj)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		return l, nil
	}
}

// plain is the family of all (x, delta)-private mechanisms.
func plain(delta float64) family {
	return func(x float64) (account.Loss, error) { return atPoint{x, delta}, nil }
}

// atPoint is a loss of which one point is known.
type atPoint struct{ epsilon, delta float64 }

func (p atPoint) Epsilon(float64) float64 { return p.epsilon }

func (p atPoint) Delta(epsilon float64) float64 {
	if epsilon >= p.epsilon {
		return p.delta
	}
	// Kairouz, Oh, Viswanath 2015: the worst of all that is (ε, δ)-private.
	return min(1, p.delta-(1-p.delta)*math.Expm1(epsilon-p.epsilon)/(1+math.Exp(-p.epsilon)))
}

// gaussians is the family of Gaussian releases, x being the mean shift over the noise.
func gaussians(x float64) (account.Loss, error) {
	return account.GDP{}.Loss(privacy.Gaussian{Sigma: 1 / x}, privacy.AddRemove)
}

// guesses returns how many of m coins to guess: the number with the largest expected bound, which it returns too, if
// the odds are those of Gaussians mu apart.
func guesses(m int, mu float64) (number int, epsilon float64, err error) {
	number, most := max(1, m/100), -1.0
	for _, share := range []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1} {
		k := max(1, int(share*float64(m)))
		lo, hi := 0.0, mu*mu/2+10*mu
		for range 60 {
			t := (lo + hi) / 2
			if right, wrong := beyond(t, mu); right+wrong > share {
				lo = t
			} else {
				hi = t
			}
		}
		right, wrong := beyond(lo, mu)
		p := right / (right + wrong)
		sure := float64(k)*p - math.Sqrt(float64(k)*p*(1-p))
		_, epsilon, err := family(gaussians).least(guessed{m, k, max(0, int(sure))}.refutes(Failure), 1e-5)
		if err != nil {
			return 0, 0, err
		}
		if epsilon > most {
			number, most = k, epsilon
		}
	}
	return number, most, nil
}

// beyond returns the shares of coins whose log odds exceed t in absolute value, with the right and with
// the wrong sign.
func beyond(t, mu float64) (right, wrong float64) {
	phi := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	return phi((mu*mu/2 - t) / mu), phi((-mu*mu/2 - t) / mu)
}
