package private

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// falls are the sums that a search's noise is added to, in units.
func falls(t testing.TB, m model.Model, tab *data.Table, l oracle.Line, bound float64, workers int, list []int32) []int64 {
	t.Helper()
	var s Local
	s.open(tab, m, workers)
	defer s.Close()
	var out []int64
	first := min(2, len(l.Steps)) // in two ways through the rows, of which the second knows the margins
	for _, d := range s.decrease(l, l.Steps[:first], bound, list, list == nil, false) {
		out = append(out, d.count)
	}
	if first < len(l.Steps) {
		for _, d := range s.decrease(l, l.Steps[first:], bound, list, list == nil, true) {
			out = append(out, d.count)
		}
	}
	return out
}

// anyLine is a line with steps to both sides, none of them needed least.
func anyLine(rnd *rand.Rand, dim, steps int) oracle.Line {
	l := oracle.Line{From: make([]float64, dim), Along: make([]float64, dim), Steps: make([]float64, steps), Least: make([]float64, steps)}
	size := math.Exp2(float64(rnd.IntN(20) - 10))
	for j := range l.From {
		l.From[j], l.Along[j] = size*rnd.NormFloat64(), rnd.NormFloat64()
	}
	for k := range l.Steps {
		l.Steps[k] = size * rnd.NormFloat64()
	}
	return l
}

// A search's sums are whole numbers that depend on no order, no storage and no number of workers.
func TestSearchSumsAreExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 1))
	rows := randomRows(rnd, 9000, 6)
	l, m := anyLine(rnd, 6, 5), logistic(t, 6)
	want := falls(t, m, table(rows, 2, false), l, 0.2, 1, nil)
	for _, workers := range []int{1, 2, 5} {
		for _, sparse := range []bool{false, true} {
			mixed := slices.Clone(rows)
			rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			if got := falls(t, m, table(mixed, 2, sparse), l, 0.2, workers, nil); !slices.Equal(got, want) {
				t.Errorf("%d workers, sparse %v: %v, want %v", workers, sparse, got, want)
			}
		}
	}
	all := make([]int32, len(rows))
	for i := range all {
		all[i] = int32(i)
	}
	if got := falls(t, m, table(rows, 2, true), l, 0.2, 2, all); !slices.Equal(got, want) {
		t.Errorf("as a list: %v, want %v", got, want)
	}
}

// Every model, both relations, bounds over 60 powers of two: no query of a search ever moves by more
// than the sensitivity that its noise is scaled to, and some move by all of it.
func TestSensitivityOfSearches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(12, 1))
	worst := map[privacy.Adjacency]float64{}
	for range 600 {
		features, n := 1+rnd.IntN(12), 2+rnd.IntN(60)
		m, classes := anyKind(t, rnd, features)
		draw := func() row {
			r := randomRows(rnd, 1, features)[0]
			r.y = float32(rnd.IntN(max(classes, 1) + 1)) // sometimes a class that does not exist
			return r
		}
		rows := make([]row, n)
		for i := range rows {
			rows[i] = draw()
		}
		l, bound := anyLine(rnd, m.Dim(), 1+rnd.IntN(6)), math.Exp2(rnd.Float64()*60-40)
		sums := func(rows []row) []int64 {
			return falls(t, m, table(rows, classes, rnd.IntN(2) == 0), l, bound, 1+rnd.IntN(3), nil)
		}
		check := func(adj privacy.Adjacency, a, b []int64) {
			o := &Oracle{cfg: Config{Facts: oracle.Public{Adjacency: adj}}}
			r, err := o.figures("search", bound)
			if err != nil {
				t.Fatal(err)
			}
			sens := r.sens
			for k := range a {
				d := math.Abs(float64(a[k]-b[k])) * fallUnit(bound)
				if worst[adj] = max(worst[adj], d/sens); d > sens {
					t.Fatalf("%s, bound %v, %v: sums differ by %v, the sensitivity is %v", m.Name(), bound, adj, d, sens)
				}
			}
		}
		full, i := sums(rows), rnd.IntN(n)
		check(privacy.AddRemove, full, sums(slices.Delete(slices.Clone(rows), i, i+1)))
		other := slices.Clone(rows)
		if other[i] = draw(); rnd.IntN(2) == 0 { // the same row turned round
			other[i] = row{slices.Clone(rows[i].x), rows[i].y}
			for j := range other[i].x {
				other[i].x[j] *= -1
			}
		}
		check(privacy.ReplaceOne, full, sums(other))
	}
	for adj, w := range worst {
		if w < 0.999 {
			t.Errorf("%v: no pair of neighbors came nearer the sensitivity than %v of it: the test has no force", adj, w)
		}
	}
}

// Along a line, losses are those of the points on it, whichever way they are taken.
func TestSearchSeesTheDecrease(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 1))
	tab := table(randomRows(rnd, 3000, 4), 2, true)
	m := logistic(t, 4)
	loss := func(w []float64) float64 {
		sum, v := 0.0, make([]float64, data.BlockRows)
		for _, b := range tab.Blocks {
			var ws model.Workspace
			m.Eval(w, data.View{Block: b, To: b.N}, &ws).Loss(v[:b.N])
			for _, x := range v[:b.N] {
				sum += x
			}
		}
		return sum
	}
	l := oracle.Line{From: []float64{1, 0, -1, 2}, Along: []float64{1, -2, 3, 0.5}, Steps: []float64{0.01, 0.3, -0.2, 0.1, 0.05, 0.4}}
	l.Least = make([]float64, len(l.Steps))
	const bound = 8 // no decrease here is as large
	for k, got := range falls(t, m, tab, l, bound, 1, nil) {
		w := make([]float64, 4)
		for j := range w {
			w[j] = l.From[j] - l.Steps[k]*l.Along[j]
		}
		want := loss(l.From) - loss(w)
		if math.Abs(float64(got)*fallUnit(bound)-want) > 3000*fallUnit(bound) {
			t.Errorf("step %v: decrease %v, want %v", l.Steps[k], float64(got)*fallUnit(bound), want)
		}
	}
}

// A search of a batch: charged with it, asked once, one number of the batch's one record, and the
// same from the record. Without noise it finds the first step that is good enough.
func TestSearch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 1))
	cfg := config(t, table(randomRows(rnd, 500, 3), 2, false), privacy.ReplaceOne, 500)
	journal := &memo{}
	cfg.Journal, cfg.Workers = journal, 3
	o := openOracle(t, cfg)
	grad := oracle.Grad{Clip: clip.Norm{C: 0.5}, Noise: mech.Gaussian{Sigma: 2}}
	find := oracle.Search{Bound: 1e6, Noise: mech.AboveThreshold{Threshold: 1e-12, Query: 1e-12, Max: 6}}
	ask := func(o oracle.Oracle) (int, []float64) {
		b, err := o.Batch(context.Background(), sample.Full{}, grad, find)
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grad(grad, []float64{0, 0, 0})
		if err != nil {
			t.Fatal(err)
		}
		g = slices.Clone(g)
		l := oracle.Line{From: []float64{0, 0, 0}, Along: g, Steps: []float64{1e4, 1e3, 100, -1, 1e-3, 1e-4}, Least: make([]float64, 6)}
		k, err := b.Search(find, l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Search(find, l); !errors.Is(err, oracle.ErrNotCharged) {
			t.Errorf("asked twice: %v", err)
		}
		return k, g
	}
	k, g := ask(o)
	if len(journal.released) != 1 || len(journal.released[0]) != 2 || !slices.Equal(journal.released[0][1], []float64{float64(k)}) {
		t.Fatalf("released %v for step %d", journal.released, k)
	}
	if k != 3 && k != 4 && k != 5 { // 10⁴ to 100 are far too long; of −1 and 10⁻⁴ one leads downhill
		t.Errorf("found step %d", k)
	}
	again := &replay.Oracle{Facts: cfg.Facts, Next: replay.Each([]replay.Released{{Event: journal.charged[0], Answers: journal.released[0]}})}
	if k2, g2 := ask(again); k2 != k || !slices.Equal(g, g2) {
		t.Errorf("the record gives step %d, it was %d", k2, k)
	}

	// Without noise: exactly the first that is good enough, with and without a bound; the
	// least decrease is per row of the sampler's public size.
	for _, bound := range []float64{0, 8} {
		plain := oracle.Search{Bound: bound, Noise: mech.AboveThreshold{Max: 27}, Off: true}
		b, err := o.Batch(context.Background(), sample.Full{}, plain)
		if err != nil {
			t.Fatal(err)
		}
		l := oracle.Line{From: make([]float64, 3), Along: []float64{1, 2, 3}, Steps: []float64{5, 4, 3, 2, 1, 0, -1}}
		l.Least = make([]float64, len(l.Steps))
		want := -1
		for range 20 { // over several ways through the rows
			l.Steps, l.Least = append([]float64{0}, l.Steps...), append([]float64{1}, l.Least...)
		}
		for k, got := range falls(t, logistic(t, 3), cfg.Table, l, 8, 1, nil) {
			l.Least[k] = float64(got)*fallUnit(8)/500 + 1e-4
			if k == 25 {
				l.Least[k] -= 2e-4
				want = k
			}
		}
		if k, err := b.Search(plain, l); k != want || err != nil {
			t.Errorf("bound %v: step %d (%v), want %d", bound, k, err, want)
		}
	}
}

// What may not be asked is refused before it is charged, or before rows are read.
func TestSearchRefuses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(15, 1))
	cfg := config(t, table(randomRows(rnd, 20, 2), 2, false), privacy.AddRemove, 20)
	meter := &free{adj: privacy.AddRemove}
	cfg.Meter = meter
	o := openOracle(t, cfg)
	scales := mech.AboveThreshold{Threshold: 1, Query: 2, Max: 3}
	for _, q := range []oracle.Query{
		oracle.Search{Bound: 0, Noise: scales},
		oracle.Search{Bound: -1, Noise: scales},
		oracle.Search{Bound: math.NaN(), Noise: scales},
		oracle.Search{Bound: math.Inf(1), Noise: scales},
		oracle.Search{Bound: 1e-300, Noise: scales},
		oracle.Search{Bound: 1, Noise: mech.AboveThreshold{Threshold: 1, Query: 0, Max: 3}},
		oracle.Search{Bound: 1, Noise: mech.AboveThreshold{Threshold: 1, Query: 2}},
		oracle.Search{Bound: 1, Noise: mech.AboveThreshold{Threshold: 1e12, Query: 2, Max: 1}},
		oracle.Search{Off: true},
		oracle.Search{Off: true, Bound: math.Inf(1), Noise: scales},
		&oracle.Search{Bound: 1, Noise: scales},
	} {
		if _, err := o.Batch(context.Background(), sample.Full{}, q); err == nil {
			t.Errorf("%+v was sold", q)
		}
	}
	if meter.charges != 0 {
		t.Errorf("%d charges for what was refused", meter.charges)
	}
	q := oracle.Search{Bound: 1, Noise: scales}
	b, err := o.Batch(context.Background(), sample.Full{}, q)
	if err != nil {
		t.Fatal(err)
	}
	two, four := []float64{1, 1}, []float64{1, 1, 1, 1}
	for _, l := range []oracle.Line{
		{From: two, Along: two},
		{From: two, Along: four, Steps: two, Least: two},
		{From: two, Along: two, Steps: two, Least: four},
		{From: two, Along: two, Steps: four, Least: four},
		{From: two, Along: two, Steps: []float64{1}, Least: []float64{math.NaN()}},
	} {
		if _, err := b.Search(q, l); err == nil {
			t.Errorf("%+v was looked along", l)
		}
	}
	// Numbers without end are public nonsense, not an error: the outcome is noise.
	l := oracle.Line{From: []float64{math.Inf(1), math.NaN()}, Along: two, Steps: []float64{1, math.Inf(1)}, Least: []float64{math.Inf(1), math.Inf(-1)}}
	if k, err := b.Search(q, l); k != 1 || err != nil {
		t.Errorf("step %d (%v), want the one that needs no decrease", k, err)
	}
}

// TestAuditOfSearch: a search of the oracle, with clipping, sensitivity and sample, gives away no more
// than above-threshold is proven to, and more than twice the noise would: a factor 2 in noise or sensitivity
// would be found. All but the last step of the line worsen the one
// record's loss by as much as counts and the last betters it; in the neighbor the record is missing, or pulls the other
// way. 3·10⁵ batches of each table; with random seeds each line would fail by chance at most once in 10⁶.
func TestAuditOfSearch(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const draws, failure, bound, steps = 300_000, 1e-6, 0.25, 6
	scales := mech.AboveThreshold{Threshold: 2, Query: 4, Max: steps} // ε = 1/2 + 2/4
	for _, c := range []struct {
		name string
		adj  privacy.Adjacency
		s    sample.Sampler
	}{
		{"full, add-or-remove", privacy.AddRemove, sample.Full{}},
		{"full, replace-one", privacy.ReplaceOne, sample.Full{}},
		{"poisson, add-or-remove", privacy.AddRemove, sample.Poisson{Rate: 0.7}},
		{"fixed, replace-one", privacy.ReplaceOne, sample.Fixed{M: 7, N: 10}},
	} {
		claim := func(noise float64) float64 {
			e := mech.AboveThreshold{Threshold: noise * scales.Threshold, Query: noise * scales.Query, Max: steps}.Event()
			loss, err := account.Best{}.Loss(c.s.Event(e), c.adj)
			if err != nil {
				t.Fatal(err)
			}
			return loss.Epsilon(0)
		}
		said, faulty := claim(1), claim(2)
		rows := make([]row, 10)
		for i := range rows {
			rows[i] = row{x: []float32{0}, y: 1}
		}
		rows[0].x = []float32{1}
		neighbors := append([]row{{x: []float32{-1}, y: 1}}, rows[1:]...)
		shift := 0.5 // of a query, in bounds: where both tables' queries lie half a sensitivity to either side
		if c.adj == privacy.AddRemove {
			neighbors = rows[1:]
		} else {
			shift = 0
		}
		l := oracle.Line{From: []float64{0}, Along: []float64{-1}}
		for k := range steps {
			eta, up := -4.0, -1.0 // the loss rises by more than the bound
			if k == steps-1 {
				eta, up = 4, 1
			}
			l.Steps = append(l.Steps, eta)
			l.Least = append(l.Least, up*shift*bound/c.s.Size(10))
		}
		ask := oracle.Search{Bound: bound, Noise: scales}
		law := func(rows []row, seed uint64) audit.Law {
			cfg := config(t, table(rows, 2, false), c.adj, 10)
			cfg.Journal = nowhere{}
			cfg.Streams = noise.SeededStreams(seed)
			o := openOracle(t, cfg)
			return func() int {
				b, err := o.Batch(context.Background(), c.s, ask)
				if err != nil {
					t.Fatal(err)
				}
				k, err := b.Search(ask, l)
				if err != nil {
					t.Fatal(err)
				}
				return 1 + k
			}
		}
		got := audit.Epsilon(law(rows, 3), law(neighbors, 4), draws, steps+1, 0, failure)
		if got > said || got <= faulty {
			t.Errorf("%s: found ε ≥ %.4f; want above %.4f, what twice the noise would cost, and at most %.4f", c.name, got, faulty, said)
		} else {
			t.Logf("%s: ε ≥ %.4f of %.4f (with twice the noise %.4f)", c.name, got, said, faulty)
		}
	}
}
