package shards

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
)

const reconnect = 200 * time.Millisecond // until a worker looks for its coordinator again

// Options say what a worker holds and where its coordinator is.
type Options struct {
	Spec   *run.Spec // the coordinator's, with data of the worker's own
	Key    *Key
	URL    string
	Index  int // of the shard, from 0
	Count  int
	Cores  int          // goroutines of a large pass
	Notice func(string) // receives the state of the connection; may be nil
	Warn   func(string) // receives what only the owner of the rows may see; may be nil

	listen func(network, address string) (net.Listener, error) // net.Listen, but in tests

	Connected func(bool)          // is called when the rows are read, and when a connection begins or ends; may be nil
	Answered  func(time.Duration) // receives how long an answer took, which may depend on rows; may be nil
}

// A RowsError is an error that may depend on rows: it is for their owner only (R11).
type RowsError struct{ Err error }

func (e *RowsError) Error() string { return e.Err.Error() }
func (e *RowsError) Unwrap() error { return e.Err }

// Work reads the shard and answers the coordinator until its run is done or the context ends. It waits while
// there is no coordinator. A mistake in the options, also one that only the coordinator detects, is a
// *run.InputError or a *config.Error. What reading the rows or the coordinator's view of them gives is a *RowsError.
func Work(ctx context.Context, o Options) error {
	if _, _, err := place(o.URL); err != nil {
		return &run.InputError{Where: "--hub", Err: err}
	}
	if o.listen == nil {
		o.listen = net.Listen
	}
	shard, closeRows, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer closeRows()
	tell := func(what string) {
		if o.Notice != nil {
			o.Notice(what)
		}
	}
	connected := func(is bool) {
		if o.Connected != nil {
			o.Connected(is)
		}
	}
	connected(false)
	for tries, again := 0, ""; ctx.Err() == nil; tries++ {
		l, err := o.dial(ctx)
		if input := new(run.InputError); errors.As(err, &input) {
			return err
		}
		if err == nil {
			tell("connected to " + o.URL + again)
			connected(true)
			err := o.answer(ctx, l, shard, tell)
			connected(false)
			if err != errGone {
				return err
			}
			tell("the coordinator is gone; waiting for it")
			again = " again"
		} else if tries == 0 {
			tell("waiting for the coordinator at " + o.URL)
		}
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
	}
	return nil
}

// dial connects to the coordinator.
func (o Options) dial(ctx context.Context) (*link, error) {
	host, port, err := place(o.URL)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: greeting, KeepAliveConfig: keepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	l, err := o.greet(ctx, conn)
	if err != nil {
		conn.Close()
	}
	return l, err
}

// greet proves the key and says which shard this is.
func (o Options) greet(ctx context.Context, conn net.Conn) (*link, error) {
	l, err := newLink(ctx, tls.Client(quietly(conn), o.Key.proof))
	if other := (tls.RecordHeaderError{}); errors.As(err, &other) {
		return nil, &run.InputError{Where: "--hub", Err: fmt.Errorf("found %s, where no coordinator of this version of Sotto listens", o.URL)}
	}
	if errors.Is(err, errOtherKey) {
		return nil, &run.InputError{Where: "--key", Err: fmt.Errorf("the coordinator at %s has another key", o.URL)}
	}
	if err != nil {
		return nil, err
	}
	count, listen, err := l.receive()
	if err != nil {
		return nil, err
	}
	if count != uint64(o.Count) {
		return nil, &run.InputError{Where: "--shard", Err: fmt.Errorf("found %d/%d; allowed is I/%d: so many shards the coordinator has", o.Index+1, o.Count, count)}
	}
	l.greeted()
	if len(listen) > 0 { // for the worker above in a tree
		host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
		if l.below, err = o.listen("tcp", net.JoinHostPort(host, "0")); err == nil {
			l.address = l.below.Addr().String()
		}
	}
	if err = l.send(uint64(o.Index), []byte(l.address)); err != nil && l.below != nil {
		l.below.Close()
	}
	return l, err
}

// errGone says that a coordinator left in the middle of its run.
var errGone = errors.New("the coordinator is gone")

// answer answers a coordinator's questions until its run is done.
func (o Options) answer(ctx context.Context, l *link, shard *remote.Shard, tell func(string)) error {
	b := o.branch(ctx, l)
	defer b.end()
	for {
		m := b.next()
		number, question := m.number, m.text
		switch {
		case ctx.Err() != nil || m.err == nil && m.from == l && number == over:
			return nil
		case m.err != nil && m.from == l:
			return errGone
		case m.err != nil: // the worker above is gone
			continue
		case number&gathering != 0:
			b.gather(m, shard)
			continue
		case m.from != l: // a worker may ask for masked sums alone
			continue
		case number&planting != 0:
			b.plant(m)
			continue
		}
		began := time.Now()
		answer, err := shard.Answer(question)
		if o.Answered != nil {
			o.Answered(time.Since(began))
		}
		if answer != nil {
			l.send(number, answer) // if it fails, so does the next receive
		}
		var unfit *remote.Unfit
		switch {
		case errors.As(err, &unfit):
			return &RowsError{&run.InputError{Where: fmt.Sprintf("--shard %d/%d", o.Index+1, o.Count), Err: unfit}}
		case err != nil:
			tell(err.Error()) // not of this shard's coordinator; there is no answer
		}
	}
}

// open reads the rows. They are open until close.
func (o Options) open(ctx context.Context) (shard *remote.Shard, close func(), err error) {
	schema, err := o.Spec.LoadSchema()
	if err != nil {
		return nil, nil, err
	}
	job, err := run.PrepareModel(o.Spec, schema)
	if err != nil {
		return nil, nil, err
	}
	if err := job.Shardable(); err != nil {
		return nil, nil, err
	}
	terms, err := job.Terms()
	if err != nil {
		return nil, nil, err
	}
	// The coordinator reserves for the rows, in its own ledger.
	gate := access.Gate{Dropped: o.Spec.Dropped(o.Warn)}
	defer func() {
		if err != nil {
			err = &RowsError{err}
		}
	}()
	opened, err := gate.Open(ctx, access.Worker, schema, o.Spec.Data, data.Options{Labels: o.Spec.Labels, KeepBad: job.Facts.Adjacency == privacy.ReplaceOne, IDKey: o.Key.Secret.IDKey()})
	if err != nil {
		return nil, nil, err
	}
	if len(opened.Parts()) > 0 { // the coordinator's ledger learns one mark of a worker
		return nil, nil, &run.InputError{Where: o.Spec.Data, Err: errors.New("found a table of several files; allowed is one file for each worker")}
	}
	digest := opened.Digest()
	table, err := opened.Take(ctx, nil, "")
	if err != nil {
		return nil, nil, err
	}
	if job.Facts.UnitRows > 0 && table.UnitIDs() == nil {
		return nil, nil, &run.InputError{Where: o.Spec.Data, Err: fmt.Errorf("found a packed table, which holds no ids; allowed with units of several rows is a table of another form: ids show that no %s is in two shards", schema.Unit)}
	}
	rows, err := private.NewLocal(table, job.Model, job.Facts, o.Cores)
	if err != nil {
		return nil, nil, err
	}
	sum, hashed := opened.RowSum()
	order := digest // of a packed table, whose content is its rows
	if hashed {
		order = data.Order(table)
	}
	shard, err = remote.NewShard(remote.ShardConfig{
		Rows: rows, Facts: job.Facts, Digest: digest, Order: order, Sum: sum, Terms: terms, Secret: o.Key.Secret, Index: o.Index, Count: o.Count,
		Hashes: func(key [32]byte) []uint64 { return data.Fingerprints(table, key[:]) }, Units: table.UnitIDs(),
	})
	return shard, rows.Close, err
}

// ParseShard reads I/N, I from 1 to N; index counts from 0.
func ParseShard(text string) (index, count int, err error) {
	i, n, _ := strings.Cut(text, "/")
	index, first := strconv.Atoi(i)
	count, second := strconv.Atoi(n)
	if first != nil || second != nil || index < 1 || index > count {
		return 0, 0, &run.InputError{Err: fmt.Errorf("--shard: found %q; allowed is I/N, I from 1 to N, as in 1/2", text)}
	}
	return index - 1, count, nil
}
