package private

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model/modeltest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/runlog"
)

const (
	adultRows = 32561
	adultDim  = 106
	batchSize = 256
	epoch     = (adultRows + batchSize - 1) / batchSize // steps
)

// BenchmarkEpoch is one epoch of private training as `sotto fit` does it, noise,
// accounting and record on disk included: a table of the shape of Adult, Poisson
// batches of 256 (128 steps), and a full batch for comparison (one step).
func BenchmarkEpoch(b *testing.B) {
	tab := table(randomRows(rand.New(rand.NewPCG(1, 1)), adultRows, adultDim), 2, false)
	for _, c := range []struct {
		name  string
		batch int
		steps int
	}{{"poisson-256", batchSize, epoch}, {"full", 0, 1}} {
		b.Run(c.name, func(b *testing.B) {
			cfg := config(b, tab, privacy.AddRemove, adultRows)
			cfg.Streams = noise.SecureStreams()
			m := method.SGD{Steps: 1 << 30, Rate: 0.1, Gradient: method.Gradient{Clip: 0.5, Noise: 1, Batch: c.batch}}
			plan, err := m.Plan(cfg.Facts)
			if err != nil {
				b.Fatal(err)
			}
			if cfg.Meter, err = account.NewPlan(plan, account.Best{}, privacy.Budget{Epsilon: 1e12, Delta: 1e-5, Adjacency: privacy.AddRemove}); err != nil {
				b.Fatal(err)
			}
			journal, err := runlog.Create(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer journal.Close()
			cfg.Journal = journal
			next, stop := pull(m, openOracle(b, cfg))
			defer stop()
			b.ReportAllocs()
			for b.Loop() {
				for range c.steps {
					next()
				}
			}
		})
	}
}

// BenchmarkSearch is a step of DP-BLSGD beside one of DP-SGD on a sample of the same size: what a
// line search adds, in steps of DP-SGD. Labels follow a direction, so that there is something to find.
func BenchmarkSearch(b *testing.B) {
	rows := randomRows(rand.New(rand.NewPCG(1, 1)), adultRows, adultDim)
	for i, r := range rows {
		along := float32(0)
		for _, v := range r.x[:10] {
			along += v
		}
		if rows[i].y = 0; along > 0 {
			rows[i].y = 1
		}
	}
	tab := table(rows, 2, false)
	for _, batch := range []int{256, 3256, 0} {
		open := func(facts oracle.Public) *Oracle {
			cfg := config(b, tab, privacy.AddRemove, adultRows)
			cfg.Streams = noise.SeededStreams(1)
			cfg.Meter, cfg.Journal = &free{adj: privacy.AddRemove}, nowhere{}
			return openOracle(b, cfg)
		}
		facts := config(b, tab, privacy.AddRemove, adultRows).Facts
		terms := method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.AddRemove}, Accountant: account.RDP{}}
		sgd, err := method.SGD{Gradient: method.Gradient{Batch: batch}}.Configure(facts, method.Objective{}, terms)
		if err != nil {
			b.Fatal(err)
		}
		line, err := method.BLSGD{Gradient: method.Gradient{Batch: batch}}.Configure(facts, method.Objective{}, terms)
		if err != nil {
			b.Fatal(err)
		}
		once := func(m method.Method) time.Duration {
			o := open(facts)
			defer o.Close()
			start := time.Now()
			for _, err := range m.Run(context.Background(), o, method.Objective{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
			return time.Since(start)
		}
		b.Run(fmt.Sprint("batch-", batch), func(b *testing.B) {
			least, more := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				least, more = min(least, once(sgd)), min(more, once(line))
			}
			b.ReportMetric(float64(more-least)/float64(least), "steps-added")
		})
	}
}

// BenchmarkMicroBatch is the same epoch by plain micro-batch clipping (P0 Table
// 2): each record's gradient formed by itself, no noise, no record.
func BenchmarkMicroBatch(b *testing.B) {
	tab := table(randomRows(rand.New(rand.NewPCG(1, 1)), adultRows, adultDim), 2, false)
	m := logistic(b, adultDim)
	var views []data.View
	for _, block := range tab.Blocks {
		views = append(views, data.View{Block: block, To: block.N})
	}
	w := make([]float64, adultDim)
	for b.Loop() {
		modeltest.MicroBatch(m, w, views, 0.5, 2)
	}
}

// BenchmarkPlainEpoch is the epoch without clipping and noise.
func BenchmarkPlainEpoch(b *testing.B) {
	tab := table(randomRows(rand.New(rand.NewPCG(1, 1)), adultRows, adultDim), 2, false)
	cfg := config(b, tab, privacy.AddRemove, adultRows)
	cfg.Journal = nowhere{}
	m, err := method.SGD{Steps: 1 << 30, Rate: 0.1, Gradient: method.Gradient{Batch: batchSize}}.Configure(cfg.Facts, method.Objective{}, method.Terms{Off: true})
	if err != nil {
		b.Fatal(err)
	}
	var o oracle.Oracle = openOracle(b, cfg)
	next, stop := pull(m, o)
	defer stop()
	for range epoch { // what is allocated once, for all epochs
		next()
	}
	b.ReportAllocs()
	for b.Loop() {
		for range epoch {
			next()
		}
	}
}
