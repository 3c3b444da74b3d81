package account

import (
	"fmt"
	"slices"

	"github.com/sottodp/sotto/privacy"
)

// Retrying is accountant a for plans of which up to so many batches may be made once more: what it says of a plan is
// what a says of the plan with these retries (privacy.Retried), which is what a run's meter has to certify. It has a's
// name. It is for calibrating a plan, not for what was charged. With 0 retries it is a.
func Retrying(a Accountant, retries int) Accountant {
	if retries == 0 {
		return a
	}
	return retrying{a, retries}
}

// WithoutRetries is the accountant that Retrying was given, or a: for what a single batch costs that nobody gives up.
func WithoutRetries(a Accountant) Accountant {
	if r, ok := a.(retrying); ok {
		return r.Accountant
	}
	return a
}

type retrying struct {
	Accountant
	retries int
}

// Loss implements Accountant.
func (a retrying) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if e == nil {
		return a.Accountant.Loss(e, adj)
	}
	if found := unrepeatable(e); found != nil {
		return nil, unsupported(a, found, adj, onlySumsAgain)
	}
	return a.Accountant.Loss(privacy.Retried{Of: e, Retries: a.retries}, adj)
}

const (
	onlySumsAgain = "retries are proven only for batches of sums with Gaussian noise, of all records or of a Poisson sample; use a method that asks nothing else"

	tooManyBatches = "its batches are of too many kinds, none of which costs less than another"

	// mostKinds is how many kinds of batches a plan with retries may have.
	mostKinds = 256
)

// unrepeatable finds a part of a plan that has no theorem in a plan with retries.
func unrepeatable(plan privacy.Event) (found privacy.Event) {
	privacy.Walk(plan, func(e privacy.Event) bool {
		switch e.(type) {
		case privacy.Composed, privacy.Repeated, privacy.PoissonSampled, privacy.Shared, privacy.Gaussian,
			privacy.GaussianSum:
		default:
			if found == nil {
				found = e
			}
		}
		return found == nil
	})
	return found
}

// spelled is e with each plan with retries as the plan and, so often, its allowance: what one retry may cost. Where
// there is no theorem it says of which part, and why. PROOFS.md#retries.
func spelled(e privacy.Event) (all, refused privacy.Event, why string) {
	all = privacy.Map(e, func(e privacy.Event) privacy.Event {
		r, ok := e.(privacy.Retried)
		switch {
		case !ok || refused != nil:
			return e
		case unrepeatable(r.Of) != nil:
			refused, why = unrepeatable(r.Of), onlySumsAgain
			return e
		}
		one := allowance(r.Of)
		if len(one) > mostKinds {
			refused, why = r, tooManyBatches
		}
		return privacy.Composed{r.Of, privacy.Repeated{Count: r.Retries, Of: one}}
	})
	return all, refused, why
}

// manyKinds says whether the allowance of a plan with retries in e is of several batches, of which a retry makes one.
func manyKinds(e privacy.Event) (many bool) {
	privacy.Walk(e, func(e privacy.Event) bool {
		if r, ok := e.(privacy.Retried); ok && len(allowance(r.Of)) > 1 {
			many = true
		}
		return !many
	})
	return many
}

// allowance is batches of a plan, together, such that each batch of the plan is covered by one of them. It stops behind
// mostKinds.
func allowance(plan privacy.Event) (kinds privacy.Composed) {
	kinds = privacy.Composed{} // not nil: a plan without batches has an allowance of nothing
	eachBatch(plan, func(b privacy.Event) {
		if len(kinds) > mostKinds || anyCovers(kinds, b) {
			return
		}
		kinds = append(slices.DeleteFunc(kinds, func(k privacy.Event) bool { return covers(b, k) }), b)
	})
	return kinds
}

// eachBatch visits the batches of a plan, repetitions once.
func eachBatch(plan privacy.Event, visit func(privacy.Event)) {
	for f := (frame{event: plan}); ; f.pass() {
		child, release := f.child()
		switch {
		case release:
			visit(plan)
			return
		case child == nil:
			return
		case together(child):
			visit(child)
		default:
			eachBatch(child, visit)
		}
	}
}

// together says whether a part of a plan is one batch of several releases: a composition of releases of the whole
// table. Those of a sample are one release.
func together(part privacy.Event) bool {
	list, ok := part.(privacy.Composed)
	return ok && !empty(list) && !slices.ContainsFunc(list, func(e privacy.Event) bool {
		return privacy.Contains[privacy.Repeated](e) || privacy.Contains[privacy.PoissonSampled](e)
	})
}

// anyCovers says whether one of these batches covers b.
func anyCovers(kinds privacy.Composed, b privacy.Event) bool {
	return slices.ContainsFunc(kinds, func(k privacy.Event) bool { return covers(k, b) })
}

// covers says whether b is what batch a releases, with more noise or in part: both are of all records or of samples of
// the same rate, and each release of b has one of a's for itself that has no more noise.
func covers(a, b privacy.Event) bool {
	rate, given := askedTogether(a)
	ofRate, wanted := askedTogether(b)
	if rate != ofRate {
		return false
	}
	for _, want := range wanted {
		at := -1 // the one with the most noise, so that others are left for those with less
		for i, one := range given {
			if one != nil && noLessNoise(want, one) && (at < 0 || noLessNoise(one, given[at])) {
				at = i
			}
		}
		if at < 0 {
			return false
		}
		given[at] = nil
	}
	return true
}

// askedTogether is the rate of a batch's sample, 1 without one, and what is asked of it.
func askedTogether(batch privacy.Event) (rate float64, releases []privacy.Event) {
	rate = 1
	releases = leavesOf(batch)
	if len(releases) == 1 {
		if s, ok := releases[0].(privacy.PoissonSampled); ok {
			return s.Rate, leavesOf(s.Of)
		}
	}
	return rate, releases
}

// leavesOf lists the releases of e.
func leavesOf(e privacy.Event) (list []privacy.Event) {
	c := newCursor(e)
	for one, more := c.step(); more; one, more = c.step() {
		list = append(list, one)
	}
	return list
}

// noLessNoise says whether a is the release b with as much noise or more.
func noLessNoise(a, b privacy.Event) bool {
	switch a := a.(type) {
	case privacy.Gaussian:
		b, ok := b.(privacy.Gaussian)
		return ok && a.Sigma >= b.Sigma
	case privacy.GaussianSum:
		b, ok := b.(privacy.GaussianSum)
		return ok && a.Presence >= b.Presence && a.Replacement >= b.Replacement
	case privacy.Shared:
		b, ok := b.(privacy.Shared)
		return ok && a.Owners == b.Owners && a.Colluders == b.Colluders && noLessNoise(a.Of, b.Of)
	}
	return false
}

// again says whether e makes the batch that was charged last once more, at a cost that the allowance covers.
func (p *Plan) again(e privacy.Event) bool {
	return p.last != nil && privacy.Equal(p.last, e) && anyCovers(p.kinds, e)
}

// retry charges e, which is valid, to a plan with retries: as the plan's next batch, else as a retry of the last one.
// Otherwise done is false, and e may still be the plan's next releases in another grouping.
func (p *Plan) retry(e privacy.Event) (done bool, err error) {
	after := p.next.clone(p.spare)
	if batch, more := after.batch(); more && sameReleases(batch, e) {
		return true, p.admit(e, after, len(leavesOf(e)))
	}
	if p.retries == 0 || !p.again(e) {
		return false, nil
	}
	p.retries--
	p.charges++
	return true, nil
}

// batch is step for a whole batch, or for the next release of one that was begun.
func (c *cursor) batch() (privacy.Event, bool) { return c.next(together) }

// partOfRetried is partOf of a plan with retries: what its meter admits.
func partOfRetried(plan privacy.Retried, e privacy.Event, exact int) error {
	p := newPlan(plan)
	for i, part := range splitBatches(e, exact) {
		p.gaps = i > 0
		for _, same := range part {
			same := same.(privacy.Repeated)
			for range same.Count {
				if empty(same.Of) {
					break
				}
				if err := p.Charge(same.Of); err != nil {
					return fmt.Errorf("batch %d: %w: %w", p.charges, err, ErrNotPlanned)
				}
			}
		}
	}
	return nil
}
