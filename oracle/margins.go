package oracle

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
)

// Margins asks how far the probabilities of a finished model are from the labels, as a function of its margins: what a
// factor a and offsets b of these, which replace them by a·z + b, are fitted with. A row's margins z, one of two
// classes or one for each class, are clipped to the norm Bound; u is z/Bound, p are the probabilities at a·z + b, and r
// is p less 1 at the row's class. It is asked of all records, and its answer is sums over them, which are not divided:
//
//	one margin    r and r·u, where p is the probability of class 1; with Weight v = p(1 − p), v·u and v·u²
//	k margins     r_c of each class and ⟨r, u⟩; with Weight v_c = p_c(1 − p_c) of each class and
//	              s = Σp_c·u_c² − (Σp_c·u_c)²
//
// Noise is added to the sums with all v multiplied by 4·Weight and s by 2·Weight, and has one standard deviation for
// all of these numbers.
type Margins struct {
	Bound  float64       // of the norm of a row's margins
	Weight float64       // of the curvatures v and s beside the slopes, at most MostWeight; 0: they are not asked for
	Noise  mech.Additive // Gaussian, or none
}

// MostWeight is the largest weight of curvatures: up to it they do not add to the sensitivity
// (oracle/private/PROOFS.md#margins).
const MostWeight = 0.5

// Event is the event of the noise.
func (q Margins) Event() privacy.Event { return q.Noise.Event() }

// Validate checks bound and weight, and that the noise is Gaussian or none.
func (q Margins) Validate() error {
	switch q.Noise.(type) {
	case mech.Gaussian, mech.None:
	default:
		return fmt.Errorf("oracle: a query of margins has the noise %T; choose Gaussian noise, or none", q.Noise)
	}
	switch {
	case !(q.Bound > 0) || math.IsInf(q.Bound, 1):
		return fmt.Errorf("oracle: a query of margins has the bound %v; choose a finite number above 0", q.Bound)
	case q.Weight != 0 && !(q.Weight >= 0x1p-10 && q.Weight <= MostWeight):
		return fmt.Errorf("oracle: a query of margins has the weight %v; choose 0, or a number from 2^-10 to %v", q.Weight,
			MostWeight)
	}
	if _, off := q.Noise.(mech.None); off {
		return nil
	}
	return q.Noise.Event().Validate()
}

// Fits checks a query, and what it is asked at, against the public facts: at are the parameters, what is added to each
// margin, the factor a, and the offset b of each margin.
func (q Margins) Fits(p Public, at []float64) error {
	k := p.Margins()
	if want := p.Dim + 2*k + 1; len(at) != want {
		return fmt.Errorf("oracle: a query of margins is asked at %d numbers; give %d: %d parameters, a shift of each of %d margins, a factor, and an offset of each",
			len(at), want, p.Dim, k)
	}
	for _, v := range at[p.Dim:] {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("oracle: a query of margins is asked at the shift, factor or offset %v; give finite numbers", v)
		}
	}
	return nil
}

// Margins is how many margins a row has: one where OneMargin or the label is a number, otherwise one for each class.
func (p Public) Margins() int {
	if p.OneMargin {
		return 1
	}
	return max(1, p.Classes)
}

// Len is how many numbers the answer has.
func (q Margins) Len(p Public) int {
	k := p.Margins()
	switch {
	case q.Weight == 0:
		return k + 1
	case k == 1:
		return 5
	}
	return 2 * (k + 1)
}

// Scale is what number j of a sum is multiplied by before it gets noise, and divided by after it.
func (q Margins) Scale(p Public, j int) float64 {
	k := p.Margins()
	switch {
	case j <= k:
		return 1
	case k > 1 && j == 2*k+1:
		return 2 * q.Weight
	}
	return 4 * q.Weight
}

// Sensitivity is how far one record moves the sums before noise, so multiplied, in the ℓ2 norm.
func (q Margins) Sensitivity(p Public) float64 {
	bound := 2.0
	if p.Margins() == 1 {
		bound = math.Sqrt2
	}
	if p.Adjacency == privacy.ReplaceOne {
		bound *= 2
	}
	return bound * (1 + 0x1p-20) // above all rounding (oracle/private/PROOFS.md#margins)
}
