package claimed

import "math"

// What releases cost in truth where a paper's own figure is refuted: exact divergences of
// concrete neighbors, so lower bounds on the cost of the mechanism.

// passProbability is how likely the search of P2 with one candidate and budget eps passes,
// where the candidate's answer lies above the threshold by the sensitivity (S-2a). The
// noises are Laplace of scales 2/eps and 4/eps.
func passProbability(eps float64) float64 {
	// X − Y for X ~ Lap(a), Y ~ Lap(b): P(X − Y > t) = (a² e^{−t/a} − b² e^{−t/b})/(2(a² − b²)).
	a, b := 2/eps, 4/eps
	return 1 - (a*a*math.Exp(-1/a)-b*b*math.Exp(-1/b))/(2*(a*a-b*b))
}

// sameBatchSearches is the divergence of order alpha of k such searches on one Poisson
// sample of rate q that holds a record against one that cannot: the record moves the answer
// from the threshold to above it.
func sameBatchSearches(k int, q, eps, alpha float64) float64 {
	p := passProbability(eps)
	sum := newLogSum()
	for passes := 0; passes <= k; passes++ {
		without := logChoose(k, passes) - float64(k)*math.Ln2
		ratio := float64(passes)*math.Log(2*p) + float64(k-passes)*math.Log(2*(1-p))
		mixed := newLogSum()
		mixed.add(math.Log1p(-q))
		mixed.add(math.Log(q) + ratio)
		sum.add(without + alpha*mixed.log())
	}
	return sum.log() / (alpha - 1)
}

// gaussianSearch is the divergence of order alpha of P2's search with Gaussian noise, of
// deviations sigma1 of the threshold and sigma2 of an answer, between tables whose answers
// are before and after (S-2d). The integral over the threshold's noise is a sum over equal
// steps, which for such an integrand is exact to many digits.
func gaussianSearch(before, after []float64, sigma1, sigma2, alpha float64) float64 {
	const points, reach = 1600, 12.0
	p, q := make([]float64, len(before)+1), make([]float64, len(before)+1)
	for _, law := range []struct{ answers, to []float64 }{{before, p}, {after, q}} {
		for i := range points + 1 {
			z := reach * (2*float64(i)/points - 1)
			left := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * 2 * reach / points // nobody has passed
			for k, answer := range law.answers {
				t := (sigma1*z - answer) / sigma2
				law.to[k] += left * math.Erfc(t/math.Sqrt2) / 2
				left *= math.Erfc(-t/math.Sqrt2) / 2
			}
			law.to[len(law.answers)] += left
		}
	}
	sum := newLogSum()
	for k := range p {
		if p[k] > 0 {
			sum.add(alpha*math.Log(p[k]) - (alpha-1)*math.Log(q[k]))
		}
	}
	return sum.log() / (alpha - 1)
}

// sizeLeak is D_alpha(N(0, b⁻² I) ‖ N(0, (b+1)⁻² I)) in d dimensions, and the reverse one:
// what the scale of the noise alone tells where a noisy sum is divided by the realized size
// b of the batch (S-2b).
func sizeLeak(b, d, alpha float64) (forward, reverse float64) {
	// In one dimension, with r the second variance over the first:
	// (α ln r − ln(αr + 1 − α))/(2(α − 1)).
	renyi := func(log float64) float64 { // of ln r
		return d / (2 * (alpha - 1)) * (alpha*log - math.Log1p(alpha*math.Expm1(log)))
	}
	log := 2 * math.Log1p(1/b)
	return renyi(-log), renyi(log)
}

// oneSided is the δ that a value released as f + |z| has at every ε, z Gaussian of deviation
// sigma over the sensitivity: the neighbor's value cannot be reached (S-4a).
func oneSided(sigma float64) float64 { return math.Erf(1 / (sigma * math.Sqrt2)) }

// wrongMinimum is the true pure ε of argmax(score − Exp) of scale 1/eps over the
// sensitivity, among k candidates (S-B1).
func wrongMinimum(k int, eps float64) float64 {
	return math.Log(float64(k) - float64(k-1)*math.Exp(-eps))
}

// filterWeight is c(α) of the Lemma of S-2c: (r − e^ε)₊ ≤ c(α) e^{−(α−1)ε} r^α.
func filterWeight(alpha float64) float64 {
	return math.Exp((alpha-1)*math.Log1p(-1/alpha)) / alpha
}
