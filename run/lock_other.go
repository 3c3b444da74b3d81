//go:build !unix

package run

// LockDir relies on the ledger alone where the system has no flock: the one-time
// token of a run (R7) lets one process at a time publish.
func LockDir(string) (unlock func(), err error) { return func() {}, nil }

const lockFile = ".lock"
