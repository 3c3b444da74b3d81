//go:build !unix

package cli

import (
	"io"
	"os"
)

// redirect returns standard error. A crash writes its trace there.
func redirect(*os.File) (before io.Writer, err error) { return os.Stderr, nil }

// readInBackground has nothing to do: there are no background jobs that a terminal stops.
func readInBackground() {}
