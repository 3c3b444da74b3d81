package kern

import "unsafe"

// A listKernel is a microKernel of listed terms.
type listKernel[T float] func(k int, a *T, arow int, list *int32, b *T, c *T, ldc int)

// A microKernel adds a tile: k terms of A and B to C. For panels arow is not used.
type microKernel[T float] func(k int, a *T, arow int, b *T, c *T, ldc int)

// The micro-kernels of AVX2 and AVX-512 by layout of A, rows and panels, and by
// registers across.
var (
	micro32 = [2][2][3]microKernel[float32]{
		{{gemmRowsF32AVX2x1, gemmRowsF32AVX2x2}, {gemmPanelF32AVX2x1, gemmPanelF32AVX2x2}},
		{{gemmRowsF32AVX512x1, gemmRowsF32AVX512x2, gemmRowsF32AVX512x3},
			{gemmPanelF32AVX512x1, gemmPanelF32AVX512x2, gemmPanelF32AVX512x3}},
	}
	micro64 = [2][2][3]microKernel[float64]{
		{{gemmRowsF64AVX2x1, gemmRowsF64AVX2x2}, {gemmPanelF64AVX2x1, gemmPanelF64AVX2x2}},
		{{gemmRowsF64AVX512x1, gemmRowsF64AVX512x2, gemmRowsF64AVX512x3},
			{gemmPanelF64AVX512x1, gemmPanelF64AVX512x2, gemmPanelF64AVX512x3}},
	}
	list32 = [3]listKernel[float32]{gemmRowsListF32AVX512x1, gemmRowsListF32AVX512x2, gemmRowsListF32AVX512x3}
	list64 = [3]listKernel[float64]{gemmPanelListF64AVX512x1, gemmPanelListF64AVX512x2, gemmPanelListF64AVX512x3}
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
// Gemm: they hold what the micro-kernel reads and writes. With row = 0, A is a panel. With a list, of k numbers,
// float32 in rows or float64 in panels, those terms are summed, which AVX-512 alone has.
func tile[T float](k int, a []T, row int, list []int32, b []T, cols int, c []T, ldc int) {
	if use == plain {
		tilePlain(k, a, row, b, c, ldc)
		return
	}
	mr, _, one := tileSize[T]()
	layout, last := 0, k-1
	if list != nil {
		last = int(list[k-1])
	}
	if row == 0 {
		_, layout = a[k*mr-1], 1
	} else {
		_ = a[(mr-1)*row+last]
	}
	_, _ = b[(last+1)*cols-1], c[(mr-1)*ldc+cols-1]
	pa, pb, pc := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	switch single := unsafe.Sizeof(*new(T)) == 4; {
	case list != nil && single:
		list32[cols/one-1](k, (*float32)(pa), row, &list[0], (*float32)(pb), (*float32)(pc), ldc)
	case list != nil:
		list64[cols/one-1](k, (*float64)(pa), row, &list[0], (*float64)(pb), (*float64)(pc), ldc)
	case single:
		micro32[use-avx2][layout][cols/one-1](k, (*float32)(pa), row, (*float32)(pb), (*float32)(pc), ldc)
	default:
		micro64[use-avx2][layout][cols/one-1](k, (*float64)(pa), row, (*float64)(pb), (*float64)(pc), ldc)
	}
}

// wholePanelFast is wholePanel for panels of eight numbers, all there: it lists the terms that are not all zeros.
func wholePanelFast[T float](t *tiler[float64], s int, a []float64, x []T, stride int, round bool) (int, bool) {
	single, ok := any(x).([]float32)
	if !ok || use != avx512 {
		return 0, false
	}
	k := len(a)
	dst, list := t.a[s*k:], t.list[s/8*depth:]
	_, _, _ = dst[8*k-1], list[k-1], single[(k-1)*stride+7]
	if round {
		return wholePanelAVX512(&dst[0], &list[0], &a[0], &single[0], stride, k), true
	}
	return plainPanelAVX512(&dst[0], &list[0], &a[0], &single[0], stride, k), true
}

// listTerms lists the terms of which eight rows have not only zeros, ascending. It may write up to 16 numbers beyond
// terms.
func listTerms(list []int32, a []float32, lda, terms int) int {
	_, _ = list[terms+15], a[7*lda+terms-1]
	return listTermsAVX512(&list[0], &a[0], lda, terms)
}

// panelsFast copies the first numbers of a row to their panels, apart numbers apart, as
// far as they fill whole panels of width numbers, and returns how many it copied. It
// prefetches the row that is ahead numbers from this one.
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
