package p0

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/paper"
)

// The methods of Table 2 beside value clipping. P0's gradient clipping is that of Opacus, which forms a gradient for
// each row of a batch; Sotto's needs only norms.
const (
	sgdPlain = "SGD"
	micro    = "micro-batch"
	gcRows   = "GC, a gradient for each row"
	gcGhost  = "GC, ghost norms"
)

var timed = []string{sgdPlain, micro, gcRows, gcGhost, vcOld, vcPower, vc}

// A Time is a line of Table 2: seconds of processor time for an epoch of the paper's length, one core, without noise.
type Time struct {
	Model, Kind string
	Seconds     float64   // the median over the repetitions
	Ratios      []float64 // to SGD's in the same repetition
}

// A timing is the lines of Table 2, with the load of the machine before and after.
type timing struct {
	Times []Time
	Load  [2]string
}

// repeats: each method's steps are divided into so many parts that alternate, so that a slow machine slows all methods.
const repeats = 15

// times takes the steps of all methods in turns. Batches are the same for all but micro-batches and gradients of rows.
// The time of value clipping has that of the norms of layers.
func times(ctx context.Context, size Size, t *task) ([]Time, error) {
	epoch := float64(t.rows) / batch
	var list []Time
	for _, name := range models {
		seconds, ratios := make([][]float64, len(timed)), make([][]float64, len(timed))
		for range repeats {
			for i, kind := range timed {
				each, err := t.time(ctx, max(1, size.Timed/repeats), name, kind)
				if err != nil {
					return nil, err
				}
				seconds[i] = append(seconds[i], each)
				ratios[i] = append(ratios[i], each/Last(seconds[0]))
			}
		}
		for i, kind := range timed {
			list = append(list, Time{Model: name, Kind: kind, Seconds: median(seconds[i]) * epoch, Ratios: ratios[i]})
		}
	}
	return list, nil
}

// median is that of v.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ratio is how much longer than SGD a method takes, with the standard error over the repetitions.
func (r *Report) ratio(name, kind string) string {
	m, se := paper.MeanError(r.time(name, kind).Ratios)
	return fmt.Sprintf("%.2f ± %.2f", m, se)
}

// above is by how many standard errors over the repetitions a method takes longer than others do.
func (r *Report) above(name, kind string, others ...string) float64 {
	least := math.Inf(1)
	for _, o := range others {
		list := slices.Clone(r.time(name, kind).Ratios)
		for i, v := range r.time(name, o).Ratios {
			list[i] -= v
		}
		m, se := paper.MeanError(list)
		least = min(least, m/se)
	}
	return least
}

// time is the processor time of one of some steps.
func (t *task) time(ctx context.Context, steps int, name, kind string) (seconds float64, err error) {
	p, err := t.problem(name)
	if err != nil {
		return 0, err
	}
	switch kind {
	case micro:
		return oneByOne(p.Model, p.Public.Start(), t.train, max(1, steps/5)), nil
	case gcRows:
		g := newPerRow(p.Model, p.Public.Start(), batch)
		g.step(t.train, 0) // memory is there from the second one on
		begin := paper.Processor()
		for k := range steps {
			g.step(t.train, k+1)
		}
		return (paper.Processor() - begin) / float64(steps), nil
	case vcOld, vcPower:
		p.Model = newWGC(p.Model, kind)
	}
	sgd := method.SGD{Steps: steps + 1, Rate: 1e-3,
		Gradient: method.Gradient{Clip: fifth, Batch: batch, Sampling: method.Poisson, Off: true}}
	switch kind {
	case sgdPlain:
		sgd.Gradient.Clip = 0
	case vc, vcOld, vcPower:
		sgd.Gradient.Clipping = method.ByValue
	}
	o, err := p.Oracle(nil, seed, 1)
	if err != nil {
		return 0, err
	}
	defer o.Close()
	begin := 0.0
	for step, err := range sgd.Run(ctx, o, method.Objective{}) {
		if err != nil {
			return 0, err
		}
		if step.T == 1 {
			begin = paper.Processor()
		}
		if step.T == steps+1 {
			return (paper.Processor() - begin) / float64(steps), nil
		}
	}
	return 0, nil
}

// oneByOne is the naive way: compute each row's gradient separately, clip it by its norm, and add it.
func oneByOne(m model.Model, w []float64, t *data.Table, steps int) float64 {
	var ws model.Workspace
	g, sum, c := make([]float64, len(w)), make([]float64, len(w)), []float64{1}
	begin := paper.Processor()
	for k := range steps {
		clear(sum)
		for i := range batch {
			b, row := rowOf(t, k*batch+i)
			clear(g)
			m.Eval(w, data.View{Block: b, From: row, To: row + 1}, &ws).AddGrad(g, c, 0)
			square := 0.0
			for _, v := range g {
				square += v * v
			}
			scale := min(1, fifth/math.Sqrt(square))
			for j, v := range g {
				sum[j] += scale * v
			}
		}
		for j, v := range sum {
			w[j] -= 1e-3 / batch * v
		}
	}
	return (paper.Processor() - begin) / float64(steps)
}

// rowOf is a row of a table, spread as a sample's are.
func rowOf(t *data.Table, i int) (*data.Block, int) {
	i *= 7
	b := t.Blocks[i/data.BlockRows%len(t.Blocks)]
	return b, i % data.BlockRows % b.N
}

// A perRow is gradient clipping as Opacus does it: one pass forward and back for the whole batch, then a gradient for
// each row, its norm, and the sum of the clipped ones. It is for dense layers without biases, ReLU and cross-entropy.
type perRow struct {
	n      int
	layers []*dense
	size   int       // of a gradient
	grads  []float32 // n gradients
	norms  []float64
	sum    []float64
	memory []float32
}

// A dense layer has In×Out weights, and for each row what comes in and the derivatives of what goes out.
type dense struct {
	in, out      int
	w, x, deltas []float32
}

func newPerRow(m model.Model, w []float64, n int) *perRow {
	g := &perRow{n: n, norms: make([]float64, n)}
	for _, s := range m.(model.Staged).Stages(w) {
		if s.Kind == "dense" {
			l := &dense{in: s.In, out: s.Out, w: make([]float32, len(s.W)), x: make([]float32, n*s.In),
				deltas: make([]float32, n*s.Out)}
			kern.Narrow(l.w, s.W)
			g.layers, g.size = append(g.layers, l), g.size+len(s.W)
		}
	}
	g.grads, g.sum = make([]float32, n*g.size), make([]float64, g.size)
	return g
}

// step is a step of gradient clipping on the k-th rows of a table.
func (g *perRow) step(t *data.Table, k int) {
	first, last := g.layers[0], g.layers[len(g.layers)-1]
	labels := make([]int, g.n)
	for i := range g.n {
		b, row := rowOf(t, k*g.n+i)
		copy(first.x[i*first.in:(i+1)*first.in], b.Dense(row, &g.memory))
		labels[i] = int(b.Y[row])
	}
	for l, d := range g.layers {
		z := d.deltas
		clear(z)
		kern.Gemm(false, false, g.n, d.out, d.in, d.x, d.in, d.w, d.out, z, d.out)
		if l+1 < len(g.layers) {
			copy(g.layers[l+1].x, z)
			kern.Rectify(g.layers[l+1].x)
		}
	}
	for i := range g.n { // the softmax's probabilities, less 1 for the class
		z, sum := last.deltas[i*last.out:(i+1)*last.out], 0.0
		top := slices.Max(z)
		for c, v := range z {
			e := math.Exp(float64(v - top))
			z[c], sum = float32(e), sum+e
		}
		for c := range z {
			z[c] /= float32(sum)
		}
		z[labels[i]]--
	}
	for l := len(g.layers) - 1; l > 0; l-- {
		d, below := g.layers[l], g.layers[l-1]
		clear(below.deltas)
		kern.Gemm(false, true, g.n, d.in, d.out, d.deltas, d.out, d.w, d.out, below.deltas, d.in)
		kern.Mask(below.deltas, d.x)
	}
	clear(g.grads)
	for i := range g.n {
		at := g.grads[i*g.size:]
		for _, d := range g.layers {
			kern.Gemm(false, false, d.out, d.in, 1, d.deltas[i*d.out:], 1, d.x[i*d.in:], d.in, at, d.in)
			at = at[len(d.w):]
		}
	}
	kern.Norm2(g.norms, g.grads, g.size, nil, g.size)
	factors := make([]float64, g.n)
	for i, v := range g.norms {
		factors[i] = min(1, fifth/v)
	}
	clear(g.sum)
	kern.Axpy(g.sum, factors, g.grads, g.size, nil)
	sum := g.sum
	for _, d := range g.layers {
		for j := range d.w { // a gradient has Out×In derivatives
			d.w[j] -= float32(1e-3 / float64(g.n) * sum[j%d.out*d.in+j/d.out])
		}
		sum = sum[len(d.w):]
	}
}
