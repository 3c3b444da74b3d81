package transport

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/sottodp/sotto/gossip"
)

// Limits state how many messages each owner needs to store, and their length. The hub refuses more, so
// that no owner uses up the storage of another. They follow from the agreement. Networks of earlier
// builds have none.
type Limits struct {
	Dim int `json:"dim"` // numbers of a vector

	// Of a network whose owners exchange vectors.
	Rounds  int      `json:"rounds,omitempty"`  // of the schedule
	Vectors []int    `json:"vectors,omitempty"` // for each owner, the most that it sends to peers
	Edges   [][2]int `json:"edges,omitempty"`   // pairs who may exchange, the lower owner first; none: all pairs

	Sums *SumLimits `json:"sums,omitempty"` // of a network of mode sum
}

// SumLimits state the most that owners add up.
type SumLimits struct {
	Attempts int `json:"attempts"` // at all batches, without the one that ends a run whose retries are used up
	Sums     int `json:"sums"`     // of an attempt
	Numbers  int `json:"numbers"`  // of a sum
}

// ErrFull says that an owner has no storage left at the hub.
var ErrFull = errors.New("the storage at the hub is full")

const (
	wordBytes = 1 << 10 // the most of a text of Meet, with its signature
	keyBytes  = 256     // what the server adds to a stored message, its subject among it
	spare     = 16      // messages beyond what is needed: a full store holds more than any schedule needs
	mostAdded = 500     // owners who add up parts: what all have signed fits into the message of a total
	mostPairs = 1000    // with a store each; beyond that all decisions share one
)

// Words are what an owner may say to all others with Node.Meet.
const (
	Hello = "hello" // when it joins: its commitment to a share of the schedule's seed
	Show  = "share" // when all have joined
	Ready = "ready" // when its budget is reserved

	behind = "behind" // of mode sum: it cannot go on, since its directory is older than what it has stored
)

var words = []string{Hello, Show, Ready}

// vectorBytes is the length of the longest message of a vector.
func (l *Limits) vectorBytes() int {
	return headerBytes + 8*min(l.Dim, chunkFloats) + ed25519.SignatureSize
}

// payload is the length of the longest message of an owner.
func (l *Limits) payload() int {
	n := max(l.vectorBytes(), wordBytes)
	if l.Sums != nil {
		n = max(n, l.Sums.partBytes())
	}
	return n
}

// partBytes is the length of the longest message of an owner's part.
func (s *SumLimits) partBytes() int { return claimBytes + 8*min(s.Numbers, sumFloats) }

// attempts are those that a hub may have to know: all, and the one that ends a run.
func (s *SumLimits) attempts() int { return s.Attempts + 1 }

// MostAttempts is the number of attempts that the hub has storage for.
func (s *SumLimits) MostAttempts() int { return s.attempts() }

// mostMessages is the most of a stream, so that its size in bytes is a number.
const mostMessages = 1 << 32

func (s *SumLimits) validate() error {
	for _, f := range []struct {
		name     string
		n, below int
	}{{"attempts", s.Attempts, 1 << 24}, {"sums", s.Sums, 1 << 8}, {"numbers", s.Numbers, MaxSum}} {
		if f.n < 1 || f.n > f.below {
			return fmt.Errorf("limits.sums.%s: found %d; choose 1 to %d", f.name, f.n, f.below)
		}
	}
	if n := s.attempts() * s.Sums; n > mostMessages/sumChunks(s.Numbers) {
		return fmt.Errorf("limits.sums: found %d sums of %d numbers; their messages may be at most %d", n, s.Numbers,
			mostMessages)
	}
	return nil
}

func (l *Limits) validate(owners int) error {
	if l.Sums != nil {
		if l.Dim < 1 || l.Rounds != 0 || l.Vectors != nil || l.Edges != nil {
			return errors.New("limits: found those of vectors beside those of sums; set only dim and sums")
		}
		return l.Sums.validate()
	}
	switch {
	case l.Dim < 1 || l.Rounds < 1:
		return fmt.Errorf("limits: found %d numbers and %d rounds; both must be 1 or more", l.Dim, l.Rounds)
	case len(l.Vectors) != owners || slices.Min(l.Vectors) < 0:
		return fmt.Errorf("limits.vectors: found %d; write a number for each of %d owners", len(l.Vectors), owners)
	}
	for _, e := range l.Edges {
		if e[0] < 0 || e[0] >= e[1] || e[1] >= owners {
			return fmt.Errorf("limits.edges: found %v; write two of %d owners, the lower first", e, owners)
		}
	}
	return nil
}

// pairs are the owners who may exchange.
func (n *Network) pairs() [][2]int {
	if all := n.Limits.Edges; all != nil {
		return all
	}
	var all [][2]int
	for hi := range n.Owners {
		for lo := range hi {
			all = append(all, [2]int{lo, hi})
		}
	}
	return all
}

// shared reports whether all decisions are in one store.
func (n *Network) shared() bool {
	if n.Limits == nil {
		return true
	}
	k := len(n.Limits.Edges)
	if n.Limits.Edges == nil {
		k = len(n.Owners) * (len(n.Owners) - 1) / 2
	}
	return k > mostPairs
}

// A stream is one owner's or pair's part of the store.
type stream struct {
	key      string // kind and whose, as in rel.2, own.2, dec.0.2
	keys     string // of the keys in it, as a pattern
	messages int    // the most; 0: no limit
	bytes    int    // the most of one
	emptied  bool   // the hub may delete them
}

// streams are those of the store. Each owner has its own; a pair shares one for its decisions,
// because both write there.
func (n *Network) streams() (all []stream) {
	l := n.Limits
	if l == nil {
		for _, kind := range []string{"rel", "dec", "own"} {
			all = append(all, stream{key: kind, keys: kind + ".>"})
		}
		return all
	}
	chunks := chunksOf(l.Dim)
	if n.Mode == ModeSum {
		for i := range n.Owners {
			own := fmt.Sprint("own.", i)
			all = append(all, stream{key: own, keys: own + ".>", messages: chunks + len(words) + spare, bytes: l.payload()})
			all = append(all, n.sumStreams(i)...)
		}
		s := l.Sums
		total := 1 + claimBytes*len(n.Owners) + 8*min(s.Numbers, sumFloats)
		return append(all,
			stream{key: "all", keys: "all.>", messages: s.attempts()*(1+s.Sums*sumChunks(s.Numbers)) + spare, bytes: total},
			stream{key: "hub", keys: "hub.>", messages: len(all) + 1 + spare, bytes: wordBytes})
	}
	for i := range n.Owners {
		rel, own := fmt.Sprint("rel.", i), fmt.Sprint("own.", i)
		all = append(all,
			stream{key: rel, keys: rel + ".>", messages: l.Vectors[i]*chunks + spare, bytes: l.vectorBytes()},
			stream{key: own, keys: own + ".>", messages: chunks + len(words) + spare, bytes: l.payload()})
	}
	if n.shared() {
		all = append(all, stream{key: "dec", keys: "dec.>", messages: l.Rounds*len(n.pairs()) + spare, bytes: len(commit)})
	} else {
		for _, e := range n.pairs() {
			all = append(all,
				stream{key: fmt.Sprintf("dec.%d.%d", e[0], e[1]), keys: fmt.Sprintf("dec.*.%d.%d", e[0], e[1]),
					messages: l.Rounds + spare, bytes: len(commit)})
		}
	}
	return append(all, stream{key: "hub", keys: "hub.>", messages: len(all) + spare, bytes: wordBytes})
}

// sumStreams are an owner's streams of presences, stops and parts. Of parts the store holds one attempt's.
func (n *Network) sumStreams(owner int) (all []stream) {
	s := n.Limits.Sums
	for _, of := range []stream{
		{key: "here", keys: "*", messages: s.attempts(), bytes: presenceBytes},
		{key: "stop", keys: "*.*", messages: s.attempts() * s.Sums, bytes: ed25519.SignatureSize},
		{key: "part", keys: ">", messages: s.Sums * sumChunks(s.Numbers), bytes: s.partBytes(), emptied: true},
	} {
		of.key = fmt.Sprintf("sum.%d.%s", owner, of.key)
		of.keys, of.messages = of.key+"."+of.keys, of.messages+spare
		all = append(all, of)
	}
	return all
}

// stream is the name of a stream at the server.
func (n *Network) stream(store string) string {
	return "SOTTO-" + n.ID + "-" + strings.ReplaceAll(store, ".", "-")
}

// streamOf is the stream of a key.
func (n *Network) streamOf(key string) string {
	part := strings.Split(key, ".")
	switch {
	case n.Limits == nil || part[0] == "hub" || part[0] == "all" || len(part) < 2:
		return part[0]
	case part[0] == "sum" && len(part) > 3:
		return strings.Join(part[:3], ".")
	case part[0] != "dec":
		return part[0] + "." + part[1]
	case n.shared() || len(part) < 4:
		return "dec"
	}
	return "dec." + part[2] + "." + part[3]
}

// pattern is the subject of keys, on the way to the store (in) or as they are stored (out).
func (n *Network) pattern(keys, way string) string {
	kind, rest, _ := strings.Cut(keys, ".")
	return n.subject(kind, way, rest)
}

// The hub writes into the store which stores are full: hub.0, hub.1 and so on hold their keys. It
// writes no text, so that no hub can show one on an owner's terminal.

func fullKey(k int) string { return fmt.Sprint("hub.", k) }

// full tells people about a full store; "" if there is no such store.
func (n *Network) full(key string) string {
	if key == "dec" && n.shared() {
		return "storage full, of the decisions that all owners share: an owner has stored more of them than the training needs. From now on exchanges without a decision are aborted"
	}
	part := strings.Split(key, ".")
	sum := part[0] == "sum" && len(part) == 3
	if sum {
		part = part[:2]
	}
	var names []string
	for _, p := range part[1:] {
		i, err := strconv.Atoi(p)
		if err != nil || i < 0 || i >= len(n.Owners) {
			return ""
		}
		names = append(names, n.Owners[i].Name)
	}
	if len(names) == 0 {
		return ""
	}
	if sum {
		return fmt.Sprintf("storage full, by %s: it has stored more messages than the sums need. From now on the hub refuses its messages", names[0])
	}
	return fmt.Sprintf("storage full, by %s: it has stored more messages than the training needs. From now on the hub refuses its messages; the other owners go on", strings.Join(names, " or "))
}

// FullStores names the owners of which the hub has said that they stored more than the training has.
func FullStores(ctx context.Context, r Store, n *Network) (all []string, err error) {
	err = n.fullStores(func(key string) ([]byte, error) {
		return r.Get(ctx, key)
	}, func(text string) { all = append(all, text) })
	if errors.Is(err, ErrNone) {
		err = nil
	}
	return all, err
}

// WatchFull tells the same about each owner as it happens, until the context ends.
func WatchFull(ctx context.Context, r Store, n *Network, tell func(text string)) {
	n.fullStores(func(key string) ([]byte, error) {
		_, b, err := r.Await(ctx, key)
		return b, err
	}, tell)
}

// fullStores passes on the hub's notices of full stores until get fails.
func (n *Network) fullStores(get func(key string) ([]byte, error), tell func(text string)) error {
	for k := 0; n.Limits != nil; k++ {
		b, err := get(fullKey(k))
		if err != nil {
			return err
		}
		if text := n.full(string(b)); text != "" {
			tell(text)
		}
	}
	return nil
}

// findFull writes into the store, and returns, which stores have become full. It skips those in
// told, and adds to it.
func findFull(ctx context.Context, nc *nats.Conn, n *Network, told map[string]bool) (texts []string, err error) {
	if n.Limits == nil {
		return nil, nil
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if len(told) == 0 {
		notices, err := js.Stream(ctx, n.stream("hub"))
		if err != nil {
			return nil, err
		}
		for k := 0; ; k++ {
			m, err := notices.GetLastMsgForSubject(ctx, n.pattern(fullKey(k), "in"))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				break
			} else if err != nil {
				return nil, err
			}
			told[string(m.Data)] = true
		}
	}
	stores := map[string]stream{}
	for _, s := range n.streams() {
		stores[n.stream(s.key)] = s
	}
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		s, ok := stores[info.Config.Name]
		if !ok || told[s.key] || info.State.Msgs < uint64(s.messages) {
			continue
		}
		if _, err := js.Publish(ctx, n.pattern(fullKey(len(told)), "in"), []byte(s.key)); err != nil {
			return texts, err
		}
		told[s.key] = true
		if text := n.full(s.key); text != "" {
			texts = append(texts, text)
		}
	}
	return texts, list.Err()
}

// LimitsOf returns the limits of a schedule. If the seed is not drawn yet, they leave ten standard
// deviations for another seed, for which Fits must hold; if the graph follows from the seed, too, they
// fit every schedule.
func LimitsOf(s *gossip.Schedule, dim int, drawn, drawnGraph bool) *Limits {
	l := &Limits{Dim: dim, Rounds: s.Rounds, Vectors: make([]int, s.Graph.N)}
	for i := range l.Vectors {
		for act := range s.Activations(i) {
			l.Vectors[i] += len(act.Peers)
		}
		if !drawn || s.Kind == gossip.All {
			continue
		}
		most := s.Rounds // one peer in each
		if s.Kind == gossip.Edges {
			most *= min(s.Count, s.Graph.N-1)
		}
		if !drawnGraph {
			// Two sums of as many coins differ by ten standard deviations.
			most = min(most, l.Vectors[i]+int(math.Ceil(10*math.Sqrt(2*float64(l.Vectors[i]+50)))))
		}
		l.Vectors[i] = most
	}
	if !drawnGraph && len(s.Graph.Edges) < s.Graph.N*(s.Graph.N-1)/2 {
		for _, e := range s.Graph.Edges {
			l.Edges = append(l.Edges, [2]int{min(e[0], e[1]), max(e[0], e[1])})
		}
	}
	return l
}

// Fits is an error if a schedule needs more than the limits allow.
func (l *Limits) Fits(s *gossip.Schedule, dim int) error {
	if l == nil {
		return nil
	}
	need := LimitsOf(s, dim, false, false)
	if need.Dim != l.Dim || need.Rounds != l.Rounds || len(need.Vectors) != len(l.Vectors) {
		return fmt.Errorf("the hub has storage for %d rounds of %d owners with %d numbers each; the schedule has %d rounds of %d with %d", l.Rounds, len(l.Vectors), l.Dim, need.Rounds, len(need.Vectors), need.Dim)
	}
	for i, v := range need.Vectors {
		if v > l.Vectors[i] {
			return fmt.Errorf("the hub has storage for %d vectors of owner %d; the schedule has %d", l.Vectors[i], i+1, v)
		}
	}
	if l.Edges == nil {
		return nil
	}
	for _, e := range s.Graph.Edges {
		if !slices.Contains(l.Edges, [2]int{min(e[0], e[1]), max(e[0], e[1])}) {
			return fmt.Errorf("the hub has no storage for decisions of owners %d and %d", e[0]+1, e[1]+1)
		}
	}
	return nil
}
