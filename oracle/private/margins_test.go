package private

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// marginConfig is of a logistic model for one margin, otherwise of softmax with so many classes.
func marginConfig(t testing.TB, rows []row, margins int, sparse bool, adj privacy.Adjacency) Config {
	t.Helper()
	cfg := config(t, table(rows, max(2, margins), sparse), adj, len(rows))
	cfg.Facts.Calibrated, cfg.Facts.OneMargin = true, margins == 1
	if margins > 1 {
		m, err := model.New("softmax", model.Options{Dim: cfg.Table.Dim, Classes: margins, NormBound: 1})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Model, cfg.Facts.Dim, cfg.Facts.Classes = m, m.Dim(), margins
	}
	return cfg
}

// classed are random rows of so many classes.
func classed(rnd *rand.Rand, n, dim, classes int) []row {
	rows := randomRows(rnd, n, dim)
	for i := range rows {
		rows[i].y = float32(rnd.IntN(classes))
	}
	return rows
}

// askMargins charges a query and asks it.
func askMargins(t testing.TB, o *Oracle, q oracle.Margins, at []float64) ([]float64, error) {
	b, err := o.Batch(t.Context(), sample.Full{}, q)
	if err != nil {
		return nil, err
	}
	return b.Margins(q, at)
}

// directMargins are the sums in float64, from the formulas.
func directMargins(rows []row, margins int, q oracle.Margins, at []float64) []float64 {
	dim := len(rows[0].x)
	w, at := at[:dim*margins], at[dim*margins:]
	shift, a, b := at[:margins], at[margins], at[margins+1:]
	sums := make([]float64, 2*(margins+1))
	if margins == 1 {
		sums = append(sums, 0)
	}
	for _, r := range rows {
		z, norm := slices.Clone(shift), 0.0
		for c := range z {
			for j, x := range r.x {
				z[c] += w[c*dim+j] * float64(x)
			}
			norm += z[c] * z[c]
		}
		u, odds, total := make([]float64, margins), make([]float64, margins), 0.0
		for c := range z {
			u[c] = z[c] * min(1, q.Bound/math.Sqrt(norm)) / q.Bound
			odds[c] = math.Exp(a*q.Bound*u[c] + b[c])
			total += odds[c]
		}
		if margins == 1 {
			p := odds[0] / (1 + odds[0])
			v := p * (1 - p)
			for k, x := range []float64{p - float64(r.y), (p - float64(r.y)) * u[0], v, v * u[0], v * u[0] * u[0]} {
				sums[k] += x
			}
			continue
		}
		mean := 0.0
		for c := range z {
			mean += odds[c] / total * u[c]
		}
		for c := range z {
			p := odds[c] / total
			slope := p
			if c == int(r.y) {
				slope--
			}
			sums[c] += slope
			sums[margins] += slope * u[c]
			sums[margins+1+c] += p * (1 - p)
			sums[2*margins+1] += p * (u[c] - mean) * (u[c] - mean)
		}
	}
	if q.Weight == 0 {
		return sums[:margins+1]
	}
	return sums
}

// TestMarginSums: without noise the sums are those of the formulas, of one margin and of several, in dense and sparse rows, with long
// margins and short ones.
func TestMarginSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 1))
	const n, dim = 2100, 4
	for _, margins := range []int{1, 2, 3, 7} {
		rows := classed(rnd, n, dim, max(2, margins))
		for _, sparse := range []bool{false, true} {
			o := openOracle(t, marginConfig(t, rows, margins, sparse, privacy.AddRemove))
			for _, q := range []oracle.Margins{{Bound: 6, Weight: 0.5}, {Bound: 0.3, Weight: 0.01}, {Bound: 1e-3}, {Bound: 50}} {
				q.Noise = mech.None{}
				at := make([]float64, dim*margins+2*margins+1)
				for j := range at {
					at[j] = 3 * rnd.NormFloat64()
				}
				got, err := askMargins(t, o, q, at)
				if err != nil {
					t.Fatal(err)
				}
				want := directMargins(rows, margins, q, at)
				if len(got) != len(want) {
					t.Fatalf("%d margins, %+v: %d numbers, want %d", margins, q, len(got), len(want))
				}
				for j := range want {
					if most := n * 0x1p-19 / q.Scale(o.Public(), j); !(math.Abs(got[j]-want[j]) <= most) {
						t.Errorf("%d margins, %+v: number %d is %v, want %v", margins, q, j, got[j], want[j])
					}
				}
			}
		}
	}
}

// TestMarginsThatAreNone: what is not charged, asked twice, of another length or not finite is refused, and so are bounds, weights, noise,
// samples, models and facts that no proof covers.
func TestMarginsThatAreNone(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 2))
	noise := mech.Gaussian{Sigma: 1}
	q := oracle.Margins{Bound: 6, Weight: 0.5, Noise: noise}
	for _, margins := range []int{1, 3} {
		cfg := marginConfig(t, classed(rnd, 20, 4, max(2, margins)), margins, false, privacy.AddRemove)
		o, at := openOracle(t, cfg), make([]float64, 4*margins+2*margins+1)
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		other := q
		other.Bound = 5
		if _, err := b.Margins(other, at); !errors.Is(err, oracle.ErrNotCharged) {
			t.Errorf("not charged: %v", err)
		}
		bad := [][]float64{nil, at[1:], append(slices.Clone(at), 0)}
		for j := range 2*margins + 1 {
			for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				a := slices.Clone(at)
				a[4*margins+j] = v
				bad = append(bad, a)
			}
		}
		for _, at := range bad {
			if a, err := b.Margins(q, at); err == nil || a != nil {
				t.Errorf("asked at %v: %v, %v", at, a, err)
			}
		}
		if _, err := b.Margins(q, at); err != nil {
			t.Error(err)
		}
		if _, err := b.Margins(q, at); !errors.Is(err, oracle.ErrNotCharged) {
			t.Errorf("asked twice: %v", err)
		}
		for _, q := range []oracle.Margins{
			{}, {Bound: 6}, {Noise: noise}, {Bound: -1, Noise: noise}, {Bound: math.NaN(), Noise: noise}, {Bound: math.Inf(1), Noise: noise},
			{Bound: 6, Weight: -0.1, Noise: noise}, {Bound: 6, Weight: 0.51, Noise: noise}, {Bound: 6, Weight: math.NaN(), Noise: noise},
			{Bound: 6, Weight: 1e-9, Noise: noise}, {Bound: 6, Noise: mech.Laplace{Scale: 1}}, {Bound: 6, Noise: mech.Gaussian{}},
			{Bound: 6, Noise: mech.Gaussian{Sigma: math.NaN()}},
		} {
			if _, err := o.Batch(t.Context(), sample.Full{}, q); err == nil {
				t.Errorf("%+v is allowed", q)
			}
		}
		if _, err := o.Batch(t.Context(), sample.Poisson{Rate: 0.5}, q); err == nil {
			t.Error("a sample is allowed")
		}
		cfg.Facts.Calibrated = false
		if _, err := openOracle(t, cfg).Batch(t.Context(), sample.Full{}, q); !errors.Is(err, errNotCalibrated) {
			t.Errorf("of a run that does not say so: %v", err)
		}
	}
	for _, name := range []string{"svm", "huber-svm"} {
		cfg := marginConfig(t, classed(rnd, 20, 4, 2), 1, false, privacy.AddRemove)
		m, err := model.New(name, model.Options{Dim: 4, Classes: 2, NormBound: 1})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Model, cfg.Facts.Dim, cfg.Facts.OneMargin = m, m.Dim(), m.Facts().OneMargin
		if _, err := New(cfg); !errors.Is(err, errNotCalibrated) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewLocal(cfg.Table, m, cfg.Facts, 1); !errors.Is(err, errNotCalibrated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
