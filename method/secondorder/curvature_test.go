package secondorder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// random is a symmetric matrix of independent normal entries and a vector.
func random(rnd *rand.Rand, d int) (*mat.SymDense, []float64) {
	h, g := mat.NewSymDense(d, nil), make([]float64, d)
	for i := range d {
		g[i] = rnd.NormFloat64()
		for j := i; j < d; j++ {
			h.SetSym(i, j, rnd.NormFloat64())
		}
	}
	return h, g
}

func value(h *mat.SymDense, g, s []float64) float64 {
	v := mat.NewVecDense(len(s), s)
	return floats.Dot(g, s) + mat.Inner(v, h, v)/2
}

// TestTrustRegionBrute: in two dimensions the minimum over the disc is found by looking
// everywhere, to 1e-9; a third of the problems are hard cases.
func TestTrustRegionBrute(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		h, g := random(rnd, 2)
		switch i % 3 {
		case 1: // exactly: g along the other axis
			h = mat.NewSymDense(2, []float64{-1 - rnd.Float64(), 0, 0, 1 + rnd.Float64()})
			g = []float64{0, rnd.NormFloat64() / 4}
		case 2: // up to rounding
			p, err := Smallest(h, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			floats.AddScaled(g, -floats.Dot(g, p.Vector), p.Vector)
			floats.Scale(0.1, g)
		}
		radius := math.Exp(rnd.NormFloat64())
		s, _, err := TrustRegion(h, g, radius)
		if err != nil {
			t.Fatal(err)
		}
		if n := floats.Norm(s, 2); n > radius*(1+1e-12) {
			t.Fatalf("a step of %v within a radius of %v", n, radius)
		}
		if got, want := value(h, g, s), brute(h, g, radius); math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Errorf("case %d: value %.12g, the least is %.12g", i, got, want)
		}
	}
}

// brute is the least value over the disc: on its rim, by a grid of angles and a search of the best
// ones, and at the point inside where the gradient is zero.
func brute(h *mat.SymDense, g []float64, radius float64) float64 {
	at := func(angle float64) float64 {
		return value(h, g, []float64{radius * math.Cos(angle), radius * math.Sin(angle)})
	}
	best := math.Inf(1)
	const parts = 2000
	for k := range parts {
		a := 2 * math.Pi * float64(k) / parts
		if v := at(a); v > at(a-2*math.Pi/parts) || v > at(a+2*math.Pi/parts) {
			continue
		}
		low, high := a-2*math.Pi/parts, a+2*math.Pi/parts
		for range 100 {
			l, m := low+(high-low)/3, high-(high-low)/3
			if at(l) < at(m) {
				high = m
			} else {
				low = l
			}
		}
		best = math.Min(best, at((low+high)/2))
	}
	var inner mat.VecDense
	if err := inner.SolveVec(h, mat.NewVecDense(2, []float64{-g[0], -g[1]})); err == nil && inner.Norm(2) <= radius {
		best = math.Min(best, value(h, g, inner.RawVector().Data))
	}
	return best
}

// TestTrustRegionConditions: the conditions that only a global minimum fulfils.
func TestTrustRegionConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 12).Draw(t, "d")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		h, g := random(rnd, d)
		p, err := Smallest(h, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "hard") {
			floats.AddScaled(g, -floats.Dot(g, p.Vector), p.Vector)
		}
		floats.Scale(math.Pow(10, rapid.Float64Range(-8, 2).Draw(t, "scale")), g)
		radius := math.Pow(10, rapid.Float64Range(-4, 3).Draw(t, "radius"))
		s, mu, err := TrustRegion(h, g, radius)
		if err != nil {
			t.Fatal(err)
		}
		if mu < 0 || mu < -p.Value-1e-12 {
			t.Fatalf("multiplier %v with a smallest eigenvalue of %v", mu, p.Value)
		}
		n := floats.Norm(s, 2)
		if n > radius*(1+1e-12) || mu > 1e-9 && n < radius*(1-1e-9) {
			t.Fatalf("a step of %v within %v, multiplier %v", n, radius, mu)
		}
		rest := mat.NewVecDense(d, nil)
		rest.MulVec(h, mat.NewVecDense(d, s))
		rest.AddScaledVec(rest, mu, mat.NewVecDense(d, s))
		rest.AddVec(rest, mat.NewVecDense(d, g))
		if e := rest.Norm(2); e > 1e-10*(floats.Norm(g, 2)+(norm(h)+mu)*n) {
			t.Fatalf("‖(H+µI)s + g‖ = %v", e)
		}
	})
}

// TestSmallest: LAPACK's eigenpairs and Lanczos's agree.
func TestSmallest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for _, d := range []int{1, 2, 5, 54, Direct, Direct + 44} {
		h, _ := random(rnd, d)
		h.ScaleSym(1/math.Sqrt(float64(d)), h)
		var e mat.EigenSym
		if !e.Factorize(h, false) {
			t.Fatal("no eigenvalues")
		}
		want := e.Values(nil)[0]
		const tolerance, miss = 1e-2, 1e-9
		for name, pair := range map[string]func() (Pair, error){
			"smallest": func() (Pair, error) { return Smallest(h, tolerance, miss) },
			"lanczos":  func() (Pair, error) { return lanczos(h, Iterations(d, norm(h), tolerance, miss), tolerance) },
		} {
			p, err := pair()
			if err != nil {
				t.Fatal(err)
			}
			slack := p.Slack + 1e-12
			if p.Value < want-1e-12 || p.Value > want+slack {
				t.Errorf("%s, d = %d: %v, LAPACK says %v", name, d, p.Value, want)
			}
			v := mat.NewVecDense(d, p.Vector)
			if math.Abs(v.Norm(2)-1) > 1e-12 || math.Abs(mat.Inner(v, h, v)-p.Value) > 1e-10 {
				t.Errorf("%s, d = %d: vector of norm %v and quotient %v, value %v", name, d, v.Norm(2), mat.Inner(v, h, v), p.Value)
			}
		}
	}
}

// TestLanczosStops: fewer steps than the order where the tolerance allows, and an early end
// where the start reaches no more.
func TestLanczosStops(t *testing.T) {
	if k := Iterations(1000, 1, 1, 1e-3); k > 20 {
		t.Errorf("%d steps for a tolerance as large as the norm", k)
	}
	if k := Iterations(1000, 1, 1e-12, 1e-3); k != 1000 {
		t.Errorf("%d steps; after 1000 the value is exact", k)
	}
	h := mat.NewSymDense(300, nil)
	for i := range 300 {
		h.SetSym(i, i, float64(i%3)-1) // three eigenvalues
	}
	p, err := lanczos(h, 300, 0)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(p.Value+1) > 1e-12 {
		t.Errorf("%v, want −1", p.Value)
	}
	if p, err := Smallest(mat.NewSymDense(3, nil), 1e-3, 1e-3); err != nil || p.Value != 0 {
		t.Errorf("of zeros: %v, %v", p, err)
	}
	bad := mat.NewSymDense(2, []float64{1, math.NaN(), 0, 1})
	if _, err := Smallest(bad, 1, 0.1); err == nil {
		t.Error("a matrix that holds NaN passed")
	}
	if _, _, err := TrustRegion(bad, []float64{1, 1}, 1); err == nil {
		t.Error("a trust region of a matrix that holds NaN passed")
	}
}

func ExampleTrustRegion() {
	// At the saddle of (x² − y²)/2 the gradient says nothing and the step goes along y.
	s, mu, _ := TrustRegion(mat.NewSymDense(2, []float64{1, 0, 0, -1}), []float64{0, 0}, 0.5)
	fmt.Printf("%.1f %.1f\n", math.Abs(s[1]), mu)
	// Output: 0.5 1.0
}

// TestLanczosStart: no matrix can be made for the start of Lanczos's method, which is another for each. This one
// is the identity but for one direction of negative curvature, at right angles to where a start that is always the same began.
func TestLanczosStart(t *testing.T) {
	const d = Direct + 44
	v, state := mat.NewVecDense(d, nil), uint64(0)
	for j := range d {
		sum := -6.0
		for range 12 {
			state += 0x9e3779b97f4a7c15
			z := state
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			sum += float64((z^z>>31)>>11) * 0x1p-53
		}
		v.SetVec(j, sum)
	}
	v.ScaleVec(1/v.Norm(2), v)
	u := mat.NewVecDense(d, nil)
	u.SetVec(0, 1)
	u.AddScaledVec(u, -mat.Dot(u, v), v)
	u.ScaleVec(1/u.Norm(2), u)
	h := mat.NewSymDense(d, nil)
	for j := range d {
		h.SetSym(j, j, 1)
	}
	h.SymRankOne(h, -1.2, u)
	p, err := Smallest(h, 0.1, 1e-6)
	if err != nil || math.Abs(p.Value+0.2) > 0.1 {
		t.Errorf("λ = %v, %v; want −0.2", p.Value, err)
	}
	again, err := Smallest(h, 0.1, 1e-6)
	if err != nil || again.Value != p.Value || !floats.Equal(again.Vector, p.Vector) {
		t.Errorf("again: %v, %v; a run is replayed from its releases", again.Value, err)
	}
}
