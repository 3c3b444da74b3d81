package private

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/model/modeltest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

const testUnit = 0x1p-20

// row is one record of a test table, its values multiples of testUnit within norm 1.
type row struct {
	x []float32
	y float32
}

// table packs rows into blocks, dense or sparse.
func table(rows []row, classes int, sparse bool) *data.Table {
	dim := 1
	if len(rows) > 0 {
		dim = len(rows[0].x)
	}
	t := &data.Table{Dim: dim, Classes: classes, NormBound: 1, Unit: testUnit, Labeled: true}
	for len(rows) > 0 {
		n := min(len(rows), data.BlockRows)
		b := &data.Block{N: n, Dim: dim}
		if sparse {
			b.Start = append(b.Start, 0)
		}
		for _, r := range rows[:n] {
			square := 0.0
			for j, v := range r.x {
				square += float64(v) * float64(v)
				if sparse && v != 0 {
					b.Col, b.Val = append(b.Col, int32(j)), append(b.Val, v)
				}
			}
			if sparse {
				b.Start = append(b.Start, int32(len(b.Col)))
			} else {
				b.X = append(b.X, r.x...)
			}
			b.Y = append(b.Y, r.y)
			b.Norm = append(b.Norm, math.Nextafter32(float32(math.Sqrt(square)), 2))
		}
		t.Blocks = append(t.Blocks, b)
		rows = rows[n:]
	}
	return t
}

// randomRows makes n rows of norm at most 1.
func randomRows(rnd *rand.Rand, n, dim int) []row {
	rows := make([]row, n)
	for i := range rows {
		x := make([]float32, dim)
		norm := 0.0
		v := make([]float64, dim)
		for j := range v {
			v[j] = rnd.NormFloat64()
			norm += v[j] * v[j]
		}
		for j := range v {
			x[j] = float32(math.Trunc(v[j]/math.Sqrt(norm)/testUnit) * testUnit)
		}
		rows[i] = row{x, float32(rnd.IntN(2))}
	}
	return rows
}

// memo is a journal in memory.
type memo struct {
	charged  []privacy.Event
	released [][][]float64
	fail     error
}

func (m *memo) Charge(e privacy.Event) error {
	if m.fail != nil {
		return m.fail
	}
	m.charged = append(m.charged, e)
	return nil
}

func (m *memo) Release(answers [][]float64) error {
	var c [][]float64
	for _, a := range answers {
		c = append(c, slices.Clone(a))
	}
	m.released = append(m.released, c)
	return nil
}

// free is a meter that admits everything, for tests of what comes after paying.
type free struct {
	adj     privacy.Adjacency
	refuse  bool
	charges int
}

func (f *free) Adjacency() privacy.Adjacency { return f.adj }
func (f *free) Charge(privacy.Event) error {
	if f.refuse {
		return privacy.ErrExhausted
	}
	f.charges++
	return nil
}

func logistic(t testing.TB, dim int) model.Model {
	t.Helper()
	m, err := model.New("logistic", model.Options{Dim: dim, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func config(t testing.TB, tab *data.Table, adj privacy.Adjacency, rows int) Config {
	return Config{
		Table: tab, Model: logistic(t, tab.Dim), Meter: &free{adj: adj}, Journal: &memo{}, Streams: noise.SeededStreams(1),
		Facts: oracle.Public{Dim: tab.Dim, Rows: rows, Classes: 2, Adjacency: adj, NormBound: 1, Lipschitz: 1, Smooth: 0.25, Curved: true},
	}
}

func openOracle(t testing.TB, c Config) *Oracle {
	t.Helper()
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// clippedSum is the exact clipped sum before the grid and the noise, in data units.
func clippedSum(t testing.TB, tab *data.Table, w []float64, c float64, workers int) []float64 {
	t.Helper()
	var s Local
	s.open(tab, logistic(t, tab.Dim), workers)
	defer s.Close()
	unit, counts, err := s.sum(w, clip.Norm{C: c}, oracle.Public{Rows: 1000}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(counts))
	for j, v := range counts {
		out[j] = float64(v) * unit
	}
	return out
}

func TestSumEqualsMicroBatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 5, 1023, 1024, 1025, 3000} {
		rows := randomRows(rnd, n, 7)
		w := []float64{0.5, -1, 2, 0, 3, -0.25, 1}
		if n == 0 {
			w = w[:1]
		}
		tab := table(rows, 2, false)
		var views []data.View
		for _, b := range tab.Blocks {
			views = append(views, data.View{Block: b, To: b.N})
		}
		want := modeltest.MicroBatch(logistic(t, tab.Dim), w, views, 0.3, 2)
		got := clippedSum(t, tab, w, 0.3, 1)
		for j := range got {
			// Each row's coefficient is cut by up to 2⁻¹⁸·C and its weight by 2⁻²⁰.
			if math.Abs(got[j]-want[j]) > float64(n)*0.3*0x1p-17 {
				t.Errorf("n=%d: coordinate %d is %v, one record at a time gives %v", n, j, got[j], want[j])
			}
		}
	}
}

// The sum is an integer that depends on no order, no storage, no number of workers.
func TestSumIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 1))
	rows := randomRows(rnd, 9000, 5)
	w := []float64{1, -2, 0.5, 3, -0.125}
	want := clippedSum(t, table(rows, 2, false), w, 0.7, 1)
	for _, workers := range []int{2, 8} {
		if got := clippedSum(t, table(rows, 2, false), w, 0.7, workers); !slices.Equal(got, want) {
			t.Errorf("%d workers: %v, one worker %v", workers, got, want)
		}
	}
	if got := clippedSum(t, table(rows, 2, true), w, 0.7, 3); !slices.Equal(got, want) {
		t.Errorf("sparse rows: %v, dense %v", got, want)
	}
	slices.Reverse(rows)
	if got := clippedSum(t, table(rows, 2, false), w, 0.7, 1); !slices.Equal(got, want) {
		t.Errorf("rows in reverse: %v, else %v", got, want)
	}
}

// Neighboring tables: what the noise is added to differs by at most the
// sensitivity that the noise is scaled to, grid and all. This is the property that
// the guarantee rests on, so the tables are hostile.
func TestNeighborsDifferByAtMostTheSensitivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 6).Draw(t, "dim")
		c := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "c"), rapid.IntRange(-30, 8).Draw(t, "exp"))
		draw := func(label string) row {
			x, norm := make([]float64, dim), 0.0
			for j := range x {
				x[j] = rapid.Float64Range(-1, 1).Draw(t, label)
				norm += x[j] * x[j]
			}
			r := row{make([]float32, dim), float32(rapid.IntRange(0, 1).Draw(t, label))}
			for j := range x {
				r.x[j] = float32(math.Trunc(x[j]/max(1, math.Sqrt(norm)*(1+0x1p-20))/testUnit) * testUnit)
			}
			return r
		}
		w := make([]float64, dim)
		for j := range w {
			w[j] = rapid.OneOf(rapid.Float64Range(-5, 5), rapid.Just(1e300), rapid.Just(-1e5)).Draw(t, "w")
		}
		rows := make([]row, rapid.IntRange(1, 40).Draw(t, "n"))
		for i := range rows {
			rows[i] = draw("row")
		}
		m, _ := model.New(rapid.SampledFrom([]string{"logistic", "svm", "huber-svm"}).Draw(t, "model"), model.Options{Dim: dim, Classes: 2, NormBound: 1,
			Weights: rapid.SampledFrom([][]float64{nil, {0.03, 7}, {1, 0.9}}).Draw(t, "weights")})
		var rule clip.Rule = clip.Norm{C: c}
		if m.Facts().Bounded && rapid.Bool().Draw(t, "by value") {
			rule = clip.Value{C: c}
		}
		grid := 0.0
		rounded := func(rows []row) []int64 {
			tab := table(rows, 2, rapid.Bool().Draw(t, "sparse"))
			tab.Dim = dim
			var s Local
			s.open(tab, m, 1)
			unit, counts, err := s.sum(w, rule, oracle.Public{Rows: 40}, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			grid = gridOf(unit, c, dim, 2)
			mech.RoundShift(counts, shiftOf(unit, grid))
			return counts
		}
		check := func(adj privacy.Adjacency, a, b []int64) {
			within(t, rule, adj, grid, a, b)
		}
		full := rounded(rows)
		i := rapid.IntRange(0, len(rows)-1).Draw(t, "i")
		check(privacy.AddRemove, full, rounded(slices.Delete(slices.Clone(rows), i, i+1)))
		other := slices.Clone(rows)
		other[i] = draw("other")
		check(privacy.ReplaceOne, full, rounded(other))
	})
}

// within fails where two rounded sums, in counts of the grid, differ by more than the sensitivity.
func within(t *rapid.T, rule clip.Rule, adj privacy.Adjacency, grid float64, a, b []int64) {
	sens, err := sensitivity(rule, adj, grid, len(a))
	if err != nil {
		t.Fatal(err)
	}
	size, square := 0.0, 0.0
	for j := range a {
		d := float64(a[j]-b[j]) * grid
		size, square = size+math.Abs(d), square+d*d
	}
	if rule.Norm() == 2 {
		size = math.Sqrt(square)
	}
	if size > sens {
		t.Fatalf("%v: sums differ by %v in the L%d norm, the sensitivity is %v", adj, size, rule.Norm(), sens)
	}
}

// The noise has the standard deviation that the event claims, relative to the
// sensitivity of the relation, and the divisor is the nominal size.
func TestNoiseAndDivisor(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		const dim, rows, sigma, c = 2000, 4, 3.0, 0.5
		zero := row{x: make([]float32, dim)}
		tab := table([]row{zero, zero, zero, zero}, 2, false) // all gradients are 0
		o := openOracle(t, config(t, tab, adj, rows))
		q := oracle.Grad{Clip: clip.Norm{C: c}, Noise: mech.Gaussian{Sigma: sigma}}
		square, n := 0.0, 0
		for range 20 {
			b, err := o.Batch(context.Background(), sample.Full{}, q)
			if err != nil {
				t.Fatal(err)
			}
			g, err := b.Grad(q, make([]float64, dim))
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range g {
				square += v * v
				n++
			}
		}
		want := sigma * c / rows
		if adj == privacy.ReplaceOne {
			want *= 2
		}
		// 40,000 draws: the relative sd of the estimate is 0.0035; 5 of them fail
		// with probability 6e-7, and the seed is fixed.
		if got := math.Sqrt(square / float64(n)); math.Abs(got/want-1) > 0.0175 {
			t.Errorf("%v: noise of a mean has standard deviation %v, want %v", adj, got, want)
		}
	}
}

// A Poisson batch is divided by its nominal size, whatever was drawn.
func TestPoissonDivisor(t *testing.T) {
	one := row{x: []float32{1}, y: 1}
	rows := make([]row, 3000)
	for i := range rows {
		rows[i] = one
	}
	cfg := config(t, table(rows, 2, false), privacy.AddRemove, 2000) // a nominal count that is wrong
	o := openOracle(t, cfg)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1e-3}}
	mean := 0.0
	for range 50 {
		b, err := o.Batch(context.Background(), sample.Poisson{Rate: 0.1}, q)
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grad(q, []float64{0})
		if err != nil {
			t.Fatal(err)
		}
		mean += g[0] / 50
	}
	// 300 rows of gradient −½ over 200. The mean of 50 batches has sd 0.0058.
	if math.Abs(mean+0.75) > 0.03 {
		t.Errorf("the mean gradient is %v, want −0.75", mean)
	}
}

// A fixed batch is drawn, charged and divided by the one M of its value. Its N must be the run's
// number of rows, and the relation replace-one; else nothing is charged.
func TestFixedBatch(t *testing.T) {
	rows := make([]row, 200)
	for i := range rows {
		rows[i] = row{x: []float32{1}, y: 1}
	}
	cfg := config(t, table(rows, 2, false), privacy.ReplaceOne, 200)
	meter, journal := cfg.Meter.(*free), cfg.Journal.(*memo)
	o := openOracle(t, cfg)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1e-3}}
	b, err := o.Batch(context.Background(), sample.Fixed{M: 50, N: 200}, q)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grad(q, []float64{0})
	if err != nil {
		t.Fatal(err)
	}
	// 50 rows of gradient −½ over 50, with noise of deviation 2·10⁻³/50.
	if math.Abs(g[0]+0.5) > 1e-3 || len(o.local.drawn) != 50 {
		t.Errorf("the mean gradient of %d rows is %v, want −0.5 of 50", len(o.local.drawn), g[0])
	}
	want := privacy.FixedSampled{M: 50, N: 200, Of: privacy.Gaussian{Sigma: 1e-3}}
	if len(journal.charged) != 1 || !privacy.Equal(journal.charged[0], want) {
		t.Errorf("charged %v, want %v", journal.charged, want)
	}
	for _, s := range []sample.Sampler{sample.Fixed{M: 50, N: 199}, sample.Fixed{M: 50, N: 201}, sample.Fixed{}, &sample.Fixed{M: 50, N: 200}} {
		if _, err := o.Batch(context.Background(), s, q); err == nil || meter.charges != 1 {
			t.Errorf("%#v: error %v, %d charges", s, err, meter.charges)
		}
	}
	cfg = config(t, table(rows, 2, false), privacy.AddRemove, 200)
	if _, err := openOracle(t, cfg).Batch(context.Background(), sample.Fixed{M: 50, N: 200}, q); err == nil || cfg.Meter.(*free).charges != 0 {
		t.Errorf("under add-or-remove: error %v", err)
	}
}

func TestPaysBeforeLooking(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(1, 9)), 10, 3), 2, false)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	cfg := config(t, tab, privacy.AddRemove, 10)
	meter, journal := cfg.Meter.(*free), cfg.Journal.(*memo)
	o := openOracle(t, cfg)

	meter.refuse = true
	if _, err := o.Batch(context.Background(), sample.Full{}, q); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("a refused charge gives %v", err)
	}
	if len(journal.charged) != 0 || o.count != 0 {
		t.Error("a refused charge left a trace")
	}
	meter.refuse, journal.fail = false, errors.New("disk full")
	if _, err := o.Batch(context.Background(), sample.Full{}, q); err == nil {
		t.Error("a batch came out although its charge could not be written")
	}
	journal.fail = nil
	// What cannot be valid is refused before it is charged.
	charges := meter.charges
	for _, bad := range []struct {
		s sample.Sampler
		q oracle.Query
	}{
		{sample.Poisson{Rate: 2}, q},
		{sample.Full{}, oracle.Grad{}},
		{sample.Full{}, oracle.Grad{Clip: clip.Norm{C: 1, P: 1}, Noise: mech.Gaussian{Sigma: 1}}},
		{sample.Full{}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: -1}}},
	} {
		if _, err := o.Batch(context.Background(), bad.s, bad.q); err == nil {
			t.Errorf("%v, %v was accepted", bad.s, bad.q)
		}
	}
	if meter.charges != charges {
		t.Error("an impossible query was charged")
	}
}

func TestEachPaidQueryOnce(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(1, 9)), 10, 3), 2, false)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	other := oracle.Grad{Clip: clip.Norm{C: 2}, Noise: mech.Gaussian{Sigma: 1}}
	cfg := config(t, tab, privacy.AddRemove, 10)
	journal := cfg.Journal.(*memo)
	o := openOracle(t, cfg)
	w := make([]float64, 3)
	b, err := o.Batch(context.Background(), sample.Full{}, q, q, other)
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []struct {
		q    oracle.Grad
		fine bool
	}{{q, true}, {q, true}, {q, false}, {other, true}, {other, false}} {
		if _, err := b.Grad(ask.q, w); (err == nil) != ask.fine {
			t.Errorf("asking %v: %v", ask.q, err)
		}
	}
	if len(journal.charged) != 1 || len(journal.released) != 1 || len(journal.released[0]) != 3 {
		t.Errorf("%d charges, %d releases; want one charge and one record of three answers", len(journal.charged), len(journal.released))
	}
	if want := (privacy.Composed{q.Event(), q.Event(), other.Event()}); !privacy.Equal(journal.charged[0], want) {
		t.Errorf("charged %v, want %v", journal.charged[0], want)
	}
	// A batch that was asked only in part is recorded when it is over.
	if b, err = o.Batch(context.Background(), sample.Full{}, q, other); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Grad(other, w); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil || len(journal.released) != 2 {
		t.Errorf("closing: %v with %d releases", err, len(journal.released))
	}
}

func TestRowsWithoutWeight(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3)
	w := []float64{1, 2, 3}
	want := clippedSum(t, table(rows[:20], 2, false), w, 0.5, 1)
	tab := table(rows, 2, false)
	b := tab.Blocks[0]
	b.Drop = make([]bool, 30)
	for i := 20; i < 30; i++ {
		b.Drop[i] = true
		b.Norm[i] = float32(math.NaN())
		b.X[3*i] = float32(math.NaN())
	}
	if got := clippedSum(t, tab, w, 0.5, 1); !slices.Equal(got, want) {
		t.Errorf("dropped rows count: %v, want %v", got, want)
	}
	b.Drop = nil
	if got := clippedSum(t, tab, w, 0.5, 1); !slices.Equal(got, want) {
		t.Errorf("NaN rows count: %v, want %v", got, want)
	}
}

func TestRowCountStaysPrivate(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3), 2, false)
	if _, err := New(config(t, tab, privacy.AddRemove, 17)); err != nil {
		t.Errorf("under add-or-remove the true row count made a difference: %v", err)
	}
	if _, err := New(config(t, tab, privacy.ReplaceOne, 17)); err == nil || !strings.Contains(err.Error(), "30") {
		t.Errorf("under replace-one a wrong public count gives %v", err)
	}
}

func TestNoNoiseWithoutBound(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3), 2, false)
	q := oracle.Grad{Clip: clip.None{}, Noise: mech.Gaussian{Sigma: 1}}
	o := openOracle(t, config(t, tab, privacy.AddRemove, 30))
	if _, err := o.Batch(context.Background(), sample.Full{}, q); err == nil {
		t.Error("noise without a clip bound was accepted")
	}
	plain := oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}
	b, err := o.Batch(context.Background(), sample.Full{}, plain)
	if err != nil {
		t.Fatal(err)
	}
	w := []float64{0.5, -0.5, 1}
	g, err := b.Grad(plain, w)
	if err != nil {
		t.Fatal(err)
	}
	want := modeltest.MicroBatch(logistic(t, 3), w, []data.View{{Block: tab.Blocks[0], To: 30}}, math.Inf(1), 2)
	for j := range g {
		if math.Abs(g[j]-want[j]/30) > 1e-12 {
			t.Errorf("the plain gradient is %v, want %v", g[j], want[j]/30)
		}
	}
}

// The step loop allocates nothing: charge, pass, noise and update.
func TestStepAllocatesNothing(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 3000, 20), 2, false)
	for _, secure := range []bool{true, false} {
		for _, m := range []method.SGD{
			{Steps: 1 << 30, Rate: 1, Gradient: method.Gradient{Clip: 0.5, Noise: 1, Batch: 100}},
			{Steps: 1 << 30, Rate: 1, Gradient: method.Gradient{Clip: 0.5, Noise: 1, Batch: 100, Sampling: method.Fixed}},
			{Steps: 1 << 30, Rate: 1, Gradient: method.Gradient{Clip: 0.5, Noise: 1}},
		} {
			adj := privacy.AddRemove
			if m.Gradient.Sampling == method.Fixed {
				adj = privacy.ReplaceOne
			}
			cfg := config(t, tab, adj, 3000)
			cfg.Journal = nowhere{}
			if secure {
				cfg.Streams = noise.SecureStreams()
			}
			if adj == privacy.AddRemove { // a fixed batch has a meter that admits everything
				plan, _ := m.Plan(cfg.Facts)
				meter, err := account.NewPlan(plan, account.Best{}, privacy.Budget{Epsilon: 1e12, Delta: 1e-5, Adjacency: adj})
				if err != nil {
					t.Fatal(err)
				}
				cfg.Meter = meter
			}
			o := openOracle(t, cfg)
			// One loop, from which the measurement takes a step at a time.
			next, stop := pull(m, o)
			for range 50 {
				next()
			}
			if n := testing.AllocsPerRun(100, next); n > 0 {
				t.Errorf("a step of batch %d %s allocates %v times (secure: %v)", m.Gradient.Batch, m.Gradient.Sampling, n, secure)
			}
			stop()
		}
	}
}

// Nor does that of a network, whichever way it clips.
func TestNetworkStepAllocatesNothing(t *testing.T) {
	race.Skip(t) // the race detector empties the pools that products of matrices live on
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 3000, 20), 2, false)
	cfg := config(t, tab, privacy.AddRemove, 3000)
	cfg.Model, cfg.Journal = network(t, 20, 2, "33 relu", "9 tanh"), nowhere{}
	cfg.Facts.Dim, cfg.Facts.Initial, cfg.Facts.Bounded = cfg.Model.Dim(), spans(cfg.Model), true
	for _, clipping := range []string{method.ByGradient, method.ByValue} {
		o := openOracle(t, cfg)
		next, stop := pull(method.SGD{Steps: 1 << 30, Rate: 1, Gradient: method.Gradient{Clip: 0.5, Clipping: clipping, Noise: 1, Batch: 400}}, o)
		for range 50 {
			next()
		}
		if n := testing.AllocsPerRun(100, next); n > 0 {
			t.Errorf("a step with clipping by %s allocates %v times", clipping, n)
		}
		if o.count < 100 {
			t.Errorf("only %d steps were done", o.count)
		}
		stop()
	}
}

type nowhere struct{}

func (nowhere) Charge(privacy.Event) error { return nil }
func (nowhere) Release([][]float64) error  { return nil }

// pull runs a method's loop in lockstep with its caller.
func pull(m method.Method, o oracle.Oracle) (next, stop func()) {
	n, s := iter.Pull2(m.Run(context.Background(), o, method.Objective{}))
	return func() { n() }, s
}

// peek is a clip rule from elsewhere: it would see every record's figures.
type peek struct{ clip.Rule }

// pen is a noise from elsewhere: it would see the sum.
type pen struct{ mech.Gaussian }

// eye is a sampler from elsewhere: it would see the row count.
type eye struct{ sample.Full }

// The oracle takes values of Sotto's own types only: not pointers, which could
// change after they are charged, and not types from elsewhere.
func TestOracleKnowsItsTypes(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3), 2, false)
	cfg := config(t, tab, privacy.AddRemove, 30)
	o := openOracle(t, cfg)
	fine := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	for _, c := range []struct {
		s sample.Sampler
		q oracle.Query
	}{
		{&sample.Poisson{Rate: 0.5}, fine},
		{eye{}, fine},
		{nil, fine},
		{sample.Full{}, &fine},
		{sample.Full{}, nil},
		{sample.Full{}, oracle.Grad{Clip: peek{clip.Norm{C: 1}}, Noise: fine.Noise}},
		{sample.Full{}, oracle.Grad{Clip: &clip.Norm{C: 1}, Noise: fine.Noise}},
		{sample.Full{}, oracle.Grad{Clip: fine.Clip, Noise: pen{mech.Gaussian{Sigma: 1}}}},
		{sample.Full{}, oracle.Grad{Clip: fine.Clip, Noise: &mech.Gaussian{Sigma: 1}}},
	} {
		if _, err := o.Batch(context.Background(), c.s, c.q); err == nil {
			t.Errorf("the oracle took %T, %T", c.s, c.q)
		}
	}
	if cfg.Meter.(*free).charges != 0 {
		t.Error("a refused batch was charged")
	}
}

// TestValueClipping: a row counts with weight min(1, C/bound), the bound that of its loss and its norm, and where losses bound
// nothing the query is refused before it is charged.
func TestValueClipping(t *testing.T) {
	tab := table([]row{{[]float32{0.25, 0}, 1}, {[]float32{0, 0.5}, 0}}, 2, false)
	const c = 0x1p-4
	q := oracle.Grad{Clip: clip.Value{C: c}, Noise: mech.None{}}
	cfg := config(t, tab, privacy.AddRemove, 1)
	b, err := openOracle(t, cfg).Batch(context.Background(), sample.Full{}, q)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grad(q, make([]float64, 2))
	if err != nil {
		t.Fatal(err)
	}
	// At w = 0 both losses are ln 2, so the bounds are ½·‖x‖ = ⅛ and ¼ and the weights ½ and ¼, whatever R is.
	for j, want := range []float64{-0.25 / 2 / 2, 0.5 / 2 / 4} {
		if math.Abs(g[j]-want) > 1e-5 {
			t.Errorf("coordinate %d is %v, want %v", j, g[j], want)
		}
	}
	hinge, err := model.New("svm", model.Options{Dim: 2, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg = config(t, tab, privacy.AddRemove, 1)
	cfg.Model = hinge
	if _, err := openOracle(t, cfg).Batch(context.Background(), sample.Full{}, q); err == nil || !strings.Contains(err.Error(), "losses of svm do not bound its gradients") {
		t.Errorf("svm: %v", err)
	}
	if n := cfg.Meter.(*free).charges; n != 0 {
		t.Errorf("a refused batch was charged %d times", n)
	}
}

// Numbers that do not fit are refused before anything is charged, and a failed answer
// is no release.
func TestNumbersThatDoNotFit(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3), 2, false)
	cfg := config(t, tab, privacy.AddRemove, 30)
	o := openOracle(t, cfg)
	for _, q := range []oracle.Grad{
		{Clip: clip.Norm{C: 1e-300}, Noise: mech.Gaussian{Sigma: 1}},
		{Clip: clip.Norm{C: 1e300}, Noise: mech.Gaussian{Sigma: 1}},
		{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1e14}},
	} {
		if _, err := o.Batch(context.Background(), sample.Full{}, q); err == nil {
			t.Errorf("%v was accepted", q)
		}
	}
	if err := o.Close(); err != nil || cfg.Meter.(*free).charges != 0 || len(cfg.Journal.(*memo).released) != 0 {
		t.Errorf("refused queries left %d charges and %d releases", cfg.Meter.(*free).charges, len(cfg.Journal.(*memo).released))
	}
}

// Far above the nominal row count the sum wraps around: what is released is still
// the same whatever the order and the number of workers, and a row that weighs
// nothing changes nothing.
func TestSumWraps(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	one := row{x: []float32{1}, y: 1}
	zero := row{x: []float32{0}, y: 1}
	var s, u Local
	rows := make([]row, 2100)
	for i := range rows {
		rows[i] = one
	}
	some := table(rows, 2, false)
	many := *some // the same block again and again: about 34 million rows
	for len(many.Blocks) < 1<<15 {
		many.Blocks = append(many.Blocks, some.Blocks[0])
	}
	more := many
	more.Blocks = append([]*data.Block{table([]row{zero}, 2, false).Blocks[0]}, many.Blocks...)
	get := func(s *Local, tab *data.Table, workers int) int64 {
		s.open(tab, logistic(t, 1), workers)
		defer s.Close()
		_, counts, err := s.sum([]float64{-1e9}, clip.Norm{C: 1}, oracle.Public{Rows: 1}, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		return counts[0]
	}
	a, b := get(&s, &many, 1), get(&u, &more, 4)
	if a != b {
		t.Errorf("%d and %d", a, b)
	}
}

// Printing what a method holds tells nothing about the rows.
func TestNothingPrivateIsPrinted(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 37, 3), 2, false)
	o := openOracle(t, config(t, tab, privacy.AddRemove, 30))
	b, err := o.Batch(context.Background(), sample.Poisson{Rate: 0.5}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		for _, v := range []any{o, b} {
			if text := fmt.Sprintf(verb, v); len(text) > len("private.Oracle") || strings.ContainsAny(text, "0123456789") {
				t.Errorf("%s prints %q", verb, text)
			}
		}
	}
}

// A meter of another adjacency opens no oracle: the sensitivities would differ.
func TestMeterOfAnotherRelation(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3), 2, false)
	cfg := config(t, tab, privacy.ReplaceOne, 30)
	cfg.Meter = &free{adj: privacy.AddRemove}
	if _, err := New(cfg); err == nil {
		t.Error("a meter of add-or-remove opened an oracle of replace-one")
	}
	for _, missing := range []func(*Config){
		func(c *Config) { c.Meter = nil }, func(c *Config) { c.Journal = nil }, func(c *Config) { c.Table = nil },
		func(c *Config) { c.Facts.Rows = 0 }, func(c *Config) { c.Facts.Dim++ },
	} {
		cfg := config(t, tab, privacy.ReplaceOne, 30)
		missing(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("an oracle opened with %+v", cfg.Facts)
		}
	}
}

// An empty Poisson batch is legal: the answer is noise over the nominal size.
func TestEmptyBatch(t *testing.T) {
	tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3), 2, false)
	cfg := config(t, tab, privacy.AddRemove, 30)
	o := openOracle(t, cfg)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	for range 20 {
		b, err := o.Batch(context.Background(), sample.Poisson{Rate: 1e-9}, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(o.local.listed) != 0 {
			t.Fatal("a row was drawn; take another seed")
		}
		g, err := b.Grad(q, make([]float64, 3))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range g {
			if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("an empty batch answers %v", g)
			}
		}
	}
}
