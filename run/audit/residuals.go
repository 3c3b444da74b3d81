package audit

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// deviation is the standard deviation of Gaussian noise that is charged for q on a sample of s, or the scale of Laplace noise; 0 for
// none. unit is that of the sum. It follows from what is charged and not from the oracle, whose arithmetic it tests.
func deviation(q oracle.Grad, s sample.Sampler, facts *oracle.Public, unit float64) (scale float64, laplace bool) {
	norm, bound := q.Clip.Norm(), q.Clip.Bound()
	adjacency, times := facts.Adjacency, 1.0
	if _, gaussian := q.Noise.(mech.Gaussian); gaussian && facts.BothMoves(s) {
		adjacency, times = privacy.AddRemove, 2 // of what presence moves the rounded sum: oracle/private/PROOFS.md, moves
	}
	sens, err := clip.Sensitivity(bound, adjacency)
	if err != nil {
		return 0, false
	}
	sens = times * (sens + mech.Slack(max(16*unit, mech.Grid(bound, facts.Dim, norm)), facts.Dim, norm))
	switch e := q.Noise.Event().(type) {
	case privacy.Gaussian:
		return e.Sigma * sens, false
	case privacy.Laplace:
		return e.Scale * sens, true
	}
	return 0, false
}

// mostScores is the largest number of values that are tested for their law.
const mostScores = 1 << 17

// residuals are released sums of synthetic rows less the exact sums: pure noise.
// Each becomes a score, which is standard normal if the noise is what is charged and independent of all else.
type residuals struct {
	square  float64 // of chi-square law
	degrees int
	scores  []float64 // the first
	along   float64   // sum over the releases: the noise along the exact sum
	sums    int
	laplace bool // some noise is; its scores are transformed

	columns, steps, runs audit.Pairing
	score                []float64 // of this release
	last                 []float64 // of the one before, if that has no pair
	lastRun              []float64 // of a run's first
	number               int       // of the releases of this run
}

// begin begins a run.
func (r *residuals) begin() { r.number, r.last = 0, r.last[:0] }

// hear takes one release, over the size of its batch, and the exact sum.
func (r *residuals) hear(g []float64, size float64, exact []float64, scale float64, laplace bool) {
	z := r.score[:0]
	along, length := 0.0, 0.0
	for j, v := range g {
		x := (v*size - exact[j]) / scale
		if laplace {
			r.square += 2 * math.Abs(x)
			x = math.Copysign(audit.Normal(math.Exp(-math.Abs(x))/2), x)
		} else {
			r.square += x * x
		}
		along += x * exact[j]
		length += exact[j] * exact[j]
		z = append(z, x)
	}
	r.score = z
	if r.degrees += len(g); laplace {
		r.degrees += len(g)
		r.laplace = true
	}
	if length > 0 {
		r.along += along / math.Sqrt(length)
		r.sums++
	}
	r.scores = append(r.scores, z[:min(len(z), mostScores-len(r.scores))]...)
	for j := 0; j+1 < len(z); j += 2 {
		r.columns.Add(z[j:j+1], z[j+1:j+2])
	}
	if len(r.last) == len(z) {
		r.steps.Add(r.last, z)
		r.last = r.last[:0]
	} else {
		r.last = append(r.last[:0], z...)
	}
	if r.number == 0 {
		if len(r.lastRun) == len(z) {
			r.runs.Add(r.lastRun, z)
			r.lastRun = r.lastRun[:0]
		} else {
			r.lastRun = slices.Clone(z)
		}
	}
	r.number++
}

// tests are those of the noise.
func (r *residuals) tests() []Test {
	lower, upper := audit.ChiSquare(r.degrees, r.square)
	t := []Test{
		{"noise: scale", min(1, 2*min(lower, upper))},
		{"noise: law", audit.Kolmogorov(r.scores)},
		{"noise: independent of coordinates", r.columns.P()},
		{"noise: independent of steps", r.steps.P()},
		{"noise: independent of runs", r.runs.P()},
	}
	if r.sums > 0 {
		t = append(t, Test{"noise: independent of sums", math.Erfc(math.Abs(r.along) / math.Sqrt(2*float64(r.sums)))})
	}
	return t
}

// between is the interval of the noise's scale, over what is charged.
func (r *residuals) between(failure float64) (lo, hi float64) {
	lo, hi = r.square/audit.ChiQuantile(r.degrees, 1-failure/2), r.square/audit.ChiQuantile(r.degrees, failure/2)
	if !r.laplace {
		lo, hi = math.Sqrt(lo), math.Sqrt(hi)
	}
	return lo, hi
}
