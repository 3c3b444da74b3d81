package p2

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/run/compare"
)

// accuracy is a method's mean accuracy in percent; −∞ where it has none.
func (r *results) accuracy(data, model, method string, epsilon float64) float64 {
	c := r.cell(tableOf(data, model, method), method, number(epsilon))
	if c == nil || c.Score().N == 0 {
		return math.Inf(-1)
	}
	return mean(c, accuracyAxis)
}

// ahead counts the cases, each a table, a model and an ε, in which the best of some methods is ahead of the
// best of others, and by how many points on average.
func (r *results) ahead(data []string, these, others []string) (wins, cases int, points float64) {
	best := func(methods []string, d, model string, e float64) float64 {
		b := math.Inf(-1)
		for _, m := range methods {
			b = math.Max(b, r.accuracy(d, model, m, e))
		}
		return b
	}
	for _, d := range data {
		for _, model := range []string{logistic, svm} {
			for _, e := range r.size.Epsilon {
				gain := best(these, d, model, e) - best(others, d, model, e)
				if cases++; gain > 0 {
					wins++
				}
				points += gain
			}
		}
	}
	return wins, cases, points / float64(cases)
}

// claims checks the claims one by one.
func (r *results) claims() paper.Claims {
	var all paper.Claims
	most := func(name, says string, data, these, others []string) {
		wins, cases, points := r.ahead(data, these, others)
		all.Add("§5.6", name, says, 2*wins > cases, "ahead in %d of %d cases, by %.2f points on average", wins, cases, points)
	}
	both := []string{"a9a", "bank-dat"}
	most("ahead-of-baselines", "DP-BLSGD, DP-BLSGD-AC and DP-BLGD outperform the baselines in most cases", both, proposed, []string{agd, sgd, outpertRSGD, outpertGD, objpert, privgene})
	for _, m := range proposed {
		most("ahead-of-agd-"+strings.ToLower(m[3:]), m+" outperforms DP-AGD in most cases: its line search is better than a noisy choice of the step", both, []string{m}, []string{agd})
	}
	most("ahead-of-output-perturbation-adult", "on Adult the proposed methods outperform OutPert-RSGD", both[:1], proposed, []string{outpertRSGD})
	most("bank-is-the-exception", "on Bank OutPert-RSGD outperforms the proposed methods", both[1:], []string{outpertRSGD}, proposed)

	least := r.size.Epsilon[0]
	low, found := true, []string{}
	for _, d := range both {
		bl, s, o := r.accuracy(d, logistic, blsgd, least), r.accuracy(d, logistic, sgd, least), r.accuracy(d, logistic, objpert, least)
		low = low && s < bl && o < bl
		found = append(found, fmt.Sprintf("%s: DP-BLSGD %.2f, DP-SGD %.2f, ObjPert %.2f", d, bl, s, o))
	}
	all.Add("§5.6", "sgd-and-objpert-low-at-small-epsilon", fmt.Sprintf("DP-SGD and ObjPert are below DP-BLSGD where ε is small (%g)", least), low, "%s", strings.Join(found, "; "))

	wins, cases, points := r.ahead(both, []string{blsgdAC}, []string{blsgd})
	all.Add("§5.6", "clipping-adaptation-helps-some", "adapting the clipping threshold helps a little on some tables", wins > 0 && wins < cases, "ahead in %d of %d cases, by %.2f points on average", wins, cases, points)

	span := func(d string) float64 {
		top := mean(r.cell(tableOf(d, logistic, optimum), optimum, compare.NoNoise), accuracyAxis)
		return top - r.accuracy(d, logistic, majority, r.size.Epsilon[len(r.size.Epsilon)-1])
	}
	all.Add("§5.6", "bank-has-a-small-range", "on Bank the majority class and the model without noise are close", span("bank-dat") < span("a9a")/2, "%.2f points, on Adult %.2f", span("bank-dat"), span("a9a"))

	// Figure 1.
	small, large := r.size.Hyper[0], r.size.Hyper[len(r.size.Hyper)-1]
	values := func(field string, e float64) []float64 {
		var out []float64
		panels := r.size.panels()
		p := panels[slices.IndexFunc(panels, func(p panel) bool { return p.field == field })]
		for _, v := range p.values {
			out = append(out, mean(r.cell("figure 1 a9a", p.label(v), number(e)), accuracyAxis))
		}
		return out
	}
	spread := func(field string, e float64) float64 {
		v := values(field, e)
		return slices.Max(v) - slices.Min(v)
	}
	a, b := spread("armijo", large), spread("shrink", large)
	all.Add("§5.5", "robust-to-line-search-fields", fmt.Sprintf("α and β matter little at ε = %g: less than a point", large), math.Max(a, b) < 1, "from least to most %.2f points over α, %.2f over β", a, b)
	ratio := values("batch", small)
	all.Add("§5.5", "small-samples-hurt-at-small-epsilon", fmt.Sprintf("q must not be too small where ε is (%g): the smallest is behind q = 0.1", small), ratio[0] < ratio[2], "q = 0.02 %.2f, q = 0.1 %.2f", ratio[0], ratio[2])
	all.Add("§5.5", "robust-to-sampling-at-larger-epsilon", fmt.Sprintf("at ε = %g q matters little: less than a point", large), spread("batch", large) < 1, "from least to most %.2f points", spread("batch", large))
	for _, e := range r.size.Hyper {
		g, a := values("growth", e), r.counts[[3]string{"a9a", asPublished, number(e)}]
		all.Add("§5.5", "adaptive-budgets-help-at-"+number(e), fmt.Sprintf("at ε = %g budgets that grow by the angle do better than those that always or never grow", e), g[2] > math.Max(g[0], g[1]), "no %.2f, must %.2f, adaptive %.2f; of %d searches %d failed", g[0], g[1], g[2], a.searches, a.failed)
	}

	// Figure 2.
	i, last := slices.Index(r.ratios, rate), len(r.ratios)-1
	all.Add("§5.5", "sampling-saves-evaluations", "with q = 0.1 far fewer gradients and losses are computed than with all rows: less than half", 2*r.gradients[i] < r.gradients[last] && 2*r.objectives[i] < r.objectives[last],
		"passes of gradients %.1f and %.1f, of losses %.1f and %.1f", r.gradients[i], r.gradients[last], r.objectives[i], r.objectives[last])
	if r.networks != nil {
		r.networks.claims(&all)
	}
	return all
}
