package account

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
)

// A Meter is charged before data is read. A charge that it admits is spent for
// good; a charge that it refuses changes nothing, and nothing may be released for
// it. Meters are not safe for concurrent use: charges have an order.
type Meter interface {
	Adjacency() privacy.Adjacency
	Charge(privacy.Event) error
}

// ErrNotPlanned is returned, wrapped, by a Plan that is charged with anything else
// than what comes next.
var ErrNotPlanned = errors.New("not what the plan holds next")

var (
	_ Meter = (*Plan)(nil)
	_ Meter = (*Filter)(nil)
)

// within says whether a cost fits a limit. Both come from decimals that a person
// wrote, and rounding those to float64 is worth a few units in the last place:
// ten times 0.1 fits 1.
func within(cost, limit float64) bool { return cost <= limit*(1+0x1p-50) }

// A Plan is a meter for releases that are all known beforehand. The whole was
// certified once; the plan then admits exactly its releases in their order, of
// which any number may remain undone. Stopping early refunds nothing.
// PROOFS.md#plan-prefix.
type Plan struct {
	budget   privacy.Budget
	claim    privacy.Budget
	whole    privacy.Event
	gaps     bool
	next     cursor
	spare    []frame          // memory for looking ahead
	epoch    int              // batches that the epoch charged last has left
	kinds    privacy.Composed // of a plan with retries: what one of them may release; else nil
	retries  int              // left
	last     privacy.Event    // charged
	charges  int
	releases int
}

// NewPlan certifies a plan: by accountant a, all of it costs at most b. If it
// does not, the error wraps privacy.ErrExhausted and says what it costs.
func NewPlan(plan privacy.Event, a Accountant, b privacy.Budget) (*Plan, error) {
	if a == nil {
		return nil, errors.New("plan: no accountant given")
	}
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("plan: budget: %w", err)
	}
	loss, err := a.Loss(plan, b.Adjacency)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	epsilon := loss.Epsilon(b.Delta)
	if !within(epsilon, b.Epsilon) {
		return nil, fmt.Errorf("plan: by accountant %v it costs ε = %.6g at δ = %.6g under %v; the budget is ε = %.6g: %w",
			a, epsilon, b.Delta, b.Adjacency, b.Epsilon, privacy.ErrExhausted)
	}
	claim := b
	claim.Epsilon = math.Min(epsilon, b.Epsilon)
	p := newPlan(plan)
	p.budget, p.claim = b, claim
	return p, nil
}

// newPlan is the meter of a plan that is not certified.
func newPlan(plan privacy.Event) *Plan {
	p := &Plan{whole: plan}
	if r, ok := plan.(privacy.Retried); ok {
		p.whole, p.kinds, p.retries = r.Of, allowance(r.Of), r.Retries
	}
	p.next = newCursor(p.whole)
	return p
}

// AllowGaps lets charges leave releases of a plan out: it passes over those before the one that is charged, and forgoes
// them. What a run asks that lost batches in a crash may stand further on in its plan than what it had charged. A
// filter has no order. PROOFS.md#plan-prefix.
func AllowGaps(m Meter) {
	if p, ok := m.(*Plan); ok {
		p.gaps = true
	}
}

// Adjacency implements Meter.
func (p *Plan) Adjacency() privacy.Adjacency { return p.budget.Adjacency }

// Budget is what the plan was certified against.
func (p *Plan) Budget() privacy.Budget { return p.budget }

// Claim is the guarantee of the run, however far it gets: ε of the whole plan at
// the budget's δ.
func (p *Plan) Claim() privacy.Budget { return p.claim }

// Charged is the number of charges admitted so far.
func (p *Plan) Charged() int { return p.charges }

// Charge implements Meter. It admits e if the plan continues with what e releases; how the two group their releases
// into compositions and repetitions makes no difference. Otherwise the error wraps ErrNotPlanned, or
// privacy.ErrExhausted where the plan has come to its end, or with gaps to the last of what is asked. To resume a run,
// charge its events again. A plan with retries takes a batch that it does not hold next, and that was charged last, as
// a retry. PROOFS.md#retries. An epoch of random allocation is charged with its first batch, and privacy.Continued for
// each other, until another charge ends it.
func (p *Plan) Charge(e privacy.Event) error {
	if e == nil {
		return fmt.Errorf("plan: no event: %w", ErrNotPlanned)
	}
	if _, more := e.(privacy.Continued); more {
		if p.epoch == 0 {
			return fmt.Errorf("plan: no epoch with a batch left was charged last: %w", ErrNotPlanned)
		}
		p.epoch--
		p.charges++
		return nil
	}
	after := p.next.clone(p.spare)
	planned, more := after.step()
	if more && privacy.Equal(planned, e) && p.kinds == nil { // the common case
		return p.admit(e, after, 1)
	}
	if err := e.Validate(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if p.kinds != nil {
		if done, err := p.retry(e); done {
			return err
		}
	}
	if !more && !empty(e) {
		return fmt.Errorf("plan: it has come to its end: %w", privacy.ErrExhausted)
	}
	after = p.next.clone(p.spare)
	asked := newCursor(e)
	n := 0
	for want, more := asked.step(); more; want, more = asked.step() {
		if err := p.find(&after, want); err != nil {
			if p.kinds != nil && p.again(e) {
				return fmt.Errorf("plan: all of its retries were made: %w", privacy.ErrExhausted)
			}
			return fmt.Errorf("plan: after %d releases, %w", p.releases+n, err)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("plan: %v releases nothing: %w", e, ErrNotPlanned)
	}
	return p.admit(e, after, n)
}

// find moves past the release that want is.
func (p *Plan) find(next *cursor, want privacy.Event) error {
	if p.gaps {
		switch {
		case next.seek(want):
			return nil
		case holds(p.whole, want):
			return fmt.Errorf("%v is more than the plan has left: %w", want, privacy.ErrExhausted)
		}
		return fmt.Errorf("%v was asked: %w", want, ErrNotPlanned)
	}
	switch planned, more := next.step(); {
	case !more:
		return fmt.Errorf("%v is more than the plan has left: %w", want, privacy.ErrExhausted)
	case !sameLeaf(planned, want):
		return fmt.Errorf("%v comes and %v was asked: %w", planned, want, ErrNotPlanned)
	}
	return nil
}

func (p *Plan) admit(e privacy.Event, after cursor, releases int) error {
	p.epoch, p.last = 0, e
	if part, ok := e.(privacy.Parallel); ok {
		e = part.Of
	}
	if a, ok := e.(privacy.Allocated); ok {
		p.epoch = a.Batches - 1
	}
	p.next, p.spare = after, p.next.stack
	p.releases += releases
	p.charges++
	return nil
}

// sameLeaf says whether two releases are the same, up to the grouping of what was
// asked of one sample.
func sameLeaf(a, b privacy.Event) bool {
	if privacy.Equal(a, b) {
		return true
	}
	var in, out cursor
	switch x := a.(type) {
	case privacy.PoissonSampled:
		y, ok := b.(privacy.PoissonSampled)
		if !ok || x.Rate != y.Rate {
			return false
		}
		in, out = newCursor(x.Of), newCursor(y.Of)
	case privacy.Parallel:
		y, ok := b.(privacy.Parallel)
		if !ok || x.Name() != y.Name() {
			return false
		}
		in, out = newCursor(x.Of), newCursor(y.Of)
	case privacy.FixedSampled:
		y, ok := b.(privacy.FixedSampled)
		if !ok || x.M != y.M || x.N != y.N {
			return false
		}
		in, out = newCursor(x.Of), newCursor(y.Of)
	default:
		return false
	}
	return sameSteps(in, out)
}

// sameReleases says whether a and b are the same releases, in any grouping.
func sameReleases(a, b privacy.Event) bool {
	return privacy.Equal(a, b) || sameSteps(newCursor(a), newCursor(b))
}

func sameSteps(in, out cursor) bool {
	for {
		p, more := in.step()
		q, more2 := out.step()
		if !more || !more2 {
			return more == more2
		}
		if !sameLeaf(p, q) {
			return false
		}
	}
}

// A cursor walks through the releases of an event in order, in memory that
// depends on the event's nesting and not on its repetitions.
type cursor struct{ stack []frame }

type frame struct {
	event privacy.Event
	done  int // parts or repetitions that are behind
}

func newCursor(e privacy.Event) cursor { return cursor{stack: []frame{{event: e}}} }

// clone copies the cursor into the given memory.
func (c cursor) clone(into []frame) cursor { return cursor{stack: append(into[:0], c.stack...)} }

// child is the next part or repetition, nil behind the last; or the event is itself a release.
func (f *frame) child() (child privacy.Event, release bool) {
	switch e := f.event.(type) {
	case privacy.Composed:
		if f.done < len(e) {
			child = e[f.done]
		}
	case privacy.Repeated:
		if f.done < e.Count && !empty(e.Of) {
			child = e.Of
		}
	case privacy.PoissonSampled:
		if e.Rate < 1 && !empty(e.Of) {
			return nil, true
		}
		if e.Rate == 1 && f.done == 0 {
			child = e.Of
		}
	case privacy.FixedSampled:
		if e.M < e.N && !empty(e.Of) {
			return nil, true
		}
		if e.M == e.N && f.done == 0 {
			child = e.Of
		}
	case privacy.Allocated:
		return nil, !empty(e.Of)
	case privacy.Parallel:
		return nil, !empty(e.Of)
	default:
		return nil, true
	}
	return child, false
}

// pass moves past the next child, and past all repetitions of it.
func (f *frame) pass() {
	f.done++
	if e, ok := f.event.(privacy.Repeated); ok {
		f.done = e.Count
	}
}

// step returns the next release and moves past it.
func (c *cursor) step() (privacy.Event, bool) { return c.next(nil) }

// next is step, which does not go into a child that is whole: it returns that.
func (c *cursor) next(whole func(privacy.Event) bool) (privacy.Event, bool) {
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		child, release := top.child()
		switch {
		case child != nil && whole != nil && whole(child):
			top.done++
			return child, true
		case child != nil:
			top.done++
			c.stack = append(c.stack, frame{event: child})
			continue
		}
		event := top.event
		c.stack = c.stack[:len(c.stack)-1]
		if release {
			return event, true
		}
	}
	return nil, false
}

// seek moves past the next release that is the same as want, and says whether there is one. It takes no longer for
// more repetitions.
func (c *cursor) seek(want privacy.Event) bool {
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		child, release := top.child()
		switch {
		case child != nil && holds(child, want):
			top.done++
			c.stack = append(c.stack, frame{event: child})
		case child != nil:
			top.pass()
		default:
			event := top.event
			c.stack = c.stack[:len(c.stack)-1]
			if release && sameLeaf(event, want) {
				return true
			}
		}
	}
	return false
}

// holds says whether one of e's releases is the same as want.
func holds(e, want privacy.Event) bool {
	f := frame{event: e}
	for {
		child, release := f.child()
		switch {
		case release:
			return sameLeaf(e, want)
		case child == nil:
			return false
		case holds(child, want):
			return true
		}
		f.pass()
	}
}
