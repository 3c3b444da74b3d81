package gossip

import (
	"fmt"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
)

// BenchmarkRounds is one round of 20 owners with 2,000 dense features, a random edge or two in each, with
// noise and samples of 1 and of 64 rows.
func BenchmarkRounds(b *testing.B) {
	for _, edges := range []int{1, 2} {
		for _, batch := range []int{1, 64} {
			b.Run(fmt.Sprintf("edges=%d/batch=%d", edges, batch), func(b *testing.B) {
				const n, rows, dim = 20, 500, 2000
				owners := newOwners(b, n, rows, dim, "svm")
				s := &Schedule{Graph: Complete(n), Kind: Matching, Count: edges, Rounds: b.N}
				obj := method.Objective{Reg: reg.L2{Lambda: 5e-4}}
				m := DDA{Rows: Rows{Batch: batch, Clip: 1, Noise: 1}, Weights: Linear, Gamma: 20}
				var methods []Method
				var oracles []oracle.Oracle
				for i := range n {
					asked, err := private.New(private.Config{Table: owners.tables[i], Model: owners.model, Facts: owners.facts, Meter: free{}, Journal: silent{}, Streams: noise.SecureStreams()})
					if err != nil {
						b.Fatal(err)
					}
					defer asked.Close()
					m.Sampling = method.Poisson
					methods, oracles = append(methods, m), append(oracles, asked)
				}
				b.ReportAllocs()
				b.ResetTimer()
				if _, err := Train(b.Context(), s, NewLocal(s.Graph), methods, oracles, obj, nil); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
			})
		}
	}
}

// free pays for everything.
type free struct{}

func (free) Adjacency() privacy.Adjacency { return privacy.AddRemove }
func (free) Charge(privacy.Event) error   { return nil }

var _ account.Meter = free{}
