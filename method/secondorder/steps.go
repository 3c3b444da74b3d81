package secondorder

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
)

// Constants are the public numbers of P4's analysis (Differentially Private Optimization for
// Smooth Non-Convex ERM). They decide on steps and accuracy, never on privacy.
type Constants struct {
	Smooth        float64 // G, Lipschitz constant of the gradient
	HessLipschitz float64 // M, of the Hessian
	Gradient      float64 // ε_g
	Curvature     float64 // ε_H
	// Noise is small enough where ‖ε_k‖ ≤ min(c₁ε_g, c₂ε_H²/M) and ‖E_k‖ ≤ c·ε_H (9).
	C, C1, C2 float64
	CG, CH    float64 // decreases that a line search asks for, c_g and c_H
}

// Analysis is the constants of F and of P4's analysis, from public facts; P4 does not state those of its
// experiments.
func Analysis(pub oracle.Public, r reg.Regularizer, gradient, curvature float64) (Constants, error) {
	c := Constants{Smooth: float64(pub.Smooth), HessLipschitz: float64(pub.HessLipschitz), Gradient: gradient,
		Curvature: curvature,
		C:         0.1, C1: 0.1, C2: 0.1, CG: 0.2, CH: 0.2}
	if r != nil {
		curved, ok := r.(reg.Curved)
		if !ok {
			return c, errors.New("model: found a regularizer with kinks; this method needs one with a Hessian, or none")
		}
		c.Smooth += curved.Smooth()
		c.HessLipschitz += curved.HessLipschitz()
	}
	if !pub.Curved || math.IsInf(c.Smooth, 1) {
		return c, errors.New("model: found one without a Hessian; choose one that has it, as logistic, linear, huber or huber-svm")
	}
	if c.HessLipschitz == 0 || math.IsInf(c.HessLipschitz, 1) {
		c.HessLipschitz = c.Smooth // the squared loss has any bound above 0, the Huberized hinge none
	}
	return c, nil
}

// Check says what is wrong with the constants.
func (c Constants) Check() error {
	for _, v := range []struct {
		name        string
		value, most float64
	}{
		{"G", c.Smooth, math.Inf(1)}, {"M", c.HessLipschitz, math.Inf(1)}, {"ε_g", c.Gradient, math.Inf(1)},
		{"ε_H", c.Curvature, math.Inf(1)},
		{"c1", c.C1, 0.5}, {"c", c.C, 1. / 3}, {"c2", c.C2, 1./3 - c.C}, {"c_g", c.CG, 1 - c.C1}, {"c_H", c.CH, c.MostCH()},
	} {
		if !(v.value > 0 && v.value < v.most) {
			return fmt.Errorf("secondorder: %s: found %v; choose a number above 0 and below %v", v.name, v.value, v.most)
		}
	}
	return nil
}

// MostCH is what c_H must stay below, 1 − c − √(8c₂/3); P4 lost the root (S-4h).
func (c Constants) MostCH() float64 { return 1 - c.C - math.Sqrt(8*c.C2/3) }

// Roots are t₁ < t₂ of (15): a step t·|λ|/M along the smallest eigenvector decreases F as
// it should for every t between them.
func (c Constants) Roots() (t1, t2 float64) {
	half := (1 - c.C - c.CH) / 2
	root := math.Sqrt(half*half - 2*c.C2/3)
	return 3 * (half - root), 3 * (half + root)
}

// Short are the least decreases of a short step along the gradient and along the smallest
// eigenvector. MIN_DEC (10) is the smaller.
func (c Constants) Short() (gradient, curvature float64) {
	return (1 - 2*c.C1) / (2 * c.Smooth) * c.Gradient * c.Gradient,
		2 * (1./3 - c.C2 - c.C) * cube(c.Curvature) / (c.HessLipschitz * c.HessLipschitz)
}

// Search are those of a step by a line search; MIN_DEC (17) is the smaller.
func (c Constants) Search() (gradient, curvature float64) {
	_, t2 := c.Roots()
	return (1 - c.C1 - c.CG) * c.CG * c.Gradient * c.Gradient / c.Smooth,
		c.CH * t2 * t2 * cube(c.Curvature) / (4 * c.HessLipschitz * c.HessLipschitz)
}

func cube(x float64) float64 { return x * x * x }

// Steps is how many steps of at least that decrease fit into a public bound on F(w_0) − F_low,
// rounded up (6). P4 takes F(w_0)+|z| of the data for the bound, which is not private (S-4a).
func Steps(gap, decrease float64) float64 { return math.Ceil(gap / decrease) }

// SearchRows is the number of rows from which on a search does what (17) counts on, in each of T steps
// and with probability 1 − miss: (16), with the factor 2 in ln(2T/ξ) that P4 lost (S-4h).
// lambda is the SVT's parameter, tries its i_max, lipschitz is B_g, longG and longH the first step sizes over
// the fallback's.
func (c Constants) SearchRows(lambda float64, tries, steps int, miss, lipschitz, longG, longH float64) float64 {
	_, t2 := c.Roots()
	return 16 * lambda * (math.Log(float64(tries)) + math.Log(2*float64(steps)/miss)) * math.Max(
		2*longG*lipschitz/(c.CG*c.Gradient),
		4*longH*lipschitz*c.HessLipschitz/(t2*c.CH*c.Curvature*c.Curvature))
}

// MaxBacktracks is i_max, the most step sizes of a search from b times the fallback down to it by
// factors of beta: ⌊ln b/ln(1/β)⌋ + 1 (S-4h).
func MaxBacktracks(b, beta float64) int {
	return int(math.Floor(math.Log(b)/math.Log(1/beta)*(1+1e-12))) + 1
}

// VectorNoise bounds the norm of d independent normal numbers of deviation sd, but for a
// probability of miss: the norm's mean is at most √d·sd, and it is a Lipschitz function of them.
func VectorNoise(d int, sd, miss float64) float64 {
	return sd * (math.Sqrt(float64(d)) + tail(miss))
}

// MatrixNoise bounds the largest eigenvalue of a symmetric d×d matrix of normal numbers, of deviation
// sd on the diagonal and sd/√2 beside it, but for a probability of miss; the same bound holds
// for the negative of the smallest. Its mean is at most √(2d)·sd (Sudakov and Fernique's comparison of
// u'Eu with √2·sd·⟨g, u⟩ on the sphere), and in the Frobenius norm, in which such a matrix
// is a normal vector of deviation sd in every direction, it is 1-Lipschitz.
func MatrixNoise(d int, sd, miss float64) float64 {
	return sd * (math.Sqrt(2*float64(d)) + tail(miss))
}

// SampleError bounds the distance between the mean over m rows drawn without replacement and the mean
// over all, of vectors or matrices of ℓ2 or Frobenius norm at most bound, but for a probability of miss. With
// replacement its mean is at most bound/√m, and McDiarmid's inequality bounds its exponential moments; a convex
// function's mean is no larger without replacement (Hoeffding 1963, Theorem 4).
func SampleError(m int, bound, miss float64) float64 {
	return bound / math.Sqrt(float64(m)) * (1 + tail(miss))
}

// tail is t with P(f > E f + t) ≤ e^(−t²/2) = miss for a 1-Lipschitz f of standard normal numbers.
func tail(miss float64) float64 { return math.Sqrt(2 * math.Log(1/miss)) }
