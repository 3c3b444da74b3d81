package twins

import (
	"math"
	"testing"
)

// Evidence is at most 1 on average for each row that two tables have twice together: whatever the chance p that either of the two is the
// one shard's.
func TestEvidence(t *testing.T) {
	for x := 1.0; x >= 0x1p-11; x /= 2 {
		for y := 1.0; y >= 0x1p-11; y /= 2 {
			for p := 0.0; p <= 1; p += 1.0 / 64 {
				if mean := p*p*(1-x) + (1-p)*(1-p)*(1-y) + 2*p*(1-p)*(1+math.Sqrt(x*y)); mean > 1+1e-12 {
					t.Errorf("x %v, y %v, p %v: the mean is %v", x, y, p, mean)
				}
			}
		}
	}
	for _, c := range []struct {
		Tally
		from, to float64
	}{
		{Tally{}, 0, 0},
		{Tally{Both: 47}, 47*math.Ln2 - math.Log(144), 47 * math.Ln2},
		{Tally{First: 9}, -math.Log(144), 0},
		{Tally{Both: 100, First: 100, Last: 100}, -math.Log(144), 0},
		{Tally{First: 1 << 31, Last: 1 << 31}, never, 0},
	} {
		if e := c.evidence(); math.IsNaN(e) || e < c.from || e > c.to {
			t.Errorf("%+v: evidence %v; want %v to %v", c.Tally, e, c.from, c.to)
		}
	}
}
