package kern

// GaussianAdd adds to numbers of dst, from the first on, scale times a standard
// Gaussian value, rounded to the nearest integer, a pair from each two words, and
// returns to how many: it stops before 16 of which one value is not proven, or where
// less than 16 are left, or at once where there is no kernel. A value is proven by the bounds of package noise
// (AddGaussian); a pair whose first word is below 2⁴⁹ is never proven. Sums wrap around. Scale is at most 2⁵⁴.
func GaussianAdd(dst []int64, words []uint64, scale float64) int {
	n := min(len(dst), len(words)) &^ 15
	if use != avx512 || n == 0 || scale < leastScale {
		return 0
	}
	return n - 16*gaussianAddAVX512(&dst[0], &words[0], n/16, scale, scale*scale*0x1p-44)
}

// LaplaceRound sets values of dst to Laplace values, one from each word: a sign bit
// and a uniform of 63 bits, in groups of 8. They are rounded and proven as by GaussianAdd.
func LaplaceRound(dst []int64, words []uint64, scale float64) int {
	n := len(dst) &^ 7
	if use != avx512 || n == 0 || scale < leastScale {
		return 0
	}
	return n - 8*laplaceRoundAVX512(&dst[0], &words[:n][0], n/8, scale/2, scale*0x1p-45)
}

// leastScale keeps products of scales within the normal numbers.
const leastScale = 0x1p-400

// ChaCha8 sets out to the words that chacha8rand (c2sp.org/chacha8rand) makes of one
// key, and reports true; or false where there is no kernel. The first 124 are its
// output, the last four the next key.
func ChaCha8(out *[128]uint64, key *[4]uint64) bool {
	if use != avx512 {
		return false
	}
	chacha8AVX512(out, key)
	return true
}
