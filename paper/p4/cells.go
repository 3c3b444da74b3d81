package p4

import (
	"math"
	"strings"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/paper"
)

// A Cell is the runs of a method on a table in a setting under a budget, with a bound M.
type Cell struct {
	Table     string
	Of        string // the paper's
	Rows      int
	Bound     string
	Setting   Setting
	Epsilon   float64
	Method    string
	Most      int     // T of the first run
	Noise     float64 // of the first run
	Runs      int
	Converged int
	Certified int // converged with a claim that is true
	Broken    int // steps after which runs were broken off; 0: none was
	Loss, Steps, Hessians, Seconds,
	Gradient, Curvature, NoiseRatio paper.Mean

	runs []Run
}

func cellOf(runs []Run) Cell {
	first := runs[0]
	c := Cell{Table: first.Table, Of: first.Of, Rows: first.Rows, Bound: first.Bound, Setting: first.Setting,
		Epsilon: first.Epsilon, Method: first.Method, Most: first.Most, Noise: first.Noise, Runs: len(runs), runs: runs}
	for _, r := range runs {
		if r.Status == method.Converged {
			c.Converged++
		}
		if r.Certified() {
			c.Certified++
		}
		if r.Status == method.Running {
			c.Broken = r.Steps
		}
	}
	c.Loss = paper.MeanOf(runs, func(r Run) float64 { return r.Loss })
	c.Steps = paper.MeanOf(runs, func(r Run) float64 { return float64(r.Steps) })
	c.Hessians = paper.MeanOf(runs, func(r Run) float64 { return float64(r.Hessians) })
	c.Seconds = paper.MeanOf(runs, func(r Run) float64 { return r.Seconds })
	c.Gradient = paper.MeanOf(runs, func(r Run) float64 { return r.Gradient })
	c.Curvature = paper.MeanOf(runs, func(r Run) float64 { return r.Curvature })
	c.NoiseRatio = paper.MeanOf(runs, func(r Run) float64 { return r.NoiseRatio })
	return c
}

// first are the first runs of a cell, as many as the paper has.
func (c Cell) first() Cell {
	if len(c.runs) <= Full.Runs {
		return c
	}
	return cellOf(c.runs[:Full.Runs])
}

// judged is the cell by which certificates are judged.
func judged(table string, s Setting, epsilon float64) bool {
	return table == shaped && s == Settings[0] && epsilon == 0.6
}

// jobs are all runs, those of a cell together.
func jobs(size Size, tables []*problem) (list []job) {
	for _, p := range tables {
		for _, bound := range bounds {
			for _, s := range size.Settings {
				for _, e := range epsilons {
					for _, m := range Methods {
						if _, ok := paperCells[p.of+" "+s.Name][m]; p.of != p.name && (!ok || bound != bounds[0]) {
							continue
						}
						for k := range size.runs(p.name, bound, s, e) {
							list = append(list, job{p, bound, s, e, m, k, size.patience(p, bound)})
						}
					}
				}
			}
		}
	}
	return list
}

// cellsOf are the cells of runs.
func cellsOf(runs []Run) (cells []Cell) {
	for from, to := 0, 1; to <= len(runs); to++ {
		if to == len(runs) || runs[to].Number == 0 {
			cells = append(cells, cellOf(runs[from:to]))
			from = to
		}
	}
	return cells
}

func runsCSV(runs []Run) string {
	csv := paper.NewCSV("table,M,setting,eps_g,eps_H,epsilon,method,run,gap,T,noise,noise_of_eps_g,status,steps,hessians,seconds,loss,gradient,lambda_min,claimed_gradient,claimed_curvature,certified")
	for _, r := range runs {
		g, h := math.Inf(1), math.Inf(1)
		if r.Claim != nil {
			g, h = r.Claim.Gradient, r.Claim.Curvature
		}
		csv.Add(plain(r.Table), r.Bound, plain(r.Setting.Name), r.Setting.Gradient, r.Setting.Curvature, r.Epsilon,
			r.Method, r.Number, r.Gap, r.Most, r.Noise, r.NoiseRatio, r.Status, r.Steps, r.Hessians,
			r.Seconds, r.Loss, r.Gradient, r.Curvature, g,
			h, r.Certified())
	}
	return csv.String()
}

func cellsCSV(cells []Cell) string {
	csv := paper.NewCSV("table,M,setting,epsilon,method,T,noise,runs,converged,certified,loss,loss_sd,steps,steps_sd,hessians,hessians_sd,seconds,seconds_sd")
	for _, c := range cells {
		csv.Add(plain(c.Table), c.Bound, plain(c.Setting.Name), c.Epsilon, c.Method, c.Most, c.Noise, c.Runs, c.Converged,
			c.Certified, c.Loss.Value, c.Loss.SD, c.Steps.Value, c.Steps.SD, c.Hessians.Value,
			c.Hessians.SD, c.Seconds.Value, c.Seconds.SD)
	}
	return csv.String()
}

// plain is a name without a comma.
func plain(name string) string { return strings.ReplaceAll(name, ",", "") }
