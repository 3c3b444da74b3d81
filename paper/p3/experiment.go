// Package p3 reproduces the experiments of P3, Distributed Empirical Risk Minimization With
// Differential Privacy: its Figures 1 to 4, its claims as inequalities, what its noise really gives, and what noise
// that holds its ε reaches with samples of more than one row.
//
// It uses the library as anyone would: package gossip, each owner behind a door of oracle/private, noise
// from a fixed seed. The published noise protects nobody and stands here as published.
package p3

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/account/claimed"
	"github.com/sottodp/sotto/privacy/noise"
)

// A Size says how much of the experiment is run.
type Size struct {
	Name   string
	Dense  [2]int // rows of an owner and features, of the table in the shape of epsilon
	Sparse [2]int // likewise, rcv1
	Batch  int    // rows of a local sample
}

// Small is for a minute, with the noise of the paper. Full has ten times the rows.
var (
	Small = Size{Name: "small", Dense: [2]int{400, 500}, Sparse: [2]int{300, 1000}, Batch: 20}
	Full  = Size{Name: "full", Dense: [2]int{4000, 2000}, Sparse: [2]int{3000, 4000}, Batch: 64}
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

// points is how many points a curve has.
const points = 12

// A Curve is one run.
type Curve struct {
	Table, Reg, Kind string
	Epsilon          float64 // claimed, or kept; +Inf without noise
	Noise            float64 // standard deviation of a coordinate of ζ
	Epochs           []float64
	Objective        []float64 // F at the mean of the nodes
	Accuracy         float64   // on rows that nobody trained on
}

// Last is the objective in the end.
func (c *Curve) Last() float64 { return c.Objective[len(c.Objective)-1] }

// The kinds of runs.
const (
	allActive = "[19], all active"
	tenth     = "Algorithm 1, ι = 0.1"
	fifth     = "Algorithm 1, ι = 0.2"
	soundOne  = "sound, one row"
	soundMany = "sound, local samples"
	plain     = "no noise"
)

// shares are the ι of the kinds.
var shares = map[string]float64{allActive: 1, tenth: 0.1, fifth: 0.2, soundOne: 0.2, soundMany: 0.2, plain: 0.2}

// run does one.
func (t *table) run(ctx context.Context, size Size, kind, regular string, epsilon float64) (*Curve, error) {
	dim := t.own[0].Dim
	m, err := model.New("svm", model.Options{Dim: dim, Classes: 2, NormBound: 1})
	if err != nil {
		return nil, err
	}
	share := shares[kind]
	facts := oracle.Public{Dim: dim, Rows: t.q, Classes: 2, Adjacency: privacy.ReplaceOne, NormBound: 1,
		Lipschitz: oracle.Bound(m.Facts().Lipschitz), Smooth: oracle.Bound(m.Facts().Smooth)}
	dda := gossip.DDA{Rows: gossip.Rows{Batch: 1, Clip: 1, Sampling: method.Fixed}, Weights: gossip.Linear, Gamma: 20}
	obj := method.Objective{Reg: reg.L2{Lambda: mu}}
	if regular == "l1" {
		dda.Weights, dda.Gamma, obj.Reg = gossip.Constant, 0.01, reg.L1{Lambda: phi}
	}
	c := &Curve{Table: t.name, Reg: regular, Kind: kind, Epsilon: epsilon}
	if kind == soundMany || kind == plain {
		dda.Batch = min(size.Batch, t.q/4)
	}
	s := &gossip.Schedule{Graph: gossip.Complete(nodes), Kind: gossip.Matching, Count: int(math.Round(share * nodes / 2)), Seed: seed,
		Rounds: max(1, int(math.Round(epochs*float64(t.q)/share/float64(dda.Batch))))}
	if kind == allActive {
		s.Kind, s.Count = gossip.All, 0
	}
	turns := 0
	for _, n := range s.Activations() {
		turns = max(turns, n)
	}
	terms := method.Terms{Off: true, Accountant: account.Best{}, Budget: privacy.Budget{Epsilon: epsilon, Delta: delta, Adjacency: privacy.AddRemove}}
	switch kind {
	case plain:
		dda.Clip = 0
	case soundOne, soundMany:
		// What the paper does not have: a sample of which a row is by itself, and noise for the owner's turns.
		facts.Adjacency, dda.Sampling, terms.Off = privacy.AddRemove, method.Poisson, false
	default:
		// One record, drawn uniformly, with Theorem 1's noise: a multiplier of half of it under replace-one (R8).
		c.Noise = claimed.P3Noise(t.paper, share, epsilon)
		dda.Noise, terms.Off = c.Noise/2, false
		terms.Budget.Adjacency = privacy.ReplaceOne
	}
	fitted, err := dda.Configure(facts, obj, s, turns, terms)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", t.name, kind, err)
	}
	if kind == soundOne || kind == soundMany {
		c.Noise = fitted.NoiseMultiplier() / float64(dda.Batch)
	}
	var methods []gossip.Method
	var doors []oracle.Oracle
	for i := range nodes {
		door, err := private.New(private.Config{Table: t.own[i], Model: m, Facts: facts, Meter: paper.Free(facts.Adjacency), Journal: paper.Silent{}, Streams: noise.SeededStreams(uint64(i)<<8 + seed)})
		if err != nil {
			return nil, err
		}
		defer door.Close()
		methods, doors = append(methods, fitted), append(doors, door)
	}
	at := make([][][]float64, points) // by point and node
	for k := range at {
		at[k] = make([][]float64, nodes)
	}
	ends, err := gossip.Train(ctx, s, gossip.NewLocal(s.Graph), methods, doors, obj, func(node int) gossip.Watch {
		k := 0
		return func(round int, out func([]float64)) {
			for ; k < points-1 && (round+1)*points >= (k+1)*s.Rounds; k++ {
				at[k][node] = make([]float64, dim)
				out(at[k][node])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	at[points-1] = ends
	zero := make([]float64, dim)
	for k := range at {
		for i := range at[k] {
			if at[k][i] == nil { // it has not spoken since the point before
				at[k][i] = zero
				if k > 0 {
					at[k][i] = at[k-1][i]
				}
			}
		}
		c.Epochs = append(c.Epochs, epochs*float64(k+1)/points)
		value, _ := evaluate(m, gossip.Mean(at[k]), t.own)
		c.Objective = append(c.Objective, value+obj.Reg.Value(gossip.Mean(at[k])))
	}
	_, c.Accuracy = evaluate(m, gossip.Mean(ends), []*data.Table{t.test})
	return c, nil
}

// evaluate is the mean loss of tables, each counting alike, and the share of rows on the right side.
func evaluate(m model.Model, w []float64, tables []*data.Table) (loss, accuracy float64) {
	var ws model.Workspace
	losses, out := make([]float64, data.BlockRows), make([]float64, data.BlockRows*m.Outputs())
	right, rows := 0, 0
	for _, t := range tables {
		sum, n := 0.0, 0
		for _, b := range t.Blocks {
			v := data.View{Block: b, To: b.N}
			m.Eval(w, v, &ws).Loss(losses[:b.N])
			m.Predict(out[:b.N*m.Outputs()], w, v, &ws)
			for i := range b.N {
				sum += losses[i]
				p := out[i*m.Outputs() : (i+1)*m.Outputs()]
				if (p[len(p)-1] > p[0]) == (b.Y[i] == 1) {
					right++
				}
			}
			n += b.N
		}
		rows += n
		loss += sum / float64(n) / float64(len(tables))
	}
	return loss, float64(right) / float64(rows)
}

// A job is a run that is to be done.
type job struct {
	t       *table
	kind    string
	reg     string
	epsilon float64
}

// all does the runs, as many at once as there are workers; a run has goroutines of its own, too.
func all(ctx context.Context, size Size, tables []*table, workers int, done func(runs, all int)) ([]*Curve, error) {
	var jobs []job
	for _, t := range tables {
		for _, r := range []string{"l2", "l1"} {
			kinds := []string{tenth, fifth, soundOne, soundMany}
			if r == "l2" {
				kinds = append(kinds, allActive)
			}
			for _, k := range kinds {
				for _, e := range epsilons {
					jobs = append(jobs, job{t, k, r, e})
				}
			}
			jobs = append(jobs, job{t, plain, r, math.Inf(1)})
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	curves := make([]*Curve, len(jobs))
	queue := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	over := 0
	for range workers {
		wg.Go(func() {
			for k := range queue {
				j := jobs[k]
				c, err := j.t.run(ctx, size, j.kind, j.reg, j.epsilon)
				if err != nil {
					stop(err)
					continue
				}
				mu.Lock()
				curves[k] = c
				if over++; done != nil {
					done(over, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	for k := range jobs {
		queue <- k
	}
	close(queue)
	wg.Wait()
	return curves, context.Cause(ctx)
}
