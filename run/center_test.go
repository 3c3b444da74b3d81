package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// TestCenteredRun: a run over rows less their mean verifies, goes on where it was broken, and its model file predicts as its own rows
// were taken. Without public.centered it is the run of an earlier build; one whose field or offset was edited neither verifies nor
// goes on.
func TestCenteredRun(t *testing.T) {
	t.Parallel()
	t.Run("logistic", func(t *testing.T) { centeredRun(t, "logistic", 1) })
	t.Run("softmax", func(t *testing.T) { centeredRun(t, "softmax", 2) })
}

func centeredRun(t *testing.T, name string, margins int) {
	dir := t.TempDir()
	job, whole := begin(t, dir, "whole", "method: {name: auto, center: mean, steps: 40}", Override{Path: "model.name", Value: name})
	if m := job.Method.(method.Auto); m.Center != method.CenterMean || !job.Facts.Centered {
		t.Fatalf("configured as %+v", m)
	}
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, dir)
	if found, err := Verify(t.Context(), whole, l); err != nil || !allHold(found) {
		t.Fatalf("%v, %v", found, err)
	}
	if rec := logOf(t, whole); rec.Charged() != 42 || rec.Released != 42 {
		t.Errorf("%d batches are charged, %d released; want the mean, 40 steps and the last release", rec.Charged(), rec.Released)
	}
	path := filepath.Join(whole, runlog.ModelFile)
	file, err := model.Read(path)
	if err != nil || len(file.Offset) != margins {
		t.Fatalf("the model's offset is %v: %v", file.Offset, err)
	}
	trained, err := LoadModel(whole)
	if err != nil {
		t.Fatal(err)
	}
	if s := trained.Model.(model.Staged).Stages(file.W)[0]; !slices.Equal(s.B, file.Offset) || file.MarginFactor != 0 {
		t.Errorf("the loaded model has the stage %+v", s)
	}
	broken(t, l, whole, fmt.Sprint(dir, "/broken"), 21, 21)
	broken(t, l, whole, fmt.Sprint(dir, "/edited"), 21, 21)
	l.Close()
	info, err := Resume(t.Context(), fmt.Sprint(dir, "/broken"), Env{Workers: 1})
	if err != nil || info.Status != runlog.Finished {
		t.Fatalf("resumed: %v", err)
	}
	if found, err := Verify(t.Context(), fmt.Sprint(dir, "/broken"), nil); err != nil || !allHold(found) {
		t.Errorf("resumed: %v, %v", found, err)
	}
	uncenter := func(dir string) {
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			t.Fatal(err)
		}
		var public map[string]any
		if err := json.Unmarshal(info.Public, &public); err != nil {
			t.Fatal(err)
		}
		if public["centered"] != true {
			t.Fatalf("public.centered is %v", public["centered"])
		}
		delete(public, "centered")
		if info.Public, err = json.Marshal(public); err != nil {
			t.Fatal(err)
		}
		if err := runlog.WriteInfo(dir, info); err != nil {
			t.Fatal(err)
		}
	}
	uncenter(fmt.Sprint(dir, "/edited"))
	if _, err := Resume(t.Context(), fmt.Sprint(dir, "/edited"), Env{Workers: 1}); err == nil || !strings.Contains(err.Error(), "rows less a center") {
		t.Errorf("a run whose rows are not centered goes on with centered ones: %v", err)
	}
	file.Offset = file.Offset.Times(1.5)
	if err := model.Write(path, file); err != nil {
		t.Fatal(err)
	}
	if found, err := Verify(t.Context(), whole, nil); err == nil && allHold(found) {
		t.Errorf("verifies with another offset: %v", found)
	}
}

// Shards take no center from their rows.
func TestCenterOfShards(t *testing.T) {
	t.Parallel()
	j, _ := begin(t, t.TempDir(), "whole", "method: {name: auto, center: mean}")
	var input *InputError
	if err := j.Allows(job.OnWorkers); !errors.As(err, &input) || !strings.Contains(err.Error(), "method.center: found mean; with --workers write none") {
		t.Errorf("centered rows on shards: %v", err)
	}
}
