//go:build !amd64

package kern

func (c *Cuts) fast([]float32, int, []float32, int, []float64, []float64, float64) bool { return false }
