package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/plan"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
)

// planFlags are those of plan beside the fields of a spec.
type planFlags struct {
	sampler              string
	rate, noise          float64
	batch, rows, steps   int
	json, compare, table bool
	bound, explain       bool
	svg, claimed         string
}

// numberFlags are the flags that a plan from numbers has and a spec does not.
var numberFlags = []string{"sampling-rate", "noise-multiplier", "steps", "sampler", "batch", "rows"}

// thePlan is the value of --claimed without one: what the papers say of the plan.
const thePlan = "plan"

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
--compare for the other accountants and the other neighboring relation, --table and
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
			switch {
			case err != nil:
				return err
			case paper != "":
				k, err := plan.Paper(paper)
				return answer(c, flags.json, k, err)
			case flags.bound:
				job, err := jobFor(c, args, "--bound", "a bound is of a spec's method", "whose method and model the bound is of")
				if err != nil {
					return err
				}
				b, err := plan.BoundOf(job.Spec.MethodName, job.Spec.Method, job.Facts, job.Objective, termsOf(job))
				if err != nil {
					return usageError("--bound: %v", err)
				}
				return answer(c, flags.json, b, nil)
			case flags.explain:
				job, err := jobFor(c, args, "--explain", "what is explained is a spec's method", "whose method is explained")
				if err != nil {
					return err
				}
				e, err := plan.Explain(job.Spec.MethodName, job.Spec.Method, job.Facts, job.Objective, termsOf(job))
				if err != nil {
					return usageError("--explain: %v", err)
				}
				return answer(c, flags.json, e, nil)
			}
			p, err := flags.plan(c, args)
			if err == nil && flags.svg != "" {
				err = newfile.Write(nil, "svg", flags.svg, func(w io.Writer) error {
					_, err := io.WriteString(w, p.Chart())
					return err
				})
			}
			return answer(c, flags.json, p, err)
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
	f.BoolVar(&flags.compare, "compare", false, "also what each accountant says, and what the other neighboring relation would cost")
	f.BoolVar(&flags.table, "table", false, "also tables of ε against steps, noise and δ")
	f.StringVar(&flags.svg, "svg", "", "file for a chart of ε against steps, noise and δ")
	f.StringVar(&flags.claimed, "claimed", "", "also what the papers' own formulas say, which is no guarantee; with p0 to p4 or all, what they say of their own experiments")
	f.Lookup("claimed").NoOptDefVal = thePlan
	f.BoolVar(&flags.bound, "bound", false, "instead: what theory promises of the error of a spec's method, against the number of steps, and the steps, step size and momentum at which it is least")
	f.BoolVar(&flags.explain, "explain", false, "instead: what the spec's method chooses for its fields, and why")
	f.BoolVar(&flags.json, "json", false, "print one JSON object")
	return c
}

// given lists those of the flags that stand on the command line.
func given(f *pflag.FlagSet, flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(name string) bool { return !f.Changed(name) })
}

// paperAsked is the paper whose own examples are asked for, empty if it is a plan that is
// asked about. `--claimed p0` reads to the flags as --claimed and a spec named p0.
func (flags *planFlags) paperAsked(c *cobra.Command, args []string) (string, error) {
	if !c.Flags().Changed("claimed") {
		return "", nil
	}
	allowed := plan.Papers()
	paper := flags.claimed
	if paper == thePlan && len(args) == 1 && slices.Contains(allowed, strings.ToLower(args[0])) {
		paper = args[0]
	}
	if paper == thePlan && len(args) == 1 {
		if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
			return "", usageError("--claimed: found %q, which is no spec file; allowed are %s, or a spec", args[0], strings.Join(allowed, ", "))
		}
	}
	if paper == thePlan {
		return "", nil
	}
	if paper = strings.ToLower(paper); !slices.Contains(allowed, paper) {
		return "", usageError("--claimed: found %q; allowed are %s, or nothing beside a plan", flags.claimed, strings.Join(allowed, ", "))
	}
	if other := given(c.Flags(), slices.Concat(numberFlags, []string{"schema", "epsilon", "delta", "compare", "table", "svg"})); len(other) > 0 {
		return "", usageError("--%s: found beside --claimed %s, which is about the paper's own experiments; for a plan say --claimed alone", other[0], paper)
	}
	return paper, nil
}

// jobFor prepares the spec that the flag asks about.
func jobFor(c *cobra.Command, args []string, flag, what, whose string) (*run.Job, error) {
	if other := given(c.Flags(), numberFlags); len(other) > 0 {
		return nil, usageError("--%s: %s; allowed with %s is --set method.…", other[0], what, flag)
	}
	if len(args) == 0 && !c.Flags().Changed("schema") {
		return nil, usageError("%s: give a spec, %s", flag, whose)
	}
	return jobOf(c, args)
}

// jobOf prepares the spec that a command was given.
func jobOf(c *cobra.Command, args []string) (*run.Job, error) {
	spec, err := specOf(c, args)
	if err != nil {
		return nil, err
	}
	return run.Prepare(spec)
}

func termsOf(job *run.Job) method.Terms {
	return method.Terms{Budget: job.Spec.Privacy.Budget(), Accountant: job.Accountant, Off: job.Spec.Privacy.Off}
}

// plan makes the plan, and adds what else was asked.
func (flags *planFlags) plan(c *cobra.Command, args []string) (p *plan.Plan, err error) {
	numbers := given(c.Flags(), numberFlags)
	spec := len(args) > 0 || c.Flags().Changed("schema")
	switch {
	case !spec && len(numbers) == 0:
		return nil, usageError("give a spec, or numbers: --steps with --noise-multiplier or --epsilon; `sotto plan --help` shows both")
	case spec && len(numbers) > 0:
		return nil, usageError("--%s: plans from numbers and takes no spec; for a spec use --set method.…", numbers[0])
	case spec:
		p, err = planSpec(c, args)
	default:
		p, err = flags.planNumbers(c.Flags())
	}
	if err != nil {
		return nil, err
	}
	if flags.compare {
		p.Compare()
	}
	if flags.table {
		p.Grow()
	}
	if c.Flags().Changed("claimed") {
		err = p.Claim()
	}
	return p, err
}

// planError is an error of package plan, with what can be done about it.
func planError(err error) error {
	if why := plan.Unprovable(err); why != nil {
		return usageError("%v; --sampler, --adjacency or --accountant may be changed", why)
	}
	return usageError("%v", err)
}

func planSpec(c *cobra.Command, args []string) (*plan.Plan, error) {
	job, err := jobOf(c, args)
	if err != nil {
		return nil, err
	}
	if job.Spec.Privacy.Off {
		return nil, usageError("this spec says `privacy: none`: there is nothing to plan")
	}
	p, err := plan.For(job.Method, job.Facts, job.Spec.Privacy.Budget(), job.Accountant)
	if err != nil {
		return nil, planError(err)
	}
	p.Unit, p.Warnings = job.Schema.Unit, job.Warnings
	return p, nil
}

func (flags *planFlags) planNumbers(f *pflag.FlagSet) (*plan.Plan, error) {
	b, a, err := budgetFlags(f)
	if err != nil {
		return nil, err
	}
	if f.Changed("sampler") && flags.sampler == "" {
		return nil, usageError(`--sampler: found ""; allowed are poisson, fixed and full`)
	}
	n := plan.Numbers{Sampler: flags.sampler, Delta: b.Delta, Adjacency: b.Adjacency, Accountant: a}
	for name, set := range map[string]func(){
		"sampling-rate": func() { n.SamplingRate = &flags.rate }, "batch": func() { n.Batch = &flags.batch }, "rows": func() { n.Rows = &flags.rows },
		"noise-multiplier": func() { n.NoiseMultiplier = &flags.noise }, "steps": func() { n.Steps = &flags.steps }, "epsilon": func() { n.Epsilon = &b.Epsilon },
	} {
		if f.Changed(name) {
			set()
		}
	}
	p, err := n.Plan()
	if err != nil {
		return nil, planError(err)
	}
	if n.Rows == nil {
		return p, nil
	}
	spec := run.Spec{Privacy: run.PrivacySpec{Delta: &b.Delta}}
	spec.AcceptDelta, _ = f.GetBool("accept-delta")
	warning, err := spec.CheckDelta(oracle.Public{Rows: flags.rows}, "")
	if warning != "" {
		p.Warnings = append(p.Warnings, warning)
	}
	return p, err
}

// budgetFlags reads what may stand in a spec too: budget and accountant. Without --epsilon the
// budget's ε is 1.
func budgetFlags(f *pflag.FlagSet) (b privacy.Budget, a account.Accountant, err error) {
	ofSpecs := []string{"label", "lab", "set", "accept-dropped"}
	for _, s := range specFlags {
		if !slices.Contains([]string{"epsilon", "delta", "adjacency", "accountant"}, s.flag) {
			ofSpecs = append(ofSpecs, s.flag)
		}
	}
	if other := given(f, ofSpecs); len(other) > 0 {
		return b, nil, usageError("--%s: found beside numbers; allowed is beside a spec", other[0])
	}
	b.Epsilon = 1
	for i, name := range []string{"epsilon", "delta"} {
		if !f.Changed(name) {
			continue
		}
		text, _ := f.GetString(name)
		if *[]*float64{&b.Epsilon, &b.Delta}[i], err = strconv.ParseFloat(text, 64); err != nil {
			return b, nil, usageError("--%s: found %q; allowed is a number", name, text)
		}
	}
	adjacency, _ := f.GetString("adjacency")
	switch {
	case !f.Changed("delta"):
		return b, nil, usageError("--delta is missing: Sotto has no default for it")
	case adjacency == "":
		return b, nil, usageError("--adjacency is missing: add-or-remove or replace-one")
	}
	if b.Adjacency, err = privacy.ParseAdjacency(adjacency); err == nil {
		err = b.Validate()
	}
	name, _ := f.GetString("accountant")
	if name == "" {
		name = "best"
	}
	if err == nil {
		a, err = account.ByName(name)
	}
	if err != nil {
		return b, nil, usageError("--%v", err)
	}
	return b, a, nil
}
