//go:build !race

package examples_test

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/run"
)

// TestOptimum: the lab's baseline on Adult is the minimum that scikit-learn 1.9.1 finds on the same encoded rows
// (LogisticRegression, newton-cholesky, C = 1/(nλ), no separate intercept, tol = 1e-12).
func TestOptimum(t *testing.T) {
	a := readAdult(t, "l2")
	for _, c := range []struct {
		l2          string
		lambda, min float64
	}{{"0.0001", 1e-4, 0.339598428113322}, {"0.01", 1e-2, 0.4753793531728472}} {
		o := a.fit(t, "optimum", 1, 0, 1, false, run.Override{Path: "privacy", Value: "none", From: "test"}, run.Override{Path: "model.l2", Value: c.l2, From: "test"})
		square := 0.0
		for _, v := range o.w {
			square += v * v
		}
		if got := o.objective + c.lambda/2*square; math.Abs(got-c.min) > 1e-14 {
			t.Errorf("λ = %v: the objective is %.16g, scikit-learn's %.16g", c.lambda, got, c.min)
		}
	}
}
