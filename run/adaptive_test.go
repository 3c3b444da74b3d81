package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/methodtest"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// A method whose costs depend on what was released, and that never has enough.
func init() {
	method.Register(method.Entry{Name: "greedy", About: "an adversary", Method: methodtest.Greedy{}})
}

// greedy is one that runs for a second or so; what it asks it hardly asks twice.
const greedy = "method: {name: greedy, noise: 600, more: 0.9997}"

func holds(t *testing.T, dir, out string) map[string]record.Finding {
	t.Helper()
	l := openLedger(t, dir)
	defer l.Close()
	if _, err := l.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := Verify(t.Context(), out, l)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]record.Finding{}
	for _, f := range found {
		all[f.What] = f
	}
	return all
}

func wantHolds(t *testing.T, dir, out string) {
	t.Helper()
	for _, f := range holds(t, dir, out) {
		if !f.Holds {
			t.Errorf("%s does not hold: %s", f.What, f.Detail)
		}
	}
}

// An adversary is refused at its cap, with its last iterate as the model; the cap is what the
// ledger keeps, and run.json says in which currency it was counted.
func TestAdversaryEndsWithinItsCap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method   string
		currency privacy.Currency
	}{
		{"method: {name: greedy}", privacy.InGDP},
		{"method: {name: greedy, batch: 200}", privacy.InRDP},
		{"method: {name: greedy, more: 0.5}", privacy.InGDP},
	} {
		dir := t.TempDir()
		job, out := begin(t, dir, "run", c.method)
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := info.PlanEvent()
		if f, ok := plan.(privacy.Filtered); err != nil || !ok || f.Currency != c.currency || f.Epsilon != 1 || f.Delta != 1e-5 {
			t.Errorf("%s: plan %v, %v", c.method, plan, err)
		}
		rec := logOf(t, out)
		if info.Result.Outcome != method.OutOfBudget.String() || info.Result.Steps == 0 || rec.Released != info.Result.Steps {
			t.Errorf("%s: %+v", c.method, info.Result)
		}
		spent, err := account.Spent(plan, account.Best{}, rec.Event(), privacy.AddRemove, 1e-5)
		if err != nil || spent > 1+1e-12 || spent < 0.4 {
			t.Errorf("%s: spent %v, %v", c.method, spent, err)
		}
		wantHolds(t, dir, out)
		l := openLedger(t, dir)
		d, err := l.Dataset(t.Context(), "clinic")
		if err != nil || d.Spent != (ledger.Caps{Epsilon: 1, Delta: 1e-5}) {
			t.Errorf("%s: %+v, %v", c.method, d, err)
		}
		l.Close()
	}
}

// One more charge than the filter admits is a finding, whatever the other files say.
func TestVerifyRefusesAnOverdrawnFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "method: {name: greedy, more: 1}")
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, runlog.EventsFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := logOf(t, out).Charged()
	more := strings.Replace(string(before), fmt.Sprintf(`"count":%d`, n), fmt.Sprintf(`"count":%d`, n+1), 1)
	if more == string(before) {
		t.Fatalf("%d charges are not one line:\n%s", n, before)
	}
	if err := os.WriteFile(path, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := holds(t, dir, out)["charges"]; f.Holds || !strings.Contains(f.Detail, "filter") {
		t.Errorf("found %+v", f)
	}
	// Nor may the filter be larger than the budget.
	info, err := runlog.ReadInfo(out)
	if err != nil {
		t.Fatal(err)
	}
	var f privacy.Event = job.Plan
	large := f.(privacy.Filtered)
	large.Epsilon *= 2
	if info.Plan, err = privacy.MarshalEvent(large); err != nil {
		t.Fatal(err)
	}
	m := job.Method.(methodtest.Greedy)
	m.Filter = large
	if info.Config, err = method.Encode(m); err != nil {
		t.Fatal(err)
	}
	if err := runlog.WriteInfo(out, info); err != nil {
		t.Fatal(err)
	}
	found := holds(t, dir, out)
	for _, what := range []string{"budget", "charges", "ledger"} {
		if found[what].Holds {
			t.Errorf("%+v", found[what])
		}
	}
}

// A seeded run on a filter that is stopped and resumed ends as an unbroken one; a secure one
// that is killed stays within its cap and its record holds.
func TestBrokenRunOnAFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var whole, out string
	for noise := 600; ; noise *= 2 { // more noise makes more steps: until the run outlasts its first progress, however fast the machine is
		lab := fmt.Sprintf("lab: true\nseed: 5\nmethod: {name: greedy, noise: %d, more: 0.9997}", noise)
		var job *Job
		job, whole = begin(t, dir, fmt.Sprint("whole", noise), lab)
		if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		job, out = begin(t, dir, fmt.Sprint("stopped", noise), lab)
		ctx, stop := context.WithCancel(t.Context())
		_, _, err := Fit(ctx, job, stopAt(1, stop))
		stop()
		if err == nil {
			continue
		}
		wantErr(t, err, ErrInterrupted)
		if n, all := logOf(t, out).Charged(), logOf(t, whole).Charged(); n > 0 && n < all {
			break
		}
	}
	if _, err := Resume(t.Context(), out, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	sameFile(t, whole, out, runlog.ReleasesFile)
	sameFile(t, whole, out, runlog.StepsFile)

	spec, out := clinicSpec(t, dir, "killed", greedy)
	for k := 0; ; k++ {
		after := 400 * time.Millisecond
		if k >= 4 {
			after = never
		}
		if done, _ := killed(t, next(t, spec, out), after); done {
			break
		}
	}
	wantHolds(t, dir, out)
}

// A dataset that counts in a filter's currency holds the cap of the run's filter in it and
// settles for what was charged, or refuses a filter that says nothing in it.
func TestFilterUnderALifetimeFilter(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{ledger.InZCDP, ledger.InGDP, ledger.InRDP} {
		dir := t.TempDir()
		filterLedger(t, dir, currency)
		job, out := begin(t, dir, "run", "method: {name: greedy, noise: 50, steps: 20}")
		info, _, err := Fit(t.Context(), job, Env{Workers: 1, Progress: func(Progress) {}})
		if err != nil {
			t.Fatalf("%s: %v", currency, err)
		}
		if settled := part(t, dir); info.Result.Outcome != method.Done.String() || !(settled > 0 && settled < 0.9) {
			t.Errorf("%s: %v, settled %v", currency, info.Result.Outcome, settled)
		}
		wantHolds(t, dir, out)
		// A whole cap is held: so many fit, and no more.
		l := openLedger(t, dir)
		n := 0
		for ; n < 100 && err == nil; n++ {
			_, err = l.Reserve(t.Context(), ledger.Reservation{Dataset: "clinic", Unit: "record", Adjacency: privacy.AddRemove, Run: fmt.Sprint(n), Epsilon: 1, Delta: 1e-5, Plan: job.Plan})
		}
		l.Close()
		if !errors.Is(err, privacy.ErrExhausted) || n < 8 || n > 40 {
			t.Errorf("%s: reservation %d: %v", currency, n, err)
		}
		before := part(t, dir)
		job, _ = begin(t, dir, "sampled", "method: {name: greedy, batch: 200}")
		_, _, err = Fit(t.Context(), job, Env{})
		var unsupported *account.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Event != job.Plan {
			t.Errorf("%s: a filter of one order: %v", currency, err)
		}
		if part(t, dir) != before {
			t.Error("it holds something")
		}
	}
}

// What a run on a filter charged no plan tells the ledger: a record whose charges are cheaper than what its method
// asked is neither settled, resumed nor verified, and the run goes on holding its cap.
func TestCheaperChargesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filterLedger(t, dir, ledger.InZCDP)
	job, out := begin(t, dir, "run", "method: {name: greedy, noise: 20000, more: 1}") // for several seconds
	ctx, stop := context.WithCancel(t.Context())
	_, _, err := Fit(ctx, job, stopAt(1, stop))
	wantErr(t, err, ErrInterrupted)
	held := part(t, dir)
	path := filepath.Join(out, runlog.EventsFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cheaper := regexp.MustCompile(`"sigma":[0-9.]+`).ReplaceAllString(string(before), `"sigma":60000000`)
	if err := os.WriteFile(path, []byte(cheaper), 0o600); err != nil {
		t.Fatal(err)
	}
	var input *InputError
	if _, _, err := Abandon(t.Context(), out, ""); !errors.As(err, &input) || !strings.Contains(err.Error(), runlog.EventsFile) {
		t.Errorf("settled: %v", err)
	}
	if part(t, dir) != held {
		t.Errorf("it cost %v of the budget and held %v", part(t, dir), held)
	}
	copyDir(t, out, out+"-copy") // whose token a resume spends
	if _, err := Resume(t.Context(), out+"-copy", Env{Workers: 1}); err == nil || part(t, dir) != held {
		t.Errorf("resumed: %v; it holds %v", err, part(t, dir))
	}
}

// A plan of another order or currency than the one that was fixed beforehand is a finding, also where the
// configuration, the model's guarantee and the record agree with it.
func TestVerifyRefusesASwappedFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "method: {name: greedy, batch: 200, steps: 5}")
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	wantHolds(t, dir, out)
	m := job.Method.(methodtest.Greedy)
	for _, swapped := range []privacy.Filtered{
		{Currency: privacy.InRDP, Order: m.Filter.Order + 1, Epsilon: 1, Delta: 1e-5},
		{Currency: privacy.InZCDP, Epsilon: 1, Delta: 1e-5},
		{Currency: privacy.InRDP, Order: m.Filter.Order, Epsilon: 0.9, Delta: 1e-5},
	} {
		info, err := runlog.ReadInfo(out)
		if err != nil {
			t.Fatal(err)
		}
		m.Filter = swapped
		if info.Plan, err = privacy.MarshalEvent(swapped); err != nil {
			t.Fatal(err)
		}
		if info.Config, err = method.Encode(m); err != nil {
			t.Fatal(err)
		}
		if err := runlog.WriteInfo(out, info); err != nil {
			t.Fatal(err)
		}
		found := holds(t, dir, out)
		if found["ledger"].Holds || found["model"].Holds || swapped.Currency == privacy.InZCDP && found["charges"].Holds {
			t.Errorf("%v: %+v", swapped, found)
		}
	}
}
