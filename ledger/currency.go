package ledger

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// The currencies of a dataset (rules.md, R1), one of which is fixed when it enters. The meaning of a name
// never changes.
const (
	// InCaps: ε and δ of the runs' own budgets add up, and stay spent as a whole.
	InCaps = "caps"
	// The filters: a run reserves the cost of its plan and settles for what it charged.
	// PROOFS.md#tally.
	InZCDP = "zcdp" // account.ZCDPCurrency
	InGDP  = "gdp"  // account.GDPCurrency
	InRDP  = "rdp"  // account.RDPCurrency of its own orders
)

// Currencies lists them, the default first.
func Currencies() []string { return []string{InCaps, InZCDP, InGDP, InRDP} }

// filter is the account's currency of that name, nil for caps.
func filter(currency string) account.Currency {
	switch currency {
	case InZCDP:
		return account.ZCDPCurrency{}
	case InGDP:
		return account.GDPCurrency{}
	case InRDP:
		return account.RDPCurrency{}
	}
	return nil
}

func validCurrency(currency string) error {
	if !slices.Contains(Currencies(), currency) {
		return fmt.Errorf("currency: found %q; choose %s", currency, strings.Join(Currencies(), ", "))
	}
	return nil
}

// budgetOf is c as a budget of the dataset.
func (d *dataset) budgetOf(c Caps) privacy.Budget {
	return privacy.Budget{Epsilon: c.Epsilon, Delta: c.Delta, Adjacency: d.facts.Adjacency}
}

// take reserves for a run, or returns why it cannot; after an error d must not be used. plan may be nil
// under caps. The accounts of the version that wrote a stored reservation admitted it: if this version's
// accounts refuse it, d remembers that.
func (d *dataset) take(run string, caps Caps, plan privacy.Event, stored bool) error {
	if d.tally == nil {
		if !d.spent.fits(caps, d.budget) {
			return d.refuse(run, caps)
		}
		d.spent.add(caps)
		return nil
	}
	switch {
	case d.budget == nil:
		return fmt.Errorf("dataset %q counts in %s and has no lifetime budget", d.name, d.facts.Currency)
	case plan == nil:
		return fmt.Errorf("dataset %q counts in %s: run %q has no plan", d.name, d.facts.Currency, run)
	}
	budget := d.budgetOf(*d.budget)
	before := d.tally.Part(budget)
	if err := d.tally.Hold(run, plan); err != nil {
		return fmt.Errorf("dataset %q counts in %s: %w", d.name, d.facts.Currency, err)
	}
	part := d.tally.Part(budget)
	switch {
	case stored && part > 1+1e-6 && d.over == "": // below is another platform's last digit
		d.over = run
	case !stored && !d.tally.Covers(budget):
		return fmt.Errorf("dataset %q: run %q would bring what is held or settled from %s to %s of the lifetime budget of %v, counted in %s: %w",
			d.name, run, Percent(before), Percent(part), *d.budget, d.facts.Currency, privacy.ErrExhausted)
	}
	return nil
}

// Percent is a part of a budget for people, rounded up to three digits.
func Percent(part float64) string {
	v := 100 * part
	if v == 0 || math.IsInf(v, 1) {
		return fmt.Sprintf("%v %%", v)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return fmt.Sprintf("%.3g %%", math.Ceil(v/unit*(1-1e-12))*unit)
}

// settle settles a run for what it charged. Under caps nothing comes back.
func (d *dataset) settle(run string, s settled) error {
	if d.tally == nil {
		return nil
	}
	exact := 0 // an entry of format 1 says of no release that it was not left out
	switch s.Basis {
	case BasisPlan, BasisMismatch:
		if len(s.Charged) > 0 || s.Batches != 0 {
			return fmt.Errorf("run %q settles for its plan and for charged events", run)
		}
		return d.tally.SettlePlan(run)
	case BasisRecord:
		var ok bool
		if exact, ok = d.resumed[run]; !ok {
			exact = math.MaxInt
		}
	case "":
	default:
		return fmt.Errorf("run %q settles on the basis %q: %w", run, s.Basis, errNewer)
	}
	charged, err := eventIn(s.Charged)
	if err != nil {
		return fmt.Errorf("the charged events of run %q: %w", run, err)
	}
	if all, err := linesOf(charged); err != nil || end(all) != s.Batches {
		return fmt.Errorf("the charged events of run %q are not those of %d batches", run, s.Batches)
	}
	return d.tally.Settle(run, charged, exact)
}

// releases reports whether an event contains any release.
func releases(e privacy.Event) bool {
	return privacy.Fold(e, func(e privacy.Event, inside []bool) bool {
		if r, ok := e.(privacy.Repeated); ok && r.Count == 0 {
			return false
		}
		return privacy.Single(e) || slices.Contains(inside, true)
	})
}

// grow returns the larger ε and the larger δ of the two. The limits of every currency grow with
// both, so the result covers what either budget admitted.
func grow(a *Caps, b Caps) *Caps {
	if a == nil {
		return &b
	}
	return &Caps{max(a.Epsilon, b.Epsilon), max(a.Delta, b.Delta)}
}
