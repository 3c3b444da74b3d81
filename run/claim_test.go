package run

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// A converged run says what it claims of its model, whatever the output; the claim follows from the releases
// and is true of the rows, which only a lab run may be asked.
func TestClaim(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"opt", "2opt", "opt-ls", "tr"} {
		dir := t.TempDir()
		job, out := begin(t, dir, "run", "method: {name: "+name+", gradient: 0.2}\noutput: average\nlab: true\nseed: 5")
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if info.Result.Outcome != method.Converged.String() || outcomeOf(info) != ledger.Done || info.Result.Claim == nil || info.Result.Claim.Probability != 0.99 {
			t.Fatalf("%s: %+v", name, info.Result)
		}
		wantHolds(t, dir, out)
		f, err := VerifyClaim(t.Context(), out, "", false)
		if err != nil || !f.Holds {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
		// A claim that says more than was found.
		info.Result.Claim.Gradient = 1e-9
		if err := runlog.WriteInfo(out, info); err != nil {
			t.Fatal(err)
		}
		if f, err := VerifyClaim(t.Context(), out, "", false); err != nil || f.Holds {
			t.Errorf("%s: a claim of 1e-9: %+v, %v", name, f, err)
		}
		if f := holds(t, dir, out)["claim"]; f.Holds || !strings.Contains(f.Detail, "‖∇F‖ ≤ 1e-09") {
			t.Errorf("%s: %+v", name, f)
		}
		info.Result.Claim = nil
		if err := runlog.WriteInfo(out, info); err != nil {
			t.Fatal(err)
		}
		if f := holds(t, dir, out)["claim"]; f.Holds || f.What == "" {
			t.Errorf("%s: a claim that was taken away: %+v", name, f)
		}
		if _, err := VerifyClaim(t.Context(), out, "", false); err == nil || !strings.Contains(err.Error(), "claims nothing") {
			t.Error(err)
		}
	}
}

// Without a lab nobody looks at the rows.
func TestClaimNeedsLab(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "method: {name: opt, gradient: 0.2}")
	info, _, err := Fit(t.Context(), job, Env{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if info.Result.Claim == nil {
		t.Fatalf("%+v", info.Result)
	}
	wantHolds(t, dir, out)
	if _, err := VerifyClaim(t.Context(), out, "", false); err == nil || !strings.Contains(err.Error(), filepath.Base(out)) || !strings.Contains(err.Error(), "lab runs only") {
		t.Error(err)
	}
}

// A look at the rows for a claim is one that nobody paid for: a dataset that has come under a guarantee since the lab
// run loses it, and its ledger says why (R3).
func TestClaimIsALook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "lab", "method: {name: opt, gradient: 0.2}\nlab: true\nseed: 5")
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	// In its own ledger the lab run has left the dataset without a guarantee; in another one there is one to lose.
	other := t.TempDir()
	where := filepath.Join(other, "ledger.db")
	l, err := ledger.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetBudget(t.Context(), "clinic", "record", "", privacy.Budget{Epsilon: 5, Delta: 1e-4, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyClaim(t.Context(), out, where, false); !errors.Is(err, access.ErrWouldEnd) {
		t.Errorf("an access that ends the guarantee: %v", err)
	}
	if d, err := l.Dataset(t.Context(), "clinic"); err != nil || d.Void != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if f, err := VerifyClaim(t.Context(), out, where, true); err != nil || !f.Holds {
		t.Errorf("%+v, %v", f, err)
	}
	if d, err := l.Dataset(t.Context(), "clinic"); err != nil || d.Void == nil {
		t.Errorf("%+v, %v: the look is not recorded", d, err)
	}
}
