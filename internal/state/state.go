// Package state finds the directory where Sotto keeps what it knows about an
// owner's ledgers and tables between two commands: witnesses of ledgers and
// sketches of tables. It is for its owner only and is never part of a ledger, a
// run directory or an export.
package state

import (
	"fmt"
	"os"
	"path/filepath"
)

// Base is the directory of that XDG variable, or where it is not set, the one under the home directory. A relative one
// would be another wherever a command runs, and the XDG specification says to ignore it.
func Base(variable string, under ...string) (string, error) {
	if base := os.Getenv(variable); filepath.IsAbs(base) {
		return base, nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", fmt.Errorf("neither %s nor HOME is an absolute path; set one of them", variable)
	}
	return filepath.Join(append([]string{home}, under...)...), nil
}

// Dir is $XDG_STATE_HOME/sotto, or ~/.local/state/sotto where that is not set.
// It makes nothing.
func Dir() (string, error) {
	base, err := Base("XDG_STATE_HOME", ".local", "state")
	if err != nil {
		return "", fmt.Errorf("no state directory: %w", err)
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
