package reg

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func all(t interface{ Fatal(...any) }, lambda float64) map[string]Regularizer {
	m := map[string]Regularizer{}
	for _, name := range Names() {
		r, err := New(name, lambda)
		if err != nil {
			t.Fatal(err)
		}
		m[name] = r
	}
	return m
}

// TestGradient compares every gradient with central differences, and every
// curvature bound with the change of the gradient along a segment.
func TestGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.Float64Range(0, 3).Draw(t, "lambda")
		draw := rapid.SliceOfN(rapid.Float64Range(-4, 4), 5, 5)
		w, u := draw.Draw(t, "w"), draw.Draw(t, "u")
		for name, r := range all(t, lambda) {
			g := make([]float64, 5)
			r.AddGrad(g, w)
			for j := range w {
				h := 1e-5
				if name == "l1" && math.Abs(w[j]) <= h {
					continue // the kink
				}
				up, down := slices.Clone(w), slices.Clone(w)
				up[j] += h
				down[j] -= h
				if slope := (r.Value(up) - r.Value(down)) / (2 * h); math.Abs(slope-g[j]) > 1e-8*(1+lambda) {
					t.Fatalf("%s, λ=%v: ∂r/∂w_%d = %v, differences say %v", name, lambda, j, g[j], slope)
				}
			}
			gu := make([]float64, 5)
			r.AddGrad(gu, u)
			var inner, dist float64
			for j := range w {
				inner += (g[j] - gu[j]) * (w[j] - u[j])
				dist += (w[j] - u[j]) * (w[j] - u[j])
			}
			slack := 1e-12 * (1 + lambda) * (1 + dist)
			if dist > 0 && (inner > r.Smooth()*dist+slack || inner < r.StrongConvexity()*dist-slack) {
				t.Fatalf("%s: ⟨∇r(w)−∇r(u), w−u⟩/‖w−u‖² = %v outside [%v, %v]", name, inner/dist, r.StrongConvexity(), r.Smooth())
			}
		}
	})
}

// TestHessians compares every Hessian with differences of the gradient, and its Lipschitz
// constant with the Hessian's own differences.
func TestHessians(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.Float64Range(0, 3).Draw(t, "lambda")
		w := rapid.SliceOfN(rapid.Float64Range(-4, 4), 5, 5).Draw(t, "w")
		const h = 1e-5
		moved := func(by float64) []float64 {
			to := slices.Clone(w)
			for j := range to {
				to[j] += by
			}
			return to
		}
		for name, r := range all(t, lambda) {
			c, ok := r.(Curved)
			if ok != (name != "l1") {
				t.Fatalf("%s: a Hessian is there: %v", name, ok)
			}
			if !ok {
				continue
			}
			diagonal, up, down := make([]float64, 5), make([]float64, 5), make([]float64, 5)
			c.AddHess(diagonal, w)
			r.AddGrad(up, moved(h))
			r.AddGrad(down, moved(-h))
			for j, v := range diagonal {
				if slope := (up[j] - down[j]) / (2 * h); math.Abs(slope-v) > 1e-8*(1+lambda) {
					t.Fatalf("%s, λ=%v: ∂²r/∂w_%d² = %v, differences say %v", name, lambda, j, v, slope)
				}
			}
			clear(up)
			c.AddHess(up, moved(h))
			for j, v := range diagonal {
				if change := math.Abs(up[j] - v); change > c.HessLipschitz()*h*(1+1e-6)+1e-14 {
					t.Fatalf("%s: the Hessian changes by %v over %v; HessLipschitz is %v", name, change, h, c.HessLipschitz())
				}
			}
		}
	})
	steepest := math.Sqrt(1 - 2/math.Sqrt(5))
	most := 24 * steepest * (1 - steepest*steepest) / math.Pow(1+steepest*steepest, 4)
	if bound := (NonConvex{Lambda: 1}).HessLipschitz(); bound < most || bound > most*(1+1e-11) {
		t.Errorf("HessLipschitz %.15g, the third derivative reaches %.15g", bound, most)
	}
}

// TestBoundsAreTight: the non-convex bounds are attained at 0 and at ±1.
func TestBoundsAreTight(t *testing.T) {
	r := NonConvex{Lambda: 3}
	for at, want := range map[float64]float64{0: r.Smooth(), 1: r.StrongConvexity(), -1: r.StrongConvexity()} {
		a, b := []float64{0}, []float64{0}
		r.AddGrad(a, []float64{at + 1e-5})
		r.AddGrad(b, []float64{at - 1e-5})
		if got := (a[0] - b[0]) / 2e-5; math.Abs(got-want) > 1e-8 {
			t.Errorf("second derivative at %v is %v, want %v", at, got, want)
		}
	}
}

func TestExtremes(t *testing.T) {
	w := []float64{1e200, -1e308, 1e-200, 0}
	r := NonConvex{Lambda: 1}
	if got := r.Value(w); got != 2 {
		t.Errorf("NonConvex.Value = %v, want 2", got)
	}
	g := make([]float64, 4)
	r.AddGrad(g, w)
	if want := []float64{0, 0, 2e-200, 0}; !slices.Equal(g, want) {
		t.Errorf("NonConvex gradient = %v, want %v", g, want)
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name   string
		lambda float64
		want   string
	}{
		{"ridge", 1, `unknown regularizer "ridge"; choose l2, l1, nonconvex`},
		{"l2", -1, "lambda is -1"},
		{"l2", math.NaN(), "lambda is NaN"},
		{"l1", math.Inf(1), "lambda is +Inf"},
	} {
		if _, err := New(c.name, c.lambda); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q, %v): %v, want %q", c.name, c.lambda, err, c.want)
		}
	}
}

func TestAllocations(t *testing.T) {
	w, dst := make([]float64, 100), make([]float64, 100)
	for name, r := range all(t, 1) {
		if n := testing.AllocsPerRun(10, func() { r.AddGrad(dst, w); r.Value(w) }); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
