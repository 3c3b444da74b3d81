package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// A view is a record with what the page makes of it: plots, tables and words that depend on several figures.
type view struct {
	*record.Record
	Style                template.CSS
	Alarms               []string // why the claim does not hold, in words
	Change               string   // by at most how much one record changes the probability of any set of outcomes
	Guess                string   // how often an attacker is right, at most
	GuessPair            string   // the same by ε and δ alone, if the curve of the plan says more
	Attacks              []record.Attack
	TradeOff, Curve      template.HTML
	Spent, Rates, Norms  template.HTML
	Terms                []fact
	People               template.HTML // what an attacker gains, as 100 people; empty: there is no guarantee
	PeopleWords          string
	Lines                []summaryRow // those that a reader needs first
	Summary              []summaryRow
	Private              *privateView // nil: none
	Scores               []scoreRow
	Constant             bool // a constant stands beside the scores
	Confusion            *confusion
	Examples             []example
	Effects              *effects // nil: none to draw
	Data, Method         []fact
	Versions, LabFigures []fact
	Citation, Bib        string
}

// A fact is a name and its value.
type fact struct{ Name, Value string }

// A scoreRow is a score, and what the best constant reaches.
type scoreRow struct {
	fact
	Constant string
}

type confusion struct {
	Classes []string
	Rows    [][]string // a class, then its counts and its recall
}

// Numbers as pages write them.
var (
	number, exact, upward = chart.Short, chart.Full, chart.Upper
	integer, percent      = chart.Integer, chart.Percent
	proven                = record.Proven
)

// functions are what the template formats by.
var functions = template.FuncMap{
	"number":  func(v any) string { return number(float(v)) },
	"upward":  func(v any) string { return upward(float(v)) },
	"exact":   func(v any) string { return exact(float(v)) },
	"integer": integer, "percent": percent, "percentUp": chart.PercentUp, "oneIn": chart.OneIn, "atMost": chart.NumberUp,
	"proven": proven, "moment": moment, "earlier": earlier, "accesses": accesses,
	"infinite": func(v any) bool { return math.IsInf(float(v), 0) },
	"last":     func(all []record.LedgerRun) []record.LedgerRun { return all[max(0, len(all)-mostRuns):] },
}

// float is a number of a record.
func float(v any) float64 {
	switch v := v.(type) {
	case record.Bound:
		return float64(v)
	case *record.Bound:
		return float64(*v)
	}
	return v.(float64)
}

// moment writes a time for people.
func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// mostRuns bounds the runs on the page: the last ones.
const mostRuns = 50

// earlier is how many runs of a dataset are not listed.
func earlier(l *record.Lifetime) int { return l.EarlierRuns + max(0, len(l.Runs)-mostRuns) }

// accesses are days, and what was accessed without protection.
func accesses(all []record.Access) (list []fact) {
	for _, a := range all {
		why := a.Why
		if a.Before {
			why += " (before the dataset entered the ledger: it ends the guarantee only of a run on the same rows)"
		}
		list = append(list, fact{a.Day, why})
	}
	return list
}

func newView(r *record.Record) *view {
	v := &view{Record: r, Style: style, Effects: drawn(r.Effects)}
	for _, c := range r.Checks {
		switch {
		case c.Holds:
		case c.What == record.Guaranteed:
			v.Alarms = append(v.Alarms, "The guarantee could not be recomputed: "+c.Detail+".")
		default:
			v.Alarms = append(v.Alarms, "It was checked, and found wrong, that "+c.Detail+".")
		}
	}
	for _, f := range r.Findings {
		v.Alarms = append(v.Alarms, "`sotto verify` finds that this does not hold: "+f.What+": "+f.Detail)
	}
	if g := r.Guarantee; g != nil {
		v.promise(g)
		v.plots(g)
	}
	v.Rates = plotSteps("rate", "Step size by step", "step size", r.Course.Rates)
	v.Norms = plotSteps("norm", "Norm of the released gradient by step", "gradient norm", r.Course.Norms)
	v.Terms = v.terms()
	v.quality()
	v.setting()
	v.Citation, v.Bib = cite(r)
	v.summarize()
	return v
}

// promise sets the texts that follow from ε and δ.
func (v *view) promise(g *record.Guarantee) {
	v.Change = record.Change(privacy.Budget{Epsilon: g.Epsilon, Delta: g.Delta, Adjacency: g.Relation})
	v.Guess = chart.PercentUp(g.Guess)
	if g.PlanGuess == nil {
		return
	}
	if own := chart.PercentUp(*g.PlanGuess); own != v.Guess {
		v.Guess, v.GuessPair = own, v.Guess
	}
}

// Pure says that there is no δ.
func (v *view) Pure() bool { return v.Guarantee != nil && v.Guarantee.Delta == 0 }

// Replace says that neighboring tables differ in one record.
func (v *view) Replace() bool { return v.Protection.Relation == privacy.ReplaceOne.String() }

// Filtered says that the costs were chosen during the run.
func (v *view) Filtered() bool { return v.Guarantee != nil && v.Guarantee.Filter }

// Batches says what was charged beside what was planned.
func (v *view) Batches() string { return Batches(&v.Course, v.Filtered()) }

// Shared is what the guarantee assumes where owners share the noise; nil where they do not.
func (v *view) Shared() *record.Shares {
	if v.Guarantee == nil {
		return nil
	}
	return v.Guarantee.Shares
}

// Retries is how many attempts owners could give up.
func (v *view) Retries() int {
	if s := v.Shared(); s != nil {
		return s.Retries
	}
	return 0
}

// Theorems are those that the guarantee rests on.
func (v *view) Theorems() []record.Theorem {
	if v.Guarantee == nil {
		return nil
	}
	return v.Guarantee.Theorems
}

// Chosen names the accountant of the curve; empty where there is none.
func (v *view) Chosen() string {
	if v.Guarantee == nil || v.Guarantee.Curve == nil {
		return ""
	}
	return v.Guarantee.Accountant
}

// Checked are the checks that could be made.
func (v *view) Checked() (all []record.Finding) {
	for _, c := range v.Checks {
		if c.What != record.Guaranteed {
			all = append(all, c)
		}
	}
	return all
}

// First, Count, Center and Last are the shares of the budget that releases beside gradients took; "" of none.
func (v *view) First() string {
	return v.part(func(g *record.Guarantee) (float64, *record.Bound) { return g.FirstShare, g.FirstAlone })
}
func (v *view) Count() string {
	return v.part(func(g *record.Guarantee) (float64, *record.Bound) { return g.CountShare, g.CountAlone })
}
func (v *view) Center() string {
	return v.part(func(g *record.Guarantee) (float64, *record.Bound) { return g.CenterShare, g.CenterAlone })
}
func (v *view) Last() string {
	return v.part(func(g *record.Guarantee) (float64, *record.Bound) { return g.LastShare, g.LastAlone })
}

func (v *view) part(of func(*record.Guarantee) (float64, *record.Bound)) string {
	if v.Guarantee == nil {
		return ""
	}
	return partWords(of(v.Guarantee))
}

// partWords says what part of the noise a release took; empty: none.
func partWords(share float64, alone *record.Bound) string {
	if !(share > 0) {
		return ""
	}
	words := fmt.Sprintf("%.0f %% of the noise budget (μ²)", 100*share)
	if alone != nil {
		words += "; alone it would cost ε = " + upward(float64(*alone))
	}
	return words
}

// pairs names the pairs of columns that a release chose.
func pairs(r record.Run) string {
	switch {
	case r.Lines:
		return "none, and no bumps or waves, as one class is rare"
	case len(r.Pairs) == 0:
		return "none"
	}
	return strings.Join(r.Pairs, ", ")
}

// Pairs names the pairs of columns that a release chose.
func (v *view) Pairs() string { return pairs(v.Run) }

// Status says why a run is not finished.
func (v *view) Status() string {
	how := ""
	switch v.Run.Status {
	case runlog.Finished:
		return ""
	case runlog.Interrupted:
		how = "It was interrupted by its user and can be resumed."
	case runlog.Running:
		how = "It is either still running or was interrupted; an interrupted run can be resumed."
	default:
		how = fmt.Sprintf("Its status is %q.", v.Run.Status)
	}
	if v.Run.Torn {
		how += " A crash cut off the end of its log; the incomplete part is left out here and was never shown to anyone."
	}
	return how + " The whole budget stays charged, whether or not it is resumed."
}

// Lab says why a run is not private, if so.
func (v *view) Lab() (why []string) {
	r := &v.Run
	if r.Off {
		why = append(why, "No noise was added. Everything that this run released was computed from the records as they are.")
	}
	if r.Seed != nil {
		why = append(why,
			fmt.Sprintf("Seeded noise: all random numbers come from seed %d. Anyone who knows the seed can subtract the noise.",
				*r.Seed))
	}
	if r.Lab && len(why) == 0 {
		why = append(why, "Lab mode may show figures of the records without noise.")
	} else if r.Lab {
		why = append(why, "Lab mode may also show figures of the records without noise.")
	}
	return why
}

// terms are the guarantee in figures.
func (v *view) terms() []fact {
	g, planned, charged := v.Guarantee, integer(v.Course.Planned), integer(v.Course.Charged)
	if g == nil {
		return []fact{{"noise", "none"}, {"steps planned / batches charged", planned + " / " + charged}}
	}
	terms := []fact{
		{"ε (cap)", exact(g.Epsilon)},
		{"δ (cap)", exact(g.Delta)},
		{"neighboring relation", g.Relation.String()},
		{"unit of privacy", v.Protection.Each()},
		{"accountant", g.Accountant},
		{"noise multiplier", g.Noise},
		{"sampling", g.Sampling},
		{"steps planned", planned},
		{"batches charged", charged},
	}
	if v.Run.Outcome != "" {
		terms = append(terms, fact{"steps taken", integer(v.Course.Steps)}, fact{"outcome", v.Run.Outcome})
	}
	if class := v.Run.Fallback; class != "" {
		terms = append(terms, fact{"fallback", fallback(class)})
	}
	if c := v.Run.Claim; c != nil {
		terms = append(terms, fact{"point reached", c.String()})
	}
	if s := g.Shares; s != nil {
		terms = append(terms, fact{"ε and δ hold against", s.Against + ", while masks hold"},
			fact{"at the same δ, against " + s.AgainstAll, proven(s.EpsilonAlone)},
			fact{"owners who share the noise", integer(s.Owners)},
			fact{"of them, others who may collude", integer(s.Colluders)},
			fact{"attempts that may be given up", integer(s.Retries)})
	}
	return terms
}

// fallback says that a model predicts one class alone.
func fallback(class string) string {
	return fmt.Sprintf("the model predicts %q for every row: by noisy counts it got more rows wrong than that class does",
		class)
}

// quality shows private figures, and scores, which are not private.
func (v *view) quality() {
	v.Private = privateOf(v.Quality.Private)
	if s := v.Quality.Test; s != nil {
		constant := constantScores(s)
		v.Constant = len(constant) > 0
		for _, f := range scoresOf(s) {
			v.Scores = append(v.Scores, scoreRow{f, constant[f.Name]})
		}
		v.Scores = append(v.Scores, scoreRow{fact{"test rows", integer(s.Rows)}, ""})
		if s.ClampedLabels > 0 {
			v.Scores = append(v.Scores,
				scoreRow{fact{"labels beyond the bounds, counted as the bound", integer(s.ClampedLabels)}, ""})
		}
		v.Confusion = confusionOf(&v.Quality)
		for _, e := range s.Examples {
			v.Examples = append(v.Examples, exampleOf(e))
		}
	}
	for _, f := range v.Quality.Lab {
		value := integer(int(f.Value))
		if f.Name == record.TrainLoss {
			value = number(f.Value)
		}
		v.LabFigures = append(v.LabFigures, fact{f.Name, value})
	}
}

func confusionOf(q *record.Quality) *confusion {
	if len(q.Recall) == 0 {
		return nil
	}
	c := &confusion{}
	name := func(i int) string {
		if i < len(q.Test.Classes) {
			return q.Test.Classes[i]
		}
		return fmt.Sprintf("class %d", i)
	}
	for i, counts := range q.Test.Confusion {
		row := []string{name(i)}
		for _, n := range counts {
			row = append(row, integer(n))
		}
		c.Rows = append(c.Rows, append(row, recallWords(q.Recall[i])))
		c.Classes = append(c.Classes, name(i))
	}
	return c
}

// setting shows the public facts and the choices behind the run.
func (v *view) setting() {
	r := &v.Run
	v.Data = append([]fact{{"dataset", r.Dataset}, {"unit of privacy", v.Protection.Each()}}, facts(v.Public.Facts)...)
	t := v.Public.Table
	if t.RowNorm != nil {
		v.Data = append(v.Data, fact{"row norm in the schema", exactOr(*t.RowNorm)})
	}
	if t.RowScaling != "" {
		v.Data = append(v.Data, fact{"row scaling", t.RowScaling})
	}
	if t.OnBadRow != "" {
		v.Data = append(v.Data, fact{"rows that do not parse", t.OnBadRow})
	}
	for _, c := range t.Columns {
		v.Data = append(v.Data, fact{"columns: " + c.Type, integer(c.Count)})
	}
	if r.Shards > 0 {
		v.Data = append(v.Data, fact{"machines that held the rows", fmt.Sprint(r.Shards)})
	}
	v.Method = append([]fact{{"method", r.Method}}, facts(v.Public.Method)...)
	if slices.ContainsFunc(v.Public.Method, func(s record.Setting) bool { return s.Name == "shorter" }) {
		for i, f := range v.Method { // the plot of step sizes shows those that were taken
			if f.Name == fieldNames["rate"] || f.Name == fieldNames["clip"] {
				v.Method[i].Name += ", before it followed the centered rows"
			}
		}
	}
	v.Method = append(v.Method, fact{"released model", r.Output})
	if s := r.Search; s != nil {
		v.Method = append(v.Method, fact{"winner", s.Winner},
			fact{"found by",
				fmt.Sprintf("a search: the best of a secret, random number of trainings, %s on average, each at ε = %s and drawn from: %s", number(s.Mean), number(s.Each), strings.Join(s.Among, "; "))})
	}
	for _, f := range facts(v.Public.Model) {
		f.Name = strings.TrimSuffix("model: "+f.Name, ": name")
		v.Method = append(v.Method, f)
	}
	v.Versions = []fact{{"Sotto", r.Version}, {"Go", r.Go}, {"platform", r.Platform}, {"kernels", r.Kernels}}
	if r.LedgerHead != "" {
		v.Versions = append(v.Versions, fact{"ledger entry", r.LedgerHead})
	}
}

// facts are settings in words; nested values are shown as JSON.
func facts(all []record.Setting) (list []fact) {
	for _, s := range all {
		name := s.Name
		if known, ok := fieldNames[name]; ok {
			name = known
		}
		list = append(list, fact{strings.ReplaceAll(name, "_", " "), valueWords(s.Value)})
	}
	return list
}

// fieldNames are the fields of public facts and methods in words. Other fields keep their names.
var fieldNames = map[string]string{
	"dim":        "parameters of the model",
	"rows":       "nominal number of records",
	"unit_rows":  "most rows of a record",
	"adjacency":  "neighboring relation",
	"owners":     "owners who add up their sums",
	"colluders":  "owners among them who may collude",
	"norm_bound": "bound on the norm of an encoded row",
	"label_span": "width of the label's bounds",
	"one_margin": "the loss is one of w·x, monotone for each label",
	"lipschitz":  "bound on the gradient of a record's loss",
	"smooth":     "bound on the curvature of a record's loss",
	"rate":       "step size",
	"shorter":    "step size and clip norm follow the centered rows, which are shorter",
	"clip":       "clip norm of a record's gradient",
	"batch":      "batch size, of Poisson batches the expected one (0: all records)",
	"sampling":   "how a batch is drawn",

	"classes":          "classes of the label (0: it is a number)",
	"presence":         "Poisson batches are charged by what presence and replacement move",
	"bytes":            "rows are bytes of images",
	"short":            "rows are numbers of 16 bits",
	"snapped":          "bumps and waves follow from rows without them, as they are stored",
	"centered":         "rows can be taken less their noisy mean",
	"calibrated":       "probabilities can be compared with labels, by margins",
	"looked":           "sums for a first release can be asked for, over rows of numbers that are records",
	"cells":            "rows are cells of histograms: a number is 1 or 0",
	"slots":            "places for pairs of columns that a first release chooses",
	"shifted":          "the mean label can be asked for, and predictions begin there",
	"label_min":        "lower bound of the label",
	"label_scale":      "about the label's standard deviation, as a person wrote (0: not given)",
	"label_noise":      "noise multiplier of the mean label",
	"spread_noise":     "noise multiplier of how widely labels lie",
	"l1_bound":         "bound on the sum of absolute values of an encoded row",
	"hess_lipschitz":   "bound on the Hessian's Lipschitz constant",
	"curved":           "Hessians can be asked for",
	"bounded":          "a record's loss bounds its gradient",
	"layers":           "layers that can be clipped by themselves",
	"image":            "rows, columns and channels of an image",
	"start_loss":       "loss of a record where all parameters are 0",
	"intercept":        "parameters of a class, the last an intercept (0: there is none)",
	"initial":          "random initial parameters: counts and bounds",
	"hess_clip":        "clip norm of a record's Hessian",
	"noise_multiplier": "noise multiplier",
	"center_noise":     "noise multiplier of the mean row",
	"share_noise":      "noise multiplier of the share of a class",
	"rare":             "noise from which on a rare class leaves lines alone",
	"factor":           "factor on margins at the end, offset apart",
	"late_noise":       "noise multiplier of the second stage",
	"noisy_norm":       "Armijo's condition takes the norm of the noisy gradient",
	"mu":               "strong convexity that momentum and steps assume",
}

func valueWords(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	switch v := v.(type) {
	case nil:
		return "none"
	case float64:
		return exactOr(v)
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case string:
		return v
	}
	return string(raw)
}

// exactOr writes a short number exactly and a calibrated one rounded.
func exactOr(v float64) string {
	if s := exact(v); len(s) <= 12 {
		return s
	}
	return chart.Number(v, 6)
}
