//go:build !race

package examples_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/score"
)

var (
	correlatedCells = flag.String("correlated.cells", "", "cells of BenchmarkCorrelatedNoise, as docs/measurements/correlated_noise.py prints them")
	correlatedSeeds = flag.Int("correlated.seeds", 3, "seeds of each cell")
)

// A correlated is one cell: how steps sample, and the noise e_t of the sum at step t over the clip norm. With z_t standard
// normal, e_t = Scale·Σ_k Fresh[k]·z_(t−k) − Σ_k Past[k]·e_(t−1−k).
type correlated struct {
	Name        string
	Epsilon     float64
	Steps       int
	Groups      int  // step t samples of group t mod Groups alone
	Whole       bool // takes all of the group, not each record by its own coin
	Scale       float64
	Fresh, Past []float64
}

// BenchmarkCorrelatedNoise trains mnist/cnn.yaml with noise that is added here, outside the private oracle: a measurement
// in the lab, without a guarantee. docs/measurements/correlated-noise.md has its figures.
func BenchmarkCorrelatedNoise(b *testing.B) {
	if *correlatedCells == "" {
		b.Skip("needs -correlated.cells")
	}
	text, err := os.ReadFile(*correlatedCells)
	if err != nil {
		b.Fatal(err)
	}
	var cells []correlated
	if err := json.Unmarshal(text, &cells); err != nil {
		b.Fatal(err)
	}
	spec, err := run.LoadSpec("mnist/cnn.yaml", nil)
	if err != nil {
		b.Fatal(err)
	}
	job, err := run.Prepare(spec)
	if err != nil {
		b.Fatal(err)
	}
	schema, err := data.LoadSchema("mnist/images.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var tables [2]*data.Table
	for i, file := range []string{"train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"} {
		if tables[i], _, err = data.Read(b.Context(), &datatest.Gate{}, schema, filepath.Join(needs.Data(b), "mnist", file), data.Options{Formats: source.Formats()}); err != nil {
			b.Fatal(err)
		}
	}
	for seed := range *correlatedSeeds {
		for _, c := range cells {
			b.Run(fmt.Sprintf("%d/%s/%g/seed%d", c.Steps, c.Name, c.Epsilon, seed+1), func(b *testing.B) {
				for b.Loop() {
					average, last := c.train(b, job, tables[0], uint64(seed+1))
					score := func(w []float64) float64 {
						return *score.Exact(job.Model, w, tables[1], schema.Label().Classes, nil).Accuracy
					}
					b.ReportMetric(score(average), "tail-average")
					b.ReportMetric(score(last), "last")
				}
			})
		}
	}
}

// train is method.SGD's loop with the cell's samples and noise. It returns the average of the last half, and the last iterate.
func (c correlated) train(b *testing.B, job *run.Job, table *data.Table, seed uint64) (average, last []float64) {
	sgd := job.Method.(method.SGD)
	facts := job.Facts
	facts.Rows /= c.Groups // nominal
	var sampler sample.Sampler = sample.Poisson{Rate: float64(sgd.Gradient.Batch) / float64(facts.Rows)}
	if c.Whole {
		sampler = sample.Full{}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	var groups []*private.Oracle
	for g, t := range split(table, c.Groups, r) {
		o, err := private.New(private.Config{Table: t, Model: job.Model, Facts: facts, Meter: unmetered{}, Journal: quiet{},
			Streams: noise.SeededStreams(seed*1000 + uint64(g))})
		if err != nil {
			b.Fatal(err)
		}
		defer o.Close()
		groups = append(groups, o)
	}
	query := oracle.Grad{Clip: clip.Norm{C: sgd.Gradient.Clip}, Noise: mech.None{}}
	w := facts.Start()
	fold := method.TailAverage.Averager(c.Steps, len(w))
	var fresh, past [][]float64 // z and e, the newest first
	for t := range c.Steps {
		batch, err := groups[t%c.Groups].Batch(context.Background(), sampler, query)
		if err != nil {
			b.Fatal(err)
		}
		g, err := batch.Grad(query, w)
		if err != nil {
			b.Fatal(err)
		}
		z, e := make([]float64, len(w)), make([]float64, len(w))
		for j := range z {
			z[j] = r.NormFloat64()
		}
		fresh = slices.Insert(fresh, 0, z)[:min(len(fresh)+1, len(c.Fresh))]
		for k, z := range fresh {
			for j := range e {
				e[j] += c.Scale * c.Fresh[k] * z[j]
			}
		}
		for k, p := range past {
			for j := range e {
				e[j] -= c.Past[k] * p[j]
			}
		}
		past = slices.Insert(past, 0, e)[:min(len(past)+1, len(c.Past))]
		by := sgd.Gradient.Clip / sampler.Size(facts.Rows)
		for j := range w {
			w[j] -= sgd.Rate * (g[j] + by*e[j])
		}
		fold.Add(method.Step{T: t + 1, W: w})
	}
	return fold.W(), w
}

// split deals the rows of a dense table out to n tables, each row by its own coin.
func split(t *data.Table, n int, r *rand.Rand) []*data.Table {
	parts := make([]*data.Table, n)
	for g := range parts {
		parts[g] = &data.Table{Dim: t.Dim, Classes: t.Classes, NormBound: t.NormBound, Unit: t.Unit, Labeled: true}
	}
	for _, from := range t.Blocks {
		for i := range from.N {
			p := parts[r.IntN(n)]
			if k := len(p.Blocks); k == 0 || p.Blocks[k-1].N == data.BlockRows {
				p.Blocks = append(p.Blocks, &data.Block{Dim: t.Dim})
			}
			to := p.Blocks[len(p.Blocks)-1]
			to.N++
			to.X = append(to.X, from.X[i*t.Dim:][:t.Dim]...)
			to.Y, to.Norm = append(to.Y, from.Y[i]), append(to.Norm, from.Norm[i])
		}
	}
	return parts
}

// unmetered is a meter that admits everything.
type unmetered struct{}

func (unmetered) Adjacency() privacy.Adjacency { return privacy.AddRemove }
func (unmetered) Charge(privacy.Event) error   { return nil }
