package model

import (
	"cmp"
	"fmt"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
)

// A network is a chain of layers l = 1 … L:
//
//	a_0 = x, times the input scale
//	a_l = the layer's function of a_{l−1} and W_l; a_L = z are the outputs
//	ℓ   = ln Σ_k e^{z_k} − z_y   classes, or ½(z − y)² for a numeric label
//	δ_L = ∂ℓ/∂a_L = p − e_y, or z − y;  δ_l = ∂ℓ/∂a_l
//
// w is W_1, …, W_L. A record's gradient is never formed: layers compute the norm and
// weighted sums of their parts of it.
//
// # Exact sums
//
// With a unit, each layer's sum is made exact as that of a linear model. Of a dense layer, let s_i be the least power
// of two above ‖(a_i, 1)‖, as computed. Activations over s_i are truncated toward zero to multiples of netUnit, and
// c_i·s_i·δ_i to multiples of unit. Both only get shorter, entry by entry, so that every entry of c_i·(a_i, 1)ᵀ·δ_i
// does, and the clip bound holds for the products, which are multiples of unit·netUnit and at most the clip norm in
// size. Rows go forward and back in float32, or float64 where its configuration says so; norms, clip weights and sums
// are of float64. What the network computes of a row depends on that row and w alone. So the gradient of a row is that
// of the rounded activations and errors, not of ideal ones; what the guarantee needs is only that it is a function of
// the row, and its norm bounded.
type network struct {
	name    string
	layers  []layer
	offset  []int     // of W_1, …, W_L, and their end
	classes int       // 0 for a numeric label
	weights []float64 // of the classes; nil: all 1
	double  bool      // computes in float64
	torch   bool      // starts as PyTorch's layers
	scale   float64   // of the input
	shape   []int     // of its images; nil where it takes any rows
	facts   Facts
}

// ShapeOf is the shape of the images that a model needs; nil where it takes any rows.
func ShapeOf(m Model) []int {
	if n, ok := m.(*network); ok {
		return n.shape
	}
	return nil
}

// netUnit: activations over their norm are multiples of it. It is Facts.Unit of a network.
const netUnit = 0x1p-21

const (
	maxWidth  = 1 << 15 // numbers of a layer
	maxParams = 25e6    // what a model file holds
)

// The values of compute.
const (
	single = "float32"
	double = "float64"
)

// The values of start.
const (
	he      = "he"
	pytorch = "pytorch"
)

// MLP is the configuration of a network of dense layers.
type MLP struct {
	// The hidden layers, first to last: units and activation (relu, tanh, linear), as in "128 relu"; relu may be left out.
	Layers     []string `yaml:"layers" json:"layers,omitempty" type:"list of texts" default:"required" doc:"the hidden layers, first to last, as in [128 relu, 32 tanh]"`
	Compute    string   `yaml:"compute" json:"compute,omitempty" type:"text" default:"float32" values:"float32 float64" doc:"the number type for rows; sums are exact in either"`
	BiasFree   bool     `yaml:"bias_free" json:"bias_free,omitempty" type:"true or false" default:"false" doc:"layers without biases"`
	Start      string   `yaml:"start" json:"start,omitempty" file:"-" type:"text" default:"he" values:"he pytorch" doc:"initial parameters"`
	InputScale float64  `yaml:"input_scale" json:"input_scale,omitempty" type:"number above 0" default:"√d/R" doc:"what rows of d numbers and norm R are multiplied by first"`
}

var mlpEntry = Entry{Name: "mlp", About: "network of dense layers", Label: SomeClasses, Config: MLP{},
	Small: MLP{Layers: []string{"4 tanh", "3 relu"}}, Net: true}

// netFields are those that networks share. An InputScale of 0 is 1, as in runs of earlier versions.
type netFields struct {
	layers         []string
	compute, start string
	biasFree       bool
	scale          float64
}

// check says which field is wrong.
func (c netFields) check(name, example string, norm float64) error {
	switch s := c.scale; {
	case len(c.layers) == 0:
		return fmt.Errorf("model: %s needs layers, as in [%s]; without one it would be softmax or linear", name, example)
	case c.compute != "" && c.compute != single && c.compute != double:
		return fmt.Errorf("model: compute: found %q; choose %s (the default) or %s", c.compute, single, double)
	case c.start != "" && c.start != he && c.start != pytorch:
		return fmt.Errorf("model: start: found %q; choose %s (the default) or %s", c.start, he, pytorch)
	case !(s >= 0) || math.IsInf(s*norm, 1) || s != 0 && s*norm == 0:
		return fmt.Errorf("model: input_scale: found %v; choose a number above 0 by which rows of norm %v stay finite", s,
			norm)
	}
	return nil
}

// inputScale is that of a network where it is left free: numbers of a row of the largest norm then have a size of about
// 1.
func inputScale(given float64, opt Options) float64 {
	return cmp.Or(given, math.Sqrt(float64(opt.Dim))/opt.NormBound)
}

// Choose sets the input scale.
func (c MLP) Choose(opt Options) Config {
	c.InputScale = inputScale(c.InputScale, opt)
	return c
}

func (c MLP) New(opt Options) (Model, error) {
	own := netFields{c.Layers, c.Compute, c.Start, c.BiasFree, c.InputScale}
	if err := own.check("mlp", "128 relu", opt.NormBound); err != nil {
		return nil, err
	}
	var layers []layer
	width := opt.Dim
	for _, text := range c.Layers {
		l, err := parseDense(text, width, c.BiasFree)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l...)
		width = l[0].out().size()
	}
	return newNetwork("mlp", own, opt, layers)
}

// newNetwork is a network of hidden layers; a dense one to the outputs follows.
func newNetwork(name string, own netFields, opt Options, layers []layer) (Model, error) {
	last := layers[len(layers)-1].out().size()
	layers = append(layers, &denseLayer{last, max(1, opt.Classes), heGain(ident), own.biasFree})
	m := &network{name: name, layers: layers, classes: opt.Classes, double: own.compute == double,
		torch: own.start == pytorch, scale: cmp.Or(own.scale, 1), offset: []int{0}}
	for i, l := range layers {
		// a product of such does not overflow
		if l.in() > maxParams || l.out().size() > maxParams || m.offset[i]+l.params() > maxParams {
			return nil, fmt.Errorf("model: %s: more than %d parameters; use fewer or narrower layers", name, int(maxParams))
		}
		m.offset = append(m.offset, m.offset[i]+l.params())
	}
	inf := math.Inf(1)
	parts := 0
	for _, l := range layers {
		if l.params() > 0 {
			parts++
		}
	}
	m.facts = Facts{
		NormBound: m.scale * opt.NormBound, Lipschitz: inf, Smooth: inf, HessLipschitz: inf, Start: inf,
		Bounded: true, Probabilities: opt.Classes > 0, Unit: netUnit, Layers: parts, Viewed: forms(layers),
	}
	return m, nil
}

func (m *network) Name() string { return m.name }
func (m *network) Dim() int     { return m.offset[len(m.layers)] }
func (m *network) Outputs() int { return max(1, m.classes) }
func (m *network) Facts() Facts { return m.facts }

// A Span is a run of parameters that start uniform in [−Bound, Bound].
type Span struct {
	Count int
	Bound float64
}

// A Starter is a model whose parameters must not start at 0: a network of zeros has no
// gradient but that of its last biases.
type Starter interface{ Start() []Span }

// Start is that of the layers. That of the first layer is for inputs of norm R, so its output has size 1 for any R.
// PyTorch's layers start weights and biases uniform in ±1/√n, n inputs of a number.
func (m *network) Start() []Span {
	var spans []Span
	for i, l := range m.layers {
		norm := math.Sqrt(float64(l.in()))
		if i == 0 {
			norm = m.facts.NormBound
		}
		start := l.start(norm)
		if l, ok := l.(interface{ fan() int }); ok && m.torch {
			for k := range start {
				start[k].Bound = 1 / math.Sqrt(float64(l.fan()))
			}
		}
		spans = append(spans, start...)
	}
	return spans
}

func (m *network) Eval(w []float64, v data.View, ws *Workspace) Pass {
	check(m, m.layers[0].in(), w, v)
	needLabels(v)
	if m.double {
		ws.net64.forward(m, w, v, ws.held)
		return &ws.net64
	}
	ws.net32.forward(m, w, v, ws.held)
	return &ws.net32
}

func (m *network) Predict(dst, w []float64, v data.View, ws *Workspace) {
	check(m, m.layers[0].in(), w, v)
	needLength("dst", len(dst), v.Len()*m.Outputs())
	var z []float64
	if m.double {
		z = ws.net64.forward(m, w, v, ws.held)
	} else {
		z = ws.net32.forward(m, w, v, ws.held)
	}
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

// A netPass is the Pass of a network. It lives in a Workspace.
type netPass[T number] struct {
	m       *network
	workers []worker[T]
	loaded  *float64 // parameters that the workers hold, while the Workspace holds them
	view    data.View
	n       int

	rows   []T       // the view's rows, scaled, where they do not stand so in the table
	row    []float32 // one, with its zeros
	act    [][]T     // act[l]: a_l; act[0] the rows
	err    [][]T     // err[l]: δ_l, from l = 1
	space  [][2][]T  // memory of act[l] and err[l]
	z      []float64 // a_L
	r      []float64 // δ_L
	reach  []float64
	formed []T  // a record's gradient of a layer: see sums
	front  bool // err[L] is valid
	back   bool // and so are all of err
}

func (p *netPass[T]) Len() int { return p.n }

// forward computes the activations and returns the outputs.
func (p *netPass[T]) forward(m *network, w []float64, v data.View, held *float64) []float64 {
	layers := len(m.layers)
	if p.m != m {
		p.m, p.loaded, p.workers = m, nil, nil
		for _, l := range m.layers {
			p.workers = append(p.workers, newWorker[T](l))
		}
		p.act, p.err, p.space = make([][]T, layers+1), make([][]T, layers+1), make([][2][]T, layers+1)
	}
	if held != &w[0] || p.loaded != held {
		for l, k := range p.workers {
			k.load(w[m.offset[l]:m.offset[l+1]])
		}
		p.loaded = held
	}
	p.view, p.n, p.front, p.back = v, v.Len(), false, false
	p.act[0] = p.input()
	for l, k := range p.workers {
		if m.layers[l].inPlace() {
			p.act[l+1] = p.act[l]
		} else {
			s := &p.space[l+1][0]
			*s = grow(*s, p.n*m.layers[l].out().size())
			p.act[l+1] = *s
		}
		k.forward(p.act[l+1], p.act[l], p.n)
	}
	p.z = wide(p.z, p.act[layers])
	return p.z
}

// input is the scaled rows of the view, without a copy if they are contiguous and the scale is 1.
func (p *netPass[T]) input() []T {
	v, d, scale := p.view, p.view.Block.Dim, T(p.m.scale)
	if v.Rows == nil && scale == 1 {
		if x, ok := any(v.Run(v.From, v.To)).([]T); ok && x != nil {
			return x
		}
	}
	p.rows = grow(p.rows, p.n*d)
	for i := range p.n {
		to := p.rows[i*d:][:d]
		for j, f := range v.Dense(v.Row(i), &p.row) {
			to[j] = T(f) * scale
		}
	}
	return p.rows
}

// class is the label of row i, or −1 where it is no class.
func (p *netPass[T]) class(i int) int {
	y := p.view.Y[p.view.Row(i)]
	if k := int(y); y >= 0 && y < float32(p.m.classes) && float32(k) == y {
		return k
	}
	return -1
}

// Loss is as softmax's, or half the square of the error.
func (p *netPass[T]) Loss(dst []float64) {
	needLength("dst", len(dst), p.n)
	k := p.m.Outputs()
	for i := range dst {
		z := p.z[i*k : (i+1)*k]
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
		dst[i] = (z[top] - z[y] + math.Log1p(rest)) * weight(p.m.weights, y)
	}
}

// begin sets err[L] to δ_L. The residual of the label is minus the sum of the others,
// which keeps its digits where p_y is near 1.
func (p *netPass[T]) begin() {
	if p.front {
		return
	}
	p.front = true
	k, z := p.m.Outputs(), p.z
	p.r = grow(p.r, len(z))
	if p.m.classes == 0 {
		for i, v := range z {
			p.r[i] = v - float64(p.view.Y[p.view.Row(i)])
		}
	} else {
		softmaxRows(p.r, z, k)
	}
	for i := range p.n {
		row, y := p.r[i*k:(i+1)*k], p.class(i)
		if p.m.classes == 0 {
			continue
		}
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
		if p.m.weights != nil {
			for j := range row {
				row[j] *= p.m.weights[y]
			}
		}
	}
	last := len(p.workers)
	s := &p.space[last][1]
	*s = grow(*s, len(p.r))
	convert(*s, p.r)
	p.err[last] = *s
	flush(p.err[last])
}

// backward computes the errors of all layers.
func (p *netPass[T]) backward() {
	if p.back {
		return
	}
	p.back = true
	p.begin()
	for l := len(p.workers) - 1; l >= 0; l-- {
		switch s := &p.space[l][1]; {
		case p.m.layers[l].inPlace():
			p.err[l] = p.err[l+1]
		case l > 0:
			*s = grow(*s, p.n*p.m.layers[l].in())
			p.err[l] = *s
		}
		p.workers[l].backward(p.err[l], p.err[l+1])
		flush(p.err[l])
	}
}

// leastError is so far above the smallest number of float64 that rounding there is negligible beside it.
const leastError = 0x1p-700

// flush sets float64 errors below leastError to 0. The rounding of products and norms of such errors may be as large
// as the errors, and activations may be as large as errors are small. NaN stays NaN. Norms of float32 numbers are
// float64, and far from its limits.
func flush[T number](d []T) {
	wide, ok := any(d).([]float64)
	if !ok {
		return
	}
	least := math.Float64bits(leastError)
	for i, v := range wide {
		bits := math.Float64bits(v)
		if bits<<1 < least<<1 { // of the absolute value
			bits = 0
		}
		wide[i] = math.Float64frombits(bits)
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

// abs1 is ‖v‖₁, rounded up.
func abs1(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += math.Abs(x)
	}
	return s * (1 + float64(len(v)+1)*0x1p-52)
}

// GradNorm is the norm over all layers.
func (p *netPass[T]) GradNorm(dst []float64, norm int) {
	needLength("dst", len(dst), p.n)
	if norm != 1 && norm != 2 {
		panic("model: gradient norms exist for p = 1 and p = 2")
	}
	p.backward()
	clear(dst)
	for _, k := range p.workers {
		k.addNorm(dst, norm)
	}
	p.cover(dst)
}

// cover rounds up what the sums over layers rounded.
func (p *netPass[T]) cover(dst []float64) {
	for i, total := range dst {
		dst[i] = total * (1 + float64(len(p.workers)+1)*0x1p-49)
		if total > 0 && dst[i] < 0x1p-1000 {
			dst[i] += math.SmallestNonzeroFloat64 // the factor may have rounded away
		}
	}
}

// GradBound follows from the norm of δ_L, at most √2·(1 − e^−ℓ) or √(2ℓ), and the layers' reach: for dense layers ‖δ_L‖
// times the root of Σ_l ‖(a_{l−1}, 1)‖²·Π_{j>l} ‖W_j‖₂². It needs no backward pass, and only the norms of the layers
// after the first (S-0b).
func (p *netPass[T]) GradBound(dst []float64) {
	needLength("dst", len(dst), p.n)
	p.begin()
	p.reach = grow(p.reach, p.n)
	norms2(p.reach, p.err[len(p.workers)], p.m.Outputs())
	clear(dst)
	for l := len(p.workers) - 1; l >= 0; l-- {
		p.workers[l].addBound(dst, p.reach)
		if l > 0 {
			p.workers[l].reach(p.reach)
		}
	}
	p.cover(dst)
}

func (p *netPass[T]) AddGrad(dst, c []float64, unit float64) {
	needLength("dst", len(dst), p.m.Dim())
	needLength("c", len(c), p.n)
	needUnit(unit)
	p.backward()
	for l, k := range p.workers {
		k.addGrad(dst[p.m.offset[l]:p.m.offset[l+1]], c, unit)
	}
}
