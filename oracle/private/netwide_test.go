package private

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy/clip"
)

// Wide networks, rows whose activations or errors are huge or no numbers: sums over a table and over the table
// with one row less, or with another row, differ by at most C and 2C in exact arithmetic, wherever the row stood.
func TestWideNetworkNeighbors(t *testing.T) {
	race.Skip(t)
	shapes := [][]string{{"37 relu"}, {"5 tanh", "300 relu"}, {"64 linear", "9 tanh", "17 relu"}, {"530 relu"}}
	for trial := range 60 {
		rnd := rand.New(rand.NewPCG(uint64(trial), 77))
		dim, classes := []int{1, 7, 31, 420}[rnd.IntN(4)], []int{0, 2, 3, 10}[rnd.IntN(4)]
		m, err := model.New("mlp", model.Options{Dim: dim, Classes: classes, NormBound: 1, Config: model.MLP{Layers: shapes[rnd.IntN(len(shapes))]}})
		if err != nil {
			t.Fatal(err)
		}
		w := make([]float64, m.Dim())
		scale := math.Pow(10, 6*rnd.Float64()-3)
		if rnd.IntN(4) == 0 {
			scale = math.Pow(10, 300*(2*rnd.Float64()-1))
		}
		for i := range w {
			w[i] = rnd.NormFloat64() * scale
			if rnd.IntN(200) == 0 {
				w[i] *= math.Pow(10, 200*(2*rnd.Float64()-1))
			}
			if math.IsInf(w[i], 0) {
				w[i] = 1e308
			}
		}
		c := math.Ldexp(0.5+rnd.Float64()/2, rnd.IntN(40)-30)
		var rule clip.Rule = clip.Norm{C: c}
		switch rnd.IntN(3) {
		case 0:
			rule = clip.Value{C: c}
		case 1:
			rule = clip.Norm{C: c, P: 1}
		}
		rows := randomRows(rnd, 2+rnd.IntN(40)*[]int{1, 1, 1, 40}[rnd.IntN(4)], dim)
		for i := range rows {
			rows[i].y = float32(rnd.IntN(max(2, classes)))
			if classes == 0 && rnd.IntN(3) == 0 {
				rows[i].y = float32(math.Pow(10, 70*rnd.Float64()-32))
			}
			if rnd.IntN(10) == 0 {
				rows[i].y = float32([]float64{math.NaN(), math.Inf(1), -1, 1e30}[rnd.IntN(4)])
			}
		}
		sum := func(rows []row) (float64, []int64) {
			unit, counts := netSum(t, m, table(rows, classes, rnd.IntN(2) == 0), w, rule, 40, 1+rnd.IntN(2))
			return unit, slices.Clone(counts)
		}
		unit, full := sum(rows)
		k := rnd.IntN(len(rows))
		less := slices.Delete(slices.Clone(rows), k, k+1)
		other := slices.Clone(less)
		other = append(other, randomRows(rnd, 1, dim)[0]) // elsewhere
		_, a := sum(less)
		_, b := sum(other)
		_, one := sum(rows[k : k+1])
		for j := range a {
			if a[j]+one[j] != full[j] {
				t.Fatalf("trial %d: the row's part depends on the others", trial)
			}
		}
		for name, v := range map[string]struct {
			x     []int64
			bound float64
		}{"less": {a, c}, "other": {b, 2 * c}} {
			s := new(big.Float).SetPrec(200)
			for j := range v.x {
				d := new(big.Float).SetPrec(200).SetInt64(full[j] - v.x[j])
				if rule.Norm() == 1 {
					s.Add(s, d.Abs(d))
				} else {
					s.Add(s, d.Mul(d, d))
				}
			}
			if rule.Norm() == 2 {
				s.Sqrt(s)
			}
			s.Mul(s, new(big.Float).SetFloat64(unit))
			if s.Cmp(new(big.Float).SetFloat64(v.bound)) > 0 {
				t.Errorf("trial %d %s %T: %v above %v", trial, name, rule, s, v.bound)
			}
		}
	}
}
