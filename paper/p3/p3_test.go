//go:build !race

// Left out under the race detector, which makes a minute of arithmetic ten; .ci/run runs
// it without.
package p3

import (
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
)

// tiny is enough to see that all parts are there.
var tiny = Size{Name: "tiny", Dense: [2]int{40, 20}, Sparse: [2]int{40, 60}, Batch: 8}

// TestRun: figures, curves and page are written, complete and well formed, and what does not hang on the size holds or fails as it should.
func TestRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	told := 1
	r, err := tiny.Run(context.Background(), "", dir, func(runs, all int) { told = all - runs })
	if err != nil {
		t.Fatal(err)
	}
	if told != 0 {
		t.Errorf("progress ended %d runs too early", told)
	}
	if want := 2 * (2*(4*5+1) + 5); len(r.Curves) != want || len(r.Claims) != 2+2*7 || len(r.Costs) != 20 {
		t.Errorf("%d curves, want %d; %d claims, %d costs", len(r.Curves), want, len(r.Claims), len(r.Costs))
	}
	if want := []string{"figures1-2.csv", "figures1-2.svg", "figures3-4.svg", "true-epsilon.csv", "true-epsilon.svg", "index.html"}; !slices.Equal(r.Files, want) {
		t.Errorf("wrote %q", r.Files)
	}
	for _, name := range r.Files {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); strings.Contains(text, "NaN") || strings.Contains(text, "Inf,") {
			t.Errorf("%s holds what is no number", name)
		}
		switch filepath.Ext(name) {
		case ".csv":
			if lines, err := csv.NewReader(strings.NewReader(string(b))).ReadAll(); err != nil || len(lines) < 20 {
				t.Errorf("%s: %d lines, %v", name, len(lines), err)
			}
		case ".svg":
			d := xml.NewDecoder(strings.NewReader(string(b)))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
			}
		}
	}
	for _, c := range r.Claims[:2] {
		if c.Holds {
			t.Errorf("%s holds: %s", c.Name, c.Found)
		}
	}
	for _, c := range r.Costs { // S-3's table
		for _, want := range []struct {
			table                    string
			share, claimed, noise, e float64
		}{{"epsilon", 0.1, 0.2, 0.25215, 28.08}, {"epsilon", 0.1, 1, 0.05043, 2422}, {"epsilon", 0.2, 0.2, 0.35659, 6.57}, {"epsilon", 0.2, 1, 0.07132, 1154}, {"rcv1", 0.1, 1, 0.03875, 4185}} {
			if c.Table == want.table && c.Share == want.share && c.Claimed == want.claimed && !(math.Abs(c.True/want.e-1) < 1e-2 && math.Abs(c.Noise/want.noise-1) < 1e-3) {
				t.Errorf("%+v, want %+v", c, want)
			}
		}
	}
	again, err := newTables()[0].run(context.Background(), tiny, tenth, "l2", 0.8)
	if err != nil {
		t.Fatal(err)
	}
	if first := r.find("epsilon-shaped", "l2", tenth, 0.8); !slices.Equal(first.Objective, again.Objective) {
		t.Errorf("a second run differs: %v, %v", first.Objective, again.Objective)
	}
}

func newTables() []*table {
	return []*table{dense(tiny.Dense[0], tiny.Dense[1]), sparse(tiny.Sparse[0], tiny.Sparse[1])}
}

// TestTables: rows have a norm of 1, just below, on the table's unit.
func TestTables(t *testing.T) {
	for _, table := range newTables() {
		positive, rows := 0, 0
		for _, own := range table.own {
			if own.Rows() != table.q {
				t.Errorf("%s: an owner has %d rows of %d", table.name, own.Rows(), table.q)
			}
			for _, b := range own.Blocks {
				for i := range b.N {
					var x []float32
					if b.Start != nil {
						x = b.Val[b.Start[i]:b.Start[i+1]]
						if !slices.IsSorted(b.Col[b.Start[i]:b.Start[i+1]]) {
							t.Fatal("columns out of order")
						}
					} else {
						x = b.X[i*b.Dim : (i+1)*b.Dim]
					}
					square := 0.0
					for _, v := range x {
						square += float64(v) * float64(v)
						if u := float64(v) / unit; u != math.Trunc(u) {
							t.Fatalf("%v is no multiple of the unit", v)
						}
					}
					if n := math.Sqrt(square); n > float64(b.Norm[i]) || n < 0.999 || b.Norm[i] > 1 {
						t.Fatalf("norm %v, kept as %v", n, b.Norm[i])
					}
					if rows++; b.Y[i] == 1 {
						positive++
					}
				}
			}
		}
		if share := float64(positive) / float64(rows); share < 0.2 || share > 0.8 {
			t.Errorf("%s: %v of the rows are positive", table.name, share)
		}
	}
}

// TestReal: rcv1-small is read and divided, and the published noise works on it as on the others.
func TestReal(t *testing.T) {
	table, err := real(context.Background(), needs.Data(t))
	if err != nil {
		t.Fatal(err)
	}
	if table.q != 50 || table.own[0].Dim != 47236 || table.test.Rows() != 500 {
		t.Fatalf("%d rows an owner, %d features, %d to score on", table.q, table.own[0].Dim, table.test.Rows())
	}
	size := tiny
	c, err := table.run(context.Background(), size, plain, "l2", math.Inf(1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Accuracy < 0.7 || c.Last() > 0.95 { // 50 rows an owner and few turns
		t.Errorf("accuracy %v, objective %v", c.Accuracy, c.Objective)
	}
}
