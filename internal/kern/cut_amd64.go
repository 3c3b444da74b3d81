package kern

func (c *Cuts) fast(row, x []float32, inv, f, unit float64) bool {
	n := len(x)
	if use == plain || n < 4 {
		return false
	}
	cutAVX2(&row[0], &x[0], &c.at[0], &c.half[0], &c.last[0], n/4, inv, f, unit)
	if n%4 != 0 { // the last four once more
		cutAVX2(&row[0], &x[n-4], &c.at[n-4], &c.half[n-4], &c.last[n-4], 1, inv, f, unit)
	}
	return true
}
