package data

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/internal/race"
)

// drawn is a dense table in memory with rows within the bound, many of them with few values that count.
func drawn(rnd *rand.Rand, dim, rows int) *Table {
	t := &Table{Dim: dim, NormBound: 4, Unit: 0x1p-18}
	rule := newRowRule(4, t.Unit, false, false)
	for at := 0; at < rows; at += BlockRows {
		b := &Block{N: min(rows-at, BlockRows), Dim: dim}
		for range b.N {
			x := make([]float64, dim)
			size := math.Exp2(-20 * rnd.Float64())
			for j := range x {
				x[j] = rnd.NormFloat64() * size
				if j > 0 && size < 0x1p-8 {
					x[j] *= 0x1p-10
				}
			}
			b.Norm = append(b.Norm, rule.apply(x))
			b.X = appendFloat32(b.X, x)
		}
		t.Blocks = append(t.Blocks, b)
	}
	return t
}

// TestShorten: rows of 16-bit numbers are rows of the table but for digits cut off, and keep the bound and the unit.
func TestShorten(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 1))
	for _, dim := range []int{1, 2, 31, 32, 33, 500} {
		numbers := drawn(rnd, dim, 2*BlockRows+7)
		tab := numbers.Shorten()
		checkTable(t, tab)
		var memory []float32
		for k, b := range tab.Blocks {
			was := numbers.Blocks[k]
			for i := range b.N {
				row, x := b.Dense(i, &memory), was.X[i*dim:(i+1)*dim]
				most, square := 0.0, 0.0
				for j, v := range row {
					most, square = max(most, math.Abs(float64(x[j]))), square+float64(x[j])*float64(x[j])
					if math.Abs(float64(v)) > math.Abs(float64(x[j])) || math.Abs(float64(x[j]-v)) >= b.Scale(i) || v*x[j] < 0 {
						t.Fatalf("%v became %v", x[j], v)
					}
				}
				if s := int(b.Shift[i]); s > 0 && most < math.Ldexp(tab.Unit, 14+s) && math.Sqrt(square) <= math.Ldexp(tab.Unit, 15+s) {
					t.Fatalf("a row of norm %v and largest number %v has the shift %d: it wastes digits", math.Sqrt(square), most, s)
				}
				if s := b.Shift[i]; s > mostShift {
					t.Fatalf("the shift %d", s)
				}
			}
		}
		copied, all := Block{Dim: dim}, Block{}
		copier := NewCopier(tab)
		rows := []int32{3, BlockRows, 2*BlockRows + 6}
		copier.Copy(&copied, rows, 3, 0)
		for k, row := range rows {
			b := tab.Blocks[row/BlockRows]
			if x := slices.Clone(b.Dense(int(row%BlockRows), &memory)); !slices.Equal(x, copied.Dense(k, &memory)) || copied.Norm[k] != b.Norm[row%BlockRows] {
				t.Fatal("another row was copied")
			}
		}
		some := Subset([]*Table{tab}, func(record int) bool { return record%2 == 1 })
		tab.Blocks[0].Numbers(&all, 1, 2)
		if !slices.Equal(some.Blocks[0].Dense(0, &memory), all.X) {
			t.Error("another row in a subset")
		}
		again := (&Table{Dim: dim, Unit: tab.Unit, NormBound: 4, Blocks: []*Block{&all}}).Shorten()
		if got := again.Blocks[0]; !slices.Equal(got.Dense(0, &memory), all.X) || got.Norm[0] != all.Norm[0] {
			t.Error("rows of 16-bit numbers lose digits again")
		}
	}
}

// TestPackShort: a packed table of 16-bit numbers is the table shortened, as 16-bit numbers or as float32.
func TestPackShort(t *testing.T) {
	race.Skip(t)
	for name, c := range map[string]struct{ schema, content string }{
		"dense":   {small, smallRows(3*BlockRows + 17)},
		"l1":      {"norm: l1\n" + small, smallRows(100)},
		"one":     {small, smallRows(1)},
		"dropped": {"on_bad_row: drop\n" + small, strings.Replace(smallRows(2000), "red,x,", "red,x,NaN", 600)},
		"units":   {visits, visitsFile(visitRows(3*BlockRows + 17))},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, c.schema)
			tab, _ := mustRead(t, s, c.content, Options{KeepBad: true})
			want := tab.Shorten()
			path := packOf(t, s, c.content, Options{Coding: Coding{Short: true}})
			for _, short := range []bool{true, false} {
				got, _, err := readTable(context.Background(), admit(), s, path, Options{KeepBad: true, Coding: Coding{Short: short}})
				if err != nil {
					t.Fatal(err)
				}
				checkTable(t, got)
				if (got.Short != nil) != short {
					t.Fatal("rows have another form than was asked for")
				}
				if tab.units != nil {
					tab.units.ids = nil
				}
				if !reflect.DeepEqual(tab.units, got.units) {
					t.Error("other units")
				}
				for k, b := range want.Blocks {
					w := b
					if !short {
						w = new(Block)
						b.Numbers(w, 0, b.N)
					}
					if d := cmp.Diff(w, got.Blocks[k]); d != "" {
						t.Fatal(d)
					}
				}
				if err := errors.Join(got.Close(), got.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPackShortRefuses: what has no such rows, and what is none of them under right checksums.
func TestPackShortRefuses(t *testing.T) {
	wide := "dataset: wide\nrows: 9\nformat: {kind: idx}\nimage: {shape: [65, 64], scale: 255}\nrow_norm: 1\ncolumns: [{name: y, type: label, classes: [\"0\", \"1\"]}]\n"
	for text, want := range map[string]string{svm: "16-bit numbers; expected dense rows of up to 4096 features", wide: "found a table with 4161 features as 16-bit numbers"} {
		_, err := packTable(context.Background(), admit(), mustParse(t, text), "rows", filepath.Join(t.TempDir(), "t"), Options{Coding: Coding{Short: true}})
		if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := mustParse(t, small)
	const n = 4
	b, err := os.ReadFile(packOf(t, s, smallRows(n), Options{Coding: Coding{Short: true}}))
	if err != nil {
		t.Fatal(err)
	}
	stride := shortStride(s.Dim())
	set := func(chunk []byte, at int, v int16) { binary.LittleEndian.PutUint16(chunk[2*at:], uint16(v)) }
	for name, change := range map[string]func(chunk []byte){
		"":              func([]byte) {},
		"no number":     func(c []byte) { set(c, 0, -kern.ShortMost-1) },
		"another":       func(c []byte) { set(c, 0, int16(binary.LittleEndian.Uint16(c))+1) },
		"after the row": func(c []byte) { set(c, s.Dim(), 1) },
		"a shift":       func(c []byte) { c[padded(2*n*stride)]++ },
		"a wide shift": func(c []byte) {
			clear(c[:2*stride])
			clear(c[padded(2*n*stride)+padded(n):][:8])
			c[padded(2*n*stride)] = mostShift + 1
		},
	} {
		_, _, err := readTable(context.Background(), admit(), s, writeFile(t, "t", string(forge(t, b, change))), Options{Coding: Coding{Short: true}})
		if name == "" && err != nil || name != "" && (err == nil || !strings.Contains(err.Error(), "rows that are not encoded as the schema asks")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The version and the flag go together; a Sotto that knows neither refuses the version.
	if v := binary.LittleEndian.Uint32(b[8:]); v != packShorts {
		t.Errorf("version %d", v)
	}
	b[8] = packVersion
	if _, _, err := readTable(context.Background(), admit(), s, writeFile(t, "t", string(forge(t, b, func([]byte) {}))), Options{}); err == nil || !strings.Contains(err.Error(), "footer does not fit its rows") {
		t.Error(err)
	}
}
