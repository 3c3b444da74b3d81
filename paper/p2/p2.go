// Package p2 reproduces the experiments of P2, Chen and Lee, Stochastic Adaptive Line Search for Differentially Private
// Optimization, 2020, for its linear models: Figures 1 to 4 on Adult and Bank with its hyperparameters (§5.4), its
// claims as inequalities, and its account beside the sound one.
//
// It is a comparison (package study/compare) like any other: the methods of package method under Sotto's accountants,
// at P2's δ and with its regularizer. Both tables are public ones, whose rows need no protection. The full size has
// P2's networks on MNIST, too. The IPUMS tables, FMNIST and CIFAR-10 are not here.
package p2

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/study/compare"
)

// A Size says how much of the experiment to run. Each seed holds out other rows.
type Size struct {
	Name    string
	Epsilon []float64 // of Figures 3 and 4
	Hyper   []float64 // of Figure 1, some of these
	Steps   int       // at most, of trainings with P2's budget for an iteration, which end before where all of ε is spent
	Split   float64   // share to train on
	Seeds   int
	Neural  Neural
	start   map[float64][2]string // η₀ of DP-BLSGD and of DP-BLGD by ε, as chosen
}

// Full has P2's training rows, nine tenths, and fewer repetitions: P2 has 10 folds, 5 times. Small is for a minute.
var (
	Full = Size{Name: "full", Epsilon: []float64{0.05, 0.2, 0.8}, Hyper: []float64{0.05, 0.2}, Steps: 4000, Split: 0.9,
		Seeds:  4,
		Neural: Neural{Networks: []Network{wide, images}, Epsilon: 2, Steps: 300, Every: 30, Scored: 5000, Seeds: 3}}
	Small = Size{Name: "small", Epsilon: []float64{0.05, 0.2}, Hyper: []float64{0.05, 0.2}, Steps: 100, Split: 0.5,
		Seeds: 2}
)

// The constants of P2 §5.4. What it calls per-iteration budget is ε/100.
const (
	delta  = 1e-8
	lambda = 0.001 // of λ/2·‖w‖², which P2 leaves open to be λ‖w‖²
	rate   = 0.1   // q
	iters  = 50
)

//go:embed a9a.yaml
var a9aSchema string

//go:embed bankdat.yaml
var bankdatSchema string

// A dataset is one of the tables.
type dataset struct {
	name, schema string
	files        []string // below the folder of the data
	rows         int
}

// The tables of P2.
var datasets = []dataset{
	{"a9a", a9aSchema, []string{"a9a/a9a.gz", "a9a/a9a.t.gz"}, 48842},
	{"bank-dat", bankdatSchema, []string{"bank/BANK.dat.gz"}, 45211},
}

// An experiment holds what all comparisons share.
type experiment struct {
	*paper.Lab
	size      Size
	done, all int
}

func set(path, value string) run.Override { return run.Override{Path: path, Value: value, From: "p2"} }

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// schema is the file in which a comparison finds a dataset's schema.
func (x *experiment) schema(d dataset) string { return filepath.Join(x.Dir, d.name+".yaml") }

// A variant is a method with its fields.
type variant struct {
	label, name string
	fields      []string // name, value, …
}

func (v variant) settings() job.Settings {
	s := job.Settings{set("name", v.name), set("label", fmt.Sprintf("%q", v.label))}
	for i := 0; i < len(v.fields); i += 2 {
		s = append(s, set(v.fields[i], v.fields[i+1]))
	}
	return s
}

// table is a dataset under a model, as one of the tables of a comparison.
func (x *experiment) table(d dataset, model string) job.TableSpec {
	t := job.TableSpec{Name: d.name + " " + model, Schema: x.schema(d), Rows: d.rows,
		Model: job.Settings{set("name", model), set("l2", number(lambda))}}
	for _, f := range d.files {
		t.Data = append(t.Data, filepath.Join(x.Data, f))
	}
	return t
}

// A part is a comparison with a folder of its own.
type part struct {
	name      string
	adjacency privacy.Adjacency // add-or-remove where it is not set
	tables    []job.TableSpec
	variants  []variant
	epsilon   []string
	last      bool // the model is the last iterate, as in P2; otherwise Sotto's default, an average
}

// plan makes a comparison.
func (x *experiment) plan(q part) (*compare.Plan, error) {
	o := compare.Options{
		Flags: []run.Override{set("privacy.delta", number(delta)),
			set("privacy.adjacency", cmp.Or(q.adjacency, privacy.AddRemove).String()), set("privacy.epsilon", "1")},
		Varied: job.Comparison{Epsilon: q.epsilon, Seeds: x.size.Seeds, Split: x.size.Split, Tables: q.tables},
	}
	if q.last {
		o.Flags = append(o.Flags, set("output", "last"))
	}
	for _, v := range q.variants {
		o.Varied.Methods = append(o.Varied.Methods, v.settings())
	}
	return compare.New(o)
}

// kept is what do finds, or what an earlier run of the experiment kept of it.
func kept[R any](ctx context.Context, x *experiment, do func(context.Context) (R, error)) (result R, err error) {
	lab := *x.Lab
	lab.Progress = nil // do tells its own
	list, err := paper.Each(ctx, &lab, []struct{}{{}},
		func(ctx context.Context, _ struct{}) (R, error) { return do(ctx) })
	if err != nil {
		return result, err
	}
	return list[0], nil
}

// run does a comparison, whose trainings have their own folder, and sets the results of its cells.
func (x *experiment) run(ctx context.Context, name string, p *compare.Plan) error {
	done := x.done
	results, err := kept(ctx, x, func(ctx context.Context) (all [][]compare.Result, err error) {
		err = x.train(ctx, name, p)
		for _, c := range p.Cells {
			all = append(all, c.Results)
		}
		return all, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i, c := range p.Cells {
		c.Results = results[i]
	}
	x.tell(p.Runs - (x.done - done))
	return nil
}

// train does the rest of a comparison.
func (x *experiment) train(ctx context.Context, name string, p *compare.Plan) error {
	store, err := p.Open(filepath.Join(x.Dir, name), x.Version)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := p.Prepare(x.Jobs); err != nil {
		return err
	}
	x.tell(p.Runs - p.Left())
	if err := p.Train(ctx, x.Jobs, func(c *compare.Cell, r compare.Result) error {
		x.tell(1)
		return store.Add(c, r)
	}); err != nil {
		return err
	}
	return p.Write(filepath.Join(x.Dir, name))
}

func (x *experiment) tell(more int) {
	x.done += more
	if x.Progress != nil {
		x.Progress(x.done, x.all)
	}
}

// words are budgets in the form that a comparison takes.
func words(values []float64) []string {
	var out []string
	for _, v := range values {
		out = append(out, number(v))
	}
	return out
}

// batch is P2's sampling ratio as a batch of the rows that are trained on.
func (s Size) batch(d dataset, q float64) string {
	return strconv.Itoa(int(q * s.Split * float64(d.rows)))
}

// Asked is what a training asks of the rows, in passes over all of them.
type Asked struct {
	Gradients, Objectives float64
	Searches, Failed      int
	Raised                [2]int // how often the budget of gradients and of searches grew
}

// An access counts what a training asks.
type access struct {
	Asked
	tries  int        // most candidates of a search
	noise  [2]float64 // of the last gradient and search
	rate   float64
	search bool
}

var _ oracle.Journal = (*access)(nil)

// Charge notes what kind of batch was charged.
func (a *access) Charge(e privacy.Event) error {
	a.rate = 1
	if p, ok := e.(privacy.PoissonSampled); ok {
		a.rate, e = p.Rate, p.Of
	}
	at, now := 0, 0.0
	switch e := e.(type) {
	case privacy.Gaussian:
		now = e.Sigma
		a.Gradients += a.rate
	case privacy.GaussianSum:
		now = e.Replacement
		a.Gradients += a.rate
	case privacy.AboveThreshold:
		at, now = 1, e.Threshold
	}
	if a.search = at == 1; now < a.noise[at] {
		a.Raised[at]++
	}
	a.noise[at] = now
	return nil
}

// Release notes how many candidates a search has tried: as many losses, and that at w.
func (a *access) Release(answers [][]float64) error {
	if !a.search {
		return nil
	}
	n := int(answers[0][0]) + 1
	if a.Searches++; n == 0 {
		a.Failed++
		n = a.tries
	}
	a.Objectives += a.rate * float64(n+1)
	return nil
}
