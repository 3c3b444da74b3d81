package pool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/simdisk"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// A schedule of simulated owners who add up is everything that happens to them, from one seed, on the virtual clock of testing/synctest.
var (
	schedules = flag.Int("schedules", 0, "simulate so many schedules of owners who add up, in place of a few hundred")
	firstSeed = flag.Uint64("seed", 1, "of the first simulated schedule")
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

// A simWorld is one schedule.
type simWorld struct {
	seed uint64
	bug  string

	network     *transport.Network
	config      transport.Config
	credentials []*transport.Credentials
	batches     int
	retries     int

	// What happens until quiet, each with its probability: messages are lost, sent twice, or take seconds; a process
	// dies at a point, at a call of its disk, or at any time; the hub dies at a message; a directory is put back from an older copy; the hub lies.
	quiet                                                          time.Duration
	loss, twice, slow, crashes, disks, kills, hubs, restores, lies float64
	cuts                                                           []simCut

	began  time.Time
	ctx    context.Context
	hub    *simHub
	owners []*simOwner

	mu    sync.Mutex
	found []string
	left  map[[sha256.Size]byte]map[int]*simPart // by context and owner: the parts that left
	masks map[uint64]string                      // numbers of masks: none is used twice
	other map[int][]byte                         // by attempt: another presence that the lying owner signed

	died                               map[string]int // by point: of owners and hub
	events                             []string
	lied                               bool
	released, givenUp, deaths, stopped int
}

// A simCut separates some owners from the hub for a time.
type simCut struct {
	owners   uint
	from, to time.Duration
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
	w      *simWorld
	index  int
	honest bool
	disk   *simdisk.Disk
	copies []*simdisk.Disk

	lives, charges, draws int
	last                  *simPart // that its run made
	parts                 map[[2]int]*simPart
	masked                map[int]bool // attempts of which parts left
	totals                [][]int64    // of the places of all batches
	at                    []int        // attempts of the totals
	ended                 bool
	err                   error
}

func (w *simWorld) dice(names ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, names...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

func (w *simWorld) faulty() bool { return time.Since(w.began) < w.quiet }

// fail records a violation of an honest owner's guarantee.
func (w *simWorld) fail(owner int, format string, args ...any) {
	if owner >= 0 && !w.owners[owner].honest {
		return
	}
	w.found = append(w.found, fmt.Sprintf("%v: owner %d: ", time.Since(w.began), owner)+fmt.Sprintf(format, args...))
}

// simNetworks are those of 2 to 4 owners.
var simNetworks = sync.OnceValue(func() (all [][]*transport.Credentials) {
	for n := 2; n <= 4; n++ {
		network := transport.Network{
			Format: "sotto-network/3", ID: fmt.Sprintf("%016x", n), OwnKeys: true, Mode: transport.ModeSum,
			Limits: &transport.Limits{Dim: 3, Sums: &transport.SumLimits{Attempts: 1000, Sums: 3, Numbers: 3}},
		}
		var seeds []string
		for i := range n {
			seed := make([]byte, ed25519.SeedSize)
			seed[0], seed[1] = byte(n), byte(i)
			seeds = append(seeds, hex.EncodeToString(seed))
			network.Owners = append(network.Owners, transport.Member{Name: fmt.Sprint("hospital-", i+1), Key: hex.EncodeToString(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))})
		}
		var credentials []*transport.Credentials
		for i := range n {
			credentials = append(credentials, &transport.Credentials{Network: network, Owner: i, Seed: seeds[i]})
		}
		all = append(all, credentials)
	}
	return all
})

// draw chooses what a schedule has in store.
func (w *simWorld) draw() {
	r := w.dice("world")
	w.credentials = simNetworks()[r.IntN(3)]
	n := len(w.credentials)
	w.network = &w.credentials[0].Network
	pick := func(most float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return most * r.Float64()
	}
	w.batches = 2 + r.IntN(3)
	w.retries = []int{0, 1, 3, 1000}[r.IntN(4)]
	w.quiet = 5*time.Second + upTo(r, 60*time.Second)
	w.loss, w.twice, w.slow = pick(.4), pick(.5), pick(.3)
	w.crashes, w.disks, w.kills, w.hubs = pick(.1), pick(.7), pick(.8), pick(.2)
	for range r.IntN(4) {
		from := upTo(r, w.quiet)
		w.cuts = append(w.cuts, simCut{uint(r.IntN(1<<n-1) + 1), from, from + upTo(r, 15*time.Second)})
	}
	for i := range n {
		o := &simOwner{w: w, index: i, honest: true, disk: simdisk.New(w.seed*8 + uint64(i)), parts: map[[2]int]*simPart{}, masked: map[int]bool{}}
		o.totals, o.at = make([][]int64, w.batches*len(simSums)), make([]int, w.batches*len(simSums))
		w.owners = append(w.owners, o)
	}
	kind := r.IntN(8)
	switch w.bug {
	case sameNoise, noShare, lateCharge:
		kind = 0
	case noTranscript, noEnd:
		kind = 4
	case twoRosters:
		kind = 6
	}
	switch kind {
	case 0, 1, 2: // nobody lies
	case 3:
		w.restores = r.Float64()
	case 4: // the hub
		w.lies = .5 * r.Float64()
	case 5: // an owner
		w.owners[r.IntN(n)].honest = false
	case 6: // both
		w.lies = .3 * r.Float64()
		w.owners[r.IntN(n)].honest = false
	case 7: // all others together
		w.lies = .3 * r.Float64()
		alone := r.IntN(n)
		for i, o := range w.owners {
			o.honest = i == alone
		}
	}
}

// A simHub stores values under keys, each written once, and announces those of all. Its Adder is the real one.
type simHub struct {
	w *simWorld

	mu      sync.Mutex
	values  map[string][]byte
	changed chan struct{}
	asked   map[string]int
	lies    map[string][]byte // by viewer and key: what it shows in place of the value
	all     map[string][][]byte
	links   map[*simLink]bool
	down    bool
	puts    int
}

// kind is that of a key, without numbers.
func kind(key string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, key), ".#")
}

// keyOf is the key that a request reads or writes.
func (w *simWorld) keyOf(subject string) (key string, get bool) {
	prefix := "sotto." + w.network.ID + "."
	get = strings.HasPrefix(subject, "$JS.API.DIRECT.GET.")
	first, rest, _ := strings.Cut(subject[strings.Index(subject, prefix)+len(prefix):], ".in.")
	return first + "." + rest, get
}

// handle answers a request of an owner: a value to store, or a key to read.
func (h *simHub) handle(owner int, subject string, body []byte) (transport.Answer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return transport.Answer{}, false
	}
	key, get := h.w.keyOf(subject)
	if get {
		if v := h.show(owner, key); v != nil {
			return transport.Answer{Body: v}, true
		}
		return transport.Answer{Status: "404", Description: "Message Not Found"}, true
	}
	refused := func(why string) (transport.Answer, bool) {
		return transport.Answer{Body: fmt.Appendf(nil, `{"error":{"code":503,"description":%q}}`, why)}, true
	}
	if !strings.HasPrefix(key, fmt.Sprintf("sum.%d.", owner)) {
		return refused("not permitted")
	}
	h.all[kind(key)] = append(h.all[kind(key)], body)
	if h.values[key] != nil {
		return refused("maximum messages per subject exceeded")
	}
	h.asked[key]++
	if r := h.w.dice("put", key, h.asked[key]); h.w.faulty() && r.Float64() < h.w.lies/4 { // it says that it has it
		h.w.lied = true
		return transport.Answer{Body: []byte(`{"stream":"S","seq":1}`)}, true
	}
	h.store(key, body)
	return transport.Answer{Body: []byte(`{"stream":"S","seq":1}`)}, true
}

// store keeps a value, and announces it if all may read it.
func (h *simHub) store(key string, body []byte) {
	h.values[key] = bytes.Clone(body)
	close(h.changed)
	h.changed = make(chan struct{})
	rest, ok := strings.CutPrefix(key, "all.")
	if !ok {
		return
	}
	for l := range h.links {
		if v := h.show(l.owner, key); v != nil {
			l.announce("sotto."+h.w.network.ID+".all.out."+rest, v)
		}
	}
}

// show returns what the hub says to an owner that a key has.
func (h *simHub) show(viewer int, key string) []byte {
	which := fmt.Sprint(viewer, " ", key)
	if v, ok := h.lies[which]; ok {
		return v
	}
	v := h.values[key]
	if h.w.lies == 0 || !h.w.faulty() {
		return v
	}
	h.asked[which]++
	r := h.w.dice("show", which, h.asked[which])
	if r.Float64() >= h.w.lies {
		return v
	}
	h.w.lied = true
	lie := bytes.Clone(v)
	switch r.IntN(6) {
	case 0:
		return nil
	case 1: // another message of the kind
		if old := h.all[kind(key)]; len(old) > 0 {
			return old[r.IntN(len(old))]
		}
	case 2:
		if len(lie) > 0 {
			lie[r.IntN(len(lie))] ^= 1 << r.IntN(8)
			return lie
		}
	case 3: // a total that nobody made, or an end that nobody asked for; to this owner from now on
		if strings.HasPrefix(key, "all.sum.") && len(lie) > 9 && r.IntN(4) > 0 {
			lie[len(lie)-8]++
			h.lies[which] = lie
		} else if strings.HasPrefix(key, "all.sum.") && r.IntN(8) == 0 {
			h.lies[which] = binary.LittleEndian.AppendUint64([]byte{'G'}, uint64(r.IntN(len(h.w.owners))))
		}
	case 4, 5: // another roster: what the lying owner signed for it
		var attempt int
		if n, _ := fmt.Sscanf(key, "all.here.%d", &attempt); n == 1 && len(lie) > 0 && h.w.other[attempt] != nil {
			size, liar := len(lie)/len(h.w.owners), slices.IndexFunc(h.w.owners, func(o *simOwner) bool { return !o.honest })
			copy(lie[liar*size:], h.w.other[attempt])
			h.lies[which] = lie
		}
	}
	if v, ok := h.lies[which]; ok {
		return v
	}
	return v
}

// simSide is the hub's own way to its store, at which it dies now and then.
type simSide struct {
	h *simHub
}

func (s simSide) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.puts++
	r := h.w.dice("hub", h.puts)
	dies := h.w.faulty() && r.Float64() < h.w.hubs
	before := dies && r.IntN(2) == 0
	if dies {
		h.w.dies(fmt.Sprint("hub, before ", before, " ", kind(key)))
	}
	if before {
		return nil, errCrash
	}
	if h.values[key] == nil {
		h.all[kind(key)] = append(h.all[kind(key)], value)
		h.store(key, value)
	}
	if dies {
		return nil, errCrash
	}
	return h.values[key], nil
}

func (s simSide) Get(_ context.Context, key string) ([]byte, error) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if v := s.h.values[key]; v != nil {
		return v, nil
	}
	return nil, transport.ErrNone
}

func (s simSide) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	for {
		s.h.mu.Lock()
		changed := s.h.changed
		for i, k := range keys {
			if v := s.h.values[k]; v != nil {
				s.h.mu.Unlock()
				return i, v, nil
			}
		}
		s.h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

// forget deletes the parts, as the hub does.
func (h *simHub) forget(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.values, func(key string, _ []byte) bool { return strings.Contains(key, ".part.") })
	return nil
}

// serve runs the hub's processes.
func (h *simHub) serve(done chan<- struct{}) {
	defer close(done)
	for life := 0; h.w.ctx.Err() == nil; life++ {
		a := &transport.Adder{Store: simSide{h}, Network: h.w.network, Config: h.w.config, Forget: h.forget}
		err := a.Run(h.w.ctx)
		if h.w.ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errCrash) {
			h.w.mu.Lock()
			h.w.fail(-1, "the hub has ended: %v", err)
			h.w.mu.Unlock()
			return
		}
		h.mu.Lock()
		h.down = true
		h.w.deaths++
		h.mu.Unlock()
		time.Sleep(upTo(h.w.dice("hub starts", life), 10*time.Second))
		h.mu.Lock()
		h.down = false
		h.mu.Unlock()
	}
}

// A simLink is one process's link to the hub. It implements transport.Link.
type simLink struct {
	*simLife
	hear  func(subject string, body []byte)
	mu    sync.Mutex
	count map[string]int
}

// away says whether the link is cut now.
func (l *simLink) away() bool {
	at := time.Since(l.w.began)
	return l.w.faulty() && slices.ContainsFunc(l.w.cuts, func(c simCut) bool { return c.owners&(1<<l.owner) != 0 && c.from <= at && at < c.to })
}

func (w *simWorld) delay(r *rand.Rand) time.Duration {
	if w.faulty() && r.Float64() < w.slow {
		return upTo(r, 6*time.Second)
	}
	return time.Millisecond + upTo(r, 20*time.Millisecond)
}

func (l *simLink) lost(r *rand.Rand) bool { return l.w.faulty() && r.Float64() < l.w.loss || l.away() }

// Request implements transport.Link.
func (l *simLink) Request(ctx context.Context, subject string, body []byte) (transport.Answer, bool, error) {
	l.mu.Lock()
	n := l.count[subject]
	l.count[subject]++
	l.mu.Unlock()
	r := l.w.dice("request", l.owner, l.number, subject, n)
	time.Sleep(upTo(r, time.Millisecond))
	key, get := l.w.keyOf(subject)
	what := "writes " + key
	if get {
		what = "reads " + key
	}
	if l.at("before it " + what) {
		return transport.Answer{}, false, errCrash
	}
	if !get {
		l.w.leaves(l.owner, key, body)
	}
	answer, copies := make(chan transport.Answer, 2), 1
	if l.w.faulty() && r.Float64() < l.w.twice {
		copies = 2
	}
	for range copies {
		there, back, unheard := l.w.delay(r), l.w.delay(r), l.lost(r)
		if l.lost(r) {
			continue
		}
		time.AfterFunc(there, func() {
			if a, ok := l.w.hub.handle(l.owner, subject, body); ok && !unheard && !l.away() {
				time.AfterFunc(back, func() { answer <- a })
			}
		})
	}
	select {
	case a := <-answer:
		if l.at("after it " + what) {
			return transport.Answer{}, false, errCrash
		}
		return a, false, nil
	case <-ctx.Done():
		return transport.Answer{}, true, ctx.Err()
	}
}

// Subscribe implements transport.Link.
func (l *simLink) Subscribe(_ []string, hear func(subject string, body []byte)) error {
	l.hear = hear
	l.w.hub.mu.Lock()
	defer l.w.hub.mu.Unlock()
	l.w.hub.links[l] = true
	return nil
}

// Close implements transport.Link.
func (l *simLink) Close() {
	l.w.hub.mu.Lock()
	defer l.w.hub.mu.Unlock()
	delete(l.w.hub.links, l)
}

// announce passes a stored value on, perhaps late, twice or never.
func (l *simLink) announce(subject string, body []byte) {
	r := l.w.dice("announce", l.owner, l.number, subject)
	for range 1 + r.IntN(2) {
		if d, lost := l.w.delay(r), l.lost(r); !lost {
			time.AfterFunc(d, func() {
				if !l.away() {
					l.hear(subject, body)
				}
			})
		}
	}
}

// A simLife is one process of an owner.
type simLife struct {
	w             *simWorld
	owner, number int
	stop          context.CancelFunc

	mu     sync.Mutex
	dead   bool
	passed map[string]int
	seen   map[int][]byte // by attempt: the presences that the hub showed
}

func (l *simLife) of() *simOwner { return l.w.owners[l.owner] }

// at is a point at which the process may die. It reports whether it is dead.
func (l *simLife) at(point string) bool {
	l.mu.Lock()
	l.passed[point]++
	n := l.passed[point]
	l.mu.Unlock()
	if l.w.faulty() && l.w.dice("crash", l.owner, l.number, point, n).Float64() < l.w.crashes {
		l.w.dies(kind(point))
		l.die()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// dies notes where a process has died.
func (w *simWorld) dies(point string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.died[point]++
	w.events = append(w.events, fmt.Sprint(time.Since(w.began), " ", point))
}

// die ends the process: what it has not synced may be lost, and nothing more leaves it.
func (l *simLife) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return
	}
	l.dead = true
	l.of().disk.Start(nil)
	l.stop()
}

// A simView is an owner's store, which remembers what presences the hub has shown.
type simView struct {
	transport.Store
	*simLife
}

func (s simView) Await(ctx context.Context, keys ...string) (int, []byte, error) {
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

// A simLiar is the store of a lying owner: what its pool says, it changes, withholds, or says otherwise to each.
type simLiar struct {
	transport.Store
	*simLife
}

func (s simLiar) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	w, c := s.w, s.w.credentials[s.owner]
	r := w.dice("liar", s.owner, s.number, key)
	var owner, attempt, sum int
	presence, _ := fmt.Sscanf(key, "sum.%d.here.%d", &owner, &attempt)
	part, _ := fmt.Sscanf(key, "sum.%d.part.%d.%d", &owner, &attempt, &sum)
	if !w.faulty() {
		return s.Store.Put(ctx, key, value)
	}
	if presence == 2 && r.IntN(2) == 0 {
		public := make([]byte, sha256.Size)
		for i := range public {
			public[i] = byte(r.Uint32())
		}
		w.hub.mu.Lock()
		w.other[attempt] = c.Sign(w.config, key, public)
		w.hub.mu.Unlock()
	}
	if r.IntN(3) > 0 {
		return s.Store.Put(ctx, key, value)
	}
	switch how := r.IntN(6); {
	case how == 0: // says nothing, and goes on as if it had
		return value, nil
	case how == 1:
		s.Store.Put(ctx, key, []byte("?"))
	case how == 2:
		changed := bytes.Clone(value)
		changed[r.IntN(len(changed))] ^= 1
		s.Store.Put(ctx, key, changed)
	case how == 3: // another's key
		s.Store.Put(ctx, strings.Replace(key, fmt.Sprintf("sum.%d", owner), fmt.Sprintf("sum.%d", (owner+1)%len(w.owners)), 1), value)
	case how == 4 && part == 3: // other numbers in the same context, or as many as it likes in another
		context := [sha256.Size]byte{}
		if r.IntN(2) == 0 {
			copy(context[:], value[8:])
		}
		transport.PutPart(ctx, s.Store, c, w.config, attempt, sum, context, make([]byte, 8*r.IntN(5)))
	case how == 5:
		transport.PutStop(ctx, s.Store, c, w.config, attempt, r.IntN(3))
		return s.Store.Put(ctx, key, value)
	}
	return value, nil
}

// leaves checks what leaves an owner.
func (w *simWorld) leaves(owner int, key string, body []byte) {
	o := w.owners[owner]
	var who, attempt, sum int
	if n, _ := fmt.Sscanf(key, "sum.%d.part.%d.%d", &who, &attempt, &sum); n < 3 || !o.honest {
		return
	}
	if len(body) == ed25519.SignatureSize { // asks for the end where its stop is taken (transport.PutStop)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(body) == ed25519.SignatureSize { // it asks for the end, where another has stored its stop
		return
	}
	const head = 8 + 2*sha256.Size + ed25519.SignatureSize
	digest := [sha256.Size]byte(body[8:])
	if w.left[digest] == nil {
		w.left[digest] = map[int]*simPart{}
	}
	if before := w.left[digest][owner]; before != nil {
		if !bytes.Equal(before.bytes, body) {
			w.fail(owner, "two parts leave in one context, sum %d of attempt %d", sum, attempt)
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
		w.fail(owner, "a part leaves that its run has not made")
		return
	case p.bytes != nil:
		w.fail(owner, "a part leaves in two contexts, sum %d of attempt %d", sum, attempt)
	}
	p.bytes, p.digest = bytes.Clone(body), digest
	w.left[digest][owner] = p
	if last {
		return
	}
	o.masked[attempt] = true
	if o.charges < len(o.masked) {
		w.fail(owner, "parts of %d attempts leave, and %d are charged", len(o.masked), o.charges)
	}
	for _, others := range w.left {
		if q := others[owner]; q != nil && q != p && len(p.plain) > 0 && q.draw == p.draw {
			w.fail(owner, "noise is used twice, at last in sum %d of attempt %d", sum, attempt)
		}
	}
	for k, x := range p.plain {
		m := binary.LittleEndian.Uint64(body[head+8*k:]) - uint64(x)
		name := fmt.Sprint("owner ", owner, ", attempt ", attempt, ", sum ", sum, ", number ", k)
		if m == 0 {
			w.fail(owner, "%s leaves without a mask", name)
		}
		if before, ok := w.masks[m]; ok && len(w.owners) > 2 { // of two owners one adds what the other takes off
			w.fail(owner, "%s has the mask of %s", name, before)
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
		w.fail(o.index, "it takes a total without a part of its own")
		return
	}
	w.released++
	w.events = append(w.events, fmt.Sprint(time.Since(w.began), " owner ", o.index, " takes ", attempt, " ", sum, " ", total))
	want, honest := make([]int64, len(total)), true
	for j, other := range w.owners {
		theirs := w.left[mine.digest][j]
		switch {
		case !other.honest:
			honest = false
		case theirs == nil:
			w.fail(o.index, "it takes sum %d of attempt %d, of which owner %d masked no part in its context", sum, attempt, j)
			return
		case theirs.view != mine.view:
			w.fail(o.index, "it takes sum %d of attempt %d, in which owner %d has seen other presences or totals", sum, attempt, j)
		default:
			for k := range want {
				want[k] += theirs.data[k] + theirs.noise[k]
			}
		}
	}
	if honest && w.lies == 0 && !slices.Equal(total, want) {
		w.fail(o.index, "sum %d of attempt %d is not that of all rows and shares of noise", sum, attempt)
	}
}

const simLog = "/log"

// simSums are the numbers of the sums of a batch.
var simSums = []int{3, 1}

// process trains as a run does: it charges each attempt before it masks, and releases batches.
func (o *simOwner) process(ctx context.Context, l *simLife) (err error) {
	w := o.w
	client, err := transport.NewClient(&simLink{simLife: l, count: map[string]int{}}, w.credentials[o.index])
	if err != nil {
		return err
	}
	defer client.Close()
	var store transport.Store = simView{client, l}
	if !o.honest {
		store = simLiar{store, l}
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
		Store: store, Credentials: w.credentials[o.index], Disk: runlog.Disk{FS: o.disk}, Path: journalPath, Run: "run", Retries: w.retries,
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
		if w.bug == lateCharge {
			late = true
			return nil
		}
		if err := append1('c'); err != nil {
			return err
		}
		o.charges++
		if l.at("charged") {
			return errCrash
		}
		return nil
	}
	end := func() error {
		if w.bug == noEnd {
			return nil
		}
		if w.bug == noTranscript {
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
			attempt, sum := p.attempt, p.sum
			switch w.bug {
			case twoRosters:
				p.present = [sha256.Size]byte{}
			case noTranscript:
				p.transcript = [sha256.Size]byte{}
			}
			v, err := p.Sum(ctx, asked, n, func() ([]int64, error) {
				if l.at("part") {
					return nil, errCrash
				}
				return o.part(l, attempt, sum, batch, place, n, asked), nil
			})
			if late && (err == nil || errors.Is(err, private.ErrGivenUp)) {
				late = false
				if err := append1('c'); err != nil {
					return err
				}
				o.charges++
			}
			if errors.Is(err, private.ErrGivenUp) {
				w.mu.Lock()
				w.givenUp++
				w.mu.Unlock()
				if err := meet(); err != nil {
					return over(err)
				}
				continue
			} else if err != nil {
				return err
			}
			w.accepts(o, attempt, sum, v)
			k := batch*len(simSums) + place
			if o.totals[k] != nil && !slices.Equal(o.totals[k], v) && w.restores == 0 {
				w.mu.Lock()
				w.fail(o.index, "it takes another total of batch %d after a restart", batch)
				w.mu.Unlock()
			}
			o.totals[k], o.at[k] = slices.Clone(v), attempt
			place++
			if l.at("total") {
				return errCrash
			}
		}
		if err := append1('r'); err != nil {
			return err
		}
		if l.at("released") {
			return errCrash
		}
	}
	return end()
}

// part is an owner's rows with its share of noise.
func (o *simOwner) part(l *simLife, attempt, sum, batch, place, n int, asked [sha256.Size]byte) []int64 {
	w := o.w
	l.mu.Lock()
	view := sha256.New()
	view.Write(l.seen[attempt])
	l.mu.Unlock()
	fmt.Fprintln(view, attempt, sum, asked, o.totals[:batch*len(simSums)+min(place, len(simSums))])
	p := &simPart{view: [sha256.Size]byte(view.Sum(nil)), data: make([]int64, n), noise: make([]int64, n)}
	o.draws++
	p.draw = o.draws
	if w.bug == sameNoise && o.last != nil && len(o.last.data) == n {
		p.draw = o.last.draw
	}
	r := w.dice("noise", o.index, p.draw)
	for k := range n {
		p.data[k] = int64(o.index+1) * int64(100*batch+10*place+k)
		p.noise[k] = int64(r.Uint64())
	}
	p.plain = slices.Clone(p.data)
	for k := range n {
		if w.bug != noShare || o.index != 0 {
			p.plain[k] += p.noise[k]
		}
	}
	w.mu.Lock()
	o.parts[[2]int{attempt, sum}], o.last = p, p
	w.mu.Unlock()
	return slices.Clone(p.plain)
}

// live runs one process of the owner until it ends or dies.
func (o *simOwner) live() error {
	w := o.w
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	l := &simLife{w: w, owner: o.index, number: o.lives, stop: stop, passed: map[string]int{}, seen: map[int][]byte{}}
	o.lives++
	r := w.dice("life", o.index, l.number)
	if len(o.copies) > 0 && w.faulty() && r.Float64() < w.restores {
		o.disk = o.copies[r.IntN(len(o.copies))].Clone() // an older copy is put back
	}
	plan := map[int]simdisk.Fault{}
	if w.faulty() && r.Float64() < w.disks {
		plan[r.IntN(40)] = []simdisk.Fault{simdisk.Kill, simdisk.Drop, simdisk.Torn}[r.IntN(3)]
	}
	o.disk.Start(plan)
	if w.faulty() && r.Float64() < w.kills {
		t := time.AfterFunc(upTo(r, 20*time.Second), func() {
			if w.faulty() {
				l.die()
			}
		})
		defer t.Stop()
	}
	err := o.process(ctx, l)
	l.mu.Lock()
	if o.disk.Dead() != nil && !l.dead {
		w.dies("disk")
	}
	dead := l.dead || o.disk.Dead() != nil
	l.dead = true
	l.mu.Unlock()
	if dead || err != nil {
		o.disk.Cut(r.IntN(2) == 0)
		o.copies = append(o.copies, o.disk.Clone())
	}
	if dead {
		w.mu.Lock()
		w.deaths++
		w.mu.Unlock()
		return errCrash
	}
	return err
}

// work runs the owner's processes, as a person would who starts it again after each crash.
func (o *simOwner) work() {
	w := o.w
	time.Sleep(upTo(w.dice("start", o.index), 5*time.Second))
	for w.ctx.Err() == nil {
		err := o.live()
		if err == nil {
			o.ended = true
			return
		}
		if w.ctx.Err() == nil && !errors.Is(err, errCrash) {
			o.err = err
			if errors.Is(err, ErrBehind) || errors.Is(err, privacy.ErrExhausted) || strings.Contains(err.Error(), "is of different contexts") {
				return
			}
		}
		select {
		case <-time.After(100*time.Millisecond + upTo(w.dice("restart", o.index, o.lives), 8*time.Second)):
		case <-w.ctx.Done():
		}
	}
}

// run simulates the schedule.
func (w *simWorld) run(t *testing.T) {
	w.draw()
	cryptotest.SetGlobalRandom(t, w.seed)
	var err error
	if w.config, err = w.network.Config(); err != nil {
		t.Fatal(err)
	}
	w.left, w.masks, w.other = map[[sha256.Size]byte]map[int]*simPart{}, map[uint64]string{}, map[int][]byte{}
	w.died = map[string]int{}
	w.began = time.Now()
	honest := !slices.ContainsFunc(w.owners, func(o *simOwner) bool { return !o.honest })
	trusted := honest && w.lies == 0 && w.restores == 0
	patience := 20 * time.Minute // after the last fault
	if !trusted {
		patience = 2 * time.Minute // an owner that stops leaves the others waiting
	}
	var stop context.CancelFunc
	w.ctx, stop = context.WithTimeout(context.Background(), w.quiet+patience)
	defer stop()
	w.hub = &simHub{w: w, values: map[string][]byte{}, changed: make(chan struct{}), asked: map[string]int{}, lies: map[string][]byte{}, all: map[string][][]byte{}, links: map[*simLink]bool{}}
	done := make(chan struct{})
	go w.hub.serve(done)
	var all sync.WaitGroup
	for _, o := range w.owners {
		all.Go(o.work)
	}
	all.Wait()
	stop()
	<-done
	synctest.Wait()
	w.check(trusted)
	time.Sleep(time.Minute) // what is on its way arrives
	synctest.Wait()
}

// check checks what the owners hold when all have ended.
func (w *simWorld) check(trusted bool) {
	var first *simOwner
	exhausted := 0
	for i, o := range w.owners {
		if !o.honest {
			continue
		}
		if errors.Is(o.err, privacy.ErrExhausted) && !o.ended {
			exhausted++
		} else if !o.ended {
			w.stopped++
		}
		if trusted && !o.ended && !errors.Is(o.err, privacy.ErrExhausted) {
			w.fail(i, "it has not finished: %v", o.err)
		}
		if logged := bytes.Count(o.disk.Peek(simLog), []byte("c")); w.restores == 0 && logged < len(o.masked) {
			w.fail(i, "its log has %d charges, and parts of %d attempts left", logged, len(o.masked))
		}
		if !o.ended {
			continue
		}
		if first == nil {
			first = o
		} else if !slices.EqualFunc(o.totals, first.totals, slices.Equal) || trusted && !slices.Equal(o.at, first.at) {
			w.fail(i, "it has finished with other totals than owner %d", first.index)
		}
	}
	if trusted && exhausted != 0 && exhausted != len(w.owners) {
		w.fail(-1, "%d owners have used up their retries, and the others have not", exhausted)
	}
}

// simulate runs one schedule, and returns it.
func simulate(t *testing.T, seed uint64, bug string) *simWorld {
	w := &simWorld{seed: seed, bug: bug}
	synctest.Test(t, func(t *testing.T) { w.run(t) })
	return w
}

// Owners whose messages are delayed, lost, repeated, reordered and cut off, who die anywhere and come back, also with an
// older copy, at a hub that dies, too, and may lie, with owners that may lie: no context is masked twice, nothing leaves without mask, noise and
// charge, honest owners agree on each total or stop, and when faults end they finish or have used up their retries.
func TestSimulatedSums(t *testing.T) {
	n := cmp.Or(*schedules, 300)
	if race.Enabled {
		n = cmp.Or(*schedules, 20)
	}
	start := time.Now()
	var ended, released, givenUp, deaths, stopped, lied int
	died := map[string]int{}
	for k := range n {
		w := simulate(t, *firstSeed+uint64(k), "")
		if len(w.found) > 0 {
			t.Fatalf("seed %d:\n%s\nrepeat: go test ./gossip/pool -run '^TestSimulatedSums$' -schedules 1 -seed %d", w.seed, strings.Join(w.found, "\n"), w.seed)
		}
		for _, o := range w.owners {
			if o.ended {
				ended++
			}
		}
		if w.lied {
			lied++
		}
		for point, times := range w.died {
			died[point] += times
		}
		released, givenUp, deaths, stopped = released+w.released, givenUp+w.givenUp, deaths+w.deaths, stopped+w.stopped
	}
	t.Logf("%d schedules, %.0f in a second: %d owners finished, %d stopped, %d sums taken, %d attempts given up, %d deaths, %d hubs lied",
		n, float64(n)/time.Since(start).Seconds(), ended, stopped, released, givenUp, deaths, lied)
	t.Logf("deaths: %v", died)
	for _, point := range []string{
		"charged", "part", "total", "disk", "hub, before false all.here", "hub, before true all.here", "hub, before false all.sum", "hub, before true all.sum",
		"before it writes sum.#.here", "after it writes sum.#.here", "before it writes sum.#.part", "after it writes sum.#.part", "before it writes sum.#.stop",
		"after it writes sum.#.stop", "before it reads all.sum", "after it reads all.sum",
	} {
		if n >= 100 && died[point] == 0 {
			t.Errorf("nobody died at %q", point)
		}
	}
	if n >= 100 && (ended < n/2 || released < n || givenUp < n/4 || deaths < n || stopped < n/20 || lied < n/20) {
		t.Error("schedules in which too little happens")
	}
}

// A schedule is the same each time.
func TestSimulatedSumsRepeat(t *testing.T) {
	race.Skip(t)
	for seed := range uint64(30) {
		first, again := simulate(t, seed, ""), simulate(t, seed, "")
		slices.Sort(first.events) // of one instant, any order
		slices.Sort(again.events)
		if !slices.Equal(first.events, again.events) {
			t.Errorf("seed %d: %d events, then %d", seed, len(first.events), len(again.events))
		}
	}
}

// Planted bugs are found.
func TestSimulatedSumsFindBugs(t *testing.T) {
	race.Skip(t)
	for bug, within := range map[string]int{sameNoise: 100, noShare: 20, twoRosters: 2000, noTranscript: 1000, noEnd: 1000, lateCharge: 20} {
		n, found := 0, ""
		for ; n < within && found == ""; n++ {
			if w := simulate(t, *firstSeed+uint64(n), bug); len(w.found) > 0 {
				found = w.found[0]
			}
		}
		if found == "" {
			t.Errorf("%s: not found in %d schedules", bug, n)
		}
		t.Logf("%s: found in schedule %d: %s", bug, n, found)
	}
}
