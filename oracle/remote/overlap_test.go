package remote

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/twins"
)

// hashed hashes rows, which are numbers, under the key of a session.
func hashed(rows []uint64, key uint64) []uint64 {
	hashes := make([]uint64, len(rows))
	for i, r := range rows {
		hashes[i] = rand.NewPCG(r, key).Uint64()
	}
	slices.Sort(hashes)
	return hashes
}

// refused says whether shards with these rows are refused.
func refused(key uint64, shards ...[]uint64) bool {
	var sketches []twins.Sketch
	tallies := make([][]twins.Tally, len(shards))
	for i, rows := range shards {
		sketches = append(sketches, twins.Of(hashed(rows, key)).Least(sketchRows))
		for _, others := range shards {
			tallies[i] = append(tallies[i], twins.Compare(sketches[i], twins.Of(hashed(others, key))))
		}
	}
	_, _, found := twice(sketches, tallies)
	return found
}

// A population draws rows. Levels are the cells of its columns: few make a table whose rows are often equal.
func population(rnd *rand.Rand, columns, levels int, skew float64) func() uint64 {
	return func() (row uint64) {
		for range columns {
			row = row*uint64(levels) + uint64(float64(levels)*math.Pow(rnd.Float64(), skew))
		}
		return row
	}
}

func rowsOf(n int, draw func() uint64) []uint64 {
	rows := make([]uint64, n)
	for i := range rows {
		rows[i] = draw()
	}
	return rows
}

// kinds are tables from almost no equal rows to hardly any others.
var kinds = map[string]struct {
	columns, levels int
	skew            float64
}{
	"unlike rows":        {8, 200, 1},
	"many are alike":     {8, 5, 3},
	"half are alike":     {6, 6, 1.5},
	"most are alike":     {5, 5, 2},
	"one-hot":            {1, 40, 1},
	"a rare row or two":  {4, 9, 6},
	"one row":            {1, 1, 1},
	"as many as rows":    {2, 100, 1},
	"twice as many rows": {2, 70, 1},
}

// Shards with independent rows are used, of whatever population and size, of one or of two: refusing one pair of them has a chance of at
// most 1e-9, the 108 pairs here together of less than 1e-6.
func TestIndependentShards(t *testing.T) {
	rnd := rand.New(rand.NewPCG(63, 1))
	for name, k := range kinds {
		for _, sizes := range [][2]int{{10, 10}, {300, 40}, {5000, 5000}, {20000, 1500}} {
			one, other := population(rnd, k.columns, k.levels, k.skew), population(rnd, k.columns, k.levels, 1+k.skew/2)
			a := rowsOf(sizes[0], one)
			for kind, b := range map[string][]uint64{"the same population": rowsOf(sizes[1], one), "another": rowsOf(sizes[1], other)} {
				if refused(rnd.Uint64(), a, b) {
					t.Errorf("%s, %d and %d rows of %s: refused", name, sizes[0], sizes[1], kind)
				}
			}
			// A table of fixed rows, divided at random.
			b := rowsOf(sizes[1], one)
			all := slices.Concat(a, b)
			rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if refused(rnd.Uint64(), all[:len(a)], all[len(a):]) {
				t.Errorf("%s, %d and %d rows of one table: refused", name, sizes[0], sizes[1])
			}
		}
	}
}

// A part of a shard's rows in another is found from 7 % on, also if the shard is small beside the other, in whatever order, and whichever
// of the two is first. 3 % are not. Each miss and each refusal here has a chance below 4e-4 (a binomial sample of 2,048), the
// twelve together below 5e-3; the seed is fixed.
func TestSharedRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(63, 2))
	for name, c := range map[string]struct {
		rows, others int
		share        float64
		levels       int
		want         bool
	}{
		"all":                 {40000, 40000, 1, 200, true},
		"7 %":                 {40000, 40000, 0.07, 200, true},
		"3 %":                 {40000, 40000, 0.03, 200, false},
		"7 % of a small one":  {3000, 60000, 0.07, 200, true},
		"a small file":        {60, 60000, 1, 200, true},
		"20 % of a smaller":   {500, 60000, 0.2, 200, true},
		"alike rows, all":     {20000, 20000, 1, 6, true},
		"alike rows, 15 %":    {20000, 20000, 0.15, 6, true},
		"few rows":            {30, 30, 1, 200, false}, // by this rule; one file twice is found by its digest
		"a file without rows": {0, 30, 1, 200, false},
	} {
		draw := population(rnd, 8, c.levels, 1.5)
		a, b := rowsOf(c.rows, draw), rowsOf(c.others, draw)
		n := copy(b, a[:int(c.share*float64(len(a)))])
		rnd.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		key := rnd.Uint64()
		if refused(key, a, b) != c.want || refused(key, b, a) != c.want || refused(key, b, rowsOf(100, draw), a) != c.want {
			t.Errorf("%s (%d rows are in both): refused %v, want %v", name, n, !c.want, c.want)
		}
	}
}

// A sketch has one size, whatever the rows, and counts as they do.
func TestSketch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(63, 3))
	for _, n := range []int{0, 1, 50, sketchRows, 9000} {
		rows, others := hashed(rowsOf(n, population(rnd, 2, 90, 2)), 1), hashed(rowsOf(700, population(rnd, 2, 90, 2)), 1)
		s := twins.Of(rows).Least(sketchRows)
		b := appendSketch(nil, s)
		if again := readSketch(b); len(b) != sketchRows*sketchSize || !slices.Equal(again.Rows, s.Rows) || !slices.EqualFunc(again.Times, s.Times, func(a, b uint32) bool { return a == min(b, 3) }) || again.Last != s.Last {
			t.Errorf("%d rows: a sketch of %d bytes and %d rows comes back with %d", n, len(b), len(s.Rows), len(again.Rows))
		}
		mine, theirs := times(rows, s.Last), times(others, s.Last)
		var want twins.Tally
		for h, n := range mine {
			switch m := theirs[h]; {
			case n == 1 && m == 1:
				want.Both++
			case n == 2 && m == 0:
				want.First++
			}
		}
		for h, m := range theirs {
			if m == 2 && mine[h] == 0 {
				want.Last++
			}
		}
		if got := twins.Compare(s, twins.Of(others)); got != want || readTally(appendTally(nil, got)) != want {
			t.Errorf("%d rows: %+v, want %+v", n, got, want)
		}
	}
}

func times(rows []uint64, end uint64) map[uint64]int {
	n := map[uint64]int{}
	for _, h := range rows {
		if h <= end {
			n[h]++
		}
	}
	return n
}
