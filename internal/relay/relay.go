// Package relay connects two processes in tests by a link that can be cut, like a network that drops packets.
package relay

import (
	"net"
	"sync"
	"testing"
)

// A Way carries connections from its own address on the loopback to another one. While it is cut, it passes no data and
// opens or closes no connection.
type Way struct {
	Addr string

	mu    sync.Mutex
	open  *sync.Cond
	cut   [2]bool // to the other end, back
	ended bool
}

// New makes a way to an address and closes it when the test ends.
func New(t testing.TB, to string) *Way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Way{Addr: l.Addr().String()}
	w.open = sync.NewCond(&w.mu)
	t.Cleanup(func() {
		l.Close()
		w.set(func() { w.ended = true })
	})
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(near, to)
		}
	}()
	return w
}

// Cut cuts both directions or opens them again.
func (w *Way) Cut(cut bool) { w.set(func() { w.cut = [2]bool{cut, cut} }) }

// Back cuts only the direction back, or opens it again: the sender can send but reads nothing.
func (w *Way) Back(cut bool) { w.set(func() { w.cut[1] = cut }) }

func (w *Way) set(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.open.Broadcast()
}

// wait waits until that direction is open, and reports whether the way is still there.
func (w *Way) wait(direction int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.cut[direction] && !w.ended {
		w.open.Wait()
	}
	return !w.ended
}

func (w *Way) carry(near net.Conn, to string) {
	defer near.Close()
	if !w.wait(0) {
		return
	}
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { w.copy(far, near, 0) })
	both.Go(func() { w.copy(near, far, 1) })
	both.Wait()
}

// copy carries one direction, and ends the connection at its end.
func (w *Way) copy(dst, src net.Conn, direction int) {
	b := make([]byte, 64<<10)
	for {
		n, err := src.Read(b)
		if !w.wait(direction) || err != nil {
			break
		}
		if _, err := dst.Write(b[:n]); err != nil {
			break
		}
	}
	dst.Close()
	src.Close()
}
