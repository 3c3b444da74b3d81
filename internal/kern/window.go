package kern

import "math"

// AxpyWhole adds weighted rows to dst, each product rounded toward zero to a multiple of unit, a
// power of two: dst_j += Σ_i trunc(a_i·x_ij)·unit over the len(a) rows named, where a is in units. A row has len(dst)
// values. A product that is not finite counts as 0.
func AxpyWhole[T float](dst, a []float64, x []T, stride int, rows []int32, unit float64) {
	if f, ok := any(x).([]float32); ok && axpyWholeFast(dst, a, f, stride, rows, unit) {
		return
	}
	for i, c := range a {
		for j, v := range row(x, stride, rows, i, len(dst)) {
			if t := math.Trunc(c * float64(v)); math.Abs(t) <= math.MaxFloat64 {
				dst[j] = math.FMA(t, unit, dst[j])
			}
		}
	}
}

// Highest sets dst_i to x_i and from_i to k wherever x_i is above dst_i.
func Highest[T float](dst []T, from []int32, x []T, k int32) {
	from, x = from[:len(dst)], x[:len(dst)]
	i := 0
	if d, ok := any(dst).([]float32); ok {
		i = highestFast(d, from, any(x).([]float32), k)
	}
	for ; i < len(dst); i++ {
		if x[i] > dst[i] {
			dst[i], from[i] = x[i], k
		}
	}
}

// AddWhere adds x_i to dst_i wherever from_i is k.
func AddWhere[T float](dst, x []T, from []int32, k int32) {
	from, x = from[:len(dst)], x[:len(dst)]
	i := 0
	if d, ok := any(dst).([]float32); ok {
		i = addWhereFast(d, any(x).([]float32), from, k)
	}
	for ; i < len(dst); i++ {
		if from[i] == k {
			dst[i] += x[i]
		}
	}
}

// Add adds x to dst.
func Add[T float](dst, x []T) {
	x = x[:len(dst)]
	i := 0
	if d, ok := any(dst).([]float32); ok {
		i = addFast(d, any(x).([]float32))
	}
	for ; i < len(dst); i++ {
		dst[i] += x[i]
	}
}

// CopyLines sets dst to lines of line numbers, one after the other, that begin at from in src.
func CopyLines[T float](dst, src []T, from []int32, line int) {
	if d, ok := any(dst).([]float32); ok && linesFast(false, d, any(src).([]float32), from, line) {
		return
	}
	for i, f := range from {
		copy(dst[i*line:(i+1)*line], src[f:])
	}
}

// AddLines is the reverse: it adds lines of src, one after the other, to dst from each of from on.
func AddLines[T float](dst, src []T, from []int32, line int) {
	if d, ok := any(dst).([]float32); ok && linesFast(true, d, any(src).([]float32), from, line) {
		return
	}
	for i, f := range from {
		Add(dst[f:int(f)+line], src[i*line:])
	}
}
