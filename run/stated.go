package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/job"
)

// A Stated is the cost of a release that another program made, as a person states it: ε and δ, or ρ, or μ.
type Stated struct {
	Dataset   string
	Epsilon   float64 // 0: Rho or Mu is given
	Delta     float64
	Rho       float64 // of zero-concentrated differential privacy
	Mu        float64 // of Gaussian differential privacy
	Adjacency string  // of the release; "": that of the dataset, which the ledger knows
	Unit      string  // whose privacy it is; "": likewise
	Reason    string
}

// StatedBy begins what the ledger says of such a cost.
const StatedBy = "stated by a person: "

// maxReason is the most bytes of a reason.
const maxReason = 1000

// event returns an event with that cost. Gaussian noise of multiplier 1/μ is exactly μ-GDP.
// Multiplier 1/√(2ρ) has the Rényi divergences α·ρ, the largest that ρ allows, so it represents ρ
// in currencies that count those (privacy/account/PROOFS.md#tally).
func (s *Stated) event(currency string) (privacy.Event, error) {
	given, least := 0, 1-0x1p-50 // a multiplier is rounded down
	for _, v := range []float64{s.Epsilon, s.Rho, s.Mu} {
		if v != 0 {
			given++
		}
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("--epsilon, --rho, --mu: found %v; write a number above 0", v)
		}
	}
	filter := currency != ledger.InCaps
	switch {
	case given != 1:
		return nil, errors.New("--epsilon, --rho, --mu: write one of them, above 0")
	case s.Epsilon == 0 && !filter:
		return nil, errors.New("--rho, --mu: the dataset counts in caps, which add up ε and δ; write --epsilon and --delta")
	case s.Mu > 0:
		return privacy.Gaussian{Sigma: least / s.Mu}, nil
	case s.Rho > 0 && currency == ledger.InGDP:
		return nil, errors.New("--rho: the dataset counts in gdp, in which ρ has no cost that is proven; write --mu")
	case s.Rho > 0:
		return privacy.Gaussian{Sigma: least / math.Sqrt(2*s.Rho)}, nil
	case s.Delta > 0 && filter:
		other := "--rho"
		if currency == ledger.InGDP {
			other = "--mu"
		}
		return nil, fmt.Errorf("--epsilon, --delta: the dataset counts in %s, in which (ε, δ) has no finite cost; write %s",
			currency, other)
	case s.Delta > 0:
		return privacy.ApproxDP{Epsilon: s.Epsilon, Delta: s.Delta}, nil
	}
	return privacy.PureDP{Epsilon: s.Epsilon}, nil
}

// Open opens the ledger for a charge. It makes one only for a cost that a new dataset can have.
func (s *Stated) Open(ctx context.Context, where string) (*ledger.Ledger, error) {
	l, err := FindLedger(ctx, where)
	if e := (*InputError)(nil); !errors.As(err, &e) || s.Adjacency == "" || s.Unit == "" {
		return l, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if _, err := s.event(ledger.InCaps); err != nil {
		return nil, &InputError{Err: err}
	}
	return OpenLedger(ctx, where)
}

func (s *Stated) check() error {
	if s.Reason == "" || len(s.Reason) > maxReason || !config.PlainText(s.Reason) {
		return inputError("", "--reason: found %s; write one line of text of at most %d bytes that says what was released, by which program",
			config.Quote(s.Reason), maxReason)
	}
	return nil
}

// ChargeStated enters such a cost into the ledger, as charged and settled. It returns the name of the entry.
func ChargeStated(ctx context.Context, l *ledger.Ledger, s Stated) (string, error) {
	fail := func(err error) (string, error) { return "", &InputError{Err: err} }
	if err := s.check(); err != nil {
		return "", err
	}
	d, err := l.Dataset(ctx, s.Dataset)
	if err != nil && !errors.Is(err, ledger.ErrUnknownDataset) {
		return "", err
	}
	r := ledger.Reservation{Dataset: s.Dataset, Unit: d.Unit, Adjacency: d.Adjacency, Epsilon: s.Epsilon, Delta: s.Delta,
		Why: StatedBy + s.Reason}
	if s.Adjacency != "" {
		if r.Adjacency, err = privacy.ParseAdjacency(s.Adjacency); err != nil {
			return fail(fmt.Errorf("--%w", err))
		}
	}
	if s.Unit != "" || r.Unit == "" {
		r.Unit = s.Unit
	}
	if !r.Adjacency.Valid() || r.Unit == "" {
		return fail(fmt.Errorf("--adjacency, --unit: the ledger does not know the dataset %q yet, and its first charge fixes both; write --adjacency add-or-remove or replace-one, and --unit record or the unit of the schema",
			s.Dataset))
	}
	currency := d.Currency
	if currency == "" {
		currency = ledger.InCaps
	}
	event, err := s.event(currency)
	if err != nil {
		return fail(err)
	}
	if d.Budget != nil && currency != ledger.InCaps { // what the cost is at the budget's δ, as information
		loss, err := (account.Best{}).Loss(event, r.Adjacency)
		if err != nil {
			return "", err
		}
		r.Delta = d.Budget.Delta
		if r.Epsilon = loss.Epsilon(r.Delta); math.IsInf(r.Epsilon, 1) {
			return fail(errors.New("--epsilon, --rho, --mu: the cost has no finite ε at the budget's δ"))
		}
	}
	if r.Run, err = job.NewID(); err != nil {
		return "", err
	}
	r.Run = strings.Replace(r.Run, "-", "-stated-", 1)
	plan := privacy.Repeated{Count: 1, Of: event}
	r.Plan = plan
	if _, err := spend(ctx, l, r, plan, nil); err != nil {
		return "", reserveError(err)
	}
	return r.Run, nil
}

// spend reserves, charges and settles a plan of one batch, so that no later failure leaves anything open. reserved says
// whether the reservation was made, which an uncertain one may not have been.
func spend(ctx context.Context, l *ledger.Ledger, r ledger.Reservation, plan privacy.Repeated,
	seal map[string]string) (reserved bool, err error) {
	token, err := l.Reserve(ctx, r)
	if err != nil {
		return false, err
	}
	charged, err := privacy.MarshalEvent(plan)
	if err != nil {
		return true, err
	}
	ctx = context.WithoutCancel(ctx) // the rest takes little time
	if err := l.Reach(ctx, r.Run, token, 1, []ledger.Charges{{Count: 1, Event: plan.Of}}); err != nil {
		return true, err
	}
	if err := l.Settle(ctx, r.Run, token, ledger.Settlement{Batches: 1, Outcome: ledger.Done, Epsilon: r.Epsilon,
		Delta: r.Delta, Charged: charged, Seal: seal}); err != nil {
		return true, fmt.Errorf("run %s is charged: %w", r.Run, err)
	}
	return true, nil
}
