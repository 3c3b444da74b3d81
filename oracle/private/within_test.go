package private

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

var withinQuery = oracle.Loss{Bound: 0.5, Within: true, Signed: true, Noise: mech.None{}}

// TestWithin: the count of gradients within a norm is that by hand, a half for each within and less a half for each beyond, of linear
// models and networks; other points and queries are refused.
func TestWithin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(44, 10))
	const n, dim = 900, 4
	rows := randomRows(rnd, n, dim)
	for _, m := range []model.Model{logistic(t, dim), network(t, dim, 2, "5 tanh")} {
		for _, sparse := range []bool{false, true} {
			c := config(t, table(rows, 2, sparse), privacy.AddRemove, n)
			c.Model, c.Facts.Dim = m, m.Dim()
			o := openOracle(t, c)
			ask := func(at []float64, q oracle.Loss) (float64, error) {
				b, err := o.Batch(t.Context(), sample.Full{}, q)
				if err != nil {
					return 0, err
				}
				return b.Loss(q, at)
			}
			w := make([]float64, m.Dim())
			for j := range w {
				w[j] = rnd.NormFloat64()
			}
			norms := make([]float64, 0, n)
			for _, r := range rows {
				var one [1]float64
				tab := table([]row{r}, 2, sparse)
				m.Eval(w, data.View{Block: tab.Blocks[0], To: 1}, new(model.Workspace)).GradNorm(one[:], 2)
				norms = append(norms, one[0])
			}
			for _, bound := range append(slices.Clone(norms[:5]), 1e-300, 1e300) {
				want := 0.0
				for _, norm := range norms {
					if want -= 0.5; norm <= bound {
						want++
					}
				}
				if got, err := ask(append(slices.Clone(w), bound), withinQuery); err != nil || math.Abs(got-want/n) > 1e-12 {
					t.Errorf("%s, sparse %t, norm %v: %v, %v; want %v", m.Name(), sparse, bound, got, err, want/n)
				}
			}
			for _, at := range [][]float64{nil, {1}, w, append(slices.Clone(w), 0), append(slices.Clone(w), math.NaN()), append(slices.Clone(w), math.Inf(1))} {
				if got, err := ask(at, withinQuery); err == nil {
					t.Errorf("asked at %v: %v", at, got)
				}
			}
		}
	}
	o := openOracle(t, config(t, table(rows, 2, false), privacy.AddRemove, n))
	for _, q := range []oracle.Loss{{Bound: 1, Within: true}, {Bound: 0.5, Within: true}, {Bound: 1, Within: true, Signed: true}, {Bound: 0.5, Within: true, Wrong: true, Signed: true}, {Bound: 0.5, Within: true, Labels: true, Signed: true}} {
		q.Noise = mech.Gaussian{Sigma: 1}
		if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil {
			t.Errorf("%+v is allowed", q)
		}
	}
}

// TestSensitivityOfWithin: a record that comes, goes or is replaced moves the clipped sum and the count together by no more than what one
// Gaussian of Andrew's z allows, in units of their noise, also with rows that have no finite gradient, and some by about as
// much; on Poisson samples under replace-one the event states both moves.
func TestSensitivityOfWithin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(44, 11))
	const dim, sigma, count = 3, 2.0, 3.0
	z := 1 / math.Sqrt(1/(sigma*sigma)+1/(count*count))
	worst := map[privacy.Adjacency]float64{}
	for range 300 {
		rows, w, bound := randomRows(rnd, 2+rnd.IntN(30), dim), make([]float64, dim), math.Exp2(-4*rnd.Float64())
		for j := range w {
			w[j] = rnd.NormFloat64()
		}
		if rnd.IntN(4) == 0 {
			rows[rnd.IntN(len(rows))].y = float32(math.NaN())
		}
		sums := func(rows []row) (v [dim + 1]float64) {
			var s Local
			s.open(table(rows, 2, rnd.IntN(2) == 0), logistic(t, dim), 1)
			defer s.Close()
			s.facts, s.whole = oracle.Public{Dim: dim, Rows: 30, Classes: 2, OneMargin: true}, true
			unit, counts, err := s.sum(w, clip.Norm{C: bound}, s.facts, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			for j, c := range counts {
				v[j] = float64(c) * unit / bound
			}
			if err := s.Sum(t.Context(), &sum.Sum{Of: sum.Within, Unit: fallUnit(0.5), Bound: 0.5, W: w, Clip: clip.Norm{C: bound}}); err != nil {
				t.Fatal(err)
			}
			v[dim] = float64(s.counts[0]) * fallUnit(0.5)
			return v
		}
		full, i := sums(rows), rnd.IntN(len(rows))
		other := slices.Clone(rows)
		other[i] = randomRows(rnd, 1, dim)[0]
		for adj, moved := range map[privacy.Adjacency][dim + 1]float64{
			privacy.AddRemove: sums(slices.Delete(slices.Clone(rows), i, i+1)), privacy.ReplaceOne: sums(other),
		} {
			moves := 1.0 // C, and withinQuery's ½
			if adj == privacy.ReplaceOne {
				moves = 2
			}
			square := math.Pow((full[dim]-moved[dim])/(count*withinQuery.Sensitivity(adj)), 2)
			for j := range dim {
				square += math.Pow((full[j]-moved[j])/(sigma*moves), 2)
			}
			if got := math.Sqrt(square) * z; got > 1 {
				t.Fatalf("%v: sums differ by %v of what a Gaussian of z = %v allows", adj, got, z)
			} else {
				worst[adj] = max(worst[adj], got)
			}
		}
	}
	if worst[privacy.AddRemove] < 0.999 || worst[privacy.ReplaceOne] < 0.9 {
		t.Errorf("no pair of neighbors came near what is allowed: %v", worst)
	}

	facts := oracle.Public{Rows: 100, Adjacency: privacy.ReplaceOne, Presence: true}
	q := withinQuery
	q.Noise = mech.Gaussian{Sigma: count}
	want := privacy.PoissonSampled{Rate: 0.1, Of: privacy.GaussianSum{Presence: 2 * count, Replacement: count}}
	if got := facts.Cost(sample.Poisson{Rate: 0.1}, []oracle.Query{q}); !privacy.Equal(got, want) {
		t.Errorf("a count costs %v, want %v", got, want)
	}
}

// TestNoiseOfWithin: the noise of the count has the deviation that is charged.
func TestNoiseOfWithin(t *testing.T) {
	const few, sigma, draws = 50, 3, 4000
	rows := slices.Repeat([]row{{x: make([]float32, 2)}}, few) // gradients are 0
	for adj, moves := range map[privacy.Adjacency]float64{privacy.AddRemove: 0.5, privacy.ReplaceOne: 1} {
		o, q, square := openOracle(t, config(t, table(rows, 2, false), adj, few)), withinQuery, 0.0
		q.Noise = mech.Gaussian{Sigma: sigma}
		for range draws {
			b, err := o.Batch(t.Context(), sample.Full{}, q)
			if err != nil {
				t.Fatal(err)
			}
			v, err := b.Loss(q, []float64{0, 0, 1})
			if err != nil {
				t.Fatal(err)
			}
			square += (v - 0.5) * (v - 0.5) / draws
		}
		// The relative deviation of the estimate is 0.011, and the seed is fixed.
		if got, want := math.Sqrt(square), sigma*moves/few; math.Abs(got/want-1) > 0.056 {
			t.Errorf("%v: noise of standard deviation %v, want %v", adj, got, want)
		}
	}
}
