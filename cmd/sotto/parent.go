package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// parentVariable names an inherited pipe, by its descriptor or, on Windows, its
// handle. The process that started this one holds the other end. When that process
// ends, however it ends, the pipe closes, and the command stops as after Ctrl-C:
// nobody waits for the run any more, which would go on spending.
const parentVariable = "SOTTO_PARENT_PIPE"

// watchParent returns a context that ends with the parent, where there is one to watch.
func watchParent(ctx context.Context) (context.Context, error) {
	text, ok := os.LookupEnv(parentVariable)
	if !ok {
		return ctx, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, usageError("%s: found %q; allowed is the number of a pipe that was inherited", parentVariable, text)
	}
	pipe := os.NewFile(uintptr(n), parentVariable)
	if st, err := pipe.Stat(); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return nil, usageError("%s: %d is no pipe that was inherited", parentVariable, n)
	}
	signal.Ignore(syscall.SIGPIPE) // the parent's end of the output goes, too; the run is still to be closed
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		io.Copy(io.Discard, pipe)
	}()
	return ctx, nil
}
