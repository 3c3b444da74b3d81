package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/plan"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/size"
)

// planFlags are the flags of plan that are no field of a spec.
type planFlags struct {
	sampler             string
	rate, noise         float64
	batch, rows, steps  int
	json, compare       bool
	bound, explain      bool
	svg, claimed, table string
}

// numberFlags are the flags of a plan from numbers alone.
var numberFlags = []string{"sampling-rate", "noise-multiplier", "steps", "sampler", "batch", "rows"}

// thePlan is the value of a bare --claimed: the papers' formulas for the plan.
const thePlan = "plan"

func planCommand() *cobra.Command {
	var flags planFlags
	c := &cobra.Command{
		Use:   "plan [spec.yaml]",
		Short: "Compute the cost of a run, or the noise that a budget needs, without data",
		Long: `Plan computes from public numbers alone. With a spec it prints the noise that the budget needs and the cost of the run.
Without a spec it plans steps of Gaussian noise, each on a sample, and solves for whichever of --epsilon,
--noise-multiplier and --steps is missing; if all three are given with --sampler poisson or fixed, it solves for the
largest sampling rate. A Poisson sample takes each record with probability --sampling-rate (or --batch / --rows), a
fixed one exactly --batch of --rows records, a full one all records.

docs/how-to/plan.md explains the answers, also those of --compare, --table, --svg and --claimed.`,
		Example: `  sotto plan examples/adult/sotto.yaml
  sotto plan --sampling-rate 0.01 --noise-multiplier 1.1 --steps 10000 --delta 1e-5 --adjacency add-or-remove
  sotto plan --sampling-rate 0.01 --epsilon 2 --steps 10000 --delta 1e-5 --adjacency add-or-remove --json
  sotto plan --batch 256 --rows 60000 --epsilon 3 --noise-multiplier 1 --delta 1e-5 --adjacency add-or-remove --table text
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
				return ask(c, flags.json, args, "--bound", func(j *run.Job, terms method.Terms) (*plan.Bound, error) {
					return plan.BoundOf(j.Spec.MethodName, j.Spec.Method, j.Facts, j.Objective, terms)
				})
			case flags.explain:
				return ask(c, flags.json, args, "--explain", func(j *run.Job, terms method.Terms) (*plan.Choice, error) {
					e, err := plan.Explain(j.Spec.MethodName, j.Spec.Method, j.Facts, j.Objective, terms)
					if err == nil {
						e.Columns, e.Output, e.Encoding, e.Warnings = j.Columns, j.Output, j.Encoding, j.Warnings
					}
					return e, err
				})
			}
			form, file, err := flags.tableAsked(c)
			if err != nil {
				return err
			}
			p, err := flags.plan(c, args)
			if err == nil && flags.svg != "" {
				err = newfile.Write(nil, "svg", flags.svg, func(w io.Writer) error {
					_, err := io.WriteString(w, p.Chart())
					return err
				})
			}
			write := map[string]func(io.Writer) error{".csv": p.CSV, ".md": p.Markdown}[form]
			if err != nil || write == nil {
				return answer(c, flags.json, p, err)
			}
			if err := newfile.Write(c.OutOrStdout(), "table", file, write); err != nil || file == "" {
				return err
			}
			p.Growth = nil // it is in the file
			return answer(c, flags.json, p, nil)
		},
	}
	f := c.Flags()
	addSpecFlags(c)
	f.StringVar(&flags.sampler, "sampler", "",
		"how a step samples: poisson, fixed or full (default poisson if a rate is given, otherwise full)")
	numberVar(f, &flags.rate, "sampling-rate", 1, "probability that a step samples a record, or the share of records")
	f.IntVar(&flags.batch, "batch", 0, "size of a step's sample, for a Poisson sample the mean (needs --rows)")
	f.IntVar(&flags.rows, "rows", 0, "number of records, a public number")
	numberVar(f, &flags.noise, "noise-multiplier", 0, "noise: its standard deviation over the ℓ2 sensitivity of the sum")
	f.IntVar(&flags.steps, "steps", 0, "number of steps")
	f.BoolVar(&flags.compare, "compare", false,
		"also ε by each accountant, and the cost under the other neighboring relation")
	f.StringVar(&flags.table, "table", "",
		"tables of ε against steps, noise and δ: text below the plan; csv or markdown in its place; or a file .csv or .md")
	f.StringVar(&flags.svg, "svg", "", "file for a chart of ε against steps, noise and δ")
	f.StringVar(&flags.claimed, "claimed", "",
		"also ε by the papers' own formulas, some loose and some false; with p0 to p4 or all, for the papers' own experiments")
	f.Lookup("claimed").NoOptDefVal = thePlan
	f.BoolVar(&flags.bound, "bound", false,
		"instead: the proven bound on the error of a spec's method by number of steps, and the steps, step size and momentum that minimize it")
	f.BoolVar(&flags.explain, "explain", false, "instead: the fields that the spec's method chooses, and why")
	f.BoolVar(&flags.json, "json", false, "print one JSON object")
	return c
}

// given lists those of the flags that the command line sets.
func given(f *pflag.FlagSet, flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(name string) bool { return !f.Changed(name) })
}

// paperAsked is the paper whose own experiments --claimed asks about; empty for a plan. The flag parser
// reads `--claimed p0` as --claimed and a spec named p0.
func (flags *planFlags) paperAsked(c *cobra.Command, args []string) (string, error) {
	if !c.Flags().Changed("claimed") {
		return "", nil
	}
	allowed := plan.Papers()
	paper := strings.ToLower(flags.claimed)
	if flags.claimed == thePlan {
		if len(args) != 1 {
			return "", nil
		}
		paper = strings.ToLower(args[0])
	}
	if !slices.Contains(allowed, paper) {
		if flags.claimed != thePlan {
			return "", usageError("--claimed: found %q; choose %s, or nothing beside a plan", flags.claimed,
				strings.Join(allowed, ", "))
		}
		if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
			return "", usageError("--claimed: found %q, which is no spec file; choose %s, or a spec", args[0],
				strings.Join(allowed, ", "))
		}
		return "", nil
	}
	if other := given(c.Flags(),
		slices.Concat(numberFlags, []string{"schema", "epsilon", "delta", "compare", "table", "svg"})); len(other) > 0 {
		return "", usageError("--%s: found beside --claimed %s, which is about the paper's own experiments; for a plan say --claimed alone", other[0], paper)
	}
	return paper, nil
}

// tableAsked is the form of the tables that --table asks for, as the end of a file's name, and the file. Text has no
// form.
func (flags *planFlags) tableAsked(c *cobra.Command) (form, file string, err error) {
	switch form := strings.ToLower(filepath.Ext(flags.table)); {
	case !c.Flags().Changed("table"), flags.table == "text":
		return "", "", nil
	case (flags.table == "csv" || flags.table == "markdown") && flags.json:
		return "", "",
			usageError("--table %s: found --json beside it; give a file, or --table text, whose tables the JSON has",
				flags.table)
	case flags.table == "csv":
		return ".csv", "", nil
	case flags.table == "markdown":
		return ".md", "", nil
	case form == ".csv", form == ".md":
		return form, flags.table, nil
	}
	return "", "", usageError("--table: found %q; choose text, csv, markdown, or a file whose name ends with .csv or .md",
		flags.table)
}

// ask answers what the flag asks about a spec's method, which is not configured yet.
func ask[R result](c *cobra.Command, asJSON bool, args []string, flag string,
	answerTo func(*run.Job, method.Terms) (R, error)) error {
	if other := given(c.Flags(), numberFlags); len(other) > 0 {
		return usageError("--%s: found beside %s, which asks about a spec's method; use --set method.…", other[0], flag)
	}
	if len(args) == 0 && !c.Flags().Changed("schema") {
		return usageError("%s: give a spec; %[1]s asks about its method", flag)
	}
	job, err := jobOf(c, args)
	if err != nil {
		return err
	}
	r, err := answerTo(job, job.MethodTerms())
	if err != nil {
		return usageError("%s: %v", flag, err)
	}
	return answer(c, asJSON, r, nil)
}

// jobOf prepares the spec that a command was given.
func jobOf(c *cobra.Command, args []string) (*run.Job, error) {
	spec, err := specOf(c, args)
	if err != nil {
		return nil, err
	}
	return netplan.PrepareJob(spec)
}

// plan makes the plan and adds the tables that the flags ask for.
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
	if flags.table != "" {
		p.Grow()
	}
	if c.Flags().Changed("claimed") {
		err = p.Claim()
	}
	return p, err
}

// planError adds to an error of package plan what the user can change.
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
	return planOf(job)
}

// planOf is the plan of a prepared run.
func planOf(job *run.Job) (*plan.Plan, error) {
	if job.Spec.Privacy.Off {
		return nil, usageError("this spec says `privacy: none`: there is nothing to plan")
	}
	var p *plan.Plan
	var err error
	if job.Sum != nil {
		p, err = plan.ForSum(job.Plan, job.Method, job.Facts, job.Spec.Privacy.Budget(), job.Accountant)
	} else {
		p, err = plan.For(job.Method, job.Facts, job.Spec.Privacy.Budget(), job.Accountant)
	}
	if err != nil {
		return nil, planError(err)
	}
	p.Unit, p.Warnings = job.Schema.Unit, job.Warnings
	if needs := size.Of(job, data.IsPacked(job.Spec.Data)); needs.Large() {
		p.Needs = needs
	}
	if err := size.Check(job, data.IsPacked(job.Spec.Data)); err != nil {
		p.Warnings = append(slices.Clip(p.Warnings), err.Error())
	}
	if job.Held != nil {
		p.Warnings = append(slices.Clip(p.Warnings),
			fmt.Sprintf("this plan is of training alone; with the score of the rows held out, %v, the run costs ε = %s",
				job.Held.Score.Event(), chart.Upper(job.Cost(job.Plan))))
	}
	return p, nil
}

func (flags *planFlags) planNumbers(f *pflag.FlagSet) (*plan.Plan, error) {
	b, a, err := budgetFlags(f)
	if err != nil {
		return nil, err
	}
	if f.Changed("sampler") && flags.sampler == "" {
		return nil, usageError(`--sampler: found ""; choose poisson, fixed or full`)
	}
	n := plan.Numbers{Sampler: flags.sampler, SamplingRate: pick(f, "sampling-rate", &flags.rate),
		Batch: pick(f, "batch", &flags.batch),
		Rows:  pick(f, "rows", &flags.rows), NoiseMultiplier: pick(f, "noise-multiplier", &flags.noise),
		Steps:   pick(f, "steps", &flags.steps),
		Epsilon: pick(f, "epsilon", &b.Epsilon), Delta: b.Delta, Adjacency: b.Adjacency, Accountant: a}
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

// pick is v if the flag is given, otherwise nil.
func pick[T any](f *pflag.FlagSet, flag string, v *T) *T {
	if f.Changed(flag) {
		return v
	}
	return nil
}

// budgetFlags reads budget and accountant. Without --epsilon the budget's ε is 1.
func budgetFlags(f *pflag.FlagSet) (b privacy.Budget, a account.Accountant, err error) {
	ofSpecs := []string{"label", "lab", "set", "accept-dropped"}
	for _, s := range specFlags {
		if !strings.HasPrefix(s.field, "privacy.") {
			ofSpecs = append(ofSpecs, s.flag)
		}
	}
	if other := given(f, ofSpecs); len(other) > 0 {
		return b, nil, usageError("--%s: found beside numbers; give it with a spec", other[0])
	}
	b.Epsilon = 1
	for i, name := range []string{"epsilon", "delta"} {
		if !f.Changed(name) {
			continue
		}
		text, _ := f.GetString(name)
		if bad := config.OutOfRange(text); bad != "" {
			return b, nil, usageError("--%s: %s", name, bad)
		}
		if *[]*float64{&b.Epsilon, &b.Delta}[i], err = strconv.ParseFloat(text, 64); err != nil {
			return b, nil, usageError("--%s: found %q; write a number", name, text)
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
	if err == nil {
		name, _ := f.GetString("accountant")
		a, err = account.ByName(cmp.Or(name, "best"))
	}
	if err != nil {
		return b, nil, usageError("--%v", err)
	}
	return b, a, nil
}
