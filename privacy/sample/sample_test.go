package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"pgregory.net/rapid"
)

// TestPoissonLaw draws many batches from a small table and checks, for each rate: how
// often each row is taken, how often each pair of rows is taken together, and the mean and
// variance of the size. Each check is a normal deviate or a sum of squares of such. The
// limits are 5.5 standard deviations for the first (one seed in 2·10⁷ each) and, for a
// chi-square of k degrees of freedom, k + 7.75·√k + 30, which by the bound of Laurent and
// Massart, P(χ² > k + 2√(kx) + 2x) ≤ e⁻ˣ with x = 15, one seed in 3·10⁶ passes.
func TestPoissonLaw(t *testing.T) {
	const n, draws = 24, 40_000
	for _, q := range []float64{0.02, 0.3, 0.95} {
		src := noise.NewSeeded(1, "poisson", math.Float64bits(q))
		p := Poisson{q}
		var rows []int32
		var single [n]float64
		var pair [n][n]float64
		var sizes, squares float64
		for range draws {
			rows, _ = p.Draw(rows, n, src)
			for i, a := range rows {
				single[a]++
				for _, b := range rows[:i] {
					pair[b][a]++
				}
			}
			size := float64(len(rows)) - p.Size(n)
			sizes += size
			squares += size * size
		}
		limit := func(k float64) float64 { return k + 7.75*math.Sqrt(k) + 30 }
		chi := 0.0
		for _, c := range single {
			chi += (c - draws*q) * (c - draws*q) / (draws * q * (1 - q))
		}
		if chi > limit(n) {
			t.Errorf("rate %v: chi-square of the rows is %.1f with %d degrees of freedom", q, chi, n)
		}
		// The covariance of two indicators, Σ(x−q)(y−q), has mean 0 and variance
		// draws·(q(1−q))², and those of different pairs are uncorrelated.
		chi = 0
		for a := range n {
			for b := a + 1; b < n; b++ {
				cov := pair[a][b] - q*(single[a]+single[b]) + draws*q*q
				chi += cov * cov / (draws * q * (1 - q) * q * (1 - q))
			}
		}
		if k := float64(n * (n - 1) / 2); chi > limit(k) {
			t.Errorf("rate %v: chi-square of the pairs is %.1f with %v degrees of freedom", q, chi, k)
		}
		v := n * q * (1 - q)
		if d := sizes / draws; math.Abs(d) > 5.5*math.Sqrt(v/draws) {
			t.Errorf("rate %v: the mean size is off by %v", q, d)
		}
		// Fourth central moment of a binomial: v(1 + 3v − 6q(1−q)).
		spread := math.Sqrt((v*(1+3*v-6*q*(1-q)) - v*v) / draws)
		if d := squares/draws - v; math.Abs(d) > 5.5*spread {
			t.Errorf("rate %v: the variance of the size is off by %v; allowed %v", q, d, 5.5*spread)
		}
	}
}

// At the size of a real table, each of 64 stretches of rows is taken equally often, the last
// rows too. The chi-square limit is that of TestPoissonLaw.
func TestPoissonReachesTheEnd(t *testing.T) {
	const n, draws, cells = 32561, 2000, 64
	src := noise.NewSeeded(2, "poisson", 0)
	p := Poisson{256.0 / n}
	var count [cells]float64
	var rows []int32
	for range draws {
		rows, _ = p.Draw(rows, n, src)
		for _, r := range rows {
			count[int(r)*cells/n]++
		}
	}
	chi := 0.0
	for i, c := range count {
		width := float64(ceilDiv((i+1)*n, cells) - ceilDiv(i*n, cells))
		want := draws * width * p.Rate
		chi += (c - want) * (c - want) / (want * (1 - p.Rate))
	}
	if chi > cells+7.75*math.Sqrt(cells)+30 {
		t.Errorf("chi-square of the stretches is %.1f with %d degrees of freedom", chi, cells)
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// The batch of a table's first rows is the first rows of the table's batch: a shard draws no further than its own rows.
func TestPoissonOfFirstRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rate := rapid.IntRange(0, 3000).Draw(t, "n"), rapid.SampledFrom([]float64{1e-4, 0.01, 0.3, 0.9, 1}).Draw(t, "rate")
		first, key := rapid.IntRange(0, n).Draw(t, "first"), noise.Key{byte(rapid.IntRange(0, 255).Draw(t, "key"))}
		draw := func(n int) (rows []int32, all bool) {
			var src noise.Source
			key.Reset(&src)
			return Poisson{rate}.Draw(nil, n, &src)
		}
		rows, all := draw(n)
		some, every := draw(first)
		end, _ := slices.BinarySearch(rows, int32(first))
		if all != every || !slices.Equal(some, rows[:end]) {
			t.Fatalf("of %d rows %v, of the first %d of them %v", n, rows, first, some)
		}
	})
}

func TestRowsAscend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(
			rapid.Float64Range(0x1p-40, 1),
			rapid.SampledFrom([]float64{5e-324, 1e-300, 1e-12, 0.5, 1 - 0x1p-53, 1}),
		).Draw(t, "rate")
		n := rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(0, 5000)).Draw(t, "n")
		if rate < 0x1p-30 {
			n = rapid.IntRange(0, maxRows).Draw(t, "big n")
		}
		dst := make([]int32, rapid.IntRange(0, 10).Draw(t, "len"))
		rows, all := Poisson{rate}.Draw(dst, n, noise.NewSeeded(rapid.Uint64().Draw(t, "seed"), "", 0))
		if all != (rate == 1) || all && rows != nil {
			t.Fatalf("rate %v: all is %v with %d rows", rate, all, len(rows))
		}
		last := int32(-1)
		for _, r := range rows {
			if r <= last || int(r) >= n {
				t.Fatalf("rate %v, n %d: row %d follows %d", rate, n, r, last)
			}
			last = r
		}
	})
}

func TestClaimIsDeed(t *testing.T) {
	inner := privacy.Gaussian{Sigma: 2}
	for _, c := range []struct {
		s    Sampler
		want privacy.Event
		size float64
	}{
		{Full{}, inner, 1000},
		{Poisson{1}, inner, 1000},
		{Poisson{0.25}, privacy.PoissonSampled{Rate: 0.25, Of: inner}, 250},
		{Fixed{25, 1000}, privacy.FixedSampled{M: 25, N: 1000, Of: inner}, 25},
		{Fixed{1000, 1000}, inner, 1000},
	} {
		if got := c.s.Event(inner); !privacy.Equal(got, c.want) {
			t.Errorf("%#v claims %v; want %v", c.s, got, c.want)
		}
		if got := c.s.Size(1000); got != c.size {
			t.Errorf("%#v: size is %v; want %v", c.s, got, c.size)
		}
	}
	if rows, all := (Full{}).Draw(nil, 10, nil); !all || rows != nil {
		t.Errorf("Full drew %v, %v", rows, all)
	}
	if rows, all := (Poisson{1}).Draw(nil, 10, nil); !all || rows != nil {
		t.Errorf("rate 1 drew %v, %v", rows, all)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		s   Sampler
		adj privacy.Adjacency
		ok  bool
	}{
		{Full{}, privacy.AddRemove, true}, {Full{}, privacy.ReplaceOne, true}, {Full{}, 0, false},
		{Poisson{0.5}, privacy.AddRemove, true}, {Poisson{0.5}, privacy.ReplaceOne, true}, {Poisson{0.5}, 0, false},
		{Poisson{1}, privacy.AddRemove, true}, {Poisson{1}, privacy.ReplaceOne, true}, {Poisson{1}, 7, false},
		{Poisson{}, privacy.AddRemove, false}, {Poisson{-1}, privacy.AddRemove, false},
		{Fixed{3, 10}, privacy.ReplaceOne, true}, {Fixed{3, 10}, privacy.AddRemove, false}, {Fixed{3, 10}, 0, false},
		{Fixed{10, 10}, privacy.ReplaceOne, true}, {Fixed{10, 10}, privacy.AddRemove, false},
		{Fixed{}, privacy.ReplaceOne, false}, {Fixed{0, 5}, privacy.ReplaceOne, false}, {Fixed{6, 5}, privacy.ReplaceOne, false},
		{Fixed{-1, 5}, privacy.ReplaceOne, false}, {Fixed{1, maxRows + 1}, privacy.ReplaceOne, false},
		{Poisson{1.5}, privacy.AddRemove, false}, {Poisson{math.NaN()}, privacy.AddRemove, false},
	} {
		if err := c.s.Check(c.adj); (err == nil) != c.ok {
			t.Errorf("%#v under %v: %v", c.s, c.adj, err)
		}
	}
}

func TestDrawPanics(t *testing.T) {
	tooMany := maxRows
	tooMany++
	for _, f := range []func(){
		func() { Poisson{}.Draw(nil, 1, noise.NewSeeded(1, "", 0)) },
		func() { Poisson{math.NaN()}.Draw(nil, 1, noise.NewSeeded(1, "", 0)) },
		func() { Poisson{0.5}.Draw(nil, -1, noise.NewSeeded(1, "", 0)) },
		func() { Poisson{0.5}.Draw(nil, tooMany, noise.NewSeeded(1, "", 0)) },
		func() { Full{}.Draw(nil, tooMany, nil) },
		func() { Fixed{}.Draw(nil, 0, noise.NewSeeded(1, "", 0)) },
		func() { Fixed{3, 10}.Draw(nil, 11, noise.NewSeeded(1, "", 0)) },
		func() { Fixed{10, 10}.Draw(nil, 9, noise.NewSeeded(1, "", 0)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}

func TestDrawReusesMemory(t *testing.T) {
	src := noise.NewSeeded(1, "", 0)
	dst := make([]int32, 0, 1000)
	if n := testing.AllocsPerRun(100, func() {
		rows, _ := Poisson{0.05}.Draw(dst, 1000, src)
		if len(rows) > 0 && &rows[0] != &dst[:1][0] {
			t.Error("rows are not in dst")
		}
	}); n != 0 {
		t.Errorf("Draw allocates %v times", n)
	}
}

func BenchmarkPoisson(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"n=32561", 32561}, {"n=1e7", 10_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			src := noise.NewSeeded(1, "", 0)
			p := Poisson{256 / float64(c.n)}
			rows := make([]int32, 0, 1000)
			for b.Loop() {
				rows, _ = p.Draw(rows, c.n, src)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/row")
		})
	}
}
