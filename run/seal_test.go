package run

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/leaves"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// The report is written before the settlement, which holds the hash of every final file.
func TestC1SettlementSealsTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
	l := openLedger(t, dir)
	defer l.Close()
	report := func(at string, _ *ledger.History) error {
		info, err := runlog.ReadInfo(at)
		if err != nil {
			return err
		}
		known, err := l.Run(t.Context(), info.ID)
		if err != nil || known.State != ledger.StateOpen || info.Status != runlog.Finished {
			t.Errorf("while the report is written: %v, %v, %v", info.Status, known.State, err)
		}
		return os.WriteFile(filepath.Join(at, runlog.ReportFile), []byte("a report"), 0o600)
	}
	info, _, err := Fit(t.Context(), job, Env{Report: report})
	if err != nil {
		t.Fatal(err)
	}
	known, err := l.Run(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	now, err := runlog.Seal(out)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(known.Settlement.Seal, now) {
		t.Errorf("the settlement holds %v; the files are %v", known.Settlement.Seal, now)
	}
	names := slices.Sorted(maps.Keys(now))
	if want := []string{"events.jsonl", "model.json", "releases.bin", "report.html", "run.json", "steps.jsonl"}; !slices.Equal(names, want) {
		t.Errorf("sealed are %v; want %v", names, want)
	}
	if _, err := l.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// What of run.json follows from no other file of a run directory, each with the reason.
var free = map[string]string{
	"started":              "a time",
	"finished":             "a time, not before the other",
	"version":              "which program ran",
	"binary":               "likewise",
	"go":                   "which compiler built it",
	"platform":             "where it ran: elsewhere a replay is compared to 1e-9",
	"kernels":              "likewise",
	"spec_file":            "a path outside the directory",
	"data":                 "likewise",
	"test":                 "likewise",
	"ledger":               "likewise",
	"ledger_head":          "in the ledger",
	"result.train_seconds": "a time",
	"result.test.log_loss": "a figure of the test rows, which are not in the directory",
	"result.test.auc":      "likewise",
}

func TestC1EveryLeafOfRunJSON(t *testing.T) {
	t.Parallel()
	example, err := filepath.Abs(filepath.Join("..", "examples", "clinic"))
	if err != nil {
		t.Fatal(err)
	}
	test := "\ntest: " + filepath.Join(example, "heldout.csv")
	for _, c := range []struct {
		name, more string
		states     int
		lab        bool
		also       []string // free, too
	}{
		{name: "auto", more: test},
		{name: "sgd", more: "method: {name: sgd, steps: 23, rate: 1, clip: 0.3}\noutput: ema 0.9" + test, states: 5},
		{name: "blsgd", more: "method: {name: blsgd, steps: 9, growth: adaptive}" + test},
		{name: "gd-2ns", more: "method: {name: gd-2ns}" + test},
		{name: "lab", more: "method: {name: sgd, steps: 9}\nlab: true\nseed: 5" + test, lab: true,
			also: []string{"seed", "result.lab_counts", "result.lab_counts.rows", "result.lab_counts.dropped", "warnings"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job, out := begin(t, dir, "run", c.more)
			if c.states > 0 {
				job.StateEvery = c.states
			}
			if _, _, err := Fit(t.Context(), job, Env{Report: page.Write, Version: "test"}); err != nil {
				t.Fatal(err)
			}
			own := maps.Clone(free)
			for _, name := range c.also {
				own[name] = "of a lab run alone"
			}
			l := openLedger(t, dir)
			defer l.Close()
			leaves.EditAll(t, filepath.Join(out, runlog.InfoFile), !c.lab, func(known bool) bool {
				book := l
				if !known {
					book = nil
				}
				found, err := Verify(t.Context(), out, book)
				return err == nil && !slices.ContainsFunc(found, func(f record.Finding) bool { return !f.Holds })
			}, own)
		})
	}
}

// With a ledger, any byte of the report that was changed is found.
func TestC1EveryByteOfTheReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
	info, _, err := Fit(t.Context(), job, Env{Report: page.Write})
	if err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, dir)
	defer l.Close()
	known, err := l.Run(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, runlog.ReportFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantSeal := func(b []byte, holds bool, what string) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		v := &Verification{Dir: out, Info: info}
		if err := v.sealed(l, known); err != nil {
			t.Fatal(err)
		}
		if f := v.Findings[0]; f.Holds != holds || !holds && !strings.Contains(f.Detail, runlog.ReportFile) {
			t.Errorf("%s: %+v", what, f)
		}
	}
	wantSeal(whole, true, "as it was")
	for i := range whole {
		if i%97 != 0 && i != len(whole)-1 {
			continue
		}
		b := slices.Clone(whole)
		b[i] ^= 1
		wantSeal(b, false, "one bit of byte "+strconv.Itoa(i))
	}
	wantSeal(whole[:len(whole)-1], false, "cut")
	wantSeal(append(slices.Clone(whole), '\n'), false, "longer")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	found, err := Verify(t.Context(), out, l)
	if err != nil || !slices.ContainsFunc(found, func(f record.Finding) bool { return f.What == "seal" && !f.Holds }) {
		t.Errorf("no report: %v, %v", found, err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHolds(t, dir, out)
}

// A run that was settled before there were seals says so, and holds.
func TestC1RunsFromBeforeSeals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
	info, _, err := Fit(t.Context(), job, Env{})
	if err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, dir)
	defer l.Close()
	known, err := l.Run(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	known.Settlement.Seal = nil
	v := &Verification{Dir: out, Info: info}
	if err := v.sealed(l, known); err != nil || !v.Findings[0].Holds || !strings.HasPrefix(v.Findings[0].Detail, "not sealed") {
		t.Errorf("%v, %v", v.Findings, err)
	}
}

// A line of steps.jsonl that its step does not give is found, to the bit.
func TestC1EveryLineOfSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "method: {name: sgd, steps: 23, rate: 1}")
	info, _, err := Fit(t.Context(), job, Env{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, runlog.StepsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rec := logOf(t, out)
	var all [][]runlog.Step
	for i, s := range rec.Steps {
		for _, other := range []runlog.Step{
			{T: s.T + 1, Rate: s.Rate, GradNorm: s.GradNorm, Moved: s.Moved},
			{T: s.T, Rate: math.Nextafter(s.Rate, 9), GradNorm: s.GradNorm, Moved: s.Moved},
			{T: s.T, Rate: s.Rate, GradNorm: math.Nextafter(s.GradNorm, 9), Moved: s.Moved},
			{T: s.T, Rate: s.Rate, GradNorm: s.GradNorm, Moved: math.Nextafter(s.Moved, 9)},
		} {
			edited := slices.Clone(rec.Steps)
			edited[i] = other
			all = append(all, edited)
		}
	}
	all = append(all, rec.Steps[:22], append(slices.Clone(rec.Steps), rec.Steps[22]), nil)
	for i, edited := range all {
		var b []byte
		for _, s := range edited {
			line, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			b = append(append(b, line...), '\n')
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if info.Hashes, err = runlog.Hashes(out); err != nil {
			t.Fatal(err)
		}
		if err := runlog.WriteInfo(out, info); err != nil { // run.json agrees: a digest that anybody can make
			t.Fatal(err)
		}
		found, err := Verify(t.Context(), out, nil)
		if err != nil || !slices.ContainsFunc(found, func(f record.Finding) bool { return f.What == runlog.StepsFile && !f.Holds }) {
			t.Errorf("edit %d: %v, %v", i, found, err)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}
