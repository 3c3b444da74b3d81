// Package state finds the directory where Sotto keeps what it knows about an
// owner's ledgers and tables between two commands: witnesses of ledgers and
// sketches of tables. It is for its owner only and is never part of a ledger, a
// run directory or an export.
package state

import (
	"errors"
	"os"
	"path/filepath"
)

// Dir is $XDG_STATE_HOME/sotto, or ~/.local/state/sotto where that is not set.
// It makes nothing.
func Dir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification says to ignore a relative one
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) { // a relative one means another directory wherever a command runs
			return "", errors.New("no state directory: neither XDG_STATE_HOME nor HOME is an absolute path; set one of them")
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "sotto"), nil
}

// Make is Dir, made for its owner only where it does not exist.
func Make() (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}
