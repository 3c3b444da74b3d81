//go:build !race

package examples_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
)

// TestAutoBumps: what the default method reaches where it chooses bumps for numeric columns and centers rows, on 80/20 splits by fixed
// seeds, add-or-remove, δ = 1e-5. No setting but the schema's bounds, which the publishers state.
func TestAutoBumps(t *testing.T) {
	t.Parallel()
	dir := needs.Data(t)
	for _, table := range []struct {
		name   string
		rows   []string // the first names the columns
		schema string
		bars   map[string]float64 // by ε
	}{
		{"ijcnn1", ijcnn1(t, dir), ijcnn1Schema(), map[string]float64{"0.1": 0.93, "1": 0.941}},
		{"covtype", covertype(t, dir), covertypeSchema(t, dir), map[string]float64{"0.1": 0.74, "1": 0.76}},
	} {
		got := map[string][]float64{}
		for seed := range 5 {
			spec, train80, test20 := fourFifths(t, table.name, table.rows, table.schema, "model: {name: logistic}", seed)
			for epsilon := range table.bars {
				info := train(t, spec, train80, test20, seed, run.Override{Path: "privacy.epsilon", Value: epsilon, From: "test"})
				got[epsilon] = append(got[epsilon], *info.Result.Test.Accuracy)
			}
		}
		for epsilon, bar := range table.bars {
			sort.Float64s(got[epsilon])
			t.Logf("%s, ε = %s: median %.4f of %.4f", table.name, epsilon, got[epsilon][2], got[epsilon])
			if got[epsilon][2] < bar {
				t.Errorf("%s, ε = %s: median accuracy %.4f, the bar is %.4f", table.name, epsilon, got[epsilon][2], bar)
			}
		}
	}
}

// fourFifths writes four fifths of the rows, the first of which names the columns, the others for a test, and a spec with that model at
// ε = 1.
func fourFifths(t *testing.T, name string, rows []string, schema, model string, seed int) (spec, train80, test20 string) {
	t.Helper()
	out, head, rows := t.TempDir(), rows[0], slices.Clone(rows[1:])
	rand.New(rand.NewPCG(uint64(seed), 22)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	cut := len(rows) * 4 / 5
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(out, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	csv := func(rows []string) string { return head + "\n" + strings.Join(rows, "\n") + "\n" }
	file("schema.yaml", fmt.Sprintf("dataset: %s\nrows: %d\n%s", name, cut, schema))
	spec = file("sotto.yaml", "schema: schema.yaml\n"+model+"\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n")
	return spec, file("train.csv", csv(rows[:cut])), file("test.csv", csv(rows[cut:]))
}

// lines reads a compressed file.
func lines(t *testing.T, path string) (list []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(z)
	for in.Scan() {
		if text := strings.TrimSpace(in.Text()); text != "" {
			list = append(list, text)
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// ijcnn1 is the table with names: its first ten features are one category, the others numbers.
func ijcnn1(t *testing.T, dir string) []string {
	t.Helper()
	rows := []string{"phase,v11,v12,v13,v14,v15,v16,v17,v18,v19,v20,v21,v22,y"}
	for _, line := range lines(t, filepath.Join(dir, "ijcnn1", "ijcnn1.gz")) {
		words := strings.Fields(line)
		cells := slices.Repeat([]string{"0"}, 14)
		for _, w := range words[1:] {
			var index int
			var value string
			if _, err := fmt.Sscanf(strings.Replace(w, ":", " ", 1), "%d %s", &index, &value); err != nil {
				t.Fatal(err)
			}
			if index <= 10 {
				cells[0] = fmt.Sprint(index)
			} else {
				cells[index-10] = value
			}
		}
		cells[13] = words[0]
		rows = append(rows, strings.Join(cells, ","))
	}
	return rows
}

func ijcnn1Schema() string {
	var b strings.Builder
	b.WriteString("columns:\n  - {name: phase, type: categorical, levels: [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\", \"10\"]}\n")
	for i := 11; i <= 22; i++ {
		fmt.Fprintf(&b, "  - {name: v%d, type: numeric, min: -1.4, max: 1.4}\n", i)
	}
	return b.String() + "  - {name: y, type: label, classes: [\"-1\", \"1\"]}\n"
}

// covertype is the sample with class 2 against the rest.
func covertype(t *testing.T, dir string) []string {
	t.Helper()
	rows := lines(t, filepath.Join(dir, "covtype-sample", "covtype-sample-15000.csv.gz"))
	for i, row := range rows[1:] {
		at := strings.LastIndex(row, ",")
		class := "other"
		if row[at+1:] == "2" {
			class = "two"
		}
		rows[i+1] = row[:at+1] + class
	}
	return rows
}

// covertypeSchema has the ranges that the description of the table states.
func covertypeSchema(t *testing.T, dir string) string {
	t.Helper()
	ranges := [][2]int{{1859, 3858}, {0, 360}, {0, 66}, {0, 1397}, {-173, 601}, {0, 7117}, {0, 254}, {0, 254}, {0, 254}, {0, 7173}}
	names := strings.Split(covertype(t, dir)[0], ",")
	var b strings.Builder
	b.WriteString("columns:\n")
	for i, name := range names[:len(names)-1] {
		if i < len(ranges) {
			fmt.Fprintf(&b, "  - {name: %s, type: numeric, min: %d, max: %d}\n", name, ranges[i][0], ranges[i][1])
		} else {
			fmt.Fprintf(&b, "  - {name: %s, type: categorical, levels: [\"1\"], unknown: zero}\n", name)
		}
	}
	return b.String() + fmt.Sprintf("  - {name: %s, type: label, classes: [other, two]}\n", names[len(names)-1])
}
