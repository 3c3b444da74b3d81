package kern

import "math"

// Narrow sets dst to src rounded to float32, and reports whether all are finite then.
func Narrow(dst []float32, src []float64) (finite bool) {
	n, finite := narrowFast(dst, src)
	for i, v := range src[n:] {
		f := float32(v)
		dst[n+i] = f
		finite = finite && math.Abs(float64(f)) <= math.MaxFloat32
	}
	return finite
}

// Rectify sets negative numbers in z to 0. NaN stays NaN.
func Rectify[T float](z []T) {
	z = z[rectifyFast(z):]
	for i, v := range z {
		if v < 0 {
			z[i] = 0
		}
	}
}

// Mask sets d to 0 where a is at most 0.
func Mask[T float](d, a []T) {
	n := maskFast(d, a)
	d, a = d[n:], a[n:len(d)]
	for i, v := range a {
		if v <= 0 {
			d[i] = 0
		}
	}
}
