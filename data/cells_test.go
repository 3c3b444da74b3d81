package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/schema"
)

// TestCells: a row is 1 in the cell of each column and in each table of two columns, whatever its values are, and its norm is within the
// bound. The cells are those of a reading of the text that this test does by itself.
func TestCells(t *testing.T) {
	full, err := schema.Parse("", []byte(`dataset: d
rows: 900
format: {missing: ["", "NA"]}
columns:
  - {name: a, type: numeric, min: 0, max: 10, missing: 0}
  - {name: b, type: categorical, levels: [x, z, NA], unknown: zero}
  - {name: t, type: boolean}
  - {name: seen, type: date, min: 2020-01-01, max: 2020-01-11}
  - {name: words, type: text, dimension: 64}
  - {name: skipped, type: ignore}
  - {name: y, type: label, classes: [n, j]}
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := full.ForHistograms(5, []schema.Pair{{A: "y", B: "a"}, {A: "seen", B: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	// Of each column: texts, and the cell of each; the cells are 5, 3, 2, 5, 1 and 2, then missing and not allowed.
	columns := []struct {
		texts []string
		cells []int
		n     int
	}{
		{[]string{"0", "1.99", "2", "9.9", "10", "11", "-4", "", "NA", "ten", "NaN", "1e999"}, []int{0, 0, 1, 4, 4, 4, 0, 5, 5, 6, 6, 6}, 5},
		{[]string{"x", "z", "NA", "", "w"}, []int{0, 1, 2, 3, 4}, 3},
		{[]string{"true", "No", "1", "", "maybe"}, []int{1, 0, 1, 2, 3}, 2},
		{[]string{"2020-01-01", "2020-01-03", "2020-01-10T23:00", "2019-01-01", "", "soon"}, []int{0, 1, 4, 0, 5, 6}, 5},
		{[]string{"two words", "NA", "?"}, []int{0, 1, 0}, 1},
		{[]string{"anything", ""}, nil, 0},
		{[]string{"n", "j", "", "k"}, []int{0, 1, 2, 3}, 2},
	}
	rnd := rand.New(rand.NewPCG(45, 2))
	var content strings.Builder
	content.WriteString("a,b,t,seen,words,skipped,y\n")
	var want [][]int
	const rows = 3000
	for range rows {
		var cells []string
		var at []int
		first := 0
		var drawn []int
		for _, c := range columns {
			k := rnd.IntN(len(c.texts))
			cells = append(cells, c.texts[k])
			if c.cells == nil {
				continue
			}
			drawn = append(drawn, c.cells[k])
			at = append(at, first+c.cells[k])
			first += c.n + 2
		}
		inPair := func(column, cells int) int { return min(drawn[column], cells) }
		at = append(at, first+inPair(5, 2)*6+inPair(0, 5))
		first += 3 * 6
		at = append(at, first+inPair(3, 5)*4+inPair(1, 3))
		want = append(want, at)
		fmt.Fprintln(&content, strings.Join(cells, ","))
	}
	for _, workers := range []int{1, 3} {
		tab, stats := mustRead(t, s, content.String(), Options{Unlabeled: true, workers: workers, piece: 5000})
		if !tab.Cells || tab.Rows() != rows || stats.Dropped != 0 || tab.NormBound != s.RowNorm {
			t.Fatalf("cells %v, %d rows, %d dropped", tab.Cells, tab.Rows(), stats.Dropped)
		}
		i := 0
		for _, b := range tab.Blocks {
			for k := range b.N {
				var got []int
				for n := b.Start[k]; n < b.Start[k+1]; n++ {
					if b.Val[n] != 1 {
						t.Fatalf("row %d has %v", i, b.Val[n])
					}
					got = append(got, int(b.Col[n]))
				}
				if !slices.Equal(got, want[i]) {
					t.Fatalf("row %d is in cells %v, want %v", i, got, want[i])
				}
				i++
			}
		}
	}
	plain, _ := mustRead(t, full.WithHats(0), "a,b,t,seen,words,skipped,y\n1,x,1,2020-01-01,w,,n\n", Options{})
	if plain.Cells {
		t.Error("an encoded table says that it is of cells")
	}
	if _, _, err := read(t, s, "a,b,t,seen,words,skipped,y\n1,x,1\n", Options{Unlabeled: true}); err == nil {
		t.Error("a row of three cells is read")
	}
}
