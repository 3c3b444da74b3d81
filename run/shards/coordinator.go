package shards

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/run"
)

// Times of a coordinator.
const (
	serverStart = 30 * time.Second
	askAgain    = time.Second // without an answer, or four times the longest so far; then twice as long each time, up to
	askLast     = time.Minute
	lookAgain   = 100 * time.Millisecond // for a shard without a worker
	tellAfter   = 3 * time.Second        // that a shard has no worker
	goodbye     = 2 * time.Second        // for workers to go
)

// largest message, in bytes: of two vectors of four million parameters, or a Hessian of the most that have one.
const largest = 72 << 20

// A Coordinator carries sealed messages of remote.Shards between a run and its shards.
type Coordinator struct {
	URL string // where workers find it

	server *server.Server
	nc     *nats.Conn
	count  int
	notice func(string)

	mu   sync.Mutex
	long time.Duration // the longest answer so far
}

// Listen opens the coordinator's side at an address, nats://HOST:PORT or HOST:PORT, port 0 for one that the system chooses. Notice
// is told what the person at the terminal waits for.
func Listen(address string, count int, key *Key, notice func(string)) (*Coordinator, error) {
	host, port, err := place(address)
	if err != nil {
		return nil, &run.InputError{Where: "--workers", Err: err}
	}
	free, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))) // the server would try for long
	if err != nil {
		return nil, &run.InputError{Where: "--workers", Err: fmt.Errorf("found %q, where nothing can listen (%w); allowed is an address of this machine that is free", address, err)}
	}
	free.Close()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "sotto", Host: host, Port: port, NoSigs: true, NoLog: true,
		MaxPayload: largest, MaxPending: 4 * largest, WriteDeadline: 10 * time.Second, Nkeys: []*server.NkeyUser{{Nkey: key.name}},
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(serverStart) {
		s.Shutdown()
		return nil, fmt.Errorf("--workers %s: the server did not start", address)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.Nkey(key.name, key.user.Sign))
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	c := &Coordinator{URL: s.ClientURL(), server: s, nc: nc, count: count, notice: notice}
	if _, err := nc.Subscribe(countSubject, func(m *nats.Msg) { m.Respond([]byte(strconv.Itoa(count))) }); err != nil {
		c.Close(false)
		return nil, err
	}
	return c, nil
}

// Shards implements remote.Carrier.
func (c *Coordinator) Shards() int { return c.count }

// Largest implements remote.Carrier.
func (c *Coordinator) Largest() int { return largest }

// Ask implements remote.Carrier: it asks until there is an answer. It waits for a shard without a worker,
// and asks a silent one again with the same bytes, hence the same key of the sample.
func (c *Coordinator) Ask(ctx context.Context, shard int, question []byte) ([]byte, error) {
	began, told := time.Now(), ""
	tell := func(what string) {
		if told != what && c.notice != nil {
			c.notice(fmt.Sprintf("shard %d of %d %s", shard+1, c.count, what))
		}
		told = what
	}
	for patience := c.patience(); ; {
		asked := time.Now()
		brief, stop := context.WithTimeout(ctx, patience)
		m, err := c.nc.RequestWithContext(brief, subject(shard), question)
		stop()
		switch {
		case err == nil:
			c.took(time.Since(asked))
			return m.Data, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, nats.ErrNoResponders):
			if time.Since(began) > tellAfter {
				tell("is not there; waiting for its worker")
			}
			select {
			case <-time.After(lookAgain):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case errors.Is(err, context.DeadlineExceeded):
			tell("is slow to answer; it is asked again")
			patience = min(2*patience, askLast)
		default:
			return nil, err
		}
	}
}

// Refused implements remote.Carrier: the worker knows why and ends. The run waits for another worker.
func (c *Coordinator) Refused(ctx context.Context, shard int, why *remote.Unfit) error {
	if c.notice != nil {
		c.notice(fmt.Sprintf("shard %d of %d: its worker is sent away: %v. Waiting for the right one", shard+1, c.count, why))
	}
	select {
	case <-time.After(lookAgain):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (c *Coordinator) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(askAgain, min(4*c.long, askLast))
}

func (c *Coordinator) took(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.long = max(c.long, d)
}

// Close ends the connection to the workers. If the run is done, it ends the workers first; otherwise they wait
// for it to resume.
func (c *Coordinator) Close(done bool) {
	if done {
		c.nc.Publish(doneSubject, nil)
		c.nc.Flush()
	}
	for began := time.Now(); done && c.server.NumClients() > 1 && time.Since(began) < goodbye; { // until they have heard it
		time.Sleep(time.Millisecond)
	}
	c.nc.Close()
	c.server.Shutdown()
	c.server.WaitForShutdown()
}

// place returns the host and the port of an address.
func place(address string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(strings.TrimPrefix(address, "nats://"))
	n, wrong := strconv.ParseUint(number, 10, 16)
	if err != nil || wrong != nil {
		return "", 0, fmt.Errorf("found %q; allowed is a host and a port, as in nats://127.0.0.1:4222", address)
	}
	return host, int(n), nil
}

func subject(shard int) string { return "sotto.ask." + strconv.Itoa(shard) }

const (
	doneSubject  = "sotto.done"
	countSubject = "sotto.count" // of shards, for workers that ask
)
