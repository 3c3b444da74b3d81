package account

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

// onPoisson is that many Poisson samples, each of a sum whose noise is that many times what presence and what a
// replacement move it.
func onPoisson(q, presence, replacement float64, steps int) privacy.Event {
	return privacy.Repeated{Count: steps, Of: privacy.PoissonSampled{Rate: q, Of: privacy.GaussianSum{Presence: presence, Replacement: replacement}}}
}

// TestSumTable holds PLD to soundness.md, "Poisson, replace-one", and to what dp_accounting 0.6 says of the same pair
// (from_gaussian_mechanism, REPLACE_ONE, interval 1e-4): its optimistic bound by privacy buckets, its pessimistic one by connect-the-dots.
func TestSumTable(t *testing.T) {
	for _, c := range []struct {
		q, sigma          float64
		steps             int
		delta, want       float64
		optimist, pessist float64
	}{
		{256. / 60000, 1, 14000, 1e-5, 4.83309, 4.133115486278416, 4.833149127332557},
		{256. / 60000, 1.2, 14000, 1e-5, 3.74313, 3.0431545511489633, 3.743193584977362},
		{256. / 60000, 2, 14000, 1e-5, 2.02497, 1.3250174931916472, 2.025074992049683},
		{0.01, 0.8, 1000, 1e-6, 4.82202, 4.772018349288132, 4.822020802699042},
		{0.1, 4, 500, 1e-8, 6.52722, 6.502223856257251, 6.527225327916741},
		{0.5, 1.5, 10, 1e-5, 10.06873, 10.06823113244345, 10.068731149296656},
		{0.001, 0.6, 100000, 1e-6, 9.51696, 4.517062059526706, 9.517247720287497},
		{0.02, 0.8, 1, 1e-6, 1.541954, 1.541903913214197, 1.5419539210804702},
		{1, 5, 4, 1e-5, 3.38693, 0, math.Inf(1)},
	} {
		e := onPoisson(c.q, c.sigma, c.sigma/2, c.steps)
		lower, upper, err := PLD{}.Bracket(e, privacy.ReplaceOne, c.delta)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(upper/c.want-1) > 1e-4 || lower > c.want*(1+2e-6) || upper < c.want*(1-2e-6) || lower < c.want*(1-2e-4) {
			t.Errorf("%v: ε between %v and %v, want %v", e, lower, upper, c.want)
		}
		if upper < c.optimist || lower > c.pessist {
			t.Errorf("%v: ε between %v and %v, dp_accounting says %v to %v", e, lower, upper, c.optimist, c.pessist)
		}
		if best := mustLossUnder(t, Best{}, e, privacy.ReplaceOne).Epsilon(c.delta); best != upper {
			t.Errorf("%v: best says %v, pld %v", e, best, upper)
		}
		if rdp := mustLossUnder(t, RDP{}, e, privacy.ReplaceOne).Epsilon(c.delta); rdp < lower || rdp > 1.6*c.want {
			t.Errorf("%v: rdp says %v, pld %v", e, rdp, upper)
		}
	}
	for order, want := range map[float64]float64{2: 8.4507e-5, 8: 3.41810e-4} {
		got, err := RDP{}.Divergence(onPoisson(256./60000, 1, 0.5, 1), privacy.ReplaceOne, order)
		if err != nil || math.Abs(got/want-1) > 1e-5 {
			t.Errorf("D_%v = %v, want %v (%v)", order, got, want, err)
		}
	}
}

func mustLossUnder(t *testing.T, a Accountant, e privacy.Event, adj privacy.Adjacency) Loss {
	t.Helper()
	l, err := a.Loss(e, adj)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// anySum draws the pair of a sampled sum.
func anySum(t *rapid.T) pldPart {
	p := pldPart{times: 1, pair: pair{shape: sumShape, rate: logRange(1e-4, 0.99).Draw(t, "rate"), shift: logRange(0.05, 5).Draw(t, "R/σ")}}
	p.near = p.shift * rapid.Float64Range(0.5, 1).Draw(t, "A/R")
	return p
}

// profile is H_γ of the pair of p, by where its loss is ln γ; mirrored below γ = 1.
func profile(p pldPart, gamma float64) float64 {
	if gamma < 1 {
		return 1 - gamma + gamma*profile(p, 1/gamma)
	}
	from, to, _, _ := p.reach(swap, 38)
	at := p.outcome(math.Log(gamma), from, to)
	above := func(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }
	return (1-p.rate)*(1-gamma)*above(at) + p.rate*(above(at-p.near)-gamma*above(at-p.near+p.shift))
}

// TestSumInTwoDimensions: no two records whose answers are u and v, ‖u‖, ‖v‖ ≤ A and ‖u − v‖ ≤ R, have a profile above
// the pair's, and opposed ones attain it. An integral over the plane, whose error is below 1e-4 of 1 + γ.
func TestSumInTwoDimensions(t *testing.T) {
	const step, reach, wrong = 0.02, 6.0, 1e-4
	draws := 0
	rapid.Check(t, func(t *rapid.T) {
		if draws++; draws > 60 {
			return
		}
		p := anySum(t)
		p.near, p.shift = math.Min(p.near, 3), math.Min(p.shift, 2*math.Min(p.near, 3))
		point := func(name string) (x, y float64) {
			r, angle := p.near*math.Sqrt(rapid.Float64Range(0, 1).Draw(t, name)), rapid.Float64Range(0, 2*math.Pi).Draw(t, "angle of "+name)
			return r * math.Cos(angle), r * math.Sin(angle)
		}
		ux, uy := point("u")
		vx, vy := point("v")
		attained := rapid.Bool().Draw(t, "opposed")
		if attained {
			p.shift, ux, uy, vx, vy = 2*p.near, 0, p.near, 0, -p.near
		}
		if far := math.Hypot(ux-vx, uy-vy); far > p.shift { // pull both toward their middle
			by := p.shift / far
			mx, my := (ux+vx)/2, (uy+vy)/2
			ux, uy, vx, vy = mx+by*(ux-mx), my+by*(uy-my), mx+by*(vx-mx), my+by*(vy-my)
		}
		gamma := logRange(0.2, 5).Draw(t, "gamma")
		if rapid.Bool().Draw(t, "near 1") { // where small samples have their mass
			gamma = 1 + p.rate*(gamma-1)
		}
		total := 0.0
		end := reach + p.near
		x, y := axis(end, step, ux, vx), axis(end, step, uy, vy)
		for _, a := range x {
			for _, b := range y {
				total += math.Max(0, (1-p.rate)*(1-gamma)*a[0]*b[0]+p.rate*(a[1]*b[1]-gamma*a[2]*b[2]))
			}
		}
		total *= step * step
		bound := profile(p, gamma)
		if total > bound+wrong*(1+gamma) || attained && total < bound-wrong*(1+gamma) {
			t.Fatalf("%+v, u = (%v, %v), v = (%v, %v): H_%v = %v, the pair's %v", p, ux, uy, vx, vy, gamma, total, bound)
		}
		if gamma > 1 {
			l := mustLossOf(t, p)
			if got := l.Delta(math.Log(gamma)); got < bound*(1-1e-9)-1e-15 || got > bound*1.05+1e-9 {
				t.Fatalf("%+v: δ(ln %v) = %v, want %v", p, gamma, got, bound)
			}
		}
	})
}

// axis tabulates the densities of the normal laws around 0, u and v.
func axis(end, step, u, v float64) (list [][3]float64) {
	for x := -end; x <= end; x += step {
		list = append(list, [3]float64{normalDensity(x), normalDensity(x - u), normalDensity(x - v)})
	}
	return list
}

func mustLossOf(t *rapid.T, p pldPart) Loss {
	l, err := PLD{}.Loss(privacy.PoissonSampled{Rate: p.rate, Of: privacy.GaussianSum{Presence: 1 / p.near, Replacement: math.Min(1/p.near, 1/p.shift)}}, privacy.ReplaceOne)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSumDivergence: of the integral with its own panels, of PLD's nodes, and where presence moves the sum as far as
// a replacement, of the pair of samples of fixed size.
func TestSumDivergence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anySum(t)
		alpha := logRange(1.01, 40).Draw(t, "alpha")
		if 14+alpha*p.shift > lineMaxReach {
			return
		}
		got := sampledSum{p.pair}.at(alpha)
		list, _, _ := p.nodes(swap, 14+alpha*p.near, 4+alpha)
		want := logMomentOf(list, alpha-1) / (alpha - 1)
		if math.Abs(got-want) > 1e-8*want+2e-13/(alpha-1) {
			t.Fatalf("%+v: D_%v = %v, by nodes %v", p, alpha, got, want)
		}
		p.near = p.shift
		whole, _ := contents{precision: sum{hi: p.shift * p.shift}, exact: true}.pair()
		got, want = sampledSum{p.pair}.at(alpha), whole.sampledRDP(alpha, p.rate, true)
		if math.Abs(got-want) > 1e-8*want+2e-13/(alpha-1) {
			t.Fatalf("%+v: D_%v = %v, as of a sample of fixed size %v", p, alpha, got, want)
		}
	})
}

// TestSumMoves: sums on one batch, what costs more, and that the figure says what it rests on.
func TestSumMoves(t *testing.T) {
	epsilon := func(a Accountant, of privacy.Event) float64 {
		l := mustLossUnder(t, a, privacy.Repeated{Count: 300, Of: privacy.PoissonSampled{Rate: 0.02, Of: of}}, privacy.ReplaceOne)
		named := false
		for _, th := range Basis(l) {
			named = named || th.Anchor == "poisson-replace-sum" || th.Anchor == "poisson-replace"
		}
		if !named {
			t.Errorf("%v of %v does not name its theorem", a, of)
		}
		return l.Epsilon(1e-6)
	}
	for _, a := range []Accountant{RDP{}, PLD{}, Best{}} {
		half, root, one := privacy.GaussianSum{Presence: 2, Replacement: 1}, privacy.GaussianSum{Presence: math.Sqrt2, Replacement: 1}, privacy.GaussianSum{Presence: 1, Replacement: 1}
		x, y, z := epsilon(a, half), epsilon(a, root), epsilon(a, one)
		if !(x < y*0.9 && y < z*0.9) {
			t.Errorf("%v: %v, %v, %v should grow", a, x, y, z)
		}
		if w := epsilon(a, privacy.Gaussian{Sigma: 1}); w != z {
			t.Errorf("%v: a Gaussian costs %v, a sum whose moves are alike %v", a, w, z)
		}
		// Moves of queries on one batch add in squares: 1/4 + 1/2 and 1 + 1.
		both, sum := epsilon(a, privacy.Composed{half, root}), epsilon(a, privacy.GaussianSum{Presence: math.Sqrt(4. / 3), Replacement: math.Sqrt(0.5)})
		if math.Abs(both/sum-1) > 1e-9 {
			t.Errorf("%v: both cost %v, together they are %v", a, both, sum)
		}
		// Beside another release the sum counts as noise on what a replacement moves.
		choice := privacy.Select{Epsilon: 0.1}
		if u, v := epsilon(a, privacy.Composed{half, choice}), epsilon(a, privacy.Composed{privacy.Gaussian{Sigma: 1}, choice}); u != v {
			t.Errorf("%v: beside a choice %v, of a Gaussian %v", a, u, v)
		}
	}
	// Elsewhere it is noise on what a replacement moves.
	sum, plain := privacy.GaussianSum{Presence: 6, Replacement: 3}, privacy.Gaussian{Sigma: 3}
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, a := range []Accountant{ZCDP{}, GDP{}, RDP{}, PLD{}, Best{}} {
			if x, y := mustLossUnder(t, a, sum, adj).Epsilon(1e-5), mustLossUnder(t, a, plain, adj).Epsilon(1e-5); x != y {
				t.Errorf("%v under %v: %v, of a Gaussian %v", a, adj, x, y)
			}
		}
	}
	x := mustLossUnder(t, Best{}, privacy.FixedSampled{M: 1, N: 50, Of: sum}, privacy.ReplaceOne).Epsilon(1e-5)
	y := mustLossUnder(t, Best{}, privacy.FixedSampled{M: 1, N: 50, Of: plain}, privacy.ReplaceOne).Epsilon(1e-5)
	if x != y {
		t.Errorf("on a sample of fixed size %v, of a Gaussian %v", x, y)
	}
}

// TestSumOrders: above the orders of the integral the mixture bound serves, and no order costs less than a smaller one.
func TestSumOrders(t *testing.T) {
	for _, q := range []float64{1e-9, 1e-3, 0.3, 1 - 1e-9} {
		for _, r := range []float64{1e-3, 0.5, 8} {
			g, last := sampledSum{pair{shape: sumShape, rate: q, shift: r, near: r / 2}}, 0.0
			for alpha := 1.0078125; alpha < 40000; alpha = 1 + 2.3*(alpha-1) {
				d := g.at(alpha)
				if !(d >= last*(1-1e-9)-1e-13/(alpha-1)) || !(d <= alpha*r*r/2*(1+1e-9)) {
					t.Errorf("q=%v R/σ=%v: D_%v = %v after %v", q, r, alpha, d, last)
				}
				last = d
			}
		}
	}
}

// TestSumSchedule: hundreds of different sums are joined, and one that joins costs more than each.
func TestSumSchedule(t *testing.T) {
	var e privacy.Composed
	for i := range 400 {
		s := 1 + float64(i)/4000
		e = append(e, onPoisson(0.01, 2*s, s, 3))
	}
	lower, upper, err := PLD{}.Bracket(e, privacy.ReplaceOne, 1e-6)
	most := mustLossUnder(t, PLD{}, onPoisson(0.01, 2, 1, 1200), privacy.ReplaceOne).Epsilon(1e-6)
	least := mustLossUnder(t, PLD{}, onPoisson(0.01, 2.2, 1.1, 1200), privacy.ReplaceOne).Epsilon(1e-6)
	if err != nil || !(least < lower && lower <= upper && upper < most && lower > upper*0.99) {
		t.Errorf("between %v and %v of %v to %v: %v", lower, upper, least, most, err)
	}
}
