//go:build !unix

package run

// LockDir relies on the ledger alone where the system has no flock: the one-time
// token of a run (R7) lets one process at a time publish.
func LockDir(string) (unlock func(), err error) { return func() {}, nil }

// Abandoned is false where nothing tells whether a process is gone.
func Abandoned(string) bool { return false }

const lockFile = ".lock"
