package pool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/gossip/transport/transporttest"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/simdisk"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// Planted bugs.
const (
	sameNoise    = "an attempt again has the noise of the one that was given up"
	noShare      = "an owner adds no share of noise"
	twoRosters   = "the digest leaves out the presences"
	noTranscript = "the digest leaves out earlier totals"
	noEnd        = "a run ends without comparing its last total"
	lateCharge   = "an attempt is charged after its first part is published"
)

// A simWorld is one schedule of owners who add up.
type simWorld struct {
	*transporttest.Schedule
	network *transport.Network
	owners  []*simOwner
	batches int
	retries int
	// Each with its probability: a process dies at a call of its disk; the hub dies at a message of its own.
	disks, hubs float64
	puts        int // of the hub's own
	trusted     bool

	mu    sync.Mutex
	left  map[[sha256.Size]byte]map[int]*simPart // by context and owner: the parts that left
	masks map[uint64]string                      // numbers of masks: none is used twice
	other map[int][]byte                         // by attempt: another presence that the lying owner signed
}

// A simPart is one that an owner's run made.
type simPart struct {
	draw        int // of noise
	data, plain []int64
	noise       []int64
	view        [sha256.Size]byte // what the owner believed that all agree on
	bytes       []byte            // as it left
	digest      [sha256.Size]byte
}

// simOwner is one owner over all its processes.
type simOwner struct {
	*transporttest.Owner
	w      *simWorld
	disk   *simdisk.Disk
	copies []*simdisk.Disk

	charges, draws int
	last           *simPart // that its run made
	parts          map[[2]int]*simPart
	masked         map[int]bool // attempts of which parts left
	totals         [][]int64    // of the places of all batches
	at             []int        // attempts of the totals
}

// simNetworks are those of 2 to 4 owners.
var simNetworks = sync.OnceValue(func() (all [][]*transport.Credentials) {
	for n := 2; n <= 4; n++ {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("hospital-", i+1))
		}
		all = append(all, transporttest.Credentials(transport.Network{
			Format: "sotto-network/3", ID: fmt.Sprintf("%016x", n), OwnKeys: true, Mode: transport.ModeSum,
			Limits: &transport.Limits{Dim: 3, Sums: &transport.SumLimits{Attempts: 1000, Sums: 3, Numbers: 3}},
		}, byte(n), names...))
	}
	return all
})

// draw chooses what a schedule has in store.
func (w *simWorld) draw(t *testing.T) {
	r := w.Dice("world")
	w.Draw(r, simNetworks()[r.IntN(3)])
	w.network = &w.Credentials[0].Network
	var err error
	if w.Config, err = w.network.Config(); err != nil {
		t.Fatal(err)
	}
	w.batches = 2 + r.IntN(3)
	w.retries = []int{0, 1, 3, 1000}[r.IntN(4)]
	w.disks, w.hubs = transporttest.Pick(r, .7), transporttest.Pick(r, .2)
	for i, of := range w.Owners {
		o := &simOwner{Owner: of, w: w, disk: simdisk.New(w.Seed*8 + uint64(i)), parts: map[[2]int]*simPart{}, masked: map[int]bool{}}
		o.totals, o.at = make([][]int64, w.batches*len(simSums)), make([]int, w.batches*len(simSums))
		w.owners = append(w.owners, o)
	}
	trust := transporttest.Trust(r.IntN(transporttest.Trusts))
	switch w.Bug {
	case sameNoise, noShare, lateCharge:
		trust = transporttest.Honest
	case noTranscript, noEnd:
		trust = transporttest.LyingHub
	case twoRosters:
		trust = transporttest.LyingHubAndOne
	}
	w.Deceive(r, trust)
	w.Forgets /= 4 // more often, few runs would come to their end
	if w.trusted = w.Liar() < 0 && w.Lies == 0 && w.Restores == 0; !w.trusted {
		w.Patience, w.Keeps = 2*time.Minute, true // an owner that stops leaves the others waiting
	}
}

// Twist implements transporttest.World. It shows a total that was never made, an end that was never asked for, or another roster.
func (w *simWorld) Twist(r *rand.Rand, key string, v []byte) (lie []byte, keep bool) {
	var attempt int
	switch n, _ := fmt.Sscanf(key, "all.here.%d", &attempt); {
	case strings.HasPrefix(key, "all.sum.") && len(v) > 9 && r.IntN(4) > 0:
		v[len(v)-8]++
		return v, true
	case strings.HasPrefix(key, "all.sum.") && r.IntN(8) == 0:
		return binary.LittleEndian.AppendUint64([]byte{'G'}, uint64(r.IntN(len(w.owners)))), true
	case n == 1 && len(v) > 0 && w.other[attempt] != nil:
		copy(v[w.Liar()*(len(v)/len(w.owners)):], w.other[attempt])
		return v, true
	}
	return v, false
}

// simSide is the hub's own way to its store, at which it dies now and then.
type simSide struct {
	*transporttest.Hub
	w *simWorld
}

func (s simSide) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	s.w.mu.Lock()
	s.w.puts++
	r := s.w.Dice("hub", s.w.puts)
	s.w.mu.Unlock()
	dies, before := s.w.Faulty() && r.Float64() < s.w.hubs, r.IntN(2) == 0
	if dies && before {
		s.w.hubDies("before it writes", key)
		return nil, errCrash
	}
	b, err := s.Hub.Put(ctx, key, value)
	if dies {
		s.w.hubDies("after it writes", key)
		return nil, errCrash
	}
	return b, err
}

func (w *simWorld) hubDies(when, key string) {
	w.Note("the hub dies %s %s", when, key)
	w.Count(fmt.Sprintf("died: hub, %s %.8s", when, key), 1)
}

// serve runs the hub's processes.
func (w *simWorld) serve(ctx context.Context) {
	forget := func(context.Context) error {
		w.Hub.Forget(func(key string) bool { return strings.Contains(key, ".part.") })
		return nil
	}
	for life := 0; ctx.Err() == nil; life++ {
		a := &transport.Adder{Store: simSide{w.Hub, w}, Network: w.network, Config: w.Config, Forget: forget}
		err := a.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errCrash) {
			w.Fail(-1, "the hub has ended: %v", err)
			return
		}
		w.Hub.Down(true)
		time.Sleep(transporttest.UpTo(w.Dice("hub starts", life), 10*time.Second))
		w.Hub.Down(false)
	}
}

// A simView is the store of one process of an owner, which remembers what presences the hub has shown.
type simView struct {
	transport.Store
	mu   sync.Mutex
	seen map[int][]byte // by attempt
}

func (s *simView) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	i, b, err := s.Store.Await(ctx, keys...)
	var attempt int
	if err == nil {
		if n, _ := fmt.Sscanf(keys[i], "all.here.%d", &attempt); n == 1 {
			s.mu.Lock()
			s.seen[attempt] = b
			s.mu.Unlock()
		}
	}
	return i, b, err
}

// A simLiar is the store of a lying owner. For a lying hub it signs other presences, too.
type simLiar struct {
	transporttest.Liar
	w *simWorld
}

func (s simLiar) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	var owner, attempt int
	r := s.Dice("presence", s.Index, s.Number, key)
	if n, _ := fmt.Sscanf(key, "sum.%d.here.%d", &owner, &attempt); n == 2 && s.Faulty() && r.IntN(2) == 0 {
		public := make([]byte, sha256.Size)
		for i := range public {
			public[i] = byte(r.Uint32())
		}
		s.Hub.Do(func() { s.w.other[attempt] = s.w.Credentials[s.Index].Sign(s.w.Config, key, public) })
	}
	return s.Liar.Put(ctx, key, value)
}

// otherwise writes another's key, signs another part, or asks for an end.
func (s simLiar) otherwise(ctx context.Context, r *rand.Rand, key string, value []byte) bool {
	var owner, attempt, sum int
	c, store := s.w.Credentials[s.Index], s.Liar.Store
	fmt.Sscanf(key, "sum.%d.here.%d", &owner, &attempt)
	part, _ := fmt.Sscanf(key, "sum.%d.part.%d.%d", &owner, &attempt, &sum)
	switch how := r.IntN(3); {
	case how == 0:
		another := fmt.Sprintf("sum.%d", (s.Index+1)%len(s.w.owners))
		store.Put(ctx, strings.Replace(key, fmt.Sprintf("sum.%d", s.Index), another, 1), value)
		return true
	case how == 1 && part == 3: // other numbers in the same context, or as many as it likes in another
		context := [sha256.Size]byte{}
		if r.IntN(2) == 0 {
			copy(context[:], value[8:])
		}
		transport.PutPart(ctx, store, c, s.w.Config, attempt, sum, context, make([]byte, 8*r.IntN(5)))
		return true
	case how == 2:
		transport.PutStop(ctx, store, c, s.w.Config, attempt, r.IntN(3))
	}
	return false
}

// Leaves checks what leaves an owner.
func (w *simWorld) Leaves(l *transporttest.Life, key string, body []byte) {
	owner, o := l.Index, w.owners[l.Index]
	var who, attempt, sum int
	if n, _ := fmt.Sscanf(key, "sum.%d.part.%d.%d", &who, &attempt, &sum); n < 3 || !o.Honest {
		return
	}
	if len(body) == ed25519.SignatureSize { // it asks for the end where its stop is taken (transport.PutStop)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	const head = 8 + 2*sha256.Size + ed25519.SignatureSize
	digest := [sha256.Size]byte(body[8:])
	if w.left[digest] == nil {
		w.left[digest] = map[int]*simPart{}
	}
	if before := w.left[digest][owner]; before != nil {
		if !bytes.Equal(before.bytes, body) {
			w.Fail(owner, "two parts leave in one context, sum %d of attempt %d", sum, attempt)
		}
		return
	}
	p := o.parts[[2]int{attempt, sum}]
	last := p == nil && len(body) == head // the sum that ends a run
	if last {
		p = &simPart{}
	}
	switch {
	case p == nil || who != owner:
		w.Fail(owner, "a part leaves that its run has not made")
		return
	case p.bytes != nil:
		w.Fail(owner, "a part leaves in two contexts, sum %d of attempt %d", sum, attempt)
	}
	p.bytes, p.digest = bytes.Clone(body), digest
	w.left[digest][owner] = p
	if last {
		return
	}
	o.masked[attempt] = true
	if o.charges < len(o.masked) {
		w.Fail(owner, "parts of %d attempts leave, and %d are charged", len(o.masked), o.charges)
	}
	for _, others := range w.left {
		if q := others[owner]; q != nil && q != p && len(p.plain) > 0 && q.draw == p.draw {
			w.Fail(owner, "noise is used twice, at last in sum %d of attempt %d", sum, attempt)
		}
	}
	for k, x := range p.plain {
		m := binary.LittleEndian.Uint64(body[head+8*k:]) - uint64(x)
		name := fmt.Sprint("owner ", owner, ", attempt ", attempt, ", sum ", sum, ", number ", k)
		if m == 0 {
			w.Fail(owner, "%s leaves without a mask", name)
		}
		if before, ok := w.masks[m]; ok && len(w.owners) > 2 { // of two owners one adds what the other takes off
			w.Fail(owner, "%s has the mask of %s", name, before)
		}
		w.masks[m] = name
	}
}

// accepts checks a total that an owner's run takes.
func (w *simWorld) accepts(o *simOwner, attempt, sum int, total []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := o.parts[[2]int{attempt, sum}]
	if mine == nil || mine.bytes == nil {
		w.Fail(o.Index, "it takes a total without a part of its own")
		return
	}
	w.Count("released", 1)
	w.Note("owner %d takes %d %d %d", o.Index, attempt, sum, total)
	want, honest := make([]int64, len(total)), true
	for j, other := range w.owners {
		theirs := w.left[mine.digest][j]
		switch {
		case !other.Honest:
			honest = false
		case theirs == nil:
			w.Fail(o.Index, "it takes sum %d of attempt %d, of which owner %d masked no part in its context", sum, attempt, j)
			return
		case theirs.view != mine.view:
			w.Fail(o.Index, "it takes sum %d of attempt %d, in which owner %d has seen other presences or totals", sum, attempt, j)
		default:
			for k := range want {
				want[k] += theirs.data[k] + theirs.noise[k]
			}
		}
	}
	if honest && w.Lies == 0 && !slices.Equal(total, want) {
		w.Fail(o.Index, "sum %d of attempt %d is not that of all rows and shares of noise", sum, attempt)
	}
}

const simLog = "/log"

// simSums are the numbers of the sums of a batch.
var simSums = []int{3, 1}

// process trains as a run does: it charges each attempt before it masks, and releases batches.
func (o *simOwner) process(ctx context.Context, l *transporttest.Life) (err error) {
	w := o.w
	client, err := transport.NewClient(l.Link(), w.Credentials[o.Index])
	if err != nil {
		return err
	}
	defer client.Close()
	view := &simView{Store: client, seen: map[int][]byte{}}
	var store transport.Store = view
	if !o.Honest {
		liar := simLiar{transporttest.Liar{Store: view, Life: l}, w}
		liar.Otherwise = liar.otherwise
		store = liar
	}
	log, err := o.disk.OpenFile(simLog, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	events := o.disk.Peek(simLog)
	append1 := func(event byte) error {
		if _, err := log.WriteAt([]byte{event}, int64(len(events))); err != nil {
			return err
		}
		events = append(events, event)
		return log.Sync()
	}
	charged, released := bytes.Count(events, []byte("c")), bytes.Count(events, []byte("r"))
	p, err := Open(Options{
		Store: store, Credentials: w.Credentials[o.Index], Disk: runlog.Disk{FS: o.disk}, Path: journalPath, Run: "run", Retries: w.retries,
		Charged: charged, Released: released,
	})
	if err != nil {
		return err
	}
	defer p.Close()
	late := false
	meet := func() error {
		held, err := p.Meet(ctx)
		if err != nil || held {
			return err
		}
		if w.Bug == lateCharge {
			late = true
			return nil
		}
		if err := append1('c'); err != nil {
			return err
		}
		o.charges++
		l.At("charged")
		return nil
	}
	end := func() error {
		if w.Bug == noEnd {
			return nil
		}
		if w.Bug == noTranscript {
			p.transcript = [sha256.Size]byte{}
		}
		return p.End(ctx)
	}
	// over is the end of a run that has no retries left.
	over := func(err error) error {
		if errors.Is(err, privacy.ErrExhausted) {
			return cmp.Or(end(), err)
		}
		return err
	}
	for batch := released; batch < w.batches; batch++ {
		if err := meet(); err != nil {
			return over(err)
		}
		for place := 0; place < len(simSums); {
			n := simSums[place]
			asked := sha256.Sum256([]byte{byte(batch), byte(place)})
			attempt, number := p.attempt, p.sum
			switch w.Bug {
			case twoRosters:
				p.present = [sha256.Size]byte{}
			case noTranscript:
				p.transcript = [sha256.Size]byte{}
			}
			v, err := p.Sum(ctx, asked, n, func() ([]int64, error) {
				l.At("part")
				return o.part(view, attempt, number, batch, place, n, asked), nil
			})
			if late && (err == nil || errors.Is(err, sum.ErrGivenUp)) {
				late = false
				if err := append1('c'); err != nil {
					return err
				}
				o.charges++
			}
			if errors.Is(err, sum.ErrGivenUp) {
				w.Count("given up", 1)
				if err := meet(); err != nil {
					return over(err)
				}
				continue
			} else if err != nil {
				return err
			}
			w.accepts(o, attempt, number, v)
			k := batch*len(simSums) + place
			if o.totals[k] != nil && !slices.Equal(o.totals[k], v) && w.Restores == 0 {
				w.Fail(o.Index, "it takes another total of batch %d after a restart", batch)
			}
			o.totals[k], o.at[k] = slices.Clone(v), attempt
			place++
			l.At("total")
		}
		if err := append1('r'); err != nil {
			return err
		}
		l.At("released")
	}
	return end()
}

// part is an owner's rows with its share of noise.
func (o *simOwner) part(seen *simView, attempt, sum, batch, place, n int, asked [sha256.Size]byte) []int64 {
	w := o.w
	view := sha256.New()
	seen.mu.Lock()
	view.Write(seen.seen[attempt])
	seen.mu.Unlock()
	fmt.Fprintln(view, attempt, sum, asked, o.totals[:batch*len(simSums)+min(place, len(simSums))])
	p := &simPart{view: [sha256.Size]byte(view.Sum(nil)), data: make([]int64, n), noise: make([]int64, n)}
	o.draws++
	p.draw = o.draws
	if w.Bug == sameNoise && o.last != nil && len(o.last.data) == n {
		p.draw = o.last.draw
	}
	r := w.Dice("noise", o.Index, p.draw)
	for k := range n {
		p.data[k] = int64(o.Index+1) * int64(100*batch+10*place+k)
		p.noise[k] = int64(r.Uint64())
	}
	p.plain = slices.Clone(p.data)
	for k := range n {
		if w.Bug != noShare || o.Index != 0 {
			p.plain[k] += p.noise[k]
		}
	}
	w.mu.Lock()
	o.parts[[2]int{attempt, sum}], o.last = p, p
	w.mu.Unlock()
	return slices.Clone(p.plain)
}

// Begin implements transporttest.World: it starts the disk, or an older copy of it.
func (w *simWorld) Begin(l *transporttest.Life) func(context.Context) error {
	o := w.owners[l.Index]
	r := w.Dice("life", l.Index, l.Number)
	if len(o.copies) > 0 && w.Faulty() && r.Float64() < w.Restores {
		o.disk = o.copies[r.IntN(len(o.copies))].Clone()
	}
	plan := map[int]simdisk.Fault{}
	if w.Faulty() && r.Float64() < w.disks {
		plan[r.IntN(40)] = []simdisk.Fault{simdisk.Kill, simdisk.Drop, simdisk.Torn}[r.IntN(3)]
	}
	o.disk.Start(plan)
	l.Over = func(_ bool, r *rand.Rand) { // the disk ends what is left of the process
		o.disk.Start(nil)
		o.disk.Cut(r.IntN(2) == 0)
		o.copies = append(o.copies, o.disk.Clone())
	}
	return func(ctx context.Context) error {
		err := o.process(ctx, l)
		if o.disk.Dead() != nil {
			l.Die("disk")
		}
		return err
	}
}

// Final implements transporttest.World.
func (w *simWorld) Final(err error) bool {
	return errors.Is(err, ErrBehind) || errors.Is(err, privacy.ErrExhausted) || strings.Contains(err.Error(), "is of different contexts")
}

// Check implements transporttest.World: it checks what the owners hold when all have ended.
func (w *simWorld) Check() {
	var first *simOwner
	exhausted := 0
	for i, o := range w.owners {
		if !o.Honest {
			continue
		}
		if errors.Is(o.Err, privacy.ErrExhausted) && !o.Ended {
			exhausted++
		} else if !o.Ended {
			w.Count("unfinished", 1)
		}
		if w.trusted && !o.Ended && !errors.Is(o.Err, privacy.ErrExhausted) {
			w.Fail(i, "it has not finished: %v", o.Err)
		}
		if logged := bytes.Count(o.disk.Peek(simLog), []byte("c")); w.Restores == 0 && logged < len(o.masked) {
			w.Fail(i, "its log has %d charges, and parts of %d attempts left", logged, len(o.masked))
		}
		if !o.Ended {
			continue
		}
		if first == nil {
			first = o
		} else if !slices.EqualFunc(o.totals, first.totals, slices.Equal) || w.trusted && !slices.Equal(o.at, first.at) {
			w.Fail(i, "it has finished with other totals than owner %d", first.Index)
		}
	}
	if w.trusted && exhausted != 0 && exhausted != len(w.owners) {
		w.Fail(-1, "%d owners have used up their retries, and the others have not", exhausted)
	}
}

// simulator returns what runs one schedule.
func simulator(t *testing.T) func(seed uint64, bug string) *transporttest.Schedule {
	return func(seed uint64, bug string) *transporttest.Schedule {
		return transporttest.Simulate(t, seed, bug, func(s *transporttest.Schedule) (transporttest.World, func(context.Context)) {
			w := &simWorld{Schedule: s, left: map[[sha256.Size]byte]map[int]*simPart{}, masks: map[uint64]string{}, other: map[int][]byte{}}
			w.draw(t)
			return w, w.serve
		})
	}
}

// Owners whose messages are delayed, lost, repeated, reordered and cut off, who die anywhere and come back, also with an
// older copy, at a hub that dies, too, and may lie, with owners that may lie: no context is masked twice, nothing leaves without mask, noise and
// charge, honest owners agree on each total or stop, and when faults end they finish or have used up their retries.
func TestSimulatedSums(t *testing.T) {
	n := 300
	if race.Enabled {
		n = 20
	}
	atLeast := map[string]float64{"ended": .5, "released": 1, "given up": .25, "died": 1, "unfinished": .05, "lies": .05}
	for _, point := range []string{
		"charged", "part", "total", "disk", "hub, before it writes all.here", "hub, after it writes all.here", "hub, before it writes all.sum.", "hub, after it writes all.sum.",
		"before it writes sum.#.here", "after it writes sum.#.here", "before it writes sum.#.part", "after it writes sum.#.part", "before it writes sum.#.stop",
		"after it writes sum.#.stop", "before it reads all.sum", "after it reads all.sum",
	} {
		atLeast["died: "+point] = 0
	}
	simulate := simulator(t)
	transporttest.Schedules(t, n, func(seed uint64) *transporttest.Schedule { return simulate(seed, "") }, atLeast)
}

// A schedule is the same each time.
func TestSimulatedSumsRepeat(t *testing.T) {
	race.Skip(t)
	var seeds []uint64
	for seed := range uint64(30) {
		seeds = append(seeds, seed)
	}
	simulate := simulator(t)
	transporttest.Repeats(t, seeds, func(seed uint64) *transporttest.Schedule { return simulate(seed, "") })
}

// Planted bugs are found.
func TestSimulatedSumsFindBugs(t *testing.T) {
	race.Skip(t)
	transporttest.Finds(t, map[string]int{sameNoise: 100, noShare: 20, twoRosters: 2000, noTranscript: 1000, noEnd: 1000, lateCharge: 20}, simulator(t))
}
