package p1

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/paper"
)

//go:embed page.html
var body string

// Experiment is the reproduction.
var Experiment = paper.Experiment{
	Of: of, Contents: contents, Record: record,
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
	Seeds: "1, with a stream of its own for each run of a curve",
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
	r := &Report{Size: size, Epsilon: size.epsilon(), Smooth: p.smooth, Least: p.least, Start: curves[0].Gap[0],
		Counter: counterexample(), Curves: curves}
	r.Gains = r.gains()
	similar, err := newProblem(size, similarTable)
	if err != nil {
		return nil, err
	}
	if r.Drawn, err = r.drawn(ctx, l, similar); err != nil {
		return nil, err
	}
	return &paper.Results{R: r,
		Tables: []paper.Table{r.printed(), r.lengths(), r.gained(), r.beside(similar), slips(), r.settings()},
		Claims: r.claims(), Figures: append([]paper.Figure{heavyBall(), second}, r.errors()...),
		Data: []paper.File{{Name: "curves.csv", Text: r.csv()}}}, nil
}

// printed are the results that §5 prints of the experiments.
func (r *Report) printed() paper.Table {
	t := paper.Table{Title: "What the paper prints",
		Note: "Figures 1 to 4 are only drawn: the paper prints no error. What it prints are settings (last table), and for two methods the T that is best at c = 1.",
		Head: []string{"from", "what", "paper", "Sotto", "ratio, or reason"}}
	n, fast := r.Size.Batches[len(r.Size.Batches)-1], r.Size.Rates[len(r.Size.Rates)-1]
	for _, m := range []struct {
		name, why string
		steps     int
	}{{"DP-HB", "", 100}, {"DP-GD", "a slip (table of slips)", 1000}} {
		_, best := r.best(n, fast, m.name)
		if best == m.steps {
			m.why = "1"
		}
		t.Add("§5", "best T of "+m.name+" at c = 1", m.steps, best, m.why)
	}
	return t
}

// settings are those that §3.2 and §5 print of the experiments.
func (r *Report) settings() paper.Table {
	t := paper.Table{Title: "Settings that the paper prints", Seeds: paper.NoSeed, Settings: true,
		Head: []string{"from", "what", "paper", "Sotto", "reason"}}
	s := r.Size
	add := func(from, what string, paper, ours any, why string) {
		if a, b := fmt.Sprint(paper), fmt.Sprint(ours); a == b {
			why = ""
		}
		t.Add(from, what, paper, ours, why)
	}
	list := func(v any) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") }
	n := s.Batches[len(s.Batches)-1]
	const less = "the size of this run, with ε·n and m as in the paper"
	add("§5", "rows n", 100_000, n, less)
	add("§5", "features d", 20, dim, "")
	add("§5", "λ", 0.01, lambda, "")
	add("§5", "bound on ‖u‖₁", 20, bound, "")
	add("§5", "S₁", 40, 2*bound, "")
	add("§5", "μ", 0.02, mu, "")
	add("§5", "ε", 1, r.Epsilon, less)
	add("§5", "m", "1000, 100000", list(s.Batches), less)
	add("§5", "T", "100, 200, 500, 1000", list(s.Steps), less)
	add("§5", "c", "0.1, 1", list(s.Rates), "0.5 is in the authors' code")
	add("§5", "coordinates of x₀", 10, start, "")
	add("§5", "runs of each curve", 20, s.Runs, "the size of this run")
	add("§5", "steps without noise for F*", 1000, reference, "")
	add("§5", "guess of E₀ for T′", 10, fmt.Sprintf("%v and %v", guess, drawn),
		fmt.Sprintf("both are run (table of T′); the true E₀ is %.1f", r.Start))
	add("§3.2", "Figure 1: eigenvalues", "0.5, 1", list(eigenvalues), "")
	add("§3.2", "Figure 1: c_w", "0.0001, 0.01", list(noises), "")
	return t
}

// slips are those of the paper's text that concern what is computed here.
func slips() paper.Table {
	t := paper.Table{ID: "slips",
		Title: "Slips of the paper", Seeds: paper.NoSeed,
		Head: []string{"where", "it says", "it should say", "because"}}
	t.Add("(3.10)", "B = (α, 0)", "B = (−α, 0)", "the step goes downhill: (3.8) subtracts α times the gradient")
	t.Add("(4.2), (4.3), (4.6)", "a bound on E_t by E₀", "by 2·E₀", counterexample())
	t.Add("after Proposition 4.2", "a_{T,t} is decreasing in t", "increasing",
		"its power T − t of a number below 1 falls; what follows, much noise first and less later, is right")
	t.Add("after (4.4)", "with m < n the best schedule is intractable", "it is the one minimum of a convex problem",
		"in ε_t the objective is convex and the constraint is linear")
	t.Add("(4.8)", "E_T =", "E_T ≤", "it adds up upper bounds")
	t.Add("(5.1)", "maximize ln p + λ‖x‖²", "minimize −ln p + λ‖x‖²", "the first has no maximum")
	t.Add("§5", "the best of DP-GD is at T = 1000", "at T = 500",
		"so it is here, and in the authors' own file of Figure 3: 0.0433 and 0.148")
	t.Add("the authors' code", "noise by laprnd(b_t)", "laprnd(√2·b_t)",
		"laprnd takes a standard deviation; as it is, a run spends √2·ε")
	return t
}

// published are the T′ of DP-NAG-opt at which the curves of Figure 3 end, by c; the text prints none.
var published = map[float64]int{0.1: 396, 0.5: 191, 1: 136}

// lengths is the table of T′.
func (r *Report) lengths() paper.Table {
	t := paper.Table{ID: "lengths",
		Title: "The number of steps T′ that (4.6) chooses",
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
	t := paper.Table{ID: "gains",
		Title: "What the corrections gain",
		Note: "(4.2) lost a factor 2: " + r.Counter +
			". It changes T′. On samples the schedule of (4.5) is not optimal; the exact one is. Both leave the privacy as it is. Mean errors at the largest T:",
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
