// Package p3 reproduces the experiments of P3, Distributed Empirical Risk Minimization With
// Differential Privacy: its Figures 1 to 4, its claims as inequalities, what its noise really gives, and what noise
// that holds its ε reaches with samples of more than one row.
//
// It uses the library as anyone would: package gossip, a private oracle for each owner, noise from a fixed seed. The
// published noise is added as published; it is too small.
package p3

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/account/claimed"
)

// A Size says how much of the experiment to run.
type Size struct {
	Name   string
	Dense  [2]int // rows of an owner and features, of the table in the shape of epsilon
	Sparse [2]int // the same in the shape of rcv1
	Whole  [2]int // the same of a table on which only three curves are run; 0: none
	Batch  int    // rows of a local sample
	Seeds  int    // of Figure 1's runs
}

// Small is for a minute, with the noise of the paper. Full has the rows and features of epsilon, and three curves with
// those of rcv1.
var (
	Small = Size{Name: "small", Dense: [2]int{400, 500}, Sparse: [2]int{300, 1000}, Batch: 20, Seeds: 1}
	Full  = Size{Name: "full", Dense: [2]int{20_000, 2000}, Sparse: [2]int{3000, 4000}, Whole: [2]int{33_869, 47_236},
		Batch: 64, Seeds: 5}
)

// The constants of P3 §5.
const (
	nodes  = 20
	epochs = 3
	mu     = 5e-4 // of μ/2‖x‖²
	phi    = 5e-4 // of φ‖x‖₁
	delta  = 1e-5 // at which the true ε is told, and the sound noise chosen
	seed   = 1
)

// epsilons are P3's.
var epsilons = []float64{0.2, 0.4, 0.6, 0.8, 1}

// points is how many points a curve has, each at 10^¼ times the iterations of the one before it.
const points = 12

// A Curve is one run.
type Curve struct {
	Table, Reg, Kind string
	Seed             uint64
	Epsilon          float64 // claimed, or kept; 0 without noise
	Noise            float64 // standard deviation of a coordinate of ζ
	Iterations       []int
	Objective        []float64 // F at the mean of the nodes
	Distance         []float64 // mean over the nodes of ‖x̃ − x*‖², for the bounds
	Spread           []float64 // mean over the nodes of ‖x̃ − their mean‖, for the bounds
	Accuracy         float64   // on rows that no owner trained on
	Least            *Least    // of a search for F*, which has none of the above
}

// Last is the final objective.
func (c *Curve) Last() float64 { return c.Objective[len(c.Objective)-1] }

// at is the objective after some iterations: between two recorded points, on the line through their logarithms. It is
// NaN where none is recorded before or after.
func (c *Curve) at(iterations int) float64 {
	k, there := slices.BinarySearch(c.Iterations, iterations)
	switch {
	case there:
		return c.Objective[k]
	case k == 0 || k == len(c.Iterations):
		return math.NaN()
	}
	before, after := float64(c.Iterations[k-1]), float64(c.Iterations[k])
	share := math.Log(float64(iterations)/before) / math.Log(after/before)
	return c.Objective[k-1] * math.Pow(c.Objective[k]/c.Objective[k-1], share)
}

// ahead is by how much this curve is lower at each recorded point of another, where it has begun, in parts of the
// other.
func (c *Curve) ahead(of *Curve) (by []float64) {
	for k, at := range of.Iterations {
		if f := c.at(at); !math.IsNaN(f) {
			by = append(by, 1-f/of.Objective[k])
		}
	}
	return by
}

// The kinds of runs.
const (
	allActive   = "[19], all active"
	tenth       = "Algorithm 1, ι = 0.1"
	fifth       = "Algorithm 1, ι = 0.2"
	soundOne    = "sound, one row"
	soundMany   = "sound, local samples"
	optimum     = "F*"
	plain       = "no noise, ι = 0.1"
	provenTenth = "as in the proofs, ι = 0.1" // no noise, γ of the corollaries, x of inactive nodes computed again
	provenFifth = "as in the proofs, ι = 0.2"
)

// shares are the ι of the kinds.
var shares = map[string]float64{allActive: 1, tenth: 0.1, fifth: 0.2, soundOne: 0.2, soundMany: 0.2, plain: 0.1,
	provenTenth: 0.1, provenFifth: 0.2}

// A job is a run.
type job struct {
	t         *table
	kind, reg string
	epsilon   float64 // 0 without noise
	seed      uint64
}

func (j job) sound() bool  { return j.kind == soundOne || j.kind == soundMany }
func (j job) proven() bool { return j.kind == provenTenth || j.kind == provenFifth }

// run does the job.
func (j job) run(ctx context.Context, size Size) (*Curve, error) {
	c := &Curve{Table: j.t.name, Reg: j.reg, Kind: j.kind, Seed: j.seed, Epsilon: j.epsilon}
	if j.kind == optimum {
		l, err := j.t.least(ctx, j.reg)
		return &Curve{Table: c.Table, Reg: c.Reg, Kind: c.Kind, Seed: j.seed, Least: l}, err
	}
	adjacency := privacy.ReplaceOne
	if j.sound() {
		adjacency = privacy.AddRemove
	}
	p, err := paper.NewProblem(j.t.own[0], "svm", adjacency)
	if err != nil {
		return nil, err
	}
	dda, obj := j.method(size)
	s := j.schedule(dda.Batch)
	fitted, err := j.configure(dda, p.Public, obj, s, c)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", c.Table, c.Kind, err)
	}
	at, err := j.train(ctx, p, s, fitted, obj, c)
	if err != nil {
		return nil, err
	}
	if err := j.measure(ctx, p, obj.Reg, at, c); err != nil {
		return nil, err
	}
	return c, nil
}

// method is the paper's method and objective, without noise.
func (j job) method(size Size) (gossip.DDA, method.Objective) {
	dda := gossip.DDA{Rows: gossip.Rows{Batch: 1, Clip: 1, Sampling: method.Fixed}, Weights: gossip.Linear, Gamma: 20}
	obj := method.Objective{Reg: reg.L2{Lambda: mu}}
	if j.reg == "l1" {
		dda.Weights, dda.Gamma, obj.Reg = gossip.Constant, 0.01, reg.L1{Lambda: phi}
	}
	if j.proven() {
		dda.Refresh = true
		if j.reg == "l2" {
			dda.Gamma = noGamma
		}
	}
	if j.kind == soundMany {
		dda.Batch = min(size.Batch, j.t.q/4)
	}
	return dda, obj
}

// schedule says which nodes are active when, for a number of epochs.
func (j job) schedule(batch int) *gossip.Schedule {
	share := shares[j.kind]
	s := &gossip.Schedule{Graph: gossip.Complete(nodes), Kind: gossip.Matching, Count: int(math.Round(share * nodes / 2)),
		Seed:   j.seed,
		Rounds: max(1, int(math.Round(epochs*float64(j.t.q)/share/float64(batch))))}
	if j.kind == allActive {
		s.Kind, s.Count = gossip.All, 0
	}
	return s
}

// configure adds the noise, which c states, and the step sizes.
func (j job) configure(
	dda gossip.DDA, facts oracle.Public, obj method.Objective, s *gossip.Schedule, c *Curve,
) (gossip.Method, error) {
	terms := method.Terms{Off: true, Accountant: account.Best{}}
	terms.Budget = privacy.Budget{Epsilon: j.epsilon, Delta: delta, Adjacency: privacy.AddRemove}
	switch j.kind {
	case plain, provenTenth, provenFifth:
		dda.Clip = 0
	case soundOne, soundMany:
		// What the paper does not have: a sample of which a row is by itself, and noise for the owner's activations.
		dda.Sampling, terms.Off = method.Poisson, false
	default:
		// One record, drawn uniformly, with Theorem 1's noise: a multiplier of half of it under replace-one (R8).
		c.Noise = claimed.P3Noise(j.t.paper, shares[j.kind], j.epsilon)
		dda.Noise, terms.Off = c.Noise/2, false
		terms.Budget.Adjacency = privacy.ReplaceOne
	}
	fitted, err := dda.Configure(facts, obj, s, slices.Max(s.Counts()), terms)
	if err == nil && j.sound() {
		c.Noise = fitted.NoiseMultiplier() / float64(dda.Batch)
	}
	return fitted, err
}

// train trains all nodes. It returns their iterates by point of the curve and node, and sets the points' iterations.
func (j job) train(
	ctx context.Context, p *paper.Problem, s *gossip.Schedule, m gossip.Method, obj method.Objective, c *Curve,
) ([][][]float64, error) {
	var methods []gossip.Method
	var oracles []oracle.Oracle
	for i := range nodes {
		own := paper.Problem{Table: j.t.own[i], Model: p.Model, Public: p.Public}
		o, err := own.Oracle(nil, uint64(i)<<8+j.seed, 0)
		if err != nil {
			return nil, err
		}
		defer o.Close()
		methods, oracles = append(methods, m), append(oracles, o)
	}
	at := make([][][]float64, points)
	for k := range at {
		at[k] = make([][]float64, nodes)
		c.Iterations = append(c.Iterations, max(1, int(float64(s.Rounds)*math.Pow(10, float64(k+1-points)/4))))
	}
	ends, err := gossip.Train(ctx, s, gossip.NewLocal(s.Graph), methods, oracles, obj, func(node int) gossip.Watch {
		k := 0
		return func(round int, out func([]float64)) {
			for ; k < points-1 && round+1 >= c.Iterations[k]; k++ {
				at[k][node] = make([]float64, p.Public.Dim)
				out(at[k][node])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	at[points-1] = ends
	zero := make([]float64, p.Public.Dim)
	for k := range at {
		for i := range at[k] {
			if at[k][i] == nil { // not active since the previous point
				at[k][i] = zero
				if k > 0 {
					at[k][i] = at[k-1][i]
				}
			}
		}
	}
	return at, nil
}

// measure sets what the curve says of the nodes' iterates: the objective, the accuracy, and for the bounds how far the
// nodes are from the optimum and from each other.
func (j job) measure(ctx context.Context, p *paper.Problem, r reg.Regularizer, at [][][]float64, c *Curve) (err error) {
	var best *Least
	bounded := j.proven() || j.seed == seed && (j.kind == tenth || j.kind == fifth)
	if bounded {
		if best, err = j.t.least(ctx, j.reg); err != nil {
			return err
		}
	}
	for k := range at {
		w := gossip.Mean(at[k])
		if bounded {
			distance, spread := 0.0, 0.0
			for _, x := range at[k] {
				distance += math.Pow(apart(x, best.X), 2) / nodes
				spread += apart(x, w) / nodes
			}
			c.Distance, c.Spread = append(c.Distance, distance), append(c.Spread, spread)
		}
		value := 0.0
		for _, own := range j.t.own {
			value += paper.Loss(p.Model, w, own, nil) / nodes
		}
		c.Objective = append(c.Objective, value+r.Value(w))
	}
	_, c.Accuracy = paper.Score(p.Model, gossip.Mean(at[points-1]), j.t.test, nil)
	return nil
}

// noGamma stands for γ = 0, which asks for Sotto's default.
const noGamma = 1e-300

// apart is ‖x − y‖.
func apart(x, y []float64) float64 {
	square := 0.0
	for j := range x {
		square += (x[j] - y[j]) * (x[j] - y[j])
	}
	return math.Sqrt(square)
}

// jobs are all runs.
func jobs(tables []*table, seeds int) (list []job) {
	for _, t := range tables {
		if t.few {
			list = append(list, job{t, optimum, "l2", 0, seed}, job{t, tenth, "l2", 0.8, seed}, job{t, fifth, "l2", 0.8, seed},
				job{t, plain, "l2", 0, seed})
			continue
		}
		for more := range uint64(seeds - 1) {
			for _, k := range []string{tenth, fifth, allActive} {
				list = append(list, job{t, k, "l2", 0.8, seed + 1 + more})
			}
		}
		for _, r := range []string{"l2", "l1"} {
			list = append(list, job{t, optimum, r, 0, seed})
			kinds := []string{tenth, fifth, soundOne, soundMany}
			if r == "l2" {
				kinds = append(kinds, allActive)
			}
			for _, k := range kinds {
				for _, e := range epsilons {
					list = append(list, job{t, k, r, e, seed})
				}
			}
			for _, k := range []string{plain, provenTenth, provenFifth} {
				list = append(list, job{t, k, r, 0, seed})
			}
		}
	}
	return list
}
