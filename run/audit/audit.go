// Package audit measures how private a run is: it trains as the run would, with synthetic records among the rows, and tries to
// tell from what is released which of them took part. What it finds is a lower bound on ε. One above the claim
// refutes the claim; one below proves nothing.
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

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/schema"
)

// Canaries is how many an audit of one run has where nobody says.
const Canaries = 5000

// A Result is what an audit found.
type Result struct {
	Method    string            `json:"method"`
	Attack    string            `json:"attack"`
	Adjacency privacy.Adjacency `json:"adjacency"`
	Unit      string            `json:"unit"`                // as in run.json
	UnitRows  int               `json:"unit_rows,omitempty"` // likewise
	Rows      int               `json:"declared_rows"`       // of units, where one has several rows
	Epsilon   float64           `json:"claimed_epsilon"`
	Delta     float64           `json:"delta"`
	Bound     float64           `json:"epsilon_at_least"`        // by the claim's own curve: less noise than this would have is refuted
	Plain     float64           `json:"epsilon_at_least_any"`    // for any mechanism
	Failure   float64           `json:"failure"`                 // the probability, at most, that a bound is above the truth
	Noise     float64           `json:"noise_at_most,omitempty"` // times what is claimed, by the same test
	Canaries  int               `json:"canaries,omitempty"`
	Guesses   int               `json:"guesses,omitempty"`
	Right     int               `json:"right,omitempty"`
	Runs      int               `json:"runs,omitempty"`
	Steps     int               `json:"steps"`
	Odds      []float64         `json:"-"` // of each canary
	In        []bool            `json:"-"`
}

// Refuted says whether the claim is.
func (r *Result) Refuted() bool { return r.Bound > r.Epsilon || r.Plain > r.Epsilon }

// ErrBlind says that a run released no noisy gradient, in which canaries could be.
var ErrBlind = errors.New("method: releases no noisy gradient, which is what canaries are in; audit it in many runs")

// Attacks.
const (
	OneRun   = "one run"
	ManyRuns = "many runs"
)

// Options of an audit.
type Options struct {
	Canaries int
	Streams  noise.Streams // of the noise, the samples and the audit's own coins
	Workers  int

	deed method.Method                                   // what is run in place of the job's method: a planted fault
	wrap func(o *private.Oracle, rows int) oracle.Oracle // puts a fault around the oracle; for tests
}

// One audits a job in one run, on a table of the schema's rows, or under replace-one of as many fewer as there are
// canaries: see Rows.
func One(ctx context.Context, job *run.Job, table *data.Table, opt Options) (*Result, error) {
	facts := job.Facts
	set := &canarySet{In: make([]bool, opt.Canaries), Pull: facts.Adjacency == privacy.ReplaceOne, Dim: facts.Dim}
	coins, err := opt.Streams.Stream("audit", 0)
	if err != nil {
		return nil, err
	}
	set.Key = coins.Uint64()
	for i := range set.In {
		set.In[i] = coins.Uint64()&1 == 1
	}
	budget := job.Spec.Privacy.Budget()
	claim := claims(job.Plan, job.Accountant, facts.Adjacency)
	loss, err := claim(1)
	if err != nil {
		return nil, err
	}
	g := guessed{Records: opt.Canaries}
	if g.Guesses, err = guesses(g.Records, loss); err != nil {
		return nil, err
	}
	w := &watch{set: set, odds: make([]float64, opt.Canaries)}
	_, steps, err := train(ctx, job, table, set, opt, func(o oracle.Oracle) oracle.Oracle {
		w.Oracle = o
		return w
	})
	if err != nil {
		return nil, err
	}
	if w.looks == 0 {
		return nil, ErrBlind
	}
	g.Right = right(set.In, w.odds, g.Guesses)
	r := &Result{Method: job.Spec.MethodName, Attack: OneRun, Adjacency: facts.Adjacency, Unit: job.Schema.Unit, UnitRows: facts.UnitRows, Rows: facts.Rows, Epsilon: budget.Epsilon, Delta: budget.Delta,
		Failure: Failure, Canaries: g.Records, Guesses: g.Guesses, Right: g.Right, Steps: steps, Odds: w.odds, In: set.In}
	x, epsilon, err := claim.least(g, budget.Delta)
	if err != nil {
		return nil, err
	}
	if r.Bound = epsilon; x > 0 {
		r.Noise = 1 / x
	}
	_, r.Plain, err = plain(budget.Delta).least(g, budget.Delta)
	return r, err
}

// right guesses the coins of which the odds say most, so many of them, and counts the guesses that are right.
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

// train runs a job's method, or the planted one, on the rows and the canaries, and returns the output and the number of steps.
func train(ctx context.Context, job *run.Job, table *data.Table, set *canarySet, opt Options, through func(oracle.Oracle) oracle.Oracle) (w []float64, steps int, err error) {
	meter, err := job.Meter()
	if opt.deed != nil {
		own := *job
		own.Method, job = opt.deed, &own
		var plan privacy.Event
		if plan, err = job.Method.Plan(job.Facts); err == nil {
			meter, err = account.NewPlan(plan, job.Accountant, privacy.Budget{Epsilon: 1e9, Delta: 0.5, Adjacency: job.Facts.Adjacency})
		}
	}
	if err != nil {
		return nil, 0, err
	}
	t := run.Trainer{Job: job, Table: table, Meter: meter, Streams: opt.Streams, Journal: run.NopJournal{}, Workers: opt.Workers}
	if set != nil {
		rows, err := private.NewLocal(table, job.Model, job.Facts, opt.Workers)
		if err != nil {
			return nil, 0, err
		}
		defer rows.Close()
		t.Table, t.Summer = data.Empty(job.Schema), &canaries{Summer: rows, set: set}
	}
	w, last, err := t.Train(ctx, func(o *private.Oracle) oracle.Oracle {
		if opt.wrap != nil {
			return through(opt.wrap(o, table.Rows()))
		}
		return through(o)
	})
	return w, last.T, err
}

// Rows says how many rows the table of an audit has and how many canaries are beside it, where so many were asked for. Under
// replace-one the count is public and canaries take the place of rows; under a sample of fixed size
// all rows but one are canaries.
func Rows(job *run.Job, canaries int) (rows, beside int, err error) {
	n := job.Facts.Rows
	if job.Facts.Adjacency != privacy.ReplaceOne {
		return n, canaries, nil
	}
	if privacy.Contains[privacy.FixedSampled](job.Plan) {
		return 1, n - 1, nil
	}
	if canaries >= n {
		return 0, 0, fmt.Errorf("canaries: found %d; allowed under replace-one are fewer than the %d declared rows, whose place they take", canaries, n)
	}
	return n - canaries, canaries, nil
}

// Synthetic is a synthetic table of that many rows that fits the schema.
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
