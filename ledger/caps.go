package ledger

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/sottodp/sotto/internal/chart"
)

// Caps is the most that runs may cost, or a budget.
type Caps struct {
	Epsilon float64 `json:"epsilon" unit:"ε"`
	Delta   float64 `json:"delta" unit:"δ"`
}

func (c Caps) String() string {
	return fmt.Sprintf("(ε %s, δ %s)", chart.Full(c.Epsilon), chart.Full(c.Delta))
}

// atMost rounds c up to six digits for display; it ignores an excess in the twelfth digit.
func (c Caps) atMost() Caps {
	up := func(v float64) float64 {
		if !(v > 0) || math.IsInf(v, 1) {
			return v
		}
		unit := math.Pow(10, 5-math.Floor(math.Log10(v)))
		short, err := strconv.ParseFloat(strconv.FormatFloat(math.Ceil(v*unit*(1-1e-12))/unit, 'g', 6, 64), 64)
		if err != nil {
			return v
		}
		return short
	}
	return Caps{up(c.Epsilon), up(c.Delta)}
}

func (c Caps) validate() error {
	switch {
	case !(c.Epsilon > 0) || math.IsInf(c.Epsilon, 1):
		return fmt.Errorf("epsilon: found %v; choose a number above 0", c.Epsilon)
	case !(c.Delta >= 0) || c.Delta >= 1:
		return fmt.Errorf("delta: found %v; choose a number of 0 or more and below 1", c.Delta)
	}
	return nil
}

// total is an exact sum of caps. Its zero value is 0.
type total struct{ epsilon, delta big.Rat }

// decimal returns exactly the decimal number that v prints as; v is finite.
func decimal(v float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
	return r
}

func (t *total) add(c Caps) {
	t.epsilon.Add(&t.epsilon, decimal(c.Epsilon))
	t.delta.Add(&t.delta, decimal(c.Delta))
}

func (t *total) take(c Caps) {
	t.epsilon.Sub(&t.epsilon, decimal(c.Epsilon))
	t.delta.Sub(&t.delta, decimal(c.Delta))
}

func (t *total) clone() (c total) {
	c.epsilon.Set(&t.epsilon)
	c.delta.Set(&t.delta)
	return c
}

// fits reports whether c can be added without exceeding the budget; without a budget everything fits.
func (t *total) fits(c Caps, budget *Caps) bool {
	if budget == nil {
		return true
	}
	within := func(spent *big.Rat, c, limit float64) bool {
		return new(big.Rat).Add(spent, decimal(c)).Cmp(decimal(limit)) <= 0
	}
	return within(&t.epsilon, c.Epsilon, budget.Epsilon) && within(&t.delta, c.Delta, budget.Delta)
}

// caps returns the float64 nearest to the sum, to show it.
func (t *total) caps() Caps {
	var c Caps
	c.Epsilon, _ = t.epsilon.Float64()
	c.Delta, _ = t.delta.Float64()
	return c
}

// left returns the float64 nearest to what remains, to show it; never below 0.
func (t *total) left(budget Caps) Caps {
	rest := func(limit float64, spent *big.Rat) float64 {
		d := new(big.Rat).Sub(decimal(limit), spent)
		v, _ := d.Float64()
		return max(v, 0)
	}
	return Caps{rest(budget.Epsilon, &t.epsilon), rest(budget.Delta, &t.delta)}
}
