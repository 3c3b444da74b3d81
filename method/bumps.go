package method

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
)

// Bumps says how many piecewise-linear bumps (schema.Column.Hats) each numeric column gets whose schema names no
// encoding, and why. Like all that [Auto] chooses it follows from public facts.
type Bumps struct {
	Count int // bumps of a column; 0: none
	Why   string
}

// The numbers of bumps that are tried, the most first, each with the most noise ν√d and the fewest rows per feature
// at which it is taken (docs/measurements/methods.md). Bumps cost twice: the features of a row share its norm, so
// noise weighs more, and with few rows for each feature they fit those rows and no others.
var bumpRules = []struct {
	count int
	noise float64
	rows  float64
}{
	{16, 0.012, 150},
	{8, 0.06, 80},
}

// bumpValues bounds the encoded table, in values of 4 bytes: bumps multiply its memory.
const bumpValues = 1 << 29

// Bumps chooses for the numeric columns that name no encoding; of pub they are linear.
func (m Auto) Bumps(pub oracle.Public, columns int, terms Terms) (Bumps, error) {
	switch {
	case columns == 0:
		return Bumps{}, nil
	case !pub.Lipschitz.Finite():
		return Bumps{Why: "no bumps: the rule is for losses with a bound on their slope"}, nil
	case !terms.Off && terms.Budget.Delta == 0 || pub.L1Bound > 0 && pub.L1Bound <= pub.NormBound:
		return Bumps{Why: "no bumps: the rule is for rows held to an L2 norm and Gaussian noise"}, nil
	}
	noise, err := m.Noise(pub, terms)
	if err != nil {
		return Bumps{}, err
	}
	linear := perClass(pub)
	var why string
	for _, r := range bumpRules {
		d := linear + float64(columns*r.count)
		noise, rows := noise*math.Sqrt(d/linear), float64(pub.Rows)/d
		why = fmt.Sprintf("with %d, d = %.0f, noise ν√d = %.3g (at most %g) and %.3g rows per feature (at least %g)", r.count,
			d, noise, r.noise, rows, r.rows)
		if float64(pub.Rows)*d > bumpValues {
			why = fmt.Sprintf("with %d, d = %.0f, and %d rows would take more than 2 GiB", r.count, d, pub.Rows)
			continue
		}
		if noise <= r.noise && rows >= r.rows {
			return Bumps{r.count, fmt.Sprintf("%d bumps beside each linear feature: %s", r.count, why)}, nil
		}
	}
	return Bumps{Why: "no bumps: " + why}, nil
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

// perClass is the number of parameters of one class.
func perClass(pub oracle.Public) float64 {
	d := math.Max(1, float64(pub.Dim))
	if pub.Classes > 2 {
		d = math.Max(1, d/float64(pub.Classes))
	}
	return d
}
