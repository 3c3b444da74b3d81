package compare

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/score"
)

// A Result is one training. Its figures are computed without noise.
type Result struct {
	Seed      int      `json:"seed"`
	Fold      int      `json:"fold"`
	TrainRows int      `json:"train_rows"`
	TestRows  int      `json:"test_rows"`
	Score     *float64 `json:"score,omitempty"`     // accuracy, or the root of the mean squared error; none if it diverged
	Objective *float64 `json:"objective,omitempty"` // mean loss on the rows trained on, plus the regularizer
	Seconds   float64  `json:"seconds"`             // of training, while the other workers train too
	Steps     int      `json:"steps"`
	Noise     float64  `json:"noise_multiplier,omitempty"`
	Outcome   string   `json:"outcome"`
}

// Train runs the trainings of the plan that have no result yet, at most jobs at a time (0: one for each
// core), and calls done with each result, one at a time. An error of done ends all trainings. If
// OpenTables was not called, Train opens the tables and refuses protected rows.
func (p *Plan) Train(ctx context.Context, jobs int, done func(*Cell, Result) error) error {
	if !p.opened {
		id, err := job.NewID()
		if err == nil {
			err = p.OpenTables(ctx, id, false)
		}
		if err != nil {
			return err
		}
	}
	type job struct {
		cell *Cell
		part *part
	}
	var all []job
	for _, q := range p.parts {
		for _, c := range q.table.cells {
			if c.Refused != "" || slices.ContainsFunc(c.Results, func(r Result) bool {
				return r.Seed == q.seed && r.Fold == q.fold
			}) {
				continue
			}
			all = append(all, job{c, q})
			q.runs++
		}
		if q.runs > 0 {
			q.table.parts++
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	each(jobs, len(all), func(i int) {
		if ctx.Err() != nil {
			return
		}
		j := all[i]
		r, err := p.one(ctx, j.cell, j.part)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && ctx.Err() == nil {
			j.cell.Results = append(j.cell.Results, r)
			err = done(j.cell, r)
		}
		if err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// one trains as `sotto fit --lab --seed` does, without a run directory, and scores the output.
func (p *Plan) one(ctx context.Context, c *Cell, q *part) (Result, error) {
	train, test, err := p.rows(q)
	if err != nil {
		return Result{}, err
	}
	defer p.release(q)
	job := c.jobs[q.rows]
	r := Result{Seed: q.seed, Fold: q.fold, TrainRows: train.Rows(), TestRows: test.Rows(),
		Noise: method.NoiseMultiplier(job.Method)}
	own := *train // a copy, since the oracle changes its table
	t := run.Trainer{Job: job, Table: &own, Streams: noise.SeededStreams(uint64(q.seed)), Journal: run.NopJournal{}}
	if p.Watch != nil {
		t.Journal = p.Watch(c, r)
	}
	start := time.Now()
	var w []float64
	var last method.Step
	if t.Meter, err = job.Meter(); err == nil {
		w, last, err = t.Train(ctx, nil)
	}
	if err != nil {
		return r, fmt.Errorf("method %s on table %s at ε = %s: %w", c.Method, c.Table, c.Epsilon, err)
	}
	r.Steps, r.Seconds = last.T, time.Since(start).Seconds()
	if last.Status != method.Running {
		r.Outcome = last.Status.String()
	}
	if !score.Finite(w...) {
		r.Outcome = run.Diverged
		return r, nil
	}
	fitted, err := model.WithOffset(job.Model, last.Offset(w)...)
	if err != nil {
		return r, err
	}
	objective := meanLoss(fitted, w, train)
	if reg := job.Objective.Reg; reg != nil {
		objective += reg.Value(w)
	}
	scores := score.Exact(fitted, w, test, job.Schema.ClassNames(), job.Spec.Model.Threshold)
	if r.Score = scores.Accuracy; job.Schema.Classes() == 0 {
		r.Score = scores.RMSE
	}
	if score.Finite(objective) {
		r.Objective = &objective
	}
	return r, nil
}

// meanLoss is the mean loss at w of the rows that are not dropped, each with its share
// in its unit; NaN without any.
func meanLoss(m model.Model, w []float64, t *data.Table) float64 {
	var ws model.Workspace
	loss := make([]float64, data.BlockRows)
	sum, n, shares := 0.0, 0.0, t.Shares()
	for _, b := range t.Blocks {
		m.Eval(w, data.View{Block: b, To: b.N}, &ws).Loss(loss[:b.N])
		for i, l := range loss[:b.N] {
			share := 1.0
			if shares != nil {
				share = shares[i]
			}
			if b.Drop == nil || !b.Drop[i] {
				sum, n = sum+share*l, n+share
			}
		}
		if shares != nil {
			shares = shares[b.N:]
		}
	}
	return sum / n
}

// rows returns the rows of a part, which are divided once. The content of a record (a row, or a unit
// with its rows) and the seed decide on which side it is (R10), never its position. Under
// add-or-remove each record's hash decides by itself, which keeps the size of each side private,
// like the size of the table. Under replace-one the hash's rank decides, so both sizes are public
// (docs/adr/0015).
func (p *Plan) rows(q *part) (train, test *data.Table, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := q.table
	switch {
	case q.train != nil:
		return q.train, q.test, nil
	case t.test != nil:
		return t.whole, t.test, nil
	case t.hashes[q.seed] == nil:
		t.hashes[q.seed] = data.RowHashes(t.from, binary.LittleEndian.AppendUint64([]byte("sotto compare"), uint64(q.seed)))
	}
	held := heldOut(t.hashes[q.seed], t.adjacency, p.Varied, q.fold)
	train = data.Subset(t.from, func(record int) bool { return !held[record] })
	test = data.Subset(t.from, func(record int) bool { return held[record] })
	if len(train.Blocks) == 0 || len(test.Blocks) == 0 {
		return nil, nil, fail("split: leaves no row on one side; table %s is too small for it", t.name)
	}
	q.train, q.test = train, test
	return train, test, nil
}

// release frees the rows of a part after its last training, and those of a table after its last part.
func (p *Plan) release(q *part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.runs--; q.runs > 0 {
		return
	}
	q.train, q.test = nil, nil
	t := q.table
	if t.parts--; t.parts > 0 {
		return
	}
	for _, f := range append(t.from, t.test) {
		if f != nil {
			f.Close()
		}
	}
	t.from, t.test, t.whole, t.hashes = nil, nil, nil, nil
}

// heldOut returns the records that score a part.
func heldOut(coins []uint64, adjacency privacy.Adjacency, v job.Comparison, fold int) []bool {
	held := make([]bool, len(coins))
	if adjacency == privacy.ReplaceOne {
		order := make([]int, len(coins))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(coins[a], coins[b]) })
		from, to := int(math.Round(v.Split*float64(len(coins)))), len(coins)
		if v.Folds != 0 {
			from, to = window(len(coins), v.Folds, fold)
		}
		for _, record := range order[from:to] {
			held[record] = true
		}
		return held
	}
	for i, c := range coins {
		u := float64(c>>11) * 0x1p-53
		if v.Folds != 0 {
			held[i] = int(u*float64(v.Folds)) == fold
		} else {
			held[i] = u >= v.Split
		}
	}
	return held
}

// OpenTables opens the tables of the remaining trainings, before the first one, and records the accesses
// in the ledger as not private (R3). It refuses protected rows unless void is set, which ends the
// guarantee.
func (p *Plan) OpenTables(ctx context.Context, id string, void bool) error {
	p.opened = true
	var needed []*table
	for _, t := range p.tables {
		if slices.ContainsFunc(t.cells, p.open) {
			needed = append(needed, t)
			if err := t.read(ctx, p.Varied, void, p.Notice); err != nil {
				return err
			}
		}
	}
	for _, t := range needed {
		if err := t.take(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// read opens the files of the table.
func (t *table) read(ctx context.Context, v job.Comparison, void bool, notice func(string)) error {
	gate, err := run.Gate(ctx, t.spec.Ledger, false, notice)
	if err != nil {
		return err
	}
	defer gate.Close()
	gate.Dropped = run.Dropped(notice, t.spec.AcceptDropped)
	gate.Void, gate.Why = void, "comparison of methods by `sotto compare`"
	opt := data.Options{Labels: t.spec.Labels, KeepBad: t.adjacency == privacy.ReplaceOne}
	if opt.KeepBad && len(t.files) == 1 {
		opt.Rows = t.rows
	}
	for _, f := range t.files {
		o, err := gate.Open(ctx, access.Lab, t.schema, f, opt)
		if err != nil {
			return err
		}
		t.opened = append(t.opened, o)
	}
	rows := 0
	for _, o := range t.opened {
		rows += o.Units()
	}
	if opt.KeepBad && rows != t.rows {
		return fail("rows: found %d in the %d files of table %s; under replace-one they must be exactly the declared %d",
			rows, len(t.files), t.name, t.rows)
	}
	if v.Split != 0 || v.Folds != 0 {
		return nil
	}
	test, err := gate.Open(ctx, access.Test, t.schema, t.spec.Test, data.Options{Labels: t.spec.TestLabels}, t.opened...)
	if err == nil {
		t.opened = append(t.opened, test)
	}
	return err
}

// take takes the tables that read opened.
func (t *table) take(ctx context.Context, id string) error {
	all, err := run.Take(ctx, t.spec.Ledger, id, t.opened...)
	if err != nil {
		return err
	}
	t.opened, t.from = nil, all[:len(t.files)]
	if len(all) == len(t.from) {
		return nil
	}
	t.test = all[len(t.from)]
	if t.whole = t.from[0]; len(t.from) > 1 {
		t.whole = data.Subset(t.from, func(int) bool { return true })
	}
	return nil
}
