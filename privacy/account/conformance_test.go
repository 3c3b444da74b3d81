package account

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// storedEvents are the events of ../testdata/events.golden, of every kind: a test of package privacy says so.
func storedEvents(t *testing.T) (all []privacy.Event) {
	t.Helper()
	lines, err := os.ReadFile("../testdata/events.golden")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		e, err := privacy.UnmarshalEvent([]byte(strings.TrimSpace(line)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// TestConformance is the suite of events and accountants: for each stored event an accountant has a theorem, and every
// loss is one. A failure says what to write.
func TestConformance(t *testing.T) {
	race.Skip(t)
	for _, e := range storedEvents(t) {
		if r, ok := e.(privacy.Repeated); ok && r.Count > 1e6 {
			continue // slow, and of a kind that stands there alone, too
		}
		supported := false
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			least := math.Inf(1) // ε of all but Best, which comes last
			for _, a := range accountants {
				l, err := a.Loss(e, adj)
				var none *UnsupportedError
				switch {
				case errors.As(err, &none) && none.Why != "":
					continue
				case err != nil:
					t.Errorf("%v, accountant %v, %v: the error %q is none of an accountant without a theorem; return unsupported, "+
						"with why and what to use instead", e, a, adj, err)
					continue
				}
				supported = true
				checkLoss(t, e, a, adj, l)
				if epsilon := l.Epsilon(1e-5); a != Accountant(Best{}) {
					least = min(least, epsilon)
				} else if !(epsilon <= least*(1+1e-9)) {
					t.Errorf("%v, %v: best says ε = %v at δ = 1e-5, and another accountant %v; best takes the least of all that "+
						"have a theorem, so it left one out, or the other claims less than the event costs", e, adj, epsilon, least)
				}
			}
		}
		if !supported {
			t.Errorf("%T, as in %v: no accountant has a theorem for it, under neither relation, so no run can ask for it. "+
				"Write what is proven of the release on a whole table as a case of facts, privacy/account/facts.go, and a "+
				"section of privacy/account/PROOFS.md; for a kind of sample see trivial and leaves in account.go", e, e)
		}
	}
}

// checkLoss: ε and δ are numbers of their range, each falls as the other grows, they agree, and twice the event costs
// no
// less than once.
func checkLoss(t *testing.T, e privacy.Event, a Accountant, adj privacy.Adjacency, l Loss) {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%v, accountant %v, %v: "+format, append([]any{e, a, adj}, args...)...)
	}
	const slack = 1e-9
	before := math.Inf(1)
	for _, delta := range []float64{1e-12, 1e-8, 1e-5, 1e-2} {
		epsilon := l.Epsilon(delta)
		if !(epsilon >= 0) {
			wrong("Epsilon(%g) is %v; it is from 0 to +Inf", delta, epsilon)
		}
		if !(epsilon <= before*(1+slack)) {
			wrong("Epsilon(%g) is %v, above the %v of a smaller δ; a larger δ never costs more", delta, epsilon, before)
		}
		if back := l.Delta(epsilon); !math.IsInf(epsilon, 1) && !(back <= delta*(1+1e-2)+slack) {
			wrong("Epsilon(%g) is %v, and Delta of that is %v, more than 1 %% above; both must be bounds of one loss", delta,
				epsilon, back)
		}
		before = epsilon
	}
	last := 1.0
	for _, epsilon := range []float64{0, 0.1, 1, 10} {
		delta := l.Delta(epsilon)
		if !(delta >= 0 && delta <= last*(1+slack)) {
			wrong("Delta(%v) is %v; it is from 0 to 1, and no more than the %v of a smaller ε", epsilon, delta, last)
		}
		last = delta
	}
	if looks := privacy.Contains[privacy.NonPrivate](e); looks != math.IsInf(l.Epsilon(0.5), 1) {
		wrong("ε is %v; it is +Inf for an event with an access without noise, and for no other", l.Epsilon(0.5))
	}
	if twice, err := a.Loss(privacy.Repeated{Count: 2, Of: e}, adj); err == nil {
		if once, both := l.Epsilon(1e-5), twice.Epsilon(1e-5); !(both >= once*(1-slack)) {
			wrong("once costs ε = %v at δ = 1e-5, twice %v; a release more never costs less", once, both)
		}
	}
}
