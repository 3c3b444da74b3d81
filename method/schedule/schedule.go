// Package schedule holds the mathematics of noise schedules: how a privacy budget
// is spread over the steps of an accelerated method, how many steps to take, and
// what error the theory then promises. All functions are pure; they see public
// numbers only and spend nothing. A schedule is a matter of utility alone: an
// accountant charges for whatever noise comes out of it.
//
// The source is P1, Kuru, Birbil, Gürbüzbalaban and Yıldırım, Differentially
// Private Accelerated Optimization Algorithms, SIAM J. Optim. 32 (2022).
//
//	P1        here
//	μ, L      Convex.Mu, Convex.L: F is μ-strongly convex and L-smooth
//	α, β      Stage.Rate, Momentum
//	a_{T,t}   Weights: what a unit of variance in step t does to the last error
//	b_t       the scale of Laplace noise; its variance is 2b_t²
//	ε(b)      the cost of one step, (3.3)
//
// Bounds on the error have the form
//
//	E F(x_T) − F* ≤ a_0·E_0 + Σ_t a_t·(d·v_t + s)/2,
//
// where E_0 = F(x_0) − F*, d is the number of coordinates, v_t the variance of the
// noise in each, and s bounds the variance that a sample of the rows adds. P1
// writes b_t²·d for d·v_t/2.
package schedule

import (
	"errors"
	"fmt"
	"math"
)

// Convex says what a bound assumes of the objective. Where Mu or L is not proven,
// what follows from it is a guess, of utility only.
type Convex struct {
	Mu float64 // μ > 0
	L  float64 // L ≥ μ
}

// Validate says what is wrong with the constants.
func (f Convex) Validate() error {
	if !(f.Mu > 0) || !(f.L >= f.Mu) || math.IsInf(f.L, 1) {
		return fmt.Errorf("schedule: μ = %v and L = %v; choose 0 < μ ≤ L", f.Mu, f.L)
	}
	return nil
}

// A Stage is a stretch of steps with one step size α, at most 1/L.
type Stage struct {
	Steps int
	Rate  float64
}

// Momentum is β = (1−√(αμ))/(1+√(αμ)), the momentum of NAG at step size rate.
func Momentum(rate, mu float64) float64 {
	r := math.Sqrt(rate * mu)
	return (1 - r) / (1 + r)
}

// MASG lists the stages of the multistage method, (4.7), cut off at steps in
// total: the first of first steps with step size rate, stage k ≥ 2 of
// 2^k·⌈√κ·ln 2^(p+2)⌉ steps with rate/4^k. κ = L/μ; P1's experiments have p = 1.
func MASG(steps int, f Convex, rate float64, first, p int) []Stage {
	unit := math.Ceil(math.Sqrt(f.L/f.Mu) * float64(p+2) * math.Ln2)
	var out []Stage
	for k, n := 1, float64(first); steps > 0; k++ {
		if k > 1 {
			n = math.Ldexp(unit, k)
			out = append(out, Stage{Rate: math.Ldexp(rate, -2*k)})
		} else {
			out = append(out, Stage{Rate: rate})
		}
		out[k-1].Steps = int(math.Min(n, float64(steps)))
		steps -= out[k-1].Steps
	}
	return out
}

// MASGFirst is the length of MASG's first stage, ⌈2√κ·ln√κ⌉ and at least 1. P1
// asks for 1 or more; this is the length in its experiments.
func MASGFirst(f Convex) int {
	k := math.Sqrt(f.L / f.Mu)
	return max(1, int(math.Ceil(2*k*math.Log(k))))
}

// Weights are the factors of a bound: a0 of the first error, a[t−1] of step t. One
// stage is NAG, (4.3); more are MASG, (4.8).
//
// P1 states both for E_t = E F(x_t) − F*, which is false: for F = (μx²+Ly²)/2 from
// (1, 0) with α = 1/L and κ = 100, E_1/E_0 is 0.98 and not 0.9. The recursion holds
// for a Lyapunov value V_t ≥ E_t that begins with V_0 ≤ 2·E_0, and doubles at most
// where the stage changes. So a0 is twice P1's, the stage before the first being the
// first (S-1a).
func (f Convex) Weights(stages []Stage) (a0 float64, a []float64) {
	n := 0
	for _, s := range stages {
		n += s.Steps
	}
	a = make([]float64, n)
	tail := 1.0 // 2^(stages still to come) · Π_{i>t} (1−√(μα))
	for k := len(stages) - 1; k >= 0; k-- {
		rate := stages[k].Rate
		shrink := 1 - math.Sqrt(f.Mu*rate)
		for range stages[k].Steps {
			n--
			a[n] = tail * rate * (1 + rate*f.L)
			tail *= shrink
		}
		if k > 0 {
			tail *= 2
		}
	}
	return 2 * tail, a
}

// GradientWeights are the factors of a bound for gradient descent with step size
// rate ≤ 1/L: E_{t+1} ≤ (1−αμ(2−αL))·E_t + α²L/2·E‖noise‖², from smoothness along the
// step and ‖∇F‖² ≥ 2μ(F−F*).
func (f Convex) GradientWeights(steps int, rate float64) (a0 float64, a []float64) {
	shrink := 1 - rate*f.Mu*(2-rate*f.L)
	a = make([]float64, steps)
	a0 = 1
	for t := steps - 1; t >= 0; t-- {
		a[t] = a0 * rate * rate * f.L
		a0 *= shrink
	}
	return a0, a
}

// SampleVariance is σ_s² of (3.13): it bounds E‖error‖² of the mean gradient of m of n
// rows, drawn without replacement, where every row's gradient has a norm of at most s1/2,
// as clipping ensures: the mean square deviation from the mean is at most s1²/4, and the
// rest is the correction for a finite population. Drawing each row by itself adds no more.
func SampleVariance(s1 float64, m, n int) float64 {
	if n < 2 {
		return 0
	}
	return s1 * s1 / 4 / float64(m) * float64(n-m) / float64(n-1)
}

// Error is the bound a0·e0 + Σ a_t·(d·v_t + sampling)/2: (4.3), and (4.8) with MASG's
// weights. variance is v_t, for each coordinate.
func Error(a0, e0 float64, a, variance []float64, d int, sampling float64) float64 {
	sum := a0 * e0
	for t, w := range a {
		sum += w * (float64(d)*variance[t] + sampling) / 2
	}
	return sum
}

// Steps picks the number of steps from 1 to limit with the least bound, the
// smallest where several are equal: T′ of Remark 4.1.
func Steps(limit int, bound func(steps int) float64) (steps int, least float64) {
	least = math.Inf(1)
	for t := 1; t <= limit; t++ {
		if b := bound(t); b < least {
			steps, least = t, b
		}
	}
	return steps, least
}

var errSpread = errors.New("schedule: weights and budget must be finite and above 0")

// spread shares out total in proportion to a_t^power.
func spread(a []float64, total, power float64) ([]float64, error) {
	if !(total > 0) || math.IsInf(total, 1) || len(a) == 0 {
		return nil, errSpread
	}
	out := make([]float64, len(a))
	most := 0.0
	for _, w := range a {
		if !(w > 0) || math.IsInf(w, 1) {
			return nil, errSpread
		}
		most = math.Max(most, w)
	}
	sum := 0.0
	for t, w := range a {
		out[t] = math.Pow(w/most, power) // in (0, 1]: the sum neither overflows nor is 0
		sum += out[t]
	}
	for t := range out {
		out[t] *= total / sum
	}
	return out, nil
}
