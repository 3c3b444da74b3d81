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
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// scores are what a choice's noise is added to, in units, over all rows or a list of them.
func scores(t testing.TB, m model.Model, tab *data.Table, q oracle.Select, among oracle.Candidates, workers int, list []int32) []int64 {
	t.Helper()
	facts := oracle.Public{Dim: m.Dim(), Classes: tab.Classes}
	local := &Local{facts: facts, listed: list, whole: list == nil}
	local.open(tab, m, workers)
	defer local.Close()
	o := &Oracle{cfg: Config{Facts: facts}, summer: local, local: local}
	n, err := oracle.CheckChoice(q, among, o.cfg.Facts)
	if err != nil {
		t.Fatal(err)
	}
	b := &batch{o: o, size: 7}
	var out []int64
	r, _, _ := o.scores(q) // a unit depends on no adjacency
	sums, err := b.scores(q, among, n, r.unit)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range sums {
		out = append(out, d.count)
	}
	return out
}

// anyKind is a model of any kind but networks, and its number of classes.
func anyKind(t interface {
	Helper()
	Fatal(...any)
}, rnd *rand.Rand, features int) (m model.Model, classes int) {
	classes = 2
	name := []string{"logistic", "svm", "huber-svm", "linear", "softmax"}[rnd.IntN(5)]
	switch name {
	case "linear":
		classes = 0
	case "softmax":
		classes = 2 + rnd.IntN(5)
	}
	m, err := model.New(name, model.Options{Dim: features, Classes: classes, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m, classes
}

// anyModel is a model of any kind with rows that suit it, some of a class that does not exist.
func anyModel(t testing.TB, rnd *rand.Rand) (m model.Model, classes int, draw func() row) {
	features := 1 + rnd.IntN(12)
	m, classes = anyKind(t, rnd, features)
	return m, classes, func() row {
		r := randomRows(rnd, 1, features)[0]
		r.y = float32(rnd.IntN(max(classes, 1) + 1))
		for j := range r.x {
			if rnd.IntN(3) == 0 {
				r.x[j] = 0
			}
		}
		return r
	}
}

// anyChoice is a choice of each kind that the model has.
func anyChoice(rnd *rand.Rand, m model.Model, classes int, bound float64) (oracle.Select, oracle.Candidates) {
	q := oracle.Select{Epsilon: 1, Bound: bound}
	l := anyLine(rnd, m.Dim(), 1+rnd.IntN(30))
	switch kind := rnd.IntN(3); {
	case kind == 0 && classes > 0:
		q.Bound = 0
		return q, oracle.Classes{}
	case kind == 1:
		return q, oracle.Neighbors{From: l.From, Step: math.Exp2(float64(rnd.IntN(20) - 10))}
	}
	return q, l
}

// A choice's scores are whole numbers that depend on no order, no storage and no number of workers.
func TestScoresAreExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 1))
	rows := randomRows(rnd, 9000, 6)
	for i := range rows {
		rows[i].x[i%6] = 0
	}
	all := make([]int32, len(rows))
	for i := range all {
		all[i] = int32(i)
	}
	soft, err := model.New("softmax", model.Options{Dim: 6, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []model.Model{logistic(t, 6), soft} {
		q := oracle.Select{Epsilon: 1, Bound: 0.2}
		l := anyLine(rnd, m.Dim(), 40)
		for _, c := range []struct {
			q     oracle.Select
			among oracle.Candidates
		}{{q, l}, {q, oracle.Neighbors{From: l.From, Step: 0.3}}, {oracle.Select{Epsilon: 1}, oracle.Classes{}}} {
			want := scores(t, m, table(rows, 2, false), c.q, c.among, 1, nil)
			for _, workers := range []int{1, 2, 5} {
				for _, sparse := range []bool{false, true} {
					mixed := slices.Clone(rows)
					rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
					if got := scores(t, m, table(mixed, 2, sparse), c.q, c.among, workers, nil); !slices.Equal(got, want) {
						t.Errorf("%s, %T, %d workers, sparse %v: %v, want %v", m.Name(), c.among, workers, sparse, got, want)
					}
				}
			}
			if got := scores(t, m, table(rows, 2, true), c.q, c.among, 2, all); !slices.Equal(got, want) {
				t.Errorf("%s, %T, as a list: %v, want %v", m.Name(), c.among, got, want)
			}
		}
	}
}

// Every model, both relations, bounds over 60 powers of two: no score of a choice ever moves by more than the sensitivity that
// its rate is made of, no two of them apart by more than twice that, or where all are said to move in one
// direction by more than once; and some do by all of it.
func TestSensitivityOfChoices(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(22, 1))
	type kind struct {
		adj   privacy.Adjacency
		count bool
	}
	worst := map[kind][2]float64{}
	for range 1500 {
		m, classes, draw := anyModel(t, rnd)
		rows := make([]row, 2+rnd.IntN(40))
		for i := range rows {
			rows[i] = draw()
		}
		q, among := anyChoice(rnd, m, classes, math.Exp2(rnd.Float64()*60-40))
		sums := func(rows []row) []int64 {
			return scores(t, m, table(rows, classes, rnd.IntN(2) == 0), q, among, 1+rnd.IntN(3), nil)
		}
		check := func(adj privacy.Adjacency, a, b []int64) {
			o := &Oracle{cfg: Config{Facts: oracle.Public{Adjacency: adj}}}
			r, monotone, err := o.scores(q)
			if err != nil {
				t.Fatal(err)
			}
			sens := r.sens
			var most, high, low float64
			for k := range a {
				d := float64(a[k]-b[k]) * r.unit
				if k == 0 {
					high, low = d, d
				}
				most, high, low = max(most, math.Abs(d)), max(high, d), min(low, d)
			}
			span := 2 * sens
			if monotone {
				span = sens
			}
			id := kind{adj, q.Bound == 0}
			w := worst[id]
			worst[id] = [2]float64{max(w[0], most/sens), max(w[1], (high-low)/span)}
			if most > sens || high-low > span || monotone && high > 0 && low < 0 {
				t.Fatalf("%s, %T, bound %v, %v: scores move by %v to %v, the sensitivity is %v (monotone %v)", m.Name(), among, q.Bound, adj, low, high, sens, monotone)
			}
		}
		full, i := sums(rows), rnd.IntN(len(rows))
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
	for id, w := range worst {
		if w[0] < 0.999 || w[1] < 0.999 {
			t.Errorf("%+v: no pair of neighbors came nearer the sensitivity than %v of it: the test has no force", id, w)
		}
	}
	if len(worst) != 4 {
		t.Errorf("only %v was tried", worst)
	}
}

// The sum of losses moves by no more than its bound, under both relations.
func TestSensitivityOfLosses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 1))
	worst := 0.0
	for range 400 {
		m, classes, draw := anyModel(t, rnd)
		rows := make([]row, 2+rnd.IntN(40))
		for i := range rows {
			rows[i] = draw()
		}
		q := oracle.Loss{Bound: math.Exp2(rnd.Float64()*60 - 40), Noise: mech.Gaussian{Sigma: 1}}
		w := anyLine(rnd, m.Dim(), 1).From
		sum := func(rows []row) float64 {
			var s Local
			s.open(table(rows, classes, rnd.IntN(2) == 0), m, 1)
			defer s.Close()
			d := s.tallied(&losses{w: w, bound: q.Bound, unit: fallUnit(q.Bound)}, 1, fallUnit(q.Bound), nil, true)[0]
			if d.count < 0 {
				t.Fatalf("%s: a sum of losses of %v", m.Name(), d.plain)
			}
			return d.plain
		}
		full, i := sum(rows), rnd.IntN(len(rows))
		other := slices.Clone(rows)
		other[i] = draw()
		for adj, moved := range map[privacy.Adjacency]float64{
			privacy.AddRemove:  math.Abs(full - sum(slices.Delete(slices.Clone(rows), i, i+1))),
			privacy.ReplaceOne: math.Abs(full - sum(other)),
		} {
			o := &Oracle{cfg: Config{Facts: oracle.Public{Adjacency: adj}}}
			r, err := o.losses(q)
			sens := r.sens
			if err != nil || moved > sens {
				t.Fatalf("%s, bound %v, %v: sums differ by %v, the sensitivity is %v (%v)", m.Name(), q.Bound, adj, moved, sens, err)
			}
			worst = max(worst, moved/sens)
		}
	}
	if worst < 0.999 {
		t.Errorf("no pair of neighbors came nearer the sensitivity than %v of it: the test has no force", worst)
	}
}

// A choice and a loss of a batch: charged, asked once, one number each of the batch's one record, and the same from the
// record. Without noise the best is chosen, with and without a bound, and the loss is the mean.
func TestSelect(t *testing.T) {
	rnd := rand.New(rand.NewPCG(24, 1))
	rows := randomRows(rnd, 500, 3)
	ones := 0
	for i := range rows {
		rows[i].y = 0
		if rows[i].x[1] > 0 {
			rows[i].y = 1
			ones++
		}
	}
	cfg := config(t, table(rows, 2, true), privacy.ReplaceOne, 500)
	journal := &memo{}
	cfg.Journal, cfg.Workers = journal, 3
	o := openOracle(t, cfg)
	choose := oracle.Select{Epsilon: 1e5, Bound: 0.5}
	count := oracle.Select{Epsilon: 1e5, Flip: true}
	loss := oracle.Loss{Bound: 10, Noise: mech.Laplace{Scale: 1e-4}}
	near := oracle.Neighbors{From: make([]float64, 3), Step: 0.5}
	ask := func(o oracle.Oracle) (k, class int, mean float64) {
		b, err := o.Batch(context.Background(), sample.Full{}, choose, count, loss)
		if err != nil {
			t.Fatal(err)
		}
		if k, err = b.Select(choose, near); err != nil {
			t.Fatal(err)
		}
		if class, err = b.Select(count, oracle.Classes{}); err != nil {
			t.Fatal(err)
		}
		if mean, err = b.Loss(loss, near.From); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Select(choose, near); !errors.Is(err, oracle.ErrNotCharged) {
			t.Errorf("chosen twice: %v", err)
		}
		if _, err := b.Loss(loss, near.From); !errors.Is(err, oracle.ErrNotCharged) {
			t.Errorf("loss told twice: %v", err)
		}
		return k, class, mean
	}
	k, class, mean := ask(o)
	wantClass := 0
	if ones > 250 {
		wantClass = 1
	}
	if k != 3 || class != wantClass || math.Abs(mean-math.Ln2) > 1e-3 { // w_1 up
		t.Errorf("candidate %d, class %d of %d ones, loss %v", k, class, ones, mean)
	}
	if want := [][]float64{{3}, {float64(class)}, {mean}}; len(journal.released) != 1 || !slices.EqualFunc(journal.released[0], want, slices.Equal) {
		t.Fatalf("released %v, want %v", journal.released, want)
	}
	again := &replay.Oracle{Facts: cfg.Facts, Next: replay.Each([]replay.Released{{Event: journal.charged[0], Answers: journal.released[0]}})}
	if k2, class2, mean2 := ask(again); k2 != k || class2 != class || mean2 != mean {
		t.Errorf("the record says %d, %d, %v", k2, class2, mean2)
	}

	for _, bound := range []float64{0, 8} {
		q := oracle.Select{Bound: bound, Off: true}
		plain := oracle.Loss{Bound: bound, Noise: mech.None{}}
		l := anyLine(rnd, 3, 40)
		best, most := 0, math.Inf(-1)
		for k, s := range scores(t, logistic(t, 3), cfg.Table, oracle.Select{Epsilon: 1, Bound: 8}, l, 1, nil) {
			l.Least[k] = rnd.Float64() / 10
			if v := float64(s)*fallUnit(8) - 500*l.Least[k]; v > most {
				best, most = k, v
			}
		}
		b, err := o.Batch(context.Background(), sample.Full{}, q, plain)
		if err != nil {
			t.Fatal(err)
		}
		if k, err := b.Select(q, l); k != best || err != nil {
			t.Errorf("bound %v: candidate %d (%v), want %d", bound, k, err, best)
		}
		if v, err := b.Loss(plain, near.From); err != nil || math.Abs(v-math.Ln2) > 1e-5 {
			t.Errorf("bound %v: loss %v (%v), want ln 2", bound, v, err)
		}
	}
}

// Rows that keep their place weigh nothing in any score (R9).
func TestScoresOfDroppedRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(25, 1))
	rows := randomRows(rnd, 50, 3)
	tab := table(rows, 2, false)
	tab.Blocks[0].Drop = make([]bool, 50)
	for i := 10; i < 50; i++ {
		tab.Blocks[0].Drop[i] = true
	}
	m, l := logistic(t, 3), anyLine(rnd, 3, 5)
	q := oracle.Select{Epsilon: 1, Bound: 1}
	for _, c := range []struct {
		q     oracle.Select
		among oracle.Candidates
	}{{q, l}, {q, oracle.Neighbors{From: l.From, Step: 1}}, {oracle.Select{Epsilon: 1}, oracle.Classes{}}} {
		if got, want := scores(t, m, tab, c.q, c.among, 1, nil), scores(t, m, table(rows[:10], 2, false), c.q, c.among, 1, nil); !slices.Equal(got, want) {
			t.Errorf("%T: %v, want %v", c.among, got, want)
		}
	}
	sum := func(tab *data.Table) int64 {
		var s Local
		s.open(tab, m, 1)
		defer s.Close()
		return s.tallied(&losses{w: l.From, bound: 1, unit: fallUnit(1)}, 1, fallUnit(1), nil, true)[0].count
	}
	if got, want := sum(tab), sum(table(rows[:10], 2, false)); got != want {
		t.Errorf("loss %d, want %d", got, want)
	}
}

// What may not be asked is refused before it is charged, or before rows are read.
func TestSelectRefuses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(26, 1))
	cfg := config(t, table(randomRows(rnd, 20, 2), 2, false), privacy.AddRemove, 20)
	meter := &free{adj: privacy.AddRemove}
	cfg.Meter = meter
	o := openOracle(t, cfg)
	for _, q := range []oracle.Query{
		oracle.Select{Bound: 1},
		oracle.Select{Bound: 1, Epsilon: math.NaN()},
		oracle.Select{Bound: 1, Epsilon: -1, Flip: true},
		oracle.Select{Bound: -1, Epsilon: 1},
		oracle.Select{Bound: math.NaN(), Epsilon: 1},
		oracle.Select{Bound: math.Inf(1), Epsilon: 1},
		oracle.Select{Bound: 1e-300, Epsilon: 1},
		oracle.Select{Bound: 1, Epsilon: 5e-324},
		oracle.Select{Bound: math.Inf(1), Off: true},
		&oracle.Select{Bound: 1, Epsilon: 1},
		oracle.Loss{Bound: 1},
		oracle.Loss{Bound: 0, Noise: mech.Gaussian{Sigma: 1}},
		oracle.Loss{Bound: math.Inf(1), Noise: mech.Laplace{Scale: 1}},
		oracle.Loss{Bound: 1, Noise: mech.Laplace{Scale: 1e12}},
		oracle.Loss{Bound: 1e-300, Noise: mech.Laplace{Scale: 1}},
		oracle.Loss{Bound: -1, Noise: mech.None{}},
	} {
		if _, err := o.Batch(context.Background(), sample.Full{}, q); err == nil {
			t.Errorf("%+v was sold", q)
		}
	}
	if meter.charges != 0 {
		t.Errorf("%d charges for what was refused", meter.charges)
	}
	by, count := oracle.Select{Epsilon: 1, Bound: 1}, oracle.Select{Epsilon: 1}
	b, err := o.Batch(context.Background(), sample.Full{}, by, count, oracle.Loss{Noise: mech.None{}})
	if err != nil {
		t.Fatal(err)
	}
	two, four := []float64{1, 1}, []float64{1, 1, 1, 1}
	for _, c := range []struct {
		q     oracle.Select
		among oracle.Candidates
	}{
		{by, nil},
		{by, oracle.Classes{}},
		{by, oracle.Line{From: two, Along: two}},
		{by, oracle.Line{From: four, Along: two, Steps: two, Least: two}},
		{by, oracle.Line{From: two, Along: four, Steps: two, Least: two}},
		{by, oracle.Line{From: two, Along: two, Steps: two, Least: four}},
		{by, oracle.Line{From: two, Along: two, Steps: two, Least: []float64{1, math.NaN()}}},
		{by, oracle.Neighbors{From: four, Step: 1}},
		{by, oracle.Neighbors{From: two, Step: 1, Least: two}},
		{count, oracle.Neighbors{From: two, Step: 1}},
		{count, oracle.Line{From: two, Along: two, Steps: two, Least: two}},
	} {
		if _, err := b.Select(c.q, c.among); err == nil {
			t.Errorf("%+v chose among %+v", c.q, c.among)
		}
	}
	if _, err := b.Loss(oracle.Loss{Noise: mech.None{}}, four); err == nil {
		t.Error("a loss at 4 parameters of 2")
	}
	// Numbers without end are public nonsense, not an error.
	if _, err := b.Select(by, oracle.Neighbors{From: []float64{math.Inf(1), math.NaN()}, Step: math.Inf(1)}); err != nil {
		t.Error(err)
	}
	if _, err := b.Select(count, oracle.Classes{}); err != nil {
		t.Error(err)
	}
}

// TestAuditOfSelect: a choice of the oracle, with clipping, sensitivity and sample, gives away no more than its mechanism is
// proven to, and more than a choice of half the ε would: a factor 2 in sensitivity, or scores taken for monotone,
// would be found. The one record betters the first of 21 candidates by as much as counts and
// worsens the others; in the neighbor it is missing, or does the reverse. The law of the public DP-AGD
// code, which takes exponential noise off the scores, is planted on the same scores and found (soundness.md, S-B1). 1.5·10⁵
// batches of each table; with random seeds each line would fail by chance at most once in 10⁶.
func TestAuditOfSelect(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const draws, few, failure, bound, candidates = 150_000, 40_000, 1e-6, 0.25, 21
	half := sample.Poisson{Rate: 0.7}
	for _, c := range []struct {
		name string
		adj  privacy.Adjacency
		s    sample.Sampler
		q    oracle.Select
	}{
		{"add-or-remove", privacy.AddRemove, sample.Full{}, oracle.Select{Epsilon: 1, Bound: bound}},
		{"replace-one", privacy.ReplaceOne, sample.Full{}, oracle.Select{Epsilon: 1, Bound: bound}},
		{"poisson", privacy.AddRemove, half, oracle.Select{Epsilon: 1, Bound: bound}},
		{"flip", privacy.ReplaceOne, sample.Full{}, oracle.Select{Epsilon: 1, Bound: bound, Flip: true}},
		{"classes, add-or-remove", privacy.AddRemove, sample.Full{}, oracle.Select{Epsilon: 1}},
		{"classes, replace-one", privacy.ReplaceOne, sample.Full{}, oracle.Select{Epsilon: 1}},
	} {
		claim := func(epsilon float64) float64 {
			q := c.q
			q.Epsilon = epsilon
			loss, err := account.Best{}.Loss(c.s.Event(q.Event()), c.adj)
			if err != nil {
				t.Fatal(err)
			}
			return loss.Epsilon(0)
		}
		classes, among := 2, oracle.Candidates(oracle.Line{From: []float64{0}, Along: []float64{-1}, Steps: make([]float64, candidates), Least: make([]float64, candidates)})
		rows := make([]row, 10)
		for i := range rows {
			rows[i] = row{x: []float32{0}, y: 1}
		}
		rows[0].x = []float32{1}
		neighbors := append([]row{{x: []float32{-1}, y: 1}}, rows[1:]...)
		l := among.(oracle.Line)
		for k := range l.Steps {
			l.Steps[k] = -4 // the loss rises by more than the bound
		}
		l.Steps[0] = 4
		if c.q.Bound == 0 {
			classes, among = candidates, oracle.Classes{}
			for i := range rows {
				rows[i].y = candidates // of no class
			}
			if c.adj == privacy.ReplaceOne {
				for i := range rows {
					rows[i].y = 1 // far ahead, so that odds are nearly probabilities
				}
			}
			rows[0].y = 0
			neighbors = append([]row{{x: []float32{1}, y: 1}}, rows[1:]...)
		}
		if c.adj == privacy.AddRemove {
			neighbors = rows[1:]
		}
		laws := func(choose func(b *batch) int) (p, q audit.Law) {
			law := func(rows []row, seed uint64) audit.Law {
				cfg := config(t, table(rows, 2, false), c.adj, 10)
				cfg.Journal, cfg.Facts.Classes = nowhere{}, classes
				cfg.Streams = noise.SeededStreams(seed)
				o := openOracle(t, cfg)
				return func() int {
					b, err := o.Batch(context.Background(), c.s, c.q)
					if err != nil {
						t.Fatal(err)
					}
					return choose(b.(*batch))
				}
			}
			return law(rows, 5), law(neighbors, 6)
		}
		said, faulty := claim(1), claim(0.5)
		p, q := laws(func(b *batch) int {
			k, err := b.Select(c.q, among)
			if err != nil {
				t.Fatal(err)
			}
			return k
		})
		got := audit.Epsilon(p, q, draws, candidates, 0, failure)
		if got > said || got <= faulty {
			t.Errorf("%s: found ε ≥ %.4f; want above %.4f, what half the ε would cost, and at most %.4f", c.name, got, faulty, said)
		} else {
			t.Logf("%s: ε ≥ %.4f of %.4f (with half the ε %.4f)", c.name, got, said, faulty)
		}
		if c.q.Flip || c.s != (sample.Full{}) || c.q.Bound == 0 && c.adj == privacy.ReplaceOne {
			continue // the fault shows where scores are equal
		}
		p, q = laws(func(b *batch) int { return wrongWay(t, b, c.q, among, candidates) })
		if got := audit.Epsilon(p, q, few, candidates, 0, failure); got <= said {
			t.Errorf("%s, noise in the wrong way: not caught: ε ≥ %.4f of %.4f", c.name, got, said)
		} else {
			t.Logf("%s, noise in the wrong way: ε ≥ %.4f of %.4f", c.name, got, said)
		}
	}
}

// wrongWay is the noisy choice of S-B1: the largest score less exponential noise, of the scale that would do were it added.
func wrongWay(t *testing.T, b *batch, q oracle.Select, among oracle.Candidates, n int) int {
	r, monotone, err := b.o.scores(q)
	if err != nil {
		t.Fatal(err)
	}
	sens := r.sens
	if !monotone {
		sens *= 2
	}
	fine := r.unit * 0x1p-10
	v := make([]int64, n)
	b.o.noise.AddLaplace(v, sens/fine/q.Epsilon)
	best := 0
	sums, err := b.scores(q, among, n, r.unit)
	if err != nil {
		t.Fatal(err)
	}
	for k, d := range sums {
		v[k] = d.count<<10 - max(v[k], -v[k])
		if v[k] > v[best] {
			best = k
		}
	}
	return best
}
