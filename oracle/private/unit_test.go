package private

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/lbfgs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// units says whose each of n rows is: some of them have one row, some many, and their rows lie anywhere.
func units(rnd *rand.Rand, n int) []int32 {
	of, number, count := make([]int32, n), map[int]int32{}, 1+rnd.IntN(n)
	for i := range of {
		u := rnd.IntN(1 + rnd.IntN(count))
		if _, ok := number[u]; !ok {
			number[u] = int32(len(number)) // in the order of their first rows
		}
		of[i] = number[u]
	}
	return of
}

// rowsOf are the numbers of the rows that are a unit's, or all others.
func rowsOf(of []int32, unit int32, its bool) []int32 {
	list := []int32{} // nil would be all
	for i, u := range of {
		if (u == unit) == its {
			list = append(list, int32(i))
		}
	}
	return list
}

// A unitSum is one kind of query: its exact sum over a list of rows, nil for all, as counts of a unit, and the most that
// one unit of privacy may add to it in the ℓp norm, ℓ∞ for 0.
type unitSum struct {
	sum   func(s *Local, list []int32) []int64
	unit  float64
	bound float64
	p     int
	sign  bool // no count is below 0
}

// anyUnitSum draws a model, parameters, rows and a query of that kind.
func anyUnitSum(t *rapid.T, kind string) (m model.Model, rows []row, q *unitSum) {
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	bound := math.Exp2(rnd.Float64()*40 - 30)
	features := 1 + rnd.IntN(6)
	m, classes := anyKind(t, rnd, features)
	draw := func(n, classes int) {
		rows = randomRows(rnd, n, features)
		for i := range rows {
			rows[i].y = float32(rnd.IntN(max(classes, 1) + 1))
			if rnd.IntN(3) > 0 { // all alike: what a bound on each row alone would let through
				rows[i] = rows[0]
			}
		}
	}
	n := 2 + rnd.IntN(30)
	q = &unitSum{bound: bound, p: 2}
	grad := func(w []float64, rule clip.Rule, views [][]int32) {
		q.p, q.bound = rule.Norm(), rule.Bound()
		q.sum = func(s *Local, list []int32) []int64 {
			s.views = views
			unit, counts, err := s.sum(w, rule, oracle.Public{Rows: 60000}, list, list == nil)
			if err != nil {
				t.Fatal(err)
			}
			q.unit = unit
			return counts
		}
	}
	line := anyLine(rnd, m.Dim(), 1+rnd.IntN(8))
	tallied := func(each tally, n int, unit float64) {
		q.p, q.unit = 0, unit
		q.sum = func(s *Local, list []int32) (counts []int64) {
			for _, d := range s.tallied(each, n, unit, list, list == nil) {
				counts = append(counts, d.count)
			}
			return counts
		}
	}
	switch kind {
	case "gradient":
		rules := []clip.Rule{clip.Norm{C: bound}, clip.Norm{C: bound, P: 1}, clip.Lipschitz{L: bound}}
		if m.Facts().Bounded {
			rules = append(rules, clip.Value{C: bound})
		}
		draw(n, classes)
		grad(line.From, rules[rnd.IntN(len(rules))], nil)
	case "centered":
		for !m.Facts().Centered {
			m, classes = anyKind(t, rnd, features)
		}
		draw(n, classes)
		center, w := anyCenter(rnd, features), anyLine(rnd, m.Dim(), 1).From
		grad(w, clip.Norm{C: bound}, nil)
		inner := q.sum
		q.sum = func(s *Local, list []int32) []int64 {
			if err := s.setCenter(center, w); err != nil {
				t.Fatal(err)
			}
			return inner(s, list)
		}
	case "rows":
		for !m.Facts().Centered {
			m, classes = anyKind(t, rnd, features)
		}
		draw(n, classes)
		grad(make([]float64, features), clip.Norm{C: bound}, nil)
		inner := q.sum
		q.sum = func(s *Local, list []int32) []int64 {
			s.ofRows = true
			return inner(s, list)
		}
	case "network":
		var w []float64
		var rule clip.Rule
		m, w, rule, rows = drawNetwork(t)
		grad(w, rule, nil)
	case "views":
		x := drawWild(t)
		for x.views == nil {
			x.views, _ = oracle.Augmentation{Count: 3, Flip: true}.Of(x.shape, 1)
		}
		m, features = x.Model, x.table.Dim
		draw(n, m.Outputs()-1)
		grad(x.weights(), clip.Norm{C: bound}, x.views)
	case "loss":
		draw(n, classes)
		q.sign = true
		tallied(&losses{w: line.From, bound: bound, unit: fallUnit(bound)}, 1, fallUnit(bound))
	case "labels":
		draw(n, classes)
		q.sign = true
		tallied(&losses{bound: bound, unit: fallUnit(bound), labels: true}, 1, fallUnit(bound))
	case "squares":
		draw(n, classes)
		q.sign = true
		tallied(&losses{bound: bound, unit: fallUnit(bound), squares: true, from: rnd.NormFloat64()}, 1, fallUnit(bound))
	case "search":
		draw(n, classes)
		d := &decreases{from: line.From, along: line.Along, steps: append([]float64{0}, line.Steps...), bound: bound, unit: fallUnit(bound)}
		tallied(d, len(line.Steps), d.unit)
	case "neighbors":
		draw(n, classes)
		d := &neighbors{from: line.From, step: math.Exp2(float64(rnd.IntN(20) - 10)), bound: bound, unit: fallUnit(bound)}
		tallied(d, 2*m.Dim(), d.unit)
	case "classes":
		classes = 2 + rnd.IntN(3)
		m, _ = model.New("softmax", model.Options{Dim: features, Classes: classes, NormBound: 1})
		draw(n, classes)
		q.sign, q.bound = true, 1
		o := &Oracle{cfg: Config{Facts: oracle.Public{UnitRows: 8}}}
		r, _, _ := o.scores(oracle.Select{}) // a unit depends on no adjacency
		unit := r.unit
		tallied(classesOf(classes, unit), classes, unit)
		q.p = 1 // all counts together
	case "scores":
		draw(n, classes)
		ask, unit := anyScore(rnd, features, classes), fallUnit(1)
		q.sign, q.bound = true, ask.Sensitivity(classes, privacy.AddRemove)
		tallied(newScoring(&sum.Sum{Unit: unit, Score: ask, Classes: classes, W: line.From}, m), ask.Len(classes), unit)
		q.p = 2
	case "margins":
		for !model.Calibrates(m) {
			m, classes = anyKind(t, rnd, features)
		}
		draw(n, classes)
		facts := oracle.Public{Dim: m.Dim(), Classes: classes, OneMargin: m.Facts().OneMargin}
		ask, unit := oracle.Margins{Bound: 1, Weight: 0.5}, fallUnit(1)
		at := append(make([]float64, facts.Margins()), anyLine(rnd, 1+facts.Margins(), 1).From...)
		q.bound = ask.Sensitivity(facts)
		line := anyLine(rnd, m.Dim(), 1)
		tallied(newMargins(&sum.Sum{Of: sum.Margins, Unit: unit, Margins: ask, W: line.From, At: at}, m, facts), ask.Len(facts), unit)
		q.p = 2
	case "hessian":
		var label func() float32
		m, label = curvedModel(t, rnd, features)
		draw(n, 2)
		for i := range rows {
			rows[i].y = label()
		}
		w := anyLine(rnd, m.Dim(), 1).From
		root := rootUnit(bound, 60000)
		q.unit = root * root
		q.sum = func(s *Local, list []int32) []int64 {
			// The upper triangle: what is beside the diagonal counts twice in the Frobenius norm.
			var counts []int64
			h, at := s.hessian(&curvature{w: w, clip: clip.Lipschitz{L: bound}, unit: root}, list, list == nil), 0
			for i := range m.Dim() {
				for j := i; j < m.Dim(); j++ {
					if counts = append(counts, h[at]); j > i {
						counts = append(counts, h[at])
					}
					at++
				}
			}
			return counts
		}
	}
	return m, rows, q
}

func classesOf(n int, unit float64) tally { return classes{n, int64(1 / unit)} }

// TestUnitIsWithinTheBound: of every kind of query, the rows of a unit together add to the exact sum no more than one row may, whatever they are and however many;
// the sum is that of the units, one by one; and where shares are left out, as by a planted fault, they add more.
func TestUnitIsWithinTheBound(t *testing.T) {
	race.Skip(t)
	for _, kind := range []string{"gradient", "centered", "rows", "network", "views", "loss", "labels", "squares", "search", "neighbors", "classes", "scores", "margins", "hessian"} {
		t.Run(kind, func(t *testing.T) {
			worst, faulty := 0.0, 0.0
			rapid.Check(t, func(t *rapid.T) {
				m, rows, q := anyUnitSum(t, kind)
				of := units(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "units"), 5)), len(rows))
				var s Local
				s.open(unitTable(table(rows, max(2, m.Outputs()), rapid.Bool().Draw(t, "sparse")), of), m, 2)
				defer s.Close()
				s.split, s.tile = 1+rapid.IntRange(0, 20).Draw(t, "split"), 1+rapid.IntRange(0, 20).Draw(t, "tile")
				// part is what the rows of the list add, and how much of the bound that is.
				part := func(list []int32) (counts []int64, size float64) {
					counts = slices.Clone(q.sum(&s, list))
					measured, p := counts, q.p
					if p == 0 {
						measured, p = []int64{max(slices.Max(counts), -slices.Min(counts))}, 1
					}
					norm := sizeOf(measured, q.unit, p)
					size, _ = norm.Quo(norm, big.NewFloat(q.bound)).Float64()
					return counts, size
				}
				unit := of[rapid.IntRange(0, len(of)-1).Draw(t, "whose")]
				its, others := rowsOf(of, unit, true), rowsOf(of, unit, false)
				counts, size := part(its)
				if size > 1 || q.sign && slices.Min(counts) < 0 {
					t.Fatalf("a unit of %d rows adds %v, %v of the bound", len(its), counts, size)
				}
				rest, _ := part(others)
				all, _ := part(append(others, its...))
				if whole, _ := part(nil); !slices.Equal(whole, all) {
					t.Fatalf("the sum over the table is %d, over the list of its rows %d", whole, all)
				}
				for j, c := range all {
					if c != counts[j]+rest[j] {
						t.Fatalf("the sum is %d, those of a unit and of the others %d and %d", c, counts[j], rest[j])
					}
				}
				if len(its) > 1 {
					worst = max(worst, size)
					for i := range s.shares {
						s.shares[i] = 1
					}
					_, size = part(its)
					faulty = max(faulty, size)
				}
			})
			if t.Logf("the worst unit adds %.6f of the bound, without shares %.1f", worst, faulty); faulty <= 1 {
				t.Error("the test has no force")
			}
		})
	}
}

// Where each unit has one row, every answer is the same, bit for bit, as of the table of rows.
func TestUnitsOfOneRow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(41, 1))
	rows := randomRows(rnd, 300, 4)
	of := make([]int32, len(rows))
	for i := range of {
		of[i] = int32(i)
	}
	w := []float64{0.5, -1, 2, 0.25}
	line := anyLine(rnd, 4, 5)
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, s := range []sample.Sampler{sample.Full{}, sample.Poisson{Rate: 0.3}, sample.Fixed{M: 50, N: 300}} {
			if s.Check(adj) != nil {
				continue
			}
			answers := func(units bool) (all [][]float64) {
				cfg := config(t, table(rows, 2, false), adj, 300)
				if units {
					cfg.Table, cfg.Facts.UnitRows = unitTable(cfg.Table, of), 1
				}
				journal := &memo{}
				cfg.Journal, cfg.Workers = journal, 2
				o := openOracle(t, cfg)
				grad := oracle.Grad{Clip: clip.Norm{C: 0.3}, Noise: mech.Gaussian{Sigma: 1}}
				loss := oracle.Loss{Bound: 1, Noise: mech.Laplace{Scale: 1}}
				hess := oracle.Hess{Clip: 0.25, Noise: mech.SymmetricGaussian{Sigma: 1}}
				search := oracle.Search{Bound: 0.5, Noise: mech.AboveThreshold{Threshold: 1, Query: 2, Max: 5}}
				choose := oracle.Select{Bound: 0.5, Epsilon: 1}
				for range 3 {
					b, err := o.Batch(context.Background(), s, grad, loss, hess, search, choose)
					if err != nil {
						t.Fatal(err)
					}
					for _, ask := range []func() error{
						func() error { _, err := b.Grad(grad, w); return err },
						func() error { _, err := b.Loss(loss, w); return err },
						func() error { _, err := b.Hess(hess, w); return err },
						func() error { _, err := b.Search(search, line); return err },
						func() error { _, err := b.Select(choose, line); return err },
					} {
						if err := ask(); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, r := range journal.released {
					all = append(all, r...)
				}
				return all
			}
			if a, b := answers(false), answers(true); !slices.EqualFunc(a, b, slices.Equal) || len(a) != 15 {
				t.Errorf("%v, %T: %d answers, others with units of one row", adj, s, len(a))
			}
		}
	}
}

// beside is a Summer with records that add nothing, behind those of a table.
type beside struct {
	*Local
	others int
}

func (b beside) Rows() int { return b.Local.Rows() + b.others }

// A sample is of units: each is drawn with all of its rows or none, as often as the sampler says, and others beside them are units, too. What is
// released is divided by the nominal number of units.
func TestSamplesOfUnits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(42, 1))
	rows := randomRows(rnd, 2000, 3)
	of := units(rnd, len(rows))
	tab := unitTable(table(rows, 2, false), of)
	n := tab.Units()
	for _, c := range []struct {
		adj    privacy.Adjacency
		s      sample.Sampler
		others int
	}{
		{privacy.AddRemove, sample.Poisson{Rate: 0.2}, 0}, {privacy.AddRemove, sample.Poisson{Rate: 0.2}, 7},
		{privacy.ReplaceOne, sample.Fixed{M: n / 5, N: n}, 0}, {privacy.ReplaceOne, sample.Fixed{M: n / 5, N: n + 7}, 7},
	} {
		cfg := config(t, tab, c.adj, n+c.others)
		cfg.Facts.UnitRows = len(rows)
		cfg.Journal = nowhere{}
		if c.others > 0 {
			local, err := NewLocal(tab, cfg.Model, cfg.Facts, 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(local.Close)
			cfg.Table, cfg.Summer = &data.Table{Dim: tab.Dim, Classes: tab.Classes, NormBound: tab.NormBound, Unit: tab.Unit, Labeled: true}, beside{local, c.others}
		}
		o := openOracle(t, cfg)
		local := o.local
		if s, ok := cfg.Summer.(beside); ok {
			local = s.Local
		}
		ask := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
		const draws = 2000
		times := make([]int, n)
		for range draws {
			if _, err := o.Batch(context.Background(), c.s, ask); err != nil {
				t.Fatal(err)
			}
			drawn := map[int32]int{}
			for _, row := range local.listed {
				drawn[of[row]]++
			}
			for u, k := range drawn {
				if its := len(tab.UnitRows(nil, int(u))); k != its {
					t.Fatalf("%T: %d rows of a unit of %d were drawn", c.s, k, its)
				}
				times[u]++
			}
			if size := o.batch.size; math.Abs(size-float64(n+c.others)/5) > 1+float64(c.others) {
				t.Fatalf("%T: divided by %v of %d units", c.s, size, n)
			}
		}
		// Of 2000 draws at a rate of about 0.2 a unit has 400 and a deviation of 18. Some thousand lines fail by chance with a probability of 10⁻⁸
		// at 6.5 deviations; the seed is fixed.
		rate := o.batch.size / float64(n+c.others)
		for u, k := range times {
			if math.Abs(float64(k)-draws*rate) > 6.5*math.Sqrt(draws*rate*(1-rate)) {
				t.Errorf("%T: unit %d was drawn %d times of %d at a rate of %v", c.s, u, k, draws, rate)
			}
		}
	}
}

// Output perturbation of units: none of them moves the last iterate by more than the sensitivity, in batches or not. Objective perturbation is
// proven for records of one row, and refused before anything is charged.
func TestDescentOverUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		rows := randomRows(rnd, rapid.IntRange(2, 60).Draw(t, "rows"), 3)
		of := units(rnd, len(rows))
		moved := slices.Clone(rows)
		whose := of[rnd.IntN(len(of))]
		for _, i := range rowsOf(of, whose, true) {
			moved[i] = row{rows[0].x, 1 - rows[i].y}
		}
		name := rapid.SampledFrom([]string{"logistic", "huber-svm"}).Draw(t, "model")
		smooth := map[string]float64{"logistic": 0.25, "huber-svm": 1}[name]
		l2 := rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "λ")
		var tb testing.T
		open := func(rows []row) *Oracle {
			m, err := model.New(name, model.Options{Dim: 3, Classes: 2, NormBound: 1})
			if err != nil {
				t.Fatal(err)
			}
			tab := unitTable(table(rows, 2, false), of)
			cfg := config(&tb, tab, privacy.ReplaceOne, tab.Units())
			cfg.Facts.UnitRows = len(rows)
			cfg.Model, cfg.Streams, cfg.Journal = m, noise.SeededStreams(9), nowhere{}
			o, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		o, p := open(rows), open(moved)
		defer o.Close()
		defer p.Close()
		d := oracle.Descent{Passes: rapid.IntRange(1, 6).Draw(t, "passes"), Batch: rapid.IntRange(0, o.units).Draw(t, "batch"), Rate: 2 / (smooth + l2) * rapid.Float64Range(0.01, 1).Draw(t, "rate")}
		sens, reach := o.problem().Descent(d, l2)
		a, b := bare(&tb, o, d, l2), bare(&tb, p, d, l2)
		if got := distance(a, b); got > sens || lbfgs.Norm(a) > reach {
			t.Fatalf("%s, %+v, λ = %v: a unit moves the result by %v, the sensitivity is %v; ‖w‖ = %v, reach %v", name, d, l2, got, sens, lbfgs.Norm(a), reach)
		}
		if _, err := ask(o, oracle.Minimize{How: oracle.Objective{Epsilon: 1, Delta: 1e-5, Lambda: 100}}); err == nil {
			t.Fatal("objective perturbation of units")
		}
	})
}

// Rows and units are not taken for each other.
func TestUnitsMustAgree(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(43, 1)), 6, 2)
	of := []int32{0, 0, 1, 1, 2, 2}
	cfg := config(t, unitTable(table(rows, 2, false), of), privacy.ReplaceOne, 3)
	if _, err := New(cfg); err == nil {
		t.Error("a table of units was taken for one of rows")
	}
	cfg.Facts.UnitRows = 1
	if _, err := New(cfg); err == nil {
		t.Error("a unit of two rows was taken for one of one, of which objective perturbation has a proof")
	}
	cfg.Facts.UnitRows = 2
	openOracle(t, cfg)
	cfg.Facts.Rows = 6
	if _, err := New(cfg); err == nil {
		t.Error("the number of rows was taken for that of units")
	}
	cfg.Table = table(rows, 2, false)
	if _, err := New(cfg); err == nil {
		t.Error("a table of rows was taken for one of units")
	}
}

// unitTable says whose the rows of t are.
func unitTable(t *data.Table, of []int32) *data.Table {
	t.SetUnits(slices.Clone(of))
	return t
}

// Nor does a step over units allocate.
func TestStepOverUnitsAllocatesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(44, 1))
	rows := randomRows(rnd, 3000, 20)
	cfg := config(t, unitTable(table(rows, 2, false), units(rnd, len(rows))), privacy.AddRemove, 800)
	cfg.Facts.UnitRows, cfg.Journal = len(rows), nowhere{}
	next, stop := pull(method.SGD{Steps: 1 << 30, Rate: 1, Gradient: method.Gradient{Clip: 0.5, Noise: 1, Batch: 200}}, openOracle(t, cfg))
	defer stop()
	for range 200 {
		next()
	}
	if n := testing.AllocsPerRun(100, next); n > 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
