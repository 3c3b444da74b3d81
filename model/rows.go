package model

import (
	"math"

	"github.com/sottodp/sotto/data"
)

// RowNorms sets dst_i = ‖x_i‖_p, never understated.
func RowNorms(dst []float64, v data.View, p int) {
	switch p {
	case 1:
		v.Sizes(dst)
	case 2:
		for i := range dst {
			dst[i] = float64(v.Norm[v.Row(i)])
		}
	default:
		panic("model: gradient norms exist for p = 1 and p = 2")
	}
}

// needFloats panics at rows that are not float32: a programmer error.
func needFloats(v data.View, what string) {
	if v.Coding() != (data.Coding{}) {
		panic("model: " + what + " of rows of bytes or 16-bit numbers")
	}
}

// up is a·b for a, b ≥ 0, never below the true product.
func up(a, b float64) float64 {
	p := float64(a * b) // not fused with what follows
	if p < 0x1p-1022 && a != 0 && b != 0 {
		return p + math.SmallestNonzeroFloat64 // subnormal: the factor below would round away
	}
	return p * (1 + 0x1p-52)
}

// needUnit panics unless unit is 0 or a power of two whose inverse is finite.
func needUnit(unit float64) {
	if unit == 0 {
		return
	}
	if frac, _ := math.Frexp(unit); frac != 0.5 || unit < 0x1p-1000 || unit > 0x1p1000 {
		panic("model: unit must be 0 or a power of two")
	}
}
