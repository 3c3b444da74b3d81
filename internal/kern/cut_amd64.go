package kern

// leastUnit: from it up to its inverse, units and whole numbers of them are float32 numbers with all their digits.
const leastUnit = 0x1p-90

func (c *Cuts) fast(rows []float32, dim int, x []float32, stride int, inv, f []float64, unit float64) bool {
	n := len(c.at)
	switch {
	case unit < leastUnit || unit > 1/leastUnit:
		return false
	case use == avx512 && n >= 8:
		cutAVX512(&rows[0], dim, &x[0], stride, &inv[0], &f[0], len(f), &c.at[0], &c.half[0], &c.last[0], n, float32(unit))
	case use != plain && n >= 4:
		cutAVX2(&rows[0], dim, &x[0], stride, &inv[0], &f[0], len(f), &c.at[0], &c.half[0], &c.last[0], n, float32(unit))
	default:
		return false
	}
	return true
}
