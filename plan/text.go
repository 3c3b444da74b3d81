package plan

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/privacy"
)

// solvedFor says what the number that was left out has become.
var solvedFor = map[string]string{
	"noise-multiplier": "the noise multiplier: the least that the budget allows",
	"steps":            "the steps: the most that the budget allows",
	"sampling-rate":    "the sampling rate: the largest that the budget allows",
}

// Text prints the Plan for people.
func (p *Plan) Text(w io.Writer) {
	each := "all records"
	switch {
	case p.Sampler == "poisson" && p.SamplingRate < 1:
		each = fmt.Sprintf("a Poisson sample, each record with probability %.6g", p.SamplingRate)
	case p.Sampler == "fixed":
		each = fmt.Sprintf("exactly %s of %s records", chart.Integer(p.Batch), chart.Integer(p.Rows))
	case p.Sampler == "allocation":
		each = fmt.Sprintf("one of the %s batches of an epoch, each record in one of them at random",
			chart.Integer(int(math.Round(1/p.SamplingRate))))
	case p.Sampler == "several":
		each = "samples of several kinds"
	}
	if p.UnitRows > 0 {
		text.Row(w, "Record", "one %s", text.Whom(p.Unit, p.UnitRows))
	}
	f, filter := p.event.(privacy.Filtered)
	if filter {
		text.Row(w, "Releases", "%s", filterWords(f))
		text.Row(w, "Steps", "at most %s, with samples and noise that are chosen on the way", chart.Integer(p.Steps))
	} else {
		text.Row(w, "Releases", "%s", Describe(p.event))
		text.Row(w, "Steps", "%s, each on %s", chart.Integer(p.Steps), each)
	}
	switch {
	case p.NoiseMultiplier > 0 && filter:
		text.Row(w, "Noise multiplier", "%.9g to begin with", p.NoiseMultiplier)
	case p.NoiseMultiplier > 0:
		text.Row(w, "Noise multiplier", "%.9g", p.NoiseMultiplier)
	case p.Steps == 1:
		text.Row(w, "Noise multiplier", "none: set by ε and δ")
	default:
		text.Row(w, "Noise multiplier", "each step has its own")
	}
	if words := solvedFor[p.Solved]; words != "" {
		text.Row(w, "Solved for", "%s", words)
	}
	text.Row(w, "Cost", "ε = %s at δ = %s, %v (accountant %s)", chart.NumberUp(p.Epsilon, 9), chart.Full(p.Delta),
		p.Adjacency, p.Accountant)
	if p.Sum != nil {
		text.Row(w, "Holds against", "%s, while masks hold", text.Against(p.Sum.Colluders))
		text.Row(w, "Otherwise", "%s at the same δ, against %s", provenTo(p.Sum.Alone, 9), text.AgainstAll)
	}
	text.Row(w, "Attacks", "%s", attackWords(p))
	if p.Fits != nil {
		verdict := "fits"
		if !*p.Fits {
			verdict = "does NOT fit"
		}
		text.Row(w, "Budget", "ε = %s: the plan %s", chart.Full(*p.Budget), verdict)
	}
	if !filter {
		text.Row(w, "What dominates", "%s", dominatesWords(p))
	}
	for i, part := range p.Parts {
		text.Row(w, fmt.Sprintf("Part %d of %d", i+1, len(p.Parts)), "%s: alone %s; the plan without it %s", part.Mechanism,
			proven(part.Alone), proven(part.Without))
	}
	for i, o := range p.Accountants {
		name := ""
		if i == 0 {
			name = "By accountant"
		}
		text.Row(w, name, "%-5s %s", o.Accountant, opinionWords(o))
	}
	if p.OtherRelation != nil {
		text.Row(w, "Other relation", "%s", relationWords(p.OtherRelation))
	}
	p.Needs.print(w)
	for _, warning := range p.Warnings {
		text.Row(w, "Warning", "%s", warning)
	}
	if p.Growth != nil {
		p.printGrowth(w)
	}
	if p.Claimed != nil {
		fmt.Fprintln(w)
		p.Claimed.Text(w)
	}
}

// attackWords says what the curve of the plan means for an attacker.
func attackWords(p *Plan) string {
	if p.GDP == nil {
		return p.noGDP.Error()
	}
	at := func(i int) string { return chart.PercentUp(p.Attacks[i].TruePositives) }
	words := fmt.Sprintf("at most %s, %s and %s true positives at 0.1 %%, 1 %% and 10 %% false ones; μ = %s (Gaussian DP)",
		at(0), at(1), at(2), chart.NumberUp(p.GDP.Mu, 4))
	if p.GDP.Outside > 0 {
		words += " with " + chart.NumberUp(p.GDP.Outside, 3) + " outside"
	}
	return words
}

// filterWords describes the queries that a filter admits.
func filterWords(f privacy.Filtered) string {
	in := map[privacy.Currency]string{
		privacy.InPure: "pure ε", privacy.InZCDP: "ρ of zero-concentrated differential privacy",
		privacy.InGDP: "μ² of Gaussian differential privacy",
		privacy.InRDP: fmt.Sprintf("Rényi divergence of order %.6g", f.Order),
	}[f.Currency]
	return "the queries of the run depend on earlier releases; each is charged in " + in +
		" before its access, and refused beyond the cap"
}

// dominatesWords says which changes would lower the cost most.
func dominatesWords(p *Plan) string {
	if len(p.WhatIf) == 0 {
		return "no number that could change alone"
	}
	things := p.Dominates
	if n := len(things); n > 2 {
		things = []string{strings.Join(things[:n-1], ", "), things[n-1]}
	}
	text := strings.Join(things, " and ") + ": "
	for i, w := range p.WhatIf {
		if i == 0 {
			text += fmt.Sprintf("%s would bring ε to %s", w.Change, chart.NumberUp(w.Epsilon, 4))
		} else {
			text += fmt.Sprintf(", %s to %s", w.Change, chart.NumberUp(w.Epsilon, 4))
		}
	}
	return text
}

// proven writes an ε, or that there is none.
func proven(epsilon *float64) string { return provenTo(epsilon, 6) }

func provenTo(epsilon *float64, digits int) string {
	if epsilon == nil {
		return "no finite ε is proven"
	}
	return "ε = " + chart.NumberUp(*epsilon, digits)
}

func opinionWords(o Opinion) string {
	if o.Why != "" {
		return o.Why
	}
	return proven(o.Epsilon)
}

func relationWords(r *Relation) string {
	// The other relation is add-or-remove, unless the plan is for that one.
	change, times := "half as large", "twice"
	notSame := "it hides whether a record is present, and so the number of records, which nothing may then use."
	if r.Adjacency == privacy.ReplaceOne {
		change, times = "twice as large", "half"
		notSame = "it hides a record's values from someone who knows the number of records, not whether a record is present."
	}
	notSame = "Not the same guarantee: " + notSame
	switch {
	case !r.Translated:
		return fmt.Sprintf("The cost under %v %s. %s", r.Adjacency, r.Why, notSame)
	case r.Why != "":
		return fmt.Sprintf("Under %v accountant %s %s. %s", r.Adjacency, r.Accountant, r.Why, notSame)
	}
	multiplier := times + " the multiplier"
	if r.NoiseMultiplier != 0 {
		multiplier = fmt.Sprintf("a multiplier of %.6g", r.NoiseMultiplier)
	}
	if r.Sampler != "" {
		multiplier += ", here on " + r.Sampler
	}
	return fmt.Sprintf("Under %v a clipped sum's sensitivity is %s, so the same noise is %s: %s. %s", r.Adjacency, change,
		multiplier, proven(r.Epsilon), notSame)
}

// Text prints the Bound for people.
func (b *Bound) Text(w io.Writer) {
	if n := b.Need; n != nil {
		fmt.Fprintf(w,
			"Bound             the rows with which %s finds an (ε_g, ε_H)-second-order point, by P4 %s with this package's constants\n", b.Method, n.From)
		printBudget(w, b.Budget, b.Against)
		fmt.Fprintf(w, "Tolerances        ε_g = %.4g, ε_H = %.4g, in at most %s steps, but for a probability of %.2g\n",
			n.Gradient, n.Curvature, chart.Integer(n.Steps), n.Miss)
		fmt.Fprintf(w, "Rows needed       %.0f; the table is declared to have %s\n", n.Rows, chart.Integer(b.Rows))
		if n.Rows > float64(b.Rows) {
			fmt.Fprintln(w,
				"Warning           the theorem promises nothing for this table; larger tolerances (method.gradient) need fewer rows")
		}
		return
	}
	fmt.Fprintf(w,
		"Bound             on E F(w) − F*, w the last iterate of %s, by P1 as corrected in package method/schedule\n",
		b.Method)
	printBudget(w, b.Budget, b.Against)
	fmt.Fprintf(w, "Counts on         μ = %.4g, L = %.4g, F(0) − F* ≤ %.4g\n", b.Mu, b.L, b.Start)
	for _, t := range b.Trust {
		fmt.Fprintf(w, "On trust          %s\n", t)
	}
	fmt.Fprintf(w, "\n%10s  %14s  %10s  %10s\n", "steps", "start's share", "noise", "error ≤")
	next := 1
	for _, p := range b.Curve {
		if p.Steps < next && p.Steps != b.Best.Steps {
			continue
		}
		next = max(p.Steps+1, p.Steps*3/2)
		mark := ""
		if p.Steps == b.Best.Steps {
			mark = "  least"
		}
		fmt.Fprintf(w, "%10s  %14.4g  %10.4g  %10.4g%s\n", chart.Integer(p.Steps), p.Start, p.Noise, p.Error, mark)
	}
	p := b.Best
	fmt.Fprintf(w, "\nPicked            T = %s, α = %.6g, β = %.6g: error ≤ %.4g\n", chart.Integer(p.Steps), p.Rate,
		p.Momentum, p.Error)
	if p.Error >= b.Start {
		fmt.Fprintln(w,
			"Warning           the bound is no better than w = 0 has without any data: theory promises nothing at this budget")
	}
	fmt.Fprintf(w,
		"To use it         --set method.steps=%d --set method.rate=%.6g --set method.mu=%.6g --set method.clip=%.6g\n",
		p.Steps, p.Rate, b.MuOfBest(), b.Clip)
	fmt.Fprintln(w, "                  (the defaults of fit count on tables flatter than the worst; docs/methods/gd.md)")
}

// printBudget prints a budget, and whom its ε is against where owners share the noise.
func printBudget(w io.Writer, b privacy.Budget, against string) {
	if against != "" {
		against = ", against " + against + ", while masks hold"
	}
	fmt.Fprintf(w, "Budget            ε = %s at δ = %s, %v%s\n", chart.Full(b.Epsilon), chart.Full(b.Delta), b.Adjacency,
		against)
}

// Text prints the Choice for people.
func (e *Choice) Text(w io.Writer) {
	fmt.Fprintf(w, "Method            %s: %s\n", e.Method, e.About)
	if e.Budget.Epsilon > 0 {
		printBudget(w, e.Budget, e.Against)
	}
	if e.Columns != "" {
		fmt.Fprintf(w, "Columns           %s\n", text.Indented(e.Columns, 104, 18))
	}
	if e.Output != "" {
		fmt.Fprintf(w, "Output            %s\n", text.Indented(e.Output, 104, 18))
	}
	if e.Encoding != "" {
		fmt.Fprintf(w, "Encoding          %s\n", text.Indented(e.Encoding, 104, 18))
	}
	for i, r := range e.Rests {
		name := ""
		if i == 0 {
			name = "Rests on"
		}
		fmt.Fprintf(w, "%-18s%s\n", name, r)
	}
	for _, warning := range e.Warnings {
		text.Row(w, "Warning", "%s", warning)
	}
	fmt.Fprintln(w)
	for _, f := range e.Fields {
		fmt.Fprintf(w, "%-18s%-12s%s\n", f.Field, f.Value, f.Why)
	}
}

// Text prints the claims beside the sound figures.
func (c *Claims) Text(w io.Writer) {
	if len(c.Claims) == 0 {
		fmt.Fprintln(w, "No formula of the papers applies to such a plan.")
		return
	}
	fmt.Fprintln(w, "NOT A GUARANTEE. The figures of the papers' own formulas, beside the sound ones:")
	line := func(name, words string) {
		fmt.Fprintf(w, "  %-10s%s\n", name, text.Indented(words, 104, 12))
	}
	for _, k := range c.Claims {
		fmt.Fprintf(w, "\n%s, %s: %s\n", k.Paper, k.About, k.Quantity)
		line("claimed", fmt.Sprintf("%.6g (%s)", k.Claimed, k.Formula))
		for i, f := range k.Sound {
			name := ""
			if i == 0 {
				name = "sound"
			}
			value := fmt.Sprintf("%.6g", f.Value)
			if strings.HasPrefix(k.Quantity, "ε") {
				value = chart.AtMost(f.Value, 6)
			}
			line(name, fmt.Sprintf("%s (%s)", value, f.By))
		}
		line(string(k.Verdict), fmt.Sprintf("%s. %s", strings.TrimSuffix(k.Why, "."), k.Source))
	}
}
