package account

import (
	"flag"
	"math"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

var long = flag.Bool("long", false, "bracket all corners of rates, noises, steps and δ: some minutes")

// TestCorners: no bracket is wider than 2 %, from rare samples with little noise to long runs.
// Where both ends are 0 there is no ratio: that is 71 of the 840. None is too large to state: the largest ε is 4.8e6, of a rate
// of 0.9 with σ = 0.3 and a million steps. Without -long it is every 11th corner, and those that were the widest.
func TestCorners(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	widest, number, empty := 0.0, 0, 0
	for _, q := range []float64{1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.9} {
		for _, sigma := range []float64{0.3, 0.5, 0.9, 2, 10, 50} {
			for _, steps := range []int{1, 100, 1e4, 1e6} {
				for _, delta := range []float64{1e-4, 1e-5, 1e-8, 1e-12, 1e-15} {
					if number++; !*long && number%11 != 0 {
						continue
					}
					width, ok := bracketWidth(t, q, sigma, steps, delta)
					if !ok {
						empty++
					}
					widest = math.Max(widest, width)
				}
			}
		}
	}
	for _, c := range []struct {
		q, sigma float64
		steps    int
		delta    float64
	}{
		{1e-5, 0.9, 1e6, 1e-15}, {1e-6, 0.5, 1e6, 1e-4}, {1e-6, 0.9, 1, 1e-15}, {1e-5, 0.5, 100, 1e-12},
		{1e-5, 0.5, 100, 1e-5}, {1e-6, 50, 1, 1e-12}, {1e-3, 2, 100, 1e-15}, {1e-4, 0.9, 100, 1e-15}, {1e-4, 2, 100, 1e-15},
	} {
		width, _ := bracketWidth(t, c.q, c.sigma, c.steps, c.delta)
		widest = math.Max(widest, width)
	}
	t.Logf("the widest is %.3g %%; %d with ε = 0", 100*widest, empty)
}

// bracketWidth is how far, relatively, the ends are apart; false where both are 0.
func bracketWidth(t *testing.T, q, sigma float64, steps int, delta float64) (float64, bool) {
	t.Helper()
	lower, upper, err := PLD{}.Bracket(sampled(q, sigma, steps), privacy.AddRemove, delta)
	if err == nil && lower == 0 && upper == 0 {
		return 0, false
	}
	width := upper/lower - 1
	if err != nil || !(width >= 0 && width <= 0.02) {
		t.Errorf("rate %g, σ = %g, %d steps, δ = %g: between %v and %v, %v", q, sigma, steps, delta, lower, upper, err)
	}
	return width, true
}

// TestGeometricOneStep holds both ends of one release to its exact δ, where the losses are of every size.
func TestGeometricOneStep(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		q, sigma := logRange(1e-8, 0.999).Draw(t, "q"), logRange(0.3, 50).Draw(t, "sigma")
		epsilon := q * logRange(1e-2, 1e3).Draw(t, "epsilon over q")
		exact := oneStep(q, sigma, epsilon)
		if !(exact > 1e-15) {
			return
		}
		lower, upper := geometricEnds(t, sampled(q, sigma, 1), privacy.AddRemove, epsilon, exact)
		// The exact figure cancels: its digits are those of 1e-16 beside it.
		if wrong := 1e-9 + 1e-15/exact; lower > exact*(1+wrong) || upper < exact*(1-wrong) {
			t.Fatalf("δ(%v) is %v, not between %v and %v", epsilon, exact, lower, upper)
		}
	})
}

// geometricEnds are both bounds of δ at ε by the geometric mesh alone, made for a δ.
func geometricEnds(t interface{ Fatal(...any) }, e privacy.Event, adj privacy.Adjacency, epsilon, delta float64) (lower, upper float64) {
	loss, err := PLD{}.loss(e, adj)
	if err != nil {
		t.Fatal(err)
	}
	l := loss.(*pldLoss)
	for _, d := range l.directions() {
		a := l.aim(d, goalAt(delta))
		lower = math.Max(lower, l.newGeometric(d, a, true).lowerDelta(epsilon))
		upper = math.Max(upper, l.newGeometric(d, a, false).delta(epsilon))
	}
	return lower, upper
}

// TestGeometricAgainstGrid: of events of all kinds, under both adjacencies, one or several together, neither way to compose proves
// more than the other allows.
func TestGeometricAgainstGrid(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	tight := 0
	for i, c := range []struct {
		e   privacy.Event
		adj privacy.Adjacency
	}{
		{sampled(1e-3, 0.7, 300), privacy.AddRemove},
		{sampled(0.3, 2, 37), privacy.AddRemove},
		{sampled(1, 5, 1), privacy.AddRemove},
		{privacy.Repeated{Count: 20, Of: privacy.PoissonSampled{Rate: 1e-2, Of: privacy.Laplace{Scale: 0.4}}}, privacy.AddRemove},
		{privacy.Repeated{Count: 50, Of: privacy.PoissonSampled{Rate: 1e-2, Of: privacy.PureDP{Epsilon: 2}}}, privacy.AddRemove},
		{privacy.Composed{sampled(1e-2, 1, 100), sampled(1e-3, 0.8, 10), privacy.Gaussian{Sigma: 20}}, privacy.AddRemove},
		{privacy.Repeated{Count: 9, Of: privacy.PoissonSampled{Rate: 0.05, Of: privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Laplace{Scale: 2}}}}, privacy.AddRemove},
		{fixedSize(10, 1000, 30, privacy.Gaussian{Sigma: 1}), privacy.ReplaceOne},
		{onPoisson(0.01, 2, 1, 40), privacy.ReplaceOne},
	} {
		loss, err := PLD{}.loss(c.e, c.adj)
		if err != nil {
			t.Fatal(err)
		}
		l, ok := loss.(*pldLoss)
		if !ok || l.exact != nil {
			continue
		}
		for _, d := range l.directions() {
			for _, delta := range []float64{1e-4, 1e-10} {
				a := l.aim(d, goalAt(delta))
				grid, twin := l.newGrid(d, a, false), l.newGrid(d, a, true)
				geo, low := l.newGeometric(d, a, false), l.newGeometric(d, a, true)
				for _, share := range []float64{0.3, 0.7, 1, 1.2} {
					epsilon := share * a.epsilon
					if low.lowerDelta(epsilon) > grid.delta(epsilon)*(1+1e-9) || twin.lowerDelta(epsilon) > geo.delta(epsilon)*(1+1e-9) {
						t.Errorf("%d, direction %d, δ(%v): grid %v to %v, geometric %v to %v", i, d, epsilon,
							twin.lowerDelta(epsilon), grid.delta(epsilon), low.lowerDelta(epsilon), geo.delta(epsilon))
					}
				}
				if at := epsilonOf(geo, delta); at > 0 && lowerEpsilonOf(low, delta, at) > 0.98*at {
					tight++
				}
			}
		}
	}
	if tight < 20 {
		t.Errorf("only %d brackets are within 2 %%", tight)
	}
}

// TestCornersAgainstPeer: dp_accounting 0.6, PLDAccountant's distributions for Poisson sampling of a Gaussian: its optimistic estimate
// (privacy buckets) is not above the upper end, its pessimistic one (connect the dots) not below the lower. Its grid was h.
func TestCornersAgainstPeer(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for _, c := range []struct {
		q, sigma                float64
		steps                   int
		delta                   float64
		optimistic, pessimistic float64
	}{
		{1e-4, 0.9, 1, 1e-5, 0.0002998369, 0.0003049147}, // h = 1e-5
		{1e-4, 0.9, 100, 1e-5, 0.004222618, 0.004723906}, // 1e-5
		{1e-4, 0.5, 1, 1e-5, 0.004390827, 0.004395831},   // 1e-5
		{1e-4, 0.5, 100, 1e-5, 0.1789343, 0.1793564},     // 1e-5
		{1e-4, 0.5, 1000, 1e-8, 2.7564, 2.76387},         // 2e-5
		{1e-5, 0.5, 100, 1e-5, 0.003841106, 0.004073746}, // 1e-5
		{1e-5, 0.9, 1000, 1e-5, 0, 0.0009005622},         // 2e-6
		{1e-3, 0.9, 1, 1e-5, 0.01336178, 0.01336678},     // 1e-5
		{1e-3, 0.9, 100, 1e-4, 0.04645182, 0.04695186},   // 1e-5
		{1e-3, 2, 100, 1e-8, 0.02577926, 0.02627953},     // 1e-5
		{1e-4, 2, 100, 1e-8, 0.002224474, 0.002274499},   // 1e-6
		{1e-3, 0.5, 1000, 1e-8, 6.020195, 6.062463},      // 1e-4
		{1e-5, 0.3, 100, 1e-5, 1.345452, 1.34649},        // 2e-5
		{1e-2, 0.3, 100, 1e-8, 40.62184, 40.62719},       // 1e-4
	} {
		lower, upper, err := PLD{}.Bracket(sampled(c.q, c.sigma, c.steps), privacy.AddRemove, c.delta)
		if err != nil || upper < c.optimistic*(1-1e-6) || lower > c.pessimistic*(1+1e-6) || upper > c.pessimistic*1.001 {
			t.Errorf("%+v: between %v and %v, %v", c, lower, upper, err)
		}
	}
}

// TestGeometricIsBounded: however wide a law becomes, its points stay few, also where no ε is asked for.
func TestGeometricIsBounded(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, steps := range []int{1, 1e3, 1 << 39} {
		loss, err := PLD{}.loss(sampled(0.3, 0.5, steps), privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		l := loss.(*pldLoss)
		for _, d := range l.directions() {
			for _, delta := range []float64{0.9999, 1e-9} {
				if c := l.newGeometric(d, l.aim(d, goalAt(delta)), false); len(c.loss) > 30000 || steps > 1 && !(c.delta(0) > delta) {
					t.Errorf("%d steps, δ = %v: %d points, δ(0) = %v", steps, delta, len(c.loss), c.delta(0))
				}
			}
		}
	}
}
