package audit

import (
	"math"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
)

// numbers of canaries in one run, among which Canaries chooses.
var numbers = []int{100, 200, 500, 1000, 2000, 5000, 10000, 20000}

// Canaries is the number of canaries for an audit of the job in one run: the one with the largest expected bound. It
// follows from public values alone. Few canaries show little, since a bound needs many right guesses. Many disturb each
// other.
func Canaries(job *run.Job) (int, error) {
	replace := job.Facts.Adjacency == privacy.ReplaceOne // canaries take the place of rows
	if replace && privacy.Contains[privacy.FixedSampled](job.Plan) {
		return job.Facts.Rows - 1, nil // see Rows
	}
	loss, err := job.Accountant.Loss(job.Plan, job.Facts.Adjacency)
	if err != nil {
		return 0, err
	}
	best, most := numbers[0], -1.0
	if replace {
		best = max(1, min(best, job.Facts.Rows/2))
	}
	for _, n := range numbers {
		if replace && n > job.Facts.Rows/2 {
			break
		}
		mu, err := signal(job, loss, n)
		if err != nil {
			return 0, err
		}
		_, epsilon, err := guesses(n, mu)
		if err != nil {
			return 0, err
		}
		if epsilon < most {
			break
		}
		if epsilon > most {
			best, most = n, epsilon
		}
	}
	return best, nil
}

// signal is how far apart the odds of a canary are, whether it takes part or not, in standard deviations and among n
// canaries: the μ of the Gaussian with the advantage of the claim, if what the other canaries add is more noise.
func signal(job *run.Job, loss account.Loss, n int) (float64, error) {
	more := float64(n-1) * disturbance(job, gaussianOf(loss))
	loss, err := claims(job.Plan, job.Accountant, job.Facts.Adjacency)(1 / math.Sqrt(1+more))
	if err != nil {
		return 0, err
	}
	return gaussianOf(loss), nil
}

// gaussianOf is the μ of the Gaussian release of the same advantage, δ(0) = 2Φ(μ/2) − 1.
func gaussianOf(l account.Loss) float64 {
	return 2 * math.Sqrt2 * math.Erfinv(min(max(l.Delta(0), 1e-6), 0.9999))
}

// disturbance is the variance that one canary adds to the statistic of another, over that of the noise: the mean of the
// steps by their information. The squared product of two random directions in d dimensions is 1/d on average. A canary
// takes part with probability ½, and is then in a sample with the probability of its rate; under replace-one, where the
// sensitivity is twice its length, it adds itself or the opposite to each.
func disturbance(job *run.Job, mu float64) float64 {
	each := 0.5
	if job.Facts.Adjacency == privacy.ReplaceOne {
		each = 0.25
	}
	each /= float64(job.Facts.Dim)
	if privacy.Contains[privacy.Filtered](job.Plan) { // what each step adds is not known beforehand
		return each * mu * mu / float64(method.MaxSteps(job.Method))
	}
	type sums struct{ information, disturbed float64 }
	of := func(variance float64) sums { return sums{1 / variance, 1 / (variance * variance)} }
	s := privacy.Fold(job.Plan, func(e privacy.Event, parts []sums) (s sums) {
		for _, p := range parts {
			s.information += p.information
			s.disturbed += p.disturbed
		}
		switch e := e.(type) {
		case privacy.Gaussian:
			return of(e.Sigma * e.Sigma)
		case privacy.GaussianSum:
			return of(e.Replacement * e.Replacement)
		case privacy.Laplace:
			return of(2 * e.Scale * e.Scale)
		case privacy.Repeated:
			return sums{s.information * float64(e.Count), s.disturbed * float64(e.Count)}
		case privacy.PoissonSampled:
			return sums{s.information * e.Rate * e.Rate, s.disturbed * e.Rate * e.Rate * e.Rate}
		}
		return s
	})
	if s.information == 0 {
		return 0
	}
	return each * s.disturbed / s.information
}
