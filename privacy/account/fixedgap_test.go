package account

import (
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// TestFixedGap measures by how much ε of samples of fixed size under replace-one is above what some neighbors certainly lose:
// all records but one have the same answer, so that only that record moves the sum. PROOFS.md#pld-fixed.
func TestFixedGap(t *testing.T) {
	race.Skip(t)
	const n = 100000
	for _, c := range []struct {
		m           int
		sigma       float64
		steps       int
		delta       float64
		least, most float64 // of the gap
	}{
		{1000, 1, 1, 1e-5, 0, 0.003},
		{10000, 1, 1, 1e-8, 0, 0.001},
		{10000, 1, 30, 1e-5, 0.055, 0.065},
		{10000, 5, 30, 1e-5, 0.025, 0.03},
		{1000, 1, 1000, 1e-5, 0.195, 0.21},
		{100, 1, 1000, 1e-5, 0.2, 0.215},
	} {
		gauss := privacy.Gaussian{Sigma: c.sigma}
		hull := mustLossUnder(t, PLD{}, privacy.Repeated{Count: c.steps, Of: privacy.FixedSampled{M: c.m, N: n, Of: gauss}}, privacy.ReplaceOne).Epsilon(c.delta)
		attained, err := PLD{}.Least(privacy.Repeated{Count: c.steps, Of: privacy.PoissonSampled{Rate: float64(c.m) / n, Of: gauss}}, privacy.AddRemove, c.delta)
		if err != nil {
			t.Fatal(err)
		}
		if gap := hull/attained - 1; gap < c.least || gap > c.most {
			t.Errorf("%+v: ε is %v, attained is %v: the gap is %.4f", c, hull, attained, gap)
		}
	}
}
