package report

import (
	"fmt"
	"html/template"
	"iter"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// Range of the δ axis; it grows to hold the δ of a run.
const (
	leastDelta    = 1e-12
	mostDelta     = 1e-2
	pointsADecade = 4
	prefixes      = 60 // points of the curve of spending
	compositions  = 16 // and of samples, each of which is composed for itself
)

// slack covers the rounding of decimals to float64, as in account.Plan.
const slack = 1 + 0x1p-50

// guarantee fills in the promise, recomputed from the plan, and its cost so far, recomputed from the events
// of the run log.
func (v *view) guarantee(info *runlog.Info, rec *runlog.Record) error {
	plan, err := info.PlanEvent()
	if err != nil {
		return err
	}
	if info.Off {
		v.Terms = []fact{{"noise", "none"}, {"steps planned / batches charged", v.Planned + " / " + v.Charged}}
		return nil
	}
	b := info.Budget
	if err := b.Validate(); err != nil {
		return fmt.Errorf("%s: budget: %w", runlog.InfoFile, err)
	}
	v.promise(b)
	shown := plan
	if _, v.Filter = plan.(privacy.Filtered); v.Filter { // it names neither noise nor sampling
		shown = rec.Event()
	}
	noise, sampling := terms(shown)
	v.Terms = []fact{
		{"ε (cap)", v.Epsilon},
		{"δ (cap)", v.Delta},
		{"neighboring relation", b.Adjacency.String()},
		{"unit of privacy", info.Whom()},
		{"accountant", info.Accountant},
		{"noise multiplier", noise},
		{"sampling", sampling},
		{"steps planned", v.Planned},
		{"batches charged", v.Charged},
	}
	if info.Result != nil {
		v.Terms = append(v.Terms, fact{"steps taken", integer(info.Result.Steps)}, fact{"outcome", info.Result.Outcome})
		if class := info.Result.Fallback; class != "" {
			v.Terms = append(v.Terms,
				fact{"fallback",
					fmt.Sprintf("the model predicts %q for every row: by noisy counts it got more rows wrong than that class does",
						class)})
		}
		if info.Result.Claim != nil {
			v.Terms = append(v.Terms, fact{"point reached", info.Result.Claim.String()})
		}
	}

	a, err := account.ByName(info.Accountant)
	v.share(shown, rec, a, b)
	if err != nil {
		v.fail("the accountant is not known to this version: " + err.Error())
		return nil
	}
	loss, err := a.Loss(plan, b.Adjacency)
	if err != nil {
		v.fail("the plan cannot be accounted for: " + err.Error())
		return nil
	}
	v.Theorems = account.Basis(loss)
	cost := loss.Epsilon(b.Delta)
	v.PlanEpsilon = upward(cost)
	v.tradeOff(loss, b)
	v.check(cost <= b.Epsilon*slack, "the whole plan costs ε = %s at δ = %s; the cap is %s", v.PlanEpsilon, v.Delta,
		v.Epsilon)
	v.checkPrefix(plan, a, b, rec, info.Resumed())
	realized, err := account.Spent(plan, a, rec.Event(), b.Adjacency, b.Delta)
	if err != nil {
		v.fail("what was charged cannot be accounted for: " + err.Error())
		return nil
	}
	v.Realized = upward(realized)
	v.check(realized <= b.Epsilon*slack, "what was charged so far costs ε = %s, which is within the cap", v.Realized)
	v.curve(loss, a, plan, b)
	v.spending(plan, a, b, rec)
	return nil
}

// share says what the guarantee assumes where owners share the noise, and what it is without that.
func (v *view) share(plan privacy.Event, rec *runlog.Record, a account.Accountant, b privacy.Budget) {
	s := privacy.SharingOf(plan)
	if s.Owners == 0 {
		return
	}
	alone := func(e privacy.Event) *float64 {
		if v.Filter || a == nil { // a filter has no theorem for shares
			return nil
		}
		if of := account.SharesOf(e, a, b.Adjacency, b.Delta); of != nil {
			return of.Alone
		}
		return new(float64) // nothing was charged
	}
	v.Shared = &sharedView{Against: text.Against(s.Colluders), All: text.AgainstAll, Alone: proven(alone(plan)),
		AloneRealized: proven(alone(rec.Event())),
		Trust:         text.Trust(s.Owners, s.Colluders), Retries: s.Retries}
	v.Terms = append(v.Terms, fact{"ε and δ hold against", v.Shared.Against + ", while masks hold"},
		fact{"at the same δ, against " + v.Shared.All, v.Shared.Alone},
		fact{"owners who share the noise", integer(s.Owners)}, fact{"of them, others who may collude", integer(s.Colluders)},
		fact{"attempts that may be given up", integer(s.Retries)})
}

// proven writes an ε, rounded up, or that there is none.
func proven(epsilon *float64) string {
	if epsilon == nil {
		return "no finite ε is proven"
	}
	return "ε = " + upward(*epsilon)
}

// tradeOff draws what any attack can reach, by the curve of the whole plan.
func (v *view) tradeOff(loss account.Loss, b privacy.Budget) {
	curve, err := account.NewTradeOff(loss, b.Delta)
	if err != nil {
		v.NoMu = err.Error()
		return
	}
	v.Mu, v.Outside, v.Regret = upward(curve.Mu), chart.AtMost(curve.Outside, 3), chart.AtMost(curve.Regret, 2)
	if curve.Outside == 0 {
		v.Outside = ""
	}
	v.TradeOff, v.Attacks = plotTradeOff(curve, b)
	if own := percentUp((1 + curve.Advantage()) / 2); own != v.Guess {
		v.Guess, v.GuessPair = own, v.Guess
	}
}

// plotTradeOff draws the curve beside what ε and δ alone and μ alone say, and gives its usual points.
func plotTradeOff(curve *account.TradeOff, b privacy.Budget) (svg template.HTML, attacks []attackRow) {
	pair := func(x float64) float64 {
		return math.Min(1, math.Min(b.Delta+math.Exp(b.Epsilon)*x, 1-math.Exp(-b.Epsilon)*(1-b.Delta-x)))
	}
	lines := []chart.Line{
		{Name: "the most that any attack on this plan reaches"},
		{Name: fmt.Sprintf("the same by ε = %s and δ = %s alone", exact(b.Epsilon), exact(b.Delta))},
		{Name: "guessing"},
		{Name: fmt.Sprintf("the same by μ = %s alone", upward(curve.Mu))},
	}
	const n = 120
	for i := range n + 1 {
		x := math.Pow(10, -4*(1-float64(i)/n))
		for k, y := range []float64{curve.Power(x), pair(x), x, curve.GaussianBound.Power(x)} {
			lines[k].X, lines[k].Y = append(lines[k].X, x), append(lines[k].Y, y)
		}
	}
	if curve.Regret == 0 { // μ says the same
		lines = lines[:3]
	}
	p := chart.Plot{ID: "tradeoff", Title: "The most true positives of any attack, by its false positives",
		XLabel: "false positive rate", YLabel: "true positive rate", LogX: true, LogY: true, Lines: lines}
	p.Desc = "At most"
	for i, a := range curve.Attacks() {
		row := attackRow{percent(a.FalsePositives, 1), chart.AtMost(100*a.TruePositives, 3) + " %",
			chart.AtMost(100*pair(a.FalsePositives), 3) + " %"}
		attacks = append(attacks, row)
		p.Desc += fmt.Sprintf("%s %s true positives at %s false positives", []string{"", ",", " and"}[i], row.Plan,
			row.FalsePositives)
	}
	p.Desc += "."
	return p.SVG(), attacks
}

// promise fills in the budget in words and what follows from it by arithmetic.
func (v *view) promise(b privacy.Budget) {
	v.Pure, v.Replace, v.Adjacency = b.Delta == 0, b.Adjacency == privacy.ReplaceOne, b.Adjacency.String()
	v.Epsilon, v.Delta = exact(b.Epsilon), exact(b.Delta)
	if !v.Pure {
		v.DeltaOdds = oneIn(b.Delta)
	}
	v.Change = change(b, exact)
	v.Guess = percentUp(guess(b))
	for _, prior := range []float64{0.01, 0.1, 0.5, 0.9} {
		v.Odds = append(v.Odds, fact{percent(prior, 0), percentUp(posterior(prior, b.Epsilon))})
	}
	v.PairEpsilon, v.PairDelta = exact(2*b.Epsilon), upward(b.Delta*(1+math.Exp(b.Epsilon)))
}

// change says how far one record can change the probability of any set of outcomes: for neighboring tables
// D and D′ and any set S, P(S | D) ≤ e^ε·P(S | D′) + δ. It writes δ with number.
func change(b privacy.Budget, number func(float64) string) string {
	factor := "e^ε, which is above every number here and protects nobody"
	if f := math.Exp(b.Epsilon); !math.IsInf(f, 1) {
		factor = chart.AtMost(f, 4)
	}
	if b.Delta > 0 {
		factor += ", plus " + number(b.Delta)
	}
	return "at most a factor of " + factor
}

// guess is the greatest chance to tell two neighboring tables apart that were
// equally likely beforehand. Both kinds of error are at least
// x = (1−δ)/(1+e^ε) where they are equal, which is where their sum is least.
func guess(b privacy.Budget) float64 { return 1 - (1-b.Delta)/(1+math.Exp(b.Epsilon)) }

// posterior is the greatest belief that Bayes' rule makes of a prior when the
// likelihoods differ by at most a factor e^ε.
func posterior(prior, epsilon float64) float64 {
	return 1 / (1 + (1-prior)/prior*math.Exp(-epsilon))
}

// check notes something recomputed; one that fails raises an alarm.
func (v *view) check(ok bool, format string, args ...any) {
	c := check{fmt.Sprintf(format, args...), ok}
	v.Checks = append(v.Checks, c)
	if !ok {
		v.Alarms = append(v.Alarms, "It was checked, and found wrong, that "+c.Text+".")
	}
}

func (v *view) fail(why string) {
	v.Alarms = append(v.Alarms, "The guarantee could not be recomputed: "+why+".")
}

// checkPrefix asks a meter of the plan whether it admits what was charged; the log of an interrupted run may have gaps.
func (v *view) checkPrefix(plan privacy.Event, a account.Accountant, b privacy.Budget, rec *runlog.Record,
	broken bool) {
	words := "every batch charged in the run log is the one that the plan holds at its position"
	if broken {
		words = "the batches charged in the run log are those of the plan in its order, some possibly left out where the run was interrupted"
	}
	if v.Shared != nil && v.Shared.Retries > 0 {
		words = "the batches charged in the run log are those of the plan in its order, each followed by no more retries than the plan has left"
	}
	if v.Filter {
		words = "the costs of the batches charged in the run log add up to no more than the filter admits"
	}
	meter, err := account.NewMeter(plan, a, b)
	if err != nil {
		return // the plan's cost is beyond the cap: said above
	}
	if broken {
		account.AllowGaps(meter)
	}
	for e := range rec.Batches() {
		if runlog.InHoldout(e) {
			account.AllowGaps(meter) // the method may have stopped early
		}
		if err := meter.Charge(e); err != nil {
			v.check(false, "%s (%v)", words, err)
			return
		}
	}
	v.check(true, "%s", words)
}

// curve draws ε over δ for the plan, and that of a second accountant if one differs.
func (v *view) curve(loss account.Loss, a account.Accountant, plan privacy.Event, b privacy.Budget) {
	lo, hi := leastDelta, mostDelta
	if b.Delta > 0 {
		lo, hi = math.Min(lo, b.Delta), math.Max(hi, b.Delta)
	}
	var deltas []float64
	n := int(math.Ceil(math.Log10(hi/lo) * pointsADecade))
	for i := range n + 1 {
		deltas = append(deltas, math.Min(hi, lo*math.Pow(10, float64(i)/pointsADecade)))
	}
	rows := []float64{1e-10, 1e-8, 1e-6, 1e-5, 1e-4}
	if !slices.Contains(rows, b.Delta) && b.Delta > 0 {
		rows = append(rows, b.Delta)
		slices.Sort(rows)
	}
	over := func(l account.Loss) []float64 {
		return account.Curve(l, slices.Concat(rows, []float64{lo, hi}), deltas)
	}
	y := over(loss)
	if !slices.ContainsFunc(y, finite) {
		return
	}
	p := chart.Plot{
		ID: "curve", Title: "ε of the plan for each δ", XLabel: "δ (logarithmic)", YLabel: "ε", LogX: true,
		Lines: []chart.Line{{Name: "accountant " + a.String(), X: deltas, Y: y}},
	}
	p.Desc = fmt.Sprintf("By accountant %v, ε is %s at δ = %s and %s at δ = %s.", a, number(y[0]), number(deltas[0]),
		number(y[n]), number(deltas[n]))
	v.Chosen = a.String()
	beside := besides(plan, a, b.Adjacency, y, over)
	if beside.name != "" {
		v.Beside = beside.name
		p.Lines = append(p.Lines, chart.Line{Name: "accountant " + beside.name + ", for comparison", X: deltas, Y: beside.y})
		p.Desc += fmt.Sprintf(" By accountant %s it is %s and %s.", beside.name, number(beside.y[0]), number(beside.y[n]))
	}
	if at := loss.Epsilon(b.Delta); b.Delta > 0 && finite(at) {
		p.Mark, p.MarkName = &[2]float64{b.Delta, at}, fmt.Sprintf("δ = %s of this run: ε = %s", v.Delta, upward(at))
		p.Desc += fmt.Sprintf(" At the δ of this run, %s, it is %s.", v.Delta, upward(at))
	}
	v.Curve = p.SVG()

	for _, d := range rows {
		row := curveRow{Delta: exact(d), Chosen: upward(loss.Epsilon(d)), Here: d == b.Delta}
		if beside.loss != nil {
			row.Beside = upward(beside.loss.Epsilon(d))
		}
		v.CurveRows = append(v.CurveRows, row)
	}
}

type second struct {
	name string
	loss account.Loss
	y    []float64
}

// besides finds an accountant whose curve differs visibly from y.
func besides(plan privacy.Event, chosen account.Accountant, adj privacy.Adjacency, y []float64,
	over func(account.Loss) []float64) second {
	for _, name := range []string{"gdp", "rdp", "zcdp", "pure"} {
		a, err := account.ByName(name)
		if err != nil || name == chosen.String() {
			continue
		}
		loss, err := a.Loss(plan, adj)
		if err != nil {
			continue
		}
		other := over(loss)
		for i := range y {
			if finite(other[i]) && finite(y[i]) && math.Abs(other[i]-y[i]) > 1e-3*y[i] {
				return second{name, loss, other}
			}
		}
	}
	return second{}
}

// spending draws ε of the charges after each batch.
func (v *view) spending(plan privacy.Event, a account.Accountant, b privacy.Budget, rec *runlog.Record) {
	charged := rec.Charged()
	if charged == 0 {
		return
	}
	l := chart.Line{X: []float64{0}, Y: []float64{0}}
	after := func(n int) (float64, error) {
		return account.SpentNear(plan, a, prefix(rec, n).Event(), b.Adjacency, b.Delta)
	}
	points := prefixes
	if privacy.Contains[privacy.PoissonSampled](plan) || privacy.Contains[privacy.FixedSampled](plan) ||
		privacy.Contains[privacy.Allocated](plan) {
		points = compositions
	}
	if meter, err := account.NewMeter(plan, a, b); err == nil && v.Filter {
		f, done := meter.(*account.Filter), 0
		next, stop := iter.Pull(rec.Batches())
		defer stop()
		after = func(n int) (float64, error) { // a filter can have many different events: it takes each once
			for ; done < n; done++ {
				e, _ := next()
				if err := f.Charge(e); err != nil {
					return 0, err
				}
			}
			return f.Epsilon(), nil
		}
	}
	for i := range points {
		// ε grows like a root, so the points are closest at the beginning.
		n := int(math.Ceil(float64(charged) * float64((i+1)*(i+1)) / float64(points*points)))
		if float64(n) == l.X[len(l.X)-1] {
			continue
		}
		epsilon, err := after(n)
		if err != nil {
			return
		}
		if n > 1 { // ε does not fall: up to this point it is no more than there
			l.X, l.Y = append(l.X, l.X[len(l.X)-1]), append(l.Y, epsilon)
		}
		l.X, l.Y = append(l.X, float64(n)), append(l.Y, epsilon)
	}
	if !finite(l.Y[len(l.Y)-1]) {
		return
	}
	l.Name = fmt.Sprintf("ε at δ = %s", v.Delta)
	p := chart.Plot{
		ID: "spent", Title: "ε spent by batch", XLabel: "batches charged", YLabel: "ε", Lines: []chart.Line{l},
		Desc: fmt.Sprintf("After %s batches, ε is %s; the cap is %s. Each step of the line is as high as ε after its last batch.", v.Charged, v.Realized, v.Epsilon),
	}
	p.Level, p.LevelName = &b.Epsilon, "cap: ε = "+v.Epsilon
	v.Spent = p.SVG()
}

// prefix is the first n batches of a record.
func prefix(rec *runlog.Record, n int) *runlog.Record {
	var p runlog.Record
	for _, c := range rec.Events {
		if c.Count = min(c.Count, n-c.First); c.Count <= 0 {
			break
		}
		p.Events = append(p.Events, c)
	}
	return &p
}

// progress draws what steps.jsonl holds.
func (v *view) progress(rec *runlog.Record) {
	if len(rec.Steps) == 0 {
		return
	}
	x, rate, norm := make([]float64, len(rec.Steps)), make([]float64, len(rec.Steps)), make([]float64, len(rec.Steps))
	for i, s := range rec.Steps {
		x[i], rate[i], norm[i] = float64(s.T), s.Rate, s.GradNorm
	}
	draw := func(id, title, label string, y []float64) template.HTML {
		tx, ty := chart.Thin(x, y)
		p := chart.Plot{ID: id, Title: title, XLabel: "step", YLabel: label, Lines: []chart.Line{{X: tx, Y: ty}}}
		p.Desc = fmt.Sprintf("%s over %s steps: %s at the first, %s at the last, between %s and %s.", label,
			integer(len(y)), number(y[0]), number(y[len(y)-1]), number(slices.Min(y)), number(slices.Max(y)))
		return p.SVG()
	}
	v.Rates = draw("rate", "Step size by step", "step size", rate)
	v.Norms = draw("norm", "Norm of the released gradient by step", "gradient norm", norm)
}
