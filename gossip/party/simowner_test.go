package party

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/gossip/transport/transporttest"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// A simOwner is one owner of a simulated network, over all its processes.
type simOwner struct {
	*transporttest.Owner
	w   *world
	job *run.Job // of its last process

	books  simBooks
	copies []saved // of its directory and ledger, one for each process that ended without success
	life   *life   // the last one

	tokens int // so far
	draws  int
	out    map[int]string // by round: the vector that left the owner, as bytes
	back   bool           // journal and ledger were put back from a copy, both
	began  bool           // rows were accessed
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
	*transporttest.Life
	w    *world
	o    *simOwner
	dir  string
	size int64 // of the journal, synced

	mu    sync.Mutex
	known journalCache
}

// journalCache is a journal, read when it had that size.
type journalCache struct {
	size int64
	all  []*runlog.Activation
}

func (l *life) journalSize() int64 {
	st, err := os.Stat(filepath.Join(l.dir, runlog.JournalFile))
	if err != nil {
		return 0
	}
	return st.Size()
}

// passes is told of the points of a process.
func (l *life) passes(point string) {
	if slices.Contains([]string{"reserving", "charged", "journaled", "mixed", "trained"}, point) { // all of it is synced
		l.size = l.journalSize()
	}
}

// over keeps a copy for the next process. Of what a process that died wrote without a sync, a part stays.
func (l *life) over(died bool, r *rand.Rand) {
	dir := l.dir
	if died {
		dir = filepath.Join(l.w.dir, fmt.Sprint(l.Index, "-", l.Number, "-saved"))
		l.w.must(os.CopyFS(dir, os.DirFS(l.dir)))
		if now := l.journalSize(); now > l.size {
			l.w.must(os.Truncate(filepath.Join(dir, runlog.JournalFile), l.size+int64(r.Float64()*float64(now-l.size+1))))
		}
	}
	l.o.copies = append(l.o.copies, saved{dir, l.o.books})
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

// Begin implements transporttest.World: it makes or puts back a process's directory.
func (w *world) Begin(of *transporttest.Life) func(context.Context) error {
	o := w.owners[of.Index]
	l := &life{Life: of, w: w, o: o, dir: filepath.Join(w.dir, fmt.Sprint(of.Index, "-", of.Number))}
	l.Passes, l.Over, o.life = l.passes, l.over, l
	r := w.Dice("life", l.Index, l.Number)
	if n := len(o.copies); n == 0 {
		w.must(os.MkdirAll(l.dir, 0o700))
	} else if w.Restores == 0 {
		l.dir = o.copies[n-1].dir
	} else {
		from := o.copies[n-1]
		if w.Faulty() && r.Float64() < w.Restores { // an older copy is put back, of the directory or of the ledger, too
			from = o.copies[r.IntN(n)]
			if r.IntN(2) == 0 {
				o.books, o.back = from.books, true
			}
			w.Note("owner %d is put back to %s", l.Index, from.dir[len(w.dir):])
			w.Count("put back", 1)
		}
		w.must(os.CopyFS(l.dir, os.DirFS(from.dir)))
	}
	l.size = l.journalSize()
	return func(ctx context.Context) error {
		_, err := o.process(ctx, l)
		return err
	}
}

// process is what Run does after the table is loaded, over the simulated hub.
func (o *simOwner) process(ctx context.Context, l *life) (*Result, error) {
	w := o.w
	s := &session{o: Options{Spec: w.spec.file, Dir: l.dir, Join: w.join, Wait: w.wait, Crash: l.At, Plan: netplan.Options{Apart: true}}, c: w.Credentials[o.Index], config: w.Config, plan: w.spec.plan, agreed: w.spec.agreed}
	_, err := os.Stat(filepath.Join(l.dir, runlog.InfoFile))
	s.Session = run.NewSession(s.plan.JobOf(o.Index, ""), run.Env{Crash: l.At}, l.dir, err == nil)
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
	if w.Bug == lateCharge {
		s.Job.Owner.Method = publishesEarly{s.Job.Owner.Method.(gossip.Method), l}
	}
	link := l.Link()
	if w.Bug == byNumber {
		link = &mixedUp{Link: link, waiting: map[int]chan transport.Answer{}}
	}
	client, err := transport.NewClient(link, s.c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var store transport.Store = client
	switch {
	case !o.Honest:
		store = transporttest.Liar{Store: client, Life: l.Life, Otherwise: liar{client, l, s.c}.otherwise}
	case w.Bug == blindCommit:
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
	k.At("reserving")
	b := &k.o.books
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
	k.o.tokens++ // a token is never used twice, whatever is put back
	b.token, k.token = k.o.tokens, k.o.tokens
	b.reserved, b.plan = true, k.s.Job.Owner.Activations
	k.w.must(os.WriteFile(path, fmt.Appendf(nil, "token %d", b.token), 0o600))
	k.s.Info.Ledger = "simulated"
	k.w.must(runlog.WriteInfo(k.dir, k.s.Info))
	k.w.Note("owner %d reserves with token %d", k.Index, b.token)
	k.At("reserved")
	return nil
}

// Take implements keeper.
func (k *simKeeper) Take(context.Context) error {
	k.At("taken")
	k.w.begins(k.o, k.s)
	return nil
}

// Open implements keeper.
func (k *simKeeper) Open(meter account.Meter, journal oracle.Journal, first int) (rows, error) {
	k.At("opened")
	return &simRows{life: k.life, facts: k.s.Job.Facts, meter: meter, journal: journal, batch: first, rounds: k.w.rounds(k.o, k.s)}, nil
}

// Reach implements keeper.
func (k *simKeeper) Reach(_ context.Context, batches int, charged []ledger.Charges) error {
	k.At("reaching")
	b := &k.o.books
	if k.token != b.token || b.settled {
		return errStale
	}
	for _, c := range charged {
		if c.First > b.reached {
			k.w.Fail(k.Index, "the ledger is told of batch %d after %d", c.First, b.reached)
		}
		b.reached = max(b.reached, c.First+c.Count)
	}
	if b.reached > b.plan || batches > b.plan {
		k.w.Fail(k.Index, "the ledger is told of %d batches, %d in the journal, of a plan of %d", b.reached, batches, b.plan)
	}
	k.At("reached")
	return nil
}

// Finish implements keeper.
func (k *simKeeper) Finish(_ context.Context, _ []float64, steps int, outcome string, seconds float64) (*runlog.Record, error) {
	k.At("finishing")
	rec, err := k.s.Info.Record(k.dir)
	if err != nil {
		return nil, err
	}
	r := k.s.Result()
	r.Steps, r.Charged, r.Outcome, r.TrainSeconds = steps, rec.Charged(), outcome, seconds
	k.s.Info.Status = runlog.Finished
	k.w.must(runlog.WriteInfo(k.dir, k.s.Info))
	k.At("finished")
	b := &k.o.books
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
	r.At("drawing")
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
	o := r.o
	o.draws++
	src := r.w.Dice("noise", r.Index, o.draws)
	g := make([]float64, len(w))
	for j := range g {
		g[j] = src.NormFloat64()
	}
	return g, r.journal.Release([][]float64{g})
}

// bytesOf are numbers as they travel.
func bytesOf(v []float64) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return string(b)
}
