package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The kernel of cuts gives the bits of its twin for any lines and rows, writes nothing else, and stays in the row also for numbers that
// are none.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(87, 1))
	for n := range 23 {
		var at, bumps []int
		dim := r.IntN(3)
		for range n {
			at, bumps = append(at, dim), append(bumps, 2+r.IntN(20))
			dim += 1 + bumps[len(bumps)-1] + r.IntN(3)
		}
		c := NewCuts(at, bumps)
		for range 60 {
			rows, stride, gap := 1+r.IntN(4), n+r.IntN(3), r.IntN(3)
			inv, f := make([]float64, rows), make([]float64, rows)
			unit := math.Exp2(float64(r.IntN(9) - 24))
			x := make([]float32, rows*stride+n)
			for row := range rows {
				one := math.Exp2(-8 * r.Float64())
				inv[row], f[row] = 1/one, one*(0.5+r.Float64()/2)/unit
				if r.IntN(9) == 0 {
					inv[row], f[row] = 0, 0 // a row of zeros
				}
				for i := range n {
					v := &x[row*stride+i]
					switch *v = float32(one * (2.2*r.Float64() - 1.1)); r.IntN(5) {
					case 0: // centers of bumps
						*v = float32(one * (2*float64(r.IntN(bumps[i]))/float64(bumps[i]-1) - 1))
					case 1:
						*v = []float32{0, float32(math.Copysign(0, -1)), float32(one), -float32(one), 1e-40}[r.IntN(5)]
					}
				}
			}
			size := rows*(dim+gap) + dim
			twins(t, "Cut", make([]float64, size), func(dst []float64) {
				all := make([]float32, size+8)
				for i := range all[size:] {
					all[size+i] = 7
				}
				tile := c.Tile(rows)
				before := make([]float32, len(x)) // of rows that were there
				for i := range before {
					before[i] = x[(i+7)%len(x)]
				}
				c.Cut(all[:size:size], dim+gap, before, stride, inv, f, unit, tile)
				c.Cut(all[:size:size], dim+gap, x, stride, inv, f, unit, tile)
				for j, v := range all {
					if j < size {
						dst[j] = float64(v)
					} else if v != 7 {
						t.Fatal("a number behind the rows was written")
					}
					if v == 0 && math.Signbit(float64(v)) {
						t.Fatal("a number is −0")
					}
				}
				fresh := make([]float32, size)
				c.Cut(fresh, dim+gap, x, stride, inv, f, unit, c.Tile(rows))
				if !slices.Equal(fresh, all[:size]) {
					t.Fatal("rows depend on those that were there before")
				}
				a := make([]float64, rows) // whole numbers, so that sums are exact
				for i := range a {
					a[i] = float64(i*i - 3)
				}
				sum, want := make([]float64, dim+gap), make([]float64, dim+gap)
				c.Add(sum, a, tile)
				Axpy(want, a, all, dim+gap, nil)
				if !slices.Equal(sum, want) {
					t.Fatal("the sum of the tile is not that of its rows")
				}
			})
		}
		if n < 4 {
			continue
		}
		x := make([]float32, n) // no stored row has such numbers; none may reach beyond the row
		for i := range x {
			x[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}[r.IntN(4)]
		}
		under(t, func() {
			if use != plain {
				c.Cut(make([]float32, c.dim), c.dim, x, n, []float64{3}, []float64{1 << 20}, 0x1p-20, c.Tile(1))
			}
		})
	}
}
