package private

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// A release holds the public numbers with which a sum becomes public. This file is the one place that
// turns a bound and an adjacency into a sensitivity (R8, R15, R16).
type release struct {
	unit  float64 // of the exact sum; of a Hessian's, its square root
	grid  float64 // what the sum is rounded to
	shift uint    // binary digits between them
	sens  float64 // how far one record moves the rounded sum, in the norm of the noise
}

// gradients is the release of a clipped sum of gradients, or of rows (oracle.Mean), whose event states both moves or
// not.
func (o *Oracle) gradients(q oracle.Grad, both bool) (r release, err error) {
	rule := q.Clip
	if r.unit, err = o.scale.unitOf(rule.Bound(), o.cfg.Facts.Rows); err != nil {
		return r, err
	}
	r.grid = gridOf(r.unit, rule.Bound(), o.cfg.Facts.Dim, rule.Norm())
	r.shift = shiftOf(r.unit, r.grid)
	if _, gaussian := q.Noise.(mech.Gaussian); both && gaussian {
		r.sens, err = sensitivity(rule, privacy.AddRemove, r.grid, o.cfg.Facts.Dim)
		r.sens *= 2 // the presence of a record moves the rounded sum by no more than half of that: PROOFS.md, moves
		return r, err
	}
	r.sens, err = sensitivity(rule, o.cfg.Facts.Adjacency, r.grid, o.cfg.Facts.Dim)
	return r, err
}

// sensitivity of a clipped sum that is rounded to the grid.
func sensitivity(rule clip.Rule, adj privacy.Adjacency, grid float64, dim int) (float64, error) {
	s, err := clip.Sensitivity(rule.Bound(), adj)
	return mech.OnGrid(s, grid, dim, rule.Norm()), err
}

// hessians is the release of a sum of Hessians within bound, in the Frobenius norm. Records' Hessians
// are v·vᵀ, positive semidefinite and of norm C at most, so one more or less moves the sum by C. For
// one replaced, ‖A − B‖² = ‖A‖² + ‖B‖² − 2·tr(AB) ≤ 2C², since tr(AB) ≥ 0 for such A and B (R16).
func (o *Oracle) hessians(bound float64, both bool) (r release, err error) {
	r.unit = rootUnit(bound, o.cfg.Facts.Rows)
	if !(r.unit >= 0x1p-450 && r.unit <= 0x1p450) {
		return r, fmt.Errorf("private: the clip bound %v of a Hessian is out of range", bound)
	}
	dim, square := o.cfg.Facts.Dim, r.unit*r.unit
	r.grid = gridOf(square, bound, dim*dim, 2)
	r.shift = shiftOf(square, r.grid)
	if r.sens, err = clip.Sensitivity(bound, o.cfg.Facts.Adjacency); err != nil {
		return r, err
	}
	if both { // a record's presence moves the rounded sum by bound + slack at most: PROOFS.md, moves
		bound = mech.OnGrid(bound, r.grid, dim*dim, 2)
	}
	if o.cfg.Facts.Adjacency == privacy.ReplaceOne {
		r.sens = math.Nextafter(bound*math.Sqrt2, math.Inf(1)) // math.Sqrt2 as a float64 is above √2
	}
	if !both {
		r.sens = mech.OnGrid(r.sens, r.grid, dim*dim, 2)
	}
	return r, nil
}

// figures is the release of a sum of decreases within ±bound. A record's part is a whole number of
// units, so nothing is rounded and there is no slack (ADR 1).
func (o *Oracle) figures(of string, bound float64) (r release, err error) {
	r.unit = fallUnit(bound)
	r.grid = r.unit
	if !inRange(r.unit) {
		return r, fmt.Errorf("private: the bound %v of a %s is out of range", bound, of)
	}
	r.sens, err = clip.Sensitivity(bound, o.cfg.Facts.Adjacency)
	return r, err
}

// losses is the release of a sum of losses in [0, bound], or of signed answers within ±bound.
func (o *Oracle) losses(q oracle.Loss) (release, error) {
	r, err := o.figures("loss", q.Bound)
	r.sens = q.Sensitivity(o.cfg.Facts.Adjacency)
	return r, err
}

// scores is the release of each score of a choice, and says whether one record moves all of them in one
// direction (privacy/mech/PROOFS.md, choice-scores).
func (o *Oracle) scores(q oracle.Select) (r release, monotone bool, err error) {
	if q.Bound != 0 {
		r, err = o.figures("choice", q.Bound)
		return r, false, err
	}
	r, err = o.figures("choice", 1)
	r.sens = 1 // one record, of one class
	if o.cfg.Facts.UnitRows == 0 {
		r.unit, r.grid = 1, 1 // whole records, not shares of them
	}
	return r, o.cfg.Facts.Adjacency == privacy.AddRemove, err
}

// cells is the release of a score: whole records, or shares and errors as whole numbers of a unit, so nothing is
// rounded and there is no slack (PROOFS.md#scores).
func (o *Oracle) cells(q oracle.Score) release {
	unit := cellUnit(o.cfg.Facts)
	return release{unit: unit, grid: unit, sens: q.Sensitivity(o.cfg.Facts.Classes, o.cfg.Facts.Adjacency)}
}

// margins is the release of sums over margins: whole numbers of a unit, so nothing is rounded and there is no slack
// (PROOFS.md#margins).
func (o *Oracle) margins(q oracle.Margins) release {
	unit := fallUnit(1)
	return release{unit: unit, grid: unit, sens: q.Sensitivity(o.cfg.Facts)}
}

// totals is the release of the sums of a first release (PROOFS.md#first-release).
func (o *Oracle) totals(q oracle.Totals) (r release, err error) {
	bound, n := q.Bound(o.cfg.Facts), q.Len(o.cfg.Facts)
	r.unit = o.scale.totalsUnit(o.cfg.Facts.Rows)
	if !inRange(r.unit) || !inRange(bound) {
		return r, fmt.Errorf("private: rows of norm up to %v are out of range", o.cfg.Facts.NormBound)
	}
	r.grid = gridOf(r.unit, bound, n, 2)
	r.shift = shiftOf(r.unit, r.grid)
	if _, err := clip.Sensitivity(bound, o.cfg.Facts.Adjacency); err != nil {
		return r, err // no adjacency
	}
	r.sens = mech.OnGrid(q.Sensitivity(o.cfg.Facts), r.grid, n, 2)
	return r, nil
}

// A first release has shares of a record in cells of the label, in units of 2^-totalsBits. Weights are up to 16, so no
// number of a row is above 20·2²⁰ units of rows (oracle.Totals.Bound), and up to eight times 2^totalsSpare rows the
// count of a number stays below 20·2²⁰·2^totalsBits·2^(totalsSpare+3) < 2⁶². For more rows, up to 2³⁴, shares have
// fewer digits.
const (
	totalsBits  = 14
	totalsSpare = 20
)

// totalsUnit is the public power of two that the sums of a first release are multiples of.
func (c *scale) totalsUnit(rows int) float64 {
	bits := totalsBits - max(0, int(math.Ceil(math.Log2(float64(rows))))-totalsSpare)
	return math.Ldexp(c.rowUnit, -max(0, bits))
}

// cellUnit is what the numbers of a score are multiples of.
func cellUnit(facts oracle.Public) float64 {
	if facts.Classes == 0 || facts.UnitRows > 0 { // errors, or shares of a record
		return fallUnit(1)
	}
	return 1
}

// gridOf is the public grid on which a sum is released: at least 2⁴ times as coarse as the unit of the
// exact sum, so that noise on top of a sum does not reach the ends of int64.
func gridOf(unit, bound float64, dim, norm int) float64 {
	return max(16*unit, mech.Grid(bound, dim, norm))
}

// shiftOf is how many binary digits lie between unit and grid.
func shiftOf(unit, grid float64) uint { return uint(math.Log2(grid / unit)) }

// Bits of a coefficient below clip norm / row norm. Together with the 20 bits of
// a feature, the products of one block and its float64 sum stay exact:
// 2·2^coefBits·2^20·data.BlockRows = 2^49 < 2^53. Up to 2^spareRows rows the count of a
// coordinate stays below 2·2^coefBits·2^20·2^spareRows = 2^60 units.
const (
	coefBits  = 18
	spareRows = 21
)

// The same for a network, whose activations have 21 bits, and of whose products none is above
// the clip norm: 2·2^netBits·2^21·data.BlockRows = 2^52 < 2^53, and 2·2^netBits·2^21·2^netSpare = 2^60.
const (
	netBits  = 20
	netSpare = 18
)

// byteBits are the same for rows of bytes. A coefficient belongs to the row (v − center, one) of bytes, whose norm
// data.Pixels bounds by less than 2¹⁴, and entries of that row are multiples of data.ByteStep = 2⁻¹⁰. No part of a sum
// is above the clip norm, so 2·2^byteBits·2^14·2^10·data.BlockRows = 2^46 < 2^53, and
// 2·2^byteBits·2^14·2^10·2^spareRows = 2^57: PROOFS.md, bytes. A coefficient of a row of an eighth of the bound and
// more is a word of 15 digits (kern.ByteWeights).
const byteBits = 11

// shortBits are the same for rows of 16-bit numbers, whose coefficient belongs to whole numbers times the table's unit
// (data.Short). It is a word of 15 digits (kern.ShortLimbs) where those have a norm of shortNorm units and more. No
// part of a sum is above the clip norm, so 2·2^shortBits·shortNorm·data.BlockRows = 2^40 < 2^53, and
// 2·2^shortBits·shortNorm·2^shortSpare = 2^60: PROOFS.md, shorts.
const (
	shortBits  = 14
	shortNorm  = 1 << 15
	shortSpare = 30
)

// rootBits are the binary digits of a record's vector v below √C: its Hessian is v·vᵀ. Two
// of them, and data.BlockRows rows, fit the 53 of a float64.
const rootBits = 20

// fallBits are the binary digits of one record's decrease below its bound.
const fallBits = 20

// scale is what the units of sums follow from, all of it public: what the schema and the model bound.
type scale struct {
	// a coefficient is a fraction of the clip bound over this: the table's bound on its rows, or on rows of bytes, or a
	// norm of 16-bit numbers, or 1 where the model scales them
	rowNorm float64
	rowUnit float64 // what AddGrad's sums are multiples of, over its unit
	bits    int     // of a coefficient
	spare   int     // binary digits of a row count up to which it has them
	network bool
}

func scaleOf(t *data.Table, m model.Model) scale {
	if unit := m.Facts().Unit; unit > 0 {
		return scale{1, unit, netBits, netSpare, true}
	}
	switch t.Coding() {
	case data.Coding{}:
		return scale{t.NormBound, t.Unit, coefBits, spareRows, false}
	case data.Coding{Bytes: true}:
		return scale{t.Pixels.Norm, data.ByteStep, byteBits, spareRows, false}
	case data.Coding{Short: true}:
		return scale{shortNorm * t.Unit, t.Unit, shortBits, shortSpare, false}
	}
	panic("private: rows of numbers that no sum has a proof for")
}

// of is the public unit of a sum.
func (c *scale) of(s *sum.Sum, facts oracle.Public) (float64, error) {
	switch s.Of {
	case sum.Gradients, sum.Rows:
		return c.unitOf(s.Clip.Bound(), facts.Rows)
	case sum.Hessians:
		return rootUnit(s.Clip.Bound(), facts.Rows), nil
	case sum.Classes:
		if facts.UnitRows > 0 { // rows count as shares of a record
			return fallUnit(1), nil
		}
		return 1, nil
	case sum.Scores:
		return cellUnit(facts), nil
	case sum.Margins:
		return fallUnit(1), nil
	case sum.CellTotals:
		return c.totalsUnit(facts.Rows), nil
	case sum.Decreases, sum.Neighbors, sum.Losses, sum.Wrong, sum.Answers, sum.Within, sum.Labels, sum.Squares:
		if !(s.Bound > 0) {
			return 0, fmt.Errorf("found %s without a bound", s.Of)
		}
		return fallUnit(s.Bound), nil
	}
	return 0, fmt.Errorf("found no such sum: %q", s.Of)
}

// unitOf is the public unit of a sum of gradients: a coefficient's times a feature's.
func (c *scale) unitOf(bound float64, rows int) (float64, error) {
	unit := coefUnit(bound, c.rowNorm, rows, c.bits, c.spare) * c.rowUnit
	// Far inside the range of float64, so that no product or quotient leaves it.
	if !inRange(unit) {
		return 0, fmt.Errorf("private: the clip bound %v is out of range for rows of norm up to %v", bound, c.rowNorm)
	}
	return unit, nil
}

func inRange(unit float64) bool { return unit >= 0x1p-900 && unit <= 0x1p900 }

// coefUnit is the public power of two to which coefficients are truncated. It is
// coarser for very many rows, so that below the nominal row count the count of a
// coordinate fits an int64 even if every record pulls the same way. Above it, counts
// wrap around, which is no matter for privacy: adding modulo 2⁶⁴ is exact in any
// order, and one record still moves a count by as much as before, modulo 2⁶⁴.
func coefUnit(bound, rowNorm float64, rows, bits, spare int) float64 {
	_, exp := math.Frexp(bound / rowNorm)
	bits -= max(0, int(math.Ceil(math.Log2(float64(rows))))-spare)
	return math.Ldexp(1, exp-1-bits)
}

// rootUnit is the public power of two to which a record's vector is rounded: √C is
// from 2²⁰ to 2²¹ of them. For very many rows they are fewer, so that the count of an entry
// stays below 2⁶³ even for eight times the nominal rows, each with all its norm there. Above that counts wrap
// around, as those of gradients do: see coefUnit.
func rootUnit(bound float64, rows int) float64 {
	_, exp := math.Frexp(math.Sqrt(bound))
	bits := rootBits - max(0, (int(math.Ceil(math.Log2(float64(rows))))-18+1)/2)
	return math.Ldexp(1, exp-1-bits)
}

// fallUnit is the public power of two to which a record's decrease is truncated: 2²⁰ of
// them, or up to twice as many, make the bound. A sum of whole numbers below 2²¹ fits an
// int64 for 2⁴² rows.
func fallUnit(bound float64) float64 {
	_, exp := math.Frexp(bound)
	return math.Ldexp(1, exp-1-fallBits)
}

// unitFor is that of figures within a bound, 0 without one.
func unitFor(bound float64) float64 {
	if bound == 0 {
		return 0
	}
	return fallUnit(bound)
}
