package kern

// leastUnit: from it up to its inverse, units and whole numbers of them are float32 numbers with all their digits.
const leastUnit = 0x1p-90

func (c *Cuts) fast(rows []float32, dim int, x []float32, stride int, inv, f []float64, unit float64, t *CutTile) bool {
	n := len(c.at)
	switch {
	case unit < leastUnit || unit > 1/leastUnit:
		return false
	case use == avx512 && n >= 8:
		cutAVX512(&rows[0], dim, &x[0], stride, &inv[0], &f[0], len(f), &c.at[0], &c.half[0], &c.last[0], n, float32(unit),
			&t.lines[0], &t.places[0], &t.pairs[0])
	case use != plain && n >= 4:
		cutAVX2(&rows[0], dim, &x[0], stride, &inv[0], &f[0], len(f), &c.at[0], &c.half[0], &c.last[0], n, float32(unit),
			&t.lines[0], &t.places[0], &t.pairs[0])
	default:
		return false
	}
	return true
}

func cutSumFast(dst, a []float64, places []int32, pairs []float32, n int) bool {
	if use == plain {
		return false
	}
	cutSumFMA(&dst[0], &a[0], len(a), &places[0], &pairs[0], n)
	return true
}

func cutDotFast(dst, w []float64, t *CutTile, n int) bool {
	if use == plain {
		return false
	}
	cutDotFMA(&dst[0], &w[0], len(dst), &t.lines[0], &t.sum[0], &t.places[0], &t.pairs[0], n)
	return true
}

func (p *Products) fast(rows []float32, dim int, x []float32, stride int, inv, f []float64, unit float64) bool {
	if use == plain || len(f) < 4 || unit < leastUnit || unit > 1/leastUnit {
		return false
	}
	productsAVX2(&rows[0], dim, &x[0], stride, &inv[0], &f[0], len(f), &p.a[0], &p.b[0], &p.at[0], len(p.at),
		float64(p.bumps-1)/2, int32(p.bumps-2), int32(p.bumps), float32(unit))
	return true
}
