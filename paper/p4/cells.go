package p4

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/paper"
)

// A Cell is the runs of a method on a table in a setting under a budget.
type Cell struct {
	Table     string
	Setting   Setting
	Epsilon   float64
	Method    string
	Most      int     // T of the first run
	Noise     float64 // of the first run
	Runs      int
	Converged int
	Certified int // converged with a claim that is true
	Loss, Steps, Hessians, Seconds,
	Gradient, Curvature Mean
}

// A Mean is a mean with the standard deviation of what it is of.
type Mean struct{ Value, SD float64 }

func (m Mean) String() string { return fmt.Sprintf("%.3g ± %.2g", m.Value, m.SD) }

func cellOf(runs []Run) Cell {
	first := runs[0]
	c := Cell{Table: first.Table, Setting: first.Setting, Epsilon: first.Epsilon, Method: first.Method, Most: first.Most, Noise: first.Noise, Runs: len(runs)}
	mean := func(f func(Run) float64) (m Mean) {
		for _, r := range runs {
			m.Value += f(r) / float64(len(runs))
		}
		for _, r := range runs {
			m.SD += (f(r) - m.Value) * (f(r) - m.Value) / math.Max(1, float64(len(runs)-1))
		}
		m.SD = math.Sqrt(m.SD)
		return m
	}
	for _, r := range runs {
		if r.Status == method.Converged {
			c.Converged++
		}
		if r.Certified() {
			c.Certified++
		}
	}
	c.Loss = mean(func(r Run) float64 { return r.Loss })
	c.Steps = mean(func(r Run) float64 { return float64(r.Steps) })
	c.Hessians = mean(func(r Run) float64 { return float64(r.Hessians) })
	c.Seconds = mean(func(r Run) float64 { return r.Seconds })
	c.Gradient = mean(func(r Run) float64 { return r.Gradient })
	c.Curvature = mean(func(r Run) float64 { return r.Curvature })
	return c
}

// judged is the cell by which certificates are judged.
func judged(table string, s Setting, epsilon float64) bool {
	return table == shaped && s == Settings[0] && epsilon == 0.6
}

// all runs the experiment, one run after the other, so that times can be compared. done is told how many
// of all runs are over.
func all(ctx context.Context, size Size, folder string, done func(runs, all int)) (runs []Run, cells []Cell, err error) {
	tables, err := problems(size, folder)
	if err != nil {
		return nil, nil, err
	}
	type job struct {
		p       *problem
		s       Setting
		epsilon float64
		method  string
		runs    int
	}
	var jobs []job
	total := 0
	for _, p := range tables {
		for _, s := range size.Settings {
			for _, e := range epsilons {
				for _, m := range Methods {
					j := job{p, s, e, m, size.Runs}
					if judged(p.name, s, e) {
						j.runs = size.Certified
					}
					jobs, total = append(jobs, j), total+j.runs
				}
			}
		}
	}
	for _, j := range jobs {
		var cell []Run
		for k := range j.runs {
			r, err := j.p.run(ctx, j.s, j.epsilon, j.method, k)
			if err != nil {
				return nil, nil, err
			}
			cell = append(cell, r)
			if done != nil {
				done(len(runs)+len(cell), total)
			}
		}
		runs, cells = append(runs, cell...), append(cells, cellOf(cell))
	}
	return runs, cells, nil
}

// claims checks the sentences of the paper, and the bar of this project for certificates, one by one, on the synthetic
// table. Those whose name says "time" depend on the machine and its load.
func claims(size Size, cells []Cell) paper.Claims {
	var list paper.Claims
	find := func(s Setting, epsilon float64, name string) Cell {
		for _, c := range cells {
			if c.Table == shaped && c.Setting == s && c.Epsilon == epsilon && c.Method == name {
				return c
			}
		}
		return Cell{}
	}
	for _, m := range Methods {
		c := find(Settings[0], 0.6, m)
		list.Add("certificate, "+m, "ε = 0.6, loose: every run ends with a certificate, which holds on the exact gradient and Hessian",
			c.Certified == c.Runs, "%d of %d", c.Certified, c.Runs)
	}
	for _, s := range size.Settings {
		for _, e := range epsilons {
			tr := find(s, e, "TR")
			at := fmt.Sprintf("%s, ε = %v", s.Name, e)
			for _, m := range []string{"OPT-LS", "2OPT-LS"} {
				c := find(s, e, m)
				ends := func(c Cell) string { return fmt.Sprintf("%d of %d converge", c.Converged, c.Runs) }
				found := fmt.Sprintf("%s, TR %s", ends(c), ends(tr))
				all := c.Converged == c.Runs || tr.Converged < tr.Runs && c.Converged > tr.Converged
				list.Add(m+" steps, "+at, m+" takes fewer iterations than DP-TR", all && c.Steps.Value < tr.Steps.Value, "%.1f and %.1f; %s", c.Steps.Value, tr.Steps.Value, found)
				list.Add(m+" Hessians, "+at, m+" asks for fewer Hessians than DP-TR", all && c.Hessians.Value < tr.Hessians.Value, "%.1f and %.1f; %s", c.Hessians.Value, tr.Hessians.Value, found)
				list.Add(m+" time, "+at, m+" takes less time than DP-TR", all && c.Seconds.Value < tr.Seconds.Value, "%.3g s and %.3g s; %s", c.Seconds.Value, tr.Seconds.Value, found)
			}
			if opt := find(s, e, "OPT"); s == Settings[0] && e > 0.5 {
				list.Add("OPT time, "+at, "OPT outperforms DP-TR with much less runtime", opt.Seconds.Value < tr.Seconds.Value, "%.3g s and %.3g s", opt.Seconds.Value, tr.Seconds.Value)
				list.Add("OPT loss, "+at, "and ends with a lower loss", opt.Loss.Value < tr.Loss.Value, "%.4f and %.4f", opt.Loss.Value, tr.Loss.Value)
			}
			two := find(s, e, "2OPT-LS")
			list.Add("2OPT-LS converges, "+at, "2OPT-LS performs well across all budgets and settings", two.Converged == two.Runs, "%d of %d", two.Converged, two.Runs)
		}
		most, where := 0.0, "no cell"
		for _, e := range epsilons {
			for _, m := range Methods[1:] {
				if c := find(s, e, m); c.Hessians.Value > most {
					most, where = c.Hessians.Value, fmt.Sprintf("%s, ε = %v", m, e)
				}
			}
		}
		list.Add("few Hessians, "+s.Name, "the OPT family asks for two Hessians at most, on average", most <= 2, "%.2f (%s)", most, where)
	}
	return list
}

// lined writes lines of cells, of which a comma or a quote has no place in any.
func lined(head string, n int, line func(i int) []any) string {
	var b strings.Builder
	b.WriteString(head + "\n")
	for i := range n {
		for k, v := range line(i) {
			if k > 0 {
				b.WriteByte(',')
			}
			if f, ok := v.(float64); ok {
				v = fmt.Sprintf("%.6g", f)
			}
			b.WriteString(strings.ReplaceAll(fmt.Sprint(v), ",", ""))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func runsCSV(runs []Run) string {
	return lined("table,setting,eps_g,eps_H,epsilon,method,run,gap,T,noise,status,steps,hessians,seconds,loss,gradient,lambda_min,claimed_gradient,claimed_curvature,certified", len(runs), func(i int) []any {
		r := runs[i]
		g, h := math.Inf(1), math.Inf(1)
		if r.Claim != nil {
			g, h = r.Claim.Gradient, r.Claim.Curvature
		}
		return []any{r.Table, r.Setting.Name, r.Setting.Gradient, r.Setting.Curvature, r.Epsilon, r.Method, r.Number, r.Gap, r.Most, r.Noise, r.Status, r.Steps, r.Hessians, r.Seconds, r.Loss, r.Gradient, r.Curvature, g, h, r.Certified()}
	})
}

func cellsCSV(cells []Cell) string {
	return lined("table,setting,epsilon,method,T,noise,runs,converged,certified,loss,loss_sd,steps,steps_sd,hessians,hessians_sd,seconds,seconds_sd", len(cells), func(i int) []any {
		c := cells[i]
		return []any{c.Table, c.Setting.Name, c.Epsilon, c.Method, c.Most, c.Noise, c.Runs, c.Converged, c.Certified, c.Loss.Value, c.Loss.SD, c.Steps.Value, c.Steps.SD, c.Hessians.Value, c.Hessians.SD, c.Seconds.Value, c.Seconds.SD}
	})
}
