package report

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/run/runlog"
)

// Summary says, for programs, what a run in dir came to.
func Summary(i *runlog.Info, dir string) map[string]any {
	o := map[string]any{
		"run_dir": dir, "run": i.ID, "dataset": i.Dataset, "lab": i.Lab, "delta": i.Budget.Delta,
		"adjacency":        i.Budget.Adjacency,
		"noise_multiplier": i.NoiseMultiplier, "steps": i.Result.Steps, "train_seconds": i.Result.TrainSeconds,
		"accountant": i.Accountant, "outcome": i.Result.Outcome, "report": filepath.Join(dir, runlog.ReportFile),
		"model":   filepath.Join(dir, runlog.ModelFile),
		"epsilon": i.Budget.Epsilon,
	}
	if i.GDP != nil {
		o["gdp"] = i.GDP
	}
	if s := i.Shares(); s != nil {
		o["sum"] = s
	}
	if i.Off {
		o["epsilon"], o["delta"], o["adjacency"] = nil, nil, nil
	}
	if p := i.Result.Private; p != nil {
		o["private"] = p
	}
	if t := i.Result.Test; t != nil {
		o["test"] = t
		if t.Accuracy != nil {
			o["test_accuracy"] = *t.Accuracy
		}
		if t.RMSE != nil {
			o["test_rmse"] = *t.RMSE
		}
	}
	if len(i.Warnings) > 0 {
		o["warnings"] = i.Warnings
	}
	return o
}

// WriteSummary says it for people.
func WriteSummary(w io.Writer, i *runlog.Info, dir string) {
	if i.Lab {
		fmt.Fprintln(w, "LAB RUN: what follows is not private; do not publish it as if it were.")
	}
	if i.Off {
		fmt.Fprintf(w, "Guarantee  none: no noise was added\nNoise      none, %s of %s\n", steps(i.Result.Steps), i.Method)
	} else {
		verb := "adding or removing any one " + i.Whom()
		if i.Budget.Adjacency.String() == "replace-one" {
			verb = "replacing any one " + i.Whom() + " by another"
		}
		fmt.Fprintf(w, "Guarantee  ε = %s, δ = %s, %v: %s changes the probability\n           of any set of outcomes by %s\n",
			chart.Exact(i.Budget.Epsilon), chart.Exact(i.Budget.Delta), i.Budget.Adjacency, verb, change(i.Budget, chart.Exact))
		if s := i.Shares(); s != nil {
			fmt.Fprintf(w, "           This is against %s, while masks hold.\n           Against %s: %s.\n",
				text.Against(s.Colluders), text.AgainstAll, proven(s.Alone))
		}
		if i.Lab {
			fmt.Fprintln(w, "           (on paper only: this is a lab run)")
		}
		noise := fmt.Sprintf("multiplier %.6g", i.NoiseMultiplier)
		switch {
		case i.NoiseMultiplier == 0 && i.MaxSteps == 1:
			noise = "as ε and δ ask for"
		case i.NoiseMultiplier == 0:
			noise = "another multiplier in each step"
		}
		fmt.Fprintf(w, "Noise      %s, %s of %s\n", noise, steps(i.Result.Steps), i.Method)
		if share := centerShare(i); share > 0 {
			fmt.Fprintf(w, "Center     rows less their noisy mean, which took %.0f %% of the budget\n", 100*share)
		}
	}
	if i.Result.Outcome != "done" {
		fmt.Fprintf(w, "Ended      %s\n", i.Result.Outcome)
	}
	if class := i.Result.Fallback; class != "" {
		fmt.Fprintf(w,
			"Fallback   the model predicts %q for every row: by noisy counts it got more rows wrong than that class does\n",
			class)
	}
	if i.Result.Claim != nil {
		fmt.Fprintf(w, "Reached    %v\n", i.Result.Claim)
	}
	if p := i.Result.Private; p != nil {
		summarizePrivate(w, p)
	}
	if t := i.Result.Test; t != nil {
		fmt.Fprintf(w, "Test       %s\n", scores(t))
		fmt.Fprintln(w, "           (not private: computed from the test rows without noise)")
	}
	fmt.Fprintf(w, "Time       %.2f s of training\n", i.Result.TrainSeconds)
	for _, warning := range i.Warnings {
		fmt.Fprintln(w, "Warning   ", warning)
	}
	fmt.Fprintf(w, "Model      %s\nReport     %s\n", filepath.Join(dir, runlog.ModelFile),
		filepath.Join(dir, runlog.ReportFile))
}

// scores writes figures of a model on a table.
func scores(t *runlog.Scores) string {
	var parts []string
	add := func(name string, v *float64) {
		if v != nil {
			parts = append(parts, fmt.Sprintf("%s %.4f", name, *v))
		}
	}
	add("accuracy", t.Accuracy)
	add("log loss", t.LogLoss)
	add("AUC", t.AUC)
	add("RMSE", t.RMSE)
	add("R²", t.R2)
	if len(parts) == 0 {
		parts = []string{"no scores"}
	}
	return fmt.Sprintf("%s on %s rows", strings.Join(parts, ", "), chart.Integer(t.Rows))
}

// WriteScores writes an evaluation, with the confusion matrix of a classifier.
func WriteScores(w io.Writer, s *runlog.Scores) {
	fmt.Fprintln(w, scores(s))
	if len(s.Confusion) > 0 {
		fmt.Fprintln(w, "true class, then rows by predicted class, and recall")
		for k, row := range s.Confusion {
			fmt.Fprintf(w, "  %-20s", s.Classes[k])
			for _, n := range row {
				fmt.Fprintf(w, " %10s", chart.Integer(n))
			}
			fmt.Fprintf(w, " %10s\n", recall(k, row))
		}
	}
	fmt.Fprintln(w, "not private: computed from these rows without noise")
}

// recall is the share of the rows of class k that are predicted as such.
func recall(k int, row []int) string {
	all := 0
	for _, n := range row {
		all += n
	}
	if all == 0 {
		return "no rows"
	}
	return fmt.Sprintf("%.4f", float64(row[k])/float64(all))
}

func steps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return chart.Integer(n) + " steps"
}

// centerShare is the part of the budget that the mean row took, of μ², which adds up over Gaussian noise on all rows;
// 0: it was not asked.
func centerShare(i *runlog.Info) float64 {
	var config struct {
		CenterNoise float64 `json:"center_noise"`
	}
	if json.Unmarshal(i.Config, &config) != nil || !(config.CenterNoise > 0) {
		return 0
	}
	mean, all := 1/(config.CenterNoise*config.CenterNoise), float64(i.MaxSteps)/(i.NoiseMultiplier*i.NoiseMultiplier)
	return mean / (mean + all)
}
