package gossip

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
)

// How the edges of a round are chosen.
const (
	Matching = "matching" // random edges of which no two meet
	Edges    = "edges"    // random edges; two may meet (P3's experiment)
	All      = "all"      // every edge of the graph, in every round
)

// A Schedule says which edges are active in which round. It is a public function of its fields,
// which all owners compute alike. It depends on no row.
type Schedule struct {
	Graph  Graph
	Kind   string // Matching, Edges or All
	Count  int    // edges of a round, for Matching and Edges; a matching may find fewer that do not meet
	Rounds int
	Seed   uint64
	Epoch  uint64 // counts the changes of membership
}

// Validate returns what is wrong with the fields.
func (s *Schedule) Validate() error {
	if err := s.Graph.Validate(); err != nil {
		return err
	}
	switch {
	case s.Rounds < 1 || s.Rounds > mostRounds:
		return fmt.Errorf("gossip: a schedule of %d rounds; choose 1 to %d", s.Rounds, mostRounds)
	case s.Epoch == graphEpoch:
		return fmt.Errorf("gossip: epoch %d is the graph's", s.Epoch)
	case s.Kind == All && s.Count != 0:
		return fmt.Errorf("gossip: found %d edges a round beside %q, which has all", s.Count, All)
	case s.Kind == All:
	case s.Kind != Matching && s.Kind != Edges:
		return fmt.Errorf("gossip: unknown kind of schedule %q; choose %s, %s or %s", s.Kind, Matching, Edges, All)
	case s.Count < 1 || s.Count > len(s.Graph.Edges):
		return fmt.Errorf("gossip: found %d edges a round; choose 1 to %d, those of the graph", s.Count, len(s.Graph.Edges))
	case s.Kind == Matching && s.Count > s.Graph.N/2:
		return fmt.Errorf("gossip: found %d edges a round of which no two meet; choose up to %d for %d nodes", s.Count,
			s.Graph.N/2, s.Graph.N)
	}
	return nil
}

// mostRounds keeps a schedule from a file from taking more than seconds to count.
const mostRounds = 1 << 24

// All yields the rounds, numbered from 0, with their edges in the order drawn. The slice is
// valid until the next round.
func (s *Schedule) All() iter.Seq2[int, []Edge] {
	return func(yield func(int, []Edge) bool) {
		c := s.chooser()
		for t := range s.Rounds {
			if !yield(t, c.round(t)) {
				return
			}
		}
	}
}

// Planned returns the number of activations for which each owner's noise is calibrated: the largest of
// all owners with the same number of declared rows, since such owners add the same noise.
func Planned(activations, rows []int) []int {
	most := map[int]int{}
	for i, n := range activations {
		most[rows[i]] = max(most[rows[i]], n)
	}
	planned := make([]int, len(activations))
	for i := range planned {
		planned[i] = most[rows[i]]
	}
	return planned
}

// Counts returns the number of rounds in which each node is active. It is public, and an owner is charged
// for each.
func (s *Schedule) Counts() []int {
	n := make([]int, s.Graph.N)
	last := make([]int, s.Graph.N) // round, from 1
	for t, edges := range s.All() {
		for _, e := range edges {
			for _, i := range e {
				if last[i] != t+1 {
					last[i] = t + 1
					n[i]++
				}
			}
		}
	}
	return n
}

// Share returns ι, the share of nodes that are active in a round, on average over the schedule.
func (s *Schedule) Share() float64 {
	sum := 0
	for _, n := range s.Counts() {
		sum += n
	}
	return float64(sum) / float64(s.Graph.N) / float64(s.Rounds)
}

// An Activation is a round in which a node is active.
type Activation struct {
	T      int       // round, from 0
	Peers  []int     // with whom, in the order of the round's edges
	Weight []float64 // of each peer: Weights
}

// Activations yields the rounds of a node. The slices are valid until the next.
func (s *Schedule) Activations(node int) iter.Seq[Activation] {
	return func(yield func(Activation) bool) {
		var act Activation
		degree := make([]int, s.Graph.N)
		for t, edges := range s.All() {
			act.T, act.Peers, act.Weight = t, act.Peers[:0], act.Weight[:0]
			for _, e := range edges {
				switch node {
				case e[0]:
					act.Peers = append(act.Peers, e[1])
				case e[1]:
					act.Peers = append(act.Peers, e[0])
				}
			}
			if len(act.Peers) == 0 {
				continue
			}
			for _, e := range edges {
				degree[e[0]]++
				degree[e[1]]++
			}
			for _, p := range act.Peers {
				act.Weight = append(act.Weight, 1/float64(1+max(degree[node], degree[p])))
			}
			for _, e := range edges {
				degree[e[0]], degree[e[1]] = 0, 0
			}
			if !yield(act) {
				return
			}
		}
	}
}

// A chooser draws the edges of rounds.
type chooser struct {
	s     *Schedule
	order []int32 // a permutation of the edges' numbers, the same before every round
	swaps [][2]int
	busy  []bool
	out   []Edge
	draw  draw
}

func (s *Schedule) chooser() *chooser {
	c := &chooser{s: s, busy: make([]bool, s.Graph.N)}
	if s.Kind != All {
		c.order = make([]int32, len(s.Graph.Edges))
		for k := range c.order {
			c.order[k] = int32(k)
		}
	}
	return c
}

// round draws edges in random order, without repetition, and takes as many as the schedule has; for a
// matching it takes those that share no node with earlier ones. On a complete graph every matching of
// that size is equally likely.
func (c *chooser) round(t int) []Edge {
	s := c.s
	if s.Kind == All {
		return s.Graph.Edges
	}
	d := &c.draw
	d.begin(s.Seed, s.Epoch, uint64(t))
	c.out, c.swaps = c.out[:0], c.swaps[:0]
	for k := 0; k < len(c.order) && len(c.out) < s.Count; k++ {
		j := k + d.below(len(c.order)-k)
		c.order[k], c.order[j] = c.order[j], c.order[k]
		c.swaps = append(c.swaps, [2]int{k, j})
		e := s.Graph.Edges[c.order[k]]
		if s.Kind == Matching {
			if c.busy[e[0]] || c.busy[e[1]] {
				continue
			}
			c.busy[e[0]], c.busy[e[1]] = true, true
		}
		c.out = append(c.out, e)
	}
	for k := len(c.swaps) - 1; k >= 0; k-- {
		a, b := c.swaps[k][0], c.swaps[k][1]
		c.order[a], c.order[b] = c.order[b], c.order[a]
	}
	for _, e := range c.out {
		c.busy[e[0]], c.busy[e[1]] = false, false
	}
	return c.out
}

// graphEpoch is the epoch of the coins of a random graph.
const graphEpoch = 1<<64 - 1

// A draw is public randomness: ChaCha8 with the key SHA-256(seed ‖ epoch ‖ t), each as eight bytes,
// the lowest first. No noise and no sample of rows comes from it.
type draw struct{ rand.ChaCha8 }

func newDraw(seed, epoch, t uint64) *draw {
	d := &draw{}
	d.begin(seed, epoch, t)
	return d
}

func (d *draw) begin(seed, epoch, t uint64) {
	var text [24]byte
	for k, v := range []uint64{seed, epoch, t} {
		binary.LittleEndian.PutUint64(text[8*k:], v)
	}
	d.Seed(sha256.Sum256(text[:]))
}

// below draws a number from 0 to n−1, each equally likely.
func (d *draw) below(n int) int {
	u := uint64(n)
	for {
		// Values above the largest multiple of n are drawn again.
		if v := d.Uint64(); v < -(-u%u) || -u%u == 0 {
			return int(v % u)
		}
	}
}

func (d *draw) float() float64 { return float64(d.Uint64()>>11) * 0x1p-53 }
