package private

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
	"pgregory.net/rapid"
)

const visits = `dataset: visits
unit: {name: patient, rows: %d}
units: 40
row_norm: 1
row_scaling: %s
on_bad_row: drop
intercept: true
columns:
  - {name: id, type: unit}
  - {name: a, type: numeric, min: 0, max: 9}
  - {name: b, type: numeric, min: 0, max: 9}
  - {name: y, type: label, classes: ["no", "yes"]}
`

// visit draws a row of a patient: mostly like the patient's others, which is the worst, and now and then a bad one.
func visit(rnd *rand.Rand, id string, like uint64) string {
	own := rand.New(rand.NewPCG(like, 1))
	if rnd.IntN(4) == 0 {
		own = rnd
	}
	y := []string{"no", "yes"}[own.IntN(2)]
	if rnd.IntN(8) == 0 {
		y = "perhaps"
	}
	return fmt.Sprintf("%s,%d,%d,%s", id, own.IntN(10), own.IntN(10), y)
}

// TestFilesThatDifferInAUnit: from the file on, through reading, most rows, bad rows, blocks and packing, what noise is added
// to moves by no more than the noise is scaled to when all rows of one unit come, go or become another's: under both
// relations, wherever they stand.
func TestFilesThatDifferInAUnit(t *testing.T) {
	race.Skip(t)
	dir := t.TempDir()
	worst := 0.0
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		most := 1 + rnd.IntN(6)
		schema, err := schema.Parse("", fmt.Appendf(nil, visits, most, []string{"project", "scale"}[rnd.IntN(2)]))
		if err != nil {
			rt.Fatal(err)
		}
		patient := func(id string) (rows []string) {
			like := rnd.Uint64()
			rows = append(rows, id+",1,2,yes") // one that is good
			for range rnd.IntN(3 * most) {
				rows = append(rows, visit(rnd, id, like))
			}
			return rows
		}
		var others []string
		units := 1 + rnd.IntN(20)
		for i := range units {
			others = append(others, patient(fmt.Sprint("p", i))...)
		}
		for range rnd.IntN(2) * 1100 { // another block
			others = append(others, fmt.Sprintf("p%d,3,4,no", rnd.IntN(units)))
		}
		adj := []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne}[rnd.IntN(2)]
		read := func(who []string) *data.Table {
			rows := slices.Concat(others, who)
			rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			file := filepath.Join(dir, "t.csv")
			if err := os.WriteFile(file, []byte("id,a,b,y\n"+strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
				rt.Fatal(err)
			}
			if rnd.IntN(2) == 0 {
				if _, err := data.Pack(context.Background(), &datatest.Gate{}, schema, file, file+".pack", data.Options{Formats: source.Formats()}); err != nil {
					rt.Fatal(err)
				}
				file += ".pack"
			}
			tab, _, err := data.Read(context.Background(), &datatest.Gate{}, schema, file, data.Options{KeepBad: adj == privacy.ReplaceOne, Formats: source.Formats()})
			if err != nil {
				rt.Fatal(err)
			}
			return tab
		}
		with, without := read(patient("x")), []string(nil)
		nominal := 1 + rnd.IntN(60)
		if adj == privacy.ReplaceOne {
			without, nominal = patient("y"), units+1
		}
		tables := []*data.Table{with, read(without)}
		m, err := model.New([]string{"logistic", "huber-svm"}[rnd.IntN(2)], model.Options{Dim: with.Dim, Classes: 2, NormBound: 1, Config: model.HuberSVM{Width: 0.5}})
		if err != nil {
			m = logistic(t, with.Dim)
		}
		w := make([]float64, with.Dim)
		for j := range w {
			w[j] = rnd.NormFloat64() * 4
		}
		c := math.Exp2(rnd.Float64()*12 - 8)
		rules := []clip.Rule{clip.Norm{C: c}, clip.Lipschitz{L: 1}}
		if m.Facts().Bounded {
			rules = append(rules, clip.Value{C: c})
		}
		grad := oracle.Grad{Clip: rules[rnd.IntN(len(rules))], Noise: mech.None{}}
		loss := oracle.Loss{Bound: c, Noise: mech.None{}}
		hess := oracle.Hess{Clip: c, Off: true}
		var sums [2][3][]float64
		var sens [3]float64
		for i, tab := range tables {
			cfg := config(t, tab, adj, nominal)
			cfg.Model, cfg.Facts.UnitRows, cfg.Workers = m, most, 1+rnd.IntN(3)
			o, err := New(cfg)
			if err != nil {
				rt.Fatal(err)
			}
			b, err := o.Batch(context.Background(), sample.Full{}, grad, loss, hess)
			if err != nil {
				rt.Fatal(err)
			}
			g, err := b.Grad(grad, w)
			if err != nil {
				rt.Fatal(err)
			}
			l, err := b.Loss(loss, w)
			if err != nil {
				rt.Fatal(err)
			}
			h, err := b.Hess(hess, w)
			if err != nil {
				rt.Fatal(err)
			}
			sums[i] = [3][]float64{slices.Clone(g), {l}, slices.Clone(h)}
			var r [3]release
			var errs [3]error
			r[0], errs[0] = o.gradients(grad, false)
			r[1], errs[1] = o.losses(loss)
			r[2], errs[2] = o.hessians(hess.Clip, false)
			for k := range r {
				if sens[k] = r[k].sens; errs[k] != nil {
					rt.Fatal(errs[k])
				}
			}
			if err := o.Close(); err != nil {
				rt.Fatal(err)
			}
		}
		for k, name := range []string{"gradient", "loss", "Hessian"} {
			moved, at, row := 0.0, 0, 0
			for j, v := range sums[0][k] {
				d := math.Abs(v-sums[1][k][j]) * float64(nominal)
				if moved += d * d; k == 2 && j != at { // beside the diagonal: twice
					moved += d * d
				}
				if k == 2 && j == at {
					at, row = at+with.Dim-row, row+1
				}
			}
			if moved = math.Sqrt(moved); moved > sens[k]*(1+1e-9) {
				rt.Fatalf("%s, %v, %#v: moved by %v, the noise counts on %v", name, adj, grad.Clip, moved, sens[k])
			}
			worst = max(worst, moved/sens[k])
		}
		for _, tab := range tables {
			if err := tab.Close(); err != nil {
				rt.Fatal(err)
			}
		}
	})
	if t.Logf("the worst is %.4f of the sensitivity", worst); worst < 0.9 {
		t.Error("the test has no force")
	}
}
