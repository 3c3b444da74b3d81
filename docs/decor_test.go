package docs

import (
	"math"
	"strings"
	"testing"
)

// TestCorrelatedNoise: what how-to/network.md says of noise that cancels between neighbors is what the covariance of their
// vectors, σ²I + τ²·Laplacian, gives, and the figures follow from the formula.
func TestCorrelatedNoise(t *testing.T) {
	const n = 20
	ring, complete := [n][n]float64{}, [n][n]float64{}
	for i := range n {
		for j := range n {
			if i != j {
				complete[i][j]--
				complete[i][i]++
			}
			if j == (i+1)%n || i == (j+1)%n {
				ring[i][j]--
				ring[i][i]++
			}
		}
	}
	for name, g := range map[string]struct {
		laplacian [n][n]float64
		eigen     func(k int) float64 // k-th positive eigenvalue
		near      float64             // τ/σ on the page
	}{
		"ring":     {ring, func(k int) float64 { return 2 - 2*math.Cos(2*math.Pi*float64(k)/n) }, 41},
		"complete": {complete, func(int) float64 { return n }, 6.9},
	} {
		f := func(ratio float64) float64 { // F by the formula
			sum := 1.0
			for k := 1; k < n; k++ {
				sum += 1 / (1 + g.eigen(k)*ratio*ratio)
			}
			return sum
		}
		for _, ratio := range []float64{0, 0.5, 3} {
			if got := n * precision(g.laplacian, ratio*ratio); math.Abs(got/f(ratio)-1) > 1e-9 {
				t.Errorf("%s, τ = %v σ: F = %v by the covariance, %v by the formula", name, ratio, got, f(ratio))
			}
		}
		if math.Abs(f(0)-n) > 1e-12 {
			t.Errorf("%s: F = %v without noise of pairs", name, f(0))
		}
		low, high := 0.0, 1e4
		for range 100 {
			if mid := (low + high) / 2; math.Sqrt(f(mid)) > 1.01 {
				low = mid
			} else {
				high = mid
			}
		}
		if math.Abs(high/g.near-1) > 0.02 {
			t.Errorf("%s: τ = %.3g σ for 1 %% more noise, and the page says %v", name, high, g.near)
		}
	}
	page := read(t, "how-to/network.md")
	for _, want := range []string{"τ = 6.9 σ", "41 σ", "√20 = 4.5 times", "1.20 for three of ten"} {
		if !strings.Contains(strings.Join(strings.Fields(page), " "), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// precision is the first diagonal number of the inverse of I + ratio·laplacian: what a change of one owner's vector by 1
// costs, in the unit of σ.
func precision[M ~[20][20]float64](laplacian M, ratio float64) float64 {
	var a [20][21]float64
	for i := range a {
		for j := range laplacian[i] {
			a[i][j] = ratio * laplacian[i][j]
		}
		a[i][i]++
	}
	a[0][20] = 1 // right side e₁; the matrix is positive definite, so no pivot is 0
	for k := range a {
		for i := range a {
			if i != k {
				c := a[i][k] / a[k][k]
				for j := k; j < 21; j++ {
					a[i][j] -= c * a[k][j]
				}
			}
		}
	}
	return a[0][20] / a[0][0]
}
