// Package p4 reproduces the experiments of P4, Differentially Private Optimization for Smooth Non-Convex ERM: its
// tables of losses, iterations, Hessians and times, its comparisons with DP-TR as inequalities, and what sound
// sensitivities and a public number of steps gain or cost.
//
// It uses the library as anyone would: the methods of package method on a private oracle, with noise from a fixed seed.
// Losses, gradients and curvatures of the tables are computed without noise, which is for public tables only.
package p4

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Size says how much of the experiment to run.
type Size struct {
	Name      string
	Rows      int  // of the synthetic table
	Runs      int  // of each cell
	Starts    int  // of the cells that are compared over more starts than the paper's runs
	Beside    int  // of each cell with the M of the loss, beside the paper's
	Certified int  // of each method in the cell by which certificates are judged
	Patience  int  // steps after which a run is broken off
	Whole     bool // runs of cells that the paper prints take all of T steps
	Settings  []Setting
}

// BreaksOff says after how many steps runs are broken off.
func (s Size) BreaksOff() string {
	if s.Whole {
		return fmt.Sprintf("after %d steps but on the real tables with M = 1, where runs have all of T", s.Patience)
	}
	return fmt.Sprintf("after %d steps", s.Patience)
}

// runs is how many runs a cell has. In those of Covertype with the loose tolerances runs end after few steps, so that
// five starts tell too little of times and losses.
func (s Size) runs(table, bound string, of Setting, epsilon float64) int {
	switch {
	case judged(table, of, epsilon):
		return s.Certified
	case bound != bounds[0]:
		return min(s.Runs, s.Beside)
	case table == sampled && of == Settings[0]:
		return s.Starts
	}
	return s.Runs
}

// patience is Patience of a table's runs with a bound M; 0: none. Runs on shorter rows need few steps, too.
func (s Size) patience(p *problem, bound string) int {
	if s.Whole && bound == bounds[0] && slices.Contains(real, p.of) && (p.name == p.of || p.Table.NormBound < 1) {
		return 0
	}
	return s.Patience
}

// Full is the experiment of the paper, with its five runs of a cell. Small is for a minute: fewer rows, with ε·n as in
// the paper, so that the noise is much the same.
var (
	Full  = Size{"full", paperRows, 5, 30, 5, 20, 200, true, Settings}
	Small = Size{"small", 20_000, 2, 2, 1, 6, 100, false, Settings}
)

// The constants of P4's experiments; δ, the norm of rows and where runs begin are not stated there.
const (
	shaped    = "covtype-shaped" // the synthetic table
	sampled   = "covtype-sample"
	ijcnn1    = "ijcnn1"
	paperRows = 495_141
	lambda    = 1e-3
	delta     = 1e-5
	seed      = 1
	batches   = 10    // of a table
	usual     = 1.0   // standard deviation of a coordinate of w_0
	share     = 0.02  // of ε, for the loss at w_0
	late      = 0.001 // probability that the bound on it is too low
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

// A problem is a table under the logistic model.
type problem struct {
	*paper.Problem
	name   string
	scale  float64 // of ε: the paper's rows over the table's
	of     string  // the paper's table; not name for an experiment beside it, on the cells that the paper prints
	spread float64 // standard deviation of a coordinate of w_0
}

// The bounds M on how fast the Hessian changes. The paper's tolerances are ε_H = √ε_g = √(M·ε_g), so M = 1. The loss
// has a smaller bound, about 0.1, which Sotto's methods take by themselves: steps along negative curvature and DP-TR's
// region grow with 1/M and 1/√M.
var bounds = []string{"M = 1", "M of the loss"}

// under is the problem with that bound, for a loss with a regularizer. A larger M than the loss has is a bound, too.
func (p *problem) under(bound string, r reg.Curved) *problem {
	if bound != bounds[0] {
		return p
	}
	inner, own := *p.Problem, *p
	inner.Public.HessLipschitz = max(p.Public.HessLipschitz, oracle.Bound(1-r.HessLipschitz())) // long rows have more
	own.Problem = &inner
	return &own
}

func newProblem(name string, t *data.Table, scale float64) (*problem, error) {
	p, err := paper.NewProblem(t, "logistic", privacy.ReplaceOne)
	return &problem{p, name, scale, name, usual}, err
}

// Names of experiments beside the paper's tables.
const (
	tenth = ", every tenth row"
	near  = ", w₀ of deviation 0.5"
)

// norms of rows of experiments beside the tables, where 1 is usual.
var norms = []float64{0.5, 0.75, 2, 4}

func ofNorm(k float64) string { return fmt.Sprintf(", rows of norm %v", k) }

// beside are experiments on what the paper does not state of a table: the norm of its rows, where runs begin, and
// whether IJCNN has 4,999 rows, as printed, or the 49,990 that LIBSVM publishes.
func (p *problem) beside() ([]*problem, error) {
	var all []*problem
	add := func(name string, t *data.Table, spread float64) error {
		q, err := newProblem(p.name+name, t, p.scale)
		if err == nil {
			q.of, q.spread = p.name, spread
			all = append(all, q)
		}
		return err
	}
	for _, k := range norms {
		if err := add(ofNorm(k), longer(p.Table, k), usual/k); err != nil { // margins at w_0 stay the same
			return nil, err
		}
	}
	if p.name == sampled {
		return all, add(near, p.Table, usual/2)
	}
	return all, add(tenth, data.Subset([]*data.Table{p.Table}, func(row int) bool { return row%10 == 0 }), usual)
}

// problems are the synthetic table and, where a folder of public tables is given, the real ones.
func problems(ctx context.Context, s Size, folder string) ([]*problem, error) {
	p, err := newProblem(shaped, synthetic(s.Rows), float64(paperRows)/float64(s.Rows))
	if err != nil || folder == "" {
		return []*problem{p}, err
	}
	all := []*problem{p}
	for _, r := range []struct {
		name, file string
		read       func(context.Context, string) (*data.Table, error)
		of         float64 // rows of the table that it is a sample of; 0: of none
	}{
		{sampled, "covtype-sample/covtype-sample-15000.csv.gz", covertype, paperRows},
		{ijcnn1, "ijcnn1/ijcnn1.gz", ijcnn, 0},
	} {
		t, err := r.read(ctx, filepath.Join(folder, r.file))
		if err != nil {
			return nil, err
		}
		if p, err = newProblem(r.name, t, math.Max(1, r.of/float64(t.Rows()))); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	for _, p := range all[1:] {
		more, err := p.beside()
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// start is w_0 of a run, as public as its number.
func (p *problem) start(run int) []float64 {
	src := noise.NewSeeded(seed, "start "+p.name, uint64(run))
	w := make([]float64, p.Table.Dim)
	for j := range w {
		w[j] = p.spread * paper.Normal(src)
	}
	return w
}

// highest bounds a row's loss at w_0 for every table.
func (p *problem) highest(w0 []float64) float64 {
	return math.Log1p(math.Exp(paper.Norm(w0) * p.Table.NormBound))
}

// gap bounds F(w_0) − F_low but for a probability of late: P4's f(w_0)+|z| made private. The noise z is two-sided,
// and what is added to it is public (S-4a).
func (p *problem) gap(ctx context.Context, w0 []float64, r reg.Regularizer, epsilon float64,
	stream uint64) (float64, error) {
	c := p.highest(w0)
	q := oracle.Loss{Bound: c, Noise: mech.Laplace{Scale: 1 / epsilon}}
	meter, err := account.NewPlan(q.Event(), account.Pure{},
		privacy.Budget{Epsilon: epsilon * (1 + 1e-12), Adjacency: privacy.ReplaceOne})
	if err != nil {
		return 0, err
	}
	o, err := p.Oracle(meter, stream, 0)
	if err != nil {
		return 0, err
	}
	defer o.Close()
	b, err := o.Batch(ctx, sample.Full{}, q)
	if err != nil {
		return 0, err
	}
	loss, err := b.Loss(q, w0)
	if err != nil {
		return 0, err
	}
	more := c / (epsilon * float64(p.Public.Rows)) * math.Log(1/(2*late))
	return math.Min(c, math.Max(0, loss+more)) + r.Value(w0), nil
}

// configured is a method of the tables; samples are a tenth of the rows.
func (p *problem) configured(name string, s Setting, gap float64) method.Method {
	common := method.P4{Gradient: s.Gradient, Curvature: s.Curvature, Gap: gap}
	opt, search := method.OPT{P4: common}, method.OPTLS{P4: common}
	batch := opt
	batch.Batch = p.Public.Rows / batches
	return map[string]method.Method{
		"TR": method.TR{P4: common}, "OPT": opt, "OPT-B": batch, "OPT-LS": search,
		"2OPT": method.TwoOPT{OPT: opt}, "2OPT-B": method.TwoOPT{OPT: batch}, "2OPT-LS": method.TwoOPTLS{OPTLS: search},
	}[name]
}

// A Run is one run of a cell.
type Run struct {
	Table   string
	Of      string // the paper's
	Rows    int
	Bound   string // M
	Setting Setting
	Epsilon float64 // the paper's; the budget is that × the paper's rows over the table's
	Method  string
	Number  int

	Most       int     // T
	Gap        float64 // the bound on F(w_0)
	Noise      float64
	NoiseRatio float64 // about the length of the noise of a gradient, in ε_g
	Status     method.Status
	Steps      int
	Hessians   int
	Seconds    float64 // of processor time
	Loss       float64 // F at the end
	Gradient   float64 // ‖∇F‖ there, exactly
	Curvature  float64 // λ_min(∇²F) there
	Claim      *secondorder.Claim
}

// Certified says whether the run ended with a claim that is true.
func (r Run) Certified() bool {
	return r.Claim != nil && r.Gradient <= r.Claim.Gradient && r.Curvature >= -r.Claim.Curvature
}

// A job is a planned run.
type job struct {
	p       *problem
	bound   string
	setting Setting
	epsilon float64
	method  string
	number  int
	most    int // steps after which it is broken off; 0: none
}

// run does the job.
func (j job) run(ctx context.Context) (Run, error) {
	s := j.setting
	r := Run{Table: j.p.name, Of: j.p.of, Rows: j.p.Table.Rows(), Bound: j.bound, Setting: s, Epsilon: j.epsilon,
		Method: j.method, Number: j.number}
	penalty, err := reg.New(s.Reg, lambda)
	if err != nil {
		return r, err
	}
	curved := penalty.(reg.Curved)
	p, w0 := j.p.under(j.bound, curved), j.p.start(j.number)
	obj := method.Objective{Reg: paper.Around{Curved: curved, W0: w0}}
	stream := noise.NewSeeded(seed, fmt.Sprintf("run %s %s %v %s", p.name, s.Name, j.epsilon, j.method),
		uint64(j.number)).Uint64()
	first := j.epsilon * p.scale * share // pure, so the rest is the other's by composition
	budget := privacy.Budget{Epsilon: j.epsilon*p.scale - first, Delta: delta, Adjacency: privacy.ReplaceOne}
	if r.Gap, err = p.gap(ctx, w0, penalty, first, stream+1); err != nil {
		return r, err
	}
	m, err := p.configured(j.method, s, r.Gap).Configure(p.Public, obj,
		method.Terms{Budget: budget, Accountant: account.Best{}})
	if err != nil {
		return r, fmt.Errorf("%s, %s, ε = %v: %w", p.name, j.method, j.epsilon, err)
	}
	plan, err := m.Plan(p.Public)
	if err != nil {
		return r, err
	}
	meter, err := account.NewMeter(plan, account.Best{}, budget)
	if err != nil {
		return r, err
	}
	rows, err := p.Oracle(meter, stream, 0)
	if err != nil {
		return r, err
	}
	defer rows.Close()
	o := &paper.From{Oracle: rows, W0: w0}
	r.Most, r.Noise = method.MaxSteps(m), method.NoiseMultiplier(m)
	r.NoiseRatio = math.Sqrt(float64(p.Table.Dim)) * 2 * p.Table.NormBound * r.Noise / float64(r.Rows) / s.Gradient
	if strings.HasSuffix(j.method, "-B") {
		r.NoiseRatio *= batches
	}
	w := w0
	begin := paper.Processor()
	for st, err := range m.Run(ctx, o, obj) {
		if err != nil {
			return r, err
		}
		w = paper.Plus(st.W, w0)
		r.Status, r.Steps, r.Claim = st.Status, st.T, st.Claim
		if j.most > 0 && st.Status == method.Running && st.T >= j.most {
			break
		}
	}
	r.Seconds, r.Hessians = paper.Processor()-begin, o.Hessians
	return r, p.judge(ctx, &r, w, method.Objective{Reg: penalty})
}

// judge computes what is true at w.
func (p *problem) judge(ctx context.Context, r *Run, w []float64, obj method.Objective) error {
	o, err := p.Oracle(nil, seed, 0)
	if err != nil {
		return err
	}
	defer o.Close()
	r.Loss = paper.Loss(p.Model, w, p.Table, nil) + obj.Reg.Value(w)
	r.Gradient, r.Curvature, err = secondorder.Exact(ctx, o, obj.Reg, w)
	return err
}
