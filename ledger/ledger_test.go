package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

func TestLifeOfARun(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		clock := time.Date(2026, 11, 20, 12, 0, 0, 5e6, time.FixedZone("east", 3600))
		l.now = func() time.Time { return clock }
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5)))

		r := reservation("clinic", "r1")
		r.Epsilon, r.Why = 0.4, "first model"
		token := reserve(t, l, r)
		if len(token) != 32 {
			t.Errorf("token %q has not 128 bits in hexadecimal", token)
		}
		must(t, l.Check(ctx, "r1", token))
		wantError(t, l.Check(ctx, "r1", NewToken()), ErrStaleToken)
		wantError(t, l.Check(ctx, "r2", token), ErrUnknownRun)
		_, err := l.Reserve(ctx, r)
		wantError(t, err, ErrRunExists)

		// R7: the token is for one use.
		next := NewToken()
		must(t, l.Resume(ctx, "r1", token, next, nil))
		wantError(t, l.Resume(ctx, "r1", token, NewToken(), nil), ErrStaleToken)
		wantError(t, l.Check(ctx, "r1", token), ErrStaleToken)
		wantError(t, l.Settle(ctx, "r1", token, Settlement{Outcome: Abandoned}), ErrStaleToken)
		wantError(t, l.Resume(ctx, "r1", next, token, nil), ErrStaleToken) // never back to an old one
		if err := l.Resume(ctx, "r1", next, "short", nil); err == nil {
			t.Error("a new token of the wrong length was taken")
		}
		must(t, l.Check(ctx, "r1", next))

		end := Settlement{Outcome: Stopped, Epsilon: 0.25, Delta: 1e-7, Charged: json.RawMessage(`{"event":"composed"}`)}
		must(t, l.Settle(ctx, "r1", next, end))
		wantError(t, l.Check(ctx, "r1", next), ErrSettled)
		wantError(t, l.Settle(ctx, "r1", next, end), ErrSettled)
		wantError(t, l.Resume(ctx, "r1", next, NewToken(), nil), ErrSettled)

		at := time.Date(2026, 11, 20, 11, 0, 0, 5e6, time.UTC)
		wantRun := Run{ID: "r1", Dataset: "clinic", Caps: Caps{0.4, 1e-7}, Why: "first model", State: StateSettled,
			Reserved: at, Resumes: 1, SettledAt: &at, Settlement: &end}
		wantData := Dataset{Name: "clinic", Unit: "record", Adjacency: privacy.AddRemove, Currency: "caps", Created: at,
			Budget: &Caps{1, 1e-5}, Spent: Caps{0.4, 1e-7}, Left: &Caps{0.6, 9.9e-6}, Runs: 1,
			Statement: "All runs on this dataset, including future ones, are together (ε 1, δ 0.00001)-differentially private for each record, under add-or-remove; so far (ε 0.4, δ 10⁻⁷) is reserved. Accesses before 2026-11-20 11:00:00 UTC are not recorded here."}
		look := func(l *Ledger) {
			t.Helper()
			run, err := l.Run(ctx, "r1")
			must(t, err)
			if !reflect.DeepEqual(run, wantRun) {
				t.Errorf("run: found %+v; want %+v", run, wantRun)
			}
			runs, err := l.Runs(ctx, "clinic")
			must(t, err)
			if !reflect.DeepEqual(runs, []Run{wantRun}) {
				t.Errorf("runs: found %+v", runs)
			}
			data, err := l.Datasets(ctx)
			must(t, err)
			if !reflect.DeepEqual(data, []Dataset{wantData}) {
				t.Errorf("datasets: found %+v; want %+v", data, wantData)
			}
			one, err := l.Dataset(ctx, "clinic")
			must(t, err)
			if !reflect.DeepEqual(one, wantData) {
				t.Errorf("dataset: found %+v; want %+v", one, wantData)
			}
			if n := verify(t, l); n != 5 { // dataset, budget, reserve, resume, settle
				t.Errorf("the chain has %d entries; want 5", n)
			}
		}
		look(l)
		must(t, l.Close())
		l = open(t, where)
		look(l)

		entries, err := l.Entries(ctx, "clinic")
		must(t, err)
		var kinds []Kind
		for _, e := range entries {
			kinds = append(kinds, e.Kind)
			for _, secret := range []string{token, next} {
				if strings.Contains(string(e.Payload), secret) {
					t.Errorf("entry %d holds a token itself", e.Seq)
				}
			}
		}
		if want := []Kind{KindDataset, KindBudget, KindReserve, KindResume, KindSettle}; !reflect.DeepEqual(kinds, want) {
			t.Errorf("found the kinds %v; want %v", kinds, want)
		}
		if more, err := l.Entries(ctx, "none"); err != nil || len(more) != 0 {
			t.Errorf("entries of no dataset: %v, %v", more, err)
		}
		_, err = l.Dataset(ctx, "none")
		wantError(t, err, ErrUnknownDataset)
		_, err = l.Run(ctx, "none")
		wantError(t, err, ErrUnknownRun)
	})
}

func TestBudgetIsExactAndFinal(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-6)))
		for i := range 10 { // in float64 the sum of ten tenths is below 1, of three above 0.3
			r := reservation("clinic", fmt.Sprint("r", i))
			token := reserve(t, l, r)
			if i == 0 { // R1: nothing is refunded, whatever the run did
				must(t, l.Settle(ctx, r.Run, token, Settlement{Outcome: Abandoned}))
			}
			if i == 2 {
				d, err := l.Dataset(ctx, "clinic")
				must(t, err)
				if d.Spent.Epsilon != 0.3 || d.Left.Epsilon != 0.7 || d.Open != 2 {
					t.Errorf("after three: %+v", d)
				}
			}
		}
		r := reservation("clinic", "one more")
		r.Epsilon, r.Delta = 5e-324, 0
		before, err := l.Head(ctx)
		must(t, err)
		_, err = l.Reserve(ctx, r)
		wantError(t, err, privacy.ErrExhausted)
		for _, part := range []string{`"clinic"`, `"one more"`, "(ε 5 × 10⁻³²⁴, δ 0)", "(ε 1, δ 0.000001)", "(ε 0, δ 0) is left"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the refusal does not say %s: %v", part, err)
			}
		}
		if after, err := l.Head(ctx); err != nil || after != before {
			t.Errorf("a refusal moved the head from %v to %v (%v)", before, after, err)
		}

		// More budget admits more; less takes nothing back and refuses everything.
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(2, 1e-6)))
		must(t, errorOnly(l.Reserve(ctx, r)))
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(0.5, 1e-6)))
		r.Run = "after lowering"
		wantError(t, errorOnly(l.Reserve(ctx, r)), privacy.ErrExhausted)
		d, err := l.Dataset(ctx, "clinic")
		must(t, err)
		if *d.Left != (Caps{}) || d.Spent.Epsilon != 1 || !strings.Contains(d.Statement, "which was lowered later") {
			t.Errorf("after lowering: %+v", d)
		}

		// δ has a budget of its own.
		must(t, l.SetBudget(ctx, "pure", "record", "", budget(1, 0)))
		wantError(t, errorOnly(l.Reserve(ctx, reservation("pure", "with delta"))), privacy.ErrExhausted)
		r = reservation("pure", "without delta")
		r.Delta = 0
		must(t, errorOnly(l.Reserve(ctx, r)))
		verify(t, l)
	})
}

func errorOnly(_ string, err error) error { return err }

func TestWithoutABudgetRunsAreRecorded(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := open(t, where)
		for i := range 3 {
			r := reservation("open", fmt.Sprint("r", i))
			r.Epsilon, r.Delta = 1e6, 0.5
			reserve(t, l, r)
		}
		d, err := l.Dataset(t.Context(), "open")
		must(t, err)
		if d.Budget != nil || d.Left != nil || d.Spent != (Caps{3e6, 1.5}) || !strings.HasPrefix(d.Statement, "No lifetime budget is set") {
			t.Errorf("found %+v", d)
		}
		// A budget set later counts what was there.
		must(t, l.SetBudget(t.Context(), "open", "record", "", budget(3e6, 0.9)))
		wantError(t, errorOnly(l.Reserve(t.Context(), reservation("open", "late"))), privacy.ErrExhausted)
		verify(t, l)
	})
}

func TestWhatADatasetFixes(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		reserve(t, l, reservation("clinic", "first"))
		other := reservation("clinic", "second")
		other.Adjacency = privacy.ReplaceOne
		unit := reservation("clinic", "second")
		unit.Unit = "person"
		currency := reservation("clinic", "second")
		currency.Currency = "zcdp"
		for _, c := range []struct {
			field string
			err   error
		}{
			{"adjacency", errorOnly(l.Reserve(ctx, other))},
			{"adjacency", l.SetBudget(ctx, "clinic", "record", "", privacy.Budget{Epsilon: 1, Delta: 0, Adjacency: privacy.ReplaceOne})},
			{"unit", errorOnly(l.Reserve(ctx, unit))},
			{"currency", errorOnly(l.Reserve(ctx, currency))},
		} {
			var mismatch *MismatchError
			if !errors.As(c.err, &mismatch) || mismatch.Field != c.field || mismatch.Dataset != "clinic" {
				t.Errorf("want a mismatch of the %s; found %v", c.field, c.err)
			}
		}
		currency.Dataset = "new"
		if _, err := l.Reserve(ctx, currency); err == nil || !strings.Contains(err.Error(), `choose "caps"`) {
			t.Errorf("a new dataset in another currency: %v", err)
		}
		if n := verify(t, l); n != 2 {
			t.Errorf("refusals left entries: %d", n)
		}
	})
}

func TestBadArguments(t *testing.T) {
	l := open(t, t.TempDir()+"/ledger.db")
	ctx := t.Context()
	for name, change := range map[string]func(*Reservation){
		"epsilon 0":       func(r *Reservation) { r.Epsilon = 0 },
		"epsilon below 0": func(r *Reservation) { r.Epsilon = -1 },
		"epsilon NaN":     func(r *Reservation) { r.Epsilon = math.NaN() },
		"epsilon Inf":     func(r *Reservation) { r.Epsilon = math.Inf(1) },
		"delta below 0":   func(r *Reservation) { r.Delta = -1e-9 },
		"delta 1":         func(r *Reservation) { r.Delta = 1 },
		"delta NaN":       func(r *Reservation) { r.Delta = math.NaN() },
		"no dataset":      func(r *Reservation) { r.Dataset = "" },
		"long dataset":    func(r *Reservation) { r.Dataset = strings.Repeat("x", 201) },
		"dataset in NUL":  func(r *Reservation) { r.Dataset = "a\x00b" },
		"run not UTF-8":   func(r *Reservation) { r.Run = "\xff" },
		"no run":          func(r *Reservation) { r.Run = "" },
		"no unit":         func(r *Reservation) { r.Unit = "" },
		"no adjacency":    func(r *Reservation) { r.Adjacency = 0 },
		"short mark":      func(r *Reservation) { r.Mark = []byte{1} },
	} {
		r := reservation("clinic", "r")
		change(&r)
		if token, err := l.Reserve(ctx, r); err == nil || token != "" {
			t.Errorf("%s was admitted: %q, %v", name, token, err)
		}
	}
	if err := l.SetBudget(ctx, "clinic", "record", "", budget(0, 0)); err == nil {
		t.Error("a lifetime budget of 0 was set")
	}
	if err := l.RecordAccess(ctx, "clinic", nil, "", "why"); err == nil {
		t.Error("an access by no run was recorded")
	}
	if err := l.RecordAccess(ctx, "clinic", []byte("short"), "r", "why"); err == nil {
		t.Error("an access with a mark that is none was recorded")
	}
	token := reserve(t, l, reservation("clinic", "r"))
	for name, s := range map[string]Settlement{
		"no outcome":        {},
		"unknown outcome":   {Outcome: "lost"},
		"infinite cost":     {Outcome: Done, Epsilon: math.Inf(1)},
		"charged, not JSON": {Outcome: Done, Charged: json.RawMessage("{")},
		"charged, no UTF-8": {Outcome: Done, Charged: json.RawMessage("\"\xff\"")},
	} {
		if err := l.Settle(ctx, "r", token, s); err == nil {
			t.Errorf("settled with %s", name)
		}
	}
	must(t, l.Check(ctx, "r", token))
	// A run with much noise costs less than a float64 says: 0.
	must(t, l.Settle(ctx, "r", token, Settlement{Outcome: Done, Delta: 1e-6}))
}

// A budget that was raised makes earlier words false; the statement says so.
func TestRaisedBudget(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		for i, epsilon := range []float64{1, 0.5, 0.5, 2} {
			must(t, l.SetBudget(ctx, "clinic", "record", "", budget(epsilon, 1e-5)))
			d, err := l.Dataset(ctx, "clinic")
			must(t, err)
			if raised := strings.Contains(d.Statement, "The budget was raised on"); raised != (i == 3) {
				t.Errorf("budget %d: found the statement %q", i, d.Statement)
			}
		}
	})
}

// R3.
func TestNotPrivate(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		look := func(dataset string) {
			t.Helper()
			must(t, l.RecordAccess(ctx, dataset, nil, "eval-1", "test scores that nobody paid for"))
		}
		reserve(t, l, reservation("free", "r1"))
		// Without a budget too: what is said of the runs so far would be false.
		look("free")
		if free, err := l.Dataset(ctx, "free"); err != nil || free.Void == nil || !strings.HasPrefix(free.Statement, "There is no lifetime guarantee") {
			t.Errorf("after a look: %+v, %v", free, err)
		}
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5)))
		since := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
		l.now = func() time.Time { return since }
		look("clinic")
		l.now = time.Now
		look("clinic")
		d, err := l.Dataset(ctx, "clinic")
		must(t, err)
		if want := (Access{since, "eval-1", "test scores that nobody paid for"}); d.Void == nil || *d.Void != want {
			t.Errorf("found %+v; want the first look %+v", d.Void, want)
		}
		if !strings.HasPrefix(d.Statement, "There is no lifetime guarantee: since 2026-11-20 09:30:00 UTC it is void") {
			t.Errorf("found the statement %q", d.Statement)
		}
		// The budget still binds, and raising it heals nothing.
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(2, 1e-5)))
		r := reservation("clinic", "big")
		r.Epsilon = 3
		wantError(t, errorOnly(l.Reserve(ctx, r)), privacy.ErrExhausted)
		if d, err = l.Dataset(ctx, "clinic"); err != nil || d.Void == nil {
			t.Errorf("the look was forgotten: %+v, %v", d, err)
		}

		// A lab run that reserves is one too.
		r = reservation("lab", "seeded")
		r.Lab, r.Why = true, "seed 7"
		token := reserve(t, l, r)
		must(t, l.Check(ctx, "seeded", token))
		if d, err = l.Dataset(ctx, "lab"); err != nil || d.Void == nil || d.Void.Why != "a lab run: seed 7" || d.Spent.Epsilon != 0.1 {
			t.Errorf("after a lab run: %+v, %v", d, err)
		}
		verify(t, l)
	})
}

// A4: an access of a dataset that has not entered is the first entry of its name, and counts for its content, whatever
// unit, adjacency and currency the dataset enters with.
func TestA4FirstAccessCounts(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.RecordAccess(ctx, "clinic", make([]byte, 32), "lab-1", "a lab run"))
		must(t, l.RecordAccess(ctx, "clinic", nil, "lab-2", "a lab run"))
		d, err := l.Dataset(ctx, "clinic")
		must(t, err)
		if d.Name != "clinic" || d.Unit != "" || d.Currency != "" || d.Adjacency.Valid() || d.Void == nil || d.Void.Run != "lab-1" || !strings.HasPrefix(d.Statement, "There is no lifetime guarantee: since") {
			t.Errorf("after accesses alone: %+v", d)
		}
		if text, err := json.Marshal(d); err != nil || strings.Contains(string(text), "adjacency") {
			t.Errorf("%s, %v", text, err)
		}
		if all, err := l.Datasets(ctx); err != nil || len(all) != 1 || all[0].Name != "clinic" {
			t.Errorf("found %+v, %v", all, err)
		}
		known, err := l.Known(ctx)
		must(t, err)
		if len(known) != 1 || known[0].Protected || !known[0].Accessed[[32]byte{}] {
			t.Errorf("the gate is told %+v", known)
		}
		r := reservation("clinic", "run")
		r.Adjacency, r.Unit = privacy.ReplaceOne, "patient"
		reserve(t, l, r)
		if d, err = l.Dataset(ctx, "clinic"); err != nil || d.Void != nil {
			t.Errorf("other rows than those of the access: %+v, %v", d, err)
		}
		must(t, l.RecordAccess(ctx, "clinic", nil, "lab-3", "a lab run"))
		if d, err = l.Dataset(ctx, "clinic"); err != nil || d.Unit != "patient" || d.Void == nil || d.Void.Run != "lab-3" || !strings.HasPrefix(d.Statement, "There is no lifetime guarantee") {
			t.Errorf("after a run: %+v, %v", d, err)
		}
		if n := verify(t, l); n != 5 {
			t.Errorf("found %d entries; want 5", n)
		}
	})
}

// R4.
func TestKnown(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		mark := func(l *Ledger, rows string) []byte {
			h := l.NewMark()
			h.Write([]byte(rows))
			return h.Sum(nil)
		}
		for i, c := range [][2]string{{"clinic", "rows"}, {"clinic2", "rows"}, {"other", "other rows"}, {"a", "rows"}, {"a", "rows"}} {
			r := reservation(c[0], fmt.Sprint("r", i))
			r.Mark = mark(l, c[1])
			reserve(t, l, r)
		}
		reserve(t, l, reservation("unmarked", "r9"))
		l.Close()
		l = open(t, where) // the key stays
		must(t, l.SetBudget(ctx, "budget", "record", "", budget(1, 0)))
		known, err := l.Known(ctx)
		must(t, err)
		var names []string
		for _, k := range known {
			if k.Marks[[32]byte(mark(l, "rows"))] {
				names = append(names, k.Dataset)
			}
			if !k.Protected || k.Void || k.Marks[[32]byte(mark(l, "new rows"))] {
				t.Errorf("the gate is told %+v", k)
			}
		}
		if want := []string{"a", "clinic", "clinic2"}; len(known) != 6 || !slices.Equal(names, want) {
			t.Errorf("found %v among %d; want %v", names, len(known), want)
		}
		stranger := open(t, t.TempDir()+"/ledger.db")
		if reflect.DeepEqual(mark(stranger, "rows"), mark(l, "rows")) {
			t.Error("two ledgers mark with the same key")
		}
		verify(t, l)
	})
}

func TestGoroutinesNeverOverspend(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		var wg sync.WaitGroup
		ledgers := make([]*Ledger, 3)
		errs := make([]error, len(ledgers))
		for i := range ledgers { // they also race to make the tables
			wg.Go(func() { ledgers[i], errs[i] = Open(ctx, where) })
		}
		wg.Wait()
		for i, l := range ledgers {
			must(t, errs[i])
			defer l.Close()
		}
		must(t, ledgers[0].SetBudget(ctx, "clinic", "record", "", budget(0.7, 0.9)))
		for i, l := range ledgers {
			for g := range 2 {
				wg.Go(func() {
					for k := range 4 {
						_, err := l.Reserve(ctx, reservation("clinic", fmt.Sprintf("r%d.%d.%d", i, g, k)))
						if err != nil && !errors.Is(err, privacy.ErrExhausted) {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		d, err := ledgers[1].Dataset(ctx, "clinic")
		must(t, err)
		if d.Runs != 7 || d.Spent.Epsilon != 0.7 {
			t.Errorf("24 tries of 0.1 against 0.7 reserved %d runs, %v", d.Runs, d.Spent)
		}
		verify(t, ledgers[2])
	})
}

// The encoding of an entry never changes: a ledger of today must verify in ten years.
func TestDigestGolden(t *testing.T) {
	e := Entry{Seq: 7, Time: time.Date(2026, 11, 20, 12, 0, 0, 5e6, time.UTC), Kind: KindBudget, Dataset: "clinic", Run: "",
		Payload: []byte(`{"epsilon":1,"delta":0.00001}`), Prev: noHash}
	const want = "3070ff175a208471cdb08154d7be0a979ebf802f22dbb9d2d8de475aef41930b" // computed apart, in Python
	if got := e.digest(); got != want {
		t.Errorf("found %s; want %s", got, want)
	}
	text, err := json.Marshal(Caps{1, 1e-5})
	must(t, err)
	if string(text) != string(e.Payload) {
		t.Errorf("caps are stored as %s", text)
	}
}

// A copy of a directory that was made while its run went on holds the current
// token and lacks what the run released since: it must not draw that again (R7).
func TestResumeOfACopyThatIsBehind(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := open(t, where)
		ctx := t.Context()
		r := reservation("clinic", "r1")
		r.Token = NewToken()
		if token := reserve(t, l, r); token != r.Token {
			t.Fatal("the reservation does not keep the token that it was given")
		}
		must(t, l.Reach(ctx, "r1", r.Token, 10, batchesOf(10, 100)))
		must(t, l.Reach(ctx, "r1", r.Token, 30, batchesOf(30, 100)))
		must(t, l.Reach(ctx, "r1", r.Token, 20, batchesOf(20, 100))) // never back
		wantError(t, l.Reach(ctx, "r1", NewToken(), 40, batchesOf(40, 100)), ErrStaleToken)
		wantError(t, l.Resume(ctx, "r1", r.Token, NewToken(), batchesOf(29, 100)), ErrBehind)
		must(t, l.Check(ctx, "r1", r.Token)) // the refusal swapped nothing
		next := NewToken()
		must(t, l.Resume(ctx, "r1", r.Token, next, batchesOf(30, 100)))
		wantError(t, l.Reach(ctx, "r1", r.Token, 40, batchesOf(40, 100)), ErrStaleToken)
		must(t, l.Reach(ctx, "r1", next, 40, batchesOf(40, 100)))
		wantError(t, l.Settle(ctx, "r1", next, Settlement{Outcome: Abandoned, Batches: 39}), ErrBehind)
		must(t, l.Settle(ctx, "r1", next, Settlement{Outcome: Done, Batches: 40}))
		wantError(t, l.Reach(ctx, "r1", next, 50, batchesOf(50, 100)), ErrSettled)
		r = reservation("clinic", "r2")
		r.Token = "short"
		if _, err := l.Reserve(ctx, r); err == nil {
			t.Error("a token that is none passed")
		}
		verify(t, l)
	})
}

// Entries in words: what a person reads in `sotto ledger show`.
func TestWords(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5)))
		token := reserve(t, l, reservation("clinic", "r"))
		next := NewToken()
		must(t, l.Resume(ctx, "r", token, next, nil))
		must(t, l.Settle(ctx, "r", next, Settlement{Outcome: Stopped, Epsilon: 0.05, Delta: 1e-7}))
		must(t, l.RecordAccess(ctx, "clinic", nil, "r2", "lab run"))
		entries, err := l.Entries(ctx, "clinic")
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Words())
		}
		want := []string{
			"entered: unit record, add-or-remove, currency caps",
			"lifetime budget set to (ε 1, δ 0.00001)",
			"reserved (ε 0.1, δ 10⁻⁷)",
			"went on after a stop or crash",
			"stopped; the charged events cost (ε 0.05, δ 10⁻⁷), the reservation stays",
			"accessed without a guarantee: lab run",
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %q; want %q", got, want)
		}
		if text := (Entry{Kind: "later", Payload: json.RawMessage(`{"x":1}`)}).Words(); text != `{"x":1}` {
			t.Errorf("an unknown kind reads %q", text)
		}
	})
}

// The clock is set a year ahead, and a year back, between any two operations: what is held and spent does not change, and the
// chain holds. Times are only recorded.
func TestClockJumps(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		clock := time.Date(2026, 12, 31, 23, 59, 59, 999e6, time.UTC)
		jumps := 0
		l.now = func() time.Time {
			jumps++
			return clock.AddDate([]int{0, 1, -1}[jumps%3], 0, 0)
		}
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(1, 1e-6)))
		for i := range 6 {
			r := planned(fmt.Sprint("r", i), 10, filterSigma)
			token, next := reserve(t, l, r), NewToken()
			must(t, l.Reach(ctx, r.Run, token, 3, batchesOf(3, filterSigma)))
			must(t, l.Resume(ctx, r.Run, token, next, batchesOf(3, filterSigma)))
			if i%2 == 0 {
				must(t, l.Settle(ctx, r.Run, next, charged(3, filterSigma)))
			}
		}
		want := account.NewTally(account.ZCDPCurrency{}, privacy.AddRemove)
		must(t, want.Hold("", privacy.Repeated{Count: 3*3 + 3*10, Of: privacy.Gaussian{Sigma: filterSigma}}))
		must(t, l.Close())
		l = open(t, where)
		if found, want := part(t, l), want.Part(budget(1, 1e-6)); math.Abs(found/want-1) > 1e-12 {
			t.Errorf("found %v of the budget; want %v", found, want)
		}
		if n := verify(t, l); n != 2+6*2+3 || jumps < n {
			t.Errorf("%d entries, the clock was asked %d times", n, jumps)
		}
	})
}
