package model

import (
	"math"

	"github.com/sottodp/sotto/internal/kern"
)

// number is what a network computes in.
type number interface{ float32 | float64 }

// A shape is that of a row between two layers: the points of an image, row after row, and at each
// the channels. A plain row is 1×1×n.
type shape struct{ height, width, channels int }

func (s shape) size() int { return s.height * s.width * s.channels }

// A layer is the public description of one layer of a network, a value without data: the shape of its output, and how
// many parameters it has. newWorker returns the worker that computes it.
type layer interface {
	in() int    // numbers of a row that comes in
	out() shape // of a row that goes out
	params() int
	// start sets the initial parameters, for inputs with a norm of about norm.
	start(norm float64) []Span
	// inPlace: the output is in the memory of the input, as for an activation.
	inPlace() bool
}

// A worker computes a layer: it has the parameters in T, and a tile of rows. What it computes for a row is, bit for
// bit, a function of only the row and the parameters, not of the row's position, its neighbors or their number. The
// guarantee rests on this (ADR 17).
//
// The order of calls is load, forward, and for training backward; then the others. The caller does not change slices of
// rows that it gave to a worker until the next forward, except those of a layer in place.
type worker[T number] interface {
	// load takes the parameters.
	load(w []float64)
	// forward sets out to n rows computed from in. Any content of out is overwritten; in place out is in.
	forward(out, in []T, n int)
	// backward takes err = ∂ℓ/∂out and sets back = ∂ℓ/∂in. The first layer has back = nil and only
	// keeps err. In place back is err.
	backward(back, err []T)
	// addNorm adds the norm of the layer's gradient to those of the layers before: dst_i becomes √(dst_i² + part²) for p =
	// 2, dst_i + part for p = 1. The part is never below the norm of what addGrad adds for c_i = 1, in exact arithmetic
	// but for factors of 1 + 2⁻⁵⁰ that the caller covers. It is NaN or +Inf where a figure is not finite.
	addNorm(dst []float64, p int)
	// addGrad is Pass.AddGrad for the layer's parameters: exact sums of multiples of unit·netUnit, of which a row's
	// are entry by entry no longer than its c_i·∂ℓ_i/∂w as computed.
	addGrad(dst, c []float64, unit float64)
	// addBound is addNorm for p = 2 of the largest gradient that an error of norm d_i can give; it reads
	// no error.
	addBound(dst, d []float64)
	// reach turns d_i, a bound on the norm of the error err, into one on the error back as backward computes
	// it, rounding included.
	reach(d []float64)
}

// newWorker returns the worker for a layer.
func newWorker[T number](l layer) worker[T] {
	switch l := l.(type) {
	case *denseLayer:
		return &denseWorker[T]{denseLayer: l}
	case *activation:
		return &activationWorker[T]{activation: l}
	case *conv:
		from, line := l.lines()
		return &convWorker[T]{conv: l, from: from, line: line, framed: make([]T, l.framed().size())}
	case *pool:
		return &poolWorker[T]{pool: l}
	case *groupNorm:
		return &groupNormWorker[T]{groupNorm: l}
	}
	panic("model: a layer that nothing computes")
}

// rounding is the relative error of one rounding in T, and least more than any error of one below the normal numbers.
func rounding[T number]() (relative, least float64) {
	if _, single := any(T(0)).(float32); single {
		return 0x1p-24, 0x1p-149
	}
	return 0x1p-53, 0x1p-1070
}

// convert copies w to v, and reports whether all are finite in T.
func convert[T number](v []T, w []float64) (finite bool) {
	if single, ok := any(v).([]float32); ok {
		return kern.Narrow(single, w)
	}
	finite = true
	for i, x := range w {
		v[i] = T(x)
		finite = finite && math.Abs(x) <= math.MaxFloat64
	}
	return finite
}

// wide copies w to v, which is made as long.
func wide[T number](v []float64, w []T) []float64 {
	v = grow(v, len(w))
	for i, x := range w {
		v[i] = float64(x)
	}
	return v
}

// norms2 sets dst_i to the norm of row i of x, rounded up; NaN or +Inf where it is not finite, or nearly so.
func norms2[T number](dst []float64, x []T, width int) {
	if single, ok := any(x).([]float32); ok {
		kern.Norm2(dst, single, width, nil, width) // no square of a float32 underflows
		return
	}
	double := any(x).([]float64)
	for i := range dst {
		dst[i] = norm2(double[i*width : (i+1)*width])
	}
}

// norms1 is norms2 for the sum of magnitudes.
func norms1[T number](dst []float64, x []T, width int) {
	if single, ok := any(x).([]float32); ok {
		kern.Abs1(dst, single, width, nil, width)
		return
	}
	double := any(x).([]float64)
	for i := range dst {
		dst[i] = abs1(double[i*width : (i+1)*width])
	}
}
