package private

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/audit"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// anyScore is a score of a model on so many features and classes.
func anyScore(rnd *rand.Rand, features, classes int) oracle.Score {
	q := oracle.Score{Noise: mech.Gaussian{Sigma: 1}}
	if rnd.IntN(2) == 0 {
		q.Group.First = rnd.IntN(features)
		q.Group.Count = rnd.IntN(features - q.Group.First + 1)
	}
	if classes == 0 {
		q.Low, q.High, q.Error = -1, 2, math.Exp2(rnd.Float64()*6-3)
		return q
	}
	if q.Bins = rnd.IntN(3) * rnd.IntN(9); q.Bins > 0 {
		q.Step = 0.1 + rnd.Float64()
	}
	if classes == 2 && rnd.IntN(2) == 0 {
		q.Class, q.Threshold = rnd.IntN(2), rnd.Float64()
	}
	return q
}

// scoreCounts is the exact sum of a score over a table.
func scoreCounts(t testing.TB, tab *data.Table, m model.Model, w []float64, q oracle.Score, classes, workers int) []int64 {
	t.Helper()
	s, err := NewLocal(tab, m, oracle.Public{Dim: m.Dim(), Rows: 1000, Classes: classes}, workers)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.whole = true
	sum := sum.Sum{Of: sum.Scores, Unit: cellUnit(s.facts), Score: q, Classes: classes, W: w}
	if err := s.Sum(t.Context(), &sum); err != nil {
		t.Fatal(err)
	}
	counts := make([]int64, sum.Len())
	s.Take(counts, 0)
	return counts
}

// TestScoreCells: each record is in the cell in which a count by hand, row by row, puts it, whatever the storage and the number of
// workers; dropped rows are in none.
func TestScoreCells(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 1))
	seen := map[int]int{} // groups and kinds that were tried
	for range 300 {
		m, classes, draw := anyModel(t, rnd)
		features := len(draw().x)
		rows := make([]row, 1+rnd.IntN(1500))
		for i := range rows {
			rows[i] = draw()
		}
		q, w := anyScore(rnd, features, classes), anyLine(rnd, m.Dim(), 1).From
		tab := table(rows, classes, rnd.IntN(2) == 0)
		DropSome(rnd, tab)
		got := scoreCounts(t, tab, m, w, q, classes, 1+rnd.IntN(3))
		want, ws := make([]float64, q.Len(classes)), model.Workspace{}
		for i, r := range rows {
			if d := tab.Blocks[i/data.BlockRows].Drop; d != nil && d[i%data.BlockRows] {
				continue
			}
			g := 0
			for g < q.Group.Count && r.x[q.Group.First+g] == 0 {
				g++
			}
			cells := want[g*q.Cells(classes):][:q.Cells(classes)]
			p := make([]float64, m.Outputs())
			m.Predict(p, w, data.View{Block: table([]row{r}, classes, false).Blocks[0], To: 1}, &ws)
			y := int(r.y)
			edges, decision := q.Edges(classes)
			bin := func(p float64) (n int) {
				for k, e := range edges {
					if k == decision && q.Threshold == 0 && p > e || (k != decision || q.Threshold != 0) && p >= e {
						n++
					}
				}
				return n
			}
			switch {
			case classes == 0:
				a, u := min(1, math.Abs(p[0]-float64(r.y))/q.Error), min(1, max(0, (float64(r.y)+1)/3))
				for k, v := range []float64{1, a, a * a, a * a * a * a, u, u * u} {
					cells[k] += v * oracle.ErrorWeights[k]
				}
				seen[0]++
			case y >= classes:
			case classes == 2:
				cells[y*(len(edges)+1)+bin(p[1])]++
				seen[min(q.Bins, 1)+1]++
			case q.Bins > 0:
				cells[bin(p[y])]++
				seen[3]++
			default:
				best := 0
				for k := range p {
					if p[k] > p[best] {
						best = k
					}
				}
				cells[y*classes+best]++
				seen[4]++
			}
		}
		unit, slack := 1.0, 0.0
		if classes == 0 {
			unit, slack = fallUnit(1), float64(len(rows))*fallUnit(1)
		}
		for k, v := range got {
			if d := math.Abs(float64(v)*unit - want[k]); d > slack {
				t.Fatalf("%s, %+v: number %d is %v, by hand %v", m.Name(), q, k, float64(v)*unit, want[k])
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("tried %v of five kinds", seen)
	}
}

// TestScoreThreshold: the middle edge is where predictions change, for a threshold of either class, also at exactly that probability.
func TestScoreThreshold(t *testing.T) {
	for _, c := range []struct {
		class     int
		threshold float64
		bins      int
	}{{0, 0, 0}, {0, 0, 4}, {1, 0.25, 0}, {1, 0.25, 4}, {0, 0.25, 4}, {1, 0.5, 4}, {0, 0.5, 4}, {0, 0.98, 4}} {
		q := oracle.Score{Noise: mech.Gaussian{Sigma: 1}, Bins: c.bins, Class: c.class, Threshold: c.threshold}
		if c.bins > 0 {
			q.Step = 0.5
		}
		s := newScoring(&sum.Sum{Unit: 1, Score: q, Classes: 2}, logistic(t, 1))
		bins := len(s.edges) + 1
		if !slices.IsSorted(s.edges) || s.cells != 2*bins || c.threshold == 0.25 && bins != map[int]int{0: 2, 4: 11}[c.bins] {
			t.Fatalf("%+v: edges %v, %d cells", c, s.edges, s.cells)
		}
		for k := range 1001 {
			p := float64(k) / 1000
			for _, p := range []float64{p, c.threshold, 1 - c.threshold, math.NaN()} {
				out := []float64{1 - p, p}
				for y := range 2 {
					cell := s.cell(out, y)
					if cell/bins != y || (cell%bins > s.decision) != (model.DecideAt(out, c.class, c.threshold) == 1) {
						t.Fatalf("%+v: class %d with the probability %v is in cell %d of %d", c, y, p, cell, s.cells)
					}
				}
			}
		}
	}
}

// TestSensitivityOfScores: no record moves a score by more than is charged, and some by as much, under both relations, whatever
// labels, groups and dropped rows there are.
func TestSensitivityOfScores(t *testing.T) {
	rnd, worst := rand.New(rand.NewPCG(23, 2)), map[[2]int]float64{}
	wild := []float32{-1, 1, 2, 7, -3, float32(math.NaN()), float32(math.Inf(1))}
	for range 2000 {
		m, classes, draw := anyModel(t, rnd)
		features := len(draw().x)
		q, w := anyScore(rnd, features, classes), anyLine(rnd, m.Dim(), 1).From
		any := func() row {
			r := draw()
			if classes == 0 {
				r.y = wild[rnd.IntN(len(wild))]
			}
			return r
		}
		rows := make([]row, 2+rnd.IntN(9))
		for i := range rows {
			rows[i] = any()
		}
		i, sparse, dropped := rnd.IntN(len(rows)), rnd.IntN(2) == 0, rnd.IntN(4) == 0
		sum := func(rows []row, drop bool) []int64 {
			tab := table(rows, classes, sparse)
			if drop {
				tab.Blocks[0].Drop = make([]bool, len(rows))
				tab.Blocks[0].Drop[i] = true
			}
			return scoreCounts(t, tab, m, w, q, classes, 1)
		}
		unit := cellUnit(oracle.Public{Classes: classes})
		moved := func(a, b []int64) float64 {
			square := 0.0
			for k := range a {
				d := float64(a[k]-b[k]) * unit
				square += d * d
			}
			return math.Sqrt(square)
		}
		full, other := sum(rows, false), slices.Clone(rows)
		other[i] = any()
		numeric := 0
		if classes == 0 {
			numeric = 1
			if q.Group.Count > 0 {
				numeric = 2
			}
		}
		for _, c := range []struct {
			adj  privacy.Adjacency
			move float64
		}{
			{privacy.AddRemove, moved(full, sum(slices.Delete(slices.Clone(rows), i, i+1), false))},
			{privacy.ReplaceOne, moved(full, sum(other, dropped))},
		} {
			bound := q.Sensitivity(classes, c.adj)
			if c.move > bound {
				t.Fatalf("%v, %s, %+v: scores differ by %v, the bound is %v", c.adj, m.Name(), q, c.move, bound)
			}
			key := [2]int{numeric, int(c.adj)}
			worst[key] = max(worst[key], c.move/bound)
		}
	}
	for key, share := range worst {
		if share < 0.99 {
			t.Errorf("%v: no pair came nearer than %v of the bound: the test has no force", key, share)
		}
	}
	if len(worst) != 6 {
		t.Errorf("tried %v", worst)
	}
}

// TestScoreNoise: answers are the exact numbers with noise of the deviation that is charged, undivided.
func TestScoreNoise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 3))
	const n, sigma, draws = 300, 3, 400
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		cells := oracle.Score{Noise: mech.Gaussian{Sigma: sigma}, Bins: 4, Step: 0.5}
		errors := oracle.Score{Noise: mech.Gaussian{Sigma: sigma}, Low: -2, High: 6, Error: 8}
		for _, c := range []struct {
			cfg Config
			q   oracle.Score
		}{
			{config(t, table(randomRows(rnd, n, 3), 2, false), adj, n), cells},
			{shiftedConfig(t, table(numbered(rnd, n, 3), 0, false), adj, n), errors},
		} {
			journal := c.cfg.Journal.(*memo)
			w, classes := []float64{1, -2, 0.5}, c.cfg.Facts.Classes
			exact := scoreCounts(t, c.cfg.Table, c.cfg.Model, w, c.q, classes, 1)
			o := openOracle(t, c.cfg)
			square := make([]float64, len(exact))
			for range draws {
				b, err := o.Batch(t.Context(), sample.Full{}, c.q)
				if err != nil {
					t.Fatal(err)
				}
				a, err := b.Score(c.q, w)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.Score(c.q, w); err == nil {
					t.Fatal("a second answer to one charge")
				}
				for k, v := range a {
					want := float64(exact[k]) * cellUnit(c.cfg.Facts)
					if classes == 0 {
						want /= oracle.ErrorWeights[k]
					}
					d := (v - want) / c.q.Deviation(k, classes, adj)
					square[k] += d * d / draws
				}
			}
			// The mean of 400 squares has the deviation .071; 5 of them, of 26 numbers each way, fail with probability 3e-5, and the seed is fixed.
			for k, s := range square {
				if math.Abs(s-1) > 0.36 {
					t.Errorf("%v, number %d: noise has %v times the variance that is said", adj, k, s)
				}
			}
			if len(journal.charged) != draws || !privacy.Equal(journal.charged[0], privacy.Gaussian{Sigma: sigma}) || len(journal.released[0][0]) != len(exact) {
				t.Errorf("charged %d batches of %v, released %d numbers", len(journal.charged), journal.charged[0], len(journal.released[0][0]))
			}
		}
	}
}

// What public values refuse costs nothing.
func TestScoresThatAreNone(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 4))
	noise := mech.Gaussian{Sigma: 1}
	refuses := func(cfg Config, s sample.Sampler, queries ...oracle.Score) {
		t.Helper()
		meter := cfg.Meter.(*free)
		o := openOracle(t, cfg)
		for _, q := range queries {
			if _, err := o.Batch(t.Context(), s, q); err == nil || meter.charges > 0 {
				t.Errorf("%+v: %v, %d charges", q, err, meter.charges)
			}
		}
	}
	two := func() Config { return config(t, table(randomRows(rnd, 5, 2), 2, false), privacy.AddRemove, 5) }
	refuses(two(), sample.Poisson{Rate: 0.5}, oracle.Score{Noise: noise})
	refuses(two(), sample.Full{},
		oracle.Score{}, oracle.Score{Noise: mech.Gaussian{Sigma: math.NaN()}}, oracle.Score{Noise: noise, Bins: 4}, oracle.Score{Noise: noise, Bins: -1, Step: 1},
		oracle.Score{Noise: noise, Bins: 65, Step: 0.1}, oracle.Score{Noise: noise, Bins: 4, Step: math.Inf(1)}, oracle.Score{Noise: noise, Step: 1},
		oracle.Score{Noise: noise, Threshold: -0.5}, oracle.Score{Noise: noise, Threshold: math.NaN()}, oracle.Score{Noise: noise, Class: 2, Threshold: 0.5},
		oracle.Score{Noise: noise, Group: oracle.Levels{First: 1, Count: 2}}, oracle.Score{Noise: noise, Group: oracle.Levels{First: -1, Count: 2}},
		oracle.Score{Noise: noise, Group: oracle.Levels{Count: -1}}, oracle.Score{Noise: noise, Error: 1, High: 1}, oracle.Score{Noise: noise, High: 1})
	refuses(shiftedConfig(t, table(numbered(rnd, 5, 2), 0, false), privacy.AddRemove, 5), sample.Full{},
		oracle.Score{Noise: noise}, oracle.Score{Noise: noise, Error: 1}, oracle.Score{Noise: noise, Error: math.Inf(1), High: 1},
		oracle.Score{Noise: noise, Error: 1, Low: math.Inf(-1)}, oracle.Score{Noise: noise, Error: 1, High: 1, Bins: 1, Step: 1},
		oracle.Score{Noise: noise, Error: math.NaN(), High: 1}, oracle.Score{Noise: noise, Error: -1, High: 1})
	three := config(t, table(randomRows(rnd, 5, 2), 3, false), privacy.AddRemove, 5)
	three.Model, _ = model.New("softmax", model.Options{Dim: 2, Classes: 3, NormBound: 1})
	three.Facts.Dim, three.Facts.Classes = 6, 3
	refuses(three, sample.Full{}, oracle.Score{Noise: noise, Threshold: 0.5})
	three.Facts.Classes = 2
	refuses(three, sample.Full{}, oracle.Score{Noise: noise})
	if err := (oracle.Score{Noise: noise, Group: oracle.Levels{Count: 1 << 20}}).Fits(2); err == nil {
		t.Error("more than 2²⁰ cells")
	}
}

// TestAuditOfScores: what an attacker sees of a record in the noisy counts is no more than is claimed, and nearly that, and more than is
// said of twice the noise. 10⁵ batches of each table; with random seeds each line would fail by chance at most once in 10⁶.
func TestAuditOfScores(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const draws, delta, failure, sigma = 100_000, 0.01, 1e-6, 0.8
	q, w := oracle.Score{Noise: mech.Gaussian{Sigma: sigma}}, []float64{1}
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		law := func(rows []row, seed uint64) audit.Law {
			cfg := config(t, table(rows, 2, false), adj, 10)
			cfg.Journal, cfg.Streams = nowhere{}, noise.SeededStreams(seed)
			o := openOracle(t, cfg)
			return func() int {
				b, err := o.Batch(t.Context(), sample.Full{}, q)
				if err != nil {
					t.Fatal(err)
				}
				a, err := b.Score(q, w)
				if err != nil {
					t.Fatal(err)
				}
				seen := a[3] // class 1, predicted as such
				if adj == privacy.ReplaceOne {
					seen -= a[0]
				}
				return int(min(max(seen, -50), 50)) + 50
			}
		}
		rows := make([]row, 10)
		for i := range rows {
			rows[i] = row{x: []float32{1}, y: 0}
		}
		rows[0].y = 1
		neighbors := rows[1:]
		if adj == privacy.ReplaceOne {
			neighbors = append([]row{{x: []float32{-1}, y: 0}}, neighbors...)
		}
		claim := func(sigma float64) float64 {
			loss, err := account.GDP{}.Loss(privacy.Gaussian{Sigma: sigma}, adj)
			if err != nil {
				t.Fatal(err)
			}
			return loss.Epsilon(delta)
		}
		got, said, faulty := audit.Epsilon(law(rows, 1), law(neighbors, 2), draws, 101, delta, failure), claim(sigma), claim(2*sigma)
		if got > said || got < 0.7*said || got <= faulty {
			t.Errorf("%v: found ε ≥ %.4f; want from %.4f to %.4f, and above %.4f, what twice the noise would cost", adj, got, 0.7*said, said, faulty)
		} else {
			t.Logf("%v: ε ≥ %.4f of %.4f (with twice the noise %.4f)", adj, got, said, faulty)
		}
	}
}
