package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"pgregory.net/rapid"
)

// The batches of an epoch hold each record once, and a batch by itself is the same as among the others.
func TestAllocationIsAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, batches := rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(2, 50).Draw(t, "batches")
		key := noise.Key{byte(rapid.IntRange(0, 255).Draw(t, "key"))}
		var src noise.Source
		draw := func() *noise.Source { key.Reset(&src); return &src }
		var p Places
		p.Draw(Allocation{Batches: batches}, 201, draw()) // memory that held another table's places
		p.Draw(Allocation{Batches: batches}, n, draw())
		seen := make([]int, n)
		var rows, alone []int32
		for b := range batches {
			rows = p.Rows(rows, b)
			if !slices.IsSorted(rows) {
				t.Fatalf("batch %d: %v", b, rows)
			}
			for _, r := range rows {
				seen[r]++
			}
			var all bool
			if alone, all = (Allocation{batches, b}).Draw(alone, n, draw()); all || !slices.Equal(alone, rows) {
				t.Fatalf("batch %d alone has %v, among the others %v", b, alone, rows)
			}
		}
		if slices.ContainsFunc(seen, func(k int) bool { return k != 1 }) {
			t.Fatalf("records are in %v batches", seen)
		}
	})
}

// Each place of each record, and each pair of places of two records, is equally likely. The limits are those of TestPoissonLaw:
// of two sums of squares, with one seed in 3·10⁶ beyond each.
func TestAllocationLaw(t *testing.T) {
	const n, batches, draws = 6, 5, 40_000
	src := noise.NewSeeded(1, "allocation", 0)
	var p Places
	var single [n][batches]float64
	var pair [batches][batches]float64 // of the first record and the last
	var rows []int32
	for range draws {
		p.Draw(Allocation{Batches: batches}, n, src)
		var at [n]int
		for b := range batches {
			rows = p.Rows(rows, b)
			for _, r := range rows {
				at[r] = b
				single[r][b]++
			}
		}
		pair[at[0]][at[n-1]]++
	}
	limit := func(k float64) float64 { return k + 7.75*math.Sqrt(k) + 30 }
	chi := 0.0
	for r := range n {
		for b := range batches {
			want := float64(draws) / batches
			chi += (single[r][b] - want) * (single[r][b] - want) / want
		}
	}
	if chi > limit(n*(batches-1)) {
		t.Errorf("chi-square of the places is %.1f", chi)
	}
	chi = 0
	for a := range batches {
		for b := range batches {
			want := float64(draws) / (batches * batches)
			chi += (pair[a][b] - want) * (pair[a][b] - want) / want
		}
	}
	if chi > limit(batches*batches-1) {
		t.Errorf("chi-square of pairs of places is %.1f", chi)
	}
}

func TestAllocationChecks(t *testing.T) {
	for _, c := range []struct {
		a   Allocation
		adj privacy.Adjacency
		ok  bool
	}{
		{Allocation{Batches: 2}, privacy.AddRemove, true}, {Allocation{2, 1}, privacy.AddRemove, true}, {Allocation{Batches: 2}, privacy.ReplaceOne, false},
		{Allocation{}, privacy.AddRemove, false}, {Allocation{Batches: 1}, privacy.AddRemove, false}, {Allocation{2, 2}, privacy.AddRemove, false}, {Allocation{2, -1}, privacy.AddRemove, false},
		{Allocation{Batches: 2}, 0, false},
	} {
		if err := c.a.Check(c.adj); (err == nil) != c.ok {
			t.Errorf("%v under %v: %v", c.a, c.adj, err)
		}
	}
	if a := (Allocation{Batches: 8}); a.Size(100) != 12.5 || !privacy.Equal(a.Event(privacy.Gaussian{Sigma: 1}), privacy.Allocated{Batches: 8, Of: privacy.Gaussian{Sigma: 1}}) {
		t.Errorf("%v has size %v and event %v", a, a.Size(100), a.Event(privacy.Gaussian{Sigma: 1}))
	}
}
