package audit

import (
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// deviation is the standard deviation of Gaussian noise that is charged for q on a sample of s, or the scale of Laplace
// noise; 0 for none. unit is that of the sum. It follows from what is charged and not from the oracle, whose arithmetic
// it tests.
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

// curvedDeviation is the standard deviation on the diagonal that is charged for q, in the unit² of the sum.
func curvedDeviation(q oracle.Hess, s sample.Sampler, facts *oracle.Public, unit float64) float64 {
	entries := facts.Dim * facts.Dim
	slack := mech.Slack(max(16*unit*unit, mech.Grid(q.Clip, entries, 2)), entries, 2)
	moves := q.Clip
	if facts.BothMoves(s) { // both are of what the rounded sum moves
		moves, slack = moves+slack, 0
	}
	if facts.Adjacency == privacy.ReplaceOne {
		moves *= math.Sqrt2
	}
	return q.Noise.Sigma * (moves + slack)
}

// mostScores is the largest number of values that are tested for their law.
const mostScores = 1 << 17

// residuals are released sums of synthetic rows less the exact sums: pure noise.
// Each becomes a score, which is standard normal if the noise is what is charged and independent of all else.
type residuals struct {
	of      string  // what they are of: nothing for gradients
	square  float64 // of chi-square law
	degrees int
	scores  []float64 // the first
	along   float64   // sum over the releases: the noise along the exact sum
	sums    int
	laplace bool // some noise is; its scores are transformed

	columns, steps, runs audit.Pairing
	score, grown, exact  []float64 // of this release
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
	if r.degrees += len(g); laplace {
		r.degrees += len(g)
		r.laplace = true
	}
	if length > 0 {
		r.along += along / math.Sqrt(length)
		r.sums++
	}
	r.note(z)
}

// matrix takes the release of a symmetric matrix, its upper triangle row after row, whose noise has this standard
// deviation on the diagonal, and beside it one that is smaller by √2.
func (r *residuals) matrix(h []float64, size float64, counts []int64, unit, scale float64, dim int) {
	r.grown, r.exact = r.grown[:0], r.exact[:0]
	for i, at := 0, 0; i < dim; i++ {
		for j := i; j < dim; j, at = j+1, at+1 {
			times := math.Sqrt2
			if i == j {
				times = 1
			}
			r.grown, r.exact = append(r.grown, times*h[at]), append(r.exact, times*float64(counts[at])*unit*unit)
		}
	}
	r.hear(r.grown, size, r.exact, scale, false)
}

// choice takes the choice k among candidates of which each is exp(scores) as likely. Where u is uniform in the part of
// [0, 1] that is the candidate's, the candidates being in the order of their scores, it is uniform in [0, 1]: that
// becomes a normal score.
func (r *residuals) choice(k int, scores []float64, u float64) {
	best := slices.Max(scores)
	below, all := 0.0, 0.0
	for j, v := range scores {
		weight := math.Exp(v - best)
		switch all += weight; {
		case j == k:
			below += u * weight
		case v > scores[k] || v == scores[k] && j < k:
			below += weight
		}
	}
	z := audit.Normal(min(max(below/all, 1e-300), 1-0x1p-53))
	r.square += z * z
	r.degrees++
	r.note(append(r.score[:0], z))
}

// note notes the scores of one release.
func (r *residuals) note(z []float64) {
	r.score = z
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
	if r.degrees == 0 {
		return nil
	}
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
	for i := range t {
		t[i].Name = "noise" + r.of + strings.TrimPrefix(t[i].Name, "noise")
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
