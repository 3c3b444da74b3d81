package account

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

// TestFilterShares: Σ c(α) e^{(α−1)(B(α)−ε)} is δ, of which each order has its
// share, and B is rounded down.
func TestFilterShares(t *testing.T) {
	for _, b := range []privacy.Budget{budget(0.03, 1e-5), budget(1, 1e-5), budget(2, 1e-9), budget(40, 0.01)} {
		for _, orders := range [][]float64{nil, {1.5}, {2, 4, 8}, whole(2, 500)} {
			c := RDPCurrency{orders}
			total := 0.0
			for i, limit := range c.limits(b) {
				order := c.orders()[i]
				total += math.Exp((order-1)*(limit-b.Epsilon)) / order * math.Pow(1-1/order, order-1)
			}
			if total > b.Delta*(1+1e-12) || total < b.Delta*(1-1e-8) {
				t.Errorf("%v, %d orders: Σ = %.15g", b, len(c.orders()), total)
			}
		}
	}
	// R23: an order whose budget is negative is closed, and small ε needs large orders.
	f, err := NewFilter(RDPCurrency{}, budget(0.01, 1e-5))
	if err != nil || !(f.limits[0] < 0) || !(f.limits[8] < 0) || !(f.limits[14] > 0) {
		t.Errorf("limits at ε = 0.01: %v, %v", f.limits, err)
	}
	if _, err := NewFilter(RDPCurrency{geometricOrders[:9]}, budget(0.01, 1e-5)); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("orders up to 512 at ε = 0.01: %v", err)
	}
	for _, orders := range [][]float64{{1}, {0.5}, {math.Inf(1)}, {math.NaN()}} {
		if _, err := NewFilter(RDPCurrency{orders}, budget(1e6, 1e-5)); !errors.Is(err, privacy.ErrExhausted) {
			t.Errorf("orders %v: %v", orders, err)
		}
	}
	if _, err := NewFilter(RDPCurrency{}, budget(1, 0)); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("δ = 0: %v", err)
	}
}

// A law is a finite pair of distributions.
type law []outcome

type outcome struct{ p, q float64 }

func coin(epsilon float64) law {
	p := 1 / (1 + math.Exp(-epsilon))
	return law{{p, 1 - p}, {1 - p, p}}
}

// moment is E_Q (P/Q)^α.
func (l law) moment(order float64) (m float64) {
	for _, o := range l {
		m += o.q * math.Pow(o.p/o.q, order)
	}
	return m
}

func (l law) divergence(order float64) float64 { return math.Log(l.moment(order)) / (order - 1) }

// reveal is a release that, with the probability that spends a divergence of one
// order to the last, shows something with the loss that converts worst there, and
// else nearly nothing.
func reveal(order, divergence, loss float64) law {
	with := func(log float64) law {
		q := math.Exp(log)
		p := q * math.Exp(loss)
		return law{{p, q}, {1 - p, 1 - q}}
	}
	lo, hi := -loss-200, -loss-1e-9
	for range 200 {
		if mid := (lo + hi) / 2; with(mid).divergence(order) <= divergence {
			lo = mid
		} else {
			hi = mid
		}
	}
	return with(lo)
}

// TestManyOrdersAttack plays the attack of soundness S-2c exactly: a coin, and then
// all that is left of order 64 where it falls well, and all of order 8 where it does
// not. With limits that convert by themselves to δ at each order, a run that goes
// on while some order has budget reveals up to 1.37 δ. With shares it does not.
func TestManyOrdersAttack(t *testing.T) {
	b := budget(4, 1e-5)
	delta := func(orders, limits []float64, a float64, certify [2]int) float64 {
		total := 0.0
		for i, o := range coin(a) {
			order := orders[certify[i]]
			left := limits[certify[i]] - coin(a).divergence(order)
			so := math.Log(o.p / o.q)
			// The worst loss for the conversion is ε + ln(α/(α−1)), of which the coin has shown so.
			rest := reveal(order, left, b.Epsilon+math.Log(order/(order-1))-so)
			for _, r := range rest {
				total += math.Max(0, o.p*r.p-math.Exp(b.Epsilon)*o.q*r.q)
			}
		}
		return total
	}
	orders := []float64{8, 64}
	naive := []float64{RDPCurrency{Orders: []float64{8}}.limits(b)[0], RDPCurrency{Orders: []float64{64}}.limits(b)[0]}
	if d := delta(orders, naive, 0.03, [2]int{1, 0}); d < 1.36e-5 || d > 1.3677e-5 {
		t.Errorf("with each order's own limit the attack has δ = %.5g; it is known to have 1.368e-5", d)
	}
	shared := RDPCurrency{orders}.limits(b)
	worst := 0.0
	for _, a := range []float64{1e-4, 0.001, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3} {
		for _, certify := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
			worst = math.Max(worst, delta(orders, shared, a, certify))
		}
	}
	if worst > b.Delta || worst < 0.5*b.Delta {
		t.Errorf("with shares the worst attack has δ = %.5g of %.5g", worst, b.Delta)
	}
}

// A play is a run of an adversary against a filter: a tree of coins, whose biases
// are chosen after those before, and at each leaf the largest Gaussian release that
// the filter still admits there.
func (p *play) delta(t *rapid.T, spent privacy.Composed, node int, probability, loss float64) float64 {
	if node < p.coins {
		a := p.bias(t, node)
		e := privacy.Event(privacy.PureDP{Epsilon: a})
		if p.filter(t, spent).Charge(e) == nil {
			after := append(spent[:len(spent):len(spent)], e)
			heads := 1 / (1 + math.Exp(-a))
			return p.delta(t, after, 2*node+1, probability*heads, loss+a) + p.delta(t, after, 2*node+2, probability*(1-heads), loss-a)
		}
	}
	sigma := largest(func(inverse float64) bool {
		return p.filter(t, spent).Charge(privacy.Gaussian{Sigma: 1 / inverse}) == nil
	})
	if sigma == 0 {
		return probability * math.Max(0, -math.Expm1(p.budget.Epsilon-loss))
	}
	// E over the leaf of (1 − e^{ε−loss−Z})₊; δ(−x) = 1 − e^{−x}(1 − δ(x)) as Gaussians are symmetric.
	rest := p.budget.Epsilon - loss
	d := gdpLoss{mu: sigma}.Delta(math.Abs(rest))
	if rest < 0 {
		d = -math.Expm1(rest) + math.Exp(rest)*d
	}
	return probability * d
}

type play struct {
	currency Currency
	budget   privacy.Budget
	coins    int
	biases   map[int]float64
}

func (p *play) bias(t *rapid.T, node int) float64 {
	if _, ok := p.biases[node]; !ok {
		p.biases[node] = logRange(1e-3, 1).Draw(t, fmt.Sprint("bias ", node))
	}
	return p.biases[node]
}

func (p *play) filter(t *rapid.T, spent privacy.Composed) *Filter {
	f, err := NewFilter(p.currency, p.budget)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range spent {
		if err := f.Charge(e); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// TestAdversaryAgainstFilters computes the δ of whole trees of adaptive choices
// exactly. It must stay within the budget in both directions, of which the trees
// have the worse, as a coin's sides and a Gaussian's mirror each other.
func TestAdversaryAgainstFilters(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, c := range []Currency{ZCDPCurrency{}, RDPCurrency{Orders: []float64{8}}, RDPCurrency{}, RDPCurrency{Orders: []float64{4, 64}}} {
		t.Run(c.String(), func(t *testing.T) {
			worst := 0.0
			rapid.Check(t, func(t *rapid.T) {
				p := &play{currency: c, budget: budget(logRange(4, 10).Draw(t, "epsilon"), logRange(1e-6, 1e-2).Draw(t, "delta")),
					coins: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "coins"), biases: map[int]float64{}}
				d := p.delta(t, nil, 0, 1, 0)
				if d > p.budget.Delta*(1+1e-9) {
					t.Fatalf("the adversary has δ = %.6g of %.6g", d, p.budget.Delta)
				}
				worst = math.Max(worst, d/p.budget.Delta)
			})
			if worst < 0.01 {
				t.Errorf("the adversary never used more than %.2g of δ: the test shows nothing", worst)
			}
		})
	}
}

// A tally counts a plan while it is held, and what was charged after.
func TestTallyCountsWhatWasCharged(t *testing.T) {
	b := budget(1, 1e-5)
	step := privacy.Event(privacy.PoissonSampled{Rate: 0.01, Of: privacy.Gaussian{Sigma: 2}})
	plan := privacy.Repeated{Count: 1000, Of: step}
	tally := NewTally(RDPCurrency{}, privacy.AddRemove)
	if !tally.Covers(b) || tally.Part(b) != 0 || tally.Epsilon(1e-5) != 0 {
		t.Errorf("nothing: %v, ε %v", tally.Part(b), tally.Epsilon(1e-5))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(tally.Hold("a", plan))
	whole, epsilon := tally.Part(b), tally.Epsilon(1e-5)
	if !(whole > 0.5 && whole < 1) || !tally.Covers(b) {
		t.Errorf("held: %v", whole)
	}
	for _, of := range []float64{1 + 1e-9, 1 - 1e-9} { // ε is where the budget starts to cover it
		if got := tally.Covers(budget(epsilon*of, 1e-5)); got != (of > 1) {
			t.Errorf("covered at %v of ε = %v: %v", of, epsilon, got)
		}
	}
	if tally.Hold("a", plan) == nil {
		t.Error("held twice")
	}
	must(tally.Hold("b", plan))
	if tally.Covers(b) {
		t.Errorf("both: %v", tally.Part(b))
	}
	for _, e := range []privacy.Event{privacy.Repeated{Count: 1001, Of: step}, privacy.Gaussian{Sigma: 100}, privacy.Composed{step, privacy.Gaussian{Sigma: 9}}, nil, privacy.Gaussian{}} {
		before := tally.Part(b)
		if err := tally.Settle("b", e, 0); err == nil || tally.Part(b) != before {
			t.Errorf("settled for %v: %v", e, err)
		}
	}
	if err := tally.Settle("b", privacy.Repeated{Count: 10, Of: privacy.Gaussian{Sigma: 100}}, 0); !errors.Is(err, ErrNotPlanned) {
		t.Errorf("cheaper events than planned: %v", err)
	}
	must(tally.Settle("b", privacy.Composed{}, 0))
	near := func(what string, want float64) {
		t.Helper()
		if got := tally.Part(b); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("b released nothing", whole)
	must(tally.Settle("a", privacy.Composed{privacy.Repeated{Count: 200, Of: step}, privacy.Repeated{Count: 50, Of: step}}, 0))
	near("a quarter", whole/4)
	if tally.Settle("a", plan, 0) == nil {
		t.Error("settled twice")
	}
	var unsupported *UnsupportedError
	if err := tally.Hold("c", privacy.ApproxDP{Epsilon: 1, Delta: 1e-6}); !errors.As(err, &unsupported) {
		t.Errorf("no theorem: %v", err)
	}
	must(tally.Hold("look", privacy.NonPrivate{Why: "x"}))
	if tally.Covers(budget(1e9, 0.5)) || !math.IsInf(tally.Epsilon(0.5), 1) {
		t.Errorf("a look: ε %v", tally.Epsilon(0.5))
	}
	if NewTally(ZCDPCurrency{}, privacy.AddRemove).Covers(budget(1, 0)) {
		t.Error("δ = 0 buys something in zCDP")
	}
}

// TestTallyCoversEveryMoment plays runs that overlap, stop early and begin where
// the budget covers them. At every moment a filter that is charged with what was
// released so far, in the order in which it was, admits it.
func TestTallyCoversEveryMoment(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, c := range []Currency{ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{}} {
		t.Run(c.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := budget(logRange(1, 10).Draw(t, "epsilon"), logRange(1e-6, 1e-3).Draw(t, "delta"))
				tally := NewTally(c, privacy.AddRemove)
				f, err := NewFilter(c, b)
				if err != nil {
					t.Fatal(err)
				}
				type run struct {
					step       privacy.Event
					steps, did int
				}
				open := map[string]*run{}
				for i := range 40 {
					names := make([]string, 0, len(open))
					for j := range i {
						if name := fmt.Sprint(j); open[name] != nil {
							names = append(names, name)
						}
					}
					action := rapid.IntRange(0, 3).Draw(t, "action")
					if len(names) == 0 {
						action = 0
					}
					switch action {
					case 0:
						r := &run{steps: rapid.IntRange(1, 10).Draw(t, "steps"), step: privacy.Gaussian{Sigma: logRange(3, 30).Draw(t, "sigma")}}
						name, plan := fmt.Sprint(i), privacy.Repeated{Count: r.steps, Of: r.step}
						trial := NewTally(c, privacy.AddRemove)
						trial.settled = tally.settled
						for n, h := range tally.held {
							trial.held[n] = h
						}
						if err := trial.Hold(name, plan); err != nil {
							t.Fatal(err)
						}
						if trial.Covers(b) {
							tally, open[name] = trial, r
						}
					case 1, 2:
						r := open[rapid.SampledFrom(names).Draw(t, "run")]
						if r.did < r.steps {
							r.did++
							if err := f.Charge(r.step); err != nil {
								t.Fatalf("the tally holds %v and the filter refuses: %v", tally.Part(b), err)
							}
						}
					case 3:
						name := rapid.SampledFrom(names).Draw(t, "run")
						r := open[name]
						if err := tally.Settle(name, privacy.Repeated{Count: r.did, Of: r.step}, 0); err != nil {
							t.Fatal(err)
						}
						delete(open, name)
					}
				}
				for name, r := range open {
					if err := tally.Settle(name, privacy.Repeated{Count: r.did, Of: r.step}, 0); err != nil {
						t.Fatal(err)
					}
				}
				_, part := mostLeft(f.spent.up(), f.limits)
				if got := tally.Part(b); math.Abs(got-part) > 1e-12 {
					t.Fatalf("the tally ends at %v, the filter at %v", got, part)
				}
			})
		})
	}
}
