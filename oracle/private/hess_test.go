package private

import (
	"context"
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

// bent is the exact sum of clipped Hessians, in counts of unit².
func bent(t testing.TB, m model.Model, tab *data.Table, w []float64, bound, unit float64, workers int, list []int32) []int64 {
	t.Helper()
	var s Local
	s.open(tab, m, workers)
	defer s.Close()
	return slices.Clone(s.hessian(&curvature{w: w, clip: clip.Lipschitz{L: bound}, unit: unit}, list, list == nil))
}

// curvedModel is a model that answers Hess, any of them, and labels that suit it.
func curvedModel(t interface {
	Helper()
	Fatal(...any)
}, rnd *rand.Rand, features int) (model.Model, func() float32) {
	t.Helper()
	name, classes := []string{"logistic", "huber-svm", "linear"}[rnd.IntN(3)], 2
	if name == "linear" {
		classes = 0
	}
	m, err := model.New(name, model.Options{Dim: features, Classes: classes, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m, func() float32 { return float32(rnd.IntN(max(classes, 1) + 1)) } // sometimes a class that does not exist
}

// The sum is that of h·x·xᵀ over the records, one at a time, each scaled to the bound.
func TestHessEqualsMicroBatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 1))
	for _, c := range []struct{ n, dim int }{{0, 1}, {1, 1}, {5, 3}, {1023, 8}, {1025, 9}, {3000, 54}} {
		rows, w := randomRows(rnd, c.n, c.dim), make([]float64, c.dim)
		for j := range w {
			w[j] = 2 * rnd.NormFloat64()
		}
		const bound = 0.15
		want := make([]float64, oracle.HessLen(c.dim))
		for _, r := range rows {
			z, square := 0.0, 0.0
			for j, v := range r.x {
				z += w[j] * float64(v)
				square += float64(v) * float64(v)
			}
			h := 1 / (1 + math.Exp(z)) / (1 + math.Exp(-z))
			h *= min(1, bound/(h*square))
			at := 0
			for j, a := range r.x {
				for _, b := range r.x[j:] {
					want[at] += h * float64(a) * float64(b)
					at++
				}
			}
		}
		unit := rootUnit(bound, 1000)
		got := bent(t, logistic(t, c.dim), table(rows, 2, false), w, bound, unit, 1, nil)
		for j, v := range got {
			// Each entry of a record's vector is cut by a unit at most, √C/2²⁰, its Hessian thus by 2C/2²⁰, and its
			// weight by 2⁻²⁰.
			if math.Abs(float64(v)*unit*unit-want[j]) > float64(c.n)*bound*0x1p-18 {
				t.Errorf("n=%d d=%d: entry %d is %v, one record at a time gives %v", c.n, c.dim, j, float64(v)*unit*unit, want[j])
			}
		}
	}
}

// A Hessian's sums are whole numbers that depend on no order, no storage and no number of workers.
func TestHessIsExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 1))
	for _, dim := range []int{1, 7, 21} {
		rows, w := randomRows(rnd, 9000, dim), make([]float64, dim)
		for j := range w {
			w[j] = rnd.NormFloat64()
		}
		m, unit := logistic(t, dim), rootUnit(0.2, 9000)
		want := bent(t, m, table(rows, 2, false), w, 0.2, unit, 1, nil)
		for _, workers := range []int{1, 2, 5} {
			for _, sparse := range []bool{false, true} {
				mixed := slices.Clone(rows)
				rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
				if got := bent(t, m, table(mixed, 2, sparse), w, 0.2, unit, workers, nil); !slices.Equal(got, want) {
					t.Errorf("%d workers, sparse %v: another sum", workers, sparse)
				}
			}
		}
		all := make([]int32, len(rows))
		for i := range all {
			all[i] = int32(i)
		}
		if got := bent(t, m, table(rows, 2, true), w, 0.2, unit, 2, all); !slices.Equal(got, want) {
			t.Error("as a list: another sum")
		}
	}
}

// Every model, both relations, bounds over 60 powers of two: what the noise is added to never moves by more
// in the Frobenius norm than the sensitivity that the noise is scaled to, grid and all, and sometimes by nearly all of it.
func TestSensitivityOfHessians(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 1))
	worst := map[privacy.Adjacency]float64{}
	for range 1500 {
		dim, n := 1+rnd.IntN(12), 1+rnd.IntN(40)
		m, label := curvedModel(t, rnd, dim)
		rows := randomRows(rnd, n, dim)
		draw := func() row {
			r := randomRows(rnd, 1, dim)[0]
			if rnd.IntN(3) == 0 { // along an axis: two of them can be orthogonal
				clear(r.x)
				r.x[rnd.IntN(dim)] = 1
			}
			r.y = label()
			return r
		}
		for i := range rows {
			rows[i] = draw()
		}
		w, size := make([]float64, dim), []float64{0, 1, 30, 1e300}[rnd.IntN(4)]
		for j := range w {
			w[j] = size * rnd.NormFloat64()
		}
		bound := math.Exp2(60*rnd.Float64() - 50)
		i := rnd.IntN(n)
		fewer, other := slices.Delete(slices.Clone(rows), i, i+1), slices.Clone(rows)
		other[i] = draw()
		for _, c := range []struct {
			adj  privacy.Adjacency
			rows []row
		}{{privacy.AddRemove, fewer}, {privacy.ReplaceOne, other}} {
			facts := oracle.Public{Dim: dim, Rows: n, Adjacency: c.adj}
			o := &Oracle{cfg: Config{Facts: facts}}
			r, err := o.hessians(bound, false)
			if err != nil {
				t.Fatal(err)
			}
			unit, grid, sens := r.unit, r.grid, r.sens
			rounded := func(rows []row) []int64 {
				tab := table(rows, 2, rnd.IntN(2) == 0)
				tab.Dim = dim
				counts := bent(t, m, tab, w, bound, unit, 1, nil)
				mech.RoundShift(counts, r.shift)
				return counts
			}
			a, b, square, at := rounded(rows), rounded(c.rows), 0.0, 0
			for j := range dim {
				for k := j; k < dim; k++ {
					d := float64(a[at]-b[at]) * grid
					square += d * d
					if k > j {
						square += d * d
					}
					at++
				}
			}
			moved := math.Sqrt(square) / sens
			if moved > 1 {
				t.Fatalf("%s, %v, bound %v: moved by %v of the sensitivity", m.Name(), c.adj, bound, moved)
			}
			worst[c.adj] = max(worst[c.adj], moved)
		}
	}
	for adj, moved := range worst {
		if moved < 0.99 {
			t.Errorf("%v: at most %.3f of the sensitivity was ever used", adj, moved)
		}
	}
}

// The noise is that of the claim, entry by entry, and the divisor is the nominal size.
func TestHessNoise(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		const dim, rows, sigma, c = 100, 4, 3.0, 0.5
		zero := row{x: make([]float32, dim)}
		o := openOracle(t, config(t, table([]row{zero, zero, zero, zero}, 2, false), adj, rows)) // all Hessians are 0
		q := oracle.Hess{Clip: c, Noise: mech.SymmetricGaussian{Sigma: sigma}}
		var square, n [2]float64
		for range 10 {
			b, err := o.Batch(context.Background(), sample.Full{}, q)
			if err != nil {
				t.Fatal(err)
			}
			h, err := b.Hess(q, make([]float64, dim))
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for i := range dim {
				for j := i; j < dim; j++ {
					k := min(1, j-i)
					square[k] += h[at] * h[at]
					n[k]++
					at++
				}
			}
		}
		want := sigma * c / rows
		if adj == privacy.ReplaceOne {
			want *= math.Sqrt2
		}
		// 1000 and 49,500 draws: the relative sd of the estimates is .022 and .0032; 5 of them fail with
		// probability 6e-7, and the seed is fixed.
		for k, sd := range []float64{0.022, 0.0032} {
			if got := math.Sqrt(square[k] / n[k]); math.Abs(got/want-1) > 5*sd {
				t.Errorf("%v: noise has standard deviation %v, want %v", adj, got, want)
			}
			want /= math.Sqrt2
		}
	}
}

// One batch answers a gradient and a Hessian, and replaying the record gives the same.
func TestHessAndGradientOfOneBatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(24, 1))
	tab := table(randomRows(rnd, 300, 5), 2, false)
	cfg := config(t, tab, privacy.AddRemove, 300)
	o := openOracle(t, cfg)
	g := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	h := oracle.Hess{Clip: 0.25, Noise: mech.SymmetricGaussian{Sigma: 2}}
	off := oracle.Hess{Clip: 0.25, Off: true}
	w := []float64{1, 0, -1, 2, 0.5}
	s := sample.Poisson{Rate: 0.5}
	ask := func(o oracle.Oracle) (answers [][]float64) {
		b, err := o.Batch(context.Background(), s, g, h, off)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []oracle.Hess{h, off} {
			a, err := b.Hess(q, w)
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, slices.Clone(a))
		}
		a, err := b.Grad(g, w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Hess(h, w); err == nil {
			t.Error("a Hessian was answered twice")
		}
		return append(answers, slices.Clone(a))
	}
	live := ask(o)
	memo := cfg.Journal.(*memo)
	if want := s.Event(privacy.Composed{privacy.Gaussian{Sigma: 1}, privacy.Gaussian{Sigma: 2}, mech.None{}.Event()}); !privacy.Equal(memo.charged[0], want) {
		t.Errorf("charged %v, want %v", memo.charged[0], want)
	}
	again := ask(&replay.Oracle{Facts: cfg.Facts, Next: replay.Each([]replay.Released{{Event: memo.charged[0], Answers: memo.released[0]}})})
	if !slices.EqualFunc(live, again, slices.Equal) {
		t.Error("the record does not replay")
	}
	full, err := oracle.Symmetric(live[1], 5)
	if err != nil || full[1*5+3] != live[1][7] || full[3*5+1] != live[1][7] || full[24] != live[1][14] {
		t.Errorf("unpacked %v of %v: %v", full, live[1], err)
	}
	if _, err := oracle.Symmetric(live[1], 4); err == nil {
		t.Error("unpacked to another size")
	}
}

// What cannot be answered is refused before anything is charged.
func TestHessRefuses(t *testing.T) {
	fine := mech.SymmetricGaussian{Sigma: 1}
	for _, c := range []struct {
		name string
		q    oracle.Hess
	}{
		{"logistic", oracle.Hess{Noise: fine}},
		{"logistic", oracle.Hess{Clip: math.Inf(1), Noise: fine}},
		{"logistic", oracle.Hess{Clip: math.NaN(), Off: true}},
		{"logistic", oracle.Hess{Clip: 1}},
		{"logistic", oracle.Hess{Clip: 1e-300, Noise: fine}},
		{"logistic", oracle.Hess{Clip: 1e300, Noise: fine}},
		{"logistic", oracle.Hess{Clip: 1, Noise: mech.SymmetricGaussian{Sigma: 1e14}}},
		{"svm", oracle.Hess{Clip: 1, Noise: fine}},
		{"softmax", oracle.Hess{Clip: 1, Noise: fine}},
	} {
		tab := table(randomRows(rand.New(rand.NewPCG(5, 9)), 30, 3), 2, false)
		cfg := config(t, tab, privacy.AddRemove, 30)
		m, err := model.New(c.name, model.Options{Dim: 3, Classes: 2, NormBound: 1})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Model, cfg.Facts.Dim = m, m.Dim()
		o := openOracle(t, cfg)
		if _, err := o.Batch(context.Background(), sample.Full{}, c.q); err == nil || cfg.Meter.(*free).charges != 0 {
			t.Errorf("%s, %+v: %v, after %d charges", c.name, c.q, err, cfg.Meter.(*free).charges)
		}
	}
}

// Dropped rows, and rows with figures that are no numbers, weigh nothing.
func TestHessOfRowsWithoutWeight(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(25, 9)), 30, 3)
	w, m, unit := []float64{1, 2, 3}, logistic(t, 3), rootUnit(0.2, 30)
	want := bent(t, m, table(rows[:20], 2, false), w, 0.2, unit, 1, nil)
	tab := table(rows, 2, false)
	b := tab.Blocks[0]
	b.Drop = make([]bool, 30)
	for i := 20; i < 30; i++ {
		b.Drop[i] = true
	}
	if got := bent(t, m, tab, w, 0.2, unit, 1, nil); !slices.Equal(got, want) {
		t.Error("dropped rows count")
	}
	b.Drop = nil
	for i := 20; i < 30; i++ {
		switch i % 3 {
		case 0:
			b.Y[i] = 2 // no such class
		case 1:
			b.Norm[i] = float32(math.NaN())
		default:
			b.X[3*i] = float32(math.NaN())
		}
	}
	if got := bent(t, m, tab, w, 0.2, unit, 1, nil); !slices.Equal(got, want) {
		t.Error("NaN rows count")
	}
}

// Counts fit: data.BlockRows records a float64, eight times the nominal rows an int64, each
// with all its norm in one entry.
func TestHessFits(t *testing.T) {
	for _, bound := range []float64{0x1p-30, 0.25, 0.7, 1, 3, 0x1p20 + 1} {
		for _, n := range []int{1, 1000, 1 << 17, 1<<17 + 1, 1 << 18, 1<<18 + 1, 1 << 19, 495_141, 1e7, 1 << 30} {
			root := math.Sqrt(bound) / rootUnit(bound, n)
			if root*root*data.BlockRows > 0x1p53 || root*root > 0x1p60/float64(n) || root < 0x1p13 {
				t.Errorf("bound %v, %d rows: %v units", bound, n, root)
			}
		}
	}
}

// TestAuditOfHess: a Hessian of the oracle gives away no more than its Gaussian, and more than twice the noise
// would. The one record that differs bends the loss along one axis; its neighbor lacks it, or has it along another.
// 2·10⁵ batches of each table; with random seeds each line would fail by chance at most once in 10⁶.
func TestAuditOfHess(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const draws, failure, bound, delta = 200_000, 1e-6, 0.125, 1e-2
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		claim := func(sigma float64) float64 {
			loss, err := account.Best{}.Loss(privacy.Gaussian{Sigma: sigma}, adj)
			if err != nil {
				t.Fatal(err)
			}
			return loss.Epsilon(delta)
		}
		const sigma = 1.0
		said, faulty := claim(sigma), claim(2*sigma)
		rows := []row{{x: []float32{1, 0}, y: 1}, {x: []float32{0, 0}, y: 1}}
		neighbors := rows[1:]
		if adj == privacy.ReplaceOne {
			neighbors = []row{{x: []float32{0, 1}, y: 1}, rows[1]}
		}
		q := oracle.Hess{Clip: bound, Noise: mech.SymmetricGaussian{Sigma: sigma}}
		law := func(rows []row, seed uint64) audit.Law {
			cfg := config(t, table(rows, 2, false), adj, 2)
			cfg.Journal, cfg.Streams = nowhere{}, noise.SeededStreams(seed)
			o := openOracle(t, cfg)
			return func() int {
				b, err := o.Batch(context.Background(), sample.Full{}, q)
				if err != nil {
					t.Fatal(err)
				}
				h, err := b.Hess(q, []float64{0, 0})
				if err != nil {
					t.Fatal(err)
				}
				along := h[0] * 2 // the sum's, in the direction in which the two differ
				if adj == privacy.ReplaceOne {
					along = (h[0] - h[2]) * 2 / math.Sqrt2
				}
				return max(0, min(19, int(10+3*along/bound)))
			}
		}
		got := audit.Epsilon(law(rows, 3), law(neighbors, 4), draws, 20, delta, failure)
		if got > said || got <= faulty {
			t.Errorf("%v: found ε ≥ %.4f; want above %.4f, what twice the noise would cost, and at most %.4f", adj, got, faulty, said)
		} else {
			t.Logf("%v: ε ≥ %.4f of %.4f (with twice the noise %.4f)", adj, got, said, faulty)
		}
	}
}
