package web

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// A browser keeps six connections to a host, one of them for each live page. Connections beyond the limit wait
// until another one ends.
const (
	maxConnections = 64
	headerTimeout  = 10 * time.Second // for the header of a request
	idleTimeout    = 2 * time.Minute  // between requests of a connection
	writeTimeout   = 30 * time.Second // for one event of a live page, or a heartbeat
)

// limit allows at most n open connections of l.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free func()
}

func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// bodiless refuses requests with a body, which no page needs: without a time limit, which live pages
// forbid, reading a body could last forever.
func bodiless(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			http.Error(w, "found a request with a body; send it without one", http.StatusRequestEntityTooLarge)
			return
		}
		h.ServeHTTP(w, r)
	})
}
