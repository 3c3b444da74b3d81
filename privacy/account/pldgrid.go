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

// A mesh cuts losses into cells of whole numbers of steps h: of one step if not
// coarse, else of a width whose square times e^{tilt·loss} and the density of u is about e^wide,
// but of at most most steps.
type mesh struct {
	h, tilt, wide float64
	most          int     // 0 and 1: not coarse
	pitch         float64 // where above 0, the mesh is a stretched one
	bend          int     // its last cells of growing width, from there on they are as wide as widest
	from, widest  float64 // from is where cell bend begins
}

// stretched is a mesh whose cell k begins at h·sinh(pitch·k), until cells would be wider than widest.
func stretched(h, pitch, widest float64) mesh {
	m := mesh{h: h, pitch: pitch, widest: widest}
	m.bend = int(math.Acosh(math.Max(1, widest/(h*pitch))) / pitch)
	m.from = h * math.Sinh(pitch*float64(m.bend))
	return m
}

// at is the loss where cell k begins.
func (m mesh) at(k int) float64 {
	if m.pitch == 0 {
		return m.h * float64(k)
	}
	switch {
	case k > m.bend:
		return m.from + m.widest*float64(k-m.bend)
	case k < -m.bend:
		return m.widest*float64(k+m.bend) - m.from
	}
	return m.h * math.Sinh(m.pitch*float64(k))
}

// across is how far w cells from k on reach.
func (m mesh) across(k, w int) float64 {
	if m.pitch > 0 {
		return m.at(k+w) - m.at(k)
	}
	return m.h * float64(w)
}

// cell is the one that a loss is in.
func (m mesh) cell(loss float64) int {
	if m.pitch == 0 {
		return int(math.Floor(loss / m.h))
	}
	k := int(math.Floor(math.Asinh(loss/m.h) / m.pitch))
	switch {
	case loss > m.from:
		k = m.bend + int((loss-m.from)/m.widest)
	case loss < -m.from:
		k = -m.bend - int((-m.from-loss)/m.widest)
	}
	for m.at(k) > loss {
		k--
	}
	for m.at(k+1) <= loss {
		k++
	}
	return k
}

// width is that of a cell from loss on, in steps, where the density of P is f.
func (m mesh) width(loss, f float64) int {
	if m.most <= 1 {
		return 1
	}
	w := math.Exp((m.wide - math.Log(f) - m.tilt*loss) / 2)
	return max(1, int(math.Min(w/m.h, float64(m.most))))
}

// each visits P in points: in the cell of w steps from loss kh, at excess above
// kh, mass. It returns what lies at losses below and above those that are visited.
// PROOFS.md#pld-discretisation.
func (p pldPart) each(d direction, m mesh, z float64,
	visit func(k, w int, excess, mass float64)) (below, above float64) {
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
			k := m.cell(loss)
			start := m.at(k)
			visit(k, 1, math.Min(m.across(k, 1), math.Max(0, loss-start)), mass)
		}
	})
	if from == to {
		return below, above
	}
	if p.shape == normalShape { // what the panels may lose of either law
		above += math.Erfc((z + 2) / math.Sqrt2)
	}
	if p.shape == sumShape {
		above += 2 * math.Erfc((z+2)/math.Sqrt2)
	}
	k, last := m.cell(p.lossAt(from)), m.cell(p.lossAt(to))+1
	for w := 1; ; k += w {
		u := from
		f0, f1 := p.densities(u)
		loss := p.lossAt(u)
		switch d {
		case remove:
			w = m.width(loss, p.mass(remove, f0, f1))
		case add:
			w = m.width(-loss, f0)
		default:
			w = min(m.width(loss, p.mass(remove, f0, f1)), m.width(-loss, f0))
		}
		w = max(1, min(w, last-k))
		end := func() float64 { return math.Min(to, math.Max(u, p.outcome(m.at(k+w), u, to))) }
		next := end()
		for w > 1 && next-u > 0.25 { // the density changes
			w = w / 2
			next = end()
		}
		start := m.at(k)
		wide := m.across(k, w)
		for u < next {
			rule := gauss5
			far := math.Min(p.distance(u), z+2) + 4.5
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
				excess := math.Min(wide, math.Max(0, p.lossAt(x)-start))
				weight := node[1] * (end - u)
				if d != add {
					visit(k, w, excess, p.mass(remove, f0, f1)*weight)
				}
				if d != remove {
					visit(-k-w, w, wide-excess, f0*weight)
				}
			}
			if end == u {
				break
			}
			u = end
		}
		if from = next; from >= to {
			return below, above
		}
	}
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
	lo, hi := p.ends(d, z)
	return int(math.Floor(lo/h)) - 2, int(math.Ceil(hi/h)) + 2
}

// ends are the least and the largest loss within the range that is computed.
func (p pldPart) ends(d direction, z float64) (lo, hi float64) {
	d = p.side(d)
	lo, hi = math.Inf(1), math.Inf(-1)
	put := func(loss float64) {
		if !math.IsInf(loss, 0) {
			lo, hi = math.Min(lo, loss), math.Max(hi, loss)
		}
	}
	p.eachPoint(d, func(loss, _ float64) { put(loss) })
	if from, to, _, _ := p.reach(d, z); from < to {
		eachSide(d, func(_ direction, sign float64) {
			put(sign * p.lossAt(from))
			put(sign * p.lossAt(to))
		})
	}
	return lo, hi
}

// distance is how far u is from the centers of normal laws, at most.
func (p pldPart) distance(u float64) float64 {
	if p.shape == sumShape {
		return math.Max(math.Abs(u-p.near), u-p.near+p.shift) // and u ≥ 0 is not farther from 0
	}
	return math.Max(math.Abs(u), math.Abs(u-p.shift))
}

// massError bounds the relative error of the masses below: of a density's exponent
// of up to (z+shift)²/2, and of quadrature.
func (p pldPart) massError(z float64) float64 {
	if p.shape == normalShape || p.shape == sumShape {
		return 2e-14 + 2*unit*(z+p.shift)*(z+p.shift)
	}
	return 2e-14
}

// dominating puts the mass at L in [a, a+h] on both ends such that the masses of P
// and of Q are kept. PROOFS.md#pld-discretisation.
func (p pldPart) dominating(d direction, cells mesh, z float64) pldMass {
	h := cells.h
	first, last := p.span(d, h, z)
	m := pldMass{first: first, p: make([]float64, last-first+1)}
	known, whole, rounding := 0, 0.0, 0.0
	below, above := p.each(d, cells, z, func(k, w int, excess, mass float64) {
		if w != known {
			wide := float64(w) * h
			known, whole, rounding = w, -math.Expm1(-wide), math.Min(1, 1e-14/wide)
		}
		up := math.Min(1, -math.Expm1(-excess)/whole+rounding)
		m.p[k-first] += mass * (1 - up)
		m.p[k+w-first] += mass * up
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
	p.each(d, mesh{h: h}, z, func(k, _ int, excess, mass float64) {
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
	m.size = math.Max(math.Sqrt(rms), 1e-9*h) // so that the search takes 80 rounds at most
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
