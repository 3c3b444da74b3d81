package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// filled is a ledger of nine entries: dataset, budget, reserve, resume, settle of
// r1; reserve r2; reserve r3; look; settle r2.
func filled(t *testing.T, where string) *Ledger {
	t.Helper()
	ctx := t.Context()
	l := open(t, where)
	must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-5)))
	token, next := reserve(t, l, reservation("clinic", "r1")), NewToken()
	must(t, l.Resume(ctx, "r1", token, next, nil))
	must(t, l.Settle(ctx, "r1", next, Settlement{Outcome: Done}))
	token = reserve(t, l, reservation("clinic", "r2"))
	reserve(t, l, reservation("clinic", "r3"))
	must(t, l.RecordAccess(ctx, "clinic", nil, "eval", "scores"))
	must(t, l.Settle(ctx, "r2", token, Settlement{Outcome: Done}))
	if n := verify(t, l); n != 9 {
		t.Fatalf("found %d entries; want 9", n)
	}
	return l
}

// rewrite changes an entry and gives the whole chain, and the head, new hashes
// that fit: what a careful forger does.
func rewrite(t *testing.T, l *Ledger, change func([]Entry) []Entry) {
	t.Helper()
	entries, err := l.Entries(t.Context(), "")
	must(t, err)
	entries = change(entries)
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := l.store.db.Exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(`DELETE FROM sotto_entries`)
	head := Head{0, noHash}
	for _, e := range entries {
		e.Seq, e.Prev = head.Seq+1, head.Hash
		e.Hash = e.digest()
		run(insertEntry, e.Seq, formatTime(e.Time), string(e.Kind), e.Dataset, e.Run, string(e.Payload), e.Prev, e.Hash)
		head = Head{e.Seq, e.Hash}
	}
	run(updateHead, head.Seq, head.Hash)
}

func TestVerifyFindsTampering(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := filled(t, where)
		ctx := t.Context()
		all, err := l.Entries(ctx, "")
		must(t, err)
		head, err := l.Head(ctx)
		must(t, err)
		restore := func() {
			t.Helper()
			if _, err := l.store.db.Exec(`DELETE FROM sotto_entries`); err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				if _, err := l.store.db.Exec(insertEntry, e.Seq, formatTime(e.Time), string(e.Kind), e.Dataset, e.Run, string(e.Payload), e.Prev, e.Hash); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.store.db.Exec(updateHead, head.Seq, head.Hash); err != nil {
				t.Fatal(err)
			}
			verify(t, l)
		}
		for _, c := range []struct {
			name string
			sql  string
			seq  int64
		}{
			{"payload", `UPDATE sotto_entries SET payload = '{"epsilon":9,"delta":0.00001}' WHERE seq = 2`, 2},
			{"time", `UPDATE sotto_entries SET time = '2020-01-01T00:00:00Z' WHERE seq = 4`, 4},
			{"time that is none", `UPDATE sotto_entries SET time = 'noon' WHERE seq = 4`, 4},
			{"kind", `UPDATE sotto_entries SET kind = 'resume' WHERE seq = 3`, 3},
			{"dataset", `UPDATE sotto_entries SET dataset = 'other' WHERE seq = 6`, 6},
			{"run", `UPDATE sotto_entries SET run = 'r9' WHERE seq = 6`, 6},
			{"previous hash", `UPDATE sotto_entries SET prev = hash WHERE seq = 5`, 5},
			{"hash", `UPDATE sotto_entries SET hash = prev WHERE seq = 5`, 5},
			{"first removed", `DELETE FROM sotto_entries WHERE seq = 1`, 2},
			{"middle removed", `DELETE FROM sotto_entries WHERE seq = 6`, 7},
			{"last removed", `DELETE FROM sotto_entries WHERE seq = 9`, 9},
			{"all removed", `DELETE FROM sotto_entries`, 1},
			{"two exchanged", `UPDATE sotto_entries SET seq = CASE seq WHEN 6 THEN 107 ELSE 106 END WHERE seq IN (6, 7)`, 8},
			{"head moved back", `UPDATE sotto_ledger SET head_seq = 8`, 9},
			{"head changed", `UPDATE sotto_ledger SET head = 'x'`, 10},
		} {
			if _, err := l.store.db.Exec(c.sql); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if c.name == "two exchanged" {
				if _, err := l.store.db.Exec(`UPDATE sotto_entries SET seq = seq - 100 WHERE seq > 100`); err != nil {
					t.Fatal(err)
				}
				c.seq = 6
			}
			n, err := l.Verify(ctx)
			var broken *ChainError
			if !errors.As(err, &broken) || broken.Seq != c.seq {
				t.Errorf("%s: found %d entries and %v; want a break at entry %d", c.name, n, err, c.seq)
			}
			restore()
		}

		// With hashes that fit, the entries themselves must still make sense.
		for _, c := range []struct {
			name   string
			change func([]Entry) []Entry
			seq    int64
		}{
			{"a smaller budget", func(e []Entry) []Entry { e[1].Payload = []byte(`{"epsilon":0.15,"delta":0.00001}`); return e }, 6},
			{"no dataset", func(e []Entry) []Entry { return e[1:] }, 1},
			{"reserved twice", func(e []Entry) []Entry { return append(e, e[2]) }, 10},
			{"settled twice", func(e []Entry) []Entry { return append(e, e[4]) }, 10},
			{"resumed twice", func(e []Entry) []Entry { return append(e[:4:4], e[3:]...) }, 5},
			{"a field too many", func(e []Entry) []Entry { e[2].Payload = []byte(`{"more":1}`); return e }, 3},
			{"a number in another form", func(e []Entry) []Entry { e[1].Payload = []byte(`{"epsilon":1.0,"delta":0.00001}`); return e }, 2},
			{"more after the content", func(e []Entry) []Entry { e[1].Payload = append(e[1].Payload, " }"...); return e }, 2},
			{"settled in another dataset", func(e []Entry) []Entry { e[0].Dataset = "x"; return append(e[:1:1], append(e[:1:1], e...)...) }, 2},
		} {
			rewrite(t, l, c.change)
			_, err := l.Verify(ctx)
			var broken *ChainError
			if !errors.As(err, &broken) || broken.Seq != c.seq {
				t.Errorf("%s: found %v; want a break at entry %d", c.name, err, c.seq)
			}
			restore()
		}
	})
}

// A damaged entry stops every command that depends on it, not only verify.
func TestTamperingStopsUse(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := filled(t, where)
		if _, err := l.store.db.Exec(`UPDATE sotto_entries SET payload = '{"epsilon":1000,"delta":0.5}' WHERE seq = 2`); err != nil {
			t.Fatal(err)
		}
		l.Close()
		l = open(t, where) // an open Ledger remembers what it has read
		var broken *ChainError
		if _, err := l.Reserve(t.Context(), reservation("clinic", "r4")); !errors.As(err, &broken) || broken.Seq != 2 {
			t.Errorf("reserve: found %v", err)
		}
		if _, err := l.Datasets(t.Context()); !errors.As(err, &broken) {
			t.Errorf("datasets: found %v", err)
		}
	})
}

// What Verify cannot see, an outside copy of the head does.
func TestCutTailShowsAgainstAnOutsideHead(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := filled(t, where)
		head, err := l.Head(ctx)
		must(t, err)
		reserve(t, l, reservation("clinic", "r4"))
		must(t, l.Contains(ctx, head)) // growth is no break
		rewrite(t, l, func(e []Entry) []Entry { return e[:len(e)-2] })
		forget(t, l)
		if n := verify(t, l); n != 8 {
			t.Fatalf("found %d entries; want 8", n)
		}
		var broken *ChainError
		if err := l.Contains(ctx, head); !errors.As(err, &broken) || broken.Seq != 9 {
			t.Errorf("a cut tail: found %v", err)
		}
		reserve(t, l, reservation("clinic", "other"))
		if err := l.Contains(ctx, head); !errors.As(err, &broken) || broken.Seq != 9 {
			t.Errorf("another tail: found %v", err)
		}
		must(t, open(t, t.TempDir()+"/new.db").Contains(ctx, Head{0, noHash}))
	})
}

func TestNewerContentIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := filled(t, where)
		rewrite(t, l, func(e []Entry) []Entry {
			e[0].Payload = []byte(strings.Replace(string(e[0].Payload), "caps", "barter", 1))
			return e
		})
		forget(t, l)
		if _, err := l.Reserve(t.Context(), reservation("clinic", "r4")); !errors.Is(err, errNewer) || !strings.Contains(fmt.Sprint(err), `"barter"`) {
			t.Errorf("another currency: found %v", err)
		}
		if _, err := l.store.db.Exec(`UPDATE sotto_ledger SET version = 3`); err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := Open(t.Context(), where); !errors.Is(err, errNewer) || !strings.Contains(err.Error(), "version 3; this Sotto knows version 2") {
			t.Errorf("a newer format: found %v", err)
		}
	})
}
