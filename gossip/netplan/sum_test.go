package netplan

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/run"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
)

// sumSpec writes a spec of ten owners of the clinic's rows with other fields of the block network, and after it.
func sumSpec(t *testing.T, network, rest string) string {
	t.Helper()
	schema, err := filepath.Abs("../../examples/clinic/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sum.yaml")
	text := "schema: " + schema + "\nmodel: {name: logistic, l2: 0.0005}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\nnetwork: {owners: 10, " + network + "}\n" + rest
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The plan of a network of mode sum is that of one table, and its other ε is what one owner's share leaves: for ten owners and three
// colluders at ε = 1 it is 2.95 (issue 27).
func TestPlanOfSum(t *testing.T) {
	spec, err := run.LoadSpec(sumSpec(t, "mode: sum, colluders: 3, retries: 0", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := PrepareJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	if j.Facts.Owners != 10 || j.Facts.Colluders != 3 || j.Facts.Rows != 4000 || j.Facts.Presence {
		t.Errorf("facts %+v", j.Facts)
	}
	if !privacy.Contains[privacy.Shared](j.Plan) || privacy.Contains[privacy.Gaussian](privacy.Map(j.Plan, func(e privacy.Event) privacy.Event {
		if s, ok := e.(privacy.Shared); ok {
			return privacy.PureDP{Epsilon: s.Of.(privacy.Gaussian).Sigma}
		}
		return e
	})) {
		t.Errorf("the plan %v has noise that is not shared", j.Plan)
	}
	if epsilon := j.Cost(j.Plan); epsilon > 1 || epsilon < 0.999 {
		t.Errorf("ε = %v of the plan; want 1", epsilon)
	}
	if alone := j.Alone(); math.Abs(alone-2.953) > 0.001 {
		t.Errorf("ε = %v against all others (%v); want 2.953", alone, err)
	}
	if again, err := run.LoadSpec(sumSpec(t, "mode: sum, colluders: 3, retries: 5", ""), nil); err != nil {
		t.Fatal(err)
	} else if more, err := PrepareJob(again); err != nil || more.Cost(more.Plan) > 1 || !privacy.Contains[privacy.Retried](more.Plan) {
		t.Errorf("five retries are not in the plan: %v", err)
	} else if long, longer := method.MaxSteps(j.Method), method.MaxSteps(more.Method); longer < long-5 { // one gradient with five retries would cost six
		t.Errorf("auto takes %d steps, with retries %d: it chooses as if each step paid for all retries", long, longer)
	}
	if _, err := run.Prepare(spec); err == nil || !strings.Contains(err.Error(), "sotto node") {
		t.Errorf("a run of one table: %v; want an error that names sotto node", err)
	}
	p, err := Prepare(sumSpec(t, "mode: sum, colluders: 3, rows: [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]", ""), Options{Apart: true})
	if err != nil {
		t.Fatal(err)
	}
	own := p.JobOf(4, "rows.csv")
	if own.Sum.Own() != 500 || own.Facts.Rows != 5500 || own.Spec.Data != "rows.csv" || p.Job.Spec.Data != "" {
		t.Errorf("own rows %d, all rows %d, data %q", own.Sum.Own(), own.Facts.Rows, own.Spec.Data)
	}
}

func TestSumRefuses(t *testing.T) {
	for name, c := range map[string]struct{ network, rest, want string }{
		"unknown mode":     {"mode: add", "", `mode: found "add"`},
		"no colluders":     {"mode: sum", "", "colluders: it is missing"},
		"nobody honest":    {"mode: sum, colluders: 9", "", "colluders: found 9; write a number from 0 to 8"},
		"negative":         {"mode: sum, colluders: 1, retries: -1", "", "retries: found -1"},
		"a graph":          {"mode: sum, colluders: 1, graph: ring", "", "graph: found it beside mode: sum"},
		"a gossip method":  {"mode: sum, colluders: 1, method: dda", "", "method: found it beside mode: sum"},
		"sums in gossip":   {"colluders: 1", "", "colluders: found it in mode: gossip"},
		"a search":         {"mode: sum, colluders: 1", "method: {name: opt-ls}\n", `method.name: found "opt-ls"`},
		"a choice":         {"mode: sum, colluders: 1", "method: {name: privgene}\n", `method.name: found "privgene"`},
		"noise of Laplace": {"mode: sum, colluders: 1", "method: {name: majority}\n", `method.name: found "majority"`},
		"a holdout":        {"mode: sum, colluders: 1", "holdout: 0.2\n", "holdout: found it beside network"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(sumSpec(t, c.network, c.rest), Options{Apart: true})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
	file := sumSpec(t, "mode: sum, colluders: 1", "lab: true\n")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), "{epsilon: 1, delta: 1e-5, adjacency: add-or-remove}", "none", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(file, Options{Apart: true}); err == nil || !strings.Contains(err.Error(), "privacy: found none beside network.mode: sum") {
		t.Errorf("without noise: %v", err)
	}
}
