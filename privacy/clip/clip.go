// Package clip holds the rules that bound what one record can add to a sum. A rule both
// gives the weight of each record and states the bound that the weights enforce.
package clip

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
)

// Rule is a bound on one record's contribution.
type Rule interface {
	// Norm says which norm is bounded: 1 or 2. Another value belongs to an invalid rule
	// and is refused where the sum is made.
	Norm() int
	// Bound is the largest norm of one record's weighted contribution, in the data's
	// unit; +Inf for none. For an invalid rule it is a number that Sensitivity refuses.
	Bound() float64
	// Validate says what is wrong with the rule's public numbers.
	Validate() error
	// Weights sets c[i] in [0, 1] for the record whose contribution has norm norm[i], in
	// the rule's norm, and whose loss is loss[i]; loss may be nil. In exact arithmetic
	// c[i]·norm[i] ≤ Bound(). A record with a figure that is not finite, or a negative
	// norm, weighs 0, whatever its other figures; one of norm 0 weighs 1. Slices of
	// different lengths are a programming error and panic.
	Weights(c, norm, loss []float64)
}

var _, _, _, _, _, _ Rule = Norm{}, Value{}, Automatic{}, PerLayer{}, Lipschitz{}, None{}

// margin is by how much bounds are undercut (R14). It covers the rounding of a figure
// up to that relative size, and of the weight itself.
const margin = 1 - 0x1p-20

// Norm scales a contribution down to norm C (P0, Algorithm 1, line 5): weight min(1, C/norm),
// with C undercut by a factor of 1−2⁻²⁰. C is a finite number from 2⁻¹⁰²² up; P is the norm, 1
// or 2, and its zero value means 2. The zero value of Norm is invalid, as C has no default.
type Norm struct {
	C float64
	P int
}

// Norm is P, or 2 where P was left out.
func (r Norm) Norm() int {
	if r.P == 0 {
		return 2
	}
	return r.P
}

// Bound is C.
func (r Norm) Bound() float64 { return r.C }

// Validate says what is wrong with the rule.
func (r Norm) Validate() error {
	if p := r.Norm(); p != 1 && p != 2 {
		return fmt.Errorf("clip: norm is %d; choose 1 or 2", p)
	}
	return checkBound("clip bound", r.C)
}

// Weights scales to C; under an invalid rule every record weighs 0.
func (r Norm) Weights(c, norm, loss []float64) {
	limit := 0.0
	if r.Validate() == nil {
		limit = r.C * margin
	}
	weigh(c, norm, loss, limit, limit)
}

// Value scales a contribution down by a bound on its ℓ2 norm that follows from its loss, in
// place of the norm itself (value clipping: P0, Algorithm 3): weight min(1, C/bound), with C
// undercut as in Norm. Weights takes the bounds as norm; that they are never below the norms
// is the model's promise (model.BoundedPass). C is as in Norm.
type Value struct{ C float64 }

// Norm is 2.
func (Value) Norm() int { return 2 }

// Bound is C.
func (r Value) Bound() float64 { return r.C }

// Validate says what is wrong with the rule.
func (r Value) Validate() error { return Norm{C: r.C}.Validate() }

// Weights scales to C; under an invalid rule every record weighs 0.
func (r Value) Weights(c, bound, loss []float64) { Norm{C: r.C}.Weights(c, bound, loss) }

// Automatic brings a contribution of any length n to one of C·n/(n+C), which is below C (automatic clipping, AUTO-S of
// Bu, Wang, Zha and Karypis 2023, where it is n/(n+γ): C is their γ, and the unit of the sum): weight C/(n+C), with C
// undercut as in Norm. C is as in Norm.
type Automatic struct{ C float64 }

// Norm is 2.
func (Automatic) Norm() int { return 2 }

// Bound is C.
func (r Automatic) Bound() float64 { return r.C }

// Validate says what is wrong with the rule.
func (r Automatic) Validate() error { return Norm{C: r.C}.Validate() }

// Weights scales to below C; under an invalid rule every record weighs 0.
func (r Automatic) Weights(c, norm, loss []float64) {
	Norm{C: r.C}.Weights(c, norm, loss) // 0 for figures that are not finite
	for i, n := range norm {
		if c[i] > 0 {
			c[i] = r.C * margin / (n + r.C)
		}
		if c[i] < 0x1p-1022 {
			c[i] = 0
		}
	}
}

// PerLayer scales each of a contribution's Layers parts, those of a network's layers, down to ℓ2 norm C/√Layers by
// itself; so all of them together have a norm of at most C. Weights takes the norms of parts. C is as in Norm, and
// Layers at least 1.
type PerLayer struct {
	C      float64
	Layers int
}

// Norm is 2.
func (PerLayer) Norm() int { return 2 }

// Bound is C.
func (r PerLayer) Bound() float64 { return r.C }

// Validate says what is wrong with the rule.
func (r PerLayer) Validate() error {
	if r.Layers < 1 {
		return fmt.Errorf("clip: %d layers; choose 1 or more", r.Layers)
	}
	return r.part().Validate()
}

// part is the rule of one part, whose margin covers the rounding of its bound.
func (r PerLayer) part() Norm { return Norm{C: r.C / math.Sqrt(float64(r.Layers))} }

// Weights scales parts to C/√Layers; under an invalid rule every part weighs 0.
func (r PerLayer) Weights(c, norm, loss []float64) {
	if r.Validate() != nil {
		weigh(c, norm, loss, 0, 0)
		return
	}
	r.part().Weights(c, norm, loss)
}

// Lipschitz assumes that the model keeps every contribution's ℓ2 norm within L, a theorem
// about the model and its public bounds: it clips nothing. It still checks:
// a figure up to L weighs 1, as rounding alone may lift it over the margin; one above L
// is scaled as Norm{C: L} would. L is a finite number from 2⁻¹⁰²² up; the zero value is
// invalid.
type Lipschitz struct{ L float64 }

// Norm is 2.
func (Lipschitz) Norm() int { return 2 }

// Bound is L.
func (r Lipschitz) Bound() float64 { return r.L }

// Validate says what is wrong with the rule.
func (r Lipschitz) Validate() error { return checkBound("Lipschitz bound", r.L) }

// Weights gives 1 within L; under an invalid rule every record weighs 0.
func (r Lipschitz) Weights(c, norm, loss []float64) {
	if r.Validate() != nil {
		weigh(c, norm, loss, 0, 0)
		return
	}
	weigh(c, norm, loss, r.L, r.L*margin)
}

// None bounds nothing, for lab runs: every record with finite figures weighs 1. No
// sensitivity follows from it.
type None struct{}

// Norm is 2, by which None counts its figures.
func (None) Norm() int { return 2 }

// Bound is +Inf.
func (None) Bound() float64 { return math.Inf(1) }

// Validate has nothing to refuse.
func (None) Validate() error { return nil }

// Weights gives 1 to finite figures.
func (None) Weights(c, norm, loss []float64) {
	weigh(c, norm, loss, math.MaxFloat64, math.MaxFloat64)
}

// weigh sets c to 1 where norm ≤ whole and to scaled/norm above it. A limit of 0 for both
// weighs every record 0, as an invalid rule must.
//
// That c·norm ≤ scaled/margin in exact arithmetic: the quotient, if it is a normal number,
// errs by 2⁻⁵³ relatively, and scaled = bound·margin by as much, or by 2⁻⁵² where it is
// just below the normal numbers, which is far less than the margin of 2⁻²⁰. A quotient
// below the normal numbers could err by more, and is made 0.
func weigh(c, norm, loss []float64, whole, scaled float64) {
	if len(norm) != len(c) || loss != nil && len(loss) != len(c) {
		panic("clip: figures of different lengths")
	}
	for i, n := range norm {
		w := 1.0
		if n > whole {
			w = scaled / n
		}
		// x−x is 0 for finite x and NaN otherwise.
		if whole == 0 || w < 0x1p-1022 || !(n >= 0 && n-n == 0) || loss != nil && loss[i]-loss[i] != 0 {
			w = 0
		}
		c[i] = w
	}
}

func checkBound(name string, c float64) error {
	if !(c >= 0x1p-1022) || math.IsInf(c, 1) {
		return fmt.Errorf("%s: found %v; choose a finite number of 2⁻¹⁰²² or more", name, c)
	}
	return nil
}

// Sensitivity returns by how much a sum of contributions, each of norm at most bound, can
// differ between neighboring tables, in that norm: bound if one record is added or
// removed, 2·bound if one is replaced (R8). It has the unit of bound. It is an error if
// bound or the result is not above 0 and finite, or the relation is not valid.
func Sensitivity(bound float64, adj privacy.Adjacency) (float64, error) {
	s := bound
	switch adj {
	case privacy.AddRemove:
	case privacy.ReplaceOne:
		s *= 2
	default:
		return 0, fmt.Errorf("sensitivity: %w", adj.Validate())
	}
	if !(s > 0) || math.IsInf(s, 1) {
		return 0, fmt.Errorf("sensitivity: bound is %v; choose a finite number above 0", bound)
	}
	return s, nil
}
