package data

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/schema"
)

// refined is a table of numeric columns a, b and c with bumps or waves and d without, before and after a refinement: the features
// of the pairs are those of a column whose cells are empty. raw is each refined row before the row rule.
type refined struct {
	schema *schema.Schema
	table  *Table
	r      Refinement
	raw    [][]float64
}

func newRefined(t *testing.T, rnd *rand.Rand, header string, sparse, narrow, straight bool, pairs [][2]int, n int) refined {
	t.Helper()
	text := header + "dataset: d\nformat: {missing: [\"?\"]}\ncolumns:\n"
	offset := 0
	if sparse {
		text += "  - {name: t, type: text, dimension: 16}\n"
		offset = 16
	}
	text += "  - {name: a, type: numeric, min: -1, max: 3, hats: 5}\n" +
		"  - {name: b, type: numeric, min: 0, max: 99, hats: 8, transform: log1p, missing: zero}\n" +
		"  - {name: g, type: categorical, levels: [u, v]}\n" +
		"  - {name: c, type: numeric, min: -1, max: 1, waves: 3, missing: zero}\n" +
		"  - {name: d, type: numeric, min: 0, max: 1}\n" +
		"  - {name: s, type: categorical, missing: zero, levels: [" + levels(50) + "]}\n" +
		"  - {name: y, type: label, min: 0, max: 1}\n"
	f := refined{schema: mustParse(t, text)}
	f.r = Refinement{Pairs: pairs, First: offset + 6 + 9 + 2 + 4 + 1, Places: 2, Narrow: narrow,
		Columns: []Curved{{offset, 5}, {offset + 6, 8}, {offset + 17, 3}, {offset + 21, 0}}}
	if straight { // the curves of a and c
		f.r.Gone = [][2]int{{offset + 1, offset + 6}, {offset + 18, offset + 21}}
	}
	f.r.Gone = append(f.r.Gone, [2]int{f.r.First + 25*len(pairs), f.r.First + 50})
	var csv strings.Builder
	csv.WriteString(strings.Repeat("t,", offset/16) + "a,b,g,c,d,s,y\n")
	for range n {
		cells := []float64{-1 + 4*rnd.Float64(), 99 * rnd.Float64(), 0, 2*rnd.Float64() - 1, rnd.Float64()}
		if rnd.IntN(3) == 0 {
			cells[rnd.IntN(2)] = []float64{-1, 0, 1, 3}[rnd.IntN(4)] // bumps' centers, and beyond bounds
		}
		row := make([]float64, f.schema.Dim())
		line := []float64{(cells[0]+1)/2 - 1, 2*math.Log1p(max(0, cells[1]))/math.Log1p(99) - 1, cells[3], 2*cells[4] - 1}
		if sparse {
			csv.WriteString("word,")
			row[schema.Buckets("word", 16, nil)[0]] = 1
		}
		gone := [4]bool{1: rnd.IntN(4) == 0, 2: rnd.IntN(4) == 0}
		for k, c := range f.r.Columns {
			if gone[k] {
				continue
			}
			row[c.At] = line[k]
			switch k {
			case 0, 1:
				j, left, right := schema.Bumps(c.Features, line[k])
				row[c.At+1+j], row[c.At+2+j] = left, right
			case 2:
				for j := range c.Features {
					row[c.At+1+j] = schema.Wave(j, line[k])
				}
			}
		}
		for k, p := range pairs {
			for i := range 25 {
				if !gone[p[0]] && !gone[p[1]] {
					row[f.r.First+25*k+i] = bump(line[p[0]], i/5) * bump(line[p[1]], i%5)
				}
			}
		}
		text := func(k, cell int) string {
			if gone[k] {
				return "?"
			}
			return fmt.Sprint(cells[cell])
		}
		row[offset+15] = 1 // u
		row[len(row)-1] = 1
		if narrow {
			row = slices.Delete(row, f.r.First+25*len(pairs), f.r.First+50)
		}
		for _, g := range slices.Backward(f.r.Gone[:len(f.r.Gone)-1]) {
			if narrow {
				row = slices.Delete(row, g[0], g[1])
			} else {
				clear(row[g[0]:g[1]])
			}
		}
		fmt.Fprintf(&csv, "%v,%s,u,%s,%v,?,%v\n", cells[0], text(1, 1), text(2, 3), cells[4], rnd.Float64())
		f.raw = append(f.raw, row)
	}
	var err error
	if f.table, _, err = readTable(context.Background(), admit(), f.schema, writeFile(t, "t.csv", csv.String()), Options{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// levels are n levels of a categorical column.
func levels(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("s", i)
	}
	return strings.Join(names, ", ")
}

// bump is the value of one of five bumps, a triangle around its center.
func bump(x float64, i int) float64 { return max(0, 1-math.Abs(2*(x+1)-float64(i))) }

// TestRefine: a refined table is that which would have been read with the other encoding, up to rounding, under every row
// rule, stored dense or sparse; it keeps what its rows promise, and does not depend on the number of workers. The table that it is made from stays.
func TestRefine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(79, 3))
	for _, header := range []string{"", "row_scaling: project\n", "row_norm: 3.3\n", "row_scaling: project\nrow_norm: 1.5\n",
		"row_scaling: project\nrow_norm: 50\n", "norm: l1\n", "norm: l1\nrow_scaling: project\nrow_norm: 2.7\n"} {
		for _, sparse := range []bool{false, true} {
			for _, narrow := range []bool{false, true} {
				for k, pairs := range [][][2]int{nil, {{0, 1}}, {{2, 0}, {1, 2}}, nil, {{2, 0}, {1, 2}}} {
					straight := k > 2
					n := 120
					if header == "" {
						n = BlockRows + 77
					}
					f := newRefined(t, rnd, header, sparse, narrow, straight, pairs, n)
					before := Subset([]*Table{f.table}, func(int) bool { return true }).Dense()
					got, err := f.table.Refine(t.Context(), f.r, 3)
					if err != nil {
						t.Fatal(err)
					}
					rule, check, row := ruleOf(f.schema), newChunkCheck(f.schema), 0
					for k, b := range got.Blocks {
						if err := check.block(b); err != nil || (b.Start != nil) != sparse || !slices.Equal(b.Y, f.table.Blocks[k].Y) {
							t.Fatalf("%q: %v", header, err)
						}
						var memory []float32
						for i := range b.N {
							want := f.raw[row]
							rule.apply(want)
							for j, x := range b.Dense(i, &memory) {
								if math.Abs(float64(x)-want[j]) > 32*rule.unit {
									t.Fatalf("%q, sparse %t, narrow %t, pairs %v: straight %t: feature %d of row %d is %v, want %v", header, sparse, narrow, pairs, straight, j, row, x, want[j])
								}
							}
							if old := f.table.Blocks[k]; sparse && int(b.Start[i+1]-b.Start[i]) > int(old.Start[i+1]-old.Start[i])+4*len(pairs) {
								t.Fatalf("row %d has more than four numbers more for each pair", row)
							}
							row++
						}
					}
					if one, err := f.table.Refine(t.Context(), f.r, 1); err != nil || !sameRows(one.Dense(), got.Dense()) {
						t.Errorf("one worker has other rows: %v", err)
					}
					if !sameRows(before, f.table.Dense()) {
						t.Error("the table itself changed")
					}
				}
			}
		}
	}
	f := newRefined(t, rnd, "", false, true, false, nil, 3)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if tab, err := f.table.Refine(over, f.r, 2); !errors.Is(err, context.Canceled) || tab != nil {
		t.Errorf("canceled: %v, %v", tab, err)
	}
}

// sameRows says whether two dense tables have the same rows.
func sameRows(a, b *Table) bool {
	return slices.EqualFunc(a.Blocks, b.Blocks, func(a, b *Block) bool {
		return slices.Equal(a.X, b.X) && slices.Equal(a.Norm, b.Norm)
	})
}

// TestRefineKeepsTheBound: whatever the rows are, as of a table that no schema made, refined rows keep the norm bound, and their norms
// are not understated.
func TestRefineKeepsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 79))
		const dim, unit = 70, 0x1p-20
		sparse, n := rapid.Bool().Draw(t, "sparse"), 1+rnd.IntN(20)
		rule := newRowRule(1, unit, rapid.Bool().Draw(t, "scale"), rapid.Bool().Draw(t, "L1"))
		tab := &Table{Dim: dim, NormBound: 1, Unit: unit, rule: rule}
		b := &Block{N: n, Dim: dim}
		if sparse {
			b.Start = []int32{0}
		}
		for range n {
			x := make([]float64, dim)
			for j := range x {
				if rnd.IntN(4) > 0 {
					x[j] = rnd.NormFloat64() * math.Exp2(float64(-rnd.IntN(22)))
				}
			}
			b.Norm = append(b.Norm, newRowRule(1, unit, false, rule.one).apply(x))
			for j, v := range x {
				if !sparse {
					b.X = append(b.X, float32(v))
				} else if v != 0 {
					b.Col, b.Val = append(b.Col, int32(j)), append(b.Val, float32(v))
				}
			}
			if sparse {
				b.Start = append(b.Start, int32(len(b.Col)))
			}
		}
		tab.Blocks = []*Block{b}
		r := Refinement{Columns: []Curved{{0, 3}, {4, 0}, {5, 2}, {9, 5}}, First: 19, Places: 2,
			Narrow: rapid.Bool().Draw(t, "narrow")}
		if rapid.Bool().Draw(t, "straight") {
			r.Gone = [][2]int{{1, 4}, {6, 8}}
		}
		if rapid.Bool().Draw(t, "pairs") {
			r.Pairs = [][2]int{{0, 2}, {3, 0}}
		} else {
			r.Gone = append(r.Gone, [2]int{19, 69})
		}
		got, err := tab.Refine(context.Background(), r, 1)
		if err != nil {
			t.Fatal(err)
		}
		var memory []float32
		for i, norm := range got.Blocks[0].Norm {
			square, size, k := 0.0, 0.0, got.Blocks[0]
			last := int32(-1)
			for _, j := range k.Col[min(len(k.Col), at(k.Start, i)):at(k.Start, i+1)] {
				if j <= last {
					t.Fatal("features do not ascend")
				}
				last = j
			}
			for _, v := range k.Dense(i, &memory) {
				w := float64(v) / unit
				if w != math.Trunc(w) {
					t.Fatal("no multiple of the unit")
				}
				square += w * w
				size += math.Abs(w)
			}
			if !rule.one {
				size = math.Sqrt(square)
			}
			if size > 1/unit || float64(norm) < math.Sqrt(square)*unit || float64(norm) > 1 {
				t.Fatalf("row %d: size %v, norm %v", i, size*unit, norm)
			}
		}
	})
}

// at is an entry of a sparse block's Start, 0 of a dense one.
func at(start []int32, i int) int {
	if start == nil {
		return 0
	}
	return int(start[i])
}
