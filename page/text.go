package page

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// Summary says, for programs, what a run in dir came to.
func Summary(r *record.Record, dir string) map[string]any {
	o := map[string]any{
		"run_dir": dir, "run": r.Run.ID, "dataset": r.Run.Dataset, "lab": r.Run.Lab,
		"noise_multiplier": r.Run.NoiseMultiplier, "steps": r.Course.Steps, "train_seconds": r.Run.TrainSeconds,
		"accountant": r.Run.Accountant, "outcome": r.Run.Outcome, "report": filepath.Join(dir, runlog.ReportFile),
		"model": filepath.Join(dir, runlog.ModelFile), "epsilon": nil, "delta": nil, "adjacency": nil,
	}
	if g := r.Guarantee; g != nil {
		o["epsilon"], o["delta"], o["adjacency"] = g.Epsilon, g.Delta, g.Relation
		if g.GDP != nil {
			o["gdp"] = g.GDP
		}
		if s := g.Shares; s != nil {
			o["sum"] = s.Assumed()
		}
	}
	if p := r.Quality.Private; p != nil {
		o["private"] = p
	}
	if t := r.Quality.Test; t != nil {
		o["test"] = t
		if c := record.ConstantOf(t); c != nil {
			o["test_constant"] = c
		}
		if t.Accuracy != nil {
			o["test_accuracy"] = *t.Accuracy
		}
		if t.RMSE != nil {
			o["test_rmse"] = *t.RMSE
		}
	}
	if len(r.Run.Warnings) > 0 {
		o["warnings"] = r.Run.Warnings
	}
	if l := r.Lifetime; l != nil {
		o["lifetime"] = map[string]any{"total": l.Total, "runs": l.AllRuns(), "budget": l.Budget,
			"currency": l.Currency}
	}
	return o
}

// WriteSummary says it for people.
func WriteSummary(w io.Writer, r *record.Record, dir string) {
	if r.Run.Lab {
		fmt.Fprintln(w, "LAB RUN: what follows is not private; do not publish it as if it were.")
	}
	if g := r.Guarantee; g != nil {
		writeGuarantee(w, r, g)
	} else {
		fmt.Fprintf(w, "Guarantee  none: no noise was added\nNoise      none, %s of %s\n", steps(r.Course.Steps), r.Run.Method)
	}
	if r.Run.Outcome != "done" {
		fmt.Fprintf(w, "Ended      %s\n", r.Run.Outcome)
	}
	if class := r.Run.Fallback; class != "" {
		fmt.Fprintf(w, "Fallback   %s\n", fallback(class))
	}
	if r.Run.Claim != nil {
		fmt.Fprintf(w, "Reached    %v\n", r.Run.Claim)
	}
	if p := r.Quality.Private; p != nil {
		summarizePrivate(w, p)
	}
	if t := r.Quality.Test; t != nil {
		fmt.Fprintf(w, "Test       %s\n", scores(t))
		fmt.Fprintln(w, "           (not private: computed from the test rows without noise)")
		if c := record.ConstantOf(t); c != nil {
			fmt.Fprintln(w, "           the best constant on these rows:", constantWords(c))
		}
	}
	if l := r.Lifetime; l != nil {
		fmt.Fprintf(w, "Lifetime   %s\n", lifetimeWords(l))
	}
	fmt.Fprintf(w, "Time       %.2f s of training\n", r.Run.TrainSeconds)
	for _, warning := range r.Run.Warnings {
		fmt.Fprintln(w, "Warning   ", warning)
	}
	fmt.Fprintf(w, "Model      %s\nReport     %s\n", filepath.Join(dir, runlog.ModelFile),
		filepath.Join(dir, runlog.ReportFile))
}

func writeGuarantee(w io.Writer, r *record.Record, g *record.Guarantee) {
	b := privacy.Budget{Epsilon: g.Epsilon, Delta: g.Delta}
	fmt.Fprintf(w, "Guarantee  ε = %s, δ = %s, %v: %s changes the probability\n           of any set of outcomes by %s\n",
		exact(g.Epsilon), exact(g.Delta), g.Relation, r.Protection.Change(), record.Change(b))
	if s := g.Shares; s != nil {
		fmt.Fprintf(w, "           This is against %s, while masks hold.\n           Against %s: %s.\n",
			s.Against, s.AgainstAll, proven(s.EpsilonAlone))
	}
	if r.Run.Lab {
		fmt.Fprintln(w, "           (on paper only: this is a lab run)")
	}
	noise := fmt.Sprintf("multiplier %.6g", r.Run.NoiseMultiplier)
	switch {
	case r.Run.NoiseMultiplier == 0 && r.Course.Planned == 1:
		noise = "as ε and δ ask for"
	case r.Run.NoiseMultiplier == 0:
		noise = "another multiplier in each step"
	}
	fmt.Fprintf(w, "Noise      %s, %s of %s\n", noise, steps(r.Course.Steps), r.Run.Method)
	if g.FirstShare > 0 {
		fmt.Fprintf(w, "Pairs      %s, by a release\n           that took %s\n", pairs(r.Run),
			partWords(g.FirstShare, g.FirstAlone))
	}
	if g.CountShare > 0 {
		fmt.Fprintf(w, "Share      predictions begin at the noisy share of a class,\n           which took %s\n",
			partWords(g.CountShare, g.CountAlone))
	}
	if g.CenterShare > 0 {
		fmt.Fprintf(w, "Center     rows less their noisy mean, which took\n           %s\n",
			partWords(g.CenterShare, g.CenterAlone))
	}
}

// lifetimeWords says what all runs of the dataset cost together, in one line.
func lifetimeWords(l *record.Lifetime) string {
	caps := func(c ledger.Caps) string {
		return fmt.Sprintf("ε = %s, δ = %s", exact(c.Epsilon), exact(c.Delta))
	}
	runs := plural(l.AllRuns(), "run", "runs")
	switch {
	case l.Total == nil:
		return "no guarantee: " + l.Why
	case l.Currency != ledger.InCaps:
		return fmt.Sprintf("%s over all runs, %s by now, counted in %s", caps(*l.Total), runs, l.Currency)
	case l.Budget == nil:
		return fmt.Sprintf("%s over %s, no budget set", caps(*l.Total), runs)
	}
	return fmt.Sprintf("%s over %s, of a budget of %s", caps(*l.Total), runs, caps(*l.Budget))
}

// A scoreForm says how a score is named and written.
type scoreForm struct {
	name  string
	value func(*runlog.Scores) *float64
	form  func(float64) string
	more  bool // is better
}

// scoreForms are those of all scores.
var scoreForms = []scoreForm{
	{"accuracy", func(s *runlog.Scores) *float64 { return s.Accuracy }, decimals, true},
	{"log loss", func(s *runlog.Scores) *float64 { return s.LogLoss }, decimals, false},
	{"AUC", func(s *runlog.Scores) *float64 { return s.AUC }, decimals, true},
	{"RMSE", func(s *runlog.Scores) *float64 { return s.RMSE }, number, false},
	{"R²", func(s *runlog.Scores) *float64 { return s.R2 }, decimals, true},
}

// scoresOf are the scores that were computed.
func scoresOf(s *runlog.Scores) (list []fact) {
	constant := record.ConstantOf(s)
	for _, f := range scoreForms {
		v := f.value(s)
		if v == nil {
			continue
		}
		text := f.form(*v)
		if beaten(s, constant, f) {
			text += worse
		}
		list = append(list, fact{f.name, text})
	}
	return list
}

// scores writes figures of a model on a table.
func scores(t *runlog.Scores) string {
	text := fmt.Sprintf("%s on %s rows", cmp.Or(factWords(scoresOf(t)), "no scores"), chart.Integer(t.Rows))
	if n := t.ClampedLabels; n > 0 {
		text += fmt.Sprintf("; %s beyond the schema’s bounds, counted as the bound, so raw errors are larger",
			plural(n, "label is", "labels are"))
	}
	return text
}

// WriteScores writes an evaluation, with the confusion matrix of a classifier.
func WriteScores(w io.Writer, s *runlog.Scores) {
	fmt.Fprintln(w, scores(s))
	if c := record.ConstantOf(s); c != nil {
		fmt.Fprintln(w, "the best constant on these rows:", constantWords(c))
	}
	if len(s.Confusion) > 0 {
		fmt.Fprintln(w, "true class, then rows by predicted class, and recall")
		for k, row := range s.Confusion {
			fmt.Fprintf(w, "  %-20s", s.Classes[k])
			for _, n := range row {
				fmt.Fprintf(w, " %10s", chart.Integer(n))
			}
			fmt.Fprintf(w, " %10s\n", recallWords(record.Recall(k, row)))
		}
	}
	fmt.Fprintln(w, "not private: computed from these rows without noise")
}

// recallWords writes the recall of a class.
func recallWords(v *float64) string {
	if v == nil {
		return "no rows"
	}
	return decimals(*v)
}

func steps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return chart.Integer(n) + " steps"
}
