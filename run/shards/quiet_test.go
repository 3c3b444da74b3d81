package shards_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/sottodp/sotto/run/shards"
)

// A quiet connection reads what is there, waits for what is not, and ends by deadlines, the other's end and its own.
func TestQuietly(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	q := shards.Quietly(conn)
	buf := make([]byte, 5)
	if n, err := q.Read(nil); n != 0 || err != nil {
		t.Errorf("of no bytes it reads %d: %v", n, err)
	}
	q.SetReadDeadline(time.Unix(1, 0))
	if n, err := q.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline it reads %d bytes: %v", n, err)
	}
	q.SetReadDeadline(time.Time{})
	go other.Write([]byte("a question"))
	for _, want := range []string{"a que", "stion"} {
		if _, err := io.ReadFull(q, buf); err != nil || string(buf) != want {
			t.Errorf("it reads %q (%v), want %q", buf, err, want)
		}
	}
	other.Close()
	if n, err := q.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("after the other's end it reads %d bytes: %v", n, err)
	}
	q.Close()
	if n, err := q.Read(buf); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its own end it reads %d bytes: %v", n, err)
	}
}
