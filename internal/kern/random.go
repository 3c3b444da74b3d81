package kern

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The transforms here turn random words, little-endian uint64, into noise. They are
// pure functions: the words are the caller's. Gaussian and Laplace give floats, for
// work that needs no proof (networks say so): the private oracle's noise is
// package noise's, which rounds exactly, and takes from here GaussianAdd and
// LaplaceRound alone.

// Gaussian sets dst to values of N(0, scale²), a pair from each 16 bytes of random
// (Box and Muller 1958), which must hold 8 bytes for each value, and 8 more where
// their number is odd. Each is within 2⁻⁴⁸·scale·R of the value that real arithmetic
// gives for the same words, R the pair's radius, as long as the first word is not
// below 2⁵⁴; so it never exceeds 9.5·scale.
func Gaussian(dst []float64, random []byte, scale float64) {
	random = random[:(len(dst)+1)/2*16]
	i := gaussianFast(dst, random, scale)
	for ; i < len(dst); i += 2 {
		x, y := boxMuller(binary.LittleEndian.Uint64(random[8*i:]), binary.LittleEndian.Uint64(random[8*i+8:]))
		dst[i] = x * scale
		if i+1 < len(dst) {
			dst[i+1] = y * scale
		}
	}
}

// Laplace sets dst to values of the Laplace law of that scale, one from each 8 bytes
// of random: a sign bit and a uniform of 63 bits.
func Laplace(dst []float64, random []byte, scale float64) {
	random = random[:8*len(dst)]
	i := laplaceFast(dst, random, scale)
	for ; i < len(dst); i++ {
		w := binary.LittleEndian.Uint64(random[8*i:])
		x := minusLn(w<<1) * scale
		dst[i] = math.Float64frombits(math.Float64bits(x) ^ w&(1<<63))
	}
}

func boxMuller(u, v uint64) (x, y float64) {
	e := minusLn(u)
	r := math.Sqrt(e + e)
	cos, sin := turn(v)
	return cos * r, sin * r
}

// minusLn is −ln(u·2⁻⁶⁴): expo of package noise, with products fused. At 0 it
// is about 46.
func minusLn(u uint64) float64 {
	zeros := bits.LeadingZeros64(u)
	man, count := u<<zeros, float64(zeros)
	y := float64(int64(man>>1)) * 0x1p-63
	if man < 0xB504F333F9DE6484 { // √½·2⁶⁴
		y += y
		count++
	}
	s := (1 - y) / (1 + y)
	q := s * s
	p := horner9(q, &atanhTerms)
	return math.FMA(count, math.Ln2, math.FMA(p, s*q, s+s))
}

var (
	cosTerms = [...]float64{1, -1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000}
	sinTerms = [...]float64{-1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800, -1. / 1307674368000}
)

// turn is cos 2πV and sin 2πV for V = v·2⁻⁶⁴: turn of package noise, with products
// fused.
func turn(v uint64) (cos, sin float64) {
	w := v + 1<<61
	x := float64(int64(w&(1<<62-1))-1<<61) * (math.Pi / (1 << 63))
	z := x * x
	c := horner9(z, &cosTerms)
	s := math.FMA(horner7(z, &sinTerms), x*z, x)
	if w>>62&1 == 1 {
		c, s = s, c
	}
	sign := func(f float64, bit uint64) float64 { return math.Float64frombits(math.Float64bits(f) ^ bit&(1<<63)) }
	return sign(c, w^w<<1), sign(s, w)
}
