//go:build !amd64

package kern

func tileSize[T float]() (rows, cols int) { return 2, 4 }

func tile[T float](k int, a []T, row, col int, b, c []T, ldc int) {
	tilePlain(k, a, row, col, b, c, ldc)
}
