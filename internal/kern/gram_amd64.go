package kern

import "unsafe"

func wholeFast(dst []float64, side int, a []float64, x []float32, stride int, rows []int32, n int) bool {
	if use == plain || n == 0 {
		return false
	}
	m := len(a)
	need(x, stride, rows, m, n)
	if side != Padded(n) || len(dst) < m*side {
		panic("kern: whole rows have another place")
	}
	if rows != nil {
		rows = rows[:m]
	}
	run := wholeAVX2
	if use == avx512 {
		run = wholeAVX512
	}
	run(&dst[0], n, &a[0], unsafe.SliceData(x), stride, unsafe.SliceData(rows), m)
	return true
}

var gramKernels = [2][3]func(k int, a, b *float64, step int, c *float64, ldc int){
	{gramAVX2x1, gramAVX2x2, gramAVX2x3},
	{gramAVX512x1, gramAVX512x2, gramAVX512x3},
}

func gramFast(dst []float64, side int, v []float64, m int) bool {
	if use == plain {
		return false
	}
	if side%8 != 0 || len(v) < m*side || len(dst) < side*side {
		panic("kern: a product of rows reaches beyond them")
	}
	one := 4 // columns of a register, and rows of a tile
	if use == avx512 {
		one = 8
	}
	kernels := &gramKernels[use-avx2]
	for i := 0; i < side; i += one {
		for j := i; j < side; {
			across := min(3, (side-j)/one)
			if left := (side - j) / one; left == 4 {
				across = 2 // 2 and 2 load less than 3 and 1
			}
			kernels[across-1](m, &v[i], &v[j], side, &dst[i*side+j], side)
			j += across * one
		}
	}
	return true
}
