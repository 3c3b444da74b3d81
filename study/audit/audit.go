// Package audit measures how private a run is: it trains as the run would, with synthetic records among
// the rows, and guesses from the releases which records took part. The result is a lower bound on ε. A
// bound above the claim refutes the claim; a bound below proves nothing.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/schema"
)

// Level bounds the probability of a false alarm in an audit, over all its tests together.
const Level = 1e-4

// A Result is what an audit found.
type Result struct {
	Method    string            `json:"method"`
	Attack    string            `json:"attack"`
	Adjacency privacy.Adjacency `json:"adjacency"`
	Unit      string            `json:"unit"`                // as in run.json
	UnitRows  int               `json:"unit_rows,omitempty"` // likewise
	Owners    int               `json:"owners,omitempty"`    // who add up masked sums; 0: one table
	Colluders int               `json:"colluders,omitempty"` // of them, with the hub, against whom the claim is
	Rows      int               `json:"declared_rows"`       // of units, where one has several rows
	Epsilon   float64           `json:"claimed_epsilon"`
	Delta     float64           `json:"delta"`
	// the largest ε that the audit refutes, of the claim with its noise scaled
	Bound float64 `json:"epsilon_at_least"`
	Plain float64 `json:"epsilon_at_least_any"` // for any mechanism
	// the probability, at most, that a bound is above the true ε
	Failure  float64   `json:"failure"`
	Noise    float64   `json:"noise_at_most,omitempty"` // times what is claimed, by the same test
	Canaries int       `json:"canaries,omitempty"`
	Guesses  int       `json:"guesses,omitempty"`
	Right    int       `json:"right,omitempty"`
	Runs     int       `json:"runs,omitempty"`
	Steps    int       `json:"steps"`
	Odds     []float64 `json:"-"` // of each canary
	In       []bool    `json:"-"`

	// Of crafted canaries.
	// of Gaussian DP, where the noise is Gaussian and each step is of all rows
	Mu      float64     `json:"mu_at_least,omitempty"`
	Charged float64     `json:"mu_charged,omitempty"`
	Scale   *[2]float64 `json:"noise_between,omitempty"` // times what is charged, with the same confidence
	Tests   []Test      `json:"tests,omitempty"`

	Alarms []string `json:"alarms,omitempty"` // at Level, over all tests together
}

// A Test is one of a run's noise or samples.
type Test struct {
	Name string  `json:"name"`
	P    float64 `json:"p"` // the probability, at most, of what was seen or worse, if the run is what it claims
}

// Refuted reports whether there is an alarm. A bound of 95 % confidence exceeds a tight claim in
// one audit of twenty; that is no alarm.
func (r *Result) Refuted() bool { return len(r.Alarms) > 0 }

// alarm notes an alarm.
func (r *Result) alarm(name string) { r.Alarms = append(r.Alarms, name) }

// ErrBlind says that a run released no noisy gradient, which canaries need.
var ErrBlind = errors.New("method: releases no noisy gradient, in which canaries could show; audit it in many runs")

// errUnknown says that a gradient was released whose noise has no law here, so it cannot be tested.
var errUnknown = errors.New("method: releases a gradient with noise whose law the audit does not know")

// Attacks.
const (
	OneRun   = "one run"
	ManyRuns = "many runs"
	Crafted  = "crafted canaries"
)

// Options of an audit.
type Options struct {
	Canaries int
	Streams  noise.Streams // of the noise, the samples and the audit's own coins
	Workers  int

	runs  int  // of crafted canaries; 0: enough
	quick bool // looks for alarms, not for a bound

	// Set by tests, which plant a fault and check that the audit finds it.
	fault fault
	deed  method.Method                                   // runs instead of the job's method
	wrap  func(o *private.Oracle, rows int) oracle.Oracle // puts a fault around the oracle
}

// A fault is what a test changes of a run. Nothing that trains for use can reach it.
type fault struct {
	draw  func(*canaries, *sum.Draw) // changes what is drawn
	train func(context.Context, run.Trainer, *canaries, *listener) (steps int, err error)
	twice bool // a canary counts twice
	parts bool // a canary is in both parts of a holdout
	share bool // one of the owners who add up masked sums adds no share of noise
	rerun bool // what owners gave up and make again has the same noise
}

// One audits a job in one run, on a table with as many rows as Rows returns.
func One(ctx context.Context, job *run.Job, table *data.Table, opt Options) (*Result, error) {
	facts := job.Facts
	set := &canarySet{In: make([]bool, opt.Canaries), Pull: facts.Adjacency == privacy.ReplaceOne}
	coins, err := opt.Streams.Stream("audit", 0)
	if err != nil {
		return nil, err
	}
	set.Key = coins.Uint64()
	for i := range set.In {
		set.In[i] = coins.Uint64()&1 == 1
	}
	claim := claims(job.Plan, job.Accountant, facts.Adjacency)
	loss, err := claim(1)
	if err != nil {
		return nil, err
	}
	g := guessed{Records: opt.Canaries}
	mu, err := signal(job, loss, g.Records)
	if err != nil {
		return nil, err
	}
	if g.Guesses, _, err = guesses(g.Records, mu); err != nil {
		return nil, err
	}
	w := &watch{set: set, rows: facts.Rows, odds: make([]float64, opt.Canaries)}
	_, steps, err := train(ctx, job, table, set, opt, &listener{noisy: true, heard: w.hear})
	if err != nil {
		return nil, err
	}
	if w.gradients == 0 {
		return nil, ErrBlind
	}
	g.Right = right(set.In, w.odds, g.Guesses)
	r := newResult(job, OneRun)
	r.Canaries, r.Guesses, r.Right, r.Steps, r.Odds, r.In = g.Records, g.Guesses, g.Right, steps, w.odds, set.In
	x, epsilon, err := claim.least(g.refutes(Failure), r.Delta)
	if err != nil {
		return nil, err
	}
	if r.Bound = epsilon; x > 0 {
		r.Noise = 1 / x
	}
	if _, r.Plain, err = plain(r.Delta).least(g.refutes(Failure), r.Delta); err != nil {
		return nil, err
	}
	alarm := g.refutes(Level / 2) // of each of two tests
	if alarm(curve(loss)) {
		r.alarm("canaries")
	}
	if alarm(curve(atPoint{r.Epsilon, r.Delta})) {
		r.alarm("canaries, any mechanism")
	}
	return r, nil
}

// newResult begins the result of an audit of the job.
func newResult(job *run.Job, attack string) *Result {
	b, f := job.Spec.Privacy.Budget(), job.Facts
	return &Result{Method: job.Spec.MethodName, Attack: attack, Adjacency: f.Adjacency, Unit: job.Schema.Unit,
		UnitRows: f.UnitRows,
		Owners:   f.Owners, Colluders: f.Colluders, Rows: f.Rows, Epsilon: b.Epsilon, Delta: b.Delta, Failure: Failure}
}

// right guesses the given number of coins, those with the largest odds, and counts the right guesses.
func right(in []bool, odds []float64, guesses int) int {
	order := make([]int, len(odds))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(-cmp.Compare(math.Abs(odds[a]), math.Abs(odds[b])), a-b)
	})
	n := 0
	for _, i := range order[:guesses] {
		if in[i] == (odds[i] > 0) {
			n++
		}
	}
	return n
}

// train runs a job's method, or the planted one, on the rows and the canaries. It returns the output and the
// number of steps.
func train(ctx context.Context, job *run.Job, table *data.Table, set *canarySet, opt Options,
	l *listener) (w []float64, steps int, err error) {
	meter, err := job.Meter()
	if opt.deed != nil {
		own := *job
		own.Method, job = opt.deed, &own
		var plan privacy.Event
		if plan, err = job.Method.Plan(job.Facts); err == nil {
			meter, err = account.NewPlan(privacy.InPart(job.Part(), plan), job.Accountant,
				privacy.Budget{Epsilon: 1e9, Delta: 0.5, Adjacency: job.Facts.Adjacency})
		}
	}
	if err != nil {
		return nil, 0, err
	}
	t := run.Trainer{Job: job, Table: table, Meter: meter, Streams: opt.Streams, Journal: run.NopJournal{},
		Workers: opt.Workers}
	if set == nil && job.Sum != nil { // owners need the sums of each
		set = &canarySet{}
	}
	if set != nil {
		rows, err := private.NewLocal(table, job.Model, job.Facts, opt.Workers)
		if err != nil {
			return nil, 0, err
		}
		defer rows.Close()
		summer := &canaries{Summer: rows, set: set, fault: opt.fault}
		t.Table, t.Summer = data.Empty(job.Schema), summer
		together(&t, summer, l)
		if opt.fault.train != nil {
			steps, err := opt.fault.train(ctx, t, summer, l)
			return nil, steps, err
		}
	}
	w, last, err := t.Train(ctx, func(o *private.Oracle) oracle.Oracle {
		if l.Oracle = o; opt.wrap != nil {
			l.Oracle = opt.wrap(o, table.Rows())
		}
		return l
	})
	return w, last.T, err
}

// Rows returns how many rows the table of an audit has and how many canaries are added, given how many were
// asked for. Under replace-one the count is public and canaries replace rows; with samples of fixed size all
// rows but one are canaries.
func Rows(job *run.Job, canaries int) (rows, beside int, err error) {
	n := job.Facts.Rows
	if job.Facts.Adjacency != privacy.ReplaceOne {
		return n, canaries, nil
	}
	if privacy.Contains[privacy.FixedSampled](job.Plan) {
		return 1, n - 1, nil
	}
	if canaries >= n {
		return 0, 0,
			fmt.Errorf("canaries: found %d; under replace-one, choose fewer than the %d declared rows, which they replace",
				canaries, n)
	}
	return n - canaries, canaries, nil
}

// Synthetic returns a synthetic table of that many rows that fits the schema.
func Synthetic(ctx context.Context, schema *schema.Schema, rows int, seed uint64) (*data.Table, error) {
	dir, err := os.MkdirTemp("", "sotto-audit")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "table")
	if _, err := data.SynthPacked(schema, rows, seed, file); err != nil {
		return nil, err
	}
	var gate access.Gate
	opened, err := gate.Open(ctx, access.Synthetic, schema, file, data.Options{})
	if err != nil {
		return nil, err
	}
	table, err := opened.Take(ctx, nil, "")
	if err != nil {
		return nil, err
	}
	whole := data.Subset([]*data.Table{table}, func(int) bool { return true }) // the file goes with the directory
	return whole, table.Close()
}
