package party

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/run/runlog"
)

// A simulated hub, and the links of owners to it, on the virtual clock of testing/synctest. Everything that
// happens follows from the seed of the schedule: each decision is drawn from the names of what it decides, so
// it does not depend on which goroutine of one instant runs first.

// dice returns the randomness of a decision, by its names.
func (w *world) dice(names ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, names...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// upTo draws a time below d. Two are almost never equal.
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// A simHub stores values under keys, each written once, and announces them.
type simHub struct {
	w *world

	mu     sync.Mutex
	values map[string][]byte
	seq    uint64
	asked  map[string]int            // by viewer and key, or key and owner: how often
	lies   map[int]map[string][]byte // of a lying hub, by viewer: what it shows in place of the values
	all    map[string][][]byte       // by kind: everything that ever came
	links  map[*simLink]bool
}

func newSimHub(w *world) *simHub {
	h := &simHub{w: w, values: map[string][]byte{}, asked: map[string]int{}, lies: map[int]map[string][]byte{}, all: map[string][][]byte{}, links: map[*simLink]bool{}}
	for i := range w.owners {
		h.lies[i] = map[string][]byte{}
	}
	return h
}

// may says whether the hub lets an owner write a key, as transport's permissions do.
func may(owner int, key string) bool {
	part := strings.Split(key, ".")
	own := fmt.Sprint(owner)
	switch part[0] {
	case "rel", "own":
		return part[1] == own
	case "dec":
		return part[2] == own || part[3] == own
	}
	return false
}

// handle answers a request of an owner: a value to store, or a key to read.
func (h *simHub) handle(owner int, subject string, body []byte) transport.Answer {
	prefix := "sotto." + h.w.id + "."
	get := strings.HasPrefix(subject, "$JS.API.DIRECT.GET.")
	if get {
		subject = subject[strings.Index(subject, prefix):]
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".in.")
	key := kind + "." + rest
	h.mu.Lock()
	defer h.mu.Unlock()
	if get {
		v := h.show(owner, key)
		h.w.note(owner, "reads", key, len(v))
		if v == nil {
			return transport.Answer{Status: "404", Description: "Message Not Found"}
		}
		return transport.Answer{Body: v}
	}
	refused := func(why string) transport.Answer {
		return transport.Answer{Body: fmt.Appendf(nil, `{"error":{"code":503,"description":%q}}`, why)}
	}
	if !may(owner, key) {
		return refused("not permitted")
	}
	h.all[kind] = append(h.all[kind], body)
	h.asked[key]++
	r := h.w.dice("put", owner, key, h.asked[key])
	lying := h.w.liesAbout(kind) && r.Float64() < h.w.lies
	if h.values[key] != nil && !lying {
		return refused("maximum messages per subject exceeded")
	}
	h.w.note(owner, "writes", key, len(body))
	h.seq++
	ack := fmt.Appendf(nil, `{"stream":"S","seq":%d}`, h.seq)
	if lying {
		switch r.IntN(4) {
		case 0:
			return transport.Answer{Body: ack} // and stores nothing
		case 1:
			delete(h.values, key) // and forgets what was there
			return refused("no space left on device")
		case 2: // and forgets another key
			if keys := slices.Sorted(maps.Keys(h.values)); len(keys) > 0 {
				delete(h.values, keys[r.IntN(len(keys))])
			}
		case 3:
			h.values[key] = nil // and takes a second value
		}
	}
	h.store(key, body)
	return transport.Answer{Body: ack}
}

// store keeps a value and announces it.
func (h *simHub) store(key string, body []byte) {
	h.values[key] = bytes.Clone(body)
	kind, rest, _ := strings.Cut(key, ".")
	subject := "sotto." + h.w.id + "." + kind + ".out." + rest
	for l := range h.links {
		if l.dead.Load() { // each owner has one that is not
			continue
		}
		if v := h.show(l.owner, key); v != nil {
			l.announce(subject, v)
		}
	}
}

// show returns what the hub says to an owner that a key has.
func (h *simHub) show(viewer int, key string) []byte {
	if v, ok := h.lies[viewer][key]; ok && h.w.faulty() {
		return v
	}
	v := h.values[key]
	kind, _, _ := strings.Cut(key, ".")
	if !h.w.liesAbout(kind) {
		return v
	}
	which := fmt.Sprint(viewer, " ", key)
	h.asked[which]++
	r := h.w.dice("show", viewer, key, h.asked[which])
	if r.Float64() >= h.w.lies {
		return v
	}
	switch r.IntN(4) {
	case 0:
		v = nil
	case 1: // another message of the kind
		if old := h.all[kind]; len(old) > 0 {
			v = old[r.IntN(len(old))]
		}
	case 2:
		if kind == "dec" {
			v = []byte{"CAX"[r.IntN(3)]}
		} else if len(v) > 0 {
			v = bytes.Clone(v)
			v[r.IntN(len(v))] ^= 1 << r.IntN(8)
		}
	case 3: // the same lie from now on
		if kind == "dec" {
			v = []byte{"CA"[r.IntN(2)]}
		}
		h.lies[viewer][key] = v
	}
	return v
}

// A simLink is one process's link to the hub. It implements transport.Link.
type simLink struct {
	*life
	patterns [][]string
	hear     func(subject string, body []byte)

	mu      sync.Mutex
	count   map[string]int // requests by subject
	answers int            // under the planted bug byNumber: how many came
	waiting map[int]chan transport.Answer
}

// away says whether the link is cut now.
func (l *simLink) away() bool {
	at := time.Since(l.w.began)
	return l.w.faulty() && slices.ContainsFunc(l.w.cuts, func(c cut) bool { return c.owners&(1<<l.owner) != 0 && c.from <= at && at < c.to })
}

// delay is how long a message takes: a few milliseconds, and now and then longer than anyone waits.
func (w *world) delay(r *rand.Rand) time.Duration {
	if w.faulty() && r.Float64() < w.slow {
		return upTo(r, 6*time.Second)
	}
	return time.Millisecond + upTo(r, 20*time.Millisecond)
}

// lost says whether a message is.
func (l *simLink) lost(r *rand.Rand) bool { return l.w.faulty() && r.Float64() < l.w.loss || l.away() }

// Request implements transport.Link.
func (l *simLink) Request(ctx context.Context, subject string, body []byte) (transport.Answer, bool, error) {
	l.mu.Lock()
	n := l.count[subject]
	l.count[subject]++
	l.mu.Unlock()
	r := l.w.dice("request", l.owner, l.number, subject, n)
	time.Sleep(upTo(r, time.Millisecond)) // goroutines that wake at one instant go on one after the other
	l.at("asking")
	l.mu.Lock()
	number, answer := l.answers, make(chan transport.Answer, 4)
	l.waiting[number] = answer
	l.mu.Unlock()
	l.w.leaves(l.life, subject, body)
	copies := 1
	if l.w.faulty() && r.Float64() < l.w.twice {
		copies = 2
	}
	for range copies {
		there, back, unheard := l.w.delay(r), l.w.delay(r), l.lost(r)
		if l.lost(r) {
			continue
		}
		time.AfterFunc(there, func() {
			a := l.w.hub.handle(l.owner, subject, body)
			if unheard || l.away() {
				return
			}
			time.AfterFunc(back, func() {
				to := answer
				if l.w.bug == byNumber {
					l.mu.Lock()
					to = l.waiting[number]
					l.mu.Unlock()
				}
				select {
				case to <- a:
				default:
				}
			})
		})
	}
	l.at("asked")
	select {
	case a := <-answer:
		l.mu.Lock()
		l.answers++
		l.mu.Unlock()
		l.at("answered")
		return a, false, nil
	case <-ctx.Done():
		time.Sleep(upTo(r, time.Millisecond))
		l.at("unanswered")
		return transport.Answer{}, true, ctx.Err()
	}
}

// Subscribe implements transport.Link.
func (l *simLink) Subscribe(patterns []string, hear func(subject string, body []byte)) error {
	for _, p := range patterns {
		l.patterns = append(l.patterns, strings.Split(p, "."))
	}
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
	if !slices.ContainsFunc(l.patterns, func(p []string) bool { return matches(p, strings.Split(subject, ".")) }) {
		return
	}
	r := l.w.dice("announce", l.owner, l.number, subject)
	for range 1 + r.IntN(2) {
		d, lost := l.w.delay(r), l.lost(r)
		if lost {
			continue
		}
		time.AfterFunc(d, func() {
			if l.dead.Load() || l.away() {
				return
			}
			l.w.note(l.owner, "hears", subject, len(body))
			l.hear(subject, body)
		})
	}
}

// matches says whether a subject matches a pattern of NATS.
func matches(pattern, subject []string) bool {
	for i, p := range pattern {
		switch {
		case p == ">":
			return len(subject) > i
		case i >= len(subject) || p != "*" && p != subject[i]:
			return false
		}
	}
	return len(pattern) == len(subject)
}

// A liar is the store of a lying owner: what its protocol says, it changes, withholds, and says differently to
// each. What it signs is in its own name: it has its own key only.
type liar struct {
	transport.Store
	*life
	credentials *transport.Credentials
	config      transport.Config
}

// Put implements transport.Store.
func (s liar) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	r := s.w.dice("liar", s.owner, s.number, key)
	kind, _, _ := strings.Cut(key, ".")
	if !s.w.faulty() || !strings.Contains(s.w.about, kind) || r.Float64() > .5 {
		return s.Store.Put(ctx, key, value)
	}
	h, how := s.w.hub, r.IntN(5)
	s.w.note(s.owner, "lies about", key, how)
	switch how {
	case 0: // says nothing, and goes on as if it had
		return value, nil
	case 1: // another message of its own, or anything
		h.mu.Lock()
		old := h.all[kind]
		other := []byte("?")
		if len(old) > 0 {
			other = old[r.IntN(len(old))]
		}
		h.mu.Unlock()
		s.Store.Put(ctx, key, other)
		return value, nil
	case 2:
		if kind == "dec" { // the contrary of what it knows
			other := []byte("C")
			if string(value) == "C" {
				other = []byte("A")
			}
			return s.Store.Put(ctx, key, other)
		}
		changed := bytes.Clone(value)
		changed[r.IntN(len(changed))] ^= 1
		s.Store.Put(ctx, key, changed)
		return value, nil
	case 3: // another text or vector with its signature
		if other := s.signed(ctx, key, s.w.dice("to", key).IntN(len(s.w.owners)), r); other != nil {
			s.Store.Put(ctx, key, other)
			return value, nil
		}
	case 4: // with a lying hub, another one to each
		if s.w.lies > 0 {
			for viewer := range s.w.owners {
				if other := s.signed(ctx, key, viewer, r); other != nil {
					h.mu.Lock()
					h.lies[viewer][key] = other
					h.mu.Unlock()
				}
			}
		}
	}
	return s.Store.Put(ctx, key, value)
}

// signed signs another text or vector under the key, as the viewer may want to read it; nil for decisions, which
// nobody signs.
func (s liar) signed(ctx context.Context, key string, viewer int, r *rand.Rand) []byte {
	part := strings.Split(key, ".")
	c := &caught{}
	n := &transport.Node{Store: c, Credentials: s.credentials, Config: s.config}
	switch {
	case part[0] == "own" && part[2] == transport.Model:
		n.Share(ctx, s.w.spec.plan.Schedule.Rounds, s.vector(r))
	case part[0] == "rel":
		var to, round int
		fmt.Sscan(part[2], &to)
		fmt.Sscan(part[3], &round)
		path := filepath.Join(s.dir, "lie "+key)
		v := s.vector(r)
		j, err := runlog.CreateJournal(path, runlog.JournalHead{Dim: len(v)})
		s.w.must(err)
		n.Journal = j
		n.Mix(ctx, s.owner, gossip.Activation{T: round, Peers: []int{to}, Weight: []float64{.5}}, v)
		s.w.must(errors.Join(j.Close(), os.Remove(path)))
	case part[0] == "own":
		text := make([]byte, 32)
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		if part[2] == transport.Ready {
			s.w.hub.mu.Lock()
			theirs := s.w.hub.values[fmt.Sprintf("own.%d.ready", viewer)]
			s.w.hub.mu.Unlock()
			if len(theirs) > ed25519.SignatureSize { // agrees with whatever the viewer says
				words := strings.Fields(string(theirs[:len(theirs)-ed25519.SignatureSize]))
				text = []byte("r " + words[len(words)-1])
			}
		}
		n.Meet(ctx, part[2], text)
	}
	return c.value
}

// vector is any, now and then one that spoils what it is added to.
func (s liar) vector(r *rand.Rand) []float64 {
	v := make([]float64, s.w.spec.plan.Job.Facts.Dim)
	for j := range v {
		v[j] = []float64{r.NormFloat64(), 1e300, math.Inf(1), math.NaN()}[r.IntN(4)]
	}
	return v
}

// caught is a store that keeps the first value and ends what asks.
type caught struct {
	transport.Store
	value []byte
}

func (c *caught) Put(_ context.Context, _ string, value []byte) ([]byte, error) {
	c.value = value
	return nil, context.Canceled
}

// vectorOf returns the numbers in a message of a vector, as bytes.
func vectorOf(message []byte, dim int) []byte {
	const head, signature = 64, 64
	if len(message) != head+8*dim+signature {
		return nil
	}
	return message[head : head+8*dim]
}
