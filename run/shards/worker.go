package shards

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
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
	w, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	defer w.close()
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
			err := w.read(ctx, l.request)
			if err == nil {
				tell("has its rows")
				if err = o.answer(ctx, l, w.shard, tell); err != errGone && err != nil && w.refusal != nil {
					err = &RowsError{fmt.Errorf("--shard %d/%d: %w; the warning above says why", o.Index+1, o.Count, w.refusal)}
				}
			} else {
				l.conn.Close()
			}
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
		return nil, &run.InputError{Where: "--hub",
			Err: fmt.Errorf("found %s, where no coordinator of this version of Sotto listens", o.URL)}
	}
	if errors.Is(err, errOtherKey) {
		return nil, &run.InputError{Where: "--key", Err: fmt.Errorf("the coordinator at %s has another key", o.URL)}
	}
	if err != nil {
		return nil, err
	}
	count, greeting, err := l.receive()
	if err != nil {
		return nil, err
	}
	if len(greeting) < access.RequestSize {
		return nil, &run.InputError{Where: "--hub",
			Err: fmt.Errorf("the coordinator at %s has another version of Sotto", o.URL)}
	}
	// A coordinator that had workers add up among themselves (ADR 78) says so after the request, and does without.
	if l.request, err = access.ReadRequest(greeting[:access.RequestSize]); err != nil {
		return nil, &run.InputError{Where: "--hub", Err: err}
	}
	clear(greeting)
	if count != uint64(o.Count) {
		return nil, &run.InputError{Where: "--shard",
			Err: fmt.Errorf("found %d/%d; write I/%d, the number of shards that the coordinator has", o.Index+1, o.Count, count)}
	}
	l.greeted()
	return l, l.send(uint64(o.Index), nil)
}

// errGone says that a coordinator left in the middle of its run.
var errGone = errors.New("the coordinator is gone")

// answer answers a coordinator's questions until its run is done.
func (o Options) answer(ctx context.Context, l *link, shard *remote.Shard, tell func(string)) error {
	defer l.conn.Close()
	defer context.AfterFunc(ctx, func() { l.conn.Close() })()
	for {
		number, question, err := l.receive()
		switch {
		case ctx.Err() != nil || err == nil && number == over:
			return nil
		case err != nil:
			return errGone
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
		case errors.As(err, &unfit) && unfit.Protected:
			return &RowsError{fmt.Errorf("--shard %d/%d: %w: %w", o.Index+1, o.Count, access.ErrProtected, unfit)}
		case errors.As(err, &unfit):
			return &RowsError{&run.InputError{Where: fmt.Sprintf("--shard %d/%d", o.Index+1, o.Count), Err: unfit}}
		case err != nil:
			tell(err.Error()) // not of this shard's coordinator; there is no answer
		}
	}
}

// A holder has the rows of a shard, once a coordinator has asked for them.
type holder struct {
	Options
	schema *schema.Schema
	job    *run.Job
	terms  map[string][]byte

	shard   *remote.Shard
	asked   [sha256.Size]byte // the request that the shard answers
	rows    *private.Local
	refusal error // that it answers by, for the rows are refused here; nil: they are not
}

// prepare checks what can be checked without rows.
func (o Options) prepare(ctx context.Context) (*holder, error) {
	w := &holder{Options: o}
	var err error
	if w.schema, err = o.Spec.LoadSchema(); err != nil {
		return nil, err
	}
	if w.job, err = job.PrepareModel(o.Spec, w.schema); err != nil {
		return nil, err
	}
	if err := w.job.Allows(job.OnWorkers); err != nil {
		return nil, err
	}
	if files, err := data.Files(o.Spec.Data); err != nil {
		return nil, err
	} else if len(files) > 1 { // the coordinator's ledger learns one mark of a worker
		return nil, &run.InputError{Where: o.Spec.Data,
			Err: errors.New("found a table of several files; give one file for each worker")}
	}
	if err := access.Fits(ctx, w.schema, o.Spec.Data, o.Spec.Labels); err != nil {
		return nil, err
	}
	if w.job.Facts.UnitRows > 0 && data.IsPacked(o.Spec.Data) {
		return nil, &run.InputError{Where: o.Spec.Data,
			Err: fmt.Errorf("a packed table holds no ids, which show that no %s is in two shards; name the file that it was packed from", w.schema.Unit)}
	}
	w.terms, err = w.job.Terms()
	return w, err
}

func (w *holder) close() {
	if w.rows != nil {
		w.rows.Close()
	}
}

// read reads the rows, unless the coordinator asks as one before it did. A refusal of this machine's gate makes a shard
// that answers the coordinator by it; only this machine's terminal says which dataset the rows are of.
func (w *holder) read(ctx context.Context, request *access.Request) (err error) {
	defer request.Erase()
	id := request.ID()
	if w.shard != nil && (id == w.asked || id == [sha256.Size]byte{}) {
		return nil
	}
	w.close()
	w.shard, w.rows, w.refusal, w.asked = nil, nil, nil, id
	defer func() {
		if err == nil {
			return
		}
		if errors.Is(err, access.ErrProtected) || errors.Is(err, access.ErrCannotTell) {
			if w.Warn != nil {
				w.Warn(err.Error())
			}
			if w.refusal = access.ErrProtected; errors.Is(err, access.ErrCannotTell) {
				w.refusal = access.ErrCannotTell
			}
			w.shard, err = remote.NewShard(remote.ShardConfig{Secret: w.Key.Secret, Index: w.Index, Count: w.Count,
				Refusal: "its machine's ledger protects these rows, or cannot compare them; its terminal says why"})
			return
		}
		err = &RowsError{err}
	}()
	gate, err := run.Gate(ctx, w.Spec.Ledger, true, w.Warn)      // the coordinator reserves, in its own ledger
	if err == nil && gate.Ledger == nil && w.Spec.Ledger != "" { // the spec names one of the coordinator's machine
		gate, err = run.Gate(ctx, "", true, w.Warn)
	}
	if err != nil {
		return err
	}
	defer gate.Close()
	gate.Dropped = run.Dropped(w.Warn, w.Spec.AcceptDropped)
	opened, err := gate.OpenShard(ctx, request, w.schema, w.Spec.Data,
		data.Options{Labels: w.Spec.Labels, KeepBad: w.job.Facts.Adjacency == privacy.ReplaceOne,
			Narrow: data.Narrows(w.schema), IDKey: w.Key.Secret.IDKey()})
	if err != nil {
		return err
	}
	digest, compared := opened.Digest(), opened.Sent()
	table, err := opened.Take(ctx, nil, "")
	if err != nil {
		return err
	}
	if w.rows, err = private.NewLocal(table, w.job.Model, w.job.Facts, w.Cores); err != nil {
		return err
	}
	order := digest // of a packed table, whose content is its rows
	if !data.IsPacked(w.Spec.Data) {
		order = data.Order(table)
	}
	w.shard, err = remote.NewShard(remote.ShardConfig{
		Rows: w.rows, Facts: w.job.Facts, Digest: digest, Order: order, Terms: w.terms, Secret: w.Key.Secret, Index: w.Index,
		Count: w.Count,
		Hashes: func(key [32]byte) []uint64 {
			return data.Fingerprints(table, key[:])
		}, Units: table.UnitIDs(), Compared: compared,
	})
	return err
}

// ParseShard reads I/N, I from 1 to N; index counts from 0.
func ParseShard(text string) (index, count int, err error) {
	i, n, _ := strings.Cut(text, "/")
	index, first := strconv.Atoi(i)
	count, second := strconv.Atoi(n)
	if first != nil || second != nil || index < 1 || index > count {
		return 0, 0, &run.InputError{Err: fmt.Errorf("--shard: found %q; write I/N, I from 1 to N, as in 1/2", text)}
	}
	return index - 1, count, nil
}
