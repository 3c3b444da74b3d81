package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// MostForecast caps the number of runs in a forecast; above it, the forecast says "or more".
const MostForecast = 1 << 20

// A Forecast says how many further runs of one kind a dataset's lifetime budget covers in a currency.
type Forecast struct {
	Currency string `json:"currency"`
	// Own says that it is the dataset's currency: so many runs will be admitted if no others come between. A ledger never
	// changes the currency of a dataset, so the others say what it would have been to choose them.
	Own  bool   `json:"own,omitempty"`
	Runs int    `json:"runs"`
	More bool   `json:"or_more,omitempty"` // MostForecast and perhaps more
	Why  string `json:"why,omitempty"`     // why the number is not known; "" where it is
}

// Forecast says for each currency how many runs like r the dataset's budget still covers, if each keeps its whole plan.
// In its own currency the ledger's state decides, as [Ledger.Reserve] does. In another one, earlier runs count by their
// own ε and δ, whose sum is taken from the budget, and the further runs compose within the rest: the ledger does not
// hold the plans of earlier runs in caps. It writes nothing.
func (l *Ledger) Forecast(ctx context.Context, r Reservation) (all []Forecast, err error) {
	b, err := l.books(ctx)
	if err != nil {
		return nil, err
	}
	d := b.dataset(r.Dataset)
	asked := Caps{r.Epsilon, r.Delta}
	switch {
	case d.name == "":
		return nil, fmt.Errorf("dataset %q: %w", r.Dataset, ErrUnknownDataset)
	case d.budget == nil:
		return nil, fmt.Errorf("dataset %q: %w", r.Dataset, ErrNoBudget)
	case asked.validate() != nil:
		return nil, asked.validate()
	case r.Plan == nil:
		return nil, errors.New("forecast: a run needs a plan")
	}
	if err := d.compare(datasetFacts{r.Unit, r.Adjacency, ""}); err != nil {
		return nil, err
	}
	runs, err := l.Runs(ctx, r.Dataset)
	if err != nil {
		return nil, err
	}
	var spent total // by the runs' own ε and δ
	for _, known := range runs {
		spent.add(known.Caps)
	}
	for _, currency := range Currencies() {
		f := Forecast{Currency: currency, Own: currency == d.facts.Currency}
		switch c := filter(currency); {
		case c == nil:
			f.Runs = spent.most(asked, *d.budget)
		case f.Own:
			f.Runs, err = mostRuns(d.tally, d.budgetOf(*d.budget), r.Plan)
		default:
			f.Runs, err = mostRuns(account.NewTally(c, d.facts.Adjacency), d.budgetOf(spent.below(*d.budget)), r.Plan)
		}
		var unsupported *account.UnsupportedError
		if errors.As(err, &unsupported) {
			f.Why = fmt.Sprintf("no theorem for %v in %s: %s", unsupported.Event, currency, unsupported.Why)
		} else if err != nil {
			return nil, err
		}
		f.More = f.Runs >= MostForecast
		all = append(all, f)
	}
	return all, nil
}

// mostRuns is how many more plans a budget covers beside what t holds.
func mostRuns(t *account.Tally, b privacy.Budget, plan privacy.Event) (int, error) {
	if !(b.Epsilon > 0) {
		return 0, nil
	}
	covers := func(k int) (bool, error) {
		c := t.Clone()
		if err := c.Hold("forecast", privacy.Repeated{Count: k, Of: plan}); err != nil {
			return false, err
		}
		return c.Covers(b), nil
	}
	low, high := 0, 1 // low is covered; of high it is not known
	for high <= MostForecast {
		ok, err := covers(high)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		low, high = high, 2*high
	}
	for high-low > 1 && low < MostForecast {
		middle := (low + high) / 2
		ok, err := covers(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// most is how often c fits a budget beside the total.
func (t *total) most(c, budget Caps) int {
	times := func(limit float64, spent *big.Rat, each float64) int {
		rest := new(big.Rat).Sub(decimal(limit), spent)
		if rest.Sign() < 0 {
			return 0
		}
		if each == 0 {
			return MostForecast
		}
		k := new(big.Rat).Quo(rest, decimal(each))
		whole := new(big.Int).Quo(k.Num(), k.Denom())
		if !whole.IsInt64() || whole.Int64() > MostForecast {
			return MostForecast
		}
		return int(whole.Int64())
	}
	return min(times(budget.Epsilon, &t.epsilon, c.Epsilon), times(budget.Delta, &t.delta, c.Delta))
}

// below is at most what remains of a budget beside the total, and 0 where nothing does.
func (t *total) below(budget Caps) Caps {
	rest := func(limit float64, spent *big.Rat) float64 {
		exact := new(big.Rat).Sub(decimal(limit), spent)
		v, _ := exact.Float64()
		for v > 0 && decimal(v).Cmp(exact) > 0 {
			v = math.Nextafter(v, 0)
		}
		return max(v, 0)
	}
	return Caps{rest(budget.Epsilon, &t.epsilon), rest(budget.Delta, &t.delta)}
}
