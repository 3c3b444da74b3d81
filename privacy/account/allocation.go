package account

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/sottodp/sotto/privacy"
	"gonum.org/v1/gonum/floats"
)

// This file bounds an epoch of random allocation: each record is in one of b batches, by a secret place, and each batch
// releases a value with Gaussian noise. Without the record, with shift = 1/σ and standard normal z_t, the pair has the
// likelihood ratio
//
//	M = 1/b Σ_t e^{shift·z_t − shift²/2},
//
// for which a spread of mass that keeps the mean is an upper bound. PROOFS.md#allocation.

const (
	allocatedMostBatches = 1 << 20 // more cost less
	allocatedMostShift   = 20      // above, a Gaussian on the whole table is the bound
	allocatedReach       = 11.5    // of z
	allocatedCut         = 1e-28   // mass at the ends of a law that is moved to 0 and to ∞, for each term
	allocatedFine        = 1. / 32 // of a standard deviation of ln M: a step of the grid
	allocatedFineTerm    = 1. / 20 // of a standard deviation of ln of one term: the same, at most
)

const (
	onlyAllocatedPLD      = "random allocation has a theorem in accountant pld alone"
	onlyAllocatedGaussian = "random allocation is proven for Gaussian noise only"
	onlyAllocatedPresence = "random allocation is proven for add-or-remove only; use a Poisson sample or one of fixed size"
)

// unknown says why a leaf that is no case of an accountant has no theorem there.
func unknown(leaf privacy.Event) string {
	if _, ok := leaf.(privacy.Allocated); ok {
		return onlyAllocatedPLD
	}
	return notKnown
}

// allocatedPair is the pair of an epoch, without its points.
func allocatedPair(e privacy.Allocated) (p pair, ok bool) {
	precision, ok := gaussianPrecision(e.Of)
	p = pair{shape: allocatedShape, rate: 1, shift: gaussianShift(precision),
		near: float64(min(e.Batches, allocatedMostBatches))}
	if p.shift > allocatedMostShift {
		p.shape, p.near = normalShape, 0
	}
	return p, ok
}

// allocations keeps the points of the last laws: calibration, meter, progress and report ask for the same.
var allocations = answers[[]atom]{known: map[question][]atom{}}

// allocatedPoints are those of an epoch of that many batches.
func allocatedPoints(batches int, shift float64) []atom {
	var key []byte
	for _, v := range []float64{float64(batches), shift} {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
	}
	q := question{loss: sha256.Sum256(key)}
	points, ok := allocations.find(q)
	if !ok {
		points = meanOfTerms(batches, shift)
		allocations.keep(q, points, 0)
	}
	return points
}

// meanOfTerms are the points of the law of M.
func meanOfTerms(batches int, shift float64) []atom {
	b := float64(batches)
	h := math.Min(allocatedFine*math.Sqrt(math.Expm1(shift*shift)/b), allocatedFineTerm*shift)
	// Errors of sums of few terms average out: their grid may be coarser, by a power of two.
	coarse := func(terms int) int {
		most := math.Min(math.Sqrt(b/float64(terms)), allocatedFineTerm*shift/h)
		return max(0, int(math.Floor(math.Log2(most))))
	}
	exponent := coarse(1)
	one := oneTerm(shift, math.Ldexp(h, exponent))
	sum := one
	for digit := bits.Len(uint(batches)) - 2; digit >= 0; digit-- { // the binary digits of batches, after the first
		terms := batches >> digit
		times := 1
		if coarse(terms) < exponent {
			exponent, times = exponent-1, 2
		}
		step := math.Ldexp(h, exponent)
		sum = sum.finer(times)
		sum = sum.plus(sum, step)
		if terms%2 == 1 {
			sum = sum.plus(one.finer(1<<(coarse(1)-exponent)), step)
		}
		sum.cut(terms, step)
	}
	step := math.Ldexp(h, exponent)
	points := make([]atom, 0, len(sum.p)+2)
	for i, mass := range sum.p {
		if mass > 0 {
			y := float64(sum.first+i)*step - math.Log(b)
			points = append(points, atom{y, mass, mass * math.Exp(y) * (1 + 1e-14*(1+math.Abs(y)))})
		}
	}
	return append(points, atom{math.Inf(-1), sum.zero, 0}, atom{math.Inf(1), 0, sum.inf / b * (1 + 1e-15)})
}

// offset is the size of the terms of a loss beyond its own. A listed loss of an epoch is the
// difference of larger terms, whose rounding counts, too.
func (p pair) offset() float64 {
	if p.shape != allocatedShape {
		return 0
	}
	return 2 + 2*math.Log(p.near)
}

// A termSum bounds from above the law of a sum of terms, spread over a grid so that its mean stays.
// It has mass p at the values e^{kh}, k = first, first + every, …, mass zero at 0, and inf, the
// mean of what was moved to values beyond all bounds.
type termSum struct {
	first, every int
	p            []float64
	zero, inf    float64
}

// at is the number of the point i.
func (s termSum) at(i int) int { return s.first + i*s.every }

// finer is the same on a grid of a step that many times smaller.
func (s termSum) finer(times int) termSum {
	s.first, s.every = s.first*times, s.every*times
	return s
}

// oneTerm is e^{shift·z − shift²/2} on the grid of step h ≤ shift/20.
func oneTerm(shift, h float64) termSum {
	z := func(k int) float64 { return float64(k)*h/shift + shift/2 }
	first := int(math.Floor(shift * (-allocatedReach - shift/2) / h))
	last := int(math.Ceil(shift * (allocatedReach + shift/2) / h))
	s := termSum{first: first, every: 1, p: make([]float64, last-first+1)}
	rule := gauss20()
	up := make([]float64, len(rule))
	for i, g := range rule {
		up[i] = math.Expm1(h*g[0]) / math.Expm1(h)
	}
	const more = 1 + 1e-12 // for the rule, and what z and an exponent are rounded by
	wide := h / shift
	for i := range last - first {
		from := z(first + i)
		low, high := 0.0, 0.0
		for j, g := range rule {
			mass := normalDensity(from+wide*g[0]) * g[1]
			low += mass * (1 - up[j])
			high += mass * up[j]
		}
		s.p[i] += low * wide * more
		s.p[i+1] += high * wide * more
	}
	tail := func(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 * more }
	below, above := tail(-z(first)), tail(z(last))
	s.p[0] += below
	s.zero = below + above
	s.inf = tail(z(last) - shift)
	return s
}

// plus is the law of the sum of independent s and t, all on the grid of step h.
func (s termSum) plus(t termSum, h float64) termSum {
	sLast, tLast := s.at(len(s.p)-1), t.at(len(t.p)-1)
	span := max(sLast, tLast) - min(s.first, t.first) + 1
	// e^{kh} + e^{(k−d)h} is between the points k + on and k + on + 1, and goes to both.
	type split struct {
		on        int
		low, high float64
	}
	near := max(0, s.first-tLast, t.first-sLast) // the least d: of few terms and one, far from 0 where the grid is fine
	splits := make([]split, span-near)
	whole, wrong := math.Expm1(h), 8*unit*(1+1/h)
	for i := range splits {
		l := math.Log1p(math.Exp(-float64(near+i) * h))
		on := math.Floor(l / h)
		up := math.Min(1, math.Max(0, math.Expm1(l-on*h)/whole))
		splits[i] = split{int(on), 1 - up + wrong, up + wrong}
	}
	first := max(s.first, t.first) + splits[len(splits)-1].on
	sum := termSum{first: first, every: 1, p: make([]float64, max(sLast, tLast)+splits[0].on+2-first)}
	// Where one of the two is 0, the sum goes to 0 and beyond all bounds, as what is cut does.
	sum.zero = s.zero*(floats.Sum(t.p)+t.zero) + t.zero*floats.Sum(s.p)
	sum.inf = s.inf*(floats.Sum(t.p)+t.zero) + t.inf*(floats.Sum(s.p)+s.zero) + s.zero*t.mean(h) + t.zero*s.mean(h)
	same := &s.p[0] == &t.p[0]
	for j, mass := range t.p {
		at := t.at(j)
		double := 1.0
		if same { // the pairs in which s's value is the larger are like those in which t's is
			double = 2
		}
		i := 0
		for ; i < len(s.p) && s.at(i) < at; i++ {
			c := &splits[at-s.at(i)-near]
			both := double * mass * s.p[i]
			sum.p[at-first+c.on] += both * c.low
			sum.p[at-first+c.on+1] += both * c.high
		}
		for ; i < len(s.p) && !(same && i > j); i++ {
			c := &splits[s.at(i)-at-near]
			both := mass * s.p[i]
			sum.p[s.at(i)-first+c.on] += both * c.low
			sum.p[s.at(i)-first+c.on+1] += both * c.high
		}
	}
	more := 1 + 4*unit*float64(16+2*span) // each is a sum of at most so many products
	for i := range sum.p {
		sum.p[i] *= more
	}
	const underflow = 1e-60
	sum.zero, sum.inf = sum.zero*more+underflow, sum.inf*more+underflow
	return sum
}

// mean is that of the points.
func (s termSum) mean(h float64) (mean float64) {
	for i, mass := range s.p {
		mean += mass * math.Exp(float64(s.at(i))*h)
	}
	return mean * (1 + 1e-12)
}

// cut shortens a law of so many terms. What lies at its ends goes to 0 and beyond all bounds, which keeps the mean.
func (s *termSum) cut(terms int, h float64) {
	drop := func(i int) {
		s.zero += s.p[i]
		s.inf += s.p[i] * math.Exp(float64(s.at(i))*h) * (1 + 1e-12)
	}
	most := allocatedCut * float64(terms)
	for low := s.p[0]; len(s.p) > 1 && low <= most; low += s.p[0] {
		drop(0)
		s.first, s.p = s.first+1, s.p[1:]
	}
	for high := 0.0; len(s.p) > 1; s.p = s.p[:len(s.p)-1] {
		n := len(s.p) - 1
		if high += s.p[n] * math.Exp(float64(s.at(n))*h); high > most*float64(terms) {
			break
		}
		drop(n)
	}
}

// allocated finds an epoch of random allocation.
func allocated(e privacy.Event) (found privacy.Event) {
	privacy.Walk(e, func(e privacy.Event) bool {
		if a, ok := e.(privacy.Allocated); ok && found == nil {
			found = a
		}
		return found == nil
	})
	return found
}
