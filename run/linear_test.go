package run

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// TestLinearRun: a run that begins at the mean label verifies, goes on where it was broken, and keeps the mean as the offset of its model
// file; so does one that is solved by statistics, and one of an earlier build, which asks for no labels. A run whose facts say so
// does not go on with shifted margins.
func TestLinearRun(t *testing.T) {
	t.Parallel()
	linear := ofAge(t, "adassp", filepath.Join("..", "examples", "clinic", "schema.yaml"))
	for i, c := range []struct {
		more    string
		charged int // batches
		earlier bool
	}{
		{"method: {name: auto, solve: gradients}", 0, false},
		{"method: {name: auto, solve: statistics}", 2, false},
		{"method: {name: auto, center: mean}", 0, false},
		{"method: {name: auto}", 0, true},
	} {
		dir := t.TempDir()
		job, whole := begin(t, dir, "whole", c.more, linear...)
		if c.earlier {
			job.Spec.Uncentered = true
			var err error
			if job, err = Prepare(job.Spec); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
			t.Fatalf("%s: %v", c.more, err)
		}
		l := openLedger(t, dir)
		if found, err := Verify(t.Context(), whole, l); err != nil || !allHold(found) {
			t.Errorf("%s: %v, %v", c.more, found, err)
		}
		rec := logOf(t, whole)
		if c.charged > 0 && rec.Charged() != c.charged {
			t.Errorf("%s: %d batches are charged", c.more, rec.Charged())
		}
		file, err := model.Read(filepath.Join(whole, runlog.ModelFile))
		if err != nil {
			t.Fatal(err)
		}
		if mean := floats.Sum(file.Offset); i < 2 && !(mean > 40 && mean < 70) || c.earlier && mean != 0 {
			t.Errorf("%s: the model's offset is %v", c.more, mean)
		}
		half, edited := fmt.Sprint(dir, "/broken"), fmt.Sprint(dir, "/edited")
		broken(t, l, whole, half, rec.Charged()/2, rec.Charged()/2)
		broken(t, l, whole, edited, 1, 1)
		l.Close()
		info, err := Resume(t.Context(), half, Env{Workers: 1})
		if err != nil || info.Status != runlog.Finished {
			t.Fatalf("%s, resumed: %v", c.more, err)
		}
		if found, err := Verify(t.Context(), half, nil); err != nil || !allHold(found) {
			t.Errorf("%s, resumed: %v, %v", c.more, found, err)
		}
		var public map[string]any
		if err := json.Unmarshal(info.Public, &public); err != nil {
			t.Fatal(err)
		}
		if _, shifted := public["shifted"]; shifted == c.earlier {
			t.Errorf("%s: public.shifted is %v", c.more, shifted)
		}
		if c.earlier {
			continue
		}
		if info, err = runlog.ReadInfo(edited); err != nil {
			t.Fatal(err)
		}
		delete(public, "shifted")
		delete(public, "label_min")
		if info.Public, err = json.Marshal(public); err != nil {
			t.Fatal(err)
		}
		if err := runlog.WriteInfo(edited, info); err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(t.Context(), edited, Env{Workers: 1}); err == nil {
			t.Errorf("%s: goes on with margins that are not shifted", c.more)
		}
	}
}

// Shards sum no labels, and say so where a method is set that needs them.
func TestLabelsOfShards(t *testing.T) {
	t.Parallel()
	linear := ofAge(t, "adassp", filepath.Join("..", "examples", "clinic", "schema.yaml"))
	j, _ := begin(t, t.TempDir(), "whole", "method: {name: adassp}", slices.Clone(linear)...)
	wantInput(t, j.Allows(job.OnWorkers), "shards sum no labels")
}
