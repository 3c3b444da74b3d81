//go:build unix

package shards_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
)

// free pays for everything.
type free struct{}

func (free) Adjacency() privacy.Adjacency { return privacy.AddRemove }
func (free) Charge(privacy.Event) error   { return nil }

// BenchmarkEpoch is an epoch of clipped, noisy gradients of a logistic model over a table of Adult's shape, and of 16 times its rows: in this
// process on one core, and at one or two workers of one core each, over the loopback.
func BenchmarkEpoch(b *testing.B) {
	for _, rows := range []int{32_561, 16 * 32_561} {
		for _, workers := range []int{0, 1, 2} {
			open := sync.OnceValue(func() *private.Oracle { return benchOracle(b, rows, workers) })
			for _, batch := range []int{256, 4096, rows} {
				var s sample.Sampler = sample.Full{}
				if batch < rows {
					s = sample.Poisson{Rate: float64(batch) / float64(rows)}
				}
				steps := rows / batch
				b.Run(fmt.Sprintf("rows=%d/batch=%d/workers=%d", rows, batch, workers), func(b *testing.B) {
					o := open()
					q, w := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}, make([]float64, o.Public().Dim)
					b.ResetTimer()
					before := cpuTime()
					for range b.N * steps {
						batch, err := o.Batch(b.Context(), s, q)
						if err != nil {
							b.Fatal(err)
						}
						if _, err := batch.Grad(q, w); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps), "µs/step")
					b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N*steps), "cpu-µs/step")
				})
			}
		}
	}
}

// cpuTime is the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchOracle is an oracle over a synthetic table of 105 features and an intercept, in this process or at so many workers.
func benchOracle(b *testing.B, rows, workers int) *private.Oracle {
	b.Helper()
	s := newSite(b)
	s.parts = make([]string, max(1, workers))
	var text strings.Builder
	fmt.Fprintf(&text, "dataset: field\nrows: %d\nformat: {kind: csv}\nintercept: true\ncolumns:\n", rows)
	for i := range 105 {
		fmt.Fprintf(&text, "  - {name: x%d, type: numeric, min: -1, max: 1}\n", i)
	}
	text.WriteString("  - {name: y, type: label, classes: [a, b]}\n")
	s.must(os.WriteFile(s.file("schema.yaml"), []byte(text.String()), 0o600))
	job := s.job("bench", sgd)
	for i := range s.parts {
		s.parts[i] = s.file(fmt.Sprintf("part%d", i))
		_, err := data.SynthPacked(job.Schema, rows/len(s.parts), uint64(i+1), s.parts[i])
		s.must(err)
	}
	c := private.Config{Table: data.Empty(job.Schema), Model: job.Model, Facts: job.Facts, Meter: free{}, Journal: run.NopJournal{}, Streams: noise.SecureStreams()}
	var err error
	if workers == 0 {
		c.Table, _, err = data.Read(b.Context(), &datatest.Gate{}, job.Schema, s.parts[0], data.Options{Formats: source.Formats()})
	} else {
		hub := s.listen()
		s.workers(hub.URL)
		s.ask(hub)
		var terms map[string][]byte
		terms, err = job.Terms()
		s.must(err)
		c.Summer, err = remote.Open(b.Context(), s.key.Secret, hub, job.Facts, terms, access.SentSize)
	}
	s.must(err)
	o, err := private.New(c)
	s.must(err)
	b.Cleanup(func() { o.Close() })
	return o
}
