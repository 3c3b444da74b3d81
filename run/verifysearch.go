package run

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/trace"
)

// search checks the best of a search: what the whole cost, and that the winner is one of those that it drew from. That the model
// came of the winner's configuration, and is the best, nobody can replay: what was released on the way is secret (R21).
func (v *verifier) search(ctx context.Context, l *ledger.Ledger) ([]Finding, error) {
	whole, ok := v.job.Plan.(privacy.Tuned)
	own, err := v.job.Method.Plan(v.job.Facts)
	i := slices.Index(v.info.Search.Among, v.info.Search.Winner)
	holds := ok && err == nil && i >= 0 && len(whole.Among) == len(v.info.Search.Among) && v.info.NoiseMultiplier == v.job.Method.NoiseMultiplier()
	if holds {
		one := whole.Among[i]
		if all, scored := one.(privacy.Composed); scored && !privacy.Equal(one, own) && len(all) == 2 {
			one = all[0] // beside it a noisy score
		}
		holds = privacy.Equal(one, own)
	}
	v.say("plan", holds, "the configuration in %s plans %v: number %d of the %d that the search drew from", trace.InfoFile, own, i+1, len(whole.Among))
	v.cost("budget", v.job.Plan)
	v.say("charges", privacy.Equal(v.rec.Event(), privacy.Repeated{Count: 1, Of: v.job.Plan}) && v.info.Result != nil && v.info.Result.Charged == 1, "the search was charged once, as a whole")
	v.say("releases", v.rec.Released == 0 && len(v.rec.Steps) == 0, "none but the model: what its candidates released, and how many they were, a search keeps secret; so that the model is the best of them is not checked")
	file, err := model.Read(filepath.Join(v.dir, trace.ModelFile))
	if err != nil {
		return nil, &InputError{"", err}
	}
	v.promise(file)
	if err := v.searched(whole); err != nil {
		return nil, err
	}
	return v.found, v.ledger(ctx, l)
}
