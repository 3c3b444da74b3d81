package method

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/sample"
)

// Auto is the method of a spec that names none: noisy clipped gradients of all rows with
// heavy-ball momentum, every number of which follows from public facts. No part of the budget
// is spent on the choice, since nothing in it depends on a record (R2).
//
//	w_{t+1} = w_t − η(g̃_t + ∇r(w_t)) + β(w_t − w_{t−1})
//
// What decides. Let ν·C be the standard deviation of the noise in a mean gradient of clip norm C
// if the whole budget went into one (T steps have √T times as much each). Of T such steps of
// effective size η/(1−β), the part of w that the loss does not pull back has gathered noise
// τνC, where τ = ηT/(1−β) is the time that the run has gone along the gradient, and T by itself
// is immaterial. A row of norm R feels Rτν C in its margin. So τ is as long as keeps this at
// autoNoise, about the size of margins that matter; directions steeper than 1/τ end at the
// optimum, with the noise of one Newton step, and flatter ones are left near 0, as by a ridge
// of 1/τ. A small clip norm keeps more rows pulling with the same force, which is
// worth more the more noise there is, and a large one keeps the objective as written:
// C falls with ν√d. η is near the largest stable step, T as large as τ requires at a
// momentum that forgets within a tenth of the run.
//
// Rows are taken relative to their noisy mean, which is released first (Center), where the noise leaves that mean near
// theirs. A tenth of the budget pays for it. Margins are then ⟨w, x − m⟩: the common part of all rows no longer acts as
// a second intercept, through which noise moves every margin, and rows are shorter, so that clipping cuts less.
//
// A numeric label is taken relative to its noisy mean, released first with a twentieth of the budget (label.go):
// predictions begin at that mean, or in the middle of the label's bounds where the mean would have too much noise.
// Where XᵀX has little noise, squared loss is solved at once, as AdaSSP does it.
//
// Pure ε costs T, not √T, for T steps, so there T is as small as τ allows. Where T steps would take many products, few
// are taken, each with a metric (metric.go).
type Auto struct {
	Steps    int      `yaml:"steps" json:"steps" doc:"number of steps T (default: from the length of the run, 60 to 400, or 28; 8 to 100 for pure ε)"`
	Rate     float64  `yaml:"rate" json:"rate" doc:"step size η (default 3/L, L the curvature bound of the objective, or less for a short run)"`
	Momentum float64  `yaml:"momentum" json:"momentum" doc:"momentum β (default: from the length of the run, at most 1−10/T; 1−3/T for pure ε)"`
	Center   string   `yaml:"center" json:"center,omitempty" doc:"what rows are taken relative to: mean (their noisy mean; for linear models, Gaussian noise and batches of all rows) or none (default: mean, where its noise is short, for two classes, and for more and the squared loss if columns have curves; otherwise none)"`
	Solve    string   `yaml:"solve" json:"solve,omitempty" doc:"how the squared loss is minimized: by gradients, or by statistics (noisy XᵀX and Xᵀy, as adassp does) (default: statistics where their noise is small, otherwise gradients)"`
	Gradient Gradient `clip:"clip norm C of one record's gradient, in the L1 norm if δ is 0, otherwise in the L2 norm (default: 0.1 to 0.5 of the loss's Lipschitz bound, smaller with more noise; for the squared loss 0.05 to 0.5 of R × the width of labels)" batch:"rows of a step, drawn without replacement under replace-one, each independently under add-or-remove (default: 0, all rows)" noise_multiplier:"scale of Laplace noise, or standard deviation of Gaussian noise, over the sensitivity of the sum (default: the smallest that the budget allows)"`
	Fallback string   `yaml:"fallback" json:"fallback,omitempty" doc:"what stands in for a model that gets more rows wrong than it: class (the more frequent class, by noisy counts at the end) or none (default: class where the noise in a margin is large and last is none, otherwise none)"`
	Last     string   `yaml:"last" json:"last,omitempty" doc:"what ends a run of logistic and softmax models: margins (noisy sums that set the size of margins) or none (default: margins where their noise is short beside the rows)"`
	// RawMargins leaves the margins of the model as they are; without it they have a MarginFactor.
	RawMargins bool `yaml:"raw_margins" json:"raw_margins,omitempty" doc:"whether predictions leave out what corrects the size of margins for clipping and noise (default: false)"`

	// RawBumps leaves the bumps of columns as the run leaves them; without it they are smoothed (Smooth).
	RawBumps bool `yaml:"raw_bumps" json:"raw_bumps,omitempty" doc:"whether the weights of bumps and waves stay as the run leaves them, without smoothing (default: false)"`

	SmoothBumps bool `yaml:"-" json:"smooth_bumps,omitempty"` // a run's output goes through Smooth

	FirstNoise float64 `yaml:"-" json:"first_noise,omitempty"` // noise multiplier of the first release; 0: there is none
	// With more noise than that, ν√d over 4s(1 − s) for the share s of a class, columns keep their line alone; 0: they
	// keep their curves.
	Rare      float64 `yaml:"-" json:"rare,omitempty"`
	LastNoise float64 `yaml:"-" json:"last_noise,omitempty"` // noise multiplier of the last release; 0: there is none
	// Of runs written before these were chosen: 0.
	FirstDoubt float64 `yaml:"-" json:"first_doubt,omitempty"` // firstDoubt of the first release
	LastMedian float64 `yaml:"-" json:"last_median,omitempty"` // of the factor, over more than two classes: see expected
	LastReach  float64 `yaml:"-" json:"last_reach,omitempty"`  // as lastReach, of more than two classes

	// noise multiplier of a count of class 1, at the log-odds of whose share predictions begin; 0: they begin at 0
	ShareNoise float64 `yaml:"-" json:"share_noise,omitempty"`
	Factor     float64 `yaml:"-" json:"factor,omitempty"` // on the margins at the end, offset apart; 0: there is none

	CenterNoise   float64 `yaml:"-" json:"center_noise,omitempty"`   // noise multiplier of the mean row
	FallbackNoise float64 `yaml:"-" json:"fallback_noise,omitempty"` // noise multiplier of a count of wrong answers
	// A wrong answer counts ½ and a right one −½; without it, as in runs written before, 1 and 0.
	FallbackSigned bool `yaml:"-" json:"fallback_signed,omitempty"`

	// Of a run written before there was an Outlook: where the noise in a margin is loud, what it is, and the ε and the
	// number of features with which it would not be; 0: none.
	MarginNoise   float64 `yaml:"-" json:"margin_noise,omitempty"`
	QuietEpsilon  float64 `yaml:"-" json:"quiet_epsilon,omitempty"`
	QuietFeatures int     `yaml:"-" json:"quiet_features,omitempty"`
	// Of a table only the first Columns of OfColumns are used, since AllNoise would be in a margin with all; 0: nothing
	// was left out.
	Columns   int     `yaml:"-" json:"columns,omitempty"`
	OfColumns int     `yaml:"-" json:"of_columns,omitempty"`
	AllNoise  float64 `yaml:"-" json:"all_noise,omitempty"`
	// noise multiplier of the mean label; 0: it is not asked for
	LabelNoise float64 `yaml:"-" json:"label_noise,omitempty"`
	// noise multiplier of the mean square of labels less their mean; 0: it is not asked for
	SpreadNoise float64 `yaml:"-" json:"spread_noise,omitempty"`
	Shift       float64 `yaml:"-" json:"shift,omitempty"` // what predictions begin at where it is not
	// where the mean label is near a bound, the clip norm over the distance, at least; 0: Clip stays
	Raise       float64 `yaml:"-" json:"raise,omitempty"`
	MatrixShare float64 `yaml:"-" json:"matrix_share,omitempty"` // of statistics, AdaSSP.Share
	// Rate and Clip, which were chosen for rows of the bound's norm, become those of rows less the mean, which are
	// shorter.
	Shorter bool `yaml:"-" json:"shorter,omitempty"`
	Metric  bool `yaml:"-" json:"metric,omitempty"` // steps have a metric, by the first release
}

// The constants of the choice, measured on tables of 300 to 500,000 rows and 3 to 47,237
// features (docs/measurements/methods.md).
const (
	autoNoise     = 3.0 // κ: what noise may gather in a margin, where nothing pulls it back
	autoQuadNoise = 0.2 // likewise in a prediction, × the width of labels
	// the noise of one mean gradient of clip norm 1, from which on there is less of it in a prediction
	autoQuadLoud  = 0.03
	autoClip      = 0.05 // c of C = c·(ν√d)^(−0.4) × the loss's Lipschitz bound
	autoClipPower = 0.4
	autoMinClip   = 0.1 // × the Lipschitz bound
	autoMaxClip   = 0.5
	autoQuadClip  = 0.2  // of c, × R × the width of labels, for the squared loss
	autoQuadMin   = 0.05 // × R × the width of labels
	autoQuadMax   = 0.5
	autoRaise     = 0.3 // Raise × √(ν√d), over R
	// statistics: the ridge is at most this part of the largest mean eigenvalue that XᵀX/n can have, R²/d
	autoExact = 0.005
	// the mean label is asked for where the deviation of its noise is at most this part of the label's bounds
	autoLabel  = 0.2
	autoRate   = 3.0  // × 1/L; heavy ball is stable below 2(1+β)/L
	autoKinked = 0.25 // L/R² that is counted on where the loss has kinks
	// rows are centered where the noise in their mean has at most this length, over the bound on a row
	autoCenter       = 0.6
	autoNumberCenter = 0.07 // the same, where the label is a number and columns have curves
	autoL1Spread     = 10.0 // rows held to R₁ in L1 are taken to have ‖x‖₂² = R₁²/10

	autoMemory   = 10.0 // the run is at least this many times the memory 1/(1−β)
	autoMinSteps = 60
	autoMaxSteps = 400
	autoWork     = 2e11 // products in all steps from which on there are no more than autoMinSteps
	autoShared   = 0.4  // of a class's products, since classes share the reading of a row
	autoCalm     = 0.2  // the least share of L, see calm; measured with ten classes

	autoPureMemory = 3.0 // for pure ε
	autoPureShort  = 1.5 // T² is at least this × τ/η
	autoPureMin    = 8
	autoPureMax    = 100
)

// An autoChoice is a choice and what it rests on.
type autoChoice struct {
	Auto
	given    Auto
	nu       float64 // ν
	wide     float64 // the unit of clip norms: 1, or for pure ε the bound on a row's L1 norm over R
	dim      float64 // d: parameters of one class
	row      float64 // R: the norm that rows are taken to have
	smooth   float64 // L
	calm     float64 // of it: the curvature while all classes are about equally likely
	whole    float64 // a clip norm that clips nothing
	part     float64 // of it: what the shares are of
	most     float64 // κ, in the units of a prediction
	time     float64 // τ
	expected float64 // noise in a margin; 0: not computed
	// deviation of the difference of two counts of wrong answers, over the rows; 0: they are not counted
	counts     float64
	countShare float64 // of the budget, for them
	sharePart  float64 // of the budget, for the share of a class
	centerPart float64 // of the budget, for the mean row
	quad       bool    // the loss is the squared one
	kinked     bool    // the regularizer has kinks
	ridge      float64 // statistics: their ridge × d/R²; 0: they are not for this model or these fields
	label      float64 // deviation of the noise in the mean label, over the width of its bounds; 0: it cannot be asked for
	off        float64 // deviation of the sum of what probabilities are off, over the rows
	long       float64 // length of the noise in the mean row, over the bound on a row; 0: rows cannot be centered
}

// Configure chooses what is zero.
func (m Auto) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	c, err := m.choose(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	return c.Auto, nil
}

// choose is the whole of the choice.
func (m Auto) choose(pub oracle.Public, obj Objective, terms Terms) (*autoChoice, error) {
	if !pub.Lipschitz.Finite() && !pub.Smooth.Finite() {
		return nil, errors.New("model.name: the loss has no bound on its slope or its curvature, from which auto chooses; use another method, adagrad or adam")
	}
	m.Gradient.Off, m.Gradient.Laplace = terms.Off, !terms.Off && terms.Budget.Delta == 0
	if err := (Number{"momentum", &m.Momentum, Fraction, 0}).check(); err != nil {
		return nil, err
	}
	p := m.p1()
	if err := p.check(pub, false); err != nil {
		return nil, err
	}
	c := m.facts(pub, obj)
	rate, norm := m.Rate, m.Gradient // whether the model has the bounds from which they would follow
	if err := (Number{"rate", &rate, Positive, autoRate / known(c.smooth)}).fill(); err != nil {
		return nil, err
	}
	if err := norm.freeClip(c.part * known(c.whole)); err != nil {
		return nil, err
	}
	if err := c.checkCenter(pub); err != nil {
		return nil, err
	}
	if err := c.checkFallback(pub); err != nil {
		return nil, err
	}
	if err := c.checkLast(pub); err != nil {
		return nil, err
	}
	if solved, err := c.solve(pub, obj, terms); solved || err != nil {
		return c, err
	}
	c.Shift = startOf(pub)
	if m.Gradient.Off {
		c.time = math.Inf(1)
		c.walk(pub)
		return c, nil // without a clip norm nothing is clipped
	}
	one, err := m.one(pub, terms)
	if err != nil {
		return nil, err
	}
	if !m.Gradient.Laplace {
		delta, err := clip.Sensitivity(1, pub.Adjacency)
		if err != nil {
			return nil, err
		}
		single, err := m.single(pub, terms) // pays for its own retries
		if err != nil {
			return nil, err
		}
		c.setFirst(pub, single, delta)
		c.setRare(pub)
		c.setShare(pub, single, delta)
		c.setCenter(pub, single, delta)
		c.foresee(pub, obj, one)
		if c.setLast(pub, single, delta); c.LastNoise == 0 && c.ShareNoise == 0 {
			c.setFallback(pub, single, delta)
		}
		c.setLabel(pub, single, delta)
		if left := c.left(); left < 1 {
			one /= math.Sqrt(left)
		}
		c.weigh(one)
		c.setFactor(pub)
		c.setRaise()
		c.walk(pub)
	} else {
		c.fewest(one)
		c.walk(pub)
	}
	err = c.Gradient.Calibrate(terms, func(g Gradient) privacy.Event {
		with := c.Auto
		with.Gradient = g
		return with.plan(pub)
	})
	return c, err
}

// setRaise lets a mean label near a bound raise the clip norm, where the mean is released and the run is free.
func (c *autoChoice) setRaise() {
	free := c.given.Gradient.Clip == 0 && c.given.Rate == 0 && c.given.Momentum == 0
	if free && (c.LabelNoise > 0 || c.FirstNoise > 0 && c.quad) {
		c.Raise = autoRaise * c.row / math.Sqrt(c.nu*math.Sqrt(c.dim))
	}
}

// left is what the gradients have of the budget.
func (c *autoChoice) left() float64 {
	left := 1.0
	if c.FirstNoise > 0 {
		left -= firstShare
	}
	if c.ShareNoise > 0 {
		left -= c.sharePart
	}
	if c.CenterNoise > 0 {
		left -= c.centerPart
	}
	if c.Fallback == FallbackClass {
		left -= c.countShare
	}
	if c.LabelNoise > 0 {
		left -= labelShare
	}
	if c.SpreadNoise > 0 {
		left -= spreadShare
	}
	if c.LastNoise > 0 {
		left -= lastShare
	}
	return left
}

// facts are what the rule knows of the table and the loss.
func (m Auto) facts(pub oracle.Public, obj Objective) *autoChoice {
	c := &autoChoice{Auto: m, given: m, wide: 1, dim: perClass(pub), row: pub.NormBound, part: 1, most: autoNoise}
	if pub.Classes > 2 {
		c.part, c.most = 1/math.Sqrt2, c.most/math.Sqrt2 // of the difference of two classes
	}
	if pub.L1Bound > 0 && pub.L1Bound <= pub.NormBound {
		c.row /= math.Sqrt(math.Min(autoL1Spread, c.dim))
	}
	short := c.row / pub.NormBound
	c.whole = float64(pub.Lipschitz) * short
	if !pub.Lipschitz.Finite() {
		c.quad = true
		c.whole, c.part, c.most = c.row*labelWidth(pub), autoQuadClip, autoQuadNoise*labelWidth(pub)
	}
	if m.Gradient.Laplace && pub.L1Bound > 0 {
		c.wide = pub.L1Bound / c.row
		c.whole *= c.wide
	}
	c.smooth = autoKinked * c.row * c.row
	if pub.Smooth.Finite() {
		c.smooth = float64(pub.Smooth) * short * short
	}
	c.calm = c.smooth
	if pub.Classes > 2 {
		c.calm *= math.Max(autoCalm, 2/float64(pub.Classes))
	}
	c.kinked = obj.Reg != nil && math.IsInf(obj.Reg.Smooth(), 1)
	c.smooth, c.calm = c.smooth+obj.smooth(), c.calm+obj.smooth()
	return c
}

// one is the noise of a mean gradient of clip norm 1 that takes the whole budget: the standard
// deviation of Gaussian noise, the scale of Laplace noise. It leaves retries out, which many steps share.
func (m Auto) one(pub oracle.Public, terms Terms) (float64, error) {
	terms.Accountant = account.WithoutRetries(terms.Accountant)
	return m.single(pub, terms)
}

// single is the same of a run of one release.
func (m Auto) single(pub oracle.Public, terms Terms) (float64, error) {
	p := P1{Steps: 1, Gradient: Gradient{Clip: 1, Laplace: m.Gradient.Laplace}}
	if err := p.spend(pub, terms, nil, bound{}); err != nil {
		return 0, Gradient{}.refusal(err)
	}
	delta, err := clip.Sensitivity(1, pub.Adjacency)
	return p.Gradient.Noise * delta / float64(pub.Rows), err
}

// weigh sets ν, clip norm and time for noise of standard deviation unit × clip norm.
func (c *autoChoice) weigh(unit float64) {
	c.nu = unit * c.wide
	if c.given.Gradient.Clip == 0 {
		share := autoClip * math.Pow(c.nu*math.Sqrt(c.dim), -autoClipPower)
		least, most := autoMinClip, autoMaxClip
		if c.quad {
			least, most = autoQuadMin/autoQuadClip, autoQuadMax/autoQuadClip
		}
		c.Gradient.Clip = math.Min(most, math.Max(least, share)) * c.part * c.whole
	}
	c.time = c.most / (unit * c.Gradient.Clip * c.row)
	if c.quad {
		c.time *= math.Min(1, autoQuadLoud/unit)
	}
}

// fewest sets the steps of a run with Laplace noise, and with them ν, clip norm and time. It returns ν × the unit of
// clip norms, which grows with the steps.
func (c *autoChoice) fewest(one float64) (unit float64) {
	least, most := autoPureMin, autoPureMax
	if c.given.Steps > 0 {
		least, most = c.given.Steps, c.given.Steps
	}
	for c.Steps = least; ; c.Steps++ {
		unit = one * math.Sqrt(2*float64(c.Steps))
		c.weigh(unit)
		if c.Steps >= most || float64(c.Steps)*float64(c.Steps) >= autoPureShort*c.time/c.longest() {
			return unit
		}
	}
}

// longest is the longest step.
func (c *autoChoice) longest() float64 {
	if c.given.Rate > 0 {
		return c.given.Rate
	}
	return autoRate / c.smooth
}

// walk sets steps, step size and momentum for the time.
func (c *autoChoice) walk(pub oracle.Public) {
	memory := autoMemory
	switch {
	case c.Gradient.Laplace:
		memory = autoPureMemory
	case c.Gradient.Off: // nothing but the end counts
		memory *= 3
	}
	c.Rate = c.longest()
	work := float64(pub.Rows) * c.dim * math.Max(1, autoShared*float64(pub.Classes))
	free := c.given.Steps == 0 && c.given.Rate == 0 && c.given.Momentum == 0
	if c.Metric || free && !c.kinked && c.hasMetric(pub) && autoMaxSteps*work > metricWork {
		c.Metric, c.Steps, c.Momentum = true, metricSteps, 1-metricMemory/metricSteps
		c.Rate = math.Min(metricFar*c.Rate, metricLong*c.time*(1-c.Momentum)/metricSteps)
		return
	}
	if c.Steps == 0 {
		most := math.Min(autoMaxSteps, math.Max(autoMinSteps, autoWork/work))
		wanted := math.Max(autoMinSteps, math.Sqrt(memory*c.time/c.Rate))
		c.Steps = int(math.Ceil(math.Min(most, wanted)))
		if most < math.Min(autoMaxSteps, wanted) && c.given.Rate == 0 && !c.Gradient.Off { // fewer steps, longer ones
			c.Rate *= math.Min(c.smooth/c.calm, math.Pow(wanted/float64(c.Steps), 2))
		}
	}
	all := c.Rate * float64(c.Steps) // the time without momentum
	if all > c.time && c.given.Rate == 0 {
		c.Rate *= c.time / all
	}
	if c.given.Momentum == 0 {
		c.Momentum = math.Max(0, math.Min(1-memory/float64(c.Steps), 1-all/c.time))
	}
}

// p1 asks for the gradients that Auto asks for.
func (m Auto) p1() P1 {
	return P1{Steps: m.Steps, Rate: m.Rate, Gradient: m.Gradient}
}

// plan is one noisy gradient a step, after the mean label and the mean row where they are asked for, and before the
// counts of a fallback.
func (m Auto) plan(pub oracle.Public) privacy.Event {
	if m.Solve == SolveStatistics {
		return m.statistics().plan(pub)
	}
	var p privacy.Composed
	if m.FirstNoise > 0 {
		p = append(p, m.firstCost(pub))
	}
	if m.LabelNoise > 0 {
		p = append(p, labelCost(pub, m.LabelNoise))
	}
	if m.SpreadNoise > 0 {
		p = append(p, spreadCost(pub, m.SpreadNoise))
	}
	if m.ShareNoise > 0 {
		p = append(p, shareCost(pub, m.ShareNoise))
	}
	if m.CenterNoise > 0 {
		p = append(p, centerCost(pub, m.CenterNoise))
	}
	p = append(p, m.p1().plan(pub))
	if m.Fallback == FallbackClass {
		p = append(p, pub.Cost(sample.Full{}, m.countQueries()))
	}
	if m.LastNoise > 0 {
		p = append(p, m.lastCost(pub))
	}
	if len(p) == 1 {
		return p[0]
	}
	return p
}

// Plan is the most that Auto may ask.
func (m Auto) Plan(pub oracle.Public) (privacy.Event, error) { return valid(m.plan(pub)) }

// MostNumbers is that of a gradient, but for statistics.
func (m Auto) MostNumbers(pub oracle.Public) int {
	if m.Solve == SolveStatistics {
		return MostNumbers(m.statistics(), pub)
	}
	if m.FirstNoise > 0 {
		return max(pub.Dim, m.firstQuery(pub).Len(pub))
	}
	return pub.Dim
}

// Run is the heavy ball, after the mean label and the mean row where they are asked for, and before the counts of a
// fallback; of statistics AdaSSP's.
func (m Auto) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	if m.Solve == SolveStatistics {
		return m.statistics().Run(ctx, o, obj)
	}
	return Loop(func(yield func(Step) bool) (Step, error) {
		pub := o.Public()
		at, err := m.ask(ctx, o)
		if err != nil {
			return Step{W: make([]float64, pub.Dim), Shift: at.shift}, err
		}
		o := at.Oracle
		m, wide := m.within(pub, at.width)
		m = m.skewed(wide, at.shift)
		if at.choice.Lines {
			m = m.straight(pub.Chosen(at.choice), obj)
		}
		long := m // as it was chosen for rows of norm R
		if at.center != nil {
			m, _ = m.around(pub, obj, at.center)
		}
		if m.Metric {
			at.metric = m.metric(at.first, obj, at.choice, at.center)
		}
		if m.Fallback != FallbackClass && m.LastNoise == 0 && m.Factor == 0 {
			return m.p1().ball(ctx, o, obj, m.Momentum, at.course, yield)
		}
		output, goes := TailAverage.Averager(m.Steps, pub.Dim), true
		var factor *MarginFactor
		if m.LastNoise > 0 && m.ShareNoise == 0 {
			factor = long.marginFactor(pub, obj)
		}
		st, err := m.p1().ball(ctx, o, obj, m.Momentum, at.course, func(st Step) bool {
			output.Add(st)
			if factor != nil {
				factor.Add(st)
			}
			goes = yield(st)
			return goes
		})
		switch {
		case err != nil || !goes:
			return st, err
		case m.LastNoise > 0 || m.Factor > 0:
			st.Made, err = long.finish(ctx, o, obj, factor, slices.Clone(output.W()), pub.Chosen(at.choice), st)
			return st, err
		}
		return m.orClass(ctx, o, output.W(), st)
	})
}

// A begun is a run whose gradients come next: of an oracle's rows, encoded by a choice.
type begun struct {
	oracle.Oracle
	course
	choice oracle.Choice
	first  *first // nil: there was no first release
}

// ask asks for what comes before the gradients: where predictions begin, what rows are taken relative to, and how they
// are encoded.
func (m Auto) ask(ctx context.Context, o oracle.Oracle) (at begun, err error) {
	at = begun{Oracle: o, course: course{shift: startOf(o.Public())}}
	if m.FirstNoise > 0 {
		if at.first, at.Oracle, at.choice, err = m.begin(ctx, o); err != nil {
			return at, err
		}
		if at.shift = at.first.label; m.Center == CenterMean && !at.choice.Lines {
			at.center = at.first.center(len(at.choice.Pairs))
		}
		if m.SpreadNoise > 0 {
			at.width, err = m.askWidth(ctx, at, at.shift)
		}
		return at, err
	}
	shift := m.Shift
	if m.LabelNoise > 0 {
		if shift, err = askLabel(ctx, o, m.LabelNoise); err != nil {
			return at, err
		}
	}
	if m.ShareNoise > 0 {
		if shift, err = m.askShare(ctx, o); err != nil {
			return begun{Oracle: o}, err
		}
	}
	at.shift = shift
	if m.SpreadNoise > 0 {
		if at.width, err = m.askWidth(ctx, o, shift); err != nil {
			return at, err
		}
	}
	if m.Center == CenterMean {
		at.center, err = m.askCenter(ctx, o)
	}
	return at, err
}
