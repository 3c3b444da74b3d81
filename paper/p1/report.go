package p1

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/paper"
)

//go:embed page.html
var body string

var page = paper.Page("P1, reproduced", body)

// A Report is the outcome of the reproduction.
type Report struct {
	Size   Size
	Smooth float64 // L of the table
	Least  float64 // F*
	Start  float64 // E_0 = F(x_0) − F*
	Curves []Curve
	Claims paper.Claims
	Gains  []Gain
	Files  []string // written, by name
}

// Run runs the experiment and writes its figures, curves and page to dir, which is made.
// progress is told how many of all runs are over; it may be nil.
func Run(ctx context.Context, size Size, dir string, progress func(runs, all int)) (*Report, error) {
	p, err := newProblem(size)
	if err != nil {
		return nil, err
	}
	curves, err := p.curves(ctx, progress)
	if err != nil {
		return nil, err
	}
	all := results{size, curves}
	r := &Report{Size: size, Smooth: p.smooth, Least: p.least, Start: curves[0].Gap[0], Curves: curves, Claims: all.claims(), Gains: all.gains()}
	second, err := schedules()
	if err != nil {
		return nil, err
	}
	return r, r.write(dir, append([]paper.Figure{heavyBall(), second}, size.errors(curves)...))
}

func (r *Report) write(dir string, figures []paper.Figure) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, curvesFile), []byte(curvesCSV(r.Curves)), 0o644); err != nil {
		return err
	}
	files, err := paper.Write(dir, figures, page, map[string]any{"R": r, "Epsilon": r.Size.epsilon(), "Counter": counterexample()})
	r.Files = append([]string{curvesFile}, files...)
	return err
}

const curvesFile = "curves.csv"

// counterexample is E_1/E_0 of NAG on (μx²+Ly²)/2 from (1, 0) with α = 1/L and κ = 100,
// and what (4.2) says that it is at most.
func counterexample() string {
	f := schedule.Convex{Mu: 0.01, L: 1}
	a0, _ := f.Weights([]schedule.Stage{{Steps: 1, Rate: 1}})
	e := (1 - f.Mu/f.L) * (1 - f.Mu/f.L)
	return fmt.Sprintf("E₁/E₀ = %.4f, and (4.2) says at most %.1f; with the factor 2, at most %.1f", e, a0/2, a0)
}
