package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// with is overrides of fields and their values.
func with(fields ...string) (over []Override) {
	for i := 0; i < len(fields); i += 2 {
		over = append(over, Override{Path: fields[i], Value: fields[i+1], From: "test"})
	}
	return over
}

// adaptive are the methods whose costs depend on what they release, which a holdout refuses.
var adaptive = []string{"greedy", "agd", "opt", "opt-ls", "2opt", "2opt-ls"}

// TestHoldoutOfEveryMethod: with a holdout every query of a run is of one named part, the costs of both fit the budget, of which the
// score leaves nothing unused, the run has private figures, and all of it verifies.
func TestHoldoutOfEveryMethod(t *testing.T) {
	t.Parallel()
	for _, e := range method.Registry() {
		over := append(ofAge(t, e.Name, filepath.Join("..", "examples", "clinic", "schema.yaml")), onlyUnder[e.Name]...)
		for _, adjacency := range []string{"add-or-remove", "replace-one"} {
			over := append(with("holdout", "0.2", "privacy.adjacency", adjacency), over...)
			dir := t.TempDir()
			spec, out := clinicSpec(t, dir, e.Name, fmt.Sprintf("method: {name: %s}", e.Name))
			loaded, err := LoadSpec(spec, over)
			if e.Name == "optimum" {
				wantInput(t, err, "holdout: found it beside privacy: none")
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			job, err := Prepare(loaded)
			if slices.Contains(adaptive, e.Name) {
				wantInput(t, err, "whose costs depend on what it releases")
				continue
			}
			if err != nil {
				t.Errorf("method %s under %s does not train beside a holdout: %v. One whose costs depend on what it releases "+
					"stands in the list adaptive, run/holdout_test.go", e.Name, adjacency, err)
				continue
			}
			checkHoldoutRun(t, job, dir, out)
		}
	}
}

// checkHoldoutRun fits a job and checks what it leaves.
func checkHoldoutRun(t *testing.T, job *Job, dir, out string) {
	t.Helper()
	name := fmt.Sprintf("%s, %v", job.Spec.MethodName, job.Facts.Adjacency)
	l := openLedger(t, dir)
	defer l.Close()
	info, _, err := Fit(t.Context(), job, Env{Workers: 1})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	found, err := Verify(t.Context(), out, l)
	if err != nil || !allHold(found) {
		t.Errorf("%s: %v, %v", name, found, err)
	}
	rec := logOf(t, out)
	counts := map[string]int{}
	for e := range rec.Batches() {
		privacy.Walk(e, func(e privacy.Event) bool {
			p, ok := e.(privacy.Parallel)
			if !ok {
				if privacy.Single(e) && e != (privacy.Continued{}) {
					t.Errorf("%s: %v is of no part", name, e)
				}
				return true
			}
			part, split := p.Part, p.Rule
			if split != info.Holdout.Split || len(split) != 16 {
				t.Errorf("%s: the part %q", name, p.Name())
			}
			counts[part]++
			return false
		})
	}
	if counts["holdout"] != len(job.Held.Score.Scores) || counts["training"] == 0 || !runlog.InHoldout(rec.Events[len(rec.Events)-1].Event) {
		t.Errorf("%s: charges of parts: %v", name, counts)
	}
	if info.Result.Private == nil {
		t.Errorf("%s: no private figures", name)
	}
	b := job.Spec.Privacy.Budget()
	if epsilon := job.Cost(job.Plan); epsilon > b.Epsilon*(1+1e-12) || epsilon < b.Epsilon*(1-1e-5) {
		t.Errorf("%s: the plan costs %v of ε = %v", name, epsilon, b.Epsilon)
	}
	if n := job.Whole().Rows; n != 4000 || job.Held.Rows != 800 || job.Facts.Rows != 3200 {
		t.Errorf("%s: %d rows to train on and %d held out", name, job.Facts.Rows, job.Held.Rows)
	}
}

// TestHoldoutOfUnits: a unit with all its rows is in one part.
func TestHoldoutOfUnits(t *testing.T) {
	t.Parallel()
	for _, adjacency := range []string{"add-or-remove", "replace-one"} {
		dir := t.TempDir()
		schema, csv := visits(t, dir)
		job, out := begin(t, dir, "run", "holdout: 0.25\nmethod: {name: sgd, steps: 20, batch: 50, rate: 0.5}", with("data", csv, "schema", schema, "privacy.adjacency", adjacency)...)
		l := openLedger(t, dir)
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := Verify(t.Context(), out, l); err != nil || !allHold(found) {
			t.Errorf("%s: %v, %v", adjacency, found, err)
		}
		l.Close()
		if job.Held.Rows != 75 || info.Result.Private == nil {
			t.Errorf("%s: %d units are held out", adjacency, job.Held.Rows)
		}
	}
}

// TestHoldoutGoesOn: a run that is broken anywhere, also around its score, ends with the same split. What a crash lost of the score stays
// charged, and is not asked again.
func TestHoldoutGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, whole := begin(t, dir, "whole", "holdout: 0.2\nmethod: {name: sgd, steps: 20, batch: 256, rate: 0.5}")
	info, _, err := Fit(t.Context(), job, Env{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		charged, released int
		figures           bool
	}{{0, 0, true}, {7, 6, true}, {20, 19, true}, {20, 20, true}, {21, 0, false}, {21, 18, false}, {21, 20, false}, {21, 21, true}} {
		out := fmt.Sprintf("%s/broken-%d-%d", dir, c.charged, c.released)
		l := openLedger(t, dir)
		broken(t, l, whole, out, c.charged, c.released)
		l.Close()
		again, err := Resume(t.Context(), out, Env{Workers: 1})
		if err != nil {
			t.Fatalf("%d of %d: %v", c.released, c.charged, err)
		}
		l = openLedger(t, dir)
		if found, err := Verify(t.Context(), out, l); err != nil || !allHold(found) {
			t.Errorf("%d of %d: %v, %v", c.released, c.charged, found, err)
		}
		l.Close()
		if (again.Result.Private != nil) != c.figures || again.Holdout.Split != info.Holdout.Split {
			t.Errorf("%d of %d: figures %v, split %s", c.released, c.charged, again.Result.Private, again.Holdout.Split)
		}
		if c.released == 21 && !reflect.DeepEqual(again.Result.Private, info.Result.Private) {
			t.Errorf("other figures of the same release: %v", again.Result.Private)
		}
		if rec := logOf(t, out); rec.Charged() != 21 {
			t.Errorf("%d of %d: %d batches are charged", c.released, c.charged, rec.Charged())
		}
	}
}

// TestHoldoutKeepsItsSplit: a run does not go on with another key, share or schema: each would move rows from one part to the other.
func TestHoldoutKeepsItsSplit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, whole := begin(t, dir, "whole", "holdout: 0.2\nmethod: {name: sgd, steps: 20, batch: 256, rate: 0.5}")
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	edit := func(change func(*runlog.Info)) func(string) error {
		return func(dir string) error {
			info, err := runlog.ReadInfo(dir)
			if err != nil {
				return err
			}
			change(info)
			return runlog.WriteInfo(dir, info)
		}
	}
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"key": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, runlog.HoldoutFile), []byte(strings.Repeat("0a", 32)), 0o600)
		}, "is not the split that this run began with"},
		"no key": {func(dir string) error { return os.Remove(filepath.Join(dir, runlog.HoldoutFile)) }, "without this key it is unknown which rows were held out"},
		"bad key": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, runlog.HoldoutFile), []byte("key"), 0o600)
		}, "is not the key of a holdout"},
		"share": {edit(func(i *runlog.Info) { i.Holdout.Share = 0.3 }), "is not the split"},
		"schema": {edit(func(i *runlog.Info) {
			i.Schema = json.RawMessage(strings.Replace(string(i.Schema), `"max": 60`, `"max": 61`, 1))
		}), "is not the split"},
		"split": {edit(func(i *runlog.Info) { i.Holdout.Share, i.Holdout.Split = 0.3, splitOf(t, job, whole, 0.3) }), "batch 0 asks for"},
		"none":  {edit(func(i *runlog.Info) { i.Holdout = nil }), "batch 0 asks for"},
	} {
		out := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		l := openLedger(t, dir)
		broken(t, l, whole, out, 7, 6)
		l.Close()
		if err := c.change(out); err != nil {
			t.Fatal(err)
		}
		before := logOf(t, out)
		if _, err := Resume(t.Context(), out, Env{Workers: 1}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: resumed: %v; want %q", name, err, c.want)
		}
		if rec := logOf(t, out); rec.Charged() != before.Charged() || rec.Released != before.Released {
			t.Errorf("%s: charged %d, released %d more", name, rec.Charged()-before.Charged(), rec.Released-before.Released)
		}
	}
}

// splitOf is the name of the split of a run's key with another share.
func splitOf(t *testing.T, job *Job, dir string, share float64) string {
	t.Helper()
	key, err := readKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	spec, other := *job.Spec, *job
	spec.Holdout, other.Spec = share, &spec
	split, err := other.SplitBy(key)
	if err != nil {
		t.Fatal(err)
	}
	return split
}

// TestHoldoutOfAnEarlyEnd: a method that ends before its plan does is scored, one whose parameters are no numbers is not. Both settle in
// a ledger that counts as a filter does, for which the score comes before the rest of the plan.
func TestHoldoutOfAnEarlyEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more    string
		l2      string
		outcome string
		figures bool
	}{
		"converged": {"method: {name: opt, steps: 200, costs: plan, gradient: 3}", "0", method.Converged.String(), true},
		"diverged":  {"method: {name: sgd, steps: 30, rate: 1e200}", "1e150", Diverged, false},
	} {
		dir := t.TempDir()
		l := openLedger(t, dir)
		if err := l.SetBudget(t.Context(), "clinic", "record", ledger.InZCDP, privacy.Budget{Epsilon: 3, Delta: 1e-5, Adjacency: privacy.AddRemove}); err != nil {
			t.Fatal(err)
		}
		l.Close()
		job, out := begin(t, dir, name, "holdout: 0.2\n"+c.more, with("model.l2", c.l2)...)
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil && !errors.Is(err, ErrDiverged) {
			t.Fatalf("%s: %v", name, err)
		}
		if info.Result.Outcome != c.outcome || (info.Result.Private != nil) != c.figures {
			t.Errorf("%s: %s after %d steps, figures %v", name, info.Result.Outcome, info.Result.Steps, info.Result.Private)
		}
		l = openLedger(t, dir)
		if found, err := Verify(t.Context(), out, l); err != nil || !allHold(found) {
			t.Errorf("%s: %v, %v", name, found, err)
		}
		l.Close()
		if last := logOf(t, out).Events; runlog.InHoldout(last[len(last)-1].Event) != c.figures {
			t.Errorf("%s: charged %v last", name, last[len(last)-1])
		}
	}
}

// TestHoldoutKey: the key is the run's own and new, its owner's alone, and in no file that others see; that of a seeded run follows
// from the seed.
func TestHoldoutKey(t *testing.T) {
	t.Parallel()
	keys := map[string]string{}
	for _, name := range []string{"a", "b", "seed 1", "again 1", "seed 2"} {
		more := "holdout: 0.5\nmethod: {name: sgd, steps: 2}\n"
		if seed, ok := strings.CutPrefix(name, "seed "); ok {
			more += "lab: true\nseed: " + seed
		} else if name == "again 1" {
			more += "lab: true\nseed: 1"
		}
		job, out := begin(t, t.TempDir(), "run", more)
		if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(out, runlog.HoldoutFile)
		st, err := os.Stat(path)
		if err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
		key, err := readKey(out)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = string(key)
		seal, err := runlog.Seal(out)
		if err != nil || seal[runlog.HoldoutFile] != "" {
			t.Errorf("%s: the key is among the sealed files, %v", name, err)
		}
		hex := fmt.Sprintf("%x", key)
		err = filepath.WalkDir(out, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || p == path {
				return err
			}
			text, err := os.ReadFile(p)
			if strings.Contains(string(text), hex) || strings.Contains(string(text), string(key)) {
				t.Errorf("%s: %s holds the key", name, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if keys["a"] == keys["b"] || keys["seed 1"] != keys["again 1"] || keys["seed 1"] == keys["seed 2"] {
		t.Error("keys of secure runs or other seeds are equal, or those of one seed are not")
	}
}

// TestHoldoutEdited: verify finds what was changed of the share, the query or the figures.
func TestHoldoutEdited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "holdout: 0.2\nmethod: {name: sgd, steps: 3}")
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, runlog.InfoFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*runlog.Info){
		"share": func(i *runlog.Info) { i.Holdout.Share = 0.25 },
		"rows":  func(i *runlog.Info) { i.Holdout.Rows++ },
		"split": func(i *runlog.Info) { i.Holdout.Split = "0123456789abcdef" },
		"noise": func(i *runlog.Info) {
			i.Holdout.Score = json.RawMessage(strings.Replace(string(i.Holdout.Score), `"Sigma": `, `"Sigma": 1`, 1))
		},
		"none":    func(i *runlog.Info) { i.Result.Private = nil },
		"figures": func(i *runlog.Info) { *i.Result.Private.Accuracy.Value += 1e-12 },
	} {
		var info runlog.Info
		if err := json.Unmarshal(text, &info); err != nil {
			t.Fatal(err)
		}
		change(&info)
		if err := runlog.WriteInfo(out, &info); err != nil {
			t.Fatal(err)
		}
		if found, err := Verify(t.Context(), out, nil); err == nil && allHold(found) {
			t.Errorf("%s: edited, and all holds", name)
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Verify(t.Context(), out, nil); err != nil || !allHold(found) {
		t.Errorf("unedited: %v, %v", found, err)
	}
}

// TestHoldoutRefusals: what cannot be, and what has no holdout.
func TestHoldoutRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ more, want string }{
		{"holdout: 0", "holdout: found 0; write a share above 0 and up to 0.5"},
		{"holdout: 0.6", "holdout: found 0.6; write a share above 0 and up to 0.5"},
		{"holdout: -0.1", "holdout: found -0.1"},
		{"holdout: .nan", "holdout: found"},
		{"holdout: 0.0001", "choose a share that leaves at least one in each"},
		{"holdout: 0.2\nmethod: {name: greedy}", "holdout: found it beside method greedy, whose costs depend on what it releases"},
	} {
		spec, _ := clinicSpec(t, t.TempDir(), "run", c.more)
		s, err := LoadSpec(spec, nil)
		if err == nil {
			_, err = Prepare(s)
		}
		wantInput(t, err, c.want)
	}
	for _, over := range [][]Override{with("privacy.delta", "0", "method.name", "majority"), with("privacy", "none", "lab", "true"), with("privacy.accountant", "pure")} {
		spec, _ := clinicSpec(t, t.TempDir(), "run", "")
		s, err := LoadSpec(spec, append(with("holdout", "0.2"), over...))
		if err == nil {
			_, err = Prepare(s)
		}
		var input *InputError
		if !errors.As(err, &input) {
			t.Errorf("%v: %v", over, err)
		}
	}
	j, _ := begin(t, t.TempDir(), "run", "holdout: 0.2\nmethod: {name: sgd}")
	wantInput(t, j.Allows(job.OnWorkers), "holdout: found it for --workers; use `sotto fit` on a table in one process")
}

// TestHoldoutOfAFilter: in a ledger that counts as a filter does, a run with a holdout settles for what the dearer part costs.
func TestHoldoutOfAFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLedger(t, dir)
	budget := privacy.Budget{Epsilon: 1.2, Delta: 1e-5, Adjacency: privacy.AddRemove}
	if err := l.SetBudget(t.Context(), "clinic", "record", ledger.InGDP, budget); err != nil {
		t.Fatal(err)
	}
	l.Close()
	job, out := begin(t, dir, "run", "holdout: 0.2\nmethod: {name: gd, steps: 10}")
	info, _, err := Fit(t.Context(), job, Env{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	l = openLedger(t, dir)
	defer l.Close()
	if found, err := Verify(t.Context(), out, l); err != nil || !allHold(found) {
		t.Errorf("%v, %v", found, err)
	}
	run, err := l.Run(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	mu, err := account.GDP{}.Loss(job.Plan, privacy.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	if e := mu.Epsilon(1e-5); run.State != ledger.StateSettled || math.Abs(e-1) > 1e-5 {
		t.Errorf("%+v; the plan costs %v", run, e)
	}
}

// TestHoldoutClaim: what a converged lab run claims is of the rows that it trained on, and is computed from those.
func TestHoldoutClaim(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "holdout: 0.3\nmethod: {name: opt, gradient: 0.2, costs: plan}\nlab: true\nseed: 5")
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	f, err := VerifyClaim(t.Context(), out, "", false)
	if err != nil || !f.Holds {
		t.Errorf("%+v, %v", f, err)
	}
	if err := os.Remove(filepath.Join(out, runlog.HoldoutFile)); err != nil {
		t.Fatal(err)
	}
	_, err = VerifyClaim(t.Context(), out, "", false)
	wantInput(t, err, "without this key it is unknown which rows were held out")
}
