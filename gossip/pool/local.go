package pool

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/sottodp/sotto/oracle/sum"
)

// A Local adds up the parts of owners that are goroutines of one process, without masks: for simulations, whose process
// holds the rows of all owners anyway. The owners end together: if one ends, Close lets the others go.
type Local struct {
	mu    sync.Mutex
	turn  *sync.Cond
	n     int
	here  int // owners who wait in this turn
	turns int
	asked [sha256.Size]byte
	sum   []int64
	made  []int64 // the total of the last turn
	err   error
}

// NewLocal is a Local of n owners.
func NewLocal(n int) *Local {
	l := &Local{n: n}
	l.turn = sync.NewCond(&l.mu)
	return l
}

// Owner is the pool of one of the owners.
func (l *Local) Owner() sum.Pool { return member{l} }

// Close ends all owners that wait, with that error.
func (l *Local) Close(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.turn.Broadcast()
}

// wait returns when all owners are in the turn. The last of them calls last.
func (l *Local) wait(last func()) error {
	turn := l.turns
	if l.here++; l.here == l.n {
		last()
		l.here, l.turns = 0, l.turns+1
		l.turn.Broadcast()
	}
	for l.turns == turn && l.err == nil {
		l.turn.Wait()
	}
	if l.turns == turn {
		return l.err
	}
	return nil
}

type member struct{ *Local }

// Meet implements sum.Pool: all owners are in this process.
func (m member) Meet(ctx context.Context) (bool, error) { return false, ctx.Err() }

// Sum implements sum.Pool.
func (m member) Sum(ctx context.Context, asked [sha256.Size]byte, n int,
	part func() ([]int64, error)) ([]int64, error) {
	v, err := part()
	if err == nil && len(v) != n {
		err = fmt.Errorf("pool: a part of %d numbers; asked were %d", len(v), n)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		m.Close(err)
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.here == 0 {
		m.asked, m.sum = asked, append(m.sum[:0], v...)
	} else if asked != m.asked || len(v) != len(m.sum) {
		m.err = errors.New("pool: owners ask for different sums")
		m.turn.Broadcast()
		return nil, m.err
	} else {
		for i := range v {
			m.sum[i] += v[i]
		}
	}
	if err := m.wait(func() { m.made, m.sum = m.sum, m.made }); err != nil {
		return nil, err
	}
	return append(v[:0], m.made...), nil
}
