package paper

import (
	"context"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// free is a meter that passes everything: experiments use public tables, which need no protection.
type free privacy.Adjacency

func (f free) Adjacency() privacy.Adjacency { return privacy.Adjacency(f) }
func (free) Charge(privacy.Event) error     { return nil }

// A Problem is a public table under a model.
type Problem struct {
	Table  *data.Table
	Model  model.Model
	Public oracle.Public
}

// NewProblem is a table under a model by its name; layers are those of a network. Rows of a cnn are square images.
func NewProblem(t *data.Table, kind string, adjacency privacy.Adjacency, layers ...string) (*Problem, error) {
	options := model.Options{Dim: t.Dim, Classes: t.Classes, NormBound: t.NormBound}
	switch side := int(math.Sqrt(float64(t.Dim))); kind {
	case "mlp":
		options.Config = model.MLP{Layers: layers}
	case "cnn":
		options.Config = model.CNN{Layers: layers, Shape: []int{side, side}}
	}
	m, err := model.New(kind, options)
	if err != nil {
		return nil, err
	}
	return Under(t, m, adjacency), nil
}

// Under is a table under a model.
func Under(t *data.Table, m model.Model, adjacency privacy.Adjacency) *Problem {
	f := m.Facts()
	p := &Problem{t, m,
		oracle.Public{Dim: m.Dim(), Rows: t.Rows(), Classes: t.Classes, Adjacency: adjacency, NormBound: f.NormBound,
			Lipschitz: oracle.Bound(f.Lipschitz), Smooth: oracle.Bound(f.Smooth), HessLipschitz: oracle.Bound(f.HessLipschitz),
			Curved: f.Curved, Bounded: f.Bounded}}
	if !math.IsInf(f.Start, 0) {
		p.Public.StartLoss = oracle.Bound(f.Start)
	}
	if s, ok := m.(model.Starter); ok {
		for _, span := range s.Start() {
			p.Public.Initial = append(p.Public.Initial, oracle.Span(span))
		}
	}
	return p
}

// Oracle is the problem's private oracle with seeded noise. A nil meter passes everything.
func (p *Problem) Oracle(meter account.Meter, seed uint64, workers int) (*private.Oracle, error) {
	if meter == nil {
		meter = free(p.Public.Adjacency)
	}
	t := run.Trainer{Job: &run.Job{Model: p.Model, Facts: p.Public}, Table: p.Table, Meter: meter,
		Journal: run.NopJournal{}, Streams: noise.SeededStreams(seed), Workers: workers}
	return t.Open()
}

// Loss is the mean loss of a table at w. visit, where it is not nil, is called with each block and its pass.
func Loss(m model.Model, w []float64, t *data.Table, visit func(v data.View, pass model.Pass)) float64 {
	var ws model.Workspace
	losses, sum := make([]float64, data.BlockRows), 0.0
	for _, b := range t.Blocks {
		v := data.View{Block: b, To: b.N}
		pass := m.Eval(w, v, &ws)
		pass.Loss(losses[:b.N])
		for _, l := range losses[:b.N] {
			sum += l
		}
		if visit != nil {
			visit(v, pass)
		}
	}
	return sum / float64(t.Rows())
}

// Score is the mean loss of a table at w and the share of rows whose class is predicted. visit is as for Loss.
func Score(m model.Model, w []float64, t *data.Table,
	visit func(v data.View, pass model.Pass)) (loss, accuracy float64) {
	var ws model.Workspace
	k, row := m.Outputs(), 1/float64(t.Rows())
	out := make([]float64, data.BlockRows*k)
	loss = Loss(m, w, t, func(v data.View, pass model.Pass) {
		m.Predict(out[:v.To*k], w, v, &ws)
		for i := range v.To {
			best := 0
			for c, p := range out[i*k : (i+1)*k] {
				if p > out[i*k+best] {
					best = c
				}
			}
			if best == int(v.Block.Y[i]) {
				accuracy += row
			}
		}
		if visit != nil {
			visit(v, pass)
		}
	})
	return loss, accuracy
}

// A Mean is a mean with the standard deviation of its values.
type Mean struct{ Value, SD float64 }

// MeanOf is the mean of a value of runs.
func MeanOf[R any](runs []R, of func(R) float64) (m Mean) {
	for _, r := range runs {
		m.Value += of(r) / float64(len(runs))
	}
	for _, r := range runs {
		d := of(r) - m.Value
		m.SD += d * d / math.Max(1, float64(len(runs)-1))
	}
	m.SD = math.Sqrt(m.SD)
	return m
}

// MeanError is the mean of values with its standard error; NaN of none, and the error of one.
func MeanError(list []float64) (value, se float64) {
	m, n := MeanOf(list, func(x float64) float64 { return x }), float64(len(list))
	switch len(list) {
	case 0:
		return math.NaN(), math.NaN()
	case 1:
		return m.Value, math.NaN()
	}
	return m.Value, m.SD / math.Sqrt(n)
}

// Methods begin at 0, some experiments elsewhere. From is an oracle whose 0 is a point W0; it counts Hessians.
type From struct {
	oracle.Oracle
	W0       []float64
	Hessians int
}

type fromBatch struct {
	oracle.Batch
	from *From
}

// Batch implements oracle.Oracle.
func (f *From) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	b, err := f.Oracle.Batch(ctx, s, queries...)
	return fromBatch{b, f}, err
}

func (b fromBatch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	return b.Batch.Grad(q, Plus(w, b.from.W0))
}

func (b fromBatch) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	b.from.Hessians++
	return b.Batch.Hess(q, Plus(w, b.from.W0))
}

func (b fromBatch) Search(q oracle.Search, l oracle.Line) (int, error) {
	l.From = Plus(l.From, b.from.W0)
	return b.Batch.Search(q, l)
}

// Around is a regularizer whose 0 is the point W0.
type Around struct {
	reg.Curved
	W0 []float64
}

// Value implements reg.Regularizer.
func (r Around) Value(w []float64) float64 { return r.Curved.Value(Plus(w, r.W0)) }

// AddGrad implements reg.Regularizer.
func (r Around) AddGrad(dst, w []float64) { r.Curved.AddGrad(dst, Plus(w, r.W0)) }

// AddHess implements reg.Curved.
func (r Around) AddHess(dst, w []float64) { r.Curved.AddHess(dst, Plus(w, r.W0)) }

// Plus is a + b.
func Plus(a, b []float64) []float64 {
	sum := make([]float64, len(a))
	for j := range a {
		sum[j] = a[j] + b[j]
	}
	return sum
}

// Normal is about a standard normal number: a sum of twelve uniform ones.
func Normal(src *noise.Source) float64 {
	z := -6.0
	for range 12 {
		z += src.Float64()
	}
	return z
}
