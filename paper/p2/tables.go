package p2

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/schema"
	"github.com/sottodp/sotto/study/compare"
)

// compared makes a table of P2's numbers beside those here, and the function that adds to it.
func compared(title string) (*paper.Table, func(from, quantity string, printed, ours any, why string)) {
	t := &paper.Table{Title: title, Head: []string{"P2", "quantity", "paper", "Sotto", "ratio, or reason"}}
	return t, func(from, quantity string, printed, ours any, why string) {
		if v, ok := ours.(float64); ok && why == "" {
			why = paper.Digits(v/printed.(float64), 4)
		}
		t.Add(from, quantity, printed, ours, why)
	}
}

// settings are those that P2 prints of these experiments, beside what was run here.
func (r *results) settings() (*paper.Table, error) {
	t, add := compared("Settings and datasets that the paper prints")
	t.ID, t.Settings = "settings", true
	for i, d := range []struct {
		name          string
		rows          int
		dim, majority float64
	}{{"Adult", 48842, 124, .761}, {"Bank", 45211, 33, .883}} {
		s, err := schema.Parse(datasets[i].name, []byte(datasets[i].schema))
		if err != nil {
			return t, err
		}
		add("Table 1", d.name+", rows", strconv.Itoa(d.rows), strconv.Itoa(datasets[i].rows),
			paper.Digits(float64(datasets[i].rows)/float64(d.rows), 4))
		add("Table 1", d.name+", dimension", d.dim, float64(s.Dim()), "")
		add("Table 1", d.name+", share of the larger class", d.majority,
			r.accuracy(datasets[i].name, logistic, majority, r.size.Epsilon[len(r.size.Epsilon)-1])/100, "")
	}
	for _, name := range []string{"IPUMS-BR", "IPUMS-US", "FMNIST", "Cifar-10"} {
		add("Table 1", name+", rows, dimension and baseline",
			map[string]string{"IPUMS-BR": "38,000; 53; .507", "IPUMS-US": "40,000; 58; .513",
				"FMNIST": "60,000/10,000; 1×28×28; ~.1", "Cifar-10": "50,000/10,000; 3×32×32; ~.1"}[name], "",
			"not run: the dataset is not at hand")
	}
	add("§5.2", "repetitions", "10 folds, 5 times",
		fmt.Sprintf("%d random parts to train on, %g of the rows", r.size.Seeds, r.size.Split), "the size of this run")
	add("§5.1", "μ of the regularizer", .001, lambda, "")
	add("§5.3", "ħ of the Huberized hinge", .5, .5, "")
	add("§5.4", "δ", 1e-8, delta, "")
	add("§5.4", "q", .1, rate, "")
	add("§5.4", "C_grad", 3., 3., "")
	add("§5.4", "C_obj", 1., 1., "")
	add("§5.4", "ε_iter, as a part of ε", .01, .01, "")
	add("§5.4", "ε_BT/√(2ρ_grad)", 1., 1., "")
	add("§5.4", "ξ", .3, .3, "")
	add("§5.4", "α of Armijo's condition", .5, .5, "")
	add("§5.4", "β", .8, .8, "")
	add("§5.4", "τ", 10., 10., "")
	add("§5.4", "ς", 1.2, 1.2, "")
	add("§5.4", "φ_max", 1.1, 1.1, "")
	add("§5.4", "φ_min", .5, .5, "")
	add("§5.4", "ψ", .8, .8, "")
	add("§5.4", "ζ of DP-BLSGD-AC", .05, .05, "")
	add("§4.2", "first θ̄, degrees", 90., 90., "")
	add("§4.3", "orders of the account", "2 to 500", "one",
		"which order certifies may depend on what was released, so that all together cost more (S-2c)")
	if r.networks != nil {
		r.networks.printed(add)
	}
	return t, nil
}

// printed are the results that P2 prints, beside those here.
func (r *results) printed() (*paper.Table, error) {
	t, add := compared("Results that the paper prints")
	t.Note = fmt.Sprintf("Figures 1 to 5 are only drawn: P2 prints no accuracy, objective or number of iterations, nor max_it (here 20), η₀, nor DP-SGD's step size on linear models. At each ε it is the one with the highest mean accuracy on Adult, logistic: of %s for DP-BLSGD and -AC %s; of %s for DP-BLGD %s; of %s for DP-SGD %s.",
		strings.Join(startRates[0], ", "), r.chosen(func(e float64) string { return r.size.start[e][0] }),
		strings.Join(startRates[1], ", "), r.chosen(func(e float64) string { return r.size.start[e][1] }),
		strings.Join(steps, ", "), r.chosen(func(e float64) string { return r.step[e] }))
	least := r.size.Hyper[0]
	for _, f := range []struct {
		name, field string
		paper       float64
	}{{"α", "armijo", .5}, {"β", "shrink", .8}} {
		best, why := r.best(f.field, least), ""
		v, err := strconv.ParseFloat(best, 64)
		if err != nil {
			return t, err
		}
		if v != f.paper {
			why = fmt.Sprintf("%s; deviations are as large as differences (claim best-fields-at-small-epsilon)",
				paper.Digits(v/f.paper, 4))
		}
		add("§5.5", fmt.Sprintf("best %s at ε = %g", f.name, least), f.paper, v, why)
	}
	add("§5.6", "tables on which the proposed methods are ahead of OutPert-RSGD", "3 of 4",
		fmt.Sprintf("%d of 2", r.tablesAhead()), "at more than half of the ε of a table; two of P2's four tables are here, and Bank is the one on which it is not ahead there")
	return t, nil
}

// best is the value of a panel of Figure 1 with the highest accuracy, with P2's test.
func (r *results) best(field string, epsilon float64) string {
	at, top := "", math.Inf(-1)
	w := r.row(field, false, epsilon)
	for i, s := range w.scores {
		if s.Mean > top {
			at, top = w.values[i], s.Mean
		}
	}
	return at
}

// tablesAhead counts P2's tables on which the best proposed method is ahead of OutPert-RSGD in more than half of the
// cases.
func (r *results) tablesAhead() (n int) {
	for _, d := range datasets {
		if t := r.tally([]string{d.name}, both[:1], suffixed(proposed, swapped), []string{outpertRSGD}); 2*t.ahead > t.cases {
			n++
		}
	}
	return n
}

func suffixed(names []string, suffix string) []string {
	var out []string
	for _, n := range names {
		out = append(out, n+suffix)
	}
	return out
}

// adaptive is the table of what CHEB and AC do.
func (r *results) adaptive() paper.Table {
	t := paper.Table{ID: "adapt", Title: "Budgets and thresholds that adapt",
		Note: fmt.Sprintf("Adult, logistic, P2's test with ε/100 for each iteration, until ε is spent or after %d iterations; %d seeds. Means ± standard deviations; counts of one training.", r.size.Steps, r.size.Seeds),
		Head: []string{"ε", "budgets", "accuracy, %", "objective", "searches", "of these failed", "gradient's budget grew",
			"search's grew"}}
	for _, e := range r.size.Hyper {
		for _, v := range [][2]string{{"no", "growth no"}, {"must", "growth must"}, {"adaptive: DP-BLSGD", blsgd},
			{"adaptive, ζ = 0.05: DP-BLSGD-AC", blsgdAC}} {
			c, a := r.adult(v[1], e), r.counts[[2]string{v[1], number(e)}]
			t.Add(e, v[0], fmt.Sprintf("%.2f ± %.2f", mean(c, accuracyAxis), 100*c.Score().SD), c.Objective().Mean, a.Searches,
				a.Failed, a.Raised[0], a.Raised[1])
		}
	}
	return t
}

// leaders is Figures 3 and 4 in numbers.
func (r *results) leaders() paper.Table {
	t := paper.Table{ID: "leaders", Title: "Figures 3 and 4 in numbers: accuracy, %",
		Note: "P2 draws these and prints none. As published: P2's budget for an iteration and its test. Mean test: Sotto's, with the noise that all of ε allows for 100 iterations. Non-private is the optimum.",
		Head: []string{"table", "model", "ε", "lines", "DP-BLSGD", "DP-BLSGD-AC", "DP-BLGD", "best baseline", "",
			"Non-private"}}
	for _, d := range datasets {
		for _, model := range both {
			for _, e := range r.size.Epsilon {
				for _, suffix := range []string{"", repaired} {
					row := []any{d.name, model, e, map[string]string{"": "as published", repaired: "mean test"}[suffix]}
					for _, m := range proposed {
						row = append(row, r.accuracy(d.name, model, m+suffix, e))
					}
					name := r.of(d.name, model, baselines, e)
					top := r.cell(tableOf(d.name, model, optimum), optimum, compare.NoNoise)
					t.Add(append(row, r.accuracy(d.name, model, name, e), name, mean(top, accuracyAxis))...)
				}
			}
		}
	}
	return t
}
