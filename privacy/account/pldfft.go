package account

import (
	"math"
	"math/bits"
	"sync"
)

// unit is the rounding unit of float64.
const unit = 0x1p-53

// fftError bounds, for a transform of n points with inputs x, the error of every
// output relative to Σ|x|. PROOFS.md#pld-composition.
func fftError(n int) float64 { return 10 * unit * float64(bits.Len(uint(n))) }

var (
	twiddleMu    sync.Mutex
	twiddleTable []complex128 // e^{−2πik/N} for k < N/2, for the largest N so far
)

// twiddles returns e^{−2πik/N}, k < N/2, for some N ≥ n, and N/n. Tables beyond
// 2¹⁸ points are not kept.
func twiddles(n int) ([]complex128, int) {
	twiddleMu.Lock()
	defer twiddleMu.Unlock()
	if size := 2 * len(twiddleTable); size >= n {
		return twiddleTable, size / n
	}
	table := make([]complex128, n/2)
	for k := range table {
		s, c := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
		table[k] = complex(c, s)
	}
	if n <= 1<<18 {
		twiddleTable = table
	}
	return table, 1
}

// fft transforms x in place, n = len(x) a power of two. The outputs are in
// bit-reversed order.
func fft(x []complex128) {
	table, stride := twiddles(len(x))
	for half := len(x) / 2; half >= 1; half, stride = half/2, stride*2 {
		for start := 0; start < len(x); start += 2 * half {
			lo, hi := x[start:start+half], x[start+half:start+2*half]
			for k := range lo {
				a, b := lo[k], hi[k]
				lo[k] = a + b
				hi[k] = (a - b) * table[k*stride]
			}
		}
	}
}

// inverseFFT takes bit-reversed spectra back, without the factor 1/n.
func inverseFFT(x []complex128) {
	table, stride := twiddles(len(x))
	stride *= len(x) / 2
	for half := 1; half < len(x); half, stride = half*2, stride/2 {
		for start := 0; start < len(x); start += 2 * half {
			lo, hi := x[start:start+half], x[start+half:start+2*half]
			for k := range lo {
				w := table[k*stride]
				a, b := lo[k], hi[k]*complex(real(w), -imag(w))
				lo[k] = a + b
				hi[k] = a - b
			}
		}
	}
}

// power is z^n by squarings. Its relative error is below 8·n units.
func power(z complex128, n uint64) complex128 {
	r := complex(1, 0)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			r *= z
		}
		z *= z
	}
	return r
}
