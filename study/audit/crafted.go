package audit

import (
	"context"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// Of an audit with crafted canaries.
const (
	craftedRows = 64  // rows of the table, on which the noise does not depend
	mostCrafted = 64  // canaries of a run, in coordinates of their own
	fewRuns     = 16  // at least
	leastOdds   = 8e3 // of canaries, if time allows
	mostWork    = 5e9 // of all runs, about nanoseconds

	// tests is how many tests share the level of alarms: two of canaries, six each of the noise of gradients, Hessians and
	// choices, and two of samples, at most.
	tests = 22
)

// A layout is what the records of an audit with crafted canaries are. Under replace-one there are as many as declared;
// most have no gradient.
type layout struct{ rows, canaries, blank int }

func layoutOf(job *run.Job) layout {
	f := job.Facts
	numbers := f.Dim // of the shortest sum
	if f.Centered {  // a sum of rows has one for each feature
		numbers = f.Features()
	}
	l := layout{rows: min(craftedRows, max(1, f.Rows/2)), canaries: min(numbers, mostCrafted)}
	fixed := privacy.Contains[privacy.FixedSampled](job.Plan)
	if fixed {
		l.rows = 1
	}
	if fixed || privacy.Contains[privacy.Filtered](job.Plan) {
		l.canaries = 1 // the odds of several depend on each other, through the sample or the number of steps
	}
	if job.Held != nil {
		l.canaries = max(1, min(l.canaries, mostInCells(job)))
	}
	if f.Adjacency == privacy.ReplaceOne {
		l.canaries = max(1, min(l.canaries, f.Rows-l.rows))
		l.blank = max(0, f.Rows-l.rows-l.canaries)
	}
	return l
}

// A probe computes the odds of the canaries of one run, and keeps the residuals.
type probe struct {
	set       *canarySet
	facts     *oracle.Public
	residuals *residuals
	hessians  *residuals
	choices   *residuals
	coins     *noise.Source
	sums      *canaries
	rest      []float64
	exact     []float64

	odds    []float64 // logarithms, of taking part
	signal  float64   // the sum of squares of what a canary adds, in standard deviations
	charged float64   // the most that it may be by what is charged
	other   bool      // some noise is not Gaussian, or some sample not of all rows
	heard   int
	unknown bool // some gradient has noise that deviation does not know
}

// hear takes a release.
func (p *probe) hear(g []float64, q oracle.Grad, s sample.Sampler) {
	set := p.set
	scale, laplace := deviation(q, s, p.facts, set.unit)
	if scale == 0 {
		p.unknown = true
		return
	}
	p.heard++
	size, rate, known := s.Size(p.facts.Rows), 1.0, true
	switch s := s.(type) {
	case sample.Poisson:
		rate = s.Rate
	case sample.Fixed:
		rate, known = float64(s.M)/float64(s.N), false // rows that were drawn tell how many canaries were
	}
	p.exact, p.rest = p.exact[:0], p.rest[:0]
	for j, v := range g {
		others := set.others[j]
		p.exact = append(p.exact, others+float64(set.sum[j])*set.unit)
		if !known {
			others = 0
		}
		p.rest = append(p.rest, v*size-others)
	}
	p.residuals.hear(g, size, p.exact, scale, laplace)
	m, norm := set.whole/scale, q.Clip.Norm()
	for i := range p.odds {
		d := set.Direction(i, norm)
		y := d.Dot(p.rest) / (math.Sqrt(float64(d.Width)) * scale)
		p.odds[i] += drawn(rate, likelier(y, m, laplace))
		if set.Pull {
			p.odds[i] -= drawn(rate, likelier(y, -m, laplace))
		}
	}
	if e, ok := q.Noise.Event().(privacy.Gaussian); ok {
		p.charged += 1 / (e.Sigma * e.Sigma)
	}
	if set.Pull {
		m *= 2
	}
	p.signal += m * m
	p.other = p.other || laplace || rate != 1
}

// curved takes the release of a sum of Hessians.
func (p *probe) curved(h []float64, q oracle.Hess, s sample.Sampler) {
	scale := curvedDeviation(q, s, p.facts, p.sums.unit)
	p.hessians.matrix(h, s.Size(p.facts.Rows), p.sums.kept, p.sums.unit, scale, p.facts.Dim)
}

// chose takes a choice of a step along a line, by Gumbel noise. Other choices are of methods without gradients, or have
// another law.
func (p *probe) chose(k int, q oracle.Select, among oracle.Candidates, s sample.Sampler) {
	line, ok := among.(oracle.Line)
	sens, err := clip.Sensitivity(q.Bound, p.facts.Adjacency)
	if !ok || q.Flip || q.Off || err != nil {
		return
	}
	var scores []float64
	for j, count := range p.sums.kept {
		scores = append(scores, q.Epsilon/(2*sens)*(float64(count)*p.sums.unit-line.Least[j]*s.Size(p.facts.Rows)))
	}
	p.choices.choice(k, scores, uniform(p.coins))
}

// likelier is how much likelier y is around m than around 0: the logarithm, for noise of scale 1.
func likelier(y, m float64, laplace bool) float64 {
	if laplace {
		return math.Abs(y) - math.Abs(y-m)
	}
	return m * (y - m/2)
}

// A crafting is an audit with crafted canaries on its way: what its runs share, and what they gave so far.
type crafting struct {
	job    *run.Job
	opt    Options
	layout layout
	local  *private.Local
	parts  *parts // nil without a holdout
	result *Result

	in, out   []float64 // log odds of canaries that took part, and of others
	inZ, outZ []float64 // the same in standard deviations, where they are normal
	one, zero []float64 // log odds of each run's first canary, if it took part and if not
	gradients residuals
	hessians  residuals
	choices   residuals
	samples   drawing
	other     bool    // see probe
	signal    float64 // of the first run
	heard     int     // of the first run
	stops     bool    // when the run ends depends on what it releases
}

// unmetered admits every charge: an audit's own releases, of a synthetic table.
type unmetered struct{ adjacency privacy.Adjacency }

func (m unmetered) Adjacency() privacy.Adjacency { return m.adjacency }
func (unmetered) Charge(privacy.Event) error     { return nil }

// Craft audits a job in many runs on a small synthetic table, whose exact sums it knows. In each
// run canaries have the largest gradients that a record may have, in directions that no two of them
// share. Craft also tests the noise and the samples.
func Craft(ctx context.Context, job *run.Job, table *data.Table, opt Options) (*Result, error) {
	l := layoutOf(job)
	claim := claims(job.Plan, job.Accountant, job.Facts.Adjacency)
	loss, err := claim(1)
	if err != nil {
		return nil, err
	}
	local, err := private.NewLocal(table, job.Model, job.Facts, opt.Workers)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	c := &crafting{job: job, opt: opt, layout: l, local: local, result: newResult(job, Crafted)}
	c.parts = partsOf(job, l.canaries, opt.fault.parts)
	c.hessians.of, c.choices.of = " of Hessians", " of choices"
	c.result.Canaries = l.canaries
	for number, runs := 0, 1; number < runs; number++ {
		p, took, err := c.run(ctx, number)
		if err != nil {
			return nil, err
		}
		if number == 0 {
			c.first(p)
			if runs = opt.runs; runs == 0 {
				runs = enough(loss, p, l)
			}
		}
		c.add(p, took)
	}
	if err := c.conclude(claim, loss); err != nil {
		return nil, err
	}
	return c.result, nil
}

// run trains once, with canaries drawn afresh. It says which of them took part.
func (c *crafting) run(ctx context.Context, number int) (*probe, []bool, error) {
	facts, l := c.job.Facts, c.layout
	streams := c.opt.Streams
	if streams.Seeded() {
		key, err := streams.Stream("audit", number)
		if err != nil {
			return nil, nil, err
		}
		streams = noise.SeededStreams(key.Uint64())
	}
	coins, err := streams.Stream("canaries", 0)
	if err != nil {
		return nil, nil, err
	}
	set := &canarySet{In: make([]bool, l.canaries), Apart: true, Key: coins.Uint64()}
	set.Pull = facts.Adjacency == privacy.ReplaceOne
	for i := range set.In {
		set.In[i] = coins.Uint64()&1 == 1
	}
	took := set.In
	if c.parts != nil {
		set.In = c.parts.divide(took, coins.Uint64())
	}
	p := &probe{set: set, facts: &facts, coins: coins, odds: make([]float64, l.canaries)}
	p.residuals, p.hessians, p.choices = &c.gradients, &c.hessians, &c.choices
	for _, r := range []*residuals{p.residuals, p.hessians, p.choices} {
		r.begin()
	}
	var meter account.Meter = unmetered{facts.Adjacency} // the first run is charged; the others are its like
	if number == 0 || privacy.Contains[privacy.Filtered](c.job.Plan) {
		if meter, err = c.job.Meter(); err != nil {
			return nil, nil, err
		}
	}
	p.sums = &canaries{Summer: c.local, set: set, blank: l.blank, drawing: &c.samples, fault: c.opt.fault}
	t := run.Trainer{Job: c.job, Table: data.Empty(c.job.Schema), Summer: p.sums, Workers: 1,
		Meter: meter, Streams: streams, Journal: run.NopJournal{}}
	hears := &listener{noisy: true, heard: p.hear, sums: p.sums, curved: p.curved, chose: p.chose}
	together(&t, p.sums, hears)
	steps, err := p.sums.train(ctx, t, hears)
	switch {
	case err != nil:
		return nil, nil, err
	case p.unknown:
		return nil, nil, errUnknown
	case p.heard == 0:
		return nil, nil, ErrBlind
	}
	if c.parts != nil {
		if err := c.parts.score(ctx, took, meter, streams); err != nil {
			return nil, nil, err
		}
	}
	c.result.Steps = max(c.result.Steps, steps)
	c.result.Runs++
	return p, took, nil
}

// first takes from the first run what all others should show, too.
func (c *crafting) first(p *probe) {
	c.signal, c.heard, c.result.Charged = p.signal, p.heard, math.Sqrt(p.charged)
	if c.parts != nil {
		c.result.Charged = c.parts.charged(c.result.Charged)
	}
}

// add adds the odds of one run's canaries.
func (c *crafting) add(p *probe, took []bool) {
	// Odds of other steps are no longer normal, and canaries of one run no longer independent. Where a clip norm follows
	// from a release, a canary is cut to another unit, which changes its signal by less than 10⁻³.
	if p.heard != c.heard || math.Abs(p.signal-c.signal) > 1e-3*c.signal {
		c.stops = true
	}
	c.other = c.other || p.other
	for i, v := range p.odds {
		s := c.signal
		if c.parts != nil {
			v, s = c.parts.own(i, took[i], v, s)
		}
		z, first := (v+s/2)/math.Sqrt(s), &c.zero
		if took[i] {
			c.in, c.inZ, first = append(c.in, v), append(c.inZ, z), &c.one
		} else {
			c.out, c.outZ = append(c.out, v), append(c.outZ, z)
		}
		if i == 0 {
			*first = append(*first, v)
		}
	}
}

// conclude bounds ε from below by the odds of all runs, and raises alarms: for canaries that tell more than the claim
// allows, and for noise or samples that are not as charged.
func (c *crafting) conclude(claim family, loss account.Loss) error {
	r := c.result
	if c.stops {
		c.in, c.out, c.other = c.one, c.zero, true
	}
	level := Level / tests
	if c.parts != nil {
		if level = Level / (tests + 1); c.parts.cross(level) {
			r.alarm("canaries in the other part")
		}
	}
	thresholds := []float64{0}
	for _, share := range []float64{1. / 3, 2. / 3, 1} {
		thresholds = append(thresholds, share*r.Epsilon, -share*r.Epsilon)
	}
	r.Plain = audit.EpsilonOf(audit.Splits(c.one, c.zero, thresholds, Failure), r.Delta)
	if audit.EpsilonOf(audit.Splits(c.one, c.zero, thresholds, level), r.Delta) > r.Epsilon {
		r.alarm("canaries, any mechanism")
	}
	bound := func() (refuted bool, err error) { return c.shift(level) }
	if c.other {
		bound = func() (bool, error) { return c.splits(claim, loss, thresholds, level) }
	}
	if refuted, err := bound(); err != nil {
		return err
	} else if refuted {
		r.alarm("canaries")
	}
	lo, hi := c.gradients.between(Failure)
	r.Scale = &[2]float64{lo, hi}
	r.Tests = slices.Concat(c.gradients.tests(), c.hessians.tests(), c.choices.tests(), c.samples.tests())
	for _, t := range r.Tests {
		if t.P <= level {
			r.alarm(t.Name)
		}
	}
	return nil
}

// shift bounds ε by the shift between odds that are normal. It reports whether the shift refutes what was charged.
func (c *crafting) shift(level float64) (refuted bool, err error) {
	r := c.result
	r.Mu = audit.Shift(c.inZ, c.outZ, Failure)
	if r.Mu > 0 {
		g, err := gaussians(r.Mu)
		if err != nil {
			return false, err
		}
		r.Bound = g.Epsilon(r.Delta)
	}
	return audit.Shift(c.inZ, c.outZ, level) > r.Charged, nil
}

// splits bounds ε by how thresholds divide odds of any law: by the largest claim of the family that they refute. It
// reports whether they refute the run's own claim, which is loss.
func (c *crafting) splits(
	claim family, loss account.Loss, thresholds []float64, level float64,
) (refuted bool, err error) {
	r := c.result
	r.Charged = 0
	if !c.opt.quick {
		splits := audit.Splits(c.in, c.out, thresholds, Failure)
		x, epsilon, err := claim.least(func(c audit.Curve) bool { return c.Refutes(splits) }, r.Delta)
		if err != nil {
			return false, err
		}
		if r.Bound = epsilon; x > 0 {
			r.Noise = 1 / x
		}
	}
	return curve(loss).Refutes(audit.Splits(c.in, c.out, thresholds, level)), nil
}

// enough is how many runs bring the bound to 85 % of the claim with few exceptions, within mostWork.
func enough(claim account.Loss, p *probe, l layout) int {
	mu := 2 * math.Sqrt2 * math.Erfinv(min(max(claim.Delta(0), 1e-3), 0.9999)) // the Gaussian of the same advantage
	odds := math.Max(leastOdds, 4*math.Pow(4.8/(0.1*mu), 2))
	if p.other {
		odds *= 4 // a threshold tells less than a mean
	}
	work := float64(p.heard) * (2000 + 100*float64(p.facts.Dim) + 100*float64(l.canaries) + float64(l.blank))
	return max(fewRuns, int(math.Min(odds/float64(l.canaries), mostWork/work)))
}

// uniform is a number between 0 and 1.
func uniform(coins *noise.Source) float64 { return (float64(coins.Uint64()>>11) + 0.5) * 0x1p-53 }
