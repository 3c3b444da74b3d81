package schedule

import (
	"errors"
	"math"
	"sort"
)

// ZCDP shares ρ of zero-concentrated differential privacy out over steps on all
// rows: ρ_t ∝ a_t^{1/2}.
//
// Derivation (P1 §6 names the idea only): Gaussian noise of variance σ_t²·Δ² costs
// ρ_t = 1/(2σ_t²), and costs add. Minimize Σ a_t·σ_t² = ½ Σ a_t/ρ_t with Σ ρ_t = ρ:
// the Lagrange condition is a_t/ρ_t² = const, and 1/ρ is convex. So σ_t² ∝ a_t^{−1/2}
// and Σ a_t·σ_t² = (Σ a_t^{1/2})²/(2ρ). Gaussian differential privacy counts μ² = 2ρ,
// so its optimum has the same shape.
func ZCDP(a []float64, rho float64) ([]float64, error) { return spread(a, rho, 0.5) }

// Numeric finds the noise of steps whose cost has no formula that inverts: it
// minimizes Σ a_t·σ_t² with Σ cost(σ_t) ≤ budget. cost must fall in σ from above
// budget to 0, and be convex as a function of s = σ²; then the problem is convex, and
// its one solution has −cost′(s_t) = a_t/λ.
//
// It is so for what accountants charge at an integer order α for a Gaussian on a
// sample: the logarithm of a sum of e^{k(k−1)/2s} with factors ≥ 0 is convex and
// rising in 1/s, which is convex in s. It is so for Laplace noise on a sample too
// (PureSampled, which is exact, is for that).
//
// cost is looked up in a table and interpolated, and the result is scaled up until
// the true costs fit: so it always fits, and is a little off the best. It is
// evaluated some thousand times and a few times per step.
func Numeric(a []float64, budget float64, cost func(noise float64) float64) ([]float64, error) {
	if _, err := spread(a, budget, 1); err != nil {
		return nil, err
	}
	// One noise for all steps, as the center of the table.
	uniform, err := least(1, func(x float64) bool { return float64(len(a))*cost(x) <= budget })
	if err != nil {
		return nil, err
	}
	lo, hi := math.Inf(1), 0.0
	for _, w := range a {
		lo, hi = math.Min(lo, w), math.Max(hi, w)
	}
	lo = math.Max(lo, hi*negligible)
	// On all rows s_t/s would be as (a/a_t)^{1/2}; the table goes further.
	span := math.Log(hi/lo) + math.Log(1e4)
	c := newCurve(cost, 2*math.Log(uniform)-span, 2*math.Log(uniform)+span)
	out := make([]float64, len(a))
	l, h := math.Log(lo)-c.steep[0]-1, math.Log(hi)-c.steep[len(c.steep)-1]+1 // ln λ, from least noise to most
	for range 80 {
		if mid := l + (h-l)/2; c.set(out, a, lo, mid) > budget {
			l = mid
		} else {
			h = mid
		}
	}
	c.set(out, a, lo, h)
	for step := 1e-6; step < 1e6; step *= 2 {
		sum := 0.0
		for _, s := range out {
			sum += cost(s)
		}
		if sum <= budget {
			return out, nil
		}
		for t := range out {
			out[t] *= 1 + step
		}
	}
	return nil, errNoNoise
}

// negligible is the weight, over the largest, below which weights count as equal:
// what such steps get is some 1e-5 of the budget at most.
const negligible = 1e-10

// A curve is a table of a cost against ln s, s = σ², as fine as it needs.
type curve struct {
	logS, logCost []float64
	steep         []float64 // ln(−dcost/ds) halfway between two points, falling
}

func newCurve(cost func(noise float64) float64, from, to float64) *curve {
	logCost := func(logS float64) float64 { return math.Log(math.Max(cost(math.Exp(logS/2)), 1e-300)) }
	c := &curve{logS: []float64{from}, logCost: []float64{logCost(from)}}
	// add appends what lies between x, the last point, and y, and then y.
	var add func(x, cx, y, cy float64, depth int)
	add = func(x, cx, y, cy float64, depth int) {
		mid := x + (y-x)/2
		cm := logCost(mid)
		if depth == 0 || depth < 10 && math.Abs(cm-(cx+cy)/2) < 1e-4 {
			c.logS, c.logCost = append(c.logS, mid, y), append(c.logCost, cm, cy)
			return
		}
		add(x, cx, mid, cm, depth-1)
		add(mid, cm, y, cy, depth-1)
	}
	add(from, c.logCost[0], to, logCost(to), 15)
	for i := range len(c.logS) - 1 {
		// The drop from point to point, as exp(a)−exp(b) without loss.
		drop := c.logCost[i] + math.Log(math.Max(-math.Expm1(c.logCost[i+1]-c.logCost[i]), 1e-300))
		width := c.logS[i] + math.Log(math.Expm1(c.logS[i+1]-c.logS[i]))
		c.steep = append(c.steep, drop-width)
		if i > 0 {
			c.steep[i] = math.Min(c.steep[i], c.steep[i-1])
		}
	}
	return c
}

// set makes out the noise at which −dcost/ds = a_t/λ, and returns the sum of costs.
// Weights count as least at least.
func (c *curve) set(out, a []float64, least, logLambda float64) (sum float64) {
	last := len(c.logS) - 1
	for t, w := range a {
		want := math.Log(math.Max(w, least)) - logLambda
		i := sort.Search(len(c.steep), func(i int) bool { return c.steep[i] < want })
		x := float64(i) - 0.5
		if i > 0 && i < len(c.steep) {
			x += (c.steep[i-1] - want) / (c.steep[i-1] - c.steep[i])
		}
		x = math.Min(math.Max(x, 0), float64(last))
		j := min(int(x), last-1)
		f := x - float64(j)
		out[t] = math.Exp((c.logS[j]*(1-f) + c.logS[j+1]*f) / 2)
		sum += math.Exp(c.logCost[j]*(1-f) + c.logCost[j+1]*f)
	}
	return sum
}

var errNoNoise = errors.New("schedule: no noise from 1e-9 to 1e12 has a cost that fits the budget")

// least is the smallest x near start at which fits holds, to 1e-6; fits must hold
// from some x on.
func least(start float64, fits func(x float64) bool) (float64, error) {
	lo, hi := start, start
	for !fits(hi) {
		if lo, hi = hi, hi*2; hi > 1e12 {
			return 0, errNoNoise
		}
	}
	for lo == hi || fits(lo) {
		if hi, lo = lo, lo/2; lo < 1e-9 {
			return 0, errNoNoise
		}
	}
	for hi > lo*(1+1e-6) {
		if mid := math.Sqrt(lo * hi); fits(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, nil
}
