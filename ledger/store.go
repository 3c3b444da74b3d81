package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/redact"
)

// SQLite and PostgreSQL read every statement below alike. They differ in how to connect and ask for
// the tables.
const (
	createHead = `CREATE TABLE sotto_ledger (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	version  INTEGER NOT NULL,
	mark_key TEXT NOT NULL,
	head_seq BIGINT NOT NULL,
	head     TEXT NOT NULL)`
	createEntries = `CREATE TABLE sotto_entries (
	seq     BIGINT PRIMARY KEY,
	time    TEXT NOT NULL,
	kind    TEXT NOT NULL,
	dataset TEXT NOT NULL,
	run     TEXT NOT NULL,
	payload TEXT NOT NULL,
	prev    TEXT NOT NULL,
	hash    TEXT NOT NULL)`
	// How far each open run has come. It is outside the chain, which an entry for each flush would
	// make endless.
	createProgress = `CREATE TABLE sotto_progress (
	run     TEXT PRIMARY KEY,
	batches BIGINT NOT NULL)`
	// What each open run charged: see charges.go.
	createCharges = `CREATE TABLE sotto_charges (
	run   TEXT NOT NULL,
	first BIGINT NOT NULL,
	count BIGINT NOT NULL,
	event TEXT NOT NULL,
	PRIMARY KEY (run, first))`
	// The state that follows from the entries up to one: see checkpoint.go.
	createCheckpoint = `CREATE TABLE sotto_checkpoint (
	id      INTEGER PRIMARY KEY CHECK (id = 1),
	seq     BIGINT NOT NULL,
	hash    TEXT NOT NULL,
	time    TEXT NOT NULL,
	version TEXT NOT NULL,
	state   TEXT NOT NULL,
	mac     TEXT NOT NULL)`
	indexDataset = `CREATE INDEX sotto_entries_dataset ON sotto_entries (dataset, seq)`
	indexRun     = `CREATE INDEX sotto_entries_run ON sotto_entries (run, seq)`

	insertHead  = `INSERT INTO sotto_ledger (id, version, mark_key, head_seq, head) VALUES (1, $1, $2, 0, $3)`
	insertEntry = `INSERT INTO sotto_entries (seq, time, kind, dataset, run, payload, prev, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	// lockHead begins every transaction that writes. The next writer waits here until this one has
	// committed, then reads its entries. So writers never overlap, and there is nothing to retry.
	lockHead   = `UPDATE sotto_ledger SET head_seq = head_seq`
	updateHead = `UPDATE sotto_ledger SET head_seq = $1, head = $2`
	setVersion = `UPDATE sotto_ledger SET version = $1`
	selectHead = `SELECT version, mark_key, head_seq, head FROM sotto_ledger`

	selectProgress = `SELECT batches FROM sotto_progress WHERE run = $1`
	upsertProgress = `INSERT INTO sotto_progress (run, batches) VALUES ($1, $2) ON CONFLICT (run) DO UPDATE SET batches = excluded.batches`

	selectCharges    = `SELECT first, count, event FROM sotto_charges WHERE run = $1 ORDER BY first`
	selectLastCharge = `SELECT first, count, event FROM sotto_charges WHERE run = $1 ORDER BY first DESC LIMIT 1`
	upsertCharge     = `INSERT INTO sotto_charges (run, first, count, event) VALUES ($1, $2, $3, $4) ON CONFLICT (run, first) DO UPDATE SET count = excluded.count`
	deleteCharges    = `DELETE FROM sotto_charges WHERE run = $1`

	selectCheckpoint = `SELECT seq, hash, time, version, state, mac FROM sotto_checkpoint`
	upsertCheckpoint = `INSERT INTO sotto_checkpoint (id, seq, hash, time, version, state, mac) VALUES (1, $1, $2, $3, $4, $5, $6)
	ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, time = excluded.time, version = excluded.version,
	state = excluded.state, mac = excluded.mac`
	dropCheckpoint = `UPDATE sotto_checkpoint SET seq = 0`

	columns     = `seq, time, kind, dataset, run, payload, prev, hash`
	selectAll   = `SELECT ` + columns + ` FROM sotto_entries ORDER BY seq`
	selectAfter = `SELECT ` + columns + ` FROM sotto_entries WHERE seq > $1 ORDER BY seq`
	selectLast  = `SELECT ` + columns + ` FROM sotto_entries ORDER BY seq DESC LIMIT 1`
	// '': about the whole ledger
	selectDataset = `SELECT ` + columns + ` FROM sotto_entries WHERE dataset IN ($1, '') ORDER BY seq`
	// the numbers of the last entries, newest first, of the dataset and of the whole ledger
	selectLastSeqs = `SELECT seq FROM (SELECT seq FROM sotto_entries WHERE dataset = $1 ORDER BY seq DESC LIMIT $2) AS own
	UNION ALL SELECT seq FROM (SELECT seq FROM sotto_entries WHERE dataset = '' ORDER BY seq DESC LIMIT $2) AS whole`
	selectSpan         = `SELECT ` + columns + ` FROM sotto_entries WHERE dataset IN ($1, '') AND seq BETWEEN $2 AND $3 ORDER BY seq`
	countDataset       = `SELECT count(*) FROM sotto_entries WHERE dataset IN ($1, '')`
	selectReservations = `SELECT ` + columns + ` FROM sotto_entries WHERE dataset = $1 AND kind = 'reserve' AND seq <= $2 ORDER BY seq DESC LIMIT $3`
	selectRun          = `SELECT ` + columns + ` FROM sotto_entries WHERE run = $1 ORDER BY seq`
	selectSeq          = `SELECT ` + columns + ` FROM sotto_entries WHERE seq = $1`
)

const ledgerTables = 3

// store is a database, and what differs between the kinds.
type store struct {
	stuck atomic.Bool // the queue's holder is stopped
	disk  Disk
	db    *sql.DB
	where string // without a password
	path  string // of the file, absolute; "" of a server

	opened os.FileInfo // the file, when it was opened; nil of a server
	dir    string      // where SQLite makes its journal; "" of a server

	readOnly bool // nothing is made or written

	tables  string // counts the tables of the ledger
	others  string // counts all tables; "" where other tables are allowed
	journal string // sets the journal of a file that is a ledger; "" of a server
	lock    string // taken while the tables are made; "" where none is needed
	sync    string // makes the commit of a transaction durable; "" where it always is
	sound   string // says "ok", or what is wrong with the file; "" of a server

	checkpoint string // says what it allows to do with a checkpoint: canRead and so on
}

// connect finds the kind of database that where names. It opens no connection.
func (d Disk) connect(where string, a access) (*store, error) {
	switch {
	case postgres.IsURL(where):
		return d.connectPostgres(where, a == reading)
	case strings.Contains(where, "://"):
		scheme, _, _ := strings.Cut(where, "://")
		return nil, fmt.Errorf("ledger: found a URL that starts with %q; use postgres://, postgresql:// or the path of a file", scheme+"://")
	case !filepath.IsAbs(where) && redact.Path(where) != where: // a file would keep the password in its name
		return nil, fmt.Errorf("ledger %s: is neither the path of a file nor a URL that Sotto reads; write postgres://user@host:port/database", redact.Path(where))
	case where == "":
		path, err := defaultPath(d.FS, a == making)
		if err != nil {
			return nil, err
		}
		return d.connectSQLite(path, a == reading)
	}
	return d.connectSQLite(where, a == reading)
}

// explain puts the ledger's path or URL before an error, and a meaning in words if the database
// gave a code.
func (s *store) explain(err error) error {
	if err == nil {
		return nil
	}
	words := cmp.Or(sqliteWords[sqliteCode(err)&sqlitePrimary], postgresWords(err))
	switch {
	case sqliteCode(err) == sqliteMoved: // of which SQLite says that the file is read-only
		words, err = "", fmt.Errorf("%w (%w)", ErrGone, err)
	case notLedger(err) && !errors.Is(err, ErrNotLedger):
		err = fmt.Errorf("%w (%w)", ErrNotLedger, err)
	}
	return fmt.Errorf("ledger %s: %s%w", s.where, words, err)
}

// here reports whether the file is still the one that was opened; the error wraps ErrGone if not.
func (s *store) here() error {
	if s.opened == nil {
		return nil
	}
	switch now, err := s.disk.FS.Stat(s.path); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the file was deleted or moved away: %w", ErrGone)
	case err != nil:
		return err
	case !s.disk.FS.SameFile(s.opened, now):
		return fmt.Errorf("another file was put in its place: %w", ErrGone)
	}
	return nil
}

// locate finds the directory of the journal. SQLite follows symbolic links: it is not always that of the path.
func (s *store) locate(ctx context.Context) error {
	var seq int
	var name, file string
	if err := s.db.QueryRowContext(ctx, `PRAGMA database_list`).Scan(&seq, &name, &file); err != nil {
		return err
	}
	s.dir = filepath.Dir(file)
	return nil
}

// syncDir makes durable that SQLite made or removed its journal.
func (s *store) syncDir() error {
	if s.dir == "" {
		return nil
	}
	return s.disk.FS.SyncDir(s.dir)
}

// empty reports whether the file has no content.
func (s *store) empty() bool {
	info, err := s.disk.FS.Stat(s.path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// queueLimit is how long a writer waits for its turn before it goes on without.
const queueLimit = 30 * time.Second

// queue waits until this process may write the file. done ends that; held says whether it got the
// queue's lock. SQLite has no queue: waiting writers retry, and some never get through. SQLite's
// own locks exclude other writers, so where the queue cannot be used, or its holder is stopped, the
// writer goes on without.
func (s *store) queue(ctx context.Context) (done func(), held bool) {
	none := func() {}
	if s.path == "" || ctx.Err() != nil || s.stuck.Load() {
		return none, false
	}
	mode := os.FileMode(0o600)
	if s.opened != nil {
		mode = s.opened.Mode().Perm()
	}
	turn := make(chan func(), 1)
	go func() {
		unlock, _ := readfile.Lock(s.disk.FS, s.path+"-queue", mode, true)
		turn <- unlock
	}()
	select {
	case done := <-turn:
		if done == nil {
			return none, false
		}
		return done, true
	case <-time.After(queueLimit):
	case <-ctx.Done():
	}
	s.stuck.Store(true) // one waits; the others go on without, until it has had its turn
	go func() {         // it comes too late
		if done := <-turn; done != nil {
			done()
		}
		s.stuck.Store(false)
	}()
	return none, false
}

// pause waits for a random 20 to 250 ms, so that writers who met do not meet again.
func pause(ctx context.Context) {
	var b [1]byte
	rand.Read(b[:])
	select {
	case <-time.After(20*time.Millisecond + time.Duration(b[0])*230*time.Millisecond/255):
	case <-ctx.Done():
	}
}

// scanner is a row or rows.
type scanner interface{ Scan(...any) error }

// scanEntry reads one entry and checks its hash.
func scanEntry(row scanner) (Entry, error) {
	var e Entry
	var at string
	if err := row.Scan(&e.Seq, &at, &e.Kind, &e.Dataset, &e.Run, (*[]byte)(&e.Payload), &e.Prev, &e.Hash); err != nil {
		return e, err
	}
	t, err := parseTime(at)
	if err != nil {
		return e, &ChainError{e.Seq, "its time is malformed"}
	}
	e.Time = t
	return e, e.check()
}

// found reads a row, if there is one.
func found(row *sql.Row, dst ...any) (bool, error) {
	err := row.Scan(dst...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// entryAt is the entry of that number, if there is one.
func entryAt(ctx context.Context, q querier, seq int64) (e Entry, there bool, err error) {
	e, err = scanEntry(q.QueryRowContext(ctx, selectSeq, seq))
	if errors.Is(err, sql.ErrNoRows) {
		return e, false, nil
	}
	return e, err == nil, err
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// each gives the entries of a query to do, in order. If do refuses one, the chain is broken there.
func each(ctx context.Context, q querier, do func(Entry) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return err
		}
		if err := do(e); errors.Is(err, errNewer) {
			return err
		} else if err != nil {
			return &ChainError{e.Seq, err.Error()}
		}
	}
	return rows.Err()
}
