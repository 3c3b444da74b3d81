package shards

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sottodp/sotto/oracle/remote"
)

const (
	fanIn = 4 // workers below the coordinator, and below each worker, in a tree

	plantWait = 2 * greeting // for all workers to connect to those below them

	// Bits in the numbers of messages that make and use a tree.
	planting  = 1 << 63
	gathering = 1 << 62
)

// below are the first of the shards below a shard, or below the coordinator, which is −1, and the one after the last.
func below(shard, shards int) (first, end int) {
	first = fanIn * (shard + 1)
	return min(first, shards), min(first+fanIn, shards)
}

// A tree is the coordinator's side of a tree of workers: of the workers that answered last, shard i is below shard
// i/fanIn − 1, and the first fanIn below the coordinator.
type tree struct {
	top     []*link       // those below the coordinator
	planted int64         // version at which it was planted
	failed  int64         // version at which it was last tried, for which it is not tried again
	version atomic.Int64  // rises when a worker comes or goes
	changed chan struct{} // room for one
	told    bool

	mu     sync.Mutex
	number uint64 // of the last message to the tree
	heard  chan heard
}

// heard is a message that came over a link, or the end of it.
type heard struct {
	from   *link
	number uint64
	text   []byte
	err    error
}

func (t *tree) change() {
	t.version.Add(1)
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// hear takes an answer to the last message; others are late.
func (t *tree) hear(h heard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.number != t.number {
		return
	}
	select {
	case t.heard <- h:
	default: // more answers than workers
	}
}

// next is the number of the next message. Nothing that was heard before counts.
func (t *tree) next(kind uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number = (t.number&^(planting|gathering) + 1) | kind
	for len(t.heard) > 0 {
		<-t.heard
	}
	return t.number
}

// Plantable implements remote.Gatherer.
func (c *Coordinator) Plantable() bool { return c.tree.version.Load() != c.tree.failed }

// Plant implements remote.Gatherer.
func (c *Coordinator) Plant(ctx context.Context) bool {
	c.asking.Lock()
	defer c.asking.Unlock()
	t := &c.tree
	select {
	case <-t.changed:
	default:
	}
	t.planted = t.version.Load()
	t.failed = t.planted
	workers := make([]*link, len(c.posts))
	for i := range c.posts {
		p := &c.posts[i]
		p.mu.Lock()
		workers[i] = p.last
		there := slices.Contains(p.workers, p.last)
		p.mu.Unlock()
		if !there { // it answered and left; the next one gets a seat first
			t.failed = -1
			return false
		}
		if workers[i].address == "" {
			c.stay(fmt.Sprintf("the worker of shard %d does not listen", i+1))
			return false
		}
	}
	number := t.next(planting)
	for i, l := range workers {
		var addresses []string
		first, end := below(i, len(workers))
		for _, child := range workers[first:end] {
			addresses = append(addresses, child.address)
		}
		c.posts[i].tell(l, number, []byte(strings.Join(addresses, "\n")))
	}
	late := time.After(plantWait)
	for range workers {
		select {
		case h := <-t.heard:
			if len(h.text) > 0 {
				c.stay("a worker says " + remote.Said(h.text))
				return false
			}
		case <-t.changed:
			return false
		case <-late:
			c.stay("connecting takes too long")
			return false
		case <-ctx.Done():
			return false
		}
	}
	_, end := below(-1, len(workers))
	t.top = workers[:end]
	return true
}

// stay tells once why there is no tree.
func (c *Coordinator) stay(why string) {
	if !c.tree.told && c.notice != nil {
		c.notice("workers cannot connect to each other, so each sends its sums to the coordinator: " + why)
	}
	c.tree.told = true
}

// Felled implements remote.Gatherer.
func (c *Coordinator) Felled(why string) {
	if c.notice != nil {
		c.notice("workers no longer add up their sums among themselves, so each sends its own to the coordinator: " + why)
	}
}

// tell sends a message of the tree to a worker.
func (p *post) tell(l *link, number uint64, text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := l.send(number, text); err != nil {
		l.conn.Close() // it leaves
	}
}

// Gather implements remote.Gatherer. It gives up when a worker comes or goes, and when it takes so long that one may
// hang: the shards are asked one by one then, and give the sums that they have without computing them again.
func (c *Coordinator) Gather(ctx context.Context, question []byte, take func(answer []byte)) error {
	c.asking.Lock()
	defer c.asking.Unlock()
	t := &c.tree
	if t.version.Load() != t.planted {
		return nil
	}
	began, number := time.Now(), t.next(gathering)
	var sending sync.WaitGroup
	defer sending.Wait()
	for i, l := range t.top {
		if len(question) <= frame {
			c.posts[i].tell(l, number, question)
		} else {
			sending.Go(func() { c.posts[i].tell(l, number, question) })
		}
	}
	late := time.NewTimer(c.patience())
	defer late.Stop()
	for range t.top {
		select {
		case h := <-t.heard:
			take(h.text)
		case <-t.changed:
			return nil
		case <-late.C:
			t.failed = -1 // the next question may be faster
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.answered(time.Since(began))
	return nil
}
