// Package account turns events into privacy loss: which (ε, δ) a plan costs,
// whether a budget covers it, and which noise a budget needs.
//
// An [Accountant] is a pure function from an event and a neighboring relation to
// a [Loss]. Each of its cases rests on one theorem of PROOFS.md, which
// [Basis] names; an event without a theorem is an [UnsupportedError], never a
// guess. All figures are upper bounds and are rounded up.
//
// A [Meter] is charged before data is read: a [Plan] admits a prefix of a plan
// that was certified as a whole, a [Filter] admits events that are chosen on the
// way.
package account

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/privacy"
)

// An Accountant bounds the privacy loss of an event.
type Accountant interface {
	// Loss returns the cost of releasing e under adj. It depends on its
	// arguments only. Where the accountant has no theorem, the error is an
	// *UnsupportedError that names the part of e that has none.
	Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error)
	// String is the accountant's name, as ByName reads it.
	String() string
}

// A Loss is a proven bound on what a release reveals, as a trade-off between ε
// and δ. It is safe for concurrent use.
type Loss interface {
	// Epsilon is an ε at which (ε, delta) holds: +Inf if the accountant proves
	// none, 0 if delta ≥ 1.
	Epsilon(delta float64) float64
	// Delta is a δ ≤ 1 at which (epsilon, δ) holds.
	Delta(epsilon float64) float64
}

// An UnsupportedError says that an accountant has no theorem for an event.
type UnsupportedError struct {
	Event      privacy.Event     // the part that has no theorem
	Adjacency  privacy.Adjacency // the relation that was asked for
	Accountant string
	Why        string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("accountant %s: no theorem for %v under %v: %s", e.Accountant, e.Event, e.Adjacency, e.Why)
}

// unsupported is the UnsupportedError of accountant a.
func unsupported(a fmt.Stringer, e privacy.Event, adj privacy.Adjacency, why string) error {
	return &UnsupportedError{Event: e, Adjacency: adj, Accountant: a.String(), Why: why}
}

// accountants is the one table of names.
var accountants = []Accountant{Pure{}, ZCDP{}, GDP{}, RDP{}, PLD{}, Best{}}

// Names lists what ByName accepts.
func Names() []string {
	names := make([]string, len(accountants))
	for i, a := range accountants {
		names[i] = a.String()
	}
	return names
}

// ByName returns the accountant of that name with its default options.
func ByName(name string) (Accountant, error) {
	for _, a := range accountants {
		if a.String() == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("accountant: found %q; choose %s", name, strings.Join(Names(), ", "))
}

// check refuses what no accountant can take.
func check(e privacy.Event, adj privacy.Adjacency) error {
	if e == nil {
		return errors.New("account: no event given")
	}
	if err := e.Validate(); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	if err := adj.Validate(); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	return nil
}

// leaves visits the parts of a valid event that compose on the same records, each
// with its number of repetitions. What remains inside a visited PoissonSampled or
// FixedSampled happened on one sample of less than the whole table. Parts that release nothing are left
// out, and an access without noise is visited as itself even from inside a sample.
func leaves(e privacy.Event, times float64, visit func(leaf privacy.Event, times float64) error) error {
	switch e := e.(type) {
	case privacy.Composed:
		for _, part := range e {
			if err := leaves(part, times, visit); err != nil {
				return err
			}
		}
		return nil
	case privacy.Continued:
		return nil
	case privacy.Repeated:
		if e.Count == 0 {
			return nil
		}
		return leaves(e.Of, mulUp(times, float64(e.Count)), visit)
	case privacy.PoissonSampled:
		if e.Rate == 1 {
			return leaves(e.Of, times, visit)
		}
	case privacy.FixedSampled:
		if e.M == e.N {
			return leaves(e.Of, times, visit)
		}
	case privacy.Tuned, privacy.Allocated:
	default:
		return visit(e, times)
	}
	switch releases, access := inspect(e); {
	case access != nil:
		return visit(*access, times)
	case !releases:
		return nil
	}
	return visit(e, times)
}

var errFound = errors.New("found")

// empty says whether e releases nothing.
func empty(e privacy.Event) bool {
	releases, _ := inspect(e)
	return !releases
}

// inspect reports whether e releases anything, and finds an access without noise, in one pass
// over e: a stored event may nest samples 32 deep. It does not allocate, as privacy.Walk would.
func inspect(e privacy.Event) (releases bool, access *privacy.NonPrivate) {
	switch e := e.(type) {
	case privacy.Composed:
		for _, part := range e {
			r, l := inspect(part)
			if releases = releases || r; l != nil {
				return true, l
			}
		}
		return releases, nil
	case privacy.Repeated:
		if e.Count == 0 {
			return false, nil
		}
		return inspect(e.Of)
	case privacy.PoissonSampled:
		return inspect(e.Of)
	case privacy.FixedSampled:
		return inspect(e.Of)
	case privacy.Allocated:
		return inspect(e.Of)
	case privacy.Parallel:
		return inspect(e.Of)
	case privacy.Shared:
		return inspect(e.Of)
	case privacy.Retried:
		return inspect(e.Of)
	case privacy.Continued:
		return false, nil
	case privacy.Tuned:
		return inspect(privacy.Composed(e.Among))
	case privacy.NonPrivate:
		return true, &e
	}
	return true, nil
}

// trivial settles what every accountant answers alike: the error of an event that
// means nothing, the infinite loss of an access without noise, the zero loss of
// nothing, the loss of a whole run on a filter, and the loss of a divided table, by those of its parts. Otherwise both
// results are nil. Errors name a.
func trivial(a Accountant, e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if err := check(e, adj); err != nil {
		return nil, err
	}
	if privacy.Contains[privacy.Retried](e) {
		all, refused, why := spelled(e)
		if refused != nil {
			return nil, unsupported(a, refused, adj, why)
		}
		l, err := a.Loss(all, adj)
		if err != nil {
			return nil, err
		}
		return bound{l, 0, []string{"retries"}}, nil
	}
	switch releases, access := inspect(e); {
	case access != nil:
		return infinite{}, nil
	case !releases:
		return none{}, nil
	}
	if f, ok := e.(privacy.Filtered); ok {
		return lossOfFiltered(f), nil
	}
	if parts := divided(e, adj); parts != nil {
		return lossOfParts(a, parts, adj)
	}
	if of := sharedSample(e); of != nil {
		return nil, unsupported(a, of, adj, onlySharedPoisson)
	}
	if privacy.Contains[privacy.Shared](e) {
		l, err := a.Loss(pooled(e), adj)
		if err != nil {
			return nil, err
		}
		return bound{l, 0, []string{"shared"}}, nil
	}
	if all := fixedWhole(e); all != nil && adj != privacy.ReplaceOne {
		return nil, unsupported(a, all, adj, addRemoveFixed)
	}
	if epoch := allocated(e); epoch != nil && adj != privacy.AddRemove {
		return nil, unsupported(a, epoch, adj, onlyAllocatedPresence)
	}
	return nil, nil
}

// fixedWhole finds a sample of all N of a table's N records. Under replace-one it is the
// table; under add-or-remove the neighbor's N records of N+1 are a sample of it, two
// steps away from the table (PROOFS.md#fixed-pair).
func fixedWhole(e privacy.Event) (found privacy.Event) {
	privacy.Walk(e, func(e privacy.Event) bool {
		if s, ok := e.(privacy.FixedSampled); ok && s.M == s.N && found == nil {
			found = s
		}
		return found == nil
	})
	return found
}

// pooled replaces the retries in e by what they may cost, and each sum that owners share by one
// with all of the noise, which is what an observer of the sums sees. If that has no theorem, it
// returns e, which trivial refuses. PROOFS.md#retries, PROOFS.md#shared.
func pooled(e privacy.Event) privacy.Event {
	if privacy.Contains[privacy.Retried](e) && e.Validate() == nil {
		if all, refused, _ := spelled(e); refused == nil {
			e = all
		}
	}
	if !privacy.Contains[privacy.Shared](e) || e.Validate() != nil || sharedSample(e) != nil {
		return e
	}
	return privacy.Map(e, func(e privacy.Event) privacy.Event {
		if s, ok := e.(privacy.Shared); ok {
			return s.Of
		}
		return e
	})
}

const onlySharedPoisson = "owners draw their batches by themselves, so a sum whose noise they share is proven on the whole table and on Poisson samples"

// sharedSample finds a sample of another kind than Poisson's that holds a sum whose noise owners share.
func sharedSample(e privacy.Event) (found privacy.Event) {
	privacy.Walk(e, func(e privacy.Event) bool {
		switch e.(type) {
		case privacy.FixedSampled, privacy.Allocated, privacy.Tuned:
			if found == nil && privacy.Contains[privacy.Shared](e) {
				found = e
			}
		}
		return found == nil
	})
	return found
}

// none is the loss of releasing nothing.
type none struct{}

func (none) Epsilon(delta float64) float64 { return edge(delta, 0) }
func (none) Delta(epsilon float64) float64 {
	if !(epsilon >= 0) {
		return 1
	}
	return 0
}

// infinite is the loss of an access without noise.
type infinite struct{}

func (infinite) Epsilon(delta float64) float64 { return edge(delta, math.Inf(1)) }
func (infinite) Delta(float64) float64         { return 1 }

// edge handles the δ at which there is nothing to compute: every mechanism is
// (0, 1)-private, and a δ that is no number proves nothing.
func edge(delta, otherwise float64) float64 {
	switch {
	case !(delta >= 0):
		return math.Inf(1)
	case delta >= 1:
		return 0
	}
	return otherwise
}

// A bound is a Loss with the sections of PROOFS.md that it rests on. The δ that
// (ε, δ) releases have spent comes off the δ of the rest. PROOFS.md#approximate.
type bound struct {
	rest  Loss
	leak  float64
	rests []string
}

// Epsilon implements Loss.
func (b bound) Epsilon(delta float64) float64 {
	if b.leak == 0 || !(delta >= 0) || delta >= 1 {
		return b.rest.Epsilon(delta)
	}
	if delta < b.leak {
		return math.Inf(1)
	}
	return b.rest.Epsilon(subDown(delta, b.leak))
}

// Delta implements Loss.
func (b bound) Delta(epsilon float64) float64 {
	delta := b.rest.Delta(epsilon)
	if b.leak == 0 {
		return delta
	}
	total := sum{hi: delta}
	total.add(b.leak)
	return math.Min(1, total.up())
}
