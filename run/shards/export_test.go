package shards

import (
	"context"
	"crypto/tls"
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
