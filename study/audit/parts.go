package audit

import (
	"context"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
)

// parts describes the two parts of the table in an audit of a run with a holdout. Under
// add-or-remove the hash that divides tables puts each canary into one of them. The attack knows
// which, and examines that part; then it examines the other, where the canary must not show. Under
// replace-one a record may be replaced in both parts at once.
type parts struct {
	job    *run.Job
	marks  *data.Table // a row for each canary, by which they are divided
	both   bool        // each canary is in both parts: replace-one, or a fault
	odds   []float64   // of each canary, by the scores of one run
	signal float64     // the sum of squares of what a canary adds to them, in standard deviations

	held           []bool    // in this run
	crossed, clear []float64 // odds by the other part, in standard deviations: of canaries that took part, and of others
}

// partsOf returns the parts of a job's audit with that many canaries; nil for a run without a holdout. both puts each
// canary in both parts, as it is under replace-one anyway.
func partsOf(job *run.Job, canaries int, both bool) *parts {
	if job.Held == nil {
		return nil
	}
	p := &parts{job: job, both: both || job.Facts.Adjacency == privacy.ReplaceOne,
		odds: make([]float64, canaries)}
	b := &data.Block{N: canaries, Dim: 1}
	for i := range canaries {
		b.X, b.Norm = append(b.X, float32(i+1)), append(b.Norm, float32(i+1))
	}
	p.marks = &data.Table{Dim: 1, Blocks: []*data.Block{b}}
	for _, q := range job.Held.Score.Scores {
		p.signal += 1 / (q.Noise.Sigma * q.Noise.Sigma)
	}
	return p
}

// mostInCells is how many canaries have cells of their own in each score. If another record
// replaces a canary, it takes two cells. A sum of errors belongs to a single canary.
func mostInCells(job *run.Job) int {
	classes, most := job.Schema.Classes(), math.MaxInt
	for _, q := range job.Held.Score.Scores {
		most = min(most, q.Cells(classes))
	}
	if classes == 0 {
		return 1
	}
	return most / cellsOf(job.Facts.Adjacency)
}

func cellsOf(adj privacy.Adjacency) int {
	if adj == privacy.ReplaceOne {
		return 2
	}
	return 1
}

// divide says which canaries are in the part that is trained on, given those that take part.
func (p *parts) divide(took []bool, key uint64) (training []bool) {
	p.held = data.HeldOut(p.marks,
		[]byte{byte(key), byte(key >> 8), byte(key >> 16), byte(key >> 24), byte(key >> 32), byte(key >> 40)},
		p.job.Spec.Holdout)
	training = make([]bool, len(took))
	for i := range took {
		training[i] = took[i] && (p.both || !p.held[i])
	}
	return training
}

// score asks for the scores of the part held out, in which are those canaries that took part and were not trained on,
// and computes the odds that each of them is.
func (p *parts) score(ctx context.Context, took []bool, meter account.Meter, streams noise.Streams) error {
	facts := p.job.Facts
	facts.Rows, facts.Centered, facts.Shifted, facts.LabelMin = p.job.Held.Rows, false, false, 0
	sums := &counted{rows: facts.Rows, replaced: facts.Adjacency == privacy.ReplaceOne, in: make([]bool, len(took))}
	for i := range took {
		sums.in[i] = took[i] && (p.both || p.held[i])
	}
	account.AllowGaps(meter) // a method may stop early
	t := run.Trainer{Job: &run.Job{Model: p.job.Model, Facts: facts}, Part: p.job.Held.Part(),
		Table: data.Empty(p.job.Schema), Summer: sums, Meter: meter, Streams: streams,
		Journal: run.NopJournal{}, First: 1 << 30}
	o, err := t.Open()
	if err != nil {
		return err
	}
	defer o.Close()
	answers, err := p.job.Held.Score.Ask(ctx, o, make([]float64, facts.Dim))
	if err != nil {
		return err
	}
	clear(p.odds)
	for k, q := range p.job.Held.Score.Scores {
		deviation := q.Noise.Sigma * q.Sensitivity(facts.Classes, facts.Adjacency)
		for i := range p.odds {
			p.odds[i] += oddsOf(answers[k], i, facts, deviation)
		}
	}
	return nil
}

// oddsOf is how much likelier an answer with that much noise is if canary i was counted: the logarithm.
func oddsOf(answer []float64, i int, facts oracle.Public, deviation float64) (odds float64) {
	one := 1 / deviation
	switch {
	case facts.Classes == 0:
		for k, weight := range oracle.ErrorWeights {
			odds += likelier(answer[k]*weight*one, weight*one, false)
		}
		return odds
	case facts.Adjacency == privacy.ReplaceOne:
		return likelier(answer[2*i]*one, one, false) - likelier(answer[2*i+1]*one, one, false)
	}
	return likelier(answer[i]*one, one, false)
}

// own returns the odds of canary i from the part that the attack examines, and their signal, given
// those from the training. It stores the odds from the other part.
func (p *parts) own(i int, took bool, training, signal float64) (odds, of float64) {
	if p.job.Facts.Adjacency == privacy.ReplaceOne {
		return training + p.odds[i], signal + p.signal
	}
	odds, of = training, signal
	other, otherSignal := p.odds[i], p.signal
	if p.held[i] {
		odds, of, other, otherSignal = other, otherSignal, odds, of
	}
	z := (other + otherSignal/2) / math.Sqrt(otherSignal)
	if took {
		p.crossed = append(p.crossed, z)
	} else {
		p.clear = append(p.clear, z)
	}
	return odds, of
}

// charged is μ of all that a record may show, given that of the training.
func (p *parts) charged(training float64) float64 {
	if p.job.Facts.Adjacency == privacy.ReplaceOne {
		return math.Hypot(training, math.Sqrt(p.signal))
	}
	return max(training, math.Sqrt(p.signal))
}

// cross says whether canaries show in the part that they are not in: a false alarm with probability level at most.
func (p *parts) cross(level float64) bool {
	return audit.EpsilonOf(audit.Splits(p.crossed, p.clear, []float64{0}, level), 0) > 0
}

// counted is a table of canaries in cells of their own, and of other records that add nothing.
type counted struct {
	rows     int
	in       []bool
	replaced bool // a record that is not in is in the next cell
	one      int64
	errors   bool
}

// Rows implements sum.Summer.
func (c *counted) Rows() int { return c.rows }

// Draw implements sum.Summer.
func (c *counted) Draw(context.Context, sum.Draw) error { return nil }

// Sum implements sum.Summer.
func (c *counted) Sum(_ context.Context, s *sum.Sum) error {
	c.one, c.errors = int64(1/s.Unit), s.Classes == 0
	return nil
}

// Take implements sum.Summer.
func (c *counted) Take(dst []int64, from int) {
	clear(dst)
	for i, in := range c.in {
		switch at := i - from; {
		case c.errors && in:
			for k := range dst {
				dst[k] += int64(oracle.ErrorWeights[(from+k)%oracle.ErrorSums] * float64(c.one))
			}
		case c.errors:
		case !c.replaced:
			if in && at >= 0 && at < len(dst) {
				dst[at] += c.one
			}
		default:
			if at = 2*i - from; !in {
				at++
			}
			if at >= 0 && at < len(dst) {
				dst[at] += c.one
			}
		}
	}
}
