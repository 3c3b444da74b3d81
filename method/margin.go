package method

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/oracle"
)

// A MarginFactor finds by what factor a run's model is too sure of itself, from the run's releases and
// public facts alone. Two things make it so. Clipping: a row on the wrong side pulls with C at most, a row
// on the right side with its whole slope, so that the clipped objective is least at larger margins than the
// loss. Noise: it moves margins, and no label. Both show in what was released.
//
// Let z = w·x be the margin of a row of the table at the output w, and P(y = 1 | z) = σ(a·z). Rows have
// norm R, so that a gradient clipped to C is a slope clipped to c = C/R. With [s]_c for s clipped to ±c,
//
//	A = E z·[σ(z) − y]_c     the mean of g_t·w_t over the last half of the run: w_t has no part in the noise of g_t,
//	                         so that its deviation is s‖w_t‖ for each, s that of the noise in a coordinate of g_t
//	M = E z·(2y − 1)         −g_0·w/min(c, ½): at w_0 = 0 all slopes are ∓½, clipped to c
//
// With z ~ N(0, τ²) both follow from a and τ. The factor is the mean of a, given A and M with the noise that is
// known, under public laws of a and τ. That of a has the median 1 − ρ/2, where ρ is how much of ‖w‖² would be noise
// in a table without curvature (NoiseVariance). A factor above 1, of margins that are still too small, is not used:
// on small tables it would mostly be noise.
//
// It is one number for all rows: it changes probabilities, no class and no order (docs/measurements/methods.md).
type MarginFactor struct {
	auto  Auto
	pub   oracle.Public
	obj   Objective
	part  float64 // of R², the square of the norm of rows less their center
	steps int     // seen

	start, w      []float64 // g_0, w_t
	force, square float64   // sums of g_t·w_t and ‖w_t‖² over the last half
	n             int       // of that many terms
	lean          *Step     // the last step, where it leans
}

// The public laws, measured on tables (docs/measurements/methods.md): of ln a and ln τ normal with these
// deviations, and how far A/c and M may be from what a normal law of margins gives.
const (
	marginSpread = 0.7
	sizeMedian   = 3.0
	sizeSpread   = 0.3
	forceSlack   = 0.02
	pullSlack    = 0.1
)

// MarginFactor returns nil where the method's model has no factor: it is for logistic regression, by Gaussian
// noise and gradients of all rows, each row by itself, that are clipped in their norm.
func (m Auto) MarginFactor(pub oracle.Public, obj Objective) *MarginFactor {
	if m.LastNoise > 0 || m.ShareNoise > 0 {
		return nil // the run's model has its own in its parameters
	}
	return m.marginFactor(pub, obj)
}

func (m Auto) marginFactor(pub oracle.Public, obj Objective) *MarginFactor {
	g := m.Gradient
	logistic := pub.OneMargin && pub.Classes == 2 && pub.StartLoss == math.Ln2
	if m.RawMargins || !logistic || pub.UnitRows > 0 || g.Off || g.Laplace || g.Clipping == ByValue ||
		g.Batch != 0 && g.Batch != pub.Rows {
		return nil
	}
	zeros := func() []float64 { return make([]float64, pub.Dim) }
	return &MarginFactor{auto: m, pub: pub, obj: obj, part: 1, start: zeros(), w: zeros()}
}

// Add takes the next step.
func (f *MarginFactor) Add(st Step) {
	if st.Lean != 0 {
		f.lean = &st
	}
	if st.T != f.steps+1 {
		return
	}
	if f.steps == 0 && st.Center != nil {
		f.auto, f.part = f.auto.around(f.pub, f.obj, st.Center)
	}
	m := f.auto
	tail := 2*st.T > m.Steps // as in Averager
	if f.steps == 0 {
		copy(f.start, st.Gradient)
	}
	if tail {
		f.force += floats.Dot(st.Gradient, f.w)
		f.square += floats.Dot(f.w, f.w)
		f.n++
	}
	copy(f.w, st.W)
	f.steps = st.T
}

// Of returns the factor for the output w, a tail average; 0 if the run has not taken all its steps.
func (f *MarginFactor) Of(w []float64) float64 {
	size := floats.Dot(w, w)
	if f.steps < f.auto.Steps || size == 0 {
		return 0
	}
	if f.lean != nil { // an average row has the share of the class as its probability
		return math.Min(1, math.Log(f.lean.Share/(1-f.lean.Share))/math.Abs(f.lean.Lean*math.Sqrt(size)))
	}
	c, noise := f.auto.Gradient.Clip/(f.auto.facts(f.pub, f.obj).row*math.Sqrt(f.part)),
		math.Sqrt(f.auto.Gradient.Variance(f.pub))
	half := math.Min(c, 0.5)
	n := float64(f.n)
	force := observed{f.force / n / c, math.Hypot(noise*math.Sqrt(f.square)/n/c, forceSlack)}
	pull := observed{-floats.Dot(f.start, w) / half, math.Hypot(noise*math.Sqrt(size)/half, pullSlack)}
	rho := math.Min(1, float64(len(w))*f.auto.NoiseVariance(f.pub, f.obj.convex())/size)
	return math.Round(1e4*math.Min(1, expectedFactor(c, 1-rho/2, force, pull))) / 1e4
}

// An observed value is one with normal noise.
type observed struct{ value, deviation float64 }

func (o observed) log(at float64) float64 {
	z := (at - o.value) / o.deviation
	return -z * z / 2
}

// The grid on which expectedFactor integrates: a, the size of margins, and half of the normal law in deviations.
const (
	aFrom, aStep, aCount          = 0.15, 0.05, 60
	sizeFrom, sizeStep, sizeCount = 0.5, 0.08, 40
	zStep, zCount                 = 0.1, 60
)

// marginLaw is what does not depend on a run at the points of the grid.
type marginLaw struct {
	a       [aCount]float64
	size    [sizeCount]float64
	weights float64
	moment  [sizeCount][zCount]float64         // weight × z
	wrong   [sizeCount][zCount]float64         // 1 − σ(z)
	right   [aCount][sizeCount][zCount]float64 // P(y = 1 | z)
	pull    [aCount][sizeCount]float64
}

var lawOfMargins = sync.OnceValue(func() *marginLaw {
	m := &marginLaw{}
	for k := range zCount {
		u := zStep * (float64(k) + 0.5)
		weight := math.Exp(-u * u / 2)
		m.weights += weight
		for j := range sizeCount {
			m.size[j] = sizeFrom * math.Exp(sizeStep*float64(j))
			z := m.size[j] * u
			m.moment[j][k], m.wrong[j][k] = weight*z, 1/(1+math.Exp(z))
			for i := range aCount {
				m.a[i] = aFrom * math.Exp(aStep*float64(i))
				m.right[i][j][k] = 1 / (1 + math.Exp(-m.a[i]*z))
				m.pull[i][j] += m.moment[j][k] * (2*m.right[i][j][k] - 1)
			}
		}
	}
	return m
})

// expectedFactor is the mean of a, given A/c and M.
func expectedFactor(c, median float64, force, pull observed) float64 {
	law := lawOfMargins()
	var logs [aCount][sizeCount]float64
	top := math.Inf(-1)
	priorA, priorSize := observed{math.Log(median), marginSpread}, observed{math.Log(sizeMedian), sizeSpread}
	for i, a := range law.a {
		for j, size := range law.size {
			atForce, moment, wrong := 0.0, &law.moment[j], &law.wrong[j]
			for k, right := range &law.right[i][j] {
				atForce += moment[k] * ((1-right)*min(1-wrong[k], c) - right*min(wrong[k], c))
			}
			l := force.log(atForce/law.weights/c) + pull.log(law.pull[i][j]/law.weights) + priorA.log(math.Log(a)) +
				priorSize.log(math.Log(size))
			logs[i][j], top = l, max(top, l)
		}
	}
	sum, all := 0.0, 0.0
	for i := range logs {
		growth := math.Exp(aStep * float64(i))
		for _, l := range logs[i] {
			p := math.Exp(l - top)
			sum += p * aFrom * growth
			all += p
		}
	}
	return sum / all
}

// NoiseVariance is that of the known noise in a coordinate of the tail average, in a direction in which the
// objective has that curvature: its square root bounds the noise of a coefficient where the curvature of the loss
// is not known and taken as 0. With ξ_t for the noise of step t,
//
//	w_{t+1} = w_t − η(λw_t + ξ_t) + β(w_t − w_{t−1}),
//
// so that ξ_t moves w_{t+k} by u_k·ξ_t, where u_0 = 0, u_1 = −η and u_{k+1} = u_k − ηλu_k + β(u_k − u_{k−1}).
func (m Auto) NoiseVariance(pub oracle.Public, curvature float64) float64 {
	return m.Gradient.Variance(pub) * m.response(curvature)
}

// response is NoiseVariance where the noise of a step has variance 1.
func (m Auto) response(curvature float64) float64 {
	first := m.Steps/2 + 1 // of the iterates in the average
	square := 0.0
	if m.Metric { // by one that knows the curvature
		rate, in := m.Rate/(1+m.Rate*curvature/(1+m.Momentum)), &metric{}
		for t := range m.Steps {
			before, u, moved := 0.0, -rate, 0.0
			for k := t + 1; k <= m.Steps; k++ {
				if k >= first {
					moved += u
				}
				before, u = u, u-rate*curvature*u+in.momentum(m.Momentum, k)*(u-before)
			}
			square += moved * moved
		}
	} else {
		sums := make([]float64, m.Steps+1) // of u_1 … u_k
		before, u := 0.0, -m.Rate
		for k := 1; k <= m.Steps; k++ {
			sums[k] = sums[k-1] + u
			before, u = u, u-m.Rate*curvature*u+m.Momentum*(u-before)
		}
		for t := range m.Steps {
			moved := sums[m.Steps-t] - sums[max(0, first-t-1)]
			square += moved * moved
		}
	}
	count := float64(m.Steps - first + 1)
	return square / (count * count)
}

// ParameterNoise is at most the standard deviation of the known noise in each parameter of a finished run's tail
// average, and in each combination of parameters whose squares add up to 1; 0 where it is not known. Where the loss has
// curvature, it pulls noise back. For a quadratic loss the bound is exact: with a curvature from 0 to 2(1+β)/η, u_k of
// NoiseVariance is −η·Σ r^i·s^(k−1−i), over i < k, with rs = β and |r|, |s| ≤ 1, and no such sum is larger than that of
// r = 1, s = β, which is no curvature. With a metric P, at most I, this holds for P^½w, whose noise is P^½ξ_t, and for
// the momentum of such a run TestMetricNoise tries it. For other convex losses it is an approximation.
func (m Auto) ParameterNoise(pub oracle.Public, obj Objective, last Step) float64 {
	g := m.Gradient
	if m.Solve == SolveStatistics || g.Off || g.Laplace || g.Clipping == ByValue || g.Batch != 0 && g.Batch != pub.Rows ||
		last.T < m.Steps {
		return 0
	}
	m, pub = m.within(pub, last.Width)
	m = m.skewed(pub, last.Shift)
	if last.Center != nil {
		m, _ = m.around(pub, obj, last.Center)
	}
	return math.Sqrt(m.NoiseVariance(pub, 0))
}
