package data

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/schema"
	"github.com/sottodp/sotto/schema/schematest"
)

const adultSchema = "testdata/adult-all-columns.yaml"

func mustLoad(t testing.TB, path string) *schema.Schema {
	t.Helper()
	s, err := LoadSchema(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	small      = schematest.Small
	unitSmall  = schematest.UnitSmall
	svm        = schematest.SVM
	pictures   = schematest.Pictures
	visits     = schematest.Visits
	bankSchema = schematest.Bank
)

func mustParse(t testing.TB, src string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("schema.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkTable fails where a table breaks a promise of the Table type.
func checkTable(t testing.TB, tab *Table) {
	t.Helper()
	for bi, b := range tab.Dense().Blocks {
		if b.Short != nil {
			var n Block
			b.Numbers(&n, 0, b.N)
			b = &n
		}
		if b.N < 1 || b.N > BlockRows || b.Dim != tab.Dim || len(b.X) != b.N*b.Dim || len(b.Norm) != b.N || tab.Labeled != (len(b.Y) == b.N) {
			t.Fatalf("block %d has a wrong shape", bi)
		}
		for i := range b.N {
			var sum float64
			for _, v := range b.X[i*b.Dim:][:b.Dim] {
				k := float64(v) / tab.Unit
				if k != float64(int64(k)) {
					t.Fatalf("row %d of block %d: %v is no multiple of the unit", i, bi, v)
				}
				sum += k * k
			}
			n := float64(b.Norm[i]) / tab.Unit
			if n*n < sum || float64(b.Norm[i]) > tab.NormBound {
				t.Fatalf("row %d of block %d: norm %v, true %v units², bound %v", i, bi, b.Norm[i], sum, tab.NormBound)
			}
			if b.Drop != nil && b.Drop[i] && sum != 0 {
				t.Fatalf("row %d of block %d is dropped and not zero", i, bi)
			}
		}
	}
}

// classCounts counts the labels.
func classCounts(tab *Table) []int {
	n := make([]int, tab.Classes)
	for _, b := range tab.Blocks {
		for i, y := range b.Y {
			if b.Drop == nil || !b.Drop[i] {
				n[int(y)]++
			}
		}
	}
	return n
}

// TestRealFiles reads the benchmark datasets and compares shapes and label
// counts with what their README states.
func TestRealFiles(t *testing.T) {
	race.Skip(t)
	dir := needs.Data(t)
	adult := mustLoad(t, adultSchema)
	bank := mustParse(t, bankSchema)
	a9a := mustParse(t, "dataset: a\nformat: {kind: libsvm}\nfeatures: 123\ncolumns: [{name: l, type: label, classes: ['-1', '+1']}]")
	ijcnn := mustParse(t, "dataset: i\nformat: {kind: libsvm}\nfeatures: 22\nmin: -2\nmax: 2\ncolumns: [{name: l, type: label, classes: ['-1', '1']}]")
	rcv1 := mustParse(t, "dataset: r\nformat: {kind: libsvm}\nfeatures: 47236\ncolumns: [{name: l, type: label, classes: ['-1', '+1']}]")
	for _, c := range []struct {
		file   string
		s      *schema.Schema
		dim    int
		counts [2]int
	}{
		{"adult/adult.data.gz", adult, 106, [2]int{24720, 7841}},
		{"adult/adult.test.gz", adult, 106, [2]int{12435, 3846}},
		{"a9a/a9a.gz", a9a, 124, [2]int{24720, 7841}},
		{"a9a/a9a.t.gz", a9a, 124, [2]int{12435, 3846}},
		{"ijcnn1/ijcnn1.gz", ijcnn, 23, [2]int{45137, 4853}},
		{"rcv1-small/rcv1-small-train.svm.gz", rcv1, 47237, [2]int{541, 459}},
		{"rcv1-small/rcv1-small-test.svm.gz", rcv1, 47237, [2]int{255, 245}},
		{"bank/bank-full.csv.gz", bank, 52, [2]int{39922, 5289}},
	} {
		t.Run(c.file, func(t *testing.T) {
			tab, stats, err := readTable(context.Background(), admit(), c.s, filepath.Join(dir, c.file), Options{Rows: c.counts[0] + c.counts[1]})
			if err != nil {
				t.Fatal(err)
			}
			if got := classCounts(tab); tab.Dim != c.dim || tab.Rows() != c.counts[0]+c.counts[1] || [2]int(got) != c.counts {
				t.Errorf("%d × %d, labels %v; want %d columns, labels %v", tab.Rows(), tab.Dim, got, c.dim, c.counts)
			}
			if stats.Dropped != 0 || stats.Rows != tab.Rows() {
				t.Errorf("stats %+v", stats)
			}
			if c.dim < 1000 {
				checkTable(t, tab)
			}
		})
	}
}

func BenchmarkReadAdult(b *testing.B) {
	path := filepath.Join(needs.Data(b), "adult/adult.data.gz")
	s := mustLoad(b, adultSchema)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := readTable(context.Background(), admit(), s, path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
