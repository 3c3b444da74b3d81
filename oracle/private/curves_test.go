package private

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// curvedTables are the rows of a table of that many numeric columns, with labels of two classes, wide and narrow.
func curvedTables(t testing.TB, rnd *rand.Rand, header, curves string, n, columns int) (s *schema.Schema, wide, narrow *data.Table) {
	t.Helper()
	text, csv := strings.Builder{}, strings.Builder{}
	fmt.Fprintf(&text, "dataset: d\non_bad_row: drop\n%scolumns:\n", header)
	for j := range columns {
		fmt.Fprintf(&text, "  - {name: x%d, type: numeric, min: -3, max: 3, %s}\n", j, curves)
		fmt.Fprintf(&csv, "x%d,", j)
	}
	text.WriteString("  - {name: y, type: label, classes: [\"0\", \"1\"]}\n")
	csv.WriteString("y,u\n")
	if strings.Contains(header, "unit:") {
		text.WriteString("  - {name: u, type: unit}\n")
	} else {
		text.WriteString("  - {name: u, type: ignore}\n")
	}
	for range n {
		for range columns {
			fmt.Fprintf(&csv, "%.5f,", rnd.NormFloat64())
		}
		fmt.Fprintf(&csv, "%s,%d\n", []string{"0", "1", "1", "0", "0", "?"}[rnd.IntN(33)%6], rnd.IntN(n/2))
	}
	s, err := schema.Parse("", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if s.UnitRows == 0 {
		s = s.WithPlaces(1)
	}
	s.Snapped = true
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var both [2]*data.Table
	for i := range both {
		if both[i], _, err = data.Read(t.Context(), &datatest.Gate{}, s, path,
			data.Options{Formats: source.Formats(), Narrow: i == 1, KeepBad: true}); err != nil {
			t.Fatal(err)
		}
	}
	if both[0].Blocks[0].Narrow() || !both[1].Blocks[0].Narrow() {
		t.Fatal("the tables have other forms")
	}
	return s, both[0], both[1]
}

// TestNarrowSums: sums over a narrow table are those over the wide one, bit for bit, of every kind, over all rows and over samples, whatever
// the number of workers, rows as records and units of several rows alike, also after rows were refined.
func TestNarrowSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(87, 2))
	for _, header := range []string{"", "row_norm: 9\nrow_scaling: project\n", "unit: {name: person, rows: 3}\nunits: 1000\n"} {
		for _, curves := range []string{"hats: 16", "waves: 3", "hats: 2"} {
			s, wide, narrow := curvedTables(t, rnd, header, curves, 2*data.BlockRows+77, 5)
			for workers := 1; workers <= 3; workers++ {
				var sums [2][][]int64
				for i, tab := range []*data.Table{wide, narrow} {
					sums[i] = curvedSums(t, s, tab, workers)
				}
				for k, sum := range sums[0] {
					if !slices.Equal(sum, sums[1][k]) || slices.Max(sum) == slices.Min(sum) && len(sum) > 1 {
						t.Fatalf("%q, %s, %d workers: sum %d differs, or is nothing", header, curves, workers, k)
					}
				}
			}
		}
	}
}

// curvedSums are sums of every kind, then those of refined rows.
func curvedSums(t *testing.T, s *schema.Schema, tab *data.Table, workers int) (sums [][]int64) {
	t.Helper()
	m := logistic(t, tab.Dim)
	facts := oracle.Public{Dim: tab.Dim, Rows: 2000, UnitRows: s.UnitRows, Classes: 2, Adjacency: privacy.AddRemove, NormBound: m.Facts().NormBound,
		Lipschitz: 1, Smooth: 0.25, Curved: true, Centered: true, OneMargin: true, Intercept: tab.Dim, Calibrated: true}
	for at, c := range s.Places() {
		facts.Numeric = append(facts.Numeric, oracle.Numeric{At: at, Bumps: c.Hats, Waves: c.Waves})
	}
	if facts.Slots = s.Open(); facts.Slots > 0 {
		facts.Totals = true
	}
	l, err := NewLocal(tab, m, facts, workers)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w, center := make([]float64, tab.Dim), make([]float64, tab.Dim)
	for j := range w {
		w[j], center[j] = float64(j%7)/8-0.3, float64(j%3)*0x1p-10
	}
	rule := clip.Norm{C: 0.3}
	add := func(q sum.Sum) {
		t.Helper()
		unit, err := l.scale.of(&q, facts)
		if err != nil {
			t.Fatal(err)
		}
		q.Unit = unit
		if err := l.Sum(t.Context(), &q); err != nil {
			t.Fatal(err)
		}
		dst := make([]int64, q.Len())
		l.Take(dst, 0)
		sums = append(sums, dst)
	}
	for i, sampler := range []sample.Sampler{sample.Full{}, sample.Poisson{Rate: 0.4}, sample.Full{}} {
		if i == 2 && facts.Totals {
			if err := l.Refine(t.Context(), oracle.Choice{Pairs: [][2]int{{3, 1}}}); err != nil {
				t.Fatal(err)
			}
			q := oracle.Totals{Cells: 2, Count: 1, Pairs: 3}
			add(sum.Sum{Of: sum.CellTotals, Totals: q, Numbers: q.Len(facts)})
		}
		if err := l.Draw(t.Context(), sum.Draw{Sampler: sampler, Total: l.Rows()}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time, norms of centered rows are known
			add(sum.Sum{Of: sum.Gradients, W: w, Clip: rule, Center: center})
		}
		add(sum.Sum{Of: sum.Gradients, W: w, Clip: rule})
		add(sum.Sum{Of: sum.Rows, W: w, Clip: rule})
		add(sum.Sum{Of: sum.Hessians, W: w, Clip: rule})
		add(sum.Sum{Of: sum.Losses, W: w, Bound: 1})
		add(sum.Sum{Of: sum.Decreases, W: w, Along: center, Steps: []float64{0.5, 1}, Bound: 1})
		add(sum.Sum{Of: sum.Wrong, W: w, Bound: 1})
	}
	return sums
}

// BenchmarkNarrow is a pass over rows of 20 numeric columns with 16 bumps each, wide and narrow.
func BenchmarkNarrow(b *testing.B) {
	_, wide, narrow := curvedTables(b, rand.New(rand.NewPCG(87, 3)), "", "hats: 16", 1<<16, 20)
	w := make([]float64, wide.Dim)
	for j := range w {
		w[j] = float64(j%7)/8 - 0.3
	}
	for name, tab := range map[string]*data.Table{"wide": wide, "narrow": narrow} {
		b.Run(name, func(b *testing.B) {
			var s Local
			s.open(tab, logistic(b, tab.Dim), 1)
			defer s.Close()
			for b.Loop() {
				if _, err := s.clipped(w, clip.Norm{C: 0.3}, oracle.Public{Rows: 1 << 16}, nil, true); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tab.Rows()), "ns/row")
		})
	}
}
