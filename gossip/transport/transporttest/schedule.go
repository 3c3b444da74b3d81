// Package transporttest simulates networks of owners for tests: a hub, links that delay, lose and repeat messages, and
// owners whose processes die anywhere, on the virtual clock of testing/synctest. A World says what the owners do.
//
// All that happens follows from the seed of a schedule. Each decision is drawn from the names of what it decides, so it
// does not depend on which goroutine of one instant runs first.
package transporttest

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
)

// A World is what the owners of a simulated network do, and what must hold of it.
type World interface {
	// Begin prepares a process of an owner, and returns what it does. It may set the life's Passes and Over.
	Begin(l *Life) (process func(ctx context.Context) error)
	// Final reports whether an owner stops at an error, since another process would do no better.
	Final(err error) bool
	// Leaves checks a value before it leaves an owner for the hub.
	Leaves(l *Life, key string, value []byte)
	// Twist returns what a lying hub tells an owner in place of a key's value, and whether it says the same from then on.
	Twist(r *rand.Rand, key string, value []byte) (lie []byte, keep bool)
	// Check checks what the owners hold when all have ended.
	Check()
}

// A Schedule is everything that happens to a simulated network.
type Schedule struct {
	Seed        uint64
	Bug         string // the planted one, if any
	Credentials []*transport.Credentials
	Config      transport.Config
	Owners      []*Owner
	Hub         *Hub

	// What happens until Quiet, each with its probability: messages are lost, sent twice, or take seconds; a process
	// dies at a point, or at any time; an owner's state is put back from an older copy; the hub shows a lie, or does not
	// store as it should.
	Quiet             time.Duration
	Loss, Twice, Slow float64
	Crashes, Kills    float64
	Restores          float64
	Lies, Forgets     float64

	cuts     []cut
	About    string        // first words of the keys that hub and owners lie about; empty: all
	Keeps    bool          // the hub keeps to its lies after Quiet
	Patience time.Duration // how long after Quiet owners have to finish

	world World
	began time.Time
	ctx   context.Context
	over  chan struct{}

	mu    sync.Mutex
	Found []string       // violations
	Trace []string       // events
	Tally map[string]int // how often things happened
}

// A cut separates some owners from the hub for a time.
type cut struct {
	owners   uint
	from, to time.Duration
}

// Credentials are those of owners with such names in a network, with keys that follow from mark.
func Credentials(n transport.Network, mark byte, names ...string) (all []*transport.Credentials) {
	for i, name := range names {
		seed := make([]byte, ed25519.SeedSize)
		seed[0], seed[1] = mark, byte(i)
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		n.Owners = append(n.Owners, transport.Member{Name: name, Key: hex.EncodeToString(key)})
		all = append(all, &transport.Credentials{Owner: i, Seed: hex.EncodeToString(seed)})
	}
	for _, c := range all {
		c.Network = n
	}
	return all
}

// Dice returns the randomness of a decision, by its names.
func (s *Schedule) Dice(names ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, names...)
	return rand.New(rand.NewPCG(s.Seed, h.Sum64()))
}

// UpTo draws a time below d. Two are almost never equal.
func UpTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// Pick draws a probability, zero half of the time.
func Pick(r *rand.Rand, most float64) float64 {
	if r.IntN(2) == 0 {
		return 0
	}
	return most * r.Float64()
}

// Draw draws what links and processes do to the owners who hold the credentials.
func (s *Schedule) Draw(r *rand.Rand, credentials []*transport.Credentials) {
	s.Credentials = credentials
	s.Quiet = 5*time.Second + UpTo(r, time.Minute)
	s.Patience = 20 * time.Minute
	s.Loss, s.Twice, s.Slow = Pick(r, .4), Pick(r, .5), Pick(r, .3)
	s.Crashes, s.Kills = Pick(r, .08), Pick(r, .8)
	for range r.IntN(4) {
		from := UpTo(r, s.Quiet)
		s.cuts = append(s.cuts, cut{uint(r.IntN(1<<len(credentials)-1) + 1), from, from + UpTo(r, 15*time.Second)})
	}
	for i := range credentials {
		s.Owners = append(s.Owners, &Owner{Index: i, Honest: true})
	}
}

// A Trust says who lies, or forgets.
type Trust int

// The trusts. To draw one, draw a number below Trusts: 1 and 2 mean Honest, too.
const (
	Honest         Trust = 0
	OldCopies      Trust = 3 // owners' states are put back from older copies
	LyingHub       Trust = 4
	LyingOwner     Trust = 5
	LyingHubAndOne Trust = 6
	LyingHubAndAll Trust = 7 // but one
	Trusts         int   = 8
)

// Deceive draws who lies under a trust, and how often.
func (s *Schedule) Deceive(r *rand.Rand, trust Trust) {
	one := r.IntN(len(s.Owners))
	switch trust {
	case OldCopies:
		s.Restores = r.Float64()
	case LyingHub:
		s.Lies = .5 * r.Float64()
	case LyingHubAndOne, LyingHubAndAll:
		s.Lies = .3 * r.Float64()
	}
	s.Forgets = s.Lies
	for i, o := range s.Owners {
		o.Honest = trust < LyingOwner || (i == one) == (trust == LyingHubAndAll)
	}
}

// Liar returns an owner that lies, or −1.
func (s *Schedule) Liar() int {
	return slices.IndexFunc(s.Owners, func(o *Owner) bool { return !o.Honest })
}

// Now is the time since the schedule began.
func (s *Schedule) Now() time.Duration { return time.Since(s.began) }

// Faulty reports whether faults may still happen.
func (s *Schedule) Faulty() bool { return s.Now() < s.Quiet }

// lying reports whether there are lies about a key now.
func (s *Schedule) lying(key string) bool {
	word, _, _ := strings.Cut(key, ".")
	return s.Faulty() && (s.About == "" || strings.Contains(s.About, word))
}

// Note records an event.
func (s *Schedule) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Trace = append(s.Trace, fmt.Sprintf("%12v ", s.Now())+fmt.Sprintf(format, args...))
}

// Count counts what has happened.
func (s *Schedule) Count(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Tally[what] += n
}

// Fail records a violation. Of a lying owner there is none; −1 is no owner.
func (s *Schedule) Fail(owner int, format string, args ...any) {
	if owner >= 0 && !s.Owners[owner].Honest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Found = append(s.Found, fmt.Sprintf("%v: owner %d: ", s.Now(), owner)+fmt.Sprintf(format, args...))
}

// A Draw makes the world of a schedule, and draws what happens. Serve, if it is set, is what runs at the hub.
type Draw func(s *Schedule) (w World, serve func(ctx context.Context))

// Simulate runs a schedule on a clock of its own.
func Simulate(t *testing.T, seed uint64, bug string, draw Draw) *Schedule {
	s := &Schedule{Seed: seed, Bug: bug, Tally: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		var serve func(ctx context.Context)
		s.world, serve = draw(s)
		s.began, s.over, s.Hub = time.Now(), make(chan struct{}), newHub(s)
		var stop context.CancelFunc
		s.ctx, stop = context.WithTimeout(context.Background(), s.Quiet+s.Patience)
		var hub, all sync.WaitGroup
		if serve != nil {
			hub.Go(func() { serve(s.ctx) })
		}
		for _, o := range s.Owners {
			all.Go(func() { s.work(o) })
		}
		all.Wait()
		stop()
		hub.Wait()
		s.world.Check()
		close(s.over)
		synctest.Wait()
	})
	return s
}
