//go:build !unix

package ledger

import (
	"errors"
	"os"
)

// lockFile: without flock, callers rely on the database's own locks.
func lockFile(string, os.FileMode, bool) (unlock func(), err error) {
	return nil, errors.ErrUnsupported
}
