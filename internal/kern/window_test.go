package kern

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The kernels of windows equal their twins bit for bit, at every length and level.
func TestWindowTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for n := range 70 {
		const m = 7
		stride := n + r.IntN(5)
		x := make([]float32, m*stride+n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		a := make([]float64, m)
		for i := range a {
			a[i] = math.Ldexp(r.Float64(), 30)
		}
		dst := make([]float64, n)
		for j := range dst {
			dst[j] = float64(r.IntN(1 << 20))
		}
		if n > 0 {
			x[r.IntN(len(x))], x[r.IntN(len(x))] = float32(math.Inf(1)), float32(math.NaN())
		}
		unit := 0x1p-7
		twins(t, "AxpyWhole", dst, func(dst []float64) { AxpyWhole(dst, a, x, stride, nil, unit) })
		rows := []int32{3, 3, 6, 0, 1, 5, 2}
		twins(t, "AxpyWhole listed", dst, func(dst []float64) { AxpyWhole(dst, a, x, stride, rows, unit) })
		for j := range dst {
			want := dst[j]
			for i := range a {
				if v := x[i*stride+j]; v-v == 0 {
					want += math.Trunc(a[i]*float64(v)) * unit
				}
			}
			got := append([]float64(nil), dst...)
			if AxpyWhole(got, a, x, stride, nil, unit); got[j] != want {
				t.Fatalf("AxpyWhole n=%d: [%d] is %v, want %v", n, j, got[j], want)
			}
		}
		v, begin, from := x[:n], x[max(0, len(x)-n):], make([]int32, n)
		for j := range from {
			from[j] = int32(r.IntN(3))
		}
		single := func(name string, f func(dst []float32, from []int32)) {
			twins(t, name, make([]float64, 2*n), func(out []float64) {
				d, k := append([]float32(nil), begin...), append([]int32(nil), from...)
				f(d, k)
				for j := range n {
					out[j], out[n+j] = float64(d[j]), float64(k[j])
				}
			})
		}
		if n > 3 {
			v[1], begin[2], v[3], begin[3] = float32(math.NaN()), float32(math.NaN()), 0, 0
		}
		single("Highest", func(d []float32, k []int32) { Highest(d, k, v, 9) })
		single("AddWhere", func(d []float32, k []int32) { AddWhere(d, v, k, 1) })
		single("Add", func(d []float32, _ []int32) { Add(d, v) })
	}
}

// Lines are where their offsets say, and the kernels equal their twins.
func TestLines(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for _, line := range []int{1, 5, 8, 16, 24, 30} {
		image := make([]float32, 100)
		for i := range image {
			image[i] = float32(r.NormFloat64())
		}
		from := []int32{0, int32(100 - line), 30, 30, 31}
		for name, f := range map[string]func(d []float32){
			"CopyLines": func(d []float32) { CopyLines(d[:len(from)*line], image, from, line) },
			"AddLines": func(d []float32) {
				AddLines(d[:100], image[:0:0], nil, line)
				AddLines(d[:100], append(image, image...), from, line)
			},
		} {
			twins(t, name, make([]float64, 200), func(out []float64) {
				d := make([]float32, 200)
				f(d)
				for i, v := range d {
					out[i] = float64(v)
				}
				if name == "CopyLines" && d[2*line] != image[30] || name == "AddLines" && line == 8 && d[0] != image[0] {
					t.Errorf("%s, lines of %d: %v", name, line, d)
				}
			})
		}
	}
}

func TestWindowValues(t *testing.T) {
	under(t, func() {
		d, from := []float32{1, 5, 3}, []int32{0, 0, 0}
		Highest(d, from, []float32{2, 4, 3}, 7)
		if d[0] != 2 || d[1] != 5 || d[2] != 3 || from[0] != 7 || from[1] != 0 || from[2] != 0 {
			t.Errorf("Highest: %v %v", d, from)
		}
		AddWhere(d, []float32{10, 20, 30}, from, 0)
		if d[0] != 2 || d[1] != 25 || d[2] != 33 {
			t.Errorf("AddWhere: %v", d)
		}
	})
}
