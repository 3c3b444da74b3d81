package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/live"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/trace"
)

const (
	batch     = 256
	unclipped = "" // no clipping
)

// dense is a synthetic table in memory.
func dense(n, dim, classes int) *data.Table {
	t := &data.Table{Dim: dim, Classes: classes, NormBound: 1, Unit: 0x1p-20, Labelled: true}
	x := values(n, dim, uint64(n))
	var room data.Room
	for at := 0; at < n; at += data.BlockRows {
		b := &data.Block{N: min(data.BlockRows, n-at), Dim: dim}
		b.X = room.Floats(b.N * dim)
		copy(b.X, x[at*dim:])
		norm := make([]float64, b.N)
		kern.Norm2(norm, b.X, dim, nil, dim)
		label(b, norm, classes, at)
		t.Blocks = append(t.Blocks, b)
	}
	return t
}

// sparse is a synthetic table of nnz values a row.
func sparse(n, dim, nnz int) *data.Table {
	t := &data.Table{Dim: dim, Classes: 2, NormBound: 1, Unit: 0x1p-20, Labelled: true}
	r := rand.New(rand.NewPCG(1, 2))
	value := float32(math.Trunc(0x1p20/math.Sqrt(float64(nnz)))) * 0x1p-20
	step := uint32(2*dim/nnz - 2)
	var room data.Room
	for at := 0; at < n; at += data.BlockRows {
		b := &data.Block{N: min(data.BlockRows, n-at), Dim: dim, Start: []int32{0}}
		b.Col, b.Val = room.Ints(b.N * nnz)[:0], room.Floats(b.N * nnz)[:0]
		for range b.N {
			col := uint32(0)
			for range nnz {
				if col += 1 + r.Uint32N(step); col >= uint32(dim) {
					break
				}
				b.Col, b.Val = append(b.Col, int32(col)), append(b.Val, value)
			}
			b.Start = append(b.Start, int32(len(b.Col)))
		}
		norm := make([]float64, b.N)
		for i := range norm {
			norm[i] = 1
		}
		label(b, norm, 2, at)
		t.Blocks = append(t.Blocks, b)
	}
	return t
}

func label(b *data.Block, norm []float64, classes, at int) {
	for i, v := range norm {
		b.Y = append(b.Y, float32((at+i)*7%classes))
		b.Norm = append(b.Norm, min(1, math.Nextafter32(float32(v), 2)))
	}
}

// nowhere is a journal that keeps nothing.
type nowhere struct{}

func (nowhere) Charge(privacy.Event) error { return nil }
func (nowhere) Release([][]float64) error  { return nil }

// A trainer is a run of SGD that goes on step by step.
type trainer struct {
	next  func() (method.Step, error, bool)
	close func()
	steps int // of an epoch
}

// train opens the door on a table and begins a run: private, with clipping, noise,
// accounting; or unclipped, the same loop on the same batches without. Both write their
// record to the disk, if recorded.
func train(t *data.Table, name string, size, workers int, clipping string, recorded bool) (*trainer, error) {
	private := clipping != unclipped
	rows := t.Rows()
	opt := model.Options{Dim: t.Dim, Classes: t.Classes, NormBound: 1}
	if name == "mlp" {
		opt.Layers = []string{"128 relu"}
	}
	if name == "cnn" { // that of Opacus' example for MNIST
		opt.Shape = []int{28, 28}
		opt.Layers = []string{"conv 16 8x8 stride 2 pad 3", "max 2 stride 1", "conv 32 4x4 stride 2", "max 2 stride 1", "32"}
	}
	m, err := model.New(name, opt)
	if err != nil {
		return nil, err
	}
	facts := m.Facts()
	cfg := live.Config{
		Table: t, Model: m, Workers: workers, Streams: noise.SeededStreams(1), Journal: nowhere{},
		Facts: oracle.Public{Dim: m.Dim(), Rows: rows, Classes: t.Classes, Adjacency: privacy.AddRemove, Bounded: facts.Bounded,
			NormBound: 1, Lipschitz: oracle.Bound(facts.Lipschitz), Smooth: oracle.Bound(facts.Smooth)},
	}
	if s, ok := m.(model.Starter); ok {
		for _, span := range s.Start() {
			cfg.Facts.Initial = append(cfg.Facts.Initial, oracle.Span(span))
		}
	}
	budget := privacy.Budget{Epsilon: 1e12, Delta: 1e-5, Adjacency: privacy.AddRemove}
	sgd := method.SGD{Steps: 1 << 30, Rate: 0.1, Clip: 0.35, Noise: 1, Batch: size, Clipping: clipping}
	var run method.Method = sgd
	if !private {
		sgd.Clip, sgd.Noise, sgd.Clipping = 0, 0, ""
		if run, err = sgd.Fit(cfg.Facts, method.Objective{}, method.Terms{Off: true}); err != nil {
			return nil, err
		}
	}
	plan, err := run.Plan(cfg.Facts)
	if err != nil {
		return nil, err
	}
	if private {
		cfg.Meter, err = account.NewPlan(plan, account.Best{}, budget)
	} else {
		cfg.Meter = free{}
	}
	if err != nil {
		return nil, err
	}
	closeAll := func() {}
	if recorded {
		dir, err := os.MkdirTemp("", "sotto-bench-")
		if err != nil {
			return nil, err
		}
		w, err := trace.Create(dir)
		if err != nil {
			return nil, err
		}
		cfg.Journal = w
		closeAll = func() { w.Close(); os.RemoveAll(dir) }
	}
	o, err := live.New(cfg)
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(run.Run(context.Background(), o, method.Objective{}))
	steps := 1
	if size > 0 {
		steps = (rows + size - 1) / size
	}
	return &trainer{func() (method.Step, error, bool) { return next() }, func() { stop(); o.Close(); closeAll() }, steps}, nil
}

// free is a meter that lets everything pass.
type free struct{}

func (free) Adjacency() privacy.Adjacency { return privacy.AddRemove }
func (free) Charge(privacy.Event) error   { return nil }

// epoch runs one epoch.
func (t *trainer) epoch() {
	for range t.steps {
		if _, err, ok := t.next(); err != nil || !ok {
			panic(fmt.Sprint("bench: a run ended: ", err))
		}
	}
}

// versus measures an epoch of private and of plain training, in seconds.
func versus(t *data.Table, name string, size, rounds int, recorded bool) (private, plain float64, err error) {
	a, err := train(t, name, size, 1, method.ByGradient, recorded)
	if err != nil {
		return 0, 0, err
	}
	defer a.close()
	b, err := train(t, name, size, 1, unclipped, recorded)
	if err != nil {
		return 0, 0, err
	}
	defer b.close()
	s := best(rounds, a.epoch, b.epoch)
	return s[0], s[1], nil
}

func ms(s float64) float64 { return 1000 * s }

// shape measures an epoch of batches and a full step on one table.
func shape(r *results, t *data.Table, key, ratio, model, what string, rounds, full int, recorded bool) error {
	private, plain, err := versus(t, model, batch, rounds, recorded)
	if err != nil {
		return err
	}
	r.put(key+"_epoch_ms", ms(private), "ms, "+what+", private, Poisson batches of 256")
	r.put("dp_over_sgd_"+ratio, private/plain, "private over plain, same batches")
	if private, plain, err = versus(t, model, 0, full, recorded); err != nil {
		return err
	}
	r.put(key[:strings.IndexByte(key+"_", '_')]+"_full_ms", ms(private), "ms, one private step on all rows")
	r.put("dp_over_gd_"+ratio, private/plain, "private over plain")
	return nil
}

func adult(r *results) error {
	return shape(r, dense(32_561, 106, 2), "adult", "adult", "logistic", "32,561×106, logistic", 40, 60, true)
}

func covtype(r *results) error {
	return shape(r, dense(500_000, 54, 2), "covtype", "d54", "logistic", "500,000×54, logistic", 10, 10, true)
}

func mnist(r *results) error {
	return shape(r, dense(60_000, 784, 10), "mnist_softmax", "mnist", "softmax", "60,000×784, 10 classes", 15, 10, true)
}

// network keeps no record: it would be 101,770 numbers a step.
func network(r *results) error {
	t := dense(60_000, 784, 10)
	private, plain, err := versus(t, "mlp", batch, 5, false)
	if err != nil {
		return err
	}
	r.put("mnist_mlp_epoch_ms", ms(private), "ms, 60,000×784, network of 128 hidden units, private, Poisson batches of 256, no record")
	r.put("dp_over_sgd_mlp", private/plain, "private over plain, same batches")
	return nil
}

// images is the network on images of Opacus' example, without a record.
func images(r *results) error {
	t := dense(15_000, 784, 10)
	var runs []func()
	for _, clipping := range []string{method.ByGradient, method.ByValue, unclipped} {
		t, err := train(t, "cnn", batch, 1, clipping, false)
		if err != nil {
			return err
		}
		defer t.close()
		runs = append(runs, t.epoch)
	}
	s := best(6, runs...)
	r.put("mnist_cnn_epoch_ms", 4*ms(s[0]), "ms, 60,000×784, four times an epoch of 15,000: convolutions 16@8×8 and 32@4×4, pooling, dense 32, private, Poisson batches of 256, no record")
	r.put("dp_over_sgd_cnn", s[0]/s[2], "private over plain, same batches")
	r.put("value_over_sgd_cnn", s[1]/s[2], "value clipping over plain, same batches")
	return nil
}

// rcv1 keeps no record: it would be 47,236 numbers a step, a gigabyte an epoch.
func rcv1(r *results) error {
	return shape(r, sparse(677_399, 47_236, 74), "rcv1", "rcv1", "logistic", "677,399×47,236, 74 values a row, no record", 2, 4, false)
}

// workers compares one and two workers on full passes, by the clock on the wall.
func workers(r *results) error {
	cov := dense(500_000, 54, 2)
	var runs []func()
	for _, n := range []int{1, 2} {
		t, err := train(cov, "logistic", 0, n, method.ByGradient, false)
		if err != nil {
			return err
		}
		defer t.close()
		runs = append(runs, t.epoch)
	}
	s := bestWall(40, runs...)
	if s[1] <= 0 {
		return errors.New("a pass took no time")
	}
	r.put("two_workers_speedup", s[0]/s[1], "one worker over two, full passes of 500,000×54, by the wall clock")
	return nil
}
