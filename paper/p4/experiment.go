// Package p4 reproduces the experiments of P4, Differentially Private Optimization for Smooth Non-Convex ERM: its
// tables of losses, iterations, Hessians and times, its comparisons with DP-TR as inequalities, and what sound sensitivities
// and a public number of steps gain or cost.
//
// It uses the library as anyone would: the methods of package method, through the door of oracle/private, with noise from a
// fixed seed. Losses, gradients and curvatures of the tables are computed without noise, which is for public tables
// only.
package p4

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Size says how much of the experiment is run.
type Size struct {
	Name      string
	Rows      int // of the synthetic table
	Runs      int // of each cell
	Certified int // of each method in the cell by which certificates are judged
	Settings  []Setting
}

// Full is the experiment of the paper, with its five runs of a cell. Small is for a minute: fewer rows, with ε·n as in
// the paper, so that the noise is much the same.
var (
	Full  = Size{"full", paperRows, 5, 20, Settings}
	Small = Size{"small", 20_000, 2, 10, Settings}
)

// The constants of P4's experiments; δ, the norm of rows and where runs begin are not stated there.
const (
	shaped    = "covtype-shaped" // the synthetic table
	paperRows = 495_141
	lambda    = 1e-3
	delta     = 1e-5
	seed      = 1
	spread    = 1.0   // standard deviation of a coordinate of w_0
	share     = 0.02  // of ε, for the loss at w_0
	late      = 0.001 // probability that the bound on it is too low
	patience  = 200   // steps after which a run is broken off
)

// epsilons are the paper's budgets.
var epsilons = []float64{0.2, 0.6, 1}

// A Setting is a loss with a pair of tolerances.
type Setting struct {
	Name, Reg           string
	Gradient, Curvature float64
}

// Settings are the four of the paper; always ε_H = √ε_g.
var Settings = []Setting{
	{"loose", "nonconvex", 0.060, 0.245},
	{"tight", "nonconvex", 0.030, 0.173},
	{"loose, ℓ2", "l2", 0.040, 0.200},
	{"tight, ℓ2", "l2", 0.020, 0.141},
}

// Methods are those of the paper's tables, in their order. Of DP-GD it says that no useful constants were found.
var Methods = []string{"TR", "OPT", "OPT-B", "OPT-LS", "2OPT", "2OPT-B", "2OPT-LS"}

// A problem is a table with its model.
type problem struct {
	name  string
	table *data.Table
	model model.Model
	facts oracle.Public
	scale float64 // of ε: the paper's rows over the table's
}

func newProblem(name string, t *data.Table, scale float64) (*problem, error) {
	m, err := model.New("logistic", model.Options{Dim: t.Dim, Classes: 2, NormBound: 1})
	if err != nil {
		return nil, err
	}
	f := m.Facts()
	return &problem{name: name, table: t, model: m, scale: scale, facts: oracle.Public{
		Dim: t.Dim, Rows: t.Rows(), Classes: 2, Adjacency: privacy.ReplaceOne, NormBound: 1, Lipschitz: oracle.Bound(f.Lipschitz),
		Smooth: oracle.Bound(f.Smooth), HessLipschitz: oracle.Bound(f.HessLipschitz), Curved: true, StartLoss: oracle.Bound(f.Start)}}, nil
}

// problems are the synthetic table and, where a folder of public tables is given, the real ones.
func problems(s Size, folder string) ([]*problem, error) {
	p, err := newProblem(shaped, synthetic(s.Rows), float64(paperRows)/float64(s.Rows))
	if err != nil || folder == "" {
		return []*problem{p}, err
	}
	all := []*problem{p}
	for _, r := range []struct {
		name, file string
		read       func(string) (*data.Table, error)
		of         float64 // rows of the table that it is a sample of; 0: of none
	}{
		{"covtype-sample", "covtype-sample/covtype-sample-15000.csv.gz", covertype, paperRows},
		{"ijcnn1", "ijcnn1/ijcnn1.gz", ijcnn, 0},
	} {
		t, err := r.read(filepath.Join(folder, r.file))
		if err != nil {
			return nil, err
		}
		if p, err = newProblem(r.name, t, math.Max(1, r.of/float64(t.Rows()))); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// start is w_0 of a run, as public as its number.
func (p *problem) start(run int) []float64 {
	src := noise.NewSeeded(seed, "start "+p.name, uint64(run))
	w := make([]float64, p.table.Dim)
	for j := range w {
		w[j] = spread * paper.Normal(src)
	}
	return w
}

// highest bounds a row's loss at w_0 for every table: rows have norm 1.
func highest(w0 []float64) float64 {
	norm := 0.0
	for _, v := range w0 {
		norm += v * v
	}
	return math.Log1p(math.Exp(math.Sqrt(norm)))
}

// gap bounds F(w_0) − F_low but for a probability of late: P4's f(w_0)+|z| made private. The noise z is two-sided,
// and what is added to it is public (S-4a).
func (p *problem) gap(ctx context.Context, w0 []float64, r reg.Regulariser, epsilon float64, stream uint64) (float64, error) {
	c := highest(w0)
	q := oracle.Loss{Bound: c, Noise: mech.Laplace{Scale: 1 / epsilon}}
	meter, err := account.NewPlan(q.Event(), account.Pure{}, privacy.Budget{Epsilon: epsilon * (1 + 1e-12), Adjacency: privacy.ReplaceOne})
	if err != nil {
		return 0, err
	}
	door, err := p.door(meter, stream)
	if err != nil {
		return 0, err
	}
	defer door.Close()
	b, err := door.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return 0, err
	}
	loss, err := b.Loss(q, w0)
	if err != nil {
		return 0, err
	}
	more := c / (epsilon * float64(p.facts.Rows)) * math.Log(1/(2*late))
	return math.Min(c, math.Max(0, loss+more)) + r.Value(w0), nil
}

// Methods begin at 0, a run at w_0: shifted moves the door, and around the regulariser. It also counts what is asked.
type shifted struct {
	oracle.Oracle
	by       []float64
	hessians int
}

type shiftedBatch struct {
	oracle.Batch
	s *shifted
}

func (s *shifted) Batch(ctx context.Context, how sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	b, err := s.Oracle.Batch(ctx, how, pay...)
	return shiftedBatch{b, s}, err
}

func (b shiftedBatch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	return b.Batch.Grad(q, plus(w, b.s.by))
}

func (b shiftedBatch) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	b.s.hessians++
	return b.Batch.Hess(q, plus(w, b.s.by))
}

func (b shiftedBatch) Search(q oracle.Search, l oracle.Line) (int, error) {
	l.From = plus(l.From, b.s.by)
	return b.Batch.Search(q, l)
}

// around is a regulariser of the moved parameters.
type around struct {
	reg.Curved
	by []float64
}

func (r around) Value(w []float64) float64 { return r.Curved.Value(plus(w, r.by)) }
func (r around) AddGrad(dst, w []float64)  { r.Curved.AddGrad(dst, plus(w, r.by)) }
func (r around) AddHess(dst, w []float64)  { r.Curved.AddHess(dst, plus(w, r.by)) }
func plus(w, by []float64) (moved []float64) {
	moved = make([]float64, len(w))
	for j := range w {
		moved[j] = w[j] + by[j]
	}
	return moved
}

func (p *problem) door(meter account.Meter, stream uint64) (*private.Oracle, error) {
	return private.New(private.Config{Table: p.table, Model: p.model, Facts: p.facts, Meter: meter,
		Streams: noise.SeededStreams(stream), Journal: paper.Silent{}, Workers: runtime.GOMAXPROCS(0)})
}

// configured is a method of the tables; samples are a tenth of the rows.
func (p *problem) configured(name string, s Setting, gap float64) method.Method {
	common := method.P4{Gradient: s.Gradient, Curvature: s.Curvature, Gap: gap}
	opt, search := method.OPT{P4: common}, method.OPTLS{P4: common}
	batch := opt
	batch.Batch = p.facts.Rows / 10
	return map[string]method.Method{
		"TR": method.TR{P4: common}, "OPT": opt, "OPT-B": batch, "OPT-LS": search,
		"2OPT": method.TwoOPT{OPT: opt}, "2OPT-B": method.TwoOPT{OPT: batch}, "2OPT-LS": method.TwoOPTLS{OPTLS: search},
	}[name]
}

// A Run is one run of a cell.
type Run struct {
	Table   string
	Setting Setting
	Epsilon float64 // the paper's; the budget is that × the paper's rows over the table's
	Method  string
	Number  int

	Most      int     // T
	Gap       float64 // the bound on F(w_0)
	Noise     float64
	Status    method.Status
	Steps     int
	Hessians  int
	Seconds   float64
	Loss      float64 // F at the end
	Gradient  float64 // ‖∇F‖ there, exactly
	Curvature float64 // λ_min(∇²F) there
	Claim     *method.Claim
}

// Certified says whether the run ended with a claim that is true.
func (r Run) Certified() bool {
	return r.Claim != nil && r.Gradient <= r.Claim.Gradient && r.Curvature >= -r.Claim.Curvature
}

// run is one run.
func (p *problem) run(ctx context.Context, s Setting, epsilon float64, name string, number int) (Run, error) {
	r := Run{Table: p.name, Setting: s, Epsilon: epsilon, Method: name, Number: number}
	penalty, err := reg.New(s.Reg, lambda)
	if err != nil {
		return r, err
	}
	w0 := p.start(number)
	obj := method.Objective{Reg: around{penalty.(reg.Curved), w0}}
	stream := noise.NewSeeded(seed, fmt.Sprintf("run %s %s %v %s", p.name, s.Name, epsilon, name), uint64(number)).Uint64()
	first := epsilon * p.scale * share // pure, so the rest is the other's by composition
	budget := privacy.Budget{Epsilon: epsilon*p.scale - first, Delta: delta, Adjacency: privacy.ReplaceOne}
	bound, err := p.gap(ctx, w0, penalty, first, stream+1)
	if err != nil {
		return r, err
	}
	m, err := p.configured(name, s, bound).Configure(p.facts, obj, method.Terms{Budget: budget, Accountant: account.Best{}})
	if err != nil {
		return r, fmt.Errorf("%s, %s, ε = %v: %w", p.name, name, epsilon, err)
	}
	plan, err := m.Plan(p.facts)
	if err != nil {
		return r, err
	}
	meter, err := account.NewMeter(plan, account.Best{}, budget)
	if err != nil {
		return r, err
	}
	door, err := p.door(meter, stream)
	if err != nil {
		return r, err
	}
	defer door.Close()
	o := &shifted{Oracle: door, by: w0}
	r.Most, r.Gap, r.Noise = m.MaxSteps(), bound, m.NoiseMultiplier()
	w := w0
	begin := time.Now()
	for st, err := range m.Run(ctx, o, obj) {
		if err != nil {
			return r, err
		}
		w = plus(st.W, w0)
		r.Status, r.Steps, r.Claim = st.Status, st.T, st.Claim
		if st.Status == method.Running && st.T >= patience {
			break
		}
	}
	r.Seconds = time.Since(begin).Seconds()
	r.Hessians = o.hessians
	return r, p.judge(ctx, &r, w, method.Objective{Reg: penalty})
}

// judge computes what is true at w.
func (p *problem) judge(ctx context.Context, r *Run, w []float64, obj method.Objective) error {
	door, err := p.door(paper.Free(privacy.ReplaceOne), seed)
	if err != nil {
		return err
	}
	defer door.Close()
	if r.Gradient, r.Curvature, err = method.SecondOrder(ctx, door, obj, w); err != nil {
		return err
	}
	var ws model.Workspace
	loss := make([]float64, data.BlockRows)
	for _, b := range p.table.Blocks {
		p.model.Eval(w, data.View{Block: b, To: b.N}, &ws).Loss(loss[:b.N])
		for _, l := range loss[:b.N] {
			r.Loss += l / float64(p.facts.Rows)
		}
	}
	r.Loss += obj.Reg.Value(w)
	return nil
}
