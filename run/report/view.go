package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// A view is what the page shows, in its order, as text.
type view struct {
	Style    template.CSS
	Info     *runlog.Info
	Asserted []string // in words
	Whom     string   // the guarantee protects one of: see runlog.Info.Whom
	Start    string
	End      string
	Status   string // in words, empty for a finished run
	Lab      []string
	How      string   // it was checked
	Alarms   []string // why the claim does not hold, in words

	// The guarantee.
	Pure, Replace    bool
	Epsilon, Delta   string
	DeltaOdds        string
	Change           string // by at most how much one record changes the probability of any set of outcomes
	Guess            string // how often an attacker is right, at most
	GuessPair        string // the same by ε and δ alone, if the curve of the plan says more
	Odds             []fact // what an attacker believes before, and at most after
	TradeOff         template.HTML
	Attacks          []attackRow
	Mu, Regret       string
	Outside          string // empty for none
	NoMu             string // why there is no curve
	PairEpsilon      string // of two records of one person
	PairDelta        string
	Adjacency        string
	Terms            []fact
	Curve            template.HTML
	CurveRows        []curveRow
	Chosen, Beside   string // names of the accountants of the two lines
	Realized         string // ε of what was charged, information only
	PlanEpsilon      string
	Filter           bool // the costs were chosen during the run, within a filter
	Charged, Planned string
	Lost             int    // batches charged whose answers are not in the log
	Center           string // the part of the budget that the mean row took; "": it was not asked

	Shared *sharedView // nil: no owners share the noise

	Life    *life // nil: no ledger was at hand
	Summary []summaryRow

	Spent, Rates, Norms template.HTML
	Private             *privateView // nil: none
	Scores              []fact
	Confusion           *confusion
	Examples            []example
	LabFigures          []fact
	Effects             *effects // nil: none to draw

	Data, Method []fact
	Events       []fact // numbers of equal batches, and what they released
	MoreEvents   string // lines that are not shown
	Theorems     []account.Theorem
	Checks       []check
	NotCovered   []fact
	Versions     []fact
	Citation     string
	Bib          string
	Hashes       []fact // names and SHA-256 of files; no sum for one that does not exist
}

// A sharedView says what the guarantee assumes where owners share the noise.
type sharedView struct {
	Against, All         string // against whom the guarantee holds, and against whom Alone does
	Alone, AloneRealized string // of the plan and of what was charged: "ε = …", or that none is proven
	Trust                string
	Retries              int
}

// A fact is a name and its value.
type fact struct{ Name, Value string }

type curveRow struct {
	Delta, Chosen, Beside string
	Here                  bool // the δ of the run
}

// An attackRow holds the largest true positive rates of an attack, by the plan's curve and by ε and δ alone.
type attackRow struct{ FalsePositives, Plan, Pair string }

// A check is something that the page recomputed.
type check struct {
	Text string
	OK   bool
}

type confusion struct {
	Classes []string
	Rows    [][]string // a class, then its counts
}

func newView(info *runlog.Info, rec *runlog.Record) (*view, error) {
	v := &view{Info: info, Whom: info.Whom(), Start: info.Started.UTC().Format("2 January 2006, 15:04 UTC")}
	if info.Finished != nil {
		v.End = info.Finished.UTC().Format("2 January 2006, 15:04 UTC")
	}
	v.Status = statusWords(info, rec)
	v.Lab = labWords(info)
	v.Charged, v.Planned = integer(rec.Charged()), integer(info.MaxSteps)
	if share := centerShare(info); share > 0 {
		v.Center = fmt.Sprintf("%.0f %%", 100*share)
	}
	if info.Search == nil {
		v.Lost = rec.Charged() - rec.Released
	}
	if err := v.guarantee(info, rec); err != nil {
		return nil, err
	}
	v.progress(rec)
	v.quality(info)
	v.Asserted = asserted(info.Assertions)
	v.setting(info)
	var more int
	if v.Events, more = released(rec); more > 0 {
		v.MoreEvents = integer(more)
	}
	v.NotCovered = notCovered(info)
	v.Citation, v.Bib = cite(info)
	return v, nil
}

// statusWords says why a run is not finished.
func statusWords(info *runlog.Info, rec *runlog.Record) string {
	how := ""
	switch info.Status {
	case runlog.Finished:
		return ""
	case runlog.Interrupted:
		how = "It was interrupted by its user and can be resumed."
	case runlog.Running:
		how = "It is either still running or was interrupted; an interrupted run can be resumed."
	default:
		how = fmt.Sprintf("Its status is %q.", info.Status)
	}
	if rec.Torn {
		how += " A crash cut off the end of its log; the incomplete part is left out here and was never shown to anyone."
	}
	return how + " The whole budget stays charged, whether or not it is resumed."
}

// labWords says why a run is not private, if so.
func labWords(info *runlog.Info) []string {
	var why []string
	if info.Off {
		why = append(why, "No noise was added. Everything that this run released was computed from the records as they are.")
	}
	if info.Seed != nil {
		why = append(why,
			fmt.Sprintf("Seeded noise: all random numbers come from seed %s. Anyone who knows the seed can subtract the noise.",
				fmt.Sprint(*info.Seed)))
	}
	if info.Lab && len(why) == 0 {
		why = append(why, "Lab mode may show figures of the records without noise.")
	} else if info.Lab {
		why = append(why, "Lab mode may also show figures of the records without noise.")
	}
	return why
}

// quality shows private figures, and scores, which are not private.
func (v *view) quality(info *runlog.Info) {
	if info.Result == nil {
		return
	}
	v.Private = privateOf(info.Result.Private)
	if s := info.Result.Test; s != nil {
		v.Scores = append(v.Scores, fact{"Test rows", integer(s.Rows)})
		for _, score := range []struct {
			name  string
			value *float64
			form  func(float64) string
		}{
			{"Accuracy", s.Accuracy, func(x float64) string { return percent(x, 2) }},
			{"Log loss", s.LogLoss, number},
			{"Area under the ROC curve", s.AUC, number},
			{"Root mean squared error", s.RMSE, number},
			{"R²", s.R2, number},
		} {
			if score.value != nil {
				v.Scores = append(v.Scores, fact{score.name, score.form(*score.value)})
			}
		}
		v.Confusion = confusionOf(s)
		for _, e := range s.Examples {
			v.Examples = append(v.Examples, exampleOf(e))
		}
	}
	if !info.Lab {
		return // private figures: only a page with the watermark shows them
	}
	for name, n := range info.Result.LabCounts {
		v.LabFigures = append(v.LabFigures, fact{name, integer(n)})
	}
	slices.SortFunc(v.LabFigures, func(a, b fact) int { return cmp.Compare(a.Name, b.Name) })
	if loss := info.Result.TrainLoss; loss != nil {
		v.LabFigures = append(v.LabFigures, fact{"loss on the training rows", number(*loss)})
	}
}

// square says whether there is a table with as many columns as rows. A damaged run.json may hold another.
func square(table [][]int) bool {
	return len(table) > 0 && !slices.ContainsFunc(table, func(row []int) bool { return len(row) != len(table) })
}

func confusionOf(s *runlog.Scores) *confusion {
	if !square(s.Confusion) {
		return nil
	}
	c := &confusion{}
	name := func(i int) string {
		if i < len(s.Classes) {
			return s.Classes[i]
		}
		return fmt.Sprintf("class %d", i)
	}
	for i, counts := range s.Confusion {
		row := []string{name(i)}
		for _, n := range counts {
			row = append(row, integer(n))
		}
		row = append(row, recall(i, counts))
		c.Rows = append(c.Rows, row)
	}
	for j := range s.Confusion[0] {
		c.Classes = append(c.Classes, name(j))
	}
	return c
}

// setting shows the public facts and the choices behind the run.
func (v *view) setting(info *runlog.Info) {
	v.Data = append([]fact{{"dataset", info.Dataset}, {"unit of privacy", info.Whom()}}, facts(info.Public)...)
	v.Data = append(v.Data, schemaFacts(info.Schema)...)
	if info.Shards > 0 {
		v.Data = append(v.Data, fact{"machines that held the rows", fmt.Sprint(info.Shards)})
	}
	v.Method = append([]fact{{"method", info.Method}}, facts(info.Config)...)
	v.Method = append(v.Method, fact{"released model", info.Output})
	if s := info.Search; s != nil {
		v.Method = append(v.Method, fact{"winner", s.Winner},
			fact{"found by",
				fmt.Sprintf("a search: the best of a secret, random number of trainings, %s on average, each at ε = %s and drawn from: %s", number(s.Mean), number(s.Each), strings.Join(s.Among, "; "))})
	}
	for _, f := range facts(info.Model) {
		f.Name = strings.TrimSuffix("model: "+f.Name, ": name")
		v.Method = append(v.Method, f)
	}
	v.Versions = []fact{{"Sotto", info.Version}, {"Go", info.Go}, {"platform", info.Platform}, {"kernels", info.Kernels}}
	if info.LedgerHead != "" {
		v.Versions = append(v.Versions, fact{"ledger entry", info.LedgerHead})
	}
}

// facts lists the fields of a JSON object in their order; nested values are shown as JSON.
func facts(raw json.RawMessage) []fact {
	var list []fact
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return list
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return list
		}
		name := fmt.Sprint(key)
		if known, ok := fieldNames[name]; ok {
			name = known
		}
		list = append(list, fact{strings.ReplaceAll(name, "_", " "), valueWords(value)})
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
	"clip":       "clip norm of a record's gradient",
	"batch":      "batch size, of Poisson batches the expected one (0: all records)",
	"sampling":   "how a batch is drawn",

	"classes":          "classes of the label (0: it is a number)",
	"presence":         "Poisson batches are charged by what presence and replacement move",
	"bytes":            "rows are bytes of images",
	"short":            "rows are numbers of 16 bits",
	"centered":         "rows can be taken less their noisy mean",
	"shifted":          "the mean label can be asked for, and predictions begin there",
	"label_min":        "lower bound of the label",
	"label_scale":      "about the label's standard deviation, as a person wrote (0: not given)",
	"label_noise":      "noise multiplier of the mean label",
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

// schemaFacts are the parts of a schema on which the guarantee rests.
func schemaFacts(raw json.RawMessage) []fact {
	var s struct {
		RowNorm    *float64 `json:"row_norm"`
		RowScaling string   `json:"row_scaling"`
		OnBadRow   string   `json:"on_bad_row"`
		Columns    []struct {
			Type string `json:"type"`
		} `json:"columns"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	var list []fact
	if s.RowNorm != nil {
		list = append(list, fact{"row norm in the schema", exactOr(*s.RowNorm)})
	}
	if s.RowScaling != "" {
		list = append(list, fact{"row scaling", s.RowScaling})
	}
	if s.OnBadRow != "" {
		list = append(list, fact{"rows that do not parse", s.OnBadRow})
	}
	count := map[string]int{}
	for _, c := range s.Columns {
		count[c.Type]++
	}
	for _, kind := range []string{"numeric", "categorical", "label", "ignore"} {
		if n := count[kind]; n > 0 {
			list = append(list, fact{"columns: " + kind, integer(n)})
		}
	}
	return list
}

// mostEvents bounds the lines of events on the page, however long the run is.
const mostEvents = 50

// released lists the first lines of what was charged, and counts the others.
func released(rec *runlog.Record) (lines []fact, more int) {
	list, many := rec.Event().(privacy.Composed)
	if !many {
		list = privacy.Composed{rec.Event()}
	}
	for _, e := range list[:min(mostEvents, len(list))] {
		batches := e.(privacy.Repeated)
		lines = append(lines, fact{integer(batches.Count), words(batches.Of)})
	}
	return lines, max(len(list)-mostEvents, 0)
}

// words says what one batch released.
func words(e privacy.Event) string { return privacy.Fold(e, phrase) }

// phrase says what was released, given the words for the events inside e.
func phrase(e privacy.Event, inside []string) string {
	switch e := e.(type) {
	case privacy.Gaussian:
		return fmt.Sprintf("a sum over the records with Gaussian noise, whose standard deviation is %s times the most that one record can change the sum", number(e.Sigma))
	case privacy.GaussianSum:
		return fmt.Sprintf("a sum over the records with Gaussian noise, whose standard deviation is %s times the most that replacing one record can change the sum, and %s times the most that its presence can", number(e.Replacement), number(e.Presence))
	case privacy.Laplace:
		return fmt.Sprintf("a sum over the records with Laplace noise, whose scale is %s times the most that one record can change the sum", number(e.Scale))
	case privacy.PureDP:
		return fmt.Sprintf("a release that is private at ε = %s, δ = 0", number(e.Epsilon))
	case privacy.AboveThreshold:
		return fmt.Sprintf("the number of the first of at most %s sums over the records that reaches a noisy threshold; the threshold has Laplace noise of scale %s, each sum of scale %s, times the most that one record can change a sum", integer(e.Max), number(e.Threshold), number(e.Query))
	case privacy.Select:
		return fmt.Sprintf("a noisy choice among candidates, whose odds one record changes by a factor of at most e^%s",
			number(e.Epsilon))
	case privacy.ApproxDP:
		return fmt.Sprintf("a release that is private at ε = %s, δ = %s", number(e.Epsilon), number(e.Delta))
	case privacy.FixedSampled:
		return fmt.Sprintf("on a secret random batch of %s of the %s records: %s", integer(e.M), integer(e.N), inside[0])
	case privacy.PoissonSampled:
		return fmt.Sprintf("on a secret random batch that holds each record independently with probability %s: %s",
			number(e.Rate), inside[0])
	case privacy.Allocated:
		return fmt.Sprintf("in an epoch whose %s secret batches hold each record once, at random, on each batch: %s",
			integer(e.Batches), inside[0])
	case privacy.Parallel:
		return fmt.Sprintf("on the part %q of the records: %s", e.Name(), inside[0])
	case privacy.Shared:
		return fmt.Sprintf("%s, of which each of %s owners added a share, and of which %s owners may know theirs", inside[0],
			integer(e.Owners), integer(e.Colluders))
	case privacy.Retried:
		return fmt.Sprintf("%s; and up to %s of these batches once more, where an owner was missing", inside[0],
			integer(e.Retries))
	case privacy.Repeated:
		return fmt.Sprintf("%s times %s", integer(e.Count), inside[0])
	case privacy.Composed:
		if len(inside) == 0 {
			return "nothing"
		}
		return strings.Join(inside, "; and ")
	case privacy.Filtered:
		unit := map[privacy.Currency]string{privacy.InPure: "pure ε", privacy.InZCDP: "zCDP",
			privacy.InGDP: "Gaussian differential privacy",
			privacy.InRDP: fmt.Sprintf("Rényi divergence of order %s", number(e.Order))}[e.Currency]
		return fmt.Sprintf("releases whose noise and number were chosen during the run, each charged before it was made, within one budget of ε = %s, δ = %s counted in %s", number(e.Epsilon), number(e.Delta), unit)
	case privacy.Tuned:
		return fmt.Sprintf("the best of a secret, random number of releases, %s on average, each of which is one of these: %s", number(e.Mean()), strings.Join(inside, "; and "))
	case privacy.NonPrivate:
		return "an access to the records without noise: " + e.Why
	}
	return e.String()
}

// terms says which noise a plan has (R8) and which records its steps use.
func terms(plan privacy.Event) (noise, sampling string) {
	var noises, samplings []string
	note := func(list *[]string, s string) {
		if len(*list) < 2 && !slices.Contains(*list, s) { // more than one is said in other words
			*list = append(*list, s)
		}
	}
	noisy := func(e privacy.Event) bool {
		switch e := e.(type) {
		case privacy.Gaussian:
			note(&noises, chart.Number(e.Sigma, 6))
		case privacy.GaussianSum:
			note(&noises, chart.Number(e.Replacement, 6))
		case privacy.Laplace:
			note(&noises, "Laplace, "+chart.Number(e.Scale, 6))
		case privacy.Tuned: // as a whole: its candidates are secret
			note(&noises, e.String())
			return false
		default:
			if privacy.Single(e) {
				note(&noises, e.String())
			}
		}
		return true
	}
	privacy.Walk(plan, func(e privacy.Event) bool {
		switch e := e.(type) {
		case privacy.Parallel:
			return !runlog.InHoldout(e) // whose score is no step
		case privacy.PoissonSampled:
			note(&samplings, fmt.Sprintf("Poisson: each record enters a step with probability %s", number(e.Rate)))
			privacy.Walk(e.Of, noisy)
			return false
		case privacy.FixedSampled:
			note(&samplings, fmt.Sprintf("fixed size: each step draws %s of the %s records", integer(e.M), integer(e.N)))
			privacy.Walk(e.Of, noisy)
			return false
		case privacy.Allocated:
			note(&samplings,
				fmt.Sprintf("random allocation: each record is in one of the %s batches of an epoch", integer(e.Batches)))
			privacy.Walk(e.Of, noisy)
			return false
		}
		down := noisy(e)
		if privacy.Single(e) || !down {
			note(&samplings, "none: every step uses all records")
		}
		return down
	})
	one := func(list []string) string {
		switch len(list) {
		case 0:
			return "none"
		case 1:
			return list[0]
		}
		return "differs from step to step: see “What was released”"
	}
	return one(noises), one(samplings)
}
