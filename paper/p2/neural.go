package p2

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

//go:embed mnist.yaml
var mnistSchema string

var mnist = dataset{"mnist", mnistSchema, []string{"mnist/train-images-idx3-ubyte.gz"}, 60000}

// mnistTest are its test images; the labels are found by their usual names.
const mnistTest = "mnist/t10k-images-idx3-ubyte.gz"

// A Network is one of P2 §5.7, as a spec writes it.
type Network struct {
	Name, Model string
	Layers      []string
}

// Neural is the part of P2 §5.7 to run; nothing without networks.
type Neural struct {
	Networks     []Network
	Epsilon      float64 // after all steps
	Steps, Every int     // iterations of a training, and from one measured point to the next
	Scored       int     // images for the accuracy, and for the objective
}

// The networks of P2 on MNIST. The windows of its convolutions are not in the paper; 5×5 and 2×2 are those of LeNet,
// which has its channels.
var (
	wide   = Network{"784-1000-10", "mlp", []string{"1000 relu"}}
	deep   = Network{"784-256-256-10", "mlp", []string{"256 relu", "256 relu"}}
	images = Network{"CNN 6-16-256-128", "cnn",
		[]string{"conv 6 5x5 pad 2 relu", "max 2 stride 2", "conv 16 5x5 relu", "max 2 stride 2", "256 relu", "128 relu"}}
)

// batchShare is q of P2's networks, one in so many.
const batchShare = 200

const adam = "DP-Adam"

// trained are the methods of Figure 5, with P2's numbers. A tenth of an iteration's ρ pays the search: ε_BT²/2 = ρ/10
// and 1/(2σ²) = 9ρ/10 make ε_BT·σ a third. P2's search is the Gaussian one, here it is Laplace's (S-2d). η₀ is not
// printed.
func trained(steps, batch int) map[string]method.Method {
	g := method.Gradient{Batch: batch, Clip: 3}
	search := method.BLSGD{Steps: steps, Gradient: g, Rate: 1, Fall: 3, Armijo: 0.001, Shrink: 0.8, MaxBacktracks: tries,
		Search: 1. / 3, NoisyNorm: true, Fallback: true}
	slower := search
	slower.Rate = 0.2
	steeper := search
	steeper.Armijo = 0.1
	return map[string]method.Method{
		blsgd: search, beside[0]: slower, beside[2]: steeper,
		sgd: method.SGD{Steps: steps, Gradient: g, Rate: 0.2}, beside[1]: method.SGD{Steps: steps, Gradient: g, Rate: 0.6},
		adam: method.Adam{Steps: steps, Gradient: g, Rate: 0.001, Correction: "none", Schedule: "constant"},
	}
}

var networkLines = []string{blsgd, sgd, adam}

// beside are trainings that show why DP-BLSGD ends where it does: from the first step size that DP-SGD keeps, and
// DP-SGD with the step size that DP-BLSGD's searches find to the end.
var beside = []string{blsgd + ", η₀ = 0.2", sgd + ", η = 0.6", blsgd + ", α = 0.1"}

// besideOf is the network of these trainings: the last of dense layers.
func (n Neural) besideOf() (net Network) {
	for _, one := range n.Networks {
		if one.Model == "mlp" {
			net = one
		}
	}
	return net
}

// A Point is the state of a training after some iterations.
type Point struct {
	Iteration                          int
	Accuracy, Objective, Epsilon, Rate float64 // Rate is the mean step size since the point before
}

// A Trace is a training of a network.
type Trace struct {
	Network, Method string
	Points          []Point
}

// at is the point after so many iterations.
func (t Trace) at(iteration int) Point {
	return t.Points[slices.IndexFunc(t.Points, func(p Point) bool { return p.Iteration == iteration })]
}

// networks are the trainings of Figure 5.
type networks struct {
	Neural
	traces []Trace
}

// neural trains each network by each method.
func (x *experiment) neural(ctx context.Context, n Neural) (*networks, error) {
	train, err := paper.Read(ctx, mnist.schema, filepath.Join(x.Data, mnist.files[0]))
	if err != nil {
		return nil, err
	}
	test, err := paper.Read(ctx, mnist.schema, filepath.Join(x.Data, mnistTest))
	if err != nil {
		return nil, err
	}
	first := func(t *data.Table) *data.Table {
		return data.Subset([]*data.Table{t}, func(row int) bool { return row < n.Scored })
	}
	sample, images := first(train), first(test)
	type job struct {
		Network Network
		Method  string
	}
	var jobs []job
	for _, net := range n.Networks {
		for _, m := range networkLines {
			jobs = append(jobs, job{net, m})
		}
	}
	for _, m := range beside {
		jobs = append(jobs, job{n.besideOf(), m})
	}
	lab := *x.Lab
	lab.Progress = func(int, int) { x.tell(1) }
	traces, err := paper.Each(ctx, &lab, jobs, func(ctx context.Context, j job) (Trace, error) {
		t := Trace{Network: j.Network.Name, Method: j.Method}
		p, err := paper.NewProblem(train, j.Network.Model, privacy.AddRemove, j.Network.Layers...)
		if err != nil {
			return t, err
		}
		obj := method.Objective{Reg: reg.L2{Lambda: lambda}}
		terms := method.Terms{Budget: privacy.Budget{Epsilon: n.Epsilon, Delta: delta, Adjacency: privacy.AddRemove},
			Accountant: account.Best{}}
		m, err := trained(n.Steps, train.Rows()/batchShare)[j.Method].Configure(p.Public, obj, terms)
		if err != nil {
			return t, err
		}
		o, err := p.Oracle(nil, 1, 1)
		if err != nil {
			return t, err
		}
		defer o.Close()
		rates, done := 0.0, 0
		for st, err := range m.Run(ctx, o, obj) {
			if err != nil {
				return t, err
			}
			if st.T == done { // the end
				continue
			}
			done = st.T
			if rates += st.Rate; st.T%n.Every != 0 {
				continue
			}
			at := Point{Iteration: st.T, Rate: rates / float64(n.Every)}
			rates = 0
			_, at.Accuracy = paper.Score(p.Model, st.W, images, nil)
			at.Objective = paper.Loss(p.Model, st.W, sample, nil) + obj.Reg.Value(st.W)
			if at.Epsilon, err = spent(m, p, st.T, n.Steps); err != nil {
				return t, err
			}
			t.Points = append(t.Points, at)
		}
		return t, nil
	})
	return &networks{n, traces}, err
}

// spent is ε after some of a method's steps, each of which costs the same.
func spent(m method.Method, p *paper.Problem, steps, of int) (float64, error) {
	plan, err := m.Plan(p.Public)
	if err != nil {
		return 0, err
	}
	all := plan.(privacy.Repeated)
	loss, err := account.Best{}.Loss(privacy.Repeated{Count: all.Count / of * steps, Of: all.Of}, privacy.AddRemove)
	if err != nil {
		return 0, err
	}
	return loss.Epsilon(delta), nil
}

// trainings is the number of trainings that neural does.
func (n Neural) trainings() int {
	if len(n.Networks) == 0 {
		return 0
	}
	return len(n.Networks)*len(networkLines) + len(beside)
}

func (r *networks) trace(network, method string) Trace {
	return r.traces[slices.IndexFunc(r.traces, func(t Trace) bool { return t.Network == network && t.Method == method })]
}

// figure is Figure 5.
func (r *networks) figure() paper.Figure {
	f := paper.Figure{File: "figure5", Title: "Figure 5: networks",
		Note: fmt.Sprintf("MNIST, its own test images, q = 1/%d, δ = 1e-8, ε = %g after %d iterations; one training a line",
			batchShare, r.Epsilon, r.Steps)}
	f.CSV = paper.NewCSV("network,method,iteration,accuracy,objective,epsilon,step_size")
	for _, t := range r.traces {
		for _, p := range t.Points {
			f.CSV.Add(t.Network, t.Method, p.Iteration, 100*p.Accuracy, p.Objective, p.Epsilon, p.Rate)
		}
	}
	for _, of := range []struct {
		name  string
		value func(Point) float64
	}{
		{accuracyAxis, func(p Point) float64 {
			return 100 * p.Accuracy
		}}, {objectiveAxis, func(p Point) float64 { return p.Objective }},
		{"ε", func(p Point) float64 { return p.Epsilon }}, {"step size", func(p Point) float64 { return p.Rate }},
	} {
		for _, net := range r.Networks {
			plot := chart.Plot{ID: fmt.Sprintf("f5-%d", len(f.Plots)), Title: net.Name + ": " + of.name,
				Desc: "A line for each method", XLabel: "iteration", YLabel: of.name, Tight: true}
			for _, m := range networkLines {
				if of.name == "step size" && m != blsgd {
					continue
				}
				plot.Lines = append(plot.Lines, paper.Line(m, r.trace(net.Name, m).Points, func(p Point) (x, y float64, ok bool) {
					return float64(p.Iteration), of.value(p), true
				}))
			}
			f.Plots = append(f.Plots, plot)
		}
	}
	return f
}

// claims checks what P2 §5.7 says of networks.
func (r *networks) claims(all *paper.Claims) {
	early := max(r.Steps/10/r.Every, 1) * r.Every
	compare := func(model string, iteration int, value func(Point) float64,
		holds func(ours, others float64) bool) (bool, string) {
		ok, found := true, []string{}
		for _, net := range r.Networks {
			if net.Model != model {
				continue
			}
			var v [3]float64
			for i, m := range networkLines {
				v[i] = value(r.trace(net.Name, m).at(iteration))
			}
			ok = ok && holds(v[0], v[1]) && holds(v[0], v[2])
			found = append(found, fmt.Sprintf("%s: DP-BLSGD %.4g, DP-SGD %.4g, DP-Adam %.4g", net.Name, v[0], v[1], v[2]))
		}
		return ok, strings.Join(found, "; ")
	}
	accuracy := func(p Point) float64 { return 100 * p.Accuracy }
	more := func(a, b float64) bool { return a > b }
	of := r.besideOf().Name
	end := func(m string) float64 { return 100 * r.trace(of, m).at(r.Steps).Accuracy }
	long := fmt.Sprintf("Steps stay long to the end. On %s DP-SGD with η = 0.6 ends at %.2f, and DP-BLSGD with η₀ = 0.2 at %.2f; DP-SGD with 0.2 has %.2f, DP-BLSGD with 1 %.2f (figure5.csv).",
		of, end(beside[1]), end(beside[0]), end(sgd), end(blsgd))
	for _, c := range []struct {
		name, says, model string
		iteration         int
		value             func(Point) float64
		holds             func(ours, others float64) bool
	}{
		{"mlp-faster",
			fmt.Sprintf("for MLP networks DP-BLSGD reaches a high accuracy in fewer iterations: ahead after %d", early), "mlp",
			early, accuracy, more},
		{"mlp-alike-in-the-end", "and converges to an accuracy similar to the others': within a point, or above", "mlp",
			r.Steps, accuracy, func(a, b float64) bool {
				return a > b-1
			}},
		{"cnn-faster", fmt.Sprintf("for CNN networks it converges faster: ahead after %d", early), "cnn", early, accuracy,
			more},
		{"cnn-lower-objective", "and results in a lower objective", "cnn", r.Steps, func(p Point) float64 {
			return p.Objective
		}, func(a, b float64) bool { return a < b }},
	} {
		ok, found := compare(c.model, c.iteration, c.value, c.holds)
		all.Add("§5.7", c.name, c.says, ok, "%s", found).Because(long)
	}
	falls, found := true, []string{}
	for _, net := range r.Networks {
		points := r.trace(net.Name, blsgd).Points
		first, last := points[0].Rate, points[len(points)-1].Rate
		falls = falls && last < first
		found = append(found, fmt.Sprintf("%s: %.3g, then %.3g", net.Name, first, last))
	}
	all.Add("§5.7", "step-size-decreases",
		fmt.Sprintf("the step size that DP-BLSGD selects decreases during training: from the first %d iterations to the last",
			r.Every), falls, "%s", strings.Join(found, "; ")).
		Because(fmt.Sprintf("P2's α = 0.001 asks for next to no descent, so a search takes what a batch's noise decides. With α = 0.1 on %s: %.3g, then %.3g (figure5.csv).", of, r.rates(beside[2])[0], r.rates(beside[2])[1]))
}

// rates are the mean step sizes at the begin and at the end of a training of besideOf.
func (r *networks) rates(method string) [2]float64 {
	points := r.trace(r.besideOf().Name, method).Points
	return [2]float64{points[0].Rate, points[len(points)-1].Rate}
}

// printed are P2's numbers of its networks.
func (r *networks) printed(add func(from, quantity string, printed, published, defaults any, why string)) {
	m := trained(r.Steps, mnist.rows/batchShare)[blsgd].(method.BLSGD)
	add("Table 1", "MNIST, rows", "60,000/10,000", fmt.Sprintf("60,000/%d", r.Scored), "", "1")
	add("§5.4", "networks: q", 1./200, 1./batchShare, "", "")
	add("§5.4", "networks: C_grad", 3., m.Gradient.Clip, "", "")
	add("§5.4", "networks: C_obj", 3., m.Fall, "", "")
	add("§5.4", "networks: α", .001, m.Armijo, "", "")
	add("§5.4", "networks: β", .8, m.Shrink, "", "")
	add("§5.4", "networks: η of DP-SGD on MNIST", .2, .2, "", "")
	add("§5.7", "networks: share of ρ_iter for the search", .1, m.Search*m.Search/(1+m.Search*m.Search), "", "")
	add("§5.7", "networks: layers", "1000; 256, 256; 6, 16, 256, 128", "1000; 256, 256; 6, 16, 256, 128", "",
		"the MLP of 256, 256 is FMNIST's there, MNIST's here")
}
