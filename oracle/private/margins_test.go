package private

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"pgregory.net/rapid"
)

// marginConfig is of a logistic model for one margin, otherwise of softmax with that many classes.
func marginConfig(t testing.TB, rows []row, margins int, sparse bool, adj privacy.Adjacency) Config {
	t.Helper()
	cfg := config(t, table(rows, max(2, margins), sparse), adj, len(rows))
	cfg.Facts.Calibrated, cfg.Facts.OneMargin = true, margins == 1
	if margins > 1 {
		m, err := model.New("softmax", model.Options{Dim: cfg.Table.Dim, Classes: margins, NormBound: 1})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Model, cfg.Facts.Dim, cfg.Facts.Classes = m, m.Dim(), margins
	}
	return cfg
}

// classed are random rows of that many classes.
func classed(rnd *rand.Rand, n, dim, classes int) []row {
	rows := randomRows(rnd, n, dim)
	for i := range rows {
		rows[i].y = float32(rnd.IntN(classes))
	}
	return rows
}

// askMargins charges a query and asks it.
func askMargins(t testing.TB, o *Oracle, q oracle.Margins, at []float64) ([]float64, error) {
	b, err := o.Batch(t.Context(), sample.Full{}, q)
	if err != nil {
		return nil, err
	}
	return b.Margins(q, at)
}

// directMargins are the sums in float64, from the formulas.
func directMargins(rows []row, margins int, q oracle.Margins, at []float64) []float64 {
	dim := len(rows[0].x)
	w, at := at[:dim*margins], at[dim*margins:]
	shift, a, b := at[:margins], at[margins], at[margins+1:]
	sums := make([]float64, 2*(margins+1))
	if margins == 1 {
		sums = append(sums, 0)
	}
	for _, r := range rows {
		z, norm := slices.Clone(shift), 0.0
		for c := range z {
			for j, x := range r.x {
				z[c] += w[c*dim+j] * float64(x)
			}
			norm += z[c] * z[c]
		}
		u, odds, total := make([]float64, margins), make([]float64, margins), 0.0
		for c := range z {
			u[c] = z[c] * min(1, q.Bound/math.Sqrt(norm)) / q.Bound
			odds[c] = math.Exp(a*q.Bound*u[c] + b[c])
			total += odds[c]
		}
		if margins == 1 {
			p := odds[0] / (1 + odds[0])
			v := p * (1 - p)
			for k, x := range []float64{p - float64(r.y), (p - float64(r.y)) * u[0], v, v * u[0], v * u[0] * u[0]} {
				sums[k] += x
			}
			continue
		}
		mean := 0.0
		for c := range z {
			mean += odds[c] / total * u[c]
		}
		for c := range z {
			p := odds[c] / total
			slope := p
			if c == int(r.y) {
				slope--
			}
			sums[c] += slope
			sums[margins] += slope * u[c]
			sums[margins+1+c] += p * (1 - p)
			sums[2*margins+1] += p * (u[c] - mean) * (u[c] - mean)
		}
	}
	if q.Weight == 0 {
		return sums[:margins+1]
	}
	return sums
}

// TestMarginSums: without noise the sums are those of the formulas, of one margin and of several, in dense and sparse rows, with long
// margins and short ones.
func TestMarginSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 1))
	const n, dim = 2100, 4
	for _, margins := range []int{1, 2, 3, 7} {
		rows := classed(rnd, n, dim, max(2, margins))
		for _, sparse := range []bool{false, true} {
			o := openOracle(t, marginConfig(t, rows, margins, sparse, privacy.AddRemove))
			for _, q := range []oracle.Margins{{Bound: 6, Weight: 0.5}, {Bound: 0.3, Weight: 0.01}, {Bound: 1e-3}, {Bound: 50}} {
				q.Noise = mech.None{}
				at := make([]float64, dim*margins+2*margins+1)
				for j := range at {
					at[j] = 3 * rnd.NormFloat64()
				}
				got, err := askMargins(t, o, q, at)
				if err != nil {
					t.Fatal(err)
				}
				want := directMargins(rows, margins, q, at)
				if len(got) != len(want) {
					t.Fatalf("%d margins, %+v: %d numbers, want %d", margins, q, len(got), len(want))
				}
				for j := range want {
					if most := n * 0x1p-19 / q.Scale(o.Public(), j); !(math.Abs(got[j]-want[j]) <= most) {
						t.Errorf("%d margins, %+v: number %d is %v, want %v", margins, q, j, got[j], want[j])
					}
				}
			}
		}
	}
}

// TestMarginsThatAreNone: what is not charged, asked twice, of another length or not finite is refused, and so are bounds, weights, noise,
// samples, models and facts that no proof covers.
func TestMarginsThatAreNone(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 2))
	noise := mech.Gaussian{Sigma: 1}
	q := oracle.Margins{Bound: 6, Weight: 0.5, Noise: noise}
	for _, margins := range []int{1, 3} {
		cfg := marginConfig(t, classed(rnd, 20, 4, max(2, margins)), margins, false, privacy.AddRemove)
		o, at := openOracle(t, cfg), make([]float64, 4*margins+2*margins+1)
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		other := q
		other.Bound = 5
		if _, err := b.Margins(other, at); !errors.Is(err, oracle.ErrNotCharged) {
			t.Errorf("not charged: %v", err)
		}
		bad := [][]float64{nil, at[1:], append(slices.Clone(at), 0)}
		for j := range 2*margins + 1 {
			for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				a := slices.Clone(at)
				a[4*margins+j] = v
				bad = append(bad, a)
			}
		}
		for _, at := range bad {
			if a, err := b.Margins(q, at); err == nil || a != nil {
				t.Errorf("asked at %v: %v, %v", at, a, err)
			}
		}
		if _, err := b.Margins(q, at); err != nil {
			t.Error(err)
		}
		if _, err := b.Margins(q, at); !errors.Is(err, oracle.ErrNotCharged) {
			t.Errorf("asked twice: %v", err)
		}
		for _, q := range []oracle.Margins{
			{}, {Bound: 6}, {Noise: noise}, {Bound: -1, Noise: noise}, {Bound: math.NaN(), Noise: noise}, {Bound: math.Inf(1), Noise: noise},
			{Bound: 6, Weight: -0.1, Noise: noise}, {Bound: 6, Weight: 0.51, Noise: noise}, {Bound: 6, Weight: math.NaN(), Noise: noise},
			{Bound: 6, Weight: 1e-9, Noise: noise}, {Bound: 6, Noise: mech.Laplace{Scale: 1}}, {Bound: 6, Noise: mech.Gaussian{}},
			{Bound: 6, Noise: mech.Gaussian{Sigma: math.NaN()}},
		} {
			if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil {
				t.Errorf("%+v is allowed", q)
			}
		}
		if _, err := o.Batch(t.Context(), sample.Poisson{Rate: 0.5}, q); err == nil {
			t.Error("a sample is allowed")
		}
		cfg.Facts.Calibrated = false
		if _, err := openOracle(t, cfg).Batch(t.Context(), sample.Full{}, q); !errors.Is(err, errNotCalibrated) {
			t.Errorf("of a run that does not say so: %v", err)
		}
	}
	for _, name := range []string{"svm", "huber-svm"} {
		cfg := marginConfig(t, classed(rnd, 20, 4, 2), 1, false, privacy.AddRemove)
		m, err := model.New(name, model.Options{Dim: 4, Classes: 2, NormBound: 1})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Model, cfg.Facts.Dim, cfg.Facts.OneMargin = m, m.Dim(), m.Facts().OneMargin
		if _, err := New(cfg); !errors.Is(err, errNotCalibrated) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewLocal(cfg.Table, m, cfg.Facts, 1); !errors.Is(err, errNotCalibrated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSensitivityOfMargins: a record that comes, goes or is replaced moves the sums, as they are before noise, by no more than a query
// states, whatever rows and parameters are, and some by as much.
func TestSensitivityOfMargins(tb *testing.T) {
	worst := map[string]float64{}
	rapid.Check(tb, func(t *rapid.T) {
		margins := rapid.SampledFrom([]int{1, 1, 2, 3, 9}).Draw(t, "margins")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 43))
		draw := func(n int) []row {
			rows := classed(rnd, n, 2, max(2, margins))
			for i := range rows {
				switch rnd.IntN(6) {
				case 0:
					rows[i].x = []float32{0, 0}
				case 1:
					rows[i].y = []float32{-1, 0.5, 99, float32(math.NaN()), float32(math.Inf(1))}[rnd.IntN(5)]
				}
			}
			return rows
		}
		q := oracle.Margins{Bound: math.Exp(6*rnd.Float64() - 3), Weight: oracle.MostWeight * float64(rnd.IntN(2)), Noise: mech.None{}}
		at := make([]float64, 2*margins+2*margins+1)
		size := math.Exp(16*rnd.Float64() - 4)
		for j := range at {
			at[j] = size * rnd.NormFloat64()
		}
		if rnd.IntN(9) == 0 {
			at[rnd.IntN(2*margins)] = []float64{math.NaN(), math.Inf(1), 1e300}[rnd.IntN(3)]
		}
		rows, sparse := draw(2+rnd.IntN(20)), rnd.IntN(2) == 0
		sum := func(rows []row) []int64 {
			cfg := marginConfig(tb, rows, margins, sparse, privacy.AddRemove)
			return marginCounts(t, cfg, q, at, 1)
		}
		full, i := sum(rows), rnd.IntN(len(rows))
		other := slices.Clone(rows)
		other[i] = draw(1)[0]
		for adj, moved := range map[privacy.Adjacency][]int64{
			privacy.AddRemove:  sum(slices.Delete(slices.Clone(rows), i, i+1)),
			privacy.ReplaceOne: sum(other),
		} {
			square := 0.0
			for j := range full {
				square += float64(full[j]-moved[j]) * float64(full[j]-moved[j])
			}
			facts := oracle.Public{Classes: max(2, margins), OneMargin: margins == 1, Adjacency: adj}
			part := math.Sqrt(square) * fallUnit(1) / q.Sensitivity(facts)
			if part > 1 {
				t.Fatalf("%d margins, %v, %+v: sums differ by %v of the sensitivity", margins, adj, q, part)
			}
			name := fmt.Sprint(min(margins, 2), " ", adj)
			worst[name] = max(worst[name], part)
		}
	})
	// Rows that are predicted surely and wrongly move slopes by the most, and curvatures by nothing. In another's place, one of the other
	// class whose margin is almost as long, where the factor is large.
	const far = 1 << 12
	for _, margins := range []int{1, 2, 4} {
		q := oracle.Margins{Bound: 1, Weight: oracle.MostWeight, Noise: mech.None{}}
		at := make([]float64, 4*margins+1)
		w, offsets := at, at[3*margins+1:]
		w[0], at[3*margins], offsets[0] = 1, far, -far*(1-0x1p-7)
		one, other := row{[]float32{1, 0}, 0}, row{[]float32{1 - 0x1p-6, 0}, 1}
		if margins > 1 {
			one.y, other.y = 1, 0
			w[2], offsets[1], q.Bound = -1, -offsets[0], math.Sqrt2
			for c := 2; c < margins; c++ {
				offsets[c] = -1e6
			}
		}
		sum := func(r row) []int64 {
			return marginCounts(tb, marginConfig(tb, []row{r}, margins, false, privacy.AddRemove), q, at, 1)
		}
		first, second := sum(one), sum(other)
		alone, between := 0.0, 0.0
		for j := range first {
			alone += float64(first[j]) * float64(first[j])
			between += float64(first[j]-second[j]) * float64(first[j]-second[j])
		}
		facts := oracle.Public{Classes: max(2, margins), OneMargin: margins == 1, Adjacency: privacy.AddRemove}
		if part := math.Sqrt(alone) * fallUnit(1) / q.Sensitivity(facts); !(part > 0.98 && part <= 1) {
			tb.Errorf("%d margins: a record moves the sums by %v of the sensitivity", margins, part)
		}
		facts.Adjacency = privacy.ReplaceOne
		if part := math.Sqrt(between) * fallUnit(1) / q.Sensitivity(facts); !(part > 0.98 && part <= 1) {
			tb.Errorf("%d margins: a record in another's place moves the sums by %v of the sensitivity", margins, part)
		}
	}
	tb.Log(worst)
}

// marginCounts are the exact sums over a table, in their unit.
func marginCounts(t interface{ Fatal(...any) }, cfg Config, q oracle.Margins, at []float64, workers int) []int64 {
	s, err := NewLocal(cfg.Table, cfg.Model, cfg.Facts, workers)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.whole = true
	sum := sum.Sum{Of: sum.Margins, Unit: fallUnit(1), Margins: q, W: at[:cfg.Facts.Dim], At: at[cfg.Facts.Dim:]}
	if err := s.Sum(context.Background(), &sum); err != nil {
		t.Fatal(err)
	}
	counts := make([]int64, sum.Len())
	s.Take(counts, 0)
	return counts
}

// TestMarginsOfAnyOrder: the sums are the same, bit for bit, in any order of rows, by any number of workers and in dense or sparse rows.
func TestMarginsOfAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 3))
	for _, margins := range []int{1, 3} {
		rows := classed(rnd, 5000, 6, max(2, margins))
		q := oracle.Margins{Bound: 2, Weight: 0.5, Noise: mech.None{}}
		at := make([]float64, 6*margins+2*margins+1)
		for j := range at {
			at[j] = 2 * rnd.NormFloat64()
		}
		var want []int64
		for k := range 6 {
			got := marginCounts(t, marginConfig(t, rows, margins, k%2 == 1, privacy.AddRemove), q, at, 1+k%3)
			if k == 0 {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d margins, order %d: %v, want %v", margins, k, got, want)
			}
			rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		}
	}
}

// TestMarginNoise: each number has noise of the deviation that is charged, over the weight of its own.
func TestMarginNoise(t *testing.T) {
	// 2,000 draws: the relative deviation of an estimate is 0.016; 5 of them fail with probability 6e-7, of 26 estimates 1.5e-5, and
	// the seed is fixed.
	const draws, sigma = 2000, 3
	for _, margins := range []int{1, 3} {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			rows := slices.Repeat([]row{{x: []float32{0, 0}}}, 9)
			cfg := marginConfig(t, rows, margins, false, adj)
			journal := &memo{}
			cfg.Journal = journal
			o, at := openOracle(t, cfg), make([]float64, 4*margins+1)
			q := oracle.Margins{Bound: 6, Weight: 0.25, Noise: mech.Gaussian{Sigma: sigma}}
			exact := directMargins(rows, margins, q, at)
			squares := make([]float64, len(exact))
			for range draws {
				got, err := askMargins(t, o, q, at)
				if err != nil {
					t.Fatal(err)
				}
				for j, v := range got {
					squares[j] += (v - exact[j]) * (v - exact[j]) / draws
				}
			}
			norm := map[int]float64{1: math.Sqrt2, 3: 2}[margins]
			if adj == privacy.ReplaceOne {
				norm *= 2
			}
			for j, square := range squares {
				want := sigma * norm
				if margins == 3 && j == 7 {
					want *= 2 // s had the weight ½, v the weight 1
				}
				if got := math.Sqrt(square); math.Abs(got/want-1) > 0.08 {
					t.Errorf("%d margins, %v: number %d has noise of deviation %v, want %v", margins, adj, j, got, want)
				}
			}
			if e := journal.charged[len(journal.charged)-1]; !privacy.Equal(e, privacy.Gaussian{Sigma: sigma}) || len(journal.charged) != draws {
				t.Errorf("charged %v, %d times", e, len(journal.charged))
			}
		}
	}
}

// TestMarginsReplayed: a recorded answer is that of the run, and one of another length is refused.
func TestMarginsReplayed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 4))
	cfg := marginConfig(t, classed(rnd, 30, 2, 3), 3, false, privacy.AddRemove)
	q, at := oracle.Margins{Bound: 6, Weight: 0.5, Noise: mech.Gaussian{Sigma: 1}}, make([]float64, 13)
	want, err := askMargins(t, openOracle(t, cfg), q, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range [][]float64{want, want[1:]} {
		o := &replay.Oracle{Facts: cfg.Facts, Next: replay.Each([]replay.Released{{Event: q.Event(), Answers: [][]float64{answer}}})}
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Margins(q, at[1:]); err == nil {
			t.Error("a replay answers at too few numbers")
		}
		got, err := b.Margins(q, at)
		if fits := len(answer) == len(want); fits != (err == nil) || fits && !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}
