package account

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

func epochs(count, batches int, sigma float64) privacy.Event {
	return privacy.Repeated{Count: count, Of: privacy.Allocated{Batches: batches, Of: privacy.Gaussian{Sigma: sigma}}}
}

func pldEpsilon(t *testing.T, e privacy.Event, delta float64) float64 {
	t.Helper()
	l, err := PLD{}.Loss(e, privacy.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	return l.Epsilon(delta)
}

// Of docs/measurements/allocation.py, which another program computes on another grid.
func TestAllocationAsMeasured(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, c := range []struct {
		batches, epochs int
		sigma, epsilon  float64
	}{{16, 10, 0.8, 7.55}, {100, 10, 0.8, 2.91}, {234, 10, 0.6, 4.69}, {234, 10, 1, 1.05}, {234, 60, 0.8, 4.43}, {234, 60, 1, 2.77}, {234, 60, 1.5, 1.47}} {
		got := pldEpsilon(t, epochs(c.epochs, c.batches, c.sigma), 1e-5)
		if math.Abs(got/c.epsilon-1) > 0.005 {
			t.Errorf("%v: found ε = %.6g", c, got)
		}
		poisson := privacy.Repeated{Count: c.epochs * c.batches, Of: privacy.PoissonSampled{Rate: 1 / float64(c.batches), Of: privacy.Gaussian{Sigma: c.sigma}}}
		if other := pldEpsilon(t, poisson, 1e-5); got >= other {
			t.Errorf("%v: ε = %.6g is not below that of Poisson samples, %.6g", c, got, other)
		}
	}
}

// sides are δ(ε) of a pair in points where a record is removed and where one is added.
func sides(points []atom, epsilon float64) (removed, added float64) {
	x := math.Exp(epsilon)
	for _, a := range points {
		removed += math.Max(0, a.p1-x*a.p0)
		added += math.Max(0, a.p0-x*a.p1)
	}
	return removed, added
}

// Much noise makes a fine grid, on which a sum of terms and one term are far apart. The points in between take no memory: M is
// nearly normal around 1, of variance shift²/b.
func TestAllocationOfMuchNoise(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, batches := range []int{7, 1000} {
		points := meanOfTerms(batches, 1e-6)
		removed, added := sides(points, 0)
		want := 1e-6 / math.Sqrt(2*math.Pi*float64(batches))
		if len(points) > 5000 || !(removed > want && removed < 1.01*want && added > want && added < 1.01*want) {
			t.Errorf("%d batches: %d points, δ(0) = %.6g and %.6g, want %.6g", batches, len(points), removed, added, want)
		}
	}
}

// One batch is the whole table, whose δ is known.
func TestAllocationOfOneBatchIsGaussian(t *testing.T) {
	t.Parallel()
	for _, shift := range []float64{1e-3, 0.1, 0.5, 1, 3, 10, 20} {
		points := meanOfTerms(1, shift)
		for _, deviations := range []float64{0, 1, 2, 4, 6} {
			epsilon := shift*shift/2 + shift*deviations
			want := gdpLoss{mu: shift}.Delta(epsilon)
			removed, added := sides(points, epsilon)
			for _, got := range []float64{removed, added} {
				if got < want*(1-1e-9) || got > want*1.02 {
					t.Errorf("shift %v, ε %.3g: found δ = %.9g, want %.9g to 2 %% more", shift, epsilon, got, want)
				}
			}
		}
	}
}

// The points are a pair of laws, each by at most 1e-8 too large.
func TestAllocationPointsAreLaws(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, c := range []struct {
		batches int
		shift   float64
	}{{2, 1e-3}, {3, 0.3}, {7, 20}, {234, 1}, {255, 0.4}, {1000, 2}, {4097, 1.2}} {
		var with, without float64
		for _, a := range meanOfTerms(c.batches, c.shift) {
			with, without = with+a.p1, without+a.p0
		}
		for _, total := range []float64{with, without} {
			if !(total >= 1-1e-15 && total <= 1+1e-8) {
				t.Errorf("%v: found a mass of 1 + %.3g", c, total-1)
			}
		}
	}
}

// The pair is simulated: places, noise and likelihood ratios as in the statement. A mean of 200,000 numbers in [0, 1] is
// beyond five of its standard deviations with probability below 6e-7, so all 64 comparisons are with less than 4e-5.
func TestAllocationBySimulation(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	const n = 200_000
	random := rand.New(rand.NewPCG(1, 42))
	for _, c := range []struct {
		batches, epochs int
		sigma           float64
	}{{2, 1, 1}, {5, 1, 0.5}, {16, 1, 0.7}, {3, 4, 1.5}} {
		l := &pldLoss{pure: math.Inf(1)}
		if err := l.read(PLD{}, epochs(c.epochs, c.batches, c.sigma), privacy.AddRemove); err != nil {
			t.Fatal(err)
		}
		loss := func(record bool) float64 { // ln of the likelihood ratio of with to without
			total := 0.0
			for range c.epochs {
				place, mean := random.IntN(c.batches), 0.0
				for batch := range c.batches {
					y := c.sigma * random.NormFloat64()
					if record && batch == place {
						y++
					}
					mean += math.Exp((y-0.5)/(c.sigma*c.sigma)) / float64(c.batches)
				}
				total += math.Log(mean)
			}
			return total
		}
		levels := []float64{0.1, 0.3, 1, 2}
		sum, square := [2][4]float64{}, [2][4]float64{}
		for range n {
			with, without := loss(true), -loss(false)
			for i, epsilon := range levels {
				for d, l := range []float64{with, without} {
					v := math.Max(0, -math.Expm1(epsilon-l))
					sum[d][i] += v
					square[d][i] += v * v
				}
			}
		}
		for d, direction := range []direction{remove, add} {
			for i, epsilon := range levels {
				mean := sum[d][i] / n
				error := 5*math.Sqrt((square[d][i]/n-mean*mean)/n) + 1e-6
				goal := pldGoal{epsilon: epsilon, atEpsilon: true}
				delta := l.composeOne(direction, l.aim(direction, goal), false).delta(epsilon)
				if delta < mean-error || delta > mean*1.01+error {
					t.Errorf("%v, direction %v, ε %v: found δ = %.6g, simulated %.6g ± %.2g", c, direction, epsilon, delta, mean, error)
				}
			}
		}
	}
}

// More batches and more noise cost no more; no epoch costs more than one release on the whole table.
func TestAllocationIsMonotone(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	last := math.Inf(1)
	for _, batches := range []int{2, 3, 4, 7, 16, 33, 200, 3000, allocatedMostBatches, allocatedMostBatches + 1} {
		epsilon := pldEpsilon(t, epochs(1, batches, 2), 1e-6)
		if epsilon > last*1.001 {
			t.Errorf("%d batches: ε = %.6g after %.6g", batches, epsilon, last)
		}
		last = epsilon
	}
	last = math.Inf(1)
	for _, sigma := range []float64{0.01, 0.04, 0.06, 0.1, 0.3, 1, 10, 1e3, 1e7} {
		epsilon, whole := pldEpsilon(t, epochs(1, 10, sigma), 1e-6), pldEpsilon(t, privacy.Gaussian{Sigma: sigma}, 1e-6)
		if epsilon > last*1.001+1e-12 || epsilon > whole*1.001+1e-12 {
			t.Errorf("σ = %v: ε = %.6g after %.6g, of the whole table %.6g", sigma, epsilon, last, whole)
		}
		last = epsilon
	}
}

func TestAllocationBesideOthers(t *testing.T) {
	t.Parallel()
	both := privacy.Composed{epochs(3, 50, 1), privacy.Continued{}, privacy.Repeated{Count: 20, Of: privacy.PoissonSampled{Rate: 0.01, Of: privacy.Gaussian{Sigma: 1}}}, privacy.Gaussian{Sigma: 5}, epochs(1, 20, 1)}
	l, err := PLD{}.Loss(both, privacy.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	alone := pldEpsilon(t, epochs(3, 50, 1), 1e-5)
	if epsilon := l.Epsilon(1e-5); !(epsilon > alone && epsilon < alone+4) {
		t.Errorf("ε = %v beside %v alone", epsilon, alone)
	}
	var names []string
	for _, theorem := range Basis(l) {
		names = append(names, theorem.Anchor)
	}
	if !strings.Contains(strings.Join(names, " "), "allocation") {
		t.Errorf("the loss rests on %v", names)
	}
	if least, err := (PLD{}).Least(epochs(3, 50, 1), privacy.AddRemove, 1e-5); least != 0 || err != nil {
		t.Errorf("a least ε of %v, %v", least, err)
	}
}

func TestAllocationWithoutTheorem(t *testing.T) {
	t.Parallel()
	one := epochs(1, 5, 1)
	laplace := privacy.Allocated{Batches: 5, Of: privacy.Laplace{Scale: 1}}
	inner := privacy.PoissonSampled{Rate: 0.5, Of: one}
	for _, c := range []struct {
		a   Accountant
		e   privacy.Event
		adj privacy.Adjacency
		why string
	}{
		{PLD{}, one, privacy.ReplaceOne, onlyAllocatedPresence}, {Best{}, one, privacy.ReplaceOne, onlyAllocatedPresence},
		{RDP{}, one, privacy.AddRemove, onlyAllocatedPLD}, {ZCDP{}, one, privacy.AddRemove, onlyAllocatedPLD}, {Pure{}, one, privacy.AddRemove, onlyAllocatedPLD},
		{GDP{}, one, privacy.AddRemove, "whole tables"}, {PLD{}, laplace, privacy.AddRemove, onlyAllocatedGaussian}, {PLD{}, inner, privacy.AddRemove, nestedSampling},
	} {
		_, err := c.a.Loss(c.e, c.adj)
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || !strings.Contains(unsupported.Why, c.why) {
			t.Errorf("%v of %v: %v", c.a, c.e, err)
		}
	}
}
