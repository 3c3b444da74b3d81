package main

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
)

// sideChild, in the environment, makes the benchmark a process that fits the spec that it names.
const sideChild = "SOTTO_BENCH_FIT"

// sides measures what an observer of the machine learns of one record: pairs of steps, and of processes, on two tables
// that differ in it, in random order. docs/explanation/side-channels.md explains the figures. It is only run by name.
func sides(r *results) error {
	for _, c := range []struct {
		name  string
		n     int
		net   bool
		pairs int
		note  string
		other func(t *data.Table) *data.Table // makes the second side of a table of one row more; nil: the same
	}{
		{"step_1000_same", 1000, false, 20_000, "full pass of 1,000 rows, twice the same table", nil},
		{"step_1000_one_more", 1000, false, 20_000, "one row more", longer},
		{"step_1000_zeros", 1000, false, 20_000, "a row of zeros in place of another", zeroed},
		{"step_100000_same", 100_000, false, 1500, "full pass of 100,000 rows, twice the same table", nil},
		{"step_100000_one_more", 100_000, false, 1500, "one row more", longer},
		{"step_mlp_1000_one_more", 1000, true, 2000, "full pass of a network of 128 units over 1,000 rows, one more", longer},
	} {
		var cpu, wall []paired
		for i := range placements {
			p, err := comparedSteps(c.n, c.net, c.pairs/placements, i%2 == 0, c.other)
			if err != nil {
				return err
			}
			cpu, wall = append(cpu, p[0]), append(wall, p[1])
		}
		over(cpu).put(r, "side_"+c.name+"_cpu_ns", "ns, "+c.note)
		over(wall).put(r, "side_"+c.name+"_wall_ns", "ns, "+c.note)
	}
	return processes(r)
}

// placements is how often new tables are made: where they lie in memory moves the time of a step more than a record
// does.
const placements = 20

// comparedSteps compares steps on a table of n rows and on another one, by processor time and by the clock.
func comparedSteps(n int, net bool, pairs int, swap bool,
	other func(t *data.Table) *data.Table) (p [2]paired, err error) {
	var steps [2]func()
	for _, side := range [2][2]int{{0, 1}, {1, 0}}[map[bool]int{true: 1}[swap]] { // which table is made first
		t := dense(n+1, 20, 2)
		if side == 1 && other != nil {
			t = other(t)
		} else {
			t = cut(t, n)
		}
		step, stop, err := stepper(t, n, net)
		if err != nil {
			return p, err
		}
		defer stop()
		steps[side] = step
	}
	begin := time.Now()
	all := inPairs(pairs, func(i int) (took [2]float64) {
		cpu, wall := cpuTime(), time.Since(begin)
		steps[i]()
		return [2]float64{float64((cpuTime() - cpu).Nanoseconds()), float64((time.Since(begin) - wall).Nanoseconds())}
	})
	for i := range p {
		p[i] = compared(all, func(v [2]float64) float64 { return v[i] })
	}
	return p, nil
}

// over is the mean of comparisons, with an error from how much they differ.
func over(all []paired) (p paired) {
	n := float64(len(all))
	for _, each := range all {
		p.base, p.diff = p.base+each.base/n, p.diff+each.diff/n
	}
	square := 0.0
	for _, each := range all {
		square += (each.diff - p.diff) * (each.diff - p.diff)
	}
	p.error = math.Sqrt(square / (n - 1) / n)
	return p
}

// cut is the first n rows of a table of one block or more.
func cut(t *data.Table, n int) *data.Table {
	for _, b := range t.Blocks {
		b.N = min(b.N, n)
		n -= b.N
	}
	return t
}

func longer(t *data.Table) *data.Table { return t }

// zeroed replaces the first row by zeros, and drops the last.
func zeroed(t *data.Table) *data.Table {
	clear(t.Blocks[0].X[:t.Dim])
	return cut(t, t.Rows()-1)
}

// stepper makes a run of full passes, with noise and accounting, whose public number of rows is n.
func stepper(t *data.Table, n int, net bool) (step, stop func(), err error) {
	m, err := model.New("logistic", model.Options{Dim: t.Dim, Classes: 2, NormBound: 1})
	if net {
		m, err = model.New("mlp",
			model.Options{Dim: t.Dim, Classes: 2, NormBound: 1, Config: model.MLP{Layers: []string{"128 relu"}}})
	}
	if err != nil {
		return nil, nil, err
	}
	facts := m.Facts()
	job := &run.Job{Model: m,
		Facts: oracle.Public{Dim: m.Dim(), Rows: n, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1,
			Lipschitz: oracle.Bound(facts.Lipschitz), Smooth: oracle.Bound(facts.Smooth), Bounded: facts.Bounded,
			Layers: facts.Layers}}
	if s, ok := m.(model.Starter); ok {
		for _, span := range s.Start() {
			job.Facts.Initial = append(job.Facts.Initial, oracle.Span(span))
		}
	}
	job.Method = method.SGD{Steps: 1 << 30, Rate: 0.1, Gradient: method.Gradient{Clip: 0.35, Noise: 1}}
	plan, err := job.Method.Plan(job.Facts)
	if err != nil {
		return nil, nil, err
	}
	meter, err := account.NewPlan(plan, account.Best{},
		privacy.Budget{Epsilon: 1e12, Delta: 1e-5, Adjacency: privacy.AddRemove})
	if err != nil {
		return nil, nil, err
	}
	trainer := run.Trainer{Job: job, Table: t, Workers: 1, Streams: noise.SeededStreams(1), Journal: run.NopJournal{},
		Meter: meter}
	o, err := trainer.Open()
	if err != nil {
		return nil, nil, err
	}
	next, end := iter.Pull2(job.Method.Run(context.Background(), o, method.Objective{}))
	return func() {
		if _, err, ok := next(); err != nil || !ok {
			panic(fmt.Sprint("bench: a run ended: ", err))
		}
	}, func() { end(); o.Close() }, nil
}

// inPairs measures both sides n times, in pairs of random order, after some that warm up.
func inPairs[T any](n int, measure func(side int) T) (all [][2]T) {
	rng := rand.New(rand.NewPCG(25, uint64(n)))
	for i := range n + n/10 {
		var both [2]T
		one := rng.IntN(2)
		both[one] = measure(one)
		both[1-one] = measure(1 - one)
		if i >= n/10 {
			all = append(all, both)
		}
	}
	return all
}

// A paired is a comparison of two sides by pairs.
type paired struct {
	base        float64 // the median of the first side
	diff, error float64 // the second less the first: trimmed mean of the pairs, and its standard error
}

// compared leaves a tenth of the differences out at each end: other work on the machine.
func compared[T any](all [][2]T, value func(T) float64) (p paired) {
	var first, diffs []float64
	for _, both := range all {
		first, diffs = append(first, value(both[0])), append(diffs, value(both[1])-value(both[0]))
	}
	slices.Sort(first)
	slices.Sort(diffs)
	n := len(all)
	g := n / 10
	p.base = first[n/2]
	for _, d := range diffs[g : n-g] {
		p.diff += d / float64(n-2*g)
	}
	// The standard error of a trimmed mean is that of the winsorized sample, over the part that is kept.
	mean, square := 0.0, 0.0
	for i := range diffs {
		d := diffs[min(max(i, g), n-g-1)]
		mean += d / float64(n)
		square += d * d / float64(n)
	}
	p.error = math.Sqrt(max(0, square-mean*mean)/float64(n)) / (1 - 2*float64(g)/float64(n))
	return p
}

// put prints the difference with its detection limit: a true difference of this size would be noted, at 5 % false
// alarms, with a chance of 95 %.
func (p paired) put(r *results, name, note string) {
	r.put(name, p.diff,
		fmt.Sprintf("± %.3g; would be noted from %.3g on; of %.4g. %s", p.error, 3.8*p.error, p.base, note))
}

// processes compares whole runs, each in a process of its own.
func processes(r *results) error {
	dir, err := os.MkdirTemp("", "sotto-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const n, columns = 2000, 20
	var rows, schema strings.Builder
	fmt.Fprintf(&schema, "dataset: d\nrows: %d\ncolumns:\n", n)
	for j := range columns {
		fmt.Fprintf(&schema, "  - {name: x%d, type: numeric, min: 0, max: 1, encode: linear}\n", j)
		fmt.Fprintf(&rows, "x%d,", j)
	}
	schema.WriteString("  - {name: y, type: label, classes: [\"0\", \"1\"]}\n")
	rows.WriteString("y\n")
	rng := rand.New(rand.NewPCG(1, 2))
	row := func() string {
		s := ""
		for range columns {
			s += fmt.Sprintf("%.3f,", rng.Float64())
		}
		return s + fmt.Sprint(rng.IntN(2)) + "\n"
	}
	for range n {
		rows.WriteString(row())
	}
	sides := [2]string{rows.String(), rows.String() + row()}
	for i, text := range sides {
		spec := fmt.Sprintf("data: %[1]s/%[2]d.csv\nschema: %[1]s/schema.yaml\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\nmethod: {name: sgd, steps: 300, batch: 64}\n", dir, i)
		for name, text := range map[string]string{fmt.Sprintf("%d.csv", i): text, "schema.yaml": schema.String(),
			fmt.Sprintf("%d.yaml", i): spec} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	var failed error
	all := inPairs(100, func(i int) [4]float64 {
		v, err := fitted(dir, filepath.Join(dir, fmt.Sprintf("%d.yaml", i)))
		if err != nil {
			failed = err
		}
		return v
	})
	for k, name := range []string{"cpu_ms", "wall_ms", "peak_kib", "page_faults"} {
		compared(all, func(v [4]float64) float64 {
			return v[k]
		}).put(r, "side_fit_"+name, "of a process that fits 2,000 rows in 300 steps; one row more")
	}
	return failed
}

// fitted runs a fit in a process of its own: milliseconds of processor time and by the clock, peak memory in KiB, page
// faults.
func fitted(dir, spec string) (v [4]float64, err error) {
	out := filepath.Join(dir, "run")
	if err := os.RemoveAll(out); err != nil {
		return v, err
	}
	os.RemoveAll(filepath.Join(dir, "home"))
	self, err := os.Executable()
	if err != nil {
		return v, err
	}
	c := exec.Command(self)
	c.Dir = dir
	c.Env = append(os.Environ(), sideChild+"="+spec, "XDG_STATE_HOME="+filepath.Join(dir, "home"),
		"XDG_DATA_HOME="+filepath.Join(dir, "home"))
	c.Stderr = os.Stderr
	begin := time.Now()
	said, err := c.Output()
	if err != nil {
		return v, err
	}
	var peak, faults float64
	if _, err := fmt.Sscan(string(said), &peak, &faults); err != nil {
		return v, err
	}
	return [4]float64{float64((c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Microseconds()) / 1000,
		float64(time.Since(begin).Microseconds()) / 1000, peak, faults}, nil
}

// sideFit is the process. It says its peak memory and its page faults.
func sideFit(file string) error {
	spec, err := run.LoadSpec(file, []run.Override{})
	if err != nil {
		return err
	}
	spec.Out = "run"
	job, err := run.Prepare(spec)
	if err != nil {
		return err
	}
	if _, _, err = run.Fit(context.Background(), job, run.Env{Workers: 1}); err == nil {
		fmt.Println(usage())
	}
	return err
}
