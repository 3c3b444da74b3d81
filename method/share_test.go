package method_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/oracle"
)

// TestShareRule: predictions of two classes begin at a noisy share where noise is long, with 3 % of the budget, or up to 20 %
// where the share would be unsure, as far as Gaussian noise adds up; margins are then multiplied by less the more noise there is.
func TestShareRule(t *testing.T) {
	kinked, weighted, several, curved := wide(1500, 31), wide(1500, 31), wide(1500, 31), wide(1500, 31)
	kinked.StartLoss, weighted.StartLoss, several.OneMargin, several.Classes = 1, 0, false, 3
	curved.Numeric = []oracle.Numeric{{At: 0, Waves: 5}}
	for _, c := range []struct {
		name    string
		m       method.Auto
		pub     oracle.Public
		epsilon float64
		share   float64 // of the budget; 0: predictions begin at 0
	}{
		{"long noise", method.Auto{}, wide(1500, 31), 0.3, 0.03},
		{"an unsure share", method.Auto{}, wide(1000, 16), 0.1, 0.095},
		{"a very unsure share", method.Auto{}, wide(300, 7), 0.1, 0.2},
		{"short noise", method.Auto{}, wide(30000, 31), 1, 0},
		{"rows as they are", method.Auto{Center: method.CenterNone}, wide(1500, 31), 0.3, 0},
		{"another fallback", method.Auto{Fallback: method.FallbackClass}, wide(1500, 31), 0.3, 0},
		{"noise that is given", method.Auto{Gradient: method.Gradient{Noise: 900}}, wide(1500, 31), 0.3, 0},
		{"a batch", method.Auto{Gradient: method.Gradient{Batch: 40}}, wide(1500, 31), 0.3, 0},
		{"a hinge loss", method.Auto{}, kinked, 0.3, 0},
		{"class weights", method.Auto{}, weighted, 0.3, 0},
		{"curves", method.Auto{}, curved, 0.3, 0},
		{"three classes", method.Auto{}, several, 0.3, 0},
	} {
		for _, calibrated := range []bool{false, true} {
			c.pub.Calibrated = calibrated
			m := autoAt(t, c.m, c.pub, c.epsilon)
			if (m.ShareNoise > 0) != (c.share > 0) || (m.Factor > 0) != (m.ShareNoise > 0 && calibrated) || m.Factor > 1 {
				t.Errorf("%s: %+v", c.name, m)
			}
			if m.ShareNoise == 0 {
				continue
			}
			sens := 0.5
			count := sens * sens / (m.ShareNoise * m.ShareNoise * sens * sens)
			all := count + 1/(m.CenterNoise*m.CenterNoise) + float64(m.Steps)/(m.Gradient.Noise*m.Gradient.Noise)
			if m.LastNoise > 0 {
				all += 1 / (m.LastNoise * m.LastNoise)
			}
			if part := count / all; math.Abs(part-c.share) > 5e-3 {
				t.Errorf("%s: the share takes %.4f of the budget, want %.4f", c.name, part, c.share)
			}
		}
	}
	pub := wide(1500, 31)
	pub.Calibrated = true
	if loud, calm := autoAt(t, method.Auto{}, pub, 0.1), autoAt(t, method.Auto{}, pub, 0.3); !(loud.Factor < calm.Factor) {
		t.Errorf("with more noise, margins are multiplied by %v, and with less by %v", loud.Factor, calm.Factor)
	}
	if m := autoAt(t, method.Auto{RawMargins: true}, pub, 0.3); m.ShareNoise == 0 || m.Factor != 0 {
		t.Errorf("raw margins: %+v", m)
	}
}

// TestShareRun: a run begins at the log-odds of the share that its count says, away from those of 0 and 1, and its model is the
// tail average times the factor, around the center and at the offset.
func TestShareRun(t *testing.T) {
	for _, share := range []float64{0.2, 0.5, 0.97, -1, 3} {
		o := methodtest.NewOracle(methodtest.Problem{Dim: 3, Smooth: 0.25, Grad: func(dst, w []float64) {
			for j := range w {
				dst[j] = 0.25*w[j] - 0.1
			}
		}, Value: func([]float64) float64 { return 1 - share }}, 0)
		m := method.Auto{Steps: 4, Rate: 1, ShareNoise: 20, Factor: 0.5, Gradient: method.Gradient{Clip: 1, Noise: 1}}
		var last method.Step
		w := output(t, m, o, method.Objective{}, func(st method.Step) { last = st })
		rows := float64(o.Public().Rows)
		least := math.Max(1e-3, 20*0.5/rows/2)
		p := math.Min(1-least, math.Max(least, share))
		if want := math.Log(p / (1 - p)); math.Abs(last.Shift-want) > 1e-9 {
			t.Fatalf("a share of %v: margins are shifted by %v, want %v", share, last.Shift, want)
		}
		if last.Made == nil || math.Abs(floats.Sum(last.Made.Offset)-last.Shift) > 1e-12 {
			t.Fatalf("a share of %v: %+v", share, last.Made)
		}
		for j, v := range last.Made.W {
			if math.Abs(v-w[j]/2) > 1e-12 {
				t.Fatalf("a share of %v: the model has %v, half of the output %v is wanted", share, last.Made.W, w)
			}
		}
	}
}
