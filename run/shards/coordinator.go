package shards

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/run"
)

// Times of a coordinator.
const (
	// that a shard has no worker, or is slow: without an answer, or four times the longest so far, up to
	tellAfter = 3 * time.Second
	tellLast  = time.Minute
	askAgain  = 100 * time.Millisecond // after a worker that is not the right one
	goodbye   = 2 * time.Second        // for workers to go
)

// A Coordinator carries sealed messages of remote.Shards between a run and its shards.
type Coordinator struct {
	URL string // where workers find it

	key      *Key
	listener net.Listener
	posts    []post
	notice   func(string)
	open     context.Context // ends with the connections
	close    context.CancelFunc
	running  sync.WaitGroup

	asking  sync.Mutex
	answers chan answer   // room for one of each shard
	longest time.Duration // until all answers, so far

	request   atomic.Pointer[access.Request] // what workers are asked before they read
	requested chan struct{}                  // closed once there is one

	joined, asked, waited atomic.Int64 // workers, questions, and nanoseconds until their answers
}

type answer struct {
	shard int
	text  []byte
}

// A post has the workers of one shard, and the question to it.
type post struct {
	shard   int
	answers chan<- answer // has room

	mu       sync.Mutex // guards what follows, and sending to the workers
	workers  []*link
	question []byte
	number   uint64 // of the question, from 1
	waiting  bool   // for its answer
	told     string // why the terminal was told that it takes long
}

// Listen opens the coordinator's side at an address, HOST:PORT or nats://HOST:PORT, port 0 for one that the system
// chooses. Notice is told what the person at the terminal waits for.
func Listen(address string, count int, key *Key, notice func(string)) (*Coordinator, error) {
	host, port, err := place(address)
	if err != nil {
		return nil, &run.InputError{Where: "--workers", Err: err}
	}
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	listener, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &run.InputError{Where: "--workers",
			Err: fmt.Errorf("found %q, where nothing can listen (%w); choose a free address of this machine", address, err)}
	}
	c := &Coordinator{URL: listener.Addr().String(), key: key, listener: listener, posts: make([]post, count),
		notice: notice, answers: make(chan answer, count), requested: make(chan struct{})}
	if _, port, err = net.SplitHostPort(c.URL); err == nil && host != "" {
		c.URL = net.JoinHostPort(host, port)
	}
	for i := range c.posts {
		c.posts[i].shard, c.posts[i].answers = i, c.answers
	}
	c.open, c.close = context.WithCancel(context.Background())
	c.running.Go(func() {
		for {
			conn, err := listener.Accept()
			switch {
			case err == nil:
				c.running.Go(func() { c.serve(conn) })
			case c.open.Err() != nil || errors.Is(err, net.ErrClosed):
				return
			default: // too many open files, say
				time.Sleep(askAgain)
			}
		}
	})
	return c, nil
}

// Request implements run.Carrier. Workers that came before a run asks come again, for its request.
func (c *Coordinator) Request(r *access.Request) {
	if c.request.Swap(r) == nil {
		close(c.requested)
		return
	}
	if r.Asks() {
		for i := range c.posts {
			c.posts[i].mu.Lock()
			for _, l := range c.posts[i].workers {
				l.conn.Close()
			}
			c.posts[i].mu.Unlock()
		}
	}
}

// serve receives the answers of a worker.
func (c *Coordinator) serve(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(c.open, func() { conn.Close() })()
	l, err := newLink(c.open, tls.Server(conn, c.key.proof))
	if err != nil {
		return
	}
	select {
	case <-c.requested:
	case <-c.open.Done():
		return
	}
	request := c.request.Load()
	greeting := request.Text()
	if err := l.send(uint64(len(c.posts)), greeting); err != nil {
		return
	}
	clear(l.out)
	clear(greeting)
	shard, _, err := l.receive()
	if err != nil || shard >= uint64(len(c.posts)) {
		return
	}
	l.greeted()
	p := &c.posts[shard]
	c.joined.Add(1)
	p.join(l)
	if now := c.request.Load(); now != request && now.Asks() {
		l.conn.Close()
	}
	defer p.leave(l)
	for {
		number, text, err := l.receive()
		if err != nil {
			return
		}
		p.heard(l, number, text)
	}
}

func (p *post) join(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = append(p.workers, l)
	if p.waiting {
		p.send(l)
	}
}

func (p *post) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = slices.DeleteFunc(p.workers, func(other *link) bool { return other == l })
}

// ask sends a question to all workers, but for those that still have one: they get it later.
func (p *post) ask(question []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.question, p.waiting, p.told = question, true, ""
	p.number++
	for _, l := range p.workers {
		if !l.owes {
			p.send(l)
		}
	}
}

// send sends the question to a worker, which takes a short one without waiting, since it has no other.
func (p *post) send(l *link) {
	l.owes = true
	if err := l.send(p.number, p.question); err != nil {
		l.conn.Close() // it leaves
	}
}

// heard takes a worker's answer, if it is the first to the question.
func (p *post) heard(l *link, number uint64, text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.owes = false
	switch {
	case !p.waiting:
	case number == p.number:
		p.waiting = false
		p.answers <- answer{p.shard, text}
	default: // to an earlier question
		p.send(l)
	}
}

// withdraw ends the question.
func (p *post) withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.question, p.waiting = nil, false
}

// late says why the question still waits, if that is news.
func (p *post) late() (why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.waiting:
	case len(p.workers) == 0:
		why = " is not there; waiting for its worker"
	default:
		why = " is slow to answer"
	}
	if why == p.told {
		return ""
	}
	p.told = why
	return why
}

// Shards implements remote.Carrier.
func (c *Coordinator) Shards() int { return len(c.posts) }

// Largest implements remote.Carrier.
func (c *Coordinator) Largest() int { return largest }

// Ask implements remote.Carrier: it waits until there are answers. A worker that comes meanwhile gets the same bytes,
// hence the same key of the sample.
func (c *Coordinator) Ask(ctx context.Context, questions [][]byte, take func(shard int, answer []byte) error) error {
	c.asking.Lock()
	defer c.asking.Unlock()
	began, left := time.Now(), 0
	defer c.withdraw()
	var sending sync.WaitGroup
	defer sending.Wait() // the questions are the caller's again
	for i, q := range questions {
		switch {
		case len(q) == 0:
			continue
		case len(q) <= frame:
			c.posts[i].ask(q)
		default: // sealing it for the connection takes long, and it may wait for a worker to read
			sending.Go(func() { c.posts[i].ask(q) })
		}
		left++
	}
	late := time.NewTimer(max(tellAfter, min(4*c.longest, tellLast)))
	defer late.Stop()
	for left > 0 {
		select {
		case a := <-c.answers:
			err := take(a.shard, a.text)
			var unfit *remote.Unfit
			switch {
			case err == nil:
				left--
			case errors.As(err, &unfit): // the worker knows why and ends
				c.tell(a.shard, fmt.Sprintf(": its worker is sent away: %v. Waiting for the right one", unfit))
				c.posts[a.shard].ask(questions[a.shard])
			default:
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			for i := range c.posts {
				if why := c.posts[i].late(); why != "" {
					c.tell(i, why)
				}
			}
			late.Reset(tellAfter)
		}
	}
	took := time.Since(began)
	c.longest = max(c.longest, took)
	c.asked.Add(1)
	c.waited.Add(int64(took))
	return nil
}

func (c *Coordinator) tell(shard int, what string) {
	if c.notice != nil {
		c.notice(fmt.Sprintf("shard %d of %d%s", shard+1, len(c.posts), what))
	}
}

// Present returns how many shards have a worker now, and how many connections of workers there were.
func (c *Coordinator) Present() (shards, connections int) {
	for i := range c.posts {
		c.posts[i].mu.Lock()
		if len(c.posts[i].workers) > 0 {
			shards++
		}
		c.posts[i].mu.Unlock()
	}
	return shards, int(c.joined.Load())
}

// Times returns how many questions all shards have answered, and how long that took. Both may depend on rows (R11).
func (c *Coordinator) Times() (questions int, took time.Duration) {
	return int(c.asked.Load()), time.Duration(c.waited.Load())
}

// withdraw ends all questions.
func (c *Coordinator) withdraw() {
	for i := range c.posts {
		c.posts[i].withdraw()
	}
	for len(c.answers) > 0 {
		<-c.answers
	}
}

// Close ends the connections to the workers. If the run is done, it ends the workers first; otherwise they wait
// for it to resume.
func (c *Coordinator) Close(done bool) {
	c.listener.Close()
	if done {
		for i := range c.posts {
			c.posts[i].dismiss()
		}
		gone := make(chan struct{})
		go func() {
			c.running.Wait()
			close(gone)
		}()
		select {
		case <-gone:
		case <-time.After(goodbye):
		}
	}
	c.close()
	c.running.Wait()
}

// over is the number of the message that ends a worker.
const over = 0

func (p *post) dismiss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.workers {
		l.send(over, nil)
	}
}

// place returns the host and the port of an address.
func place(address string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(strings.TrimPrefix(address, "nats://"))
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
		return "", "", fmt.Errorf("found %q; write a host and a port, as in 127.0.0.1:4222", address)
	}
	return host, port, nil
}
