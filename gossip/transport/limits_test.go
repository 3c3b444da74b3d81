package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
)

// enough are limits for n owners who all exchange in each of 20 rounds.
func enough(n, dim int) *Limits {
	return LimitsOf(&gossip.Schedule{Graph: gossip.Complete(n), Kind: gossip.All, Rounds: 20}, dim, false, false)
}

// layouts are the store with stores of each owner, and as earlier builds made it.
func layouts(n, dim int) map[string]*Limits {
	return map[string]*Limits{"limits": enough(n, dim), "an earlier build's": nil}
}

// An owner floods the hub by its own credentials. The hub refuses each message that the schedule does not have, says whose they are, and the
// other owners exchange as before.
func TestD4Flood(t *testing.T) {
	const dim = 100
	o, all := limited(t, 3, enough(3, dim))
	dir := t.TempDir()
	keys, err := o.Hub()
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *Hub {
		t.Helper()
		h, err := StartHub(t.Context(), keys, HubOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			c.Network.Hub = h.URL
		}
		return h
	}
	h := begin()
	n := &all[0].Network
	mine := n.Limits
	full := func(h *Hub) []string {
		t.Helper()
		texts, err := h.Full(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}

	t.Run("a message of 1 MB", func(t *testing.T) {
		for _, key := range []string{vectorKey(0, 1, 0, 0, 1), ownKey(0, Hello), decisionKey(0, 0, 1)} {
			nc, _, err := connect(t, h.URL, n, all[0].Pass, nats.NoReconnect())
			if err != nil {
				t.Fatal(err)
			}
			// The hub has told the client its limit, or else ends the connection.
			if err := nc.Publish(n.pattern(key, "in"), make([]byte, 1<<20)); !errors.Is(err, nats.ErrMaxPayload) {
				needs.Until(t, "the hub to end the connection", nc.IsClosed)
			} else if nc.MaxPayload() != int64(mine.payload()) {
				t.Errorf("the hub says that %d bytes are allowed", nc.MaxPayload())
			}
			if v, err := dial(t, all[0]).Get(t.Context(), key); !errors.Is(err, ErrNone) {
				t.Errorf("%s: %d bytes, %v", key, len(v), err)
			}
		}
	})
	t.Run("unknown keys", func(t *testing.T) {
		nc, refusals, err := connect(t, h.URL, n, all[0].Pass)
		if err != nil {
			t.Fatal(err)
		}
		for _, rest := range []string{"own.0.junk", "own.0", "own.0.model.1", "rel.0.1", "rel.0.1.2.3", "dec.1.0", "hub.0", "dec.1.1.2"} {
			if err := errors.Join(nc.Publish(n.pattern(rest, "in"), []byte("x")), nc.Flush()); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-refusals:
				if !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("%s: %v", rest, err)
				}
			case <-time.After(patient):
				t.Errorf("%s: nobody refuses it", rest)
			}
		}
	})
	flooder := dial(t, all[0])
	flood := func(t *testing.T, most int, key func(k int) string, text []byte) {
		t.Helper()
		for k := 0; ; k++ {
			_, err := flooder.Put(t.Context(), key(k), text)
			if errors.Is(err, ErrFull) {
				if k != most {
					t.Errorf("%d messages were stored, %d are allowed", k, most)
				}
				return
			}
			if err != nil || k > most {
				t.Fatalf("message %d: %v", k, err)
			}
		}
	}
	t.Run("a message that is too long for its key", func(t *testing.T) {
		if _, err := flooder.Put(t.Context(), decisionKey(0, 0, 1), []byte("CC")); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		if _, err := flooder.Put(t.Context(), vectorKey(0, 1, 0, 0, 1), make([]byte, mine.vectorBytes()+1)); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
	})
	if texts := full(h); texts != nil {
		t.Errorf("too early: %q", texts)
	}
	t.Run("many small messages", func(t *testing.T) {
		flood(t, mine.Vectors[0]+spare, func(k int) string { return fmt.Sprintf("rel.0.1.x%d", k) }, []byte("x"))
	})
	t.Run("decisions of no round", func(t *testing.T) {
		flood(t, mine.Rounds+spare, func(k int) string { return fmt.Sprintf("dec.x%d.0.1", k) }, []byte("C"))
	})

	// The hub names it, and tells the others, once and for good.
	want := []string{"storage full, by owner 1 or owner 2: ", "storage full, by owner 1: "}
	same := func(texts []string) {
		t.Helper()
		if len(texts) != len(want) || !strings.HasPrefix(texts[0], want[0]) && !strings.HasPrefix(texts[0], want[1]) {
			t.Errorf("found %q", texts)
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(texts, "\n"), w) {
				t.Errorf("found %q, no %q", texts, w)
			}
		}
	}
	same(full(h))
	if texts := full(h); texts != nil {
		t.Errorf("a second time: %q", texts)
	}
	h.Close()
	h = begin()
	defer h.Close()
	if texts := full(h); texts != nil {
		t.Errorf("after a start: %q", texts)
	}
	honest, other := dial(t, all[1]), dial(t, all[2])
	texts, err := FullStores(t.Context(), honest, n)
	if err != nil {
		t.Fatal(err)
	}
	same(texts)
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan string, 9)
	go WatchFull(ctx, other, n, func(text string) { told <- text })
	same([]string{<-told, <-told})
	stop()

	// The others exchange to the end; with the one who floods, both sides read that there is no decision.
	text := make([]byte, mine.vectorBytes())
	for round := range mine.Rounds {
		for _, p := range [][2]int{{1, 0}, {1, 2}, {2, 0}, {2, 1}} {
			r := map[int]*Client{1: honest, 2: other}[p[0]]
			if _, err := r.Put(t.Context(), vectorKey(p[0], p[1], round, 0, 1), text); err != nil {
				t.Fatal(err)
			}
		}
		if v, err := honest.Put(t.Context(), decisionKey(round, 1, 2), []byte(commit)); err != nil || !bytes.Equal(v, []byte(commit)) {
			t.Fatalf("%q, %v", v, err)
		}
		node := &Node{Store: honest, Credentials: all[1]}
		if verdict, err := node.decide(t.Context(), decisionKey(round, 0, 1), commit, false); verdict != abort || err != nil {
			t.Fatalf("%q, %v", verdict, err)
		}
	}
	if texts := full(h); texts != nil {
		t.Errorf("honest owners have filled their storage: %q", texts)
	}
}

// The limits of a schedule whose seed is still to be drawn hold for other seeds, and are not far above them.
func TestLimitsHoldForOtherSeeds(t *testing.T) {
	race.Skip(t)
	for _, s := range []gossip.Schedule{
		{Graph: gossip.Complete(20), Kind: gossip.Matching, Count: 4, Rounds: 600},
		{Graph: gossip.Complete(20), Kind: gossip.Edges, Count: 2, Rounds: 600},
		{Graph: gossip.Ring(9), Kind: gossip.Edges, Count: 3, Rounds: 100},
		{Graph: gossip.Path(5), Kind: gossip.Matching, Count: 1, Rounds: 30},
		{Graph: gossip.Complete(4), Kind: gossip.All, Rounds: 12},
	} {
		l := LimitsOf(&s, 7, true, false)
		for s.Seed = range uint64(50) {
			if err := l.Fits(&s, 7); err != nil {
				t.Errorf("%s, seed %d: %v", s.Kind, s.Seed, err)
			}
			if need := LimitsOf(&s, 7, false, false); s.Rounds >= 600 && l.Vectors[0] > 6*need.Vectors[0] {
				t.Errorf("%s: %d vectors, %d are needed", s.Kind, l.Vectors[0], need.Vectors[0])
			}
		}
		if err := l.Fits(&s, 8); err == nil {
			t.Error("vectors of another length fit")
		}
		s.Rounds++
		if err := l.Fits(&s, 7); err == nil {
			t.Error("another number of rounds fits")
		}
	}
	if err := (*Limits)(nil).Fits(&gossip.Schedule{}, 1); err != nil {
		t.Error(err)
	}
}

// A network whose pairs are too many for a store each has one for all decisions.
func TestManyPairs(t *testing.T) {
	s := &gossip.Schedule{Graph: gossip.Complete(60), Kind: gossip.Matching, Count: 3, Rounds: 1}
	o, all := limited(t, 60, LimitsOf(s, 3, false, false))
	h := start(t, o, all...)
	a := dial(t, all[58])
	if v, err := a.Put(t.Context(), decisionKey(3, 58, 59), []byte(commit)); err != nil || string(v) != commit {
		t.Errorf("%q, %v", v, err)
	}
	if _, v, err := dial(t, all[59]).Await(t.Context(), decisionKey(3, 58, 59)); err != nil || string(v) != commit {
		t.Errorf("%q, %v", v, err)
	}
	if texts, err := h.Full(t.Context()); texts != nil || err != nil {
		t.Errorf("%q, %v", texts, err)
	}
	// The store that all share has a name, too, when it is full.
	network := &all[58].Network
	for round := range len(network.pairs()) + 2*spare {
		if round == 3 {
			continue
		}
		if _, err := a.Put(t.Context(), decisionKey(round, 58, 59), []byte(commit)); errors.Is(err, ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	want := "storage full, of the decisions that all owners share"
	if texts, err := h.Full(t.Context()); len(texts) != 1 || !strings.HasPrefix(texts[0], want) || err != nil {
		t.Errorf("%q, %v", texts, err)
	}
	if texts, err := FullStores(t.Context(), a, network); len(texts) != 1 || !strings.HasPrefix(texts[0], want) || err != nil {
		t.Errorf("an owner reads %q, %v", texts, err)
	}
}
