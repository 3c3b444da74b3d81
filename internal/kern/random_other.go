//go:build !amd64

package kern

// GaussianAdd has no kernel on this platform: it returns 0.
func GaussianAdd(dst []int64, words []uint64, scale float64) int { return 0 }

// LaplaceRound has no kernel on this platform: it returns 0.
func LaplaceRound(dst []int64, words []uint64, scale float64) int { return 0 }

// ChaCha8 has no kernel on this platform: it returns false.
func ChaCha8(out *[128]uint64, key *[4]uint64) bool { return false }
