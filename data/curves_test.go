package data

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/schema"
)

const curvesColumns = "dataset: d\nformat: {missing: [\"?\"]}\ncolumns:\n" +
	"  - {name: a, type: numeric, min: -1, max: 3, hats: 5}\n" +
	"  - {name: b, type: numeric, min: 0, max: 99, hats: 16, transform: log1p%s}\n" +
	"  - {name: g, type: categorical, levels: [u, v]}\n" +
	"  - {name: c, type: numeric, min: -1, max: 1, waves: 3}\n" +
	"  - {name: d, type: numeric, min: 0, max: 1}\n" +
	"  - {name: when, type: date, min: 2020-01-01, max: 2020-12-31, cycles: [week]}\n" +
	"  - {name: y, type: label, classes: [\"0\", \"1\"]}\n"

// curvesTable writes a table of those columns with n rows. Some cells of b have no value if missing says so.
func curvesTable(t testing.TB, rnd *rand.Rand, n int, missing bool) string {
	t.Helper()
	var csv strings.Builder
	csv.WriteString("a,b,g,c,d,when,y\n")
	for range n {
		a, b := -1.2+4.4*rnd.Float64(), fmt.Sprint(99*rnd.Float64())
		switch rnd.IntN(6) {
		case 0:
			a = float64(rnd.IntN(5) - 1) // centers of bumps, and the middle
		case 1:
			if missing {
				b = "?"
			}
		}
		fmt.Fprintf(&csv, "%v,%s,%c,%v,%v,2020-%02d-11,%d\n", a, b, 'u'+rune(rnd.IntN(2)), 2*rnd.Float64()-1, rnd.IntN(3), 1+rnd.IntN(12), rnd.IntN(2))
	}
	return writeFile(t, "t.csv", csv.String())
}

// curvesSchemas are schemas of those columns under row rules of every kind.
func curvesSchemas(t testing.TB, missing bool) (all []*schema.Schema) {
	rule := ""
	if missing {
		rule = ", missing: zero"
	}
	for _, header := range []string{"", "row_scaling: project\n", "row_norm: 3.5\n", "row_scaling: project\nrow_norm: 1.5\n",
		"row_scaling: project\nrow_norm: 50\n", "row_norm: 0.001\n", "norm: l1\n", "norm: l1\nrow_scaling: project\nrow_norm: 2.7\n"} {
		s := mustParse(t, header+fmt.Sprintf(curvesColumns, rule))
		s.Snapped = true
		all = append(all, s, s.WithPairs(schema.Pair{A: "a", B: "d"}), s.WithPlaces(2))
	}
	return all
}

// loose is the schema whose curves follow from the cells.
func loose(s *schema.Schema) *schema.Schema {
	l := *s
	l.Snapped = false
	return &l
}

// widened is the table of a narrow one with its rows' curves, made in tiles of that many rows.
func widened(t *Table, tile int) *Table {
	out := *t
	out.Blocks = nil
	var w Widener // its memory goes from tile to tile
	for _, b := range t.Blocks {
		k := *b
		k.X = nil
		for from := 0; from < b.N; from += tile {
			var some Block
			to := min(b.N, from+tile)
			b.Numbers(&some, from, to)
			k.X = append(k.X, some.X...)
			if v := w.View(b, from, to); v.From != 0 || !slices.Equal(v.X, some.X) || !slices.Equal(spread(v), some.X) || !exactly(v) {
				clear(k.X)
			}
		}
		out.Blocks = append(out.Blocks, &k)
	}
	return &out
}

// exactly says whether products with whole numbers, which are exact, are those of Margins.
func exactly(v View) bool {
	w, z, want := make([]float64, v.Dim), make([]float64, v.Len()), make([]float64, v.Len())
	for j := range w {
		w[j] = float64(j%7 - 3)
	}
	var s Space
	v.Exact(z, w, &s)
	v.Margins(want, w, 1, &s)
	return slices.Equal(z, want)
}

// spread is the rows of a view by their values.
func spread(v View) []float32 {
	x := make([]float32, v.Len()*v.Dim)
	for i := range v.Len() {
		row := x[i*v.Dim:][:v.Dim]
		col, val := v.Values(v.Row(i), new([]float32))
		if col == nil {
			copy(row, val)
		}
		for k, j := range col {
			if k > 0 && j <= col[k-1] {
				return nil // they do not ascend
			}
			row[j] = val[k]
		}
	}
	return x
}

// same says whether two tables have the same rows, with labels and drops.
func same(a, b *Table) bool {
	return a.Dim == b.Dim && sameRows(a, b) && slices.EqualFunc(a.Blocks, b.Blocks, func(a, b *Block) bool {
		return slices.Equal(a.Y, b.Y) && slices.Equal(a.Drop, b.Drop)
	})
}

func curvesRead(t *testing.T, s *schema.Schema, path string, opt Options) *Table {
	t.Helper()
	tab, _, err := readTable(t.Context(), admit(), s, path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tab.Close() })
	return tab
}

// TestNarrow: a narrow table has the rows of the wide one, bit for bit, whatever the tile, the number of workers and the rule; they are those
// that cells give up to the rounding of stored rows, and keep what rows promise.
func TestNarrow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(87, 1))
	for _, missing := range []bool{false, true} {
		for k, s := range curvesSchemas(t, missing) {
			n := 150
			if k == 0 {
				n = 2*BlockRows + 77
			}
			path := curvesTable(t, rnd, n, missing)
			plain := curvesRead(t, loose(s), path, Options{})
			wide := curvesRead(t, s, path, Options{workers: 1})
			narrow := curvesRead(t, s, path, Options{Narrow: true, workers: 3})
			if plain.Curves != nil || wide.Blocks[0].Narrow() || !narrow.Blocks[0].Narrow() || wide.Dim != s.Dim() {
				t.Fatal("the tables have other forms")
			}
			checkTable(t, wide)
			check := newChunkCheck(s)
			for i, b := range wide.Blocks {
				if err := check.block(b); err != nil {
					t.Fatal(err)
				}
				for k, x := range b.X {
					one := float64(plain.Blocks[i].X[(k/b.Dim+1)*b.Dim-1]) // a row is rounded relative to its intercept
					if was := plain.Blocks[i].X[k]; math.Abs(float64(x-was)) > 64*wide.Unit+1e-4*one {
						t.Fatalf("feature %d of row %d is %v; by cells %v", k%b.Dim, k/b.Dim, x, was)
					}
				}
			}
			for _, tile := range []int{1, 7, BlockRows} {
				if !same(wide, widened(narrow, tile)) {
					t.Fatalf("schema %d: narrow rows in tiles of %d differ", k, tile)
				}
			}
		}
	}
}

// TestNarrowPacked: a table that is packed without curves has the rows of the file that it was packed from, wide and narrow; one packed
// with them keeps those.
func TestNarrowPacked(t *testing.T) {
	rnd := rand.New(rand.NewPCG(87, 3))
	path := curvesTable(t, rnd, BlockRows+77, true)
	for k, s := range curvesSchemas(t, true) {
		lines, ok := s.Lines()
		if !ok {
			t.Fatal("no rows without curves")
		}
		for _, short := range []bool{false, true} {
			packed := writeFile(t, "t.pack", "")
			if _, err := packTable(t.Context(), admit(), lines, path, packed, Options{Coding: Coding{Short: short}}); err != nil {
				t.Fatal(err)
			}
			if PackedLines(lines, packed) == short || PackedLines(s, packed) || PackedLines(lines, path) {
				t.Error("a packed table is taken for another")
			}
			if short { // its cells without a value are 0
				_, _, err := readTable(t.Context(), admit(), s, packed, Options{})
				_, streamed := Stream(t.Context(), admit(), s, packed, Options{Formats: TestFormats, unlimited: true}, func() func(*Block) error {
					return func(*Block) error { return nil }
				})
				for _, err := range []error{err, streamed} {
					if err == nil || !strings.Contains(err.Error(), "without saying which cells have no value") {
						t.Errorf("16-bit rows under a schema with curves: %v", err)
					}
				}
				continue
			}
			want := curvesRead(t, s, path, Options{})
			wide := curvesRead(t, s, packed, Options{})
			narrow := curvesRead(t, s, packed, Options{Narrow: true})
			streamed := *want
			streamed.Blocks = nil
			for _, from := range []string{path, packed} {
				streamed.Blocks = nil
				if _, err := Stream(t.Context(), admit(), s, from, Options{Formats: TestFormats, unlimited: true}, func() func(*Block) error {
					return func(b *Block) error {
						streamed.Blocks = append(streamed.Blocks, b.clone(new(Arena)))
						return nil
					}
				}); err != nil || !same(want, &streamed) {
					t.Errorf("schema %d: %s gives other rows block by block: %v", k, from, err)
				}
			}
			if !same(want, wide) || !same(want, widened(narrow, 100)) {
				t.Errorf("schema %d: the packed table has other rows", k)
			}
			if len(s.Pairs) > 0 && !s.Pairs[0].Open() { // that a run chose: the table was packed without them
				packed := writeFile(t, "t.pack", "")
				if _, err := packTable(t.Context(), admit(), lines.WithPairs(), path, packed, Options{}); err != nil {
					t.Fatal(err)
				}
				wide, narrow := curvesRead(t, s, packed, Options{}), curvesRead(t, s, packed, Options{Narrow: true})
				if !same(wide, widened(narrow, 100)) {
					t.Errorf("schema %d: a table that was packed without pairs has other rows without its curves", k)
				}
				for i, b := range want.Blocks {
					for j, x := range b.X {
						if got := wide.Blocks[i].X[j]; math.Abs(float64(x-got)) > 64*want.Unit+1e-4*float64(b.X[(j/b.Dim+1)*b.Dim-1]) {
							t.Fatalf("schema %d: feature %d of row %d is %v where pairs follow from packed rows; of the file %v", k, j%b.Dim, j/b.Dim, got, x)
						}
					}
				}
			}
		}
		packed := writeFile(t, "t.pack", "")
		if _, err := packTable(t.Context(), admit(), loose(s), path, packed, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := curvesRead(t, s, packed, Options{Narrow: true}); got.Curves != nil || !same(got, curvesRead(t, loose(s), path, Options{})) {
			t.Error("a table that is packed with its curves has others")
		}
	}
}

// TestNarrowParts: parts of a narrow table, rows that are picked from it, and rows that are refined are those of the wide table, and so are
// the hashes of its records.
func TestNarrowParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(87, 4))
	for _, missing := range []bool{false, true} {
		for k, s := range curvesSchemas(t, missing) {
			path := curvesTable(t, rnd, BlockRows+77, missing)
			wide, narrow := curvesRead(t, s, path, Options{}), curvesRead(t, s, path, Options{Narrow: true})
			key := []byte("key")
			if !slices.Equal(Fingerprints(wide, key), Fingerprints(narrow, key)) || !slices.Equal(HeldOut(wide, key, 0.3), HeldOut(narrow, key, 0.3)) ||
				Order(wide) != Order(narrow) {
				t.Error("hashes differ")
			}
			in := func(record int) bool { return record%3 > 0 }
			part := Subset([]*Table{narrow, narrow}, in)
			if !part.Blocks[0].Narrow() || !same(Subset([]*Table{wide, wide}, in), widened(part, 50)) {
				t.Error("parts differ")
			}
			rows := []int32{3, 4, 700, int32(BlockRows), int32(BlockRows + 20)}
			if more := narrow.Append(&Block{N: 1, Dim: narrow.Dim, X: make([]float32, narrow.Dim), Norm: make([]float32, 1), Y: make([]float32, 1)}); more.Curves != nil || more.Rows() != wide.Rows()+1 ||
				!slices.Equal(more.Blocks[1].X, wide.Blocks[1].X) {
				t.Error("a row more changes others")
			}
			some, all := Block{Dim: narrow.Dim}, Block{}
			copier := NewCopier(narrow)
			copier.Copy(&some, rows, len(rows), 0)
			some.Numbers(&all, 1, 4)
			var memory, other []float32
			for i, row := range rows[1:4] {
				if want := wide.Blocks[row/BlockRows].Dense(int(row%BlockRows), &memory); !slices.Equal(want, all.Dense(i, &memory)) ||
					!slices.Equal(want, narrow.Blocks[row/BlockRows].Dense(int(row%BlockRows), &other)) {
					t.Error("a row that is picked differs")
				}
			}
			if s.Open() == 0 {
				continue
			}
			r := Refinement{Pairs: [][2]int{{2, 0}}, First: s.Dim() - 51, Places: 2}
			for first, c := range s.Places() {
				if c.Hats+c.Waves > 0 {
					r.Columns = append(r.Columns, Curved{first, c.Hats + c.Waves})
				}
			}
			for _, change := range []func(*Refinement){
				func(r *Refinement) { r.Gone = [][2]int{{r.First + 25, r.First + 50}} },
				func(r *Refinement) { r.Gone, r.Narrow = [][2]int{{r.First + 25, r.First + 50}}, true },
				func(r *Refinement) {
					r.Pairs, r.Narrow = nil, true
					r.Gone = nil
					for _, c := range r.Columns {
						r.Gone = append(r.Gone, [2]int{c.At + 1, c.At + 1 + c.Features})
					}
					r.Gone = append(r.Gone, [2]int{r.First, r.First + 50})
				},
			} {
				change(&r)
				one, err := wide.Refine(t.Context(), r, 1)
				if err != nil {
					t.Fatal(err)
				}
				checkTable(t, one)
				two, err := narrow.Refine(t.Context(), r, 2)
				if err != nil || !two.Blocks[0].Narrow() || &two.Blocks[0].Lines[0] != &narrow.Blocks[0].Lines[0] || !same(one, widened(two, 64)) {
					t.Fatalf("schema %d, %+v: refined rows differ: %v", k, r, err)
				}
				old, err := curvesRead(t, loose(s), path, Options{}).Refine(t.Context(), r, 1)
				if err != nil || old.Dim != one.Dim {
					t.Fatal(err)
				}
				for i, b := range one.Blocks {
					for j, x := range b.X {
						if math.Abs(float64(x-old.Blocks[i].X[j])) > 64*one.Unit+1e-4*float64(b.X[(j/b.Dim+1)*b.Dim-1]) {
							t.Fatalf("feature %d of row %d is %v; of the table as cells give it %v", j%b.Dim, j/b.Dim, x, old.Blocks[i].X[j])
						}
					}
				}
			}
		}
	}
}

// TestNarrowWithoutZeros: rows in which one column has no value and no other is 0, as ordinary tables of numbers have them, keep each value
// in its column, narrow, wide and packed.
func TestNarrowWithoutZeros(t *testing.T) {
	rnd := rand.New(rand.NewPCG(87, 9))
	for _, without := range []int{0, 1, 2} { // which column has no value in every other row
		var rows strings.Builder
		rows.WriteString("x1,x2,x3,y\n")
		for i := range 40 {
			cells := []string{"", "", ""}
			for j := range cells {
				if j != without || i%2 == 0 {
					cells[j] = fmt.Sprintf("%.3f", 0.1+0.8*rnd.Float64())
				}
			}
			fmt.Fprintf(&rows, "%s,%d\n", strings.Join(cells, ","), i%2)
		}
		s := mustParse(t, "dataset: d\nrows: 40\ncolumns:\n  - {names: x1..x3, type: numeric, min: 0, max: 1, missing: zero, hats: 4}\n  - {name: y, type: label, classes: [0, 1]}\n")
		s.Snapped = true
		path := writeFile(t, "t.csv", rows.String())
		plain, wide, narrow := curvesRead(t, loose(s), path, Options{}), curvesRead(t, s, path, Options{}), curvesRead(t, s, path, Options{Narrow: true})
		lines, ok := s.Lines()
		if !ok || plain.Curves != nil || !narrow.Blocks[0].Narrow() {
			t.Fatal("the tables have other forms")
		}
		packed := writeFile(t, "t.pack", "")
		if _, err := packTable(t.Context(), admit(), lines, path, packed, Options{}); err != nil {
			t.Fatal(err)
		}
		if !same(wide, widened(narrow, 7)) || !same(wide, curvesRead(t, s, packed, Options{})) {
			t.Errorf("column %d without a value: narrow or packed rows differ", without)
		}
		for k, x := range wide.Blocks[0].X {
			if was := plain.Blocks[0].X[k]; math.Abs(float64(x-was)) > 64*wide.Unit+1e-4 {
				t.Fatalf("column %d without a value: feature %d of row %d is %v; by cells %v", without, k%wide.Dim, k/wide.Dim, x, was)
			}
		}
		// packed without curves, under the schema that it was packed under
		own := curvesRead(t, lines, packed, Options{})
		for k, x := range own.Blocks[0].X {
			if was := curvesRead(t, lines, path, Options{}).Blocks[0].X[k]; x != was {
				t.Fatalf("column %d without a value, packed: feature %d of row %d is %v; of the file %v", without, k%own.Dim, k/own.Dim, x, was)
			}
		}
	}
}
