package kern

import "unsafe"

// A microKernel adds a tile: k terms of A and B to C. For panels arow is not used.
type microKernel[T float] func(k int, a *T, arow int, b *T, c *T, ldc int)

// The micro-kernels of AVX2 and AVX-512 by layout of A, rows and panels, and by
// registers across.
var (
	micro32 = [2][2][3]microKernel[float32]{
		{{gemmRowsF32AVX2x1, gemmRowsF32AVX2x2}, {gemmPanelF32AVX2x1, gemmPanelF32AVX2x2}},
		{{gemmRowsF32AVX512x1, gemmRowsF32AVX512x2, gemmRowsF32AVX512x3}, {gemmPanelF32AVX512x1, gemmPanelF32AVX512x2, gemmPanelF32AVX512x3}},
	}
	micro64 = [2][2][3]microKernel[float64]{
		{{gemmRowsF64AVX2x1, gemmRowsF64AVX2x2}, {gemmPanelF64AVX2x1, gemmPanelF64AVX2x2}},
		{{gemmRowsF64AVX512x1, gemmRowsF64AVX512x2, gemmRowsF64AVX512x3}, {gemmPanelF64AVX512x1, gemmPanelF64AVX512x2, gemmPanelF64AVX512x3}},
	}
)

// tileSize is the rows and columns of the micro-kernel in force, and the columns of one
// register.
func tileSize[T float]() (rows, cols, one int) {
	double := int(unsafe.Sizeof(*new(T)) / 4)
	switch use {
	case avx512:
		return 8, 48 / double, 16 / double
	case avx2:
		return 6, 16 / double, 8 / double
	}
	return 2, 4, 4
}

// tile adds one tile of a product, cols columns of B wide. Its slices are those of
// Gemm: they hold what the micro-kernel reads and writes. With row = 0, A is a panel.
func tile[T float](k int, a []T, row int, b []T, cols int, c []T, ldc int) {
	if use == plain {
		tilePlain(k, a, row, b, c, ldc)
		return
	}
	mr, _, one := tileSize[T]()
	layout := 0
	if row == 0 {
		_, layout = a[k*mr-1], 1
	}
	_, _, _ = a[(mr-1)*row+k-1], b[k*cols-1], c[(mr-1)*ldc+cols-1]
	pa, pb, pc := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	if unsafe.Sizeof(*new(T)) == 4 {
		micro32[use-avx2][layout][cols/one-1](k, (*float32)(pa), row, (*float32)(pb), (*float32)(pc), ldc)
	} else {
		micro64[use-avx2][layout][cols/one-1](k, (*float64)(pa), row, (*float64)(pb), (*float64)(pc), ldc)
	}
}

// panelsFast copies the first numbers of a row to their panels, apart numbers apart, as
// far as they fill whole panels of width numbers, and returns how many it copied. It asks
// for the row that lies ahead numbers from this one.
func panelsFast[T float](dst []T, apart int, row []T, ahead, width int) int {
	count := len(row) / width
	if use != avx512 || count == 0 {
		return 0
	}
	_ = dst[(count-1)*apart+width-1]
	size := int(unsafe.Sizeof(*new(T)))
	to, from := (*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&row[0]))
	switch width * size {
	case 32:
		panels32AVX512(to, apart*size, from, ahead*size, count)
	case 64:
		panels64AVX512(to, apart*size, from, ahead*size, count)
	case 192:
		panels192AVX512(to, apart*size, from, ahead*size, count)
	default:
		return 0
	}
	return count * width
}
