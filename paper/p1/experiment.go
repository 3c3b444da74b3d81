// Package p1 reproduces the experiments of P1, Kuru, Birbil, Gürbüzbalaban and
// Yıldırım, Differentially Private Accelerated Optimization Algorithms, SIAM J.
// Optim. 32 (2022): its figures, its claims as inequalities, and what the corrections
// of package schedule gain.
//
// It uses the library as anyone would: the methods of package method, through the door
// of oracle/private, with noise from a fixed seed. The table is synthetic, so that the
// smoothness constant may be taken from it, as P1 does; with real rows that would be a
// look (S-0d).
package p1

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Size says how much of the experiment is run.
type Size struct {
	Name    string
	Rows    int       // n
	Batches []int     // m; the last is n
	Steps   []int     // T
	Rates   []float64 // c, the step size in 1/L
	Runs    int       // of each curve
}

// Full is the experiment of the paper. Small is for a minute: fewer rows, with ε·n and m
// as in the paper, so that noise and sampling are much the same.
var (
	Full  = Size{"full", 100_000, []int{1_000, 100_000}, []int{100, 200, 500, 1000}, []float64{0.1, 0.5, 1}, 20}
	Small = Size{"small", 10_000, []int{1_000, 10_000}, []int{100, 200, 500, 1000}, []float64{0.1, 1}, 4}
)

// The constants of P1 §5. That features are uniform on (0, 1), so that the L1 bound is
// never active, is from the authors' code.
const (
	dim    = 20
	lambda = 0.01       // of λ‖x‖²
	mu     = 2 * lambda // strong convexity
	bound  = 20.        // on ‖u‖₁; S_1 = 2·bound
	start  = 10.        // every coordinate of x_0
	guess  = 10.        // E_0 in the choice of T′
	seed   = 1
)

// epsilon is the budget: 1 at 10⁵ rows.
func (s Size) epsilon() float64 { return 1e5 / float64(s.Rows) }

// A problem is the synthetic table with what is derived from it.
type problem struct {
	size   Size
	table  *data.Table
	model  model.Model
	facts  oracle.Public
	smooth float64 // L: the largest singular value of UᵀU/n, plus 2λ
	least  float64 // F*, by 1000 steps of NAG without noise
}

// newProblem draws the table: features uniform on (0, 1), labels sign(u·w) for a w of
// standard normal coordinates, which are twelve uniform ones, summed.
func newProblem(s Size) (*problem, error) {
	p := &problem{size: s}
	r := math.Sqrt(dim)
	m, err := model.New("logistic", model.Options{Dim: dim, Classes: 2, NormBound: r})
	if err != nil {
		return nil, err
	}
	p.model = m
	p.facts = oracle.Public{Dim: dim, Rows: s.Rows, Classes: 2, Adjacency: privacy.ReplaceOne, NormBound: r, L1Bound: bound,
		Lipschitz: oracle.Bound(m.Facts().Lipschitz), Smooth: oracle.Bound(m.Facts().Smooth)}
	src := noise.NewSeeded(seed, "table", 0)
	w := make([]float64, dim)
	for j := range w {
		for range 12 {
			w[j] += src.Float64()
		}
		w[j] -= 6
	}
	p.table = &data.Table{Dim: dim, Classes: 2, NormBound: r, Unit: 0x1p-17, Labelled: true}
	var gram [dim][dim]float64
	for left := s.Rows; left > 0; {
		b := &data.Block{N: min(left, data.BlockRows), Dim: dim}
		left -= b.N
		for range b.N {
			z, square := 0.0, 0.0
			u := make([]float64, dim)
			for j := range u {
				u[j] = math.Floor(src.Float64()*0x1p17) * 0x1p-17 // on the table's unit
				z, square = z+w[j]*u[j], square+u[j]*u[j]
				b.X = append(b.X, float32(u[j]))
			}
			for i := range u {
				for j := range u {
					gram[i][j] += u[i] * u[j] / float64(s.Rows)
				}
			}
			y := float32(0)
			if z > 0 {
				y = 1
			}
			b.Y = append(b.Y, y)
			b.Norm = append(b.Norm, math.Nextafter32(float32(math.Sqrt(square)), 10))
		}
		p.table.Blocks = append(p.table.Blocks, b)
	}
	p.smooth = largest(gram) + mu
	return p, p.solve()
}

// largest is the largest eigenvalue of a positive matrix, by powers.
func largest(a [dim][dim]float64) float64 {
	v := [dim]float64{}
	for j := range v {
		v[j] = 1
	}
	norm := 0.0
	for range 500 {
		var next [dim]float64
		norm = 0
		for i := range a {
			for j := range a {
				next[i] += a[i][j] * v[j]
			}
			norm += next[i] * next[i]
		}
		norm = math.Sqrt(norm)
		for i := range v {
			v[i] = next[i] / norm
		}
	}
	return norm
}

// value is F at x.
func (p *problem) value(x []float64, ws *model.Workspace, loss []float64) float64 {
	sum := 0.0
	for _, b := range p.table.Blocks {
		p.model.Eval(x, data.View{Block: b, To: b.N}, ws).Loss(loss[:b.N])
		for _, l := range loss[:b.N] {
			sum += l
		}
	}
	f := sum / float64(p.size.Rows)
	for _, v := range x {
		f += lambda * v * v
	}
	return f
}

// Methods begin at 0, the experiment at x_0: shifted moves the door, and around the
// regulariser, by x_0.
type shifted struct{ oracle.Oracle }

type shiftedBatch struct{ oracle.Batch }

func (s shifted) Batch(ctx context.Context, how sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	b, err := s.Oracle.Batch(ctx, how, pay...)
	return shiftedBatch{b}, err
}

func (b shiftedBatch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	return b.Batch.Grad(q, moved(w))
}

// around is λ‖x‖² of the moved parameters.
type around struct{ reg.L2 }

func (r around) Value(w []float64) float64 { return r.L2.Value(moved(w)) }
func (r around) AddGrad(dst, w []float64)  { r.L2.AddGrad(dst, moved(w)) }
func objective() method.Objective          { return method.Objective{Reg: around{reg.L2{Lambda: mu}}} }

func moved(w []float64) []float64 {
	x := make([]float64, len(w))
	for j := range w {
		x[j] = w[j] + start
	}
	return x
}

// run runs a fitted method and calls visit with each iterate.
func (p *problem) run(ctx context.Context, m method.Method, meter account.Meter, stream uint64, visit func(step int, x []float64)) error {
	door, err := private.New(private.Config{Table: p.table, Model: p.model, Facts: p.facts, Meter: meter,
		Streams: noise.SeededStreams(stream), Journal: paper.Silent{}, Workers: 1})
	if err != nil {
		return err
	}
	defer door.Close()
	for st, err := range m.Run(ctx, shifted{door}, objective()) {
		if err != nil {
			return err
		}
		if st.Status == method.Running {
			visit(st.T, moved(st.W))
		}
	}
	return nil
}

// solve finds F*.
func (p *problem) solve() error {
	var ws model.Workspace
	loss := make([]float64, data.BlockRows)
	p.least = math.Inf(1)
	m := method.NAG{P1: method.P1{Steps: 1000, Rate: 1 / p.smooth, Mu: mu, Off: true}}
	return p.run(context.Background(), m, paper.Free(privacy.ReplaceOne), seed, func(step int, x []float64) {
		if step > 900 {
			p.least = math.Min(p.least, p.value(x, &ws, loss))
		}
	})
}

// The methods in the order of the figures; those whose names end in * have the number
// of steps and the schedule as corrected.
var (
	asPrinted = []string{"DP-GD", "DP-HB", "DP-NAG", "DP-NAG-opt", "DP-MASG", "DP-MASG-opt"}
	corrected = []string{"DP-NAG-opt*", "DP-MASG-opt*"}
)

// A Curve is the mean error of a method against its steps.
type Curve struct {
	M, T   int
	C      float64
	Method string
	Taken  int // T′ ≤ T, the steps taken
	Step   []int
	Gap    []float64 // mean of F(x_t) − F*
	SD     []float64 // standard deviation over the runs
}

// Final is the mean error at the end.
func (c Curve) Final() float64 { return c.Gap[len(c.Gap)-1] }

// fitted makes the method of a curve, with all its noise.
func (p *problem) fitted(c *Curve) (method.Method, error) {
	s, n := p.size, p.size.Rows
	common := method.P1{Steps: c.T, Rate: c.C / p.smooth, Mu: mu, Smooth: p.smooth, Clip: bound, Laplace: true}
	if c.M < n {
		common.Batch = c.M
	}
	f := schedule.Convex{Mu: mu, L: p.smooth}
	stages := func(steps int) []schedule.Stage {
		if c.Method == "DP-MASG-opt" || c.Method == "DP-MASG-opt*" {
			return schedule.MASG(steps, f, common.Rate, schedule.MASGFirst(f), 1)
		}
		return []schedule.Stage{{Steps: steps, Rate: common.Rate}}
	}
	even := func() {
		common.Noise = 1 / schedule.Inner(s.epsilon()/float64(c.T), c.M, n) // (3.5)
	}
	spread := func(factor float64, share func(a []float64) ([]float64, error)) error {
		// T′ by (4.6), at m = n as P1 does, with E_0 = 10.
		common.Steps, _ = schedule.Steps(c.T, func(steps int) float64 {
			a0, a := f.Weights(stages(steps))
			sum := 0.0
			for _, w := range a {
				sum += math.Cbrt(w)
			}
			b := 2 * bound / (float64(n) * s.epsilon())
			return factor*a0/2*guess + dim*b*b*sum*sum*sum
		})
		_, a := f.Weights(stages(common.Steps))
		shares, err := share(a)
		for t, e := range shares {
			shares[t] = 1 / schedule.Inner(e, c.M, n)
		}
		common.Schedule = shares
		return err
	}
	printed := func(a []float64) ([]float64, error) { return schedule.Pure(a, s.epsilon()) }
	exact := func(a []float64) ([]float64, error) { return schedule.PureSampled(a, s.epsilon(), c.M, n) }
	var m method.Method
	var err error
	switch c.Method {
	case "DP-GD":
		even()
		m = method.GD{P1: common}
	case "DP-HB":
		even()
		m = method.SHB{P1: common}
	case "DP-NAG":
		even()
		m = method.NAG{P1: common}
	case "DP-MASG":
		even()
		m = method.MASG{P1: common}
	case "DP-NAG-opt":
		err = spread(1, printed)
		m = method.NAGOpt{NAG: method.NAG{P1: common}}
	case "DP-NAG-opt*":
		err = spread(2, exact)
		m = method.NAGOpt{NAG: method.NAG{P1: common}}
	case "DP-MASG-opt":
		err = spread(1, printed)
		m = method.MASGOpt{MASG: method.MASG{P1: common}}
	case "DP-MASG-opt*":
		err = spread(2, exact)
		m = method.MASGOpt{MASG: method.MASG{P1: common}}
	default:
		err = fmt.Errorf("p1: there is no method %q", c.Method)
	}
	c.Taken = common.Steps
	return m, err
}

// recorded lists the steps at which the error is computed: all of the first few, then
// some 20% apart, and the last.
func recorded(steps int) []int {
	all := []int{0}
	for t := 1; t < steps; t = max(t+1, t*6/5) {
		all = append(all, t)
	}
	return append(all, steps)
}

// curves runs the experiment. done is told how many of all runs are over.
func (p *problem) curves(ctx context.Context, done func(runs, all int)) ([]Curve, error) {
	type job struct {
		curve *Curve
		m     method.Method
		run   int
		gap   []float64
	}
	var all []*Curve
	same := map[string]*Curve{} // T′ below T: the same runs for every such T
	twin := map[*Curve]*Curve{}
	var jobs []*job
	for _, m := range p.size.Batches {
		for _, c := range p.size.Rates {
			for _, steps := range p.size.Steps {
				for _, name := range append(slices.Clone(asPrinted), corrected...) {
					curve := &Curve{M: m, T: steps, C: c, Method: name}
					fitted, err := p.fitted(curve)
					if err != nil {
						return nil, err
					}
					all = append(all, curve)
					key := fmt.Sprint(m, c, name, curve.Taken)
					if curve.Taken < steps && same[key] != nil {
						twin[curve] = same[key]
						continue
					}
					if curve.Taken < steps {
						same[key] = curve
					}
					for run := range p.size.Runs {
						jobs = append(jobs, &job{curve: curve, m: fitted, run: run})
					}
				}
			}
		}
	}
	// The long ones first, so that the workers end together.
	order := slices.Clone(jobs)
	slices.SortStableFunc(order, func(a, b *job) int { return b.curve.Taken*b.curve.M - a.curve.Taken*a.curve.M })
	queue := make(chan *job)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	over := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var ws model.Workspace
			loss := make([]float64, data.BlockRows)
			for j := range queue {
				err := p.one(ctx, j.m, j.curve, j.run, &j.gap, &ws, loss)
				mu.Lock()
				if over++; err != nil && failed == nil {
					failed = err
					cancel()
				}
				if done != nil {
					done(over, len(jobs))
				}
				mu.Unlock()
			}
		}()
	}
	for _, j := range order {
		queue <- j
	}
	close(queue)
	wg.Wait()
	if failed != nil {
		return nil, failed
	}
	for _, j := range jobs {
		c := j.curve
		if c.Step == nil {
			c.Step = recorded(c.Taken)
			c.Gap, c.SD = make([]float64, len(c.Step)), make([]float64, len(c.Step))
		}
		for i, g := range j.gap {
			c.Gap[i] += g / float64(p.size.Runs)
		}
	}
	for _, j := range jobs {
		for i, g := range j.gap {
			d := g - j.curve.Gap[i]
			j.curve.SD[i] += d * d / float64(max(1, p.size.Runs-1))
		}
	}
	var out []Curve
	for _, c := range all {
		if t := twin[c]; t != nil {
			c.Step, c.Gap, c.SD = t.Step, t.Gap, t.SD
		}
	}
	for _, c := range all {
		if twin[c] == nil {
			for i := range c.SD {
				c.SD[i] = math.Sqrt(c.SD[i])
			}
		}
	}
	for _, c := range all {
		out = append(out, *c)
	}
	return out, nil
}

// one is one run of a curve.
func (p *problem) one(ctx context.Context, m method.Method, c *Curve, run int, gap *[]float64, ws *model.Workspace, loss []float64) error {
	plan, err := m.Plan(p.facts)
	if err != nil {
		return err
	}
	// The noise is that of the formulas, whose rounding may be off by a last digit.
	budget := privacy.Budget{Epsilon: p.size.epsilon() * (1 + 1e-9), Adjacency: privacy.ReplaceOne}
	meter, err := account.NewPlan(plan, account.Pure{}, budget)
	if err != nil {
		return err
	}
	steps := recorded(c.Taken)
	*gap = append(*gap, p.value(moved(make([]float64, dim)), ws, loss)-p.least)
	stream := noise.NewSeeded(seed, fmt.Sprintf("run %d %g %d %s", c.M, c.C, c.T, c.Method), uint64(run)).Uint64()
	return p.run(ctx, m, meter, stream, func(step int, x []float64) {
		if step == steps[len(*gap)] {
			*gap = append(*gap, p.value(x, ws, loss)-p.least)
		}
	})
}
