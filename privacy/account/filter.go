package account

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
)

// A Currency is a measure of cost that may be spent adaptively: events and their
// costs may be chosen after seeing earlier outcomes, as long as the sum stays
// within a limit fixed beforehand. That is proven for those below and false for
// (ε, δ) of the best order or of privacy loss distributions, so the set is sealed.
// PROOFS.md#filters, PROOFS.md#filter-orders.
type Currency interface {
	fmt.Stringer
	// cost is what an event costs, rounded up: one number per order, and one alone
	// where the currency has no orders.
	cost(privacy.Event, privacy.Adjacency) ([]float64, error)
	// limits are the most that may be spent under the budget, rounded down. A run
	// must stay within one of them; one that is not above 0 is closed.
	limits(privacy.Budget) []float64
	// epsilon is the least ε, rounded up, with which a budget of this δ covers what
	// was spent.
	epsilon(spent []float64, delta float64) float64
}

type (
	// PureCurrency spends pure ε. The budget's δ stays unused.
	PureCurrency struct{}
	// ZCDPCurrency spends ρ of zero-concentrated differential privacy.
	ZCDPCurrency struct{}
	// GDPCurrency spends μ² of Gaussian differential privacy: of Gaussian noise on
	// whole tables, and of nothing else.
	GDPCurrency struct{}
	// RDPCurrency spends Rényi divergence of one or several orders at once, among which δ
	// is shared evenly. It continues while one of them has budget left.
	RDPCurrency struct {
		// Orders are the orders α > 1. None means 2, 4, 8 … 32768, which the meaning
		// of stored budgets rests on: it never changes. Small ε needs the large ones.
		Orders []float64
	}
)

func (PureCurrency) String() string { return "pure ε" }
func (ZCDPCurrency) String() string { return "zCDP ρ" }
func (GDPCurrency) String() string  { return "GDP μ²" }
func (c RDPCurrency) String() string {
	o := c.orders()
	if len(o) == 1 {
		return fmt.Sprintf("RDP of order %.6g", o[0])
	}
	return fmt.Sprintf("RDP of %d orders from %.6g to %.6g", len(o), o[0], o[len(o)-1])
}

var geometricOrders = [...]float64{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}

func (c RDPCurrency) orders() []float64 {
	if len(c.Orders) == 0 {
		return geometricOrders[:]
	}
	return c.Orders
}

// costOf is the single cost of an event by a's sum of its parts, in which no δ may be left over.
func costOf(a Accountant, e privacy.Event, adj privacy.Adjacency,
	sum func(privacy.Event, privacy.Adjacency) (cost, float64, error)) ([]float64, error) {
	if parts := divided(e, adj); parts != nil {
		most, err := mostOver(parts, func(part privacy.Event) (float64, error) {
			cost, err := costOf(a, part, adj, sum)
			if err != nil {
				return 0, err
			}
			return cost[0], nil
		})
		return []float64{most}, err
	}
	e = pooled(e)
	l, err := trivial(a, e, adj)
	switch {
	case err != nil:
		return nil, err
	case l == infinite{}:
		return []float64{math.Inf(1)}, nil
	case l == none{}:
		return []float64{0}, nil
	}
	if err := refuseDelta(a, e, adj); err != nil {
		return nil, err
	}
	total, _, err := sum(e, adj)
	if err != nil {
		return nil, err
	}
	return []float64{total.value}, nil
}

func (PureCurrency) cost(e privacy.Event, adj privacy.Adjacency) ([]float64, error) {
	return costOf(Pure{}, e, adj, Pure{}.cost)
}

func (ZCDPCurrency) cost(e privacy.Event, adj privacy.Adjacency) ([]float64, error) {
	return costOf(ZCDP{}, e, adj, ZCDP{}.cost)
}

func (GDPCurrency) cost(e privacy.Event, adj privacy.Adjacency) ([]float64, error) {
	return costOf(GDP{}, e, adj, GDP{}.cost)
}

// hopeless is a divergence beyond which larger orders are not computed: they count
// as exhausted.
const hopeless = 1000

func (c RDPCurrency) cost(e privacy.Event, adj privacy.Adjacency) ([]float64, error) {
	orders := c.orders()
	costs := make([]float64, len(orders))
	for i, order := range orders {
		// Divergences grow in the order, and large orders take long.
		if i > 0 && order >= orders[i-1] && costs[i-1] > hopeless {
			costs[i] = math.Inf(1)
			continue
		}
		var err error
		if costs[i], err = (RDP{}).Divergence(e, adj, order); err != nil {
			return nil, err
		}
	}
	return costs, nil
}

func (PureCurrency) limits(b privacy.Budget) []float64 { return []float64{b.Epsilon} }

func (ZCDPCurrency) limits(b privacy.Budget) []float64 {
	return []float64{largest(func(rho float64) bool { return zcdpLoss{rho: rho}.Epsilon(b.Delta) <= b.Epsilon })}
}

func (GDPCurrency) limits(b privacy.Budget) []float64 {
	return []float64{largest(func(squared float64) bool {
		return gdpLoss{mu: math.Sqrt(squared) * (1 + 1e-15)}.Delta(b.Epsilon) <= b.Delta
	})}
}

// limits inverts the improved conversion at δ over the number of orders:
// B(α) = ε + ln(δπ/c(α))/(α−1). Where B(α) is not above 0 the order is closed (R23).
func (c RDPCurrency) limits(b privacy.Budget) []float64 {
	orders := c.orders()
	limits := make([]float64, len(orders))
	for i, order := range orders {
		free := c.free(order, b.Delta)
		if limits[i] = b.Epsilon - free - 1e-14*(b.Epsilon+math.Abs(free)); math.IsNaN(limits[i]) {
			limits[i] = math.Inf(-1)
		}
	}
	return limits
}

// free is what the conversion of one order adds to its divergence, rounded up;
// +Inf for an order that proves nothing.
func (c RDPCurrency) free(order, delta float64) float64 {
	if !(order > 1) || math.IsInf(order, 1) || !(delta > 0) {
		return math.Inf(1)
	}
	shared := math.Log(delta) - math.Log(float64(len(c.orders())))
	return improvedEpsilon(order-1, 0, shared-4e-16*math.Abs(shared))
}

func (PureCurrency) epsilon(spent []float64, _ float64) float64 { return spent[0] }

func (ZCDPCurrency) epsilon(spent []float64, delta float64) float64 {
	if spent[0] == 0 {
		return 0
	}
	return zcdpLoss{rho: spent[0]}.Epsilon(delta)
}

func (GDPCurrency) epsilon(spent []float64, delta float64) float64 {
	if spent[0] == 0 {
		return 0
	}
	return gdpLoss{mu: math.Sqrt(spent[0]) * (1 + 1e-15)}.Epsilon(delta)
}

func (c RDPCurrency) epsilon(spent []float64, delta float64) float64 {
	least, nothing := math.Inf(1), true
	for i, order := range c.orders() {
		nothing = nothing && spent[i] == 0
		e := spent[i] + c.free(order, delta)
		least = math.Min(least, math.Max(0, e+3e-14*(spent[i]+math.Abs(e))))
	}
	if nothing {
		return 0
	}
	return least
}

// largest is the largest x > 0 that is fine, to 1e-12 and from below, or 0; fine
// must hold up to some x and fail beyond.
func largest(fine func(x float64) bool) float64 {
	lo, hi := 0x1p-200, 0x1p100
	if !fine(lo) {
		return 0
	}
	for hi > lo*(1+1e-12) {
		mid := math.Sqrt(lo) * math.Sqrt(hi)
		if fine(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// sums are what was spent, order by order.
type sums []sum

// plus is s with a cost added. The receiver stays as it is.
func (s sums) plus(cost []float64) sums {
	after := make(sums, len(cost))
	copy(after, s)
	for i, c := range cost {
		after[i].add(c)
	}
	return after
}

func (s sums) up() []float64 {
	v := make([]float64, len(s))
	for i := range s {
		v[i] = s[i].up()
	}
	return v
}

// mostLeft is the order that has the most left: the least part of its limit is spent.
// The part is +Inf where every order is closed.
func mostLeft(spent, limits []float64) (order int, part float64) {
	part = math.Inf(1)
	for i, limit := range limits {
		if limit > 0 && spent[i]/limit < part {
			order, part = i, spent[i]/limit
		}
	}
	return order, part
}

// A Filter is a meter for events that are chosen on the way. It owns a budget in
// one currency and admits an event only if the sum of all costs so far stays
// within it.
type Filter struct {
	budget   privacy.Budget
	currency Currency
	limits   []float64
	spent    sums
	known    [4]holding // costs of the last events: a run has few kinds of event, and some are slow to compute
	next     int        // in known
}

// NewFilter makes a filter of a budget. A budget with which the currency could
// admit nothing is an error that wraps privacy.ErrExhausted.
func NewFilter(c Currency, b privacy.Budget) (*Filter, error) {
	if c == nil {
		return nil, errors.New("filter: no currency given")
	}
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("filter: budget: %w", err)
	}
	f := &Filter{budget: b, currency: c, limits: c.limits(b)}
	f.spent = make(sums, len(f.limits))
	if _, part := mostLeft(f.spent.up(), f.limits); math.IsInf(part, 1) {
		return nil, fmt.Errorf("filter: a budget of %v admits nothing in %v: %w", b, c, privacy.ErrExhausted)
	}
	return f, nil
}

// Adjacency implements Meter.
func (f *Filter) Adjacency() privacy.Adjacency { return f.budget.Adjacency }

// Budget is the guarantee of the run.
func (f *Filter) Budget() privacy.Budget { return f.budget }

// Currency is what the filter counts in.
func (f *Filter) Currency() Currency { return f.currency }

// Spent is the sum of the admitted costs, and Limit the most it may become, in
// the filter's currency; of several orders, at the one that has the most left. What
// was spent depends on releases: it is information, and the budget stays the
// guarantee.
func (f *Filter) Spent() float64 {
	spent := f.spent.up()
	order, _ := mostLeft(spent, f.limits)
	return spent[order]
}

// Limit is described at Spent.
func (f *Filter) Limit() float64 {
	order, _ := mostLeft(f.spent.up(), f.limits)
	return f.limits[order]
}

// Epsilon is the least ε with which a budget of the same δ covers what was spent. Like Spent, it is no guarantee.
func (f *Filter) Epsilon() float64 {
	return math.Max(0, f.currency.epsilon(f.spent.up(), f.budget.Delta))
}

// cost is what an event costs, remembered for a while.
func (f *Filter) cost(e privacy.Event) ([]float64, error) {
	for _, k := range f.known {
		if k.plan != nil && privacy.Equal(k.plan, e) {
			return k.cost, nil
		}
	}
	cost, err := f.currency.cost(e, f.budget.Adjacency)
	if err == nil {
		f.known[f.next] = holding{e, cost}
		f.next = (f.next + 1) % len(f.known)
	}
	return cost, err
}

// Charge implements Meter. A refusal wraps privacy.ErrExhausted; an event without
// a theorem in the filter's currency is an *UnsupportedError.
func (f *Filter) Charge(e privacy.Event) error {
	if _, more := e.(privacy.Continued); more {
		return fmt.Errorf("filter: no epoch was charged, which a filter does not admit: %w", ErrNotPlanned)
	}
	cost, err := f.cost(e)
	if err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	after := f.spent.plus(cost)
	if _, part := mostLeft(after.up(), f.limits); !within(part, 1) {
		order, _ := mostLeft(f.spent.up(), f.limits)
		return fmt.Errorf("filter: %v costs %.6g of %v, and %.6g of %.6g are spent: %w",
			e, cost[order], f.currency, f.spent[order].up(), f.limits[order], privacy.ErrExhausted)
	}
	f.spent = after
	return nil
}
