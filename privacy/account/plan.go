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
	next     cursor
	spare    []frame // memory for looking ahead
	charges  int
	position int
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
	return &Plan{budget: b, claim: claim, next: newCursor(plan)}, nil
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

// Charge implements Meter. It admits e if the plan goes on with what e releases;
// how the two group their releases into compositions and repetitions makes no
// difference. Otherwise the error wraps ErrNotPlanned, or privacy.ErrExhausted
// where the plan has come to its end. To resume a run, charge its events again.
func (p *Plan) Charge(e privacy.Event) error {
	if e == nil {
		return fmt.Errorf("plan: no event: %w", ErrNotPlanned)
	}
	after := p.next.clone(p.spare)
	planned, more := after.step()
	if more && privacy.Equal(planned, e) { // the common case
		return p.admit(after, 1)
	}
	if err := e.Validate(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if !more && !empty(e) {
		return fmt.Errorf("plan: all %d releases are charged: %w", p.position, privacy.ErrExhausted)
	}
	after = p.next.clone(p.spare)
	asked := newCursor(e)
	n := 0
	for {
		want, ok := asked.step()
		if !ok {
			break
		}
		planned, more := after.step()
		if !more {
			return fmt.Errorf("plan: %v is more than the plan has left: %w", e, privacy.ErrExhausted)
		}
		if !sameLeaf(planned, want) {
			return fmt.Errorf("plan: release %d is %v, asked was %v: %w", p.position+n, planned, want, ErrNotPlanned)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("plan: %v releases nothing: %w", e, ErrNotPlanned)
	}
	return p.admit(after, n)
}

func (p *Plan) admit(after cursor, releases int) error {
	p.next, p.spare = after, p.next.stack
	p.position += releases
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
	case privacy.FixedSampled:
		y, ok := b.(privacy.FixedSampled)
		if !ok || x.M != y.M || x.N != y.N {
			return false
		}
		in, out = newCursor(x.Of), newCursor(y.Of)
	default:
		return false
	}
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

// step returns the next release and moves past it.
func (c *cursor) step() (privacy.Event, bool) {
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		event := top.event
		var child privacy.Event
		switch e := event.(type) {
		case privacy.Composed:
			if top.done < len(e) {
				child = e[top.done]
			}
		case privacy.Repeated:
			if top.done < e.Count && !empty(e.Of) {
				child = e.Of
			}
		case privacy.PoissonSampled:
			if e.Rate < 1 && !empty(e.Of) {
				c.stack = c.stack[:len(c.stack)-1]
				return event, true
			}
			if e.Rate == 1 && top.done == 0 {
				child = e.Of
			}
		case privacy.FixedSampled:
			if e.M < e.N && !empty(e.Of) {
				c.stack = c.stack[:len(c.stack)-1]
				return event, true
			}
			if e.M == e.N && top.done == 0 {
				child = e.Of
			}
		default:
			c.stack = c.stack[:len(c.stack)-1]
			return event, true
		}
		if child == nil {
			c.stack = c.stack[:len(c.stack)-1]
			continue
		}
		top.done++
		c.stack = append(c.stack, frame{event: child})
	}
	return nil, false
}
