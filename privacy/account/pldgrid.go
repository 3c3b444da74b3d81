package account

import "math"

// gauss3 and gauss5 are Gauss–Legendre rules on [0, 1].
var (
	gauss3 = [][2]float64{{0.1127016653792583, 5. / 18}, {0.5, 8. / 18}, {0.8872983346207417, 5. / 18}}
	gauss5 = [][2]float64{
		{0.04691007703066800, 0.1184634425280945}, {0.2307653449471585, 0.2393143352496832}, {0.5, 0.2844444444444444},
		{0.7692346550528415, 0.2393143352496832}, {0.9530899229693320, 0.1184634425280945},
	}
)

// each visits P in points: in grid cell [kh, (k+1)h] of the loss, at excess above
// kh, mass. It returns what lies at losses below and above those that are visited.
// PROOFS.md#pld-discretisation.
func (p pldPart) each(d direction, h, z float64, visit func(k int, excess, mass float64)) (below, above float64) {
	d = p.side(d)
	from, to, below, above := p.reach(d, z)
	p.eachPoint(d, func(loss, mass float64) {
		switch {
		case mass == 0:
		case math.IsInf(loss, 1):
			above += mass
		case math.IsInf(loss, -1):
			below += mass
		default:
			k := math.Floor(loss / h)
			visit(int(k), math.Min(h, math.Max(0, loss-k*h)), mass)
		}
	})
	if from == to {
		return below, above
	}
	k := int(math.Floor(p.loss(p.y(from)) / h))
	for u := from; u < to; k++ {
		next := math.Min(to, math.Max(u, p.u(p.ratio(float64(k+1)*h))))
		for u < next {
			rule := gauss5
			far := math.Max(math.Abs(u), math.Abs(u-p.shift)) + 4.5
			end := math.Min(next, u+0.25/far)
			if p.shape == laplaceShape {
				end = math.Min(next, u+0.25)
				far = 1
			}
			if (end-u)*far <= 0.03 {
				rule = gauss3
			}
			for _, node := range rule {
				x := u + (end-u)*node[0]
				f0, f1 := p.densities(x)
				excess := math.Min(h, math.Max(0, p.loss(p.y(x))-float64(k)*h))
				if weight := node[1] * (end - u); d != add {
					visit(k, excess, p.mass(remove, f0, f1)*weight)
					if d == swap {
						visit(-k-1, h-excess, f0*weight)
					}
				} else {
					visit(-k-1, h-excess, f0*weight)
				}
			}
			if end == u {
				break
			}
			u = end
		}
		u = next
	}
	return below, above
}

// A pldMass is the law of one privacy loss on the grid of step h.
type pldMass struct {
	first int       // index of p[0]
	p     []float64 // of P
	inf   float64   // mass of P at an infinite loss
	// For the optimistic twin, the mean and variance under P of what the true
	// loss has above the grid's, and its largest size.
	mean, variance, size float64
}

// span is the range of grid points that p can put mass on.
func (p pldPart) span(d direction, h, z float64) (first, last int) {
	d = p.side(d)
	lo, hi := math.Inf(1), math.Inf(-1)
	put := func(loss float64) {
		if !math.IsInf(loss, 0) {
			lo, hi = math.Min(lo, loss), math.Max(hi, loss)
		}
	}
	p.eachPoint(d, func(loss, _ float64) { put(loss) })
	if from, to, _, _ := p.reach(d, z); from < to {
		eachSide(d, func(_ direction, sign float64) {
			put(sign * p.loss(p.y(from)))
			put(sign * p.loss(p.y(to)))
		})
	}
	return int(math.Floor(lo/h)) - 2, int(math.Ceil(hi/h)) + 2
}

// massError bounds the relative error of the masses below: of a density's exponent
// of up to (z+shift)²/2, and of quadrature.
func (p pldPart) massError(z float64) float64 {
	if p.shape == normalShape {
		return 2e-14 + 2*unit*(z+p.shift)*(z+p.shift)
	}
	return 2e-14
}

// dominating puts the mass at L in [a, a+h] on both ends such that the masses of P
// and of Q are kept. PROOFS.md#pld-discretisation.
func (p pldPart) dominating(d direction, h, z float64) pldMass {
	first, last := p.span(d, h, z)
	m := pldMass{first: first, p: make([]float64, last-first+1)}
	whole := -math.Expm1(-h)
	rounding := math.Min(1, 1e-14/h)
	below, above := p.each(d, h, z, func(k int, excess, mass float64) {
		up := math.Min(1, -math.Expm1(-excess)/whole+rounding)
		m.p[k-first] += mass * (1 - up)
		m.p[k+1-first] += mass * up
	})
	// What lies at losses below the range is put on its lowest cell's upper end,
	// what lies above is infinite.
	m.inf = above
	m.p[4] += below
	more := 1 + p.massError(z)
	for i := range m.p {
		m.p[i] *= more
	}
	return m
}

// dominated is the law of the signal k that a release L in [a, a+h] is garbled
// into, with probability (L−a)/h the upper end and else the lower one. The signal's
// own loss differs from kh by a little; where it differs much, it is dropped.
// PROOFS.md#pld-discretisation.
func (p pldPart) dominated(d direction, h, z, tilt, steps float64) pldMass {
	first, last := p.span(d, h, z)
	m := pldMass{first: first, p: make([]float64, last-first+1)}
	off := make([]float64, len(m.p))
	p.each(d, h, z, func(k int, excess, mass float64) {
		up := excess / h
		m.p[k-first] += mass * (1 - up)
		off[k-first] += mass * (1 - up) * math.Expm1(-excess)
		m.p[k+1-first] += mass * up
		off[k+1-first] += mass * up * math.Expm1(h-excess)
	})
	rms, total := 0.0, newLogSum()
	weight := func(i int) float64 { return math.Log(m.p[i]) + tilt*float64(first+i)*h }
	for i, mass := range m.p {
		m.p[i] = mass * (1 - 2e-12)
		if mass > 0 {
			off[i] = -math.Log1p(math.Max(-0.9, off[i]/mass))
			rms += mass * off[i] * off[i]
			total.add(weight(i))
		}
	}
	m.size = math.Sqrt(rms)
	for ; m.size < h; m.size *= 1.3 {
		dropped := newLogSum()
		for i := range m.p {
			if m.p[i] > 0 && math.Abs(off[i]) > m.size {
				dropped.add(weight(i))
			}
		}
		if dropped.value()-total.value() < math.Log(1e-4/steps) {
			break
		}
	}
	for i, mass := range m.p {
		if !(math.Abs(off[i]) <= m.size) {
			m.p[i] = 0
			continue
		}
		m.mean += mass * off[i]
		m.variance += mass * off[i] * off[i]
	}
	return m
}
