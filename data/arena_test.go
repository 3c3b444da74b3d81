package data

import (
	"testing"
	"unsafe"

	"github.com/sottodp/sotto/internal/race"
)

// Pieces are zero, begin on a line, and share nothing, whatever their sizes.
func TestArena(t *testing.T) {
	race.Skip(t)
	var r Arena
	type piece struct {
		x []float32
		v float32
	}
	var all []piece
	for i := range 400 {
		n := (i*i*37 + i) % 300_000
		x := r.Floats(n)
		if i%3 == 0 {
			ints := r.Ints(n)
			for _, v := range ints {
				if v != 0 {
					t.Fatal("a piece of whole numbers is not zero")
				}
			}
			for j := range ints {
				ints[j] = -1
			}
		}
		if len(x) != n || cap(x) != n {
			t.Fatalf("a piece of %d, %d at most; %d are wanted", len(x), cap(x), n)
		}
		if n > 0 && uintptr(unsafe.Pointer(&x[0]))%64 != 0 {
			t.Fatal("a piece begins within a line of the cache")
		}
		for j, v := range x {
			if v != 0 {
				t.Fatal("a piece is not zero")
			}
			x[j] = float32(i + 1)
		}
		all = append(all, piece{x, float32(i + 1)})
	}
	for _, p := range all {
		for _, v := range p.x {
			if v != p.v {
				t.Fatal("two pieces share memory")
			}
		}
	}
}

// After its second round an arena gives the pieces of every round from one stretch, large ones too.
func TestArenaRounds(t *testing.T) {
	race.Skip(t)
	for _, large := range []int{1000, stretch, stretch + 5000} {
		var r Arena
		var first *float32
		for round := range 4 {
			x, y := r.Floats(large), r.Floats(100)
			for _, piece := range [][]float32{x, y} {
				for i, v := range piece {
					if v != 0 {
						t.Fatalf("round %d: a piece is not zero", round)
					}
					piece[i] = 1
				}
			}
			if round == 1 {
				first = &x[0]
			} else if round > 1 && &x[0] != first {
				t.Errorf("pieces of %d: round %d made another stretch", large, round)
			}
			r.reset()
		}
	}
	// A large piece leaves to small ones what is left for them.
	var r Arena
	for range 3 {
		r.Floats(line)
	}
	left := len(r.left)
	if r.Floats(stretch); len(r.left) != left || left == 0 {
		t.Errorf("a large piece leaves %d numbers of %d", len(r.left), left)
	}
}
