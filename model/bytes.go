package model

import (
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
)

// Rows of bytes (data.Pixels): x_i = f_i·u_i with u_i = (v_i − m, one), bytes v_i less a center. Both products are
// those of whole numbers, exact in any order; the center is a correction of rank one:
//
//	z_ik = f_i·(Σ_j v_ij·w_kj − m·Σ_j w_kj + one·w_k,one)       with w_kj rounded to 15 digits of the largest
//	Σ_i c_i·∇_k ℓ_i = Σ_i a_ik·u_i = Σ_i a_ik·v_i − m·Σ_i a_ik   with a_ik = c_i·f_i·r_ik truncated to the unit
//
// Rounded parameters move the margins, and so the gradient that is asked for: no more than another w would, so no bound
// on a record rests on them.

// byteSpace is what a pass over rows of bytes needs.
type byteSpace struct {
	words   kern.Words
	loaded  *float64 // the parameters of words, while they are held
	factor  []float64
	weights [][kern.ByteRows]int16
	off     []float64
}

// bytesOf are the rows of v.
func bytesOf(v data.View) []byte { return v.Bytes[v.From*v.Pixels.Stride : v.To*v.Pixels.Stride] }

// byteMargins sets z[c·n+i] to the margins of the n rows of v, for k classes.
func (ws *Workspace) byteMargins(z, w []float64, k int, v data.View) {
	s, px := &ws.bytes, v.Pixels
	if ws.held != &w[0] || s.loaded != &w[0] {
		d := v.Block.Dim
		s.words.Set(w, d, k, px.N, px.Stride)
		for c := range k {
			off := -px.Center * s.words.Sum(c)
			if px.One > 0 {
				off += px.One * w[c*d+px.N] / s.words.Scale(c)
			}
			s.words.Off(c, off)
		}
		if s.loaded = nil; ws.held == &w[0] {
			s.loaded = ws.held
		}
	}
	s.words.Dot(z, v.Len(), bytesOf(v), v.Factor[v.From:v.To])
}

// byteSizes sets dst_i = ‖x_i‖₁, never understated: the sum is exact, and the factor covers two roundings.
func byteSizes(dst []float64, v data.View) {
	px := v.Pixels
	for i := range dst {
		sum := px.One
		for _, b := range v.Bytes[(v.From+i)*px.Stride:][:px.N] {
			sum += math.Abs(float64(b) - px.Center)
		}
		dst[i] = sum * v.Factor[v.From+i] * (1 + 0x1p-40)
	}
}

// codedMargins sets z[c·n+i] to the margins of the n rows of v, of bytes or 16-bit numbers, for k classes.
func (ws *Workspace) codedMargins(z, w []float64, k int, v data.View) {
	if v.Short != nil {
		ws.shortMargins(z, w, k, v)
		return
	}
	ws.byteMargins(z, w, k, v)
}

// addCoded adds to the sums of k classes what the rows of v add with coefficients a, which it may change.
func (ws *Workspace) addCoded(dst, a []float64, k int, v data.View, unit float64) {
	switch {
	case unit == 0:
		panic("model: rows of bytes or 16-bit numbers are summed in a unit")
	case v.Short != nil:
		ws.addShorts(dst, a, k, v, unit)
	default:
		ws.addBytes(dst, a, k, v, unit)
	}
}

// factored are c_i·f_i, of 16-bit numbers in units of the table.
func (ws *Workspace) factored(c []float64, v data.View) []float64 {
	if v.Short != nil {
		ws.short.factor = grow(ws.short.factor, len(c))
		for i, s := range v.Shift[v.From:v.To] {
			ws.short.factor[i] = c[i] * float64(uint(1)<<s) // exact
		}
		return ws.short.factor
	}
	ws.bytes.factor = grow(ws.bytes.factor, len(c))
	for i, f := range v.Factor[v.From:v.To] {
		p := c[i] * f
		if p < 0x1p-1000 {
			p = 0 // below any unit; just above the subnormal numbers, whose rounding could lengthen a row
		}
		ws.bytes.factor[i] = p
	}
	return ws.bytes.factor
}

// addBytes adds Σ_i a_ik·u_i to the sums of k classes. The coefficients a[c·n+i], which it may change, are multiples of
// the unit, so every number here is one of data.ByteStep·unit.
func (ws *Workspace) addBytes(dst, a []float64, k int, v data.View, unit float64) {
	s, px, n, d := &ws.bytes, v.Pixels, v.Len(), v.Block.Dim
	for len(s.weights) < k {
		s.weights, s.off = append(s.weights, [kern.ByteRows]int16{}), append(s.off, 0)
	}
	x := bytesOf(v)
	for from := 0; from < n; from += kern.ByteRows {
		m := min(n-from, kern.ByteRows)
		rows := x[from*px.Stride:][:m*px.Stride]
		for c := range k {
			sum, ok := kern.ByteWeights(&s.weights[c], a[c*n+from:][:m], unit)
			if !ok {
				addLarge(dst[c*d:], a[c*n+from:][:m], rows, px, unit)
				sum, _ = kern.ByteWeights(&s.weights[c], a[c*n+from:][:m], unit)
			}
			s.off[c] = -px.Center * sum
			if px.One > 0 {
				dst[c*d+px.N] += px.One * sum * unit
			}
		}
		kern.AddBytes(dst, d, px.N, s.weights[:k], rows, px.Stride, m, s.off, unit)
	}
}

// addLarge adds the rows whose coefficients are no words, those of rare small rows, and sets the coefficients to 0.
func addLarge(dst, a []float64, x []byte, px *data.Pixels, unit float64) {
	for i, ai := range a {
		if math.Abs(ai) <= kern.ByteWord*unit {
			continue
		}
		for j, b := range x[i*px.Stride:][:px.N] {
			dst[j] += ai * (float64(b) - px.Center)
		}
		if px.One > 0 {
			dst[px.N] += ai * px.One
		}
		a[i] = 0
	}
}

// numbered is v with float32 in place of bytes or 16-bit numbers.
func (ws *Workspace) numbered(v data.View) data.View {
	if !v.Coded() {
		return v
	}
	v.Numbers(&ws.numbers, v.From, v.To)
	return data.View{Block: &ws.numbers, To: v.Len()}
}
