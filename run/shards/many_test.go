//go:build linux

package shards_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

var manySteps = flag.Duration("many.time", 2*time.Second, "for the steps of each case of BenchmarkManyWorkers")

// BenchmarkManyWorkers measures processor time of a step, a clipped sum of gradients with noise, with the rows at so many worker processes: of the
// coordinator and of all workers. With 0 workers the rows are in this process, on eight goroutines.
func BenchmarkManyWorkers(b *testing.B) {
	for _, c := range []struct{ features, rows, batch int }{
		{105, 64, 0}, {10_000, 64, 0}, {100_000, 64, 0}, // hardly any rows: what a step costs beside them
		{105, 520_976, 256}, {105, 520_976, 4096}, {105, 520_976, 65_536}, {105, 520_976, 0},
		{10_000, 40_000, 4096}, {10_000, 40_000, 0},
	} {
		for _, workers := range []int{0, 2, 8, 16, 32, 64} {
			b.Run(fmt.Sprintf("features=%d/rows=%d/batch=%d/workers=%d", c.features, c.rows, c.batch, workers), func(b *testing.B) {
				many(b, c.features, c.rows, c.batch, workers)
			})
		}
	}
}

func many(b *testing.B, features, rows, batch, workers int) {
	s := newSite(b)
	s.parts = make([]string, max(1, workers))
	var text strings.Builder
	fmt.Fprintf(&text, "dataset: field\nrows: %d\n", rows)
	if features > 1000 {
		fmt.Fprintf(&text, "format: {kind: libsvm}\nfeatures: %d\nmin: -1\nmax: 1\nrow_norm: 1\ncolumns:\n", features)
	} else {
		text.WriteString("format: {kind: csv}\nintercept: true\ncolumns:\n")
		for i := range features {
			fmt.Fprintf(&text, "  - {name: x%d, type: numeric, min: -1, max: 1}\n", i)
		}
	}
	text.WriteString("  - {name: y, type: label, classes: [a, b]}\n")
	s.must(os.WriteFile(s.file("schema.yaml"), []byte(text.String()), 0o600))
	job := s.job("bench", "method: {name: sgd, steps: 40, batch: 10}")
	for i := range s.parts {
		s.parts[i] = s.file(fmt.Sprintf("part%d", i))
		_, err := data.SynthPacked(job.Schema, rows/len(s.parts), uint64(i+1), s.parts[i])
		s.must(err)
	}
	cfg := private.Config{Table: data.Empty(job.Schema), Model: job.Model, Facts: job.Facts, Meter: free{}, Journal: run.NopJournal{}, Streams: noise.SecureStreams(), Workers: 8}
	var err error
	var pids []int
	if workers == 0 {
		cfg.Table, _, err = data.Read(b.Context(), &datatest.Gate{}, job.Schema, s.parts[0], data.Options{Formats: source.Formats()})
	} else {
		c := s.listen()
		s.spec("child", "")
		for i, part := range s.parts {
			what, err := json.Marshal(child{s.file("child.yaml"), part, c.URL, s.file("key"), i, workers})
			s.must(err)
			p := exec.Command(os.Args[0])
			p.Env, p.Stderr = append(os.Environ(), "SOTTO_WORKER_CHILD="+string(what)), os.Stderr
			s.must(p.Start())
			b.Cleanup(func() { p.Process.Kill(); p.Wait() })
			pids = append(pids, p.Process.Pid)
		}
		s.ask(c)
		var terms map[string][]byte
		terms, err = job.Terms()
		s.must(err)
		cfg.Summer, err = remote.Open(b.Context(), s.key.Secret, c, job.Facts, terms, access.SentSize)
	}
	s.must(err)
	o, err := private.New(cfg)
	s.must(err)
	defer o.Close()
	var draw sample.Sampler = sample.Full{}
	if batch > 0 {
		draw = sample.Poisson{Rate: float64(batch) / float64(rows)}
	}
	q, w := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}, make([]float64, o.Public().Dim)
	step := func() {
		batch, err := o.Batch(b.Context(), draw, q)
		s.must(err)
		_, err = batch.Grad(q, w)
		s.must(err)
	}
	for range 3 {
		step()
	}
	here, there, began, steps := cpuTime(), cpuOf(b, pids), time.Now(), 0
	for ; time.Since(began) < *manySteps; steps++ {
		step()
	}
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(steps) }
	b.ReportMetric(per(time.Since(began)), "µs/step")
	b.ReportMetric(per(cpuTime()-here), "here-µs/step")
	b.ReportMetric(per(cpuOf(b, pids)-there), "workers-µs/step")
	b.ReportMetric(0, "ns/op")
}

// cpuOf is the processor time of processes, of all their threads.
func cpuOf(b *testing.B, pids []int) (all time.Duration) {
	for _, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				continue // a thread that has ended
			}
			ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			all += time.Duration(ns)
		}
	}
	return all
}
