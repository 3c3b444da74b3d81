package kern

import "math"

// Decimals sets dst_i, for each x_i, to the number with the fewest digits that identifies x_i among the float32
// numbers, the nearest to it of those, or to NaN where it has no proof of one: it is for whole numbers below 2²⁴, and
// for nearly all others from 10⁻³ to 10⁶ in magnitude.
func Decimals(dst []float64, x []float32) {
	dst = dst[:len(x)]
	n := decimalsFast(dst, x)
	for i, v := range x[n:] {
		dst[n+i] = decimal(v)
	}
}

// powers are 10⁻¹, which no number is multiplied by, 10⁰ … 10¹⁰, and what the table of the kernels is filled up with.
var powers = [16]float64{0.1, 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}

// decimal is Decimals of one number.
//
// Numbers of at most 6 digits are all different as float32, so one that is x has the fewest; and if it is a power of
// ten, no other has as few. Of those with 7, 8 and 9 the nearest is wanted: the product with a power of ten up to 10¹¹
// is exact, as 24 bits times 5¹¹ have 50. Around a power of two, which is not equally far from the float32 numbers on
// both sides, a farther one may be x where the nearest is not.
func decimal(x float32) float64 {
	v := float64(x)
	size := math.Abs(v)
	if size < 1<<24 && size == math.Trunc(size) {
		return v
	}
	if !(size >= 1e-3 && size < 1e6) {
		return math.NaN()
	}
	high := int32(math.Float64bits(size) >> 32)
	places := 6 - ((high>>20-1023)*77)>>8 // one more than those with which the least number of this exponent has 6 digits
	ten := powers[places]
	if size*ten >= 1e6 {
		ten = powers[places-1]
	}
	// x is the float32 of what is no farther than half of the distance of two, and perhaps a little farther.
	near := math.Float64frombits(math.Float64bits(size)&(0x7ff<<52)) * (0x1p-24 * (1 + 1e-9))
	for more := range 4 {
		scaled := size * ten
		n := math.RoundToEven(scaled)
		far := math.Abs(n - scaled)
		if far > near*ten && more < 3 {
			ten *= 10
			continue
		}
		w := n / ten
		halfway := math.Float64bits(w)&(1<<29-1) == 1<<28 // the division may have rounded there
		if float32(w) != float32(size) || far == 0.5 || halfway || more > 0 && math.Float32bits(x)<<9 == 0 {
			break
		}
		return math.Copysign(w, v)
	}
	return math.NaN()
}
