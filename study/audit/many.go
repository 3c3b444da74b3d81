package audit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// mostWeights is the largest number of parameters that an audit examines one by one; with more, the runs
// are too few to tell the noise from the record.
const mostWeights = 4096

// labels are the bins of an outcome.
const labels = 64

// Many audits a job in many runs on each of two neighboring tables: the rows with a record as extreme as
// the schema allows, and the rows without it, or under replace-one with its opposite. The first sixth of
// the runs finds the figures that differ, half of the rest the best outcomes, and the other half is
// counted.
func Many(ctx context.Context, job *run.Job, table *data.Table, runs int, opt Options) (*Result, error) {
	with, without, err := neighbors(job, table)
	if err != nil {
		return nil, err
	}
	r := newResult(job, ManyRuns)
	r.Runs = 2 * runs
	number := 0
	one := func(t *data.Table) ([]float64, error) {
		own := opt
		if opt.Streams.Seeded() {
			key, err := opt.Streams.Stream("audit", number)
			if err != nil {
				return nil, err
			}
			own.Streams = noise.SeededStreams(key.Uint64())
		}
		number++
		e := &eye{}
		w, steps, err := train(ctx, job, t, nil, own, &listener{heard: e.hear})
		r.Steps = max(r.Steps, steps)
		return e.figures(w), err
	}
	var seen [2][][]float64
	pilot := max(8, runs/6)
	for range pilot {
		for side, t := range []*data.Table{with, without} {
			f, err := one(t)
			if err != nil {
				return nil, err
			}
			seen[side] = append(seen[side], f)
		}
	}
	if runs-pilot < pilot {
		return nil, fmt.Errorf("runs: found %d; write a whole number of 16 or more", runs)
	}
	score := separate(seen)
	var failed error
	law := func(t *data.Table) audit.Law {
		return func() int {
			f, err := one(t)
			if err != nil {
				if failed == nil {
					failed = err
				}
				return 0
			}
			return score(f)
		}
	}
	found := audit.Epsilons(law(with), law(without), runs-pilot, labels, r.Delta, Failure, Level)
	if r.Bound, r.Plain = found[0], found[0]; found[1] > r.Epsilon {
		r.alarm("outputs")
	}
	return r, failed
}

// mostAlike is the largest number of rows of a unit in an audit.
const mostAlike = 64

// neighbors returns the rows with a record as large as possible in the feature with the least energy, and
// without it, or with its opposite. A record that is a unit has as many rows as allowed.
func neighbors(job *run.Job, table *data.Table) (with, without *data.Table, err error) {
	facts := job.Facts
	table = table.Dense()
	energy := make([]float64, table.Dim)
	bias := 0.0
	for _, b := range table.Blocks {
		for i := range b.N {
			for j, v := range b.X[i*b.Dim : (i+1)*b.Dim] {
				energy[j] += float64(v) * float64(v)
			}
		}
	}
	features := len(energy)
	if facts.Intercept > 0 {
		features--
		if len(table.Blocks) > 0 {
			bias = float64(table.Blocks[0].X[table.Dim-1])
		}
	}
	if facts.Slots > 0 { // rows have no features there, until pairs are chosen
		features = facts.FirstSlot()
	}
	if features < 1 {
		return nil, nil, fmt.Errorf("schema: found no feature; use a table with at least one")
	}
	least := 0
	for j := range features {
		if energy[j] < energy[least] {
			least = j
		}
	}
	size := math.Sqrt(max(0, table.NormBound*table.NormBound-bias*bias))
	if facts.L1Bound > 0 {
		size = min(size, facts.L1Bound-bias)
	}
	size = math.Floor(size*(1-0x1p-20)/table.Unit) * table.Unit
	record := func(label float32) *data.Block {
		b := &data.Block{N: max(1, min(mostAlike, facts.UnitRows)), Dim: table.Dim}
		x := make([]float32, table.Dim)
		x[least] = float32(size)
		if facts.Intercept > 0 {
			x[table.Dim-1] = float32(bias)
		}
		for range b.N {
			b.X, b.Norm = append(b.X, x...), append(b.Norm, float32(min(table.NormBound, math.Hypot(size, bias)*(1+0x1p-20))))
			if table.Labeled {
				b.Y = append(b.Y, label)
			}
		}
		return b
	}
	lo, hi := float32(0), float32(max(facts.Classes, 1)-1)
	if s := job.Schema.LabelBounds(); s != nil {
		lo, hi = float32(s.Min), float32(s.Max)
	}
	with, without = table.Append(record(hi)), table
	if facts.Adjacency == privacy.ReplaceOne {
		without = table.Append(record(lo))
	}
	return with, without, nil
}

// An eye measures the released gradients of a run. Their length shows what they are divided by.
type eye struct {
	length float64 // sum of the logarithms of squared norms
	seen   int
}

func (e *eye) hear(g []float64, _ oracle.Grad, _ sample.Sampler) {
	sum := 0.0
	for _, v := range g {
		sum += v * v
	}
	if sum > 0 {
		e.length += math.Log(sum)
		e.seen++
	}
}

// figures of a run: the mean length of its gradients, and its output.
func (e *eye) figures(w []float64) []float64 {
	f := []float64{e.length / float64(max(1, e.seen))}
	if len(w) > mostWeights {
		w = nil
	}
	for _, v := range w { // a run that diverged has figures too
		f = append(f, math.Max(-1e9, math.Min(1e9, v)))
	}
	return f
}

// separate returns a function that puts a run into a bin, by the weighted sum that separates the two sets of
// figures best if figures are independent.
func separate(seen [2][][]float64) func([]float64) int {
	k := len(seen[0][0])
	weight := make([]float64, k)
	for j := range k {
		var mean, spread [2]float64
		for side, runs := range seen {
			for _, f := range runs {
				mean[side] += f[j] / float64(len(runs))
			}
			for _, f := range runs {
				spread[side] += (f[j] - mean[side]) * (f[j] - mean[side]) / float64(len(runs))
			}
		}
		apart, var2 := mean[0]-mean[1], (spread[0]+spread[1])/2
		// Differences that chance alone can explain are left out.
		if var2 > 0 && apart*apart > 4*var2*2/float64(len(seen[0])) {
			weight[j] = apart / var2
		} else if var2 == 0 && apart != 0 {
			weight[j] = apart * 1e12
		}
	}
	sum := func(f []float64) float64 {
		s := 0.0
		for j, v := range f {
			s += weight[j] * v
		}
		return s
	}
	var all []float64
	for _, runs := range seen {
		for _, f := range runs {
			all = append(all, sum(f))
		}
	}
	slices.Sort(all)
	return func(f []float64) int {
		at, _ := slices.BinarySearch(all, sum(f))
		return min(labels-1, at*labels/(len(all)+1))
	}
}
