package private

import (
	"errors"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
)

var errNotCalibrated = errors.New("private: sums over margins are for models whose probabilities are functions of margins, logistic and softmax, in a run that says that it calibrates them")

// Margins answers a charged query of margins. The line where private becomes public is the call of Add.
func (b *batch) Margins(q oracle.Margins, at []float64) ([]float64, error) {
	o := b.o
	if err := q.Fits(o.cfg.Facts, at); err != nil {
		return nil, err
	}
	if err := b.take(q); err != nil {
		return nil, err
	}
	r := o.margins(q)
	dim := o.cfg.Facts.Dim
	o.sum = sum.Sum{Of: sum.Margins, Unit: r.unit, Margins: q, W: at[:dim], At: at[dim:]}
	counts, err := o.take(&o.sum)
	if err != nil {
		return nil, err
	}
	if err := q.Noise.Add(counts, r.grid, r.sens, &o.noise); err != nil {
		return nil, err
	}
	a := b.memory(len(counts))
	for j, v := range counts {
		a[j] = float64(v) * r.grid / q.Scale(o.cfg.Facts, j)
	}
	return a, b.answered(a)
}

// margins adds up slopes and curvatures of rows as functions of their margins (PROOFS.md#margins).
type margins struct {
	of     model.Marginal
	w      []float64
	shift  []float64 // of each margin
	a      float64
	b      []float64 // of each margin
	bound  float64
	scales []float64 // of the numbers of a row
	facts  oracle.Public
	one    float64 // in units
}

func newMargins(s *sum.Sum, m model.Model, facts oracle.Public) *margins {
	k := facts.Margins()
	t := &margins{of: m.(model.Marginal), w: s.W, shift: s.At[:k], a: s.At[k], b: s.At[k+1:], bound: s.Margins.Bound,
		facts: facts, one: 1 / s.Unit}
	for j := range s.Len() {
		t.scales = append(t.scales, s.Margins.Scale(facts, j))
	}
	return t
}

func (t *margins) add(u *worker, v data.View) {
	n, k := v.Len(), len(t.b)
	u.classes = grow(u.classes, k*n+5*k+5)
	z, figures, row := u.classes[:k*n], u.classes[k*n:][:2*k+3], u.classes[k*n+2*k+3:]
	t.of.Margins(z, t.w, v, &u.ws)
	parts := u.sharesOf(v)
	for i := range n {
		at := v.Row(i)
		y := v.Y[at]
		if v.Drop != nil && v.Drop[at] || !(y >= 0 && y < float32(t.facts.Classes) && y == float32(int(y))) {
			continue // keeps its place, weighs nothing (R9)
		}
		for c := range k {
			row[c] = z[c*n+i] + t.shift[c]
		}
		if k == 1 {
			t.two(figures, row[0], float64(y))
		} else {
			t.more(figures, row[:k], row[k:2*k], int(y))
		}
		for j, scale := range t.scales {
			u.fall[j] += shared(clipped(figures[j]*scale, t.one, int64(2*t.one)), parts, i)
		}
	}
}

// two sets the five figures of a row of class y with one margin z.
func (t *margins) two(figures []float64, z, y float64) {
	z = min(max(z, -t.bound), t.bound)
	u, p := z/t.bound, 1/(1+math.Exp(-(t.a*z+t.b[0])))
	r, v := p-y, p*(1-p)
	figures[0], figures[1], figures[2], figures[3], figures[4] = r, r*u, v, v*u, v*u*u
}

// more sets the figures of a row of class y with the margins z, one for each class. It overwrites z and p.
func (t *margins) more(figures, z, p []float64, y int) {
	k, norm := len(z), 0.0
	for _, v := range z {
		norm = math.Hypot(norm, v)
	}
	most := math.Inf(-1)
	for c := range z {
		z[c] /= max(norm, t.bound) // u: where a margin is not finite one is NaN, and then all figures are
		p[c] = t.a*t.bound*z[c] + t.b[c]
		most = max(most, p[c])
	}
	sum := 0.0
	for c := range p {
		p[c] = math.Exp(p[c] - most)
		sum += p[c]
	}
	slope, mean, square := 0.0, 0.0, 0.0
	for c, u := range z {
		p[c] /= sum
		r := p[c]
		if c == y {
			r--
		}
		figures[c], figures[k+1+c] = r, p[c]*(1-p[c])
		slope, mean, square = slope+r*u, mean+p[c]*u, square+p[c]*u*u
	}
	figures[k], figures[2*k+1] = slope, square-mean*mean
}
