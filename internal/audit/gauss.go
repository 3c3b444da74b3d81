package audit

import (
	"math"
	"slices"
)

// Normal is the z that a standard normal variable exceeds with probability alpha.
func Normal(alpha float64) float64 { return math.Sqrt2 * math.Erfcinv(2*alpha) }

// gammaTails are P(X ≤ x) and P(X > x) of the gamma law of shape a and scale 1: its series below the mean, and the
// continued fraction of its upper tail above (Abramowitz and Stegun 6.5.29 and 6.5.31).
func gammaTails(a, x float64) (lower, upper float64) {
	if !(x > 0) {
		return 0, 1
	}
	lg, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - lg)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := 1.0; term > sum*1e-17; n++ {
			term *= x / (a + n)
			sum += term
		}
		return min(1, front*sum), max(0, 1-front*sum)
	}
	fraction := lentz(x+1-a, func(n float64) (num, den float64) { return -n * (n - a), x + 2*n + 1 - a })
	return max(0, 1-front/fraction), min(1, front/fraction)
}

// lentz is the continued fraction b0 + a1/(b1 + a2/(b2 + …)).
func lentz(b0 float64, next func(n float64) (a, b float64)) float64 {
	const tiny = 1e-300
	f := b0
	if f == 0 {
		f = tiny
	}
	c, d := f, 0.0
	for n := 1.0; n < 1e7; n++ {
		a, b := next(n)
		if d = b + a*d; d == 0 {
			d = tiny
		}
		if c = b + a/c; c == 0 {
			c = tiny
		}
		d = 1 / d
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}

// ChiSquare returns P(X ≤ x) and P(X > x) of the chi-square law with k degrees of freedom.
func ChiSquare(k int, x float64) (lower, upper float64) { return gammaTails(float64(k)/2, x/2) }

// ChiQuantile is the x with P(X ≤ x) = alpha of the chi-square law with k degrees of freedom.
func ChiQuantile(k int, alpha float64) float64 {
	lo, hi := 0.0, float64(k)+20*math.Sqrt(float64(k))+100*(1-math.Log10(min(alpha, 1-alpha)))
	for range 100 {
		mid := (lo + hi) / 2
		lower, upper := ChiSquare(k, mid)
		if alpha < 0.5 && lower < alpha || alpha >= 0.5 && upper > 1-alpha {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// betaLower is P(X ≤ x) of the beta law of parameters a and a, x at most ½ (Abramowitz and Stegun 26.5.8).
func betaLower(a, x float64) float64 {
	if !(x > 0) {
		return 0
	}
	two, _ := math.Lgamma(2 * a)
	one, _ := math.Lgamma(a)
	front := math.Exp(two-2*one+a*math.Log(x)+a*math.Log1p(-x)) / a
	return min(1, front/lentz(1, func(n float64) (float64, float64) {
		m := math.Floor(n / 2)
		if n == 2*m {
			return m * (a - m) * x / ((a + 2*m - 1) * (a + 2*m)), 1
		}
		return -(a + m) * (2*a + m) * x / ((a + 2*m) * (a + 2*m + 1)), 1
	}))
}

// A Pairing adds up pairs of values, to test whether they are independent.
type Pairing struct {
	plus, minus float64
	n           int
}

// Add adds pairs of values that are normal with mean 0 and one variance, if they are what they should be. No value is
// in two pairs.
func (p *Pairing) Add(a, b []float64) {
	for i, x := range a {
		y := b[i]
		p.plus += (x + y) * (x + y)
		p.minus += (x - y) * (x - y)
	}
	p.n += len(a)
}

// P is the probability of pairs that are as far from independent, either way (PROOFS.md, residuals).
func (p *Pairing) P() float64 {
	if p.n == 0 {
		return 1
	}
	return min(1, 2*betaLower(float64(p.n)/2, min(p.plus, p.minus)/(p.plus+p.minus)))
}

// Kolmogorov returns a bound on the probability of a sample as far from the standard normal law, in the distance of
// Kolmogorov and Smirnov. It sorts the sample.
func Kolmogorov(z []float64) float64 {
	slices.Sort(z)
	n, far := float64(len(z)), 0.0
	for i, v := range z {
		f := math.Erfc(-v/math.Sqrt2) / 2
		far = max(far, f-float64(i)/n, float64(i+1)/n-f)
	}
	return min(1, 2*math.Exp(-2*n*far*far))
}

// Share returns a bound on the probability that k of n trials of probability p are as far from p·n. The trials are
// independent, or draws without replacement.
func Share(k, n int, p float64) float64 {
	if n == 0 || p <= 0 || p >= 1 {
		return 1
	}
	x := float64(k) / float64(n)
	kl := 0.0
	if x > 0 {
		kl += x * math.Log(x/p)
	}
	if x < 1 {
		kl += (1 - x) * math.Log((1-x)/(1-p))
	}
	return min(1, 2*math.Exp(-float64(n)*kl))
}

// Shift is a lower bound on how many standard deviations the mean of one normal law is above that of another of the
// same variance. It is too high with probability failure at most (PROOFS.md, gaussian).
func Shift(in, out []float64, failure float64) float64 {
	k := len(in) + len(out) - 2
	if len(in) == 0 || len(out) == 0 || k < 1 {
		return 0
	}
	mean := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += x / float64(len(v))
		}
		return sum
	}
	squares := func(v []float64, m float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += (x - m) * (x - m)
		}
		return sum
	}
	m1, m0 := mean(in), mean(out)
	// The variance is at most this, except with a tenth of failure.
	most := math.Sqrt((squares(in, m1) + squares(out, m0)) / ChiQuantile(k, failure/10))
	apart := max(0, m1-m0)
	return max(0, apart/most-Normal(failure*9/10)*math.Sqrt(1/float64(len(in))+1/float64(len(out))))
}

// A Split bounds an event on each of two tables: it has probability P at least on the one, and Q at most on the other.
type Split struct{ P, Q float64 }

// Splits bounds the probabilities of the events that a score is above, or not above, each of the thresholds, which were
// fixed beforehand. All bounds hold together except with probability failure. The first threshold gets half of it.
func Splits(in, out, thresholds []float64, failure float64) []Split {
	var s []Split
	for i, t := range thresholds {
		each := failure / 2
		if len(thresholds) > 1 && i > 0 {
			each /= float64(len(thresholds) - 1)
		} else if len(thresholds) == 1 {
			each = failure
		}
		above := func(v []float64) (n int) {
			for _, x := range v {
				if x > t {
					n++
				}
			}
			return n
		}
		a, b := above(in), above(out)
		each /= 4 // two events of two bounds
		s = append(s, Split{Lower(a, len(in), each), Upper(b, len(out), each)},
			Split{Lower(len(out)-b, len(out), each), Upper(len(in)-a, len(in), each)})
	}
	return s
}

// Refutes says whether bounds on events refute a curve.
func (c Curve) Refutes(splits []Split) bool {
	for _, s := range splits {
		if c.least(s.P) > s.Q {
			return true
		}
	}
	return false
}

// EpsilonOf is the largest ε that bounds on events show of any mechanism at delta.
func EpsilonOf(splits []Split, delta float64) float64 {
	epsilon := 0.0
	for _, s := range splits {
		if s.P > delta {
			epsilon = max(epsilon, math.Log((s.P-delta)/s.Q))
		}
	}
	return epsilon
}
