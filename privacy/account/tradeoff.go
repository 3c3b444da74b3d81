package account

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sottodp/sotto/privacy"
)

// A GaussianBound bounds every attack on one record: none has a true positive rate of more than Outside above
// that of the best attack, at the same false positive rate, on Gaussian noise of μ = Mu. With Outside 0 this is
// μ-Gaussian differential privacy. PROOFS.md#trade-off.
type GaussianBound struct {
	Mu      float64 `json:"mu" unit:"μ"`
	Outside float64 `json:"outside" unit:"share"`
	// Regret is what the bound gives away: its true positive rate is at most Regret above the one that the plan's
	// own curve has at a false positive rate that is larger by Regret.
	Regret float64 `json:"regret" unit:"share"`
}

// A TradeOff bounds the true positive rate of every attack on one record by its false positive rate.
type TradeOff struct {
	GaussianBound
	lines []tradeLine // none where the Gaussian bound is exact
}

// A tradeLine is an (ε, δ) that holds: TPR ≤ δ + e^ε·FPR and 1 − FPR ≤ δ + e^ε·(1 − TPR).
type tradeLine struct{ epsilon, delta, slope float64 }

const (
	// A Gaussian bound leaves the outsideShare-th part of a guarantee's δ outside.
	outsideShare = 100
	// tradeMostEpsilon is the largest ε of a line: e^ε must fit a float64.
	tradeMostEpsilon = 700
)

// NewTradeOff is the trade-off curve of a fixed plan, or of a whole run on a filter, from its loss at all ε. A share of
// delta, the δ of its guarantee, is left outside of the Gaussian bound. It is an error where no bound is proven: (ε, δ)
// releases and filters of one Rényi order say nothing of other ε, and an access without noise has no bound.
func NewTradeOff(l Loss, delta float64) (*TradeOff, error) {
	if !(delta >= 0 && delta < 1) {
		return nil, fmt.Errorf("μ: found δ = %v; choose 0 ≤ δ < 1", delta)
	}
	used := map[string]bool{}
	if mark(used, l); used["approximate"] {
		return nil, errors.New("no theorem gives μ: a release is known by one (ε, δ) only")
	}
	// few digits: any number would do
	outside, err := strconv.ParseFloat(strconv.FormatFloat(delta/outsideShare, 'g', 12, 64), 64)
	if err != nil {
		return nil, fmt.Errorf("μ: %w", err)
	}
	switch curve := curveOf(l).(type) {
	case none:
		return &TradeOff{}, nil
	case infinite:
		return nil, errors.New("no theorem gives μ: an access has no noise")
	case gdpLoss:
		return &TradeOff{GaussianBound: GaussianBound{Mu: curve.mu}}, nil
	case *pldLoss:
		q := question{curve.digest(), pldGoal{delta: outside, epsilon: curve.pure}}
		if t, ok := curves.find(q); ok {
			return &t, nil
		}
		at, top, composed := curve.profile(outside)
		t, err := tradeOffOf(at, top, outside, 200)
		if err == nil {
			curves.keep(q, *t, composed)
		}
		return t, err
	case filteredLoss:
		if curve.of.Currency == privacy.InRDP {
			return nil, errors.New("no theorem gives μ: a filter of one Rényi order bounds one (ε, δ) only")
		}
	}
	curve := curveOf(l)
	// δ there is not above outside by rounding
	return tradeOffOf(curve.Delta, curve.Epsilon(outside)*(1+1e-9), outside, 100)
}

// curveOf is the loss whose curve is used: of several the tightest, which is that of privacy-loss distributions.
func curveOf(l Loss) Loss {
	switch l := l.(type) {
	case bound:
		return curveOf(l.rest)
	case *pldLoss:
		if l.exact != nil {
			return *l.exact
		}
	case filteredLoss:
		if g, ok := l.in.(gdpLoss); ok {
			return g
		}
	case leastLoss:
		for _, one := range l {
			if p, ok := curveOf(one).(*pldLoss); ok {
				return p
			}
		}
	case mostLoss:
		most := gdpLoss{}
		for _, one := range l {
			g, ok := curveOf(one).(gdpLoss)
			if !ok {
				return l
			}
			most.mu = math.Max(most.mu, g.mu)
		}
		return most
	}
	return l
}

// profile is δ(ε) at all ε from a few compositions, each of which holds everywhere and is tight near its own δ; top is
// an ε of at most outside.
func (l *pldLoss) profile(outside float64) (at func(epsilon float64) float64, top float64, composed int) {
	var all [][]composition
	least := math.Max(outside, 1e-12)
	for delta := least; delta < 0.2 && !l.hopeless; delta *= 1e3 {
		all = append(all, l.compose(goalAt(delta), false))
	}
	at = func(epsilon float64) float64 {
		if epsilon >= l.pure {
			return 0
		}
		least := 1.0
		for _, sides := range all {
			most := 0.0
			for _, c := range sides {
				most = math.Max(most, c.delta(epsilon))
			}
			least = math.Min(least, most)
		}
		return least
	}
	top = l.pure
	if outside > 0 && len(all) > 0 {
		first := 0.0
		for _, c := range all[0] {
			first = math.Max(first, epsilonOf(c, outside))
		}
		top = math.Min(top, first)
	}
	return at, top, len(all)
}

// tradeOffOf is the trade-off curve of proven δ at n+1 values of ε up to top, where δ is at most outside.
// PROOFS.md#trade-off.
func tradeOffOf(delta func(epsilon float64) float64, top, outside float64, n int) (*TradeOff, error) {
	if math.IsInf(top, 1) {
		return nil, fmt.Errorf("no μ is proven: the accountant resolves no ε at δ = %.3g, which a curve needs", outside)
	}
	if !(top <= tradeMostEpsilon) {
		return nil, fmt.Errorf("no μ is proven: at δ = %.3g ε is above %v", outside, tradeMostEpsilon)
	}
	least := 1.0
	var lines []tradeLine // by rising ε
	for k := range n + 1 {
		epsilon := math.Min(top, top*float64(k)/float64(n))
		if k == n {
			epsilon = top
		}
		least = math.Min(least, delta(epsilon)) // δ does not grow with ε
		lines = append(lines, tradeLine{epsilon, least, math.Exp(epsilon) * (1 + 0x1p-51)})
	}
	if least > outside*(1+1e-12) {
		return nil, fmt.Errorf("no μ is proven: no ε is known at δ = %.3g", outside)
	}
	t := &TradeOff{GaussianBound{Outside: outside}, hull(lines)}
	t.corners(func(fpr, tpr float64) {
		if tpr-outside > fpr {
			t.Mu = math.Max(t.Mu,
				math.Max(quantile(tpr-outside, up)-quantile(fpr, down), quantile(tpr, up)-quantile(fpr+outside, down)))
		}
	})
	if t.Mu = t.Mu * (1 + 1e-14); math.IsInf(t.Mu, 1) {
		return nil, errors.New("no μ is proven: an attack may be right almost always")
	}
	for _, l := range t.lines {
		claimed := 0.0
		if t.Mu > 0 {
			claimed = gdpLoss{mu: t.Mu}.Delta(l.epsilon)
		}
		t.Regret = math.Max(t.Regret, (claimed-l.delta+l.slope*outside)/(1+l.slope)*(1+1e-12))
	}
	return t, nil
}

// hull keeps the lines that bound something, steepest first: the others lie above where two of them meet.
func hull(lines []tradeLine) (kept []tradeLine) {
	for _, next := range slices.Backward(lines) {
		for n := len(kept); n > 0; n = len(kept) {
			last := kept[n-1]
			if last.delta < next.delta && (n == 1 || meet(kept[n-2], last) < meet(last, next)) {
				break
			}
			kept = kept[:n-1]
		}
		kept = append(kept, next)
	}
	return kept
}

// meet is the false positive rate at which two lines, the steeper first, have the same true positive rate.
func meet(steep, flat tradeLine) float64 {
	return (flat.delta - steep.delta) / (steep.slope - flat.slope)
}

// at is the line's true positive rate, rounded up.
func (l tradeLine) at(fpr float64) float64 { return (l.delta + l.slope*fpr) * (1 + 0x1p-50) }

// corners visits the corners of the curve from a false positive rate of 0 to where both errors are equal; beyond is
// their mirror image. No corner lies below the lines that meet there.
func (t *TradeOff) corners(visit func(fpr, tpr float64)) {
	from := 0.0
	for j, l := range t.lines {
		if j+1 < len(t.lines) {
			flat := t.lines[j+1]
			fpr := math.Max(from, meet(l, flat))
			if tpr := math.Max(l.at(fpr), flat.at(fpr)); fpr+tpr < 1 {
				visit(fpr, tpr)
				from = fpr
				continue
			}
		}
		fpr := math.Max(from, (1-l.delta)/(1+l.slope))
		visit(fpr, math.Max(l.at(fpr), 1-fpr))
		return
	}
}

// Power is the largest true positive rate of any attack with that false positive rate, by the plan's own curve.
func (t *TradeOff) Power(fpr float64) float64 {
	if len(t.lines) == 0 {
		return t.GaussianBound.Power(fpr)
	}
	most := 1.0
	for _, l := range t.lines {
		most = math.Min(most, math.Min(l.at(fpr), 1-(1-l.delta-fpr)/l.slope+0x1p-50))
	}
	return most
}

// Advantage is the most by which the true positive rate of any attack is above its false positive rate.
func (t *TradeOff) Advantage() float64 {
	if n := len(t.lines); n > 0 {
		return t.lines[n-1].delta // at ε = 0
	}
	if t.Mu == 0 {
		return 0
	}
	return gdpLoss{t.Mu}.Delta(0)
}

// An Attack is a false positive rate and the largest true positive rate of any attack that has it.
type Attack struct {
	FalsePositives float64 `json:"false_positive_rate"`
	TruePositives  float64 `json:"true_positive_rate"`
}

// Attacks is the curve at the false positive rates that are usually reported.
func (t *TradeOff) Attacks() (list []Attack) {
	for _, fpr := range []float64{0.001, 0.01, 0.1} {
		list = append(list, Attack{fpr, t.Power(fpr)})
	}
	return list
}

// Power is the largest true positive rate of any attack with that false positive rate, by μ and what is outside.
func (b GaussianBound) Power(fpr float64) float64 {
	switch {
	case b.Mu == 0:
		return math.Min(1, fpr+b.Outside)
	case fpr >= 1:
		return 1
	}
	return math.Min(1, normalCDF(quantile(fpr, up)+b.Mu)*(1+1e-13)+b.Outside)
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// quantile is where the normal distribution function is p, rounded up or down: math.Erfc errs by less than 1e-14 of
// itself.
func quantile(p float64, toward rounding) float64 {
	switch {
	case !(p > 0):
		return math.Inf(-1)
	case p >= 1:
		return math.Inf(1)
	case p > 0.5: // 1 − p is exact
		return -quantile(1-p, -toward)
	}
	p *= 1 + 2e-14*float64(toward)
	lo, hi := -39.0, 0.0
	for range 64 {
		mid := (lo + hi) / 2
		if normalCDF(mid) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	if toward == up {
		return hi
	}
	return lo
}

// rounding is the direction of it.
type rounding int

const (
	down rounding = -1
	up   rounding = 1
)
