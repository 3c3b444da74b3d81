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
				w := make([]float64, dim+gap)
				for j := range w[:dim] { // beside bumps, of which the tile knows, a row here is 0
					w[j] = float64(j%7 - 3)
				}
				dots, wants := make([]float64, rows), make([]float64, rows)
				for i := range dots {
					dots[i] = float64(i)
				}
				c.Dot(dots, w, tile)
				Dot(wants, all[:size], dim+gap, nil, w)
				for i := range dots {
					if dots[i] != wants[i]+float64(i) {
						t.Fatalf("the product of row %d with whole numbers is %v, want %v", i, dots[i]-float64(i), wants[i])
					}
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

// The kernel of products gives the bits of its twin, which are those of the bumps multiplied, for any pairs and rows, writes nothing else,
// and stays in the row also for numbers that are none.
func TestProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(88, 1))
	for n := range 6 {
		bumps, lines, dim := 2+r.IntN(6), 1+r.IntN(6), r.IntN(3)
		var a, b, at []int
		for range n {
			a, b, at = append(a, r.IntN(lines)), append(b, r.IntN(lines)), append(at, dim)
			dim += bumps*bumps + r.IntN(3)
		}
		p := NewProducts(a, b, at, bumps)
		for rows := range 20 {
			stride, gap := lines+r.IntN(3), r.IntN(3)
			inv, f := make([]float64, rows), make([]float64, rows)
			unit := math.Exp2(float64(r.IntN(9) - 24))
			x := make([]float32, rows*stride+lines)
			for row := range rows {
				one := math.Exp2(-8 * r.Float64())
				inv[row], f[row] = 1/one, one*(0.5+r.Float64()/2)/unit
				if r.IntN(9) == 0 {
					inv[row], f[row] = 0, 0 // a row of zeros
				}
				for i := range lines {
					v := &x[row*stride+i]
					switch *v = float32(one * (2.2*r.Float64() - 1.1)); r.IntN(5) {
					case 0: // centers of bumps
						*v = float32(one * (2*float64(r.IntN(bumps))/float64(bumps-1) - 1))
					case 1:
						*v = []float32{0, float32(math.Copysign(0, -1)), float32(one), -float32(one), 1e-40}[r.IntN(5)]
					}
				}
			}
			size := rows * (dim + gap)
			want := make([]float64, size)
			for i := range rows {
				for k := range n {
					bump := func(line, j int) float64 { // the j-th bump of a line falls to 0 at the next centers
						v := max(-1, min(1, float64(x[i*stride+line])*inv[i]))
						return max(0, 1-math.Abs((v+1)*float64(bumps-1)/2-float64(j)))
					}
					for j := range bumps * bumps {
						if va, vb := x[i*stride+a[k]], x[i*stride+b[k]]; (va != 0 || !math.Signbit(float64(va))) && (vb != 0 || !math.Signbit(float64(vb))) {
							want[i*(dim+gap)+at[k]+j] = math.Trunc(bump(a[k], j/bumps)*bump(b[k], j%bumps)*f[i]) * unit
						}
					}
				}
			}
			twins(t, "Products", make([]float64, size), func(dst []float64) {
				all := make([]float32, size+8)
				for i := range all[size:] {
					all[size+i] = 7
				}
				p.Put(all[:size:size], dim+gap, x, stride, inv, f, unit)
				for j, v := range all {
					if j < size {
						dst[j] = float64(v)
						if math.Abs(dst[j]-want[j]) > unit+0x1p-23*math.Abs(want[j]) || math.Signbit(float64(v)) {
							t.Fatalf("number %d is %v, want %v", j, v, want[j])
						}
					} else if v != 7 {
						t.Fatal("a number behind the rows was written")
					}
				}
			})
		}
		if n == 0 {
			continue
		}
		x := make([]float32, 4*lines) // no stored row has such numbers; none may reach beyond the row
		for i := range x {
			x[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}[r.IntN(4)]
		}
		under(t, func() {
			if use != plain {
				p.Put(make([]float32, 4*p.dim), p.dim, x, lines, []float64{3, 0, 3, 3}, []float64{1, 0, 1 << 20, 1}, 0x1p-20)
			}
		})
	}
}
