package shards

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Silent is a worker that hears a question and never answers. It returns nil where the connection ends before.
func Silent(ctx context.Context, o Options) (question []byte) {
	o.listen = net.Listen
	l, err := o.dial(ctx)
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { l.conn.Close() })
	_, question, _ = l.receive()
	return question
}

// Greeted is a worker that accepts any coordinator, and has the proof of a key, or none. It returns why the coordinator does not greet it.
func Greeted(address string, key *Key) error {
	config := &tls.Config{InsecureSkipVerify: true}
	if key != nil {
		config.Certificates = key.proof.Certificates
	}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return err
}

// Unreachable are the options of a worker that no other reaches.
func Unreachable(o Options) Options {
	o.listen = func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if err == nil {
			err = l.Close()
		}
		return l, err
	}
	return o
}

// Above is how a worker of the tree hears of one above it: it connects to shard i of c, sends questions, and returns the number of the first
// answer. Gathering makes the number of a question to the tree.
func Above(c *Coordinator, i int, key *Key, numbers ...uint64) (uint64, error) {
	p := &c.posts[i]
	p.mu.Lock()
	address := p.last.address
	p.mu.Unlock()
	if key == nil {
		return 0, Greeted(address, nil)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	l, err := newLink(context.Background(), tls.Client(conn, key.proof))
	if err != nil {
		return 0, err
	}
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	for _, n := range numbers {
		if err := l.send(n, []byte("a question")); err != nil {
			return 0, err
		}
	}
	number, _, err := l.receive()
	return number, err
}

const Gathering = gathering

// Listens is listens.
func Listens(text []byte) string { return listens(text) }

// Quietly is quietly.
func Quietly(conn net.Conn) net.Conn { return quietly(conn) }
