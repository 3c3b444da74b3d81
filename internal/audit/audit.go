// Package audit measures from outside how private a mechanism is: it draws from two laws, those of
// its outcome on two neighboring inputs, and returns a lower bound on ε that holds except with a
// stated probability. A bound above what is claimed refutes the claim; a bound below it proves nothing,
// so every use in a test also has planted faults. PROOFS.md has the proofs of the bounds.
package audit

import (
	"fmt"
	"math"
	"slices"
)

// Lower is the lower Clopper–Pearson bound on a probability: k successes in n independent
// trials leave it too high with probability failure at most.
func Lower(k, n int, failure float64) float64 {
	if k == 0 {
		return 0
	}
	// The largest p with P(X ≥ k) ≤ failure. The tail grows in p and is above failure at k/n.
	lo, hi := 0.0, float64(k)/float64(n)
	for range 60 {
		p := (lo + hi) / 2
		if upperTail(k, n, p) <= failure {
			lo = p
		} else {
			hi = p
		}
	}
	return lo
}

// Upper is the upper Clopper–Pearson bound on a probability, the mirror of Lower.
func Upper(k, n int, failure float64) float64 { return 1 - Lower(n-k, n, failure) }

// upperTail is P(X ≥ k) of a binomial X of n trials of probability p ≤ k/n: terms fall
// from the first on.
func upperTail(k, n int, p float64) float64 {
	if p <= 0 {
		return 0
	}
	if p >= 1 {
		return 1
	}
	term := math.Exp(choose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	sum := 0.0
	for odds := p / (1 - p); k <= n && term > sum*1e-17; k++ {
		sum += term
		term *= odds * float64(n-k) / float64(k+1)
	}
	return sum
}

func choose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// A Law draws one outcome, a label from 0 up.
type Law func() int

// draw counts n outcomes by label; labels that are too high or too low are a mistake of the test.
func draw(law Law, n, labels int) []int {
	count := make([]int, labels)
	for range n {
		x := law()
		if x < 0 || x >= labels {
			panic(fmt.Sprintf("audit: outcome %d outside 0 to %d", x, labels-1))
		}
		count[x]++
	}
	return count
}

// Epsilon draws n outcomes from each law, half of them to choose an event and half to test
// it, in both directions. If the laws are those of an (ε, δ)-private mechanism on neighbors,
// the result is above ε with probability failure at most. It is 0 if nothing is found.
func Epsilon(p, q Law, n, labels int, delta, failure float64) float64 {
	return Epsilons(p, q, n, labels, delta, failure)[0]
}

// Epsilons is Epsilon at several probabilities of failure, each by itself.
func Epsilons(p, q Law, n, labels int, delta float64, failures ...float64) (found []float64) {
	half := n / 2
	trainP, trainQ := draw(p, half, labels), draw(q, half, labels)
	testP, testQ := draw(p, n-half, labels), draw(q, n-half, labels)
	for _, failure := range failures {
		one := test(event(trainP, trainQ, half, delta, failure/4), testP, testQ, n-half, delta, failure/4)
		two := test(event(trainQ, trainP, half, delta, failure/4), testQ, testP, n-half, delta, failure/4)
		found = append(found, max(0, one, two))
	}
	return found
}

// event returns the labels that distinguish P from Q best: those of the largest ratio, as many as give the
// largest bound, by a quick approximation.
func event(p, q []int, n int, delta, failure float64) []int {
	labels := make([]int, len(p))
	for i := range labels {
		labels[i] = i
	}
	ratio := func(i int) float64 { return (float64(p[i]) + 0.5) / (float64(q[i]) + 0.5) }
	slices.SortStableFunc(labels, func(a, b int) int {
		switch ra, rb := ratio(a), ratio(b); {
		case ra > rb:
			return -1
		case ra < rb:
			return 1
		}
		return 0
	})
	z := 2 * -math.Log(failure) // of about −2 ln(failure) standard errors, squared
	best, size := math.Inf(-1), 1
	inP, inQ := 0.0, 0.0
	for k, i := range labels {
		inP, inQ = inP+float64(p[i]), inQ+float64(q[i])
		lo := (inP-math.Sqrt(z*inP))/float64(n) - delta
		up := (inQ + math.Sqrt(z*inQ) + z/2) / float64(n)
		if e := math.Log(lo / up); e > best {
			best, size = e, k+1
		}
	}
	return labels[:size]
}

// test returns a lower bound on ε from the counts of an event that was fixed before; failure
// is for each of its two bounds.
func test(event, p, q []int, n int, delta, failure float64) float64 {
	inP, inQ := 0, 0
	for _, i := range event {
		inP, inQ = inP+p[i], inQ+q[i]
	}
	lo, up := Lower(inP, n, failure)-delta, Upper(inQ, n, failure)
	if !(lo > 0) {
		return 0
	}
	return math.Log(lo / up)
}

// Range draws n outcomes from each law and returns a lower bound on how far the log odds
// between the labels a and b move from one to the other: above ε with probability failure at most if the
// laws are those of an ε-bounded-range mechanism on neighbors.
func Range(p, q Law, n, labels, a, b int, failure float64) float64 {
	inP, inQ := draw(p, n, labels), draw(q, n, labels)
	// Given how many outcomes are a or b, those that are a are a binomial.
	bounds := func(c []int) (lo, up float64) {
		logit := func(x float64) float64 { return math.Log(x) - math.Log1p(-x) }
		return logit(Lower(c[a], c[a]+c[b], failure/4)), logit(Upper(c[a], c[a]+c[b], failure/4))
	}
	loP, upP := bounds(inP)
	loQ, upQ := bounds(inQ)
	return max(0, loP-upQ, loQ-upP)
}
