package p1

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/paper"
)

//go:embed page.html
var body string

// Experiment is the reproduction.
var Experiment = paper.Experiment{
	Name:  "p1",
	Short: "P1: accelerated methods with optimal noise schedules",
	Long: `P1 is Kuru, Birbil, Gürbüzbalaban and Yıldırım, Differentially Private Accelerated
Optimization Algorithms, 2022. This runs its experiments on a synthetic table and writes
Figures 1 to 4 as CSV and SVG, the paper's claims as inequalities that hold or fail, and what
the corrected schedules gain, with one page of HTML.

--small takes less than a minute: fewer rows, with ε·n and m as in the paper. --full is the paper's
size: 100,000 rows, 20 runs of each curve; minutes.`,
	Example: `  sotto paper p1
  sotto paper p1 --full --out p1-full`,
	Small: "fewer rows and runs", Full: "the size of the paper",
	Page:  body,
	Seeds: "1",
	Run:   paper.Sized(Small, Full, run),
}

// A Report is the outcome.
type Report struct {
	Size    Size
	Epsilon float64
	Smooth  float64 // L of the table
	Least   float64 // F*
	Start   float64 // E_0 = F(x_0) − F*
	Counter string
	Curves  []*Curve
	Gains   []Gain
	Drawn   []Drawn
}

func run(ctx context.Context, l *paper.Lab, size Size) (*paper.Results, error) {
	p, err := newProblem(size, 0)
	if err != nil {
		return nil, err
	}
	curves, err := p.curves(ctx, l)
	if err != nil {
		return nil, err
	}
	second, err := schedules()
	if err != nil {
		return nil, err
	}
	r := &Report{Size: size, Epsilon: size.epsilon(), Smooth: p.smooth, Least: p.least, Start: curves[0].Gap[0], Counter: counterexample(), Curves: curves}
	r.Gains = r.gains()
	similar, err := newProblem(size, similarTable)
	if err != nil {
		return nil, err
	}
	if r.Drawn, err = r.drawn(ctx, l, similar); err != nil {
		return nil, err
	}
	return &paper.Results{R: r, Tables: []paper.Table{r.lengths(), r.gained(), r.beside(similar)}, Claims: r.claims(), Figures: append([]paper.Figure{heavyBall(), second}, r.errors()...),
		Data: []paper.File{{Name: "curves.csv", Text: r.csv()}}}, nil
}

// published are the T′ of DP-NAG-opt at which the curves of Figure 3 end, by c; the text prints none.
var published = map[float64]int{0.1: 396, 0.5: 191, 1: 136}

// lengths is the table of T′.
func (r *Report) lengths() paper.Table {
	t := paper.Table{Title: "The number of steps T′ that (4.6) chooses",
		Note: "DP-NAG-opt at m = n and the largest T. §5 states E₀ = 10, with which (4.6) chooses fewer steps than the curves of Figure 3 have. With E₀ = 40 it chooses theirs; " +
			fmt.Sprintf("so do E₀ = 10, twice the weight of E₀ and half the weight of the noise. The true E₀ of this table is %.1f. Both are run: ° marks E₀ = 40.", r.Start),
		Head: []string{"c", "T′, E₀ = 10", "error", "T′, E₀ = 40", "error", "T′ of the paper's curve"}}
	s := r.Size
	n, last := s.Batches[len(s.Batches)-1], s.Steps[len(s.Steps)-1]
	for _, c := range s.Rates {
		a, b := r.find(n, last, c, "DP-NAG-opt"), r.find(n, last, c, "DP-NAG-opt°")
		t.Add(c, a.Taken, a.Final(), b.Taken, b.Final(), published[c])
	}
	return t
}

// gained is the table of gains.
func (r *Report) gained() paper.Table {
	t := paper.Table{Title: "What the corrections gain",
		Note: "(4.2) lost a factor 2: " + r.Counter + ". It changes T′. On samples the schedule of (4.5) is not optimal; the exact one is. Both leave the privacy as it is. Mean errors at the largest T:",
		Head: []string{"m", "c", "method", "T′", "error", "T′ corrected", "error corrected"}}
	for _, g := range r.Gains {
		t.Add(g.M, g.C, g.Method, g.Steps, g.Error, g.Corrected, g.ErrorOfFixed)
	}
	return t
}

// counterexample is E_1/E_0 of NAG on (μx²+Ly²)/2 from (1, 0) with α = 1/L and κ = 100,
// and what (4.2) says that it is at most.
func counterexample() string {
	f := schedule.Convex{Mu: 0.01, L: 1}
	a0, _ := f.Weights([]schedule.Stage{{Steps: 1, Rate: 1}})
	e := (1 - f.Mu/f.L) * (1 - f.Mu/f.L)
	return fmt.Sprintf("E₁/E₀ = %.4f, and (4.2) says at most %.1f; with the factor 2, at most %.1f", e, a0/2, a0)
}
