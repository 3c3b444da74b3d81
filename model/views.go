package model

import (
	"math"

	"github.com/sottodp/sotto/internal/kern"
)

// A ViewedPass takes each k consecutive rows as views of one record, whose gradient is the mean of theirs. Facts.Viewed
// says which models have it. It forms the mean gradient of each record.
type ViewedPass interface {
	Pass
	// MeanNorm sets dst[r] to the ℓ2 norm of the mean gradient of record r, as GradNorm does to a row's. k divides Len.
	MeanNorm(dst []float64, k int)
	// AddMean adds Σ c_r·g_r, g_r the mean gradients, to dst. With a unit each entry of c_r·g_r is truncated toward zero
	// to a multiple of unit·Facts.Unit.
	AddMean(dst, c []float64, k int, unit float64)
}

// A former is a worker that can form gradients.
type former[T number] interface {
	// addRows adds the gradients of rows from … to−1 to dst, as a function of those rows alone.
	addRows(dst []T, from, to int)
}

// forms says whether a network of those layers can form gradients.
func forms(layers []layer) bool {
	for _, l := range layers {
		if _, ok := newWorker[float32](l).(former[float32]); l.params() > 0 && !ok {
			return false
		}
	}
	return true
}

func (d *denseWorker[T]) addRows(dst []T, from, to int) {
	in, out := d.rows, d.cols
	a, err := d.a[from*in:to*in], d.err[from*out:to*out]
	kern.Gemm(true, false, in, out, to-from, a, in, err, out, dst[:in*out], out)
	if !d.bare {
		addAll(dst[in*out:], err)
	}
}

func (c *convWorker[T]) addRows(dst []T, from, to int) {
	c.form()
	addAll(dst, c.grads[from*len(dst):to*len(dst)])
}

func (g *groupNormWorker[T]) addRows(dst []T, from, to int) {
	g.form()
	addAll(dst, g.grads[from*len(dst):to*len(dst)])
}

// addAll adds rows of len(dst) to dst, in their order.
func addAll[T number](dst, rows []T) {
	for i := 0; i < len(rows); i += len(dst) {
		kern.Add(dst, rows[i:])
	}
}

// sums calls f with the sum of the gradients of each record's k rows, for each layer that has some; at is where
// its parameters begin. Records with weight 0 are left out.
func (p *netPass[T]) sums(k int, c []float64, f func(r, at int, sum []T)) {
	p.backward()
	for l, worker := range p.workers {
		n := p.m.layers[l].params()
		if n == 0 {
			continue
		}
		p.formed = grow(p.formed, n)
		for r := range p.n / k {
			if c == nil || c[r] != 0 {
				clear(p.formed)
				worker.(former[T]).addRows(p.formed, r*k, (r+1)*k)
				f(r, p.m.offset[l], p.formed)
			}
		}
	}
}

func (p *netPass[T]) MeanNorm(dst []float64, k int) {
	needLength("dst", len(dst)*k, p.n)
	clear(dst)
	one := []float64{0}
	p.sums(k, nil, func(r, _ int, sum []T) {
		norms2(one, sum, len(sum))
		dst[r] = math.Hypot(dst[r], one[0])
	})
	for r := range dst {
		dst[r] *= (1 + 0x1p-50) / float64(k)
	}
	p.cover(dst)
}

func (p *netPass[T]) AddMean(dst, c []float64, k int, unit float64) {
	needLength("dst", len(dst), p.m.Dim())
	needLength("c", len(c)*k, p.n)
	needUnit(unit)
	step := unit * netUnit
	p.sums(k, c, func(r, at int, sum []T) {
		to, weight := dst[at:at+len(sum)], c[r]/float64(k)
		if unit == 0 {
			for j, v := range sum {
				to[j] += weight * float64(v)
			}
			return
		}
		kern.AxpyWhole(to, []float64{weight / step}, sum, len(sum), nil, step)
	})
}
