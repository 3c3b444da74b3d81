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
