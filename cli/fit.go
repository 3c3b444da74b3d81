package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/size"
)

// specFlags are the flags that set fields of a spec.
var specFlags = []struct{ flag, field, usage string }{
	{"data", "data",
		"table to train on: CSV, JSON Lines, LIBSVM or IDX (compressed or not), Parquet, Arrow, packed, s3://BUCKET/KEY, postgres://…?table=NAME, FILE.db?table=NAME"},
	{"test", "test", "table to score the model on; naming it says that its rows need no protection"},
	{"holdout", "holdout", "share of the units that is not trained on, but scored privately at no further cost, as 0.2"},
	{"labels", "labels", labelsUsage},
	{"test-labels", "test_labels", "labels of --test, likewise"},
	{"schema", "schema", "public description of the table; sotto schema init makes a skeleton"},
	{"model", "model.name", "model: "}, // and the names of models, once a program has registered its own
	{"method", "method.name", "method: see sotto help methods (default auto)"},
	{"epsilon", "privacy.epsilon", "privacy budget ε"},
	{"delta", "privacy.delta", "privacy budget δ"},
	{"adjacency", "privacy.adjacency", "neighboring tables: add-or-remove or replace-one"},
	{"accountant", "privacy.accountant", "accountant: best, rdp, pld, gdp, zcdp or pure (default best)"},
	{"output", "output", "which iterates become the model: tail-average, last, average, random or ema"},
	{"seed", "seed", "seed of noise and samples (lab only: seeded noise protects nobody)"},
	{"ledger", "ledger", "where the datasets' budgets are kept: a file or postgres://… (default: the user's own)"},
	{"out", "out", "run directory (default runs/<time>-<id>)"},
}

func methodNames() (names []string) {
	for _, e := range method.Registry() {
		names = append(names, e.Name)
	}
	return names
}

// addSpecFlags declares the flags that override a spec.
func addSpecFlags(c *cobra.Command) {
	addSomeSpecFlags(c, "any field of the spec, as in --set method.steps=200")
	c.Flags().Bool("lab", false, "lab: allow seeds and runs without noise, and watermark everything")
	addOverlaps(c.Flags())
}

// addSomeSpecFlags declares the flags that override a spec, except those that a command does not take or declares
// itself; set is the help of --set. The accept flags are assertions, which run.json and the report name.
func addSomeSpecFlags(c *cobra.Command, set string, except ...string) {
	f := c.Flags()
	for _, s := range specFlags {
		if s.flag == "model" {
			s.usage += strings.Join(model.Names(), ", ")
		}
		if !slices.Contains(except, s.flag) {
			f.String(s.flag, "", s.usage)
		}
	}
	if !slices.Contains(except, "label") {
		f.String("label", "", labelUsage)
	}
	f.Bool("accept-delta", false, "continue with a δ of 1/rows or more")
	addAcceptDropped(f)
	f.StringArray("set", nil, set)
	for flag, names := range map[string][]string{"method": methodNames(), "model": model.Names()} {
		if f.Lookup(flag) != nil {
			cobra.CheckErr(c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)))
		}
	}
}

func addAcceptDropped(f *pflag.FlagSet) *bool {
	return f.Bool("accept-dropped", false,
		"continue if more than one row in a hundred does not fit the schema and is dropped")
}

func addOverlaps(f *pflag.FlagSet) {
}

// addOutput declares the flags that choose what a command prints.
func addOutput(f *pflag.FlagSet, asJSON, quiet *bool, only string) {
	f.BoolVar(asJSON, "json", false, "print one JSON object")
	f.BoolVar(quiet, "quiet", false, "print only "+only+"errors and warnings")
}

// Helps of flags that several commands have.
const (
	labelUsage  = "column to predict, if it is not the schema's label"
	labelsUsage = "labels of --data, for images (IDX) whose label file does not have the usual name"
	ledgerUsage = "a file or postgres://… (default: the user's own)"
)

// warner prints warnings, which --quiet does not hide: they concern privacy or the quality of a result.
func warner(c *cobra.Command) func(string) {
	return func(text string) { fmt.Fprintln(c.ErrOrStderr(), "warning:", readable(text)) }
}

// voids is the help of a flag that ends a guarantee.
const voids = "access protected rows without charge; this ends the guarantee of their dataset forever"

// specOf reads the spec of a command line: an optional file, then its flags. A file that is a table by its name is
// --data.
func specOf(c *cobra.Command, args []string, except ...string) (*run.Spec, error) {
	file := ""
	if len(args) > 0 {
		file = args[0]
	}
	if table := c.Flags().Lookup("data"); table != nil && namesTable(file) {
		if table.Changed {
			return nil, usageError("found the table %s beside --data; give one of them", file)
		}
		if err := c.Flags().Set("data", file); err != nil {
			return nil, err
		}
		file = ""
	}
	over, err := overridesOf(c.Flags(), except...)
	if err != nil {
		return nil, err
	}
	spec, err := run.LoadSpec(file, over)
	if err != nil {
		return nil, err
	}
	spec.Label, _ = c.Flags().GetString("label")
	spec.Void, _ = c.Flags().GetBool("void")
	return spec, nil
}

// tableNames are how files of tables end that no format reads: packed ones, and those of which a message says how to
// convert them.
var tableNames = []string{".pack", ".xlsx", ".xls", ".ods", ".db", ".sqlite", ".duckdb"}

// namesTable says whether a file is a table by its name, and not a spec.
func namesTable(file string) bool {
	plain := data.Uncompressed(file)
	return plain != file || data.IsDatabase(file) || access.IsTable(plain) ||
		slices.Contains(tableNames, strings.ToLower(filepath.Ext(plain)))
}

// overridesOf returns the fields of a spec that flags give, without those of the flags in except.
func overridesOf(f *pflag.FlagSet, except ...string) ([]run.Override, error) {
	var over []run.Override
	// Flags come before --set: the name of a block may replace the block.
	for _, s := range specFlags {
		// compare takes lists of some
		if f.Changed(s.flag) && !slices.Contains(except, s.flag) && f.Lookup(s.flag).Value.Type() == "string" {
			v, _ := f.GetString(s.flag)
			switch s.flag {
			case "seed", "epsilon", "delta", "holdout":
			default:
				b, _ := json.Marshal(v) // a JSON string is a YAML string
				v = string(b)
			}
			over = append(over, run.Override{Path: s.field, Value: v, From: "--" + s.flag})
		}
	}
	for _, flag := range []string{"lab", "accept-delta", "accept-dropped"} {
		if f.Changed(flag) {
			yes, _ := f.GetBool(flag)
			over = append(over,
				run.Override{Path: strings.ReplaceAll(flag, "-", "_"), Value: fmt.Sprint(yes), From: "--" + flag})
		}
	}
	sets, _ := f.GetStringArray("set")
	for _, s := range sets {
		path, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, usageError("--set %s: found no =; write field=value, as in --set method.steps=200", s)
		}
		for _, o := range over {
			if o.Path == path {
				return nil, usageError("--set %s: found beside %s; give one of them", path, o.From)
			}
		}
		over = append(over, run.Override{Path: path, Value: value, From: "--set " + path})
	}
	return over, nil
}

func fitCommand() *cobra.Command {
	var f fitFlags
	c := &cobra.Command{
		Use:   "fit [spec.yaml | table]",
		Short: "Train a model under a privacy budget",
		Long: `Fit reads a table, reserves the budget in the ledger, trains, and writes a run
directory with the model, the log of all releases, and a report.

Settings come from a spec file, from flags, or from both; a flag overrides the
file. --resume DIR continues a run that was stopped or killed. With --or-resume a
scheduler can start the same command again and again: it begins the run in --out
once, continues it, and does nothing when the run is finished.

` + "`sotto help methods`" + ` lists the methods, ` + "`sotto help METHOD`" + ` the fields of one.`,
		Example: "  sotto fit examples/clinic/sotto.yaml\n  sotto fit t.csv --schema s.yaml --label y --model logistic --epsilon 1 --delta 1e-6 --adjacency add-or-remove",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE:    f.run,
	}
	addSpecFlags(c)
	c.Flags().Bool("void", false, voids)
	addOutput(c.Flags(), &f.asJSON, &f.quiet, "")
	c.Flags().StringVar(&f.resume, "resume", "", "continue the run in this directory")
	c.Flags().BoolVar(&f.again, "or-resume", false,
		"if --out holds this spec's run, continue it, or do nothing if it is finished")
	f.owner.add(c.Flags())
	f.meters.add(c.Flags(), true)
	f.workers.add(c.Flags())
	return c
}

// fitFlags are those of sotto fit that are not of the spec.
type fitFlags struct {
	quiet, asJSON, again bool
	resume               string
	workers              workerFlags
	owner                ownerLog
	meters               meters
}

func (f *fitFlags) run(c *cobra.Command, args []string) error {
	if f.owner.on() && f.asJSON {
		return usageError("--json: found beside --owner-log; give one of them, as the object holds times")
	}
	opening := false // rows
	return f.owner.around(c, func(error) bool { return opening }, func() error { return f.fit(c, args, &opening) })
}

// fit prepares and trains, or resumes. It sets opening once it opens rows.
func (f *fitFlags) fit(c *cobra.Command, args []string, opening *bool) (err error) {
	bar := newProgress(c.ErrOrStderr(), f.quiet || f.asJSON)
	warn := warner(c)
	env := run.Env{Version: runlog.Version(), Progress: bar.watch(), Notice: warn}
	f.workers.quiet, f.workers.owner = f.quiet, &f.owner
	over := false // what workers are for
	defer func() { f.workers.close(over) }()
	var job *run.Job
	switch {
	case f.resume != "":
		if err := onlyResume(c, args); err != nil {
			return err
		}
		env.MetricsTimings = f.meters.timings
		env.Ledger, _ = c.Flags().GetString("ledger")
		env.Void, _ = c.Flags().GetBool("void")
	case len(args) == 0 && c.Flags().NFlag() == 0:
		return usageError("give a spec file, or --data, --schema, --model, --epsilon, --delta and --adjacency; `sotto fit --help` shows both")
	default:
		if job, err = f.prepare(c, args, &env, warn); err != nil {
			return err
		}
	}
	if err := f.fits(c, job); err != nil {
		return err
	}
	var life *ledger.History
	env.Report = func(dir string, of *ledger.History) error {
		life = of
		return page.Write(dir, of)
	}
	if err := f.workers.listen(c, f.resume, &env); err != nil {
		return err
	}
	if err := serveFit(c, &f.meters, job, f.resume, &env, &f.workers); err != nil {
		return err
	}
	defer f.meters.close()
	*opening = true
	var info *runlog.Info
	var dir string
	if f.resume != "" {
		dir = f.resume
		info, err = run.Resume(c.Context(), dir, env)
	} else {
		info, dir, err = run.Fit(c.Context(), job, env)
	}
	over = err == nil || errors.Is(err, run.ErrDiverged)
	f.meters.state.Store(stateEnded)
	bar.done()
	if err != nil {
		return interrupted(instead(err), dir)
	}
	r := record.Of(info, nil)
	if life != nil {
		r.Lifetime = record.LifetimeOf(life, info.Budget)
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(page.Summary(r, dir))
	}
	if !f.quiet {
		page.WriteSummary(c.OutOrStdout(), r, dir)
	}
	return nil
}

// fits says what a new run with its rows at this machine needs, if that is much, and refuses one that the machine has
// no memory for.
func (f *fitFlags) fits(c *cobra.Command, job *run.Job) error {
	if job == nil || f.resume != "" || f.workers.address != "" {
		return nil
	}
	packed := data.IsPacked(job.Spec.Data)
	if err := size.Check(job, packed); err != nil {
		return &run.InputError{Err: err}
	}
	if n := size.Of(job, packed); n.Large() && !f.quiet && !f.asJSON {
		fmt.Fprintf(c.ErrOrStderr(), "The run needs %s\n", n.Words())
	}
	return nil
}

// prepare prepares the run of a spec. With --or-resume, if the run has begun, it sets resume, and env as for it.
func (f *fitFlags) prepare(c *cobra.Command, args []string, env *run.Env, warn func(string)) (*run.Job, error) {
	spec, err := specOf(c, args)
	if err != nil {
		return nil, err
	}
	spec.MetricsTimings = f.meters.timings
	if f.workers.address != "" {
		spec.Uncentered = true // shards take no center from their rows
		if spec.Hats == nil {
			spec.Hats = new(int) // the workers encode, and know nothing of the method that would choose
		}
	}
	j, err := run.Prepare(spec)
	if err != nil {
		return nil, err
	}
	if !f.asJSON { // the JSON object holds them
		for _, w := range j.Warnings {
			warn(w)
		}
	}
	if f.workers.address != "" {
		if err := j.Allows(job.OnWorkers); err != nil {
			return nil, err
		}
	}
	if f.again {
		begun, err := run.Began(j)
		if err != nil {
			return nil, err
		}
		if begun {
			f.resume = spec.Out
			env.Ledger, env.Void, env.MetricsTimings = spec.Ledger, spec.Void, spec.MetricsTimings
			if f.workers.address == "" && readfile.Inherited(spec.Data) {
				env.Data = spec.Data
			}
		}
	}
	return j, nil
}

// serveFit serves the schedule of a run and, of a coordinator, which shards are there.
func serveFit(c *cobra.Command, m *meters, job *run.Job, resume string, env *run.Env, workers *workerFlags) error {
	if err := m.begin("fit", runStates...); err != nil {
		return err
	}
	if m.address != "" {
		progress, err := m.schedule(job, resume)
		if err != nil {
			return err
		}
		env.Progress = both(env.Progress, progress)
		if away := workers.away; away != nil {
			m.fixed("sotto_shards", float64(away.Shards()))
			m.gauge("sotto_shards_connected", func() float64 { n, _ := away.Present(); return float64(n) })
			m.counted("sotto_connections_total", func() float64 { _, n := away.Present(); return float64(n) })
			if m.timings {
				m.counted("sotto_questions_total", func() float64 { n, _ := away.Times(); return float64(n) })
				m.counted("sotto_question_seconds_total", func() float64 { _, d := away.Times(); return d.Seconds() })
			}
		}
	}
	return m.serve(c, func(format string, args ...any) {
		if !workers.quiet {
			workers.owner.say(c, format, args...)
		}
	})
}

// onlyResume refuses what would change a run that is resumed.
func onlyResume(c *cobra.Command, args []string) error {
	given := strings.Join(args, " ")
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"resume", "ledger", "quiet", "json", "workers", "shards", "key", "void", "owner-log",
			"metrics", "health", "metrics-timings"}, f.Name) {
			given = "--" + f.Name
		}
	})
	if given != "" {
		return usageError("--resume: found %s beside it; the run directory holds the spec; give only --ledger, --quiet, --json, --workers, --key, --void, --owner-log, --metrics, --metrics-timings and --health", given)
	}
	return nil
}

// interrupted adds how to go on to the error of a run that has begun.
func interrupted(err error, dir string) error {
	if dir == "" {
		return err
	}
	info, readErr := runlog.ReadInfo(dir)
	again := "`sotto fit --resume " + dir + "`"
	switch {
	case readErr == nil && info.Shards > 0:
		again = "`sotto fit --resume " + dir + " --workers ADDRESS --key FILE`"
	case readErr == nil && run.FromProgram(info.Data):
		again = fmt.Sprintf("the same fit once more in the program that gives the rows, in Python with run_dir=%q", dir)
	}
	if errors.Is(err, run.ErrInterrupted) {
		return fmt.Errorf("%w. Go on with: %s", run.ErrInterrupted, strings.Trim(again, "`"))
	}
	switch finished := readErr == nil && info.Status == runlog.Finished; {
	case readErr != nil:
		return err
	case errors.Is(err, ledger.ErrUncertain):
		return fmt.Errorf("%w\nNothing was released. Check the ledger, then go on with %s", err, again)
	case errors.Is(err, ledger.ErrGone):
		return fmt.Errorf("%w\nPut the ledger back, then go on with %s", err, again)
	case exitCode(err) != exitFailed, finished && errors.Is(err, run.ErrDiverged):
		return err
	case finished:
		return fmt.Errorf("%w\nThe training itself is complete. Finish the run with %s", err, again)
	case info.Lab:
		return fmt.Errorf("%w\nGo on with %s", err, again)
	}
	return fmt.Errorf("%w\nThe budget stays reserved. Go on with %s, or close the run with `sotto ledger settle %s`", err,
		again, dir)
}
