//go:build !amd64

package kern

func squaresFast(s *[4]float64, v []float64) int { return 0 }

func descendFast(s *[4]float64, w, v []float64, eta float64) int { return 0 }

func approachFast(dst, v []float64, all float64) int { return 0 }
