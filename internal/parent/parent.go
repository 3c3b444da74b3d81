// Package parent ends a command when the process that started it ends.
package parent

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable names an inherited pipe, by its descriptor or, on Windows, its
// handle. The process that started this one holds the other end. When that process
// ends, however it ends, the pipe closes, and the command stops as after Ctrl-C:
// otherwise the run would continue and spend budget without anyone waiting for it.
const Variable = "SOTTO_PARENT_PIPE"

// Directory names a directory that the process which started this one made for it, with a name that begins with
// "sotto-". That process removes it; if it has ended before, [Clean] does.
const Directory = "SOTTO_PARENT_DIRECTORY"

var ended atomic.Bool

// Clean removes the directory of a parent that has ended. It comes last: the command may have files there.
func Clean() {
	dir := os.Getenv(Directory)
	if ended.Load() && filepath.IsAbs(dir) && strings.HasPrefix(filepath.Base(dir), "sotto-") {
		os.RemoveAll(dir)
	}
}

// Watch returns a context that ends with the parent, where there is one to watch.
func Watch(ctx context.Context) (context.Context, error) {
	text, ok := os.LookupEnv(Variable)
	if !ok {
		return ctx, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("%s: found %q; write the number of a pipe that was inherited", Variable, text)
	}
	pipe := os.NewFile(uintptr(n), Variable)
	if st, err := pipe.Stat(); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return nil, fmt.Errorf("%s: %d is no pipe that was inherited", Variable, n)
	}
	signal.Ignore(syscall.SIGPIPE) // the parent's end of the output goes, too; the run is still to be closed
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		io.Copy(io.Discard, pipe)
		ended.Store(true)
	}()
	return ctx, nil
}
