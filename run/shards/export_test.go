package shards

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/sottodp/sotto/access"
)

// Silent is a worker that hears a question and never answers. It returns nil where the connection ends before.
func Silent(ctx context.Context, o Options) (question []byte) {
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

// Greet is a coordinator that says more after its request. It returns what the worker says.
func Greet(conn net.Conn, key *Key, count int, more ...byte) (index uint64, said []byte, err error) {
	l, err := newLink(context.Background(), tls.Server(conn, key.proof))
	if err == nil {
		err = l.send(uint64(count), append(new(access.Request).Text(), more...))
	}
	if err != nil {
		return 0, nil, err
	}
	return l.receive()
}

// Quietly is quietly.
func Quietly(conn net.Conn) net.Conn { return quietly(conn) }
