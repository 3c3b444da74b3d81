package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// mixed is a plan of two kinds of batches, of which the second costs a hundredth.
func mixed(run string) Reservation {
	r := reservation("clinic", run)
	r.Plan = privacy.Repeated{Count: 50, Of: privacy.Composed{privacy.Gaussian{Sigma: 100}, privacy.Gaussian{Sigma: 1000}}}
	return r
}

// mixedBatches is the first n batches of it, each one release.
func mixedBatches(n int) (all []Charges) {
	for i := range n {
		all = append(all, Charges{i, 1, privacy.Gaussian{Sigma: []float64{100, 1000}[i%2]}})
	}
	return all
}

func settlementOf(t *testing.T, charged []Charges) Settlement {
	t.Helper()
	all, err := lines(charged)
	must(t, err)
	e, err := eventOf(all)
	must(t, err)
	text, err := privacy.MarshalEvent(e)
	must(t, err)
	return Settlement{Outcome: Abandoned, Delta: 1e-7, Batches: end(all), Charged: text}
}

// A directory that shows other events than the ledger recorded, or more, cannot make a
// run cheaper: the whole plan is settled. The forged events here are an ordered
// part of the plan, of as many batches as the ledger knows.
func TestB1ForgedSettlement(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-5)))
		whole := 0.0
		for i, c := range []struct {
			name    string
			shown   Settlement
			wantPct float64 // of the whole plan
		}{
			{"honest", settlementOf(t, mixedBatches(40)), 0.4},
			{"cheaper", charged(40, 1000), 1},
			{"more", settlementOf(t, mixedBatches(42)), 1},
			{"other order", settlementOf(t, append([]Charges{{0, 20, privacy.Gaussian{Sigma: 100}}}, Charges{20, 20, privacy.Gaussian{Sigma: 1000}})), 1},
			{"an unplanned event", charged(40, 7), 1},
		} {
			run := fmt.Sprint("r", i)
			before := part(t, l)
			token := reserve(t, l, mixed(run))
			if i == 0 {
				whole = part(t, l)
			}
			for n := 4; n <= 40; n += 4 {
				must(t, l.Reach(ctx, run, token, n, mixedBatches(n)[n-4:]))
			}
			must(t, l.Settle(ctx, run, token, c.shown))
			if got := part(t, l) - before; math.Abs(got-c.wantPct*whole) > 1e-12 {
				t.Errorf("%s: settled for %v of the plan, want %v", c.name, got/whole, c.wantPct)
			}
			known, err := l.Run(ctx, run)
			must(t, err)
			if want := map[bool]string{true: BasisMismatch, false: BasisRecord}[i > 0]; known.Settlement.Basis != want {
				t.Errorf("%s: settled on the basis %q", c.name, known.Settlement.Basis)
			}
			entries, err := l.Entries(ctx, "clinic")
			must(t, err)
			if words := entries[len(entries)-1].Words(); strings.Contains(words, "the whole plan") != (i > 0) {
				t.Errorf("%s: the ledger says %q", c.name, words)
			}
		}
		verify(t, l)
		var left int
		must(t, l.store.db.QueryRow(`SELECT count(*) FROM sotto_charges`).Scan(&left))
		if left != 0 {
			t.Errorf("%d lines of charges are left of settled runs", left)
		}
	})
}

// A directory with other events than the ledger recorded cannot resume; one that shows
// more may: what was charged last before a kill was not released.
func TestB1ForgedResume(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-5)))
		token := reserve(t, l, mixed("r"))
		must(t, l.Reach(ctx, "r", token, 11, mixedBatches(11)))
		wantError(t, l.Resume(ctx, "r", token, NewToken(), batchesOf(11, 1000)), ErrOtherCharges)
		wantError(t, l.Resume(ctx, "r", token, NewToken(), mixedBatches(10)), ErrBehind)
		next := NewToken()
		must(t, l.Resume(ctx, "r", token, next, mixedBatches(14)))
		if n, err := l.Recorded(ctx, "r"); err != nil || n != 14 {
			t.Errorf("recorded %d, %v", n, err)
		}
		// Behind a resume a release may be left out, before it none.
		gap := append(mixedBatches(14), Charges{14, 1, privacy.Gaussian{Sigma: 1000}}, Charges{15, 1, privacy.Gaussian{Sigma: 1000}})
		must(t, l.Reach(ctx, "r", next, 16, gap[14:]))
		must(t, l.Settle(ctx, "r", next, settlementOf(t, gap)))
		verify(t, l)
		token = reserve(t, l, mixed("s"))
		must(t, l.Reach(ctx, "s", token, 2, batchesOf(2, 100)))
		if err := l.Settle(ctx, "s", token, charged(2, 100)); err == nil {
			t.Error("settled with a gap that no resume explains")
		}
		if err := l.Reach(ctx, "s", token, 9, []Charges{{7, 2, privacy.Gaussian{Sigma: 100}}}); err == nil {
			t.Error("recorded batches behind others that are not known")
		}
	})
}

// Of a run that an earlier version reserved the ledger knows the number of batches alone.
func TestB1RunOfAnEarlierVersion(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-5)))
		tokens, plans := map[string]string{}, map[string]Reservation{}
		for i := range 4 {
			name := fmt.Sprint("plain", i)
			plans[name] = planned(name, 100, 100)
			name = fmt.Sprint("mixed", i)
			plans[name] = mixed(name)
		}
		held := map[string]float64{}
		for name, r := range plans {
			before := part(t, l)
			tokens[name] = reserve(t, l, r)
			held[name] = part(t, l) - before
		}
		rewrite(t, l, func(all []Entry) []Entry {
			for i := range all {
				all[i].Payload = json.RawMessage(strings.Replace(string(all[i].Payload), `,"recorded":true`, "", 1))
			}
			return all
		})
		forget(t, l)
		for name := range plans {
			_, err := l.store.db.Exec(upsertProgress, name, 10)
			must(t, err)
		}
		for name, c := range map[string]struct {
			shown  []Charges
			resume bool
			want   float64
		}{
			"plain0": {batchesOf(10, 100), false, 0.1},
			"plain1": {batchesOf(12, 100), true, 0.12},
			"plain2": {batchesOf(12, 1000), false, 1},
			"mixed0": {mixedBatches(10), false, 1},
			"mixed1": {mixedBatches(10), true, 1},
			"mixed2": {batchesOf(10, 1000), true, 1},
		} {
			before := part(t, l)
			if c.resume {
				next := NewToken()
				must(t, l.Resume(ctx, name, tokens[name], next, c.shown))
				tokens[name] = next
			}
			must(t, l.Settle(ctx, name, tokens[name], settlementOf(t, c.shown)))
			if got, want := part(t, l)-before, (c.want-1)*held[name]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: gave back %v, want %v", name, -got, -want)
			}
		}
		wantError(t, l.Settle(ctx, "plain3", tokens["plain3"], settlementOf(t, batchesOf(9, 100))), ErrBehind)
		verify(t, l)
	})
}

// A settlement that the ledger did not record, with hashes that fit, is found.
func TestB1TamperedSettlement(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-5)))
		token := reserve(t, l, mixed("r"))
		must(t, l.Reach(ctx, "r", token, 4, mixedBatches(4)))
		must(t, l.Settle(ctx, "r", token, settlementOf(t, mixedBatches(4))))
		all, err := l.Entries(ctx, "")
		must(t, err)
		for name, change := range map[string][2]string{
			"cheaper":       {`{"event":"gaussian","sigma":100}`, `{"event":"gaussian","sigma":1000}`},
			"another basis": {`"basis":"record"`, `"basis":"none"`},
			"both":          {`"basis":"record"`, `"basis":"plan"`},
		} {
			rewrite(t, l, func([]Entry) []Entry {
				e := append([]Entry(nil), all...)
				last := &e[len(e)-1]
				last.Payload = json.RawMessage(strings.ReplaceAll(string(last.Payload), change[0], change[1]))
				return e
			})
			forget(t, l)
			var broken *ChainError
			if _, err := l.Verify(ctx); !errors.As(err, &broken) && !errors.Is(err, errNewer) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Many equal batches are one line.
func TestChargesAreRunLengthCoded(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		token := reserve(t, l, planned("r", 100_000, 100))
		for n := 0; n < 100_000; n += 5_000 {
			must(t, l.Reach(ctx, "r", token, n+5_000, []Charges{{n, 5_000, privacy.Gaussian{Sigma: 100}}}))
		}
		var rows int
		must(t, l.store.db.QueryRow(`SELECT count(*) FROM sotto_charges`).Scan(&rows))
		if n, err := l.Recorded(ctx, "r"); err != nil || n != 100_000 || rows != 1 {
			t.Errorf("%d batches in %d lines, %v", n, rows, err)
		}
	})
}

// A ledger of format 1 is read as it is, and gets a record of charges when it is opened to write.
func TestUpgradeOfFormat1(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		reserve(t, l, reservation("clinic", "r"))
		for _, statement := range []string{`DROP TABLE sotto_charges`, `UPDATE sotto_ledger SET version = 1`} {
			_, err := l.store.db.Exec(statement)
			must(t, err)
		}
		must(t, l.Close())
		v, err := View(ctx, where)
		must(t, err)
		verify(t, v)
		must(t, v.Close())
		l = open(t, where)
		var version int
		must(t, l.store.db.QueryRow(`SELECT version FROM sotto_ledger`).Scan(&version))
		if version != Version {
			t.Errorf("format %d", version)
		}
		token := reserve(t, l, reservation("clinic", "s"))
		must(t, l.Reach(ctx, "s", token, 3, batchesOf(3, 100)))
		verify(t, l)
	})
}

// A run that recorded ahead and comes back with less may have released what it draws
// again: it settles for its whole plan, also where it resumed once more after that.
func TestB1RecordedAheadAndDrawnAgain(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-5)))
		for name, c := range map[string]struct {
			shown int
			want  string
		}{"behind": {20, BasisPlan}, "not behind": {36, BasisRecord}} {
			before := part(t, l)
			token := reserve(t, l, planned(name, 100, 100))
			held := part(t, l) - before
			must(t, l.Reach(ctx, name, token, 20, batchesOf(36, 100)))
			for _, n := range []int{c.shown, 36} {
				next := NewToken()
				must(t, l.Resume(ctx, name, token, next, batchesOf(n, 100)))
				token = next
			}
			must(t, l.Settle(ctx, name, token, charged(36, 100)))
			known, err := l.Run(ctx, name)
			must(t, err)
			want := map[string]float64{BasisPlan: 1, BasisRecord: 0.36}[c.want]
			if got := (part(t, l) - before) / held; math.Abs(got-want) > 1e-9 || known.Settlement.Basis != c.want {
				t.Errorf("%s: settled for %v of the plan on the basis %q", name, got, known.Settlement.Basis)
			}
		}
		verify(t, l)
	})
}

// Rows that are missing beside the chain make no settlement cheaper.
func TestB1RecordThatIsMissing(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-5)))
		for i, c := range []struct {
			change []string
			resume bool
		}{
			{[]string{`DELETE FROM sotto_charges WHERE run = $1`, `DELETE FROM sotto_progress WHERE run = $1`}, false},
			{[]string{`DELETE FROM sotto_charges WHERE run = $1`}, false},
			{[]string{`DELETE FROM sotto_progress WHERE run = $1`}, false},
			{[]string{`DELETE FROM sotto_charges WHERE run = $1 AND first = 0`}, false},
			{[]string{`DELETE FROM sotto_charges WHERE run = $1 AND first = 9`}, false},
			{[]string{`DELETE FROM sotto_charges WHERE run = $1`, `UPDATE sotto_progress SET batches = 0 WHERE run = $1`}, true},
		} {
			name := fmt.Sprint("r", i)
			before := part(t, l)
			token := reserve(t, l, mixed(name))
			held := part(t, l) - before
			must(t, l.Reach(ctx, name, token, 10, mixedBatches(10)))
			if c.resume {
				next := NewToken()
				must(t, l.Resume(ctx, name, token, next, mixedBatches(10)))
				token = next
			}
			for _, statement := range c.change {
				_, err := l.store.db.Exec(statement, name)
				must(t, err)
			}
			shown := Settlement{Outcome: Abandoned}
			if len(c.change) == 1 {
				shown = settlementOf(t, mixedBatches(10))
			}
			must(t, l.Settle(ctx, name, token, shown))
			known, err := l.Run(ctx, name)
			must(t, err)
			if got := (part(t, l) - before) / held; math.Abs(got-1) > 1e-9 || known.Settlement.Basis != BasisPlan {
				t.Errorf("%d: settled for %v of the plan on the basis %q", i, got, known.Settlement.Basis)
			}
		}
		// A run that released nothing gets everything back.
		before := part(t, l)
		token := reserve(t, l, mixed("idle"))
		must(t, l.Settle(ctx, "idle", token, Settlement{Outcome: Abandoned}))
		if got := part(t, l) - before; math.Abs(got) > 1e-12 {
			t.Errorf("a run without releases settled for %v", got)
		}
		verify(t, l)
	})
}
