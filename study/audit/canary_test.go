package audit

import (
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy/clip"
)

// A canary is clipped like a record: what it adds has a norm of at most the bound, in whole units, and nearly the bound; one that is out adds
// nothing, or the opposite.
func TestSumOfCanaries(t *testing.T) {
	const dim, unit = 100, 0x1p-20
	for _, rule := range []clip.Rule{clip.Norm{C: 0.3}, clip.Norm{C: 0.3, P: 1}, clip.Value{C: 2}, clip.Lipschitz{L: 1}, clip.PerLayer{C: 1, Layers: 4}, clip.Automatic{C: 1}} {
		for _, pull := range []bool{false, true} {
			s := &canarySet{In: []bool{true, false, true}, Pull: pull, Key: 7, Dim: dim}
			norm := func(drawn ...int) (float64, []int64) {
				s.sums = 0 // the same directions again
				s.Sum(unit, rule, drawn)
				counts := make([]int64, dim)
				s.Add(counts[:60], 0)
				s.Add(counts[60:], 60)
				sum := 0.0
				for _, c := range counts {
					sum += math.Pow(math.Abs(float64(c)*unit), float64(rule.Norm()))
				}
				return math.Pow(sum, 1/float64(rule.Norm())), counts
			}
			got, in := norm(0)
			if got > rule.Bound() || got > s.length || got < 0.999*s.length || rule != (clip.PerLayer{C: 1, Layers: 4}) && rule != (clip.Automatic{C: 1}) && got < 0.999*rule.Bound() {
				t.Errorf("%#v: a canary has norm %v; the bound is %v, it says %v", rule, got, rule.Bound(), s.length)
			}
			if got, _ := norm(1); (got > 0) != pull {
				t.Errorf("%#v, pull %v: one that is out has norm %v", rule, pull, got)
			}
			_, both := norm(0, 2)
			_, other := norm(2)
			for j := range in {
				in[j] += other[j]
			}
			if !slices.Equal(in, both) {
				t.Errorf("%#v: two together are not the sum of two", rule)
			}
		}
	}
}

// Directions are fresh at each sum and for each canary, and within the model.
func TestDirectionOfCanaries(t *testing.T) {
	for _, dim := range []int{1, 5, 64, 1000} {
		s := &canarySet{In: make([]bool, 50), Key: 1, Dim: dim}
		seen := map[direction]bool{}
		for s.sums = range 20 {
			for i := range s.In {
				d := s.Direction(i, 2)
				if d.At < 0 || d.At+d.Width > dim || d.Width != min(dim, widest) || s.Direction(i, 1).Width != 1 {
					t.Fatalf("of %d: %+v", dim, d)
				}
				if d != s.Direction(i, 2) {
					t.Fatal("the same sum has two directions")
				}
				seen[d] = true
			}
		}
		if len(seen) != 1000 {
			t.Errorf("of %d: %d directions at 1000 sums", dim, len(seen))
		}
	}
	s := &canarySet{Key: 1, Dim: 100}
	d := s.Direction(0, 2)
	v := make([]float64, 100)
	for j := range v {
		v[j] = float64(j + 1)
	}
	want := 0.0
	for k := range d.Width {
		want += v[d.At+k] * float64(1-2*int64(d.signs>>k&1))
	}
	if got := d.Dot(v); got != want {
		t.Errorf("the product is %v; want %v", got, want)
	}
}

// What the table's rows added is kept apart.
func TestOthersThanCanaries(t *testing.T) {
	s := &canarySet{In: []bool{true}, Key: 1, Dim: 3}
	s.Sum(0.5, clip.Norm{C: 8}, []int{0})
	counts := []int64{2, 4, 6}
	s.Add(counts, 0)
	if got := s.others; !slices.Equal(got, []float64{1, 2, 3}) || slices.Equal(counts, []int64{2, 4, 6}) {
		t.Errorf("the rows added %v, with the canary %v units", got, counts)
	}
}
