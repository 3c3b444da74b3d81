package kern

// shortClasses is how many of k classes, at least one, go through the kernels together.
func shortClasses(k int) int {
	if use == avx512 && words && k >= five {
		return five
	}
	return 1
}

func (p *Shorts) dotFast(z []float64, step int, x []int16, m, first, width int) bool {
	if use == plain {
		return false
	}
	rows := 4
	switch {
	case width == five:
		rows = 2
	case use == avx512 && words:
		rows = 8
	}
	w := &p.w[2*first*p.stride]
	run := func(z *float64, step int, x *int16, groups int) {
		switch rows {
		case 2:
			shortDotAVX512x5(z, step, x, p.stride, groups, w)
		case 8:
			shortDotAVX512x1(z, step, x, p.stride, groups, w)
		default:
			shortDotAVX2x1(z, step, x, p.stride, groups, w)
		}
	}
	full := m / rows
	if full > 0 {
		run(&z[0], step, &x[0], full)
	}
	if full *= rows; full < m { // the last rows, with a place of their own
		var last [five * 8]float64
		if len(p.few) < rows*p.stride {
			p.few = make([]int16, 8*p.stride)
		}
		copy(p.few, x[full*p.stride:])
		run(&last[0], 8, &p.few[0], 1)
		for c := range width {
			copy(z[c*step+full:c*step+m], last[c*8:])
		}
	}
	return true
}

func addShortsFast(dst []float64, n int, a []ShortLimbs, x []int16, stride, m int, unit float64) bool {
	if use == plain {
		return false
	}
	columns := 32
	if use != avx512 || !words {
		columns = 16
	}
	run := func(dst *float64, d int, w *int16, x *int16, stride, pairs, chunks int) {
		switch {
		case columns == 16:
			shortAddAVX2x1(dst, d, w, x, stride, pairs, chunks, unit)
		case len(a) == five:
			shortAddAVX512x5(dst, d, w, x, stride, pairs, chunks, unit)
		default:
			shortAddAVX512x1(dst, d, w, x, stride, pairs, chunks, unit)
		}
	}
	add := func(w *int16, x []int16, stride, pairs int) {
		full := n / columns
		if full > 0 {
			run(&dst[0], n, w, &x[0], stride, pairs, full)
		}
		if full *= columns; full < n { // the last columns, with a place of their own
			var last [five * 32]float64
			run(&last[0], 32, w, &x[full], stride, pairs, 1)
			for c := range a {
				to := dst[c*n+full : c*n+n]
				for j := range to {
					to[j] += last[c*32+j]
				}
			}
		}
	}
	if m >= 2 {
		add(&a[0][0][0], x, stride, m/2)
	}
	if m%2 != 0 { // the last row, and again with a weight that is 0
		add(&a[0][0][m-1], x[(m-1)*stride:], 0, 1)
	}
	return true
}

func shortSplitFast(dst []int16, step, chunks int) bool {
	if use == plain || chunks == 0 {
		return false
	}
	_ = dst[(chunks-1)*step+2*ShortColumns-1]
	shortSplitAVX2(&dst[0], 2*step, chunks)
	return true
}
