package p1

import (
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/paper"
)

// The quadratic of Figure 1, and its c_w.
var (
	eigenvalues = []float64{0.5, 1}
	noises      = []float64{1e-4, 1e-2}
)

// heavyBall is Figure 1: DP-SHB on a quadratic of eigenvalues ½ and 1: the rate ρ of (3.18)
// against β, and the bound of Theorem 3.5 against T, where the noise grows with T.
func heavyBall() paper.Figure {
	f := paper.Figure{File: "figure1", Title: "Figure 1: heavy ball on a quadratic", Seeds: paper.NoSeed,
		Note: "Eigenvalues ½ and 1; noise σ_T = T·c_w; C_t = t"}
	f.CSV = paper.NewCSV("alpha,beta,rho,c_w,T,bound,exact")
	start2 := []float64{1, 1}
	rho := chart.Plot{ID: "f1a", Title: "Rate ρ against β", Desc: "The rate falls to a least value and rises again",
		XLabel: "β", YLabel: "ρ"}
	for _, alpha := range []float64{0.1, 0.3, 0.6, 1} {
		l := chart.Line{Name: fmt.Sprintf("α = %g", alpha)}
		for i := range 100 {
			beta := float64(i) / 100
			h := schedule.HeavyBall{Convex: schedule.Convex{Mu: 0.5, L: 1}, Rate: alpha, Beta: beta}
			l.X, l.Y = append(l.X, beta), append(l.Y, h.Spectral())
			f.CSV.Add(alpha, beta, h.Spectral(), "", "", "", "")
		}
		rho.Lines = append(rho.Lines, l)
	}
	f.Plots = append(f.Plots, rho)
	for i, cw := range noises {
		p := chart.Plot{ID: fmt.Sprintf("f1%c", 'b'+i), Title: fmt.Sprintf("Bound (3.17) against T, α = 0.6, c_w = %g", cw),
			Desc: "The bound falls, then rises with the noise", XLabel: "T", YLabel: "bound", LogY: true}
		for _, beta := range []float64{0, 0.1, 0.3, 0.6} {
			l := chart.Line{Name: fmt.Sprintf("β = %g", beta)}
			h := schedule.HeavyBall{Convex: schedule.Convex{Mu: 0.5, L: 1}, Rate: 0.6, Beta: beta}
			for t := 1; t <= 100; t++ {
				v := math.Pow(float64(t)*cw, 2)
				b := h.QuadraticBound(t, eigenvalues, 2*(start2[0]+start2[1]), v)
				l.X, l.Y = append(l.X, float64(t)), append(l.Y, b)
				f.CSV.Add(h.Rate, beta, h.Spectral(), cw, t, b, h.QuadraticError(t, eigenvalues, start2, v))
			}
			p.Lines = append(p.Lines, l)
		}
		f.Plots = append(f.Plots, p)
	}
	return f
}

// schedules is Figure 2: the optimal noise of NAG and MASG for μ = 1, L = 20, p = 1, over
// S_1/(nε).
func schedules() (paper.Figure, error) {
	f := paper.Figure{File: "figure2", Title: "Figure 2: optimal noise against the step", Seeds: paper.NoSeed,
		Note: "b_t·nε/S₁ for μ = 1, L = 20, p = 1"}
	f.CSV = paper.NewCSV("method,T,t,b")
	c := schedule.Convex{Mu: 1, L: 20}
	for i, name := range []string{"DP-NAG-opt", "DP-MASG-opt"} {
		p := chart.Plot{ID: fmt.Sprintf("f2%c", 'a'+i), Title: name, Desc: "The noise falls toward the last step",
			XLabel: "t", YLabel: "b_t", LogY: true}
		for _, steps := range []int{50, 100, 200} {
			stages := []schedule.Stage{{Steps: steps, Rate: 1 / c.L}}
			if i == 1 {
				stages = schedule.MASG(steps, c, 1/c.L, schedule.MASGFirst(c), 1)
			}
			_, a := c.Weights(stages)
			shares, err := schedule.Pure(a, 1)
			if err != nil {
				return f, err
			}
			l := chart.Line{Name: fmt.Sprintf("T = %d", steps)}
			for t, e := range shares {
				l.X, l.Y = append(l.X, float64(t+1)), append(l.Y, 1/e)
				f.CSV.Add(name, steps, t+1, 1/e)
			}
			p.Lines = append(p.Lines, l)
		}
		f.Plots = append(f.Plots, p)
	}
	return f, nil
}

// errors are Figures 3 (all rows) and 4 (samples): the mean error against the step, for each step size and method.
func (r *Report) errors() (all []paper.Figure) {
	s := r.Size
	for i, m := range slices.Backward(s.Batches) {
		number := len(s.Batches) - i + 2
		f := paper.Figure{File: fmt.Sprintf("figure%d", number), Title: fmt.Sprintf("Figure %d: errors at m = %d", number, m),
			Note: fmt.Sprintf("Mean of F(x_t) − F* over %d runs, with bands of one standard deviation; n = %d; step size c/L; lines end at T′; data in curves.csv", s.Runs, s.Rows)}
		for _, c := range s.Rates {
			for k, name := range asPrinted {
				p := chart.Plot{ID: fmt.Sprintf("%s-c%g-%d", f.File, c, k), Title: fmt.Sprintf("%s, c = %g", name, c),
					Desc: "Error against the step, a line for each T", XLabel: "t", YLabel: "error", LogY: true}
				for _, steps := range s.Steps {
					v := r.find(m, steps, c, name)
					l := chart.Line{Name: fmt.Sprintf("T = %d", v.T), Y: v.Gap, SD: v.SD}
					for _, t := range v.Step {
						l.X = append(l.X, float64(t))
					}
					p.Lines = append(p.Lines, l)
				}
				f.Plots = append(f.Plots, p)
			}
		}
		all = append(all, f)
	}
	return all
}

// csv is every curve, a line for each recorded step.
func (r *Report) csv() string {
	csv := paper.NewCSV("m,T,c,method,step,mean_gap,sd")
	for _, c := range r.Curves {
		for i, t := range c.Step {
			csv.Add(c.M, c.T, c.C, c.Method, t, c.Gap[i], c.SD[i])
		}
	}
	return csv.String()
}
