package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPredictWhole: a bad cell in the last of many rows leaves no prediction: none on the standard output, no file, and an
// older file as it was. Under on_bad_row: drop that row gets an empty line.
func TestPredictWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const schema = "dataset: whole\nrows: 4000\nformat: {kind: csv, header: true}\ncolumns:\n" +
		"  - {name: x, type: numeric, min: 0, max: 9, encode: linear}\n  - {name: sick, type: label, classes: [\"no, not\", \"yes\"]}\n"
	var rows, cells strings.Builder
	rows.WriteString("x,sick\n")
	cells.WriteString("x\n")
	for i := range 4000 {
		x := string(rune('0' + i%10))
		rows.WriteString(x + []string{`,"no, not"`, ",yes"}[i%10/5] + "\n")
		cells.WriteString(x + "\n")
	}
	train, good, bad := file("train.csv", rows.String()), file("good.csv", cells.String()), file("bad.csv", cells.String()+"much\n")
	for _, drop := range []bool{false, true} {
		s := schema
		if drop {
			s += "on_bad_row: drop\n"
		}
		model := filepath.Join(dir, map[bool]string{false: "stop", true: "drop"}[drop])
		if b, err := sotto(t, "fit", "--data", train, "--schema", file("schema.yaml", s), "--model", "logistic", "--method", "sgd",
			"--epsilon", "1", "--delta", "1e-6", "--adjacency", "add-or-remove", "--quiet", "--out", model,
			"--ledger", filepath.Join(dir, "ledger.db")).Output(); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		want, err := sotto(t, "predict", "--model", model, "--data", good).Output()
		if err != nil || strings.Count(string(want), "\n") != 4001 || !strings.Contains(string(want), "\n\"no, not\",0.") {
			t.Fatalf("%v: predictions %.80q", err, want)
		}
		out := file("out.csv", "older")
		c := sotto(t, "predict", "--model", model, "--data", bad)
		c.Stderr = nil
		direct, err := c.Output()
		to := sotto(t, "predict", "--model", model, "--data", bad, "--out", out)
		to.Stderr = nil
		toErr := to.Run()
		made, _ := os.ReadFile(out)
		if drop {
			if got := string(want) + ",,\n"; err != nil || toErr != nil || string(direct) != got || string(made) != got {
				t.Errorf("a dropped last row: %v, %v, and %.80q", err, toErr, direct)
			}
			continue
		}
		if err == nil || toErr == nil || c.ProcessState.ExitCode() != 2 || to.ProcessState.ExitCode() != 2 {
			t.Errorf("a bad last row: %v, %v", err, toErr)
		}
		if len(direct) > 0 || string(made) != "older" {
			t.Errorf("a bad last row leaves %.80q on the standard output, %.80q in the file", direct, made)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".out*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
