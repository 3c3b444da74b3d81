package privacy

import "fmt"

// inside lists the events that e is made of; none for a single release. Each new type of event needs a case here.
func inside(e Event) []Event {
	switch e := e.(type) {
	case Composed:
		return e
	case Tuned:
		return e.Among
	case Repeated:
		return []Event{e.Of}
	case PoissonSampled:
		return []Event{e.Of}
	case FixedSampled:
		return []Event{e.Of}
	case Allocated:
		return []Event{e.Of}
	case Parallel:
		return []Event{e.Of}
	case Shared:
		return []Event{e.Of}
	case Retried:
		return []Event{e.Of}
	case Gaussian, GaussianSum, Laplace, PureDP, AboveThreshold, Select, ApproxDP, Continued, NonPrivate, Filtered, nil:
		return nil
	}
	panic(fmt.Sprintf("privacy: inside does not know %T", e))
}

// with is e made of other events, as many as inside lists.
func with(e Event, parts []Event) Event {
	switch e := e.(type) {
	case Composed:
		return Composed(parts)
	case Tuned:
		e.Among = parts
		return e
	case Repeated:
		e.Of = parts[0]
		return e
	case PoissonSampled:
		e.Of = parts[0]
		return e
	case FixedSampled:
		e.Of = parts[0]
		return e
	case Allocated:
		e.Of = parts[0]
		return e
	case Parallel:
		e.Of = parts[0]
		return e
	case Shared:
		if none, ok := parts[0].(Composed); ok && len(none) == 0 {
			return none // shares of nothing
		}
		e.Of = parts[0]
		return e
	case Retried:
		e.Of = parts[0]
		return e
	}
	return e // inside lists none
}

// Single says whether e is a single release, not made of other events.
func Single(e Event) bool {
	switch e.(type) {
	case Composed, Tuned, Repeated, PoissonSampled, FixedSampled, Allocated, Parallel, Shared, Retried:
		return false
	}
	return true
}

// Walk calls f with e and, where f returns true, walks the events that e is made of, in order.
func Walk(e Event, f func(Event) bool) {
	if !f(e) {
		return
	}
	for _, part := range inside(e) {
		Walk(part, f)
	}
}

// Contains says whether e is a T or holds one.
func Contains[T Event](e Event) bool {
	found := false
	Walk(e, func(e Event) bool {
		if _, is := e.(T); is {
			found = true
		}
		return !found
	})
	return found
}

// Fold computes f of e and of what f gave for the events that e is made of, in order.
func Fold[T any](e Event, f func(e Event, parts []T) T) T {
	var parts []T
	if in := inside(e); len(in) > 0 {
		parts = make([]T, len(in))
		for i := range in {
			parts[i] = Fold(in[i], f)
		}
	}
	return f(e, parts)
}

// Map replaces every event in e, those inside first, by what f makes of it. It leaves e as it is.
func Map(e Event, f func(Event) Event) Event {
	return Fold(e, func(e Event, parts []Event) Event { return f(with(e, parts)) })
}

// Rebuild is Map for single releases alone. It tells f the samples that a release is on, outermost first, as they
// are written before it.
func Rebuild(e Event, within string, f func(within string, release Event) Event) Event {
	if Single(e) {
		return f(within, e)
	}
	within += Before(e)
	parts := make([]Event, len(inside(e)))
	for i, part := range inside(e) {
		parts[i] = Rebuild(part, within, f)
	}
	return with(e, parts)
}

// Before is what a text puts before a release on the sample e; nothing for other events.
func Before(e Event) string {
	switch e := e.(type) {
	case PoissonSampled:
		return fmt.Sprintf("Poisson(q=%.6g) of ", e.Rate)
	case FixedSampled:
		return fmt.Sprintf("Fixed(%d of %d) of ", e.M, e.N)
	case Allocated:
		return fmt.Sprintf("Allocated(%d batches) of ", e.Batches)
	case Parallel:
		return fmt.Sprintf("part %s: ", e.Name())
	case Shared:
		return fmt.Sprintf("shared by %d owners: ", e.Owners)
	}
	return ""
}

// InPart is the plan e on the part of the table with that Name, or on the whole table if the name
// is empty. Its releases are charged one by one.
func InPart(name string, e Event) Event {
	if name == "" {
		return e
	}
	switch e := e.(type) {
	case Composed:
		parts := make(Composed, len(e))
		for i := range e {
			parts[i] = InPart(name, e[i])
		}
		return parts
	case Repeated:
		e.Of = InPart(name, e.Of)
		return e
	case Continued: // costs nothing anywhere
		return e
	}
	return parallel(name, e)
}

// WithNoise is e with times as much noise everywhere. It fails for a mechanism whose
// noise the event does not state.
func WithNoise(e Event, times float64) (Event, bool) {
	ok := true
	e = Map(e, func(m Event) Event {
		switch m := m.(type) {
		case Gaussian:
			m.Sigma *= times
			return m
		case GaussianSum:
			m.Presence *= times
			m.Replacement *= times
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
		ok = ok && !Single(m)
		return m
	})
	return e, ok
}
