package account

import (
	"math"
	"sort"
	"sync"

	"github.com/sottodp/sotto/privacy"
)

// RDP accounts in Rényi divergences. It knows every mechanism on whole tables, and
// any of them, alone or together, on a Poisson sample and under replace-one on a
// sample of fixed size. Everything asked of one sample is
// composed first and amplified once.
type RDP struct {
	// Orders are the orders α > 1 to choose from. None means a dense grid from
	// 1.008 to 32768.
	Orders []float64
	// Classic converts by ε(α) + ln(1/δ)/(α−1), as older papers do, instead of
	// the improved conversion, which is never larger.
	Classic bool
}

func (RDP) String() string { return "rdp" }

// Loss implements Accountant.
func (a RDP) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if l, err := trivial(a, e, adj); l != nil || err != nil {
		return l, err
	}
	c, err := a.curve(e, adj)
	if err != nil {
		return nil, err
	}
	rests := append(c.rests.list(), "rdp-composition")
	if len(c.parts) == 0 {
		return bound{none{}, c.leak.up(), rests}, nil
	}
	rests = append(rests, conversion(a.Classic))
	if len(a.Orders) == 0 {
		rests = append(rests, "best-order")
	}
	return bound{&rdpLoss{curve: c, orders: a.Orders, classic: a.Classic, known: map[float64]float64{}}, c.leak.up(),
		rests}, nil
}

// Divergence bounds the Rényi divergence of e of one order above 1. It is +Inf
// where there is no bound. An event with an (ε, δ) release has none: that is an
// *UnsupportedError.
func (a RDP) Divergence(e privacy.Event, adj privacy.Adjacency, order float64) (float64, error) {
	if parts := divided(e, adj); parts != nil {
		return mostOver(parts, func(part privacy.Event) (float64, error) { return a.Divergence(part, adj, order) })
	}
	e = pooled(e)
	l, err := trivial(a, e, adj)
	switch {
	case err != nil:
		return 0, err
	case l == infinite{} || !(order > 1) || math.IsInf(order, 1):
		return math.Inf(1), nil
	case l == none{}:
		return 0, nil
	}
	if err := refuseDelta(a, e, adj); err != nil {
		return 0, err
	}
	c, err := a.curve(e, adj)
	if err != nil {
		return 0, err
	}
	return c.at(order), nil
}

// An rdpCurve is a composition: Rényi divergences of one order add up.
// PROOFS.md#rdp-composition.
type rdpCurve struct {
	parts []rdpPart
	index map[any]int
	leak  sum // the δ of (ε, δ) releases
	rests anchors
	rough bool // whether a part is
}

type rdpPart struct {
	divergence
	times float64
}

func newRDPCurve() *rdpCurve { return &rdpCurve{index: map[any]int{}, rests: anchors{}} }

// add composes c with a release, times over; key is equal for equal ones.
func (c *rdpCurve) add(key any, one curve, times float64) {
	if one.divergence == (noCost{}) {
		c.rests.note(one.rests...)
		return
	}
	i, ok := c.index[key]
	if !ok {
		i = len(c.parts)
		c.index[key] = i
		c.parts = append(c.parts, rdpPart{divergence: one.divergence})
		c.rests.note(one.rests...)
		c.rough = c.rough || one.rough
	}
	c.parts[i].times += times
}

func (c *rdpCurve) at(order float64) float64 {
	var total sum
	for _, p := range c.parts {
		d := p.divergence.at(order)
		if math.IsInf(d, 1) {
			return d
		}
		total.addProduct(p.times, d)
	}
	return total.up()
}

// curve reads the event as mechanisms with theorems, equal ones counted together.
func (a RDP) curve(e privacy.Event, adj privacy.Adjacency) (*rdpCurve, error) {
	c := newRDPCurve()
	err := leaves(e, 1, func(leaf privacy.Event, times float64) error {
		if s, ok := sampledBy(leaf); ok {
			s, why := s.under(adj)
			if why != "" {
				return unsupported(a, leaf, adj, why)
			}
			key, one, leak, why := s.curve()
			if why != "" {
				return unsupported(a, leaf, adj, why)
			}
			c.add(key, one, times)
			c.leak.addProduct(times, leak)
			return nil
		}
		if t, ok := leaf.(privacy.Tuned); ok {
			one, err := a.tuned(t, adj)
			if err != nil {
				return err
			}
			c.add(one.divergence, one, times)
			return nil
		}
		k, ok := facts(leaf)
		if !ok || k.renyi.divergence == nil {
			return unsupported(a, leaf, adj, unknown(leaf))
		}
		c.add(k.renyi.divergence, k.renyi, times)
		c.leak.addProduct(times, k.leak)
		return nil
	})
	return c, err
}

// gaussianPrecision is Σ 1/σ², if the event is a composition of Gaussians on the
// same records. It then costs no more than one Gaussian of that precision.
// PROOFS.md#gaussian-collapse.
func gaussianPrecision(e privacy.Event) (precision float64, ok bool) {
	var total sum
	err := leaves(e, 1, func(leaf privacy.Event, times float64) error {
		g, ok := gaussianOf(leaf)
		if !ok {
			return errFound
		}
		total.addProduct(times, precisionUp(g))
		return nil
	})
	return total.up(), err == nil
}

// gaussianOf is a release of Gaussian noise, relative to how far a replacement moves what it is added to.
func gaussianOf(leaf privacy.Event) (privacy.Gaussian, bool) {
	switch e := leaf.(type) {
	case privacy.Gaussian:
		return e, true
	case privacy.GaussianSum:
		return privacy.Gaussian{Sigma: e.Replacement}, true
	}
	return privacy.Gaussian{}, false
}

// precisionUp is 1/σ², rounded up.
func precisionUp(g privacy.Gaussian) float64 {
	sigma := capNoise(g.Sigma)
	return 1 / sigma / sigma * (1 + 1e-15)
}

// An rdpLoss converts a curve. Any order proves a bound, so the search for the
// best one decides only how tight it is.
type rdpLoss struct {
	curve   *rdpCurve
	orders  []float64
	classic bool

	mu    sync.Mutex
	known map[float64]float64 // the curve where it was evaluated
}

func (l *rdpLoss) at(order float64) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.known[order]
	if !ok {
		d = l.curve.at(order)
		l.known[order] = d
	}
	return d
}

// least is the least value of f over the orders. Over the default grid it uses
// that f is quasi-convex in the order (PROOFS.md#best-order).
func (l *rdpLoss) least(f func(order, divergence float64) float64) float64 {
	at := func(order float64) float64 {
		d := l.at(order)
		if math.IsInf(d, 1) || !(order > 1) {
			return math.Inf(1)
		}
		return f(order, d)
	}
	best := math.Inf(1)
	if len(l.orders) > 0 {
		for _, order := range l.orders {
			best = math.Min(best, at(order))
		}
		return best
	}
	grid := defaultOrders()
	i := 0
	if l.curve.rough { // look everywhere, then around the least
		for k, order := range grid {
			if k%roughStride != 0 && !(order <= roughWhole && order == math.Trunc(order)) {
				continue
			}
			if v := at(order); v < best {
				best, i = v, k
			}
		}
		from, to := max(0, i-roughStride), min(len(grid)-1, i+roughStride)
		i = from + sort.Search(to-from, func(k int) bool { return !(at(grid[from+k+1]) < at(grid[from+k])) })
	} else {
		i = sort.Search(len(grid)-1, func(i int) bool { return !(at(grid[i+1]) < at(grid[i])) })
	}
	best = math.Min(best, at(grid[i]))
	if i > 0 && i < len(grid)-1 && grid[i+1] <= brokenOrders { // look between the orders, too
		between := minimize(grid[i-1], grid[i+1], 1e-3*(grid[i+1]-grid[i-1]), at)
		best = math.Min(best, between)
	}
	return best
}

// Epsilon implements Loss.
func (l *rdpLoss) Epsilon(delta float64) float64 {
	if e := edge(delta, -1); e >= 0 {
		return e
	}
	logDelta := math.Log(delta)
	return math.Max(0, l.least(func(order, d float64) float64 {
		if l.classic {
			return classicEpsilon(order, d, logDelta)
		}
		return improvedEpsilon(order-1, d, logDelta)
	}))
}

// Delta implements Loss.
func (l *rdpLoss) Delta(epsilon float64) float64 {
	if !(epsilon >= 0) {
		return 1
	}
	return deltaOf(l.least(func(order, d float64) float64 {
		if l.classic {
			return classicLogDelta(order-1, d, epsilon)
		}
		return improvedLogDelta(order-1, d, epsilon)
	}))
}

// deltaOf is e^l as a δ, rounded up. It is 0 only for l = −∞.
func deltaOf(l float64) float64 {
	delta := math.Exp(l) * (1 + 1e-12)
	if delta == 0 && !math.IsInf(l, -1) {
		return math.SmallestNonzeroFloat64
	}
	return math.Min(1, delta)
}

// classicEpsilon: ε(α) + ln(1/δ)/(α−1). PROOFS.md#classic-conversion.
func classicEpsilon(order, divergence, logDelta float64) float64 {
	return (divergence - logDelta/(order-1)) * (1 + 1e-14)
}

// classicLogDelta: (α−1)(ε(α) − ε), with t = α−1. PROOFS.md#classic-conversion.
func classicLogDelta(t, divergence, epsilon float64) float64 {
	v := t * (divergence - epsilon)
	if math.IsInf(v, -1) {
		return v
	}
	return v + 1e-15*t*(divergence+epsilon)
}

// improvedEpsilon: ε(α) + ln((α−1)/α) − (ln δ + ln α)/(α−1).
// PROOFS.md#improved-conversion.
// With t = α−1 it stays exact as α approaches 1.
func improvedEpsilon(t, divergence, logDelta float64) float64 {
	gain := -math.Log1p(1/t) - math.Log1p(t)/t
	rest := divergence - logDelta/t
	return rest + gain + 1e-15*(rest-gain)
}

// improvedLogDelta: (α−1)(ε(α) − ε) − ln α + (α−1) ln(1 − 1/α).
// PROOFS.md#improved-conversion.
func improvedLogDelta(t, divergence, epsilon float64) float64 {
	gain := -t*math.Log1p(1/t) - math.Log1p(t)
	v := t*(divergence-epsilon) + gain
	if math.IsInf(v, -1) {
		return v
	}
	return v + 1e-15*(t*(divergence+epsilon)-gain)
}

// brokenOrders is where the default grid goes over to whole orders only.
const brokenOrders = 64

// roughStride is how many orders of the grid are passed over where the bound is
// the least of several and a search by halves might miss its minimum.
const roughStride = 24

// roughWhole is the last whole order that is not passed over: between whole orders a
// lemma is a chord, with its minima at the ends.
const roughWhole = 16

// defaultOrders is the grid: α−1 from 2⁻⁷ to 2¹⁵ in 64 steps per doubling, every
// whole order up to 64, and whole orders only above. Neighbors are so close that
// the best of them costs within 2e-5 of the best order of all. Small budgets need
// the orders at the far end (R23).
var defaultOrders = sync.OnceValue(func() []float64 {
	var grid []float64
	for i := 2; i <= brokenOrders; i++ {
		grid = append(grid, float64(i))
	}
	for i := -7 * 64; i <= 15*64; i++ {
		alpha := 1 + math.Exp2(float64(i)/64)
		if alpha > brokenOrders {
			alpha = math.Round(alpha)
		}
		grid = append(grid, alpha)
	}
	sort.Float64s(grid)
	distinct := grid[:1]
	for _, alpha := range grid[1:] {
		if alpha > distinct[len(distinct)-1] {
			distinct = append(distinct, alpha)
		}
	}
	return distinct
})
