package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/schema"
)

const (
	metricBumps   = 8
	metricColumns = 4
	metricLevels  = 3
)

// bumped are rows with lines, and bumps unless asked for none, columns with levels if given, a pair of the first two columns if asked,
// and an intercept. Levels are one of metricLevels, or none (-1), and a truth value.
func bumped(rnd *rand.Rand, n int, line func(x []float64), pair, lines bool, levels ...func(x []float64) (level int, truth bool)) *totaling {
	wide := metricColumns*(metricBumps+1) + len(levels)*(metricLevels+1)
	dim := wide + schema.PairFeatures + 1
	o := &totaling{noise: rnd, facts: oracle.Public{Dim: dim, Rows: n, Classes: 2, OneMargin: true, NormBound: 1,
		Intercept: dim, Slots: 1, Totals: true, Adjacency: privacy.AddRemove, Lipschitz: 1, Smooth: 0.25}}
	for c := range metricColumns {
		o.facts.Numeric = append(o.facts.Numeric, oracle.Numeric{At: c * (metricBumps + 1), Bumps: metricBumps})
	}
	for k := range levels {
		at := metricColumns*(metricBumps+1) + k*(metricLevels+1)
		o.facts.Leveled = append(o.facts.Leveled, oracle.Leveled{At: at, Levels: metricLevels}, oracle.Leveled{At: at + metricLevels})
	}
	drawn := make([]float64, metricColumns)
	for range n {
		line(drawn)
		x, square := make([]float64, dim), 0.0
		x[dim-1] = 1
		var coarse [2][schema.PairBumps]float64
		for c, v := range drawn {
			v = min(1, max(-1, v))
			at := c * (metricBumps + 1)
			x[at] = v
			if j, left, right := schema.Bumps(metricBumps, v); !lines {
				x[at+1+j], x[at+2+j] = left, right
			}
			if c < 2 {
				j, left, right := schema.Bumps(schema.PairBumps, v)
				coarse[c][j], coarse[c][j+1] = left, right
			}
		}
		for k, of := range levels {
			at := metricColumns*(metricBumps+1) + k*(metricLevels+1)
			level, truth := of(drawn)
			if level >= 0 {
				x[at+level] = 1
			}
			if x[at+metricLevels] = -1; truth {
				x[at+metricLevels] = 1
			}
		}
		for j := range schema.PairFeatures {
			if pair {
				x[wide+j] = coarse[0][j/schema.PairBumps] * coarse[1][j%schema.PairBumps]
			}
		}
		for _, v := range x {
			square += v * v
		}
		for j := range x {
			x[j] /= math.Sqrt(square)
		}
		o.rows, o.labels = append(o.rows, x), append(o.labels, float64(rnd.IntN(2)))
	}
	return o
}

// TestMoments: the first release tells the second moments of rows less a center: nowhere less than half of them beside a
// hundredth of what a row has, and in all not more than twice; of columns that have nothing to do with each other, that are
// nearly the same, that are skewed, and of a pair; beside columns with levels, of which one follows a number.
func TestMoments(t *testing.T) {
	for name, line := range map[string]func(rnd *rand.Rand, x []float64){
		"levels": func(rnd *rand.Rand, x []float64) {
			for c := range x {
				x[c] = 2*rnd.Float64() - 1
			}
		},
		"independent": func(rnd *rand.Rand, x []float64) {
			for c := range x {
				x[c] = 2*rnd.Float64() - 1
			}
		},
		"alike": func(rnd *rand.Rand, x []float64) {
			common := rnd.NormFloat64() / 3
			for c := range x {
				x[c] = common + rnd.NormFloat64()/30
			}
		},
		"opposite": func(rnd *rand.Rand, x []float64) {
			common := rnd.NormFloat64() / 3
			for c := range x {
				x[c] = common*float64(1-2*(c%2)) + rnd.NormFloat64()/10
			}
		},
		"skewed": func(rnd *rand.Rand, x []float64) {
			for c := range x {
				x[c] = rnd.ExpFloat64()/5 - 1
			}
		},
	} {
		for _, choice := range []oracle.Choice{{}, {Pairs: [][2]int{{0, 1}}}, {Lines: true}} {
			rnd := rand.New(rand.NewPCG(3, 7))
			draw := func(x []float64) { line(rnd, x) }
			m := Auto{FirstNoise: 0.01}
			var levels []func(x []float64) (int, bool)
			if name == "levels" {
				levels = append(levels, func(x []float64) (int, bool) { return min(2, int(2*math.Abs(x[0])+1.1*rnd.Float64())), x[1] > 0.5 },
					func([]float64) (int, bool) { return rnd.IntN(4) - 1, rnd.IntN(50) > 0 })
			}
			f, err := m.askFirst(t.Context(), bumped(rnd, 8000, draw, false, false, levels...))
			if err != nil {
				t.Fatal(err)
			}
			for _, center := range [][]float64{nil, f.center(len(choice.Pairs))} {
				if choice.Lines && center != nil {
					continue
				}
				g := f.moments(choice, center)
				n := g.SymmetricDim()
				truth := mat.NewSymDense(n, nil)
				rows := bumped(rnd, 8000, draw, len(choice.Pairs) > 0, choice.Lines, levels...).rows
				for _, x := range rows {
					z := slices.Clone(x)
					for j := range center {
						z[j] -= center[j]
					}
					truth.SymRankOne(truth, 1/float64(len(rows)), mat.NewVecDense(n, z))
				}
				floor := mat.NewSymDense(n, nil)
				floor.CopySym(g)
				for j := range n {
					floor.SetSym(j, j, floor.At(j, j)+0.01)
				}
				if missed := largest(t, truth, floor); missed > 2 {
					t.Errorf("%s, %+v, centered %v: the rows have %.3g times what the release tells", name, choice, center != nil, missed)
				}
				if trace := mat.Trace(g) / mat.Trace(truth); trace > 2 || trace < 0.7 {
					t.Errorf("%s, %+v, centered %v: a trace of %.3g of the rows'", name, choice, center != nil, trace)
				}
			}
		}
	}
}

// largest is the largest x'ax/x'bx.
func largest(t *testing.T, a, b *mat.SymDense) float64 {
	var c mat.Cholesky
	if !c.Factorize(b) {
		t.Fatal("not positive definite")
	}
	var l mat.TriDense
	c.LTo(&l)
	var half, whole mat.Dense
	if half.Solve(&l, a) != nil || whole.Solve(&l, half.T()) != nil {
		t.Fatal("singular")
	}
	n := a.SymmetricDim()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, (whole.At(i, j)+whole.At(j, i))/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		t.Fatal("no eigenvalues")
	}
	return slices.Max(e.Values(nil))
}

// TestMetricBrake: where the objective bends ten times as much as the metric knows, steps become shorter than is stable
// for it, and otherwise they stay as they are, whatever the noise is.
func TestMetricBrake(t *testing.T) {
	const n, rate, beta = 20, 5.0, 0.8
	for _, c := range []struct {
		name  string
		bends float64 // along the first feature, over what the metric knows
		noise float64
	}{{"known", 1, 0}, {"known, noise", 1, 0.01}, {"unknown", 10, 0}, {"unknown, noise", 10, 0.01}, {"flat, noise", 0, 1}} {
		rnd := rand.New(rand.NewPCG(11, 5))
		in := &metric{noise: c.noise}
		in.inverse, in.p = *mat.NewSymDense(n, nil), *mat.NewSymDense(n, nil)
		for j := range n {
			v := 1 + rate/(1+beta)*float64(1+j)
			in.inverse.SetSym(j, j, v)
			in.p.SetSym(j, j, 1/v)
		}
		in.trace = mat.Trace(&in.p)
		x, before, g := slices.Repeat([]float64{1}, n), slices.Repeat([]float64{1}, n), make([]float64, n)
		step := rate
		for k := range 200 {
			for j := range g {
				bend := float64(1 + j)
				if j == 0 || c.bends == 0 {
					bend *= c.bends
				}
				g[j] = bend*x[j] + c.noise*rnd.NormFloat64()
			}
			step = in.turn(step, g, x, before)
			b := in.momentum(beta, k)
			for j := range x {
				before[j], x[j] = x[j], x[j]-step*g[j]+b*(x[j]-before[j])
			}
		}
		if (step < rate) != (c.bends > 1) || step*c.bends*in.p.At(0, 0) > 2*(1+beta) {
			t.Errorf("%s: steps of %.3g at the end, %v at the start", c.name, step, rate)
		}
		if c.noise == 0 && !(norm2(x) < 1e-3) {
			t.Errorf("%s: the run ends at %v", c.name, x)
		}
	}
}

// TestMetricNoise: whichever step's noise, and whatever the curvature up to 1+β over the rate, no later iterate is moved
// further than without curvature.
func TestMetricNoise(t *testing.T) {
	const beta = 1 - metricMemory/metricSteps
	in := &metric{}
	moved := func(curvature float64, from int) (all []float64) {
		before, u := 0.0, 1.0
		for k := from; k <= metricSteps; k++ {
			all = append(all, math.Abs(u))
			before, u = u, u-curvature*u+in.momentum(beta, k)*(u-before)
		}
		return all
	}
	for from := range metricSteps {
		flat := moved(0, from+1)
		for c := range 200 {
			for k, v := range moved(float64(c)/199*(1+beta), from+1) {
				if v > flat[k]*(1+1e-12) {
					t.Fatalf("step %d's noise moves the iterate %d later by %v, without curvature by %v", from, k, v, flat[k])
				}
			}
		}
	}
}

// TestMetricRule: runs of many products have a metric and few steps, at the same noise and the same length; those of few
// products, with fields that a person gave, and with waves do not. One step's cost is that of any gradient.
func TestMetricRule(t *testing.T) {
	pub := bumped(rand.New(rand.NewPCG(1, 1)), 1, func([]float64) {}, false, false).facts
	pub.StartLoss, pub.Calibrated = math.Ln2, true
	fit := func(m Auto, rows int) Auto {
		pub := pub
		pub.Rows = rows
		fitted, err := m.Configure(pub, Objective{}, Terms{Accountant: account.Best{},
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-9, Adjacency: privacy.AddRemove}})
		if err != nil {
			t.Fatal(err)
		}
		return fitted.(Auto)
	}
	many := fit(Auto{}, 2_000_000)
	if !many.Metric || many.Steps != metricSteps || !(many.Rate*float64(many.Steps)/(1-many.Momentum) > 1e4) {
		t.Errorf("many products: %+v", many)
	}
	if m := fit(Auto{}, 200_000); m.Metric {
		t.Errorf("few products: %+v", m)
	}
	for _, m := range []Auto{{Steps: 100}, {Rate: 1}, {Momentum: 0.5}} {
		if fit(m, 2_000_000).Metric {
			t.Errorf("given %+v: a metric", m)
		}
	}
	fitted, err := Auto{}.Configure(func() oracle.Public { pub := pub; pub.Rows = 2_000_000; return pub }(),
		Objective{Reg: reg.L1{Lambda: 1e-3}}, Terms{Accountant: account.Best{},
			Budget: privacy.Budget{Epsilon: 1, Delta: 1e-9, Adjacency: privacy.AddRemove}})
	if err != nil || fitted.(Auto).Metric {
		t.Errorf("a regularizer with kinks: %+v, %v", fitted, err)
	}
	if m := fit(Auto{Gradient: Gradient{Clip: 1e-30}}, 2_000_000); !m.Metric || m.Rate*0.25 > 4*metricFar {
		t.Errorf("a tiny clip norm: %+v", m)
	}
	leveled := bumped(rand.New(rand.NewPCG(1, 1)), 1, func([]float64) {}, false, false, func([]float64) (int, bool) { return 0, true }).facts
	leveled.StartLoss, leveled.Calibrated = math.Ln2, true
	plain := pub
	if pub = leveled; !fit(Auto{}, 2_000_000).Metric {
		t.Error("columns with levels: no metric")
	}
	if pub.Leveled = pub.Leveled[1:]; fit(Auto{}, 2_000_000).Metric {
		t.Error("a column of an unknown kind: a metric")
	}
	pub = plain
	numeric := pub.Numeric
	pub.Numeric = numeric[1:]
	if fit(Auto{}, 2_000_000).Metric {
		t.Error("another column: a metric")
	}
	pub.Numeric = slices.Clone(numeric)
	pub.Numeric[0] = oracle.Numeric{At: 0, Waves: metricBumps}
	if fit(Auto{}, 2_000_000).Metric {
		t.Error("waves: a metric")
	}
}
