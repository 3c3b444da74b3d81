package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// scoredTable writes rows of units with a group and a label, by classes or by a number, and the schema of such tables.
func scoredTable(t *testing.T, dir, name, label string, units, each int) (schemaFile, table string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(23, uint64(units)))
	var b strings.Builder
	b.WriteString("who,x,ward,y\n")
	for u := range units {
		for range each {
			x := 2*rnd.Float64() - 1
			y := fmt.Sprintf("%.3f", 5+3*x+rnd.NormFloat64())
			if label != "min: 0, max: 10" {
				y = []string{"a", "b", "c"}[int(min(2, max(0, 1.2*(x+1)+0.4*rnd.NormFloat64())))]
				if label == "classes: [a, b]" && y == "c" {
					y = "b"
				}
			}
			fmt.Fprintf(&b, "u%d,%.4f,%s,%s\n", u, x, []string{"north", "south", ""}[rnd.IntN(3)], y)
		}
	}
	rows, who := fmt.Sprintf("rows: %d", units), "ignore"
	if each > 1 {
		rows, who = fmt.Sprintf("unit: {name: person, rows: %d}\nunits: %d", each, units), "unit"
	}
	head := fmt.Sprintf("dataset: scored\n%s\nformat: {kind: csv, header: true, missing: [\"\"]}\ncolumns:\n  - {name: who, type: %s}\n  - {name: x, type: numeric, min: -1, max: 1}\n"+
		"  - {name: ward, type: categorical, levels: [north, south], missing: zero}\n  - {name: y, type: label, %s}\n", rows, who, label)
	schemaFile, table = filepath.Join(dir, name+".yaml"), filepath.Join(dir, name+".csv")
	for path, text := range map[string]string{schemaFile: head, table: b.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return schemaFile, table
}

// TestEvaluatePrivately: figures are those of the rows within their noise, under both relations, of rows and of units, of two and of more classes and of numbers; the ledger has
// the charge, settled; the record verifies, and no part of it can be changed. The noise is known.
func TestEvaluatePrivately(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, label, model string
		adjacency          privacy.Adjacency
		each               int
	}{
		{"two", "classes: [a, b]", "logistic", privacy.AddRemove, 1},
		{"replaced", "classes: [a, b]", "logistic", privacy.ReplaceOne, 1},
		{"units", "classes: [a, b]", "logistic", privacy.AddRemove, 3},
		{"three", "classes: [a, b, c]", "softmax", privacy.AddRemove, 1},
		{"numeric", "min: 0, max: 10", "linear", privacy.ReplaceOne, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			schemaFile, table := scoredTable(t, dir, "train", c.label, 3000, c.each)
			_, other := scoredTable(t, dir, "other", c.label, 3001, c.each)
			where := filepath.Join(dir, "ledger.db")
			spec := fmt.Sprintf("data: %s\nschema: %s\nmodel: {name: %s}\nprivacy: {epsilon: 2, delta: 1e-6, adjacency: %v}\nledger: %s\nout: %s\n",
				table, schemaFile, c.model, c.adjacency, where, filepath.Join(dir, "run"))
			file := filepath.Join(dir, "spec.yaml")
			if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := LoadSpec(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			j, err := Prepare(s)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := Fit(t.Context(), j, Env{Workers: 1}); err != nil {
				t.Fatal(err)
			}
			m, err := LoadModel(filepath.Join(dir, "run"))
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "evaluation")
			ask := PrivateEvaluation{Epsilon: 1, By: "ward", Rows: 3001, Out: out, streams: noise.SeededStreams(7)}
			if c.adjacency == privacy.ReplaceOne {
				ask.Rows = 3000
				if _, _, err := m.EvaluatePrivately(t.Context(), other, ask); err == nil || !strings.Contains(err.Error(), "expected exactly 3000") {
					t.Errorf("a table of another number of rows under replace-one: %v", err)
				}
				ask.Rows = 3001
			}
			e, at, err := m.EvaluatePrivately(t.Context(), other, ask)
			if err != nil || at != out {
				t.Fatalf("%s, %v", at, err)
			}
			exact, err := m.Evaluate(t.Context(), other, Evaluation{Void: true})
			if err != nil {
				t.Fatal(err)
			}
			within := func(name string, f *runlog.Figure, want *float64, width float64) {
				t.Helper()
				if f == nil || f.Value == nil || *want < f.Low || *want > f.High || f.High-f.Low > width {
					t.Errorf("%s: %+v, exactly %v", name, f, *want)
				}
			}
			p := e.Private
			if len(p.Groups) != 3 || p.Groups[0].Level != "north" || p.Groups[2].Level != "" || p.Groups[0].Records.TooFew || math.Abs(*p.Records.Value-3001) > 60 {
				t.Errorf("records %+v, groups %+v", p.Records, p.Groups)
			}
			if c.name == "numeric" {
				within("RMSE", p.RMSE, exact.RMSE, 1.5)
				within("R²", p.R2, exact.R2, 0.6)
			} else {
				within("accuracy", p.Accuracy, exact.Accuracy, 0.06)
			}
			if c.name == "two" {
				within("AUC", p.AUC, exact.AUC, 0.15)
			}
			// The model file's own δ; what stands in the ledger.
			l := openLedger(t, dir)
			known, err := l.Run(t.Context(), e.ID)
			if err != nil || known.State != ledger.StateSettled || known.Caps != (ledger.Caps{Epsilon: 1, Delta: 1e-6}) || known.Dataset != "scored" {
				t.Errorf("%+v, %v", known, err)
			}
			broken := func() (names []string) {
				found, err := VerifyEvaluation(t.Context(), out, l)
				if err != nil {
					return []string{err.Error()}
				}
				for _, f := range found {
					if !f.Holds {
						names = append(names, f.What)
					}
				}
				return names
			}
			if names := broken(); names != nil {
				t.Errorf("does not hold: %v", names)
			}
			path := filepath.Join(out, runlog.EvaluationFile)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := json.Marshal(e.Answers[0][0])
			if err != nil {
				t.Fatal(err)
			}
			for what, change := range map[string][2]string{
				"figures": {`"on": "table"`, `"on": "holdout"`},
				"plan":    {`"adjacency": "`, `"adjacency":  "`}, // the seal alone
				"answers": {string(answer), "1" + string(answer)},
				"budget":  {`"epsilon": 1,`, `"epsilon": 0.5,`},
				"ledger":  {`"dataset": "scored"`, `"dataset": "others"`},
			} {
				changed := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
				if bytes.Equal(changed, text) {
					t.Fatalf("%s: nothing to change", what)
				}
				if err := os.WriteFile(path, changed, 0o600); err != nil {
					t.Fatal(err)
				}
				names := broken()
				if !slices.Contains(names, "seal") || what != "plan" && what != "answers" && !slices.Contains(names, what) {
					t.Errorf("%s changed: found %v", what, names)
				}
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}

			// A refused budget leaves nothing behind, as does a column that is none.
			ask.Out, ask.Dataset = filepath.Join(dir, "refused"), "fresh"
			if err := l.SetBudget(t.Context(), "fresh", m.Schema.Unit, "", privacy.Budget{Epsilon: 0.75, Delta: 1e-3, Adjacency: c.adjacency}); err != nil {
				t.Fatal(err)
			}
			_, third := scoredTable(t, dir, "third", c.label, 3002, c.each)
			ask.Rows = 3002
			if _, _, err := m.EvaluatePrivately(t.Context(), third, ask); !errors.Is(err, privacy.ErrExhausted) {
				t.Errorf("%v, want a refusal", err)
			}
			ask.Epsilon, ask.By = 0.5, "x"
			if _, _, err := m.EvaluatePrivately(t.Context(), third, ask); err == nil || !strings.Contains(err.Error(), "--by: found") {
				t.Errorf("by a numeric column: %v", err)
			}
			if _, err := os.Stat(ask.Out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a refused evaluation leaves %s", ask.Out)
			}
			ask.By = ""
			if _, _, err := m.EvaluatePrivately(t.Context(), third, ask); err != nil {
				t.Error(err)
			}
			large := 0.1
			ask.Delta, ask.Out = &large, filepath.Join(dir, "deep", "deeper")
			if _, _, err := m.EvaluatePrivately(t.Context(), third, ask); !errors.Is(err, job.ErrLargeDelta) {
				t.Errorf("a large δ: %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "deep")); !errors.Is(err, os.ErrNotExist) {
				t.Error("a refused evaluation leaves directories")
			}
			zero := 0.0
			ask.Delta = &zero
			if _, _, err := m.EvaluatePrivately(t.Context(), third, ask); err == nil || !strings.Contains(err.Error(), "δ above 0") {
				t.Errorf("δ = 0: %v", err)
			}
		})
	}
}
