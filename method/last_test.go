package method_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
)

// lookedAt keeps what the margins of a run are asked with, and at.
type lookedAt struct {
	*methodtest.Oracle
	bound float64
	at    []float64
}

type lookedBatch struct {
	oracle.Batch
	o *lookedAt
}

func (o *lookedAt) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	b, err := o.Oracle.Batch(ctx, s, queries...)
	return lookedBatch{b, o}, err
}

func (b lookedBatch) Margins(q oracle.Margins, at []float64) ([]float64, error) {
	b.o.bound, b.o.at = q.Bound, at
	return b.Batch.Margins(q, at)
}

// TestLastReach: margins of more than two classes are clipped to twice the length that rows in all directions give them, to 6 at
// least, and to no more than noise allows; those of earlier runs, and of two classes, to 6.
func TestLastReach(t *testing.T) {
	const features, classes = 4, 3
	for _, c := range []struct {
		name        string
		size, noise float64 // where the iterates go to, in each parameter; noise multiplier of the last release
		m           method.Auto
		want        func(length float64) float64
	}{
		{"short margins", 0.5, 1, method.Auto{LastReach: 0.1}, func(float64) float64 { return 6 }},
		{"long margins", 20, 0.5, method.Auto{LastReach: 0.1}, func(length float64) float64 { return 2 * length }},
		{"long margins and noise", 20, 4, method.Auto{LastReach: 0.1}, func(float64) float64 { return 0.1 * 1000 / (4 * 2) }},
		{"long margins and more noise", 20, 40, method.Auto{LastReach: 0.1}, func(float64) float64 { return 6 }},
		{"of an earlier run", 20, 1, method.Auto{}, func(float64) float64 { return 6 }},
	} {
		o := &lookedAt{Oracle: methodtest.NewOracle(methodtest.Problem{Dim: features * classes, Smooth: 1, Grad: func(dst, w []float64) {
			for j := range dst {
				dst[j] = w[j] - c.size
			}
		}}, 0)}
		o.Facts.Classes, o.Facts.Calibrated, o.Facts.StartLoss = classes, true, oracle.Bound(math.Log(classes))
		c.m.Steps, c.m.Rate, c.m.LastNoise, c.m.LastMedian = 40, 0.5, c.noise, 0.8
		c.m.Gradient = method.Gradient{Clip: 1, Noise: 1e-6}
		for _, err := range c.m.Run(t.Context(), o, method.Objective{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		length := math.Sqrt(floats.Dot(o.at[:features*classes], o.at[:features*classes]) / features)
		if want := c.want(length); math.Abs(o.bound/want-1) > 1e-5 {
			t.Errorf("%s: margins, %.3g long, are clipped to %v, want %v", c.name, length, o.bound, want)
		}
	}
}

// Two classes with a margin each, too, are looked at up to 6, as one margin of theirs is.
func TestLastReachOfTwoClasses(t *testing.T) {
	for classes, want := range map[int]bool{2: false, 3: true} {
		pub := oracle.Public{Dim: 10 * classes, Rows: 10_000, Classes: classes, Adjacency: privacy.AddRemove, NormBound: 1, Lipschitz: 2, Smooth: 1, Calibrated: true, StartLoss: oracle.Bound(math.Log(float64(classes)))}
		m, err := method.Auto{}.Configure(pub, method.Objective{}, method.Terms{Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.AddRemove}, Accountant: account.Best{}})
		if err != nil {
			t.Fatal(err)
		}
		if auto := m.(method.Auto); auto.Last != method.LastMargins || (auto.LastReach > 0) != want {
			t.Errorf("%d classes: %q with a reach of %v", classes, auto.Last, auto.LastReach)
		}
	}
}
