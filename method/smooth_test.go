package method_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
)

// TestSmooth: of bumps that are noise next to nothing is left, and their noise is taken from bumps that draw a curve; linear features,
// columns of too few, and runs that are not to be smoothed keep their parameters.
func TestSmooth(t *testing.T) {
	const columns, bumps = 10, 8
	var curves []oracle.Numeric
	for i := range columns {
		curves = append(curves, oracle.Numeric{At: i * (1 + bumps), Bumps: bumps})
	}
	dim := columns*(1+bumps) + 1
	m := method.Auto{Steps: 100, Rate: 0.5, Gradient: method.Gradient{Clip: 0.5, Noise: 40}, SmoothBumps: true}
	pub := wide(1000, dim)
	sigma := math.Sqrt(m.NoiseVariance(pub, 0.25/float64(dim))) // Clip is half of the largest gradient
	rnd := rand.New(rand.NewPCG(22, 7))
	noise := make([]float64, dim)
	for i := range noise {
		noise[i] = sigma * rnd.NormFloat64()
	}
	curved := make([]float64, dim) // all columns bend alike, by much more than the noise
	for _, c := range curves {
		for j := range c.Bumps {
			curved[c.At+1+j] = 20 * sigma * math.Cos(2*math.Pi*(float64(j)+0.5)/bumps)
		}
	}
	last := method.Step{T: 100}
	smooth := func(w []float64, curves []oracle.Numeric, m method.Auto, last method.Step) []float64 {
		w = slices.Clone(w)
		pub := pub
		pub.Numeric = curves
		m.Smooth(w, pub, method.Objective{}, last)
		return w
	}
	both := make([]float64, dim)
	floats.AddTo(both, noise, curved)

	got := smooth(noise, curves, m, last)
	for i := range columns {
		if linear := i * (1 + bumps); got[linear] != noise[linear] {
			t.Errorf("the linear feature of column %d moved", i)
		}
		got[i*(1+bumps)], noise[i*(1+bumps)] = 0, 0
	}
	if got[dim-1] != noise[dim-1] {
		t.Error("the intercept moved")
	}
	got[dim-1], noise[dim-1] = 0, 0
	// In expectation a fifth or so is left of ten numbers of noise; the seed is fixed.
	if left := floats.Norm(got, 2) / floats.Norm(noise, 2); left > 0.5 {
		t.Errorf("%v of the noise is left", left)
	}
	before, after := floats.Distance(both, curved, 2), floats.Distance(smooth(both, curves, m, last), curved, 2)
	if after > 0.65*before {
		t.Errorf("bumps of a curve and noise: off by %v, and by %v before", after, before)
	}
	for name, w := range map[string][]float64{
		"two columns":  smooth(both, curves[:2], m, last),
		"not finished": smooth(both, curves, m, method.Step{T: 99}),
		"an older run": smooth(both, curves, method.Auto{Steps: m.Steps, Rate: m.Rate, Gradient: m.Gradient}, last),
	} {
		if !slices.Equal(w, both) {
			t.Errorf("%s: parameters changed", name)
		}
	}
	mixed := append(slices.Clone(curves[:9]), oracle.Numeric{At: curves[9].At, Bumps: 5}) // alone with its number of bumps
	if w := smooth(both, mixed, m, last); !slices.Equal(w[mixed[9].At:], both[mixed[9].At:]) || slices.Equal(w, both) {
		t.Error("a column that is alone with its number of bumps changed, or the others did not")
	}

	softmax := pub
	softmax.OneMargin, softmax.Classes = false, 3
	for name, c := range map[string]struct {
		m      method.Auto
		pub    oracle.Public
		curves int
		want   bool
	}{
		"bumps":        {method.Auto{}, pub, columns, true},
		"two columns":  {method.Auto{}, pub, 2, false},
		"turned off":   {method.Auto{RawBumps: true}, pub, columns, false},
		"softmax":      {method.Auto{}, softmax, columns, true},
		"statistics":   {method.Auto{Solve: method.SolveStatistics}, pub, columns, false},
		"no noise":     {method.Auto{Gradient: method.Gradient{Off: true}}, pub, columns, false},
		"Laplace":      {method.Auto{Gradient: method.Gradient{Laplace: true}}, pub, columns, false},
		"samples":      {method.Auto{Gradient: method.Gradient{Batch: 10}}, pub, columns, false},
		"all, written": {method.Auto{Gradient: method.Gradient{Batch: pub.Rows}}, pub, columns, true},
	} {
		c.pub.Numeric = curves[:c.curves]
		if got := c.m.Smooths(c.pub); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestSmoothWaves: waves that are noise go, those of a curve stay, wave by wave and over all classes together, with the
// squared loss, too.
func TestSmoothWaves(t *testing.T) {
	const columns, waves, features = 6, 3, 6*4 + 1
	var curves []oracle.Numeric
	for i := range columns {
		curves = append(curves, oracle.Numeric{At: i * (1 + waves), Waves: waves})
	}
	m := method.Auto{Steps: 100, Rate: 0.5, Gradient: method.Gradient{Clip: 0.5, Noise: 40}, SmoothBumps: true}
	number := wide(1000, features)
	number.Classes, number.Lipschitz, number.LabelSpan = 0, oracle.Bound(math.Inf(1)), 4
	three := wide(1000, 3*features)
	three.Classes, three.OneMargin = 3, false
	for name, pub := range map[string]oracle.Public{"two classes": wide(1000, features), "three classes": three, "a number": number} {
		sigma := math.Sqrt(m.NoiseVariance(pub, 0.25/features))
		rnd := rand.New(rand.NewPCG(23, 7))
		w := make([]float64, pub.Dim)
		for i := range w {
			w[i] = sigma * rnd.NormFloat64()
		}
		for at := 0; at < pub.Dim; at += features {
			for _, c := range curves {
				w[at+c.At+1] += 30 * sigma // the first wave of all columns
			}
		}
		before := slices.Clone(w)
		pub.Numeric = curves
		m.Smooth(w, pub, method.Objective{}, method.Step{T: 100})
		first, others, was := 0.0, 0.0, 0.0
		for at := 0; at < pub.Dim; at += features {
			for _, c := range curves {
				first += w[at+c.At+1] / before[at+c.At+1]
				for _, j := range []int{at + c.At + 2, at + c.At + 3} {
					others, was = others+w[j]*w[j], was+before[j]*before[j]
				}
				if w[at+c.At] != before[at+c.At] {
					t.Errorf("%s: a linear feature moved", name)
				}
			}
		}
		if n := float64(pub.Dim / features * columns); first/n < 0.95 || others > 0.5*was {
			t.Errorf("%s: %v of a curve and %v of the noise are left", name, first/n, others/was)
		}
	}
}
