package privacy

import "fmt"

// Rebuild makes an event anew: f replaces each mechanism, of which it is also told the
// samples that it is on, outermost first, as they are written before it.
func Rebuild(e Event, within string, f func(within string, mechanism Event) Event) Event {
	switch e := e.(type) {
	case Composed:
		parts := make(Composed, len(e))
		for i := range e {
			parts[i] = Rebuild(e[i], within, f)
		}
		return parts
	case Tuned:
		among := make([]Event, len(e.Among))
		for i, one := range e.Among {
			among[i] = Rebuild(one, within, f)
		}
		e.Among = among
		return e
	case Repeated:
		e.Of = Rebuild(e.Of, within, f)
		return e
	case PoissonSampled:
		e.Of = Rebuild(e.Of, within+fmt.Sprintf("Poisson(q=%.6g) of ", e.Rate), f)
		return e
	case FixedSampled:
		e.Of = Rebuild(e.Of, within+fmt.Sprintf("Fixed(%d of %d) of ", e.M, e.N), f)
		return e
	}
	return f(within, e)
}

// WithNoise is e with times as much noise everywhere. It fails for a mechanism whose
// noise the event does not state.
func WithNoise(e Event, times float64) (Event, bool) {
	ok := true
	e = Rebuild(e, "", func(_ string, m Event) Event {
		switch m := m.(type) {
		case Gaussian:
			m.Sigma *= times
			return m
		case Laplace:
			m.Scale *= times
			return m
		case AboveThreshold:
			m.Threshold *= times
			m.Query *= times
			return m
		case Select: // its scale is the inverse of its ε
			m.Epsilon /= times
			return m
		case PureDP:
			m.Epsilon /= times
			return m
		}
		ok = false
		return m
	})
	return e, ok
}
