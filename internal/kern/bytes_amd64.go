package kern

import "golang.org/x/sys/cpu"

// words says whether the machine has the one instruction that AVX-512's kernels of bytes need beyond their set. Without
// it AVX2's are used.
var words = cpu.X86.HasAVX512VNNI

// byteClasses is how many of k classes, at least one, go through the kernels together.
func byteClasses(k int) int {
	switch {
	case use == avx512 && words && k >= ten:
		return ten
	case use != plain && k >= five:
		return five
	}
	return 1
}

// A byteKernel is one of the kernels of a product. They are called by name, not through a variable, so that their
// arguments stay on the stack.
type byteKernel int

const (
	avx512x10 byteKernel = iota
	avx512x5
	avx512x1
	avx2x5
	avx2x1
)

func (k byteKernel) dot(z *float64, step int, x *byte, stride, groups int, w *int16, off, scale, row *float64) {
	switch k {
	case avx512x10:
		bytesDotAVX512x10(z, step, x, stride, groups, w, off, scale, row)
	case avx512x5:
		bytesDotAVX512x5(z, step, x, stride, groups, w, off, scale, row)
	case avx512x1:
		bytesDotAVX512x1(z, step, x, stride, groups, w, off, scale, row)
	case avx2x5:
		bytesDotAVX2x5(z, step, x, stride, groups, w, off, scale, row)
	case avx2x1:
		bytesDotAVX2x1(z, step, x, stride, groups, w, off, scale, row)
	}
}

func (k byteKernel) add(dst *float64, d int, a *int16, x *byte, stride, pairs, chunks int, off *float64, unit float64) {
	switch k {
	case avx512x10:
		bytesAddAVX512x10(dst, d, a, x, stride, pairs, chunks, off, unit)
	case avx512x5:
		bytesAddAVX512x5(dst, d, a, x, stride, pairs, chunks, off, unit)
	case avx512x1:
		bytesAddAVX512x1(dst, d, a, x, stride, pairs, chunks, off, unit)
	case avx2x5:
		bytesAddAVX2x5(dst, d, a, x, stride, pairs, chunks, off, unit)
	case avx2x1:
		bytesAddAVX2x1(dst, d, a, x, stride, pairs, chunks, off, unit)
	}
}

func (p *Words) dotFast(z []float64, step int, x []byte, row []float64, first, width int) bool {
	if use == plain {
		return false
	}
	wide := use == avx512 && words
	rows, run := 4, avx2x1
	switch {
	case width == ten:
		rows, run = 2, avx512x10
	case width == five && wide:
		rows, run = 4, avx512x5
	case width == five:
		rows, run = 2, avx2x5
	case wide:
		rows, run = 8, avx512x1
	}
	// The kernels read factors of classes, and of rows, in groups.
	var off, scale [12]float64
	copy(off[:width], p.off[first:])
	copy(scale[:width], p.scale[first:])
	w, m := &p.w[first*p.stride], len(row)
	full := m / rows
	if full > 0 {
		run.dot(&z[0], step, &x[0], p.stride, full, w, &off[0], &scale[0], &row[0])
	}
	if full *= rows; full < m { // the last rows once more, with a place of their own
		var last [ten * 8]float64
		var factor [8]float64
		begin := max(0, m-rows)
		if m >= rows {
			copy(factor[:], row[begin:])
			run.dot(&last[0], 8, &x[begin*p.stride], p.stride, 1, w, &off[0], &scale[0], &factor[0])
			for c := range width {
				copy(z[c*step+full:c*step+m], last[c*8+full-begin:])
			}
			return true
		}
		if len(p.few) < rows*p.stride { // fewer rows than go together
			p.few = make([]byte, rows*p.stride)
		}
		all := p.few
		copy(all, x)
		copy(factor[:], row)
		run.dot(&last[0], 8, &all[0], p.stride, 1, w, &off[0], &scale[0], &factor[0])
		for c := range width {
			copy(z[c*step:c*step+m], last[c*8:])
		}
	}
	return true
}

func addBytesFast(dst []float64, d, n int, a [][ByteRows]int16, x []byte, stride, m int, off []float64,
	unit float64) bool {
	if use == plain {
		return false
	}
	wide := use == avx512 && words
	columns, run := 16, avx2x1
	switch {
	case len(a) == ten:
		columns, run = 32, avx512x10
	case len(a) == five && wide:
		columns, run = 32, avx512x5
	case len(a) == five:
		run = avx2x5
	case wide:
		columns, run = 32, avx512x1
	}
	add := func(w *int16, x []byte, stride, pairs int, off *float64) {
		full := n / columns
		if full > 0 {
			run.add(&dst[0], d, w, &x[0], stride, pairs, full, off, unit)
		}
		if full *= columns; full < n { // the last columns with a place of their own
			var last [ten * 32]float64
			run.add(&last[0], 32, w, &x[full], stride, pairs, 1, off, unit)
			for c := range a {
				to := dst[c*d+full : c*d+n]
				for j := range to {
					to[j] += last[c*32+j]
				}
			}
		}
	}
	var none [ten]float64
	first := &off[:len(a)][0]
	if m >= 2 {
		add(&a[0][0], x, stride, m/2, first)
		first = &none[0]
	}
	if m%2 != 0 { // the last row, and again with a weight that is 0
		add(&a[0][m-1], x[(m-1)*stride:], 0, 1, first)
	}
	return true
}

func byteLargestFast(w []float64) (most uint64) {
	var four [4]uint64
	bytesLargestAVX2(&w[0], len(w), &four)
	return max(four[0], four[1], four[2], four[3])
}

func byteWordsFast(dst []int16, step int, w []float64, scale float64) (sum, size int64) {
	var sums [8]int32
	bytesWordsAVX2(&dst[0], 2*step, &w[0], len(w)/ByteColumns, scale, &sums)
	for i := range 4 {
		sum += int64(sums[i])
		size += int64(sums[4+i])
	}
	return sum, size
}

func byteWeightsFast(dst []int16, a []float64, inverse float64) (sum, most float64) {
	var sums [8]float64
	bytesWeightsAVX2(&dst[0], &a[0], len(a), inverse, &sums)
	return sums[0] + sums[1] + sums[2] + sums[3], max(sums[4], sums[5], sums[6], sums[7])
}
