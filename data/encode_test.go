package data

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/schema"
)

func TestNumericEncoding(t *testing.T) {
	s := mustParse(t, `dataset: d
row_norm: 8
row_scaling: project
intercept: false
columns:
  - {name: a, type: numeric, min: -1, max: 3}
  - {name: b, type: numeric, min: 0, max: 99, transform: log1p}
  - {name: c, type: numeric, min: -9, max: 9, transform: signed_log1p}
  - {name: y, type: label, min: 0, max: 0.1}
`)
	_, unit := s.RowRule()
	for _, c := range []struct {
		cells   string
		want    [3]float64
		clamped int
	}{
		{"-1,0,-9", [3]float64{-1, -1, -1}, 0},
		{"3,99,9", [3]float64{1, 1, 1}, 0},
		{"1,9,0", [3]float64{0, 0, 0}, 0},
		{"2,9,0", [3]float64{0.5, 0, 0}, 0},
		{"1e300,-5,1e-300", [3]float64{1, -1, 0}, 2},
		{"0,0,3", [3]float64{-0.5, -1, math.Log(4) / math.Log(10)}, 0},
	} {
		e := newEncoder(s)
		cells := append(strings.Split(c.cells, ","), "7")
		if f := e.cells(cells, nil, nil, []int{0, 1, 2, 3}); f.Found != "" {
			t.Fatal(f)
		}
		e.finish()
		got := [3]float64{}
		for i, j := range e.col {
			got[j] = e.val[i]
		}
		for j := range got {
			// At most one unit off, toward zero.
			if d := math.Abs(c.want[j]) - math.Abs(got[j]); d < -1e-12 || d > unit+1e-12 || got[j]*c.want[j] < 0 {
				t.Errorf("%s: feature %d is %v, want %v", c.cells, j, got[j], c.want[j])
			}
		}
		if len(e.clamped) != c.clamped+1 || float64(e.y) > 0.1 {
			t.Errorf("%s: %d clamped, label %v", c.cells, len(e.clamped), e.y)
		}
	}
}

// TestHats: beside the linear feature a bump is 1 at its center and falls to 0 at the next centers, after
// the transform; where a missing value is 0, all features of the column are.
func TestHats(t *testing.T) {
	s := mustParse(t, `dataset: d
row_norm: 16
row_scaling: project
intercept: false
format: {missing: ["?"]}
columns:
  - {name: a, type: numeric, min: -1, max: 3, hats: 3, missing: zero}
  - {name: b, type: numeric, min: 0, max: 99, transform: log1p, hats: 5, missing: 9}
  - {name: c, type: categorical, levels: [x]}
  - {name: y, type: label, min: 0, max: 0.1}
`)
	_, unit := s.RowRule()
	for cells, want := range map[string][11]float64{
		"-1,0,x":     {-1, 1, 0, 0, -1, 1, 0, 0, 0, 0, 1},
		"3,99,x":     {1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1},
		"1,9,x":      {0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1},
		"1.5,9,x":    {0.25, 0, 0.75, 0.25, 0, 0, 0, 1, 0, 0, 1},
		"-0.5,0,x":   {-0.75, 0.75, 0.25, 0, -1, 1, 0, 0, 0, 0, 1},
		"1e300,-5,x": {1, 0, 0, 1, -1, 1, 0, 0, 0, 0, 1},
		"?,?,x":      {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1},
	} {
		e := newEncoder(s)
		if f := e.cells(append(strings.Split(cells, ","), "7"), nil, nil, []int{0, 1, 2, 3}); f.Found != "" {
			t.Fatal(f)
		}
		if !slices.IsSorted(e.col) || len(e.col) != len(slices.Compact(slices.Clone(e.col))) {
			t.Errorf("%s: features %v", cells, e.col)
		}
		e.finish()
		var got [11]float64
		for i, j := range e.col {
			got[j] = e.val[i]
		}
		for j := range got {
			if d := math.Abs(got[j] - want[j]); d > unit+1e-12 {
				t.Errorf("%s: feature %d is %v, want %v", cells, j, got[j], want[j])
			}
		}
	}
}

// TestWaves: beside the linear feature stand the waves at it, after the transform; where a missing value is 0, all
// features of the column are.
func TestWaves(t *testing.T) {
	s := mustParse(t, `dataset: d
row_norm: 16
row_scaling: project
intercept: false
format: {missing: ["?"]}
columns:
  - {name: a, type: numeric, min: -1, max: 3, waves: 2, missing: zero}
  - {name: b, type: numeric, min: 0, max: 99, transform: log1p, encode: waves, missing: 9}
  - {name: y, type: label, min: 0, max: 0.1}
`)
	_, unit := s.RowRule()
	for cells, x := range map[string][2]float64{"-1,0": {-1, -1}, "3,99": {1, 1}, "1.5,9": {0.25, 0}, "9,-9": {1, -1}, "?,?": {math.NaN(), 0}} {
		e := newEncoder(s)
		if f := e.cells(append(strings.Split(cells, ","), "7"), nil, nil, []int{0, 1, 2}); f.Found != "" {
			t.Fatal(f)
		}
		e.finish()
		var got, want [7]float64
		for i, j := range e.col {
			got[j] = e.val[i]
		}
		if !math.IsNaN(x[0]) {
			want = [7]float64{x[0], schema.Wave(0, x[0]), schema.Wave(1, x[0])}
		}
		want[3] = x[1]
		for k := range 3 {
			want[4+k] = schema.Wave(k, x[1])
		}
		for j := range got {
			if d := math.Abs(got[j] - want[j]); d > unit+1e-12 {
				t.Errorf("%s: feature %d is %v, want %v", cells, j, got[j], want[j])
			}
		}
	}
}

// TestRowRule: whatever the row, its values are multiples of the unit that fit a
// float32, are not above the given ones in the project rule, and its norm,
// rounded up, is within the bound.
func TestRowRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &schema.Schema{RowNorm: rapid.OneOf(rapid.Float64Range(1e-9, 1e9), rapid.SampledFrom([]float64{1, 2, 0.1, 1e9, 1e-9, 0.7})).Draw(t, "norm")}
		scale := rapid.Bool().Draw(t, "scale")
		one := rapid.Bool().Draw(t, "L1")
		bound, unit := s.RowRule()
		rule := newRowRule(bound, unit, scale, one)
		value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Float64Range(-1e9, 1e9), rapid.SampledFrom([]float64{0, 1, -1, 1e9, 5e-324, 1e-300, 1e-7}))
		v := rapid.SliceOfN(value, 0, 40).Draw(t, "v")
		if rapid.Bool().Draw(t, "long") {
			for range 7 {
				v = append(v, v...)
			}
		}
		before := append([]float64(nil), v...)
		norm := rule.apply(v)

		var sum, size, was float64 // size and was in the norm of the rule, size exact
		zero := true
		for i, x := range v {
			k := x / rule.unit
			if k != math.Trunc(k) || math.Abs(k) > 1<<20 || float64(float32(x)) != x || x == 0 && math.Signbit(x) {
				t.Fatalf("value %v is not a multiple of the unit that fits", x)
			}
			if !scale && math.Abs(x) > math.Abs(before[i]) || x*before[i] < 0 {
				t.Fatalf("%v became %v", before[i], x)
			}
			sum += k * k // exact
			if one {
				size, was = size+math.Abs(k), was+math.Abs(before[i])
			} else {
				size, was = math.Sqrt(sum), math.Hypot(was, before[i])
			}
			zero = zero && before[i] == 0
		}
		up := float64(norm) / rule.unit
		if up*up < sum || float64(norm) > s.RowNorm || math.Sqrt(sum)*rule.unit > s.RowNorm {
			t.Fatalf("norm %v, true %v, bound %v", norm, math.Sqrt(sum)*rule.unit, s.RowNorm)
		}
		size *= rule.unit
		if size > s.RowNorm {
			t.Fatalf("norm %v, bound %v", size, s.RowNorm)
		}
		// Rounding toward zero takes at most a unit of each value.
		slack := rule.unit*math.Sqrt(float64(len(v))) + s.RowNorm*0x1p-19
		if one {
			slack = rule.unit*float64(len(v)) + s.RowNorm*0x1p-19
		}
		if scale && !zero && size < s.RowNorm-slack {
			t.Fatalf("norm %v is not just below %v", size, s.RowNorm)
		}
		if !scale && size < math.Min(was, s.RowNorm)*(1-1e-9)-slack {
			t.Fatalf("norm %v shrank from %v, bound %v", size, was, s.RowNorm)
		}
	})
}

// plainly is rowRule.apply in the fewest words: the bits of its rows are those of all runs so far.
func plainly(r rowRule, v []float64) float32 {
	var m float64
	for _, x := range v {
		m = max(m, math.Abs(x))
	}
	if m == 0 {
		clear(v)
		return 0
	}
	var s float64
	for _, x := range v {
		if r.one {
			s += math.Abs(x / m)
		} else {
			s += float64((x / m) * (x / m))
		}
	}
	root := math.Sqrt(s)
	if r.one {
		root = s
	}
	shrink := r.scale || m*root > r.bound
	f := (1 - 0x1p-40) * (r.bound / r.unit) / root
	for {
		k := make([]float64, len(v))
		var sum, size float64
		for i, x := range v {
			if k[i] = math.Trunc(x / r.unit); shrink {
				k[i] = math.Trunc(x / m * f)
			}
			sum += k[i] * k[i]
			size += math.Abs(k[i])
		}
		if !r.one {
			size = sum
		}
		if size <= r.limit {
			for i := range v {
				v[i] = k[i]*r.unit + 0
			}
			return r.normUp(sum)
		}
		if shrink {
			f *= 1 - 0x1p-20
		}
		shrink = true
	}
}

// TestRowRuleBits: apply does not change a bit of what plainly gives.
func TestRowRuleBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &schema.Schema{RowNorm: rapid.OneOf(rapid.Float64Range(1e-9, 1e9), rapid.SampledFrom([]float64{1, 2, 0.1, 1e9, 1e-9, 0.7})).Draw(t, "norm")}
		bound, unit := s.RowRule()
		rule := newRowRule(bound, unit, rapid.Bool().Draw(t, "scale"), rapid.Bool().Draw(t, "L1"))
		value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Float64Range(-bound, bound), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, bound, -bound, 1e9, 5e-324, 1e-300, 1e-7}))
		v := rapid.SliceOfN(value, 0, 40).Draw(t, "v")
		w := append([]float64(nil), v...)
		if got, want := rule.apply(v), plainly(rule, w); got != want {
			t.Fatalf("norm %v, want %v", got, want)
		}
		for i := range v {
			if math.Float64bits(v[i]) != math.Float64bits(w[i]) {
				t.Fatalf("value %d is %v, want %v", i, v[i], w[i])
			}
		}
	})
}

const pairSchema = `dataset: d
row_norm: 16
row_scaling: project
format: {missing: ["?"]}
columns:
  - {name: a, type: numeric, min: -1, max: 3, hats: 3, missing: zero}
  - {name: c, type: categorical, levels: [x]}
  - {name: b, type: numeric, min: 0, max: 99, transform: log1p, missing: 9}
  - {name: y, type: label, min: 0, max: 0.1}
pairs: [[b, a]]
`

// TestPairs: behind the features of all columns stand the products of the columns' bumps, the first column's bumps first; where a
// missing value is 0, they are 0. A row leaves nothing behind for the next.
func TestPairs(t *testing.T) {
	s := mustParse(t, pairSchema)
	_, unit := s.RowRule()
	e := newEncoder(s)
	for _, c := range []struct {
		cells string
		want  map[int]float64 // of the pair's features, by 5·(bump of b) + (bump of a)
	}{
		{"-1,x,0", map[int]float64{0: 1}},
		{"3,x,99", map[int]float64{24: 1}},
		{"-1,x,99", map[int]float64{20: 1}},
		{"1,x,9", map[int]float64{12: 1}},
		{"1.25,x,9", map[int]float64{12: 0.75, 13: 0.25}},
		{"1e300,x,-5", map[int]float64{4: 1}},
		{"0.5,x,?", map[int]float64{11: 0.5, 12: 0.5}}, // b counts as 9
		{"?,x,9", nil},
		{"1.75,x,0.77827941003892280", map[int]float64{2: 0.125, 3: 0.375, 7: 0.125, 8: 0.375}}, // 10^(1/4) − 1
		{"?,x,?", nil},
	} {
		e = e.clone()
		for range 2 {
			e.begin()
			if f := e.cells(append(strings.Split(c.cells, ","), "7"), nil, nil, []int{0, 1, 2, 3}); f.Found != "" {
				t.Fatal(f)
			}
			e.finish()
		}
		if !slices.IsSorted(e.col) || len(e.col) != len(slices.Compact(slices.Clone(e.col))) {
			t.Errorf("%s: features %v", c.cells, e.col)
		}
		got := make([]float64, s.Dim())
		for i, j := range e.col {
			got[j] = e.val[i]
		}
		for j, v := range got[6:31] {
			if math.Abs(v-c.want[j]) > unit+1e-12 {
				t.Errorf("%s: product %d is %v, want %v", c.cells, j, v, c.want[j])
			}
		}
		if got[31] != 1 || len(got) != 32 {
			t.Errorf("%s: intercept %v of %d", c.cells, got[31], len(got))
		}
	}
	e.begin()
	if n := testing.AllocsPerRun(100, func() {
		e.begin()
		e.number(&e.cols[0], 0, 1.5)
		e.number(&e.cols[2], 2, 7)
		e.finish()
	}); n != 0 {
		t.Errorf("%v allocations per row", n)
	}
}

// TestPairProducts: whatever the row and its rule, products are those of the columns' own bumps, and the norm is within the bound.
func TestPairProducts(t *testing.T) {
	const text = "dataset: d\nrow_norm: 2\nnorm: %s\nrow_scaling: %s\ncolumns:\n  - {name: a, type: numeric, min: -1, max: 1, hats: 5}\n  - {name: b, type: numeric, min: -7, max: 1, hats: 5, transform: signed_log1p}\n  - {name: c, type: numeric, min: 0, max: 1, hats: 5}\n  - {name: y, type: label, min: 0, max: 1}\npairs: [[a, b], [c, a]]\n"
	rapid.Check(t, func(t *rapid.T) {
		s, err := schema.Parse("s", fmt.Appendf(nil, text, rapid.SampledFrom([]string{"l1", "l2"}).Draw(t, "norm"), rapid.SampledFrom([]string{"scale", "project"}).Draw(t, "scaling")))
		if err != nil {
			t.Fatal(err)
		}
		e := newEncoder(s)
		e.begin()
		number := rapid.OneOf(rapid.Float64Range(-8, 2), rapid.SampledFrom([]float64{-1, -0.5, 0, 0.5, 1, 1e300, -1e-300}))
		for i := range 3 {
			e.number(&e.cols[i], i, number.Draw(t, e.cols[i].name))
		}
		e.products()
		x := make([]float64, s.Dim())
		for i, j := range e.col {
			x[j] = e.val[i]
		}
		a, b, c := x[1:6], x[7:12], x[13:18]
		for i := range 5 {
			for j := range 5 {
				if x[18+5*i+j] != a[i]*b[j] || x[43+5*i+j] != c[i]*a[j] {
					t.Fatalf("product %d %d of %v, %v, %v in %v", i, j, a, b, c, x[18:])
				}
			}
		}
		if len(e.col) > 3*3+2*4 {
			t.Fatalf("%d features are not 0", len(e.col))
		}
		e.begin()
		for i := range 3 {
			e.number(&e.cols[i], i, number.Draw(t, "again"))
		}
		e.finish()
		var size float64
		for _, v := range e.val {
			if s.Norm == schema.NormL1 {
				size += math.Abs(v)
			} else {
				size += v * v
			}
		}
		if limit := s.RowNorm; s.Norm == schema.NormL1 && size > limit || s.Norm != schema.NormL1 && (size > limit*limit || float64(e.norm) > limit || float64(e.norm) < math.Sqrt(size)*(1-1e-12)) {
			t.Fatalf("size %v, norm %v", size, e.norm)
		}
	})
}

// TestStoredPairs: every format gives the same products, in each type of number.
func TestStoredPairs(t *testing.T) {
	race.Skip(t)
	const dir = "source/testdata/types"
	columns := []string{"int8", "uint8", "int16", "float64", "decimal64"}
	text := "dataset: types\nrows: 4\nformat: {kind: csv, missing: [\"\"]}\nother_columns: ignore\npairs: [[int8, float64], [uint8, int16], [decimal64, int8]]\ncolumns:\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n"
	for _, c := range columns {
		text += fmt.Sprintf("  - {name: %s, type: numeric, min: -200, max: 300, missing: zero}\n", c)
	}
	s := mustParse(t, text)
	want, _, err := readTable(context.Background(), admit(), s, filepath.Join(dir, "types.csv"), Options{Rows: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file.arrow", "stream.arrows", "pyarrow.parquet", "pyarrow-1.parquet", "zstd.feather"} {
		got, _, err := readTable(context.Background(), admit(), s, filepath.Join(dir, name), Options{Rows: 4})
		if err != nil {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(want, got, sameTable); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	products := 0
	for _, j := range want.Blocks[0].X {
		if j != 0 {
			products++
		}
	}
	if products < 4*8 {
		t.Errorf("%d features are not 0", products)
	}
}
