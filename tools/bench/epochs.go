package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

const batch = 256

// dense is a synthetic table in memory.
func dense(n, dim, classes int) *data.Table {
	t := &data.Table{Dim: dim, Classes: classes, NormBound: 1, Unit: 0x1p-20, Labeled: true}
	x := values(n, dim, uint64(n))
	var arena data.Arena
	for at := 0; at < n; at += data.BlockRows {
		b := &data.Block{N: min(data.BlockRows, n-at), Dim: dim}
		b.X = arena.Floats(b.N * dim)
		copy(b.X, x[at*dim:])
		norm := make([]float64, b.N)
		kern.Norm2(norm, b.X, dim, nil, dim)
		label(b, norm, classes, at)
		t.Blocks = append(t.Blocks, b)
	}
	return t
}

// pictures is a synthetic table of 28×28 images like those of MNIST: strokes in the middle that cover 19 % of the
// points, all of one brightness.
func pictures(n int) *data.Table {
	const side, ink = 28, 150
	t := dense(n, side*side, 10)
	r := rand.New(rand.NewPCG(3, 4))
	bright := float32(math.Trunc(0x1p20/math.Sqrt(ink)) * 0x1p-20)
	for _, b := range t.Blocks {
		clear(b.X)
		for i := range b.N {
			x := b.X[i*side*side:][:side*side]
			row, col := 4+r.IntN(16), 4+r.IntN(16)
			for left := ink; left > 0; {
				down, right := r.IntN(3)-1, r.IntN(3)-1
				for range 6 { // a stroke, three points wide
					row, col = min(max(row+down, 4), 22), min(max(col+right, 4), 22)
					for _, at := range []int{row*side + col, row*side + col + 1, (row+1)*side + col} {
						if x[at] == 0 && left > 0 {
							x[at], left = bright, left-1
						}
					}
				}
			}
		}
	}
	return t
}

// sparse is a synthetic table with nnz values in each row.
func sparse(n, dim, nnz int) *data.Table {
	t := &data.Table{Dim: dim, Classes: 2, NormBound: 1, Unit: 0x1p-20, Labeled: true}
	r := rand.New(rand.NewPCG(1, 2))
	value := float32(math.Trunc(0x1p20/math.Sqrt(float64(nnz)))) * 0x1p-20
	step := uint32(2*dim/nnz - 2)
	var arena data.Arena
	for at := 0; at < n; at += data.BlockRows {
		b := &data.Block{N: min(data.BlockRows, n-at), Dim: dim, Start: []int32{0}}
		b.Col, b.Val = arena.Ints(b.N * nnz)[:0], arena.Floats(b.N * nnz)[:0]
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

// A trainer is a run of SGD that advances step by step.
type trainer struct {
	next  func() (method.Step, error, bool)
	close func()
	steps int // of an epoch
}

// A kind is how a run treats gradients.
type kind struct {
	clip  string // "": not at all
	noise float64
}

var (
	dpSGD = kind{method.ByGradient, 1}
	plain = kind{}
)

// train opens an oracle over a table and begins a run: private, with clipping, noise and accounting; or plain, the
// same loop on the same batches without them. Both write a run log to disk if recorded is set.
func train(t *data.Table, m model.Model, size, workers int, how kind, recorded bool) (*trainer, error) {
	rows := t.Rows()
	facts := m.Facts()
	job := &run.Job{Model: m,
		Facts: oracle.Public{Dim: m.Dim(), Rows: rows, Classes: t.Classes, Adjacency: privacy.AddRemove,
			Coding: oracle.Coding(t.Coding()), NormBound: 1, Lipschitz: oracle.Bound(facts.Lipschitz), Smooth: oracle.Bound(facts.Smooth),
			Bounded: facts.Bounded}}
	cfg := run.Trainer{Job: job, Table: t, Workers: workers, Streams: noise.SeededStreams(1), Journal: run.NopJournal{}}
	if s, ok := m.(model.Starter); ok {
		for _, span := range s.Start() {
			job.Facts.Initial = append(job.Facts.Initial, oracle.Span(span))
		}
	}
	budget := privacy.Budget{Epsilon: 1e12, Delta: 1e-5, Adjacency: privacy.AddRemove}
	sgd := method.SGD{Steps: 1 << 30, Rate: 0.1,
		Gradient: method.Gradient{Clip: 0.35, Clipping: how.clip, Noise: how.noise, Batch: size}}
	var err error
	job.Method = sgd
	if how.noise == 0 {
		if how.clip == "" {
			sgd.Gradient.Clip = 0
		}
		if job.Method, err = sgd.Configure(job.Facts, method.Objective{}, method.Terms{Off: true}); err != nil {
			return nil, err
		}
	}
	plan, err := job.Method.Plan(job.Facts)
	if err != nil {
		return nil, err
	}
	if how.noise > 0 {
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
		w, err := runlog.Create(dir)
		if err != nil {
			return nil, err
		}
		cfg.Journal = w
		closeAll = func() { w.Close(); os.RemoveAll(dir) }
	}
	o, err := cfg.Open()
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(job.Method.Run(context.Background(), o, method.Objective{}))
	steps := 1
	if size > 0 {
		steps = (rows + size - 1) / size
	}
	return &trainer{next, func() { stop(); o.Close(); closeAll() }, steps}, nil
}

// free is a meter that admits everything.
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

// epochs measures an epoch of each kind, in seconds.
func epochs(t *data.Table, m model.Model, size, rounds int, recorded bool, kinds ...kind) ([]float64, error) {
	var runs []func()
	for _, how := range kinds {
		a, err := train(t, m, size, 1, how, recorded)
		if err != nil {
			return nil, err
		}
		defer a.close()
		runs = append(runs, a.epoch)
	}
	return best(rounds, runs...), nil
}

func ms(s float64) float64 { return 1000 * s }

// shape measures an epoch of batches and a full step on one table.
func shape(r *results, t *data.Table, key, ratio, name, what string, rounds, full int, recorded bool) error {
	m, err := model.New(name, model.Options{Dim: t.Dim, Classes: t.Classes, NormBound: 1})
	if err != nil {
		return err
	}
	s, err := epochs(t, m, batch, rounds, recorded, dpSGD, plain)
	if err != nil {
		return err
	}
	r.put(key+"_epoch_ms", ms(s[0]), "ms, "+what+", private, Poisson batches of 256")
	r.put("dp_over_sgd_"+ratio, s[0]/s[1], "private over plain, same batches")
	if s, err = epochs(t, m, 0, full, recorded, dpSGD, plain); err != nil {
		return err
	}
	r.put(key[:strings.IndexByte(key+"_", '_')]+"_full_ms", ms(s[0]), "ms, one private step on all rows")
	r.put("dp_over_gd_"+ratio, s[0]/s[1], "private over plain")
	return nil
}

func adult(r *results) error {
	return shape(r, dense(32_561, 106, 2), "adult", "adult", "logistic", "32,561×106, logistic", 40, 60, true)
}

func covtype(r *results) error {
	return shape(r, dense(500_000, 54, 2), "covtype", "d54", "logistic", "500,000×54, logistic", 10, 10, true)
}

func mnist(r *results) error {
	t := dense(60_000, 784, 10)
	if err := shape(r, t, "mnist_softmax", "mnist", "softmax", "60,000×784, 10 classes", 15, 10, true); err != nil {
		return err
	}
	return bytes(r, t)
}

// bytes measures the same training on rows of bytes, beside that on a table of numbers.
func bytes(r *results, numbers *data.Table) error {
	s, err := schema.Parse("", []byte(`
dataset: bytes
rows: 60000
row_norm: 1
row_scaling: scale
intercept: false
format: {kind: idx}
image: {shape: [28, 28], center: 32, scale: 255}
columns:
  - {name: digit, type: label, classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]}
`))
	if err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{5})
	images, labels := make([][]byte, numbers.Rows()), make([]float32, numbers.Rows())
	for i := range images {
		images[i], labels[i] = make([]byte, 28*28), float32(i*7%10)
		if _, err := random.Read(images[i]); err != nil {
			return err
		}
	}
	t := data.OfImages(s, images, labels)
	m, err := model.New("softmax", model.Options{Dim: t.Dim, Classes: t.Classes, NormBound: 1})
	if err != nil {
		return err
	}
	for _, of := range []struct {
		key, what    string
		size, rounds int
	}{{"epoch", "private, Poisson batches of 256", batch, 15}, {"full", "one private step on all rows", 0, 10}} {
		var runs []func()
		for _, t := range []*data.Table{t, numbers} {
			a, err := train(t, m, of.size, 1, dpSGD, true)
			if err != nil {
				return err
			}
			defer a.close()
			runs = append(runs, a.epoch)
		}
		s := best(of.rounds, runs...)
		r.put("mnist_bytes_"+of.key+"_ms", ms(s[0]), "ms, 60,000×784 bytes, 10 classes, "+of.what)
		r.put("bytes_over_numbers_"+of.key, s[0]/s[1], "the same over rows of float32")
	}
	return nil
}

// hidden is a network of 128 hidden units.
func hidden() (model.Model, error) {
	return model.New("mlp",
		model.Options{Dim: 784, Classes: 10, NormBound: 1, Config: model.MLP{Layers: []string{"128 relu"}}})
}

// convolutions is the network of Opacus' example for MNIST.
func convolutions() (model.Model, error) {
	return model.New("cnn", model.Options{
		Dim: 784, Classes: 10, NormBound: 1, Shape: []int{28, 28},
		Config: model.CNN{Layers: []string{"conv 16 8x8 stride 2 pad 3", "max 2 stride 1", "conv 32 4x4 stride 2",
			"max 2 stride 1", "32"}},
	})
}

func network(r *results) error {
	m, err := hidden()
	if err != nil {
		return err
	}
	return kinds(r, 60_000, m, "mlp", "network of 128 hidden units", 5)
}

// images measures convolutions on a quarter of the rows of MNIST.
func images(r *results) error {
	m, err := convolutions()
	if err != nil {
		return err
	}
	return kinds(r, 15_000, m, "cnn", "convolutions 16@8×8 and 32@4×4, pooling, dense 32", 3)
}

// kinds measures an epoch of a network on part of the 60,000 rows of MNIST, with each kind of clipping, with and
// without noise, over an epoch of plain training: on pictures with zeros, as MNIST has them, and on rows without zeros.
// It keeps no run log, which would hold all parameters of each step.
func kinds(r *results, rows int, m model.Model, name, what string, rounds int) error {
	t, value := pictures(rows), kind{method.ByValue, 1}
	s, err := epochs(t, m, batch, rounds, false, dpSGD, plain, value, kind{clip: method.ByGradient},
		kind{clip: method.ByValue})
	if err != nil {
		return err
	}
	all := 60_000 / float64(rows)
	r.put("mnist_"+name+"_epoch_ms", ms(s[0])*all,
		fmt.Sprintf("ms, 60,000×784, %v times an epoch of %d: %s, private, Poisson batches of 256, no record", all, rows,
			what))
	r.put("dp_over_sgd_"+name, s[0]/s[1], "private over plain, same batches")
	r.put("value_over_sgd_"+name, s[2]/s[1], "the same with value clipping")
	r.put("clip_over_sgd_"+name, s[3]/s[1], "clipped without noise over plain")
	r.put("value_clip_over_sgd_"+name, s[4]/s[1], "the same with value clipping")
	if s, err = epochs(dense(rows, 784, 10), m, batch, rounds, false, dpSGD, plain); err != nil {
		return err
	}
	r.put(name+"_dense_epoch_ms", ms(s[0])*all, "ms, the same on rows without zeros")
	r.put("dp_over_sgd_"+name+"_dense", s[0]/s[1], "private over plain")
	var grown []float64
	for _, how := range []kind{dpSGD, plain} {
		before := heap()
		run, err := train(t, m, batch, 1, how, false)
		if err != nil {
			return err
		}
		run.epoch()
		runtime.GC() // the pools of the kernels survive one collection
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		run.close()
		grown = append(grown, float64(after.HeapAlloc)-before)
	}
	r.put(name+"_memory_mb", grown[0]/1e6, "MB on the heap after an epoch of private training, beyond the table")
	r.put(name+"_memory_over_sgd", grown[0]/grown[1], "the same over plain training")
	return nil
}

// heap is the size of the heap after garbage collection, in bytes.
func heap() float64 {
	var m runtime.MemStats
	for range 3 { // pools take two
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// rcv1 keeps no run log: 47,236 numbers in each step are a gigabyte in each epoch.
func rcv1(r *results) error {
	return shape(r, sparse(677_399, 47_236, 74), "rcv1", "rcv1", "logistic", "677,399×47,236, 74 values a row, no record",
		2, 4, false)
}

// wide measures a table of many more columns than a row has values: noise and steps of all parameters are most of the
// work.
func wide(r *results) error {
	const rows, values = 50_000, 100
	t := sparse(rows, 100_000, values)
	m, err := model.New("logistic", model.Options{Dim: t.Dim, Classes: 2, NormBound: 1})
	if err != nil {
		return err
	}
	s, err := epochs(t, m, batch, 5, false, dpSGD, plain)
	if err != nil {
		return err
	}
	r.put("wide_value_ns", 1e9*s[0]/(rows*values),
		"ns a value, 50,000×100,000, 100 values a row, private, Poisson batches of 256, no record")
	r.put("dp_over_sgd_wide", s[0]/s[1], "private over plain")
	return nil
}

// workers measures two workers in wall-clock time: full passes over those of one, and epochs of networks on rows
// without zeros.
func workers(r *results) error {
	cov := dense(500_000, 54, 2)
	m, err := model.New("logistic", model.Options{Dim: 54, Classes: 2, NormBound: 1})
	if err != nil {
		return err
	}
	var runs []func()
	for _, n := range []int{1, 2} {
		t, err := train(cov, m, 0, n, dpSGD, false)
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
	for _, n := range []struct {
		name string
		rows int
		new  func() (model.Model, error)
	}{{"mlp", 60_000, hidden}, {"cnn", 15_000, convolutions}} {
		m, err := n.new()
		if err != nil {
			return err
		}
		t, err := train(dense(n.rows, 784, 10), m, batch, 2, dpSGD, false)
		if err != nil {
			return err
		}
		s := bestWall(3, t.epoch)
		t.close()
		all := 60_000 / float64(n.rows)
		r.put(n.name+"_dense_two_workers_ms", ms(s[0])*all,
			fmt.Sprintf("ms by the wall clock, %v times an epoch of %d rows without zeros, two workers", all, n.rows))
	}
	return nil
}
