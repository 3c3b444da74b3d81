package run

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/ledger"
)

// The values of the axes of a run on one table.
var axes = []struct {
	name   string
	values []string
}{
	{"method", []string{"method: {name: gd, steps: 6}", "method: {name: sgd, steps: 6, batch: 120}", "method: {name: sgd, steps: 6, batch: 120, sampling: allocation}",
		"method: {name: agd}", "method: {name: amp}", "method: {name: auto}", "method: {name: majority}"}},
	{"holdout", []string{"", "holdout: 0.25"}},
	{"lab", []string{"", "lab: true", "lab: true\nseed: 5", "seed: 5"}},
	{"privacy", []string{"privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}", "privacy: {epsilon: 1, delta: 1e-5, adjacency: replace-one}",
		"privacy: {epsilon: 1, delta: 0, adjacency: add-or-remove}", "privacy: none"}},
	{"unit", []string{"", "unit"}},
}

// TestAllows: each point of the product of the axes is refused, by a sentence that begins with a field of the spec and says what to do, before
// anything is on disk; or it trains, is stopped, resumes, and verifies.
func TestAllows(t *testing.T) {
	race.Skip(t) // one goroutine for each, and nothing shared
	t.Parallel()
	base := t.TempDir()
	schema := tableOfAxes(t, base)
	var trained, refused int
	reasons := map[string]int{}
	var point func(i int, chosen []string)
	point = func(i int, chosen []string) {
		if i < len(axes) {
			for _, v := range axes[i].values {
				point(i+1, append(chosen[:i:i], v))
			}
			return
		}
		dir := filepath.Join(base, fmt.Sprint(trained+refused))
		name := strings.Join(chosen, " | ")
		text := fmt.Sprintf("data: %s\nschema: %s\nmodel: {name: logistic, l2: 0.01}\nledger: %s\nout: %s\n%s\n", filepath.Join(base, "t.csv"), schema[chosen[4]],
			dir+".db", dir, strings.Join(chosen[:4], "\n"))
		err := train(t.Context(), dir, text)
		var input *InputError
		switch {
		case err == nil:
			trained++
		case errors.As(err, &input):
			refused++
			reasons[input.Err.Error()]++
			if _, statErr := os.Stat(dir); !os.IsNotExist(statErr) {
				t.Errorf("%s: refused, and %s is there: %v", name, dir, err)
			}
			if field, rest, ok := strings.Cut(input.Err.Error(), ":"); !ok || strings.ContainsRune(field, ' ') || len(rest) < 20 {
				t.Errorf("%s: the refusal names no field, or does not say what to do: %v", name, err)
			}
		default:
			t.Errorf("%s: %v", name, err)
		}
	}
	point(0, make([]string, 0, len(axes)))
	for why, n := range reasons {
		t.Logf("%d times: %s", n, why)
	}
	t.Logf("%d trained, resumed and verified; %d refused", trained, refused)
	if trained < 40 || refused < 40 {
		t.Errorf("%d trained, %d refused", trained, refused)
	}
}

// train trains by a spec until the third charge, or the end, resumes and verifies.
func train(ctx context.Context, dir, text string) error {
	file := dir + ".yaml"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	spec, err := LoadSpec(file, nil)
	if err != nil {
		return err
	}
	job, err := Prepare(spec)
	if err != nil {
		return err
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	_, _, err = Fit(stopping, job, Env{Workers: 1, Progress: func(Progress) { stop() }})
	if errors.Is(err, ErrInterrupted) {
		_, err = Resume(ctx, dir, Env{Workers: 1})
		if input := (*InputError)(nil); errors.As(err, &input) && strings.Contains(err.Error(), "does not resume") {
			return nil // this crossing is refused as it says
		}
	}
	if err != nil {
		return fmt.Errorf("%v", err) // no refusal beforehand
	}
	l, err := ledger.View(ctx, dir+".db")
	if err != nil {
		return fmt.Errorf("%v", err)
	}
	defer l.Close()
	found, err := Verify(ctx, dir, l)
	if err != nil {
		return fmt.Errorf("%v", err)
	}
	for _, f := range found {
		if !f.Holds {
			return fmt.Errorf("%s does not hold: %s", f.What, f.Detail)
		}
	}
	return nil
}

// tableOfAxes writes a table and its schemas: of records, and of units of some rows.
func tableOfAxes(t *testing.T, dir string) map[string]string {
	t.Helper()
	const rows = 1200
	var b strings.Builder
	b.WriteString("id,a,b,y\n")
	for i := range rows {
		a, c := float64(i*7919%2000)/1000-1, float64(i*104729%2000)/1000-1
		y := 0
		if 2*a-c > 0 {
			y = 1
		}
		fmt.Fprintf(&b, "%d,%v,%v,%d\n", i/3, a, c, y)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("t.csv", b.String())
	const columns = "columns:\n  - {name: id, type: %s}\n  - {name: a, type: numeric, min: -1, max: 1}\n  - {name: b, type: numeric, min: -1, max: 1}\n  - {name: y, type: label, classes: [\"0\", \"1\"]}\n"
	const head = "format: {kind: csv, header: true}\n"
	return map[string]string{
		"":     write("s.yaml", "dataset: axes\nrows: 1200\n"+head+fmt.Sprintf(columns, "ignore")),
		"unit": write("u.yaml", "dataset: axes\nunits: 400\nunit: {name: person, rows: 3}\n"+head+fmt.Sprintf(columns, "unit")),
	}
}

// What a run has of the axes is asked where their values are: not in the fold, nor around it.
func TestFoldKnowsNoFeature(t *testing.T) {
	for _, file := range []string{"fold.go", "session.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var asks ast.Node
			switch n := n.(type) {
			case *ast.IfStmt:
				asks = n.Cond
			case *ast.CaseClause:
				asks = &ast.CompositeLit{Elts: n.List}
			case *ast.SwitchStmt:
				if n.Tag != nil {
					asks = n.Tag
				}
			}
			if asks == nil {
				return true
			}
			ast.Inspect(asks, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Lab", "Seed", "Held", "held", "Sum", "Owner", "Shards", "summer", "pool", "Network", "Off"}, s.Sel.Name) {
					t.Errorf("%s asks for %s: ask it where its axis is (right.go, source.go, owners.go, holdout.go), or refuse the pair in allows.go", file, s.Sel.Name)
				}
				return true
			})
			return true
		})
	}
}
