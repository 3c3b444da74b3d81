//go:build !amd64

package kern

func wholeFast([]float64, int, []float64, []float32, int, []int32, int) bool { return false }
func gramFast([]float64, int, []float64, int) bool                           { return false }
