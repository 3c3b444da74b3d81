package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

func initCommand() *cobra.Command {
	var ledger, delimiter string
	var resume bool
	c := &cobra.Command{
		Use:   "init [table]",
		Short: "Ask for what a first run needs: schema, spec, plan",
		Long: `Init walks from a table to a first run. It asks for the table's schema, or takes one
that is there, then for ε, δ, the neighboring relation, the model and rows to score it
on. It writes the schema and the spec, shows the plan, and offers to train. It overwrites
no file, and reads no row before you say yes to the last question.

The answer < goes one question back. "next 80 numeric 0 to 10" answers for 80 columns.
Ctrl-D keeps the answers about the table in a draft, which the next init offers to
continue; so does a wrong answer that does not come from a terminal (--continue).

After each step it prints the command that does the same without questions.`,
		Example: "  sotto init visits.csv",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			w := &walk{questions: newQuestions(c), delimiter: delimiter, resume: resume}
			if len(args) > 0 {
				w.table = args[0]
			}
			spec, err := w.prepare(c)
			if errors.Is(err, errAnswersEnd) && w.written != "" {
				err = fmt.Errorf("%w; %s is written, and `sotto init %s` continues with it", err, w.written, data.Public(w.table))
			}
			if err != nil || spec == "" {
				return err
			}
			fit := fitCommand()
			fit.SetArgs([]string{spec})
			if ledger != "" {
				fit.SetArgs([]string{spec, "--ledger", ledger})
			}
			fit.SilenceErrors, fit.SilenceUsage = true, true
			return fit.ExecuteContext(c.Context())
		},
	}
	c.Flags().StringVar(&delimiter, "delimiter", "",
		"delimiter of the file (default: the most frequent of , ; tab | in the header)")
	c.Flags().StringVar(&ledger, "ledger", "", ledgerUsage)
	c.Flags().BoolVar(&resume, "continue", false, continueUsage)
	return c
}

// A walk goes from a table to a first run.
type walk struct {
	*questions
	table, delimiter string
	resume           bool   // go on from the answers that an earlier walk kept
	written          string // the schema, once this walk has written it
	schemaFile       string
	schema           *schema.Schema
	model            string
	test, holdout    string // rows that are not trained on: a file, or a share; or neither
	budget           privacy.Budget
	epsilon, delta   string // as they were typed
}

// prepare asks for everything and writes schema and spec. It returns the spec if it is to be trained now.
func (w *walk) prepare(c *cobra.Command) (spec string, err error) {
	if w.table == "" {
		if w.table, err = w.name("table: the file with the rows, as visits.csv", ""); err != nil {
			return "", err
		}
	}
	if err := found(w.table); err != nil {
		return "", err
	}
	if err := w.describe(c.Context()); err != nil || w.schema == nil {
		return "", err
	}
	var job *run.Job
	for {
		if err := w.part(nil, w.promise); err != nil {
			return "", err
		}
		if job, err = w.job(); err == nil {
			break
		}
		if !w.terminal {
			return "", err
		}
		w.say("\n%v\nOnce more:", err)
	}
	if spec, err = w.newFile("\nspec: the file to write",
		strings.TrimSuffix(w.schemaFile, filepath.Ext(w.schemaFile))+"-spec.yaml"); err != nil {
		return "", err
	}
	scored, flag := "# holdout: 0.2 # would keep a fifth out of training and score the model on it", ""
	if w.test != "" {
		scored, flag = "test: "+schema.Text(w.test), " --test "+data.Public(w.test)
	} else if w.holdout != "" {
		scored, flag = "holdout: "+w.holdout, " --holdout "+w.holdout
	}
	text := fmt.Sprintf(`# sotto fit %s
data: %s
schema: %s
model: {name: %s}
privacy: {epsilon: %s, delta: %s, adjacency: %v}
%s
`, spec, schema.Text(w.table), schema.Text(w.schemaFile), w.model, w.epsilon, w.delta, w.budget.Adjacency, scored)
	if err := create(spec, []byte(text)); err != nil {
		return "", err
	}
	w.say("Wrote %s. The same without questions: a text editor (docs/reference/spec.md), or flags:\n  sotto fit %s --schema %s --model %s --epsilon %s --delta %s --adjacency %v%s\n\nThe plan, as `sotto plan %s` prints it:\n",
		spec, data.Public(w.table), w.schemaFile, w.model, w.epsilon, w.delta, w.budget.Adjacency, flag, spec)
	p, err := planOf(job)
	if err != nil {
		return "", err
	}
	p.Text(c.OutOrStdout())
	w.say("\nTraining reads the rows, and charges ε = %s, δ = %s to the budget of dataset %q: that cannot be undone.",
		chart.Full(w.budget.Epsilon), chart.Full(w.budget.Delta), w.schema.Dataset)
	answer, err := w.choose("train now: yes or no", "no", "yes", "no")
	if errors.Is(err, errAnswersEnd) {
		answer, err = "no", nil
	}
	w.say("Without questions: sotto fit %s", spec)
	if err != nil || answer == "no" {
		return "", err
	}
	return spec, nil
}

// describe takes the schema that is there, or asks for one and writes it. It sets none where bounds are unknown: those
// have to be estimated first.
func (w *walk) describe(ctx context.Context) error {
	w.schemaFile = schemaBase(w.table) + ".yaml"
	if !w.resume { // the answers go on behind this question
		_, err := w.ask("schema: the public description of the table; a file that is there, or one to write", w.schemaFile,
			func(answer string) error {
				w.schemaFile = answer
				return inThisDirectory(answer)
			})
		if err != nil {
			return err
		}
	}
	b, err := readfile.All(w.schemaFile, schema.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if b, err = askSchema(ctx, w.questions, w.table, w.delimiter, w.resume, "sotto init"); err != nil {
			return err
		}
		if err := create(w.schemaFile, b); err != nil {
			return err
		}
		if err := removeDraft(w.table); err != nil {
			return err
		}
		w.written = w.schemaFile
		w.say("\nWrote %s. The same without questions:\n  sotto schema init %s --out %[1]s   (and fill it in)\nWhat it assumes: sotto schema check %[1]s", w.schemaFile, data.Public(w.table))
	case err != nil:
		return config.FileError(w.schemaFile, err)
	default:
		w.say("%s is there and stays as it is.", w.schemaFile)
	}
	s, err := schema.ParseOpen(w.schemaFile, b)
	if err != nil {
		return err
	}
	if open := s.Unbounded(); len(open) > 0 {
		w.say("\nThe bounds of %d columns are unknown. First estimate them, which costs a small ε of your choice, then continue with the new schema:\n  sotto schema bounds --data %s --schema %s --epsilon E --adjacency add-or-remove --out bounded.yaml\n  sotto init %[2]s",
			len(open), data.Public(w.table), w.schemaFile)
		return nil
	}
	if s.Rows == 0 {
		return usageError("%s: %s is missing; write about how many there are, a public number", w.schemaFile, s.Counted())
	}
	w.schema = s
	return nil
}

// schemaBase is the name of a table without directories and extensions, as for files about it.
func schemaBase(table string) string {
	base := filepath.Base(data.Uncompressed(table))
	if data.IsDatabase(table) {
		_, query, _ := strings.Cut(table, "?")
		q, _ := url.ParseQuery(query)
		base = q.Get("table")
	}
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// promise asks for the guarantee and the model.
func (w *walk) promise() (err error) {
	number := func(text *string, value *float64) func(string) error {
		return func(answer string) (err error) {
			if bad := config.OutOfRange(answer); bad != "" {
				return errors.New(bad)
			}
			v, bad := config.ParseNumber(answer)
			if bad != "" || !(v >= 0) || math.IsInf(v, 0) {
				return allowed(answer, "a number, as 1 or 1e-6")
			}
			*text, *value = answer, v
			return nil
		}
	}
	w.say(`
ε bounds what anybody can learn of one %s: the chance of each result with and without
it differs at most by the factor e^ε, but for δ. Someone who guesses at even odds whether
it is in the data is then right at most 52.5 %% of the time at ε = 0.1, 73.2 %% at 1, 95.3 %%
at 3.
There is no default: docs/how-to/choosing.md helps.`, w.schema.Unit)
	if _, err = w.ask("ε", "", number(&w.epsilon, &w.budget.Epsilon)); err != nil {
		return err
	}
	w.say(`
δ is about the chance that this fails. A mechanism that publishes one record at
random has the δ 1/%s, and that is %.2g here: choose far less, 1e%d for example.`, w.schema.Counted(), 1/float64(w.schema.Rows), -int(math.Ceil(math.Log10(100*float64(w.schema.Rows)))))
	if _, err = w.ask("δ", "", number(&w.delta, &w.budget.Delta)); err != nil {
		return err
	}
	w.say(`
add-or-remove compares the table with one that lacks one %[1]s: also their number is
private. replace-one compares it with one in which one %[1]s has other values: the number
is public and must be the schema's. The dataset keeps its relation for all runs.`, w.schema.Unit)
	name, err := w.choose("adjacency", "", privacy.AddRemove.String(), privacy.ReplaceOne.String())
	if err != nil {
		return err
	}
	if w.budget.Adjacency, err = privacy.ParseAdjacency(name); err != nil {
		return err
	}
	usual := job.UsualModel(w.schema)
	if b := w.schema.LabelBounds(); b != nil && b.Min >= 0 {
		w.say("\nA count is a whole number from 0 up, as of visits or events: poisson keeps its predictions above 0.")
		answer, err := w.choose("is the label a count: yes or no", "no", "yes", "no")
		if err != nil {
			return err
		}
		if answer == "yes" {
			usual = "poisson"
		}
	}
	w.say("\nauto is %s for this label: every number of the training follows from public facts.", usual)
	name, err = w.choose("model", "auto", slices.Concat([]string{"auto"}, model.Names())...)
	w.model = name
	if name == "auto" {
		w.model = usual
	}
	if err != nil {
		return err
	}
	return w.rowsToScore()
}

// found is an error if the first file of a table is not there. Whether a database or a store has it shows later.
func found(table string) error {
	files, err := data.Files(table)
	if err != nil {
		return err
	}
	if strings.Contains(files[0], "?table=") || strings.Contains(files[0], "://") {
		return nil
	}
	if _, err := os.Stat(files[0]); err != nil {
		return config.FileError(files[0], err)
	}
	return nil
}

// rowsToScore asks for rows that are not trained on: a file, or a share of the table.
func (w *walk) rowsToScore() error {
	w.say(`
Rows that are not trained on say how good the model is. A file of them is scored without
noise, so its rows are not protected; a share of the table, as 0.2, is kept out of
training and scored privately, within ε.`)
	_, err := w.ask("test rows: a file, or a share up to 0.5 [nothing]", "", func(answer string) error {
		w.test, w.holdout = "", ""
		if answer == "" {
			return nil
		}
		v, bad := config.ParseNumber(answer)
		switch {
		case bad != "":
			w.test = answer
			return found(answer)
		case !(v > 0 && v <= 0.5):
			return allowed(answer, "a share above 0, up to 0.5, as 0.2, or the name of a file")
		}
		w.holdout = answer
		return nil
	})
	return err
}

// job is the run that the answers describe.
func (w *walk) job() (*run.Job, error) {
	if err := w.budget.Validate(); err != nil {
		return nil, usageError("%v", err)
	}
	var over []run.Override
	for _, field := range [][2]string{{"data", schema.Text(w.table)}, {"schema", schema.Text(w.schemaFile)},
		{"model.name", w.model},
		{"privacy.epsilon", w.epsilon}, {"privacy.delta", w.delta}, {"privacy.adjacency", w.budget.Adjacency.String()}} {
		over = append(over, run.Override{Path: field[0], Value: field[1], From: "the answers"})
	}
	for _, field := range [][2]string{{"test", schema.Text(w.test)}, {"holdout", w.holdout}} {
		if field[1] != "" && field[1] != `""` {
			over = append(over, run.Override{Path: field[0], Value: field[1], From: "the answers"})
		}
	}
	spec, err := run.LoadSpec("", over)
	if err != nil {
		return nil, err
	}
	return run.Prepare(spec)
}

// newFile asks for the name of a file that is not there yet.
func (w *walk) newFile(question, otherwise string) (string, error) {
	return w.ask(question, otherwise, func(answer string) error {
		if _, err := os.Lstat(answer); err == nil {
			return fmt.Errorf("%s exists; give a new file", answer)
		}
		return inThisDirectory(answer)
	})
}

// inThisDirectory refuses what is no name of a schema or a spec: a "no" or "numeric" among piped answers is an answer
// to another question.
func inThisDirectory(name string) error {
	if ext := filepath.Ext(name); filepath.Base(name) != name || ext != ".yaml" && ext != ".yml" {
		return allowed(name, "the name of a .yaml file in this directory")
	}
	return nil
}

// create writes a file that is not there yet.
func create(name string, b []byte) error {
	if _, err := os.Lstat(name); err == nil {
		return usageError("%s exists by now; give a new file", name)
	}
	return newfile.ReplaceShared(name, b)
}
