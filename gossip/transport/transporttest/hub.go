package transporttest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/sottodp/sotto/gossip/transport"
)

// A Hub stores values under keys, each written once, and announces them. While it lies, it shows each owner what it
// likes, and stores what it likes. It implements transport.Store for programs of its own, to which it shows all values.
type Hub struct {
	s *Schedule

	mu      sync.Mutex
	values  map[string][]byte
	changed chan struct{}
	asked   map[string]int      // how often, by what
	kept    map[string][]byte   // lies that it keeps to, by viewer and key
	all     map[string][][]byte // everything that ever came, by kind
	links   map[*link]bool
	down    bool
}

func newHub(s *Schedule) *Hub {
	return &Hub{
		s: s, values: map[string][]byte{}, changed: make(chan struct{}), asked: map[string]int{}, kept: map[string][]byte{},
		all: map[string][][]byte{}, links: map[*link]bool{},
	}
}

// may reports whether the hub lets an owner write a key, as transport's permissions do.
func may(owner int, key string) bool {
	part, own := strings.Split(key, "."), fmt.Sprint(owner)
	switch part[0] {
	case "rel", "own", "sum":
		return part[1] == own
	case "dec":
		return part[2] == own || part[3] == own
	}
	return false
}

// keyOf returns the key that a request reads or writes.
func (s *Schedule) keyOf(subject string) (key string, get bool) {
	prefix := "sotto." + s.Credentials[0].Network.ID + "."
	word, rest, _ := strings.Cut(subject[strings.Index(subject, prefix)+len(prefix):], ".in.")
	return word + "." + rest, strings.HasPrefix(subject, "$JS.API.DIRECT.GET.")
}

// handle answers a request of an owner: a value to store, or a key to read. A hub that is down does not.
func (h *Hub) handle(owner int, subject string, body []byte) (a transport.Answer, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, get := h.s.keyOf(subject)
	switch {
	case h.down:
		return transport.Answer{}, false
	case get:
		v := h.show(owner, key)
		h.s.Note("owner %d reads %s: %d bytes", owner, key, len(v))
		if v == nil {
			return transport.Answer{Status: "404", Description: "Message Not Found"}, true
		}
		return transport.Answer{Body: v}, true
	}
	refused := func(why string) (transport.Answer, bool) {
		return transport.Answer{Body: fmt.Appendf(nil, `{"error":{"code":503,"description":%q}}`, why)}, true
	}
	if !may(owner, key) {
		return refused("not permitted")
	}
	h.all[kind(key)] = append(h.all[kind(key)], body)
	h.asked[key]++
	r := h.s.Dice("put", owner, key, h.asked[key])
	lies := h.s.lying(key) && r.Float64() < h.s.Forgets
	if h.values[key] != nil && !lies {
		return refused("maximum messages per subject exceeded")
	}
	h.s.Note("owner %d writes %s: %d bytes", owner, key, len(body))
	done := transport.Answer{Body: []byte(`{"stream":"S","seq":1}`)}
	if lies {
		h.s.Count("lies", 1)
		switch r.IntN(4) {
		case 0: // it stores nothing, and says that it did
			return done, true
		case 1: // and forgets what was there
			delete(h.values, key)
			return refused("no space left on device")
		case 2: // it forgets another key
			if keys := slices.Sorted(maps.Keys(h.values)); len(keys) > 0 {
				delete(h.values, keys[r.IntN(len(keys))])
			}
		case 3: // it takes a second value
		}
	}
	h.store(key, body)
	return done, true
}

// store keeps a value and announces it.
func (h *Hub) store(key string, body []byte) {
	h.values[key] = bytes.Clone(body)
	close(h.changed)
	h.changed = make(chan struct{})
	word, rest, _ := strings.Cut(key, ".")
	subject := "sotto." + h.s.Credentials[0].Network.ID + "." + word + ".out." + rest
	for l := range h.links {
		if l.dead.Load() || !l.listens(subject) { // of each owner, one is alive
			continue
		}
		if v := h.show(l.Index, key); v != nil {
			l.announce(subject, v)
		}
	}
}

// show returns what the hub says to an owner that a key has.
func (h *Hub) show(viewer int, key string) []byte {
	v, which := h.values[key], fmt.Sprint(viewer, " ", key)
	if lie, ok := h.kept[which]; ok && (h.s.Faulty() || h.s.Keeps) {
		return lie
	}
	if h.s.Lies == 0 || !h.s.lying(key) {
		return v
	}
	h.asked[which]++
	r := h.s.Dice("show", which, h.asked[which])
	if r.Float64() >= h.s.Lies {
		return v
	}
	h.s.Count("lies", 1)
	keep := false
	switch r.IntN(6) {
	case 0:
		v = nil
	case 1:
		v = h.another(r, key, v)
	case 2:
		v = Flip(r, v)
	default:
		v, keep = h.s.world.Twist(r, key, bytes.Clone(v))
	}
	if keep {
		h.kept[which] = v
	}
	return v
}

// another draws a message that came under a key of the kind; if there was none, it returns v.
func (h *Hub) another(r *rand.Rand, key string, v []byte) []byte {
	if old := h.all[kind(key)]; len(old) > 0 {
		return old[r.IntN(len(old))]
	}
	return v
}

// Flip returns a value with one bit changed.
func Flip(r *rand.Rand, v []byte) []byte {
	v = bytes.Clone(v)
	if len(v) > 0 {
		v[r.IntN(len(v))] ^= 1 << r.IntN(8)
	}
	return v
}

// Do calls do while no message comes to the hub.
func (h *Hub) Do(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

// Keep makes the hub show a lie to a viewer from now on.
func (h *Hub) Keep(viewer int, key string, lie []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept[fmt.Sprint(viewer, " ", key)] = lie
}

// Down takes the hub off the network, and back to it. It keeps its values.
func (h *Hub) Down(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// Values returns a copy of what the hub holds.
func (h *Hub) Values() map[string][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.values)
}

// Forget deletes the values whose keys match.
func (h *Hub) Forget(match func(key string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.values, func(key string, _ []byte) bool { return match(key) })
}

// Put implements transport.Store.
func (h *Hub) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.values[key] == nil && ctx.Err() == nil {
		h.all[kind(key)] = append(h.all[kind(key)], value)
		h.store(key, value)
	}
	return h.values[key], ctx.Err()
}

// Get implements transport.Store.
func (h *Hub) Get(_ context.Context, key string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.values[key]; v != nil {
		return v, nil
	}
	return nil, transport.ErrNone
}

// Await implements transport.Store.
func (h *Hub) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	for {
		h.mu.Lock()
		changed := h.changed
		i := slices.IndexFunc(keys, func(k string) bool { return h.values[k] != nil })
		if i >= 0 {
			defer h.mu.Unlock()
			return i, h.values[keys[i]], nil
		}
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

// A Liar is the store of a lying owner: what its protocol says, it withholds or changes, or it says something else.
type Liar struct {
	transport.Store
	*Life
	// Otherwise says something else. It reports whether it has; if not, the value is stored as it is.
	Otherwise func(ctx context.Context, r *rand.Rand, key string, value []byte) bool
}

// Put implements transport.Store.
func (s Liar) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	r := s.Dice("liar", s.Index, s.Number, key)
	if !s.lying(key) || r.IntN(2) == 0 {
		return s.Store.Put(ctx, key, value)
	}
	how := r.IntN(6)
	s.Note("owner %d lies about %s: %d", s.Index, key, how)
	other := value
	switch how {
	case 0: // it says nothing, and goes on as if it had
		return value, nil
	case 1: // another message of its own, or anything
		s.Hub.mu.Lock()
		other = s.Hub.another(r, key, []byte("?"))
		s.Hub.mu.Unlock()
	case 2:
		other = Flip(r, value)
	default:
		if s.Otherwise(ctx, r, key, value) {
			return value, nil
		}
		return s.Store.Put(ctx, key, value)
	}
	s.Store.Put(ctx, key, other)
	return value, nil
}
