// Package methodtest is the conformance suite of methods. Every method of the
// registry passes it, and a new one gets it for free.
//
// It checks that what a method asks is what it planned; that it stops without an
// error when the oracle refuses, and asks nothing more when its caller breaks
// off; that it is post-processing, by replaying its releases through an oracle
// that holds no data; that it survives a hostile answer; and that without noise
// it reaches the optimum of a quadratic and of a logistic problem.
package methodtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
)

// Problem is a smooth convex function with its gradient, for an oracle without
// records.
type Problem struct {
	Name   string
	Dim    int
	Smooth float64                // bound on the curvature
	Grad   func(dst, w []float64) // sets dst
	Hess   func(dst, w []float64) // sets dst, row after row; nil: there is none to ask for
	Value  func(w []float64) float64
	Best   float64 // its minimum
}

// Oracle answers a Problem's gradients, Hessians, losses, searches and choices, with noise from a fixed seed. It stands
// in for the private oracle and keeps what was charged and released.
type Oracle struct {
	Problem Problem
	Facts   oracle.Public
	Noise   float64           // standard deviation added to each coordinate
	Meter   account.Meter     // nil: anything goes
	Answer  func(g []float64) // changes an answer, to be hostile; nil: leaves it
	Record  []replay.Released

	rnd   *rand.Rand
	pay   []oracle.Query
	draws []int // of noise, for each batch
}

// NewOracle is an oracle over a problem with facts that suit it.
func NewOracle(p Problem, noise float64) *Oracle {
	return &Oracle{
		Problem: p, Noise: noise, rnd: rand.New(rand.NewPCG(1, 2)),
		Facts: oracle.Public{Dim: p.Dim, Rows: 1000, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1,
			Lipschitz: oracle.Bound(math.Inf(1)), Smooth: oracle.Bound(p.Smooth), LabelSpan: 8,
			HessLipschitz: 1, Curved: p.Hess != nil, Intercept: p.Dim},
	}
}

// Public implements oracle.Oracle.
func (o *Oracle) Public() oracle.Public { return o.Facts }

// Batch implements oracle.Oracle.
func (o *Oracle) Batch(ctx context.Context, s sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, q := range pay { // as the private oracle does
		if err := q.Validate(); err != nil {
			return nil, err
		}
	}
	cost := o.Facts.Cost(s, pay)
	if o.Meter != nil {
		if err := o.Meter.Charge(cost); err != nil {
			return nil, err
		}
	}
	o.pay, o.draws = slices.Clone(pay), append(o.draws, 0)
	o.Record = append(o.Record, replay.Released{Event: cost})
	return o, nil
}

// Refine implements oracle.Refiner. The problem stays as it is.
func (o *Oracle) Refine(_ context.Context, c oracle.Choice) error { return c.Check(o.Facts) }

// Grad implements oracle.Batch.
func (o *Oracle) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	if err := o.take(q); err != nil {
		return nil, err
	}
	w = w[:o.Facts.Dim] // behind them may be a center
	g := make([]float64, len(w))
	o.Problem.Grad(g, w)
	for j := range g {
		g[j] += o.noise()
	}
	if o.Answer != nil {
		o.Answer(g)
	}
	o.release(slices.Clone(g))
	return g, nil
}

// Mean implements oracle.Batch: of rows around 0.
func (o *Oracle) Mean(q oracle.Mean) ([]float64, error) {
	if err := o.take(q); err != nil {
		return nil, err
	}
	m := make([]float64, o.Facts.Features())
	for j := range m {
		m[j] = o.noise()
	}
	if o.Answer != nil {
		o.Answer(m)
	}
	o.release(slices.Clone(m))
	return m, nil
}

// Totals implements oracle.Batch: of no rows.
func (o *Oracle) Totals(q oracle.Totals) ([]float64, error) {
	if err := o.take(q); err != nil {
		return nil, err
	}
	sums := make([]float64, q.Len(o.Facts))
	for j := range sums {
		sums[j] = o.noise()
	}
	if o.Answer != nil {
		o.Answer(sums)
	}
	o.release(slices.Clone(sums))
	return sums, nil
}

// Hess implements oracle.Batch. The noise of a gradient's coordinate is in each entry.
func (o *Oracle) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	if err := o.take(q); err != nil {
		return nil, err
	}
	full := make([]float64, len(w)*len(w))
	o.Problem.Hess(full, w)
	h := make([]float64, 0, oracle.HessLen(len(w)))
	for i := range w {
		for j := i; j < len(w); j++ {
			h = append(h, full[i*len(w)+j]+o.noise())
		}
	}
	if o.Answer != nil {
		o.Answer(h)
	}
	o.release(slices.Clone(h))
	return h, nil
}

// Search implements oracle.Batch. A tenth of the noise of a gradient is in each decrease;
// nothing is clipped.
func (o *Oracle) Search(q oracle.Search, along oracle.Line) (int, error) {
	if err := along.Check(q, o.Facts.Dim); err != nil {
		return 0, err
	}
	if err := o.take(q); err != nil {
		return 0, err
	}
	before, w, found := o.Problem.Value(along.From), make([]float64, o.Facts.Dim), -1
	for k, eta := range along.Steps {
		for j := range w {
			w[j] = along.From[j] - eta*along.Along[j]
		}
		if before-o.Problem.Value(w)+o.noise()/10 >= along.Least[k] {
			found = k
			break
		}
	}
	o.release([]float64{oracle.Found(found)})
	return found, nil
}

// Select implements oracle.Batch, with the noise of a search in each score. Classes are as many as noise says.
func (o *Oracle) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	n, err := oracle.CheckChoice(q, among, o.Facts)
	if err != nil {
		return 0, err
	}
	if err := o.take(q); err != nil {
		return 0, err
	}
	best, most := 0, math.Inf(-1)
	for k := range n {
		var from, least, w []float64
		switch c := among.(type) {
		case oracle.Line:
			from, least, w = c.From, c.Least, slices.Clone(c.From)
			for j := range w {
				w[j] -= c.Steps[k] * c.Along[j]
			}
		case oracle.Neighbors:
			from, least, w = c.From, c.Least, slices.Clone(c.From)
			c.Move(w, k)
		}
		score := o.noise() / 10
		if w != nil {
			score += o.Problem.Value(from) - o.Problem.Value(w)
		}
		if least != nil {
			score -= least[k]
		}
		if score > most {
			best, most = k, score
		}
	}
	o.release([]float64{oracle.Found(best)})
	return best, nil
}

// Loss implements oracle.Batch.
func (o *Oracle) Loss(q oracle.Loss, w []float64) (float64, error) {
	if err := o.take(q); err != nil {
		return 0, err
	}
	l := o.Problem.Value(w[:o.Facts.Dim]) + o.noise() // behind them may be an offset
	if q.Signed {
		l -= 0.5
	}
	o.release([]float64{l})
	return l, nil
}

// Score implements oracle.Batch with numbers that are noise alone.
func (o *Oracle) Score(q oracle.Score, w []float64) ([]float64, error) {
	if err := o.take(q); err != nil {
		return nil, err
	}
	a := make([]float64, q.Len(o.Facts.Classes))
	for k := range a {
		a[k] = o.noise()
	}
	o.release(slices.Clone(a))
	return a, nil
}

// Margins implements oracle.Batch with numbers that are noise alone.
func (o *Oracle) Margins(q oracle.Margins, at []float64) ([]float64, error) {
	if err := q.Fits(o.Facts, at); err != nil {
		return nil, err
	}
	if err := o.take(q); err != nil {
		return nil, err
	}
	a := make([]float64, q.Len(o.Facts))
	for k := range a {
		a[k] = o.noise()
	}
	if o.Answer != nil {
		o.Answer(a)
	}
	o.release(slices.Clone(a))
	return a, nil
}

// Minimize implements oracle.Batch: gradient descent, of as many steps as a Descent has passes, or until it has
// arrived.
func (o *Oracle) Minimize(q oracle.Minimize) ([]float64, error) {
	if err := o.take(q); err != nil {
		return nil, err
	}
	steps, l2 := 20000, q.L2
	rate := 1 / (o.Problem.Smooth + l2)
	switch how := q.How.(type) {
	case oracle.Descent:
		steps, rate = how.Passes, how.Rate
	case oracle.Objective:
		l2 += how.Lambda / float64(o.Facts.Rows)
		rate = 1 / (o.Problem.Smooth + l2)
	}
	w, g := make([]float64, o.Facts.Dim), make([]float64, o.Facts.Dim)
	for range steps {
		o.Problem.Grad(g, w)
		for j := range w {
			w[j] -= rate * (g[j] + l2*w[j])
		}
	}
	for j := range w {
		w[j] += o.noise()
	}
	if o.Answer != nil {
		o.Answer(w)
	}
	o.release(slices.Clone(w))
	return w, nil
}

// take marks q as asked.
func (o *Oracle) take(q oracle.Query) error {
	i := slices.Index(o.pay, q)
	if i < 0 {
		return oracle.ErrNotCharged
	}
	o.pay = slices.Delete(o.pay, i, i+1)
	return nil
}

func (o *Oracle) noise() float64 {
	o.draws[len(o.draws)-1]++
	return o.Noise * o.rnd.NormFloat64()
}

func (o *Oracle) release(answer []float64) {
	last := &o.Record[len(o.Record)-1]
	last.Answers = append(last.Answers, answer)
}

// Quadratic is ½ Σ λ_j (w_j − 1)² with eigenvalues from 1/condition to 1.
func Quadratic(dim int, condition float64) Problem {
	lambda := make([]float64, dim)
	for j := range lambda {
		lambda[j] = math.Pow(condition, -float64(j)/float64(max(1, dim-1)))
	}
	return Problem{
		Name: "quadratic", Dim: dim, Smooth: 1,
		Grad: func(dst, w []float64) {
			for j := range w {
				dst[j] = lambda[j] * (w[j] - 1)
			}
		},
		Hess: func(dst, w []float64) {
			clear(dst)
			for j, l := range lambda {
				dst[j*dim+j] = l
			}
		},
		Value: func(w []float64) float64 {
			v := 0.0
			for j := range w {
				v += lambda[j] * (w[j] - 1) * (w[j] - 1) / 2
			}
			return v
		},
	}
}

// Logistic is the mean of ln(1+e^{−y x'w}) over a fixed table plus 0.05‖w‖²; its
// minimum comes from Newton's method.
func Logistic(dim int) Problem {
	rnd := rand.New(rand.NewPCG(3, 4))
	const n, ridge = 60, 0.1
	xs := make([][]float64, n)
	for i := range xs {
		xs[i] = make([]float64, dim)
		norm := 0.0
		for j := range xs[i] {
			xs[i][j] = rnd.NormFloat64()
			norm += xs[i][j] * xs[i][j]
		}
		y := 1.0
		if rnd.Float64() < 0.5/(1+math.Exp(xs[i][0])) {
			y = -1
		}
		for j := range xs[i] {
			xs[i][j] *= y / math.Sqrt(norm) // y x, unit rows
		}
	}
	p := Problem{
		Name: "logistic", Dim: dim, Smooth: 0.25 + ridge,
		Grad: func(dst, w []float64) {
			for j := range dst {
				dst[j] = ridge * w[j]
			}
			for _, x := range xs {
				s := -1 / (1 + math.Exp(dot(x, w))) / n
				for j := range dst {
					dst[j] += s * x[j]
				}
			}
		},
		Hess: func(dst, w []float64) {
			clear(dst)
			for j := range dim {
				dst[j*dim+j] = ridge
			}
			for _, x := range xs {
				e := math.Exp(-math.Abs(dot(x, w)))
				h := e / (1 + e) / (1 + e) / n
				for i := range dim {
					for j := range dim {
						dst[i*dim+j] += h * x[i] * x[j]
					}
				}
			}
		},
		Value: func(w []float64) float64 {
			v := ridge / 2 * dot(w, w)
			for _, x := range xs {
				v += math.Log1p(math.Exp(-dot(x, w))) / n
			}
			return v
		},
	}
	w, g := make([]float64, dim), make([]float64, dim)
	for range 20000 { // plain gradient descent: strongly convex, so it gets there
		p.Grad(g, w)
		for j := range w {
			w[j] -= g[j] / p.Smooth
		}
	}
	p.Best = p.Value(w)
	return p
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// Off are terms without noise, for convergence.
var Off = method.Terms{Off: true}

// On are ordinary terms.
var On = method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove},
	Accountant: account.Best{}}

// Pure are terms with δ = 0, which a method of Gaussian noise alone refuses by the
// field privacy.delta.
var Pure = method.Terms{Budget: privacy.Budget{Epsilon: 1, Adjacency: privacy.AddRemove}, Accountant: account.Best{}}

// setting is the oracle and the terms that a method is checked under.
type setting struct {
	terms method.Terms
	facts oracle.Public
}

func (s setting) oracle(noise float64) *Oracle {
	o := NewOracle(Quadratic(4, 10), noise)
	o.Facts = s.facts
	return o
}

// needsSquared says whether a method refuses other losses than the squared one.
func needsSquared(m method.Method) bool {
	_, err := m.Configure(NewOracle(Quadratic(4, 10), 0).Facts, method.Objective{}, On)
	return err != nil && strings.HasPrefix(err.Error(), "model.name:")
}

// squared are facts of a squared loss for a method that needs one, and facts themselves for any other.
func squared(m method.Method, facts oracle.Public) oracle.Public {
	if needsSquared(m) {
		facts.Classes, facts.HessLipschitz, facts.Shifted = 0, 0, true
	}
	return facts
}

// settings are On and Pure, as far as m takes them; for a method that says that it needs replace-one, with that and a
// loss of one margin and bounded slope; for one that needs the squared loss, with that; for one that says that it is
// for the lab, Off.
func settings(m method.Method) []setting {
	usual := squared(m, NewOracle(Quadratic(4, 10), 0).Facts)
	one := usual
	one.Adjacency, one.Lipschitz, one.OneMargin = privacy.ReplaceOne, 1, true
	var all []setting
	for _, terms := range []method.Terms{On, Pure} {
		s := setting{terms, usual}
		_, err := m.Configure(s.facts, method.Objective{}, s.terms)
		if err != nil && strings.HasPrefix(err.Error(), "privacy.adjacency:") {
			s.facts, s.terms.Budget.Adjacency = one, privacy.ReplaceOne
			_, err = m.Configure(s.facts, method.Objective{}, s.terms)
		}
		switch {
		case err != nil && terms.Budget.Delta == 0 && strings.HasPrefix(err.Error(), "privacy.delta:"):
		case err != nil && strings.HasPrefix(err.Error(), "privacy.epsilon:"):
			return []setting{{Off, usual}}
		default:
			all = append(all, s)
		}
	}
	return all
}

// Check runs the suite on a registered method with all fields left free, and on
// the given configurations of it.
func Check(t *testing.T, entry method.Entry, configs ...method.Method) {
	CheckAsking(t, append([]method.Method{untiring(t, entry)}, configs...)...)
	problems := []Problem{Quadratic(6, 10)}
	if !needsSquared(entry.Method) {
		problems = append(problems, Logistic(5))
	}
	for _, p := range problems {
		t.Run("optimum of a "+p.Name, func(t *testing.T) { checkOptimum(t, entry, p) })
	}
}

// untiring is a method with all fields left free, but for a tolerance: one that ends where a gradient is
// small gets one that it does not reach under noise, so that it can be seen to stop for other reasons.
func untiring(t *testing.T, entry method.Entry) method.Method {
	if !slices.ContainsFunc(entry.Fields(), func(f method.Field) bool { return f.Name == "gradient" }) {
		return entry.Method
	}
	m, err := entry.Decode([]byte(`{"gradient": 1e-6, "steps": 100}`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// CheckAsking is the part of the suite that is about what a method asks, not about where it gets.
func CheckAsking(t *testing.T, configs ...method.Method) {
	for _, m := range configs {
		for _, s := range settings(m) {
			name := fmt.Sprintf("δ=%g/", s.terms.Budget.Delta)
			if s.terms.Off {
				name = "off/"
			} else {
				t.Run(name+"plan", func(t *testing.T) { checkPlan(t, m, s) })
			}
			t.Run(name+"refusal", func(t *testing.T) { checkRefusal(t, m, s) })
			t.Run(name+"break", func(t *testing.T) { checkBreak(t, m, s) })
			t.Run(name+"replay", func(t *testing.T) { checkReplay(t, m, s) })
			t.Run(name+"state", func(t *testing.T) { checkState(t, m, s) })
			t.Run(name+"cancel", func(t *testing.T) { checkCancel(t, m, s) })
			t.Run(name+"hostile", func(t *testing.T) { checkHostile(t, m, s) })
		}
	}
}

func fit(t *testing.T, m method.Method, facts oracle.Public, terms method.Terms) method.Method {
	t.Helper()
	fitted, err := m.Configure(facts, method.Objective{}, terms)
	if err != nil {
		t.Fatalf("Configure refuses %d rows of %d features under %v and the budget %v: %v. A method that needs another "+
			"relation, a δ, no budget or the squared loss begins its refusal with privacy.adjacency:, privacy.delta:, "+
			"privacy.epsilon: or model.name:, and the suite gives it that", facts.Rows, facts.Dim, facts.Adjacency, terms.Budget,
			err)
	}
	return fitted
}

func planned(t *testing.T, m method.Method, o *Oracle, terms method.Terms) account.Meter {
	t.Helper()
	if terms.Off {
		return nil
	}
	plan, err := m.Plan(o.Facts)
	if err != nil {
		t.Fatal(err)
	}
	meter, err := account.NewMeter(plan, terms.Accountant, terms.Budget)
	if err != nil {
		t.Fatalf("Plan costs more than the budget that Configure was given, ε = %g: %v; "+
			"calibrate the noise by the same event that Plan returns", terms.Budget.Epsilon, err)
	}
	return meter
}

// checkPlan: what is asked is a prefix of the plan, or within the filter that the plan is; the
// plan fits the budget, and the last step says how the run ended.
func checkPlan(t *testing.T, m method.Method, s setting) {
	o := s.oracle(0.1)
	m = fit(t, m, o.Facts, s.terms)
	o.Meter = planned(t, m, o, s.terms)
	var last method.Step
	steps := 0
	for st, err := range m.Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			t.Fatalf("after step %d Run asks for what Plan does not have next: %v; Plan lists the event of every batch, "+
				"in the order in which Run asks", last.T, err)
		}
		if st.T > last.T {
			steps++
		}
		last = st
	}
	if plan,
		err := m.Plan(o.Facts); err == nil && last.Status == method.OutOfBudget && !privacy.Contains[privacy.Filtered](plan) {
		t.Errorf("after step %d Run asks for more than Plan lists, which is %v; Plan has the event of every batch that Run "+
			"may ask for, and only one on a filter (privacy.Filtered) may end out of budget", last.T, plan)
	}
	if last.Status == method.Running {
		t.Error("the last step has Status Running; return a Step with method.Done, or what else ended the run (method.Loop does)")
	}
	if steps == 0 || last.T > method.MaxSteps(m) {
		t.Errorf("Run ends after step %d, with %d steps; it yields at least one, and method.MaxSteps promises at most %d: "+
			"what a method MaxSteps of its own says, else its field steps, else one", last.T, steps, method.MaxSteps(m))
	}
}

// refuse admits some charges, then none.
type refuse struct{ left int }

func (r *refuse) Adjacency() privacy.Adjacency { return privacy.AddRemove }
func (r *refuse) Charge(privacy.Event) error {
	if r.left == 0 {
		return privacy.ErrExhausted
	}
	r.left--
	return nil
}

// checkRefusal: a refused charge ends the run without an error, with what was
// reached, and nothing is asked after it.
func checkRefusal(t *testing.T, m method.Method, s setting) {
	whole := s.oracle(0.1)
	fitted := fit(t, m, whole.Facts, s.terms)
	whole.Meter = planned(t, fitted, whole, s.terms)
	iterates(t, fitted, whole)
	for _, admitted := range []int{0, 1, 7} {
		if admitted > 0 && admitted >= len(whole.Record) {
			continue // it never asks for more
		}
		o := s.oracle(0.1)
		m := fit(t, m, o.Facts, s.terms)
		o.Meter = &refuse{admitted}
		var last method.Step
		for st, err := range m.Run(context.Background(), o, method.Objective{}) {
			if err != nil {
				t.Fatalf("the meter refused batch %d, and Run yields the error %v; end with Status OutOfBudget and the parameters "+
					"so far instead (method.Loop does, if Run returns the error of Batch as it is)", admitted+1, err)
			}
			last = st
		}
		if last.Status != method.OutOfBudget || len(last.W) != 4 {
			t.Errorf("the meter refused batch %d: the last step has Status %v and %d parameters; "+
				"it must have OutOfBudget and the 4 parameters so far", admitted+1, last.Status, len(last.W))
		}
		if len(o.Record) != admitted {
			t.Errorf("the meter admitted %d batches, and %d were charged; ask for no batch after a refusal", admitted, len(o.Record))
		}
	}
}

// checkBreak: a caller that stops ranging is charged nothing more.
func checkBreak(t *testing.T, m method.Method, s setting) {
	o := s.oracle(0.1)
	m = fit(t, m, o.Facts, s.terms)
	bought, after := -1, 0
	m.Run(context.Background(), o, method.Objective{})(func(st method.Step, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		if bought >= 0 {
			after++
		} else if st.T == min(3, method.MaxSteps(m)) {
			bought = len(o.Record)
		}
		return bought < 0
	})
	if bought >= 0 && len(o.Record) != bought || after > 0 {
		t.Errorf("the caller stopped, and Run charged %d batches more and yielded %d steps more; return when yield returns "+
			"false", len(o.Record)-bought, after)
	}
}

// checkReplay: replaying the releases gives the same iterates, bit for bit; and a
// record cut anywhere is taken up by a live oracle behind it.
func checkReplay(t *testing.T, m method.Method, s setting) {
	o := s.oracle(0.1)
	m = fit(t, m, o.Facts, s.terms)
	o.Meter = planned(t, m, o, s.terms)
	want := iterates(t, m, o)
	none := NewOracle(o.Problem, 0) // where the record ends, so does the budget
	none.Meter = &refuse{0}
	got := iterates(t, m, &replay.Oracle{Facts: o.Facts, Next: replay.Each(o.Record), Then: none})
	if !slices.EqualFunc(want, got, same) {
		t.Error("the same releases give other iterates, so resume and verify cannot work; compute steps from releases and " +
			"public values alone, without random numbers, time, maps' order or state of an earlier run")
	}
	cut := len(o.Record) / 2
	rest := s.oracle(0.1)
	rest.Meter = planned(t, m, o, s.terms)
	for _, r := range o.Record[:cut] { // charged again in memory
		if err := rest.Meter.Charge(r.Event); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range o.draws[:cut] { // the noise that the first half used up
		for range n {
			rest.rnd.NormFloat64()
		}
	}
	got = iterates(t, m, &replay.Oracle{Facts: o.Facts, Next: replay.Each(o.Record[:cut]), Then: rest})
	if !slices.EqualFunc(want, got, same) {
		t.Error("half of the releases from the log and half from an oracle give other iterates, so resume cannot work; " +
			"compute steps from releases and public values alone")
	}
}

// checkState: a method whose steps say that it keeps a state continues from any of them, by the rest of its releases
// alone, as it did from the beginning.
func checkState(t *testing.T, m method.Method, s setting) {
	o := s.oracle(0.1)
	m = fit(t, m, o.Facts, s.terms)
	o.Meter = planned(t, m, o, s.terms)
	type point struct {
		state  method.Checkpoint
		bought int
	}
	var steps []method.Step
	var points []point
	for st, err := range m.Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		if st.Kept != nil && st.Status == method.Running {
			p := point{method.Checkpoint{T: st.T}, len(o.Record)}
			for _, v := range st.Kept {
				p.state.Vectors = append(p.state.Vectors, slices.Clone(v))
			}
			points = append(points, p)
		}
		st.W, st.Kept = slices.Clone(st.W), nil
		steps = append(steps, st)
	}
	if len(points) == 0 {
		return // it keeps none
	}
	keeper, ok := m.(method.Checkpointer)
	if !ok {
		t.Fatal("steps have Kept, a state to continue from, and the method has no RunFrom; write it (method.Checkpointer), " +
			"or leave Kept nil")
	}
	for _, at := range []int{0, len(points) / 2, len(points) - 1} {
		p := points[at]
		none := NewOracle(o.Problem, 0) // where the record ends, so does the budget
		none.Meter = &refuse{0}
		rest := &replay.Oracle{Facts: o.Facts, Next: replay.Each(o.Record[p.bought:]), Then: none}
		want := steps[at+1:]
		for st, err := range keeper.RunFrom(context.Background(), rest, method.Objective{}, &p.state) {
			if err != nil {
				t.Fatal(err)
			}
			if len(want) == 0 || st.T != want[0].T || st.Status != want[0].Status || !same(st.W, want[0].W) ||
				st.Status == method.Running &&
					!same([]float64{st.Rate, st.GradNorm, st.Moved}, []float64{want[0].Rate, want[0].GradNorm, want[0].Moved}) {
				t.Fatalf("RunFrom the state after step %d gives another step %d than the whole run; keep in Step.Kept all vectors "+
					"that later steps need, and read them with Checkpoint.Into", p.state.T, st.T)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Errorf("RunFrom the state after step %d ends %d steps too early; count steps from Checkpoint.T", p.state.T, len(want))
		}
	}
}

// same says whether two vectors are equal, NaN included: whether there are any is for checkHostile.
func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
}

// iterates are the parameters after each step of a run.
func iterates(t *testing.T, m method.Method, o oracle.Oracle) [][]float64 {
	t.Helper()
	var all [][]float64
	for st, err := range m.Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, slices.Clone(st.W))
	}
	return all
}

// checkCancel: a canceled context comes out as its error.
func checkCancel(t *testing.T, m method.Method, s setting) {
	o := s.oracle(0.1)
	m = fit(t, m, o.Facts, s.terms)
	ctx, cancel := context.WithCancel(context.Background())
	if method.MaxSteps(m) < 3 {
		cancel()
	}
	var last error
	for st, err := range m.Run(ctx, o, method.Objective{}) {
		if st.T == 2 {
			cancel()
		}
		last = err
	}
	cancel()
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the context was canceled, and Run ends with error %v; return the error of Batch as it is", last)
	}
}

// checkHostile: huge answers do not turn the parameters into NaN.
func checkHostile(t *testing.T, m method.Method, s setting) {
	o := s.oracle(0)
	m = fit(t, m, o.Facts, s.terms)
	o.Meter = planned(t, m, o, s.terms)
	o.Answer = func(g []float64) {
		for j := range g {
			g[j] = 1e6
		}
	}
	for _, w := range iterates(t, m, o) {
		for _, v := range w {
			if math.IsNaN(v) {
				t.Fatal("answers of 10⁶ in each coordinate make a parameter NaN; look for ∞ − ∞ or 0/0 in the update, and end with " +
					"the last finite parameters")
			}
		}
	}
}

// checkOptimum: without noise and with steps enough, the method gets there.
func checkOptimum(t *testing.T, entry method.Entry, p Problem) {
	o := NewOracle(p, 0)
	o.Facts = squared(entry.Method, o.Facts)
	config := `{}`
	for _, f := range entry.Fields() {
		if f.Name == "steps" || f.Name == "passes" {
			config = fmt.Sprintf(`{%q: 5000}`, f.Name)
		}
	}
	long, err := entry.Decode([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	var w []float64
	for st, err := range fit(t, long, o.Facts, Off).Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			t.Fatal(err)
		}
		w = st.W
	}
	if gap := p.Value(w) - p.Best; !(gap <= 1e-9) {
		t.Errorf("with Off terms (no noise), %s, Run ends %.3g above the minimum of the %s problem; at most 1e-9. A method needs a "+
			"field steps or passes to be given more steps, and a default step size for curvature %g. For a method that is not "+
			"to converge, name it in the map short of method/method_test.go, with the reason", config, gap, p.Name, p.Smooth)
	}
}
