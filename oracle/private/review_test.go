package private

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// Every model, both norms, both relations, dense and sparse, one worker and many,
// clip norms over 60 powers of two, residuals and parameters that are huge or tiny,
// rows that are short: what the noise is added to never moves by more than the
// sensitivity that the noise is scaled to.
func TestSensitivityOfEveryModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	worst := 0.0
	for range 800 {
		features, n := 1+rnd.IntN(12), 2+rnd.IntN(60)
		m, classes := anyKind(t, rnd, features)
		draw := func() row {
			r := randomRows(rnd, 1, features)[0]
			if rnd.IntN(3) == 0 {
				short := math.Exp2(-float64(rnd.IntN(20)))
				for j, v := range r.x {
					r.x[j] = float32(math.Trunc(float64(v)*short/testUnit) * testUnit)
				}
			}
			if r.y = float32(rnd.IntN(max(classes, 1))); classes == 0 {
				r.y = float32(rnd.NormFloat64() * math.Exp2(float64(rnd.IntN(60)-20)))
			}
			return r
		}
		rows := make([]row, n)
		for i := range rows {
			rows[i] = draw()
		}
		w := make([]float64, m.Dim())
		if rnd.IntN(4) > 0 {
			size := math.Exp2(float64(rnd.IntN(40) - 10))
			for j := range w {
				w[j] = rnd.NormFloat64() * size
			}
		}
		rule := clip.Norm{C: math.Exp2(rnd.Float64()*60 - 40), P: 1 + rnd.IntN(2)}

		grid := 0.0
		sum := func(rows []row) []int64 {
			var s Local
			s.open(table(rows, classes, rnd.IntN(2) == 0), m, 1+rnd.IntN(3))
			defer s.Close()
			unit, counts, err := s.sum(w, rule, oracle.Public{Rows: n}, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			grid = gridOf(unit, rule.C, len(w), rule.Norm())
			mech.RoundShift(counts, shiftOf(unit, grid))
			return slices.Clone(counts)
		}
		check := func(adj privacy.Adjacency, a, b []int64) {
			sens, err := sensitivity(rule, adj, grid, len(w))
			if err != nil {
				t.Fatal(err)
			}
			d := 0.0
			for j := range a {
				if x := math.Abs(float64(a[j]-b[j])) * grid; rule.P == 1 {
					d += x
				} else {
					d = math.Hypot(d, x)
				}
			}
			worst = max(worst, d/sens)
			if d > sens {
				t.Fatalf("%s, ℓ%d, C=%v, %v: sums differ by %v, the sensitivity is %v", m.Name(), rule.P, rule.C, adj, d, sens)
			}
		}
		full, i := sum(rows), rnd.IntN(n)
		check(privacy.AddRemove, full, sum(slices.Delete(slices.Clone(rows), i, i+1)))
		other := slices.Clone(rows)
		if other[i] = draw(); rnd.IntN(2) == 0 { // the same row turned round
			other[i] = row{slices.Clone(rows[i].x), rows[i].y}
			for j := range other[i].x {
				other[i].x[j] *= -1
			}
		}
		check(privacy.ReplaceOne, full, sum(other))
	}
	if worst < 0.9 {
		t.Errorf("no pair of neighbors came near the sensitivity, the worst was at %v of it: the test has no force", worst)
	}
}

// An attacker who runs DP-SGD steps with and without the worst record, and uses the
// best test there is, does as well as theory says he can and no better.
func TestBestAttackDoesAsTheorySays(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	const sigma, rate, steps, runs, rows = 0.8, 0.25, 8, 20000, 4
	// δ(ε) of 8 Poisson-sampled Gaussians, exactly: from privacy loss distributions,
	// by google/differential-privacy's dp_accounting 0.6, rounded up.
	exact := []struct{ epsilon, delta float64 }{{0, 0.3656}, {0.5, 0.2489}, {1, 0.1607}, {1.5, 0.0990}, {2, 0.0585}}

	q := oracle.Grad{Clip: clip.Norm{C: 0.5}, Noise: mech.Gaussian{Sigma: sigma}}
	zero := row{make([]float32, 2), 1} // its gradient is 0
	// ratios are the log-likelihood ratios of the runs on a table, in order.
	ratios := func(tab *data.Table, seed uint64) []float64 {
		out := make([]float64, runs)
		cfg := config(t, tab, privacy.AddRemove, rows)
		for i := range out {
			cfg.Streams = noise.SeededStreams(seed + uint64(i))
			o, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range steps {
				b, err := o.Batch(context.Background(), sample.Poisson{Rate: rate}, q)
				if err != nil {
					t.Fatal(err)
				}
				g, err := b.Grad(q, []float64{0, 0})
				if err != nil {
					t.Fatal(err)
				}
				z := -g[0] * rate * rows / 0.5 // the record, if drawn, has −C in this direction
				out[i] += math.Log(1 - rate + rate*math.Exp((2*z-1)/(2*sigma*sigma)))
			}
			o.Close()
		}
		slices.Sort(out)
		return out
	}
	without := ratios(table([]row{zero, zero, zero}, 2, false), 1)
	with := ratios(table([]row{zero, zero, zero, {[]float32{1, 0}, 1}}, 2, false), 1<<40)

	// By Dvoretzky, Kiefer and Wolfowitz a rate is off by more than t anywhere with
	// probability at most 2·exp(−2·runs·t²), here 2e-7; two tables, so 4e-7 in all, and
	// the seeds are fixed.
	const off = 0.02
	for _, e := range exact {
		best := 0.0
		for i, threshold := range with {
			j, _ := slices.BinarySearch(without, threshold)
			hit, alarm := float64(runs-i)/runs, float64(runs-j)/runs
			best = max(best, hit-math.Exp(e.epsilon)*alarm, 1-alarm-math.Exp(e.epsilon)*(1-hit))
		}
		if slack := off * (1 + math.Exp(e.epsilon)); math.Abs(best-e.delta) > slack {
			t.Errorf("at ε = %v the attack reaches δ = %.4f; theory says %.4f, give or take %.3f", e.epsilon, best, e.delta, slack)
		}
	}
}
