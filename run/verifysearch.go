package run

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// search checks the result of a search: its cost, and that the winner is one of the candidates. A replay cannot
// show that the model follows from the winner's configuration and is the best: the other releases are secret
// (R21).
func (v *Verification) search(ctx context.Context, l *ledger.Ledger) ([]record.Finding, error) {
	whole, ok := v.Job.Plan.(privacy.Tuned)
	own, err := v.Job.Method.Plan(v.Job.Facts)
	i := slices.Index(v.Info.Search.Among, v.Info.Search.Winner)
	holds := ok && err == nil && i >= 0 && len(whole.Among) == len(v.Info.Search.Among) &&
		v.Info.NoiseMultiplier == method.NoiseMultiplier(v.Job.Method)
	if holds {
		one := whole.Among[i]
		if all, scored := one.(privacy.Composed); scored && !privacy.Equal(one, own) && len(all) == 2 {
			one = all[0] // the other is a noisy score
		}
		holds = privacy.Equal(one, own)
	}
	v.Say("plan", holds, "the configuration in %s plans %v: number %d of the %d that the search drew from",
		runlog.InfoFile, own, i+1, len(whole.Among))
	v.cost("budget", v.Job.Plan)
	v.Say("charges",
		privacy.Equal(v.Record.Event(), privacy.Repeated{Count: 1, Of: v.Job.Plan}) && v.Info.Result != nil &&
			v.Info.Result.Charged == 1, "the search was charged once, as a whole")
	v.Say("releases", v.Record.Released == 0 && len(v.Record.Steps) == 0,
		"none but the model: what its candidates released, and how many they were, a search keeps secret; so that the model is the best of them is not checked")
	file, err := model.Read(filepath.Join(v.Dir, runlog.ModelFile))
	if err != nil {
		return nil, &InputError{Err: err}
	}
	v.promise(file, ending{})
	if err := v.searched(whole); err != nil {
		return nil, err
	}
	return v.Findings, v.ledger(ctx, l)
}
