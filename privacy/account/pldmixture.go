package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

const (
	mixturePoints = 4096
	mixtureReach  = 14 // e^(−14²/2) ≈ 3e-43 is what it leaves out
)

// mixture is the dominating pair, in points, of several releases of different kinds
// on one sample: their privacy losses on a grid, composed before the sample
// amplifies them. P₁ is larger than it need be by at most excess. ok is false if
// one of them is itself sampled.
// PROOFS.md#pld-mixture.
func (l *pldLoss) mixture(e privacy.Event) (points []atom, excess float64, ok bool) {
	inner := &pldLoss{pure: math.Inf(1)}
	var a PLD
	if err := inner.read(a, e, privacy.AddRemove); err != nil || inner.sampled {
		return nil, 0, false
	}
	l.clamped = l.clamped || inner.clamped
	l.rests.note(inner.rests.list()...)
	if inner.hopeless || inner.steps > 1<<20 {
		l.hopeless = true
		return []atom{{math.Inf(-1), 1, 0}, {math.Inf(1), 0, 1}}, 0, true
	}
	// The window that holds all but e^−98 by Chernoff's bound.
	var list []sketch
	for _, p := range inner.parts {
		list = append(list, p.sketch(remove, mixtureReach))
	}
	const tail = mixtureReach * mixtureReach / 2
	up := func(t float64) float64 { return (logMoment(list, t) + tail) / t }
	down := func(t float64) float64 { return (logMoment(list, -t) + tail) / t }
	hi, lo := up(argmin(1e-3, 1e6, up)), -down(argmin(1e-3, 1e6, down))
	least, most := 0.0, 0.0
	for i, p := range inner.parts {
		for _, x := range list[i].l {
			least, most = math.Min(least, x*p.times), math.Max(most, x*p.times)
		}
	}
	lo, hi = math.Max(lo, 2*least), math.Min(hi, 2*most)
	h := (math.Max(hi, 0) - math.Min(lo, 0)) / (mixturePoints - 10)
	w := mixtureWindow{first: int(math.Floor(math.Min(lo, 0)/h)) - 4}
	total := w.nothing()
	for _, p := range inner.parts {
		power := w.place(p.dominating(remove, mesh{h: h}, mixtureReach))
		for n := uint64(p.times); n > 0; n >>= 1 {
			if n&1 == 1 {
				total = w.convolve(total, power)
			}
			if n > 1 {
				power = w.convolve(power, power)
			}
		}
	}
	excess = 1e-12 * (inner.steps + 1)
	lost := 1.0
	for i, m := range total.p {
		if m > 0 {
			y := float64(w.first+i) * h
			a := atom{y: y, p1: m * (1 + excess), p0: m * math.Exp(-y)}
			points = append(points, a)
			lost -= a.p0
		}
	}
	points = append(points, atom{math.Inf(-1), math.Max(0, lost) + excess, 0},
		atom{math.Inf(1), 0, total.inf * (1 + excess)})
	return points, 4 * excess, true
}

// A mixtureWindow is a range of mixturePoints grid points from first. What falls
// below it is raised to its first point, what falls above counts as infinite.
type mixtureWindow struct{ first int }

func (w mixtureWindow) nothing() pldMass {
	m := pldMass{first: w.first, p: make([]float64, mixturePoints)}
	m.p[-w.first] = 1
	return m
}

func (w mixtureWindow) put(m *pldMass, k int, mass float64) {
	switch i := k - w.first; {
	case i >= len(m.p):
		m.inf += mass
	default:
		m.p[max(i, 0)] += mass
	}
}

func (w mixtureWindow) place(from pldMass) pldMass {
	m := pldMass{first: w.first, p: make([]float64, mixturePoints), inf: from.inf}
	for i, mass := range from.p {
		w.put(&m, from.first+i, mass)
	}
	return m
}

// convolve sums products of positive numbers, each with an error of a few units.
func (w mixtureWindow) convolve(a, b pldMass) pldMass {
	m := pldMass{first: w.first, p: make([]float64, mixturePoints), inf: a.inf + b.inf}
	sums := make([]float64, 2*mixturePoints)
	for i, x := range a.p {
		if x == 0 {
			continue
		}
		row := sums[i : i+len(b.p)]
		for j, y := range b.p {
			row[j] += x * y
		}
	}
	for i, mass := range sums {
		if mass > 0 {
			w.put(&m, 2*w.first+i, mass)
		}
	}
	return m
}
