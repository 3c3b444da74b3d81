package record

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

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

// falsePositives are the rates at which the trade-off curve is tabulated.
var falsePositives = []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3}

// claim fills in the budget of the run, and what follows from it by arithmetic.
func (r *Record) claim(info *runlog.Info, s *account.Shares) {
	if info.Off {
		return
	}
	b := info.Budget
	g := &Guarantee{Epsilon: b.Epsilon, Delta: b.Delta, Relation: b.Adjacency, Accountant: info.Accountant,
		GDP: info.GDP, Theorems: []Theorem{}}
	g.besides(info)
	g.Factor, g.Guess = Bound(math.Exp(b.Epsilon)), guess(b)
	if b.Delta > 0 {
		g.DeltaOdds, g.DeltaRows = Bound(1/b.Delta), Bound(b.Delta*float64(r.Public.Table.Rows))
	}
	g.Pair = Pair{Bound(2 * b.Epsilon), Bound(b.Delta * (1 + math.Exp(b.Epsilon)))}
	for _, prior := range []float64{0.01, 0.1, 0.5, 0.9} {
		g.Beliefs = append(g.Beliefs, Belief{prior, posterior(prior, b.Epsilon)})
	}
	g.Words = fmt.Sprintf("%s changes the probability of any set of outcomes by %s", r.Protection.Change(),
		Change(b))
	if s != nil {
		against := text.Against(s.Colluders)
		g.Words += fmt.Sprintf(", against %s, while masks hold", against)
		g.Shares = &Shares{Owners: s.Owners, Colluders: s.Colluders, Retries: s.Retries, Against: against,
			AgainstAll: text.AgainstAll, EpsilonAlone: s.Alone, Trusted: text.Trust(s.Owners, s.Colluders)}
	}
	r.Guarantee = g
}

// Change says how far one record can change the probability of any set of outcomes: for neighboring tables
// D and D′ and any set S, P(S | D) ≤ e^ε·P(S | D′) + δ.
func Change(b privacy.Budget) string {
	factor := "e^ε, which is above every number here and protects nobody"
	if f := math.Exp(b.Epsilon); !math.IsInf(f, 1) {
		factor = upward(f)
	}
	if b.Delta > 0 {
		factor += ", plus " + exact(b.Delta)
	}
	return "at most a factor of " + factor
}

// guess is the greatest chance to tell two neighboring tables apart that were equally likely beforehand. Both kinds of
// error are at least (1−δ)/(1+e^ε) where they are equal, which is where their sum is least.
func guess(b privacy.Budget) float64 { return 1 - (1-b.Delta)/(1+math.Exp(b.Epsilon)) }

// posterior is the greatest belief that Bayes' rule makes of a prior when the
// likelihoods differ by at most a factor e^ε.
func posterior(prior, epsilon float64) float64 {
	return 1 / (1 + (1-prior)/prior*math.Exp(-epsilon))
}

// besides sets the parts of the budget that releases beside the gradients took: of μ², which adds up over Gaussian
// noise on all rows. 0: they were not asked, or it is not to be known.
func (g *Guarantee) besides(i *runlog.Info) {
	var config struct {
		First  float64 `json:"first_noise"`
		Count  float64 `json:"share_noise"`
		Center float64 `json:"center_noise"`
		Last   float64 `json:"last_noise"`
	}
	if json.Unmarshal(i.Config, &config) != nil || !(i.NoiseMultiplier > 0) {
		return
	}
	square := func(noise float64) float64 {
		if !(noise > 0) {
			return 0
		}
		return 1 / (noise * noise)
	}
	all := square(config.First) + square(config.Count) + square(config.Center) + square(config.Last) +
		float64(i.MaxSteps)*square(i.NoiseMultiplier)
	share := func(noise float64) float64 {
		if s := square(noise) / all; finite(s) {
			return s
		}
		return 0
	}
	g.FirstShare, g.CountShare = share(config.First), share(config.Count)
	g.CenterShare, g.LastShare = share(config.Center), share(config.Last)
	g.FirstAlone, g.CountAlone = alone(i, config.First), alone(i, config.Count)
	g.CenterAlone, g.LastAlone = alone(i, config.Center), alone(i, config.Last)
}

// alone is what a release with that noise multiplier on all rows would cost by itself.
func alone(i *runlog.Info, noise float64) *Bound {
	a, err := account.ByName(i.Accountant)
	if err != nil || !(noise > 0) {
		return nil
	}
	loss, err := a.Loss(privacy.Gaussian{Sigma: noise}, i.Budget.Adjacency)
	if err != nil {
		return nil
	}
	if epsilon := loss.Epsilon(i.Budget.Delta); finite(epsilon) {
		return new(Bound(epsilon))
	}
	return nil
}

// A proof is what the guarantee was recomputed from.
type proof struct {
	plan privacy.Event
	by   account.Accountant
	loss account.Loss
}

// Prove recomputes the guarantee from the plan.
func (r *Record) Prove(info *runlog.Info, log *runlog.Record) error {
	_, err := r.prove(info, log)
	return err
}

// prove is nil where the guarantee cannot be recomputed, of which there is a finding, or where there is none.
func (r *Record) prove(info *runlog.Info, log *runlog.Record) (*proof, error) {
	plan, err := info.PlanEvent()
	if err != nil {
		return nil, err
	}
	g, b := r.Guarantee, info.Budget
	if g == nil {
		return nil, nil
	}
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("%s: budget: %w", runlog.InfoFile, err)
	}
	g.GDP = nil // recomputed below
	shown := plan
	if _, g.Filter = plan.(privacy.Filtered); g.Filter { // it names neither noise nor sampling
		shown = log.Event()
	}
	g.Noise, g.Sampling = terms(shown)
	a, err := account.ByName(info.Accountant)
	r.share(plan, log, a, b)
	if err != nil {
		r.check(Guaranteed, false, "the accountant is not known to this version: "+err.Error())
		return nil, nil
	}
	loss, err := a.Loss(plan, b.Adjacency)
	if err != nil {
		r.check(Guaranteed, false, "the plan cannot be accounted for: "+err.Error())
		return nil, nil
	}
	for _, t := range account.Basis(loss) {
		g.Theorems = append(g.Theorems, Theorem{t.Title, t.Source, t.Anchor})
	}
	cost := loss.Epsilon(b.Delta)
	g.PlanEpsilon = new(Bound(cost))
	g.tradeOff(loss, b)
	r.check("plan", cost <= b.Epsilon*slack, fmt.Sprintf("the whole plan costs ε = %s at δ = %s; the cap is %s",
		upward(cost), exact(b.Delta), exact(b.Epsilon)))
	return &proof{plan, a, loss}, nil
}

// spend recomputes what was charged from the events of the log, and the curves.
func (r *Record) spend(p *proof, info *runlog.Info, log *runlog.Record) {
	g, b := r.Guarantee, info.Budget
	r.checkPrefix(p.plan, p.by, b, log, info.Resumed())
	realized, err := account.Spent(p.plan, p.by, log.Event(), b.Adjacency, b.Delta)
	if err != nil {
		r.check(Guaranteed, false, "what was charged cannot be accounted for: "+err.Error())
		return
	}
	g.Realized = new(Bound(realized))
	r.check("charges", realized <= b.Epsilon*slack,
		fmt.Sprintf("what was charged so far costs ε = %s, which is within the cap", upward(realized)))
	g.Curve = curveOf(p.loss, p.by, p.plan, b)
	g.Spending = g.spending(p.plan, p.by, b, log)
}

// Charged is ε of what was charged; nil where it is not known. The plan's curves are not computed.
func Charged(info *runlog.Info, log *runlog.Record) *Bound {
	if info.Off {
		return nil
	}
	plan, err := info.PlanEvent()
	if err != nil {
		return nil
	}
	a, err := account.ByName(info.Accountant)
	if err != nil {
		return nil
	}
	epsilon, err := account.Spent(plan, a, log.Event(), info.Budget.Adjacency, info.Budget.Delta)
	if err != nil {
		return nil
	}
	return new(Bound(epsilon))
}

// share says what the guarantee is without what it assumes where owners share the noise, by the recomputed plan.
func (r *Record) share(plan privacy.Event, log *runlog.Record, a account.Accountant, b privacy.Budget) {
	s := r.Guarantee.Shares
	if s == nil {
		return
	}
	alone := func(e privacy.Event) *float64 {
		if r.Guarantee.Filter || a == nil { // a filter has no theorem for shares
			return nil
		}
		if of := account.SharesOf(e, a, b.Adjacency, b.Delta); of != nil {
			return of.Alone
		}
		return new(float64) // nothing was charged
	}
	s.EpsilonAlone, s.ChargedAlone = alone(plan), alone(log.Event())
}

// tradeOff says what any attack can reach, by the curve of the whole plan.
func (g *Guarantee) tradeOff(loss account.Loss, b privacy.Budget) {
	curve, err := account.NewTradeOff(loss, b.Delta)
	if err != nil {
		g.NoGDP = err.Error()
		return
	}
	g.GDP = &curve.GaussianBound
	g.PlanGuess = new((1 + curve.Advantage()) / 2)
	pair := func(x float64) float64 {
		return math.Min(1, math.Min(b.Delta+math.Exp(b.Epsilon)*x, 1-math.Exp(-b.Epsilon)*(1-b.Delta-x)))
	}
	for _, x := range falsePositives {
		g.Attacks = append(g.Attacks, Attack{x, curve.Power(x), pair(x)})
	}
	t := &TradeOff{}
	const n = 120
	for i := range n + 1 {
		x := math.Pow(10, -4*(1-float64(i)/n))
		t.FalsePositives = append(t.FalsePositives, x)
		t.Plan, t.Pair = append(t.Plan, curve.Power(x)), append(t.Pair, pair(x))
		if curve.Regret > 0 { // else μ says the same
			t.Gaussian = append(t.Gaussian, curve.GaussianBound.Power(x))
		}
	}
	g.TradeOff = t
}

// checkPrefix asks a meter of the plan whether it admits what was charged; the log of an interrupted run may have gaps.
func (r *Record) checkPrefix(plan privacy.Event, a account.Accountant, b privacy.Budget, log *runlog.Record,
	broken bool) {
	words := "every batch charged in the run log is the one that the plan holds at its position"
	if broken {
		words = "the batches charged in the run log are those of the plan in its order, some possibly left out where the run was interrupted"
	}
	if s := r.Guarantee.Shares; s != nil && s.Retries > 0 {
		words = "the batches charged in the run log are those of the plan in its order, each followed by no more retries than the plan has left"
	}
	if r.Guarantee.Filter {
		words = "the costs of the batches charged in the run log add up to no more than the filter admits"
	}
	meter, err := account.NewMeter(plan, a, b)
	if err != nil {
		return // the plan's cost is beyond the cap: said above
	}
	if broken {
		account.AllowGaps(meter)
	}
	for e := range log.Batches() {
		if runlog.InHoldout(e) {
			account.AllowGaps(meter) // the method may have stopped early
		}
		if err := meter.Charge(e); err != nil {
			r.check("order", false, fmt.Sprintf("%s (%v)", words, err))
			return
		}
	}
	r.check("order", true, words)
}

// curveOf is ε over δ for the plan, with that of a second accountant if one differs; nil where it is infinite.
func curveOf(loss account.Loss, a account.Accountant, plan privacy.Event, b privacy.Budget) *Curve {
	lo, hi := leastDelta, mostDelta
	if b.Delta > 0 {
		lo, hi = math.Min(lo, b.Delta), math.Max(hi, b.Delta)
	}
	c := &Curve{}
	n := int(math.Ceil(math.Log10(hi/lo) * pointsADecade))
	for i := range n + 1 {
		c.Delta = append(c.Delta, math.Min(hi, lo*math.Pow(10, float64(i)/pointsADecade)))
	}
	rows := []float64{1e-10, 1e-8, 1e-6, 1e-5, 1e-4}
	if !slices.Contains(rows, b.Delta) && b.Delta > 0 {
		rows = append(rows, b.Delta)
		slices.Sort(rows)
	}
	over := func(l account.Loss) []float64 {
		return account.Curve(l, slices.Concat(rows, []float64{lo, hi}), c.Delta)
	}
	c.Epsilon = over(loss)
	if !slices.ContainsFunc(c.Epsilon, finite) {
		return nil
	}
	var second account.Loss
	c.Second, second, c.BySecond = besides(plan, a, b.Adjacency, c.Epsilon, over)
	for _, d := range rows {
		p := CurvePoint{Delta: d, Epsilon: Bound(loss.Epsilon(d))}
		if second != nil {
			p.BySecond = new(Bound(second.Epsilon(d)))
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// besides finds an accountant whose curve differs visibly from y.
func besides(plan privacy.Event, chosen account.Accountant, adj privacy.Adjacency, y []float64,
	over func(account.Loss) []float64) (name string, loss account.Loss, curve []float64) {
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
				return name, loss, other
			}
		}
	}
	return "", nil, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// spending is ε of the charges after some batches; nil where it is not finite.
func (g *Guarantee) spending(plan privacy.Event, a account.Accountant, b privacy.Budget,
	log *runlog.Record) (spent []Spent) {
	charged := log.Charged()
	if charged == 0 {
		return nil
	}
	after := func(n int) (float64, error) {
		return account.SpentNear(plan, a, prefix(log, n).Event(), b.Adjacency, b.Delta)
	}
	points := prefixes
	if privacy.Contains[privacy.PoissonSampled](plan) || privacy.Contains[privacy.FixedSampled](plan) ||
		privacy.Contains[privacy.Allocated](plan) {
		points = compositions
	}
	if meter, err := account.NewMeter(plan, a, b); err == nil && g.Filter {
		f, done := meter.(*account.Filter), 0
		next, stop := iter.Pull(log.Batches())
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
	last := 0
	for i := range points {
		// ε grows like a root, so the points are closest at the beginning.
		n := int(math.Ceil(float64(charged) * float64((i+1)*(i+1)) / float64(points*points)))
		if n == last {
			continue
		}
		epsilon, err := after(n)
		if err != nil {
			return nil
		}
		spent, last = append(spent, Spent{n, epsilon}), n
	}
	if !finite(spent[len(spent)-1].Epsilon) {
		return nil
	}
	return spent
}

// prefix is the first n batches of a log.
func prefix(log *runlog.Record, n int) *runlog.Record {
	var p runlog.Record
	for _, c := range log.Events {
		if c.Count = min(c.Count, n-c.First); c.Count <= 0 {
			break
		}
		p.Events = append(p.Events, c)
	}
	return &p
}

// protectionOf says who is protected against whom.
func protectionOf(i *runlog.Info, s *account.Shares) Protection {
	p := Protection{Unit: i.Unit, UnitRows: i.UnitRows, Whom: "any one " + i.Whom(), Relation: i.Budget.Adjacency.String(),
		Neighbors: fmt.Sprintf("two tables, of which one has one %s more than the other; how many there are is private",
			i.Unit),
		TrustModel: "central: one operator has the rows and releases only noisy results",
		Trusted:    "the operator, the machine during the run, and everyone who can read the table or the ledger",
		Adversary:  "anyone who sees all that was released and knows the schema, the settings, the program and every other record, with any amount of computing time; not someone who sees the machine during the run",
		Outcome:    "all that the run released together: every noisy sum, every iterate and the final model",
	}
	if i.Budget.Adjacency == privacy.ReplaceOne {
		p.Neighbors = fmt.Sprintf("two tables that differ in one %s; how many there are is public", i.Unit)
	}
	if i.Shards > 0 {
		p.TrustModel = fmt.Sprintf("central: one operator has the rows, on %d machines whose sums are sealed, and releases only noisy results", i.Shards)
	}
	if s != nil {
		p.TrustModel = fmt.Sprintf("shared: each of %d owners has its own rows, adds its share of the noise to its sum, and masks it; only the sum of all owners can be read", s.Owners)
		p.Trusted += ". " + text.Trust(s.Owners, s.Colluders)
		p.Adversary = text.Against(s.Colluders) + ", while masks hold: " +
			strings.Replace(p.Adversary, "any amount of computing time",
				"any amount of computing time, short of breaking the masks", 1)
	}
	if i.Search != nil {
		p.Outcome = "what the search released: which candidate won, its score and its model"
	}
	return p
}
