package ledger

import (
	"fmt"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// fill appends n settled runs of a dataset in one transaction: the same entries as n calls of Reserve and Settle, but for their times.
func fill(t testing.TB, l *Ledger, dataset, prefix string, n int) {
	t.Helper()
	must(t, l.write(t.Context(), func(w *writer) error {
		d, err := w.dataset(dataset)
		if err != nil {
			return err
		}
		var plan []byte
		if d.tally != nil {
			if plan, err = privacy.MarshalEvent(privacy.Repeated{Count: 10, Of: privacy.Gaussian{Sigma: filterSigma}}); err != nil {
				return err
			}
		}
		for i := range n {
			run := fmt.Sprintf("%s-%d", prefix, i)
			p := reserved{Caps: Caps{1e-6, 1e-12}, Token: tokenHash(run), Mark: hexSum([]byte(prefix)), Plan: hexSum([]byte(prefix)),
				Why: "fit with sgd", Recorded: true, Event: plan}
			if err := w.append(KindReserve, dataset, run, p); err != nil {
				return err
			}
			s := settled{Settlement: Settlement{Outcome: Done, Epsilon: 1e-6, Delta: 1e-12, Charged: plan}}
			if d.tally != nil {
				s.Currency, s.Batches, s.Basis = d.facts.Currency, 10, BasisRecord
			}
			if err := w.append(KindSettle, dataset, run, s); err != nil {
				return err
			}
		}
		return nil
	}))
}
