//go:build !amd64

package kern

func tileSize[T float]() (rows, cols, one int) { return 2, 4, 4 }

func tile[T float](k int, a []T, row int, b []T, cols int, c []T, ldc int) {
	tilePlain(k, a, row, b, c, ldc)
}

func panelsFast[T float]([]T, int, []T, int, int) int { return 0 }
