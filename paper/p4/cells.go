package p4

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/paper"
)

// A Cell is the runs of a method on a table in a setting under a budget, with a bound M.
type Cell struct {
	Table     string
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
	Loss, Steps, Hessians, Seconds,
	Gradient, Curvature, NoiseRatio paper.Mean
}

func cellOf(runs []Run) Cell {
	first := runs[0]
	c := Cell{Table: first.Table, Rows: first.Rows, Bound: first.Bound, Setting: first.Setting, Epsilon: first.Epsilon,
		Method: first.Method, Most: first.Most, Noise: first.Noise, Runs: len(runs)}
	for _, r := range runs {
		if r.Status == method.Converged {
			c.Converged++
		}
		if r.Certified() {
			c.Certified++
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
						runs := size.Runs
						if bound != bounds[0] {
							runs = min(runs, size.Beside)
						}
						if judged(p.name, s, e) {
							runs = size.Certified
						}
						for k := range runs {
							list = append(list, job{p, bound, s, e, m, k, size.Patience})
						}
					}
				}
			}
		}
	}
	return list
}

// fewer counts the cells of a table in which a method, all of whose runs converge or more than DP-TR's, takes fewer
// steps than it.
func fewer(cells []Cell, table, bound, name string) (fewer, all int) {
	for i, c := range cells {
		if c.Table == table && c.Bound == bound && c.Method == name {
			tr := cells[i-slices.Index(Methods, name)] // TR is the first
			if all++; c.ahead(tr) && c.Steps.Value < tr.Steps.Value {
				fewer++
			}
		}
	}
	return fewer, all
}

// ahead says whether all runs converged, or more of them than of DP-TR's.
func (c Cell) ahead(tr Cell) bool {
	return c.Converged == c.Runs || tr.Converged < tr.Runs && c.Converged > tr.Converged
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

// clock is why a time is longer where all runs end.
const clock = "Times depend on the machine and its load."

// noisy is why searches end late or never: the noise of their gradients beside the tolerance.
func noisy(cells []Cell) string {
	all, none := ends(cells)
	return fmt.Sprintf("A run ends where gradient and noise together are shorter than ε_g. Where the noise alone is up to %.2g × ε_g long all runs end, where it is above %.2g × none (When runs end). "+
		"OPT-LS has more noise than DP-TR: its searches take a part of the budget.", all, none)
}

// ends are the largest NoiseRatio up to which all runs of the methods that the claims are about end, and that above
// which none does.
func ends(cells []Cell) (all, none float64) {
	all = math.Inf(1)
	judged := func(c Cell) bool {
		return c.Bound == bounds[0] && slices.Contains([]string{"TR", "OPT-LS", "2OPT-LS"}, c.Method)
	}
	for _, c := range cells {
		if judged(c) && c.Converged < c.Runs {
			all = min(all, c.NoiseRatio.Value)
		}
		if judged(c) && c.Converged > 0 {
			none = max(none, c.NoiseRatio.Value)
		}
	}
	most := 0.0
	for _, c := range cells {
		if judged(c) && c.NoiseRatio.Value < all {
			most = max(most, c.NoiseRatio.Value)
		}
	}
	return most, none
}

// claims checks the sentences of the paper one by one on every table, and the bar of this project for certificates.
// Those whose name says "time" depend on the machine and its load.
func claims(size Size, cells []Cell) (list paper.Claims) {
	var table, bound string
	late := noisy(cells)
	find := func(s Setting, epsilon float64, name string) Cell {
		for _, c := range cells {
			if c.Table == table && c.Bound == bound && c.Setting == s && c.Epsilon == epsilon && c.Method == name {
				return c
			}
		}
		return Cell{}
	}
	for i, c := range cells {
		if i > 0 && c.Table == cells[i-1].Table && c.Bound == cells[i-1].Bound {
			continue
		}
		table, bound = c.Table, c.Bound
		if judged(table, Settings[0], 0.6) {
			for _, m := range Methods {
				c := find(Settings[0], 0.6, m)
				list.Add("", "certificate, "+m+", "+bound,
					"ε = 0.6, loose: every run ends with a certificate, which holds on the exact gradient and Hessian",
					c.Certified == c.Runs, "%d of %d", c.Certified, c.Runs)
			}
		}
		if bound != bounds[0] {
			continue
		}
		for _, s := range size.Settings {
			for _, e := range epsilons {
				tr := find(s, e, "TR")
				at := fmt.Sprintf("%s, %s, ε = %v", table, s.Name, e)
				for _, m := range []string{"OPT-LS", "2OPT-LS"} {
					c := find(s, e, m)
					end := func(c Cell) string { return fmt.Sprintf("%d of %d converge", c.Converged, c.Runs) }
					found := fmt.Sprintf("%s, TR %s; noise %.2g and %.2g × ε_g", end(c), end(tr), c.NoiseRatio.Value,
						tr.NoiseRatio.Value)
					all := c.ahead(tr)
					slow := clock
					if !all {
						slow = late
					}
					list.Add("§1", m+" steps, "+at, m+" takes fewer iterations than DP-TR", all && c.Steps.Value < tr.Steps.Value,
						"%.1f and %.1f; %s", c.Steps.Value, tr.Steps.Value, found).Because(late)
					list.Add("§1", m+" Hessians, "+at, m+" asks for fewer Hessians than DP-TR",
						all && c.Hessians.Value < tr.Hessians.Value, "%.1f and %.1f; %s", c.Hessians.Value, tr.Hessians.Value,
						found).Because(late)
					list.Add("§1", m+" time, "+at, m+" takes less time than DP-TR", all && c.Seconds.Value < tr.Seconds.Value,
						"%.3g s and %.3g s; %s", c.Seconds.Value, tr.Seconds.Value, found).Because(slow)
				}
				if opt := find(s, e, "OPT"); s == Settings[0] && e > 0.5 {
					list.Add("§4", "OPT time, "+at, "OPT outperforms DP-TR with much less runtime",
						opt.Seconds.Value < tr.Seconds.Value, "%.3g s and %.3g s", opt.Seconds.Value, tr.Seconds.Value)
					list.Add("§4", "OPT loss, "+at, "and ends with a lower loss", opt.Loss.Value < tr.Loss.Value, "%.4f and %.4f",
						opt.Loss.Value, tr.Loss.Value).
						Because("OPT ends at the first point whose gradient is small; DP-TR uses the curvature in each step and has come lower by then.")
				}
				two := find(s, e, "2OPT-LS")
				list.Add("§4", "2OPT-LS converges, "+at, "2OPT-LS performs well across all budgets and settings",
					two.Converged == two.Runs, "%d of %d; noise %.2g × ε_g", two.Converged, two.Runs,
					two.NoiseRatio.Value).Because(late)
			}
			most, where := 0.0, "no cell"
			for _, e := range epsilons {
				for _, m := range Methods[1:] {
					if c := find(s, e, m); c.Hessians.Value > most {
						most, where = c.Hessians.Value, fmt.Sprintf("%s, ε = %v", m, e)
					}
				}
			}
			list.Add("§E.3", fmt.Sprintf("few Hessians, %s, %s", table, s.Name),
				"the OPT family asks for very few Hessians: two at most, on average", most <= 2, "%.2f (%s)", most, where)
		}
	}
	if k, all := fewer(cells, sampled, bounds[0], "2OPT-LS"); all > 0 {
		list.Add("", "fewer steps, "+sampled, "with M = 1, 2OPT-LS takes fewer steps than DP-TR in at least 10 of 12 cells",
			k >= 10, "%d of %d", k, all)
	}
	list.NotTested("§4", "low-budget-lower-loss",
		"at ε = 0.2 OPT's final loss is lower than DP-TR's although it can fail to end",
		"OPT ends here in all runs of the loose setting: its number of steps is from a public bound (S-4a).")
	list.NotTested("§4", "early-stops-are-acceptable",
		"a run that does not end may be stopped early and its point is still acceptable",
		"What is acceptable has no measure in the paper.")
	list.NotTested("§E", "dp-gd-is-behind", "DP-GD has no useful constants on these tables",
		"The paper reports none of its runs.")
	return list
}

func runsCSV(runs []Run) string {
	csv := paper.NewCSV("table,M,setting,eps_g,eps_H,epsilon,method,run,gap,T,noise,noise_of_eps_g,status,steps,hessians,seconds,loss,gradient,lambda_min,claimed_gradient,claimed_curvature,certified")
	for _, r := range runs {
		g, h := math.Inf(1), math.Inf(1)
		if r.Claim != nil {
			g, h = r.Claim.Gradient, r.Claim.Curvature
		}
		csv.Add(r.Table, r.Bound, r.Setting.plain(), r.Setting.Gradient, r.Setting.Curvature, r.Epsilon, r.Method, r.Number,
			r.Gap, r.Most, r.Noise, r.NoiseRatio, r.Status, r.Steps, r.Hessians, r.Seconds, r.Loss, r.Gradient, r.Curvature, g,
			h, r.Certified())
	}
	return csv.String()
}

func cellsCSV(cells []Cell) string {
	csv := paper.NewCSV("table,M,setting,epsilon,method,T,noise,runs,converged,certified,loss,loss_sd,steps,steps_sd,hessians,hessians_sd,seconds,seconds_sd")
	for _, c := range cells {
		csv.Add(c.Table, c.Bound, c.Setting.plain(), c.Epsilon, c.Method, c.Most, c.Noise, c.Runs, c.Converged, c.Certified,
			c.Loss.Value, c.Loss.SD, c.Steps.Value, c.Steps.SD, c.Hessians.Value, c.Hessians.SD, c.Seconds.Value, c.Seconds.SD)
	}
	return csv.String()
}

// plain is the setting's name without a comma.
func (s Setting) plain() string { return strings.ReplaceAll(s.Name, ",", "") }
