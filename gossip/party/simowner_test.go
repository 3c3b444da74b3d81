package party

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// A simOwner is one owner of a simulated network, over all its processes.
type simOwner struct {
	w      *world
	index  int
	honest bool
	job    *run.Job // of its last process

	books  simBooks
	copies []saved // of its directory and ledger, one for each crash

	lives   int
	tokens  int    // so far
	dir     string // of the last process
	draws   int
	out     map[int]string // by round: the vector that left the owner, as bytes
	back    bool           // journal and ledger were put back from a copy, both
	crashes int
	began   bool // rows were accessed
	ended   bool
	err     error // of its last process
	// stopped says that no other process will do better.
	stopped bool
}

// simBooks are an owner's ledger: the reservation, its one-time token, how far it is charged.
type simBooks struct {
	reserved, settled bool
	token             int
	reached, plan     int
	charged           int
}

// saved is a copy of what an owner keeps.
type saved struct {
	dir   string
	books simBooks
}

// errStale is the ledger's answer to a directory whose token is old.
var errStale = errors.New("the token of the directory is not the ledger's")

// A life is one process of an owner.
type life struct {
	w      *world
	owner  int
	number int
	dir    string
	passed map[string]int
	size   int64 // of the journal, synced
	dead   atomic.Bool
	died   chan struct{}
	one    chan struct{} // holds a value unless a goroutine is at a point; waiting for it lets the clock run
	mu     sync.Mutex
	known  journalCache
}

// journalCache is a journal, read when it had that size.
type journalCache struct {
	size int64
	all  []*runlog.Activation
}

func (l *life) of() *simOwner { return l.w.owners[l.owner] }

// at is a point where the process may die. A dead process does nothing more: its goroutines wait until the
// schedule is over, and end.
func (l *life) at(point string) {
	if !l.dead.Load() {
		<-l.one
		l.passed[point]++
		r := l.w.dice("crash", l.owner, l.number, point, l.passed[point])
		die := l.w.faulty() && r.Float64() < l.w.crashes
		if slices.Contains([]string{"reserving", "charged", "journaled", "mixed", "trained"}, point) { // all of it is synced
			l.size = l.journalSize()
		}
		if die {
			l.w.note(l.owner, "dies", point, l.number)
			l.die(r.Float64())
		}
		l.one <- struct{}{}
	}
	if l.dead.Load() {
		<-l.w.over
		runtime.Goexit()
	}
}

func (l *life) journalSize() int64 {
	st, err := os.Stat(filepath.Join(l.dir, runlog.JournalFile))
	if err != nil {
		return 0
	}
	return st.Size()
}

// die ends the process. Of what it wrote without a sync, a part stays.
func (l *life) die(part float64) {
	if l.dead.Swap(true) {
		return
	}
	o := l.of()
	dir := filepath.Join(l.w.dir, fmt.Sprint(l.owner, "-", l.number, "-saved"))
	l.w.must(os.CopyFS(dir, os.DirFS(l.dir)))
	if now := l.journalSize(); now > l.size {
		l.w.must(os.Truncate(filepath.Join(dir, runlog.JournalFile), l.size+int64(part*float64(now-l.size+1))))
	}
	o.copies = append(o.copies, saved{dir, o.books})
	o.crashes++
	close(l.died)
}

// journal returns the activations that are in the journal now.
func (l *life) journal() []*runlog.Activation {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := l.journalSize()
	if size == l.known.size {
		return l.known.all
	}
	l.known = journalCache{size, l.w.activations(filepath.Join(l.dir, runlog.JournalFile))}
	return l.known.all
}

// live runs one process of the owner until it ends or dies.
func (o *simOwner) live() (died bool, err error) {
	w := o.w
	l := &life{w: w, owner: o.index, number: o.lives, passed: map[string]int{}, died: make(chan struct{}), one: make(chan struct{}, 1)}
	l.one <- struct{}{}
	o.lives++
	l.dir = filepath.Join(w.dir, fmt.Sprint(o.index, "-", l.number))
	r := w.dice("life", o.index, l.number)
	if n := len(o.copies); n == 0 {
		w.must(os.MkdirAll(l.dir, 0o700))
	} else if w.restores == 0 {
		l.dir = o.copies[n-1].dir
	} else {
		from := o.copies[n-1]
		if w.faulty() && r.Float64() < w.restores { // an older copy is put back, of the directory or of the ledger, too
			from = o.copies[r.IntN(n)]
			if r.IntN(2) == 0 {
				o.books, o.back = from.books, true
			}
			w.note(o.index, "is put back", from.dir[len(w.dir):], l.number)
		}
		w.must(os.CopyFS(l.dir, os.DirFS(from.dir)))
	}
	o.dir = l.dir
	l.size = l.journalSize()
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		_, err := o.process(ctx, l)
		done <- err
	}()
	if w.faulty() && r.Float64() < w.kills {
		time.AfterFunc(upTo(r, 20*time.Second), func() {
			<-l.one
			defer func() { l.one <- struct{}{} }()
			if w.faulty() && !l.dead.Load() {
				w.note(o.index, "is killed", "", l.number)
				l.die(r.Float64())
			}
		})
	}
	select {
	case <-l.died:
		return true, nil
	case err := <-done:
		<-l.one
		dead := l.dead.Swap(true) // what is left of it does nothing more
		l.one <- struct{}{}
		if dead {
			return true, nil
		}
		if err != nil { // the next process begins where this one ended
			o.copies = append(o.copies, saved{l.dir, o.books})
		}
		return false, err
	}
}

// process is what Run does after the table is loaded, over the simulated hub.
func (o *simOwner) process(ctx context.Context, l *life) (*Result, error) {
	w := o.w
	s := &session{o: Options{Spec: w.spec.file, Dir: l.dir, Join: w.join, Wait: w.wait, Crash: l.at, Plan: netplan.Options{Apart: true}}, c: w.credentials[o.index], config: w.spec.config, plan: w.spec.plan, agreed: w.spec.agreed}
	_, err := os.Stat(filepath.Join(l.dir, runlog.InfoFile))
	s.Session = run.NewSession(s.plan.JobOf(o.index, ""), run.Env{Crash: l.at}, l.dir, err == nil)
	s.keeper = &simKeeper{s: s, life: l}
	unlock, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s.Info != nil && s.Info.Status == runlog.Finished {
		o.books.settled = true
		return nil, nil
	}
	if w.bug == lateCharge {
		s.Job.Owner.Method = publishesEarly{s.Job.Owner.Method.(gossip.Method), l}
	}
	client, err := transport.NewClient(&simLink{life: l, count: map[string]int{}, waiting: map[int]chan transport.Answer{}}, s.c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var store transport.Store = client
	switch {
	case !o.honest:
		store = liar{client, l, s.c, s.config}
	case w.bug == blindCommit:
		store = commitsBlindly{client}
	}
	return s.takePart(ctx, store, time.Now())
}

// simKeeper is the keeper of a simulated owner: its ledger is simBooks, its rows are numbers from the seed.
type simKeeper struct {
	s *session
	*life
	token int
}

// TakeOver implements keeper, as run.Session does: the reservation, or the swap of the one-time token.
func (k *simKeeper) TakeOver(context.Context) error {
	k.at("reserving")
	b := &k.of().books
	path := filepath.Join(k.dir, runlog.TokenFile)
	if b.reserved {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if token, _ := strconv.Atoi(strings.TrimPrefix(string(text), "token ")); token != b.token || b.settled {
			return errStale
		}
		if n := len(k.journal()); n < b.reached {
			b.charged = b.plan // it returns with less than was recorded
		} else {
			b.reached = n // as Ledger.Resume records
		}
	} else if len(k.journal()) > 0 {
		return errStale // of a ledger that was put back to before the reservation
	}
	k.of().tokens++ // a token is never used twice, whatever is put back
	b.token, k.token = k.of().tokens, k.of().tokens
	b.reserved, b.plan = true, k.s.Job.Owner.Activations
	k.w.must(os.WriteFile(path, fmt.Appendf(nil, "token %d", b.token), 0o600))
	k.s.Info.Ledger = "simulated"
	k.w.must(runlog.WriteInfo(k.dir, k.s.Info))
	k.w.note(k.owner, "reserves", "", b.token)
	k.at("reserved")
	return nil
}

// Take implements keeper.
func (k *simKeeper) Take(context.Context) error {
	k.at("taken")
	k.w.begins(k.of(), k.s)
	return nil
}

// Open implements keeper.
func (k *simKeeper) Open(meter account.Meter, journal oracle.Journal, first int) (rows, error) {
	k.at("opened")
	return &simRows{life: k.life, facts: k.s.Job.Facts, meter: meter, journal: journal, batch: first, rounds: k.w.rounds(k.of(), k.s)}, nil
}

// Reach implements keeper.
func (k *simKeeper) Reach(_ context.Context, batches int, charged []ledger.Charges) error {
	k.at("reaching")
	b := &k.of().books
	if k.token != b.token || b.settled {
		return errStale
	}
	for _, c := range charged {
		if c.First > b.reached {
			k.w.fail(k.owner, "the ledger is told of batch %d after %d", c.First, b.reached)
		}
		b.reached = max(b.reached, c.First+c.Count)
	}
	if b.reached > b.plan || batches > b.plan {
		k.w.fail(k.owner, "the ledger is told of %d batches, %d in the journal, of a plan of %d", b.reached, batches, b.plan)
	}
	k.at("reached")
	return nil
}

// Finish implements keeper.
func (k *simKeeper) Finish(_ context.Context, _ []float64, steps int, outcome string, seconds float64) (*runlog.Record, error) {
	k.at("finishing")
	rec, err := k.s.Info.Record(k.dir)
	if err != nil {
		return nil, err
	}
	r := k.s.Result()
	r.Steps, r.Charged, r.Outcome, r.TrainSeconds = steps, rec.Charged(), outcome, seconds
	k.s.Info.Status = runlog.Finished
	k.w.must(runlog.WriteInfo(k.dir, k.s.Info))
	k.at("finished")
	b := &k.of().books
	if k.token != b.token {
		return nil, errStale
	}
	b.settled = true
	b.charged = max(b.charged, b.reached)
	return rec, nil
}

// simRows answers with numbers that no other draw has.
type simRows struct {
	*life
	facts   oracle.Public
	meter   account.Meter
	journal oracle.Journal
	batch   int
	rounds  []int
}

func (r *simRows) Public() oracle.Public { return r.facts }
func (r *simRows) Close() error          { return nil }

// Batch implements oracle.Oracle.
func (r *simRows) Batch(_ context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	r.at("drawing")
	r.w.draws(r.life, r.batch, r.rounds)
	r.batch++
	event := r.facts.Cost(s, queries)
	return simBatch{simRows: r}, errors.Join(r.meter.Charge(event), r.journal.Charge(event))
}

// simBatch is a batch of simRows.
type simBatch struct {
	onlyGrad
	*simRows
}

// onlyGrad has the other queries of a batch, which no owner asks.
type onlyGrad struct{ oracle.Batch }

// Grad implements oracle.Batch.
func (r simBatch) Grad(_ oracle.Grad, w []float64) ([]float64, error) {
	o := r.of()
	o.draws++
	src := r.w.dice("noise", r.owner, o.draws)
	g := make([]float64, len(w))
	for j := range g {
		g[j] = src.NormFloat64()
	}
	return g, r.journal.Release([][]float64{g})
}

// Planted bugs, each in what surrounds an owner's protocol.
const (
	lateCharge  = "an activation is charged after it is published"
	byNumber    = "an answer of the hub is taken for that of the request with the same number"
	blindCommit = "an exchange is committed without the peer's vector"
)

// publishesEarly is a method whose vectors go to the first peer before they are in the journal.
type publishesEarly struct {
	gossip.Method
	life *life
}

func (m publishesEarly) Run(ctx context.Context, at gossip.Node, o oracle.Oracle, obj objective, watch gossip.Watch) ([]float64, error) {
	at.Mixer = early{at.Mixer.(*transport.Node), m.life}
	return m.Method.Run(ctx, at, o, obj, watch)
}

type early struct {
	*transport.Node
	life *life
}

func (e early) Mix(ctx context.Context, node int, act gossip.Activation, m []float64) error {
	path := filepath.Join(e.life.dir, "scratch")
	j, err := runlog.CreateJournal(path, runlog.JournalHead{Dim: len(m)})
	if err != nil {
		return err
	}
	n := &transport.Node{Store: once{e.Store}, Credentials: e.Credentials, Config: e.Config, Journal: j}
	n.Mix(ctx, node, act, append([]float64(nil), m...))
	e.life.w.must(errors.Join(j.Close(), os.Remove(path)))
	return e.Node.Mix(ctx, node, act, m)
}

// once is a store that lets one value be stored.
type once struct{ transport.Store }

func (s once) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	s.Store.Put(ctx, key, value)
	return nil, context.Canceled
}

// commitsBlindly is the store of an owner that proposes to commit where it holds no vector.
type commitsBlindly struct{ transport.Store }

func (s commitsBlindly) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	if strings.HasPrefix(key, "dec.") {
		value = []byte("C")
	}
	return s.Store.Put(ctx, key, value)
}

// bytesOf are numbers as they travel.
func bytesOf(v []float64) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return string(b)
}
