package account

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/internal/race"
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
	race.Skip(t)
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

// TestRandomPlansAgainstPeer: dp_accounting 0.6, from_gaussian_mechanism with sampling_prob, of 30 random plans under both adjacencies
// (σ over what presence moves; intervals 1e-4 to 1e-2): its optimistic bound, by privacy buckets, is not above the upper end, its pessimistic
// one, by connect-the-dots, not below the lower. For rate 0.314 under replace-one it says 791.420 to 791.451, of which its optimistic bound
// is no bound: δ at 790.502 is 3.7686e-8 by the saddle point, which agrees with this package.
func TestRandomPlansAgainstPeer(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	for _, c := range []struct {
		q, sigma     float64
		steps        int
		delta        float64
		add, replace [2]float64
	}{
		{0.381, 3.13, 1980, 3.33e-05, [2]float64{36.35217, 36.45117}, [2]float64{99.06685, 99.16587}},
		{0.00107, 2.69, 7800, 2.29e-05, [2]float64{0, 0.1057687}, [2]float64{0, 0.2167127}},
		{0.0184, 0.664, 58, 9.32e-05, [2]float64{2.769701, 2.772601}, [2]float64{2.999715, 3.002615}},
		{0.000256, 1.04, 12200, 1.77e-07, [2]float64{0, 0.1494488}, [2]float64{0, 0.2467605}},
		{0.000668, 1.03, 8090, 4.76e-08, [2]float64{0, 0.362566}, [2]float64{0.1836064, 0.5882416}},
		{0.0049, 2.62, 2920, 2.89e-07, [2]float64{0.3080775, 0.4541297}, [2]float64{0.7535146, 0.8995444}},
		{0.00021, 2.23, 1, 2.97e-09, [2]float64{0.000924208, 0.0009790259}, [2]float64{0.001100348, 0.00116315}},
		{0.000566, 3.19, 16, 2.83e-06, [2]float64{0.001071839, 0.001890263}, [2]float64{0.002792032, 0.003604698}},
		{0.000443, 0.569, 1, 3.38e-06, [2]float64{0.07590957, 0.07595961}, [2]float64{0.07635262, 0.0764026}},
		{0.25, 0.772, 10, 1.16e-09, [2]float64{14.82298, 14.82348}, [2]float64{17.2932, 17.29369}},
		{0.0355, 0.985, 3, 1.72e-06, [2]float64{1.328668, 1.328818}, [2]float64{1.386546, 1.386696}},
		{0.0235, 1.53, 4, 1.56e-06, [2]float64{0.2801587, 0.2803587}, [2]float64{0.3301321, 0.3303321}},
		{0.0158, 1.46, 5, 4.41e-05, [2]float64{0.1246933, 0.1249435}, [2]float64{0.1633915, 0.1636416}},
		{0.259, 3.16, 19200, 7.98e-07, [2]float64{120.4574, 121.4175}, [2]float64{359.3382, 360.2985}},
		{0.00231, 0.567, 411, 3.96e-07, [2]float64{3.836371, 3.856502}, [2]float64{3.901961, 3.922511}},
		{0.00532, 7.83, 4080, 3.75e-09, [2]float64{0.0121618, 0.2163619}, [2]float64{0.2370447, 0.4411502}},
		{0.314, 0.402, 634, 3.77e-08, [2]float64{607.6681, 607.6998}, [2]float64{0, 0}},
		{0.0769, 6.94, 191, 6.53e-06, [2]float64{0.5622452, 0.5717972}, [2]float64{1.179285, 1.188836}},
		{0.000164, 2.95, 3, 1.89e-07, [2]float64{0.0001976285, 0.0003825469}, [2]float64{0.0004150942, 0.0005862187}},
		{0.00208, 0.498, 1640, 2.93e-09, [2]float64{9.30864, 9.388899}, [2]float64{9.605141, 9.687141}},
		{0.00104, 0.517, 705, 3.2e-08, [2]float64{4.946044, 4.983674}, [2]float64{4.987418, 5.02267}},
		{0.00015, 0.434, 8, 3.41e-07, [2]float64{1.45012, 1.45056}, [2]float64{1.450339, 1.450739}},
		{0.000112, 0.43, 736, 4.33e-07, [2]float64{3.287364, 3.336438}, [2]float64{3.301567, 3.338368}},
		{0.000342, 1.02, 3, 2.37e-08, [2]float64{0.01964604, 0.01979531}, [2]float64{0.02006259, 0.02021275}},
		{0.00342, 0.769, 7, 1.36e-08, [2]float64{1.373353, 1.373703}, [2]float64{1.377937, 1.378287}},
		{0.00156, 2.11, 6480, 1.74e-06, [2]float64{0, 0.237405}, [2]float64{0.1410536, 0.4651506}},
		{0.00594, 0.404, 6, 1.48e-06, [2]float64{7.170857, 7.171165}, [2]float64{7.185713, 7.186013}},
		{0.004, 5.06, 8110, 3.04e-08, [2]float64{0, 0.3353363}, [2]float64{0.2783179, 0.6839414}},
		{0.00276, 0.977, 812, 3.11e-09, [2]float64{0.9348153, 0.9754208}, [2]float64{1.053374, 1.093982}},
		{0.00124, 5.56, 40, 7.07e-05, [2]float64{0, 0.001874707}, [2]float64{0.002439192, 0.004451025}},
	} {
		for _, one := range []struct {
			e    privacy.Event
			adj  privacy.Adjacency
			peer [2]float64
		}{
			{sampled(c.q, c.sigma, c.steps), privacy.AddRemove, c.add},
			{onPoisson(c.q, c.sigma, c.sigma/2, c.steps), privacy.ReplaceOne, c.replace},
		} {
			if one.peer == [2]float64{} {
				one.peer = [2]float64{790.5, 790.504}
			}
			lower, upper, err := PLD{}.Bracket(one.e, one.adj, c.delta)
			if err != nil || upper < one.peer[0]*(1-1e-6) || lower > one.peer[1]*(1+1e-6) || upper > one.peer[1]*1.001 || upper > lower*1.002 {
				t.Errorf("%v, %v, δ = %v: between %v and %v, dp_accounting says %v to %v (%v)", one.e, one.adj, c.delta, lower, upper, one.peer[0], one.peer[1], err)
			}
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
	race.Skip(t)
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
	race.Skip(t)
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
	race.Skip(t)
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
