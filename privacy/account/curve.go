package account

import "math"

// This file holds Rényi divergences: for a mechanism and an order α > 1, the
// largest D_α over neighbors in both directions. Each is of the form
// ln(1 + A)/(α−1) with a non-negative A that is computed without cancellation.
// Each value is rounded up by slack.

// slack is the relative error that the evaluations below stay within.
const slack = 1e-11

type (
	noCost        struct{}
	gaussianNoise struct{ sigma float64 }
	laplaceNoise  struct{ scale float64 }
	pureRelease   struct{ epsilon float64 }
	boundedRange  struct{ epsilon float64 }
	// aboveThreshold: queries is 2/Query, epsilon is 1/Threshold + 2/Query.
	aboveThreshold struct{ threshold, queries, epsilon float64 }
	// sampledGaussian is a Gaussian on a Poisson sample of rate q < 1.
	sampledGaussian struct{ q, sigma float64 }
)

func (noCost) at(float64) float64                { return 0 }
func (g gaussianNoise) at(alpha float64) float64 { return gaussianRDP(alpha, g.sigma) }
func (l laplaceNoise) at(alpha float64) float64  { return laplaceRDP(alpha, l.scale) }
func (p pureRelease) at(alpha float64) float64   { return pureRDP(alpha, p.epsilon) }
func (b boundedRange) at(alpha float64) float64  { return boundedRangeRDP(alpha, b.epsilon) }
func (g sampledGaussian) at(alpha float64) float64 {
	return sampledGaussianRDP(alpha, g.q, g.sigma)
}

// at is the least of two bounds. PROOFS.md#above-threshold.
func (a aboveThreshold) at(alpha float64) float64 {
	return math.Min(laplaceRDP(alpha, a.threshold)+a.queries*(1+1e-15), pureRDP(alpha, a.epsilon))
}

// boundedRangeRDP is the largest divergence of any release whose privacy loss lies
// in an interval of length ε:
//
//	1/(α−1) [ αψ(αε) − (α−1)ψ((α−1)ε) − ψ(ε) ],  ψ(x) = ln( sinh(x/2) / (x/2) )
//
// which is αε²/8 up to terms of order ε⁴, and less. PROOFS.md#select.
func boundedRangeRDP(alpha, epsilon float64) float64 {
	t := alpha - 1
	most := math.Min(alpha*epsilon*epsilon/8, epsilon)
	var v float64
	switch x := alpha * epsilon; {
	case x < 1e-4 || t < 1e-6 || epsilon > 1e6: // the next term is below 1e-5 of this one
		return most * (1 + slack)
	case x < 20:
		lead := alpha * logSinhc(x)
		v = (lead - t*logSinhc(t*epsilon) - logSinhc(epsilon) + 1e-15*lead) / t
	default: // ψ(x) = x/2 + ln((1−e^{−x})/x)
		f := func(x float64) float64 { return math.Log(-math.Expm1(-x) / x) }
		lead := alpha * f(x)
		v = epsilon + (lead-t*f(t*epsilon)-f(epsilon)-1e-15*lead)/t
	}
	return math.Min(most, v) * (1 + slack)
}

// logSinhc is ψ(x) = ln( sinh(x/2) / (x/2) ) for x ≥ 0, without cancellation.
func logSinhc(x float64) float64 {
	h := x / 2
	if h < 1 { // sinh(h)/h − 1
		square := h * h
		term, total := 1.0, 0.0
		for k := 1.0; term > 1e-18; k++ {
			term *= square / (2 * k) / (2*k + 1)
			total += term
		}
		return math.Log1p(total)
	}
	return h + math.Log(-math.Expm1(-x)/x)
}

// fromLog is ln(1 + e^l)/(α−1), rounded up, where l is known up to relax.
func fromLog(l, relax, alpha float64) float64 {
	v := log1pExp(l+relax) / (alpha - 1) * (1 + 1e-14)
	switch {
	case math.IsNaN(v):
		return math.Inf(1)
	case v == 0 && !math.IsInf(l, -1):
		return math.SmallestNonzeroFloat64
	}
	return v
}

// gaussianRDP: α/(2σ²). PROOFS.md#gaussian-rdp.
func gaussianRDP(alpha, sigma float64) float64 {
	return alpha / 2 / sigma / sigma * (1 + 1e-15)
}

// laplaceRDP is the divergence of Laplace noise of scale b, with e = 1/b:
//
//	1/(α−1) ln[ α/(2α−1) e^{(α−1)e} + (α−1)/(2α−1) e^{−αe} ]
//
// The two terms' first-order parts cancel, so they are left out of both.
// PROOFS.md#laplace-rdp.
func laplaceRDP(alpha, b float64) float64 {
	e, t := 1/b, alpha-1
	if x := t * e; x > 40 {
		l := math.Log(alpha/(alpha+t)) + x + math.Log1p(t/alpha*math.Exp(-(alpha+t)*e))
		return l / t * (1 + slack)
	}
	a := (alpha*expm1x(t*e) + t*expm1x(-alpha*e)) / (alpha + t)
	return math.Log1p(a) / t * (1 + slack)
}

// pureRDP is the largest divergence of any ε-private mechanism:
//
//	1/(α−1) ln[ (sinh(αε) − sinh((α−1)ε)) / sinh ε ] = 1/(α−1) ln[ cosh((α−½)ε) / cosh(ε/2) ]
//
// and cosh x − cosh y = 2 sinh((x+y)/2) sinh((x−y)/2). PROOFS.md#pure-rdp.
func pureRDP(alpha, epsilon float64) float64 {
	t := alpha - 1
	if x := (alpha - 0.5) * epsilon; x > 40 {
		l := t*epsilon + math.Log1p(math.Exp(-2*x)) - math.Log1p(math.Exp(-epsilon))
		return l / t * (1 + slack)
	}
	a := 2 * math.Sinh(alpha*epsilon/2) * math.Sinh(t*epsilon/2) / math.Cosh(epsilon/2)
	return math.Log1p(a) / t * (1 + slack)
}

// sampledGaussianRDP is the divergence of order alpha of a Gaussian of noise
// multiplier sigma on a Poisson sample of rate q < 1, under add-or-remove:
//
//	1/(α−1) ln E_{z∼N(0,σ²)} (1 − q + q e^{(2z−1)/(2σ²)})^α
//
// A whole order is a sum, any other an integral. PROOFS.md#poisson-gaussian.
func sampledGaussianRDP(alpha, q, sigma float64) float64 {
	if alpha == math.Trunc(alpha) && alpha < 1<<31 {
		return sampledGaussianWhole(alpha, q, sigma)
	}
	if n := quadraturePoints(alpha, sigma); n > 1<<16 {
		return sampledGaussianChord(alpha, q, sigma)
	}
	return sampledGaussianBroken(alpha, q, sigma)
}

// sampledGaussianWhole: for whole orders the expectation, less 1, is
//
//	Σ_{k≥2} C(α,k) q^k (1−q)^{α−k} (e^{k(k−1)/(2σ²)} − 1)
//
// because the weights add up to 1. All terms are positive.
func sampledGaussianWhole(alpha, q, sigma float64) float64 {
	inv := 1 / (sigma * sigma)
	odds := q / (1 - q)
	base := math.Log(alpha*(alpha-1)/2) + 2*math.Log(q) + (alpha-2)*math.Log1p(-q)
	// With 1/σ² ≤ 4/(α+2) the terms with e^{…} in place of e^{…} − 1 are
	// log-concave in k: once they halve they go on halving.
	logConcave := inv*(alpha+2) <= 4

	total := newLogSum()
	weight, shift := 1.0, 0 // C(α,k) odds^k, relative to k = 2, is weight·2^shift
	for k := 2.0; k <= alpha; k++ {
		e := k * (k - 1) / 2 * inv
		l := base + float64(shift)*math.Ln2
		if e < 40 {
			l += math.Log(weight * math.Expm1(e))
		} else {
			l += math.Log(weight) + e
		}
		total.add(l)
		ratio := (alpha - k) / (k + 1) * odds
		if logConcave && ratio*math.Exp(k*inv) < 0.5 &&
			base+float64(shift)*math.Ln2+math.Log(weight)+e < total.value()-40 {
			break // the rest is below e^(−40) of the sum
		}
		weight *= ratio
		if weight < 1e-200 || weight > 1e200 {
			var by int
			weight, by = math.Frexp(weight)
			shift += by
		}
	}
	relax := slack + 1e-15*(alpha+math.Abs(base)+alpha*alpha/2*inv)
	return fromLog(total.value(), relax, alpha)
}

// quadratureStep is the step, in units of σ, of the trapezoid rule below. The
// integrand is analytic up to the zero of 1 − q + q e^{…} at |Im u| = πσ, so the
// rule errs by e^(−2π·πσ/step), or for σ above 1 by e^(π²/2 − 2π·π/step), both
// below 1e-14 of the integral.
func quadratureStep(sigma float64) float64 { return 0.5 * math.Min(1, sigma) }

// quadratureReach is where the integrand's tails are cut, beyond the outermost
// place that can hold mass: e^(−11²/2) ≈ 1e-26.
const quadratureReach = 11

func quadraturePoints(alpha, sigma float64) float64 {
	return (alpha/sigma + 2*quadratureReach) / quadratureStep(sigma)
}

// sampledGaussianBroken: with z = σu and x = q(e^{u/σ − 1/(2σ²)} − 1), E x = 0 and
// so the expectation, less 1, is
//
//	∫ φ(u) [ (1+x)^α − 1 − αx ] du
//
// whose integrand is non-negative by Bernoulli's inequality.
func sampledGaussianBroken(alpha, q, sigma float64) float64 {
	step := quadratureStep(sigma)
	half := 0.5 / (sigma * sigma)
	logQ, logRest := math.Log(q), math.Log1p(-q)
	total := newLogSum()
	end := alpha/sigma + quadratureReach
	for i := 0; ; i++ {
		u := -quadratureReach + step*float64(i)
		if u > end {
			break
		}
		total.add(logBernoulli(alpha, q, logQ, logRest, u/sigma-half) - u*u/2)
	}
	l := total.value() + math.Log(step/math.Sqrt(2*math.Pi))
	r := alpha / sigma
	return fromLog(l, slack+1e-15*(1+r*r), alpha)
}

// logBernoulli is ln[(1+x)^α − 1 − αx] at x = q(e^y − 1). With t = α−1 and
// L = ln(1+x) the bracket is (1+x)(e^{tL} − 1) − tx.
func logBernoulli(alpha, q, logQ, logRest, y float64) float64 {
	t := alpha - 1
	if y > 30 {
		if l := logRest + log1pExp(y+logQ-logRest); l > 30 { // then e^{αL} leads
			return alpha*l + math.Log(t*math.Exp(-alpha*l)-math.Expm1(math.Log1p(t)-t*l))
		}
	}
	x := q * math.Expm1(y)
	if math.Abs(x) < 0.05 && math.Abs(alpha*x) < 0.05 {
		// C(α,2) x² (1 + (α−2)/3 x (1 + (α−3)/4 x (…)))
		series, term := 1.0, 1.0
		for k := 3.0; math.Abs(term) > 1e-18; k++ {
			term *= (alpha - k + 1) / k * x
			series += term
		}
		return math.Log(alpha*t/2*series) + 2*math.Log(math.Abs(x))
	}
	l := math.Log1p(x)
	if alpha*l > 40 {
		return alpha*l + math.Log1p(-(1+alpha*x)*math.Exp(-alpha*l))
	}
	return math.Log((1+x)*math.Expm1(t*l) - t*x)
}

// sampledGaussianChord bounds the divergence at a broken order between whole
// ones: (α−1)·D_α is convex in α and 0 at α = 1. It serves noise so small that
// the integral would need many points.
func sampledGaussianChord(alpha, q, sigma float64) float64 {
	below := math.Floor(alpha)
	k0 := 0.0
	if below > 1 {
		k0 = (below - 1) * sampledGaussianWhole(below, q, sigma)
	}
	k1 := below * sampledGaussianWhole(below+1, q, sigma)
	part := alpha - below
	return ((1-part)*k0 + part*k1) / (alpha - 1) * (1 + slack)
}
