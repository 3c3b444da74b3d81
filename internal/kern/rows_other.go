//go:build !amd64

package kern

func best() level { return plain }

// There are no kernels here but the twins.
func dotFast[T float]([]float64, []T, int, []int32, []float64) bool  { return false }
func axpyFast[T float]([]float64, []float64, []T, int, []int32) bool { return false }
func normFast(int, []float64, []float32, int, []int32, int) bool     { return false }
func dotManyFast([]float64, int, []float32, int, []int32, int, []float64, int, [][]float32) bool {
	return false
}
func axpyManyFast([]float64, []float64, int, []float32, int, []int32, int, int, [][]float32) bool {
	return false
}
func pointFast(int, []float64, []float64) bool                      { return false }
func dotSparseFast(*[8]float64, []int32, []float32, []float64) bool { return false }
func axpySparseFast([]float64, float64, []int32, []float32) bool    { return false }
func coefFast([]float64, []float64, []float64, float64) int         { return 0 }

// Prefetch asks memory for x, which is soon to be read, and does not wait. Here it
// does nothing.
func Prefetch[T float | int32 | int16 | byte](x []T) {}
