package kern

import "unsafe"

// Sweep reads x once, up to its last whole 256 bytes: the yardstick of what a pass
// over rows can reach.
func Sweep(x []float32) {
	n := len(x) &^ 63
	switch {
	case n == 0:
	case use == avx512:
		sweepAVX512(&x[0], n)
	case use == avx2:
		sweepAVX2(&x[0], n)
	default:
		sweepPlain(x[:n])
	}
}

// Peak does as many fused multiply-adds of T as a core can, about n of them, and
// returns how many: the yardstick of Gemm.
func Peak[T float](n int) int {
	size := int(unsafe.Sizeof(*new(T)))
	f32, wide := size == 4, 64/size
	switch {
	case use == avx512 && f32:
		peakF32AVX512(n/(12*wide) + 1)
	case use == avx512:
		peakF64AVX512(n/(12*wide) + 1)
	case use == avx2 && f32:
		wide /= 2
		peakF32AVX2(n/(12*wide) + 1)
	case use == avx2:
		wide /= 2
		peakF64AVX2(n/(12*wide) + 1)
	default:
		return peakPlain(n)
	}
	return (n/(12*wide) + 1) * 12 * wide
}
