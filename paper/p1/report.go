package p1

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method/schedule"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// A Report is the outcome of the reproduction.
type Report struct {
	Size   Size
	Smooth float64 // L of the table
	Least  float64 // F*
	Start  float64 // E_0 = F(x_0) − F*
	Curves []Curve
	Claims []Claim
	Gains  []Gain
	Files  []string // written, by name
}

// Passed counts the claims that hold.
func (r *Report) Passed() int {
	n := 0
	for _, c := range r.Claims {
		if c.Holds {
			n++
		}
	}
	return n
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
	return r, r.write(dir, append([]figure{heavyBall(), second}, size.errors(curves)...))
}

func (r *Report) write(dir string, figures []figure) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := func(name, text string) error {
		r.Files = append(r.Files, name)
		return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
	}
	if err := file("curves.csv", curvesCSV(r.Curves)); err != nil {
		return err
	}
	type shown struct {
		Title, Note, File string
		Plots             []template.HTML
		Titles            []string
	}
	var list []shown
	for _, f := range figures {
		if f.csv != "" {
			if err := file(f.file+".csv", f.csv); err != nil {
				return err
			}
		}
		if err := file(f.file+".svg", chart.Figure(f.title, f.note, f.plots...)); err != nil {
			return err
		}
		s := shown{Title: f.title, Note: f.note, File: f.file + ".svg"}
		for _, p := range f.plots {
			s.Plots, s.Titles = append(s.Plots, p.SVG()), append(s.Titles, p.Title)
		}
		list = append(list, s)
	}
	var b strings.Builder
	err := page.Execute(&b, map[string]any{
		"R": r, "Figures": list, "Epsilon": r.Size.epsilon(), "Passed": r.Passed(),
		"Counter": counterexample(),
	})
	if err != nil {
		return err
	}
	return file("index.html", b.String())
}

// counterexample is E_1/E_0 of NAG on (μx²+Ly²)/2 from (1, 0) with α = 1/L and κ = 100,
// and what (4.2) says that it is at most.
func counterexample() string {
	f := schedule.Convex{Mu: 0.01, L: 1}
	a0, _ := f.Weights([]schedule.Stage{{Steps: 1, Rate: 1}})
	e := (1 - f.Mu/f.L) * (1 - f.Mu/f.L)
	return fmt.Sprintf("E₁/E₀ = %.4f, and (4.2) says at most %.1f; with the factor 2, at most %.1f", e, a0/2, a0)
}
