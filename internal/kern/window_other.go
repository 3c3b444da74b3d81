//go:build !amd64

package kern

func axpyWholeFast([]float64, []float64, []float32, int, []int32, float64) bool { return false }
func highestFast([]float32, []int32, []float32, int32) int                      { return 0 }
func addWhereFast([]float32, []float32, []int32, int32) int                     { return 0 }
func addFast([]float32, []float32) int                                          { return 0 }
func linesFast(bool, []float32, []float32, []int32, int) bool                   { return false }
