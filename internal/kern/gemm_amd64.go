package kern

import "unsafe"

// tileSize is the rows and columns of the micro-kernel in force.
func tileSize[T float]() (rows, cols int) {
	double := int(unsafe.Sizeof(*new(T)) / 4)
	switch use {
	case avx512:
		return 12, 32 / double
	case avx2:
		return 6, 16 / double
	}
	return 2, 4
}

// tile adds one tile of a product. Its slices are those of Gemm: they hold what the
// micro-kernel reads and writes.
func tile[T float](k int, a []T, row, col int, b, c []T, ldc int) {
	if use == plain {
		tilePlain(k, a, row, col, b, c, ldc)
		return
	}
	mr, nr := tileSize[T]()
	_, _, _ = a[(mr-1)*row+(k-1)*col], b[k*nr-1], c[(mr-1)*ldc+nr-1]
	pa, pb, pc := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	switch wide, f32 := use == avx512, unsafe.Sizeof(*new(T)) == 4; {
	case wide && f32:
		gemmF32AVX512(k, (*float32)(pa), row, col, (*float32)(pb), (*float32)(pc), ldc)
	case wide:
		gemmF64AVX512(k, (*float64)(pa), row, col, (*float64)(pb), (*float64)(pc), ldc)
	case f32:
		gemmF32AVX2(k, (*float32)(pa), row, col, (*float32)(pb), (*float32)(pc), ldc)
	default:
		gemmF64AVX2(k, (*float64)(pa), row, col, (*float64)(pb), (*float64)(pc), ldc)
	}
}
