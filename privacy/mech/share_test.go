package mech

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// pooling is the sum of shares of so many owners.
func pooling(m Share, owners int) func(v []int64, src *noise.Source) {
	return func(v []int64, src *noise.Source) {
		for range owners {
			must(m.AddPart(v, 1, auditSens, src))
		}
	}
}

// spline is the density at x of the sum of r independent numbers that are uniform between −½ and ½.
func spline(r int, x float64) float64 {
	total, choose, factorial := 0.0, 1.0, 1.0
	for k := 2; k < r; k++ {
		factorial *= float64(k)
	}
	for j := range r + 1 {
		if v := x + float64(r)/2 - float64(j); v > 0 {
			total += choose * math.Pow(v, float64(r-1)) / factorial
		}
		choose *= -float64(r-j) / float64(j+1)
	}
	return total
}

// distance is the total variation between the sum of r rounded normal numbers and the rounded sum of one with their variance and
// r − 1 uniform ones, both computed from their definitions.
func distance(r int, s float64) float64 {
	reach := int(math.Ceil(9*s*math.Sqrt(float64(r)))) + r + 2
	size := 2*reach + 1
	one := make([]float64, size) // of ⌊g⌉
	for k := -reach; k <= reach; k++ {
		one[k+reach] = (math.Erfc((float64(k)-0.5)/s/math.Sqrt2) - math.Erfc((float64(k)+0.5)/s/math.Sqrt2)) / 2
	}
	law := make([]float64, size) // of the sum of shares
	law[reach] = 1
	for range r {
		next := make([]float64, size)
		for i, p := range law {
			for k, q := range one {
				if at := i + k - reach; at >= 0 && at < size {
					next[at] += p * q
				}
			}
		}
		law = next
	}
	const panels = 400 // of Simpson's rule, between points where the spline is a polynomial
	wide := s * math.Sqrt(float64(r))
	apart := 0.0
	for k := -reach; k <= reach; k++ {
		f := func(x float64) float64 { // at a distance x from k
			z := (float64(k) + x) / wide
			return spline(r, x) * math.Exp(-z*z/2) / wide / math.Sqrt(2*math.Pi)
		}
		p := 0.0
		for piece := range r {
			from := float64(piece) - float64(r)/2
			for i := range panels {
				a, b := from+float64(i)/panels, from+float64(i+1)/panels
				p += (f(a) + 4*f((a+b)/2) + f(b)) / 6 / panels
			}
		}
		apart += math.Abs(p - law[k+reach])
	}
	return apart / 2
}

// far is the bound of PROOFS.md, shares.
func far(r int, s float64) float64 {
	a := 2 * math.Pi * math.Pi * s * s
	x := float64(2*r+1) * math.Exp(-a/2)
	return float64(r)*math.Exp(-a*float64(r-1)/float64(r)) + x*x/(1-x)/2
}

// On grids that are so coarse that the distance can be seen, it is what the proof says at most, and not far below; at the
// least share that is allowed it is below 2⁻⁹⁰⁰.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		r int
		s float64
	}{
		{2, 0.6}, {2, 0.7}, {2, 0.8}, {2, 1}, {2, 1.2}, {3, 0.6}, {3, 0.7}, {3, 0.8}, {3, 1}, {4, 0.6}, {4, 0.8}, {5, 0.6}, {5, 0.7}, {7, 0.6}, {7, 0.7},
	} {
		got, most := distance(c.r, c.s), far(c.r, c.s)
		t.Logf("%d shares of %v: %.3g of %.3g", c.r, c.s, got, most)
		if got > most+1e-12 {
			t.Errorf("%d shares of %v: the distance is %v; proven is %v", c.r, c.s, got, most)
		}
		if c.r == 2 && c.s <= 1 && got < most/20 {
			t.Errorf("%d shares of %v: the distance is %v, far below %v: the test would not see a fault", c.r, c.s, got, most)
		}
	}
	for _, r := range []int{2, 3, 7, 1000, 1 << 30, 1 << 60} {
		if d := far(r, leastShare); !(d < 0x1p-900) {
			t.Errorf("%d shares of %v grid steps: %v", r, leastShare, d)
		}
	}
	// The shares of Owners − Colluders owners have the variance of the whole noise, in exact arithmetic.
	rapid.Check(t, func(t *rapid.T) {
		owners := rapid.IntRange(2, 200).Draw(t, "owners")
		m := Share{rapid.Float64Range(0.1, 100).Draw(t, "sigma"), owners, rapid.IntRange(0, owners-2).Draw(t, "colluders")}
		sens := rapid.Float64Range(1<<12, 1<<30).Draw(t, "sens")
		scale, err := m.scale(1, sens)
		if err != nil {
			t.Fatal(err)
		}
		exact := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
		square := func(x *big.Float) *big.Float { return new(big.Float).SetPrec(400).Mul(x, x) }
		all := square(new(big.Float).SetPrec(400).Mul(exact(m.Sigma), exact(sens)))
		shares := new(big.Float).SetPrec(400).Mul(square(exact(scale)), exact(float64(owners-m.Colluders)))
		if shares.Cmp(all) < 0 {
			t.Errorf("shares of %v have less noise than %v", scale, m)
		}
		alone := privacy.Alone(m.Event()).(privacy.Gaussian) // claims no more than the share has
		part := square(new(big.Float).SetPrec(400).Mul(exact(alone.Sigma), exact(sens)))
		if part.Cmp(square(exact(scale))) > 0 || alone.Sigma < m.Sigma/math.Sqrt(float64(owners-m.Colluders))*(1-1e-14) {
			t.Errorf("%v alone is %v; the share has %v", m, alone, scale)
		}
	})
}

// A share has the deviation that its event states of it alone, by the test of TestClaimIsDeed.
func TestShareIsItsPart(t *testing.T) {
	const n, sens, grid = 100_000, 1, 0x1p-14
	m := Share{2, 3, 1}
	v := make([]int64, n)
	must(m.AddPart(v, grid, sens, noise.NewSeeded(1, "mech", 0)))
	squares := 0.0
	for _, k := range v {
		squares += float64(k) * grid * float64(k) * grid
	}
	want := privacy.Alone(m.Event()).(privacy.Gaussian).Sigma * sens
	if got := math.Sqrt(squares / n); math.Abs(got-want) > 5.5*want/math.Sqrt(2*n) {
		t.Errorf("deviation is %v; want %v", got, want)
	}
}

func TestShareRefuses(t *testing.T) {
	for _, m := range []Share{{}, {1, 1, 0}, {1, 2, 1}, {1, 3, -1}, {0, 3, 1}, {math.NaN(), 3, 1}, {math.Inf(1), 3, 1}, {1, 300, 0}, {1, math.MinInt, 0}, {1, math.MinInt + 1, 0}} {
		v := []int64{1}
		if err := m.AddPart(v, 1, 100, noise.NewSeeded(1, "", 0)); err == nil || v[0] != 1 || m.Check(1, 100) == nil {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := (Share{1, 3, 1}).Check(1, 12); err != nil {
		t.Error(err)
	}
}

// A matrix of shares has their deviation on the diagonal and √2 less beside it, by the test of TestShareIsItsPart; what is too small
// beside the diagonal is refused, and a vector that is no triangle.
func TestSharesOfAMatrix(t *testing.T) {
	const d, sens, grid = 400, 1, 0x1p-14
	m := SymmetricShare{2, 3, 1}
	v := make([]int64, d*(d+1)/2)
	must(m.AddPart(v, grid, sens, noise.NewSeeded(1, "mech", 0)))
	var diagonal, beside float64
	for i, at := 0, 0; i < d; i++ {
		for j := i; j < d; j++ {
			x := float64(v[at]) * grid
			if at++; i == j {
				diagonal += x * x
			} else {
				beside += x * x
			}
		}
	}
	want := privacy.Alone(m.Event()).(privacy.Gaussian).Sigma * sens
	for _, c := range []struct{ squares, n, want float64 }{{diagonal, d, want}, {beside, d * (d - 1) / 2, want / math.Sqrt2}} {
		if got := math.Sqrt(c.squares / c.n); math.Abs(got-c.want) > 5.5*c.want/math.Sqrt(2*c.n) {
			t.Errorf("deviation is %v; want %v", got, c.want)
		}
	}
	// 1·12/√2 is 8.5 on the diagonal and 6 beside it.
	if err := (Share{1, 3, 1}).Check(1, 12); err != nil {
		t.Error(err)
	}
	if (SymmetricShare{1, 3, 1}).Check(1, 12) == nil || (SymmetricShare{1, 3, 2}).Check(1, 12) == nil {
		t.Error("too small a share was taken")
	}
	w := []int64{1, 2}
	if err := m.AddPart(w, grid, sens, noise.NewSeeded(1, "", 0)); err == nil || w[0] != 1 || w[1] != 2 {
		t.Error("two numbers are no triangle")
	}
}
