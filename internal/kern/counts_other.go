//go:build !amd64

package kern

func spillFast([]int64, []float64, float64, bool) int            { return 0 }
func roundShiftFast([]int64, uint) int                           { return 0 }
func releaseFast([]float64, []int64, uint, float64, float64) int { return 0 }
