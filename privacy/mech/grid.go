package mech

import (
	"math"

	"github.com/sottodp/sotto/internal/kern"
)

// Grid returns the public grid for a sum of dim coordinates whose records have norm at
// most bound in the ℓ1 or ℓ2 norm (norm is 1 or 2): the largest power of two whose Slack is
// at most bound·2⁻¹⁴. So rounding to the grid costs at most a factor of 1 + 2⁻¹⁴ in
// sensitivity, and an ℓ2-clipped sum of 2³³ records in 2²⁰ coordinates still fits int64.
// It depends on public values only.
//
// It returns 0, which no mechanism accepts, if there is none: bound is not above 0 and
// finite, dim is not from 1 to 2⁵³, norm is neither 1 nor 2, or the grid would be below 2⁻¹⁰²².
func Grid(bound float64, dim, norm int) float64 {
	limit, length := bound*0x1p-14, diagonal(dim, norm)
	if !(limit > 0) || math.IsInf(limit, 1) || math.IsNaN(length) {
		return 0
	}
	_, exp := math.Frexp(limit / length) // limit/length < 2^exp
	g := math.Ldexp(1, exp)
	for g*length > limit { // twice at most
		g /= 2
	}
	if g < 0x1p-1022 {
		return 0
	}
	return g
}

// Slack returns by how much more than themselves two sums of dim coordinates can differ, in
// the ℓ1 or ℓ2 norm, once each is rounded to the grid g: g·dim or g·√dim, rounded up; g is a
// power of two as Grid gives it. It is NaN if dim is not from 1 to 2⁵³ or norm is neither 1 nor 2.
//
// Derivation. In each coordinate |round(a) − a| ≤ g/2 and |round(b) − b| ≤ g/2, so
// round(a) − round(b) = (a − b) + r with |r| ≤ g. By the triangle inequality the norm
// of the difference grows by at most ‖(g, …, g)‖. It is part of the sensitivity, not an
// error that averages out: which way a sum rounds depends on every record.
func Slack(g float64, dim, norm int) float64 { return g * diagonal(dim, norm) }

// OnGrid returns the sensitivity of sums of dim coordinates that are rounded to the grid g, where sens is that of the
// sums: sens + Slack(g, dim, norm), rounded up.
func OnGrid(sens, g float64, dim, norm int) float64 {
	slack := Slack(g, dim, norm)
	s := sens + slack
	// What the addition lost, exactly (Knuth's two-sum); rules without a margin, as clip.Lipschitz, cannot spare it.
	moved := s - sens
	if (sens-(s-moved))+(slack-moved) > 0 {
		return math.Nextafter(s, math.Inf(1))
	}
	return s
}

// diagonal returns the norm of (1, …, 1), rounded up if it is no float64, and NaN if there
// is none. Times a power of two it is exact.
func diagonal(dim, norm int) float64 {
	switch {
	case dim < 1 || int64(dim) > 1<<53:
		return math.NaN()
	case norm == 1:
		return float64(dim)
	case norm == 2:
		root := math.Sqrt(float64(dim)) // correctly rounded
		if k := int64(root); k*k == int64(dim) {
			return root
		}
		return math.Nextafter(root, math.Inf(1))
	default:
		return math.NaN()
	}
}

// RoundShift divides each v[i] by 2^shift and rounds to the nearest integer, a half
// upwards, exactly: it takes a sum from a fine unit to a grid 2^shift times as coarse.
func RoundShift(v []int64, shift uint) {
	if shift > 0 {
		kern.RoundShift(v, min(shift, 64))
	}
}
