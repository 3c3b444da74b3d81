package transport

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/relay"
)

// An owner that does not read what the hub sends it: the hub drops its live copies and goes on serving the others. What was
// stored is all in the store, where the owner finds it when it reads again.
func TestSlowConsumer(t *testing.T) {
	race.Skip(t)
	const vectors, dim = 240, 47_236 // 91 MB; the hub keeps 64 for an owner
	h, all := hub(t, 3)
	at, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	way := relay.New(t, at.Host)
	at.Host = way.Addr
	sender, other := dial(t, all[0]), dial(t, all[2])
	slow, err := Dial(t.Context(), all[1], at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	way.Back(true)

	ctx, stop := context.WithTimeout(t.Context(), patient)
	defer stop()
	config, v := Config{1}, make([]float64, dim)
	message := func(to, round int) []byte {
		v[0] = float64(round)
		return encode(config, all[0].key(), round, 0, to, 0, v)
	}
	for round := range vectors {
		key := vectorKey(0, 1, round, 0, 1)
		if _, err := sender.Put(ctx, key, message(1, round)); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if round%40 != 0 {
			continue
		}
		key = vectorKey(0, 2, round, 0, 1)
		if _, err := sender.Put(ctx, key, message(2, round)); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if _, _, err := other.Await(ctx, key); err != nil {
			t.Fatalf("another owner timed out waiting for %s: %v", key, err)
		}
	}
	for h.s.NumSlowConsumers() == 0 {
		if pause(ctx, 10*time.Millisecond) != nil {
			t.Fatal("the hub has not found the owner slow")
		}
	}
	way.Back(false)
	mine := make([]float64, dim)
	for round := range vectors {
		key := vectorKey(0, 1, round, 0, 1)
		b, err := slow.Get(ctx, key)
		if err == nil {
			err = decode(config, all[1].Network.key(0), round, 0, 1, 0, mine, b)
		}
		if err == nil && mine[0] != float64(round) {
			err = errors.New(fmt.Sprint("found ", mine[0]))
		}
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	slow.live.mu.Lock()
	heard := len(slow.live.values)
	slow.live.mu.Unlock()
	if heard >= vectors {
		t.Errorf("%d live copies were heard: the owner was not slow", heard)
	}
	t.Logf("%d of %d live copies heard", heard, vectors)
	// It hears again what is new.
	go sender.Put(ctx, vectorKey(0, 1, vectors, 0, 1), message(1, vectors))
	if _, _, err := slow.Await(ctx, vectorKey(0, 1, vectors, 0, 1)); err != nil {
		t.Error(err)
	}
}
