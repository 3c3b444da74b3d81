package audit

import (
	"context"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// A Fault is one that a test plants in a run, around the private oracle and its Summer. "" is none.
type Fault string

// The faults.
const (
	FaultNoise   Fault = "noise"   // 30 % less than is charged
	FaultClip    Fault = "clip"    // at twice the norm that the noise is for
	FaultSample  Fault = "sample"  // a run's batches all have the same rows
	FaultDivisor Fault = "divisor" // a mean is divided by the size of the batch that was drawn
	FaultTwice   Fault = "twice"   // a canary counts twice
	FaultParts   Fault = "parts"   // a canary is in both parts of a holdout
	FaultShare   Fault = "share"   // one of the owners who add up masked sums adds no share of noise
	FaultRerun   Fault = "rerun"   // what owners gave up and make again has the same noise
)

// planted is the fault in the run.
func (f Fault) planted() fault {
	if f == "" {
		return fault{}
	}
	p := fault{train: f.train, twice: f == FaultTwice, parts: f == FaultParts, share: f == FaultShare, rerun: f == FaultRerun}
	if f == FaultSample {
		first := map[*canaries]noise.Key{} // of each run
		p.draw = func(c *canaries, d *sum.Draw) {
			if _, later := first[c]; !later {
				first[c] = d.Key
			}
			d.Key = first[c]
		}
	}
	return p
}

// train trains with the canaries and the fault. The trainer's meter is charged what an honest run is.
func (kind Fault) train(ctx context.Context, t run.Trainer, c *canaries, l *listener) (int, error) {
	f := &faulty{fault: kind, meter: t.Meter, part: t.Job.Part(), drawn: c.drawing}
	if c.drawing == nil {
		f.drawn = &drawing{}
		c.drawing = f.drawn
	}
	t.Meter = unmetered{t.Job.Facts.Adjacency}
	_, last, err := t.Train(ctx, func(o *private.Oracle) oracle.Oracle {
		f.Oracle, l.Oracle = o, f
		return l
	})
	return last.T, err
}

// faulty is an oracle with a fault.
type faulty struct {
	oracle.Oracle
	fault Fault
	meter account.Meter
	part  string
	drawn *drawing
	s     sample.Sampler
}

// changed is the query that the fault makes of q.
func (f *faulty) changed(q oracle.Query) oracle.Query {
	less := 1.0 // noise
	switch f.fault {
	case FaultNoise:
		less = 0.7
	case FaultClip:
		q, less = doubled(q), 0.5 // of twice the sensitivity
	default:
		return q
	}
	switch q := q.(type) {
	case oracle.Grad:
		q.Noise = quieter(q.Noise, less)
		return q
	case oracle.Mean:
		q.Noise = quieter(q.Noise, less)
		return q
	case oracle.Totals: // its bound is the table's, which no fault changes
		if f.fault == FaultNoise {
			q.Noise = quieter(q.Noise, less)
		}
		return q
	case oracle.Loss:
		q.Noise = quieter(q.Noise, less)
		return q
	case oracle.Hess:
		q.Noise.Sigma *= less
		return q
	case oracle.Score:
		q.Noise.Sigma *= less
		return q
	case oracle.Margins:
		q.Noise = quieter(q.Noise, less)
		return q
	case oracle.Search:
		q.Noise.Threshold *= less
		q.Noise.Query *= less
		return q
	case oracle.Select:
		q.Epsilon /= less
		return q
	}
	return q
}

// doubled is q with twice the bound on a record.
func doubled(q oracle.Query) oracle.Query {
	switch q := q.(type) {
	case oracle.Grad:
		switch r := q.Clip.(type) {
		case clip.Norm:
			r.C *= 2
			q.Clip = r
		case clip.Value:
			r.C *= 2
			q.Clip = r
		case clip.Automatic:
			r.C *= 2
			q.Clip = r
		case clip.PerLayer:
			r.C *= 2
			q.Clip = r
		case clip.Lipschitz:
			r.L *= 2
			q.Clip = r
		}
		return q
	case oracle.Mean:
		q.Clip *= 2
		return q
	case oracle.Loss:
		if !q.Wrong && !q.Within {
			q.Bound *= 2
		}
		return q
	case oracle.Hess:
		q.Clip *= 2
		return q
	case oracle.Search:
		q.Bound *= 2
		return q
	case oracle.Select:
		q.Bound *= 2
		return q
	}
	return q
}

func quieter(m mech.Additive, factor float64) mech.Additive {
	switch m := m.(type) {
	case mech.Gaussian:
		m.Sigma *= factor
		return m
	case mech.Laplace:
		m.Scale *= factor
		return m
	}
	return m
}

// Batch implements oracle.Oracle.
func (f *faulty) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	if err := f.meter.Charge(privacy.InPart(f.part, f.Public().Cost(s, queries))); err != nil {
		return nil, err
	}
	changed := make([]oracle.Query, len(queries))
	for i, q := range queries {
		changed[i] = f.changed(q)
	}
	b, err := f.Oracle.Batch(ctx, s, changed...)
	if err != nil {
		return nil, err
	}
	f.s = s
	return faultyBatch{b, f}, nil
}

// Refine implements oracle.Refiner.
func (f *faulty) Refine(ctx context.Context, c oracle.Choice) error {
	return oracle.Refine(ctx, f.Oracle, c)
}

type faultyBatch struct {
	oracle.Batch
	f *faulty
}

// Grad implements oracle.Batch.
func (b faultyBatch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	g, err := b.Batch.Grad(b.f.changed(q).(oracle.Grad), w)
	if err == nil && b.f.fault == FaultDivisor {
		scale := b.f.s.Size(b.f.Public().Rows) / float64(max(1, b.f.drawn.size))
		for j := range g {
			g[j] *= scale
		}
	}
	return g, err
}

// Mean implements oracle.Batch.
func (b faultyBatch) Mean(q oracle.Mean) ([]float64, error) {
	return b.Batch.Mean(b.f.changed(q).(oracle.Mean))
}

// Totals implements oracle.Batch.
func (b faultyBatch) Totals(q oracle.Totals) ([]float64, error) {
	return b.Batch.Totals(b.f.changed(q).(oracle.Totals))
}

// Hess implements oracle.Batch.
func (b faultyBatch) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	return b.Batch.Hess(b.f.changed(q).(oracle.Hess), w)
}

// Loss implements oracle.Batch.
func (b faultyBatch) Loss(q oracle.Loss, w []float64) (float64, error) {
	return b.Batch.Loss(b.f.changed(q).(oracle.Loss), w)
}

// Search implements oracle.Batch.
func (b faultyBatch) Search(q oracle.Search, along oracle.Line) (int, error) {
	return b.Batch.Search(b.f.changed(q).(oracle.Search), along)
}

// Select implements oracle.Batch.
func (b faultyBatch) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	return b.Batch.Select(b.f.changed(q).(oracle.Select), among)
}

// Score implements oracle.Batch.
func (b faultyBatch) Score(q oracle.Score, w []float64) ([]float64, error) {
	return b.Batch.Score(b.f.changed(q).(oracle.Score), w)
}

// Margins implements oracle.Batch.
func (b faultyBatch) Margins(q oracle.Margins, at []float64) ([]float64, error) {
	return b.Batch.Margins(b.f.changed(q).(oracle.Margins), at)
}
