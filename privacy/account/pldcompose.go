package account

import "math"

// A pldGoal is what is asked: ε at a δ, or δ at an ε.
type pldGoal struct {
	delta     float64
	logDelta  float64
	epsilon   float64
	atEpsilon bool
	rough     bool // a little above the least that can be proven will do
}

// goalAt asks for ε at a δ.
func goalAt(delta float64) pldGoal { return pldGoal{delta: delta, logDelta: math.Log(delta)} }

const (
	pldMinPoints = 1 << 12
	pldMaxPoints = 1 << 18
	pldTail      = 14 // ln of what the window leaves out
	// Cells of the uniform grid in the mean size of a loss. With fewer the geometric mesh serves, too.
	fineEnough   = 4.
	fineForLower = 100.
)

// A sketch approximates the parts by few points. It serves to choose tilt, window
// and grid; no bound rests on it.
type sketch struct {
	times float64
	l, w  []float64
}

func (p pldPart) sketch(d direction, z float64) sketch {
	d = p.side(d)
	s := sketch{times: p.times}
	put := func(loss, w float64) {
		if w > 0 && !math.IsInf(loss, 0) {
			s.l, s.w = append(s.l, loss), append(s.w, w)
		}
	}
	p.eachPoint(d, put)
	if from, to, _, _ := p.reach(d, z); from < to {
		const n = 300
		step := (to - from) / n
		eachSide(d, func(side direction, sign float64) {
			for i := range n {
				u := from + step*(float64(i)+0.5)
				f0, f1 := p.densities(u)
				put(sign*p.lossAt(u), p.mass(side, f0, f1)*step)
			}
		})
	}
	total := 0.0
	for _, w := range s.w {
		total += w
	}
	for i := range s.w {
		s.w[i] /= total
	}
	return s
}

// logMoment is ln E e^{tL} for one step.
func (s sketch) logMoment(t float64) float64 {
	low, high := s.l[0]*t, s.l[0]*t
	for _, l := range s.l {
		low, high = math.Min(low, l*t), math.Max(high, l*t)
	}
	total := 0.0
	if high < 1 && low > -1 {
		for i, l := range s.l {
			total += s.w[i] * math.Expm1(l*t)
		}
		return math.Log1p(total)
	}
	for i, l := range s.l {
		total += s.w[i] * math.Exp(l*t-high)
	}
	return high + math.Log(total)
}

func logMoment(list []sketch, t float64) float64 {
	total := 0.0
	for _, s := range list {
		total += s.times * s.logMoment(t)
	}
	return total
}

// argmin is where f is least, by golden sections over ln x.
func argmin(lo, hi float64, f func(x float64) float64) float64 {
	at, least := lo, math.Inf(1)
	minimize(math.Log(lo), math.Log(hi), 1e-3, func(lx float64) float64 {
		x := math.Exp(lx)
		v := f(x)
		if v < least {
			at, least = x, v
		}
		return v
	})
	return at
}

// A pldComposed is the composed law of the privacy loss, for outcomes near those
// that the goal is about.
type pldComposed struct {
	h         float64
	first     int       // index of the window's first point
	gap, low  []float64 // Σ a(1−e^{−(s−sᵢ)}) and Σ a e^{−(s−sᵢ)} over s ≥ sᵢ
	tilt      float64
	k         float64 // ln E e^{tilt·S}
	tiltUp    float64 // the tilt at which the upper tail is bounded, and there
	kUp       float64 // ln E e^{tiltUp·S}
	below     float64 // tilted mass below the window, at most
	above     float64 // and above
	inf       float64 // mass at an infinite loss, at most
	shift     float64 // what rounding may add to or take from a sum of losses
	concedes  float64 // optimistic twin: what the true sum may be below the grid's
	failure   float64 // and with which probability it may be even less
	weightMax float64 // optimistic twin: sup of e^{−tilt u}(1 − e^{−u})
}

// A composition is a composed law of the privacy loss: a δ that holds at an ε, one
// that does not, and where to look for ε.
type composition interface {
	delta(epsilon float64) float64
	lowerDelta(epsilon float64) float64
	top() float64
}

// A pldAim is what a composition is made for: it is sharpest there, and a bound everywhere. All of it is
// guessed from sketches; no bound rests on it.
type pldAim struct {
	z        float64 // where Gaussian tails are cut
	tilt     float64 // the order at which Rényi divergences convert best
	epsilon  float64
	logDelta float64
	cost     float64 // ε, or ln δ where δ is asked for, at that order
	list     []sketch
	rough    bool
}

func (l *pldLoss) aim(d direction, goal pldGoal) pldAim {
	sketches := func(z float64) (list []sketch) {
		for _, p := range l.parts {
			list = append(list, p.sketch(d, z))
		}
		return list
	}
	a := pldAim{epsilon: goal.epsilon, logDelta: goal.logDelta, rough: goal.rough}
	if goal.atEpsilon {
		list := sketches(39)
		f := func(t float64) float64 { return improvedLogDelta(t, logMoment(list, t)/t, goal.epsilon) }
		a.logDelta = math.Min(-1e-9, math.Max(-650, f(argmin(1e-4, 1e7, f))-7))
	}
	a.z = math.Sqrt(2 * (math.Log(l.steps+1) + 16 - a.logDelta))
	a.list = sketches(a.z)
	f := func(t float64) float64 {
		if goal.atEpsilon {
			return improvedLogDelta(t, logMoment(a.list, t)/t, goal.epsilon)
		}
		return improvedEpsilon(t, logMoment(a.list, t)/t, a.logDelta)
	}
	a.tilt = argmin(1e-4, 1e7, f)
	a.cost = f(a.tilt)
	if !goal.atEpsilon {
		a.epsilon = math.Max(0, a.cost)
	}
	return a
}

// composeOne chooses between the ways to compose, which differ in what they
// cost. d is a direction of the whole.
func (l *pldLoss) composeOne(d direction, a pldAim, lower bool) composition {
	if l.gridOnly {
		return l.newGrid(d, a, lower)
	}
	if c := l.newLine(d, a, lower); c != nil {
		return c
	}
	grid := l.newGrid(d, a, lower)
	enough := fineEnough
	if lower {
		enough = fineForLower
	}
	for _, s := range a.list {
		if grid.h*enough > s.scale() {
			if c := l.newGeometric(d, a, lower); c != nil {
				return sharper{grid, c}
			}
			break
		}
	}
	return grid
}

// newGrid chooses window and grid.
func (l *pldLoss) newGrid(d direction, a pldAim, lower bool) *pldComposed {
	c := &pldComposed{tilt: a.tilt}
	z, list := a.z, a.list
	// The window, by Chernoff's bound under the tilted law.
	k := logMoment(list, c.tilt)
	up := func(t float64) float64 { return (logMoment(list, c.tilt+t) - k + pldTail) / t }
	down := func(t float64) float64 { return (logMoment(list, c.tilt-t) - k + pldTail) / t }
	thetaUp, thetaDown := argmin(1e-3, 1e9, up), argmin(1e-3, 1e9, down)
	// Where the support ends the best θ has no bound. The grid must resolve e^{θL}.
	most := 400 / (up(thetaUp) + down(thetaDown))
	thetaUp, thetaDown = math.Min(thetaUp, most), math.Min(thetaDown, most)
	hi, lo := up(thetaUp), -down(thetaDown)
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		c.inf = 1
		return c
	}
	// The grid: the spread that it adds must cost little.
	spread := func(h float64) (total float64) {
		for _, s := range list {
			moment := s.logMoment(c.tilt)
			for i, x := range s.l {
				x = math.Abs(x)
				total += s.times * s.w[i] * math.Exp(c.tilt*s.l[i]-moment) * math.Min(h*h/6, x*h)
			}
		}
		return total
	}
	share := 1e-4 // of ε, about
	if a.rough {
		share = 2e-3
	}
	allowed := share * math.Max(a.epsilon, 0.05*(hi-lo)) / (c.tilt + 1)
	if lower {
		allowed /= 8
	}
	if p := l.parts[0]; len(l.parts) == 1 && p.shape == responseShape && p.rate == 1 {
		spread = func(h float64) float64 { return 0 } // its losses are put on the grid
	}
	points := pldMinPoints
	enough := math.Min(pldMaxPoints, 1<<14*(1+math.Sqrt(l.steps)))
	for float64(points) < enough && spread((hi-lo)/float64(points)) > allowed {
		points *= 2
	}
	h := (hi - lo) / float64(points-4)
	largest := 0.0
	for _, p := range l.parts {
		first, last := p.span(d, 1e-3, z)
		if width := float64(last-first) * 1e-3; width/h > math.Min(pldMaxPoints, 8*enough) {
			h = width / math.Min(pldMaxPoints, 8*enough)
		}
		most := 1e-3 * math.Max(math.Abs(float64(first)), math.Abs(float64(last)))
		if p.shape == sumShape { // what u and two exponents are rounded by moves the loss, too
			most *= 1 + p.shift*(z+p.shift)
		}
		largest = math.Max(largest, most+p.offset())
	}
	if spread(h) == 0 {
		h = l.parts[0].shift / math.Max(1, math.Ceil(l.parts[0].shift/h))
		for float64(points-4)*h < hi-lo && points < pldMaxPoints {
			points *= 2
		}
	}
	c.h, c.first = h, int(math.Floor(lo/h))-1
	c.shift = l.steps * 8 * unit * math.Max(h, largest)
	c.compose(l, a, pldWindow{d, points, thetaUp, thetaDown, allowed, lower})
	return c
}

// A pldWindow says which stretch of the grid a law is composed on. It is cyclic: mass outside comes back inside.
type pldWindow struct {
	d         direction
	points    int     // a power of two
	thetaUp   float64 // above 0: Chernoff bounds what lies above the window at the order tilt + thetaUp,
	thetaDown float64 // and what lies below at tilt − thetaDown
	allowed   float64 // what the grid's spread may cost
	lower     bool    // the optimistic twin
}

// A pldSpectrum is the transform of the tilted law that some parts have together, and what else is known of their sum.
type pldSpectrum struct {
	product         []complex128 // Π z^T by frequency; 0 where it is negligible
	logSize         []float64    // ln Π |z|^T
	excess          []float64    // what errors may add to it
	kDown           float64      // ln E e^{(tilt−thetaDown)·S}
	lowest, highest float64      // the range of S
	// Of the optimistic twin, as in pldMass: sums over the steps, and the largest size.
	mean, variance, size float64
}

// compose fills c with the law of the sum of all parts, by fast Fourier transforms; its tilt, h, first and shift are
// set. PROOFS.md#pld-composition.
func (c *pldComposed) compose(l *pldLoss, a pldAim, w pldWindow) {
	c.tiltUp = c.tilt + w.thetaUp
	s := c.transform(l, a, w)
	pointError := s.invert()
	slackness := 1e-13 + l.steps*16*unit + c.shift*(c.tiltUp+w.thetaDown) // of k, kUp and kDown
	c.bound(s, w, slackness)
	// Rounding of the tilts, e^{tilt·L}, multiplies each step's masses.
	loEdge, hiEdge := c.edges(w)
	reach := math.Max(math.Abs(loEdge), math.Abs(hiEdge))
	relax := slackness*4 + 4*unit*(c.tilt*reach+math.Abs(c.k)) + l.steps*4*unit + c.shift*c.tilt
	if w.lower {
		relax = -relax
		c.concede(l, s, math.Exp(a.logDelta)*1e-3)
	}
	c.k += relax
	c.kUp += math.Abs(relax)
	c.accumulate(s.product, pointError, w.lower)
}

// edges are the window's first and last point.
func (c *pldComposed) edges(w pldWindow) (lo, hi float64) {
	return float64(c.first) * c.h, float64(c.first+w.points-1) * c.h
}

// transform multiplies the transforms of the parts' tilted laws, and adds up what c holds of the parts: k, kUp and inf.
func (c *pldComposed) transform(l *pldLoss, a pldAim, w pldWindow) *pldSpectrum {
	h, n := c.h, w.points
	all := &pldSpectrum{product: make([]complex128, n), logSize: make([]float64, n), excess: make([]float64, n)}
	for i := range all.product {
		all.product[i] = 1
	}
	spectrum := make([]complex128, n)
	transformError := fftError(n)
	for j, p := range l.parts {
		var m pldMass
		if w.lower {
			m = p.dominated(w.d, h, a.z, c.tilt, l.steps)
			all.mean += p.times * m.mean
			all.variance += p.times * m.variance
			all.size = math.Max(all.size, m.size)
		} else {
			// Of what the grid may spread, a part for the wide cells: over u of a
			// range of about 2z.
			wide := math.Log(w.allowed/(8*a.z*p.times)) + a.list[j].logMoment(c.tilt)
			m = p.dominating(w.d, mesh{h: h, tilt: c.tilt, wide: wide, most: n / 256}, a.z)
			c.inf += p.times * m.inf
		}
		all.lowest += p.times * float64(m.first) * h
		all.highest += p.times * float64(m.first+len(m.p)) * h
		moment := m.logMoment(h, c.tilt)
		c.k += p.times * moment
		c.kUp += p.times * m.logMoment(h, c.tiltUp)
		all.kDown += p.times * m.logMoment(h, c.tilt-w.thetaDown)
		clear(spectrum)
		for i, mass := range m.p {
			if mass > 0 {
				at := (m.first + i) & (n - 1)
				spectrum[at] += complex(mass*math.Exp(c.tilt*float64(m.first+i)*h-moment), 0)
			}
		}
		fft(spectrum)
		times := uint64(p.times)
		for i, s := range spectrum {
			size := math.Max(math.Hypot(real(s), imag(s)), 1e-300)
			all.logSize[i] += p.times * math.Log(size)
			all.excess[i] += p.times * (math.Log1p(transformError/size) + 8*unit)
			if all.logSize[i] < -60 {
				all.product[i] = 0
			} else {
				all.product[i] *= power(s, times)
			}
		}
	}
	return all
}

// invert makes product n times the tilted masses, and returns by how much a mass may be wrong.
func (s *pldSpectrum) invert() (pointError float64) {
	n := len(s.product)
	total, wrong := 0.0, 0.0
	for i, z := range s.product {
		worst := math.Exp(s.logSize[i] + s.excess[i])
		if z == 0 {
			wrong += worst
		} else {
			total += math.Exp(s.logSize[i])
			wrong += worst * -math.Expm1(-s.excess[i])
		}
	}
	inverseFFT(s.product)
	return (wrong + fftError(n)*(total+wrong)) / float64(n) * 1.01
}

// bound bounds what lies outside the window, by Chernoff's bound from the masses themselves.
func (c *pldComposed) bound(s *pldSpectrum, w pldWindow, slackness float64) {
	loEdge, hiEdge := c.edges(w)
	if s.lowest >= loEdge {
		s.kDown = math.Inf(-1)
	}
	if s.highest <= hiEdge {
		c.kUp = math.Inf(-1)
	}
	c.above = math.Exp(c.kUp - c.k - w.thetaUp*hiEdge + 2*slackness)
	c.below = math.Exp(s.kDown - c.k + w.thetaDown*loEdge + 2*slackness)
}

// concede says of the optimistic twin how far the true sum may be below the grid's, but for the probability tau.
func (c *pldComposed) concede(l *pldLoss, s *pldSpectrum, tau float64) {
	b := math.Log(1 / tau)
	// Bernstein's inequality, for terms at most size + |mean| below their mean.
	c.concedes = math.Sqrt(2*s.variance*b) + 4*s.size*b/3 - s.mean
	c.failure = tau
	if most := l.steps * s.size; most < c.concedes { // of few terms, what all can be
		c.concedes, c.failure = most, 0
	}
	c.concedes += 1e-12 * l.steps * c.h
	c.weightMax = math.Exp(-c.tilt*math.Log1p(1/c.tilt)) / (1 + c.tilt)
}

// accumulate fills gap and low from n times the tilted masses, each of which may be wrong by pointError.
func (c *pldComposed) accumulate(masses []complex128, pointError float64, lower bool) {
	h, n := c.h, len(masses)
	c.gap, c.low = make([]float64, n+1), make([]float64, n+1)
	keep := math.Exp(-h)
	whole := -math.Expm1(-h)
	for i := n - 1; i >= 0; i-- {
		mass := real(masses[(c.first+i)&(n-1)]) / float64(n)
		if lower {
			mass = math.Max(0, mass-pointError)
		} else {
			mass = math.Max(0, mass) + pointError
		}
		a := mass * math.Exp(c.k-c.tilt*float64(c.first+i)*h)
		c.gap[i] = c.gap[i+1] + whole*c.low[i+1]
		c.low[i] = keep*c.low[i+1] + a
	}
}

// logMoment is ln Σ p e^{t·loss}.
func (m pldMass) logMoment(h, t float64) float64 {
	high := math.Inf(-1)
	for _, i := range []int{0, len(m.p) - 1} {
		high = math.Max(high, t*float64(m.first+i)*h)
	}
	if high < 600 {
		high = 0
	} else {
		high = math.Inf(-1)
		for i, p := range m.p {
			if p > 0 {
				high = math.Max(high, math.Log(p)+t*float64(m.first+i)*h)
			}
		}
	}
	total, lost := 0.0, 0.0
	for i, p := range m.p {
		if p > 0 {
			v := p*math.Exp(t*float64(m.first+i)*h-high) - lost
			s := total + v
			lost = s - total - v
			total = s
		}
	}
	return high + math.Log(total)
}

// sum is Σ P(S=s)(1 − e^{ε−s}) over the window's s above ε.
func (c *pldComposed) sum(epsilon float64) float64 {
	i := int(math.Ceil(epsilon/c.h)) - c.first
	if i >= len(c.gap)-1 {
		return 0
	}
	i = max(i, 0)
	over := float64(c.first+i)*c.h - epsilon
	return c.gap[i] + c.low[i]*-math.Expm1(-math.Max(0, over))
}

// rounding is the relative error of the sums over the window.
func (c *pldComposed) rounding() float64 { return 1e-12 + 16*unit*float64(len(c.gap)) }

// delta is a δ that holds at epsilon. PROOFS.md#pld-truncation.
func (c *pldComposed) delta(epsilon float64) float64 {
	if c.inf >= 1 || c.gap == nil {
		return 1
	}
	epsilon -= c.shift
	hiEdge := float64(c.first+len(c.gap)-2) * c.h
	delta := c.sum(epsilon) + c.inf + math.Exp(c.kUp-c.tiltUp*math.Max(epsilon, hiEdge))
	if epsilon < float64(c.first)*c.h {
		delta += c.below * math.Exp(c.k-c.tilt*epsilon)
	}
	if !(delta <= 1) {
		return 1
	}
	return math.Min(1, delta*(1+c.rounding()))
}

// lowerDelta is less than δ at epsilon.
func (c *pldComposed) lowerDelta(epsilon float64) float64 {
	if c.gap == nil {
		return 0
	}
	epsilon += c.concedes + c.shift
	wrapped := (c.above + c.below) * c.weightMax * math.Exp(c.k-c.tilt*epsilon)
	return (c.sum(epsilon)-wrapped)*(1-c.rounding()) - c.failure
}

func (c *pldComposed) top() float64 {
	return math.Max(c.h, float64(c.first+len(c.gap))*c.h)
}

// mostHalvings bounds a search for ε. Toward an end at 0 a relative precision is never reached: what has been found by
// then serves.
const mostHalvings = 100

// epsilonOf is the least ε found with δ(ε) ≤ delta.
func epsilonOf(c composition, delta float64) float64 {
	if c.delta(0) <= delta {
		return 0
	}
	lo, hi := 0.0, c.top()
	for range 8 {
		if c.delta(hi) <= delta {
			break
		}
		lo, hi = hi, 2*hi
	}
	if !(c.delta(hi) <= delta) {
		return math.Inf(1)
	}
	for range mostHalvings {
		if !(hi-lo > 1e-13*hi) {
			break
		}
		mid := lo + (hi-lo)/2
		if c.delta(mid) <= delta {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// lowerEpsilonOf is an ε where δ is above delta, 0 if none is found.
func lowerEpsilonOf(c composition, delta, upper float64) float64 {
	// Far below what c was made for the bound fails, so it is sought from above.
	lo, hi := upper, upper
	for step := 1e-9; !(c.lowerDelta(lo) > delta); step *= 2 {
		if lo == 0 {
			return 0
		}
		lo, hi = math.Max(0, upper*(1-step)), lo
	}
	for range mostHalvings {
		if !(hi-lo > 1e-13*hi) {
			break
		}
		mid := lo + (hi-lo)/2
		if c.lowerDelta(mid) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
