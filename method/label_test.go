package method_test

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// TestWidthRule: how far labels are from their mean is asked for where predictions begin at that mean and the clip norm is free, if columns
// have curves, with a hundredth of the budget; rows are less their mean where its noise is short.
func TestWidthRule(t *testing.T) {
	columns := 3
	at := func(m method.Auto, rows int, epsilon float64) method.Auto {
		t.Helper()
		pub := quadratic(10, rows, privacy.AddRemove)
		for c := range columns {
			pub.Numeric = append(pub.Numeric, oracle.Numeric{At: 3 * c, Waves: 2})
		}
		return autoAt(t, m, pub, epsilon)
	}
	m := at(method.Auto{}, 20000, 1)
	if m.SpreadNoise == 0 || m.Center != method.CenterMean || m.CenterNoise == 0 {
		t.Fatalf("some rows: %+v", m)
	}
	one := func(noise float64) float64 { return 1 / (noise * noise) }
	all := one(m.LabelNoise) + one(m.SpreadNoise) + one(m.CenterNoise) + float64(m.Steps)*one(m.Gradient.Noise)
	for what, part := range map[string][2]float64{"the mean label": {m.LabelNoise, 0.05}, "its spread": {m.SpreadNoise, 0.01}, "the mean row": {m.CenterNoise, 0.1}} {
		if got := one(part[0]) / all; math.Abs(got-part[1]) > 1e-3 {
			t.Errorf("%s takes %v of the budget, want %v", what, got, part[1])
		}
	}
	if m := at(method.Auto{}, 2000, 0.1); m.Center == method.CenterMean || m.SpreadNoise == 0 {
		t.Errorf("long noise: %+v", m)
	}
	if m := at(method.Auto{}, 300, 0.05); m.SpreadNoise != 0 {
		t.Errorf("no mean label: %+v", m)
	}
	if m := at(method.Auto{Gradient: method.Gradient{Clip: 1}}, 20000, 1); m.SpreadNoise != 0 || m.LabelNoise == 0 {
		t.Errorf("a clip norm that is given: %+v", m)
	}
	columns = 0
	if m := at(method.Auto{}, 20000, 1); m.SpreadNoise != 0 || m.Center != "" || m.LabelNoise == 0 {
		t.Errorf("lines alone: %+v", m)
	}
}

// TestWidthRun: the clip norm of a run is that of labels as wide as the release says, a deviation of its noise more, and not wider than
// their bounds; what smooths and bounds a finished run knows of it.
func TestWidthRun(t *testing.T) {
	pub := oracle.Public{LabelMin: -2, LabelSpan: 6}
	for _, square := range []float64{0, 0.04, 0.5, 1.44, 3, -1, math.NaN()} {
		asked := 0
		o := methodtest.NewOracle(methodtest.Problem{Dim: 3, Smooth: 1, Grad: func(dst, w []float64) { copy(dst, w) },
			Value: func([]float64) float64 {
				if asked++; asked == 1 {
					return 3 // the mean label is 1, not near a bound
				}
				return square
			}}, 0)
		o.Facts.LabelMin, o.Facts.LabelSpan, o.Facts.Shifted = pub.LabelMin, pub.LabelSpan, true
		o.Facts.Lipschitz, o.Facts.Smooth = oracle.Bound(math.Inf(1)), 1
		m := method.Auto{Steps: 4, Rate: 1, LabelNoise: 1, SpreadNoise: 20, Gradient: method.Gradient{Clip: 0.6, Noise: 1}}
		var last method.Step
		output(t, m, o, method.Objective{}, func(st method.Step) { last = st })
		const far = 6. / 5
		deviation := far * far * 20 / float64(o.Facts.Rows)
		want := 5 * math.Sqrt(math.Min(far*far, math.Max(0, square)+deviation))
		if math.IsNaN(square) {
			want = 5 * math.Sqrt(deviation)
		}
		if math.Abs(last.Width-want) > 1e-9 || last.Shift != 1 {
			t.Fatalf("a mean square of %v: labels are %v wide around %v, want %v around 1", square, last.Width, last.Shift, want)
		}
		plain := m
		plain.SpreadNoise, plain.Gradient.Clip = 0, 0.6*want/6
		if got, want := m.ParameterNoise(o.Facts, method.Objective{}, last), plain.ParameterNoise(o.Facts, method.Objective{}, method.Step{T: 4, Shift: 1}); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("a mean square of %v: noise of %v in parameters, want %v", square, got, want)
		}
	}
}
