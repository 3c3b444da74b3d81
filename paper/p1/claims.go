package p1

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/paper"
)

// index is where a curve is, −1 for nowhere.
func (r *Report) index(m, t int, c float64, method string) int {
	return slices.IndexFunc(r.Curves, func(v *Curve) bool {
		return v.M == m && v.T == t && v.C == c && v.Method == method
	})
}

// find is a curve.
func (r *Report) find(m, t int, c float64, method string) *Curve {
	return r.Curves[r.index(m, t, c, method)]
}

// final is the error of a curve at its end.
func (r *Report) final(m, t int, c float64, method string) float64 {
	return r.find(m, t, c, method).Final()
}

// error is the standard error of the final error of a curve.
func (r *Report) error(m, t int, c float64, method string) float64 {
	v := r.find(m, t, c, method)
	return v.SD[len(v.SD)-1] / math.Sqrt(float64(r.Size.Runs))
}

// below says by how many standard errors of the difference the first curve ends below the second.
func (r *Report) below(m, t int, c float64, a string, to int, b string) float64 {
	return (r.final(m, to, c, b) - r.final(m, t, c, a)) / math.Hypot(r.error(m, t, c, a), r.error(m, to, c, b))
}

// best is the least final error over T, and that T.
func (r *Report) best(m int, c float64, method string) (least float64, at int) {
	least = math.Inf(1)
	for _, t := range r.Size.Steps {
		if e := r.final(m, t, c, method); e < least {
			least, at = e, t
		}
	}
	return least, at
}

// claims checks the claims one by one.
func (r *Report) claims() (all paper.Claims) {
	s := r.Size
	n, sub := s.Batches[len(s.Batches)-1], s.Batches[0]
	slow, fast := s.Rates[0], s.Rates[len(s.Rates)-1]
	last := s.Steps[len(s.Steps)-1]

	for _, m := range []int{n, sub} {
		// Each T, each accelerated method of constant step size.
		worst := math.Inf(1)
		var found []string
		for _, t := range s.Steps {
			gd := r.final(m, t, slow, "DP-GD")
			for _, a := range []string{"DP-HB", "DP-NAG", "DP-NAG-opt"} {
				worst = math.Min(worst, r.below(m, t, slow, a, t, "DP-GD"))
			}
			found = append(found,
				fmt.Sprintf("T = %d: DP-GD %.3g, DP-HB %.3g, DP-NAG %.3g, DP-NAG-opt %.3g", t, gd, r.final(m, t, slow, "DP-HB"),
					r.final(m, t, slow, "DP-NAG"), r.final(m, t, slow, "DP-NAG-opt")))
		}
		all.Add("§5", fmt.Sprintf("accelerated-ahead-at-small-step-m%d", s.inPaper(m)),
			fmt.Sprintf("with c = %g, DP-HB, DP-NAG and DP-NAG-opt are ahead of DP-GD for every T", slow),
			worst > 2, "%s; by %.2g standard errors or more", strings.Join(found, "; "), worst)
	}
	for _, m := range []int{n, sub} {
		least, at := map[string]float64{}, map[string]int{}
		var found []string
		for _, name := range asPrinted {
			e, t := r.best(m, fast, name)
			least[name], at[name] = e, t
			found = append(found, fmt.Sprintf("%s %.3g at T = %d", name, e, t))
		}
		margin := func(of, others []string) float64 {
			worst := math.Inf(1)
			for _, a := range of {
				for _, b := range others {
					worst = math.Min(worst, r.below(m, at[a], fast, a, at[b], b))
				}
			}
			return worst
		}
		opts := margin([]string{"DP-NAG-opt", "DP-MASG-opt"}, []string{"DP-GD", "DP-HB", "DP-NAG", "DP-MASG"})
		beat := margin([]string{"DP-HB", "DP-NAG"}, []string{"DP-GD"})
		all.Add("§5", fmt.Sprintf("opt-best-overall-m%d", s.inPaper(m)),
			fmt.Sprintf("with c = %g, DP-NAG-opt and DP-MASG-opt are best overall: the best over T of each is below that of the four others", fast),
			opts > 2, "%s; by %.2g standard errors or more", strings.Join(found, ", "), opts)
		all.Add("§5", fmt.Sprintf("accelerated-beat-gd-at-best-m%d", s.inPaper(m)),
			fmt.Sprintf("with c = %g, compared at their best T, DP-HB and DP-NAG beat DP-GD", fast),
			beat > 2, "DP-HB %.3g, DP-NAG %.3g, DP-GD %.3g; by %.2g standard errors or more", least["DP-HB"], least["DP-NAG"],
			least["DP-GD"], beat)
	}
	gd, hb, nag := r.final(n, last, fast, "DP-GD"), r.final(n, last, fast, "DP-HB"), r.final(n, last, fast, "DP-NAG")
	all.Add("§5", "gd-ends-lower-at-large-T",
		fmt.Sprintf("with c = %g and T = %d, DP-GD ends at a smaller error than DP-HB and DP-NAG", fast, last),
		math.Min(r.below(n, last, fast, "DP-GD", last, "DP-HB"), r.below(n, last, fast, "DP-GD", last, "DP-NAG")) > 2,
		"DP-GD %.3g, DP-HB %.3g, DP-NAG %.3g", gd, hb, nag)
	_, tHB := r.best(n, fast, "DP-HB")
	_, tNAG := r.best(n, fast, "DP-NAG")
	_, tGD := r.best(n, fast, "DP-GD")
	least := r.below(n, tGD, fast, "DP-GD", s.Steps[0], "DP-GD") // 0 where it wants no more
	for _, t := range s.Steps[1:] {
		for _, m := range []string{"DP-HB", "DP-NAG"} {
			least = math.Min(least, r.below(n, s.Steps[0], fast, m, t, m))
		}
	}
	clearly(&all, "accelerated-want-few-steps",
		fmt.Sprintf("with c = %g, the best T of DP-HB and DP-NAG is the smallest tried, and DP-GD wants more", fast),
		fmt.Sprintf("best T: DP-HB %d, DP-NAG %d, DP-GD %d", tHB, tNAG, tGD), least, "")
	all.Add("§5", "gd-best-at-the-largest-T",
		fmt.Sprintf("with c = %g, the best DP-GD is the one with T = %d", fast, last), tGD == last,
		"T = %d ends at %.3g, T = %d at %.3g", tGD, r.final(n, tGD, fast, "DP-GD"), last, gd).
		Because("A slip of the paper: in its authors' own file of Figure 3 T = 500 ends at 0.0433 and T = 1000 at 0.148.")
	taken := func(method string) int { return r.find(n, last, fast, method).Taken }
	all.Add("§5", "small-T-preferred",
		fmt.Sprintf("the choice of T′ by (4.6) prefers few steps: at c = %g and T = %d it takes less than a quarter of them",
			fast, last),
		4*max(taken("DP-NAG-opt"), taken("DP-MASG-opt")) < last, "T′ = %d for DP-NAG-opt, %d for DP-MASG-opt",
		taken("DP-NAG-opt"), taken("DP-MASG-opt"))
	masg := func(c float64) (a, b, margin float64) {
		a, t := r.best(n, c, "DP-MASG-opt")
		b, to := r.best(n, c, "DP-NAG-opt")
		return a, b, r.below(n, to, c, "DP-NAG-opt", t, "DP-MASG-opt")
	}
	a, b, margin := masg(slow)
	all.Add("§5", "nag-opt-more-robust",
		fmt.Sprintf("DP-NAG-opt takes a bad step size (c = %g) better than DP-MASG-opt", slow), margin > 2,
		"DP-NAG-opt %.3g, DP-MASG-opt %.3g, %.2g standard errors", b, a, margin)
	a, b, margin = masg(fast)
	all.Add("§5", "opt-methods-alike",
		fmt.Sprintf("with c = %g, DP-NAG-opt and DP-MASG-opt perform very similarly: within a quarter", fast),
		math.Max(a, b) < 1.25*math.Min(a, b), "DP-NAG-opt %.3g, DP-MASG-opt %.3g, %.2g standard errors", b, a, margin)
	r.claimsOfSamples(&all)
	all.NotTested("§3.2", "best-beta-is-reliable", "the β of the best rate in Figure 1 shows a reliable performance",
		"The paper gives no measure of it; Figure 1 is drawn, with the bound and the exact error in figure1.csv.")
	all.NotTested("§5", "samples-are-faster",
		fmt.Sprintf("a step on a sample of %d takes less time than one on all rows", sub),
		"The paper times nothing, and the time of a step is no figure of its experiment.")
	return all
}

// clearly judges a sentence by the least number of standard errors that speak for it.
func clearly(all *paper.Claims, name, says, found string, least float64, why string) {
	found = fmt.Sprintf("by %.2g standard errors or more; %s", least, found)
	if math.Abs(least) <= 2 {
		all.NotTested("§5", name, says, "Less than two standard errors in either direction: "+found+".")
		return
	}
	all.Add("§5", name, says, least > 2, "%s", found).Because(why)
}

// claimsOfSamples checks what §5 says of samples.
func (r *Report) claimsOfSamples(all *paper.Claims) {
	s := r.Size
	n, sub, fast, last := s.Batches[len(s.Batches)-1], s.Batches[0], s.Rates[len(s.Rates)-1], s.Steps[len(s.Steps)-1]
	for _, c := range []float64{s.Rates[0], fast} {
		for _, pair := range [][2]string{{"DP-NAG", "DP-NAG-opt"}, {"DP-MASG", "DP-MASG-opt"}} {
			worst := math.Inf(1)
			var found []string
			for _, t := range s.Steps { // at each T, since the sentence names none
				n := r.below(sub, t, c, pair[1], t, pair[0])
				worst = math.Min(worst, n)
				found = append(found, fmt.Sprintf("T = %d: %.3g and %.3g (%.2g)", t, r.final(sub, t, c, pair[0]),
					r.final(sub, t, c, pair[1]), n))
			}
			clearly(all, fmt.Sprintf("optimized-under-sampling-%s-c%g", strings.ToLower(pair[1][3:]), c),
				fmt.Sprintf("also on samples (m = %d), optimizing b_t and T improves %s significantly (c = %g, every T)", sub,
					pair[0], c), fmt.Sprintf("%s and %s (standard errors): %s", pair[0], pair[1], strings.Join(found, "; ")), worst,
				fmt.Sprintf("The step is too small for so few steps: of %d steps (4.6) takes %d with E₀ = %v, which end far from F* whatever the noise; with E₀ = %v, as in the paper's curves, %d, which end at %.3g.",
					last, r.find(sub, last, c, pair[1]).Taken, guess, drawn, r.find(sub, last, c, pair[1]+"°").Taken,
					r.final(sub, last, c, pair[1]+"°")))
		}
	}
	for _, name := range []string{"DP-HB", "DP-NAG", "DP-NAG-opt", "DP-MASG-opt"} {
		whole, t := r.best(n, fast, name)
		part, to := r.best(sub, fast, name)
		se := math.Hypot(r.error(n, t, fast, name), r.error(sub, to, fast, name))
		all.Add("§5", "full-data-better-"+strings.ToLower(name[3:]),
			fmt.Sprintf("with c = %g, all rows in every step beat samples of %d", fast, sub), part-whole > 2*se,
			"%.3g and %.3g, standard error of the difference %.2g", whole, part, se)
	}
}

// A Gain is what the corrections bring to a curve.
type Gain struct {
	M                   int
	C                   float64
	Method              string
	Steps, Corrected    int // T′ as printed and corrected
	Error, ErrorOfFixed float64
}

// gains compares the opt methods as printed and as corrected, at the largest T.
func (r *Report) gains() (all []Gain) {
	last := r.Size.Steps[len(r.Size.Steps)-1]
	for _, m := range r.Size.Batches {
		for _, c := range r.Size.Rates {
			for _, fixed := range corrected {
				a, b := r.find(m, last, c, strings.TrimSuffix(fixed, "*")), r.find(m, last, c, fixed)
				all = append(all, Gain{m, c, a.Method, a.Taken, b.Taken, a.Final(), b.Final()})
			}
		}
	}
	return all
}
