package private

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// TestWrongAnswers: 0-1 losses are those of a count by hand, in sparse and dense rows, with an offset or none, and signed answers are
// less by a half each; noise has the deviation that is charged, of signed answers half as much under add-or-remove; other models, bounds
// and points are refused.
func TestWrongAnswers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 5))
	const n, dim = 2500, 5
	rows := randomRows(rnd, n, dim)
	ask := func(t *testing.T, o *Oracle, noise mech.Additive, signed bool, at []float64) (float64, error) {
		q := oracle.Loss{Bound: 1, Noise: noise, Wrong: true, Signed: signed}
		if signed {
			q.Bound = 0.5
		}
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			return 0, err
		}
		return b.Loss(q, at)
	}
	for _, sparse := range []bool{false, true} {
		o := openOracle(t, centeredConfig(t, table(rows, 2, sparse), privacy.AddRemove, n))
		for _, offset := range []float64{0, 0.3, -0.3, 9, -9} {
			at := make([]float64, dim, dim+1)
			for j := range at {
				at[j] = rnd.NormFloat64()
			}
			at = append(at, offset)
			want := 0.0
			for _, r := range rows {
				z, class := offset, float32(0)
				for j, x := range r.x {
					z += at[j] * float64(x)
				}
				if z > 0 {
					class = 1
				}
				if r.y != class {
					want += 1.0 / n
				}
			}
			for _, signed := range []bool{false, true} {
				if got, err := ask(t, o, mech.None{}, signed, at); err != nil || math.Abs(got-want) > 1e-9 {
					t.Errorf("sparse %t, offset %v, signed %t: %v, %v; want %v", sparse, offset, signed, got, err, want)
				}
				want -= 0.5
			}
		}
		for _, at := range [][]float64{nil, {1}, make([]float64, dim), {0, 0, 0, 0, 0, math.NaN()}, {0, 0, 0, 0, 0, math.Inf(1)}} {
			if got, err := ask(t, o, mech.None{}, false, at); err == nil {
				t.Errorf("asked at %v: %v", at, got)
			}
		}
		noise := mech.Gaussian{Sigma: 1}
		for _, q := range []oracle.Loss{{Bound: 2, Noise: noise, Wrong: true}, {Bound: 1, Noise: noise, Wrong: true, Signed: true}, {Bound: 0.5, Noise: noise, Wrong: true}, {Bound: 0.5, Noise: noise, Signed: true}} {
			if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil {
				t.Errorf("%+v is allowed", q)
			}
		}
	}
	three := config(t, table(rows, 3, false), privacy.AddRemove, n)
	three.Model, _ = model.New("softmax", model.Options{Dim: dim, Classes: 3, NormBound: 1})
	three.Facts.Dim, three.Facts.Classes = 3*dim, 3
	if _, err := openOracle(t, three).Batch(t.Context(), sample.Full{}, oracle.Loss{Bound: 1, Noise: mech.Gaussian{Sigma: 1}, Wrong: true}); err == nil {
		t.Error("0-1 losses of a model without two classes by one margin")
	}
	// 4,000 draws: the relative deviation of the estimate is 0.011; 5 of them fail with probability 6e-7, and the seed is fixed.
	for _, c := range []struct {
		adj    privacy.Adjacency
		signed bool
		moves  float64
	}{{privacy.AddRemove, false, 1}, {privacy.ReplaceOne, false, 1}, {privacy.AddRemove, true, 0.5}, {privacy.ReplaceOne, true, 1}} {
		const few, sigma, draws = 50, 3, 4000
		o := openOracle(t, centeredConfig(t, table(slices.Repeat([]row{{x: make([]float32, 2)}}, few), 2, false), c.adj, few))
		square := 0.0
		for range draws {
			v, err := ask(t, o, mech.Gaussian{Sigma: sigma}, c.signed, []float64{0, 0, -1}) // all are right
			if err != nil {
				t.Fatal(err)
			}
			if c.signed {
				v += 0.5
			}
			square += v * v / draws
		}
		if got, want := math.Sqrt(square), sigma*c.moves/few; math.Abs(got/want-1) > 0.056 {
			t.Errorf("%v, signed %t: noise of standard deviation %v, want %v", c.adj, c.signed, got, want)
		}
	}
}

// TestSensitivityOfAnswers: a record that comes, goes or is replaced moves sums of answers by no more than a query of them states, and some
// by as much.
func TestSensitivityOfAnswers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 6))
	for _, signed := range []bool{false, true} {
		q, kind := oracle.Loss{Bound: 1, Wrong: true}, sum.Wrong
		if signed {
			q, kind = oracle.Loss{Bound: 0.5, Wrong: true, Signed: true}, sum.Answers
		}
		worst := map[privacy.Adjacency]float64{}
		for range 200 {
			rows, w := randomRows(rnd, 2+rnd.IntN(30), 2), []float64{rnd.NormFloat64(), rnd.NormFloat64()}
			offset := rnd.NormFloat64()
			sum := func(rows []row) float64 {
				var s Local
				s.open(table(rows, 2, rnd.IntN(2) == 0), logistic(t, 2), 1)
				defer s.Close()
				s.facts, s.whole = oracle.Public{Dim: 2, Classes: 2, OneMargin: true}, true
				if err := s.Sum(t.Context(), &sum.Sum{Of: kind, Unit: fallUnit(q.Bound), Bound: q.Bound, W: w, Offset: offset}); err != nil {
					t.Fatal(err)
				}
				return float64(s.counts[0]) * fallUnit(q.Bound)
			}
			full, i := sum(rows), rnd.IntN(len(rows))
			other := slices.Clone(rows)
			other[i] = randomRows(rnd, 1, 2)[0]
			for adj, moved := range map[privacy.Adjacency]float64{
				privacy.AddRemove:  math.Abs(full - sum(slices.Delete(slices.Clone(rows), i, i+1))),
				privacy.ReplaceOne: math.Abs(full - sum(other)),
			} {
				if moved > q.Sensitivity(adj) {
					t.Fatalf("signed %t, %v: sums differ by %v, the sensitivity is %v", signed, adj, moved, q.Sensitivity(adj))
				}
				worst[adj] = max(worst[adj], moved/q.Sensitivity(adj))
			}
		}
		if worst[privacy.AddRemove] != 1 || worst[privacy.ReplaceOne] != 1 {
			t.Errorf("signed %t: no pair of neighbors reached the sensitivity: %v", signed, worst)
		}
	}
}
