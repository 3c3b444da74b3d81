package data

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/internal/race"
)

// TestBytes: a file of images as bytes has the rows of the table of numbers, up to a step of the center, within the bounds
// that both promise.
func TestBytes(t *testing.T) {
	race.Skip(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, change := range []string{"", "row_scaling: scale", "row_scaling: project", "intercept: false"} {
		text := pictures
		if key, _, ok := strings.Cut(change, ":"); ok {
			var lines []string
			for line := range strings.SplitSeq(text, "\n") {
				if !strings.HasPrefix(line, key+":") {
					lines = append(lines, line)
				}
			}
			text = change + "\n" + strings.Join(lines, "\n")
		}
		s := mustParse(t, text)
		const n = 2*BlockRows + 100
		var values, labels []byte
		for i := range n {
			for range 6 {
				v := byte(rnd.Uint32())
				if i%7 == 0 {
					v = []byte{0, 100, 255}[i%3]
				}
				values = append(values, v)
			}
			labels = append(labels, []byte{7, 3}[i%2])
		}
		path := pair(t, idx(n, []int{2, 3}, values...), idx(n, nil, labels...), "")
		numbers, _, err := readTable(context.Background(), admit(), s, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		tab, stats, err := readTable(context.Background(), admit(), s, path, Options{Coding: Coding{Bytes: true}})
		if err != nil || stats.Rows != n || tab.Pixels == nil || tab.NormBound != numbers.NormBound || tab.Unit != numbers.Unit || tab.Dim != numbers.Dim {
			t.Fatalf("%v, %+v, %+v", err, stats, tab)
		}
		px := tab.Pixels
		var images [][]byte
		var classes []float32
		var memory []float32
		for k, b := range tab.Blocks {
			if b.X != nil || len(b.Bytes) != b.N*px.Stride || px.Stride%32 != 0 || !slices.Equal(b.Y, numbers.Blocks[k].Y) {
				t.Fatalf("block %d of %d rows: %d bytes", k, b.N, len(b.Bytes))
			}
			for i := range b.N {
				image := b.Bytes[i*px.Stride:][:px.N]
				images, classes = append(images, image), append(classes, b.Y[i])
				square := new(big.Float).SetPrec(200)
				factor := big.NewFloat(b.Factor[i])
				add := func(v float64) {
					x := new(big.Float).SetPrec(200).Mul(factor, big.NewFloat(v))
					square.Add(square, x.Mul(x, x))
				}
				for _, v := range image {
					add(float64(v) - px.Center)
				}
				add(px.One)
				norm := float64(b.Norm[i])
				if up := new(big.Float).SetPrec(200).Mul(square.Sqrt(square), big.NewFloat(1+0x1p-40)); up.Cmp(big.NewFloat(norm)) > 0 || norm > tab.NormBound {
					t.Fatalf("%s: row %d has the norm %v, stored as %v, bound %v", change, i, square, norm, tab.NormBound)
				}
				var sum float64
				want := row(numbers, k*BlockRows+i)
				for j, x := range b.Dense(i, &memory) {
					if r := float64(x) / tab.Unit; r != math.Trunc(r) || math.Signbit(float64(x)) && x == 0 {
						t.Fatalf("%v is no multiple of the unit", x)
					}
					if math.Abs(float64(x-want[j])) > 2*tab.Unit+0x1p-11/50 {
						t.Fatalf("%s: row %d: %v as bytes, %v as numbers", change, i, x, want[j])
					}
					sum += float64(x) * float64(x)
				}
				if math.Sqrt(sum) > norm {
					t.Fatalf("numbers of norm %v, stored is %v", math.Sqrt(sum), norm)
				}
			}
		}
		sameBytes := func(name string, got *Table) {
			t.Helper()
			if got.Rows() != n {
				t.Fatalf("%s: %d rows", name, got.Rows())
			}
			for k, b := range got.Blocks {
				a := tab.Blocks[k]
				for _, diff := range []string{cmp.Diff(a.Bytes, b.Bytes), cmp.Diff(a.Factor, b.Factor), cmp.Diff(a.Norm, b.Norm), cmp.Diff(a.Y, b.Y)} {
					if diff != "" {
						t.Fatalf("%s: %s", name, diff)
					}
				}
			}
		}
		sameBytes("images", OfImages(s, images, classes))
		sameBytes("subset", Subset([]*Table{tab}, func(int) bool { return true }))
		if a, b := RowHashes([]*Table{tab}, nil), RowHashes([]*Table{OfImages(s, images, classes)}, nil); !slices.Equal(a, b) || len(a) != n {
			t.Error("equal rows have other hashes")
		}
	}
}

// TestBytesOfDroppedRows: a bad row keeps its place, with zeros.
func TestBytesOfDroppedRows(t *testing.T) {
	s := mustParse(t, "on_bad_row: drop\n"+pictures)
	images, labels := idx(3, []int{2, 3}, 1, 2, 3, 4, 5, 6, 9, 9, 9, 9, 9, 9, 6, 5, 4, 3, 2, 1), idx(3, nil, 3, 9, 7)
	for _, keep := range []bool{true, false} {
		tab, stats, err := readTable(context.Background(), admit(), s, pair(t, images, labels, ""), Options{Coding: Coding{Bytes: true}, KeepBad: keep})
		if err != nil || stats.Dropped != 1 {
			t.Fatal(err)
		}
		b, last := tab.Blocks[0], 1
		if keep {
			if last = 2; !b.Drop[1] || b.Bytes[tab.Pixels.Stride] != 0 || b.Factor[1] != 0 || b.Norm[1] != 0 {
				t.Errorf("%+v", b)
			}
		}
		if b.N != last+1 || b.Bytes[last*tab.Pixels.Stride] != 6 || b.Y[last] != 0 || b.Bytes[0] != 1 || b.Y[0] != 1 {
			t.Errorf("%+v", b)
		}
	}
}

// TestPixelsOf: what cannot be bytes stays numbers.
func TestPixelsOf(t *testing.T) {
	for change, want := range map[string]bool{
		"":                                      true,
		"center: 0, scale: 1":                   true,
		"center: 255, scale: 256":               true,
		"center: -1, scale: 50":                 false,
		"center: 256, scale: 50":                false,
		"center: 100, scale: 0.5":               false,
		"center: 100, scale: 300":               false, // with an intercept
		"center: [0, 1, 2, 3, 4, 5], scale: 50": false,
	} {
		text := pictures
		if change != "" {
			text = strings.Replace(text, "center: 100, scale: 50", change, 1)
		}
		if got := PixelsOf(mustParse(t, text)); (got != nil) != want {
			t.Errorf("%q: %+v", change, got)
		}
	}
	if PixelsOf(mustParse(t, strings.Replace(pictures, "[2, 3]", "[65, 64]", 1))) != nil {
		t.Error("bytes of more pixels than a kernel takes")
	}
	if PixelsOf(mustParse(t, small)) != nil {
		t.Error("bytes of CSV")
	}
}

// TestBytesOfAPackedTable: it has numbers, whatever is asked.
func TestBytesOfAPackedTable(t *testing.T) {
	s := mustParse(t, pictures)
	images, labels := idx(3, []int{2, 3}, 0, 100, 150, 200, 255, 50, 100, 100, 100, 100, 100, 100, 1, 2, 3, 4, 5, 6), idx(3, nil, 3, 7, 3)
	path, packed := pair(t, images, labels, ""), filepath.Join(t.TempDir(), "packed")
	if _, err := packTable(context.Background(), admit(), s, path, packed, Options{Coding: Coding{Bytes: true}}); err != nil {
		t.Fatal(err)
	}
	tab, _, err := readTable(context.Background(), admit(), s, packed, Options{Coding: Coding{Bytes: true}})
	if err != nil || tab.Pixels != nil || tab.Blocks[0].X == nil {
		t.Errorf("%+v, %v", tab, err)
	}
	of := OfImages(s, [][]byte{{0, 100, 150, 200, 255, 50}}, []float32{1})
	if err := PackTable(s, of, packed); err == nil {
		t.Error("bytes are packed")
	}
}
