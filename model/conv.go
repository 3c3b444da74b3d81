package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/kern"
)

// A conv is a convolution. Its parameters are a row of W for every filter, its weights in a window, then a bias b for
// every filter. With A the windows of a record's image, a row for each position,
//
//	Z = A·Wᵀ + b
//	∂ℓ/∂W = Δᵀ·A,  ∂ℓ/∂b = Σ_p δ_p   (R13)
//
// sums over the positions, so the norm is not a product of two norms.
type conv struct {
	window
	filters int
	gain    float64 // of the start: see heGain
}

// parseConv reads a convolution and its activation, as in "conv 16 8x8 stride 2 pad 3 relu".
func parseConv(text string, image shape) ([]layer, error) {
	fail := func(why string) ([]layer, error) {
		return nil, fmt.Errorf("model: layers: found %q: %s; write conv, filters, window, then stride, pad and relu (the default), tanh or linear, as in conv 16 8x8 stride 2 pad 3 relu", text, why)
	}
	words := strings.Fields(text)
	if len(words) < 3 {
		return fail("too short")
	}
	filters, err := size(words[1], 1)
	if err != nil {
		return fail(err.Error())
	}
	w, rest, err := parseWindow(words[2:], image, 1)
	if err != nil {
		return fail(err.Error())
	}
	act := relu
	if len(rest) > 0 {
		act, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 || !isActivation(act) {
		return fail("what is behind the window")
	}
	l := &conv{w, filters, heGain(act)}
	return withActivation(l, act), nil
}

// withActivation is a layer followed by an activation.
func withActivation(l layer, act string) []layer {
	if act == ident {
		return []layer{l}
	}
	return []layer{l, &activation{act, l.out()}}
}

func (c *conv) in() int       { return c.image.size() }
func (c *conv) params() int   { return c.filters * (c.taps() + 1) }
func (c *conv) inPlace() bool { return false }
func (c *conv) fan() int      { return c.taps() }

func (c *conv) out() shape {
	rows, cols := c.places()
	return shape{rows, cols, c.filters}
}

// start is uniform, for z of size 1 in windows that have their share of the image; biases are 0.
func (c *conv) start(norm float64) []Span {
	share := math.Sqrt(float64(c.taps()) / float64(c.in()))
	return []Span{{c.filters * c.taps(), math.Sqrt(c.gain) / (norm * min(1, share))}, {c.filters, 0}}
}

// A convWorker computes the gradient of each row of a tile, once, for its norm and for the sum: with all positions of a
// window it costs less than the norm from the products of all pairs of positions.
type convWorker[T number] struct {
	*conv
	from    []int32 // see window.lines
	line    int
	framed  []T
	w       []T
	wide    []float64 // w without biases
	norm    float64   // a bound on what backward does to norms, for reach
	normed  bool
	n       int
	a, err  []T
	windows []T // of some rows
	grads   []T // of each row
	formed  bool

	figures, scaled []float64
	total, weighted []T
	spectral        spectral
}

func (c *convWorker[T]) load(w []float64) {
	c.normed = false
	c.w = grow(c.w, len(w))
	convert(c.w, w)
}

// spreadRoom is the numbers of windows that are spread at once, so that they stay in the cache.
const spreadRoom = 64 << 10

// each calls f for some rows at a time, with memory for their windows.
func (c *convWorker[T]) each(f func(row, n int, windows []T)) {
	of := c.out().size() / c.filters * c.taps()
	some := 1 + spreadRoom/of
	c.windows = grow(c.windows, min(some, c.n)*of)
	for row := 0; row < c.n; row += some {
		n := min(some, c.n-row)
		f(row, n, c.windows[:n*of])
	}
}

// spread sets windows to those of n rows of the tile.
func (c *convWorker[T]) spread(windows []T, row, n int) {
	in := c.in()
	of := len(windows) / n
	for i := range n {
		image := c.a[(row+i)*in : (row+i+1)*in]
		if c.pad > 0 {
			frame(c.window, c.framed, image)
			image = c.framed
		}
		kern.CopyLines(windows[i*of:(i+1)*of], image, c.from, c.line)
	}
}

func (c *convWorker[T]) forward(out, in []T, n int) {
	c.a, c.n = in, n
	size := c.out().size()
	repeat(out[:n*size], c.w[c.filters*c.taps():])
	c.each(func(row, n int, windows []T) {
		c.spread(windows, row, n)
		kern.Gemm(false, true, n*size/c.filters, c.filters, c.taps(), windows, c.taps(), c.w, c.taps(), out[row*size:],
			c.filters)
	})
}

func (c *convWorker[T]) backward(back, err []T) {
	c.err, c.formed = err, false
	if back == nil {
		return
	}
	clear(back[:c.n*c.in()])
	size, in := c.out().size(), c.in()
	c.each(func(row, n int, windows []T) {
		clear(windows)
		kern.Gemm(false, false, n*size/c.filters, c.taps(), c.filters, err[row*size:], c.filters, c.w, c.taps(), windows,
			c.taps())
		of := len(windows) / n
		for i := range n {
			image := back[(row+i)*in : (row+i+1)*in]
			if c.pad == 0 {
				kern.AddLines(image, windows[i*of:(i+1)*of], c.from, c.line)
				continue
			}
			clear(c.framed)
			kern.AddLines(c.framed, windows[i*of:(i+1)*of], c.from, c.line)
			unframe(c.window, image, c.framed)
		}
	})
}

// form sets grads to the rows' gradients, each summed over the positions in order.
func (c *convWorker[T]) form() {
	if c.formed {
		return
	}
	c.formed = true
	k, size := c.params(), c.out().size()
	c.grads = grow(c.grads, c.n*k)
	clear(c.grads)
	c.each(func(row, n int, windows []T) {
		c.spread(windows, row, n)
		of := len(windows) / n
		for i := range n {
			c.add(c.grads[(row+i)*k:(row+i+1)*k], c.err[(row+i)*size:(row+i+1)*size], windows[i*of:(i+1)*of])
		}
	})
}

// add adds the gradient of errors beside their windows.
func (c *convWorker[T]) add(dst, err, windows []T) {
	kern.Gemm(true, false, c.filters, c.taps(), len(err)/c.filters, err, c.filters, windows, c.taps(), dst, c.taps())
	bias := dst[c.filters*c.taps():][:c.filters]
	for p := 0; p < len(err); p += c.filters {
		kern.Add(bias, err[p:])
	}
}

func (c *convWorker[T]) addNorm(dst []float64, p int) {
	c.form()
	addNorms(&c.figures, dst, c.grads, c.params(), p)
}

func (c *convWorker[T]) addGrad(dst, weights []float64, unit float64) {
	if unit > 0 {
		c.form()
		addWhole(&c.scaled, dst, weights, c.grads, unit)
		return
	}
	size := c.out().size()
	c.total = grow(c.total, c.params())
	clear(c.total)
	c.each(func(row, n int, windows []T) {
		c.spread(windows, row, n)
		err := c.err[row*size : (row+n)*size]
		if slices.ContainsFunc(weights[row:row+n], func(w float64) bool { return w != 1 }) {
			err = c.weigh(weights[row:row+n], err, windows)
		}
		c.add(c.total, err, windows)
	})
	for j, v := range c.total {
		dst[j] += float64(v)
	}
}

// weigh returns weighted errors. It also clears the windows of rows with weight 0, because 0 times NaN is NaN.
func (c *convWorker[T]) weigh(weights []float64, err, windows []T) []T {
	size, of := c.out().size(), len(windows)/len(weights)
	c.weighted = grow(c.weighted, len(err))
	for i, w := range weights {
		to := c.weighted[i*size : (i+1)*size]
		if w == 0 {
			clear(to)
			clear(windows[i*of : (i+1)*of])
			continue
		}
		for j, v := range err[i*size : (i+1)*size] {
			to[j] = T(w) * v
		}
	}
	return c.weighted
}

// addBound: ‖Δᵀ·(A, 1)‖ ≤ ‖Δ‖·‖(A, 1)‖_F, and no pixel is in more windows than overlap. The bound is one on sums of
// magnitudes, too, so that roundings add a factor.
func (c *convWorker[T]) addBound(dst, delta []float64) {
	c.figures = grow(c.figures, len(dst))
	norms2(c.figures, c.a, c.in())
	relative, least := rounding[T]()
	places := float64(c.out().size() / c.filters)
	more := 1 + 2*(places+8)*relative
	below := 4 * least * places * math.Sqrt(float64(c.params()))
	for i, a := range c.figures {
		windows := math.Hypot(math.Sqrt(c.overlap())*a, math.Sqrt(places)) * more * (1 + 0x1p-50)
		dst[i] = finite[T](math.Hypot(dst[i], up(delta[i], windows)+below))
	}
}

// finite is +Inf for a bound near what T holds: below it nothing that backward or form computes overflows.
func finite[T number](bound float64) float64 {
	most := 0x1p1000
	if relative, _ := rounding[T](); relative > 0x1p-30 {
		most = 0x1p100
	}
	if bound > most {
		return math.Inf(1)
	}
	return bound
}

// reach multiplies by a bound on the norm of what takes Δ to the image: Δ·W, of norm ‖W‖₂, then the sum over the
// windows that a pixel lies in, of norm √overlap at most. For rounding see dense: overlap more additions.
func (c *convWorker[T]) reach(delta []float64) {
	relative, least := rounding[T]()
	if !c.normed {
		weights := c.w[:c.filters*c.taps()]
		c.wide = wide(c.wide, weights)
		frobenius := []float64{0}
		norms2(frobenius, weights, len(weights))
		c.norm = max(c.spectral.bound(c.wide, c.filters, c.taps()), 0x1p-1000) // as of dense
		c.norm += up(frobenius[0], 4*(float64(c.filters)+c.overlap()+8)*relative)
		c.norm *= math.Sqrt(c.overlap()) * (1 + 0x1p-50)
		c.normed = true
	}
	below := 4 * least * (float64(c.filters) + c.overlap()) * c.overlap() * math.Sqrt(float64(c.in()))
	for i, v := range delta {
		delta[i] = up(v, c.norm) + below
	}
}

// addNorms adds the norms of rows of k numbers to those of layers before.
func addNorms[T number](room *[]float64, dst []float64, rows []T, k, p int) {
	*room = grow(*room, len(dst))
	if p == 1 {
		norms1(*room, rows, k)
		for i, v := range *room {
			dst[i] += v
		}
		return
	}
	norms2(*room, rows, k)
	for i, v := range *room {
		dst[i] = math.Hypot(dst[i], v)
	}
}

// addWhole adds explicit weighted gradients, each entry truncated toward zero to a multiple of unit·netUnit.
func addWhole[T number](room *[]float64, dst, c []float64, rows []T, unit float64) {
	unit *= netUnit
	*room = grow(*room, len(c))
	scaled := *room
	inv, k := 1/unit, len(dst)
	for from := 0; from < len(c); from++ { // runs of rows that count
		if c[from] == 0 {
			continue
		}
		to := from
		for ; to < len(c) && c[to] != 0; to++ {
			scaled[to] = c[to] * inv
		}
		kern.AxpyWhole(dst, scaled[from:to], rows[from*k:], k, nil, unit)
		from = to
	}
}
