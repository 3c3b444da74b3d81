package page

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// TestConstant: each score that a constant beats says so, in text, on the page and for programs, with what the constant reaches; others do
// not.
func TestConstant(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	few, poor := [][]int{{50, 30}, {15, 5}}, []string{"a", "b"}
	for name, c := range map[string]struct {
		scores runlog.Scores
		marked []string
		want   string
	}{
		"good classifier": {runlog.Scores{Rows: 100, Accuracy: v(0.9), LogLoss: v(0.2), AUC: v(0.9), Confusion: [][]int{{75, 5}, {5, 15}}, Classes: poor}, nil, "accuracy 0.8000, log loss 0.5004"},
		"poor accuracy":   {runlog.Scores{Rows: 100, Accuracy: v(0.55), LogLoss: v(0.4), Confusion: few, Classes: poor}, []string{"accuracy 0.5500"}, "accuracy 0.8000, log loss 0.5004"},
		"poor log loss":   {runlog.Scores{Rows: 100, Accuracy: v(0.9), LogLoss: v(0.6), Confusion: [][]int{{75, 5}, {5, 15}}, Classes: poor}, []string{"log loss 0.6000"}, "accuracy 0.8000, log loss 0.5004"},
		"no log loss":     {runlog.Scores{Rows: 100, Accuracy: v(0.9), Confusion: [][]int{{75, 5}, {5, 15}}, Classes: poor}, nil, "accuracy 0.8000"},
		"three classes":   {runlog.Scores{Rows: 4, Accuracy: v(0.25), LogLoss: v(9), Confusion: [][]int{{1, 1, 0}, {1, 0, 0}, {1, 0, 0}}, Classes: []string{"a", "b", "c"}}, []string{"accuracy 0.2500", "log loss 9.0000"}, "accuracy 0.5000, log loss 1.0397"},
		"good number":     {runlog.Scores{Rows: 10, RMSE: v(3), R2: v(0.64)}, nil, "RMSE 5, R² 0.0000"},
		"poor number":     {runlog.Scores{Rows: 10, RMSE: v(6), R2: v(-3)}, []string{"RMSE 6", "R² -3.0000"}, "RMSE 3, R² 0.0000"},
		"constant labels": {runlog.Scores{Rows: 10, RMSE: v(6)}, nil, ""},
		"no rows":         {runlog.Scores{Confusion: [][]int{{0, 0}, {0, 0}}, Classes: poor}, nil, ""},
	} {
		info := asked(t)
		info.Result.Test = &c.scores
		r := record.Of(info, nil)
		var out bytes.Buffer
		WriteSummary(&out, r, "run")
		text := out.String()
		if n := strings.Count(text, worse); n != len(c.marked) {
			t.Errorf("%s: %d figures are marked, want %d:\n%s", name, n, len(c.marked), text)
		}
		for _, m := range c.marked {
			if !strings.Contains(text, m+worse) {
				t.Errorf("%s: %q is not marked:\n%s", name, m, text)
			}
		}
		if want := "the best constant on these rows: " + c.want + "\n"; strings.Contains(text, want) != (c.want != "") {
			t.Errorf("%s: want %q:\n%s", name, want, text)
		}
		if _, there := Summary(r, "run")["test_constant"]; there != (c.want != "") {
			t.Errorf("%s: the constant of the summary for programs", name)
		}
		out.Reset()
		WriteScores(&out, &c.scores)
		if strings.Count(out.String(), worse) != len(c.marked) {
			t.Errorf("%s: an evaluation says %s", name, out.String())
		}
	}
}

// TestClampedLabels: scores on labels that were clamped say how many.
func TestClampedLabels(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for n, want := range map[int]string{0: " on 10 rows\n", 1: "; 1 label is beyond the schema’s bounds, counted as the bound, so raw errors are larger\n", 3: "; 3 labels are beyond the schema’s bounds, counted as the bound, so raw errors are larger\n"} {
		info := asked(t)
		info.Result.Test = &runlog.Scores{Rows: 10, RMSE: v(3), R2: v(0.6), ClampedLabels: n}
		var summary, evaluation bytes.Buffer
		WriteSummary(&summary, record.Of(info, nil), "run")
		WriteScores(&evaluation, info.Result.Test)
		if !strings.Contains(summary.String(), want) || !strings.Contains(evaluation.String(), want) {
			t.Errorf("%d: want %q:\n%s%s", n, want, summary.String(), evaluation.String())
		}
	}
}

// TestPrivateConstant: likewise private figures, by the noisy counts; and an interval that leaves a share open stands without the share.
func TestPrivateConstant(t *testing.T) {
	figure := func(v, low, high float64) *runlog.Figure { return &runlog.Figure{Value: &v, Low: low, High: high} }
	said := func(p *runlog.Private) string {
		var out bytes.Buffer
		WritePrivate(&out, p)
		return out.String()
	}
	counts := [][]float64{{60, 25}, {16, -1}}
	p := &runlog.Private{Accuracy: figure(0.59, 0.5, 0.7), AUC: figure(0.4, 0.3, 0.6), LogLoss: figure(0.9, 0.8, 1), Confusion: counts}
	text := said(p)
	for _, want := range []string{"accuracy               0.5900" + worse, "AUC                    0.4000" + worse, "log loss               0.9000" + worse, "the best constant would reach accuracy 0.8500, log loss 0.4227."} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	for _, p := range []*runlog.Private{{Accuracy: figure(0.9, 0.85, 0.95), AUC: figure(0.9, 0.8, 0.95), LogLoss: figure(0.3, 0.2, 0.4), Confusion: counts}, {R2: figure(0.1, -0.1, 0.2), RMSE: figure(3, 1, 9)}} {
		if text := said(p); strings.Contains(text, worse) {
			t.Errorf("marks good figures:\n%s", text)
		}
	}
	if text := said(&runlog.Private{R2: figure(-0.2, -0.9, 0.2)}); !strings.Contains(text, "-0.2000"+worse) {
		t.Errorf("R²:\n%s", text)
	}
	open := &runlog.Private{Accuracy: figure(0.9, 0.5, 1), AUC: figure(1, 0.5835, 1), LogLoss: figure(0.3, 0, 1), Confusion: counts,
		Classes: []runlog.PrivateClass{{Class: "a", Recall: *figure(1, 0.2, 1), Precision: *figure(1, 0.9, 1)}}}
	text = said(open)
	for _, want := range []string{"accuracy               " + tooFew + ", 0.5000 to 1.0000", "AUC                    " + tooFew + ", 0.5835 to 1.0000", "log loss               0.3000"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if rows := classRows(open.Classes); rows[0].Value != tooFew || rows[1].Value == tooFew {
		t.Errorf("recall and precision: %+v", rows)
	}
}

// TestLifetimeLine: a summary says in one line what all runs of the dataset cost together.
func TestLifetimeLine(t *testing.T) {
	caps := func(epsilon, delta float64) *ledger.Caps { return &ledger.Caps{Epsilon: epsilon, Delta: delta} }
	many := make([]record.LedgerRun, 16)
	for want, l := range map[string]record.Lifetime{
		"ε = 21.5, δ = 0.00016 over 16 runs, no budget set":                          {Total: caps(21.5, 1.6e-4), Runs: many, Currency: ledger.InCaps},
		"ε = 1, δ = 0 over 1 run, no budget set":                                     {Total: caps(1, 0), Runs: many[:1], Currency: ledger.InCaps},
		"ε = 2, δ = 0.00002 over 2 runs, of a budget of ε = 10, δ = 0.0001":          {Total: caps(2, 2e-5), Runs: many[:2], Currency: ledger.InCaps, Budget: caps(10, 1e-4)},
		"ε = 4, δ = 0.00001 over all runs, 3 runs by now, counted in zcdp":           {Total: caps(4, 1e-5), Runs: many[:3], Currency: "zcdp", Budget: caps(4, 1e-5)},
		"no guarantee: rows were accessed without a guarantee on 2026-11-29 (score)": {Why: "rows were accessed without a guarantee on 2026-11-29 (score)", Runs: many, Currency: ledger.InCaps},
	} {
		r := record.Of(asked(t), nil)
		r.Lifetime = &l
		var out bytes.Buffer
		WriteSummary(&out, r, "run")
		if !strings.Contains(out.String(), "\nLifetime   "+want+"\n") {
			t.Errorf("want %q:\n%s", want, out.String())
		}
		if Summary(r, "run")["lifetime"] == nil {
			t.Error("the summary for programs has no lifetime")
		}
	}
}
