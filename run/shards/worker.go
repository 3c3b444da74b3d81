package shards

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
)

const (
	reconnect = 200 * time.Millisecond
	countWait = 5 * time.Second
)

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
}

// Work reads the shard and answers the coordinator until its run is done or the context ends. It waits while
// there is no coordinator. A mistake in the options, also one that only the coordinator detects, is a
// *run.InputError or a *config.Error.
func Work(ctx context.Context, o Options) error {
	if _, _, err := place(o.URL); err != nil {
		return &run.InputError{Where: "--hub", Err: err}
	}
	shard, closeRows, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer closeRows()
	var busy sync.Mutex // guards the shard, which must not be closed during an answer
	over := false
	ended := make(chan error, 1)
	end := func(err error) {
		select {
		case ended <- err:
		default:
		}
	}
	tell := func(what string) {
		if o.Notice != nil {
			o.Notice(what)
		}
	}
	joined := func(again string) nats.ConnHandler {
		return func(nc *nats.Conn) {
			tell("connected to " + o.URL + again)
			o.agree(nc, end)
		}
	}
	nc, err := nats.Connect(o.URL, nats.Nkey(o.Key.name, o.Key.user.Sign), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.ReconnectJitter(reconnect/2, reconnect/2), nats.Timeout(5*time.Second),
		nats.ConnectHandler(joined("")), nats.ReconnectHandler(joined(" again")),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				tell("the coordinator is gone; waiting for it")
			}
		}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
		nats.ClosedHandler(func(nc *nats.Conn) { end(nc.LastError()) }))
	if err != nil {
		return o.refused(err)
	}
	if !nc.IsConnected() {
		tell("waiting for the coordinator at " + o.URL)
	}
	answer := func(m *nats.Msg) {
		busy.Lock()
		defer busy.Unlock()
		if over || ctx.Err() != nil {
			return
		}
		a, err := shard.Answer(m.Data)
		if a != nil {
			m.Respond(a)
		}
		var unfit *remote.Unfit
		switch {
		case errors.As(err, &unfit):
			nc.FlushTimeout(goodbye)
			end(&run.InputError{Where: fmt.Sprintf("--shard %d/%d", o.Index+1, o.Count), Err: unfit})
		case err != nil:
			tell(err.Error()) // from a sender that is not the coordinator; there is no answer
		}
	}
	if _, err := nc.Subscribe(doneSubject, func(*nats.Msg) { end(nil) }); err != nil { // first, so that a worker that answers also hears the end
		return err
	}
	// Another worker with the same shard answers, too: the first answer counts.
	if _, err := nc.Subscribe(subject(o.Index), answer); err != nil {
		return err
	}
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	nc.Close()
	busy.Lock()
	over = true
	busy.Unlock()
	return o.refused(err)
}

// agree ends a worker that has another number of shards than its coordinator.
func (o Options) agree(nc *nats.Conn, end func(error)) {
	m, err := nc.Request(countSubject, nil, countWait)
	if err != nil {
		return // gone again, or not asking yet
	}
	if count := string(m.Data); count != strconv.Itoa(o.Count) {
		end(&run.InputError{Where: "--shard", Err: fmt.Errorf("found %d/%d; allowed is I/%s: so many shards the coordinator has", o.Index+1, o.Count, count)})
	}
}

// refused returns err; if the coordinator has another key, it is an input error.
func (o Options) refused(err error) error {
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrNkeysNotSupported) {
		return &run.InputError{Where: "--key", Err: fmt.Errorf("the coordinator at %s has another key", o.URL)}
	}
	return err
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
	opened, err := gate.Open(ctx, access.Worker, schema, o.Spec.Data, data.Options{Labels: o.Spec.Labels, KeepBad: job.Facts.Adjacency == privacy.ReplaceOne})
	if err != nil {
		return nil, nil, err
	}
	digest := opened.Digest()
	table, err := opened.Take(ctx, nil, "")
	if err != nil {
		return nil, nil, err
	}
	rows, err := private.NewLocal(table, job.Model, job.Facts, o.Cores)
	if err != nil {
		return nil, nil, err
	}
	shard, err = remote.NewShard(remote.ShardConfig{Rows: rows, Facts: job.Facts, Digest: digest, Terms: terms, Secret: o.Key.Secret, Index: o.Index, Count: o.Count})
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
