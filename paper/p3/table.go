package p3

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/noise"
)

// unit is what every stored feature is a whole number of.
const unit = 0x1p-20

// A table is the rows of 20 owners and rows to score on.
type table struct {
	name  string
	q     int     // rows of an owner
	paper float64 // q whose noise by Theorem 1 is added
	own   []*data.Table
	test  *data.Table
	few   bool // three curves only

	mu    sync.Mutex
	found map[string]*Least // by regularizer
}

// least is F* with a regularizer of the experiment, computed once.
func (t *table) least(ctx context.Context, reg string) (l *Least, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.found[reg] == nil {
		l2, l1 := mu, 0.0
		if reg == "l1" {
			l2, l1 = 0, phi
		}
		if l, err = least(ctx, t.own, l2, l1); err != nil {
			return nil, err
		}
		t.found[reg] = l
	}
	return t.found[reg], nil
}

// inside is the norm of a row, so that it stays below 1 when its values are rounded.
const inside = 1 - 1e-6

// dense is a table in the shape of epsilon: dim features that go together a little, rows of norm 1, labels of a planted
// linear model that is right for about nine rows in ten.
func dense(q, dim int) *table {
	t := &table{name: "epsilon-shaped", q: q, paper: 20_000, found: map[string]*Least{}}
	w := make([]float64, dim)
	src := noise.NewSeeded(seed, "truth", 0)
	for j := range w {
		w[j] = (src.Float64() - 0.5) * 12 / math.Sqrt(float64(dim))
	}
	x := make([]float64, dim)
	t.fill(dim, func(b *paper.Builder, src *noise.Source) {
		common, z, square := src.Float64()-0.5, 0.0, 0.0
		for j := range x {
			x[j] = src.Float64() - 0.5 + 0.5*common*math.Sin(float64(j))
			z += w[j] * x[j]
			square += x[j] * x[j]
		}
		b.Add(nil, x, inside/math.Sqrt(square), z*math.Sqrt(float64(dim)/square)+(src.Float64()-0.5) > 0)
	})
	return t
}

// words are the values that are not 0 of a row of the sparse table.
const words = 70

// sparse is a table in the shape of rcv1: some words of dim, the common ones far more often, rows of norm 1, labels by
// the words.
func sparse(name string, q, dim int) *table {
	t := &table{name: name, q: q, paper: 33_869, found: map[string]*Least{}}
	w := make([]float64, dim)
	src := noise.NewSeeded(seed, "truth", 1)
	for j := range w {
		w[j] = src.Float64() - 0.5
	}
	n := min(words, dim/4)
	seen := make([]bool, dim)
	draw := func(src *noise.Source) (cols []int32, x []float64, z float64) {
		for drawn := 0; drawn < n; {
			if j := int(math.Pow(float64(dim), src.Float64())) - 1; !seen[j] {
				seen[j] = true
				drawn++
			}
		}
		for j := range seen {
			if seen[j] {
				seen[j] = false
				v := 0.2 + src.Float64()
				cols, x, z = append(cols, int32(j)), append(x, v), z+v*w[j]
			}
		}
		return cols, x, z + 0.5*(src.Float64()-0.5)
	}
	const pilot = 500
	middle := 0.0
	for range pilot {
		_, _, z := draw(src)
		middle += z / pilot
	}
	t.fill(dim, func(b *paper.Builder, src *noise.Source) {
		cols, x, z := draw(src)
		b.Add(cols, x, inside/paper.Norm(x), z > middle)
	})
	return t
}

// fill draws the rows of all owners, and a fifth of as many to score on.
func (t *table) fill(dim int, row func(b *paper.Builder, src *noise.Source)) {
	for i := range nodes + 1 {
		b, src, rows := paper.NewBuilder(dim, 1, unit), noise.NewSeeded(seed, t.name, uint64(i)), t.q
		if i == nodes {
			rows = max(500, t.q*nodes/5)
		}
		for range rows {
			row(b, src)
		}
		if i == nodes {
			t.test = b.Table
		} else {
			t.own = append(t.own, b.Table)
		}
	}
}

// real reads rcv1-small, whose rows have a norm of 1, from the folder of the benchmark tables. Row k is owner k mod
// 20's.
func real(ctx context.Context, folder string) (*table, error) {
	const name = "rcv1-small"
	const schema = "dataset: rcv1-small\nrows: 1000\nformat: {kind: libsvm}\nfeatures: 47236\nintercept: false\nrow_norm: 1\ncolumns: [{name: y, type: label, classes: ['-1', '1']}]\n"
	file := filepath.Join(folder, name, name+"-train.svm.gz")
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	all, err := paper.Read(ctx, schema, file)
	if err != nil {
		return nil, err
	}
	t := &table{name: name, q: all.Rows() / nodes, paper: 33_869, found: map[string]*Least{}}
	for i := range nodes {
		t.own = append(t.own, data.Subset([]*data.Table{all}, func(row int) bool {
			return row%nodes == i && row < t.q*nodes
		}))
	}
	t.test, err = paper.Read(ctx, schema, filepath.Join(folder, name, name+"-test.svm.gz"))
	return t, err
}
