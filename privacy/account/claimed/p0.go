package claimed

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// p0Orders is the grid from which P0's figures come: 1.1, 1.2, …, 10.9, 12, 13, …, 63.
func p0Orders() []float64 {
	var orders []float64
	for i := 11; i <= 109; i++ {
		orders = append(orders, float64(i)/10)
	}
	for i := 12; i <= 63; i++ {
		orders = append(orders, float64(i))
	}
	return orders
}

const p0Formula = "Rényi divergences at the orders 1.1, …, 10.9, 12, …, 63, improved conversion"

func p0Example() ([]Claim, error) {
	var claims []Claim
	for _, x := range []struct {
		about  string
		rate   float64
		epochs int
		batch  int // batches in an epoch
	}{{"MNIST", 1.0 / 469, 10, 469}, {"CIFAR-10", 1.0 / 390, 5, 390}} {
		const delta = 1e-5
		plan := privacy.Repeated{Count: x.epochs * x.batch,
			Of: privacy.PoissonSampled{Rate: x.rate, Of: privacy.Gaussian{Sigma: 1}}}
		c := Claim{
			Paper: "P0",
			About: fmt.Sprintf("%s, %d epochs: %d steps, rate 1/%d, noise multiplier 1", x.about, x.epochs, plan.Count,
				x.batch),
			Quantity: fmt.Sprintf("ε at δ = %v, add-or-remove", delta), Formula: p0Formula, Verdict: Loose,
			Why:    "the best order lies between 10.9 and 12, where that grid has none; and batches must be Poisson samples, which ordinary shuffled ones are not",
			Source: "S-0f",
		}
		for i, a := range []account.Accountant{account.RDP{Orders: p0Orders()}, account.RDP{}, account.PLD{}} {
			loss, err := a.Loss(plan, privacy.AddRemove)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				c.Claimed = loss.Epsilon(delta)
				continue
			}
			c.Sound = append(c.Sound, Figure{loss.Epsilon(delta), "accountant " + a.String()})
		}
		claims = append(claims, c)
	}
	return claims, nil
}

// p0Of is P0's account of plain DP-SGD.
func p0Of(units []unit, adj privacy.Adjacency, delta float64) (Claim, bool) {
	gaussian := func(u unit, e privacy.Event) bool {
		_, ok := e.(privacy.Gaussian)
		return ok && u.fixed == 0
	}
	if adj != privacy.AddRemove || !only(units, gaussian) || shared(units) {
		return Claim{}, false
	}
	var plan privacy.Composed
	for _, u := range units {
		step := u.event()
		if u.poisson > 0 {
			step = privacy.PoissonSampled{Rate: u.poisson, Of: step}
		}
		plan = append(plan, privacy.Repeated{Count: int(u.times), Of: step})
	}
	loss, err := account.RDP{Orders: p0Orders()}.Loss(plan, adj)
	if err != nil {
		return Claim{}, false
	}
	return Claim{Paper: "P0", Formula: p0Formula, Claimed: loss.Epsilon(delta), Verdict: Loose,
		Why: "true, from few orders: none from 10.9 to 12 and none above 63", Source: "S-0f"}, true
}
