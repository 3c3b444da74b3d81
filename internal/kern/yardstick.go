package kern

import (
	"math"
	"runtime"
)

func sweepPlain(x []float32) {
	var a, b, c, d float32
	for i := 0; i+4 <= len(x); i += 4 {
		v := x[i:][:4]
		a, b, c, d = max(a, v[0]), max(b, v[1]), max(c, v[2]), max(d, v[3])
	}
	runtime.KeepAlive(a + b + c + d)
}

func peakPlain(n int) int {
	var s [8]float64
	for i := 0; i < n; i += 8 {
		for j := range s {
			s[j] = math.FMA(s[j], 0.5, 1)
		}
	}
	runtime.KeepAlive(s)
	return n
}
