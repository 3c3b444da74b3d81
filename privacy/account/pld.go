package account

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/privacy"
)

// PLD accounts by composing privacy-loss distributions numerically. It is the
// tightest accountant for plans that are fixed beforehand, of every mechanism, on
// whole tables and on samples, Poisson or under replace-one of fixed size. It chooses its grid from the
// plan and the question. What it returns is an upper bound that includes the
// errors of grid, window, tails and rounding; where they are too large for the δ
// that is asked for, ε is +Inf. PROOFS.md#pld-discretisation.
type PLD struct{}

func (PLD) String() string { return "pld" }

// Loss implements Accountant. The work is done when the loss is asked for ε or δ.
func (a PLD) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	l, err := a.loss(e, adj)
	if p, ok := l.(*pldLoss); ok {
		if p.exact != nil {
			return bound{*p.exact, 0, []string{"gaussian-collapse", "gaussian-exact"}}, err
		}
		return bound{p, 0, p.rests.list()}, err
	}
	return l, err
}

// Bracket returns two ends between which the least ε at delta lies for the
// dominating pairs of the event: upper is what Loss gives, lower comes from
// the optimistic twin, a privacy loss that the event certainly has. For pure
// releases the pair is randomized response, for Laplace noise one coordinate.
func (a PLD) Bracket(e privacy.Event, adj privacy.Adjacency, delta float64) (lower, upper float64, err error) {
	if parts := divided(e, adj); parts != nil {
		for _, part := range parts {
			least, most, err := a.Bracket(part, adj, delta)
			if err != nil {
				return 0, 0, err
			}
			lower, upper = math.Max(lower, least), math.Max(upper, most)
		}
		return lower, upper, nil
	}
	l, err := a.loss(pooled(e), adj)
	if err != nil {
		return 0, 0, err
	}
	upper = l.Epsilon(delta)
	switch l := l.(type) {
	case *pldLoss:
		lower = math.Min(upper, l.lowerEpsilon(delta, upper))
	default:
		lower = upper
	}
	return lower, upper, nil
}

// Least is a lower bound on the ε of e at delta, by any accountant. It is the lower end of Bracket
// if the dominating pairs are proven to be laws of e on some neighbors, and else 0, which claims
// nothing. Searches and choices may cost less than their pairs. So may samples under replace-one,
// whose pair is made symmetric, except for sums that a replacement moves by twice what presence
// moves them. PROOFS.md#pld-least.
func (a PLD) Least(e privacy.Event, adj privacy.Adjacency, delta float64) (float64, error) {
	if _, rules := partsOf(e); len(rules) > 1 || manyKinds(e) || !reached(pooled(e), adj) {
		return 0, nil
	}
	lower, _, err := a.Bracket(e, adj, delta)
	return lower, err
}

// reached says whether the pairs of laws by which an event is bounded are proven to be its own.
func reached(e privacy.Event, adj privacy.Adjacency) bool {
	switch e := e.(type) {
	case privacy.Gaussian, privacy.Laplace, privacy.PureDP, privacy.ApproxDP:
		return true
	case privacy.GaussianSum:
		return adj == privacy.ReplaceOne
	case privacy.PoissonSampled:
		_, gaussian := gaussianPrecision(e.Of)
		_, single := onlyLeaf(e.Of)
		if adj == privacy.ReplaceOne {
			return opposed(e.Of)
		}
		return (gaussian || single) && reached(e.Of, adj) // others are replaced by what dominates them
	case privacy.Repeated:
		return reached(e.Of, adj)
	case privacy.Parallel: // under replace-one a record need not move two parts at once
		return adj == privacy.AddRemove && reached(e.Of, adj)
	case privacy.Composed:
		return !slices.ContainsFunc(e, func(part privacy.Event) bool { return !reached(part, adj) })
	}
	return false
}

func (a PLD) loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if l, err := trivial(a, e, adj); l != nil || err != nil {
		return l, err
	}
	l := &pldLoss{pure: math.Inf(1)}
	if err := l.read(a, e, adj); err != nil {
		return nil, err
	}
	if epsilon, err := pureEpsilon(a, e, adj); err == nil {
		l.pure = epsilon
		l.rests.note("pure-composition", "pure-delta")
	}
	return l, nil
}

// The ranges within which the numbers below are computed. Outside them an event
// is replaced by one that costs more.
const (
	pldMaxScale = 1e6   // noise, and 1/ε
	pldMinRate  = 1e-12 // sampling
	pldMaxShift = 500   // 1/σ, 1/b and ε; above, ε is +Inf unless pure
	pldMaxTimes = 1 << 40
	pldMaxParts = 256 // different releases; more are joined with neighbors
)

// A pldLoss is the composition of its parts.
type pldLoss struct {
	parts    []pldPart
	less     []pldPart // for the lower end, if they are not the same
	adj      privacy.Adjacency
	steps    float64  // Σ times
	sampled  bool     // whether adding differs from removing
	clamped  bool     // whether a part costs more than what it stands for
	hopeless bool     // whether a part is out of range
	exact    *gdpLoss // set if all is one Gaussian
	gridOnly bool     // for tests
	pure     float64  // the pure ε, +Inf for none
	rests    anchors
}

// read turns an event into parts. PROOFS.md#pld-pairs.
func (l *pldLoss) read(a PLD, e privacy.Event, adj privacy.Adjacency) error {
	l.adj, l.rests = adj, anchors{}
	l.rests.note("pld-pairs", "pld-line", "pld-discretisation", "pld-composition", "pld-truncation", "pld-geometric")
	r := pldReader{pldLoss: l, accountant: a, index: map[pair]int{}, mixed: map[int]privacy.Event{}}
	if err := leaves(e, 1, r.leaf); err != nil {
		return err
	}
	for i := range l.parts {
		if p := &l.parts[i]; p.shape == allocatedShape && !l.hopeless {
			p.points = allocatedPoints(int(p.near), p.shift)
		}
	}
	if precision := r.whole.up(); precision > 0 {
		if len(l.parts) == 0 {
			l.exact = &gdpLoss{mu: math.Sqrt(precision) * (1 + 1e-15)}
		}
		r.add(pair{shape: normalShape, rate: 1, shift: gaussianShift(precision)}, 1)
	}
	l.hopeless = l.hopeless || l.steps > pldMaxTimes
	if len(l.parts) > pldMaxParts {
		l.parts, l.less = join(l.parts, false), join(l.parts, true)
	}
	return nil
}

// A pldReader reads events into the parts of a loss.
type pldReader struct {
	*pldLoss
	accountant PLD
	index      map[pair]int          // of the parts
	mixed      map[int]privacy.Event // what the parts of many points stand for
	whole      sum                   // Σ 1/σ² of the Gaussians on whole tables
}

func (r *pldReader) count(i int, times float64) {
	r.parts[i].times += times
	r.steps += times
}

// add adds a pair so many times.
func (r *pldReader) add(p pair, times float64) {
	p = r.inRange(p)
	i, ok := r.index[p]
	if !ok {
		i = len(r.parts)
		r.index[p] = i
		r.parts = append(r.parts, pldPart{pair: p})
	}
	r.count(i, times)
}

// addMixed adds a sample, of a mixture of laws, so many times. It reports whether inner is such a mixture.
func (r *pldReader) addMixed(rate float64, leaf, inner privacy.Event, times float64) bool {
	for i, known := range r.mixed {
		if privacy.Equal(known, leaf) {
			r.count(i, times)
			return true
		}
	}
	points, excess, ok := r.mixture(inner)
	if ok {
		r.mixed[len(r.parts)] = leaf
		p := r.inRange(pair{shape: pointShape, rate: rate, shift: 1, lost: excess})
		r.parts = append(r.parts, pldPart{pair: p, points: points})
		r.count(len(r.parts)-1, times)
	}
	return ok
}

// leaf adds an event that is not composed of others, so many times.
func (r *pldReader) leaf(leaf privacy.Event, times float64) error {
	switch leaf := leaf.(type) {
	case privacy.PoissonSampled:
		if r.adj == privacy.ReplaceOne {
			if p, ok := sumPair(leaf.Rate, leaf.Of); ok {
				r.add(p, times)
				r.sampled = true
				r.rests.note("gaussian-collapse", "poisson-replace-sum")
				return nil
			}
			r.rests.note("pld-fixed", "poisson-replace")
		}
		return r.sample(leaf, leaf.Rate, leaf.Of, times)
	case privacy.FixedSampled:
		if r.adj != privacy.ReplaceOne {
			return unsupported(r.accountant, leaf, r.adj, addRemoveFixed)
		}
		r.rests.note("pld-fixed")
		return r.sample(leaf, math.Nextafter(float64(leaf.M)/float64(leaf.N), 1), leaf.Of, times)
	case privacy.Allocated:
		p, ok := allocatedPair(leaf)
		if !ok {
			return unsupported(r.accountant, leaf, r.adj, onlyAllocatedGaussian)
		}
		r.add(p, times)
		r.sampled, r.clamped = true, true
		r.rests.note("gaussian-collapse", "allocation")
		return nil
	}
	if g, ok := gaussianOf(leaf); ok {
		r.whole.addProduct(times, precisionUp(g))
		r.rests.note("gaussian-collapse")
		return nil
	}
	if p, ok := r.pairOf(leaf); ok {
		r.add(p, times)
		return nil
	}
	return unsupported(r.accountant, leaf, r.adj, notKnown)
}

// sample adds what inner asks of a sample at that rate, so many times; leaf is the event of both.
func (r *pldReader) sample(leaf privacy.Event, rate float64, inner privacy.Event, times float64) error {
	r.sampled = true
	if precision, ok := gaussianPrecision(inner); ok {
		r.add(pair{shape: normalShape, rate: rate, shift: gaussianShift(precision)}, times)
		r.rests.note("gaussian-collapse")
		return nil
	}
	if only, ok := onlyLeaf(inner); ok {
		if p, ok := r.pairOf(only); ok {
			p.rate = rate
			r.add(p, times)
			return nil
		}
	}
	if !r.addMixed(rate, leaf, inner, times) {
		return unsupported(r.accountant, leaf, r.adj, nestedSampling)
	}
	r.rests.note("pld-mixture")
	return nil
}

// join makes parts of like noise and rate one part, that costs more than each or,
// for the lower end, less. Its work would else grow with the number of different
// parts. PROOFS.md#pld-truncation.
func join(parts []pldPart, lower bool) []pldPart {
	type key struct {
		shape             shape
		rate, shift, near int
		lost              float64
	}
	var joined []pldPart
	for pitch := 1e-4; pitch < 10; pitch *= 1.5 {
		joined = nil
		index := map[key]int{}
		for _, p := range parts {
			if p.shape == pointShape || p.shape == allocatedShape { // stays
				joined = append(joined, p)
				continue
			}
			step := func(x float64) int { return int(math.Floor(math.Log(math.Max(x, 1e-300)) / pitch)) }
			k := key{p.shape, step(p.rate), step(p.shift), step(p.near), p.lost}
			i, ok := index[k]
			if !ok {
				index[k] = len(joined)
				joined = append(joined, p)
				continue
			}
			with := &joined[i]
			with.times += p.times
			if lower {
				with.rate, with.shift, with.near = math.Min(with.rate, p.rate), math.Min(with.shift, p.shift),
					math.Min(with.near, p.near)
			} else {
				with.rate, with.shift, with.near = math.Max(with.rate, p.rate), math.Max(with.shift, p.shift),
					math.Max(with.near, p.near)
			}
		}
		if len(index) <= pldMaxParts {
			break
		}
	}
	return joined
}

// gaussianShift is 1/σ of Gaussians on the same records, rounded up.
func gaussianShift(precision float64) float64 { return math.Sqrt(precision) * (1 + 1e-15) }

// inRange returns a pair that dominates p and is within the ranges of the numbers.
func (l *pldLoss) inRange(p pair) pair {
	lowest := func(x *float64, least float64) {
		if *x < least {
			*x, l.clamped = least, true
		}
	}
	lowest(&p.shift, 1/pldMaxScale)
	lowest(&p.rate, pldMinRate)
	if p.shape == sumShape {
		lowest(&p.near, p.shift/2)
	}
	if !(p.shift <= pldMaxShift) {
		l.hopeless = true
	}
	return p
}

// pairOf is the dominating pair of a release on its own, if it is not Gaussian:
// that of Laplace noise, or randomized response for any other pure release.
func (l *pldLoss) pairOf(leaf privacy.Event) (p pair, ok bool) {
	k, ok := facts(leaf)
	if !ok || !k.pure.proven {
		return pair{}, false
	}
	l.rests.note(k.pure.rests...)
	p = pair{shape: responseShape, rate: 1, shift: k.pure.value, lost: k.leak}
	if k.laplace {
		p.shape = laplaceShape
	}
	return p, true
}

// onlyLeaf is the one release that e consists of.
func onlyLeaf(e privacy.Event) (only privacy.Event, ok bool) {
	count := 0.0
	_ = leaves(e, 1, func(leaf privacy.Event, times float64) error {
		only = leaf
		count += times
		return nil
	})
	return only, count == 1
}

// directions lists whether a record is removed or added, where that differs.
func (l *pldLoss) directions() []direction {
	switch {
	case !l.sampled:
		return []direction{remove}
	case l.adj == privacy.ReplaceOne:
		return []direction{swap}
	}
	return []direction{remove, add}
}

// Epsilon implements Loss.
func (l *pldLoss) Epsilon(delta float64) float64 { return l.epsilon(delta, false) }

// epsilon is Epsilon or, rough, a little more.
func (l *pldLoss) epsilon(delta float64, rough bool) float64 {
	if e := edge(delta, -1); e >= 0 {
		return e
	}
	if l.exact != nil {
		return l.exact.Epsilon(delta)
	}
	if delta < math.SmallestNonzeroFloat64*0x1p60 || l.hopeless {
		return l.pure
	}
	goal := goalAt(delta)
	goal.rough = rough
	return math.Min(l.answer(goal), l.pure)
}

// Delta implements Loss.
func (l *pldLoss) Delta(epsilon float64) float64 {
	switch {
	case !(epsilon >= 0):
		return 1
	case l.exact != nil:
		return l.exact.Delta(epsilon)
	case epsilon >= l.pure:
		return 0
	case l.hopeless || math.IsInf(epsilon, 1):
		return 1
	}
	delta := l.answer(pldGoal{epsilon: epsilon, atEpsilon: true})
	return math.Min(1, math.Max(delta, math.SmallestNonzeroFloat64))
}

// lowerEpsilon is an ε ≤ upper at which (ε, delta) does not hold, or 0.
func (l *pldLoss) lowerEpsilon(delta, upper float64) float64 {
	switch {
	case !(delta > 0) || delta >= 1:
		return 0
	case l.exact != nil:
		return l.exact.Epsilon(delta) * (1 - 1e-9)
	case delta < 1e-300 || l.hopeless || l.clamped || math.IsInf(upper, 1):
		return 0
	}
	if l.less != nil {
		l = &pldLoss{parts: l.less, adj: l.adj, steps: l.steps, sampled: l.sampled, gridOnly: l.gridOnly}
	}
	goal := goalAt(delta)
	directions := l.directions()
	aims := l.aims(directions, goal)
	if hard, _, clear := order(aims, goal); clear && !l.gridOnly { // the other direction would say less
		directions, aims = directions[hard:hard+1], aims[hard:hard+1]
	}
	epsilon := 0.0
	for _, c := range l.composeAll(directions, aims, true) {
		epsilon = math.Max(epsilon, lowerEpsilonOf(c, delta, upper))
	}
	return epsilon
}
