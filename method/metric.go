package method

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/schema"
)

// A metric makes the steps of a heavy ball shorter where the loss bends more, as far as the first release shows it. So
// they can be much longer elsewhere, and a run needs few of them:
//
//	w_{t+1} = w_t − ηPg_t + β(w_t − w_{t−1}),   P = ((1 + sλ)I + sκG)^−1,   s = η/(1+β)
//
//	g_t   the noisy gradient at w_t, with the regularizer's
//	λ     the regularizer's curvature
//	κ     the loss's, over that of the square of a margin: L/R²
//	G     an estimate of E zzᵀ over the rows z as they are taken, less their center
//
// With G as it is, ηP times the curvature of the objective is at most 1+β, half of what is stable: G may be half of the
// truth. P is at most I, so that noise moves w by no more than it does without a metric: bounds on it hold.
//
// G follows from one-way sums and from the products of lines. Bumps of a column add up to u, the intercept, so that its
// second moments are at most u·diag(q), where q are the bumps' means: those of the law that has mass q_a/u at the
// center of bump a. A line is the sum of its bumps times their centers. From column to column, if two lines have the
// correlation r, the polynomials of degree k that are orthonormal under either law are taken to have r^k, as those of
// normal variables do (Mehler 1866), and others none. Correlations r^k are positive semidefinite as r are (Schur 1911).
// A brake minds what this misses. Of a column with levels one feature is u, so that second moments are u·diag(q), too;
// levels in order count as if they were the first or the last. No covariance is carried to such columns. Rows have no
// others: a number that is not a bump may be far from its mean.
//
// The brake. Two gradients that were released show how much the objective bends along the way between them. With s_t =
// w_t − w_{t−1} and y_t = g_t − g_{t−1}, a step is stable while η⟨s_t, y_t⟩ is below 2(1+β)⟨s_t, P⁻¹s_t⟩. From
// metricBrake⟨s_t, P⁻¹s_t⟩ on, η becomes shorter, for the rest of the run. The noise of g_{t−1} is in both: its mean,
// ησ²·tr P, is taken off, as are metricSure deviations of the rest.
//
// The first steps have less momentum, t/(t+2). With all of it they would go several times too far along what most rows
// agree on, and where classes are rare, clipped gradients come back from there slowly.
//
// All of this is post-processing: it looks at no record, and the run's costs are the same whatever it gives.
type metric struct {
	p, inverse mat.SymDense // P, and its inverse
	noise      float64      // the standard deviation of a number of g_t
	trace      float64      // of P, for all classes
	last, y, s []float64    // g_{t−1}, and the memory of y_t and s_t
}

// Constants of the metric and of runs that have one, measured on tables (docs/measurements/methods.md#fewer-passes).
const (
	metricWork   = 2e10 // products in autoMaxSteps steps, from which on runs have a metric
	metricSteps  = 28
	metricMemory = 5.0  // the run is that many times the memory 1/(1−β)
	metricLong   = 1.24 // × the length, so that tail averages go as far as those of runs without a metric
	metricMost   = 2048 // features
	metricFar    = 1e8  // steps, over those that are stable for all rows, at most
	metricPowers = 15   // of a column's polynomials, at most
	metricBrake  = 2.2
	metricSure   = 2.0
)

// hasMetric says whether runs over such rows have what a metric follows from.
func (m Auto) hasMetric(pub oracle.Public) bool {
	return m.FirstNoise > 0 && bumpsAlone(pub) && pub.Features() <= metricMost
}

// metric is that of a run with Metric over rows of a choice, less a center.
func (m Auto) metric(f *first, obj Objective, choice oracle.Choice, center []float64) *metric {
	c := m.facts(f.pub, obj)
	bend := (c.smooth - obj.smooth()) / (c.row * c.row)
	g := f.moments(choice, center)
	out := &metric{noise: math.Sqrt(m.Gradient.Variance(f.pub))}
	n := g.SymmetricDim()
	long := m.Rate / (1 + m.Momentum)
	out.inverse.ScaleSym(long*bend, g)
	for j := range n {
		out.inverse.SetSym(j, j, out.inverse.At(j, j)+1+long*obj.smooth())
	}
	var cholesky mat.Cholesky
	if !cholesky.Factorize(&out.inverse) || cholesky.InverseTo(&out.p) != nil {
		panic("method: second moments of the first release are not positive") // covariances are, by what they are made of
	}
	out.trace = mat.Trace(&out.p)
	for _, gone := range f.pub.Gone(choice) { // where P is I, and no gradient has noise
		out.trace -= float64(gone[1] - gone[0])
	}
	out.trace *= float64(f.pub.Dim / n)
	return out
}

// turn makes a gradient g at x a direction, Pg. It returns the length of the step along it, after one of length rate
// from before: shorter where the brake works. Without a metric both stay.
func (c *metric) turn(rate float64, g, x, before []float64) float64 {
	if c == nil {
		return rate
	}
	if c.last != nil {
		floats.SubTo(c.s, x, before)
		floats.SubTo(c.y, g, c.last)
		bends := floats.Dot(c.s, c.y) - rate*c.noise*c.noise*c.trace - metricSure*math.Sqrt2*c.noise*floats.Norm(c.s, 2)
		each(c.y, c.s, &c.inverse)
		if most := metricBrake * floats.Dot(c.s, c.y); bends*rate > most {
			rate = most / bends
		}
	} else {
		c.s, c.y = make([]float64, len(g)), make([]float64, len(g))
	}
	c.last = append(c.last[:0], g...)
	each(g, c.last, &c.p)
	return rate
}

// momentum is that of the step from w_t, in a run with momentum beta.
func (c *metric) momentum(beta float64, t int) float64 {
	if c == nil {
		return beta
	}
	return min(beta, float64(t)/float64(t+2))
}

// each sets to to the vectors of from, one behind the other, each multiplied by a.
func each(to, from []float64, a *mat.SymDense) {
	n := a.SymmetricDim()
	for k := 0; k < len(from); k += n {
		mat.NewVecDense(n, to[k:k+n]).MulVec(a, mat.NewVecDense(n, from[k:k+n]))
	}
}

// moments are G, of rows of a choice less a center.
func (f *first) moments(choice oracle.Choice, center []float64) *mat.SymDense {
	n, one := f.pub.Features(), f.pub.Intercept-1
	short := f.shorter(len(choice.Pairs))
	if choice.Lines {
		short = f.alone()
	}
	mean := make([]float64, n)
	floats.AddScaled(mean, short/f.rows, f.all)
	mean[one] = f.unit * short
	g := mat.NewSymDense(n, nil)
	laws := make([][]mass, len(f.pub.Numeric))
	for k, c := range f.pub.Numeric {
		for a := range c.Bumps {
			center := 2*float64(a)/float64(c.Bumps-1) - 1
			laws[k] = append(laws[k], mass{max(0, mean[c.At+1+a]), []entry{{c.At, center}, {c.At + 1 + a, 1}}})
		}
		setCovariance(g, mean[one], laws[k])
	}
	for _, c := range f.pub.Leveled {
		setCovariance(g, mean[one], levels(c, mean, mean[one]))
	}
	f.carry(g, laws, mean, short)
	for k, p := range choice.Pairs {
		law := product(laws[p[0]], laws[p[1]], mean[one], f.pub.FirstSlot()+k*oracle.PairFeatures)
		for _, p := range law {
			mean[p.features[0].at] = p.sum
		}
		setCovariance(g, mean[one], law)
	}
	if center != nil {
		floats.Sub(mean, center)
	}
	g.SymRankOne(g, 1, mat.NewVecDense(n, mean))
	for _, gone := range f.pub.Gone(choice) {
		for j := gone[0]; j < gone[1]; j++ {
			for k := range n {
				g.SetSym(j, k, 0)
			}
		}
	}
	return g
}

// alone is what lines are longer if columns keep their lines alone: those share the row's norm then.
func (f *first) alone() float64 {
	square := f.unit * f.unit
	for _, n := range f.pub.Numeric {
		square += f.square(n, false)
	}
	mean := make([]float64, len(f.all))
	floats.AddScaled(mean, 1/f.rows, f.all)
	for _, c := range f.pub.Leveled {
		for _, p := range levels(c, mean, f.unit) {
			square += p.sum * f.unit
		}
	}
	return max(1, f.pub.NormBound/math.Sqrt(square))
}

// A mass is a point of a law of rows. Features that are not named are 0 there.
type mass struct {
	sum      float64 // the point's part of the rows, times u
	features []entry // over u
}

type entry struct {
	at    int
	value float64
}

// setCovariance sets in g the covariance of the features of a law.
func setCovariance(g *mat.SymDense, u float64, law []mass) {
	sums := map[int]float64{}
	all := 0.0
	for _, p := range law {
		all += p.sum
		for _, a := range p.features {
			sums[a.at] += p.sum * a.value
		}
	}
	for a, v := range sums {
		for b, w := range sums {
			g.SetSym(a, b, -v*w)
		}
	}
	for _, p := range law {
		for i, a := range p.features {
			for _, b := range p.features[i:] {
				g.SetSym(a.at, b.at, g.At(a.at, b.at)+max(u, all)*p.sum*a.value*b.value) // all > u: noise
			}
		}
	}
}

// levels is the law of a column with levels.
func levels(c oracle.Leveled, mean []float64, u float64) (law []mass) {
	if c.Levels == 0 {
		m := max(-u, min(u, mean[c.At]))
		return []mass{{(u + m) / 2, []entry{{c.At, 1}}}, {(u - m) / 2, []entry{{c.At, -1}}}}
	}
	for j := c.At; j < c.At+c.Levels; j++ {
		law = append(law, mass{max(0, mean[j]), []entry{{j, 1}}})
	}
	return law
}

// product is the law of a pair of columns that are independent. Its features are those of the pair, from one on.
func product(a, b []mass, u float64, from int) (law []mass) {
	coarse := func(law []mass) (sums [schema.PairBumps]float64) {
		for _, p := range law {
			j, left, right := schema.Bumps(schema.PairBumps, p.features[0].value)
			sums[j] += left * p.sum
			sums[j+1] += right * p.sum
		}
		return sums
	}
	second := coarse(b)
	for i, v := range coarse(a) {
		for j, w := range second {
			law = append(law, mass{v * w / u, []entry{{from + i*schema.PairBumps + j, 1}}})
		}
	}
	return law
}

// carry adds the covariances from column to column to those within columns, of those laws.
func (f *first) carry(g *mat.SymDense, laws [][]mass, mean []float64, short float64) {
	lines, length := f.paired()
	correlations := mat.NewSymDense(len(lines), nil)
	deviations := make([]float64, len(lines))
	for i, a := range lines {
		deviations[i] = math.Sqrt(g.At(a.at, a.at))
	}
	k := 0
	for i, a := range lines {
		correlations.SetSym(i, i, 1)
		for j, b := range lines[i+1:] {
			sum := 0.0
			for _, cell := range f.products {
				sum += cell[k]
			}
			k++
			c := (sum/f.rows*length*short*short - mean[a.at]*mean[b.at]) / (deviations[i] * deviations[i+1+j])
			if math.Abs(c) <= 1 { // otherwise a line is 0, or noise
				correlations.SetSym(i, i+1+j, c)
			}
		}
	}
	nearest(correlations)
	brings := make([][][]entry, len(lines))
	for i, a := range lines {
		brings[i] = carried(mean[f.pub.Intercept-1], laws[a.of])
	}
	for i := range lines {
		for j := range i + 1 {
			power := 1.0
			for k := range min(len(brings[i]), len(brings[j])) {
				power *= correlations.At(i, j)
				add := power
				if i == j {
					add-- // what is there by itself
				}
				for _, a := range brings[i][k] {
					for _, b := range brings[j][k] {
						if i != j || a.at <= b.at {
							g.SetSym(a.at, b.at, g.At(a.at, b.at)+add*a.value*b.value)
						}
					}
				}
			}
		}
	}
}

// carried are the covariances of a column's features with its orthonormal polynomials, those of lower degree first.
func carried(u float64, law []mass) (all [][]entry) {
	total := 0.0
	for _, p := range law {
		total += p.sum
	}
	total = max(u, total)
	dot := func(a, b []float64) (sum float64) {
		for i, p := range law {
			sum += p.sum / total * a[i] * b[i]
		}
		return sum
	}
	one := make([]float64, len(law))
	floats.AddConst(1, one)
	floats.Scale(1/math.Sqrt(dot(one, one)), one)
	basis := [][]float64{one}
	for range metricPowers {
		last := basis[len(basis)-1]
		next := make([]float64, len(law))
		for i, p := range law {
			next[i] = p.features[0].value * last[i]
		}
		for range 2 { // rounding
			for _, b := range basis {
				floats.AddScaled(next, -dot(next, b), b)
			}
		}
		size := math.Sqrt(dot(next, next))
		if !(size > 1e-6) {
			break // few points have rows
		}
		floats.Scale(1/size, next)
		basis = append(basis, next)
		sums := make([]entry, len(law)+1)
		sums[0].at = law[0].features[0].at
		for i, p := range law {
			for k, f := range p.features {
				at := &sums[k*(i+1)]
				at.at = f.at
				at.value += p.sum * f.value * next[i]
			}
		}
		all = append(all, sums)
	}
	return all
}

// nearest makes the negative eigenvalues of a matrix 0.
func nearest(a *mat.SymDense) {
	var e mat.EigenSym
	if !e.Factorize(a, true) {
		panic("method: a matrix of finite numbers has no eigenvalues") // the iteration converges
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	for k, v := range e.Values(nil) {
		if v < 0 {
			a.SymRankOne(a, -v, vectors.ColView(k))
		}
	}
}
