package p2

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
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
	Seeds        int
}

// The networks of P2 on MNIST; its MLP of two layers is FMNIST's. The windows of its convolutions are not in the paper;
// 5×5 and 2×2 are those of LeNet, which has its channels.
var (
	wide   = Network{"784-1000-10", "mlp", []string{"1000 relu"}}
	images = Network{"CNN 6-16-256-128", "cnn",
		[]string{"conv 6 5x5 pad 2 relu", "max 2 stride 2", "conv 16 5x5 relu", "max 2 stride 2", "256 relu", "128 relu"}}
)

// batchShare is q of P2's networks, one in so many.
const batchShare = 200

const adam = "DP-Adam"

// sound is the line of DP-BLSGD with Laplace's noise in its search; P2's is Gaussian, without a guarantee (S-2d).
const sound = blsgd + ", Laplace"

var networkLines = []string{blsgd, sound, sgd, adam}

// netRates are values of η₀, which P2 does not print.
var netRates = []float64{0.2, 1}

// trained are the methods of Figure 5, with P2's numbers. A tenth of an iteration's ρ pays the search: ε_BT²/2 = ρ/10
// and 1/(2σ²) = 9ρ/10 make ε_BT·σ a third.
func trained(steps, batch int, start float64) map[string]method.Method {
	g := method.Gradient{Batch: batch, Clip: 3}
	search := method.BLSGD{Steps: steps, Gradient: g, Rate: start, Fall: 3, Armijo: 0.001, Shrink: 0.8,
		MaxBacktracks: tries, Search: 1. / 3, NoisyNorm: true, Fallback: true}
	return map[string]method.Method{blsgd: search, sound: search,
		sgd:  method.SGD{Steps: steps, Gradient: g, Rate: 0.2},
		adam: method.Adam{Steps: steps, Gradient: g, Rate: 0.001, Correction: "none", Schedule: "constant"}}
}

// A Point is the state of a training after some iterations.
type Point struct {
	Iteration                          int
	Accuracy, Objective, Epsilon, Rate float64 // Rate is the mean step size since the point before
}

// A Trace is a training of a network.
type Trace struct {
	Network, Method string
	Start           float64 // η₀ of DP-BLSGD
	Seed            int
	Points          []Point
}

// at is the point after so many iterations.
func (t Trace) at(iteration int) Point {
	return t.Points[slices.IndexFunc(t.Points, func(p Point) bool { return p.Iteration == iteration })]
}

// networks are the trainings of Figure 5.
type networks struct {
	Neural
	starts map[string]float64 // η₀ by network
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
	r := &networks{Neural: n, starts: map[string]float64{}}
	var jobs []Trace
	for _, net := range n.Networks {
		for _, rate := range netRates {
			jobs = append(jobs, Trace{Network: net.Name, Method: blsgd, Start: rate, Seed: 1})
		}
	}
	if r.traces, err = x.traces(ctx, n, jobs, train, sample, images); err != nil {
		return nil, err
	}
	jobs = nil
	for _, net := range n.Networks {
		best := slices.MaxFunc(netRates, func(a, b float64) int {
			end := func(rate float64) float64 { return r.trace(net.Name, blsgd, rate, 1).at(n.Steps).Accuracy }
			return cmp.Compare(end(a), end(b))
		})
		r.starts[net.Name] = best
		for _, m := range networkLines {
			for seed := 1; seed <= n.Seeds; seed++ {
				if m != blsgd || seed > 1 {
					jobs = append(jobs, Trace{Network: net.Name, Method: m, Start: best, Seed: seed})
				}
			}
		}
	}
	more, err := x.traces(ctx, n, jobs, train, sample, images)
	r.traces = append(r.traces, more...)
	return r, err
}

// traces trains, and measures on a sample of the rows and on test images.
func (x *experiment) traces(ctx context.Context, n Neural, jobs []Trace, train, sample,
	images *data.Table) ([]Trace, error) {
	lab := *x.Lab
	lab.Progress = func(int, int) { x.tell(1) }
	return paper.Each(ctx, &lab, jobs, func(ctx context.Context, t Trace) (Trace, error) {
		net := n.Networks[slices.IndexFunc(n.Networks, func(net Network) bool { return net.Name == t.Network })]
		p, err := paper.NewProblem(train, net.Model, privacy.AddRemove, net.Layers...)
		if err != nil {
			return t, err
		}
		obj := method.Objective{Reg: reg.L2{Lambda: lambda}}
		terms := method.Terms{Budget: privacy.Budget{Epsilon: n.Epsilon, Delta: delta, Adjacency: privacy.AddRemove},
			Accountant: account.Best{}}
		m, err := trained(n.Steps, train.Rows()/batchShare, t.Start)[t.Method].Configure(p.Public, obj, terms)
		if err != nil {
			return t, err
		}
		o, err := p.Oracle(nil, uint64(t.Seed), 1)
		if err != nil {
			return t, err
		}
		defer o.Close()
		var from oracle.Oracle = o
		if t.Method == blsgd {
			from = gaussian{o, noise.NewSeeded(uint64(t.Seed), "gaussian", 0), float64(train.Rows() / batchShare)}
		}
		rates, done := 0.0, 0
		for st, err := range m.Run(ctx, from, obj) {
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
	return len(n.Networks) * (len(netRates) - 1 + len(networkLines)*n.Seeds)
}

func (r *networks) trace(network, method string, start float64, seed int) Trace {
	return r.traces[slices.IndexFunc(r.traces, func(t Trace) bool {
		return t.Network == network && t.Method == method && t.Start == start && t.Seed == seed
	})]
}

// value is a value after some iterations, by seed.
func (r *networks) value(network, method string, iteration int, of func(Point) float64) (list []float64) {
	for seed := 1; seed <= r.Seeds; seed++ {
		list = append(list, of(r.trace(network, method, r.starts[network], seed).at(iteration)))
	}
	return list
}

// mean is the mean of value.
func (r *networks) mean(network, method string, iteration int, of func(Point) float64) float64 {
	m, _ := paper.MeanError(r.value(network, method, iteration, of))
	return m
}

// figure is Figure 5.
func (r *networks) figure() paper.Figure {
	f := paper.Figure{File: "figure5", Title: "Figure 5: networks",
		Note: fmt.Sprintf("MNIST, its own test images, q = 1/%d, δ = 1e-8, ε = %g after %d iterations; means of %d seeds, the CSV has each. DP-BLSGD searches with P2's Gaussian noise, which has no guarantee (S-2d); its η₀ is that of %v with which it ends best with the first seed", batchShare, r.Epsilon, r.Steps, r.Seeds, netRates)}
	f.CSV = paper.NewCSV("network,method,initial_rate,seed,iteration,accuracy,objective,epsilon,step_size")
	for _, t := range r.traces {
		for _, p := range t.Points {
			f.CSV.Add(t.Network, strconv.Quote(t.Method), t.Start, t.Seed, p.Iteration, 100*p.Accuracy, p.Objective, p.Epsilon,
				p.Rate)
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
				if of.name == "step size" && !strings.HasPrefix(m, blsgd) {
					continue
				}
				plot.Lines = append(plot.Lines, paper.Line(m, r.traces[0].Points, func(p Point) (x, y float64, ok bool) {
					return float64(p.Iteration), r.mean(net.Name, m, p.Iteration, of.value), true
				}))
			}
			f.Plots = append(f.Plots, plot)
		}
	}
	return f
}

// claims checks what P2 §5.7 says of networks, with the search as P2 has it; that with Laplace's noise stands beside.
func (r *networks) claims(all *paper.Claims) {
	early := max(r.Steps/10/r.Every, 1) * r.Every
	accuracy := func(p Point) float64 { return 100 * p.Accuracy }
	for _, c := range []struct {
		name, says, model string
		iteration         int
		value             func(Point) float64 // more is better
		slack             float64
		longer            string // what a longer training has, another verdict
	}{
		{"mlp-faster",
			fmt.Sprintf("for MLP networks DP-BLSGD reaches a high accuracy in fewer iterations: ahead after %d", early), "mlp",
			early, accuracy, 0, ""},
		{"mlp-alike-in-the-end", "and converges to an accuracy similar to the others': within a point, or above", "mlp",
			r.Steps, accuracy, 1,
			"After 2,000 iterations, in a record of an earlier version (5a2b03e5; one seed, η₀ = 1), DP-BLSGD ended at 86.3 % with 784-1000-10, DP-SGD at 91.1."},
		{"cnn-faster", fmt.Sprintf("for CNN networks it converges faster: ahead after %d", early), "cnn", early, accuracy,
			0, ""},
		{"cnn-lower-objective", "and results in a lower objective", "cnn", r.Steps,
			func(p Point) float64 { return -p.Objective }, 0, ""},
	} {
		for _, net := range r.Networks {
			if net.Model != c.model {
				continue
			}
			least := r.lead(net.Name, c.iteration, c.value, c.slack)
			found := fmt.Sprintf("%s, means of %d seeds:", net.Name, r.Seeds)
			for _, m := range networkLines {
				found += fmt.Sprintf(" %s %.4g,", m, math.Abs(r.mean(net.Name, m, c.iteration, c.value)))
			}
			found += fmt.Sprintf(" by %.1f standard errors or more; η₀ = %g", least, r.starts[net.Name])
			if math.Abs(least) <= 2 {
				all.NotTested("§5.7", c.name, c.says, "Less than two standard errors in either direction. "+found)
				continue
			}
			turn := c.longer
			if turn == "" && c.iteration == r.Steps {
				turn = r.turn(net.Name, c.value, c.slack, least)
			}
			if turn != "" {
				all.NotTested("§5.7", c.name, c.says, "It depends on the number of iterations, which P2 does not print: "+found+". "+turn)
				continue
			}
			if other := r.otherwise(net.Name, c.iteration, c.value, c.slack, least); other != "" {
				all.NotTested("§5.7", c.name, c.says, "It depends on η₀, which P2 does not print: "+found+". "+other)
				continue
			}
			all.Add("§5.7", c.name, c.says, least > 2, "%s", found).
				Because(fmt.Sprintf("P2 prints neither η₀ nor the number of iterations; of %v this η₀ ends best with the first seed (figure5.csv).", netRates))
		}
	}
	falls, found := true, []string{}
	for _, net := range r.Networks {
		rate := func(p Point) float64 { return p.Rate }
		list, last := r.value(net.Name, blsgd, r.Every, rate), r.value(net.Name, blsgd, r.Steps, rate)
		for i := range list {
			list[i] -= last[i]
		}
		m, se := paper.MeanError(list)
		falls = falls && m > 2*se
		found = append(found, fmt.Sprintf("%s: from %.3g by %.3g ± %.2g", net.Name,
			r.mean(net.Name, blsgd, r.Every, rate), m, se))
	}
	says := fmt.Sprintf("the step size that DP-BLSGD selects decreases during training: from the first %d iterations to the last",
		r.Every)
	var otherwise []string
	for _, net := range r.Networks {
		for _, start := range netRates {
			t := r.trace(net.Name, blsgd, start, 1)
			first, last := t.at(r.Every).Rate, t.at(r.Steps).Rate
			if start != r.starts[net.Name] && (last < first) != falls {
				otherwise = append(otherwise, fmt.Sprintf("%s, η₀ = %g: from %.3g to %.3g", net.Name, start, first, last))
			}
		}
	}
	if otherwise != nil {
		all.NotTested("§5.7", "step-size-decreases", says, fmt.Sprintf("It depends on η₀, which P2 does not print: %s. The first seed otherwise: %s.",
			strings.Join(found, "; "), strings.Join(otherwise, "; ")))
		return
	}
	all.Add("§5.7", "step-size-decreases", says, falls, "%s", strings.Join(found, "; ")).
		Because("P2's α = 0.001 asks for next to no descent, so a search takes what a batch's noise decides.")
}

// lead is by how many standard errors DP-BLSGD is ahead of both others, or behind if it is below 0.
func (r *networks) lead(net string, iteration int, value func(Point) float64, slack float64) float64 {
	least := math.Inf(1)
	for _, m := range []string{sgd, adam} {
		list := r.value(net, blsgd, iteration, value)
		for i, v := range r.value(net, m, iteration, value) {
			list[i] += slack - v
		}
		ahead, se := paper.MeanError(list)
		least = math.Min(least, ahead/se)
	}
	return least
}

// turn says after which other numbers of iterations it is the other way round, by more than two standard errors.
func (r *networks) turn(net string, value func(Point) float64, slack, least float64) string {
	var other []string
	for i := r.Every; i < r.Steps; i += r.Every {
		if lead := r.lead(net, i, value, slack); math.Abs(lead) > 2 && (lead > 0) != (least > 0) {
			other = append(other, fmt.Sprint(i))
		}
	}
	if other == nil {
		return ""
	}
	return fmt.Sprintf("It is the other way round after %s.", strings.Join(other, ", "))
}

// otherwise says how the first seed ends with another η₀, where it does not lead or lag the others by a quarter of what
// it does with the η₀ that was chosen by the test images.
func (r *networks) otherwise(net string, iteration int, value func(Point) float64, slack, least float64) string {
	at := func(method string, start float64) float64 { return value(r.trace(net, method, start, 1).at(iteration)) }
	chosen := r.starts[net]
	rival := math.Max(at(sgd, chosen), at(adam, chosen)) - slack
	lead := at(blsgd, chosen) - rival
	for _, start := range netRates {
		if start == chosen {
			continue
		}
		if other := at(blsgd, start); (other-rival)*math.Copysign(1, least) < math.Abs(lead)/4 {
			return fmt.Sprintf("With η₀ = %g the first seed has %.4g, the better of DP-SGD and DP-Adam %.4g.", start,
				math.Abs(other), math.Abs(rival+slack))
		}
	}
	return ""
}

// printed are P2's numbers of its networks.
func (r *networks) printed(add func(from, quantity string, printed, ours any, why string)) {
	m := trained(r.Steps, mnist.rows/batchShare, 1)[blsgd].(method.BLSGD)
	add("Table 1", "MNIST, rows", "60,000/10,000", fmt.Sprintf("60,000/%d", r.Scored), "the size of this run")
	add("§5.4", "networks: q", 1./200, 1./batchShare, "")
	add("§5.4", "networks: C_grad", 3., m.Gradient.Clip, "")
	add("§5.4", "networks: C_obj", 3., m.Fall, "")
	add("§5.4", "networks: α", .001, m.Armijo, "")
	add("§5.4", "networks: β", .8, m.Shrink, "")
	add("§5.4", "networks: η of DP-SGD on MNIST", .2, .2, "")
	add("§5.7", "networks: share of ρ_iter for the search", .1, m.Search*m.Search/(1+m.Search*m.Search), "")
	add("§5.7", "networks: layers on MNIST", "1000; 6, 16, 256, 128", "1000; 6, 16, 256, 128", "1")
}
