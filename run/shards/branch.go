package shards

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/oracle/remote"
)

// A branch is a worker's place in a tree: what comes from the coordinator and from the worker above it, and the workers
// below it. It ends with the connection to the coordinator.
type branch struct {
	o       Options
	open    context.Context
	close   context.CancelFunc
	running sync.WaitGroup
	in      chan heard // from above
	pending *heard     // that came while the worker waited for those below
	below   []*link
	parts   chan heard // from below
}

func (o Options) branch(ctx context.Context, l *link) *branch {
	b := &branch{o: o, in: make(chan heard), parts: make(chan heard)}
	b.open, b.close = context.WithCancel(ctx)
	b.running.Go(func() { b.hear(l, b.in) })
	if l.below != nil {
		context.AfterFunc(b.open, func() { l.below.Close() })
		b.running.Go(func() { b.accept(l.below) })
	}
	return b
}

func (b *branch) end() {
	b.close()
	b.running.Wait()
}

// hear passes on what comes over a link, and last its error.
func (b *branch) hear(l *link, to chan<- heard) {
	defer l.conn.Close()
	defer context.AfterFunc(b.open, func() { l.conn.Close() })()
	for {
		number, text, err := l.receive()
		select {
		case to <- heard{l, number, text, err}:
		case <-b.open.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// accept lets workers above this one connect, which prove that they have the key.
func (b *branch) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		switch {
		case b.open.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return
		case err != nil:
			time.Sleep(askAgain)
			continue
		}
		b.running.Go(func() {
			if l, err := newLink(b.open, tls.Server(conn, b.o.Key.proof)); err != nil {
				conn.Close()
			} else {
				l.greeted()
				b.hear(l, b.in)
			}
		})
	}
}

// next waits for what comes from above.
func (b *branch) next() (m heard) {
	if b.pending != nil {
		m, b.pending = *b.pending, nil
		return m
	}
	select {
	case m = <-b.in:
	case <-b.open.Done():
	}
	return m
}

// plant connects the worker to those below it, and answers why it could not.
func (b *branch) plant(m heard) {
	for _, l := range b.below {
		l.conn.Close()
	}
	b.below = nil
	addresses := strings.Fields(string(m.text))
	links, errs := make([]*link, len(addresses)), make([]error, len(addresses))
	var dialing sync.WaitGroup
	for i, address := range addresses {
		dialing.Go(func() { links[i], errs[i] = b.dial(address) })
	}
	dialing.Wait()
	why := ""
	for i, l := range links {
		if errs[i] != nil {
			why = fmt.Sprintf("shard %d of %d: %v", b.o.Index+1, b.o.Count, errs[i])
			continue
		}
		b.below = append(b.below, l)
		b.running.Go(func() { b.hear(l, b.parts) })
	}
	m.from.send(m.number, []byte(why))
}

func (b *branch) dial(address string) (*link, error) {
	dialer := net.Dialer{Timeout: greeting, KeepAliveConfig: keepAlive}
	conn, err := dialer.DialContext(b.open, "tcp", address)
	if err != nil {
		return nil, err
	}
	l, err := newLink(b.open, tls.Client(conn, b.o.Key.proof))
	if err != nil {
		conn.Close()
		return nil, err
	}
	l.greeted()
	return l, nil
}

// gather passes a question on, adds the sums of the workers below to the shard's own, and answers. It gives up when it
// hears of something else.
func (b *branch) gather(m heard, shard *remote.Shard) {
	var sending sync.WaitGroup
	defer sending.Wait()
	waits := map[*link]bool{}
	for _, l := range b.below {
		waits[l] = true
		send := func() {
			if err := l.send(m.number, m.text); err != nil {
				l.conn.Close()
			}
		}
		if len(m.text) <= frame {
			send()
		} else {
			sending.Go(send)
		}
	}
	began := time.Now()
	part, err := shard.Begin(m.text)
	if b.o.Answered != nil {
		b.o.Answered(time.Since(began))
	}
	if err != nil { // not of this shard's coordinator
		m.from.send(m.number, nil)
		return
	}
	for len(waits) > 0 {
		select {
		case a := <-b.parts:
			switch {
			case a.err != nil:
				b.lose(a.from)
				delete(waits, a.from)
			case a.number == m.number && waits[a.from]:
				part.Add(a.text) // what does not open is missing
				delete(waits, a.from)
			}
		case next := <-b.in:
			if next.err != nil && next.from != m.from && next.from.below == nil {
				continue // a worker above that is no longer above
			}
			b.pending = &next
			return
		case <-b.open.Done():
			return
		}
	}
	if err := m.from.send(m.number, part.Seal()); err != nil {
		m.from.conn.Close()
	}
}

// lose takes a worker out of those below.
func (b *branch) lose(l *link) {
	for i, other := range b.below {
		if other == l {
			b.below = append(b.below[:i:i], b.below[i+1:]...)
			return
		}
	}
}
