package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite"
)

// defaultPath is the ledger of this user; its directory is made, for this user only,
// if it may be.
func defaultPath(readOnly bool) (string, error) {
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) { // the XDG specification says to ignore a relative one
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("ledger: no data directory: found neither XDG_DATA_HOME nor HOME; name a file or a URL for the ledger")
		}
		base = filepath.Join(home, ".local", "share")
	}
	dir := filepath.Join(base, "sotto")
	if !readOnly {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("ledger: its directory cannot be made: %w", err)
		}
	}
	return filepath.Join(dir, "ledger.db"), nil
}

func connectSQLite(path string, readOnly bool) (*store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	prepare := prepareFile
	if readOnly {
		prepare = lookAtFile
	}
	if err := prepare(path); err != nil {
		return nil, err
	}
	// The rollback journal, not the write-ahead log: a ledger is written a few times
	// an hour, is one file to copy, and may lie on a network disk. EXTRA also
	// syncs the directory, without which a power cut after a commit could undo it.
	query := "_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(DELETE)&_pragma=synchronous(EXTRA)"
	if readOnly {
		query = "mode=ro&_pragma=busy_timeout(20000)&_pragma=query_only(1)"
	}
	dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return &store{
		db:    db,
		where: path,

		readOnly: readOnly,

		tables: `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('sotto_ledger', 'sotto_entries', 'sotto_progress')`,
		others: `SELECT count(*) FROM sqlite_master WHERE type = 'table'`,
		sound:  `PRAGMA integrity_check(1)`,
	}, nil
}

// making is held while a file is made. POSIX drops all of a process's locks on a
// file when the process closes any descriptor of it, so none may be closed here
// while another Ledger of this process has it open, and a file that is there
// already is left for SQLite to look into.
var making sync.Mutex

// prepareFile makes an empty file that only its owner can read, or says why what
// is there can be no ledger.
func prepareFile(path string) error {
	making.Lock()
	defer making.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("ledger %s: the directory %s does not exist", path, filepath.Dir(path))
	case !errors.Is(err, os.ErrExist):
		return fmt.Errorf("ledger: the file cannot be made: %w", err)
	}
	return lookAtFile(path)
}

func lookAtFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("ledger %s: found a directory or a special file; allowed is an SQLite file", path)
	}
	return nil
}

// sqliteWords says what an error of SQLite means to a person.
func sqliteWords(err error) string {
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return ""
	}
	switch lite.Code() & 0xff { // the primary result code
	case 5, 6: // BUSY, LOCKED
		return "another program holds it for too long: "
	case 8: // READONLY
		return "it cannot be written, the file or its directory is read-only: "
	case 10: // IOERR
		return "the disk fails: "
	case 11: // CORRUPT
		return "the file is damaged; put back a copy: "
	case 13: // FULL
		return "no space is left; nothing was recorded: "
	case 14: // CANTOPEN
		return "it cannot be opened: "
	case 26: // NOTADB
		return "found a file that is not an SQLite database; allowed is a ledger or a new file: "
	}
	return ""
}
