package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
)

// An mlp is a network of dense layers with biases, l = 1 … L:
//
//	a_0 = x
//	z_l = (a_{l−1}, 1)·W_l           W_l ∈ R^{(n_{l−1}+1)×n_l}, row after row; the last row is the bias
//	a_l = φ_l(z_l)                   relu, tanh or linear; z_L are the outputs
//	ℓ   = ln Σ_k e^{z_Lk} − z_Ly     classes, or ½(z_L − y)² for a numeric label
//	δ_L = p − e_y, or z_L − y
//	δ_l = φ_l′(z_l) ∘ (W_{l+1} δ_{l+1}) without the bias
//	∂ℓ/∂W_l = (a_{l−1}, 1)ᵀ·δ_l,  of norm ‖δ_l‖_p·‖(a_{l−1}, 1)‖_p
//
// w is W_1, …, W_L. A record's gradient is a row of outer products, so that its norm (R13,
// "ghost norms") and weighted sums of gradients need no gradient: Σ c_i ∂ℓ_i/∂W_l is one
// product of matrices.
//
// # Exact sums
//
// With a unit, each layer's sum is made exact as that of a linear model. Let s_i be the least
// power of two above ‖(a_i, 1)‖, as computed. Activations over s_i are truncated toward zero to multiples of
// netUnit, and c_i·s_i·δ_i to multiples of unit. Both only get shorter, entry by
// entry, so that every entry of c_i·(a_i, 1)ᵀ·δ_i does, and the clip bound holds for the
// products, which are multiples of unit·netUnit and at most the clip norm in size. All arithmetic is
// in float64, and what the network computes of a row depends on that row and w alone. So the
// gradient of a row is that of the rounded activations and errors, not of ideal ones;
// what the guarantee needs is only that it is a function of the row, and its norm bounded.
type mlp struct {
	size    []int // n_0, …, n_L
	act     []activation
	offset  []int // of W_1, …, W_L, and their end
	classes int   // 0 for a numeric label
	facts   Facts
}

type activation string

const (
	relu  activation = "relu"
	tanh  activation = "tanh"
	ident activation = "linear"
)

// netUnit: activations over their norm are multiples of it. NetUnit is Facts.Unit of a network.
const netUnit = 0x1p-21

const (
	maxWidth  = 1 << 15 // units of a layer
	maxParams = 25e6    // what a model file holds
)

func newMLP(opt Options) (Model, error) {
	m := &mlp{size: []int{opt.Dim}, classes: opt.Classes, offset: []int{0}}
	if len(opt.Layers) == 0 {
		return nil, fmt.Errorf("model: mlp needs layers, as in [128 relu]; without one it would be softmax or linear")
	}
	for _, text := range opt.Layers {
		words := strings.Fields(text)
		n, act := 0, relu
		var err error
		if len(words) > 0 {
			n, err = strconv.Atoi(words[0])
		}
		if len(words) == 2 {
			act = activation(words[1])
		}
		if err != nil || len(words) < 1 || len(words) > 2 || n < 1 || n > maxWidth || act != relu && act != tanh && act != ident {
			return nil, fmt.Errorf("model: layers: found %q; allowed is a number of units from 1 to %d and relu (the default), tanh or linear, as in 128 relu", text, maxWidth)
		}
		m.size, m.act = append(m.size, n), append(m.act, act)
	}
	m.size = append(m.size, max(1, opt.Classes))
	for l := 1; l < len(m.size); l++ {
		in, out := m.size[l-1], m.size[l]
		m.offset = append(m.offset, m.offset[l-1]+(in+1)*out)
		if in > maxParams || out > maxParams || m.offset[l] > maxParams { // a product of such does not overflow
			return nil, fmt.Errorf("model: mlp: more than %d parameters; allowed are as many", int(maxParams))
		}
	}
	inf := math.Inf(1)
	m.facts = Facts{
		NormBound: opt.NormBound, Lipschitz: inf, Smooth: inf, HessLipschitz: inf, Start: inf,
		Bounded: true, Probabilities: opt.Classes > 0, Unit: netUnit,
	}
	return m, nil
}

func (m *mlp) Name() string { return "mlp" }
func (m *mlp) Dim() int     { return m.offset[len(m.act)+1] }
func (m *mlp) Outputs() int { return m.size[len(m.act)+1] }
func (m *mlp) Facts() Facts { return m.facts }

// A Span is a run of parameters that start uniform in [−Bound, Bound].
type Span struct {
	Count int
	Bound float64
}

// A Starter is a model whose parameters must not start at 0: a network of zeros has no
// gradient but that of its last biases.
type Starter interface{ Start() []Span }

// Start is the law of He, Zhang, Ren and Sun 2015 for relu, of variance 2/n_{l−1}, and half of that
// for others; biases are 0. The first layer's is for rows of norm R in place of √n_0, so that z_1 is of
// size 1 whatever R is.
func (m *mlp) Start() []Span {
	var spans []Span
	for l := range len(m.size) - 1 {
		square := 6.0 // the variance is a third of it
		if l == len(m.act) || m.act[l] != relu {
			square = 3
		}
		scale := math.Sqrt(float64(m.size[l]))
		if l == 0 {
			scale = m.facts.NormBound
		}
		spans = append(spans, Span{m.size[l] * m.size[l+1], math.Sqrt(square) / scale}, Span{m.size[l+1], 0})
	}
	return spans
}

// weights is W_{l+1}.
func (m *mlp) weights(w []float64, l int) []float64 { return w[m.offset[l]:m.offset[l+1]] }

func (m *mlp) Eval(w []float64, v data.View, ws *Workspace) Pass {
	check(m, m.size[0], w, v)
	needLabels(v)
	p := &ws.mlp
	p.forward(m, w, v)
	p.front, p.back = false, false
	return p
}

func (m *mlp) Predict(dst, w []float64, v data.View, ws *Workspace) {
	check(m, m.size[0], w, v)
	p := &ws.mlp
	needLength("dst", len(dst), v.Len()*m.Outputs())
	p.forward(m, w, v)
	z := p.act[len(p.act)-1]
	if m.classes == 0 {
		copy(dst, z)
		return
	}
	softmaxRows(dst, z, m.classes)
}

// softmaxRows sets dst to the softmax of each row of k numbers of z.
func softmaxRows(dst, z []float64, k int) {
	for i := 0; i < len(z); i += k {
		top := math.Inf(-1)
		for _, v := range z[i : i+k] {
			top = max(top, v)
		}
		for j, v := range z[i : i+k] {
			dst[i+j] = v - top
		}
	}
	kern.Exp(dst, dst[:len(z)])
	for i := 0; i < len(z); i += k {
		sum := 0.0
		for _, v := range dst[i : i+k] {
			sum += v
		}
		for j := range k {
			dst[i+j] /= sum
		}
	}
}

// An mlpPass is the Pass of an mlp. It lives in a Workspace.
type mlpPass struct {
	m     *mlp
	w     []float64
	view  data.View
	n     int
	act   [][]float64 // act[l], l < L: rows (a_l, 1); act[L]: z_L without the 1
	size  [][]float64 // size[l], l < L: ‖(a_l, 1)‖₂, rounded up
	err   [][]float64 // err[l], l < L: δ_{l+1}
	front bool        // size and err[L−1] are valid
	back  bool        // and so are all of err

	line  []float64 // one number, repeated
	scale []float64 // likewise
	left  []float64 // rounded activations
	right []float64 // coefficients
}

func (p *mlpPass) Len() int { return p.n }

// forward computes the activations.
func (p *mlpPass) forward(m *mlp, w []float64, v data.View) {
	layers := len(m.size) - 1
	p.m, p.w, p.view, p.n = m, w, v, v.Len()
	for len(p.act) < layers+1 {
		p.act, p.size, p.err = append(p.act, nil), append(p.size, nil), append(p.err, nil)
	}
	p.act = p.act[:layers+1]
	p.load()
	for l := range layers {
		in, out := m.size[l]+1, m.size[l+1]
		stride := out + 1
		if l == layers-1 {
			stride = out
		}
		z := grow(p.act[l+1], p.n*stride)
		p.act[l+1] = z
		clear(z)
		kern.Gemm(false, false, p.n, out, in, p.act[l], in, m.weights(w, l), out, z, stride)
		if l < layers-1 {
			m.act[l].apply(z)
			for i := range p.n {
				z[i*stride+out] = 1
			}
		}
	}
}

// load sets act[0] to the rows (x, 1).
func (p *mlpPass) load() {
	v, d := p.view, p.m.size[0]
	x := grow(p.act[0], p.n*(d+1))
	p.act[0] = x
	if v.Start != nil {
		clear(x)
	}
	for i := range p.n {
		to, row := x[i*(d+1):][:d+1], v.Row(i)
		if v.Start != nil {
			for e := v.Start[row]; e < v.Start[row+1]; e++ {
				to[v.Col[e]] = float64(v.Val[e])
			}
		} else {
			for j, f := range v.X[row*d:][:d] {
				to[j] = float64(f)
			}
		}
		to[d] = 1
	}
}

// apply sets z to φ(z). What is not a number stays so.
func (a activation) apply(z []float64) {
	switch a {
	case relu:
		for i, v := range z {
			bits := math.Float64bits(v) // a choice of whole numbers takes no branch
			if v < 0 {
				bits = 0
			}
			z[i] = math.Float64frombits(bits)
		}
	case tanh: // 2σ(2z) − 1
		for i := range z {
			z[i] *= 2
		}
		kern.Sigmoid(z, z)
		for i := range z {
			z[i] = 2*z[i] - 1
		}
	}
}

// slope multiplies each row of d, n_l numbers, by φ′, a function of φ: of a, rows of n_l + 1.
func (a activation) slope(d, act []float64, width int) {
	for i, k := 0, 0; i < len(d); i, k = i+width, k+width+1 {
		row, from := d[i:i+width], act[k:k+width]
		switch a {
		case relu:
			for j, v := range from {
				bits := math.Float64bits(row[j])
				if v <= 0 {
					bits = 0
				}
				row[j] = math.Float64frombits(bits)
			}
		case tanh:
			for j, v := range from {
				row[j] *= 1 - v*v
			}
		}
	}
}

// class is the label of row i, or −1 where it is no class.
func (p *mlpPass) class(i int) int {
	y := p.view.Y[p.view.Row(i)]
	if k := int(y); y >= 0 && y < float32(p.m.classes) && float32(k) == y {
		return k
	}
	return -1
}

// Loss is as softmax's, or half the square of the error.
func (p *mlpPass) Loss(dst []float64) {
	needLength("dst", len(dst), p.n)
	out, k := p.act[len(p.act)-1], p.m.Outputs()
	for i := range dst {
		z := out[i*k : (i+1)*k]
		if p.m.classes == 0 {
			e := z[0] - float64(p.view.Y[p.view.Row(i)])
			dst[i] = e * e / 2
			continue
		}
		y := p.class(i)
		if y < 0 {
			dst[i] = math.NaN()
			continue
		}
		top := largest(z, 1, k)
		var rest float64
		for j, v := range z {
			if j != top {
				rest += math.Exp(v - z[top])
			}
		}
		dst[i] = z[top] - z[y] + math.Log1p(rest)
	}
}

// begin computes what every bound needs: the residuals and the norms of the activations.
func (p *mlpPass) begin() {
	if p.front {
		return
	}
	p.front = true
	p.residuals()
	for l := range len(p.act) - 1 {
		p.sizes(l)
	}
}

// residuals sets err[L−1] to δ_L. The residual of the label is minus the sum of the others,
// which keeps its digits where p_y is near 1.
func (p *mlpPass) residuals() {
	k, last := p.m.Outputs(), len(p.act)-2
	z := p.act[last+1]
	r := grow(p.err[last], len(z))
	p.err[last] = r
	if p.m.classes == 0 {
		for i, v := range z {
			r[i] = v - float64(p.view.Y[p.view.Row(i)])
		}
		flush(r)
		return
	}
	softmaxRows(r, z, k)
	for i := range p.n {
		row, y := r[i*k:(i+1)*k], p.class(i)
		if y < 0 { // no figure of the row is finite: no clip rule lets it in
			for j := range row {
				row[j] = math.NaN()
			}
			continue
		}
		others := 0.0
		for j, v := range row {
			if j != y {
				others += v
			}
		}
		row[y] = -others
	}
	flush(r)
}

// sizes sets size[l] to the norms of the layer's rows.
func (p *mlpPass) sizes(l int) {
	p.size[l] = grow(p.size[l], p.n)
	if l == 0 {
		rowNorms(p.size[0], p.view, 2)
		for i, v := range p.size[0] {
			p.size[0][i] = math.Hypot(v, 1) * (1 + 0x1p-50)
		}
		return
	}
	width := p.m.size[l] + 1
	for i := range p.n {
		p.size[l][i] = norm2(p.act[l][i*width : (i+1)*width])
	}
}

// norm2 is ‖v‖₂, rounded up; NaN or +Inf where v is not finite, or nearly so.
func norm2(v []float64) float64 {
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(v); i += 4 {
		q := v[i : i+4]
		s0, s1, s2, s3 = s0+q[0]*q[0], s1+q[1]*q[1], s2+q[2]*q[2], s3+q[3]*q[3]
	}
	for ; i < len(v); i++ {
		s0 += v[i] * v[i]
	}
	s := s0 + s1 + s2 + s3
	up := 1 + float64(len(v)+16)*0x1p-52
	if s >= 0x1p-900 && s <= 0x1p1000 {
		return math.Sqrt(s) * up
	}
	s = 0 // squares that overflow or underflow
	for _, x := range v {
		s = math.Hypot(s, x)
	}
	return s * (1 + float64(len(v)+16)*0x1p-50)
}

// backward computes the errors δ of all layers.
func (p *mlpPass) backward() {
	if p.back {
		return
	}
	p.back = true
	p.begin()
	layers := len(p.act) - 1
	for l := layers - 2; l >= 0; l-- {
		in, out := p.m.size[l+1], p.m.size[l+2]
		d := grow(p.err[l], p.n*in)
		p.err[l] = d
		clear(d)
		kern.Gemm(false, true, p.n, in, out, p.err[l+1], out, p.m.weights(p.w, l+1), out, d, in)
		p.m.act[l].slope(d, p.act[l+1], in)
		flush(d)
	}
}

// leastError is far enough above the least number that whatever rounds there is nothing beside it.
const leastError = 0x1p-700

// flush makes errors below leastError 0. Products and norms of such may be off by as much as they
// are, and activations may be as large as errors are small. What is no number stays so.
func flush(d []float64) {
	least := math.Float64bits(leastError)
	for i, v := range d {
		bits := math.Float64bits(v)
		if bits<<1 < least<<1 { // of the absolute value
			bits = 0
		}
		d[i] = math.Float64frombits(bits)
	}
}

// GradNorm is the norm over all layers of ‖δ_{l+1}‖·‖(a_l, 1)‖.
func (p *mlpPass) GradNorm(dst []float64, norm int) {
	needLength("dst", len(dst), p.n)
	if norm != 1 && norm != 2 {
		panic("model: gradient norms exist for p = 1 and p = 2")
	}
	p.backward()
	if norm == 1 {
		rowNorms(dst, p.view, 1)
	}
	for i := range dst {
		total, first := 0.0, dst[i]
		for l, err := range p.err[:len(p.act)-1] {
			out := p.m.size[l+1]
			d := err[i*out : (i+1)*out]
			if norm == 1 {
				a := 1 + first
				if l > 0 {
					in := p.m.size[l] + 1
					a = abs1(p.act[l][i*in : (i+1)*in])
				}
				total += up(abs1(d), a)
				continue
			}
			t := up(norm2(d), p.size[l][i])
			if l == 0 {
				total = t
			} else {
				total = math.Hypot(total, t)
			}
		}
		dst[i] = total * (1 + float64(len(p.act))*0x1p-50)
		if total > 0 && dst[i] < 0x1p-1000 {
			dst[i] += math.SmallestNonzeroFloat64 // the factor may have rounded away
		}
	}
}

// abs1 is ‖v‖₁, rounded up.
func abs1(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += math.Abs(x)
	}
	return s * (1 + float64(len(v)+1)*0x1p-52)
}

// GradBound is ‖δ_L‖, which a loss of 0 makes 0, times the root of Σ_l ‖(a_{l−1}, 1)‖²·Π_{j>l} ‖W_j‖₂²: no φ has
// a slope above 1, so that ‖δ_l‖ ≤ ‖W_{l+1}‖₂·‖δ_{l+1}‖. It asks for no backward pass, and the spectral norms of the layers after
// the first only (S-0b). W_j is without its bias. A product of a computed δ with k terms is off by k·2⁻⁵³‖δ‖·‖W‖_F at
// most, and ‖W‖_F ≤ √k·‖W‖₂: 2⁻³⁰ for k = 2¹⁵, which the factor 1 + L·2⁻²⁸ covers. What rounds below the normal numbers is flushed.
func (p *mlpPass) GradBound(dst []float64) {
	needLength("dst", len(dst), p.n)
	p.begin()
	layers, k := len(p.act)-1, p.m.Outputs()
	r := p.err[layers-1]
	after := make([]float64, layers) // ‖W_{l+2}‖₂; below 2⁻¹⁰⁰⁰ it could have been rounded down
	for l := layers - 2; l >= 0; l-- {
		in, out := p.m.size[l+1], p.m.size[l+2]
		after[l] = max(SpectralBound(p.m.weights(p.w, l+1)[:in*out], in, out), 0x1p-1000)
	}
	for i := range dst {
		d := norm2(r[i*k : (i+1)*k])
		total := up(p.size[layers-1][i], d)
		for l := layers - 2; l >= 0; l-- {
			d = up(d, after[l])
			total = math.Hypot(total, up(p.size[l][i], d))
		}
		dst[i] = total * (1 + float64(layers)*0x1p-28)
	}
}

func (p *mlpPass) AddGrad(dst, c []float64, unit float64) {
	needLength("dst", len(dst), p.m.Dim())
	needLength("c", len(c), p.n)
	needUnit(unit)
	p.backward()
	for l, d := range p.err[:len(p.act)-1] {
		in, out := p.m.size[l]+1, p.m.size[l+1]
		a := p.act[l]
		p.left, p.right = grow(p.left, len(a)), grow(p.right, len(d))
		p.line, p.scale = grow(p.line, out), grow(p.scale, in)
		left, right, filled := p.left, p.right, 0.0
		for i, ci := range c {
			rowA, rowD := left[i*in:(i+1)*in], right[i*out:(i+1)*out]
			scale := 1.0
			if unit > 0 {
				_, exp := math.Frexp(p.size[l][i])
				scale = math.Ldexp(1, exp)
			}
			if ci == 0 || unit > 0 && !(scale <= math.MaxFloat64 && 1/scale > 0) {
				clear(rowA) // 0 times what is not a number would be none
				clear(rowD)
				continue
			}
			fill(p.line, ci*scale)
			kern.Coef(rowD, p.line, d[i*out:(i+1)*out], unit)
			if unit == 0 {
				copy(rowA, a[i*in:(i+1)*in])
				continue
			}
			if scale != filled { // most rows have the same
				fill(p.scale, 1/scale)
				filled = scale
			}
			kern.Coef(rowA, p.scale, a[i*in:(i+1)*in], netUnit)
		}
		kern.Gemm(true, false, in, out, p.n, left, in, right, out, p.m.weights(dst, l), out)
	}
}

func fill(v []float64, x float64) {
	for i := range v {
		v[i] = x
	}
}
