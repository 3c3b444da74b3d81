package schedule

import (
	"errors"
	"fmt"
	"math"
)

// HeavyBall is DP-SHB with step size Rate (α) and momentum Beta (β) on a function
// of the given constants.
type HeavyBall struct {
	Convex
	Rate float64 // α > 0
	Beta float64 // 0 ≤ β < 1
}

// Spectral is the rate ρ of (3.18) on a quadratic: the largest modulus of the
// roots of z² − (1+β−αλ)z + β for λ = μ and λ = L. The error shrinks with ρ² a step,
// and converges for ρ < 1.
func (h HeavyBall) Spectral() float64 { return math.Max(h.modulus(h.Mu), h.modulus(h.L)) }

func (h HeavyBall) modulus(lambda float64) float64 {
	b := 1 + h.Beta - h.Rate*lambda
	disc := b*b - 4*h.Beta
	if disc <= 0 {
		return math.Sqrt(h.Beta) // a pair of conjugates, whose product is β
	}
	return (math.Abs(b) + math.Sqrt(disc)) / 2
}

// Stationary is m(α, β) of Theorem 3.5 for noise of variance 1 in each coordinate:
// Σ α(1+β)/((1−β)λ_i(2+2β−αλ_i)) over the eigenvalues. It is the trace of the
// stationary covariance of x_t.
func (h HeavyBall) Stationary(eigenvalues []float64) float64 {
	sum := 0.0
	for _, l := range eigenvalues {
		sum += h.Rate * (1 + h.Beta) / ((1 - h.Beta) * l * (2 + 2*h.Beta - h.Rate*l))
	}
	return sum
}

// QuadraticBound is (3.17) after t steps on a quadratic with those eigenvalues, with
// C_t = t as in P1's figure: ((dist² + vα²/(1−ρ²))·t²·ρ^{2t} + L·v·m(α, β). dist² is
// ‖x_0−x*‖² + ‖x_{−1}−x*‖², v the variance of the noise in each coordinate. P1 leaves the
// constant in C_t = O(t) open, so this is a shape; QuadraticError is exact.
func (h HeavyBall) QuadraticBound(t int, eigenvalues []float64, dist2, v float64) float64 {
	rho, c := h.Spectral(), float64(t)
	return (dist2+v*h.Rate*h.Rate/(1-rho*rho))*c*c*math.Pow(rho, 2*c) + h.L*v*h.Stationary(eigenvalues)
}

// QuadraticError is E F(x_t) − F* after t steps from x_{−1} = x_0 on a quadratic with
// those eigenvalues, exactly: start2[i] is the square of x_0−x* along eigenvector i, v
// the variance of the noise in each coordinate.
func (h HeavyBall) QuadraticError(t int, eigenvalues, start2 []float64, v float64) float64 {
	sum := 0.0
	for i, l := range eigenvalues {
		// Second moments of (x_t, x_{t−1}) along one eigenvector, through T_i of B.3.
		a := 1 + h.Beta - h.Rate*l
		xx, xy, yy := start2[i], start2[i], start2[i]
		for range t {
			xx, xy, yy = a*a*xx-2*a*h.Beta*xy+h.Beta*h.Beta*yy+h.Rate*h.Rate*v, a*xx-h.Beta*xy, xx
		}
		sum += l / 2 * xx
	}
	return sum
}

// A Certificate proves a rate for heavy ball on every function of its class
// (Proposition 3.4): with V(ξ) = (ξ−ξ*)ᵀ(P⊗I)(ξ−ξ*) + F − F*, c scaled to 1,
// E V(ξ_{t+1}) ≤ ρ²·V(ξ_t) + (P_11 + L/2)·α²·E‖noise‖².
type Certificate struct {
	Rho           float64
	P11, P12, P22 float64
	C0            float64 // weight of the interpolation inequality, ≥ 0
}

// Error is the bound (3.15) after t steps from x_{−1} = x_0: e0 is F(x_0)−F*, dist2
// is ‖x_0−x*‖², noise is E‖noise‖² of one step, over all coordinates. The whole is
// divided by what V has over F−F*, which (3.15) does for its second term only.
func (h HeavyBall) Error(c Certificate, t int, e0, dist2, noise float64) float64 {
	r2 := c.Rho * c.Rho
	decay := math.Pow(r2, float64(t))
	v := decay*(e0+(c.P11+2*c.P12+c.P22)*dist2) + (1-decay)/(1-r2)*h.Rate*h.Rate*(c.P11+h.L/2)*noise
	if det := c.P11*c.P22 - c.P12*c.P12; det > 0 && c.P22 > 0 {
		v /= 1 + 2*det/(h.L*c.P22) // V ≥ F−F* + (|P|/P_22)‖x−x*‖², and ‖x−x*‖² ≥ 2(F−F*)/L
	}
	return v
}

// Certify solves Proposition 3.4: it returns the certificate with the least Error
// after t steps, by a grid over ρ that is refined, with P and c_0 at each ρ from the
// ellipsoid method, which finds the minimum of a linear function over the convex
// set of certificates. It is an error if no ρ < 1 has one.
//
// (3.10) has an error: B is (−α, 0), the step goes downhill.
func (h HeavyBall) Certify(t int, e0, dist2, noise float64) (Certificate, error) {
	if err := h.Validate(); err != nil {
		return Certificate{}, err
	}
	if !(h.Rate > 0) || !(h.Beta >= 0 && h.Beta < 1) {
		return Certificate{}, fmt.Errorf("schedule: α = %v and β = %v; choose α > 0 and 0 ≤ β < 1", h.Rate, h.Beta)
	}
	var best Certificate
	bound := math.Inf(1)
	// In q = −ln(1−ρ²): from the fastest rate of a first-order method to none.
	look := func(q float64) {
		rho := math.Sqrt(-math.Expm1(-q))
		if c, ok := h.certificate(rho, t, dist2, noise); ok {
			if e := h.Error(c, t, e0, dist2, noise); e < bound {
				best, bound = c, e
			}
		}
	}
	const grid = 24
	lo, hi := 0.0, math.Log(8*h.L/h.Mu/math.Min(1, h.Rate*h.L)/(1-h.Beta))
	for range 3 {
		for i := 1; i <= grid; i++ {
			look(lo + (hi-lo)*float64(i)/grid)
		}
		if math.IsInf(bound, 1) {
			return Certificate{}, errNoCertificate
		}
		q, step := -math.Log1p(-best.Rho*best.Rho), (hi-lo)/grid
		lo, hi = math.Max(0, q-step), q+step
	}
	return best, nil
}

var errNoCertificate = errors.New("schedule: no ρ below 1 satisfies (3.14) for this step size and momentum; a smaller one does")

// certificate minimizes the part of Error that is linear in P at a fixed ρ. The
// variables are x = (P_11, P_12, P_22, c_0) in units of L.
func (h HeavyBall) certificate(rho float64, t int, dist2, noise float64) (Certificate, bool) {
	decay := math.Pow(rho, 2*float64(t))
	n := (1 - decay) / (1 - rho*rho) * h.Rate * h.Rate * noise
	goal := vec4{decay*dist2 + n, 2 * decay * dist2, decay * dist2, 0}
	if goal[0] == 0 {
		goal[0] = 1
	}
	// M(x) = m0 + Σ x_k·mk must be positive semidefinite; in units where L = 1:
	// α → αL, μ → μ/L, and gradients in units of L.
	al, be, mu := h.Rate*h.L, h.Beta, h.Mu/h.L
	k := 1 - rho*rho
	m0 := mat3{
		{-be*be + k*mu, be * be, -(1-al)*be - k},
		{be * be, -be * be, (1 - al) * be},
		{-(1-al)*be - k, (1 - al) * be, al * (2 - al)},
	}
	for i := range m0 {
		for j := range m0 {
			m0[i][j] /= 2
		}
	}
	// −Φ for P = e_i e_jᵀ symmetric: the state goes to (A|B)·(ξ, u) = (1+β, −β, −α), (1, 0, 0).
	next := [2]vec3{{1 + be, -be, -al}, {1, 0, 0}}
	now := [2]vec3{{1, 0, 0}, {0, 1, 0}}
	phi := func(i, j int) (m mat3) {
		for r := range 3 {
			for c := range 3 {
				m[r][c] = -(next[i][r]*next[j][c]+next[j][r]*next[i][c])/2 + rho*rho*(now[i][r]*now[j][c]+now[j][r]*now[i][c])/2
				if i != j {
					m[r][c] *= 2
				}
			}
		}
		return m
	}
	ms := [4]mat3{phi(0, 0), phi(0, 1), phi(1, 1), {{2 * mu, 0, -(mu + 1)}, {0, 0, 0}, {-(mu + 1), 0, 2}}}

	// Cuts: a violated constraint, or else the goal.
	feasible := func(x vec4) (cut vec4, ok bool) {
		m := m0
		for k, v := range x {
			for i := range m {
				for j := range m {
					m[i][j] += v * ms[k][i][j]
				}
			}
		}
		if val, v := leastEigen(m); val < 0 {
			for k := range cut {
				for i := range v {
					for j := range v {
						cut[k] -= v[i] * ms[k][i][j] * v[j]
					}
				}
			}
			return cut, false
		}
		if val, v := leastEigen(mat3{{x[0], x[1], 0}, {x[1], x[2], 0}, {0, 0, math.Inf(1)}}); val < 0 {
			return vec4{-v[0] * v[0], -2 * v[0] * v[1], -v[1] * v[1], 0}, false
		}
		if x[3] < 0 {
			return vec4{0, 0, 0, -1}, false
		}
		return goal, true
	}
	x, ok := ellipsoid(feasible, goal, 1e3)
	return Certificate{Rho: rho, P11: x[0] * h.L, P12: x[1] * h.L, P22: x[2] * h.L, C0: x[3] / h.L}, ok
}

type (
	vec3 [3]float64
	vec4 [4]float64
	mat3 [3][3]float64
)

// leastEigen is the least eigenvalue of a symmetric matrix with its vector, by
// Jacobi rotations. A diagonal entry +∞ takes its coordinate out.
func leastEigen(a mat3) (float64, vec3) {
	v := mat3{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	for range 30 {
		off := 0.0
		for p := range 3 {
			for q := p + 1; q < 3; q++ {
				off += a[p][q] * a[p][q]
				if a[p][q] == 0 {
					continue
				}
				theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
				t := math.Copysign(1, theta) / (math.Abs(theta) + math.Sqrt(theta*theta+1))
				c := 1 / math.Sqrt(t*t+1)
				s := t * c
				for k := range 3 {
					a[k][p], a[k][q] = c*a[k][p]-s*a[k][q], s*a[k][p]+c*a[k][q]
				}
				for k := range 3 {
					a[p][k], a[q][k] = c*a[p][k]-s*a[q][k], s*a[p][k]+c*a[q][k]
				}
				for k := range 3 {
					v[k][p], v[k][q] = c*v[k][p]-s*v[k][q], s*v[k][p]+c*v[k][q]
				}
			}
		}
		if off < 1e-300 {
			break
		}
	}
	i := 0
	for j := range 3 {
		if a[j][j] < a[i][i] {
			i = j
		}
	}
	return a[i][i], vec3{v[0][i], v[1][i], v[2][i]}
}

// ellipsoid minimizes goal·x over a convex set in a ball of that radius around 0: cut
// returns a direction in which x must not go on, and whether x is in the set. It returns
// the best point of the set that it met.
func ellipsoid(cut func(vec4) (vec4, bool), goal vec4, radius float64) (best vec4, found bool) {
	const dim = 4
	var x vec4
	var q [dim][dim]float64
	for i := range q {
		q[i][i] = radius * radius
	}
	least := math.Inf(1)
	for range 1200 {
		g, ok := cut(x)
		if ok {
			v := 0.0
			for i := range x {
				v += goal[i] * x[i]
			}
			if v < least {
				best, least, found = x, v, true
			}
		}
		var qg vec4
		gqg := 0.0
		for i := range q {
			for j := range q {
				qg[i] += q[i][j] * g[j]
			}
			gqg += g[i] * qg[i]
		}
		if !(gqg > 1e-26) {
			break
		}
		root := math.Sqrt(gqg)
		if ok && root < 1e-6*math.Abs(least) {
			break // no point of the set is better by more
		}
		for i := range x {
			x[i] -= qg[i] / root / (dim + 1)
		}
		for i := range q {
			for j := range q {
				q[i][j] = dim * dim / (dim*dim - 1.0) * (q[i][j] - 2.0/(dim+1)*qg[i]*qg[j]/gqg)
			}
		}
	}
	return best, found
}
