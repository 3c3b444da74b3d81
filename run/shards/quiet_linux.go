package shards

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A quiet connection reads without the scheduler's hooks for system calls. They wake the monitor of Go's runtime, which
// then wakes up every 20 µs for a millisecond and more: in each worker, beside the sum that the question asks for. Its
// reads never block, so the scheduler need not know of them.
type quiet struct {
	net.Conn
	raw syscall.RawConn
}

// quietly returns a connection that reads as conn does, quietly if it can.
func quietly(conn net.Conn) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			return quiet{conn, raw}
		}
	}
	return conn
}

func (q quiet) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var failed syscall.Errno
	err = q.raw.Read(func(fd uintptr) bool {
		for {
			r, _, e := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
			if e != syscall.EINTR {
				n, failed = int(r), e
				return e != syscall.EAGAIN // else it waits until there is something
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case failed != 0:
		return 0, os.NewSyscallError("read", failed)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
