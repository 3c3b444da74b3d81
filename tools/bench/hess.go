package main

import (
	"context"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// hessians compares a private Hessian of all rows with a gradient, and the multiply-adds of VᵀV, counting both
// triangles, with those of a matrix product. The table has the size of covtype's two largest classes.
func hessians(r *results) error {
	const n, dim, rows = 495_141, 54, 64
	t := dense(n, dim, 2)
	m, err := model.New("logistic", model.Options{Dim: dim, Classes: 2, NormBound: 1})
	if err != nil {
		return err
	}
	job := &run.Job{Model: m,
		Facts: oracle.Public{Dim: dim, Rows: n, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1}}
	trainer := run.Trainer{Job: job, Table: t, Streams: noise.SeededStreams(1), Journal: run.NopJournal{}, Meter: free{}}
	o, err := trainer.Open()
	if err != nil {
		return err
	}
	defer o.Close()
	grad := oracle.Grad{Clip: clip.Norm{C: 0.35}, Noise: mech.Gaussian{Sigma: 1}}
	hess := oracle.Hess{Clip: 0.25, Noise: mech.SymmetricGaussian{Sigma: 1}}
	w := make([]float64, dim)
	for j := range w {
		w[j] = float64(j%7) - 3
	}
	ask := func(q oracle.Query, answer func(oracle.Batch) error) func() {
		return func() {
			b, e := o.Batch(context.Background(), sample.Full{}, q)
			if e == nil {
				e = answer(b)
			}
			if err == nil {
				err = e
			}
		}
	}
	side := kern.Padded(dim)
	v, sum := kern.Aligned(rows*side), kern.Aligned(side*side)
	const times = n / rows
	f32, f64 := product[float32](1024, 1024, 1024), product[float64](1024, 1024, 1024)
	s := best(8,
		ask(grad, func(b oracle.Batch) error { _, err := b.Grad(grad, w); return err }),
		ask(hess, func(b oracle.Batch) error { _, err := b.Hess(hess, w); return err }),
		func() {
			for range times {
				kern.Gram(sum, side, v, rows)
			}
		},
		func() { f32(false, false) }, func() { f64(false, false) })
	if err != nil {
		return err
	}
	const cube = 1024 * 1024 * 1024
	gram := float64(times*rows*dim*dim) / s[2]
	r.put("gradient_ms_1t", 1e3*s[0], "ms of one gradient of 495,141 × 54")
	r.put("hessian_ms_1t", 1e3*s[1], "ms of one Hessian of them")
	r.put("grad_and_hess_of_grad", (s[0]+s[1])/s[0], "a gradient and a Hessian, against a gradient")
	r.put("gram_of_gemm_f32", gram/(cube/s[3]), "n·d² a second of VᵀV, against multiply-adds of a float32 product")
	r.put("gram_of_gemm_f64", gram/(cube/s[4]), "against a float64 product")
	r.put("hess_of_gemm_f32", float64(n*dim*dim)/s[1]/(cube/s[3]), "n·d² a second of the whole Hessian, against float32")
	return nil
}
