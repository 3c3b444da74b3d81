package transport

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run/runlog"
)

const patient = needs.Patience

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("owner ", i+1))
	}
	return all
}

// owners makes a network of n, and what each owner joins with.
func owners(t testing.TB, n int) (*Organizer, []*Credentials) {
	return limited(t, n, nil)
}

func limited(t testing.TB, n int, limits *Limits) (*Organizer, []*Credentials) {
	t.Helper()
	o, err := NewNetwork("", names(n), nil, limits)
	if err != nil {
		t.Fatal(err)
	}
	return o, invitations(t, o)
}

func invitations(t testing.TB, o *Organizer) (all []*Credentials) {
	t.Helper()
	for i := range o.Owners {
		c, err := o.Invite(i, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// start starts a network's hub. The credentials learn where it is.
func start(t testing.TB, o *Organizer, all ...*Credentials) *Hub {
	t.Helper()
	keys, err := o.Hub()
	if err != nil {
		t.Fatal(err)
	}
	h, err := StartHub(t.Context(), keys, HubOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	for _, c := range all {
		c.Network.Hub = h.URL
	}
	return h
}

// hub starts a hub of n owners and returns their credentials.
func hub(t testing.TB, n int) (*Hub, []*Credentials) {
	t.Helper()
	o, all := owners(t, n)
	return start(t, o, all...), all
}

func dial(t testing.TB, c *Credentials) *Client {
	t.Helper()
	r, err := Dial(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// places are n owners' registers of each kind.
func places(t testing.TB, n int) map[string]func() ([]Store, []*Credentials) {
	return map[string]func() ([]Store, []*Credentials){
		"memory": func() ([]Store, []*Credentials) {
			_, all := owners(t, n)
			m := &Memory{}
			registers := make([]Store, n)
			for i := range registers {
				registers[i] = m
			}
			return registers, all
		},
		"hub": func() (registers []Store, all []*Credentials) {
			_, all = hub(t, n)
			for _, c := range all {
				registers = append(registers, dial(t, c))
			}
			return registers, all
		},
	}
}

// What an append-only store must do, whatever it is made of.
func TestRegister(t *testing.T) {
	for name, open := range places(t, 2) {
		t.Run(name, func(t *testing.T) {
			registers, _ := open()
			a, b := registers[0], registers[1]
			ctx, stop := context.WithTimeout(t.Context(), patient)
			defer stop()
			key := vectorKey(0, 1, 7, 0, 1)
			if _, err := b.Get(ctx, key); !errors.Is(err, ErrNone) {
				t.Errorf("a key without a value: %v", err)
			}
			big := bytes.Repeat([]byte("0123456789abcdef"), (512<<10+headerBytes+ed25519.SignatureSize)/16)
			heard := make(chan []byte)
			go func() {
				_, v, err := b.Await(ctx, decisionKey(7, 0, 1), key)
				if err != nil {
					t.Error(err)
				}
				heard <- v
			}()
			if v, err := a.Put(ctx, key, big); err != nil || !bytes.Equal(v, big) {
				t.Fatalf("stored %d bytes, %v", len(v), err)
			}
			if v := <-heard; !bytes.Equal(v, big) {
				t.Errorf("heard %d bytes of %d", len(v), len(big))
			}
			// Once for good, and the same again is no change.
			for _, v := range []string{"other", string(big)} {
				if v, err := a.Put(ctx, key, []byte(v)); err != nil || !bytes.Equal(v, big) {
					t.Errorf("a second value: stands %d bytes, %v", len(v), err)
				}
			}
			if v, err := b.Get(ctx, key); err != nil || !bytes.Equal(v, big) {
				t.Errorf("found %d bytes, %v", len(v), err)
			}
			// What came before the first waiter is there, also for a second question.
			for range 2 {
				if i, v, err := b.Await(ctx, decisionKey(7, 0, 1), key); err != nil || i != 1 || !bytes.Equal(v, big) {
					t.Errorf("awaited %d, %d bytes, %v", i, len(v), err)
				}
			}
			// Rivals: one wins, and all are told the same.
			for round := range 20 {
				var all sync.WaitGroup
				got := make([]string, 2)
				for i, r := range registers {
					all.Go(func() {
						v, err := r.Put(ctx, decisionKey(round, 0, 1), []byte{"AC"[i]})
						if err != nil {
							t.Error(err)
						}
						got[i] = string(v)
					})
				}
				all.Wait()
				if got[0] != got[1] {
					t.Errorf("round %d: two decisions, %q and %q", round, got[0], got[1])
				}
			}
			brief, stop := context.WithTimeout(ctx, 20*time.Millisecond)
			defer stop()
			if _, _, err := b.Await(brief, vectorKey(0, 1, 8, 0, 1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waited for nothing: %v", err)
			}
		})
	}
}

// answerer answers every query with fresh numbers, so that what is drawn twice is seen.
type answerer struct {
	facts   oracle.Public
	journal oracle.Journal
	draws   int
	src     *rand.Rand
	center  []float64 // noiseless: the gradient of half the squared distance from it
}

func (d *answerer) Public() oracle.Public { return d.facts }

func (d *answerer) Batch(_ context.Context, s sample.Sampler, pay ...oracle.Query) (oracle.Batch, error) {
	d.draws++
	return answers{d, nil}, d.journal.Charge(d.facts.Cost(s, pay))
}

type answers struct {
	d *answerer
	oracle.Batch
}

func (a answers) Grad(_ oracle.Grad, w []float64) ([]float64, error) {
	g := make([]float64, len(w))
	for j := range g {
		if a.d.src != nil {
			g[j] = a.d.src.NormFloat64()
		} else {
			g[j] = w[j] - a.d.center[j]
		}
	}
	return g, a.d.journal.Release([][]float64{g})
}

// unwritten is the journal of owners of one process.
type unwritten struct{}

func (unwritten) Charge(privacy.Event) error { return nil }
func (unwritten) Release([][]float64) error  { return nil }

var (
	objective = method.Objective{Reg: reg.L2{Lambda: 0.1}}
	dda       = gossip.DDA{Rows: gossip.Rows{Batch: 1, Sampling: method.Poisson, Clip: 1, Noise: 1}, Weights: gossip.Linear, Gamma: 20}
)

func center(i, dim int) []float64 {
	c := make([]float64, dim)
	for j := range c {
		c[j] = math.Sin(float64(i*dim + j))
	}
	return c
}

func facts(dim int) oracle.Public {
	return oracle.Public{Dim: dim, Rows: 100, Adjacency: privacy.AddRemove, NormBound: 1}
}

// Owners at an append-only store arrive where owners of one process do, bit for bit.
func TestAgreesWithLocal(t *testing.T) {
	const n = 4
	for _, s := range []*gossip.Schedule{
		{Graph: gossip.Complete(n), Kind: gossip.Matching, Count: 2, Rounds: 12, Seed: 3},
		{Graph: gossip.Ring(n), Kind: gossip.All, Rounds: 6},
	} {
		for _, dim := range []int{3, chunkFloats + 5} {
			if dim > chunkFloats { // two messages a vector
				s.Rounds = 3
			}
			var methods []gossip.Method
			var oracles []oracle.Oracle
			for i := range n {
				methods, oracles = append(methods, dda), append(oracles, &answerer{facts: facts(dim), journal: unwritten{}, center: center(i, dim)})
			}
			want, err := gossip.Train(t.Context(), s, gossip.NewLocal(s.Graph), methods, oracles, objective, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, open := range places(t, n) {
				registers, credentials := open()
				got := make([][][]float64, n)
				var all sync.WaitGroup
				for i := range n {
					all.Go(func() {
						j, err := runlog.CreateJournal(filepath.Join(t.TempDir(), "j"), runlog.JournalHead{Owner: i, Dim: dim})
						if err != nil {
							t.Error(err)
							return
						}
						defer j.Close()
						node := &Node{Store: registers[i], Credentials: credentials[i], Journal: j, Wait: patient}
						d := &answerer{facts: facts(dim), journal: j, center: center(i, dim)}
						x, err := dda.Run(t.Context(), gossip.Node{Schedule: s, Index: i, Mixer: node}, node.Over(d, nil), objective, nil)
						if err != nil {
							t.Error(err)
							return
						}
						if node.Aborted > 0 {
							t.Errorf("%d exchanges aborted", node.Aborted)
						}
						if got[i], err = node.Share(t.Context(), s.Rounds, x); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				for i := range got {
					if !reflect.DeepEqual(got[i], want) {
						t.Errorf("%s, %s, %d numbers: owner %d holds other models", name, s.Kind, dim, i)
					}
				}
			}
		}
	}
}

// crashed is what a node panics with where it is told to crash.
type crashed struct{ point string }

// Wherever owners crash: they finish, no activation is drawn again once it was in the journal, what the store holds is what the journal
// holds, and the sum over all owners is that of what they added.
func TestCrashes(t *testing.T) {
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		if histories++; histories > 25 && race.Enabled {
			return
		}
		const n, dim = 4, 3
		s := &gossip.Schedule{Graph: gossip.Complete(n), Kind: gossip.Matching, Count: 2, Rounds: 12, Seed: rapid.Uint64().Draw(rt, "seed")}
		_, credentials := owners(t, n)
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		register := &Memory{}
		type place struct {
			owner int
			point string
			count int
		}
		var at []place // each owner crashes there, at the count-th passage of all its lives
		for i := range n {
			for range rapid.IntRange(0, 3).Draw(rt, "crashes") {
				at = append(at, place{i, rapid.SampledFrom([]string{"charged", "torn", "journaled", "published", "decided", "mixed"}).Draw(rt, "point"), rapid.IntRange(1, 8).Draw(rt, "count")})
			}
		}
		paths := make([]string, n)
		draws := make([]int, n)
		redrawn := make([]int, n) // crashes before the activation was durable
		var all sync.WaitGroup
		for i := range n {
			paths[i] = filepath.Join(dir, fmt.Sprint(i))
			passed := map[string]int{}
			var mu sync.Mutex
			crash := func(point string) {
				mu.Lock()
				defer mu.Unlock()
				passed[point]++
				for _, p := range at {
					if p.owner == i && p.point == point && p.count == passed[point] {
						panic(crashed{point})
					}
				}
			}
			live := func() (ended bool) {
				head := runlog.JournalHead{Owner: i, Dim: dim}
				j, past, err := runlog.OpenJournal(paths[i], head)
				if os.IsNotExist(err) {
					j, err = runlog.CreateJournal(paths[i], head)
				}
				if err != nil {
					rt.Error(err)
					return true
				}
				defer j.Close()
				node := &Node{Store: register, Credentials: credentials[i], Journal: j, Past: Replay{Journal: past}, Wait: 200 * time.Millisecond, Crash: crash}
				j.Crash = crash
				d := &answerer{facts: facts(dim), journal: j, src: rand.New(rand.NewPCG(uint64(i), uint64(draws[i])))}
				defer func() {
					draws[i] += d.draws
					switch c := recover().(type) {
					case nil:
					case crashed:
						if c.point == "charged" || c.point == "torn" {
							redrawn[i]++
						}
					default:
						panic(c)
					}
				}()
				if _, err := dda.Run(t.Context(), gossip.Node{Schedule: s, Index: i, Mixer: node}, node.Over(d, nil), objective, nil); err != nil {
					rt.Error(err)
				} else if err := j.Flush(); err != nil {
					rt.Error(err)
				}
				return true
			}
			all.Go(func() {
				for !live() {
				}
			})
		}
		all.Wait()
		activations := s.Counts()
		for i := range n {
			if draws[i] != activations[i]+redrawn[i] {
				rt.Errorf("owner %d: %d draws for %d activations and %d crashes before one was durable", i, draws[i], activations[i], redrawn[i])
			}
		}
		if d := drift(t, paths); d > 1e-9 {
			rt.Errorf("the owners' mean has moved by %v", d)
		}
		for i, path := range paths {
			r, err := runlog.ReadJournal(path)
			if err != nil {
				rt.Fatal(err)
			}
			for act := range s.Activations(i) {
				held, err := r.Next()
				if err != nil {
					rt.Fatal(err)
				}
				for _, p := range act.Peers {
					b, err := register.Get(t.Context(), vectorKey(i, p, act.T, 0, 1))
					v := make([]float64, dim)
					if err == nil {
						err = decode(Config{}, credentials[i].Network.key(i), act.T, i, p, 0, v, b)
					}
					if err != nil || !sameBits(v, held.Sent) || held.Round != act.T {
						rt.Errorf("owner %d, round %d: published %v, journal %v, %v", i, act.T, v, held.Sent, err)
					}
				}
			}
			r.Close()
		}
	})
}

// drift is how far the sum of all owners' vectors is from the sum of what they added, relative to what they hold.
func drift(t testing.TB, paths []string) float64 {
	t.Helper()
	var sum, size []float64
	for _, path := range paths {
		r, err := runlog.ReadJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		z := make([]float64, r.Head.Dim)
		if sum == nil {
			sum, size = make([]float64, len(z)), make([]float64, len(z))
		}
		for {
			act, err := r.Next()
			if err != nil {
				break
			}
			if !act.Done {
				t.Fatalf("%s: round %d is not done", path, act.Round)
			}
			for j := range z {
				sum[j] += act.Sent[j] - z[j]
			}
			z = act.State
		}
		for j, v := range z {
			sum[j] -= v
			size[j] += math.Abs(v)
		}
		r.Close()
	}
	worst := 0.0
	for j, v := range sum {
		worst = max(worst, math.Abs(v)/max(1, size[j]))
	}
	return worst
}

// Two processes hold copies of one directory, and each has drawn a vector of its own for an activation with several peers: the store
// takes one of the two, and of the other nothing goes to any peer.
func TestOneDrawGoesOut(t *testing.T) {
	const n, dim = 4, 3
	_, credentials := owners(t, n)
	register := &Memory{}
	me := credentials[0]
	first := []float64{1, 2, 3}
	act := gossip.Activation{T: 0, Peers: []int{1, 2, 3}, Weight: []float64{0.1, 0.1, 0.1}}
	// The other process has come as far as its first peer.
	if _, err := register.Put(t.Context(), vectorKey(0, act.Peers[0], 0, 0, 1), encode(Config{}, me.key(), 0, 0, act.Peers[0], 0, first)); err != nil {
		t.Fatal(err)
	}
	j, err := runlog.CreateJournal(filepath.Join(t.TempDir(), "j"), runlog.JournalHead{Dim: dim})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	node := &Node{Store: register, Credentials: me, Journal: j, Wait: time.Millisecond}
	if err := node.Mix(t.Context(), 0, act, []float64{4, 5, 6}); !errors.Is(err, ErrBehind) {
		t.Errorf("a second draw of an activation: %v", err)
	}
	for _, peer := range act.Peers[1:] {
		if _, err := register.Get(t.Context(), vectorKey(0, peer, 0, 0, 1)); !errors.Is(err, ErrNone) {
			t.Errorf("the second draw went to owner %d: %v", peer+1, err)
		}
	}
}
