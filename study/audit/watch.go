package audit

import (
	"context"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/sample"
)

// A listener stands between a method and its oracle and hears every noisy gradient and mean row that is released.
type listener struct {
	oracle.Oracle
	noisy bool // refuses methods that ask for a minimizer
	heard func(g []float64, q oracle.Grad, s sample.Sampler)

	// Of owners: the gradient that is asked for, and of which sample.
	asked oracle.Grad
	from  sample.Sampler

	// Of crafted canaries.
	sums   *canaries
	curved func(h []float64, q oracle.Hess, s sample.Sampler)
	chose  func(k int, q oracle.Select, among oracle.Candidates, s sample.Sampler)
}

// Batch implements oracle.Oracle.
func (l *listener) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	for _, q := range queries {
		if _, ok := q.(oracle.Minimize); ok && l.noisy {
			return nil, ErrBlind
		}
	}
	b, err := l.Oracle.Batch(ctx, s, queries...)
	if err != nil {
		return nil, err
	}
	return listened{b, l, s}, nil
}

// Refine implements oracle.Refiner.
func (l *listener) Refine(ctx context.Context, c oracle.Choice) error {
	return oracle.Refine(ctx, l.Oracle, c)
}

type listened struct {
	oracle.Batch
	by *listener
	s  sample.Sampler
}

// Grad implements oracle.Batch.
func (b listened) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	b.by.asked, b.by.from = q, b.s
	g, err := b.Batch.Grad(q, w)
	if err == nil {
		b.by.heard(g, q, b.s)
	}
	return g, err
}

// Mean implements oracle.Batch: a sum of rows, which canaries pull as they pull gradients.
func (b listened) Mean(q oracle.Mean) ([]float64, error) {
	b.by.asked, b.by.from = q.Grad(), b.s
	m, err := b.Batch.Mean(q)
	if err == nil {
		b.by.heard(m, b.by.asked, b.s)
	}
	return m, err
}

// Hess implements oracle.Batch.
func (b listened) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	if b.by.curved == nil {
		return b.Batch.Hess(q, w)
	}
	b.by.sums.kept = b.by.sums.kept[:0]
	h, err := b.Batch.Hess(q, w)
	if err == nil {
		b.by.curved(h, q, b.s)
	}
	return h, err
}

// Select implements oracle.Batch.
func (b listened) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	if b.by.chose == nil {
		return b.Batch.Select(q, among)
	}
	b.by.sums.kept = b.by.sums.kept[:0]
	k, err := b.Batch.Select(q, among)
	if err == nil {
		b.by.chose(k, q, among, b.s)
	}
	return k, err
}

// A watch computes, for each canary, how much likelier the released gradients are if the canary takes part.
type watch struct {
	set  *canarySet
	rows int       // declared
	odds []float64 // sum of log likelihood ratios
	rest []float64
	seen []float64

	gradients int // heard
}

// hear updates the odds by one release.
func (w *watch) hear(g []float64, q oracle.Grad, s sample.Sampler) {
	w.gradients++
	size, rate := s.Size(w.rows), 1.0
	others := w.set.others
	switch s := s.(type) {
	case sample.Poisson:
		rate = s.Rate
	case sample.Fixed:
		// The rows that were drawn tell how many canaries were, so the attacker does not know their sum.
		rate, others = float64(s.M)/float64(s.N), nil
	}
	w.rest = append(w.rest[:0], g...)
	for j := range w.rest {
		w.rest[j] *= size
		if others != nil {
			w.rest[j] -= others[j]
		}
	}
	// y is the part of the sum along the canary's direction, in gradients.
	w.seen = w.seen[:0]
	mean, square := 0.0, 0.0
	for i := range w.odds {
		d := w.set.Direction(i, q.Clip.Norm())
		y := d.Dot(w.rest) / w.set.length
		if q.Clip.Norm() == 2 {
			y /= math.Sqrt(float64(d.Width))
		}
		w.seen = append(w.seen, y)
		mean += y
		square += y * y
	}
	n := float64(len(w.odds))
	mean /= n
	own := rate/2 - rate*rate/4 // of the signal, if half take part
	if w.set.Pull {
		own = rate
	}
	spread := square/n - mean*mean
	spread = max(spread-own, spread/4, 1e-12)
	for i, y := range w.seen {
		w.odds[i] += drawn(rate, (y-0.5)/spread)
		if w.set.Pull {
			w.odds[i] -= drawn(rate, (-y-0.5)/spread)
		}
	}
}

// drawn is ln(1 − rate + rate·e^z).
func drawn(rate, z float64) float64 {
	if rate == 1 {
		return z
	}
	if z > 500 {
		return z + math.Log(rate)
	}
	return math.Log1p(rate * math.Expm1(z))
}
