//go:build !amd64

package kern

func tileSize[T float]() (rows, cols, one int) { return 2, 4, 4 }

func tile[T float](k int, a []T, row int, _ []int32, b []T, cols int, c []T, ldc int) {
	tilePlain(k, a, row, b, c, ldc)
}

func panelsFast[T float]([]T, int, []T, int, int) int { return 0 }

func wholePanelFast[T float](*tiler[float64], int, []float64, []T, int, bool) (int, bool) {
	return 0, false
}

func listTerms([]int32, []float32, int, int) int { panic("kern: no lists without kernels") }
