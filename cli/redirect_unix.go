//go:build unix

package cli

import (
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// readInBackground lets a command that a shell put into the background ask for its terminal's input: it gets an error,
// and is not stopped.
func readInBackground() { signal.Ignore(unix.SIGTTIN) }

// redirect makes f the process's standard error, which a crash writes to, and its standard output. It returns what
// standard error was before.
func redirect(f *os.File) (before io.Writer, err error) {
	kept, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	for _, to := range []int{1, 2} {
		if err := unix.Dup2(int(f.Fd()), to); err != nil {
			return nil, err
		}
	}
	return os.NewFile(uintptr(kept), "standard error"), nil
}
