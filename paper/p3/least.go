package p3

import (
	"context"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/privacy/noise"
)

// A Least is the least objective F* of P3 (26), between Bound and Value, the objective at X.
type Least struct {
	Value, Bound float64
	X            []float64
	Passes       int // over all rows
}

// precise is the relative distance of Value and Bound at which a search ends.
const precise = 1e-6

// least minimizes the mean hinge loss of the rows + l2/2‖x‖², or + l1·‖x‖₁, by dual coordinate ascent in a seeded
// order: each row's α in [0, 1] is set to its best value in turn. Without l2, each pass is one on F + l1/2‖x −
// center‖², and the center moves to where it ends (proximal points). Bound is a value of the dual problem: with v the
// mean of α·y·row, mean(α) − ‖v‖²/(2·l2), or mean(α) where ‖v‖∞ ≤ l1. So that it ends on a large table, it takes at
// most 200 passes there.
func least(ctx context.Context, own []*data.Table, l2, l1 float64) (*Least, error) {
	rows, dim := rowsOf(own), own[0].Dim
	n, order := float64(len(rows)), make([]int32, len(rows))
	for k := range order {
		order[k] = int32(k)
	}
	coins, kappa := noise.NewSeeded(seed, "order", 0), max(l2, l1)
	alpha, v, center := make([]float64, len(rows)), make([]float64, dim), make([]float64, dim)
	u, x := make([]float64, dim), make([]float64, dim) // u = center + v/κ; x = argmin of the Lagrangian
	soft := func(j int32) { x[j] = math.Copysign(max(math.Abs(u[j])-l1/kappa, 0), u[j]) }
	longest := max(200, 4_000_000/len(rows))
	best := &Least{Value: math.MaxFloat64, X: make([]float64, dim)}
	for best.Value-best.Bound > precise*best.Value && best.Passes < longest {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best.Passes++
		for i := range order {
			j := i + int(coins.Float64()*float64(len(order)-i))
			order[i], order[j] = order[j], order[i]
		}
		for _, k := range order {
			r := &rows[k]
			a := min(1, max(0, alpha[k]+(1-r.y*r.dot(x))*kappa*n/(r.norm*r.norm)))
			if a != alpha[k] {
				r.add(u, (a-alpha[k])*r.y/(kappa*n))
				alpha[k] = a
				if r.col == nil {
					for j := range x {
						soft(int32(j))
					}
				}
				for _, j := range r.col {
					soft(j)
				}
			}
		}
		if best.Passes%10 == 0 { // both values, from α and x alone
			value, mean, square, most := 0.0, 0.0, 0.0, 0.0
			clear(v)
			for k := range rows {
				r := &rows[k]
				value += max(0, 1-r.y*r.dot(x)) / n
				mean += alpha[k] / n
				r.add(v, alpha[k]*r.y/n)
			}
			for j := range v {
				value += l2/2*x[j]*x[j] + l1*math.Abs(x[j])
				square, most = square+v[j]*v[j], max(most, math.Abs(v[j]))
			}
			bound := mean - square/2/l2
			if l1 > 0 {
				bound = mean * min(1, l1/most)
			}
			best.Bound = max(best.Bound, bound)
			if value < best.Value {
				best.Value = value
				copy(best.X, x)
			}
		}
		if l1 > 0 {
			for j := range u {
				u[j] += x[j] - center[j]
				center[j] = x[j]
				soft(int32(j))
			}
		}
	}
	return best, nil
}

// A row is one of a table, with its label ±1 and its norm.
type row struct {
	y, norm float64
	col     []int32 // nil: all columns
	val     []float32
}

// rowsOf lists the rows of all owners.
func rowsOf(own []*data.Table) (list []row) {
	for _, t := range own {
		for _, b := range t.Blocks {
			for i := range b.N {
				r := row{y: 2*float64(b.Y[i]) - 1, norm: float64(b.Norm[i])}
				r.col, r.val = b.Values(i, nil)
				list = append(list, r)
			}
		}
	}
	return list
}

// dot is the product with w.
func (r *row) dot(w []float64) (z float64) {
	if r.col == nil {
		var one [1]float64
		kern.Dot(one[:], r.val, len(r.val), nil, w)
		return one[0]
	}
	for k, j := range r.col {
		z += float64(r.val[k]) * w[j]
	}
	return z
}

// add adds a times the row to w.
func (r *row) add(w []float64, a float64) {
	if r.col == nil {
		kern.Axpy(w, []float64{a}, r.val, len(r.val), nil)
		return
	}
	for k, j := range r.col {
		w[j] += a * float64(r.val[k])
	}
}
