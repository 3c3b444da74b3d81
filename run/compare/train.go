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

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
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

// diverged is the outcome of a training without finite parameters.
const diverged = "diverged"

// Train does the trainings of the plan that have no result yet, that many at once (0:
// one for each core), and calls done with each, one at a time; an error of done ends
// all. If Look has not opened the tables, it does, and what is protected is refused.
func (p *Plan) Train(ctx context.Context, jobs int, done func(*Cell, Result) error) error {
	if !p.opened {
		id, err := run.NewID()
		if err == nil {
			err = p.Look(ctx, id, false)
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
			if c.Refused != "" || slices.ContainsFunc(c.Results, func(r Result) bool { return r.Seed == q.seed && r.Fold == q.fold }) {
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
	queue := make(chan job)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range workers(jobs) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range queue {
				if ctx.Err() != nil {
					continue
				}
				r, err := p.one(ctx, j.cell, j.part)
				if err == nil {
					mu.Lock()
					if ctx.Err() == nil {
						j.cell.Results = append(j.cell.Results, r)
						err = done(j.cell, r)
					}
					mu.Unlock()
				}
				if err != nil {
					cancel(err)
				}
			}
		}()
	}
	for _, j := range all {
		queue <- j
	}
	close(queue)
	wg.Wait()
	return context.Cause(ctx)
}

func (p *Plan) one(ctx context.Context, c *Cell, q *part) (Result, error) {
	train, test, err := q.open(ctx, p.Varied)
	if err != nil {
		return Result{}, err
	}
	defer q.release()
	job := c.jobs[q.rows]
	r := Result{Seed: q.seed, Fold: q.fold, TrainRows: train.Rows(), TestRows: test.Rows(), Noise: method.NoiseMultiplier(job.Method)}
	var journal oracle.Journal = run.NopJournal{}
	if p.Watch != nil {
		journal = p.Watch(c, r)
	}
	w, err := c.train(ctx, job, train, journal, &r)
	if err != nil {
		return r, fmt.Errorf("method %s on table %s at ε = %s: %w", c.Method, c.Table, c.Epsilon, err)
	}
	for _, v := range w {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			r.Outcome = diverged
			return r, nil
		}
	}
	objective := meanLoss(job.Model, w, train)
	if reg := job.Objective.Reg; reg != nil {
		objective += reg.Value(w)
	}
	scores := run.Score(job.Model, w, test, job.Schema.ClassNames())
	if r.Score = scores.Accuracy; job.Schema.Classes() == 0 {
		r.Score = scores.RMSE
	}
	if !math.IsNaN(objective) && !math.IsInf(objective, 0) {
		r.Objective = &objective
	}
	return r, nil
}

// train is a run as `sotto fit --lab --seed` does it, which leaves no record.
func (c *Cell) train(ctx context.Context, job *run.Job, train *data.Table, journal oracle.Journal, r *Result) ([]float64, error) {
	meter, err := job.Meter()
	if err != nil {
		return nil, err
	}
	own := *train // what it is told of the order of reading is its own
	t := run.Trainer{Job: job, Table: &own, Meter: meter, Streams: noise.SeededStreams(uint64(r.Seed)), Journal: journal}
	start := time.Now()
	w, last, err := t.Train(ctx, nil)
	if err != nil {
		return nil, err
	}
	r.Steps, r.Seconds = last.T, time.Since(start).Seconds()
	if last.Status != method.Running {
		r.Outcome = last.Status.String()
	}
	return w, nil
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

// open gives the rows of a part, which are made once.
func (q *part) open(ctx context.Context, v run.Comparison) (train, test *data.Table, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.train != nil {
		return q.train, q.test, nil
	}
	q.train, q.test, err = q.table.divide(ctx, v, q.seed, q.fold)
	return q.train, q.test, err
}

// release gives the rows back with the last training on them.
func (q *part) release() {
	q.mu.Lock()
	q.runs--
	last := q.runs == 0
	if last {
		q.train, q.test = nil, nil
	}
	q.mu.Unlock()
	if last {
		q.table.release()
	}
}

func (t *table) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parts--; t.parts > 0 {
		return
	}
	for _, f := range append(t.from, t.test) {
		if f != nil {
			f.Close()
		}
	}
	t.from, t.test, t.whole, t.coins = nil, nil, nil, nil
}

// divide makes the part of a seed and fold. Which side a record is on, a row or a unit with
// its rows, its own content and the seed say (R10), never its place. Under add-or-remove its
// coin alone does, so the number of records on a side is as private as that of all. Under
// replace-one it is the rank of its coin among all, so that number is public
// (docs/adr/0015).
func (t *table) divide(ctx context.Context, v run.Comparison, seed, fold int) (train, test *data.Table, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.test != nil {
		return t.whole, t.test, nil
	}
	coins := t.coins[seed]
	if coins == nil {
		coins = data.RowHashes(t.from, binary.LittleEndian.AppendUint64([]byte("sotto compare"), uint64(seed)))
		t.coins[seed] = coins
	}
	held := heldOut(coins, t.adjacency, v, fold)
	train = data.Subset(t.from, func(record int) bool { return !held[record] })
	test = data.Subset(t.from, func(record int) bool { return held[record] })
	if len(train.Blocks) == 0 || len(test.Blocks) == 0 {
		return nil, nil, fail("split: leaves no row on one side; table %s is too small for it", t.name)
	}
	return train, test, nil
}

// heldOut says which records a part is scored on.
func heldOut(coins []uint64, adjacency privacy.Adjacency, v run.Comparison, fold int) []bool {
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

// read opens the files of the table.
func (t *table) read(ctx context.Context, v run.Comparison, void bool, notice func(string)) error {
	gate, err := run.Gate(ctx, t.spec.Ledger, false, notice)
	if err != nil {
		return err
	}
	defer gate.Close()
	gate.Dropped = t.spec.Dropped(notice)
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
		return fail("rows: found %d in the %d files of table %s; under replace-one exactly the declared %d are allowed", rows, len(t.files), t.name, t.rows)
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

// take takes the tables that read has opened.
func (t *table) take(ctx context.Context, id string, v run.Comparison) error {
	if t.opened == nil {
		return nil
	}
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
