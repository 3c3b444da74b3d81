//go:build !amd64

package kern

func (c *Cuts) fast([]float32, int, []float32, int, []float64, []float64, float64, *CutTile) bool {
	return false
}

func cutSumFast([]float64, []float64, []int32, []float32, int) bool { return false }

func (p *Products) fast([]float32, int, []float32, int, []float64, []float64, float64) bool {
	return false
}

func cutDotFast([]float64, []float64, *CutTile, int) bool { return false }
