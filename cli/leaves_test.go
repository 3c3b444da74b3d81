package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/internal/leaves"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/record"
)

// Every edit of a run.json of a search or of an owner in a network is found, as those of a fit are (package run's test): with a
// ledger all, without one those of what follows from other files.
func TestC1EveryLeafOfSearchesAndOwners(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	dir, command := earlierFiles(t, "upgrade")
	spec := "data: patients.csv\nschema: schema.yaml\nmodel: {name: logistic}\nprivacy: {epsilon: 3, delta: 1e-5, adjacency: add-or-remove}\n" +
		"test: heldout.csv\ntune: {mean: 2, methods: [{name: sgd, steps: 10, rate: 1}, {name: gd, steps: 5}]}\n"
	if err := os.WriteFile(filepath.Join(dir, "tune.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	// A demonstration starts its own file, which is the command only under this name.
	program := filepath.Join(t.TempDir(), "sotto")
	self, err := os.ReadFile(command().Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, self, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"tune", "tune.yaml", "--out", "search", "--ledger", "search.db"},
		{"net", "demo", "net.yaml", "--dir", "demo"},
	} {
		c := command(args...)
		c.Path = program
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("sotto %v: %v\n%s", args, err, out)
		}
	}
	for _, c := range []struct {
		name, dir, ledger string
		free              map[string]string // places that follow from no other file
	}{
		{"search", "search", "search.db", map[string]string{
			"version": "which program ran", "binary": "likewise", "go": "which compiler built it", "platform": "where it ran", "kernels": "likewise",
			"spec_file": "a path outside the directory", "data": "likewise", "test": "likewise", "ledger": "likewise",
			"result.test.log_loss": "a figure of the test rows, which are not in the directory", "result.test.auc": "likewise",
		}},
		{"owner", "demo/owner-2/part", "demo/owner-2/ledger.db", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := ledger.Open(t.Context(), filepath.Join(dir, c.ledger))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			out := filepath.Join(dir, c.dir)
			holds := func(known bool) bool {
				book := l
				if !known {
					book = nil
				}
				found, err := party.Verify(t.Context(), out, book)
				return err == nil && !slices.ContainsFunc(found, func(f record.Finding) bool { return !f.Holds })
			}
			leaves.EditAll(t, filepath.Join(out, "run.json"), true, holds, c.free)
			files, err := os.ReadDir(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if f.Name() == ".lock" || f.Name() == "resume.token" { // they hold nothing of the run
					continue
				}
				path := filepath.Join(out, f.Name())
				before, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				os.WriteFile(path, append(slices.Clone(before), ' ', 'x'), 0o600)
				longer := holds(true)
				os.Remove(path)
				missing := holds(true)
				os.WriteFile(path, before, 0o600)
				if longer || missing || !holds(true) {
					t.Errorf("%s: longer: %v, missing: %v, as it was: %v", f.Name(), longer, missing, holds(true))
				}
			}
		})
	}
}
