// Package scatter computes scattering coefficients of images (Bruna and Mallat 2013): low-pass averages of the image,
// of the moduli of its wavelet transform, and of the moduli of theirs, with Morlet wavelets of two scales and eight
// angles. All is fixed by the size of the image, and the coefficients of an image depend on that image alone.
//
// Convolutions are those of Kymatio's Scattering2D with J = 2 and L = 8 (Andreux et al. 2020): periodic over the image
// padded by reflection. They are products of its discrete Fourier transform, and each transform is two matrix products.
package scatter

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/kern"
)

const (
	perDown = 4 // pixels of the image for each coefficient, in each direction

	// Maps is the number of coefficients at each place, for each channel of the image: 1 + 2·8 + 8·8.
	Maps = 1 + 2*Angles + Angles*Angles
	// Angles is the number of wavelets of a scale.
	Angles = 8
	// Group is how many maps are normalized together.
	Group = 3

	// Least is added to the variance of maps that are normalized.
	Least = 1e-5

	MinSide, MaxSide = 8, 64 // of an image, in pixels
	MaxChannels      = 3
)

// A Transform is the transform of images of one size. It is constant.
type Transform struct {
	height, width, channels int
	rows, cols              int // of the padded image, multiples of 4
	down, across            int // coefficients of a map

	image      fourier // of the image, padding included
	moduli     fourier // of padded images
	fine, half inverse // at all places, and at every other one
	first      []float32
	second     []float32 // the wavelets' transforms: angle, row, column; at the first scale, and at the second
	low        lowPass   // of the image, padding included
	low0, low1 lowPass   // of padded images, and of those at every other place
}

// A fourier is the discrete Fourier transform of images of in rows and width columns, at the frequencies that all
// others follow from: rows frequencies down, cols/2+1 across.
type fourier struct {
	in, width, rows, cols int
	right                 []float32 // from a row of the image: real parts, then imaginary ones
	left                  []float32 // from a column: likewise
}

// An inverse is the inverse transform to images of that size.
type inverse struct {
	rows, cols int
	left       []float32 // 2·rows × 2·rows: real parts above imaginary ones
	re, im     []float32 // from rows of real and of imaginary parts to real parts beside imaginary ones
}

// A lowPass averages images of in rows and columns.
type lowPass struct {
	inRows, inCols int
	left, right    []float32 // down × inRows, inCols × across
}

// New returns the transform of images of that size. Sides are from MinSide to MaxSide, channels from 1 to MaxChannels.
func New(height, width, channels int) *Transform {
	down, across := NewSide(height), NewSide(width)
	t := &Transform{height: height, width: width, channels: channels, rows: down.Padded, cols: across.Padded,
		down: down.Out, across: across.Out}
	t.image = newFourier(height, width, down.Image, across.Image)
	t.moduli = newFourier(t.rows, t.cols, down.Whole, across.Whole)
	t.fine, t.half = newInverse(t.rows, t.cols, down.Back, across.Back),
		newInverse(t.rows/2, t.cols/2, down.BackHalf, across.BackHalf)
	t.low = newLowPass(height, width, down.Low, across.Low)
	t.low0 = newLowPass(t.rows, t.cols, down.LowWhole, across.LowWhole)
	t.low1 = newLowPass(t.rows/2, t.cols/2, down.LowHalf, across.LowHalf)
	t.first, t.second = Wavelets(t.rows, t.cols, 0), Wavelets(t.rows, t.cols, 1)
	return t
}

// Shape is that of the coefficients of an image of that size: rows, columns, maps.
func Shape(height, width, channels int) []int {
	return []int{height / perDown, width / perDown, Maps * channels}
}

// A Side holds the matrices along one side of an image. The image is padded by its reflection at the outermost pixels.
type Side struct {
	Pixels, Padded, Out int

	Image, Whole Complex // discrete Fourier transforms: Padded × Pixels, padding included; Padded × Padded
	// inverse ones, to all places and to every other one: Padded × Padded, and half as many; symmetric
	Back, BackHalf Complex
	Low            []float64 // averages of an image: Out × Pixels, padding included
	LowWhole       []float64 // of all places: Out × Padded
	LowHalf        []float64 // of every other one: Out × Padded/2
}

// A Complex is a matrix, row after row.
type Complex struct{ Re, Im []float64 }

// NewSide returns the matrices of a side of that many pixels.
func NewSide(pixels int) Side {
	n := (pixels/perDown + 2) * perDown // at least 4 more than pixels
	s := Side{Pixels: pixels, Padded: n, Out: pixels / perDown}
	pixel, place := make([]int, n), make([]int, n)
	for i := range n {
		k := i - (n-pixels)/2
		if k < 0 {
			k = -k
		}
		if k >= pixels {
			k = 2*(pixels-1) - k
		}
		pixel[i], place[i] = k, i
	}
	s.Image, s.Whole = dft(n, pixels, pixel), dft(n, n, place)
	s.Back, s.BackHalf = inverted(s.Whole, n), inverted(dft(n/2, n/2, place[:n/2]), n/2)
	s.Low, s.LowWhole, s.LowHalf = averages(pixels, pixel, n, 1), averages(n, place, n, 1),
		averages(n/2, place[:n/2], n, 2)
	return s
}

// turn is 2π·k·i/n, reduced.
func turn(k, i, n int) float64 { return 2 * math.Pi * float64(k*i%n) / float64(n) }

// dft is the matrix of the discrete Fourier transform of size numbers, of which number i is number at[i] of in: size ×
// in.
func dft(size, in int, at []int) Complex {
	m := Complex{make([]float64, size*in), make([]float64, size*in)}
	for k := range size {
		for i, from := range at {
			s, c := math.Sincos(turn(k, i, size))
			m.Re[k*in+from] += c
			m.Im[k*in+from] -= s
		}
	}
	return m
}

// inverted is the matrix of the inverse transform of size numbers.
func inverted(m Complex, size int) Complex {
	b := Complex{make([]float64, len(m.Re)), make([]float64, len(m.Im))}
	for i := range m.Re {
		b.Re[i], b.Im[i] = m.Re[i]/float64(size), -m.Im[i]/float64(size)
	}
	return b
}

func newFourier(height, width int, down, across Complex) fourier {
	rows, cols := len(down.Re)/height, len(across.Re)/width
	half := cols/2 + 1
	right := make([]float64, 0, width*2*half)
	for pixel := range width {
		for _, part := range [][]float64{across.Re, across.Im} {
			for k := range half {
				right = append(right, part[k*width+pixel])
			}
		}
	}
	return fourier{in: height, width: width, rows: rows, cols: cols, right: single(right),
		left: single(slices.Concat(down.Re, down.Im))}
}

func newInverse(rows, cols int, down, across Complex) inverse {
	var left, re, im []float64
	minus := func(v []float64) []float64 {
		n := make([]float64, len(v))
		for i, x := range v {
			n[i] = -x
		}
		return n
	}
	for i := range rows {
		left = slices.Concat(left, down.Re[i*rows:][:rows], minus(down.Im[i*rows:][:rows]))
	}
	for i := range rows {
		left = slices.Concat(left, down.Im[i*rows:][:rows], down.Re[i*rows:][:rows])
	}
	for k := range cols {
		r, i := across.Re[k*cols:][:cols], across.Im[k*cols:][:cols]
		re, im = slices.Concat(re, r, i), slices.Concat(im, minus(i), r)
	}
	return inverse{rows: rows, cols: cols, left: single(left), re: single(re), im: single(im)}
}

// averages is the matrix that averages a side of in numbers, of which number at[i] is every step-th place i of a padded
// side of size. An average is at every fourth place, but for the first and the last, which lie in the padding.
func averages(in int, at []int, size, step int) []float64 {
	n := size/perDown - 2
	m := make([]float64, n*in)
	transform := gauss(size, step)
	for o := range n {
		for i, from := range at {
			sum := 0.0
			for k, g := range transform {
				sum += g * math.Cos(turn(k, len(at)+(o+1)*perDown/step-i, len(at)))
			}
			m[o*in+from] += sum / float64(len(at))
		}
	}
	return m
}

func newLowPass(height, width int, down, across []float64) lowPass {
	right, n := make([]float64, len(across)), len(across)/width
	for o := range n {
		for i := range width {
			right[i*n+o] = across[o*width+i]
		}
	}
	return lowPass{inRows: height, inCols: width, left: single(down), right: single(right)}
}

// lowWidth is the standard deviation of the low-pass filter, a Gaussian, in pixels.
const lowWidth = 0.8 * 2

// gauss is the transform of the low-pass filter over a side of size places, with those frequencies alone that every
// step-th place has.
func gauss(size, step int) []float64 {
	g := make([]float64, size/step)
	for k := range g {
		at := k
		if step > 1 && k >= size/4 {
			at += size / 2
		}
		for alias := -2; alias <= 2; alias++ {
			v := lowWidth * frequency(at, size, alias)
			g[k] += exp(v * v)
		}
	}
	return g
}

// exp is e^(−v/2), 0 where that is below 10⁻³⁰.
func exp(v float64) float64 {
	if v > 140 {
		return 0
	}
	e := [1]float64{-v / 2}
	kern.Exp(e[:], e[:]) // the same bits with all sets of kernels
	return e[0]
}

// frequency is the angular frequency k of a side of size places, from −π to π, in an alias.
func frequency(k, size, alias int) float64 {
	if k > size/2 {
		k -= size
	}
	return 2*math.Pi*float64(k)/float64(size) + 2*math.Pi*float64(alias)
}

// Wavelets are the transforms of the wavelets of a scale over rows × cols places: angle, row, column.
func Wavelets(rows, cols, scale int) []float32 {
	var all []float32
	for k := range Angles {
		all = append(all, morlet(rows, cols, scale, k)...)
	}
	return all
}

// morlet is the transform of a wavelet over rows × cols places: real. In space it is a Gaussian of deviation
// 0.8·2^scale along the wave and twice that across, times a wave of frequency 3π/4·2^−scale less a constant, which
// makes its sum zero.
func morlet(rows, cols, scale, angle int) []float32 {
	along := math.Ldexp(0.8, scale)
	across := 2 * along
	wave := math.Ldexp(3*math.Pi/4, -scale)
	sin, cos := math.Sincos(float64(Angles/2-1-angle) * math.Pi / Angles)
	// The transforms of the Gaussian around the wave's frequency and around 0, with their aliases.
	at := func(r, c int) (around, zero float64) {
		for a := -2; a <= 2; a++ {
			y := frequency(r, rows, a)
			for b := -2; b <= 2; b++ {
				x := frequency(c, cols, b)
				u, v := along*(y*cos+x*sin), across*(x*cos-y*sin)
				zero += exp(u*u + v*v)
				u -= along * wave
				around += exp(u*u + v*v)
			}
		}
		return around, zero
	}
	around, zero := at(0, 0)
	less := around / zero
	filter := make([]float32, 0, rows*cols)
	for r := range rows {
		for c := range cols {
			around, zero := at(r, c)
			filter = append(filter, float32(around-less*zero))
		}
	}
	return filter
}

func single(v []float64) []float32 {
	f := make([]float32, len(v))
	for i, x := range v {
		f[i] = float32(x)
	}
	return f
}

// A Workspace is the memory of one goroutine.
type Workspace struct {
	plane, a, b, c []float32 // of the image; of products
	re, im         []float32 // transforms of up to eight planes: plane, row, column
	out            []float32 // averages: row, plane, column
	maps           []float64 // one channel: map, row, column
}

// sized is a slice of n numbers that are 0, in the memory of old.
func sized(old *[]float32, n int) []float32 {
	if cap(*old) < n {
		*old = make([]float32, n)
		return *old
	}
	*old = (*old)[:n]
	clear(*old)
	return *old
}

// Coefficients sets dst to the normalized coefficients of an image of bytes: row, column, map. The image is row,
// column, channel. Pixels count as parts of 255. Three maps that follow each other are normalized together, to mean 0
// and variance 1, and nearly so where they have a variance near 10⁻⁵ or below.
func (t *Transform) Coefficients(dst []float64, image []byte, ws *Workspace) {
	size := t.down * t.across
	all := Maps * t.channels
	if len(ws.maps) < Maps*size {
		ws.maps = make([]float64, Maps*size)
	}
	for c := range t.channels {
		x := sized(&ws.plane, t.height*t.width)
		for i := range x {
			x[i] = float32(image[i*t.channels+c]) * (1.0 / 255)
		}
		t.scatter(ws)
		normalize(ws.maps[:Maps*size], Group*size)
		for m := range Maps {
			for i, v := range ws.maps[m*size : (m+1)*size] {
				dst[i*all+c*Maps+m] = v
			}
		}
	}
}

// normalize brings each group of numbers to mean 0 and variance 1. Conversions keep products and sums from being fused,
// which some machines would do and others not.
func normalize(v []float64, group int) {
	for ; len(v) > 0; v = v[group:] {
		g := v[:group]
		sum := 0.0
		for _, x := range g {
			sum += x
		}
		mean, squares := sum/float64(group), 0.0
		for i, x := range g {
			g[i] = x - mean
			squares += float64(g[i] * g[i])
		}
		factor := 1 / math.Sqrt(squares/float64(group)+Least)
		for i := range g {
			g[i] *= factor
		}
	}
}

// scatter sets the maps to the coefficients of the plane.
func (t *Transform) scatter(ws *Workspace) {
	t.low.average(ws, ws.plane, 1, t.down, t.across)
	t.keep(ws, 0, 1)

	t.image.forward(ws, ws.plane, 1)
	u := t.convolve(ws, &t.half, t.second, 1)
	t.low1.average(ws, u, Angles, t.down, t.across)
	t.keep(ws, 1+Angles, Angles)

	u = t.convolve(ws, &t.fine, t.first, 1)
	t.low0.average(ws, u, Angles, t.down, t.across)
	t.keep(ws, 1, Angles)

	t.moduli.forward(ws, u, Angles)
	u = t.convolve(ws, &t.half, t.second, Angles)
	t.low1.average(ws, u, Angles*Angles, t.down, t.across)
	t.keep(ws, 1+2*Angles, Angles*Angles)
}

// keep writes averages of planes to the maps from the given one on.
func (t *Transform) keep(ws *Workspace, from, planes int) {
	for y := range t.down {
		for p := range planes {
			for x := range t.across {
				ws.maps[((from+p)*t.down+y)*t.across+x] = float64(ws.out[(y*planes+p)*t.across+x])
			}
		}
	}
}

// average averages planes: row, plane, column.
func (l *lowPass) average(ws *Workspace, x []float32, planes, down, across int) {
	b := sized(&ws.b, l.inRows*planes*across)
	kern.Gemm(false, false, l.inRows*planes, across, l.inCols, x, l.inCols, l.right, across, b, across)
	out := sized(&ws.out, down*planes*across)
	kern.Gemm(false, false, down, planes*across, l.inRows, l.left, l.inRows, b, planes*across, out, planes*across)
}

// forward transforms planes of real numbers: row, plane, column.
func (f *fourier) forward(ws *Workspace, x []float32, planes int) {
	half := f.cols/2 + 1
	b := sized(&ws.b, f.in*planes*2*half)
	kern.Gemm(false, false, f.in*planes, 2*half, f.width, x, f.width, f.right, 2*half, b, 2*half)
	n := planes * 2 * half
	c := sized(&ws.c, 2*f.rows*n)
	kern.Gemm(false, false, 2*f.rows, n, f.in, f.left, f.in, b, n, c, n)
	re, im := sized(&ws.re, planes*f.rows*f.cols), sized(&ws.im, planes*f.rows*f.cols)
	for p := range planes {
		for k := range f.rows {
			cos, sin := c[k*n+p*2*half:][:2*half], c[(f.rows+k)*n+p*2*half:][:2*half]
			r, i := re[(p*f.rows+k)*f.cols:][:f.cols], im[(p*f.rows+k)*f.cols:][:f.cols]
			// The transform of real numbers: at the opposite frequency it has the conjugate.
			opposite := (f.rows - k) % f.rows
			ro, io := re[(p*f.rows+opposite)*f.cols:][:f.cols], im[(p*f.rows+opposite)*f.cols:][:f.cols]
			for j := range half {
				r[j], i[j] = cos[j]-sin[half+j], cos[half+j]+sin[j]
				if j > 0 && j < half-1 {
					ro[f.cols-j], io[f.cols-j] = r[j], -i[j]
				}
			}
		}
	}
}

// convolve multiplies the transforms in the workspace by those of eight filters, and returns the moduli in space: row,
// plane and angle, column. The result is as large as v: all places, or every other one.
func (t *Transform) convolve(ws *Workspace, v *inverse, filters []float32, planes int) []float32 {
	n := planes * Angles * v.cols
	spectrum := sized(&ws.b, 2*v.rows*n)
	size := t.rows * t.cols
	for p := range planes {
		re, im := ws.re[p*size:][:size], ws.im[p*size:][:size]
		for a := range Angles {
			filter := filters[a*size:][:size]
			for k := range v.rows {
				at := k*n + (p*Angles+a)*v.cols
				r, i := spectrum[at:][:v.cols], spectrum[v.rows*n+at:][:v.cols]
				if v.rows == t.rows {
					times(r, i, re[k*t.cols:], im[k*t.cols:], filter[k*t.cols:])
				} else {
					folded(r, i, re[k*t.cols:], im[k*t.cols:], filter[k*t.cols:], size/2)
				}
			}
		}
	}
	c := sized(&ws.c, 2*v.rows*n)
	kern.Gemm(false, false, 2*v.rows, n, 2*v.rows, v.left, 2*v.rows, spectrum, n, c, n)
	rows := v.rows * planes * Angles
	b := sized(&ws.b, rows*2*v.cols)
	kern.Gemm(false, false, rows, 2*v.cols, v.cols, c, v.cols, v.re, 2*v.cols, b, 2*v.cols)
	kern.Gemm(false, false, rows, 2*v.cols, v.cols, c[v.rows*n:], v.cols, v.im, 2*v.cols, b, 2*v.cols)
	u := sized(&ws.a, rows*v.cols)
	for k := range rows {
		moduli(u[k*v.cols:][:v.cols], b[k*2*v.cols:])
	}
	return u
}

// times sets r and i to re and im times filter.
func times(r, i, re, im, filter []float32) {
	i, re, im, filter = i[:len(r)], re[:len(r)], im[:len(r)], filter[:len(r)]
	for j, f := range filter {
		r[j], i[j] = re[j]*f, im[j]*f
	}
}

// folded is times at every other place: the mean over the four frequencies that are the same there, down apart.
func folded(r, i, re, im, filter []float32, down int) {
	n := len(r)
	i = i[:n]
	re0, re1, re2, re3 := re[:n], re[n:][:n], re[down:][:n], re[down+n:][:n]
	im0, im1, im2, im3 := im[:n], im[n:][:n], im[down:][:n], im[down+n:][:n]
	f0, f1, f2, f3 := filter[:n], filter[n:][:n], filter[down:][:n], filter[down+n:][:n]
	for j := range r {
		a, b, c, d := f0[j], f1[j], f2[j], f3[j]
		r[j] = ((float32(re0[j]*a) + float32(re1[j]*b)) + (float32(re2[j]*c) + float32(re3[j]*d))) * 0.25
		i[j] = ((float32(im0[j]*a) + float32(im1[j]*b)) + (float32(im2[j]*c) + float32(im3[j]*d))) * 0.25
	}
}

// moduli sets u to the moduli of as many real parts with as many imaginary parts after them.
func moduli(u, z []float32) {
	re, im := z[:len(u)], z[len(u):][:len(u)]
	for j := range u {
		u[j] = float32(math.Sqrt(float64(float32(re[j]*re[j]) + float32(im[j]*im[j]))))
	}
}
