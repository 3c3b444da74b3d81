package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

func wantInput(t *testing.T, err error, text string) {
	t.Helper()
	var input *InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), text) {
		t.Errorf("found error %v; want one of input that says %q", err, text)
	}
}

// A lab run that goes on looks again: what the ledger knows by then, it records (R3).
func TestResumedLabRunIsRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := stopped(t, dir, "lab: true\n"+poisson(4))
	l := openLedger(t, dir)
	defer l.Close()
	if err := l.SetBudget(t.Context(), "clinic", "record", "", privacy.Budget{Epsilon: 5, Delta: 1e-5, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	env := stopAt(1, stop)
	if _, err := Resume(ctx, out, env); !errors.Is(err, access.ErrProtected) {
		t.Errorf("a lab run on rows that are protected by now: %v", err)
	}
	env.Void = true
	_, err := Resume(ctx, out, env)
	wantErr(t, err, ErrInterrupted)
	if d, err := l.Dataset(t.Context(), "clinic"); err != nil || d.Void == nil {
		t.Errorf("the second look of a lab run is not in the ledger: %+v, %v", d, err)
	}
}

// A run that reserved a budget is no lab run and has no seed, whatever is written
// into its run.json.
func TestPaidRunCannotPassForLab(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := stopped(t, dir, poisson(4))
	events, err := os.ReadFile(filepath.Join(out, runlog.EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(7)
	for _, c := range []struct {
		change func(*runlog.Info)
		want   string
	}{
		{func(i *runlog.Info) { i.Lab = true }, "it reserved a budget"},
		{func(i *runlog.Info) { i.Seed = &seed }, "`lab: true`"},
		{func(i *runlog.Info) { i.Off = true }, "`lab: true`"},
		{func(i *runlog.Info) { i.Lab, i.Seed = true, &seed }, "it reserved a budget"},
		{func(i *runlog.Info) { i.Unit = "person" }, `the schema is of the dataset "clinic" by record, the run of "clinic" by person`},
		{func(i *runlog.Info) { i.Dataset = "other" }, `the run of "other"`},
		{func(i *runlog.Info) { // more and cheaper steps, as if those so far had been such
			i.Plan = bytes.ReplaceAll(i.Plan, []byte(`"sigma": `), []byte(`"sigma": 9`))
			if err := os.WriteFile(filepath.Join(out, runlog.EventsFile), bytes.ReplaceAll(events, []byte(`"sigma":`), []byte(`"sigma":9`)), 0o600); err != nil {
				t.Error(err)
			}
		}, "another plan than the one that the budget was reserved for"},
		{func(i *runlog.Info) { i.Budget.Adjacency = privacy.ReplaceOne }, ""},
	} {
		info, err := runlog.ReadInfo(out)
		if err != nil {
			t.Fatal(err)
		}
		changed := *info
		c.change(&changed)
		if err := runlog.WriteInfo(out, &changed); err != nil {
			t.Fatal(err)
		}
		if _, err = Resume(t.Context(), out, Env{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found error %v; want %q", err, c.want)
		}
		if err := os.WriteFile(filepath.Join(out, runlog.EventsFile), events, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := runlog.WriteInfo(out, info); err != nil {
			t.Fatal(err)
		}
	}
}

// What a run cannot have as its directory it leaves as it is.
func TestDirectoryOfAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), out); err != nil {
		t.Skip(err)
	}
	_, _, err := Fit(t.Context(), job, Env{})
	var input *InputError
	if !errors.As(err, &input) {
		t.Errorf("found error %v; want one of the input", err)
	}
	if _, err := os.Lstat(out); err != nil {
		t.Errorf("the link is gone: %v", err)
	}
	// Of several processes at once one gets the directory, and the others leave what
	// it writes.
	for i := range 200 {
		out := filepath.Join(dir, "other", strconv.Itoa(i))
		var all sync.WaitGroup
		var won atomic.Int32
		for range 8 {
			all.Go(func() {
				s := &Session{Job: &Job{Spec: &Spec{Out: out}}, Info: &runlog.Info{ID: "r"}}
				if _, err := s.makeDir(); err == nil {
					won.Add(1)
					if err := os.WriteFile(filepath.Join(out, runlog.InfoFile), nil, 0o600); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if _, err := os.Stat(filepath.Join(out, runlog.InfoFile)); err != nil || won.Load() != 1 {
			t.Fatalf("round %d: %d processes have the directory, %v", i, won.Load(), err)
		}
	}
}

// A spec that was made in Go does not escape the rules of a file's.
func TestLabOnlyWithoutAFile(t *testing.T) {
	spec := func() *Spec {
		file, _ := clinicSpec(t, t.TempDir(), "run", "")
		s, err := LoadSpec(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, seed := spec(), uint64(1)
	s.Seed = &seed
	_, err := Prepare(s)
	wantInput(t, err, "seeded noise protects nobody")
	s = spec()
	s.Privacy.Off = true
	_, err = Prepare(s)
	wantInput(t, err, "`none` needs `lab: true`")
}

// Gaussian noise has no guarantee at δ = 0.
func TestDeltaZero(t *testing.T) {
	file, _ := clinicSpec(t, t.TempDir(), "run", "method: {name: sgd}")
	s, err := LoadSpec(file, []Override{{Path: "privacy.delta", Value: "0", From: "--delta"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Prepare(s)
	wantInput(t, err, "--delta: privacy.delta: found 0")
}

// Naming the method that it is anyway keeps the block; naming another replaces it.
func TestNamingAMethod(t *testing.T) {
	file, _ := clinicSpec(t, t.TempDir(), "run", "method: {name: sgd, steps: 7}")
	bare, _ := clinicSpec(t, t.TempDir(), "bare", "")
	for _, c := range []struct {
		file string
		over []Override
		want method.SGD
	}{
		{file, []Override{{Path: "method.name", Value: `"sgd"`, From: "--method"}}, method.SGD{Steps: 7}},
		{bare, []Override{{Path: "method.clip", Value: "2", From: "--set"}, {Path: "method.name", Value: "sgd", From: "--set"}}, method.SGD{Gradient: method.Gradient{Clip: 2}}},
	} {
		s, err := LoadSpec(c.file, c.over)
		if err != nil {
			t.Fatal(err)
		}
		if s.Method != method.Method(c.want) {
			t.Errorf("%s: found %+v; want %+v", filepath.Base(c.file), s.Method, c.want)
		}
	}
	s, err := LoadSpec(file, []Override{{Path: "model.l2", Value: "0.5", From: "--set"}, {Path: "model.name", Value: "svm", From: "--model"}})
	if err != nil || !reflect.DeepEqual(s.Model, ModelSpec{Name: "svm", Config: model.SVM{}}) {
		t.Errorf("another model: %+v, %v", s.Model, err)
	}
}
