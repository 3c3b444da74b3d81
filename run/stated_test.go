package run

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
)

// TestChargeStated: costs of other programs enter the ledger in each currency at no less than they are, and say that a person stated
// them; what a currency cannot count, or the budget does not cover, changes nothing.
func TestChargeStated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLedger(t, dir)
	defer l.Close()
	budget := privacy.Budget{Epsilon: 4, Delta: 1e-6, Adjacency: privacy.AddRemove}
	for _, c := range ledger.Currencies() {
		if err := l.SetBudget(t.Context(), c, "record", c, budget); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		s     Stated
		event privacy.Event
		says  string
	}{
		{Stated{Dataset: "caps", Epsilon: 1, Delta: 1e-7}, privacy.ApproxDP{Epsilon: 1, Delta: 1e-7}, ""},
		{Stated{Dataset: "caps", Epsilon: 0.5}, privacy.PureDP{Epsilon: 0.5}, ""},
		{Stated{Dataset: "zcdp", Rho: 0.125}, privacy.Gaussian{Sigma: 2 * (1 - 0x1p-50)}, ""},
		{Stated{Dataset: "zcdp", Mu: 0.25}, privacy.Gaussian{Sigma: 4 * (1 - 0x1p-50)}, ""},
		{Stated{Dataset: "zcdp", Epsilon: 0.5}, privacy.PureDP{Epsilon: 0.5}, ""},
		{Stated{Dataset: "rdp", Rho: 0.125}, privacy.Gaussian{Sigma: 2 * (1 - 0x1p-50)}, ""},
		{Stated{Dataset: "gdp", Mu: 0.5}, privacy.Gaussian{Sigma: 2 * (1 - 0x1p-50)}, ""},
		{Stated{Dataset: "new", Epsilon: 1, Delta: 1e-7, Adjacency: "replace-one", Unit: "person"}, privacy.ApproxDP{Epsilon: 1, Delta: 1e-7}, ""},

		{Stated{Dataset: "caps", Rho: 0.1}, nil, "counts in caps, which add up ε and δ; write --epsilon and --delta"},
		{Stated{Dataset: "caps", Mu: 0.1}, nil, "counts in caps"},
		{Stated{Dataset: "zcdp", Epsilon: 0.1, Delta: 1e-7}, nil, "(ε, δ) has no finite cost; write --rho"},
		{Stated{Dataset: "rdp", Epsilon: 0.1, Delta: 1e-7}, nil, "write --rho"},
		{Stated{Dataset: "gdp", Epsilon: 0.1, Delta: 1e-7}, nil, "write --mu"},
		{Stated{Dataset: "gdp", Rho: 0.1}, nil, "ρ has no cost that is proven; write --mu"},
		{Stated{Dataset: "zcdp", Rho: 0.1, Mu: 0.1}, nil, "write one of them"},
		{Stated{Dataset: "zcdp"}, nil, "write one of them"},
		{Stated{Dataset: "caps", Epsilon: -1}, nil, "found -1"},
		{Stated{Dataset: "zcdp", Rho: math.Inf(1)}, nil, "found +Inf"},
		{Stated{Dataset: "zcdp", Rho: math.NaN()}, nil, "found NaN"},
		{Stated{Dataset: "unknown", Epsilon: 1}, nil, `does not know the dataset "unknown" yet`},
		{Stated{Dataset: "caps", Epsilon: 1, Adjacency: "both"}, nil, "--adjacency"},
		{Stated{Dataset: "caps", Epsilon: 1, Adjacency: "replace-one"}, nil, "add-or-remove"},
		{Stated{Dataset: "caps", Epsilon: 1, Unit: "person"}, nil, "person"},
		{Stated{Dataset: "caps", Epsilon: 3.5}, nil, "budget"},
		{Stated{Dataset: "zcdp", Rho: 1}, nil, "budget"},
	} {
		c.s.Reason = "histograms by another program"
		before, err := l.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id, err := ChargeStated(t.Context(), l, c.s)
		if c.says != "" {
			var input *InputError
			var mismatch *ledger.MismatchError
			if err == nil || !strings.Contains(err.Error(), c.says) || !errors.As(err, &input) && !errors.As(err, &mismatch) && !errors.Is(err, privacy.ErrExhausted) {
				t.Errorf("%+v: %T %v", c.s, err, err)
			}
			if after, err := l.Head(t.Context()); err != nil || after != before {
				t.Errorf("%+v: the ledger changed: %v", c.s, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.s, err)
			continue
		}
		known, err := l.Run(t.Context(), id)
		if err != nil || known.State != ledger.StateSettled || !strings.HasPrefix(known.Why, StatedBy) {
			t.Errorf("%+v: %+v, %v", c.s, known, err)
			continue
		}
		charged, err := known.Settlement.Shows(privacy.Repeated{Count: 1, Of: c.event})
		if err != nil || !charged {
			t.Errorf("%+v: settled for other events than %v: %v", c.s, c.event, err)
		}
		// The event costs no less than what was stated.
		if rho := max(c.s.Rho, c.s.Mu*c.s.Mu/2); rho > 0 {
			if g := c.event.(privacy.Gaussian); 1/(2*g.Sigma*g.Sigma) < rho {
				t.Errorf("%+v costs ρ = %v", c.s, 1/(2*g.Sigma*g.Sigma))
			}
		}
	}
	if d, err := l.Dataset(t.Context(), "new"); err != nil || d.Unit != "person" || d.Adjacency != privacy.ReplaceOne || d.Spent.Epsilon != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	for _, reason := range []string{"", "two\nlines", strings.Repeat("x", 1001)} {
		if _, err := ChargeStated(t.Context(), l, Stated{Dataset: "caps", Epsilon: 0.1, Reason: reason}); err == nil || !strings.Contains(err.Error(), "--reason") {
			t.Errorf("%.20q: %v", reason, err)
		}
	}
	if _, err := l.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
