package account

import (
	"errors"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

// unrolled lists a plan's releases.
func unrolled(plan privacy.Event) (all privacy.Composed) {
	c := newCursor(plan)
	for e, more := c.step(); more; e, more = c.step() {
		all = append(all, e)
	}
	return all
}

// subsequence is the plain rule that seek has to follow: the first that fits is taken.
func subsequence(all, of []privacy.Event) bool {
	for _, e := range of {
		if len(all) > 0 && sameLeaf(all[0], e) {
			all = all[1:]
		}
	}
	return len(all) == 0
}

// TestPlanWithGaps: with gaps, a plan admits a list of releases, in whatever groups, if it is one of its subsequences and no
// other; so does a tally. What is refused changes nothing.
func TestPlanWithGaps(t *testing.T) {
	race.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		events := []privacy.Event{
			privacy.Gaussian{Sigma: 50}, privacy.Laplace{Scale: 90}, privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: 40}},
			privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{privacy.Gaussian{Sigma: 40}, privacy.Laplace{Scale: 90}}},
		}
		event := rapid.SampledFrom(events)
		part := rapid.Custom(func(t *rapid.T) privacy.Event {
			return privacy.Repeated{Count: rapid.IntRange(0, 3).Draw(t, "count"), Of: privacy.Composed(rapid.SliceOfN(event, 0, 3).Draw(t, "of"))}
		})
		plan := privacy.Composed(rapid.SliceOfN(part, 0, 4).Draw(t, "plan"))
		all := unrolled(plan)
		p, err := NewPlan(plan, RDP{}, budget(1e9, 1e-3))
		if err != nil {
			t.Fatal(err)
		}
		AllowGaps(p)
		var asked []privacy.Event
		for range rapid.IntRange(0, 8).Draw(t, "charges") {
			group := rapid.SliceOfN(event, 1, 3).Draw(t, "group")
			err := p.Charge(privacy.Composed(group))
			if admitted := subsequence(append(asked[:len(asked):len(asked)], group...), all); admitted != (err == nil) {
				t.Fatalf("of %v after %v, %v: %v", all, asked, group, err)
			}
			if err == nil {
				asked = append(asked, group...)
				continue
			}
			inPlan := true
			for _, e := range group {
				inPlan = inPlan && holds(plan, e)
			}
			if inPlan && !errors.Is(err, privacy.ErrExhausted) {
				t.Errorf("a release of which the plan has no more left: %v", err)
			}
		}
		if err := partOf(plan, privacy.Composed(asked), 0); err != nil {
			t.Error(err)
		}
		other := rapid.SliceOfN(event, 0, 6).Draw(t, "other")
		if err := partOf(plan, privacy.Composed(other), 0); (err == nil) != subsequence(other, all) {
			t.Errorf("%v as a part of %v: %v", other, all, err)
		}
		// The first exact batches leave nothing out.
		exact := rapid.IntRange(0, len(other)).Draw(t, "exact")
		want := exact <= len(all) && slices.EqualFunc(other[:exact], all[:exact], privacy.Equal) && subsequence(other[exact:], all[exact:])
		if err := partOf(plan, privacy.Composed(other), exact); (err == nil) != want {
			t.Errorf("%v as a part of %v, exact for %d: %v", other, all, exact, err)
		}
	})
}

// TestGapsOfLongPlans: what is passed over is not counted through.
func TestGapsOfLongPlans(t *testing.T) {
	many, one := privacy.PoissonSampled{Rate: 1e-9, Of: privacy.Gaussian{Sigma: 1e6}}, privacy.Gaussian{Sigma: 50}
	plan := privacy.Composed{privacy.Repeated{Count: 1 << 50, Of: privacy.Repeated{Count: 1 << 10, Of: many}}, one}
	p := &Plan{whole: plan, next: newCursor(plan)}
	AllowGaps(p)
	if err := errors.Join(p.Charge(many), p.Charge(one)); err != nil {
		t.Error(err)
	}
	if err := p.Charge(many); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("a release that was passed over: %v", err)
	}
	if err := partOf(plan, privacy.Laplace{Scale: 1}, 0); !errors.Is(err, ErrNotPlanned) {
		t.Errorf("a release of another kind: %v", err)
	}
}
