package private

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// anyCenter is a point as Public.Center makes it, of any length up to the bound.
func anyCenter(rnd *rand.Rand, dim int) []float64 {
	m := make([]float64, dim)
	for j := range m {
		m[j] = rnd.NormFloat64() * math.Exp2(float64(rnd.IntN(8)-6))
	}
	oracle.Public{NormBound: 1}.Center(m)
	return m
}

// centeredRows are rows of any kind around a center: random ones, the center itself, and points next to and opposite to it.
func centeredRows(rnd *rand.Rand, n int, center []float64) []row {
	rows := randomRows(rnd, n, len(center))
	for i := range rows {
		far, step := 1.0, 0.0
		switch rnd.IntN(5) {
		case 0:
		case 1:
			far = -1
		case 2:
			step = testUnit * float64(1+rnd.IntN(1<<rnd.IntN(18)))
		default:
			continue
		}
		square := 0.0
		for j, m := range center {
			rows[i].x[j] = float32(far * m)
			square += m * m
		}
		if j := rnd.IntN(len(center)); square < 0.9 {
			rows[i].x[j] += float32(step * 0.2)
			rows[i].x[j] = float32(math.Trunc(float64(rows[i].x[j])/testUnit) * testUnit)
		}
	}
	return rows
}

// around is the exact sum of gradients of rows less a center.
func (s *Local) around(w, center []float64, rule clip.Rule, list []int32, all bool) (unit float64, counts []int64, err error) {
	if err := s.setCenter(center, w); err != nil {
		return 0, nil, err
	}
	return s.sum(w, rule, oracle.Public{Rows: 60000}, list, all)
}

// TestCenteredRowIsWithinTheBound: one row adds a whole number of coefficients times x − m, of norm up to C, whatever the
// center, the row and the parameters are. Sums are those of their rows, for any storage, order, tiles and workers.
func TestCenteredRowIsWithinTheBound(t *testing.T) {
	most := 0.0
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 22))
		features := 1 + rnd.IntN(7)
		m, classes := anyKind(t, rnd, features)
		for !m.Facts().Centered {
			m, classes = anyKind(t, rnd, features)
		}
		center := anyCenter(rnd, features)
		rows := centeredRows(rnd, 1+rnd.IntN(60), center)
		for i := range rows {
			rows[i].y = float32(rnd.IntN(max(classes, 1) + 1))
		}
		w, bound := anyLine(rnd, m.Dim(), 1).From, math.Exp2(rnd.Float64()*40-30)
		open := func(rows []row, workers int) *Local {
			s := new(Local)
			s.open(table(rows, max(2, classes), rapid.Bool().Draw(t, "sparse")), m, workers)
			s.split, s.tile = 1+rnd.IntN(20), 1+rnd.IntN(20)
			return s
		}
		total := make([]int64, m.Dim())
		for i := range rows {
			s := open(rows[i:i+1], 1)
			unit, counts, err := s.around(w, center, clip.Norm{C: bound}, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			size, _ := sizeOf(counts, unit, 2).Float64()
			if most = max(most, size/bound); size > bound {
				t.Fatalf("a row adds %v of the bound %v", size, bound)
			}
			// counts = a_k·(x − m) over the unit of rows, with one whole number a_k for each margin.
			for counts := range slices.Chunk(counts, features) {
				var first, at *big.Int
				for j, c := range counts {
					d := big.NewInt(int64(float64(rows[i].x[j])/testUnit) - int64(center[j]/testUnit))
					if first == nil && d.Sign() != 0 {
						first, at = d, big.NewInt(c)
					}
					if first == nil && c != 0 || first != nil && new(big.Int).Mul(big.NewInt(c), first).Cmp(new(big.Int).Mul(at, d)) != 0 {
						t.Fatalf("a row adds %v, which is not along it less the center", counts)
					}
				}
			}
			for j, c := range counts {
				total[j] += c
			}
		}
		rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		s := open(rows, 1+rnd.IntN(3))
		defer s.Close()
		if _, counts, err := s.around(w, center, clip.Norm{C: bound}, nil, true); err != nil || !slices.Equal(counts, total) {
			t.Fatalf("the sum is %v, that of its rows %v: %v", counts, total, err)
		}
		list := make([]int32, len(rows))
		for i := range list {
			list[i] = int32(i)
		}
		if _, counts, err := s.around(w, center, clip.Norm{C: bound}, list, false); err != nil || !slices.Equal(counts, total) {
			t.Fatalf("the sum of listed rows is %v, that of all %v: %v", counts, total, err)
		}
	})
	if t.Logf("the largest part of a row is %.7f of the bound", most); most < 0.99 {
		t.Error("no row came near the bound: the test has no force")
	}
}

// TestCenteredNormsAreKept: a table that keeps the norms of rows less the center from pass to pass has the sums of one that has made no pass
// before, at any parameters, with another center, and of lists of rows.
func TestCenteredNormsAreKept(t *testing.T) {
	const dim = apartDim
	rnd := rand.New(rand.NewPCG(22, 4))
	m, err := model.New("logistic", model.Options{Dim: dim, Classes: 2, NormBound: 1})
	if err != nil {
		t.Fatal(err)
	}
	centers := [][]float64{anyCenter(rnd, dim), anyCenter(rnd, dim)}
	rows := centeredRows(rnd, 2*data.BlockRows+77, centers[0])
	var list []int32
	for i := range rows {
		rows[i].y = float32(rnd.IntN(2))
		if i%3 == 0 {
			list = append(list, int32(i))
		}
	}
	open := func() *Local {
		s := new(Local)
		s.open(table(rows, 2, false), m, 2)
		t.Cleanup(s.Close)
		s.whole = true
		return s
	}
	keeps := open()
	for i, center := range []int{0, 0, 1, 0, 0, 1, 1} {
		w := anyLine(rnd, dim, 1).From
		all := i != 4
		_, counts, err := keeps.around(w, centers[center], clip.Norm{C: 0.1}, list, all)
		if err != nil {
			t.Fatal(err)
		}
		if _, fresh, err := open().around(w, centers[center], clip.Norm{C: 0.1}, list, all); err != nil || !slices.Equal(counts, fresh) {
			t.Errorf("pass %d: the sum is %v, without what is kept %v: %v", i, counts, fresh, err)
		}
	}
	if slices.Contains(keeps.apart, 0) {
		t.Error("norms of some rows are not kept")
	}
}

// TestCenteredSumIsThatOfMovedRows: within what coefficients are cut by, 2⁻¹⁷ of the clip norm for each row, the sum is that over a table of rows less the
// center.
func TestCenteredSumIsThatOfMovedRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 3))
	for _, dim := range []int{1, 7, 40} {
		center := anyCenter(rnd, dim)
		for j := range center {
			center[j] = math.Trunc(center[j]/4/testUnit) * testUnit
		}
		rows := randomRows(rnd, 3000, dim)
		moved := make([]row, len(rows))
		for i, r := range rows {
			moved[i] = row{slices.Clone(r.x), r.y}
			for j := range r.x {
				rows[i].x[j] = float32(math.Trunc(float64(r.x[j])/2/testUnit) * testUnit)
				moved[i].x[j] = rows[i].x[j] - float32(center[j])
			}
		}
		w := anyLine(rnd, dim, 1).From
		for j := range w {
			w[j] = rnd.NormFloat64()
		}
		want := clippedSum(t, table(moved, 2, false), w, 0.3, 1)
		for _, sparse := range []bool{false, true} {
			var s Local
			s.open(table(rows, 2, sparse), logistic(t, dim), 1)
			unit, counts, err := s.around(w, center, clip.Norm{C: 0.3}, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			for j, c := range counts {
				if got := float64(c) * unit; math.Abs(got-want[j]) > 3000*0.3*0x1p-16 {
					t.Errorf("%d features, sparse %t: number %d is %v, over moved rows %v", dim, sparse, j, got, want[j])
				}
			}
		}
	}
}

// TestCenteredNeighbors: rounded sums of hostile neighbors differ by at most the sensitivity, under both relations.
func TestCenteredNeighbors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 23))
		dim := 1 + rnd.IntN(6)
		center, rule := anyCenter(rnd, dim), clip.Norm{C: math.Exp2(rnd.Float64()*40 - 30)}
		m, _ := model.New(rapid.SampledFrom([]string{"logistic", "svm", "huber-svm", "softmax"}).Draw(t, "model"), model.Options{Dim: dim, Classes: 2, NormBound: 1})
		rows, w := centeredRows(rnd, 2+rnd.IntN(40), center), anyLine(rnd, m.Dim(), 1).From
		ofRows, grid := rapid.Bool().Draw(t, "of rows"), 0.0
		if ofRows && rapid.Bool().Draw(t, "in L1") {
			rule.P = 1
		}
		numbers := m.Dim()
		if ofRows {
			numbers = dim
		}
		rounded := func(rows []row) []int64 {
			tab := table(rows, 2, rapid.Bool().Draw(t, "sparse"))
			tab.Dim = dim
			s := Local{ofRows: ofRows}
			s.open(tab, m, 1)
			at := center
			if ofRows {
				at = nil
			}
			unit, counts, err := s.around(w, at, rule, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			counts = counts[:numbers]
			grid = gridOf(unit, rule.C, numbers, rule.Norm())
			mech.RoundShift(counts, shiftOf(unit, grid))
			return counts
		}
		full, i := rounded(rows), rnd.IntN(len(rows))
		within(t, rule, privacy.AddRemove, grid, full, rounded(slices.Delete(slices.Clone(rows), i, i+1)))
		other := slices.Clone(rows)
		other[i] = centeredRows(rnd, 1, center)[0]
		within(t, rule, privacy.ReplaceOne, grid, full, rounded(other))
	})
}

// TestCenteredSumsAreTheSameOnAllMachines: bits that do not depend on kernels; SOTTO_KERN forces others.
func TestCenteredSumsAreTheSameOnAllMachines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 5))
	sum := sha256.New()
	for k := range 60 {
		dim := 1 + rnd.IntN(60)
		center := anyCenter(rnd, dim)
		rows := centeredRows(rnd, 1+rnd.IntN(1500), center)
		var s Local
		s.open(table(rows, 2, k%2 == 1), logistic(t, dim), 1)
		w := make([]float64, dim)
		for j := range w {
			w[j] = float64(rnd.IntN(17)-8) / 4 // margins are exact, so that slopes are the same
		}
		unit, counts, err := s.around(w, center, clip.Norm{C: 0.4}, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(sum, unit, counts)
	}
	const want = "07b634257c46e240"
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != want {
		t.Errorf("the sums have the digest %s, not %s", got, want)
	}
}

// centeredConfig is config for a run that centers rows.
func centeredConfig(t testing.TB, tab *data.Table, adj privacy.Adjacency, rows int) Config {
	cfg := config(t, tab, adj, rows)
	cfg.Facts.Centered, cfg.Facts.OneMargin = true, true
	return cfg
}

// TestMeanOfRows: the mean row without noise is that of the rows, long ones scaled down to the bound; with noise, it has the
// deviation that is charged.
func TestMeanOfRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 6))
	const n, dim = 2500, 5
	rows := randomRows(rnd, n, dim)
	for _, sparse := range []bool{false, true} {
		for _, bound := range []float64{1, 0.25} {
			o := openOracle(t, centeredConfig(t, table(rows, 2, sparse), privacy.AddRemove, n))
			q := oracle.Mean{Clip: bound, Noise: mech.None{}}
			b, err := o.Batch(t.Context(), sample.Full{}, q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.Mean(q)
			if err != nil {
				t.Fatal(err)
			}
			for j := range got {
				want := 0.0
				for _, r := range rows {
					want += float64(r.x[j]) * bound / n // all have a norm of about 1
				}
				if math.Abs(got[j]-want) > 0x1p-16 {
					t.Errorf("bound %v, sparse %t: number %d of the mean is %v, want %v", bound, sparse, j, got[j], want)
				}
			}
			if _, err := b.Mean(q); err == nil {
				t.Error("a second answer to one charge")
			}
		}
	}
	// 40,000 draws: the relative sd of the estimate is 0.0035 of Gaussian noise, 0.0056 of Laplace noise; 5 of them fail with
	// probability 6e-7, and the seed is fixed.
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, law := range []struct {
			noise     mech.Additive
			deviation float64
		}{{mech.Gaussian{Sigma: 3}, 0.0175}, {mech.Laplace{Scale: 3 / math.Sqrt2}, 0.028}} {
			const wide, few = 2000, 50
			o := openOracle(t, centeredConfig(t, table(slices.Repeat([]row{{x: make([]float32, wide)}}, few), 2, false), adj, few))
			q, square := oracle.Mean{Clip: 0.5, Noise: law.noise}, 0.0
			for range 20 {
				b, err := o.Batch(t.Context(), sample.Full{}, q)
				if err != nil {
					t.Fatal(err)
				}
				m, err := b.Mean(q)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range m {
					square += v * v / (20 * wide)
				}
			}
			want := 3 * 0.5 / few
			if adj == privacy.ReplaceOne {
				want *= 2
			}
			if got := math.Sqrt(square); math.Abs(got/want-1) > law.deviation {
				t.Errorf("%v, %T: noise of a mean row has standard deviation %v, want %v", adj, law.noise, got, want)
			}
		}
	}
}

// TestMeanInL1: with Laplace noise rows are scaled down to the bound in the L1 norm; the noise is too small to see.
func TestMeanInL1(t *testing.T) {
	const n, dim, bound = 2500, 5, 0.25
	rows := randomRows(rand.New(rand.NewPCG(22, 7)), n, dim)
	want := make([]float64, dim)
	for _, r := range rows {
		size := 0.0
		for _, v := range r.x {
			size += math.Abs(float64(v))
		}
		for j, v := range r.x {
			want[j] += float64(v) * min(1, bound/size) / n
		}
	}
	for _, sparse := range []bool{false, true} {
		o := openOracle(t, centeredConfig(t, table(rows, 2, sparse), privacy.AddRemove, n))
		q := oracle.Mean{Clip: bound, Noise: mech.Laplace{Scale: 1e-3}}
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Mean(q)
		if err != nil {
			t.Fatal(err)
		}
		for j := range got {
			if math.Abs(got[j]-want[j]) > 0x1p-16 {
				t.Errorf("sparse %t: number %d of the mean is %v, want %v", sparse, j, got[j], want[j])
			}
		}
	}
}

// A center that is no point of the rows' grid within their bound ends the batch, and releases nothing; what public values refuse costs
// nothing.
func TestCentersThatAreNone(t *testing.T) {
	cfg := centeredConfig(t, table([]row{{x: []float32{0.5, 0.25}, y: 1}}, 2, false), privacy.AddRemove, 1)
	meter, journal := cfg.Meter.(*free), cfg.Journal.(*memo)
	o := openOracle(t, cfg)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}, Centered: true}
	for _, at := range [][]float64{{0, 0}, {0, 0, 0.5}, {0, 0, 1, 0.5}, {0, 0, math.NaN(), 0}, {0, 0, math.Inf(1), 0}, {0, 0, testUnit / 2, 0}} {
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := b.Grad(q, at); err == nil {
			t.Errorf("asked at %v: %v", at, g)
		}
	}
	if len(journal.released) > 0 {
		t.Errorf("released %v", journal.released)
	}
	charged := meter.charges
	for _, q := range []oracle.Query{
		oracle.Grad{Clip: clip.Value{C: 1}, Noise: mech.Gaussian{Sigma: 1}, Centered: true},
		oracle.Grad{Clip: clip.Lipschitz{L: 1}, Noise: mech.Gaussian{Sigma: 1}, Centered: true},
		oracle.Grad{Clip: clip.None{}, Noise: mech.None{}, Centered: true},
		oracle.Grad{Clip: clip.Norm{C: 1, P: 1}, Noise: mech.Laplace{Scale: 1}, Centered: true},
		oracle.Mean{Noise: mech.Gaussian{Sigma: 1}},
		oracle.Mean{Clip: 1},
	} {
		if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil || meter.charges != charged {
			t.Errorf("%+v: %v, %d charges", q, err, meter.charges-charged)
		}
	}
	cfg.Model = network(t, 2, 2, "2 relu")
	cfg.Facts.Dim = cfg.Model.Dim()
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "which the model mlp") {
		t.Errorf("centered rows of a network: %v", err)
	}
}

// Nor does a step over centered rows allocate.
func TestCenteredStepAllocatesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 7))
	cfg := centeredConfig(t, table(randomRows(rnd, 3000, 6), 2, false), privacy.AddRemove, 3000)
	cfg.Journal = nowhere{}
	next, stop := pull(method.Auto{Steps: 1 << 30, Rate: 1, Center: method.CenterMean, CenterNoise: 1, Gradient: method.Gradient{Clip: 0.5, Noise: 1}}, openOracle(t, cfg))
	defer stop()
	for range 50 {
		next()
	}
	if n := testing.AllocsPerRun(100, next); n > 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
