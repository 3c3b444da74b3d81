package account

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
)

// This file bounds the Rényi divergences of what was asked of one sample: all of
// it is composed first and amplified once.

// curve is the sample's Rényi curve and the δ that it leaks, with a key that equal
// samples share; or why there is none.
func (s sampling) curve() (key any, one curve, leak float64, why string) {
	if nested(s.of) {
		return nil, curve{}, 0, nestedSampling
	}
	if sum, ok := s.sum(); ok {
		return sum, curve{divergence: sum,
			rests: []string{"gaussian-collapse", "poisson-replace-sum", "sampled-mixture"}}, 0, ""
	}
	if precision, ok := gaussianPrecision(s.of); ok && !s.swap {
		g := sampledGaussian{s.rate, 1 / math.Sqrt(precision) * (1 - 0x1p-51)}
		return g, curve{divergence: g, rests: []string{"gaussian-collapse", "poisson-gaussian"}}, 0, ""
	}
	in, ok := contentsOf(s.of)
	if !ok {
		return nil, curve{}, 0, notKnown
	}
	leak = mulUp(s.rate, in.leak.up())
	if len(in.curve.parts) == 0 {
		return noCost{}, curve{noCost{}, in.curve.rests.list(), false}, leak, ""
	}
	c := &sampledCurve{sampling: s, inner: in.curve, pure: math.Inf(1)}
	rests := anchors{"sampled-mixture": true}
	if in.precision.up() == 0 {
		c.pure = amplifyPure(s.rate, in.total)
		rests.note(s.rests("poisson-pure", "fixed-pure")...)
	}
	rests.note(in.curve.rests.list()...)
	if p, ok := in.pair(); ok && s.rate < 1 {
		c.pair = p
		rests.note("dominating-pairs")
		rests.note(s.rests("poisson-pair", "fixed-pair")...)
		if in.precision.up() > 0 {
			rests.note("gaussian-collapse")
		}
	}
	// Where the pair is that of the mechanisms themselves, no lemma does better. A
	// lemma says nothing of what leaks.
	own := c.pair != nil && c.pair.own
	if c.lemma = !own && in.leak.up() == 0; c.lemma {
		c.known = []float64{0, 0}
		if c.epsilon = in.total; in.precision.up() > 0 {
			c.epsilon = math.Inf(1)
		}
		rests.note(s.rests("poisson-lemma", "fixed-lemma")...)
	}
	return fmt.Sprintf("%#v", s), curve{c, rests.list(), !own}, leak, ""
}

// contents are what was asked of one sample.
type contents struct {
	precision sum                 // Σ 1/σ² of its Gaussians
	pure      map[float64]float64 // how many of its other releases are ε-private, by ε
	only      known               // the one release, if there is no more
	count     float64
	leak      sum
	curve     *rdpCurve
	total     float64 // Σ ε
	exact     bool    // whether the pair is the mechanisms' own
}

func contentsOf(e privacy.Event) (in contents, ok bool) {
	in = contents{pure: map[float64]float64{}, curve: newRDPCurve(), exact: true}
	var total sum
	err := leaves(e, 1, func(leaf privacy.Event, times float64) error {
		k, ok := facts(leaf)
		if !ok || k.renyi.divergence == nil {
			return errFound
		}
		in.curve.add(k.renyi.divergence, k.renyi, times)
		in.leak.addProduct(times, k.leak)
		in.only = k
		in.count += times
		switch {
		case k.gdp.proven:
			in.precision.addProduct(times, k.gdp.value)
		case k.pure.proven:
			epsilon := floorEpsilon(k.pure.value)
			in.pure[epsilon] += times
			total.addProduct(times, epsilon)
			in.exact = in.exact && k.renyi.divergence == pureRelease{epsilon}
		default: // then only a lemma knows
			total.add(math.Inf(1))
		}
		return nil
	})
	in.total = total.up()
	in.exact = in.exact || in.count == 1 && in.only.laplace
	return in, err == nil
}

// A sampledCurve is the least of several bounds.
type sampledCurve struct {
	sampling
	inner   *rdpCurve
	pair    *lossPair // nil for none
	lemma   bool
	pure    float64   // ε of the sample, which no divergence is above; +Inf for none
	epsilon float64   // of pure privacy, for the lemma
	known   []float64 // (l−1)·D_l of the inner curve at whole orders l, as far as evaluated
}

// lemmaOrders is the last whole order for which a lemma's sum is evaluated.
const lemmaOrders = 256

func (c *sampledCurve) at(alpha float64) float64 {
	least := math.Min(c.pure, mixedRDP(alpha, c.rate, c.inner.at(alpha)))
	if c.pair != nil && alpha <= pairMostOrder {
		least = math.Min(least, c.pair.sampledRDP(alpha, c.rate, c.swap))
	}
	if c.lemma && alpha <= lemmaOrders {
		least = math.Min(least, c.chord(alpha))
	}
	return math.Max(least, math.SmallestNonzeroFloat64)
}

// chord is the lemma's bound: at a broken order between those of whole ones,
// because (α−1)·D_α is convex in α, and 0 at α = 1.
func (c *sampledCurve) chord(alpha float64) float64 {
	below := math.Floor(alpha)
	if below == alpha {
		return c.whole(alpha)
	}
	k0 := 0.0
	if below > 1 {
		k0 = (below - 1) * c.whole(below)
	}
	part := alpha - below
	return ((1-part)*k0 + part*below*c.whole(below+1)) / (alpha - 1) * (1 + slack)
}

// whole is the lemma's bound at a whole order.
func (c *sampledCurve) whole(alpha float64) float64 {
	for l := len(c.known); l <= int(alpha); l++ {
		c.known = append(c.known, float64(l-1)*c.inner.at(float64(l)))
	}
	moment := func(l int) float64 { return c.known[l] }
	if c.swap {
		return fixedLemma(int(alpha), c.rate, moment, c.epsilon)
	}
	return poissonLemma(int(alpha), c.rate, moment)
}

// mixedRDP: by joint convexity a sample of rate q has e^{(α−1)D} ≤ 1 − q + q·e^{(α−1)d},
// d the divergence without sampling; so it never costs more.
// PROOFS.md#sampled-mixture.
func mixedRDP(alpha, q, d float64) float64 {
	x := (alpha - 1) * d
	switch {
	case math.IsInf(x, 1) || q >= 1:
		return d
	case x < 40:
		v := math.Log1p(q*math.Expm1(x)) / (alpha - 1) * (1 + slack)
		return math.Min(d, math.Max(v, math.SmallestNonzeroFloat64))
	}
	rest := math.Log1p(-q)
	return math.Min(d, (rest+log1pExp(x+math.Log(q)-rest))/(alpha-1)*(1+slack))
}

// poissonLemma bounds the divergence of whole order α ≥ 2 of any release on a Poisson
// sample of rate q, from moment(l) = (l−1)·D_l of the release:
//
//	1/(α−1) ln[ (1−q)^{α−1}(1+(α−1)q) + C(α,2) q²(1−q)^{α−2} e^{D_2} + 3 Σ_{l≥3} C(α,l) q^l (1−q)^{α−l} e^{(l−1)D_l} ]
//
// PROOFS.md#poisson-lemma. The bracket less 1 is a sum of positive terms, because
// the binomial weights add up to 1.
func poissonLemma(alpha int, q float64, moment func(l int) float64) float64 {
	total := newLogSum()
	logWeight := binomialWeights(alpha, math.Log(q), math.Log1p(-q))
	most := 0.0
	for l := 2; l <= alpha; l++ {
		m, factor := moment(l), 3.0
		if l == 2 {
			factor = 1
		}
		most = math.Max(most, m)
		total.add(logWeight(l) + logTimesExpLessOne(factor, m))
	}
	return fromLog(total.value(), slack+1e-15*(float64(alpha)*(1-math.Log(q))+most), float64(alpha))
}

// fixedLemma bounds the divergence of whole order α ≥ 2 of any release on a sample of
// fixed size, a share s of the table, under replace-one; e is the release's pure ε:
//
//	1/(α−1) ln[ 1 + s² C(α,2) min(4(e^{D_2}−1), e^{D_2} min(2, (e^e−1)²))
//	              + Σ_{j≥3} s^j C(α,j) e^{(j−1)D_j} min(2, (e^e−1)^j) ]
//
// PROOFS.md#fixed-lemma.
func fixedLemma(alpha int, s float64, moment func(j int) float64, e float64) float64 {
	total := newLogSum()
	logWeight := binomialWeights(alpha, math.Log(s), 0)
	logPure := math.Log(math.Expm1(e))
	most := 0.0
	for j := 2; j <= alpha; j++ {
		m := moment(j)
		most = math.Max(most, m)
		l := m + math.Min(math.Ln2, float64(j)*logPure)
		if j == 2 {
			l = math.Min(l, 2*math.Ln2+logTimesExpLessOne(1, m))
		}
		total.add(logWeight(j) + l)
	}
	return fromLog(total.value(), slack+1e-15*(float64(alpha)*(1-math.Log(s))+most), float64(alpha))
}

// binomialWeights is l ↦ ln C(n,l) + l·a + (n−l)·b for l = 2, 3, …, in that order.
func binomialWeights(n int, a, b float64) func(l int) float64 {
	logC, k := math.Log(float64(n)), 1
	return func(l int) float64 {
		for ; k < l; k++ {
			logC += math.Log(float64(n-k) / float64(k+1))
		}
		return logC + float64(l)*a + float64(n-l)*b
	}
}

// logTimesExpLessOne is ln(f·e^m − 1) for f ≥ 1, m ≥ 0.
func logTimesExpLessOne(f, m float64) float64 {
	if m > 40 {
		return math.Log(f) + m
	}
	return math.Log(f*math.Expm1(m) + f - 1)
}
