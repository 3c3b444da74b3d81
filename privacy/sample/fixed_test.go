package sample

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"github.com/sottodp/sotto/privacy/noise"
	"pgregory.net/rapid"
)

// TestFixedLaw counts how often each set is drawn from a small table. The chi-square limit
// is that of TestPoissonLaw, passed by one seed in 3·10⁶ for each line.
func TestFixedLaw(t *testing.T) {
	const draws = 100_000
	for _, c := range []struct {
		m, n, sets int
		draw       func(dst []int32, m, n int, src *noise.Source) []int32
	}{
		{3, 9, 84, drawMarked}, {6, 9, 84, drawMarked}, {1, 9, 9, drawMarked}, {8, 9, 9, drawMarked}, {5, 10, 252, drawMarked},
		{3, 9, 84, sorted}, {6, 9, 84, sorted}, {5, 10, 252, sorted},
	} {
		src := noise.NewSeeded(1, "fixed", uint64(c.m))
		count := map[string]int{}
		var rows []int32
		for range draws {
			rows = c.draw(rows, c.m, c.n, src)
			count[fmt.Sprint(rows)]++
		}
		if len(count) != c.sets {
			t.Errorf("%d of %d: %d sets; want %d", c.m, c.n, len(count), c.sets)
		}
		want, chi := draws/float64(c.sets), 0.0
		for _, k := range count {
			chi += (float64(k) - want) * (float64(k) - want) / want
		}
		if k := float64(c.sets); chi > k+7.75*math.Sqrt(k)+30 {
			t.Errorf("%d of %d: chi-square of the sets is %.1f with %v degrees of freedom", c.m, c.n, chi, k-1)
		}
	}
}

func sorted(dst []int32, m, n int, src *noise.Source) []int32 {
	return drawSorted(dst, m, uint64(n), src)
}

// At the size of a real table, each of 64 stretches of rows holds as many of the batch as the
// others: a hypergeometric count, whose squares over its variance are summed. The limit is
// that of TestPoissonLaw; the counts of stretches lean against each other, which only
// lowers the sum.
func TestFixedReachesTheEnd(t *testing.T) {
	const n, draws, cells = 32561, 500, 64
	for _, m := range []int{256, 4000, 25000} {
		src := noise.NewSeeded(2, "fixed", 0)
		var count [cells]float64
		var rows []int32
		for range draws {
			rows, _ = Fixed{m, n}.Draw(rows, n, src)
			for _, r := range rows {
				count[int(r)*cells/n]++
			}
		}
		chi, p := 0.0, float64(m)/n
		for i, c := range count {
			width := float64(ceilDiv((i+1)*n, cells) - ceilDiv(i*n, cells))
			want := draws * width * p
			chi += (c - want) * (c - want) / (want * (1 - p))
		}
		if chi > cells+7.75*math.Sqrt(cells)+30 {
			t.Errorf("m %d: chi-square of the stretches is %.1f with %d degrees of freedom", m, chi, cells)
		}
	}
}

// Always M rows of the table, ascending, whatever memory is given.
func TestFixedRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 70), rapid.IntRange(1, 5000), rapid.IntRange(1, maxRows)).Draw(t, "n")
		m := rapid.IntRange(1, min(n, 5000)).Draw(t, "m")
		if n < 5000 && rapid.Bool().Draw(t, "dense") {
			m = n - m + 1
		}
		dst := make([]int32, rapid.IntRange(0, 100).Draw(t, "len"))
		for i := range dst {
			dst[i] = -1
		}
		rows, all := Fixed{m, n}.Draw(dst, n, noise.NewSeeded(rapid.Uint64().Draw(t, "seed"), "", 0))
		if all != (m == n) || all != (rows == nil) {
			t.Fatalf("%d of %d: all is %v with %d rows", m, n, all, len(rows))
		}
		if !all && len(rows) != m {
			t.Fatalf("%d of %d: %d rows", m, n, len(rows))
		}
		last := int32(-1)
		for _, r := range rows {
			if r <= last || int(r) >= n {
				t.Fatalf("%d of %d: row %d follows %d", m, n, r, last)
			}
			last = r
		}
	})
}

// Seeded runs must reproduce across versions and platforms: this hash never changes.
func TestFixedGolden(t *testing.T) {
	const want = "ba5c21a3d0bd4824f51d967b6b25e07987789dbef5b0bba88c4815fdb222ae54"
	h := sha256.New()
	src := noise.NewSeeded(42, "golden", 3)
	for _, f := range []Fixed{{3, 10}, {8, 10}, {50, 2000}, {1900, 2000}, {20, 1 << 30}} {
		rows, _ := f.Draw(nil, f.N, src)
		fmt.Fprintln(h, rows)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("golden hash is %s; was %s", got, want)
	}
}

func TestFixedReusesMemory(t *testing.T) {
	src := noise.NewSeeded(1, "", 0)
	for _, f := range []Fixed{{10, 5000}, {300, 5000}, {4000, 5000}} {
		rows, _ := f.Draw(nil, f.N, src)
		first := &rows[0]
		if n := testing.AllocsPerRun(100, func() {
			rows, _ = f.Draw(rows, f.N, src)
		}); n != 0 || &rows[0] != first {
			t.Errorf("%v: Draw allocates %v times", f, n)
		}
	}
}

func BenchmarkFixed(b *testing.B) {
	for _, f := range []Fixed{{256, 32561}, {256, 10_000_000}, {10_000, 10_000_000}, {160_000, 10_000_000}, {16_000, 32_561}, {30_000, 32_561}} {
		b.Run(fmt.Sprintf("m=%d,n=%d", f.M, f.N), func(b *testing.B) {
			src := noise.NewSeeded(1, "", 0)
			var rows []int32
			for b.Loop() {
				rows, _ = f.Draw(rows, f.N, src)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(f.M), "ns/row")
		})
	}
}
