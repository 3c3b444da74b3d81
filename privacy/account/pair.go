package account

import (
	"iter"
	"math"
	"sync"
)

// A lossPair is the law of the privacy loss l = ln A/B under B of a dominating pair
// (A, B) that is its own mirror image: a Gaussian's, or that of other releases, or
// of both together. PROOFS.md#dominating-pairs.
type lossPair struct {
	sigma      float64    // of its Gaussian, 0 for none
	atoms      []lossAtom // of the rest
	span       float64    // where above 0, the rest has a density e^{logDensity − l/2} on |l| < span
	logDensity float64
	reach      float64 // the largest loss of the rest
	own        bool    // whether it is that of the mechanisms themselves
}

type lossAtom struct{ loss, logWeight float64 }

// The range in which a pair is computed. Beyond it the mixture bound serves.
const (
	pairLeastSigma = 0.02
	pairMostLoss   = 1e4
	pairMostOrder  = 1 << 20
	pairMostAtoms  = 32
)

// pair is that of all contents together: Gaussians are one Gaussian, a single
// Laplace or bounded-range release has its own loss, others are randomized
// responses.
func (in contents) pair() (*lossPair, bool) {
	p := &lossPair{atoms: []lossAtom{{0, 0}}}
	if precision := in.precision.up(); precision > 0 {
		p.sigma = 1 / math.Sqrt(precision) * (1 - 0x1p-51)
		if p.sigma < pairLeastSigma {
			return nil, false
		}
	}
	if !(in.total <= pairMostLoss) {
		return nil, false
	}
	switch {
	case in.count == 1 && in.only.laplace:
		// Under B the loss is −s with ½, s with ½e^{−s}, and has density ¼e^{−(l+s)/2} between.
		s := in.total
		p.span, p.logDensity = s, -2*math.Ln2-s/2
		p.atoms = []lossAtom{{-s, -math.Ln2}, {s, -math.Ln2 - s}}
		p.reach = s
	case in.count == 1 && in.only.bounded:
		// The profile (e^{ε/2} − √x)²/(e^ε − 1) has density e^{−l/2}/(4 sinh(ε/2)) on |l| < ε.
		s := in.total
		p.span, p.logDensity = s, -math.Log(2*-math.Expm1(-s))-s/2
		p.atoms = nil
		p.reach = s
	default:
		var grouped bool
		p.atoms, p.reach, grouped = responses(in.pure, in.total)
		p.own = in.exact && !grouped
		return p, true
	}
	p.own = in.exact
	return p, true
}

// responses is the loss under B of randomized responses, count of each ε. Where
// they have too many outcomes they are grouped: 2, 4, … of them are replaced by one
// of their sum, or all by one of the total, which dominates.
func responses(pure map[float64]float64, total float64) (atoms []lossAtom, reach float64, grouped bool) {
	outcomes := 1.0
	for _, count := range pure {
		outcomes *= count + 1
	}
	most := float64(pairMostAtoms)
	if outcomes > most { // an equal share of outcomes for each ε
		grouped = true
		if most = math.Floor(math.Pow(most, 1/float64(len(pure))) * (1 + 1e-9)); most < 3 {
			pure = map[float64]float64{total: 1}
		}
	}
	atoms = []lossAtom{{0, 0}}
	for _, epsilon := range sortedKeys(pure) {
		count := pure[epsilon]
		for count+1 > most && count > 1 {
			epsilon, count = 2*epsilon, math.Ceil(count/2)
		}
		up := -log1pExp(epsilon) // ln B(+ε); B(−ε) is e^ε times that
		next := make([]lossAtom, 0, len(atoms)*int(count+1))
		logC := 0.0
		for j := 0.0; j <= count; j++ { // j outcomes of loss +ε
			for _, a := range atoms {
				next = append(next, lossAtom{a.loss + (2*j-count)*epsilon, a.logWeight + logC + count*up + (count-j)*epsilon})
			}
			logC += math.Log((count - j) / (j + 1))
		}
		atoms = next
		reach += count * epsilon
	}
	return atoms, reach, grouped
}

// A test is a function of the loss l whose expectation under B is e^{(α−1)D} − 1:
// of one sign, falling and then rising around l = 0.
type lossTest struct {
	alpha, q      float64
	logQ, logRest float64
	log           func(t *lossTest, l float64) float64
}

// sampledRDP is the divergence of order α of the pair's release on a sample of
// rate q. With ρ = 1 − q + q·e^l, under replace-one it is
//
//	1/(α−1) ln( 1 + E_B[(ρ^α − 1)(1 − ρ^{1−α}); l > 0] )
//
// (PROOFS.md#fixed-pair), and under add-or-remove, by Poisson sampling,
//
//	1/(α−1) ln( 1 + E_B[ρ^α − 1 − α(ρ−1)] )
//
// where a record is removed, and no more where one is added (PROOFS.md#poisson-pair).
func (p *lossPair) sampledRDP(alpha, q float64, swap bool) float64 {
	t := lossTest{alpha: alpha, q: q, logQ: math.Log(q), logRest: math.Log1p(-q)}
	if swap {
		t.log = (*lossTest).symmetric
		return p.rdp(&t, true)
	}
	t.log = (*lossTest).removed
	return p.rdp(&t, false)
}

func (p *lossPair) rdp(t *lossTest, positive bool) float64 {
	total := newLogSum()
	for _, a := range p.atoms {
		if p.sigma > 0 {
			total.add(p.gaussian(t, a.loss, positive) + a.logWeight)
		} else if a.loss > 0 || !positive && a.loss < 0 {
			total.add(t.log(t, a.loss) + a.logWeight)
		}
	}
	if p.span > 0 {
		in := integral{
			log:   func(l float64) float64 { return t.log(t, l) - l/2 },
			most:  func(a, b float64) float64 { return math.Max(t.log(t, a), t.log(t, b)) - a/2 },
			fine:  func(a, b float64) bool { return b-a <= 1 && (b-a)*t.slope(a, b, false) <= 10 },
			peaks: []float64{p.span * (1 - 1e-9), p.span - 1/(1+t.alpha)},
		}
		if !positive {
			total.add(in.between(-p.span, 0) + p.logDensity)
		}
		total.add(in.between(0, p.span) + p.logDensity)
	}
	r := t.alpha * p.reach
	if p.sigma > 0 {
		r += t.alpha / p.sigma * (t.alpha/p.sigma + 30)
	}
	return fromLog(total.value(), slack+2e-15*(1+r), t.alpha)
}

// gaussian is ln E of the test at the loss u/σ − 1/(2σ²) + shift of a standard
// normal u. The test grows with u by at most α/σ per unit, and below its zero it is
// nearly flat, so that beyond the ends less than 1e-35 of the integral remains.
func (p *lossPair) gaussian(t *lossTest, shift float64, positive bool) float64 {
	const reach = 13.0
	loss := func(u float64) float64 { return (u-0.5/p.sigma)/p.sigma + shift }
	zero := 0.5/p.sigma - shift*p.sigma // where the loss is 0
	from, to := -reach, reach+t.alpha/p.sigma
	if positive {
		from, to = math.Max(zero, from), math.Max(to, zero+reach)
	}
	in := integral{
		log: func(u float64) float64 { return t.log(t, loss(u)) - u*u/2 },
		most: func(a, b float64) float64 {
			least := math.Max(0, math.Max(a, -b))
			return math.Max(t.log(t, loss(a)), t.log(t, loss(b))) - least*least/2
		},
		fine: func(a, b float64) bool {
			return b-a <= math.Min(1, 2*p.sigma) && (b-a)*t.slope(loss(a), loss(b), true) <= 10*p.sigma
		},
		peaks: []float64{-1.5, 1.5, zero + 1, t.alpha / p.sigma},
	}
	if positive || zero <= from || zero >= to {
		return in.between(from, to) - math.Log(2*math.Pi)/2
	}
	sum := newLogSum()
	sum.add(in.between(from, zero))
	sum.add(in.between(zero, to))
	return sum.value() - math.Log(2*math.Pi)/2
}

// slope is how fast, per unit of loss, the logarithm of what is not smooth in the
// test between losses a < b of one sign can change: the power of ρ, with slope α·p,
// p the share of q·e^l in ρ, until the other terms lead or, where the power leads,
// until they can be forgotten beside it. A Gaussian's density smooths a leading
// power, as the two make another Gaussian about.
func (t *lossTest) slope(a, b float64, gaussian bool) float64 {
	near, power := a, b > 0
	if b <= 0 {
		near = b
	}
	if (gaussian || !power) && (t.alpha-1)*math.Abs(t.logRatio(near)) > 40 {
		return 0
	}
	return t.alpha / (1 + math.Exp(t.logRest-t.logQ-b))
}

// symmetric is ln[(ρ^α − 1)(1 − ρ^{1−α})] for l > 0.
func (t *lossTest) symmetric(l float64) float64 {
	lr := t.logRatio(l)
	x := t.alpha * lr
	v := x
	if x < 40 {
		v = math.Log(math.Expm1(x))
	}
	return v + math.Log(-math.Expm1(-(t.alpha-1)*lr))
}

// logRatio is ln ρ.
func (t *lossTest) logRatio(l float64) float64 {
	if l > 30 {
		return t.logRest + log1pExp(l+t.logQ-t.logRest)
	}
	return math.Log1p(t.q * math.Expm1(l))
}

// removed is ln[ρ^α − 1 − α(ρ−1)].
func (t *lossTest) removed(l float64) float64 {
	return logBernoulli(t.alpha, t.q, t.logQ, t.logRest, l)
}

// An integral is of e^log, by Gauss–Legendre rules on panels that are
// fine. Where a panel of any width cannot matter its bound,
// width·e^most, is taken instead, which is never too small.
type integral struct {
	log   func(x float64) float64
	most  func(a, b float64) float64 // at least the log between a and b
	fine  func(a, b float64) bool
	peaks []float64  // where it may be large
	rule  []ruleNode // none: that of 16 points
}

// between is ln of the integral from a to b.
func (in *integral) between(a, b float64) float64 {
	lead := math.Inf(-1) // the largest value seen, about which nothing is promised
	look := func(x float64) { lead = math.Max(lead, in.log(x)) }
	const looks = 24
	for i := 1; i < looks; i++ {
		look(a + (b-a)*float64(i)/looks)
	}
	for _, x := range in.peaks {
		if a < x && x < b {
			look(x)
		}
	}
	if math.IsNaN(lead) { // a number overflowed
		return math.Inf(1)
	}
	if in.rule == nil {
		in.rule = legendre()
	}
	total := newLogSum()
	in.add(&total, lead, a, b)
	return total.value()
}

func (in *integral) add(total *logSum, lead, a, b float64) {
	if bound := in.most(a, b) + math.Log(b-a); bound < lead-60 {
		total.add(bound)
		return
	}
	mid := a + (b-a)/2
	if !in.fine(a, b) && mid > a && mid < b {
		in.add(total, lead, a, mid)
		in.add(total, lead, mid, b)
		return
	}
	half := newLogSum()
	for _, n := range in.rule {
		half.add(in.log(mid+n.x*(b-a)/2) + n.logWeight)
	}
	v := half.value() + math.Log((b-a)/2)
	total.add(v)
}

type ruleNode struct{ x, logWeight float64 }

// legendre and legendre20 are the Gauss–Legendre rules of 16 and 20 points on [−1, 1].
var (
	legendre   = sync.OnceValue(func() []ruleNode { return logRule(16) })
	legendre20 = sync.OnceValue(func() []ruleNode { return logRule(20) })
)

func logRule(n int) (nodes []ruleNode) {
	for x, weight := range gaussLegendre(n) {
		nodes = append(nodes, ruleNode{x, math.Log(2 * weight)})
	}
	return nodes
}

// gaussLegendre yields the points of the Gauss–Legendre rule of n points on [−1, 1], and half their weights.
func gaussLegendre(n int) iter.Seq2[float64, float64] {
	return func(yield func(x, weight float64) bool) {
		order := float64(n)
		for i := range n {
			x := math.Cos(math.Pi * (float64(i) + 0.75) / (order + 0.5))
			var slope float64
			for range 20 { // Newton's method
				p0, p1 := 1.0, x
				for k := 2.0; k <= order; k++ {
					p0, p1 = p1, ((2*k-1)*x*p1-(k-1)*p0)/k
				}
				slope = order * (x*p1 - p0) / (x*x - 1)
				x -= p1 / slope
			}
			if !yield(x, 1/((1-x*x)*slope*slope)) {
				return
			}
		}
	}
}
