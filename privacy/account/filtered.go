package account

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
)

// NewMeter is the meter of a run. A plan that is fixed beforehand is certified as a
// whole by a ([NewPlan]). A [privacy.Filtered] plan says only what all of the run may cost:
// its meter is a [Filter] of that budget, which b has to cover.
func NewMeter(plan privacy.Event, a Accountant, b privacy.Budget) (Meter, error) {
	f, ok := plan.(privacy.Filtered)
	if !ok {
		return NewPlan(plan, a, b)
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if f.Epsilon > b.Epsilon || f.Delta > b.Delta {
		return nil, fmt.Errorf("filter: %v is more than the budget of ε = %.6g at δ = %.6g: %w", f, b.Epsilon, b.Delta,
			privacy.ErrExhausted)
	}
	return newFiltered(f, b.Adjacency)
}

func newFiltered(f privacy.Filtered, adj privacy.Adjacency) (*Filter, error) {
	return NewFilter(currencyOf(f), privacy.Budget{Epsilon: f.Epsilon, Delta: f.Delta, Adjacency: adj})
}

// currencyOf is what a valid f counts in.
func currencyOf(f privacy.Filtered) Currency {
	switch f.Currency {
	case privacy.InPure:
		return PureCurrency{}
	case privacy.InZCDP:
		return ZCDPCurrency{}
	case privacy.InGDP:
		return GDPCurrency{}
	}
	return RDPCurrency{[]float64{f.Order}}
}

// A filteredLoss is the loss of a whole run on a filter, in whatever accountant: the
// budget itself, and what else its currency proves of the same limit. PROOFS.md#filtered.
type filteredLoss struct {
	of privacy.Filtered
	in Loss
}

func lossOfFiltered(f privacy.Filtered) Loss {
	limit := filterLimit(f)
	rests := []string{"filters", "filtered"}
	var in Loss
	switch f.Currency {
	case privacy.InPure:
		in, rests = pureLoss(limit), append(rests, "pure-delta")
	case privacy.InZCDP:
		in, rests = zcdpLoss{rho: limit}, append(rests, conversion(false))
	case privacy.InGDP:
		in, rests = gdpLoss{mu: math.Sqrt(limit) * (1 + 1e-15)}, append(rests, "gaussian-exact")
	default:
		c := newRDPCurve()
		c.add("filter", curve{divergence: constant(limit)}, 1)
		in, rests = &rdpLoss{curve: c, orders: []float64{f.Order}, known: map[float64]float64{}},
			append(rests, conversion(false))
	}
	return bound{rest: filteredLoss{f, in}, rests: rests}
}

// Epsilon implements Loss.
func (l filteredLoss) Epsilon(delta float64) float64 {
	if e := l.in.Epsilon(delta); !(delta >= l.of.Delta) || e < l.of.Epsilon {
		return e
	}
	return l.of.Epsilon
}

// Delta implements Loss.
func (l filteredLoss) Delta(epsilon float64) float64 {
	if d := l.in.Delta(epsilon); !(epsilon >= l.of.Epsilon) || d < l.of.Delta {
		return d
	}
	return l.of.Delta
}

// filterLimit is the most that a run on f spends, in its currency; what a meter forgives for
// the rounding of decimals is in it.
func filterLimit(f privacy.Filtered) float64 {
	return currencyOf(f).limits(privacy.Budget{Epsilon: f.Epsilon, Delta: f.Delta})[0] * (1 + 0x1p-49)
}

// constant is a bound on the divergence of the one order that is asked about.
type constant float64

func (c constant) at(float64) float64 { return float64(c) }

// filteredFacts are what a run on f, whatever it asks, costs beside other releases.
func filteredFacts(f privacy.Filtered) (k known) {
	limit := filterLimit(f)
	rests := []string{"filters", "filtered"}
	switch f.Currency {
	case privacy.InPure:
		k = pureFacts(f.Epsilon)
		k.pure.rests = append(k.pure.rests, rests...)
	case privacy.InZCDP:
		k.zcdp = proven(limit, rests...)
	case privacy.InGDP:
		k.gdp = proven(limit, rests...)
		k.zcdp = proven(limit/2, append(rests, "gaussian-zcdp")...)
	default: // one order says nothing of others, so only (ε, δ) is left
		k, _ = facts(privacy.ApproxDP{Epsilon: f.Epsilon, Delta: f.Delta})
		k.pure.rests = append(k.pure.rests, rests...)
	}
	k.zcdp.rests = append(k.zcdp.rests, rests...)
	if k.renyi.divergence == nil {
		k.renyi.divergence = linear(k.zcdp.value)
	}
	k.renyi.rests = append(k.renyi.rests, rests...)
	return k
}

// linear is a divergence of ρα.
type linear float64

func (rho linear) at(alpha float64) float64 { return float64(rho) * alpha * (1 + 0x1p-51) }

// Spent is the ε at delta of the events that a run has charged. For a run on a filter it is what
// the filter counts: a cannot account for events that were chosen during the run. In both cases it
// is information; the cap is the guarantee.
func Spent(plan privacy.Event, a Accountant, charged privacy.Event, adj privacy.Adjacency,
	delta float64) (float64, error) {
	return spent(plan, a, charged, adj, delta, Loss.Epsilon)
}

// SpentNear is Spent by Near: for the progress of a run and the chart of its spending.
func SpentNear(plan privacy.Event, a Accountant, charged privacy.Event, adj privacy.Adjacency,
	delta float64) (float64, error) {
	return spent(plan, a, charged, adj, delta, Near)
}

func spent(plan privacy.Event, a Accountant, charged privacy.Event, adj privacy.Adjacency, delta float64,
	epsilon func(Loss, float64) float64) (float64, error) {
	if f, ok := plan.(privacy.Filtered); ok {
		c := currencyOf(f)
		cost, err := c.cost(charged, adj)
		if err != nil {
			return 0, err
		}
		return c.epsilon(cost, delta), nil
	}
	loss, err := a.Loss(charged, adj)
	if err != nil {
		return 0, err
	}
	return epsilon(loss, delta), nil
}

// Part is the part of f's limit that charged takes, for progress.
func Part(f privacy.Filtered, charged privacy.Event, adj privacy.Adjacency) (float64, error) {
	cost, err := currencyOf(f).cost(charged, adj)
	if err != nil {
		return 0, err
	}
	return cost[0] / filterLimit(f), nil
}

// ChooseFilter returns the filter of a budget, in the currency in which the event typical takes the
// smallest part of the limit. typical is about what the run is expected to ask; the run may ask
// other queries. If part is above 1, typical does not fit.
func ChooseFilter(typical privacy.Event, b privacy.Budget) (f privacy.Filtered, part float64, err error) {
	if err := b.Validate(); err != nil {
		return f, 0, fmt.Errorf("filter: budget: %w", err)
	}
	part = math.Inf(1)
	try := func(c privacy.Filtered) float64 {
		c.Epsilon, c.Delta = b.Epsilon, b.Delta
		cost, failed := currencyOf(c).cost(typical, b.Adjacency)
		if failed != nil {
			err = failed
			return math.Inf(1)
		}
		_, p := mostLeft(cost, currencyOf(c).limits(b))
		if p < part || f.Currency == "" {
			f, part = c, p
		}
		return p
	}
	switch {
	case b.Delta == 0:
		try(privacy.Filtered{Currency: privacy.InPure})
	case !math.IsInf(try(privacy.Filtered{Currency: privacy.InGDP}), 1): // exact, so no other is less
	case !math.IsInf(try(privacy.Filtered{Currency: privacy.InZCDP}), 1): // all orders at once, so none alone is less
	default:
		bestOrder(func(order float64) float64 { return try(privacy.Filtered{Currency: privacy.InRDP, Order: order}) })
	}
	if f.Currency == "" {
		return f, 0, fmt.Errorf("filter: %w", err)
	}
	return f, part, nil
}

// bestOrder searches for the least of f over orders from 1 + 1/8 to 2^15: first by doubling
// α−1, then around the least. Orders above 8 are whole, which costs less time.
func bestOrder(f func(order float64) float64) {
	at := func(log float64) float64 {
		order := 1 + math.Exp2(log)
		if order > 8 {
			order = math.Round(order)
		}
		return f(order)
	}
	least, from := math.Inf(1), -3.0
	for log := -3.0; log <= 15; log++ {
		p := at(log)
		if p < least {
			least, from = p, log
		}
		if p > 4*least { // beyond, orders only cost more, and take long
			break
		}
	}
	minimize(from-1, from+1, 0.02, at)
}

// CalibrateFilter is [Calibrate] for a run on a filter: the smallest noise, to 2e-3
// relative, with which a filter of the budget admits event(noise), and that filter.
func CalibrateFilter(b privacy.Budget, event func(noise float64) privacy.Event) (float64, privacy.Filtered, error) {
	noise, err := Calibrate(addable{}, b, event)
	if err != nil {
		return 0, privacy.Filtered{}, err
	}
	for {
		f, part, err := ChooseFilter(event(noise), b)
		if err != nil || part <= 1 {
			return noise, f, err
		}
		if noise *= 1 + 1e-3; noise > mostNoise {
			return 0, f, fmt.Errorf("calibrate: no noise is enough for %v in a filter: %w", b, privacy.ErrExhausted)
		}
	}
}

// addable is what the currencies of filters say of an event.
type addable struct{}

func (addable) String() string { return "of filters" }

// Loss implements Accountant.
func (addable) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	var least leastLoss
	var err error
	for _, a := range []Accountant{Pure{}, GDP{}, ZCDP{}, RDP{}} {
		if l, failed := a.Loss(e, adj); failed == nil {
			least = append(least, l)
		} else {
			err = failed
		}
	}
	if len(least) == 0 {
		return nil, err
	}
	return least, nil
}
