package p4

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/paper"
)

// found are the cells of an experiment, for its claims.
type found []Cell

// cell is that of a table; false if it was not run.
func (f found) cell(table, setting, method string, epsilon float64) (Cell, bool) {
	return f.under(bounds[0], table, setting, method, epsilon)
}

// under is cell with another bound M.
func (f found) under(bound, table, setting, method string, epsilon float64) (Cell, bool) {
	i := slices.IndexFunc(f, func(c Cell) bool {
		return c.Table == table && c.Bound == bound && c.Setting.Name == setting && c.Method == method &&
			c.Epsilon == epsilon
	})
	if i < 0 {
		return Cell{}, false
	}
	return f[i], true
}

// ended says whether all runs ended.
func (c Cell) ended() bool { return c.Converged == c.Runs }

// ends is how many runs ended, in words.
func (c Cell) ends() string { return fmt.Sprintf("%d of %d end", c.Converged, c.Runs) }

// claims checks what the paper says, cell by cell of its tables and sentence by sentence, on the real tables with
// M = 1, and the bars of this project. Claims whose name says "time" depend on the machine.
func claims(size Size, cells []Cell) (list paper.Claims) {
	for _, c := range cells {
		if judged(c.Table, c.Setting, c.Epsilon) {
			list.Add("", "certificate, "+c.Method+", "+c.Bound,
				"ε = 0.6, loose: every run ends with a certificate, which holds on the exact gradient and Hessian",
				c.Certified == c.Runs, "%d of %d", c.Certified, c.Runs)
		}
	}
	f := found(cells)
	f.printedClaims(&list)
	if _, ok := f.cell(ijcnn1, "loose, ℓ2", "2OPT-LS", epsilons[0]); ok {
		f.misprint(&list)
	}
	f.sentences(&list)
	list.NotTested("§4", "early-stops-are-acceptable",
		"a run that does not end may be stopped early and its point is still acceptable",
		"What is acceptable has no measure in the paper.")
	list.NotTested("§E", "dp-gd-is-behind", "DP-GD has no useful constants on these tables",
		"The paper reports none of its runs.")
	return list
}

// printedClaims has one claim for each cell that the paper prints: whether all five runs end, or ×.
func (f found) printedClaims(list *paper.Claims) {
	for _, table := range []string{sampled, ijcnn1} {
		for _, s := range Settings {
			from := "§4"
			if s.Reg == "l2" {
				from = "§E.3"
			}
			for _, m := range Methods {
				row, known := paperCells[table+" "+s.Name][m]
				for k, p := range row {
					c, ok := f.cell(table, s.Name, m, epsilons[k])
					if !ok || !known {
						continue
					}
					list.Add(from, paper.PrintedCell+fmt.Sprintf("%s, %s, %s, ε = %v", m, table, s.Name, c.Epsilon), p.says(),
						c.ended() == p.ends(), "%s, after %.1f ± %.1f steps, at loss %.3f ± %.3f; noise %.2g × ε_g", c.ends(),
						c.Steps.Value, c.Steps.SD, c.Loss.Value, c.Loss.SD, c.NoiseRatio.Value).Because(f.disagree(c, p))
				}
			}
		}
	}
}

// ends says whether the paper prints a time, and not ×.
func (p printed) ends() bool { return p.seconds != cross }

// says is what the paper prints.
func (p printed) says() string {
	loss := ""
	if !math.IsNaN(p.loss) {
		loss = fmt.Sprintf(", at loss %.3f", p.loss)
	}
	if p.ends() {
		return "all five runs end" + loss
	}
	return "×: not all of five runs end" + loss
}

// disagree is why a cell is not as printed, by the experiments beside the table.
func (f found) disagree(c Cell, p printed) string {
	if p.ends() {
		return fmt.Sprintf("The noise of a gradient is about %.2g × ε_g long: from 1.1 on some runs end and others do not, above 1.8 "+
			"none does (When runs end). %d of %d is not five of five.", c.NoiseRatio.Value, c.Converged, c.Runs)
	}
	why := "The paper prints no norm of a row, with which a gradient's noise grows beside ε_g. Here rows have norm 1"
	for _, k := range norms {
		if l, ok := f.cell(c.Table+ofNorm(k), c.Setting.Name, c.Method, c.Epsilon); ok {
			why += fmt.Sprintf("; of norm %v %s at a noise of %.2g × ε_g", k, l.ends(), l.NoiseRatio.Value)
		}
	}
	return why + "."
}

// misprint judges how many rows IJCNN has.
func (f found) misprint(list *paper.Claims) {
	count := func(table string) (cells, runs, all int, as int) {
		for _, s := range Settings[2:] {
			for k, p := range paperCells[ijcnn1+" "+s.Name]["2OPT-LS"] {
				if c, ok := f.cell(table, s.Name, "2OPT-LS", epsilons[k]); ok {
					if runs, all = runs+c.Converged, all+c.Runs; c.ended() {
						cells++
					}
					if p.ends() {
						as++
					}
				}
			}
		}
		return cells, runs, all, as
	}
	few, fewRuns, fewAll, as := count(ijcnn1 + tenth)
	most, mostRuns, mostAll, _ := count(ijcnn1)
	list.Add("§E.1", "ijcnn-has-4999-rows", "the IJCNN dataset has n = 4,999 points", few > 0 || as == 0,
		"2OPT-LS ends in all runs of %d of 6 cells with every tenth row (%d of %d runs) and of %d with all rows (%d of %d); the paper prints %d that end",
		few, fewRuns, fewAll, most, mostRuns, mostAll, as).
		Because("4,999 is very likely a misprint of 49,990, the rows of the table that LIBSVM publishes: with 4,999 the noise is ten times as long beside ε_g, and no run of 2OPT-LS ends.")
}

// A versus is how a method does beside DP-TR in the cells of some tables.
type versus struct {
	cells, both       int // in both, all runs of both end
	alone, behind     int // only those of the method do, or only DP-TR's
	steps, time, loss int // of both: cells in which the method has less
	per               int // and less time for a step
	clear, fewer      int // of both: less time, and fewer steps, by more than two standard errors
	least, most, hess float64
	everyStep         int // cells in which DP-TR asks for a Hessian at least at every step
}

// beside compares a method with another on tables, in the cells that keep admits.
func (f found) beside(name, other, bound string, tables []string, keep func(Cell) bool) (v versus) {
	v.least = math.Inf(1)
	for _, c := range f {
		if c.Method != name || c.Bound != bound || !slices.Contains(tables, c.Table) || !keep(c) {
			continue
		}
		tr, _ := f.under(bound, c.Table, c.Setting.Name, other, c.Epsilon)
		v.cells++
		v.hess = math.Max(v.hess, c.Hessians.Value)
		if tr.Hessians.Value >= tr.Steps.Value {
			v.everyStep++
		}
		switch {
		case c.ended() && tr.ended():
		case c.ended():
			v.alone++
			continue
		case tr.ended():
			v.behind++
			continue
		default:
			continue
		}
		v.both++
		ratio := tr.Steps.Value / c.Steps.Value
		v.least, v.most = math.Min(v.least, ratio), math.Max(v.most, ratio)
		count := func(to *int, less bool) {
			if less {
				*to++
			}
		}
		count(&v.steps, c.Steps.Value < tr.Steps.Value)
		count(&v.time, c.Seconds.Value < tr.Seconds.Value)
		count(&v.loss, c.Loss.Value < tr.Loss.Value)
		count(&v.per, c.Seconds.Value/c.Steps.Value < tr.Seconds.Value/tr.Steps.Value)
		count(&v.clear, below(c.Seconds, tr.Seconds, c.Runs))
		count(&v.fewer, below(c.Steps, tr.Steps, c.Runs))
	}
	return v
}

// below says whether a mean of n runs is below another by more than two standard errors of the difference.
func below(a, b paper.Mean, n int) bool {
	return b.Value-a.Value > 2*math.Hypot(a.SD, b.SD)/math.Sqrt(float64(n))
}

// rest says of the cells in which not all runs of both end.
func (v versus) rest(name string) string {
	return fmt.Sprintf("of %d cells, in %d only %s ends, in %d only DP-TR, in %d neither", v.cells, v.alone, name, v.behind,
		v.cells-v.both-v.alone-v.behind)
}

// real are the tables by which sentences are judged.
var real = []string{sampled, ijcnn1}

func every(Cell) bool { return true }

// sentences checks what the paper says in general, once each, over the cells of the real tables in which all runs of
// both methods end.
func (f found) sentences(list *paper.Claims) {
	if f.beside("OPT", "TR", bounds[0], real, every).cells == 0 {
		list.NotTested("§1, §4, §5, §E.3", "general-sentences", "the OPT family takes fewer steps, Hessians and less time than DP-TR",
			"They are judged on the real tables; give --data.")
		return
	}
	for _, m := range []string{"OPT-LS", "2OPT-LS"} {
		v := f.beside(m, "TR", bounds[0], real, every)
		list.Add("§1", "fewer-iterations, "+m, m+" requires fewer iterations than DP-TR", v.both > 0 && v.steps == v.both,
			"in %d of %d cells in which all runs of both end, in %d by more than two standard errors, by factors of %.2g to %.2g; %s",
			v.steps, v.both, v.fewer, v.least, v.most, v.rest(m)).Because(tardy)
		list.Add("§1", "less-computation, "+m, m+" does less computation on average at each iteration: less time for a step",
			v.both > 0 && v.per == v.both, "in %d of %d cells", v.per, v.both).Because(searches)
		list.Add("§1, §5", "significantly less time, "+m, m+" runs significantly faster: by more than two standard errors",
			v.both > 0 && v.clear == v.both, "in %d of %d cells", v.clear, v.both).Because(searches)
	}
	v := f.beside("2OPT-LS", "TR", bounds[0], real, every)
	list.Add("§5", "consistently-outperforms",
		"2OPT-LS consistently outperforms DP-TR: it ends wherever DP-TR does, in less time",
		v.behind == 0 && v.time == v.both, "less time in %d of %d cells; %s", v.time, v.both, v.rest("2OPT-LS"))
	list.Add("§5", "consistently-lower-loss", "2OPT-LS consistently outperforms DP-TR: at a lower final loss",
		v.both > 0 && v.loss == v.both, "in %d of %d cells", v.loss, v.both).Because(curvature)
	v = f.beside("OPT", "TR", bounds[0], real[:1], func(c Cell) bool {
		return c.Setting == Settings[0] && c.Epsilon > epsilons[0]
	})
	list.Add("§4", "opt-time, loose, ε ≥ 0.6", "OPT outperforms DP-TR with much less runtime",
		v.both > 0 && v.clear == v.both, "less in %d of %d cells, by more than two standard errors in %d", v.time,
		v.both, v.clear).
		Because("Both end after few steps, in milliseconds, which differ by more than that from run to run.")
	lower, text := f.losses(epsilons[1:]...)
	list.Add("§4", "opt-loss, loose, ε ≥ 0.6", "and with a lower final loss", lower, "%s", text).Because(alike)
	lower, text = f.losses(epsilons[0])
	list.Add("§4", "opt-loss, loose, ε = 0.2", "although OPT can fail to end, its final loss is even lower than DP-TR's",
		lower, "%s", text).Because(alike)
	well, cells := 0, 0
	for _, c := range f {
		if c.Table == sampled && c.Bound == bounds[0] && c.Method == "2OPT-LS" && c.Setting.Reg == "nonconvex" {
			if cells++; c.ended() {
				well++
			}
		}
	}
	list.Add("§4", "2opt-ls-consistently-well",
		"2OPT-LS performs consistently well across all budgets and both settings: all runs end", well == cells,
		"in %d of %d cells of Covertype with the non-convex regularizer", well, cells)
	for _, q := range []struct{ name, method string }{{"Line search", "OPT-LS"}, {"Mini-batching", "OPT-B"},
		{"Line search with two phases", "2OPT-LS"}, {"Mini-batching with two phases", "2OPT-B"}} {
		v := f.beside(q.method, "OPT", bounds[0], real, every)
		list.Add("§4", "improves on OPT, time, "+q.method,
			q.name+" improves upon the short step algorithm: it ends wherever OPT does, in less time",
			v.both > 0 && v.behind == 0 && v.time == v.both,
			"in %d of %d cells in which both end; in %d only %s ends, in %d only OPT", v.time, v.both, v.alone, q.method,
			v.behind).Because(searches + " " + tardy)
	}
	most, where, tr := 0.0, "", versus{}
	for _, m := range Methods[1:] {
		if v := f.beside(m, "TR", bounds[0], real, every); v.hess >= most {
			most, where, tr = v.hess, m, v
		}
	}
	list.Add("§E.3", "few-hessians",
		"the OPT family asks for very few Hessians, at most two a run on average, and DP-TR for one at every step",
		most <= 2 && tr.everyStep == tr.cells, "at most %.2f (%s); DP-TR at every step in %d of %d cells", most, where,
		tr.everyStep, tr.cells)
}

// searches and tardy are why a method with searches takes longer.
const (
	searches = "A search asks for losses at several points; with 22 and 54 columns a Hessian takes about as long. Times, of the processor, depend on the machine."
	tardy    = "Searches take a part of the budget, so that there is more noise: where it is about ε_g long, a run ends late or never (When runs end)."
)

// alike is why a loss is not shown to be lower.
const alike = "OPT is not lower by two standard errors. A run ends at the first point that it certifies, where DP-TR has come as low or lower, since it uses the curvature in each step."

// curvature is why DP-TR ends lower.
const curvature = "A run ends at the first point that it certifies; DP-TR uses the curvature in each step, short as its region is, and has come lower by then (Why losses differ from the paper's)."

// losses are those of OPT and DP-TR on Covertype, loose, with standard errors, and whether OPT's are lower by more than
// two of these.
func (f found) losses(at ...float64) (lower bool, text string) {
	lower = true
	for i, e := range at {
		opt, _ := f.cell(sampled, Settings[0].Name, "OPT", e)
		tr, _ := f.cell(sampled, Settings[0].Name, "TR", e)
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("ε = %v: OPT %.4f, DP-TR %.4f, standard error of the difference %.4f, %s of OPT", e, opt.Loss.Value,
			tr.Loss.Value, math.Hypot(opt.Loss.SD, tr.Loss.SD)/math.Sqrt(float64(cmp.Or(opt.Runs, 1))), opt.ends())
		lower = lower && below(opt.Loss, tr.Loss, cmp.Or(opt.Runs, 1))
	}
	return lower, text
}
