package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/trace"
)

// planned is what `sotto plan` answers.
type planned struct {
	Epsilon         float64           `json:"epsilon"`
	Delta           float64           `json:"delta"`
	Adjacency       privacy.Adjacency `json:"adjacency"`
	Accountant      string            `json:"accountant"`
	NoiseMultiplier float64           `json:"noise_multiplier"`
	Sampler         string            `json:"sampler"`
	SamplingRate    float64           `json:"sampling_rate"`
	Batch           int               `json:"batch,omitempty"`     // exact size of a fixed sample
	Rows            int               `json:"rows,omitempty"`      // of a spec: units, where a record is one
	Unit            string            `json:"unit,omitempty"`      // of a spec: as in run.json
	UnitRows        int               `json:"unit_rows,omitempty"` // likewise
	Steps           int               `json:"steps"`
	Solved          string            `json:"solved,omitempty"` // the flag that was left out
	Event           json.RawMessage   `json:"event"`
	Budget          *float64          `json:"budget,omitempty"` // ε asked for
	Fits            *bool             `json:"fits,omitempty"`
	WhatIf          []whatIf          `json:"what_if,omitempty"`
	Dominates       []string          `json:"dominates,omitempty"`
	Parts           []part            `json:"parts,omitempty"`
	Accountants     []opinion         `json:"accountants,omitempty"`
	OtherRelation   *relation         `json:"other_relation,omitempty"`
	Growth          *growth           `json:"growth,omitempty"`
	Claimed         *claims           `json:"claimed,omitempty"`
	Warnings        []string          `json:"warnings,omitempty"`

	event      privacy.Event
	accountant account.Accountant
}

// planFlags are what plan knows beside the fields of a spec.
type planFlags struct {
	numbers
	json, compare, table bool
	bound, explain       bool
	svg, claimed         string
}

func planCommand() *cobra.Command {
	var flags planFlags
	c := &cobra.Command{
		Use:   "plan [spec.yaml]",
		Short: "What a run would cost, or which noise a budget needs; touches no data",
		Long: `Plan answers from public numbers alone. With a spec it says which noise the budget
needs and what the run would cost. From numbers alone it plans T steps, each on a
sample, each adding Gaussian noise, and solves for whichever of --epsilon,
--noise-multiplier and --steps is left out; with --sampler poisson or fixed and all
three given, for the largest sampling rate. Samples:

  poisson  each record by itself with probability --sampling-rate, or --batch / --rows
  fixed    exactly --batch of --rows records, or that share of them, rounded
  full     all records

It says what dominates the cost, by asking the accountant. More on request:
--compare for the other accountants and the other neighbouring relation, --table and
--svg for ε against steps, noise and δ; --claimed for what the formulas of the papers
that Sotto builds on would say of the plan, some of them loose and some false, and
--claimed p0 to p4 for what those papers say of their own experiments.`,
		Example: `  sotto plan examples/adult/sotto.yaml
  sotto plan --sampling-rate 0.01 --noise-multiplier 1.1 --steps 10000 --delta 1e-5 --adjacency add-or-remove
  sotto plan --sampling-rate 0.01 --epsilon 2 --steps 10000 --delta 1e-5 --adjacency add-or-remove --json
  sotto plan --batch 256 --rows 60000 --epsilon 3 --noise-multiplier 1 --delta 1e-5 --adjacency add-or-remove --table
  sotto plan --claimed p0`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			paper, err := flags.paperAsked(c, args)
			if err != nil {
				return err
			}
			if paper != "" {
				k, err := paperClaims(paper)
				if err != nil {
					return err
				}
				if flags.json {
					return writeJSON(c.OutOrStdout(), k)
				}
				k.print(c.OutOrStdout())
				return nil
			}
			if flags.bound {
				b, err := boundSpec(c, args)
				if err != nil {
					return err
				}
				if flags.json {
					return writeJSON(c.OutOrStdout(), b)
				}
				b.print(c.OutOrStdout())
				return nil
			}
			if flags.explain {
				e, err := explainSpec(c, args)
				if err != nil {
					return err
				}
				if flags.json {
					return writeJSON(c.OutOrStdout(), e)
				}
				e.print(c.OutOrStdout())
				return nil
			}
			p, err := flags.plan(c, args)
			if err != nil {
				return err
			}
			if err := flags.draw(p); err != nil {
				return err
			}
			if flags.json {
				return writeJSON(c.OutOrStdout(), p)
			}
			p.print(c.OutOrStdout(), flags.table)
			return nil
		},
	}
	f := c.Flags()
	addSpecFlags(f)
	f.StringVar(&flags.sampler, "sampler", "", "what a step sees: poisson, fixed or full (default poisson where a rate is given, full without)")
	f.Float64Var(&flags.rate, "sampling-rate", 1, "probability of a record to be in a step's sample, or its share")
	f.IntVar(&flags.batch, "batch", 0, "size of a step's sample, for a Poisson sample the mean (needs --rows)")
	f.IntVar(&flags.rows, "rows", 0, "number of records, a public number")
	f.Float64Var(&flags.noise, "noise-multiplier", 0, "noise: its standard deviation over the ℓ2 sensitivity of the sum")
	f.IntVar(&flags.steps, "steps", 0, "number of steps")
	f.BoolVar(&flags.compare, "compare", false, "also what each accountant says, and what the other neighbouring relation would cost")
	f.BoolVar(&flags.table, "table", false, "also tables of ε against steps, noise and δ")
	f.StringVar(&flags.svg, "svg", "", "file for a chart of ε against steps, noise and δ")
	f.StringVar(&flags.claimed, "claimed", "", "also what the papers' own formulas say, which is no guarantee; with p0 to p4 or all, what they say of their own experiments")
	f.Lookup("claimed").NoOptDefVal = thePlan
	f.BoolVar(&flags.bound, "bound", false, "instead: what theory promises of the error of a spec's method, against the number of steps, and the steps, step size and momentum at which it is least")
	f.BoolVar(&flags.explain, "explain", false, "instead: what the spec's method chooses for its fields, and why")
	f.BoolVar(&flags.json, "json", false, "print one JSON object")
	return c
}

// plan answers all that was asked.
func (flags *planFlags) plan(c *cobra.Command, args []string) (*planned, error) {
	var p *planned
	var err error
	if given := givenFlags(c.Flags(), numberFlags); len(given) > 0 && len(args) == 0 && !c.Flags().Changed("schema") {
		p, err = flags.numbers.plan(c.Flags())
	} else {
		p, err = planSpec(c, args, given)
	}
	if err != nil {
		return nil, err
	}
	if err := p.solve(); err != nil {
		return nil, err
	}
	p.weigh()
	if flags.compare {
		p.compare()
	}
	if flags.table {
		p.Growth = p.grow(tableFactors, tableDeltas)
	}
	if c.Flags().Changed("claimed") {
		if err := p.claim(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// planSpec plans what a spec would do; given are the flags that have no place
// beside one.
func planSpec(c *cobra.Command, args, given []string) (*planned, error) {
	if len(given) > 0 {
		return nil, usageError("--%s: plans from numbers and takes no spec; for a spec use --set method.…", given[0])
	}
	if len(args) == 0 && !c.Flags().Changed("schema") {
		return nil, usageError("give a spec, or numbers: --steps with --noise-multiplier or --epsilon; `sotto plan --help` shows both")
	}
	job, err := jobOf(c, args)
	if err != nil {
		return nil, err
	}
	if job.Spec.Privacy.Off {
		return nil, usageError("this spec says `privacy: none`: there is nothing to plan")
	}
	b := job.Spec.Privacy.Budget()
	p := &planned{Delta: b.Delta, Adjacency: b.Adjacency, NoiseMultiplier: job.Method.NoiseMultiplier(), Steps: job.Method.Horizon(),
		Warnings: job.Warnings, Budget: &b.Epsilon, event: job.Plan, accountant: job.Accountant}
	p.Sampler, p.SamplingRate, p.Batch = samplerOf(job.Plan)
	p.Rows, p.Unit, p.UnitRows = job.Facts.Rows, job.Schema.Unit, job.Schema.UnitRows
	return p, nil
}

// jobOf settles the spec that a command was given.
func jobOf(c *cobra.Command, args []string) (*run.Job, error) {
	spec, err := specOf(c, args)
	if err != nil {
		return nil, err
	}
	return run.Prepare(spec)
}

// samplerOf reads the sampler off a plan whose steps all have the same one.
func samplerOf(e privacy.Event) (sampler string, rate float64, batch int) {
	switch e := e.(type) {
	case privacy.Filtered:
		return "chosen on the way", 1, 0
	case privacy.Repeated:
		return samplerOf(e.Of)
	case privacy.PoissonSampled:
		return "poisson", e.Rate, 0
	case privacy.FixedSampled:
		return "fixed", float64(e.M) / float64(e.N), e.M
	case privacy.Composed:
		for i, part := range e {
			s, r, m := samplerOf(part)
			if i > 0 && (s != sampler || r != rate || m != batch) {
				return "several", 1, 0
			}
			sampler, rate, batch = s, r, m
		}
		return sampler, rate, batch
	}
	return "full", 1, 0
}

// epsilon is what the plan's accountant says of an event; +Inf where it proves
// nothing.
func (p *planned) epsilon(e privacy.Event) float64 {
	return epsilonBy(p.accountant, e, p.Adjacency, p.Delta)
}

func epsilonBy(a account.Accountant, e privacy.Event, adj privacy.Adjacency, delta float64) float64 {
	loss, err := a.Loss(e, adj)
	if err != nil {
		return math.Inf(1)
	}
	return loss.Epsilon(delta)
}

// solve recomputes ε from the event.
func (p *planned) solve() error {
	p.Accountant = p.accountant.String()
	loss, err := p.accountant.Loss(p.event, p.Adjacency)
	if err != nil {
		return unprovable(err)
	}
	p.Epsilon = loss.Epsilon(p.Delta)
	if math.IsInf(p.Epsilon, 1) {
		return usageError("accountant %s proves no finite ε at δ = %v for this plan", p.Accountant, p.Delta)
	}
	if p.Budget != nil {
		fits := p.Epsilon <= *p.Budget
		p.Fits = &fits
	}
	p.Event, err = privacy.MarshalEvent(p.event)
	return err
}

// unprovable is the error of an accountant, with what can be done about it. Where best
// finds nothing, RDP's reason stands for all: it has the most theorems.
func unprovable(err error) error {
	const may = "--sampler, --adjacency or --accountant may be changed"
	var all, why *account.UnsupportedError
	if !errors.As(err, &all) {
		return usageError("%v", err)
	}
	if all.Accountant == (account.Best{}).String() {
		if _, err := (account.RDP{}).Loss(all.Event, all.Adjacency); errors.As(err, &why) {
			return usageError("no accountant has a theorem for %v under %v: %s; %s", all.Event, all.Adjacency, why.Why, may)
		}
	}
	return usageError("%v; %s", err, may)
}

func (p *planned) print(w io.Writer, tables bool) {
	row := func(name, format string, args ...any) {
		text := wrap(fmt.Sprintf(format, args...), 98)
		fmt.Fprintf(w, "%-18s%s\n", name, strings.ReplaceAll(text, "\n", "\n                  "))
	}
	each := "all records"
	switch {
	case p.Sampler == "poisson" && p.SamplingRate < 1:
		each = fmt.Sprintf("a Poisson sample, each record with probability %.6g", p.SamplingRate)
	case p.Sampler == "fixed":
		each = fmt.Sprintf("exactly %s of %s records", count(p.Batch), count(p.Rows))
	case p.Sampler == "several":
		each = "samples of several kinds"
	}
	if p.UnitRows > 0 {
		row("Record", "one %s", trace.Whom(p.Unit, p.UnitRows))
	}
	f, filter := p.event.(privacy.Filtered)
	if filter {
		row("Releases", "%s", filterWords(f))
		row("Steps", "at most %s, with samples and noise that are chosen on the way", count(p.Steps))
	} else {
		row("Releases", "%s", describe(p.event))
		row("Steps", "%s, each on %s", count(p.Steps), each)
	}
	if p.NoiseMultiplier > 0 && filter {
		row("Noise multiplier", "%.9g to begin with", p.NoiseMultiplier)
	} else if p.NoiseMultiplier > 0 {
		row("Noise multiplier", "%.9g", p.NoiseMultiplier)
	} else if p.Steps == 1 {
		row("Noise multiplier", "none of its own: as ε and δ ask for")
	} else {
		row("Noise multiplier", "each step has its own")
	}
	if text := solvedFor[p.Solved]; text != "" {
		row("Solved for", "%s", text)
	}
	row("Cost", "ε = %s at δ = %s, %v (accountant %s)", atMost(p.Epsilon, 9), exact(p.Delta), p.Adjacency, p.Accountant)
	if p.Fits != nil {
		verdict := "fits"
		if !*p.Fits {
			verdict = "does NOT fit"
		}
		row("Budget", "ε = %s: the plan %s", exact(*p.Budget), verdict)
	}
	if !filter {
		row("What dominates", "%s", p.words())
	}
	for i, part := range p.Parts {
		row(fmt.Sprintf("Part %d of %d", i+1, len(p.Parts)), "%s", part.words())
	}
	for i, o := range p.Accountants {
		name := ""
		if i == 0 {
			name = "By accountant"
		}
		row(name, "%-5s %s", o.Accountant, o.words())
	}
	if p.OtherRelation != nil {
		row("Other relation", "%s", p.OtherRelation.words(p))
	}
	for _, warning := range p.Warnings {
		row("Warning", "%s", warning)
	}
	if tables {
		p.Growth.print(w, p)
	}
	if p.Claimed != nil {
		fmt.Fprintln(w)
		p.Claimed.print(w)
	}
}

// filterWords says what a run on a filter may ask.
func filterWords(f privacy.Filtered) string {
	in := map[privacy.Currency]string{
		privacy.InPure: "pure ε", privacy.InZCDP: "ρ of zero-concentrated differential privacy", privacy.InGDP: "μ² of Gaussian differential privacy",
		privacy.InRDP: fmt.Sprintf("Rényi divergence of order %.6g", f.Order),
	}[f.Currency]
	return "what the run asks depends on what was released before; it is charged in " + in + ", before each look, and refused beyond the cap"
}

// wrap breaks text into lines of at most that many characters, at spaces.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

func writeJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}
