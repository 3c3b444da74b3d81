package account

import "math"

// A direction says which of two neighbors the release was made on.
type direction int

const (
	remove direction = iota // P is the mixture
	add                     // Q is the mixture
	swap                    // a record is replaced: the symmetric pair
)

// A shape is the kind of a dominating pair.
type shape uint8

const (
	normalShape    shape = iota // P₀ = N(0,1), P₁ = N(shift,1), shift = 1/σ
	laplaceShape                // Lap(0), Lap(shift), shift = 1/b
	responseShape               // randomized response of ε = shift, which fails with probability lost
	pointShape                  // as listed
	allocatedShape              // an epoch of random allocation: as listed, and not symmetric
	sumShape                    // a noisy sum on a Poisson sample under replace-one, see lossAt
)

// A pair is one of a release, on its sample. P₁ and P₀ are symmetric, but of an allocatedShape: with the two
// swapped they have the same profile.
type pair struct {
	shape shape
	rate  float64 // of the sample, 1 for none
	shift float64
	lost  float64 // of a pointShape, what P₁ has in excess of 1
	// of a sumShape, how far presence moves the sum, over σ; shift is how far a replacement does. Of an allocatedShape,
	// the batches
	near float64
}

// A pldPart is a release and how often it is composed. With P₁, P₀ its pair and
// q its rate, (P, Q) = ((1−q)P₀ + qP₁, P₀) when a record is removed, the reverse
// when one is added, and their symmetric hull when one is replaced.
// PROOFS.md#pld-pairs, PROOFS.md#pld-fixed. What the quadrature calls for each node takes a pointer: copies
// were a fifth of the time of a bracket.
type pldPart struct {
	pair
	times  float64
	points []atom // of a pointShape or an allocatedShape
}

// side resolves d for this part: without a sample all directions are alike.
func (p pldPart) side(d direction) direction {
	if p.rate == 1 && p.shape != allocatedShape {
		return remove
	}
	return d
}

// loss is ln((1−q) + q e^y) for the log-ratio y of P₁ to P₀.
func (p *pldPart) loss(y float64) float64 {
	switch {
	case p.rate == 1:
		return y
	case y > 30:
		return y + math.Log(p.rate) + math.Log1p((1-p.rate)/p.rate*math.Exp(-y))
	case p.rate > 0.5 && y < -1: // where q(e^y − 1) would round away what is left of 1
		return math.Log((1 - p.rate) + p.rate*math.Exp(y))
	}
	return math.Log1p(p.rate * math.Expm1(y))
}

// lossAt is the loss at u. With a = near and r = shift that of a sumShape is the logarithm of
// P = (1−q)N(0,1) + qN(a,1) over Q = (1−q)N(0,1) + qN(a−r,1), which grows with u and is 0 at a − r/2 ≥ 0.
// PROOFS.md#poisson-replace-sum.
func (p *pldPart) lossAt(u float64) float64 {
	if p.shape == sumShape {
		far, near := p.logMixtures(u)
		return far - near
	}
	return p.loss(p.y(u))
}

// logMixtures are the logarithms of P and of Q over the standard normal density, of a sumShape.
func (p *pldPart) logMixtures(u float64) (logP, logQ float64) {
	back := p.near - p.shift
	return p.loss(p.near * (u - p.near/2)), p.loss(back * (u - back/2))
}

// shares are what the moved laws have in P and in Q at u, of a sumShape: dL/du = near·inP + (shift−near)·inQ.
func (p *pldPart) shares(u float64) (inP, inQ float64) {
	back := p.near - p.shift
	y1, y2 := p.near*(u-p.near/2), back*(u-back/2)
	return p.rate * math.Exp(y1-p.loss(y1)), p.rate * math.Exp(y2-p.loss(y2))
}

// outcome is where the loss is that large, between from and to, which is behind.
func (p pldPart) outcome(loss, from, to float64) float64 {
	if p.shape != sumShape {
		return p.u(p.ratio(loss))
	}
	if p.lossAt(to) <= loss {
		return to
	}
	lo, hi, u := from, to, from
	for range 200 {
		over := p.lossAt(u) - loss
		if over > 0 {
			hi = u
		} else {
			lo = u
		}
		inP, inQ := p.shares(u)
		next := u - over/(p.near*inP+(p.shift-p.near)*inQ)
		if !(next > lo && next < hi) {
			next = lo + (hi-lo)/2
		}
		done := math.Abs(next-u) <= 4*unit*math.Abs(u) || next == lo || next == hi
		if u = next; done {
			break
		}
	}
	for step := unit * math.Abs(u); u > lo && p.lossAt(u) > loss; step *= 2 { // not above the loss
		u = math.Max(lo, u-step)
	}
	return u
}

// ratio inverts loss: −Inf below its range.
func (p *pldPart) ratio(loss float64) float64 {
	switch {
	case p.rate == 1:
		return loss
	case loss > 30:
		return loss - math.Log(p.rate) + math.Log1p(-(1-p.rate)*math.Exp(-loss))
	}
	if p.rate > 0.5 && loss < -0.3 {
		return math.Log(math.Max(0, (math.Exp(loss)-(1-p.rate))/p.rate))
	}
	x := math.Expm1(loss) / p.rate
	if x <= -1 {
		return math.Inf(-1)
	}
	return math.Log1p(x)
}

// An atom is mass of P₀ and P₁ in one point, at their log-ratio y.
type atom struct{ y, p0, p1 float64 }

// atoms lists the points of P₀ and P₁ that have mass.
func (p pldPart) atoms() []atom {
	e := p.shift
	switch p.shape {
	case laplaceShape:
		return []atom{{-e, 0.5, math.Exp(-e) / 2}, {e, math.Exp(-e) / 2, 0.5}}
	case responseShape:
		big, small := (1-p.lost)/(1+math.Exp(-e)), (1-p.lost)/(1+math.Exp(e))
		list := []atom{{-e, big, small}, {e, small, big}}
		if p.lost > 0 {
			list = append(list, atom{math.Inf(-1), p.lost, 0}, atom{math.Inf(1), 0, p.lost})
		}
		return list
	case pointShape, allocatedShape:
		return p.points
	}
	return nil
}

// densities are those of P₀ and P₁ at u, of a sumShape those of Q and P. For Gaussian noise u is the outcome over
// σ, for Laplace noise it is y.
func (p *pldPart) densities(u float64) (f0, f1 float64) {
	if p.shape == laplaceShape {
		f0 = math.Exp(-(p.shift+u)/2) / 4
		return f0, math.Exp(-(p.shift-u)/2) / 4
	}
	if p.shape == sumShape {
		rest, q := (1-p.rate)*normalDensity(u), p.rate
		return rest + q*normalDensity(u-p.near+p.shift), rest + q*normalDensity(u-p.near)
	}
	return normalDensity(u), normalDensity(u - p.shift)
}

// y and u convert between u and the log-ratio.
func (p *pldPart) y(u float64) float64 {
	if p.shape == laplaceShape {
		return u
	}
	return p.shift * (u - p.shift/2)
}

func (p *pldPart) u(y float64) float64 {
	if p.shape == laplaceShape {
		return y
	}
	return y/p.shift + p.shift/2
}

// slope is dy/du; of a sumShape the most that dL/du can be.
func (p *pldPart) slope() float64 {
	if p.shape == laplaceShape {
		return 1
	}
	return p.shift
}

// mass is the density or the mass of P where a record is removed or added.
func (p *pldPart) mass(d direction, f0, f1 float64) float64 {
	switch {
	case d == add:
		return f0
	case p.shape == sumShape:
		return f1
	}
	return (1-p.rate)*f0 + p.rate*f1
}

// reach is the range of u that is computed, and the masses of P at lower and at
// higher losses, rounded up. Beyond it a Gaussian has mass of about e^(−z²/2).
func (p pldPart) reach(d direction, z float64) (from, to, below, above float64) {
	switch p.shape {
	case normalShape:
		from, to = -z, z+p.shift
	case laplaceShape:
		from, to = -p.shift, p.shift
	case sumShape:
		from, to = p.near-p.shift/2, z+p.near
	default:
		return 0, 0, 0, 0
	}
	tail := func(x float64) float64 {
		return math.Erfc(x/math.Sqrt2)/2*(1+1e-12) + math.SmallestNonzeroFloat64
	}
	if p.shape == normalShape {
		below = p.mass(d, tail(-from), tail(-from+p.shift))
		above = p.mass(d, tail(to), tail(to-p.shift))
	}
	if p.shape == sumShape { // swap alone: of Q, at losses below −loss(to), and of P
		below = (1-p.rate)*tail(to) + p.rate*tail(to-p.near+p.shift)
		above = (1-p.rate)*tail(to) + p.rate*tail(to-p.near)
		return from, to, below, above
	}
	switch d {
	case add:
		below, above = above, below
	case swap:
		from = p.u(0)
		if p.shape == normalShape {
			below = tail(to) // of P₀, at losses below −loss(to)
		}
	}
	return from, to, below, above
}

// center is the mass of the symmetric pair where P and Q agree: what the losses
// above 0, of the mixture, and below 0, of P₀, leave. PROOFS.md#pld-fixed.
func (p pldPart) center() float64 {
	if p.shape == sumShape { // 1 − P(L>0) − Q(L>0)
		return (1-p.rate)*math.Erf((p.near-p.shift/2)/math.Sqrt2) + 1e-15
	}
	var up0, up1 float64 // masses of P₀ and P₁ at y > 0
	switch p.shape {
	case normalShape:
		up0, up1 = math.Erfc(p.shift/2/math.Sqrt2)/2, math.Erfc(-p.shift/2/math.Sqrt2)/2
	case laplaceShape:
		up0 = math.Exp(-p.shift/2) / 2
		up1 = 1 - up0
	default:
		for _, a := range p.atoms() {
			if a.y > 0 {
				up0 += a.p0
				up1 += a.p1
			}
		}
	}
	missing := 1e-15
	if p.shape == pointShape {
		missing += p.lost
	}
	return math.Max(0, 1-p.mass(remove, up0, up1)-up0) + missing
}

// eachPoint visits the points of P that have mass of their own: at a loss, and
// infinite ones.
func (p pldPart) eachPoint(d direction, visit func(loss, mass float64)) {
	for _, a := range p.atoms() {
		at := p.loss(a.y)
		if d != add && (d == remove || a.y > 0) {
			visit(at, p.mass(remove, a.p0, a.p1))
		}
		if d == add || d == swap && a.y > 0 {
			visit(-at, a.p0)
		}
	}
	switch {
	case d == swap:
		visit(0, p.center())
	case d == add && p.shape == pointShape: // PROOFS.md#pld-mixture
		visit(math.Inf(1), math.Min(1, p.lost*p.rate/(1-p.rate)))
	}
}

// eachSide names the monotone pieces of the loss: at u it is sign·loss(y(u)), and
// the density of P is mass(side).
func eachSide(d direction, visit func(side direction, sign float64)) {
	if d != add {
		visit(remove, 1)
	}
	if d != remove {
		visit(add, -1)
	}
}
