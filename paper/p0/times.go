package p0

import (
	"context"
	"math"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle/live"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
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

// repeats: the least of as many times is kept, since whatever else the machine does only adds.
const repeats = 5

// times takes them by turns, so that what slows the machine slows all.
func times(ctx context.Context, size Size, t *task) ([]Time, error) {
	var list []Time
	for _, name := range []string{linear, network} {
		kinds := []string{sgdPlain, micro, gc, vc, vcOld}
		lines := make([]Time, len(kinds))
		for i, kind := range kinds {
			lines[i] = Time{Model: name, Kind: kind, Seconds: math.Inf(1), Noisy: math.Inf(1)}
		}
		for range repeats {
			for i, kind := range kinds {
				quiet, noisy, err := t.time(ctx, size.Timed, name, kind)
				if err != nil {
					return nil, err
				}
				epoch := float64(t.rows) / batch / float64(size.Timed)
				lines[i].Seconds, lines[i].Noisy = min(lines[i].Seconds, quiet*epoch), min(lines[i].Noisy, noisy*epoch)
			}
		}
		for i := range lines {
			lines[i].Ratio = lines[i].Seconds / lines[0].Seconds
		}
		list = append(list, lines...)
	}
	return list, nil
}

// time is the seconds of some steps without noise, and with it.
func (t *task) time(ctx context.Context, steps int, name, kind string) (quiet, noisy float64, err error) {
	m, facts, err := t.model(name)
	if err != nil {
		return 0, 0, err
	}
	if kind == vcOld {
		m = newWGC(m)
	}
	if kind == micro {
		few := max(2, steps/10) // they take long enough
		return oneByOne(m, facts.Start(), t.train, few) * float64(steps) / float64(few), 0, nil
	}
	sgd := method.SGD{Steps: steps, Rate: 1e-3, Clip: fifth, Batch: batch, Sampling: method.Poisson, Off: true}
	switch kind {
	case sgdPlain:
		sgd.Clip = 0
	case vc, vcOld:
		sgd.Clipping = method.ByValue
	}
	run := func() (float64, error) {
		door, err := live.New(live.Config{Table: t.train, Model: m, Facts: facts, Meter: paper.Free(privacy.AddRemove), Journal: paper.Silent{}, Streams: noise.SeededStreams(seed), Workers: 1})
		if err != nil {
			return 0, err
		}
		defer door.Close()
		begin := time.Now()
		for step, err := range sgd.Run(ctx, door, method.Objective{}) {
			if err != nil {
				return 0, err
			}
			if step.T == 1 {
				begin = time.Now() // memory is there from here on
			}
		}
		return time.Since(begin).Seconds() * float64(steps) / float64(steps-1), nil
	}
	if quiet, err = run(); err != nil || kind == sgdPlain {
		return quiet, 0, err
	}
	sgd.Off, sgd.Noise = false, sigma
	noisy, err = run()
	return quiet, noisy, err
}

// oneByOne is the naive way: each row of a batch by itself, its gradient written out, its norm taken, clipped and added.
func oneByOne(m model.Model, w []float64, t *data.Table, steps int) float64 {
	var ws model.Workspace
	g, sum, c := make([]float64, len(w)), make([]float64, len(w)), []float64{1}
	row := 0
	begin := time.Now()
	for range steps {
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
	}
	return time.Since(begin).Seconds()
}
