package private

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// gradients are the laws of a batch's noisy gradient at w = 0 on a table and on its neighbor: the
// first of ten records pulls as hard as it can, and is missing from the neighbor, or pulls the other way.
// That record is a unit of so many rows, all alike, or a row, for 0. If still, the record in its place does not pull. The others do not pull, or under a fixed batch, where a record that is not drawn makes room for one of them, all pull
// the other way. The label is the sum in quarters of the clip norm.
func gradients(t *testing.T, adj privacy.Adjacency, s sample.Sampler, noises mech.Additive, unit int, still bool, fault func(*Oracle)) (p, q audit.Law) {
	const c = 0.25 // the gradient's norm is ½: it is clipped
	rows := make([]row, 10)
	var others float32
	if _, ok := s.(sample.Fixed); ok {
		others = -1
	}
	for i := range rows {
		rows[i] = row{x: []float32{others}, y: 1}
	}
	rows[0].x = []float32{1}
	neighbors := append([]row{{x: []float32{-1}, y: 1}}, rows[1:]...)
	if adj == privacy.AddRemove {
		neighbors = rows[1:]
	}
	if still {
		neighbors[0].x = []float32{0}
	}
	ask := oracle.Grad{Clip: clip.Norm{C: c}, Noise: noises}
	pay, w := []oracle.Query{ask}, []float64{0}
	law := func(rows []row, seed uint64) audit.Law {
		var of []int32
		for i := range rows {
			of = append(of, int32(i))
		}
		if unit > 0 && len(rows) == 10 {
			rows, of = append(slices.Repeat(rows[:1], unit-1), rows...), append(make([]int32, unit-1), of...)
		}
		cfg := config(t, table(rows, 2, false), adj, 10)
		if unit > 0 {
			cfg.Table, cfg.Facts.UnitRows = unitTable(cfg.Table, of), unit
		}
		cfg.Facts.Presence = true
		cfg.Journal = nowhere{}
		cfg.Streams = noise.SeededStreams(seed)
		o := openOracle(t, cfg)
		if fault != nil {
			fault(o)
		}
		return func() int {
			b, err := o.Batch(context.Background(), s, pay...)
			if err != nil {
				t.Fatal(err)
			}
			g, err := b.Grad(ask, w)
			if err != nil {
				t.Fatal(err)
			}
			sum := math.Round(4 * g[0] * s.Size(10) / c)
			return int(min(max(sum, -50), 50)) + 50
		}
	}
	return law(rows, 1), law(neighbors, 2)
}

// TestAudit: the oracle as a whole, clipping, sensitivity, sample and noise, gives away no more than its accountant
// says at δ = 0.01, and nearly that; and more than is said of twice the noise. 2·10⁵ batches of each table; with
// random seeds each line would fail by chance at most once in 10⁶.
func TestAudit(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const draws, delta, failure, sigma = 200_000, 0.01, 1e-6, 0.8
	fixed, poisson := sample.Fixed{M: 5, N: 10}, sample.Poisson{Rate: 0.5}
	for _, c := range []struct {
		name string
		adj  privacy.Adjacency
		s    sample.Sampler
		a    account.Accountant
		unit int // rows of the record under audit, where it is a unit
		// Under replace-one the record in its place does not pull: what the event says of its presence alone, by the pair of add-or-remove.
		still bool
	}{
		{"full, add-or-remove", privacy.AddRemove, sample.Full{}, account.GDP{}, 0, false},
		{"full, replace-one", privacy.ReplaceOne, sample.Full{}, account.GDP{}, 0, false},
		{"poisson, add-or-remove", privacy.AddRemove, poisson, account.PLD{}, 0, false},
		{"poisson, a unit of five rows", privacy.AddRemove, poisson, account.PLD{}, 5, false},
		{"fixed, replace-one", privacy.ReplaceOne, fixed, account.PLD{}, 0, false},
		{"poisson, replace-one", privacy.ReplaceOne, poisson, account.PLD{}, 0, false},
		{"poisson, replace-one, presence alone", privacy.ReplaceOne, poisson, account.PLD{}, 0, true},
		{"poisson, replace-one, a unit of five rows", privacy.ReplaceOne, poisson, account.PLD{}, 5, false},
	} {
		claim := func(sigma float64) float64 {
			facts := oracle.Public{Adjacency: c.adj, Presence: true}
			cost, adj := facts.Cost(c.s, []oracle.Query{oracle.Grad{Noise: mech.Gaussian{Sigma: sigma}}}), c.adj
			if c.still {
				adj = privacy.AddRemove
				cost = privacy.Map(cost, func(e privacy.Event) privacy.Event {
					if sum, ok := e.(privacy.GaussianSum); ok {
						return privacy.Gaussian{Sigma: sum.Presence}
					}
					return e
				})
			}
			loss, err := c.a.Loss(cost, adj)
			if err != nil {
				t.Fatal(err)
			}
			return loss.Epsilon(delta)
		}
		p, q := gradients(t, c.adj, c.s, mech.Gaussian{Sigma: sigma}, c.unit, c.still, nil)
		got, said, faulty := audit.Epsilon(p, q, draws, 101, delta, failure), claim(sigma), claim(2*sigma)
		if got > said || got < 0.75*said || got <= faulty {
			t.Errorf("%s: found ε ≥ %.4f; want from %.4f to %.4f, and above %.4f, what twice the noise would cost", c.name, got, 0.75*said, said, faulty)
		} else {
			t.Logf("%s: ε ≥ %.4f of %.4f (with twice the noise %.4f)", c.name, got, said, faulty)
		}
		if c.unit == 0 {
			continue
		}
		p, q = gradients(t, c.adj, c.s, mech.Gaussian{Sigma: sigma}, c.unit, c.still, func(o *Oracle) {
			for i := range o.local.shares {
				o.local.shares[i] = 1
			}
		})
		if got := audit.Epsilon(p, q, draws/10, 101, delta, failure); got <= said {
			t.Errorf("%s, each as a record: found ε ≥ %.4f, not above the claim of %.4f", c.name, got, said)
		} else {
			t.Logf("%s, each as a record: ε ≥ %.4f beside %.4f", c.name, got, said)
		}
	}
}
