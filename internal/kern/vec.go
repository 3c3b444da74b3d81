package kern

import (
	"math"
	"unsafe"
)

// The pointwise functions in plain Go, operation by operation what the kernels do
// (avo/vec.go), so that all give the same bits.

const (
	ln2Hi = 0x1.62e42feep-1 // 33 bits of ln 2: n·ln2Hi is exact for the n of exp
	ln2Lo = 0x1.a39ef35793c76p-33
)

// expTerms are 1/k!, atanhTerms 2/(2k+3).
var expTerms, atanhTerms = func() (e [14]float64, a [9]float64) {
	f := 1.0
	for k := range e {
		if k > 1 {
			f *= float64(k)
		}
		e[k] = 1 / f
	}
	for k := range a {
		a[k] = 2 / float64(2*k+3)
	}
	return e, a
}()

// horner9 and horner14 are Σ c_k·q^k, term by term: a loop over them would be slower.
func horner9(q float64, c *[9]float64) float64 {
	p := math.FMA(c[8], q, c[7])
	p = math.FMA(p, q, c[6])
	p = math.FMA(p, q, c[5])
	p = math.FMA(p, q, c[4])
	p = math.FMA(p, q, c[3])
	p = math.FMA(p, q, c[2])
	p = math.FMA(p, q, c[1])
	p = math.FMA(p, q, c[0])
	return p
}

func horner14(q float64, c *[14]float64) float64 {
	p := math.FMA(c[13], q, c[12])
	p = math.FMA(p, q, c[11])
	p = math.FMA(p, q, c[10])
	p = math.FMA(p, q, c[9])
	p = math.FMA(p, q, c[8])
	p = math.FMA(p, q, c[7])
	p = math.FMA(p, q, c[6])
	p = math.FMA(p, q, c[5])
	p = math.FMA(p, q, c[4])
	p = math.FMA(p, q, c[3])
	p = math.FMA(p, q, c[2])
	p = math.FMA(p, q, c[1])
	p = math.FMA(p, q, c[0])
	return p
}

// exp is e^x. With n = x/ln 2 rounded and t = x − n·ln 2, |t| ≤ 0.347, it is 2ⁿ·e^t,
// e^t by its series up to t¹³/13! (what is left out is below 2⁻⁵⁷ of it). The power
// of two comes in two factors, so that no exponent leaves its range early.
func exp(x float64) float64 {
	const magic = 0x1.8p52 // adding it rounds to an integer, in the low bits
	if !(x > -1000) && x == x {
		x = -1000
	}
	if x > 1000 {
		x = 1000
	}
	nf := math.FMA(x, math.Log2E, magic)
	n := nf - magic
	t := math.FMA(-n, ln2Lo, math.FMA(-n, ln2Hi, x))
	p := horner14(t, &expTerms)
	two := math.Float64bits(nf) - math.Float64bits(magic) + 4096
	half := two >> 1
	const bias = 1<<64 - 1025
	p *= math.Float64frombits((half + bias) << 52)
	return p * math.Float64frombits((two-half+bias)<<52)
}

// log1p is ln(1+u) for 0 ≤ u ≤ 1: ln(1+v) = v − s·(v − q·P(q)) with s = v/(2+v),
// q = s² ≤ 0.0295 and P the series of 2·artanh s (what is left out is below 2⁻⁵⁵ of
// it); above √2−1, 1+u is halved first.
func log1p(u float64) float64 {
	v, base := u, 0.0
	if u > math.Sqrt2-1 {
		v, base = (u-1)*0.5, math.Ln2
	}
	s := v / (v + 2)
	q := s * s
	l := math.FMA(-horner9(q, &atanhTerms), q, v)
	return math.FMA(-l, s, v) + base
}

// Aligned is n zeros that begin on a line of the cache, with no line shared: sums that
// a kernel writes again and again.
func Aligned(n int) []float64 {
	const line = 8 // float64 in 64 bytes
	room := make([]float64, n+2*line-1)
	skip := 0
	if at := uintptr(unsafe.Pointer(&room[0])) / 8 % line; at != 0 {
		skip = int(line - at)
	}
	return room[skip : skip+n : skip+n]
}
