package kern

import (
	"fmt"
	"math"
)

// Check computes examples with the kernels in force and in plain Go, and says which do
// not give the same bits: a fault of the machine or of a kernel. No other function of this
// package may run at the same time.
func Check() error {
	inForce := use
	defer func() { use = inForce }()
	fast := examples()
	use = plain
	if err := differ(fast, examples()); err != nil {
		return fmt.Errorf("kernels %v: %w", inForce, err)
	}
	return nil
}

// differ names the first value that is not the same.
func differ(got, want []example) error {
	for i, w := range want {
		for j, v := range w.out {
			if g := got[i].out[j]; math.Float64bits(g) != math.Float64bits(v) {
				return fmt.Errorf("%s gives %x as value %d, plain Go %x", w.kernel, g, j, v)
			}
		}
	}
	return nil
}

// example is what a kernel computes from fixed numbers.
type example struct {
	kernel string
	out    []float64
}

func examples() []example {
	const rows, width = 37, 43 // neither a multiple of a vector
	word := uint64(1)
	next := func() uint64 { // xorshift64: any numbers will do
		word ^= word << 13
		word ^= word >> 7
		word ^= word << 17
		return word
	}
	floats := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(int64(next())) * 0x1p-61 // −4 to 4
		}
		return v
	}
	x, w, a := floats(rows*width), floats(width), floats(rows)
	x32 := make([]float32, len(x))
	for i, v := range x {
		x32[i] = float32(v)
	}
	var list []example
	add := func(kernel string, n int, f func(dst []float64)) {
		out := make([]float64, n)
		f(out)
		list = append(list, example{kernel, out})
	}
	add("dot", rows, func(dst []float64) { Dot(dst, x, width, nil, w) })
	add("dot32", rows, func(dst []float64) { Dot(dst, x32, width, nil, w) })
	add("axpy", width, func(dst []float64) { Axpy(dst, a, x, width, nil) })
	add("axpy32", width, func(dst []float64) { Axpy(dst, a, x32, width, nil) })
	add("abs1", rows, func(dst []float64) { Abs1(dst, x32, width, nil, width) })
	add("norm2", rows, func(dst []float64) { Norm2(dst, x32, width, nil, width) })
	add("exp", width, func(dst []float64) { Exp(dst, w) })
	add("sigmoid", width, func(dst []float64) { Sigmoid(dst, w) })
	add("log1pexp", width, func(dst []float64) { Log1pExp(dst, w) })
	return list
}
