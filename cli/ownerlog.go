package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/run"
)

// An ownerLog keeps what a command says from those who collect its output (R11). With a file, everything goes there,
// also the trace of a crash, and only what say and end write reaches the command's own output: lines that depend on no
// row and on no time.
type ownerLog struct {
	path string
	out  io.Writer // the command's own output; nil without a file
}

func (l *ownerLog) add(f *pflag.FlagSet) {
	f.StringVar(&l.path, "owner-log", "",
		"file that receives messages, which may depend on rows, where others collect the output of the command; only their owner may read it")
}

// on reports whether there is a file.
func (l *ownerLog) on() bool { return l.path != "" }

// open moves the command's output to the file.
func (l *ownerLog) open(c *cobra.Command) error {
	if !l.on() {
		return nil
	}
	f, err := readfile.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return usageError("--owner-log: %v", err)
	}
	if err := f.Chmod(0o600); err != nil && runtime.GOOS != "windows" { // it may have been there
		return usageError("--owner-log: %v", err)
	}
	if l.out, err = redirect(f); err != nil {
		return err
	}
	os.Stderr = f
	c.SetOut(f)
	c.SetErr(f)
	return nil
}

// say prints a line that depends on no row.
func (l *ownerLog) say(c *cobra.Command, format string, args ...any) {
	text := readable(fmt.Sprintf(format, args...))
	fmt.Fprintln(c.ErrOrStderr(), text)
	if l.out != nil {
		fmt.Fprintln(l.out, text)
	}
}

// around opens the file, calls f, and says in public how the command ended. private says that an error may depend on
// rows.
func (l *ownerLog) around(c *cobra.Command, private func(error) bool, f func() error) (err error) {
	if err := l.open(c); err != nil {
		return err
	}
	err = errCrashed
	defer func() { l.end(err, private(err)) }()
	err = f()
	return err
}

var errCrashed = errors.New("crashed") // until f returns

func (l *ownerLog) end(err error, private bool) {
	switch {
	case l.out == nil:
	case err == errCrashed:
		fmt.Fprintln(l.out, "sotto: crashed; the owner's log says why")
	case err == nil:
		fmt.Fprintln(l.out, "done")
	case errors.Is(err, run.ErrInterrupted), errors.Is(err, run.ErrNotBegun):
		fmt.Fprintln(l.out, "sotto: stopped")
	case private:
		fmt.Fprintf(l.out, "sotto: ended with exit code %d; the owner's log says why\n", exitCode(err))
	default:
		printError(l.out, err)
	}
}
