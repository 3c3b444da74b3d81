package claimed

import "math"

// The formulas as they are printed. Orders are whole.

// logChoose is ln C(n, k).
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// A logSum adds numbers of which it is told the logarithms.
type logSum struct{ most, rest float64 }

func newLogSum() logSum { return logSum{most: math.Inf(-1)} }

func (s *logSum) add(log float64) {
	switch {
	case math.IsInf(log, -1):
	case log <= s.most:
		s.rest += math.Exp(log - s.most)
	default:
		s.rest = s.rest*math.Exp(s.most-log) + 1
		s.most = log
	}
}

func (s *logSum) log() float64 { return s.most + math.Log(s.rest) }

// lemma4 is P2 Lemma 4: the Rényi divergence of order alpha ≥ 2 of a release on a Poisson
// sample of rate q, from the release's own divergences base(2), …, base(alpha).
func lemma4(q float64, alpha int, base func(order int) float64) float64 {
	// The weights of the binomial law add up to 1, so the sum is 1 + excess.
	all, excess := newLogSum(), 0.0
	keep, a := math.Log1p(-q), float64(alpha)
	all.add((a-1)*keep + math.Log(a*q-q+1))
	for l := 2; l <= alpha; l++ {
		weight, grown := logChoose(alpha, l)+float64(l)*math.Log(q)+float64(alpha-l)*keep, float64(l-1)*base(l)
		factor := 3.0
		if l == 2 {
			factor = 1
		}
		all.add(weight + math.Log(factor) + grown)
		excess += math.Exp(weight) * (factor*math.Expm1(grown) + factor - 1)
	}
	if excess < 1 {
		return math.Log1p(excess) / (a - 1)
	}
	return all.log() / (a - 1)
}

// theoremB4 is P4 Theorem B.4: likewise for a sample of the share s without replacement,
// under replace-one. top is the release's divergence of order ∞.
func theoremB4(s float64, alpha int, base func(order int) float64, top float64) float64 {
	capped := func(j int) float64 { return math.Log(math.Min(2, math.Pow(math.Expm1(top), float64(j)))) }
	excess := newLogSum()
	for j := 2; j <= alpha; j++ {
		grown := float64(j-1)*base(j) + capped(j)
		if j == 2 {
			grown = math.Min(math.Log(4*math.Expm1(base(2))), grown)
		}
		excess.add(float64(j)*math.Log(s) + logChoose(alpha, j) + grown)
	}
	a := float64(alpha)
	if log := excess.log(); log > 30 {
		return log / (a - 1)
	}
	return math.Log1p(math.Exp(excess.log())) / (a - 1)
}

// gaussianRDP is α/(2σ²).
func gaussianRDP(sigma float64) func(int) float64 {
	return func(order int) float64 { return float64(order) / (2 * sigma * sigma) }
}

// laplaceRDP is Mironov's figure for Laplace noise of scale b over the sensitivity.
func laplaceRDP(b float64) func(int) float64 {
	return func(order int) float64 {
		a := float64(order)
		sum := newLogSum()
		sum.add(math.Log(a/(2*a-1)) + (a-1)/b)
		sum.add(math.Log((a-1)/(2*a-1)) - a/b)
		return sum.log() / (a - 1)
	}
}

// theorem2 is P2 (4): AboveThreshold with a threshold's Laplace noise of scale 1/eps1 and
// answers' of scale 1/eps2. Unproven (S-2d).
func theorem2(eps1, eps2 float64) func(int) float64 {
	threshold, query := laplaceRDP(1/eps1), laplaceRDP(1/(2*eps2))
	return func(order int) float64 { return threshold(order) + query(order) }
}

// theorem3 is P2 (5), the same with Gaussian noise of deviations sigma1 and sigma2 over
// the sensitivity. False for long searches (S-2d).
func theorem3(sigma1, sigma2 float64, order float64) float64 {
	return order * (4/(sigma2*sigma2) + 1/(sigma1*sigma1)) / 2
}

// classic is the conversion of P2 Proposition 1 and P4 Proposition A.4, over the whole
// orders from 2 to last.
func classic(divergence func(order int) float64, last int, delta float64) float64 {
	least := math.Inf(1)
	for order := 2; order <= last; order++ {
		least = math.Min(least, divergence(order)-math.Log(delta)/float64(order-1))
	}
	return least
}

// zcdpClassic is P4 Proposition A.6: the ε at δ of a release of that zCDP.
func zcdpClassic(rho, delta float64) float64 { return rho + 2*math.Sqrt(-rho*math.Log(delta)) }

// zcdpRho inverts it.
func zcdpRho(epsilon, delta float64) float64 {
	l := -math.Log(delta)
	r := epsilon / (math.Sqrt(epsilon+l) + math.Sqrt(l))
	return r * r
}
