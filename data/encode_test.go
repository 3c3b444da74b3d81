package data

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
