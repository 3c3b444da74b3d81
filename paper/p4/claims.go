package p4

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
				"on the synthetic table, ε = 0.6, loose: every run ends with a certificate, which holds on the exact gradient and Hessian",
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
	list.NotTested("§4, footnote 3", "dp-gd",
		"DP-GD \"cannot produce practical results using the algorithmic parameters described in the DP-GD paper\"", "The paper reports none of its runs, and not what a practical result is.")
	return list
}

// printedClaims has one claim for each cell that the paper prints: whether all five runs end, or ×. Losses stand
// beside.
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
					f.printed(list, from, c.first(), p)
				}
			}
		}
	}
}

// printed judges one cell of a table. The paper prints no norm of a row, with which the noise grows: the cell is judged
// on rows of that norm with which most cells of the table are as printed, and not tested where several norms fit the
// table as well and the cell is as printed with some of them.
func (f found) printed(list *paper.Claims, from string, c Cell, p printed) {
	fit, beside := f.fitting(c)
	as, known := 0, true
	for _, other := range fit {
		if ok, sure := other.asPrinted(p); !sure {
			known = false
		} else if ok {
			as++
		}
	}
	name := paper.PrintedCell + fmt.Sprintf("%s, %s, %s, ε = %v", c.Method, c.Table, c.Setting.Name, c.Epsilon)
	one := fit[0]
	text := fmt.Sprintf("%s%s, after %.1f ± %.1f steps, at loss %.3f ± %.3f%s; noise %.2g × ε_g", one.ends(), one.stopped(), one.Steps.Value,
		one.Steps.SD, one.Loss.Value, one.Loss.SD, p.beside(), one.NoiseRatio.Value)
	switch {
	case !known:
		list.NotTested(from, name, p.says(), fmt.Sprintf("Too few runs decide: %s. %s", text, beside))
	case as > 0 && as < len(fit):
		list.NotTested(from, name, p.says(), fmt.Sprintf("What the paper does not print decides, the norm of rows: %s. %s", text, beside))
	case p.ends():
		list.Add(from, name, p.says(), as > 0, "%s", text).Because("A run ends where gradient and noise together are shorter than ε_g, " +
			"and the paper does not state its σ. " + beside)
	default:
		list.Add(from, name, p.says(), as > 0, "%s", text).Because(beside)
	}
}

// asPrinted says whether a cell ends, or not, as the paper prints. Runs do not decide where some of those that should
// all end do, or where they are broken off.
func (c Cell) asPrinted(p printed) (as, known bool) {
	if c.ended() {
		return p.ends(), true
	}
	return !p.ends(), c.Broken == 0 && (!p.ends() || c.Converged == 0)
}

// fitting are a cell with rows of the norms with which most cells of its table are as printed, norm 1 before others,
// and what all norms give.
func (f found) fitting(c Cell) (fit []Cell, beside string) {
	most, whole := -1, 0
	for i, k := range append([]float64{1}, norms...) {
		name, one := c.Table, c
		if i > 0 {
			name += ofNorm(k)
			l, ok := f.cell(name, c.Setting.Name, c.Method, c.Epsilon)
			if !ok {
				continue
			}
			one = l.first()
			beside += fmt.Sprintf("; of norm %v %s%s", k, one.ends(), one.stopped())
		}
		as, all := f.agreeing(name, c.Table)
		if i == 0 {
			whole = all
			beside = "The paper prints no norm of its rows; of norm 1 " + one.ends() + one.stopped()
		}
		beside += fmt.Sprintf(" (%d of %d cells of the table are as printed)", as, all)
		if all < whole || as < most {
			continue
		}
		if as > most {
			most, fit = as, nil
		}
		fit = append(fit, one)
	}
	return fit, beside + "."
}

// ends says whether the paper prints a time, and not ×.
func (p printed) ends() bool { return p.seconds != cross }

// says is what the paper prints.
func (p printed) says() string {
	if p.ends() {
		return "all five runs end"
	}
	return "×: not all of five runs end"
}

// beside is the loss that the paper prints, which is not judged.
func (p printed) beside() string {
	if math.IsNaN(p.loss) {
		return ""
	}
	return fmt.Sprintf(" (the paper: %.3f)", p.loss)
}

// stopped says that runs which do not end are broken off before all of T steps.
func (c Cell) stopped() string {
	if c.Broken == 0 {
		return ""
	}
	return fmt.Sprintf(" (runs stop at %d of T = %d)", c.Broken, c.Most)
}

// agreeing counts the cells of one of the paper's tables, and those in which a table agrees with the print.
func (f found) agreeing(name, of string) (as, all int) {
	for _, s := range Settings {
		for m, row := range paperCells[of+" "+s.Name] {
			for k, p := range row {
				if c, ok := f.cell(name, s.Name, m, epsilons[k]); ok {
					if all++; c.first().ended() == p.ends() {
						as++
					}
				}
			}
		}
	}
	return as, all
}

// misprint judges how many rows IJCNN has, by the file that LIBSVM publishes. Beside it are losses of the cells that
// the paper prints, on all of its rows and on every tenth; which cells end depends on the norm of rows, too.
func (f found) misprint(list *paper.Claims) {
	const rows = 4999
	of := func(table string, runs, norm string) string {
		text, tight := []string{}, Settings[len(Settings)-1]
		for k, e := range epsilons {
			if c, ok := f.cell(table, tight.Name, "2OPT-LS", e); ok {
				text = append(text, fmt.Sprintf("%.2f (the paper %.2f)", c.Loss.Value,
					paperCells[ijcnn1+" "+tight.Name]["2OPT-LS"][k].loss))
			}
		}
		as, all := f.agreeing(table, ijcnn1)
		return fmt.Sprintf("%s %s, %d of %d cells end, or not, as printed%s", runs, strings.Join(text, ", "), as, all, norm)
	}
	c, ok := f.cell(ijcnn1, Settings[len(Settings)-1].Name, "2OPT-LS", epsilons[0])
	if !ok {
		return
	}
	list.Add("§E.1", "ijcnn-has-4999-rows", "the IJCNN dataset has n = 4,999 points", c.Rows == rows,
		"the table that LIBSVM publishes has %d; losses of 2OPT-LS, tight ℓ2, by ε: %s; %s", c.Rows,
		of(ijcnn1, "all rows", ""), of(ijcnn1+tenth, "every tenth", ", with rows of norm 1")).
		Because("4,999 is very likely a misprint of 49,990: losses are nearly as printed with all rows, and far from it with a tenth.")
}

// A versus is how a method does beside DP-TR in the cells of some tables.
type versus struct {
	cells, both       int // in both, all runs of both end
	alone, behind     int // only those of the method do, or only DP-TR's
	steps, time, loss int // of both: cells in which the method has less
	per               int // and less time for a step
	clear, fewer, low int // of both: less time, fewer steps, a lower loss, by more than two standard errors
	slower, high      int // and more time, a higher loss
	hess              float64
	everyStep         int // cells in which DP-TR asks for a Hessian at least at every step

	// of both: the logarithms of how many times as many steps, and so on, the other takes; steps and time also of cells
	// in which only those of one end, with the steps that the other's take
	ofSteps, ofTime, ofPer, ofLoss factors
}

// factors are logarithms of ratios, one for each cell.
type factors []float64

// shown adds a claim that a method has less than another: it holds or fails where their mean is above or below 0 by
// more than two standard errors, and is not tested between.
func (f factors) shown(list *paper.Claims, from, name, says, found, why string) {
	m, se := paper.MeanError(f)
	if !(math.Abs(m) > 2*se) { // as of a single cell
		list.NotTested(from, name, says, "Not shown: a factor of 1 is within two standard errors. "+found+".")
		return
	}
	list.Add(from, name, says, m > 0, "%s", found).Because(why)
}

// against says whether the means of these ratios and of others are on two sides of 1, both by more than two standard
// errors.
func (f factors) against(others factors) bool {
	a, one := paper.MeanError(f)
	b, two := paper.MeanError(others)
	return a*b < 0 && math.Abs(a) > 2*one && math.Abs(b) > 2*two
}

// String is the geometric mean of the ratios, and the range of two standard errors about it.
func (f factors) String() string {
	m, se := paper.MeanError(f)
	switch len(f) {
	case 0:
		return "in no cell"
	case 1:
		return fmt.Sprintf("by a factor of %.2f, of one cell", math.Exp(m))
	}
	return fmt.Sprintf("by a factor of %.2f (geometric mean of %d cells; two standard errors: %.2f to %.2f)", math.Exp(m), len(f),
		math.Exp(m-2*se), math.Exp(m+2*se))
}

// beside compares a method with another on tables, in the cells that keep admits.
func (f found) beside(name, other, bound string, tables []string, keep func(Cell) bool) (v versus) {
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
		if !c.ended() && !tr.ended() {
			continue
		}
		factor := func(to *factors, a, b float64) {
			if a > 0 && b > 0 { // a run may end where it begins
				*to = append(*to, math.Log(a/b))
			}
		}
		factor(&v.ofSteps, tr.Steps.Value, c.Steps.Value)
		factor(&v.ofTime, tr.Seconds.Value, c.Seconds.Value)
		switch {
		case !tr.ended():
			v.alone++
			continue
		case !c.ended():
			v.behind++
			continue
		}
		v.both++
		factor(&v.ofLoss, tr.Loss.Value, c.Loss.Value)
		factor(&v.ofPer, tr.iteration(), c.iteration())
		count := func(to *int, less bool) {
			if less {
				*to++
			}
		}
		count(&v.steps, c.Steps.Value < tr.Steps.Value)
		count(&v.time, c.Seconds.Value < tr.Seconds.Value)
		count(&v.loss, c.Loss.Value < tr.Loss.Value)
		count(&v.per, c.iteration() < tr.iteration())
		count(&v.clear, below(c, tr, seconds))
		count(&v.slower, below(tr, c, seconds))
		count(&v.fewer, below(c, tr, steps))
		count(&v.low, below(c, tr, loss))
		count(&v.high, below(tr, c, loss))
	}
	return v
}

// iteration is the time of one, of runs that end: the last makes no step, and checks the point.
func (c Cell) iteration() float64 { return c.Seconds.Value / (c.Steps.Value + 1) }

func seconds(r Run) float64 { return r.Seconds }
func steps(r Run) float64   { return float64(r.Steps) }
func loss(r Run) float64    { return r.Loss }

// less is by how much a has less than b, with its standard error: runs of one number begin at the same point.
func less(a, b Cell, of func(Run) float64) (value, se float64) {
	var by []float64
	for i := range min(len(a.runs), len(b.runs)) {
		by = append(by, of(b.runs[i])-of(a.runs[i]))
	}
	return paper.MeanError(by)
}

// below says whether a has less than b by more than two standard errors.
func below(a, b Cell, of func(Run) float64) bool {
	value, se := less(a, b, of)
	return value > 2*se
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
// both methods end: by the geometric mean of the ratios, where the sentence does not speak of every cell.
func (f found) sentences(list *paper.Claims) {
	if f.beside("OPT", "TR", bounds[0], real, every).cells == 0 {
		list.NotTested("§1, §4, §5, §E.3", "general-sentences", "the OPT family takes fewer steps, Hessians and less time than DP-TR",
			"They are judged on the real tables; give --data.")
		return
	}
	for _, m := range []string{"OPT-LS", "2OPT-LS"} {
		v := f.beside(m, "TR", bounds[0], real, every)
		v.ofSteps.shown(list, "§1", "fewer-iterations, "+m, m+" requires fewer iterations than DP-TR",
			fmt.Sprintf("%s; fewer in %d of %d cells in which all runs of both end, in %d by more than two standard errors; %s", v.ofSteps,
				v.steps, v.both, v.fewer, v.rest(m)), tardy)
		v.ofPer.shown(list, "§1", "less-computation, "+m,
			m+" does less computation on average at each iteration: less time for one, the last included, which makes no step",
			fmt.Sprintf("%s; less in %d of %d cells; %s", v.ofPer, v.per, v.both, v.rest(m)), searches)
		v.ofTime.shown(list, "§1, §5", "significantly less time, "+m, m+" runs significantly faster",
			fmt.Sprintf("%s; less in %d of %d cells, in %d by more than two standard errors; %s", v.ofTime, v.time, v.both, v.clear, v.rest(m)),
			searches)
	}
	v := f.beside("2OPT-LS", "TR", bounds[0], real, every)
	says := "2OPT-LS consistently outperforms DP-TR: it ends wherever DP-TR does, in less time"
	text := fmt.Sprintf("less time in %d of %d cells, in %d by more than two standard errors, and more by as much in %d; %s", v.time, v.both,
		v.clear, v.slower, v.rest("2OPT-LS"))
	if v.behind == 0 && v.slower == 0 && v.clear < v.both {
		list.NotTested("§5", "consistently-outperforms", says, "Not shown by two standard errors: "+text+".")
	} else {
		list.Add("§5", "consistently-outperforms", says, v.behind == 0 && v.clear == v.both, "%s", text).Because(searches)
	}
	says = "2OPT-LS consistently outperforms DP-TR, which the paper says of runtimes: at a lower final loss"
	text = fmt.Sprintf("in %d of %d cells, in %d by more than two standard errors over runs with the same start, and higher by as much in %d",
		v.loss, v.both, v.low, v.high)
	if v.high == 0 && (v.both == 0 || v.loss < v.both) {
		list.NotTested("§5", "consistently-lower-loss", says, "Not shown by two standard errors: "+text+".")
	} else {
		list.Add("§5", "consistently-lower-loss", says, v.high == 0, "%s", text).Because(curvature)
	}
	v = f.beside("OPT", "TR", bounds[0], real[:1], func(c Cell) bool {
		return c.Setting == Settings[0] && c.Epsilon > epsilons[0]
	})
	says = "OPT outperforms DP-TR with much less runtime"
	text = fmt.Sprintf("%s; less in %d of %d cells, by more than two standard errors in %d, and more in %d", v.ofTime, v.time, v.both,
		v.clear, v.slower)
	if v.clear < v.both && v.slower == 0 {
		list.NotTested("§4", "opt-time, loose, ε ≥ 0.6", says, "Not shown: "+text+".")
	} else {
		list.Add("§4", "opt-time, loose, ε ≥ 0.6", says, v.both > 0 && v.clear == v.both, "%s", text).Because(searches)
	}
	f.losses(list, "opt-loss, loose, ε ≥ 0.6", "and with a lower final loss", epsilons[1:]...)
	f.losses(list, "opt-loss, loose, ε = 0.2", "although OPT can fail to end, its final loss is even lower than DP-TR's",
		epsilons[0])
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
	f.improvements(list)
	most, where, tr := 0.0, "", versus{}
	for _, m := range Methods[1:] {
		if v := f.beside(m, "TR", bounds[0], real, every); v.hess >= most {
			most, where, tr = v.hess, m, v
		}
	}
	list.Add("§E.3", "few-hessians",
		"the OPT family asks for very few Hessians (at most two a run on average counts, a bound of ours), and DP-TR for one at every step",
		most <= 2 && tr.everyStep == tr.cells, "at most %.2f (%s); DP-TR at every step in %d of %d cells", most, where,
		tr.everyStep, tr.cells)
}

// improvements checks what §4 says of its table, Covertype with the non-convex regularizer, by both of its figures.
func (f found) improvements(list *paper.Claims) {
	here := func(c Cell) bool { return c.Setting.Reg == "nonconvex" }
	for _, q := range []struct{ says, method string }{
		{"Line search", "OPT-LS"}, {"Mini-batching", "OPT-B"},
		{"Line search, combined with two phases,", "2OPT-LS"}, {"Mini-batching, combined with two phases,", "2OPT-B"},
	} {
		v := f.beside(q.method, "OPT", bounds[0], real[:1], here)
		says, name := q.says+" improves upon the short step algorithm", q.method+" improves on OPT"
		rest := fmt.Sprintf("of %d cells of Covertype, non-convex, both end in %d, only %s in %d, only OPT in %d", v.cells, v.both,
			q.method, v.alone, v.behind)
		found := fmt.Sprintf("%s; less in %d, in fewer steps in %d; %s", v.ofTime, v.time, v.steps, rest)
		if all := f.beside(q.method, "OPT", bounds[0], []string{shaped}, here); all.ofTime.against(v.ofTime) {
			list.NotTested("§4", name+", time", says+": less time", fmt.Sprintf("The number of rows decides: %s. On the synthetic table %s, less in %d of %d cells.",
				found, all.ofTime, all.time, all.both))
		} else {
			v.ofTime.shown(list, "§4", name+", time", says+": less time", found, searches)
		}
		v.ofLoss.shown(list, "§4", name+", loss", says+": a lower final loss",
			fmt.Sprintf("%s; lower in %d; %s", v.ofLoss, v.loss, rest), certified)
	}
	for _, m := range []string{"OPT-LS", "OPT-B"} {
		v := f.beside("2"+m, m, bounds[0], real[:1], here)
		says, name := "especially when combined with two phases, which is read here as: 2"+m+" ends where "+m+" does not", "2"+m+" ends beyond "+m
		found := fmt.Sprintf("of %d cells of Covertype, non-convex, both end in %d, only 2%s in %d, only %s in %d; where both end the loss of 2%s is lower in %d",
			v.cells, v.both, m, v.alone, m, v.behind, m, v.loss)
		broken := 0
		for _, c := range f {
			if (c.Method == m || c.Method == "2"+m) && c.Table == real[0] && c.Bound == bounds[0] && here(c) &&
				c.Broken > 0 {
				broken++
			}
		}
		if v.alone+v.behind <= max(1, broken) {
			why := "Not shown: " + found + "."
			if broken > 0 {
				why += fmt.Sprintf(" In %d of these cells runs are broken off and may end later.", broken)
			}
			list.NotTested("§4", name, says, why)
			continue
		}
		list.Add("§4", name, says, v.alone > v.behind, "%s", found)
	}
}

// searches and tardy are why a method with searches takes longer.
const (
	searches = "A search asks for losses at several points. Times, of the processor, depend on the machine."
	tardy    = "Searches take a part of the budget, so that there is more noise: where it is about ε_g long, a run ends late or never (When runs end)."
)

// certified is why a loss is not lower.
const certified = "A run ends at the first point that it certifies: with less noise it ends sooner, at a higher loss."

// curvature is why DP-TR ends lower.
const curvature = "A run ends at the first point that it certifies; DP-TR uses the curvature in each step, short as its region is, and has come lower by then (Why losses differ from the paper's)."

// losses compares those of OPT and DP-TR on Covertype, loose: the claim holds where OPT's are lower at each ε by more
// than two standard errors of the difference, and fails where one is higher by as much.
func (f found) losses(list *paper.Claims, name, says string, at ...float64) {
	lower, higher, text := true, false, ""
	for i, e := range at {
		opt, _ := f.cell(sampled, Settings[0].Name, "OPT", e)
		tr, _ := f.cell(sampled, Settings[0].Name, "TR", e)
		if i > 0 {
			text += "; "
		}
		_, se := less(opt, tr, loss)
		text += fmt.Sprintf("ε = %v: OPT %.4f, DP-TR %.4f, standard error of the difference %.4f, %s of OPT", e, opt.Loss.Value,
			tr.Loss.Value, se, opt.ends())
		lower, higher = lower && below(opt, tr, loss), higher || below(tr, opt, loss)
	}
	if !lower && !higher {
		list.NotTested("§4", name, says, "Not shown by two standard errors: "+text+".")
		return
	}
	list.Add("§4", name, says, lower, "%s", text).Because("A run ends at the first point that it certifies.")
}
