package run

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/trace"
)

// The report is written before the settlement, which holds the hash of every final file.
func TestC1SettlementSealsTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
	l := openLedger(t, dir)
	defer l.Close()
	report := func(at string) error {
		info, err := trace.ReadInfo(at)
		if err != nil {
			return err
		}
		known, err := l.Run(t.Context(), info.ID)
		if err != nil || known.State != ledger.StateOpen || info.Status != trace.Finished {
			t.Errorf("while the report is written: %v, %v, %v", info.Status, known.State, err)
		}
		return os.WriteFile(filepath.Join(at, trace.ReportFile), []byte("a report"), 0o600)
	}
	info, _, err := Fit(t.Context(), job, Env{Report: report})
	if err != nil {
		t.Fatal(err)
	}
	known, err := l.Run(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	now, err := trace.Seal(out)
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
