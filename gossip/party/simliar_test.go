package party

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run/runlog"
)

// Twist implements transporttest.World: a lying hub shows another decision.
func (w *world) Twist(r *rand.Rand, key string, v []byte) (lie []byte, keep bool) {
	if !strings.HasPrefix(key, "dec.") {
		return v, r.IntN(2) == 0 // the same from now on
	}
	return []byte{"CAX"[r.IntN(3)]}, r.IntN(2) == 0
}

// A liar is the store of a lying owner. What it signs is in its own name: it has its own key only.
type liar struct {
	transport.Store
	*life
	credentials *transport.Credentials
}

// otherwise says the contrary of what the protocol says, something else with the owner's signature, or something else to each.
func (s liar) otherwise(ctx context.Context, r *rand.Rand, key string, value []byte) bool {
	if strings.HasPrefix(key, "dec.") { // decisions are not signed
		other := "C"
		if string(value) == "C" {
			other = "A"
		}
		s.Store.Put(ctx, key, []byte(other))
		return true
	}
	if r.IntN(2) == 0 {
		other := s.signed(ctx, key, s.w.Dice("to", key).IntN(len(s.w.owners)), r)
		if other != nil {
			s.Store.Put(ctx, key, other)
		}
		return other != nil
	}
	if s.w.Lies > 0 {
		for viewer := range s.w.owners {
			if other := s.signed(ctx, key, viewer, r); other != nil {
				s.Hub.Keep(viewer, key, other)
			}
		}
	}
	return false
}

// signed signs another text or vector under the key, as the viewer may want to read it; nil where it has none.
func (s liar) signed(ctx context.Context, key string, viewer int, r *rand.Rand) []byte {
	part := strings.Split(key, ".")
	c := &caught{}
	n := &transport.Node{Store: c, Credentials: s.credentials, Config: s.Config}
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
		n.Mix(ctx, s.Index, gossip.Activation{T: round, Peers: []int{to}, Weight: []float64{.5}}, v)
		s.w.must(errors.Join(j.Close(), os.Remove(path)))
	case part[0] == "own":
		text := make([]byte, 32)
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		if part[2] == transport.Ready {
			theirs, _ := s.Hub.Get(ctx, fmt.Sprintf("own.%d.ready", viewer))
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

// A mixedUp link takes each answer for that of the last request that was sent after as many answers.
type mixedUp struct {
	transport.Link
	mu      sync.Mutex
	answers int
	waiting map[int]chan transport.Answer
}

func (l *mixedUp) Request(ctx context.Context, subject string, body []byte) (transport.Answer, bool, error) {
	l.mu.Lock()
	number, mine := l.answers, make(chan transport.Answer, 4)
	l.waiting[number] = mine
	l.mu.Unlock()
	go func() {
		a, _, err := l.Link.Request(ctx, subject, body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil {
			select {
			case l.waiting[number] <- a:
			default:
			}
		}
	}()
	select {
	case a := <-mine:
		l.mu.Lock()
		l.answers++
		l.mu.Unlock()
		return a, false, nil
	case <-ctx.Done():
		return transport.Answer{}, true, ctx.Err()
	}
}
