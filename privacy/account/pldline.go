package account

import (
	"math"
	"math/cmplx"
	"sync"
)

// A pldLine evaluates, for λ = tilt,
//
//	δ(ε) = 1/2π ∫ e^{K(λ+iω) − (λ+iω)ε} / ((λ+iω)(λ+iω+1)) dω
//
// by the trapezoid rule, which errs upwards only. K is the logarithm of the moment
// E_P e^{zL} of the whole composition: Σ times·ln of those of one release.
// PROOFS.md#pld-line.
type pldLine struct {
	tilt  float64
	step  float64      // of ω
	k     float64      // K(tilt)
	terms []complex128 // of the sum at ε = 0, relative to e^k
	size  float64      // Σ |terms|
	wrong float64      // error of the sum, with what is beyond the last term
	relax float64      // error of k
	inf   float64      // mass at an infinite loss
	guess float64      // of ε

	// For the lower end: the trapezoid rule's excess is at most copies + e^{farK −
	// farTilt·ε}, and raised is the mass whose loss was rounded up.
	copies, farK, farTilt, raised float64
}

const (
	lineMaxTerms = 1 << 14
	lineMaxNodes = 1 << 17
	lineMaxReach = 37      // beyond it e^(−z²/2) has fewer digits than a float64: the grid takes δ below 1e-290
	lineMaxWork  = 1 << 24 // terms times nodes
	lineFewWork  = 1 << 20 // and of a rough one: then a rough grid takes less
	lineBlock    = 64      // nodes are added up in blocks, so that rounding stays small
	lineAim      = 1e-10   // what may be beyond the last term, relative to the sum
)

// A node is mass of P in one point of the loss.
type node struct{ loss, mass float64 }

// nodes replaces P by points with whom E e^{zL} is exact up to nodeError, for
// |z| + 3 ≤ growth, and returns the mass at infinite losses and the mass that was
// raised to the least loss.
func (p pldPart) nodes(d direction, z, growth float64) (list []node, raised, inf float64) {
	d = p.side(d)
	from, to, raised, inf := p.reach(d, z)
	p.eachPoint(d, func(loss, mass float64) {
		switch {
		case mass == 0:
		case math.IsInf(loss, 1):
			inf += mass
		case math.IsInf(loss, -1):
			raised += mass
		default:
			list = append(list, node{loss, mass})
		}
	})
	rule := gauss20()
	eachSide(d, func(side direction, sign float64) {
		for u := from; u < to; {
			end := math.Min(to, u+p.panel(u, growth))
			for _, g := range rule {
				x := u + (end-u)*g[0]
				f0, f1 := p.densities(x)
				if mass := p.mass(side, f0, f1) * g[1] * (end - u); mass > 0 {
					list = append(list, node{sign * p.lossAt(x), mass})
				}
			}
			u = end
		}
	})
	if raised > 0 {
		least := math.Inf(1)
		for _, n := range list {
			least = math.Min(least, n.loss)
		}
		list = append(list, node{least, raised})
	}
	return list, raised, inf
}

// panel is the width of the panel from u on. PROOFS.md#pld-line.
func (p pldPart) panel(u, growth float64) float64 {
	if p.shape == sumShape {
		inP, inQ := p.shares(u)
		far := 9 + p.distance(u) + 3*p.shift + growth*(p.near*math.Min(1, 25*inP)+(p.shift-p.near)*math.Min(1, 25*inQ))
		return 6 / far
	}
	share := 1.0 // of dL/du in dy/du, at most, on the panel and around it
	if p.rate < 1 {
		y := p.y(u)
		share = math.Min(1, 25*p.rate*math.Exp(y-p.loss(y)))
	}
	far := 9 + (3+growth*share)*p.slope()
	if p.shape == normalShape {
		far += math.Max(math.Abs(u), math.Abs(u-p.shift))
	}
	return 6 / far
}

// nodeCount is about how many nodes there are on one side.
func (p pldPart) nodeCount(d direction, z, growth float64) float64 {
	count := float64(len(p.points)) + 4
	from, to, _, _ := p.reach(p.side(d), z)
	for u := from; u < to && count <= lineMaxNodes; count += 20 {
		u += p.panel(u, growth)
	}
	return count
}

// nodeError bounds the error of E e^{zL} relative to E e^{Re(z)L}, for losses up to
// largest: of masses, of the exponent and of the rule.
func (p pldPart) nodeError(z, growth, largest float64) float64 {
	largest += p.offset()
	far := p.shift // |u|, at most
	if p.shape == normalShape || p.shape == sumShape {
		far += z
	}
	// u and y err by a few units of |u| and of slope·|u|, the loss by dL/dy times that.
	moved := 4 * math.Min(1, largest+p.rate) * p.slope() * far
	return p.massError(z) + unit*growth*(8*largest+moved) + 64*unit
}

// logMomentOf is ln E e^{tL} over nodes.
func logMomentOf(list []node, t float64) float64 {
	high := math.Inf(-1)
	for _, n := range list {
		high = math.Max(high, n.loss*t)
	}
	total, lost := 0.0, 0.0
	for _, n := range list {
		v := n.mass*math.Exp(n.loss*t-high) - lost
		s := total + v
		lost = s - total - v
		total = s
	}
	return high + math.Log(total)
}

// gauss20 is the Gauss–Legendre rule of 20 points on [0, 1].
var gauss20 = sync.OnceValue(func() [][2]float64 {
	var rule [][2]float64
	for x, weight := range gaussLegendre(20) {
		rule = append(rule, [2]float64{(1 - x) / 2, weight})
	}
	return rule
})

// A spread is a family of disjoint ranges of the loss: of width² / 32, on which the
// tilted law has a density of at least mass / width.
type spread []struct{ mass, scale float64 }

// decay bounds −ln|E e^{iωL}| of the tilted law from below, by the most that one of
// the families proves.
func decay(families []spread, omega float64) float64 {
	best := 0.0
	for _, f := range families {
		total := 0.0
		for _, r := range f {
			total += r.mass * math.Min(omega*omega*r.scale, 0.5)
		}
		best = math.Max(best, total)
	}
	return best * (1 - 1e-9)
}

// spreads lists families of ranges of the loss for decay. moment is K(tilt) of one
// release.
func (p pldPart) spreads(d direction, z, tilt, moment float64) []spread {
	d = p.side(d)
	from, to, _, _ := p.reach(d, z)
	if !(from < to) {
		return nil
	}
	const slices = 128
	const widest = 6
	families := make([]spread, widest+1)
	eachSide(d, func(side direction, _ float64) {
		var least, width [slices]float64
		for i := range slices {
			u0, u1 := from+(to-from)*float64(i)/slices, from+(to-from)*float64(i+1)/slices
			l0, l1 := p.lossAt(u0), p.lossAt(u1)
			m := math.Max(math.Abs(u0), math.Abs(u1))
			logDensity := -m*m/2 - math.Log(2*math.Pi)/2
			if p.shape == laplaceShape {
				logDensity = -(p.shift+u1)/2 - 2*math.Ln2
			}
			at := u0 // where the density is least, normal factor apart
			if side == add {
				at = u1
			}
			if p.shape == sumShape {
				logP, logQ := p.logMixtures(at)
				logDensity += logQ
				if side == add {
					logDensity -= tilt * (logP - logQ)
				} else {
					logDensity += (1 + tilt) * (logP - logQ)
				}
			} else if side == add {
				logDensity -= tilt * l1
			} else {
				logDensity += (1 + tilt) * l0
			}
			// dL/du = slope·q e^{y−L} grows with u, from its value at u0 on. Of a sumShape one part grows, the other falls.
			slope0, slope1 := p.rate*math.Exp(p.y(u0)-l0)*p.slope(), p.rate*math.Exp(p.y(u1)-l1)*p.slope()
			if p.shape == sumShape {
				p0, q0 := p.shares(u0)
				p1, q1 := p.shares(u1)
				back := p.shift - p.near
				slope0, slope1 = p.near*p0+back*q1, p.near*p1+back*q0
			}
			if slope0 < 1e-290 {
				continue // rounded too coarsely
			}
			least[i], width[i] = math.Exp(logDensity-moment)/slope1, slope0*(u1-u0)
		}
		for f := range families {
			for i := 0; i < slices; i += 1 << f {
				density, total := math.Inf(1), 0.0
				for j := i; j < i+1<<f; j++ {
					density, total = math.Min(density, least[j]), total+width[j]
				}
				if mass := density * total; mass > 1e-6 {
					families[f] = append(families[f], struct{ mass, scale float64 }{mass, total * total / 32})
				}
			}
		}
	})
	return families
}

// newLine returns nil where the sum would be long.
func (l *pldLoss) newLine(d direction, a pldAim, lower bool) *pldLine {
	z, tilt, epsilon, logDelta, list := a.z, a.tilt, a.epsilon, a.logDelta, a.list
	if z > lineMaxReach {
		return nil
	}
	c := &pldLine{tilt: tilt, guess: epsilon}
	// Copies of the law at distance 2π/step must not matter.
	apart, least, work := 20.0, lineAim, lineMaxWork
	if a.rough {
		apart, least, work = 7, 1e-3, lineFewWork
	}
	far := func(t float64) float64 {
		return (logMoment(list, tilt+t) - (tilt+t)*epsilon - logDelta + apart) / t
	}
	theta := argmin(1e-3*tilt, 1e9, far)
	theta = math.Min(theta, 1e3*(tilt+1))
	window := math.Max(far(theta), (apart-logDelta)/tilt)
	c.step = 2 * math.Pi / window
	if !(window > 0) || math.IsInf(window, 1) {
		return nil
	}

	// How far the sum must go.
	families := make([][]spread, len(l.parts))
	largest := make([]float64, len(l.parts))
	for i, p := range l.parts {
		if p.shape == normalShape && p.rate == 1 {
			continue
		}
		if p.nodeCount(d, z, 3+tilt) > lineMaxNodes {
			return nil
		}
		nodes, _, _ := p.nodes(d, z, 3+tilt)
		families[i] = p.spreads(d, z, tilt, logMomentOf(nodes, tilt))
		for _, n := range nodes {
			largest[i] = math.Max(largest[i], math.Abs(n.loss))
		}
	}
	aim := math.Log(least / (tilt * (tilt + 1) * window))
	beyond := func(terms int) float64 {
		omega := float64(terms) * c.step
		v := -math.Log(math.Pi * omega)
		for i, p := range l.parts {
			if p.shape == normalShape && p.rate == 1 {
				v -= p.times * p.shift * p.shift * omega * omega / 2
			} else {
				v -= p.times * decay(families[i], omega)
			}
		}
		return v
	}
	terms := 8
	for ; beyond(terms) > aim; terms += max(1, terms/8) {
		if terms > lineMaxTerms {
			return nil
		}
	}
	c.wrong = math.Exp(beyond(terms))
	c.sum(l, d, z, terms, work, largest)
	if c.terms == nil {
		return nil
	}
	if lower {
		c.farTilt = tilt + theta
		for _, p := range l.parts {
			if p.nodeCount(d, z, 3+c.farTilt) > lineMaxNodes {
				return nil
			}
			nodes, raised, _ := p.nodes(d, z, 3+c.farTilt)
			c.farK += p.times * (logMomentOf(nodes, c.farTilt) + 1e-12)
			c.raised += p.times * raised
		}
		c.farK -= theta*window + math.Log1p(-math.Exp(-theta*window))
		c.copies = math.Exp(-tilt*window) / -math.Expm1(-tilt*window) * (1 + 1e-6)
	}
	return c
}

// sum computes the terms.
func (c *pldLine) sum(l *pldLoss, d direction, z float64, terms, work int, largest []float64) {
	growth := 3 + c.tilt + c.step*float64(terms)
	product := make([]complex128, terms+1)
	logSize := make([]float64, terms+1) // ln |product|
	excess := make([]float64, terms+1)  // what errors may add to it
	for k := range product {
		product[k] = 1
	}
	for i, p := range l.parts {
		multiply := func(k int, v complex128, relative float64) {
			size := math.Max(cmplx.Abs(v), 1e-300)
			product[k] *= power(v, uint64(p.times))
			logSize[k] += p.times * math.Log(size)
			excess[k] += p.times * (math.Log1p(relative/size) + 8*unit)
		}
		if p.shape == normalShape && p.rate == 1 {
			square := p.shift * p.shift * p.times
			c.k += square * c.tilt * (c.tilt + 1) / 2
			c.relax += 8 * unit * square * c.tilt * (c.tilt + 1)
			for k := range product {
				omega := c.step * float64(k)
				phase := square * (c.tilt + 0.5) * omega
				product[k] *= cmplx.Rect(math.Exp(-square*omega*omega/2), phase)
				logSize[k] -= square * omega * omega / 2
				excess[k] += 8 * unit * (1 + phase + square*omega*omega)
			}
			continue
		}
		if n := p.nodeCount(d, z, growth); n > lineMaxNodes || n*float64(terms) > float64(work) {
			return
		}
		nodes, _, inf := p.nodes(d, z, growth)
		wrong := p.nodeError(z, growth, largest[i])
		c.inf += p.times * inf * (1 + 1e-12)
		moment := logMomentOf(nodes, c.tilt)
		c.k += p.times * moment
		c.relax += p.times*(wrong+4*unit*(1+math.Abs(moment))) + 2*unit*math.Abs(c.k)
		at, turn := make([]complex128, 0, len(nodes)), make([]complex128, 0, len(nodes))
		for _, n := range nodes {
			if v := n.mass * math.Exp(c.tilt*n.loss-moment); v > 1e-24 {
				at = append(at, complex(v, 0))
				turn = append(turn, cmplx.Rect(1, c.step*n.loss))
			}
		}
		wrong += 1e-24*float64(len(nodes)) + unit*float64(lineBlock+len(at)/lineBlock)
		turned := unit * (8 + c.step*largest[i])
		for k := range product {
			var re, im float64
			for from := 0; from < len(at); from += lineBlock {
				var blockRe, blockIm float64
				block := at[from:min(from+lineBlock, len(at))]
				turn := turn[from:][:len(block)]
				for j, v := range block {
					blockRe += real(v)
					blockIm += imag(v)
					block[j] = v * turn[j]
				}
				re += blockRe
				im += blockIm
			}
			multiply(k, complex(re, im), wrong+float64(k)*turned)
		}
	}
	c.terms = product
	for k := range product {
		z := complex(c.tilt, c.step*float64(k))
		v := complex(c.step/math.Pi, 0) / (z * (z + 1))
		if k == 0 {
			v /= 2
		}
		c.wrong += cmplx.Abs(v) * (math.Exp(logSize[k]+excess[k])*-math.Expm1(-excess[k])*(1+1e-9) + 1e-300)
		c.terms[k] *= v
		c.size += cmplx.Abs(c.terms[k])
	}
}

// at is the sum, relative to e^{k−λε}, and a bound on its error.
func (c *pldLine) at(epsilon float64) (total, wrong float64) {
	turn, now := cmplx.Rect(1, -c.step*epsilon), complex(1, 0)
	for _, v := range c.terms {
		total += real(v)*real(now) - imag(v)*imag(now)
		now *= turn
	}
	n := float64(len(c.terms))
	return total, c.wrong + c.size*unit*n*(16+4*c.step*epsilon)
}

func (c *pldLine) slack(epsilon float64) float64 {
	return c.relax + 8*unit*(1+math.Abs(c.k)+c.tilt*epsilon)
}

// delta is a δ that holds at epsilon.
func (c *pldLine) delta(epsilon float64) float64 {
	total, wrong := c.at(epsilon)
	delta := math.Max(0, total+wrong)*math.Exp(c.k-c.tilt*epsilon+c.slack(epsilon)) + c.inf
	if !(delta <= 1) {
		return 1
	}
	return delta
}

// lowerDelta is less than δ at epsilon.
func (c *pldLine) lowerDelta(epsilon float64) float64 {
	total, wrong := c.at(epsilon)
	return (total-wrong)*math.Exp(c.k-c.tilt*epsilon-c.slack(epsilon)) - c.raised - c.copies -
		math.Exp(c.farK-c.farTilt*epsilon)
}

func (c *pldLine) top() float64 { return c.guess * 1.1 }
