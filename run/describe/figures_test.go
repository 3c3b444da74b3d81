package describe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

const described = `dataset: d
rows: %d
format: {missing: [""]}
columns:
  - {name: a, type: numeric, min: 0, max: 10}
  - {name: rare, type: numeric, min: -1, max: 1, missing: zero}
  - {name: b, type: categorical, levels: [x, y, z, none of these]}
  - {name: seen, type: date, min: 2020-01-01, max: 2020-12-31}
  - {name: y, type: label, classes: [n, j]}
`

func planOf(t testing.TB, rows, bins int, adj privacy.Adjacency, sigma float64, pairs ...schema.Pair) Plan {
	t.Helper()
	s, err := schema.Parse("", fmt.Appendf(nil, described, rows))
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(s, bins, pairs, adj, sigma)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// aTable is a table in memory: the cells of its rows, and the numbers of column a.
type aTable struct {
	exact   []float64
	numbers []float64
	records float64
}

// draw makes a table: a has numbers that pile up at one side, rare has few, b has a level of no row, and half of the dates are missing.
func draw(p Plan, rows int, rnd *rand.Rand) aTable {
	s := aTable{exact: make([]float64, p.Facts.Dim), records: float64(rows)}
	for range rows {
		at := map[int]int{} // of a column in Columns, its cell in tables
		for first, c := range p.Cells.Histograms() {
			form := c.Form()
			cell := form.Cells // missing
			v := math.NaN()
			switch c.Name {
			case "a":
				v = 10 * math.Pow(rnd.Float64(), 3)
				s.numbers = append(s.numbers, v)
			case "rare":
				if rnd.IntN(50) == 0 {
					v = rnd.Float64()
				}
			case "b":
				v = float64(min(2, rnd.IntN(6)))
			case "seen":
				if rnd.IntN(2) == 0 {
					v = 365 * rnd.Float64()
				}
			case "y":
				if v = float64(rnd.IntN(2)); rnd.IntN(20) == 0 {
					v, cell = math.NaN(), cell+1
				}
			}
			column := slices.IndexFunc(p.Cells.Columns, func(k schema.Column) bool { return k.Name == c.Name })
			at[column] = form.PairCells() - 1
			if v == v {
				cell, at[column] = form.CellOf(v, form.Cells), form.CellOf(v, form.PairCells()-1)
			}
			s.exact[first+cell]++
		}
		for first, t := range p.Cells.CellTables() {
			s.exact[first+at[t[0]]*p.Cells.Columns[t[1]].Form().PairCells()+at[t[1]]]++
		}
	}
	slices.Sort(s.numbers)
	return s
}

// A coverage counts how often intervals of a kind hold their figure.
type coverage struct{ held, all int }

func (c *coverage) see(f runlog.Figure, truth float64) {
	c.all++
	if f.Low <= truth && truth <= f.High {
		c.held++
	}
}

// TestIntervals: of intervals of each kind at least 95 % hold their figure, over the noise, under both relations; those of counts, which
// rest on nothing else, hold it seldom more often where they are not near 0. Of narrow bins means
// hold at most .99: a part of the interval is their width. 4,000 releases of each of four tables with seeded noise. The share of intervals of a kind that hold has a standard
// deviation of at most √(.05·.95/4000) = .0035; it fails at 4.5 of them below .95, which has a probability of 3e-6, and 2e-4 for all 48 kinds;
// above .965 likewise. An interval that is a tenth too short, which holds with probability .922, is found.
func TestIntervals(t *testing.T) {
	const releases = 4000
	for k, c := range []struct {
		adj  privacy.Adjacency
		bins int
	}{{privacy.AddRemove, 10}, {privacy.ReplaceOne, 10}, {privacy.AddRemove, 150}, {privacy.ReplaceOne, 150}} {
		adj, rnd := c.adj, rand.New(rand.NewPCG(45, uint64(k)))
		const rows = 3000
		p := planOf(t, rows, c.bins, adj, 3, schema.Pair{A: "b", B: "y"})
		s := draw(p, rows, rnd)
		kinds := map[string]*coverage{}
		see := func(kind string, f runlog.Figure, truth float64) {
			if kinds[kind] == nil {
				kinds[kind] = &coverage{}
			}
			kinds[kind].see(f, truth)
		}
		sum := 0.0
		for _, v := range s.numbers {
			sum += v
		}
		deviation := p.deviation() / slack
		for range releases {
			noisy := slices.Clone(s.exact)
			for i := range noisy {
				noisy[i] += deviation * rnd.NormFloat64()
			}
			f := p.Figures(noisy)
			see("records", f.Records, s.records)
			a, rare, b := f.Columns[0], f.Columns[1], f.Columns[2]
			see("a count", a.Cells[0].Records, s.exact[0])
			see("a small count", a.Cells[9].Records, s.exact[9])
			see("none", b.Cells[3].Records, 0)
			see("missing", a.Missing, 0)
			see("missing values", rare.Missing, s.exact[c.bins+2+c.bins])
			see("the mean", *a.Mean, sum/rows)
			for i, q := range a.Points {
				see(fmt.Sprintf("quantile %v", q.Share), q.Value, s.numbers[int(math.Ceil(q.Share*rows))-1])
				if q.Value.TooFew {
					continue
				}
				if v := *q.Value.Value; v < q.Value.Low || v > q.Value.High || i > 0 && v < *a.Points[i-1].Value.Value-1e-9 && f.Records.Low > 1 {
					t.Fatalf("quantile %v is %+v", q.Share, q.Value)
				}
			}
			see("a pair", f.Pairs[0].Records[2][1], s.exact[len(s.exact)-5*3+2*3+1])
			total := *f.Records.Value
			for _, c := range f.Columns {
				sum := *c.Missing.Value + *c.Other.Value
				for _, cell := range c.Cells {
					if v := *cell.Records.Value; v < 0 || v != math.Round(v) || v < cell.Records.Low || v > cell.Records.High {
						t.Fatalf("%s: %+v", c.Name, cell)
					}
					sum += *cell.Records.Value
				}
				if sum != total {
					t.Fatalf("the cells of %s sum to %v, the records are %v", c.Name, sum, total)
				}
			}
		}
		const sd = 0.0035
		for kind, seen := range kinds {
			share := float64(seen.held) / float64(seen.all)
			t.Logf("%v, %d bins: %s %.4f", adj, c.bins, kind, share)
			if share < 0.95-4.5*sd {
				t.Errorf("%v: of intervals of %s %.4f hold, expected .95", adj, kind, share)
			}
			exact := kind == "records" && adj == privacy.AddRemove || kind == "missing values" || kind == "a count" && c.bins == 10 ||
				kind == "the mean" && c.bins == 150
			limit := 0.965
			if kind == "the mean" {
				limit = 0.99
			}
			if exact && share > limit {
				t.Errorf("%v: of intervals of %s %.4f hold: they are too wide", adj, kind, share)
			}
		}
		if len(kinds) < 12 {
			t.Errorf("%d kinds", len(kinds))
		}
	}
}

// TestTooFew: of a column with hardly any numbers, mean and quantiles have no value, and their intervals are the bounds.
func TestTooFew(t *testing.T) {
	rnd := rand.New(rand.NewPCG(45, 9))
	p := planOf(t, 200, 10, privacy.AddRemove, 20)
	s := draw(p, 200, rnd)
	f := p.Figures(s.exact)
	rare := f.Columns[1]
	for _, q := range rare.Points {
		if !q.Value.TooFew || q.Value.Value != nil || q.Value.Low != -1 || q.Value.High != 1 {
			t.Errorf("%+v", q)
		}
	}
	if m := rare.Mean; !m.TooFew || m.Value != nil || m.Low != -1 || m.High != 1 {
		t.Errorf("%+v", m)
	}
	if w := p.warnings(); len(w) != 1 || !strings.Contains(w[0], "the noise is large for about 200 rows") {
		t.Errorf("%q", w)
	}
	if w := planOf(t, 1e6, 10, privacy.AddRemove, 3).warnings(); len(w) != 0 {
		t.Errorf("%q", w)
	}
}

// TestNearest compares with a search over all whole numbers of small sums.
func TestNearest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(45, 4))
	for range 500 {
		v := make([]float64, 3)
		for i := range v {
			v[i] = 12*rnd.Float64() - 5
		}
		total := float64(rnd.IntN(9))
		got := nearest(v, total)
		least, at := math.Inf(1), []float64{}
		for i := 0.0; i <= total; i++ {
			for j := 0.0; i+j <= total; j++ {
				w := []float64{i, j, total - i - j}
				far := 0.0
				for k := range w {
					far += (w[k] - v[k]) * (w[k] - v[k])
				}
				if far < least {
					least, at = far, w
				}
			}
		}
		for k := range got {
			if math.Abs(got[k]-at[k]) > 1 || got[k] < 0 || got[k] != math.Round(got[k]) {
				t.Fatalf("nearest to %v with sum %v: %v, by a search %v", v, total, got, at)
			}
		}
		if sumOf(got) != total {
			t.Fatalf("%v sums to %v, want %v", got, sumOf(got), total)
		}
	}
}

// TestBins: the number of bins follows from public numbers alone, and grows with the rows.
func TestBins(t *testing.T) {
	last := 0
	for _, rows := range []int{1, 100, 1000, 4000, 20_000, 1e6} {
		p := planOf(t, rows, 0, privacy.AddRemove, 3)
		if p.Bins < last || !slices.Contains(binsOf, p.Bins) {
			t.Errorf("%d rows: %d bins", rows, p.Bins)
		}
		if last = p.Bins; p.Bins > 4 && float64(rows)/float64(p.Bins) < 8*p.deviation() {
			t.Errorf("%d rows: %d bins beside noise of %v", rows, p.Bins, p.deviation())
		}
		if again := planOf(t, rows, p.Bins, privacy.AddRemove, 3); again.Facts.Dim != p.Facts.Dim {
			t.Errorf("%d rows: %d cells, and %d", rows, p.Facts.Dim, again.Facts.Dim)
		}
	}
	if last != 50 {
		t.Errorf("%d bins of many rows", last)
	}
}
