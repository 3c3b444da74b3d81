// Package p1 reproduces the experiments of P1, Kuru, Birbil, Gürbüzbalaban and
// Yıldırım, Differentially Private Accelerated Optimization Algorithms, SIAM J.
// Optim. 32 (2022): its figures, its claims as inequalities, and what the corrections
// of package schedule gain.
//
// It uses the library as anyone would: the methods of package method on a private oracle, with noise from a fixed
// seed. The table is synthetic, so that the smoothness constant may be taken from it, as P1 does; with real rows that
// would be an access that nothing charges (S-0d).
package p1

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
)

// A Size says how much of the experiment to run.
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
	dim       = 20
	lambda    = 0.01       // of λ‖x‖²
	mu        = 2 * lambda // strong convexity
	bound     = 20.        // on ‖u‖₁; S_1 = 2·bound
	start     = 10.        // every coordinate of x_0
	guess     = 10.        // E_0 in the choice of T′, as §5 says
	reference = 1000       // steps of NAG without noise, for F*
	drawn     = 40.        // E_0 with which (4.6) gives the T′ of the curves that are drawn in Figures 3 and 4
	seed      = 1
)

// inPaper is the m of the paper that a batch of this size stands for.
func (s Size) inPaper(m int) int { return Full.Batches[slices.Index(s.Batches, m)] }

// epsilon is the budget: 1 at 10⁵ rows.
func (s Size) epsilon() float64 { return 1e5 / float64(s.Rows) }

// A problem is the synthetic table with what is derived from it.
type problem struct {
	*paper.Problem
	size   Size
	smooth float64 // L: the largest singular value of UᵀU/n, plus 2λ
	least  float64 // F*, by NAG without noise
	spread float64 // of the noise, in what (3.5) says
}

// newProblem draws a table by its number: features uniform on (0, 1), labels sign(u·w) for a w of standard normal
// coordinates.
func newProblem(s Size, table uint64) (*problem, error) {
	src := noise.NewSeeded(seed, "table", table)
	w := make([]float64, dim)
	for j := range w {
		w[j] = paper.Normal(src)
	}
	b := paper.NewBuilder(dim, math.Sqrt(dim), 0x1p-17)
	gram := mat.NewSymDense(dim, nil)
	for range s.Rows {
		z, u := 0.0, make([]float64, dim)
		for j := range u {
			u[j] = math.Floor(src.Float64()*0x1p17) * 0x1p-17 // on the table's unit
			z += w[j] * u[j]
		}
		gram.SymRankOne(gram, 1/float64(s.Rows), mat.NewVecDense(dim, u))
		b.Add(nil, u, 1, z > 0)
	}
	rows, err := paper.NewProblem(b.Table, "logistic", privacy.ReplaceOne)
	if err != nil {
		return nil, err
	}
	rows.Public.L1Bound = bound
	var eigen mat.EigenSym
	if !eigen.Factorize(gram, false) {
		return nil, errors.New("p1: the eigenvalues of the table were not found")
	}
	p := &problem{rows, s, slices.Max(eigen.Values(nil)) + mu, math.Inf(1), 1}
	m := method.NAG{P1: method.P1{Steps: reference, Rate: 1 / p.smooth, Mu: mu, Gradient: method.Gradient{Off: true}}}
	return p, p.run(context.Background(), m, nil, seed, func(step int, x []float64) {
		if step > reference-100 {
			p.least = math.Min(p.least, p.value(x))
		}
	})
}

// value is F at x.
func (p *problem) value(x []float64) float64 {
	return paper.Loss(p.Model, x, p.Table, nil) + reg.L2{Lambda: mu}.Value(x)
}

// first is x_0.
var first = slices.Repeat([]float64{start}, dim)

// run runs a method and calls visit with each iterate.
func (p *problem) run(ctx context.Context, m method.Method, meter account.Meter, stream uint64,
	visit func(step int, x []float64)) error {
	o, err := p.Oracle(meter, stream, 1)
	if err != nil {
		return err
	}
	defer o.Close()
	obj := method.Objective{Reg: paper.Around{Curved: reg.L2{Lambda: mu}, W0: first}}
	for st, err := range m.Run(ctx, &paper.From{Oracle: o, W0: first}, obj) {
		if err != nil {
			return err
		}
		if st.Status == method.Running {
			visit(st.T, paper.Plus(st.W, first))
		}
	}
	return nil
}

// The methods in the order of the figures; those whose names end in * have the number
// of steps and the schedule as corrected, those that end in ° the T′ of the paper's curves.
var (
	asPrinted = []string{"DP-GD", "DP-HB", "DP-NAG", "DP-NAG-opt", "DP-MASG", "DP-MASG-opt"}
	corrected = []string{"DP-NAG-opt*", "DP-MASG-opt*"}
	asDrawn   = []string{"DP-NAG-opt°", "DP-MASG-opt°"}
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
	common := method.P1{Steps: c.T, Rate: c.C / p.smooth, Mu: mu, Smooth: p.smooth,
		Gradient: method.Gradient{Clip: bound, Laplace: true}}
	if c.M < n {
		common.Gradient.Batch = c.M
	}
	f := schedule.Convex{Mu: mu, L: p.smooth}
	stages := func(steps int) []schedule.Stage {
		if strings.HasPrefix(c.Method, "DP-MASG") {
			return schedule.MASG(steps, f, common.Rate, schedule.MASGFirst(f), 1)
		}
		return []schedule.Stage{{Steps: steps, Rate: common.Rate}}
	}
	spread := func(factor, guess float64, share func(a []float64) ([]float64, error)) error {
		// T′ by (4.6), at m = n as P1 does.
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
	var err error
	switch {
	case strings.HasSuffix(c.Method, "-opt"):
		err = spread(1, guess, func(a []float64) ([]float64, error) { return schedule.Pure(a, s.epsilon()) })
	case strings.HasSuffix(c.Method, "-opt°"):
		err = spread(1, drawn, func(a []float64) ([]float64, error) { return schedule.Pure(a, s.epsilon()) })
	case strings.HasSuffix(c.Method, "-opt*"):
		err = spread(2, guess, func(a []float64) ([]float64, error) { return schedule.PureSampled(a, s.epsilon(), c.M, n) })
	default:
		common.Gradient.Noise = p.spread / schedule.Inner(s.epsilon()/float64(c.T), c.M, n) // (3.5)
	}
	c.Taken = common.Steps
	nag, masg := method.NAG{P1: common}, method.MASG{P1: common}
	return map[string]method.Method{"DP-GD": method.GD{P1: common}, "DP-HB": method.SHB{P1: common}, "DP-NAG": nag,
		"DP-MASG":    masg,
		"DP-NAG-opt": method.NAGOpt{NAG: nag}, "DP-MASG-opt": method.MASGOpt{MASG: masg}}[strings.TrimRight(c.Method,
		"*°")], err
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

// A job is a run of a curve.
type job struct {
	curve *Curve
	m     method.Method
	run   int
}

// curves runs the experiment.
func (p *problem) curves(ctx context.Context, l *paper.Lab) ([]*Curve, error) {
	var all []*Curve
	twin := map[*Curve]*Curve{} // T′ below T: the same runs for every such T
	var jobs []job
	for _, m := range p.size.Batches {
		for _, c := range p.size.Rates {
			same := map[string]*Curve{}
			for _, steps := range p.size.Steps {
				for _, name := range slices.Concat(asPrinted, corrected, asDrawn) {
					curve := &Curve{M: m, T: steps, C: c, Method: name}
					fitted, err := p.fitted(curve)
					if err != nil {
						return nil, err
					}
					all = append(all, curve)
					key := fmt.Sprint(name, curve.Taken)
					if twin[curve] = same[key]; twin[curve] != nil {
						continue
					}
					if curve.Taken < steps {
						same[key] = curve
					}
					for run := range p.size.Runs {
						jobs = append(jobs, job{curve, fitted, run})
					}
				}
			}
		}
	}
	// Long runs first, so that the workers end together.
	slices.SortStableFunc(jobs, func(a, b job) int { return b.curve.Taken*b.curve.M - a.curve.Taken*a.curve.M })
	gaps, err := paper.Each(ctx, l, jobs, p.one)
	if err != nil {
		return nil, err
	}
	runs := map[*Curve][][]float64{}
	for i, j := range jobs {
		runs[j.curve] = append(runs[j.curve], gaps[i])
	}
	for _, c := range all {
		if t := twin[c]; t != nil {
			c.Step, c.Gap, c.SD = t.Step, t.Gap, t.SD
			continue
		}
		c.Step = recorded(c.Taken)
		for i := range c.Step {
			mean := paper.MeanOf(runs[c], func(gap []float64) float64 { return gap[i] })
			c.Gap, c.SD = append(c.Gap, mean.Value), append(c.SD, mean.SD)
		}
	}
	return all, nil
}

// one is F(x_t) − F* of one run at the recorded steps.
func (p *problem) one(ctx context.Context, j job) ([]float64, error) {
	plan, err := j.m.Plan(p.Public)
	if err != nil {
		return nil, err
	}
	// The noise is that of the formulas, whose rounding may be off by a last digit.
	budget := privacy.Budget{Epsilon: p.size.epsilon() / p.spread * (1 + 1e-9), Adjacency: privacy.ReplaceOne}
	meter, err := account.NewPlan(plan, account.Pure{}, budget)
	if err != nil {
		return nil, err
	}
	c, steps := j.curve, recorded(j.curve.Taken)
	gap := []float64{p.value(first) - p.least}
	stream := noise.NewSeeded(seed, fmt.Sprintf("run %d %g %d %s", c.M, c.C, c.T, c.Method), uint64(j.run)).Uint64()
	return gap, p.run(ctx, j.m, meter, stream, func(step int, x []float64) {
		if step == steps[len(gap)] {
			gap = append(gap, p.value(x)-p.least)
		}
	})
}
