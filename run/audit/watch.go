package audit

import (
	"context"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/sample"
)

// A watch stands between a method and its oracle. From each noisy gradient that is released it
// keeps, for each canary, how much likelier the release is if the canary takes part.
type watch struct {
	oracle.Oracle
	set  *canarySet
	odds []float64 // sum of log likelihood ratios
	rest []float64
	seen []float64

	looks int
}

// Batch implements oracle.Oracle.
func (w *watch) Batch(ctx context.Context, s sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	for _, q := range pay {
		if _, ok := q.(oracle.Minimize); ok {
			return nil, ErrBlind
		}
	}
	b, err := w.Oracle.Batch(ctx, s, pay...)
	if err != nil {
		return nil, err
	}
	return watched{b, w, s}, nil
}

type watched struct {
	oracle.Batch
	by *watch
	s  sample.Sampler
}

// Grad implements oracle.Batch.
func (b watched) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	g, err := b.Batch.Grad(q, w)
	if err == nil {
		b.by.look(g, q, b.s)
	}
	return g, err
}

// look updates the odds by one release.
func (w *watch) look(g []float64, q oracle.Grad, s sample.Sampler) {
	w.looks++
	size, rate := s.Size(w.Public().Rows), 1.0
	others := w.set.Others()
	switch s := s.(type) {
	case sample.Poisson:
		rate = s.Rate
	case sample.Fixed:
		// Which rows of the table were drawn says something of how many canaries were: what they added is not for the attacker.
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
		y := d.Dot(w.rest) / w.set.Length()
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
