package kern

// Spill adds acc times scale to counts, and sets acc to 0. The products are whole numbers of at most 2⁵³
// in size; sums wrap around.
func Spill(counts []int64, acc []float64, scale float64) {
	n := spillFast(counts, acc, scale, true)
	counts, acc = counts[n:], acc[n:len(counts)]
	for i, v := range acc {
		counts[i] += int64(v * scale)
		acc[i] = 0
	}
}

// Move is Spill to counts that were 0, whatever they hold.
func Move(counts []int64, acc []float64, scale float64) {
	n := spillFast(counts, acc, scale, false)
	clear(counts[n:])
	Spill(counts[n:], acc[n:len(counts)], scale)
}

// RoundShift divides v by 2^shift, 0 < shift ≤ 64, and rounds to the nearest integer, a half upwards.
func RoundShift(v []int64, shift uint) {
	shift-- // shifts that are seen to stay below 64 are one instruction
	v = v[roundShiftFast(v, shift):]
	for i, x := range v {
		x >>= shift & 63
		v[i] = x - x>>1 // half of ⌊x/2ˢ⁻¹⌋
	}
}

// Release sets dst to counts modulo 2^(64−shift), the remainder nearest to 0, times grid, over size. Shift is below 64.
func Release(dst []float64, counts []int64, shift uint, grid, size float64) {
	n := releaseFast(dst, counts, shift, grid, size)
	dst = dst[n:]
	for i, v := range counts[n:] {
		dst[i] = float64(v<<(shift&63)>>(shift&63)) * grid / size
	}
}
