package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/kern"
)

// A denseLayer is z = (a, 1)·W, W ∈ R^{(m+1)×n}, row after row; the last row is the bias b. A bare one is z = a·W.
type denseLayer struct {
	rows, cols int     // m, n
	gain       float64 // of the start: see heGain
	bare       bool    // has no bias
}

// parseDense reads a dense layer and its activation, as in "128 relu".
func parseDense(text string, in int, bare bool) ([]layer, error) {
	words := strings.Fields(text)
	n, act := 0, relu
	var err error
	if len(words) > 0 {
		n, err = strconv.Atoi(words[0])
	}
	if len(words) == 2 {
		act = words[1]
	}
	if err != nil || len(words) < 1 || len(words) > 2 || n < 1 || n > maxWidth || !isActivation(act) {
		return nil, fmt.Errorf("model: layers: found %q; write a number of units from 1 to %d and relu (the default), tanh or linear, as in 128 relu", text, maxWidth)
	}
	layers := []layer{&denseLayer{in, n, heGain(act), bare}}
	if act != ident {
		layers = append(layers, &activation{act, shape{1, 1, n}})
	}
	return layers, nil
}

func (d *denseLayer) in() int       { return d.rows }
func (d *denseLayer) out() shape    { return shape{1, 1, d.cols} }
func (d *denseLayer) params() int   { return d.rows*d.cols + d.biases() }
func (d *denseLayer) inPlace() bool { return false }
func (d *denseLayer) fan() int      { return d.rows }

func (d *denseLayer) biases() int {
	if d.bare {
		return 0
	}
	return d.cols
}

// start is uniform, for z of size 1; biases are 0.
func (d *denseLayer) start(norm float64) []Span {
	return []Span{{d.rows * d.cols, math.Sqrt(d.gain) / norm}, {d.biases(), 0}}
}

// A denseWorker uses the gradient (a, 1)ᵀ·δ of a row with input a and error δ without forming it: its norm is ‖(a,
// 1)‖·‖δ‖ (R13, "ghost norms"), and a weighted sum of gradients is one matrix product. Of a bare layer read a for (a,
// 1).
type denseWorker[T number] struct {
	*denseLayer
	w, bias  []T
	finite   bool      // all of w
	wide     []float64 // w
	spectral spectral
	norm     float64 // for reach
	normed   bool

	a, err []T
	size   []float64 // ‖(a_i, 1)‖₂, rounded up
	sized  bool

	figures, length []float64
	left, factor    []float64 // what inputs and errors are multiplied by
	right           []float64 // errors, multiplied
	ones            []float64 // what becomes of the 1 beside each input
}

func (d *denseWorker[T]) load(w []float64) {
	d.normed = false
	weights := d.rows * d.cols
	d.w, d.bias = grow(d.w, weights), grow(d.bias, d.cols)
	d.finite = convert(d.w, w[:weights])
	clear(d.bias)
	convert(d.bias[:d.biases()], w[weights:])
}

func (d *denseWorker[T]) forward(out, in []T, n int) {
	d.a, d.sized = in, false
	d.size = grow(d.size, n)
	for i := range n {
		copy(out[i*d.cols:], d.bias)
	}
	if rows, ok := any(in).([]float32); ok && d.finite { // then zeros may be left out: inputs are often images
		kern.GemmSparse(n, d.cols, d.rows, rows, d.rows, any(d.w).([]float32), d.cols, any(out).([]float32), d.cols)
		return
	}
	kern.Gemm(false, false, n, d.cols, d.rows, in, d.rows, d.w, d.cols, out, d.cols)
}

func (d *denseWorker[T]) backward(back, err []T) {
	d.err = err
	if back == nil {
		return
	}
	clear(back)
	kern.Gemm(false, true, len(d.size), d.rows, d.cols, err, d.cols, d.w, d.cols, back, d.rows)
}

// sizes are the norms of the inputs.
func (d *denseWorker[T]) sizes() []float64 {
	if !d.sized {
		norms2(d.size, d.a, d.rows)
		d.sized = true
		if d.bare {
			return d.size
		}
		for i, v := range d.size {
			d.size[i] = math.Hypot(v, 1) * (1 + 0x1p-50)
		}
	}
	return d.size
}

func (d *denseWorker[T]) addNorm(dst []float64, p int) {
	d.figures = grow(d.figures, len(dst))
	if p == 2 {
		norms2(d.figures, d.err, d.cols)
		d.addBound(dst, d.figures)
		return
	}
	norms1(d.figures, d.err, d.cols)
	d.length = grow(d.length, len(dst))
	norms1(d.length, d.a, d.rows)
	one := 1.0
	if d.bare {
		one = 0
	}
	for i, a := range d.length {
		dst[i] += up(d.figures[i], one+a)
	}
}

func (d *denseWorker[T]) addBound(dst, delta []float64) {
	for i, size := range d.sizes() {
		dst[i] = math.Hypot(dst[i], up(delta[i], size))
	}
}

// reach multiplies by a bound on ‖W‖₂ (S-0b). A computed product δ·Wᵀ of n terms, in blocks, is off by γ·‖δ‖·‖W‖_F at
// most, γ = n roundings to first order, and twice that where a fused product rounds twice: four times covers the other
// orders. Below the normal numbers each of its n·m roundings may be off by the least number.
func (d *denseWorker[T]) reach(delta []float64) {
	relative, least := rounding[T]()
	if !d.normed {
		d.wide = wide(d.wide, d.w)
		frobenius := []float64{0}
		norms2(frobenius, d.w, len(d.w))
		// Below 2⁻¹⁰⁰⁰ the spectral bound could have been rounded down.
		d.norm = max(d.spectral.bound(d.wide, d.rows, d.cols), 0x1p-1000)
		d.norm += up(frobenius[0], 4*float64(d.cols+8)*relative)
		d.normed = true
	}
	below := 4 * least * float64(d.cols) * math.Sqrt(float64(d.rows))
	for i, v := range delta {
		delta[i] = up(v, d.norm) + below
	}
}

// addGrad has the inputs as whole numbers of s·netUnit and the errors as multiples of unit·netUnit, once the factors
// have been moved; plain, as they are. The power of two s is above both ‖(a, 1)‖ and 1, also of a bare layer: a smaller
// one could underflow.
func (d *denseWorker[T]) addGrad(dst, c []float64, unit float64) {
	n, in, out := len(c), d.rows, d.cols
	side := kern.Padded(out)
	d.left, d.ones, d.factor, d.right = grow(d.left, n), grow(d.ones, n), grow(d.factor, n), grow(d.right, n*side)
	sizes := d.sizes()
	for i, ci := range c {
		d.left[i], d.ones[i], d.factor[i] = 1, 1, ci
		if unit > 0 {
			_, exp := math.Frexp(max(sizes[i], 1))
			s := math.Ldexp(1, exp)
			d.left[i], d.factor[i] = 1/s/netUnit, ci*s/unit
			d.ones[i] = math.Trunc(d.left[i])
			if !(s <= math.MaxFloat64 && 1/s > 0) {
				ci = 0
			}
		}
		if ci == 0 {
			d.left[i], d.ones[i], d.factor[i] = 0, 0, 0
		}
	}
	if unit > 0 {
		kern.Whole(d.right, side, d.factor, d.err, out, nil, out)
		for i, v := range d.right {
			d.right[i] = v * (unit * netUnit)
		}
	} else {
		for i, ci := range d.factor {
			to := d.right[i*side:][:side]
			clear(to)
			if ci != 0 {
				for j, v := range d.err[i*out:][:out] {
					to[j] = ci * float64(v)
				}
			}
		}
	}
	kern.AddOuter(dst[:in*out], out, d.left, d.a, in, in, d.right, side, out, unit > 0)
	if !d.bare {
		kern.Axpy(dst[in*out:], d.ones, d.right, side, nil)
	}
}
