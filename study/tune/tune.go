// Package tune searches for the best of several methods and charges the search: it trains a secret, random
// number of candidates, each drawn independently from a public list, and releases only the best (Liu, Talwar
// 2019; Papernot, Steinke 2022; rules.md, R21). The search costs one privacy.Tuned event, which the ledger
// holds before the first access.
package tune

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/score"
	"github.com/sottodp/sotto/schema"
)

// Defaults of a search.
const (
	mean  = 10 // trainings on average
	bound = 4  // of a row's loss
)

// A Candidate is a method that one training may draw.
type Candidate struct {
	Name string
	Job  *run.Job
}

// A Plan is a search with everything that follows from public facts.
type Plan struct {
	Candidates []Candidate
	Mean       float64
	Score      string
	Each       float64 // ε that each candidate is trained at, its score included
	Event      privacy.Tuned
	Budget     privacy.Budget

	accountant account.Accountant
	query      oracle.Loss // the private score
}

// Warnings are what a person should know before the search.
func (p *Plan) Warnings() (all []string) {
	if alike := p.alike(); alike > p.spread()/10 {
		all = append(all,
			fmt.Sprintf("noise in a score hides differences in mean loss below %.2g; before training it is %.3g, and most lists of methods differ by less. `sotto fit` with method auto needs no search (docs/how-to/choosing.md)", alike, p.spread()))
	}
	for _, c := range p.Candidates {
		for _, text := range c.Job.Warnings {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// Whom says whom the search protects: one unit, and how many of its rows.
func (p *Plan) Whom() string {
	s := p.Candidates[0].Job.Schema
	return text.Whom(s.Unit, s.UnitRows)
}

// Noise is the standard deviation of the noise in a private score, which is known; 0 for scores on test rows.
func (p *Plan) Noise() float64 {
	facts := p.Candidates[0].Job.Facts
	switch n := p.query.Noise.(type) {
	case mech.Gaussian:
		return n.Sigma * p.query.Bound / float64(facts.Rows)
	case mech.Laplace:
		return math.Sqrt2 * n.Scale * p.query.Bound / float64(facts.Rows)
	}
	return 0
}

// alike is the difference of two private scores that noise alone exceeds with a probability of 5 %.
func (p *Plan) alike() float64 { return 1.96 * math.Sqrt2 * p.Noise() }

// spread is a public bound on how much the scores of useful models differ: the loss before training
// if it is the same for all records, and else the clip bound of a score.
func (p *Plan) spread() float64 {
	if start := float64(p.Candidates[0].Job.Facts.StartLoss); start > 0 {
		return math.Min(start, p.query.Bound)
	}
	return p.query.Bound
}

// New settles a search. It opens spec and schema and no data.
func New(file string, flags []run.Override, label string) (*Plan, error) {
	t, place, err := job.LoadTuning(file)
	if err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) (*Plan, error) {
		return nil, &run.InputError{Where: place, Err: fmt.Errorf("tune."+format, args...)}
	}
	p := &Plan{Mean: cmp.Or(t.Mean, mean), Score: runlog.ByLoss}
	t.Bound = cmp.Or(t.Bound, bound)
	switch {
	case !(p.Mean > 1 && p.Mean <= 1000):
		return fail("mean: found %v; choose a number above 1 and up to 1000", p.Mean)
	case !(t.Bound > 0) || math.IsInf(t.Bound, 1):
		return fail("loss_bound: found %v; choose a number above 0", t.Bound)
	case len(t.Methods) == 0:
		return fail("methods: found none; write a list of what to draw from")
	}
	var specs []*run.Spec
	var names []string
	for i, m := range t.Methods {
		name, _ := m.Take("label")
		over := slices.Clone(flags)
		for _, o := range m {
			o.Path = "method." + o.Path
			over = append(over, o)
		}
		spec, err := run.LoadSpec(file, over)
		if err != nil {
			return nil, err
		}
		spec.Label = label
		if err := spec.Allows(job.InSearch); err != nil {
			return nil, err
		}
		specs, names = append(specs, spec), append(names, cmp.Or(name, fmt.Sprintf("%d: %s", i+1, spec.MethodName)))
	}
	first := specs[0]
	p.Budget = first.Privacy.Budget()
	if first.Test != "" {
		p.Score = runlog.ByTest
	}
	if p.accountant, err = first.Accountant(); err != nil {
		return nil, err
	}
	schema, err := first.LoadSchema()
	if err != nil {
		return nil, err
	}
	if schema.Rows < 1 {
		return nil, &run.InputError{Where: first.Schema,
			Err: fmt.Errorf("%[1]s: field is missing: training divides by a public number of %[1]s", schema.Counted())}
	}
	settle := func(epsilon float64) error { return p.settle(specs, names, schema, epsilon, t.Bound) }
	if err := settle(p.Budget.Epsilon); err != nil {
		return nil, err
	}
	if p.Each, err = p.most(settle); err != nil {
		return nil, err
	}
	if alike := p.alike(); alike > p.spread() {
		return fail("methods: the noise in a score hides differences in mean loss below %.2g, and useful models differ by at most %.3g: a random choice would do as well. A search needs more rows, a larger ε, or a test file with rows that need no protection; `sotto fit` with method auto needs no search", alike, p.spread())
	}
	return p, nil
}

// most is the largest ε of a candidate with which the search stays within the budget, to a hundredth. It
// settles the plan for that ε.
func (p *Plan) most(settle func(float64) error) (float64, error) {
	costs := func(epsilon float64) (float64, error) {
		if err := settle(epsilon); err != nil {
			return 0, err
		}
		l, err := p.accountant.Loss(p.Event, p.Budget.Adjacency)
		if err != nil {
			return 0, err
		}
		return l.Epsilon(p.Budget.Delta), nil
	}
	lo, hi := 0.0, p.Budget.Epsilon
	for range 40 {
		mid := (lo + hi) / 2
		switch cost, err := costs(mid); {
		case err != nil:
			return 0, err
		case cost <= p.Budget.Epsilon:
			lo = mid
		default:
			hi = mid
		}
		if hi-lo <= 0.01*lo {
			break
		}
	}
	if lo == 0 {
		return 0, fmt.Errorf("tune: %v is too small to train any candidate in a search; raise ε or δ, or lower tune.mean: %w", p.Budget,
			privacy.ErrExhausted)
	}
	_, err := costs(lo)
	return lo, err
}

// settle fits each candidate, with its score, to ε and makes the event of the whole.
func (p *Plan) settle(specs []*run.Spec, names []string, schema *schema.Schema, epsilon, bound float64) error {
	p.Candidates = nil
	p.Event = privacy.Tuned{Eta: 1, Gamma: 1 / p.Mean}
	b := p.Budget
	b.Epsilon = epsilon
	inner := job.SearchAccountant(b)
	if p.Score == runlog.ByLoss {
		b.Epsilon *= runlog.ScoreShare
		p.query = oracle.Loss{Bound: bound}
		sigma, err := account.Calibrate(inner, b, func(noise float64) privacy.Event {
			return scoreNoise(b.Delta, noise).Event()
		})
		if err != nil {
			return err
		}
		p.query.Noise = scoreNoise(b.Delta, sigma)
	}
	b.Epsilon = (&runlog.Search{By: p.Score, Each: epsilon}).Trained()
	for i, s := range specs {
		spec := *s
		spec.Privacy.Epsilon, spec.Privacy.Accountant = b.Epsilon, inner.String()
		spec.Uncentered = true // a private score is a loss over rows as they are
		job, err := job.PrepareOn(&spec, schema)
		if err != nil {
			return err
		}
		if err := (privacy.Tuned{Among: []privacy.Event{job.Plan}, Eta: 1, Gamma: p.Event.Gamma}).Validate(); err != nil {
			return &run.InputError{Where: spec.Place("method"),
				Err: fmt.Errorf("method %s: %w; a search needs methods whose costs are known beforehand", spec.MethodName, err)}
		}
		one := job.Plan
		if p.Score == runlog.ByLoss {
			one = privacy.Composed{job.Plan, p.query.Event()}
		}
		p.Candidates = append(p.Candidates, Candidate{names[i], job})
		p.Event.Among = append(p.Event.Among, one)
	}
	return nil
}

// scoreNoise returns the noise of a private score: Gaussian if δ is above 0.
func scoreNoise(delta, multiplier float64) mech.Additive {
	if delta == 0 {
		return mech.Laplace{Scale: multiplier}
	}
	return mech.Gaussian{Sigma: multiplier}
}

// Uncharged is the ε that is proven if Mean trainings each used the whole budget and the best was
// kept without a charge for the choice; +Inf if none is.
func (p *Plan) Uncharged() float64 {
	factor := p.Budget.Epsilon / p.Each
	e, ok := privacy.WithNoise(p.Event.Among[0], 1/factor) // nearly the event of a single run
	if !ok {
		return math.Inf(1)
	}
	l, err := p.accountant.Loss(privacy.Repeated{Count: int(math.Round(p.Mean)), Of: e}, p.Budget.Adjacency)
	if err != nil {
		return math.Inf(1)
	}
	return l.Epsilon(p.Budget.Delta)
}

// A Result is everything that a search releases.
type Result struct {
	Run    string         `json:"run"`
	Budget privacy.Budget `json:"budget"`
	runlog.Search
	Candidate *Candidate  `json:"-"`
	File      *model.File `json:"-"`

	info *runlog.Info
	dir  string
	seal func(files map[string]string) (string, error) // by the ledger that was charged
}

// Run reads the rows, reserves the budget and searches. Nothing about the other candidates leaves it: no
// progress, no file, no number of candidates. notice receives what only the owner of the data may see.
func (p *Plan) Run(ctx context.Context, streams noise.Streams, notice func(string)) (*Result, error) {
	first := p.Candidates[0].Job
	if first.Spec.Data == "" {
		return nil, &run.InputError{Where: first.Spec.Place("data"),
			Err: errors.New("field \"data\" is missing: the table to train on; or --data FILE")}
	}
	gate, err := run.Gate(ctx, first.Spec.Ledger, true, notice)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	gate.Dropped = run.Dropped(notice, first.Spec.AcceptDropped)
	opened, err := gate.Open(ctx, access.Train, first.Schema, first.Spec.Data, first.RowOptions())
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	var openedTest *access.Opened
	if p.Score == runlog.ByTest {
		if openedTest, err = gate.Open(ctx, access.Test, first.Schema, first.Spec.Test,
			data.Options{Labels: first.Spec.TestLabels}, opened); err != nil {
			return nil, err
		}
		defer openedTest.Close()
		if openedTest.Stats.Rows == openedTest.Stats.Dropped {
			return nil, &run.InputError{Where: first.Spec.Place("test"),
				Err: errors.New("test: the table has no rows to choose a candidate by; leave test out for a private score")}
		}
	}
	info, err := p.info()
	if err != nil {
		return nil, err
	}
	table, test, seal, err := p.spend(ctx, info, opened, openedTest)
	if err != nil {
		return nil, err
	}
	best, score, err := p.search(ctx, table, test, streams)
	if err != nil {
		return nil, err // it is spent all the same
	}
	if math.IsInf(score, -1) {
		return nil, run.ErrDiverged
	}
	r := &Result{Run: info.ID, Budget: p.Budget, Candidate: &p.Candidates[best.index], info: info, seal: seal,
		Search: runlog.Search{Winner: p.Candidates[best.index].Name, Score: score, By: p.Score, Noise: p.Noise(),
			Each: p.Each, Mean: p.Mean}}
	for _, c := range p.Candidates {
		r.Among = append(r.Among, c.Name)
	}
	if err := describe(info, r.Candidate.Job); err != nil {
		return nil, err
	}
	info.Search = &r.Search
	info.Result = &runlog.Result{Steps: 1, Charged: 1, Outcome: method.Done.String(), Test: best.test}
	r.File, err = r.Candidate.Job.File(best.w, job.GuaranteeOf(info))
	if err != nil {
		return nil, err
	}
	r.File.Created = info.Started.Format(time.RFC3339) // not its end: the duration would reveal how many were trained
	return r, nil
}

// info returns the run.json of the search without the winner.
func (p *Plan) info() (*runlog.Info, error) {
	whole := *p.Candidates[0].Job
	whole.Plan, whole.Accountant = p.Event, p.accountant
	i, err := job.NewInfo(&whole, "")
	if err != nil {
		return nil, err
	}
	i.Status, i.Finished, i.Budget, i.MaxSteps, i.StateEvery = runlog.Finished, &i.Started, p.Budget, 1, 0
	return i, nil
}

// describe puts the winner into run.json.
func describe(i *runlog.Info, winner *run.Job) (err error) {
	i.Method, i.NoiseMultiplier = winner.Spec.MethodName, method.NoiseMultiplier(winner.Method)
	i.Warnings, i.Assumptions = winner.Warnings, winner.Assumptions()
	if i.Config, err = method.Encode(winner.Method); err != nil {
		return err
	}
	i.Model, err = json.Marshal(winner.Spec.Model)
	return err
}

// spend charges the search to the dataset's budget, before the first access, and settles it: nothing is
// refunded, and an entry at the end would show how long the search took (R21). Then it takes the tables.
func (p *Plan) spend(ctx context.Context, info *runlog.Info,
	opened, openedTest *access.Opened) (table, test *data.Table, seal func(map[string]string) (string, error), err error) {
	l, err := run.OpenLedger(ctx, p.Candidates[0].Job.Spec.Ledger)
	if err != nil {
		return nil, nil, nil, err
	}
	defer l.Close()
	info.Ledger = l.Where()
	mark, digest := l.NewMark(), opened.Digest()
	mark.Write(digest[:])
	token := ledger.NewToken()
	if _, err := l.Reserve(ctx,
		ledger.Reservation{Dataset: info.Dataset, Unit: info.Unit, Adjacency: p.Budget.Adjacency, Run: info.ID,
			Epsilon: p.Budget.Epsilon, Delta: p.Budget.Delta, Mark: mark.Sum(nil), Parts: run.PartMarks(l, opened),
			Plan:  p.Event,
			Token: token, Why: "search by `sotto tune`"}); err != nil {
		return nil, nil, nil, err
	}
	// Charged as a whole: the ledger learns nothing of the search itself.
	if err := l.Reach(ctx, info.ID, token, 1, []ledger.Charges{{Count: 1, Event: p.Event}}); err != nil {
		return nil, nil, nil, err
	}
	// in the form that a filter's ledger takes
	charged, err := privacy.MarshalEvent(privacy.Repeated{Count: 1, Of: p.Event})
	if err != nil {
		return nil, nil, nil, err
	}
	if err := l.Settle(ctx, info.ID, token,
		ledger.Settlement{Batches: 1, Outcome: ledger.Done, Epsilon: p.Budget.Epsilon, Delta: p.Budget.Delta,
			Charged: charged,
			Seal:    map[string]string{runlog.SealFile: "hmac-sha256"}}); err != nil {
		return nil, nil, nil, err
	}
	if table, err = opened.Take(ctx, l, info.ID); err == nil && openedTest != nil {
		test, err = openedTest.Take(ctx, l, info.ID)
	}
	return table, test, func(files map[string]string) (string, error) { return l.SealOf(info.ID, files) }, err
}

// trained is the result of one candidate.
type trained struct {
	index int
	w     []float64
	test  *runlog.Scores // of a search that scores on test rows
}

// mostDrawn is the largest number of candidates that a search draws. More have a probability below
// e^−1000 for every mean that is allowed.
const mostDrawn = 1 << 20

// search trains a geometric number of candidates, each drawn evenly, and keeps the best.
func (p *Plan) search(ctx context.Context, table, test *data.Table,
	streams noise.Streams) (best trained, score float64, err error) {
	coins, err := streams.Stream("tune", 0)
	if err != nil {
		return best, 0, err
	}
	score = math.Inf(-1)
	n := 1 + noise.NewTrials(p.Event.Gamma).Gap(coins, mostDrawn)
	for k := range n {
		i := int(coins.Below(uint64(len(p.Candidates))))
		own := streams
		if streams.Seeded() { // tests: each training has its own noise
			own = noise.SeededStreams(coins.Uint64())
		}
		made, v, err := p.train(ctx, i, table, test, own)
		if err != nil {
			return best, 0, err
		}
		if math.IsNaN(v) { // would be neither better nor worse than any other, and the theorem needs an order
			v = math.Inf(-1)
		}
		if k == 0 || v > score {
			best, score = made, v
		}
	}
	return best, score, nil
}

// train runs the i-th candidate and scores it.
func (p *Plan) train(ctx context.Context, i int, table, test *data.Table,
	streams noise.Streams) (made trained, scored float64, err error) {
	made.index = i
	job := p.Candidates[i].Job
	meter, err := account.NewPlan(p.Event.Among[i], p.accountant, p.Budget) // a candidate alone costs less than the search
	if err != nil {
		return made, 0, err
	}
	account.AllowGaps(meter) // one that stops early is scored all the same
	t := run.Trainer{Job: job, Table: table, Meter: meter, Streams: streams, Journal: run.NopJournal{}}
	o, err := t.Open()
	if err != nil {
		return made, 0, err
	}
	defer o.Close()
	if made.w, _, err = run.Train(ctx, job, o); err != nil {
		return made, 0, err
	}
	if !score.Finite(made.w...) {
		return made, math.Inf(-1), nil
	}
	if p.Score == runlog.ByLoss {
		b, err := o.Batch(ctx, sample.Full{}, p.query)
		if err != nil {
			return made, 0, err
		}
		loss, err := b.Loss(p.query, made.w)
		return made, -loss, err
	}
	s := score.Exact(job.Model, made.w, test, job.Schema.ClassNames(), job.Spec.Model.Threshold)
	made.test = s
	if s.Accuracy != nil {
		return made, *s.Accuracy, nil
	}
	return made, -*s.RMSE, nil // Run refuses a test table without rows
}
