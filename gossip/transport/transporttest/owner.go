package transporttest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An Owner is one owner over all its processes.
type Owner struct {
	Index  int
	Honest bool
	Lives  int // processes so far

	Ended   bool  // a process has ended without an error
	Stopped bool  // no other process will do better
	Err     error // of its last process
}

// work runs an owner's processes, as a person would who starts it again after each crash.
func (s *Schedule) work(o *Owner) {
	time.Sleep(UpTo(s.Dice("start", o.Index), 5*time.Second))
	for s.ctx.Err() == nil {
		died, err := s.live(o)
		s.mu.Lock()
		if !died && (err == nil || s.ctx.Err() == nil) {
			o.Err = err
			o.Ended, o.Stopped = err == nil, err != nil && s.world.Final(err)
		}
		// What others wait for when an owner has stopped never comes.
		leaves := o.Ended || o.Stopped ||
			!died && !s.Faulty() && slices.ContainsFunc(s.Owners, func(o *Owner) bool { return o.Stopped })
		s.mu.Unlock()
		if leaves {
			break
		}
		select {
		case <-time.After(100*time.Millisecond + UpTo(s.Dice("restart", o.Index, o.Lives), 8*time.Second)):
		case <-s.ctx.Done():
		}
	}
	s.Note("owner %d leaves; ended: %v, stopped: %v", o.Index, o.Ended, o.Stopped)
	for what, is := range map[string]bool{"ended": o.Ended, "stopped": o.Stopped} {
		if is {
			s.Count(what, 1)
		}
	}
}

// A Life is one process of an owner.
type Life struct {
	*Schedule
	*Owner
	Number int

	// Passes, if set, is called at each point, before the process may die there. Over is called when the process has
	// died, or has ended with an error. Neither runs while the other does.
	Passes func(point string)
	Over   func(died bool, r *rand.Rand)

	mu     sync.Mutex
	passed map[string]int
	dead   atomic.Bool
	died   chan struct{}
}

// live runs one process until it ends or dies.
func (s *Schedule) live(o *Owner) (died bool, err error) {
	l := &Life{Schedule: s, Owner: o, Number: o.Lives, passed: map[string]int{}, died: make(chan struct{})}
	o.Lives++
	process := s.world.Begin(l)
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- process(ctx) }()
	if r := s.Dice("kill", o.Index, l.Number); s.Faulty() && r.Float64() < s.Kills {
		t := time.AfterFunc(UpTo(r, 20*time.Second), func() {
			if s.Faulty() {
				l.Die("any time")
			}
		})
		defer t.Stop()
	}
	select {
	case <-l.died:
		return true, nil
	case err = <-done:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead.Swap(true) { // what is left of it does nothing more
		return true, nil
	}
	if err != nil {
		l.Over(false, s.Dice("over", o.Index, l.Number))
	}
	return false, err
}

// At is a point where the process may die. A dead process does nothing more: its goroutines wait here until the
// schedule is over, and end.
func (l *Life) At(point string) {
	l.mu.Lock()
	if !l.dead.Load() {
		if l.Passes != nil {
			l.Passes(point)
		}
		l.passed[point]++
		if r := l.Dice("crash", l.Index, l.Number, point, l.passed[point]); l.Faulty() && r.Float64() < l.Crashes {
			l.die(point)
		}
	}
	l.mu.Unlock()
	if l.dead.Load() {
		<-l.over
		runtime.Goexit()
	}
}

// Die ends the process. Of what it wrote without a sync, a part stays.
func (l *Life) Die(where string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead.Load() {
		l.die(where)
	}
}

func (l *Life) die(where string) {
	l.dead.Store(true)
	l.Note("owner %d dies: %s", l.Index, where)
	l.Count("died", 1)
	l.Count("died: "+kind(where), 1)
	l.Over(true, l.Dice("over", l.Index, l.Number))
	close(l.died)
}

// kind is that of a key or point, without numbers.
func kind(key string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, key), ".#")
}
