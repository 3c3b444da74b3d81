package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// D3: a connection that asks for nothing more is closed.
func TestD3IdleTimeout(t *testing.T) {
	s, err := New(Options{Dirs: []string{t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	s.Link(l)
	h := s.http(context.Background())
	if h.IdleTimeout <= 0 || h.ReadHeaderTimeout <= 0 {
		t.Fatalf("timeouts: %v when idle, %v for a head", h.IdleTimeout, h.ReadHeaderTimeout)
	}
	h.IdleTimeout = 10 * time.Millisecond // of minutes
	go h.Serve(l)
	defer h.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", l.Addr())
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("an idle connection: %v, want its end", err)
	}
}

// D3: no more connections are open than allowed; the next one is served when one ends.
func TestD3Connections(t *testing.T) {
	inner, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 2)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 4 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Fatal("a third connection beside two")
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	first.Close() // frees one place, not two
	third := <-accepted
	select {
	case <-accepted:
		t.Fatal("a fourth connection, where one has ended")
	case <-time.After(50 * time.Millisecond):
	}
	l.Close() // while Accept waits for a place
	if err := <-ended; err == nil {
		t.Error("Accept of a closed listener")
	}
	second.Close()
	third.Close()
}

func TestD3NoBodies(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, root).enter()
	r, err := s.client.Post(s.where+"/", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a request with a body: %d", r.StatusCode)
	}
}
