//go:build !amd64

package kern

// Sweep reads x once: the yardstick of what a pass over rows can reach.
func Sweep(x []float32) { sweepPlain(x) }

// Peak does about n fused multiply-adds, and returns how many: the yardstick of Gemm.
func Peak[T float](n int) int { return peakPlain(n) }
