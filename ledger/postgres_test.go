package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/needs"
)

// newSchema is where a ledger of the test's own can be made on the test server.
func newSchema(t testing.TB) string {
	where, _, _ := needs.Schema(t)
	return where.String()
}

func TestPasswordsAreNeverShown(t *testing.T) {
	const secret = "hunter2"
	for _, where := range []string{
		"postgres://anna:hunter2@127.0.0.1:1/db?connect_timeout=2",
		"postgresql://anna@127.0.0.1:1/db?connect_timeout=2&password=hunter2",
		"postgres://anna:hunter2@127.0.0.1:port/db",
		"postgres://anna:hunter2@[::1/db",
		"postgres://anna:hunter2%zz@127.0.0.1/db",
		"postgres://anna:hunter2@127.0.0.1:1/db?sslmode=never",
	} {
		_, err := Open(t.Context(), where)
		if err == nil {
			t.Fatalf("%s was opened", where)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestWrongPasswordOnARealServer(t *testing.T) {
	where := needs.Postgres(t)
	scheme, rest, _ := strings.Cut(where, "://")
	_, host, ok := strings.Cut(rest, "@")
	if !ok {
		t.Fatal("SOTTO_TEST_POSTGRES names no user")
	}
	_, err := Open(t.Context(), scheme+"://nobody:hunter2@"+host)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "nobody:xxxxx@") {
		t.Errorf("found %v", err)
	}
}

// A server that does not wait for its disk is made to, for the ledger's entries.
func TestCommitIsDurableWhateverTheServersDefault(t *testing.T) {
	l := open(t, newSchema(t)+"&synchronous_commit=off")
	for want, ask := range map[string]func(func(querier) error) error{
		"off": func(do func(querier) error) error { return do(l.store.db) },
		"on": func(do func(querier) error) error {
			return l.write(t.Context(), func(w *writer) error { return do(w.tx) })
		},
	} {
		var found string
		must(t, ask(func(q querier) error {
			return q.QueryRowContext(t.Context(), `SHOW synchronous_commit`).Scan(&found)
		}))
		if found != want {
			t.Errorf("found synchronous_commit %q; want %q", found, want)
		}
	}
}

// A restoration replaces the row that a writer waits for: the writer then waits for the new one.
func TestLockOutlivesARestoration(t *testing.T) {
	ctx := t.Context()
	where := newSchema(t)
	l := open(t, where)
	reserve(t, l, reservation("clinic", "first"))
	kept, err := rowsOf(ctx, l.store.db, "sotto_ledger")
	must(t, err)
	restoring, err := l.store.db.BeginTx(ctx, nil)
	must(t, err)
	defer restoring.Rollback()
	must(t, lock(ctx, restoring))
	_, err = restoring.ExecContext(ctx, `DELETE FROM sotto_ledger`)
	must(t, err)
	must(t, insertRows(ctx, restoring, "sotto_ledger", kept))

	writing, err := open(t, where).store.db.BeginTx(ctx, nil)
	must(t, err)
	defer writing.Rollback()
	locked := make(chan error)
	go func() { locked <- lock(ctx, writing) }()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		var waiting int
		must(t, l.store.db.QueryRowContext(ctx, `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&waiting))
		if waiting > 0 {
			break
		}
		if time.Since(began) > needs.Patience {
			t.Fatal("the writer does not wait")
		}
	}
	must(t, restoring.Commit())
	must(t, <-locked)
	third, err := l.store.db.BeginTx(ctx, nil)
	must(t, err)
	defer third.Rollback()
	if _, err := third.ExecContext(ctx, `SELECT head FROM sotto_ledger FOR UPDATE NOWAIT`); err == nil {
		t.Error("the writer went on without the lock")
	}
}
