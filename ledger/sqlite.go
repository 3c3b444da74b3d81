package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"modernc.org/sqlite"

	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/state"
	"github.com/sottodp/sotto/internal/vfs"
)

// defaultPath returns the path of this user's ledger; create makes its directory, for this user only.
func defaultPath(disk vfs.FS, create bool) (string, error) {
	base, err := state.Base("XDG_DATA_HOME", ".local", "share")
	if err != nil {
		return "", fmt.Errorf("ledger: no data directory: %w, or name a file or a URL for the ledger", err)
	}
	dir := filepath.Join(base, "sotto")
	if create {
		if err := vfs.MkdirAll(disk, dir, 0o700); err != nil {
			// Not %w: that a directory above is missing does not say that there is no ledger yet.
			return "", fmt.Errorf("ledger: its directory cannot be made: %v; set XDG_DATA_HOME to a directory that you can write to, or name a ledger with --ledger", err)
		}
	}
	return filepath.Join(dir, "ledger.db"), nil
}

// Path returns the path of the ledger at where, the user's own for ""; "" if it is at a server. It makes nothing.
func Path(where string) (string, error) {
	switch {
	case postgres.IsURL(where):
		return "", nil
	case where == "":
		return defaultPath(machine.FS, false)
	}
	return filepath.Abs(where)
}

func (d Disk) connectSQLite(path string, readOnly bool) (*store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	db, err := d.openSQLite(path, readOnly)
	if err != nil {
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	return &store{
		disk:  d,
		db:    db,
		where: path,
		path:  path,

		readOnly: readOnly,

		tables:  `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('sotto_ledger', 'sotto_entries', 'sotto_progress')`,
		others:  `SELECT count(*) FROM sqlite_master WHERE type = 'table'`,
		journal: `PRAGMA journal_mode(DELETE)`,
		sound:   `PRAGMA integrity_check(1)`,

		checkpoint: `SELECT CASE count(*) WHEN 0 THEN 1 ELSE 3 END FROM sqlite_master WHERE type = 'table' AND name = 'sotto_checkpoint'`,
	}, nil
}

// openSQLite makes no file and opens no connection yet.
func (d Disk) openSQLite(path string, readOnly bool) (*sql.DB, error) {
	// EXTRA also syncs the directory, without which a power cut after a commit could undo it.
	// Pages of a transaction stay in memory until its commit, before which the journal's name is made durable.
	query := "mode=rw&_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=synchronous(EXTRA)&_pragma=cache_spill(0)"
	if readOnly {
		// Not mode=ro: SQLite could not take back what a program that was killed
		// during a commit left in the file.
		query = "mode=rw&_pragma=busy_timeout(20000)&_pragma=query_only(1)"
	}
	if d.SQLite != "" {
		query += "&vfs=" + url.QueryEscape(d.SQLite)
	}
	dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query}).String()
	db, err := sql.Open("sqlite", dsn)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// leastSize is that of the smallest SQLite file with a table.
const leastSize = 512

// findFile says why the file can be no ledger. It does not open the file: when a process closes any
// descriptor of a file, POSIX drops all of its locks on it, and another Ledger of this process may
// have it open.
func findFile(disk vfs.FS, path string) error {
	info, err := disk.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("found a directory or a special file; use an SQLite file: %w", ErrNotLedger)
	case err == nil && info.Size() == 0:
		return fmt.Errorf("the file is empty: %w", ErrNotLedger)
	case err == nil && info.Size() < leastSize:
		return fmt.Errorf("found a file that is not an SQLite database, of %d bytes: %w", info.Size(), ErrNotLedger)
	case errors.Is(err, syscall.ENOTDIR):
		return errors.New("a file stands where a directory above it should be; name another place, by --ledger or by XDG_DATA_HOME")
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	// There is a journal without its ledger: SQLite would write it into any file that is later put here.
	if _, err := disk.Lstat(path + "-journal"); err == nil {
		if _, again := disk.Stat(path); errors.Is(again, os.ErrNotExist) {
			return fmt.Errorf("the file is missing, but %s-journal is there, which a ledger in use had; put the ledger back, or move the journal away: %w", path, ErrNotLedger)
		}
	}
	return err
}

// makeFile makes a ledger, readable by its owner only, with what fill writes. No process ever sees
// half of it. replace overwrites an emptied file; otherwise a file that another process made
// meanwhile stays, and the error wraps os.ErrExist. made reports whether the ledger is at its path,
// which another call may be needed to make durable.
func (d Disk) makeFile(path string, replace bool, fill func(*sql.DB) error) (made bool, err error) {
	f, err := d.FS.CreateTemp(filepath.Dir(path), unfinished(path)+"*") // mode 0600
	if errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("the directory %s does not exist", filepath.Dir(path))
	} else if err != nil {
		return false, fmt.Errorf("the file cannot be made: %w", err)
	}
	temporary := f.Name()
	defer d.FS.Remove(temporary)
	if err := f.Close(); err != nil {
		return false, err
	}
	db, err := d.openSQLite(temporary, false)
	if err != nil {
		return false, err
	}
	if err := errors.Join(fill(db), db.Close()); err != nil {
		return false, err
	}
	if replace {
		if err = d.FS.Remove(path + "-journal"); err == nil || errors.Is(err, os.ErrNotExist) {
			err = d.FS.Rename(temporary, path)
		}
	} else if err = d.FS.Link(temporary, path); err != nil && !errors.Is(err, os.ErrExist) {
		// On a file system without links two processes could both come this far.
		if _, err = d.FS.Lstat(path); err == nil {
			err = os.ErrExist
		} else if errors.Is(err, os.ErrNotExist) {
			err = d.FS.Rename(temporary, path)
		}
	}
	if err != nil {
		return false, err
	}
	return true, d.FS.SyncDir(filepath.Dir(path))
}

// unfinished begins the names of files that makeFile has not linked yet.
func unfinished(path string) string { return "." + filepath.Base(path) + ".new-" }

// removeUnfinished removes what killed processes left in makeFile. The caller holds the queue.
func removeUnfinished(disk vfs.FS, path string) {
	files, _ := disk.ReadDir(filepath.Dir(path))
	for _, f := range files {
		if strings.HasPrefix(f.Name(), unfinished(path)) {
			disk.Remove(filepath.Join(filepath.Dir(path), f.Name()))
		}
	}
}

// Result codes of SQLite; all but the first are primary ones.
const (
	sqliteMoved   = 1032 // READONLY_DBMOVED: another file, or none, is at the path now
	sqliteBusy    = 5
	sqliteLocked  = 6
	sqliteFull    = 13
	sqliteNotADB  = 26
	sqlitePrimary = 0xff
)

// sqliteCode is the result code of SQLite's error, 0 of others.
func sqliteCode(err error) int {
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return lite.Code()
	}
	return 0
}

// noRoom reports whether a full disk, or a quota, is why. A disk that fails is another matter: what it holds is not
// known.
func noRoom(err error) bool {
	return sqliteCode(err)&sqlitePrimary == sqliteFull || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// notLedger reports whether something else than a ledger is there.
func notLedger(err error) bool {
	return errors.Is(err, ErrNotLedger) || sqliteCode(err)&sqlitePrimary == sqliteNotADB
}

// busy reports whether another writer was in the way, and nothing was done.
func busy(err error) bool {
	code := sqliteCode(err) & sqlitePrimary
	return code == sqliteBusy || code == sqliteLocked
}

// sqliteWords explain a primary result code to a person.
var sqliteWords = map[int]string{
	sqliteBusy:   "another program holds it for too long: ",
	sqliteLocked: "another program holds it for too long: ",
	8:            "it cannot be written, the file or its directory is read-only: ", // READONLY
	10:           "the disk fails: ",                                               // IOERR
	11:           "the file is damaged; put back a copy: ",                         // CORRUPT
	sqliteFull:   "no space is left; nothing was recorded: ",                       // FULL
	14:           "it cannot be opened: ",                                          // CANTOPEN
	sqliteNotADB: "found a file that is not an SQLite database: ",
}
