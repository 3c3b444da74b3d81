package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrNone says that a key has no value.
var ErrNone = errors.New("the key has no value")

// A Store holds values under keys, each written once. Its methods may be called from several
// goroutines. They wait for a hub that does not answer until their context ends.
type Store interface {
	// Put stores value under key, durably, unless the key has one. It returns the value that the
	// key then has.
	Put(ctx context.Context, key string, value []byte) ([]byte, error)
	// Get returns the value of a key; ErrNone if it has none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Await waits until one of the keys has a value, and returns the index of the key and the
	// value.
	Await(ctx context.Context, keys ...string) (int, []byte, error)
}

// The keys. Parts after the first are numbers, except for what of ownKey.
func vectorKey(from, to, round, chunk, chunks int) string {
	return chunkKey(fmt.Sprintf("rel.%d.%d.%d", from, to, round), chunk, chunks)
}

// messageKey returns the key of one chunk of a vector of dim numbers; a model goes toAll.
func messageKey(round, from, to, chunk, dim int) string {
	if to == toAll {
		return chunkKey(ownKey(from, Model), chunk, chunksOf(dim))
	}
	return vectorKey(from, to, round, chunk, chunksOf(dim))
}

func decisionKey(round, lo, hi int) string { return fmt.Sprintf("dec.%d.%d.%d", round, lo, hi) }

func ownKey(owner int, what string) string { return fmt.Sprintf("own.%d.%s", owner, what) }

func chunkKey(key string, chunk, chunks int) string {
	if chunks > 1 {
		return fmt.Sprintf("%s.%d", key, chunk)
	}
	return key
}

// Memory is an append-only store of one process. Its zero value is empty.
type Memory struct{ news }

// Put implements Store.
func (m *Memory) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.add(key, value), nil
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, key string) ([]byte, error) {
	if _, v, _ := m.find(key); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("%s: %w", key, ErrNone)
}

// Await implements Store.
func (m *Memory) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	for {
		i, v, changed := m.find(keys...)
		if v != nil {
			return i, v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

// news are values by key, and a signal when one is added.
type news struct {
	mu      sync.Mutex
	values  map[string][]byte
	bytes   int
	changed chan struct{}
}

// add keeps a value unless the key has one, and returns the key's value.
func (n *news) add(key string, value []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v, ok := n.values[key]; ok {
		return v
	}
	if n.values == nil {
		n.values = map[string][]byte{}
	}
	v := append(make([]byte, 0, len(value)), value...)
	n.values[key] = v
	n.bytes += len(v)
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
	return v
}

// find returns the first of the keys that has a value, or a channel that the next value closes.
func (n *news) find(keys ...string) (int, []byte, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, k := range keys {
		if v, ok := n.values[k]; ok {
			return i, v, nil
		}
	}
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return 0, nil, n.changed
}

// wake lets all waiters check again.
func (n *news) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// drop forgets a key, or all keys if more than most bytes are held.
func (n *news) drop(key string, most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bytes > most {
		clear(n.values)
		n.bytes = 0
		return
	}
	n.bytes -= len(n.values[key])
	delete(n.values, key)
}
