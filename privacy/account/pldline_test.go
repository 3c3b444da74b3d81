package account

import (
	"math"
	"math/big"
	"math/cmplx"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

func fixedSize(m, n, steps int, of privacy.Event) privacy.Event {
	return privacy.Repeated{Count: steps, Of: privacy.FixedSampled{M: m, N: n, Of: of}}
}

// anyPart draws a sampled release.
func anyPart(t *rapid.T) (pldPart, direction) {
	p := pldPart{times: 1, pair: pair{
		shape: []shape{normalShape, laplaceShape, responseShape, sumShape}[rapid.IntRange(0, 3).Draw(t, "shape")],
		rate:  logRange(1e-6, 1).Draw(t, "rate"),
		shift: logRange(1e-3, 5).Draw(t, "shift"),
	}}
	if rapid.Bool().Draw(t, "nearly all") {
		p.rate, p.shift = 1-logRange(1e-15, 0.5).Draw(t, "rest"), p.shift*4
	}
	if p.shape == sumShape {
		p.rate = math.Min(p.rate, 1-1e-15) // of a whole table there is no sum to sample
		p.near = p.shift * rapid.Float64Range(0.5, 1).Draw(t, "A/R")
		return p, swap
	}
	return p, direction(rapid.IntRange(0, 2).Draw(t, "direction"))
}

// TestPLDLineAgainstGrid: two ways to compose that share no more than the pairs.
func TestPLDLineAgainstGrid(t *testing.T) {
	race.Skip(t)
	draws, lines := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if draws++; draws > 12 {
			return
		}
		sigma, scale := logRange(0.4, 30).Draw(t, "sigma"), logRange(0.5, 30).Draw(t, "scale")
		q, steps := logRange(1e-4, 1).Draw(t, "q"), int(logRange(50, 5000).Draw(t, "steps"))
		delta := logRange(1e-9, 0.01).Draw(t, "delta")
		adj, m := privacy.AddRemove, max(1, int(q*1e6))
		sample := func(of privacy.Event) privacy.Event { return privacy.PoissonSampled{Rate: q, Of: of} }
		if rapid.Bool().Draw(t, "fixed") {
			adj = privacy.ReplaceOne
			sample = func(of privacy.Event) privacy.Event { return privacy.FixedSampled{M: m, N: 1e6, Of: of} }
		}
		e := privacy.Composed{privacy.Repeated{Count: steps, Of: sample(privacy.Gaussian{Sigma: sigma})}}
		if rapid.Bool().Draw(t, "sum") {
			adj = privacy.ReplaceOne
			e = privacy.Composed{onPoisson(q, sigma*rapid.Float64Range(1, 2).Draw(t, "R/A"), sigma, steps)}
		}
		if rapid.Bool().Draw(t, "laplace") {
			e = append(e, privacy.Repeated{Count: rapid.IntRange(1, 50).Draw(t, "count"), Of: sample(privacy.Laplace{Scale: scale})})
		}
		lower, upper, err := PLD{}.Bracket(e, adj, delta)
		if err != nil {
			t.Fatal(err)
		}
		l, _ := PLD{}.loss(e, adj)
		grid, ok := l.(*pldLoss)
		if !ok || upper == 0 {
			return
		}
		w, _ := grid.whole(goalAt(delta))
		for _, c := range w.all {
			if _, ok := c.(*pldLine); ok {
				lines++
			}
		}
		grid.gridOnly = true
		gridUpper := grid.Epsilon(delta)
		gridLower := grid.lowerEpsilon(delta, gridUpper)
		if lower > gridUpper*(1+1e-9)+1e-12 || upper < gridLower*(1-1e-9)-1e-12 || upper > gridUpper*(1+1e-4)+1e-6 {
			t.Fatalf("%v at %v: the line says %v to %v, the grid %v to %v", e, delta, lower, upper, gridLower, gridUpper)
		}
	})
	if lines < 6 {
		t.Errorf("the line was taken %d times only", lines)
	}
}

// TestPLDNodes holds moments of nodes, also complex ones, to the rule of a finer
// mesh and to closed forms.
func TestPLDNodes(t *testing.T) {
	moment := func(list []node, z complex128) (total complex128, size float64) {
		for _, n := range list {
			v := complex(n.mass, 0) * cmplx.Exp(z*complex(n.loss, 0))
			total += v
			size += cmplx.Abs(v)
		}
		return total, size
	}
	rapid.Check(t, func(t *rapid.T) {
		p, d := anyPart(t)
		z := complex(logRange(1e-3, 10).Draw(t, "tilt"), logRange(1e-3, 10).Draw(t, "omega"))
		growth := 3 + real(z) + imag(z)
		coarse, _, inf := p.nodes(d, 9, growth)
		fine, _, _ := p.nodes(d, 9, 3*growth+20)
		a, size := moment(coarse, z)
		b, _ := moment(fine, z)
		largest := 0.0
		for _, n := range coarse {
			largest = math.Max(largest, math.Abs(n.loss))
		}
		if cmplx.Abs(a-b) > 2*p.nodeError(9, growth, largest)*size {
			t.Fatalf("%+v, direction %v: E e^{zL} is %v, by a finer mesh %v", p, d, a, b)
		}
		if total, _ := moment(coarse, 0); math.Abs(real(total)+inf-1) > 1e-12 {
			t.Fatalf("%+v, direction %v: total mass %v", p, d, total)
		}
		// Where e^{2L} has its weight the mass must be a number of all digits.
		if p.shape == normalShape && d == remove && 12+2*p.shift < lineMaxReach {
			p.rate = 1
			list, _, _ := p.nodes(d, 12+2*p.shift, 3+5)
			got := logMomentOf(list, 2)
			if want := 3 * p.shift * p.shift; math.Abs(got-want) > 1e-12*(1+want) {
				t.Fatalf("ln E e^{2L} = %v, want %v", got, want)
			}
		}
	})
}

// TestPLDLoss: ln((1−q) + q·e^y) in 200 bits. Near q = 1 the loss of a record that is
// added ends at −ln(1−q), and its tilted law lives there.
func TestPLDLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _ := anyPart(t)
		y := rapid.Float64Range(-60, 60).Draw(t, "y")
		big200 := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
		// e^y as it is known in float64: two factors, each within a unit.
		rest := new(big.Float).Sub(big200(1), big200(p.rate))
		w := new(big.Float).Add(rest, new(big.Float).Mul(big200(p.rate), big200(math.Exp(y))))
		loss := p.loss(y)
		ratio, _ := new(big.Float).Quo(big200(math.Exp(loss)), w).Float64()
		if limit := 1e-15 * (8 + math.Abs(loss) + math.Abs(y)); math.Abs(ratio-1) > limit {
			t.Fatalf("rate %v: loss(%v) = %v, e^loss is off by %v", p.rate, y, loss, ratio-1)
		}
		if back := p.loss(p.ratio(loss)); !(math.Abs(back-loss) <= 1e-14*(1+math.Abs(loss))) && loss > math.Log1p(-p.rate)*(1-1e-12) {
			t.Fatalf("rate %v: loss %v is taken to %v", p.rate, loss, back)
		}
	})
}

// TestPLDDecay: the bound on |E e^{iωL}| is one.
func TestPLDDecay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, d := anyPart(t)
		tilt := logRange(1e-2, 30).Draw(t, "tilt")
		list, _, _ := p.nodes(d, 10, 3+tilt)
		moment := logMomentOf(list, tilt)
		square := 0.0
		for _, n := range list {
			square += n.mass * math.Exp(tilt*n.loss-moment) * n.loss * n.loss
		}
		omega := logRange(1e-1, 1e2).Draw(t, "omega") / math.Sqrt(square)
		if p.nodeCount(d, 10, 3+tilt+omega) > 1e5 {
			return
		}
		list, _, _ = p.nodes(d, 10, 3+tilt+omega)
		var at complex128
		for _, n := range list {
			at += cmplx.Rect(n.mass*math.Exp(tilt*n.loss-moment), omega*n.loss)
		}
		bound := decay(p.spreads(d, 10, tilt, moment), omega)
		if cmplx.Abs(at) > math.Exp(-bound)+1e-12 {
			t.Fatalf("%+v, direction %v, tilt %v: |E e^{%viL}| = %v, bound %v", p, d, tilt, omega, cmplx.Abs(at), math.Exp(-bound))
		}
	})
	p := pldPart{times: 1, pair: pair{shape: normalShape, rate: 0.01, shift: 1}}
	list, _, _ := p.nodes(remove, 8, 3+4)
	if bound := decay(p.spreads(remove, 8, 4, logMomentOf(list, 4)), 1000); bound < 0.1 {
		t.Errorf("the bound says no more than %v", math.Exp(-bound))
	}
}

// TestPLDFixed: bars of the issue, and a single sample against its closed form.
func TestPLDFixed(t *testing.T) {
	l, err := PLD{}.Loss(fixedSize(10000, 1000000, 1000, privacy.Gaussian{Sigma: 2}), privacy.ReplaceOne)
	if err != nil {
		t.Fatal(err)
	}
	// A rough transform of the same profile: 0.72.
	if got := l.Epsilon(1e-5); !(got > 0.71 && got < 0.72) {
		t.Errorf("ε = %v", got)
	}
	draws := 0
	rapid.Check(t, func(t *rapid.T) {
		if draws++; draws > 10 {
			return
		}
		m, scale := rapid.IntRange(1, 999).Draw(t, "m"), logRange(0.5, 10).Draw(t, "scale")
		q, epsilon := float64(m)/1000, logRange(0.01, 2).Draw(t, "epsilon")
		inner := math.Log1p(math.Expm1(epsilon) / q)
		for of, delta := range map[privacy.Event]float64{
			privacy.Gaussian{Sigma: scale}:     gdpLoss{mu: 1 / scale}.Delta(inner),
			privacy.PureDP{Epsilon: 1 / scale}: pureLoss(1 / scale).Delta(inner),
			privacy.Laplace{Scale: scale}:      math.Max(0, -math.Expm1((inner-1/scale)/2)),
		} {
			want := q * delta
			l, err := PLD{}.Loss(fixedSize(m, 1000, 1, of), privacy.ReplaceOne)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Delta(epsilon); got < want*(1-1e-9)-1e-15 || want > 1e-9 && got > want*1.05+1e-9 {
				t.Fatalf("%d of 1000, %v: δ(%v) = %v, want %v", m, of, epsilon, got, want)
			}
		}
	})
	whole := privacy.FixedSampled{M: 7, N: 7, Of: privacy.Gaussian{Sigma: 1}}
	l, err = PLD{}.Loss(whole, privacy.ReplaceOne)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := l.Epsilon(1e-5), (gdpLoss{mu: 1}).Epsilon(1e-5); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("the whole table: %v, want %v", got, want)
	}
}

// TestPLDFixedMoments: Rényi divergences of the symmetric pair, by integration
// elsewhere to 4 digits (rules.md, R18).
func TestPLDFixedMoments(t *testing.T) {
	for _, c := range []struct {
		q, sigma float64
		want     []float64
	}{
		{0.1, 4, []float64{.0007528, .001507, .003026, .006156, .01322}},
		{0.01, 2, []float64{3.908e-5, 7.817e-5, 1.565e-4, 3.140e-4, 6.371e-4}},
	} {
		p := pldPart{times: 1, pair: pair{shape: normalShape, rate: c.q, shift: 1 / c.sigma}}
		for i, order := range []float64{2, 4, 8, 16, 32} {
			list, _, _ := p.nodes(swap, 12, 3+order)
			if got := logMomentOf(list, order-1) / (order - 1); math.Abs(got/c.want[i]-1) > 5e-4 {
				t.Errorf("q=%v σ=%v: D_%v = %v, want %v", c.q, c.sigma, order, got, c.want[i])
			}
		}
	}
}

// TestPLDMixture composes inside a sample: Gaussians by the points, which are known
// as one Gaussian, and two responses by hand.
func TestPLDMixture(t *testing.T) {
	race.Skip(t)
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		exact := &pldLoss{adj: adj, sampled: true, steps: 300, pure: math.Inf(1), rests: anchors{}}
		exact.parts = []pldPart{{pair: pair{shape: normalShape, rate: 0.02, shift: 1}, times: 300}}
		mixed := &pldLoss{adj: adj, sampled: true, steps: 300, pure: math.Inf(1), rests: anchors{}}
		points, excess, _ := mixed.mixture(privacy.Gaussian{Sigma: 1})
		mixed.parts = []pldPart{{pair: pair{shape: pointShape, rate: 0.02, shift: 1, lost: excess}, points: points, times: 300}}
		a, b := exact.Epsilon(1e-6), mixed.Epsilon(1e-6)
		if !(a <= b && b <= a*1.001) {
			t.Errorf("%v: exactly %v, by points %v", adj, a, b)
		}
	}
	const e, q = 0.7, 0.1
	two := privacy.Repeated{Count: 2, Of: privacy.PureDP{Epsilon: e}}
	big, small := 1/(1+math.Exp(-e)), 1/(1+math.Exp(e))
	for _, epsilon := range []float64{0, 0.05, 0.1} {
		want, back := 0.0, 0.0
		for _, a := range []atom{{2 * e, small * small, big * big}, {0, 2 * big * small, 2 * big * small}, {-2 * e, big * big, small * small}} {
			mix := (1-q)*a.p0 + q*a.p1
			want += math.Max(0, mix-math.Exp(epsilon)*a.p0)
			back += math.Max(0, a.p0-math.Exp(epsilon)*mix)
		}
		for _, c := range []struct {
			adj  privacy.Adjacency
			e    privacy.Event
			want float64
		}{
			{privacy.AddRemove, privacy.PoissonSampled{Rate: q, Of: two}, math.Max(want, back)},
			{privacy.ReplaceOne, privacy.FixedSampled{M: 1, N: 10, Of: two}, want},
		} {
			l, err := PLD{}.Loss(c.e, c.adj)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Delta(epsilon); !(got >= c.want*(1-1e-9) && got <= c.want*1.01) {
				t.Errorf("%v: δ(%v) = %v, want %v", c.e, epsilon, got, c.want)
			}
		}
	}
	// Laplace and Gaussian noise on one sample cost more than either and no more
	// than the Gaussian and a pure release.
	g, lap := privacy.Gaussian{Sigma: 1}, privacy.Laplace{Scale: 2}
	epsilon := func(of privacy.Event) float64 {
		return mustLoss(t, PLD{}, privacy.Repeated{Count: 100, Of: privacy.PoissonSampled{Rate: 0.01, Of: of}}).Epsilon(1e-5)
	}
	both := epsilon(privacy.Composed{g, lap})
	if !(both > epsilon(g) && both > epsilon(lap) && both < epsilon(privacy.Composed{g, privacy.PureDP{Epsilon: 0.5}})) {
		t.Errorf("Gaussian %v, Laplace %v, both %v", epsilon(g), epsilon(lap), both)
	}
}

// TestPLDReleases: what else has a pair.
func TestPLDReleases(t *testing.T) {
	epsilon := func(e privacy.Event) float64 {
		return mustLoss(t, PLD{}, privacy.Composed{e, privacy.Gaussian{Sigma: 3}}).Epsilon(1e-5)
	}
	want := epsilon(privacy.PureDP{Epsilon: 0.5})
	for _, e := range []privacy.Event{privacy.Select{Epsilon: 0.5}, privacy.AboveThreshold{Threshold: 4, Query: 8, Max: 7}, privacy.ApproxDP{Epsilon: 0.5}} {
		if got := epsilon(e); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%v: %v, want %v", e, got, want)
		}
	}
	// δ is spent: with it 1e-6 at 9e-6 less.
	l := mustLoss(t, PLD{}, privacy.Composed{privacy.ApproxDP{Epsilon: 0.5, Delta: 9e-6}, privacy.Gaussian{Sigma: 3}})
	less := mustLoss(t, PLD{}, privacy.Composed{privacy.PureDP{Epsilon: 0.5}, privacy.Gaussian{Sigma: 3}})
	if got, want := l.Epsilon(1e-5), less.Epsilon(1e-6); math.Abs(got/want-1) > 1e-3 {
		t.Errorf("(0.5, 9e-6) and a Gaussian: %v, want %v", got, want)
	}
	if got := l.Epsilon(8e-6); !math.IsInf(got, 1) {
		t.Errorf("less δ than is spent: ε = %v", got)
	}
	// In a sample, too: one step of rate q loses qδ when a record is removed.
	sampled := mustLoss(t, PLD{}, privacy.PoissonSampled{Rate: 0.1, Of: privacy.ApproxDP{Epsilon: 0.5, Delta: 0.01}})
	if got := sampled.Delta(10); math.Abs(got/0.001-1) > 1e-6 {
		t.Errorf("sampled (0.5, 0.01): δ(10) = %v, want 0.001", got)
	}
}

// TestTwiddles holds the table to high precision: within 6 units.
func TestTwiddles(t *testing.T) {
	const n = 1 << 21
	table, stride := twiddles(n)
	// e^{−2πi/n} by halving the angle of −i, in 200 bits.
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	c, s := float(0), float(-1)
	for size := 4; size < n*stride; size *= 2 {
		// cos(x/2) = √((1+cos x)/2), sin(x/2) = sin x / (2cos(x/2))
		half := new(big.Float).SetPrec(200).Quo(new(big.Float).SetPrec(200).Add(float(1), c), float(2))
		c = half.Sqrt(half)
		s = new(big.Float).SetPrec(200).Quo(s, new(big.Float).SetPrec(200).Mul(float(2), c))
	}
	times := func(a, b [2]*big.Float) [2]*big.Float {
		mul := func(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(200).Mul(x, y) }
		return [2]*big.Float{
			new(big.Float).SetPrec(200).Sub(mul(a[0], b[0]), mul(a[1], b[1])),
			new(big.Float).SetPrec(200).Add(mul(a[0], b[1]), mul(a[1], b[0])),
		}
	}
	check := func(k int) {
		r, z := [2]*big.Float{float(1), float(0)}, [2]*big.Float{c, s}
		for m := k; m > 0; m >>= 1 {
			if m&1 == 1 {
				r = times(r, z)
			}
			z = times(z, z)
		}
		re, _ := new(big.Float).Sub(r[0], float(real(table[k]))).Float64()
		im, _ := new(big.Float).Sub(r[1], float(imag(table[k]))).Float64()
		if math.Hypot(re, im) > 6*unit {
			t.Fatalf("twiddle %d of %d is off by %v units", k, n, math.Hypot(re, im)/unit)
		}
	}
	for k := 0; k < len(table); k += 1<<10 + 1 {
		check(k)
	}
	for k := range 200 {
		check(k)
		check(len(table) - 1 - k)
		check(len(table)/2 + k)
	}
}
