package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

var update = flag.Bool("update", false, "write the state of TestFoldIsPinned")

// often is a disk on which an append writes a checkpoint as soon as so many entries follow the last one.
func often(every int64) Disk { return Disk{FS: machine.FS, Every: every} }

func openOn(t testing.TB, d Disk, where string) *Ledger {
	t.Helper()
	l, err := d.Open(t.Context(), where)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// kept is the stored checkpoint.
func kept(t testing.TB, l *Ledger) (c checkpoint, authentic bool) {
	t.Helper()
	c, _, authentic, _, err := l.stored(t.Context(), l.store.db)
	must(t, err)
	return c, authentic
}

func put(t testing.TB, l *Ledger, c checkpoint) {
	t.Helper()
	_, err := l.store.db.Exec(upsertCheckpoint, c.head.Seq, c.head.Hash, c.time, c.version, c.state, c.mac)
	must(t, err)
}

// pinned is a chain with every kind of entry, in every currency, of events of every kind that the currency has a theorem for.
func pinned(t testing.TB) (all []Entry) {
	t.Helper()
	head, at := Head{0, noHash}, time.Date(2026, 11, 30, 12, 0, 0, 5000, time.UTC)
	add := func(kind Kind, dataset, run string, payload any) {
		text, err := json.Marshal(payload)
		must(t, err)
		at = at.Add(time.Second)
		e := Entry{Seq: head.Seq + 1, Time: at, Kind: kind, Dataset: dataset, Run: run, Payload: text, Prev: head.Hash}
		e.Hash = e.digest()
		head, all = Head{e.Seq, e.Hash}, append(all, e)
	}
	zero := 0
	add(KindAccess, "unknown", "eval", notPrivate{"scores", strings.Repeat("ab", 32)})
	add(KindAccess, "caps", "eval", notPrivate{"scores", strings.Repeat("cd", 32)})
	for _, currency := range Currencies() {
		for _, adjacency := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			name := currency
			if adjacency == privacy.ReplaceOne {
				name += " replaced"
			}
			add(KindDataset, name, "", datasetFacts{"record", adjacency, currency})
			add(KindBudget, name, "", Caps{1, 1e-5})
			add(KindBudget, name, "", Caps{1000, 1e-4})
			add(KindBudget, name, "", Caps{900, 1e-4})
			for i, of := range []privacy.Event{
				privacy.Gaussian{Sigma: 3}, privacy.GaussianSum{Presence: 4, Replacement: 3}, privacy.Laplace{Scale: 9}, privacy.PureDP{Epsilon: 0.1},
				privacy.Select{Epsilon: 0.3}, privacy.ApproxDP{Epsilon: 0.1, Delta: 1e-9}, privacy.AboveThreshold{Threshold: 9, Query: 19, Max: 3},
				privacy.PoissonSampled{Rate: 0.01, Of: privacy.Gaussian{Sigma: 2}}, privacy.FixedSampled{M: 5, N: 1000, Of: privacy.Gaussian{Sigma: 2}},
			} {
				plan := privacy.Repeated{Count: 7, Of: of}
				if c := filter(currency); c != nil && account.NewTally(c, adjacency).Hold("", plan) != nil {
					continue
				}
				for state := range 4 { // open, resumed, settled for a part, settled for the plan
					run := fmt.Sprint(name, "-", i, ".", state)
					p := reserved{Caps: Caps{0.1 * float64(i+1), 1e-7}, Token: tokenHash(run), Mark: hexSum([]byte(name)), Recorded: true, Compared: true, Lab: i == 0}
					if i == 1 {
						p.Parts, p.Compared = []string{strings.Repeat("01", 32), strings.Repeat("02", 32)}, false
					}
					s := settled{Settlement: Settlement{Outcome: Done, Epsilon: 0.01, Delta: 1e-7}}
					if currency != InCaps {
						text, err := privacy.MarshalEvent(plan)
						must(t, err)
						p.Event = text
						s.Currency, s.Basis = currency, BasisPlan
					}
					if i == 0 && state == 0 {
						alone := 2.5
						p.Shares = &account.Shares{Sharing: privacy.Sharing{Owners: 3, Colluders: 1}, Alone: &alone}
					}
					add(KindReserve, name, run, p)
					if state >= 1 {
						add(KindResume, name, run, resumed{tokenHash(run), tokenHash(run + "'"), &zero, state == 3})
					}
					if state == 2 && currency != InCaps {
						text, err := privacy.MarshalEvent(privacy.Repeated{Count: 3, Of: of})
						must(t, err)
						s.Basis, s.Batches, s.Charged = BasisRecord, 3, text
					}
					if state >= 2 {
						add(KindSettle, name, run, s)
					}
				}
			}
		}
	}
	add(KindNotPrivate, "caps", "lab", notPrivate{"a lab run", ""})
	at = at.Add(time.Hour)
	add(KindRestore, "", "", Restoration{Found: Older, Last: Head{99, noHash}, Seen: &at, Head: head})
	return all
}

// The stored state of a fixed chain is that of testdata/fold.json, whose version is the fold's: a change to what apply or the accounts
// compute needs another foldVersion, or ledgers would go on from sums of the earlier one.
func TestFoldIsPinned(t *testing.T) {
	b := newBooks()
	for _, e := range pinned(t) {
		if _, err := b.apply(e); err != nil {
			t.Fatalf("entry %d, %s of %s: %v", e.Seq, e.Kind, e.Run, err)
		}
	}
	s, err := b.saved()
	must(t, err)
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetIndent("", " ")
	must(t, out.Encode(s))
	path := filepath.Join("testdata", "fold-"+foldVersion+".json")
	if *update {
		must(t, os.WriteFile(path, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if err := (checkpoint{state: string(want)}).agrees(b); err != nil {
		t.Errorf("the state of the fixed chain is not that of %s: %v\nIf a change to the accounts or to the state is meant, raise foldVersion and run with -update; found\n%s",
			path, err, text.String())
	}
	currencies := map[string]int{}
	for _, d := range s.Datasets {
		if d.Tally != nil {
			currencies[d.Facts.Currency] += len(d.Tally.Plans)
		}
	}
	if currencies[InZCDP] < 8 || currencies[InGDP] < 2 || currencies[InRDP] < 8 {
		t.Errorf("the chain holds too few plans to pin the accounts: %v", currencies)
	}
}

// From a checkpoint after any entry, the rest of the chain leads to the same state as from the first entry on.
func TestCheckpointGoesOn(t *testing.T) {
	entries := pinned(t)
	whole := newBooks()
	for _, e := range entries {
		_, err := whole.apply(e)
		must(t, err)
	}
	views := func(b *books) (all []Dataset) {
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range b.datasets {
				if !yield(name) {
					return
				}
			}
		}) {
			d := b.dataset(name)
			all = append(all, d.view())
		}
		return all
	}
	want := views(whole)
	b, key := newBooks(), []byte("key")
	for i, e := range entries {
		_, err := b.apply(e)
		must(t, err)
		if i%7 > 0 && i < len(entries)-2 {
			continue
		}
		c, err := b.checkpoint(key)
		must(t, err)
		again, err := c.books()
		must(t, err)
		if twice, err := again.checkpoint(key); err != nil || twice != c {
			t.Fatalf("after entry %d the state that was read back is stored in another way (%v)", e.Seq, err)
		}
		if !reflect.DeepEqual(views(again), views(b)) {
			t.Fatalf("after entry %d the checkpoint reads as\n%+v; want\n%+v", e.Seq, views(again), views(b))
		}
		for _, e := range entries[i+1:] {
			_, err := again.apply(e)
			must(t, err)
		}
		if !reflect.DeepEqual(views(again), want) || again.head != whole.head {
			t.Fatalf("from the checkpoint after entry %d on, the chain leads to\n%+v; want\n%+v", e.Seq, views(again), want)
		}
		must(t, c.agrees(b))
	}
}

// A ledger whose chain is behind its checkpoint, or another one, is refused however it is opened, also by an owner who never saw it: it is
// an older copy, or one that went on by itself (R25). Accepting it records that, and drops the checkpoint.
func TestCheckpointShowsARollback(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		owner(t)
		l := openOn(t, often(1), where)
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5)))
		for i := range 4 {
			reserve(t, l, reservation("clinic", fmt.Sprint("r", i)))
		}
		must(t, l.Close())
		c, authentic := kept(t, openOn(t, often(1), where))
		if !authentic || c.head.Seq != 6 {
			t.Fatalf("the checkpoint is of entry %d (authentic: %v); want the last, 6", c.head.Seq, authentic)
		}
		for name, change := range map[string]struct {
			to    func([]Entry) []Entry
			found string
		}{
			"ahead": {func(e []Entry) []Entry { return e[:4] }, Older},
			"off": {func(e []Entry) []Entry {
				e[4].Payload = bytes.Replace(e[4].Payload, []byte("0.1"), []byte("0.2"), 1)
				return e
			}, Forked},
			"off, long": {func(e []Entry) []Entry { e = slices.Insert(e[:5:5], 5, e[4]); e[5].Run = "other"; return e }, Forked},
		} {
			t.Run(name, func(t *testing.T) {
				l := openOn(t, often(1000), where)
				entries, err := l.Entries(ctx, "")
				must(t, err)
				put(t, l, c)
				rewrite(t, l, change.to)
				owner(t)
				lostAs(t, where, change.found)
				var broken *ChainError
				var lost *WitnessError
				if _, err := l.Verify(ctx); !errors.As(err, &broken) && !errors.As(err, &lost) {
					t.Errorf("verify: found %v", err)
				}
				r, err := Accept(ctx, where)
				must(t, err)
				if r.Found != change.found || r.Last != c.head {
					t.Errorf("the restoration says %+v; want that the checkpoint's entry was seen", r)
				}
				again := openOn(t, often(1), where)
				reserve(t, again, reservation("clinic", "next"))
				if d, err := again.Dataset(ctx, "clinic"); err != nil || len(d.Restored) != 1 {
					t.Errorf("the dataset is %+v (%v)", d, err)
				}
				if now, authentic := kept(t, again); !authentic || now.head == c.head {
					t.Errorf("the checkpoint is still %+v", now.head)
				}
				verify(t, again)
				again.Close()
				rewrite(t, l, func([]Entry) []Entry { return entries[:6] })
				put(t, l, c)
				owner(t)
				verify(t, l)
			})
		}
	})
}

// A process that opened the ledger before it was rolled back finds that when it is about to overwrite the checkpoint.
func TestCheckpointIsNotOverwritten(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		owner(t)
		l := openOn(t, often(3), where)
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5))) // 2 entries: none is due
		other := openOn(t, often(1), where)
		reserve(t, other, reservation("clinic", "forgotten"))
		c, _ := kept(t, other)
		rewrite(t, other, func(e []Entry) []Entry { return e[:2] })
		if c.head.Seq != 3 {
			t.Fatalf("the checkpoint is of entry %d", c.head.Seq)
		}
		_, err := l.Reserve(ctx, reservation("clinic", "r"))
		wantError(t, err, ErrWitness)
		if now, authentic := kept(t, l); !authentic || now != c {
			t.Error("the checkpoint was overwritten")
		}
		if n := len(errorless(l.Entries(ctx, ""))(t)); n != 2 {
			t.Errorf("%d entries; the refused reservation left one", n)
		}
	})
}

func errorless[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// A checkpoint that is older than the chain, torn, forged, of another key or of another version leads to no other answer than none does;
// verify names a damaged one, and the next append replaces all but the older one.
func TestDamagedCheckpoints(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := openOn(t, often(1), where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(3, 1e-5)))
		first := reserve(t, l, planned("a", 300, filterSigma))
		must(t, l.Reach(ctx, "a", first, 100, batchesOf(100, filterSigma)))
		older, _ := kept(t, l)
		must(t, l.Settle(ctx, "a", first, charged(100, filterSigma)))
		reserve(t, l, planned("b", 300, filterSigma))
		must(t, l.RecordAccess(ctx, "other", nil, "lab", "scores"))
		want := errorless(l.Datasets(ctx))(t)
		c, _ := kept(t, l)
		if older.head.Seq >= c.head.Seq || !strings.Contains(c.state, `"epsilon":3`) {
			t.Fatalf("the checkpoints are of %d and %d: %s", older.head.Seq, c.head.Seq, c.state)
		}
		with := func(change func(*checkpoint)) checkpoint { c := c; change(&c); return c }
		for name, k := range map[string]struct {
			c     checkpoint
			valid bool
		}{
			"older":           {older, true},
			"torn":            {with(func(c *checkpoint) { c.state = c.state[:len(c.state)/2] }), false},
			"empty":           {with(func(c *checkpoint) { c.state = "" }), false},
			"forged":          {with(func(c *checkpoint) { c.state = strings.Replace(c.state, `"epsilon":3`, `"epsilon":9`, 1) }), false},
			"forged, ahead":   {with(func(c *checkpoint) { c.head.Seq = 1 << 40 }), false},
			"moved":           {with(func(c *checkpoint) { c.head = older.head }), false},
			"of another key":  {with(func(c *checkpoint) { c.mac = c.sum([]byte("another")) }), false},
			"another version": {with(func(c *checkpoint) { c.version = "0 v0.1.0"; c.mac = c.sum(l.key) }), true},
			"of no books":     {with(func(c *checkpoint) { c.version = "0 v0.1.0"; c.state = "[]"; c.mac = c.sum(l.key) }), true},
			"without MAC":     {with(func(c *checkpoint) { c.mac = "" }), false},
		} {
			put(t, l, k.c)
			for _, open := range []func() (*Ledger, error){
				func() (*Ledger, error) { return View(ctx, where) }, func() (*Ledger, error) { return often(1000).Open(ctx, where) },
			} {
				again, err := open()
				must(t, err)
				if got := errorless(again.Datasets(ctx))(t); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: found %+v; want %+v", name, got, want)
				}
				_, err = again.Verify(ctx)
				if damaged := (*ChainError)(nil); k.valid != (err == nil) || !k.valid && (!errors.As(err, &damaged) || !strings.Contains(err.Error(), "its checkpoint is damaged")) {
					t.Errorf("%s: verify says %v", name, err)
				}
				must(t, again.Close())
			}
			if name == "older" {
				continue
			}
			// Any append, of a Ledger that has read nothing yet.
			again := openOn(t, often(1), where)
			must(t, again.SetBudget(ctx, "clinic", "record", "", budget(3, 1e-5)))
			if now, authentic := kept(t, again); !authentic || now.version != fold() || now.head != errorless(again.Head(ctx))(t) {
				t.Errorf("%s: after an append the checkpoint is of %d, %q (authentic: %v)", name, now.head.Seq, now.version, authentic)
			}
			verify(t, again)
			want = errorless(again.Datasets(ctx))(t)
			again.Close()
		}
	})
}

// An authentic checkpoint that holds another state than the entries is found by verify: a person with the ledger's key can write one.
func TestVerifyComparesTheCheckpoint(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := openOn(t, often(1), where)
		must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(3, 1e-5)))
		token := reserve(t, l, planned("a", 300, filterSigma))
		must(t, l.Reach(ctx, "a", token, 100, batchesOf(100, filterSigma)))
		must(t, l.Settle(ctx, "a", token, charged(100, filterSigma)))
		reserve(t, l, planned("b", 300, filterSigma))
		c, _ := kept(t, l)
		verify(t, l)
		for _, change := range [][2]string{{`"runs":2`, `"runs":1`}, {`"epsilon":3`, `"epsilon":4`}, {`"b":0`, `"c":0`}, {`"count":300`, `"count":200`},
			{`"settled":[["`, `"settled":[["1`}, {`"datasets":[`, `"more":[`}, {`"cost":["`, `"cost":["1`}} {
			forged := c
			forged.state = strings.Replace(c.state, change[0], change[1], 1)
			forged.mac = forged.sum(l.key)
			if forged.state == c.state {
				t.Fatalf("%s is not in %s", change[0], c.state)
			}
			put(t, l, forged)
			var broken *ChainError
			if _, err := l.Verify(ctx); !errors.As(err, &broken) || broken.Seq != c.head.Seq || !strings.Contains(err.Error(), "holds another state") {
				t.Errorf("%s: verify says %v", change[1], err)
			}
		}
		put(t, l, c)
		verify(t, l)
	})
}

// An entry behind the checkpoint that was changed has no effect on what a run may spend, and verify finds it. A chain that does not hold
// gets no checkpoint, and stays in use where an operation does not depend on it.
func TestTamperingBehindTheCheckpoint(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := openOn(t, often(1), where)
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(0.25, 1e-5)))
		reserve(t, l, reservation("clinic", "r1"))
		token := reserve(t, l, reservation("clinic", "r2"))
		_, err := l.store.db.Exec(`UPDATE sotto_entries SET payload = '{"epsilon":1000,"delta":0.5}' WHERE seq = 2`)
		must(t, err)
		again := openOn(t, often(1), where)
		_, err = again.Reserve(ctx, reservation("clinic", "r3"))
		wantError(t, err, privacy.ErrExhausted)
		var broken *ChainError
		if _, err := again.Verify(ctx); !errors.As(err, &broken) || broken.Seq != 2 {
			t.Errorf("verify says %v", err)
		}
		c, _ := kept(t, again)
		c.mac = "" // now all must be read
		put(t, again, c)
		third := openOn(t, often(1), where)
		if _, err := third.Reserve(ctx, reservation("clinic", "r3")); !errors.As(err, &broken) || broken.Seq != 2 {
			t.Errorf("reserve: found %v", err)
		}
		must(t, third.Resume(ctx, "r2", token, NewToken(), nil))
		if _, authentic := kept(t, third); authentic {
			t.Error("a chain that does not hold has got a checkpoint")
		}
	})
}

// A usual ledger has no checkpoint until its chain is long, so that earlier versions find nothing new in it.
func TestSmallLedgersHaveNoCheckpoint(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5)))
		can := func() (can int) {
			must(t, l.store.db.QueryRow(l.store.checkpoint).Scan(&can))
			return can
		}
		if *every > 0 {
			t.Skip("with -every")
		}
		fill(t, l, "clinic", "a", everyEntries/2-2)
		if can() != canCreate {
			t.Errorf("%d entries have a checkpoint", len(errorless(l.Entries(ctx, ""))(t)))
		}
		fill(t, l, "clinic", "b", 1)
		if c, authentic := kept(t, l); can() != canWrite || !authentic || c.head.Seq != everyEntries {
			t.Errorf("the checkpoint is of entry %d", c.head.Seq)
		}
		fill(t, l, "clinic", "c", everyEntries/2-1)
		if c, _ := kept(t, l); c.head.Seq != everyEntries {
			t.Errorf("after fewer entries than are due the checkpoint is of entry %d", c.head.Seq)
		}
		verify(t, l)
	})
}

// A user of a server who may not make the table, or write it, goes on without a checkpoint.
func TestCheckpointWithoutRights(t *testing.T) {
	ctx := t.Context()
	where := newSchema(t)
	l := openOn(t, often(1000), where)
	must(t, l.SetBudget(ctx, "clinic", "record", "", budget(9, 1e-5)))
	for name, c := range map[string]struct {
		sql string
		can int
	}{
		"none": {`REVOKE ALL ON SCHEMA %[1]s FROM %[2]s; GRANT USAGE ON SCHEMA %[1]s TO %[2]s`, noCheckpoint},
		"make": {`GRANT USAGE, CREATE ON SCHEMA %[1]s TO %[2]s`, canCreate},
	} {
		var schema string
		must(t, l.store.db.QueryRow(`SELECT current_schema()`).Scan(&schema))
		role := fmt.Sprintf("%s_%s", schema, name)
		_, err := l.store.db.Exec(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'x'`)
		must(t, err)
		t.Cleanup(func() { l.store.db.Exec(`DROP OWNED BY ` + role + `; DROP ROLE ` + role) })
		_, err = l.store.db.Exec(fmt.Sprintf(c.sql, schema, role))
		must(t, err)
		tx, err := l.store.db.BeginTx(ctx, nil)
		must(t, err)
		_, err = tx.Exec(`SET LOCAL ROLE ` + role)
		must(t, err)
		var can int
		must(t, tx.QueryRow(l.store.checkpoint).Scan(&can))
		if can != c.can {
			t.Errorf("%s: found %d; want %d", name, can, c.can)
		}
		must(t, tx.Rollback())
	}
}

// Pages of entries and of runs, and the recent history, are parts of the whole lists.
func TestPages(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := openOn(t, often(5), where)
		must(t, l.RecordAccess(ctx, "clinic", nil, "eval", "before"))
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(9, 1e-2)))
		fill(t, l, "clinic", "a", 7)
		must(t, l.RecordAccess(ctx, "other", nil, "eval", "scores"))
		must(t, l.write(ctx, func(w *writer) error { return w.append(KindRestore, "", "", Restoration{Found: Unreadable}) }))
		for i := range mostAccesses + 3 {
			must(t, l.RecordAccess(ctx, "clinic", nil, "eval", fmt.Sprint("scores ", i)))
		}
		open := reserve(t, l, reservation("clinic", "open"))
		must(t, l.Resume(ctx, "open", open, NewToken(), nil))
		fill(t, l, "clinic", "b", 3)
		entries, runs := errorless(l.Entries(ctx, "clinic"))(t), errorless(l.Runs(ctx, "clinic"))(t)
		for _, n := range []int{1, 2, 5, 100, 1000} {
			var paged []Entry
			var pagedRuns []RunAfter
			for skip := 0; skip < len(entries); skip += n {
				page, all, err := l.LastEntries(ctx, "clinic", skip, n)
				must(t, err)
				if all != len(entries) || len(page) != min(n, len(entries)-skip) {
					t.Fatalf("%d after %d: %d of %d; want of %d", n, skip, len(page), all, len(entries))
				}
				paged = append(page, paged...)
			}
			for skip := 0; skip < len(runs); skip += n {
				page, all, err := l.LastRuns(ctx, "clinic", skip, n)
				must(t, err)
				if all != len(runs) || len(page) != min(n, len(runs)-skip) {
					t.Fatalf("%d after %d: %d runs of %d; want of %d", n, skip, len(page), all, len(runs))
				}
				pagedRuns = append(page, pagedRuns...)
			}
			if !reflect.DeepEqual(paged, entries) {
				t.Errorf("pages of %d are not all entries", n)
			}
			var sum total
			for i, r := range pagedRuns {
				if sum.add(r.Caps); !reflect.DeepEqual(r.Run, runs[i]) || r.After != sum.caps() {
					t.Errorf("pages of %d: run %d is %+v after %v; want %+v after %v", n, i, r.Run, r.After, runs[i], sum.caps())
				}
			}
		}
		if page, all, err := l.LastEntries(ctx, "clinic", len(entries), 10); err != nil || len(page) > 0 || all != len(entries) {
			t.Errorf("beyond the first entry there are %d (%v)", len(page), err)
		}
		whole := errorless(l.History(ctx, "clinic", nil))(t)
		for _, n := range []int{3, 100} {
			h := errorless(l.Recent(ctx, "clinic", n))(t)
			if h.RunsBefore+len(h.Runs) != len(whole.Runs) || !reflect.DeepEqual(h.Runs, whole.Runs[h.RunsBefore:]) || h.RunsBefore != max(0, len(whole.Runs)-n) {
				t.Errorf("the last %d runs are %+v", n, h.Runs)
			}
			if h.UnprotectedBefore != 4 || !reflect.DeepEqual(h.Unprotected, whole.Unprotected[4:]) || h.Earlier != 0 {
				t.Errorf("of %d accesses %d are listed, %d before; %d early", len(whole.Unprotected), len(h.Unprotected), h.UnprotectedBefore, h.Earlier)
			}
			h.Runs, h.RunsBefore, h.Unprotected, h.UnprotectedBefore, h.Earlier = whole.Runs, 0, whole.Unprotected, 0, whole.Earlier
			if !reflect.DeepEqual(h, whole) {
				t.Errorf("the recent history is %+v; want %+v", h, whole)
			}
		}
		_, err := l.Recent(ctx, "nobody", 3)
		wantError(t, err, ErrUnknownDataset)
	})
}

// Checkpoints of processes that are killed at any moment never show another state than the chain.
func TestCheckpointsOfKilledProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := openOn(t, often(2), where)
		must(t, l.SetBudget(t.Context(), "clinic", "record", "", budget(1, 0.1)))
		t.Setenv("SOTTO_LEDGER_EVERY", "2")
		for range 3 {
			for round := range 3 {
				cmd, out, _ := start(t, "loop", where, fmt.Sprint(time.Now().UnixNano()))
				for said := 0; said <= round && out.Scan(); said++ {
				}
				timer := time.AfterFunc(time.Duration(3*round)*time.Millisecond, func() { cmd.Process.Kill() })
				for out.Scan() {
				}
				timer.Stop()
				cmd.Wait()
				verify(t, l)
			}
		}
		if c, authentic := kept(t, l); !authentic || c.head.Seq < 4 {
			t.Errorf("the checkpoint is of entry %d", c.head.Seq)
		}
		again := open(t, where)
		if a, b := errorless(again.Datasets(t.Context()))(t), errorless(l.Datasets(t.Context()))(t); !reflect.DeepEqual(a, b) {
			t.Errorf("found %+v and %+v", a, b)
		}
	})
}
