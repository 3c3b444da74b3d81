package transporttest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
)

// Link returns a link of the process to the hub.
func (l *Life) Link() transport.Link { return &link{Life: l, count: map[string]int{}} }

// A link implements transport.Link.
type link struct {
	*Life
	patterns [][]string
	hear     func(subject string, body []byte)

	mu    sync.Mutex
	count map[string]int // requests by subject
}

// away reports whether the link is cut now.
func (l *link) away() bool {
	return l.Faulty() && slices.ContainsFunc(l.cuts, func(c cut) bool {
		return c.owners&(1<<l.Index) != 0 && c.from <= l.Now() && l.Now() < c.to
	})
}

// delay is how long a message takes: a few milliseconds, and now and then longer than anyone waits.
func (s *Schedule) delay(r *rand.Rand) time.Duration {
	if s.Faulty() && r.Float64() < s.Slow {
		return UpTo(r, 6*time.Second)
	}
	return time.Millisecond + UpTo(r, 20*time.Millisecond)
}

// lost reports whether a message is.
func (l *link) lost(r *rand.Rand) bool { return l.Faulty() && r.Float64() < l.Loss || l.away() }

// Request implements transport.Link.
func (l *link) Request(ctx context.Context, subject string, body []byte) (transport.Answer, bool, error) {
	l.mu.Lock()
	n := l.count[subject]
	l.count[subject]++
	l.mu.Unlock()
	r := l.Dice("request", l.Index, l.Number, subject, n)
	time.Sleep(UpTo(r, time.Millisecond)) // goroutines that wake at one instant go on one after the other
	key, get := l.keyOf(subject)
	what := " it writes " + key
	if get {
		what = " it reads " + key
	}
	l.At("before" + what)
	if !get {
		l.world.Leaves(l.Life, key, body)
	}
	copies := 1
	if l.Faulty() && r.Float64() < l.Twice {
		copies = 2
	}
	answer := make(chan transport.Answer, copies)
	for range copies {
		there, back, unheard := l.delay(r), l.delay(r), l.lost(r)
		if l.lost(r) {
			continue
		}
		time.AfterFunc(there, func() {
			if a, ok := l.Hub.handle(l.Index, subject, body); ok && !unheard && !l.away() {
				time.AfterFunc(back, func() { answer <- a })
			}
		})
	}
	l.At("while" + what)
	select {
	case a := <-answer:
		l.At("after" + what)
		return a, false, nil
	case <-ctx.Done():
		time.Sleep(UpTo(r, time.Millisecond))
		l.At("unanswered," + what)
		return transport.Answer{}, true, ctx.Err()
	}
}

// Subscribe implements transport.Link.
func (l *link) Subscribe(patterns []string, hear func(subject string, body []byte)) error {
	for _, p := range patterns {
		l.patterns = append(l.patterns, strings.Split(p, "."))
	}
	l.hear = hear
	l.Hub.mu.Lock()
	defer l.Hub.mu.Unlock()
	l.Hub.links[l] = true
	return nil
}

// Close implements transport.Link.
func (l *link) Close() {
	l.Hub.mu.Lock()
	defer l.Hub.mu.Unlock()
	delete(l.Hub.links, l)
}

// listens reports whether a subject matches a pattern of the link.
func (l *link) listens(subject string) bool {
	return slices.ContainsFunc(l.patterns, func(p []string) bool { return matches(p, strings.Split(subject, ".")) })
}

// matches reports whether a subject matches a pattern of NATS.
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

// announce passes a stored value on, perhaps late, twice or never.
func (l *link) announce(subject string, body []byte) {
	r := l.Dice("announce", l.Index, l.Number, subject)
	for range 1 + r.IntN(2) {
		if d, lost := l.delay(r), l.lost(r); !lost {
			time.AfterFunc(d, func() {
				if !l.dead.Load() && !l.away() {
					l.Note("owner %d hears %s: %d bytes", l.Index, subject, len(body))
					l.hear(subject, body)
				}
			})
		}
	}
}
