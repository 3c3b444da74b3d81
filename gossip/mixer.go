package gossip

import (
	"context"
	"fmt"
	"sync"
)

// A Mixer carries what nodes release to their peers. What it is given is public.
type Mixer interface {
	// Mix exchanges m, what node releases in this activation, with the peers, and turns it into the
	// node's own vector after the round: m + Σ w(m_peer − m), over the exchanges that both sides
	// make. Both sides leave out an exchange that fails. Mix waits for the peers.
	Mix(ctx context.Context, node int, act Activation, m []float64) error
}

// Local is the mixer of nodes that are goroutines of one process.
//
// Every edge is a flow from one node to the other, so the sum over all nodes does not change if
// edges fail.
type Local struct {
	// Fails says which exchanges fail; nil: none. It may depend on public facts only.
	Fails func(t int, e Edge) bool

	mail map[Edge]chan []float64 // from, to
	pool sync.Pool
}

// NewLocal makes the mixer of a graph.
func NewLocal(g Graph) *Local {
	l := &Local{mail: map[Edge]chan []float64{}}
	for _, e := range g.Edges {
		// One message fits: a sender has the answer to its last message before it sends the next.
		l.mail[e], l.mail[Edge{e[1], e[0]}] = make(chan []float64, 1), make(chan []float64, 1)
	}
	return l
}

// Mix implements Mixer. A node must call it once for each of its activations, in their order.
func (l *Local) Mix(ctx context.Context, node int, act Activation, m []float64) error {
	for _, peer := range act.Peers {
		out, ok := l.mail[Edge{node, peer}]
		if !ok {
			return fmt.Errorf("gossip: node %d has no edge to node %d", node, peer)
		}
		select {
		case out <- l.copy(m):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var own []float64 // m as it was released, if several exchanges need it
	if len(act.Peers) > 1 {
		own = l.copy(m)
		defer l.pool.Put(&own)
	}
	for k, peer := range act.Peers {
		var theirs []float64
		select {
		case theirs = <-l.mail[Edge{peer, node}]:
		case <-ctx.Done():
			return ctx.Err()
		}
		if len(theirs) != len(m) {
			return fmt.Errorf("gossip: node %d sent %d numbers; expected %d", peer, len(theirs), len(m))
		}
		if l.Fails == nil || !l.Fails(act.T, Edge{min(node, peer), max(node, peer)}) {
			w, from := act.Weight[k], own
			if from == nil {
				from = m
			}
			for j, v := range theirs {
				m[j] += w * (v - from[j])
			}
		}
		l.pool.Put(&theirs)
	}
	return nil
}

func (l *Local) copy(m []float64) []float64 {
	if p, ok := l.pool.Get().(*[]float64); ok && cap(*p) >= len(m) {
		*p = append((*p)[:0], m...)
		return *p
	}
	return append([]float64(nil), m...)
}
