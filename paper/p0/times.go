package p0

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
)

// The methods of Table 2. Plain SGD and micro-batches add no noise; of the others there are times with and without.
const (
	sgdPlain = "SGD"
	micro    = "micro-batch"
)

// A Time is a line of Table 2: seconds for an epoch of the paper's length, one core.
type Time struct {
	Model, Kind    string
	Seconds, Ratio float64 // without noise; over SGD's
	Noisy          float64 // with noise; 0 for methods without
}

// A timing is the lines of Table 2, with the load of the machine before and after.
type timing struct {
	Times []Time
	Load  [2]string
}

// repeats: each method's steps are divided into so many parts that alternate, so that a slow machine slows all methods.
const repeats = 5

// times takes the median over the repetitions of the median of a method's steps, and of its ratio to SGD's in the same
// repetition. Batches are the same for all but micro-batches.
func times(ctx context.Context, size Size, t *task) ([]Time, error) {
	epoch := float64(t.rows) / batch
	var list []Time
	for _, name := range []string{linear, network} {
		kinds := []string{sgdPlain, micro, gc, vc, vcOld}
		quiet, noisy, ratio := make([][]float64, len(kinds)), make([][]float64, len(kinds)), make([][]float64, len(kinds))
		for range repeats {
			for i, kind := range kinds {
				without, with, err := t.time(ctx, size.Timed/repeats, name, kind)
				if err != nil {
					return nil, err
				}
				quiet[i], noisy[i] = append(quiet[i], median(without)), append(noisy[i], median(with))
				ratio[i] = append(ratio[i], Last(quiet[i])/Last(quiet[0]))
			}
		}
		for i, kind := range kinds {
			list = append(list,
				Time{Model: name, Kind: kind, Seconds: median(quiet[i]) * epoch, Noisy: median(noisy[i]) * epoch,
					Ratio: median(ratio[i])})
		}
	}
	return list, nil
}

// median is that of v; 0 if v is empty.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// time returns the seconds of each of some steps, without and with noise.
func (t *task) time(ctx context.Context, steps int, name, kind string) (quiet, noisy []float64, err error) {
	p, err := t.problem(name, "")
	if err != nil {
		return nil, nil, err
	}
	if kind == vcOld {
		p.Model = newWGC(p.Model, kind)
	}
	if kind == micro {
		return oneByOne(p.Model, p.Public.Start(), t.train, max(1, steps/5)), nil, nil
	}
	sgd := method.SGD{Steps: steps + 1, Rate: 1e-3,
		Gradient: method.Gradient{Clip: fifth, Batch: batch, Sampling: method.Poisson, Off: true}}
	switch kind {
	case sgdPlain:
		sgd.Gradient.Clip = 0
	case vc, vcOld:
		sgd.Gradient.Clipping = method.ByValue
	}
	run := func() (each []float64, err error) {
		o, err := p.Oracle(nil, seed, 1)
		if err != nil {
			return nil, err
		}
		defer o.Close()
		begin := time.Now()
		for step, err := range sgd.Run(ctx, o, method.Objective{}) {
			if err != nil {
				return nil, err
			}
			if step.T > 1 && step.Status == method.Running { // memory is there from the second one on
				each = append(each, time.Since(begin).Seconds())
			}
			begin = time.Now()
		}
		return each, nil
	}
	if quiet, err = run(); err != nil || kind == sgdPlain {
		return quiet, nil, err
	}
	sgd.Gradient.Off, sgd.Gradient.Noise = false, sigma
	noisy, err = run()
	return quiet, noisy, err
}

// oneByOne is the naive way: compute each row's gradient separately, clip it by its norm, and add it.
func oneByOne(m model.Model, w []float64, t *data.Table, steps int) (each []float64) {
	var ws model.Workspace
	g, sum, c := make([]float64, len(w)), make([]float64, len(w)), []float64{1}
	row := 0
	for range steps {
		begin := time.Now()
		clear(sum)
		for range batch {
			b := t.Blocks[row/data.BlockRows%len(t.Blocks)]
			i := row % data.BlockRows % b.N
			row += 7 // spread, as a sample's are
			clear(g)
			m.Eval(w, data.View{Block: b, From: i, To: i + 1}, &ws).AddGrad(g, c, 0)
			square := 0.0
			for _, v := range g {
				square += v * v
			}
			scale := min(1, fifth/math.Sqrt(square))
			for j, v := range g {
				sum[j] += scale * v
			}
		}
		for j, v := range sum {
			w[j] -= 1e-3 / batch * v
		}
		each = append(each, time.Since(begin).Seconds())
	}
	return each
}
