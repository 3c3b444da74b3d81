// Package simulate simulates training among owners in one process: every owner is a goroutine with its
// own rows, private oracle and meter, and they exchange what owners on their own machines would.
//
// It is a tool of the lab. The person who runs it holds the rows of all, so it only shows the guarantee
// that an owner would have against the others. The run is an uncharged access, which the ledger records
// for a dataset that it knows (R3). ADR 16.
package simulate

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/score"
)

// notice accompanies every result.
const notice = "A simulation: one process held the rows of all owners, and no owner was charged. Each ε is what the owner would have against all others together on machines of their own; the scores are computed without noise."

// sumNotice accompanies the results of owners who add up masked sums.
const sumNotice = "A simulation: one process held the rows of all owners, nothing was masked, and no owner was charged. Each ε is what a row would have on machines of their own; the scores are computed without noise."

// why is the reason of the access, for the ledger.
const why = "simulation of a network by `sotto net simulate`"

// A Plan is the plan of a network whose owners are in this process.
type Plan struct{ *netplan.Plan }

// New settles the network of a spec file. It opens no data.
func New(file string, o netplan.Options) (*Plan, error) {
	o.Lab = "a simulation of a network"
	p, err := netplan.Prepare(file, o)
	return &Plan{p}, err
}

// A Result is the result of a simulation.
type Result struct {
	ID        string            `json:"id"`
	Method    string            `json:"method"`
	Adjacency privacy.Adjacency `json:"adjacency"`
	Unit      string            `json:"unit"`                // as in run.json
	UnitRows  int               `json:"unit_rows,omitempty"` // likewise
	Delta     float64           `json:"delta,omitempty"`
	Off       bool              `json:"off,omitempty"` // no noise
	Rounds    int               `json:"rounds"`
	Share     float64           `json:"share"` // of the owners that speak in a round
	Beta      float64           `json:"beta"`  // the share of the owners' disagreement that a round leaves
	Seconds   float64           `json:"seconds"`
	PerSecond float64           `json:"rounds_per_second"`
	Apart     float64           `json:"apart"` // largest distance of an owner's parameters from the mean
	Owners    []OwnerResult     `json:"owners"`
	W         []float64         `json:"-"` // mean of the owners' parameters
	Test      *runlog.Scores    `json:"test,omitempty"`
	Sum       *SumResult        `json:"sum,omitempty"` // of owners who add up masked sums
	Notice    string            `json:"unpaid"`
}

// A SumResult is what owners who add up masked sums share.
type SumResult struct {
	Colluders int     `json:"colluders"`
	Retries   int     `json:"retries"` // that the plan pays for
	Noise     float64 `json:"noise_multiplier"`
	Epsilon   float64 `json:"epsilon"`       // of the plan, against the hub and Colluders owners
	Alone     float64 `json:"epsilon_alone"` // against all other owners together, or if masks were broken
}

// An OwnerResult is one owner's result.
type OwnerResult struct {
	Name        string   `json:"name"`
	Rows        int      `json:"declared_rows"`
	Activations int      `json:"turns"`
	Noise       float64  `json:"noise_multiplier,omitempty"`
	Epsilon     *float64 `json:"epsilon,omitempty"` // of what was charged; none without noise
	Test        *float64 `json:"test_score,omitempty"`
}

// Env is what surrounds a run. Every field may be left out.
type Env struct {
	Void     bool                 // ends the guarantee of what is protected
	Notice   func(string)         // told what only the owner of the rows may see
	Progress func(round, all int) // told by the first owner's goroutine
}

// Run reads the rows, divides them and trains.
func (p *Plan) Run(ctx context.Context, env Env) (*Result, error) {
	id, err := job.NewID()
	if err != nil {
		return nil, err
	}
	if p.Job.Sum != nil {
		return p.sum(ctx, id, env)
	}
	meters := make([]*counter, len(p.Owners))
	jobs := make([]*run.Job, len(p.Owners))
	for i := range p.Owners {
		jobs[i] = p.JobOf(i, "")
		m, err := jobs[i].Meter()
		if err != nil {
			return nil, err
		}
		meters[i] = &counter{meter: m}
	}
	tables, test, err := p.Tables(ctx, id, why, env.Void, env.Notice)
	if err != nil {
		return nil, err
	}
	var methods []gossip.Method
	var oracles []oracle.Oracle
	for i, o := range p.Owners {
		t := run.Trainer{Job: jobs[i], Table: tables[i], Meter: meters[i], Streams: jobs[i].Streams(),
			Journal: run.NopJournal{}}
		asked, err := t.Open()
		if err != nil {
			return nil, err
		}
		defer asked.Close()
		methods, oracles = append(methods, o.Method), append(oracles, asked)
	}
	start := time.Now()
	nodes, err := gossip.Train(ctx, p.Schedule, gossip.NewLocal(p.Schedule.Graph), methods, oracles, p.Job.Objective,
		func(node int) gossip.Watch {
			if node != 0 || env.Progress == nil {
				return nil
			}
			return func(t int, _ func([]float64)) { env.Progress(t+1, p.Schedule.Rounds) }
		})
	if err != nil {
		return nil, err
	}
	for i, o := range p.Owners {
		if meters[i].charged != o.Activations {
			return nil, fmt.Errorf("simulate: %s was charged %d times for %d activations", o.Name, meters[i].charged,
				o.Activations)
		}
	}
	return p.Result(id, nodes, test, time.Since(start).Seconds())
}

// sum trains owners who add up their sums.
func (p *Plan) sum(ctx context.Context, id string, env Env) (*Result, error) {
	tables, test, err := p.Tables(ctx, id, why, env.Void, env.Notice)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	local := pool.NewLocal(len(p.Owners))
	files := make([]*model.File, len(p.Owners))
	errs := make([]error, len(p.Owners))
	var all sync.WaitGroup
	for i := range p.Owners {
		all.Go(func() {
			if files[i], errs[i] = p.train(ctx, i, tables[i], local); errs[i] != nil {
				local.Close(errs[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for i, f := range files {
		if !slices.Equal(f.Offset, files[0].Offset) || !slices.Equal(f.W, files[0].W) {
			return nil, fmt.Errorf("simulate: %s has another model than %s", p.Owners[i].Name, p.Owners[0].Name)
		}
	}
	return p.SumResult(id, files[0], test, time.Since(start).Seconds())
}

// train is the run of one owner.
func (p *Plan) train(ctx context.Context, owner int, table *data.Table, local *pool.Local) (*model.File, error) {
	j := p.JobOf(owner, "")
	meter, err := j.Meter()
	if err != nil {
		return nil, err
	}
	t := run.Trainer{Job: j, Table: table, Meter: meter, Streams: j.Streams(), Journal: run.NopJournal{},
		Pool: local.Owner()}
	return t.Model(ctx, job.Guarantee{Budget: p.Spec.Privacy.Budget(), Unit: j.Schema.Unit, Dataset: j.Schema.Dataset})
}

// SumResult returns the result of owners who add up their sums, which gave all of them that model and took so many
// seconds.
func (p *Plan) SumResult(id string, file *model.File, test *data.Table, seconds float64) (*Result, error) {
	r := p.result(id, seconds)
	s := p.Job.Sum
	r.Notice, r.Rounds, r.Share, r.W = sumNotice, method.MaxSteps(p.Job.Method), 1, file.W
	r.PerSecond = float64(r.Rounds) / r.Seconds
	epsilon := p.Job.Cost(p.Job.Plan)
	r.Sum = &SumResult{Colluders: s.Colluders, Retries: s.Retries, Noise: method.NoiseMultiplier(p.Job.Method),
		Epsilon: epsilon, Alone: p.Job.Alone()}
	for i, name := range s.Names {
		r.Owners = append(r.Owners,
			OwnerResult{Name: name, Rows: s.Rows[i], Activations: r.Rounds, Noise: r.Sum.Noise, Epsilon: &epsilon})
	}
	if test == nil {
		return r, nil
	}
	m, err := file.New()
	if err == nil {
		r.Test = score.Exact(m, file.Weights(), test, p.Job.Schema.ClassNames(), file.Threshold)
	}
	return r, err
}

// result is what every result has.
func (p *Plan) result(id string, seconds float64) *Result {
	return &Result{ID: id, Unit: p.Job.Schema.Unit, UnitRows: p.Job.Schema.UnitRows, Method: p.MethodName,
		Adjacency: p.Job.Facts.Adjacency,
		Delta:     p.Spec.Privacy.Budget().Delta, Off: p.Spec.Privacy.Off, Seconds: seconds, Notice: notice}
}

// Result returns the result of a training that gave each owner these parameters and took that many
// seconds.
func (p *Plan) Result(id string, nodes [][]float64, test *data.Table, seconds float64) (*Result, error) {
	r := p.result(id, seconds)
	r.Rounds, r.Share, r.Beta, r.W = p.Schedule.Rounds, p.Schedule.Share(), p.beta(), gossip.Mean(nodes)
	r.PerSecond = float64(r.Rounds) / r.Seconds
	if !score.Finite(r.W...) {
		return nil, run.ErrDiverged
	}
	if test != nil {
		r.Test = score.Exact(p.Job.Model, r.W, test, p.Job.Schema.ClassNames(), p.Job.Spec.Model.Threshold)
	}
	for i, o := range p.Owners {
		q := OwnerResult{Name: o.Name, Rows: o.Facts.Rows, Activations: o.Activations, Noise: o.Method.NoiseMultiplier()}
		if !r.Off {
			epsilon, err := p.Epsilon(o)
			if err != nil {
				return nil, err
			}
			q.Epsilon = &epsilon
		}
		square := 0.0
		for j, v := range nodes[i] {
			square += (v - r.W[j]) * (v - r.W[j])
		}
		r.Apart = max(r.Apart, math.Sqrt(square))
		if test != nil {
			s := score.Exact(p.Job.Model, nodes[i], test, p.Job.Schema.ClassNames(), p.Job.Spec.Model.Threshold)
			if q.Test = s.Accuracy; q.Test == nil {
				q.Test = s.RMSE
			}
		}
		r.Owners = append(r.Owners, q)
	}
	return r, nil
}

// beta estimates the schedule's β from enough of its rounds that more would change it little.
func (p *Plan) beta() float64 {
	const most = 2000
	return gossip.Beta(p.Schedule.Graph.N, func(yield func([]gossip.Edge) bool) {
		for t, edges := range p.Schedule.All() {
			if t == most || !yield(edges) {
				return
			}
		}
	})
}

// A counter charges an owner's own meter and counts the charges.
type counter struct {
	meter   account.Meter
	charged int
}

func (c *counter) Adjacency() privacy.Adjacency { return c.meter.Adjacency() }

func (c *counter) Charge(e privacy.Event) error {
	err := c.meter.Charge(e)
	if err == nil {
		c.charged++
	}
	return err
}

// Tables reads the rows and gives each owner its own; test is nil if the spec has none. Tables records
// the accesses in the ledger for that run, with that reason; void ends the guarantee of protected rows.
func (p *Plan) Tables(ctx context.Context, id, why string, void bool,
	notice func(string)) (tables []*data.Table, test *data.Table, err error) {
	opened, err := p.open(ctx, why, void, notice)
	if err != nil {
		return nil, nil, err
	}
	if tables, err = run.Take(ctx, p.Spec.Ledger, id, opened...); err != nil {
		return nil, nil, err
	}
	if last := len(tables) - 1; p.Spec.Test != "" {
		tables, test = tables[:last], tables[last]
	}
	if len(p.Network.Files) > 0 {
		return tables, test, nil
	}
	tables, err = p.divide(tables)
	return tables, test, err
}

// open opens the files of the owners, or the file of all, and last the test rows, if the spec has any.
func (p *Plan) open(ctx context.Context, why string, void bool,
	notice func(string)) (opened []*access.Opened, err error) {
	gate, err := run.Gate(ctx, p.Spec.Ledger, false, notice)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	gate.Void, gate.Why, gate.Dropped = void, why, run.Dropped(notice, p.Spec.AcceptDropped)
	files := p.Network.Files
	if len(files) == 0 {
		files = []string{p.Spec.Data}
	}
	for i, f := range files {
		opt := data.Options{}
		if len(p.Network.Files) == 0 {
			opt.Labels = p.Spec.Labels
		} else if o := p.Owners[i]; o.Facts.Adjacency == privacy.ReplaceOne {
			opt.Rows, opt.KeepBad = o.Facts.Rows, true
		}
		o, err := gate.Open(ctx, access.Simulate, p.Job.Schema, f, opt)
		if err != nil {
			return nil, err
		}
		opened = append(opened, o)
	}
	if p.Spec.Test == "" {
		return opened, nil
	}
	test, err := gate.Open(ctx, access.Test, p.Job.Schema, p.Spec.Test, data.Options{Labels: p.Spec.TestLabels}, opened...)
	return append(opened, test), err
}

// divide gives each owner its own rows of one table.
func (p *Plan) divide(all []*data.Table) (tables []*data.Table, err error) {
	whole := all[0]
	defer whole.Close()
	var owner []int
	if p.Network.Column != "" {
		owner = p.byColumn(whole)
	} else if owner, err = p.byHash(all); err != nil {
		return nil, err
	}
	for i := range p.Owners {
		tables = append(tables, data.Subset(all, func(record int) bool { return owner[record] == i }))
	}
	return tables, nil
}

// byHash gives a record, a row or a unit with its rows, to an owner by a keyed hash of its
// content (R10).
func (p *Plan) byHash(all []*data.Table) ([]int, error) {
	streams := noise.SecureStreams()
	if p.Spec.Seed != nil {
		streams = noise.SeededStreams(*p.Spec.Seed)
	}
	src, err := streams.Stream("owners", 0)
	if err != nil {
		return nil, err
	}
	var key [32]byte
	if _, err := src.Read(key[:]); err != nil {
		return nil, err
	}
	coins := data.RowHashes(all, key[:])
	owner := make([]int, len(coins))
	for record, c := range coins {
		hi, _ := bits.Mul64(c, uint64(len(p.Owners)))
		owner[record] = int(hi)
	}
	return owner, nil
}

// byColumn gives a row to the owner of its level, and a unit to the owner of most of its rows, the first
// of several; −1: by a rule of the schema it has no level and belongs to no owner.
func (p *Plan) byColumn(t *data.Table) []int {
	var named []int // by each row
	for _, b := range t.Blocks {
		for i := range b.N {
			levels := b.X[i*b.Dim+p.Column[0] : i*b.Dim+p.Column[1]]
			named = append(named, slices.IndexFunc(levels, func(v float32) bool { return v > 0 }))
		}
	}
	owner := make([]int, t.Units())
	times := make([]int, len(p.Owners))
	var rows []int32
	for u := range owner {
		owner[u] = -1
		clear(times)
		rows = t.UnitRows(rows[:0], u)
		for _, row := range rows {
			if k := named[row]; k >= 0 {
				times[k]++
			}
		}
		most := 0
		for k, n := range times {
			if n > most {
				owner[u], most = k, n
			}
		}
	}
	return owner
}
