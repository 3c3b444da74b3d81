package p2

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/study/compare"
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

// behind says where the proposed methods are behind, and which baselines are ahead.
func (r *results) behind(suffix string) string {
	count, all, cases := map[string]int{}, 0, 0
	for _, d := range datasets[:2] {
		for _, model := range []string{logistic, svm} {
			for _, e := range r.size.Epsilon {
				cases++
				if m := r.rival(d.name, model, suffix, e); r.accuracy(d.name, model, m, e) >= r.accuracy(d.name, model,
					r.of(d.name, model, suffixed(proposed, suffix), e), e) {
					count[strings.TrimSuffix(m, own)]++
					all++
				}
			}
		}
	}
	var names []string
	for _, m := range slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a, b))
	}) {
		names = append(names, fmt.Sprintf("%s in %d", m, count[m]))
	}
	return fmt.Sprintf("behind in %d of %d cases, where the best baseline is %s", all, cases, strings.Join(names, ", "))
}

// noise is a method's noise multiplier on Adult at the smallest ε.
func (r *results) noise(method string) float64 {
	return r.cell(tableOf("a9a", logistic, method), method, number(r.size.Epsilon[0])).Results[0].Noise
}

// ended says how many trainings of a panel of Figure 1 ended before their last iteration, since the budget was spent.
func (r *results) ended(field string, epsilon float64) string {
	early, all := 0, 0
	for _, p := range r.size.panels() {
		for _, v := range p.values {
			if p.field != field {
				continue
			}
			for _, t := range r.cell("figure 1 a9a", p.label(v), number(epsilon)).Results {
				if all++; t.Steps < r.size.Steps {
					early++
				}
			}
		}
	}
	return fmt.Sprintf("%d of %d trainings spend ε before", early, all)
}

// with is the accuracy in Figure 1 with one field changed.
func (r *results) with(field, value string, epsilon float64) string {
	panels := r.size.panels()
	p := panels[slices.IndexFunc(panels, func(p panel) bool { return p.field == field })]
	c := r.cell("figure 1 a9a", p.label(value), number(epsilon))
	return fmt.Sprintf("%.2f ± %.2f", mean(c, accuracyAxis), 100*c.Score().SD)
}

// of is the best of some methods in a case.
func (r *results) of(data, model string, methods []string, epsilon float64) string {
	return slices.MaxFunc(methods, func(a, b string) int {
		return cmp.Compare(r.accuracy(data, model, a, epsilon), r.accuracy(data, model, b, epsilon))
	})
}

// defaults are the lines of methods with Sotto's defaults; ObjPert has one line.
func defaults(methods []string) []string {
	return suffixed(slices.DeleteFunc(slices.Clone(methods), func(m string) bool { return m == objpert }), own)
}

// claims checks the claims one by one, with P2's hyperparameters on P2's tables.
func (r *results) claims() paper.Claims {
	var all paper.Claims
	r.claimsOfRivals(&all)
	r.claimsOfFigure1(&all)
	r.claimsOfFigure2(&all)
	if r.networks != nil {
		r.networks.claims(&all)
	} else {
		all.NotTested("§5.7", "networks",
			"DP-BLSGD reaches a high accuracy in fewer iterations than DP-SGD and DP-Adam on networks", "--full trains them.")
	}
	all.NotTested("§5.7", "fashion-mnist-and-cifar10", "the same on Fashion-MNIST and CIFAR-10",
		"Neither is among our datasets.")
	all.NotTested("§5.6", "armijo-makes-the-difference", "that DP-BLGD is ahead of DP-AGD is due to Armijo's condition",
		"The two differ in more than the choice of the step (clipping, the noise of the choice, the budget's growth), and the paper tells no part apart.")
	return all
}

// claimsOfRivals checks what §5.6 says of the proposed methods and of others.
func (r *results) claimsOfRivals(all *paper.Claims) {
	most := func(name, says string, data, these, others []string, why string) {
		wins, cases, points := r.ahead(data, these, others)
		dWins, _, dPoints := r.ahead(data, suffixed(these, own), defaults(others))
		all.Add("§5.6", name, says, 2*wins > cases,
			"ahead in %d of %d cases, by %.2f points on average; with Sotto's defaults in %d, by %.2f", wins, cases, points,
			dWins, dPoints).Because(why)
	}
	both := []string{"a9a", "bank-dat"}
	most("ahead-of-baselines", "DP-BLSGD, DP-BLSGD-AC and DP-BLGD outperform the baselines in most cases", both, proposed,
		baselines(""),
		fmt.Sprintf("The search takes a part of the budget: at ε = %g on Adult the noise multiplier of gradients is %.4g with it, and %.4g in DP-SGD without; %s (Figures 3 and 4 in numbers).", r.size.Epsilon[0], r.noise(blsgd), r.noise(sgd), r.behind("")))
	for _, m := range proposed {
		most("ahead-of-agd-"+strings.ToLower(m[3:]),
			m+" outperforms DP-AGD in most cases: its line search is better than a noisy choice of the step", both, []string{m},
			[]string{agd},
			"DP-AGD chooses here by the exponential mechanism, at a quarter of the cost of its public code, which is not private (S-B1).")
	}
	most("ahead-of-output-perturbation-adult", "on Adult the proposed methods outperform OutPert-RSGD", both[:1], proposed,
		[]string{outpertRSGD}, "")
	most("bank-is-the-exception", "on Bank OutPert-RSGD outperforms the proposed methods", both[1:], []string{outpertRSGD},
		proposed,
		"OutPert-RSGD has no theorem here for a random place in the order, so its noise is larger, and on this table all are within the narrow range below.")

	least := r.size.Epsilon[0]
	low, found := true, []string{}
	for _, d := range both {
		bl, s, o := r.accuracy(d, logistic, blsgd, least), r.accuracy(d, logistic, sgd, least),
			r.accuracy(d, logistic, objpert, least)
		low = low && s < bl && o < bl
		found = append(found, fmt.Sprintf("%s: DP-BLSGD %.2f, DP-SGD %.2f, ObjPert %.2f", d, bl, s, o))
	}
	all.Add("§5.6", "sgd-and-objpert-low-at-small-epsilon",
		fmt.Sprintf("DP-SGD and ObjPert are below DP-BLSGD where ε is small (%g)", least), low, "%s",
		strings.Join(found, "; ")).
		Because("DP-SGD's accuracy is decided by its step size, which P2 does not print for linear models: with η = 0.2 it is slow at large ε and steady at small ones (Figures 3 and 4).")

	wins, cases, points := r.ahead(both, []string{blsgdAC}, []string{blsgd})
	all.Add("§5.6", "clipping-adaptation-helps-some", "adapting the clipping threshold helps a little on some tables",
		wins > 0 && wins < cases, "ahead in %d of %d cases, by %.2f points on average", wins, cases, points).
		Because("With the noise that a sound account allows for 100 iterations hardly a search fails, so that no threshold falls; with P2's own budget for an iteration it does (budgets and thresholds that adapt).")
	differ, found := false, nil
	for _, d := range both {
		for _, e := range r.size.Hyper {
			plain, ac := r.cell("figure 1 "+d, asPublished, number(e)), r.cell("figure 1 "+d, "decay 0.05", number(e))
			differ = differ || math.Abs(mean(plain, objectiveAxis)-mean(ac, objectiveAxis)) > 1e-9
			p, a := mean(plain, accuracyAxis), mean(ac, accuracyAxis)
			found = append(found, fmt.Sprintf("%s, ε = %g: %.2f and %.2f, ahead %s", d, e, p, a, leading(p, a)))
		}
	}
	all.Add("", "ac-acts", "with P2's budget for an iteration DP-BLSGD-AC is another method than DP-BLSGD", differ,
		"DP-BLSGD and -AC: %s", strings.Join(found, "; "))

	span := func(d string) float64 {
		top := mean(r.cell(tableOf(d, logistic, optimum), optimum, compare.NoNoise), accuracyAxis)
		return top - r.accuracy(d, logistic, majority, r.size.Epsilon[len(r.size.Epsilon)-1])
	}
	all.Add("§5.6", "bank-has-a-small-range", "on Bank the majority class and the model without noise are close",
		span("bank-dat") < span("a9a")/2, "%.2f points, on Adult %.2f", span("bank-dat"), span("a9a"))
}

// claimsOfFigure1 checks what §5.5 says of the fields of DP-BLSGD, one changed at a time.
func (r *results) claimsOfFigure1(all *paper.Claims) {
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
	objective := func(label string) float64 { return mean(r.cell("figure 1 a9a", label, number(large)), objectiveAxis) }
	all.Add("§5.5", "robust-to-line-search-fields",
		fmt.Sprintf("at ε = %g the algorithm is relatively robust to α and β: less than a point", large), math.Max(a, b) < 1,
		"from least to most %.2f points over α, %.2f over β", a, b).
		Because(fmt.Sprintf("A small α accepts long steps along noisy gradients: objective %.3g at α = 0.1, %.3g at 0.5, %.3g at 0.9. The bound of a point is ours.", objective("armijo 0.1"), objective(asPublished), objective("armijo 0.9")))
	alpha, beta := r.best("armijo", small), r.best("shrink", small)
	all.Add("§5.5", "best-fields-at-small-epsilon", fmt.Sprintf("at ε = %g α = 0.5 and β = 0.8 are best", small),
		alpha == "0.5" && beta == "0.8", "α = %s and β = %s", alpha, beta).
		Because(fmt.Sprintf("Deviations are as large as differences: %s with P2's, %s with the best α and %s with the best β (figure1.csv).", r.with("armijo", "0.5", small), r.with("armijo", alpha, small), r.with("shrink", beta, small)))
	ratio := values("batch", small)
	all.Add("§5.5", "small-samples-hurt-at-small-epsilon",
		fmt.Sprintf("q must not be too small where ε is (%g): the smallest is behind q = 0.1", small), ratio[0] < ratio[2],
		"q = 0.02 %.2f, q = 0.1 %.2f", ratio[0], ratio[2])
	all.Add("§5.5", "robust-to-sampling-at-larger-epsilon",
		fmt.Sprintf("at ε = %g the algorithm is robust to q: less than a point", large), spread("batch", large) < 1,
		"from least to most %.2f points", spread("batch", large)).
		Because(fmt.Sprintf("P2's budget for an iteration fixes the noise of the sum whatever q, so that the mean over a small sample is noisier; what a small q saves are iterations after the %d of this run: %s.", r.size.Steps, r.ended("batch", large)))
	for _, e := range r.size.Hyper {
		g, a := values("growth", e), r.counts[[3]string{"a9a", asPublished, number(e)}]
		why := fmt.Sprintf("Budgets that always grow do better: under a sound account growing costs nothing within %d iterations, %s.", r.size.Steps, r.ended("growth", e))
		if g[1] <= g[2] {
			why = fmt.Sprintf("Only %d of %d searches fail, so that budgets hardly grow.", a.failed, a.searches)
		}
		all.Add("§5.5", "adaptive-budgets-help-at-"+number(e),
			fmt.Sprintf("at ε = %g budgets that grow by the angle do better than those that always or never grow", e),
			g[2] > math.Max(g[0], g[1]), "no %.2f, must %.2f, adaptive %.2f; of %d searches %d failed", g[0], g[1], g[2],
			a.searches, a.failed).Because(why)
	}
	for i, e := range []float64{small, large} {
		d := values("decay", e)
		says, holds := fmt.Sprintf("at ε = %g decreasing the clipping threshold adaptively benefits the performance", e),
			slices.Max(d[1:]) > d[0]
		if i == 1 {
			says, holds = fmt.Sprintf("at ε = %g it does not", e), slices.Max(d[1:]) <= d[0]
		}
		all.Add("§5.5", "falling-thresholds-at-"+number(e), says, holds, "ζ = 0 %.2f, 0.05 %.2f, 0.1 %.2f, 0.2 %.2f", d[0],
			d[1], d[2], d[3]).
			Because(fmt.Sprintf("Of %d searches %d fail at this ε, and thresholds fall as they do at the other: the gradients' noise falls with them (budgets and thresholds that adapt).",
				r.counts[[3]string{"a9a", "decay 0.05", number(e)}].searches,
				r.counts[[3]string{"a9a", "decay 0.05", number(e)}].failed))
	}

	laplace, found := true, []string{}
	for _, e := range r.size.Hyper {
		l, g := r.byNoise(e, false).Value, r.byNoise(e, true).Value
		laplace = laplace && l > g
		found = append(found, fmt.Sprintf("ε = %g: Laplace %.2f, Gaussian %.2f", e, l, g))
	}
	all.Add("§5.5", "laplace-ahead", "accuracy is slightly higher where the noise of the search is Laplace's", laplace,
		"%s", strings.Join(found, "; ")).
		Because("At the same ρ the noise of the Gaussian search has less than two thirds of the standard deviation of the Laplace one; Theorem 3, from which it follows, is false (last table).")
}

// claimsOfFigure2 checks what samples save.
func (r *results) claimsOfFigure2(all *paper.Claims) {
	i, last := slices.Index(r.ratios, rate), len(r.ratios)-1
	all.Add("§5.5", "sampling-saves-evaluations",
		"with q = 0.1 far fewer gradients and losses are computed than with all rows: less than half",
		2*r.gradients[i] < r.gradients[last] && 2*r.objectives[i] < r.objectives[last],
		"passes of gradients %.1f and %.1f, of losses %.1f and %.1f", r.gradients[i], r.gradients[last], r.objectives[i],
		r.objectives[last])
}
