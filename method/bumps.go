package method

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
)

// Bumps says what each numeric column gets beside its linear feature where the schema names no encoding, and why: how
// many bumps (schema.Column.Hats) or waves (schema.Column.Waves), or none. Like all that [Auto] chooses it follows from
// public facts.
type Bumps struct {
	Hats, Waves int
	Why         string
}

// The encodings that are tried, the one of most features first, each with the most noise at which it is taken: ν√d, for
// more than two classes times (classes − 1)^¼. Further features cost twice (docs/measurements/methods.md): those of a
// row share its norm, so noise weighs more; and with few rows for each they fit those rows and no others.
var (
	bumpRules = []bumpRule{{hats: 16, noise: 0.012, rows: 150}, {hats: 8, noise: 0.004, rows: 80},
		{waves: 5, noise: 0.06, rows: 100}}
	numberRules = []bumpRule{{waves: 2, noise: 0.02, rows: 80}} // for the squared loss
)

type bumpRule struct {
	hats, waves int
	noise, rows float64
}

func (r bumpRule) String() string {
	if r.waves > 0 {
		return fmt.Sprintf("%d waves", r.waves)
	}
	return fmt.Sprintf("%d bumps", r.hats)
}

// bumpValues bounds the encoded table, in values of 4 bytes, where rows are kept with further features: those multiply
// its memory. Rows that bumps follow from (Snapped) are kept without them, but take a pass for each step.
const bumpValues = 1 << 29

// mostLeveled is how many features columns with levels may have there: such rows have no sparse form.
const mostLeveled = 64

// Bumps chooses for the numeric columns that name no encoding; of pub they are linear, and Snapped is as with curves.
func (m Auto) Bumps(pub oracle.Public, columns int, terms Terms) (Bumps, error) {
	rules := bumpRules
	switch {
	case columns == 0:
		return Bumps{}, nil
	case !pub.Lipschitz.Finite() && !pub.Shifted:
		return Bumps{Why: "no bumps: the rule is for classes, and for numbers with the squared loss"}, nil
	case !terms.Off && terms.Budget.Delta == 0 || pub.L1Bound > 0 && pub.L1Bound <= pub.NormBound:
		return Bumps{Why: "no bumps: the rule is for rows held to an L2 norm and Gaussian noise"}, nil
	case pub.Classes == 0:
		rules = numberRules
	}
	noise, err := m.Noise(pub, terms)
	if err != nil {
		return Bumps{}, err
	}
	linear := perClass(pub)
	noise *= math.Pow(math.Max(1, float64(pub.Classes-1)), 0.25)
	// passes over rows that are kept without bumps: see metric
	few := pub.Snapped && pub.Features() == columns+leveled(pub)+1 && leveled(pub) <= mostLeveled
	var why string
	for _, r := range rules {
		d := linear + float64(columns*(r.hats+r.waves))
		noise, rows := noise*math.Sqrt(d/linear), float64(pub.Rows)/d
		why = fmt.Sprintf("with %v, d = %.0f, noise ν√d = %.3g (at most %g) and %.3g rows per feature (at least %g)", r, d,
			noise, r.noise, rows, r.rows)
		if (r.waves > 0 || !few) && float64(pub.Rows)*d > bumpValues {
			why = fmt.Sprintf("with %v, d = %.0f, and %d rows would take more than 2 GiB", r, d, pub.Rows)
			continue
		}
		if noise <= r.noise && rows >= r.rows {
			return Bumps{r.hats, r.waves, fmt.Sprintf("%v beside each linear feature: %s", r, why)}, nil
		}
	}
	return Bumps{Why: "no bumps: " + why}, nil
}

// bumpsAlone says whether rows are columns with bumps, columns with levels, places for pairs and an intercept, and
// nothing else.
func bumpsAlone(pub oracle.Public) bool {
	features := leveled(pub)
	for _, n := range pub.Numeric {
		if n.Bumps == 0 {
			return false
		}
		features += 1 + n.Features()
	}
	return len(pub.Numeric) > 0 && features == pub.FirstSlot()
}

// leveled counts the features of columns with levels.
func leveled(pub oracle.Public) (n int) {
	for _, c := range pub.Leveled {
		n += c.Features()
	}
	return n
}

// Noise is ν√d, where νC is the standard deviation of the noise in each coordinate of a mean gradient of clip norm C
// that takes the whole budget, and d the number of parameters of one class; 0 without noise, and for Laplace noise.
func (m Auto) Noise(pub oracle.Public, terms Terms) (float64, error) {
	if terms.Off || terms.Budget.Delta == 0 {
		return 0, nil
	}
	nu, err := m.one(pub, terms)
	return nu * math.Sqrt(perClass(pub)), err
}

// perClass is the number of parameters of one class, without those of places of pairs, which rows need not have.
func perClass(pub oracle.Public) float64 {
	d := float64(pub.WithSlots(0).Dim)
	if pub.Classes > 2 {
		d /= float64(pub.Classes)
	}
	return math.Max(1, d)
}

// rowFeatures is the number of features of a row, without those of places of pairs: perClass but of two classes with a
// margin each.
func rowFeatures(pub oracle.Public) float64 { return math.Max(1, float64(pub.WithSlots(0).Features())) }
