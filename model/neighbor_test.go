package model_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
)

// plain hides what a model knows of its neighbors.
type plain struct{ model.Model }

// What a model says of a parameter's move is the difference of two losses, of every model, of dense and sparse rows, and of
// rows picked from a block.
func TestNeighborFalls(t *testing.T) {
	rnd := rand.New(rand.NewPCG(31, 1))
	const n, dim = 40, 5
	for _, name := range model.Names() {
		k := classesOf(name, 3)
		if isNetwork(name) {
			k = 2
		}
		m, err := model.New(name, model.Options{Dim: dim, Classes: k, NormBound: 3, Config: smallOf(name, dim)})
		if err != nil {
			t.Fatal(err)
		}
		dense := &data.Block{N: n, Dim: dim}
		sparse := &data.Block{N: n, Dim: dim, Start: []int32{0}}
		for range n {
			for j := range dim {
				x := float32(0)
				if rnd.IntN(3) > 0 {
					x = float32(rnd.NormFloat64() / 4)
					sparse.Col, sparse.Val = append(sparse.Col, int32(j)), append(sparse.Val, x)
				}
				dense.X = append(dense.X, x)
			}
			sparse.Start = append(sparse.Start, int32(len(sparse.Col)))
			dense.Y = append(dense.Y, float32(rnd.IntN(max(k, 1))))
		}
		dense.Y[7] = 17 // no class, where there are classes
		sparse.Y = dense.Y
		w := make([]float64, m.Dim())
		for j := range w {
			w[j] = rnd.NormFloat64()
		}
		for _, v := range []data.View{{Block: dense, To: n}, {Block: sparse, From: 3, To: 30}, {Block: dense, Rows: []int32{1, 7, 8, 33}}, {Block: sparse, Rows: []int32{0, 39}}} {
			for _, step := range []float64{0.7, 1e-3, -5} {
				var got, want model.Falls
				var ws model.Workspace
				model.NeighborFalls(m, &got, w, step, v, &ws)
				model.NeighborFalls(plain{m}, &want, w, step, v, &ws)
				type move struct{ row, param int32 }
				type fall struct{ up, down float64 }
				of := map[move]fall{}
				for e := range got.Row {
					of[move{got.Row[e], got.Param[e]}] = fall{got.Up[e], got.Down[e]}
				}
				if len(of) != len(got.Row) || len(want.Row) != v.Len()*m.Dim() {
					t.Fatalf("%s: NeighborFalls lists %d moves, %d of them different, of at most %d; list each pair of row and "+
						"parameter once, and leave out only those that change nothing", name, len(got.Row), len(of), len(want.Row))
				}
				for e := range want.Row {
					f := of[move{want.Row[e], want.Param[e]}]
					for _, p := range [][2]float64{{f.up, want.Up[e]}, {f.down, want.Down[e]}} {
						bad := math.IsNaN(p[1]) && f != fall{} // a row without a class: no number, where its feature is not 0
						if diff := math.Abs(p[0] - p[1]); bad != math.IsNaN(p[0]) || diff > 1e-12 {
							t.Fatalf("%s, step %v, row %d, parameter %d: NeighborFalls gives a decrease of the loss of %v, the difference "+
								"of two losses is %v; they may be 1e-12 apart", name, step, want.Row[e], want.Param[e], p[0], p[1])
						}
					}
				}
			}
		}
	}
}
