package shards

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/sottodp/sotto/access"
)

const (
	greeting  = 5 * time.Second  // at most, for a handshake and who the two sides are
	writeWait = 30 * time.Second // for the other side to take a message

	frameHead = 4 + 8              // of a message: its length and number
	frame     = 16<<10 - frameHead // a text up to this length is sent by one write, in one record of TLS

	// largest text, in bytes: of two vectors of four million parameters, or a Hessian of the most that have one.
	largest = 72 << 20
)

// keepAlive tells within a minute that the other machine is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 4}

// A link is a connection of a coordinator and a worker, each of which has proved that it holds the key. It carries
// numbered messages. Each direction is for one goroutine at a time.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	owes bool // at the coordinator, guarded by its post: the worker has not answered the last question that it got

	request *access.Request // at the worker, what the coordinator asks before it reads
}

// newLink shakes hands. Until greeted is called, the time for both sides to say who they are is limited.
func newLink(ctx context.Context, conn *tls.Conn) (*link, error) {
	conn.SetDeadline(time.Now().Add(greeting))
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return &link{conn: conn, in: bufio.NewReaderSize(conn, frameHead+frame)}, nil
}

func (l *link) greeted() { l.conn.SetReadDeadline(time.Time{}) }

func (l *link) send(number uint64, text []byte) error {
	l.out = binary.LittleEndian.AppendUint32(l.out[:0], uint32(len(text)))
	l.out = binary.LittleEndian.AppendUint64(l.out, number)
	if len(text) <= frame {
		l.out, text = append(l.out, text...), nil
	}
	l.conn.SetWriteDeadline(time.Now().Add(writeWait))
	_, err := l.conn.Write(l.out)
	if err == nil && text != nil {
		_, err = l.conn.Write(text)
	}
	return err
}

// receive waits for a message. The text is the caller's.
func (l *link) receive() (number uint64, text []byte, err error) {
	head, err := l.in.Peek(frameHead)
	if err != nil {
		return 0, nil, err
	}
	size, number := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint64(head[4:])
	if size > largest {
		return 0, nil, fmt.Errorf("found a message of %d bytes; expected at most %d", size, largest)
	}
	l.in.Discard(frameHead)
	text = make([]byte, size)
	_, err = io.ReadFull(l.in, text)
	return number, text, err
}
