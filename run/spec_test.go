package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// Under add-or-remove the number of rows is private: no file of a run says it,
// and none depends on a row that weighs nothing (R9).
func TestNothingTellsTheNumberOfRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, err := os.ReadFile(filepath.Join("..", "examples", "clinic", "patients.csv"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join("..", "examples", "clinic", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("schema.yaml", "on_bad_row: drop\n"+string(schema))
	put("one.csv", strings.Join(lines[:3458], ""))
	put("neighbour.csv", strings.Join(lines[:3458], "")+"SECRET\n")
	count := regexp.MustCompile(`(^|[^0-9.eE-])3,?45[78]([^0-9.]|$)`)
	hashes := regexp.MustCompile(`[0-9a-f]{64}`)
	told := map[string]string{} // of the last step
	fit := func(name, data, more string) string {
		job, out := begin(t, dir, name, "output: last\n"+more)
		job.Spec.Data = filepath.Join(dir, data)
		job.Spec.Schema = filepath.Join(dir, "schema.yaml")
		job.Spec.Void = job.Spec.Lab
		if job, err = Prepare(job.Spec); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Fit(t.Context(), job, Env{Progress: func(p Progress) { told[name] = fmt.Sprint(p.Step, p.MaxSteps, p.Epsilon) }}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, method := range []string{"", "method: {name: sgd, steps: 50, batch: 40}"} {
		name := fmt.Sprint("real", len(method))
		out := fit(name, "one.csv", method)
		for _, file := range []string{runlog.InfoFile, runlog.EventsFile, runlog.StepsFile, runlog.ModelFile} {
			b, err := os.ReadFile(filepath.Join(out, file))
			if err != nil {
				t.Fatal(err)
			}
			b = hashes.ReplaceAll(b, nil) // any digits may stand in a hash
			if m := count.Find(b); m != nil {
				t.Errorf("%s tells the number of rows: %q", file, m)
			}
		}
		a := fit(name+"-a", "one.csv", method+"\nlab: true\nseed: 3\n")
		b := fit(name+"-b", "neighbour.csv", method+"\nlab: true\nseed: 3\n")
		for _, file := range []string{runlog.StepsFile, runlog.ReleasesFile} {
			sameFile(t, a, b, file)
		}
		if x, y := publicInfo(t, a), publicInfo(t, b); x != y {
			t.Errorf("run.json differs:\n%s\n%s", x, y)
		}
		if x, y := logOf(t, a).Event(), logOf(t, b).Event(); !privacy.Equal(x, y) {
			t.Errorf("charged %v and %v", x, y)
		}
		// How often one is told depends on the time (R11), what of does not.
		if x, y := told[name+"-a"], told[name+"-b"]; x != y {
			t.Errorf("told of %s and of %s", x, y)
		}
	}
}

// publicInfo is run.json without what names the run, its place and its time, and
// without the counts that the lab adds.
func publicInfo(t *testing.T, dir string) string {
	t.Helper()
	i, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	i.ID, i.Started, i.Finished, i.SpecFile, i.Data, i.LedgerHead = "", time.Time{}, nil, "", "", ""
	delete(i.Hashes, runlog.ModelFile) // it holds the time and the name of the run
	i.Result.TrainSeconds, i.Result.LabCounts = 0, nil
	b, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
