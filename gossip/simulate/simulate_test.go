package simulate

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
)

const clinic = "../../examples/clinic/"

// spec writes a spec file of the clinic's table with this block network, and returns its path.
func spec(t *testing.T, block string) string {
	t.Helper()
	dir, err := filepath.Abs(clinic)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "sotto.yaml")
	text := "schema: " + dir + "/schema.yaml\ntest: " + dir + "/heldout.csv\nmodel: {name: logistic, l2: 0.0005}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n" +
		strings.ReplaceAll(block, "CLINIC", dir)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func flag(path, value string) run.Override {
	return run.Override{Path: path, Value: value, From: "test"}
}

// Rows come to owners by a hash, by a column or by files; each owner's cost is that of its activations, and
// the largest is within the budget and near it.
func TestWays(t *testing.T) {
	for name, block := range map[string]string{
		"hash":    "data: CLINIC/patients.csv\nnetwork: {owners: 5, graph: ring, edges: 1, rounds: 60}",
		"column":  "data: CLINIC/patients.csv\nnetwork: {column: ward, rows: [1700, 800, 800, 700], graph: path, method: {name: dda, batch: 64}}",
		"files":   "network: {files: [CLINIC/patients.csv, CLINIC/heldout.csv], rows: [4000, 1000], schedule: all, rounds: 30, method: {name: dgd}}",
		"replace": "network: {files: [CLINIC/patients.csv, CLINIC/heldout.csv], rows: [4000, 1000], schedule: all, rounds: 30, method: {name: dda, batch: 200}}",
		"random":  "data: CLINIC/patients.csv\nnetwork: {owners: 6, graph: random, probability: 0.8, seed: 3, schedule: edges, edges: 3, method: {name: dda, refresh_inactive: true}}",
		"laplace": "data: CLINIC/patients.csv\nnetwork: {owners: 3, schedule: all, rounds: 20, method: laplace-dgd}",
	} {
		t.Run(name, func(t *testing.T) {
			flags := []run.Override{flag("seed", "1")}
			if name == "replace" {
				flags = append(flags, flag("privacy.adjacency", privacy.ReplaceOne.String()))
			}
			p, err := New(spec(t, block), netplan.Options{Flags: flags})
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Run(t.Context(), Env{})
			if err != nil {
				t.Fatal(err)
			}
			most := 0.0
			for i, o := range r.Owners {
				most = max(most, *o.Epsilon)
				if o.Activations != p.Schedule.Counts()[i] {
					t.Errorf("%s has %d activations, the schedule says %v", o.Name, o.Activations, p.Schedule.Counts())
				}
			}
			if name == "laplace" { // priced as pure ε, reported by the best accountant
				if most > 1 || most < 0.1 {
					t.Errorf("the largest ε is %v", most)
				}
			} else if most > 1 || most < 0.99 {
				t.Errorf("the largest ε is %v, the budget 1", most)
			}
			if *r.Test.Accuracy < 0.75 && name != "laplace" {
				t.Errorf("accuracy %v", *r.Test.Accuracy)
			}
			again, err := New(p.Spec.File, netplan.Options{Flags: flags})
			if err != nil {
				t.Fatal(err)
			}
			s, err := again.Run(t.Context(), Env{})
			if err != nil {
				t.Fatal(err)
			}
			for j := range r.W {
				if r.W[j] != s.W[j] {
					t.Fatalf("a second run of the same seed differs")
				}
			}
		})
	}
}

// Every row is at most at one owner, and by a hash at exactly one.
func TestRowsAreDivided(t *testing.T) {
	p, err := New(spec(t, "data: CLINIC/patients.csv\nnetwork: {owners: 8}"), netplan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tables, _, err := p.Tables(t.Context(), "run", "test", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, table := range tables {
		n := table.Rows()
		sum += n
		// Of 4,000 coins of 1/8: beyond six standard deviations once in 5e8.
		if math.Abs(float64(n)-500) > 6*math.Sqrt(4000*7./64) {
			t.Errorf("an owner has %d rows", n)
		}
	}
	if sum != 4000 {
		t.Errorf("%d rows in all", sum)
	}
	if p, err = New(spec(t, "data: CLINIC/patients.csv\nnetwork: {column: ward}"), netplan.Options{}); err != nil {
		t.Fatal(err)
	}
	if tables, _, err = p.Tables(t.Context(), "run", "test", false, nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1740, 715 + 70, 771, 704} { // a missing ward counts as general: the schema's rule
		if n := tables[i].Rows(); n != want {
			t.Errorf("owner %d has %d rows, want %d", i, n, want)
		}
	}
}

// Rows of one unit go to one owner, the one that most of them name.
func TestUnitsAreDivided(t *testing.T) {
	p, err := New(spec(t, "data: CLINIC/patients.csv\nnetwork: {column: ward}"), netplan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table, _, err := data.Read(t.Context(), &datatest.Gate{}, p.Job.Schema, p.Spec.Data, data.Options{Formats: source.Formats()})
	if err != nil {
		t.Fatal(err)
	}
	named := p.byColumn(table)
	unit := make([]int32, len(named))
	for row := range unit {
		unit[row] = int32(row / 5)
	}
	table.SetUnits(unit)
	owner := p.byColumn(table)
	byHash, err := p.byHash([]*data.Table{table})
	if err != nil {
		t.Fatal(err)
	}
	if len(owner) != len(unit)/5 || len(byHash) != len(owner) {
		t.Fatalf("%d owners by column, %d by hash, of %d units", len(owner), len(byHash), len(unit)/5)
	}
	for u, k := range owner {
		times := map[int]int{}
		for _, v := range named[5*u : 5*u+5] {
			times[v]++
		}
		for other, n := range times {
			if n > times[k] || n == times[k] && other < k {
				t.Errorf("unit %d with rows of %v goes to owner %d", u, times, k)
			}
		}
	}
}

// A dataset with a guarantee is not looked at unless asked for, and the ledger then says so.
func TestLedger(t *testing.T) {
	file := spec(t, "data: CLINIC/patients.csv\nledger: LEDGER\nnetwork: {owners: 3, rounds: 5, schedule: all}")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	dir, _ := filepath.Abs(clinic)
	fit, err := run.LoadSpec(dir+"/sotto.yaml", []run.Override{flag("method", "{name: sgd, steps: 3}"), flag("ledger", ledger), flag("out", filepath.Join(t.TempDir(), "out"))})
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.Prepare(fit)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := run.Fit(t.Context(), job, run.Env{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "LEDGER", ledger)), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := New(file, netplan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), Env{}); !errors.Is(err, access.ErrProtected) {
		t.Fatalf("found %v", err)
	}
	said := ""
	if _, err := p.Run(t.Context(), Env{Void: true, Notice: func(text string) { said += text }}); err != nil || !strings.Contains(said, "as not private") {
		t.Fatalf("found %v, said %q", err, said)
	}
}

// Mistakes are told with their place.
func TestMistakes(t *testing.T) {
	for block, want := range map[string]string{
		"data: d":                                                            ":1:1: field \"network\" is missing",
		"data: d\nnetwork: 3":                                                ":6:10: network: found 3; write a block of fields",
		"data: d\nnetwork: {owner: 3}":                                       ":6:11: unknown field \"owner\"",
		"data: d\nnetwork: {}":                                               ":6:1: network.owners: found 0 ways",
		"data: d\nnetwork: {owners: 3, column: a}":                           "found 2 ways",
		"network: {owners: 3}":                                               "found no table to divide",
		"data: d\nnetwork: {files: [a, b]}":                                  "found them beside data",
		"network: {files: [a]}":                                              "found 1; a network needs 2 or more",
		"data: d\nnetwork: {owners: 1}":                                      ":6:11: network.owners: found 1; write a whole number from 2 to 10000",
		"data: d\nnetwork: {column: age}":                                    ":6:11: network.column: found \"age\"; choose a categorical column",
		"data: d\nnetwork: {owners: 3, rows: [1,2]}":                         ":6:22: network.rows: found 2 numbers for 3 owners",
		"data: d\nnetwork: {owners: 9999}":                                   "network.rows: found 0 for owner 1",
		"data: d\nnetwork: {owners: 3, graph: x}":                            ":6:22: network.graph: found \"x\"",
		"data: d\nnetwork: {owners: 3, graph: file}":                         "network.edge_list: found no file",
		"data: d\nnetwork: {owners: 3, probability: 0.1}":                    "set it only for a random graph",
		"data: d\nnetwork: {owners: 9, graph: random, probability: 0.01}":    "no path from node 0",
		"data: d\nnetwork: {owners: 3, schedule: x}":                         "network.schedule:",
		"data: d\nnetwork: {owners: 9, rounds: 2, edges: 1}":                 "never activated",
		"data: d\nnetwork: {owners: 3, method: x}":                           "network.method: name: unknown gossip method \"x\"; choose dda",
		"data: d\nnetwork: {owners: 3, method: {name: dda, gama: 1}}":        ":6:42: unknown field \"gama\"",
		"data: d\nnetwork: {owners: 3, method: {name: dda, batch: 1.5}}":     ":6:42: network.method.batch: found 1.5; write a whole number",
		"data: d\nnetwork: {owners: 3, method: {name: dda, batch: 1000000}}": ":6:42: network.method.batch: found 1000000",
		"data: d\nout: x\nnetwork: {owners: 3}":                              ":6:1: out: found it beside network",
		"data: d\noutput: last\nnetwork: {owners: 3}":                        ":6:1: output: found it beside network",
		"data: d\nmethod: {name: sgd}\nnetwork: {owners: 3}":                 ":6:1: method: found it beside network",
	} {
		_, err := New(spec(t, block), netplan.Options{})
		var input *run.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\nfound %v\nwant  %s", block, err, want)
		}
	}
	_, err := New(spec(t, "data: d\nnetwork: {owners: 3}"), netplan.Options{Flags: []run.Override{flag("privacy.adjacency", privacy.ReplaceOne.String())}})
	if err == nil || !strings.Contains(err.Error(), "under replace-one") {
		t.Errorf("found %v", err)
	}
}
