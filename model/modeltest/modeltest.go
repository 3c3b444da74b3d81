// Package modeltest helps to test models and what stands on them: blocks made by
// hand, and the slow reference of gradient clipping.
package modeltest

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
)

// Unit is the grid of a table whose row norms are at most bound, as package data
// has it: 2⁻²⁰ times the smallest power of two that is not below bound.
func Unit(bound float64) float64 {
	frac, exp := math.Frexp(bound) // frac in [½, 1)
	if frac == 0.5 {
		exp--
	}
	return math.Ldexp(1, exp-20)
}

// Dense makes a block of up to data.BlockRows rows. Values are truncated toward
// zero to multiples of unit; norms are rounded up.
func Dense(x [][]float64, y []float64, unit float64) *data.Block {
	if len(x) == 0 || len(x) > data.BlockRows || len(x) != len(y) {
		panic(fmt.Sprintf("modeltest: %d rows and %d labels; want as many labels as rows, 1 to %d", len(x), len(y),
			data.BlockRows))
	}
	b := &data.Block{N: len(x), Dim: len(x[0])}
	for i, row := range x {
		var sq float64
		for _, v := range row {
			v = math.Trunc(v/unit) * unit
			b.X = append(b.X, float32(v))
			sq += v * v
		}
		norm := float32(math.Sqrt(sq) * (1 + 1e-12))
		if norm > 0 {
			norm = math.Nextafter32(norm, float32(math.Inf(1)))
		}
		b.Norm = append(b.Norm, norm)
		b.Y = append(b.Y, float32(y[i]))
	}
	return b
}

// Sparse is the same block in sparse form.
func Sparse(b *data.Block) *data.Block {
	s := &data.Block{N: b.N, Dim: b.Dim, Start: []int32{0}, Y: b.Y, Norm: b.Norm, Drop: b.Drop}
	for i := range b.N {
		for j, v := range b.X[i*b.Dim : (i+1)*b.Dim] {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.Start = append(s.Start, int32(len(s.Col)))
	}
	return s
}

// MicroBatch is plain micro-batch clipping (P0, Table 2): it forms the gradient
// of every record by itself, scales it to ‖·‖_p ≤ clip, p = 1 or 2, and adds it.
// Dropped rows, and rows whose gradient is not finite, add nothing. It is slow
// and has nothing in common with GradNorm and the weighted sum, so it is what
// they are tested against.
func MicroBatch(m model.Model, w []float64, views []data.View, clip float64, p int) []float64 {
	var ws model.Workspace
	sum, grad := make([]float64, m.Dim()), make([]float64, m.Dim())
	for _, v := range views {
		for i := range v.Len() {
			row := v.Row(i)
			if v.Drop != nil && v.Drop[row] {
				continue
			}
			clear(grad)
			one := data.View{Block: v.Block, From: row, To: row + 1}
			m.Eval(w, one, &ws).AddGrad(grad, []float64{1}, 0)
			norm := Norm(grad, p)
			if math.IsNaN(norm) || math.IsInf(norm, 0) {
				continue
			}
			scale := 1.0
			if norm > clip {
				scale = clip / norm
			}
			for j, g := range grad {
				sum[j] += scale * g
			}
		}
	}
	return sum
}

// Norm is ‖v‖_p for p = 1 or 2, in plain float64.
func Norm(v []float64, p int) float64 {
	var s float64
	for _, x := range v {
		switch p {
		case 1:
			s += math.Abs(x)
		case 2:
			s += x * x
		default:
			panic("modeltest: p must be 1 or 2")
		}
	}
	if p == 2 {
		s = math.Sqrt(s)
	}
	return s
}
