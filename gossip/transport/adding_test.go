package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run/runlog"
)

// sums are limits of a network of mode sum.
func sums(attempts, sums, numbers int) *Limits {
	return &Limits{Dim: 3, Sums: &SumLimits{Attempts: attempts, Sums: sums, Numbers: numbers}}
}

// A summing is a network of mode sum with its hub in a directory.
type summing struct {
	organizer *Organizer
	keys      *HubKeys
	dir       string
	hub       *Hub
	network   *Network
	config    Config
	all       []*Credentials
}

func newSumming(t testing.TB, n int, limits *Limits) *summing {
	t.Helper()
	s := &summing{dir: t.TempDir()}
	s.organizer, _, s.all = ownKeysFor(t, n, limits)
	s.network = &s.all[0].Network
	var err error
	if s.config, err = s.network.Config(); err != nil {
		t.Fatal(err)
	}
	if s.keys, err = s.organizer.Hub(); err != nil {
		t.Fatal(err)
	}
	s.begin(t)
	t.Cleanup(func() { s.hub.Close() })
	return s
}

// begin starts the hub, also after Close.
func (s *summing) begin(t testing.TB) {
	t.Helper()
	var err error
	if s.hub, err = StartHub(t.Context(), s.keys, HubOptions{Dir: s.dir}); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.all {
		c.Network.Hub = s.hub.URL
	}
}

// told waits for the hub's next notices.
func (s *summing) told(t testing.TB) (all []string) {
	t.Helper()
	needs.Until(t, "a notice of the hub", func() bool { all = s.hub.GivenUp(); return all != nil })
	return all
}

// The hub of a network of mode sum adds up while it serves, forgets the parts of earlier attempts, and goes on after it was stopped at
// any point.
func TestHubAdds(t *testing.T) {
	const owners, attempts = 3, 4
	s := newSumming(t, owners, sums(attempts, 2, sumFloats+1))
	var clients []*Client
	dialed := func() {
		clients = nil
		for _, c := range s.all {
			clients = append(clients, dial(t, c))
		}
	}
	again := func() {
		for _, c := range clients {
			c.Close()
		}
		s.hub.Close()
		s.begin(t)
		dialed()
	}
	dialed()
	for attempt := range attempts {
		for i := range clients {
			arrive(t, clients[i], s.config, attempt, s.all[i])
			if attempt == 1 && i == 1 {
				again()
			}
		}
		if _, _, err := clients[0].Await(t.Context(), PresencesKey(attempt)); err != nil {
			t.Fatal(err)
		}
		if _, err := clients[0].Get(t.Context(), PartKey(0, attempt-1, 1)); attempt > 0 && !errors.Is(err, ErrNone) {
			t.Errorf("the hub still has a part of attempt %d: %v", attempt-1, err)
		}
		for sum, length := range []int{5, sumFloats + 1} {
			for i := range clients {
				add(t, clients[i], s.config, attempt, sum, length, [32]byte{}, s.all[i])
				if attempt == 2 && sum == i {
					again()
				}
			}
			want := make([]int64, length)
			for k := range want {
				want[k] = 1 + 2 + 3
			}
			if o := outcomeOf(t, clients[sum], s.network, s.config, attempt, sum); o.Lacks != -1 || !slices.Equal(o.Total, runlog.Numbers(want)) {
				t.Errorf("attempt %d, sum %d: found another total", attempt, sum)
			}
		}
	}
	// Totals stay, for an owner that comes back.
	again()
	for attempt := range attempts {
		if o := outcomeOf(t, clients[0], s.network, s.config, attempt, 1); len(o.Total) != 8*(sumFloats+1) {
			t.Errorf("attempt %d: the hub lost a total", attempt)
		}
	}
	if texts := s.hub.GivenUp(); texts != nil {
		t.Errorf("found the notices %q", texts)
	}
	if texts, err := s.hub.Full(t.Context()); texts != nil || err != nil {
		t.Errorf("%q, %v", texts, err)
	}
}

// An owner writes its own keys of sums and no others; only the hub writes what all read.
func TestSecurityOfSums(t *testing.T) {
	s := newSumming(t, 3, sums(2, 2, 10))
	n := s.network
	theirs := dial(t, s.all[1])
	add(t, theirs, s.config, 0, 0, 5, [32]byte{}, s.all[1])
	nc, refusals, err := connect(t, s.hub.URL, n, s.all[0].Pass)
	if err != nil {
		t.Fatal(err)
	}
	refused := refusedBy(refusals)
	in := func(key string) string { return n.pattern(key, "in") }
	read := func(key string) string { return "$JS.API.DIRECT.GET." + n.stream(n.streamOf(key)) + "." + in(key) }
	for _, subject := range []string{
		in(PresenceKey(1, 0)), in(PartKey(1, 0, 1)), in(StopKey(1, 0, 0)), in(PresencesKey(0)), in(OutcomeKey(0, 0)), in(OutcomeKey(0, 0) + ".1"),
		in(ownKey(1, behind)), in("sum.0.here.0.1"), in("sum.0.part.0.1.2"), in("sum.0.part.0"), in("sum.0.stop.0"), in("sum.0.other.0"), in("hub.0"),
		in(vectorKey(0, 1, 0, 0, 1)), in(decisionKey(0, 0, 1)), // of the other mode
		n.pattern(PartKey(0, 0, 1), "out"), n.pattern(OutcomeKey(0, 0), "out"),
		read(PartKey(1, 0, 0)), read(PresenceKey(1, 0)),
		"$JS.API.STREAM.PURGE." + n.stream("sum.0.part"), "$JS.API.STREAM.PURGE." + n.stream("sum.1.part"), "$JS.API.STREAM.DELETE." + n.stream("all"),
	} {
		t.Run(subject, func(t *testing.T) {
			if err := errors.Join(nc.PublishRequest(subject, n.inbox(0)+".r", []byte("x")), nc.Flush()); err != nil {
				t.Fatal(err)
			}
			refused(t)
		})
	}
	for _, subject := range []string{n.subject("sum", "out", ">"), n.subject("sum", "in", ">"), n.subject("all", "in", ">")} {
		t.Run("hear "+subject, func(t *testing.T) {
			if _, err := nc.Subscribe(subject, func(m *nats.Msg) { t.Errorf("heard %s", m.Subject) }); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			refused(t)
		})
	}
	// A client whose write is refused says so, and the hub has what it had.
	mine := dial(t, s.all[0])
	if _, err := mine.Put(t.Context(), OutcomeKey(0, 0), []byte{givenUp}); !errors.Is(err, ErrRefused) {
		t.Errorf("an owner writes a total: %v", err)
	}
	for _, key := range []string{PresencesKey(0), OutcomeKey(0, 0)} {
		if v, err := theirs.Get(t.Context(), key); !errors.Is(err, ErrNone) {
			t.Errorf("%s is %q, %v", key, v, err)
		}
	}
	if err := SayBehind(t.Context(), mine, s.all[0], s.config); err != nil {
		t.Error(err)
	}
	// What it may write is written once.
	again := dial(t, s.all[0])
	for _, v := range []string{"a", "b"} {
		if held, err := again.Put(t.Context(), StopKey(0, 0, 0), []byte(v)); err != nil || string(held) != "a" {
			t.Errorf("stands %q, %v", held, err)
		}
	}
}

// Owners that store too much, too long or malformed messages: the hub stays up, names them, and ends the attempt for all.
func TestSumsOfHostileOwners(t *testing.T) {
	const numbers = 10
	s := newSumming(t, 3, sums(5, 2, numbers))
	n := s.network
	var clients []*Client
	for _, c := range s.all {
		clients = append(clients, dial(t, c))
	}
	hostile := clients[1]
	attempt := 0
	// next is another attempt, which ends by what owner 2 does.
	next := func(what, why string, here bool, do func()) {
		t.Helper()
		arrive(t, clients[0], s.config, attempt, s.all[0])
		arrive(t, clients[2], s.config, attempt, s.all[2])
		if here {
			arrive(t, hostile, s.config, attempt, s.all[1])
			if _, _, err := hostile.Await(t.Context(), PresencesKey(attempt)); err != nil {
				t.Fatal(err)
			}
		}
		do()
		for _, i := range []int{0, 2} {
			add(t, clients[i], s.config, attempt, 0, numbers, [32]byte{}, s.all[i])
		}
		if o := outcomeOf(t, clients[0], n, s.config, attempt, 0); o.Lacks != 1 || o.Total != nil {
			t.Errorf("%s: found owner %d named, and %d bytes of a total", what, o.Lacks+1, len(o.Total))
		}
		if texts := s.told(t); len(texts) != 1 || !strings.HasPrefix(texts[0], fmt.Sprintf("attempt %d is given up at sum 1: ", attempt+1)) || !strings.Contains(texts[0], why) {
			t.Errorf("%s: found the notices %q", what, texts)
		}
		attempt++
	}
	put := func(key string, v []byte) {
		t.Helper()
		if _, err := hostile.Put(t.Context(), key, v); err != nil {
			t.Fatal(err)
		}
	}
	next("a presence that it did not sign", "what owner 2 stored as its key of the attempt", false, func() {
		put(PresenceKey(1, attempt), make([]byte, presenceBytes))
	})
	next("a claim of nothing", "what owner 2 stored as its part", true, func() {
		put(PartKey(1, attempt, 0), make([]byte, claimBytes+8*numbers))
	})
	next("a claim of more numbers than are stored", "what owner 2 stored as its part", true, func() {
		claim := Claim{Numbers: MaxSum}
		key := PartKey(1, attempt, 0)
		put(key, append(s.all[1].Sign(s.config, key, claim.text()), make([]byte, 8*numbers)...))
	})
	next("a part of another length, first", "the part of owner 2 has another length", true, func() {
		add(t, hostile, s.config, attempt, 0, numbers-1, [32]byte{}, s.all[1])
	})

	// A message that is too long is refused by its length, and a flood by the number of its messages.
	limit := n.Limits.Sums
	if _, err := hostile.Put(t.Context(), PresenceKey(1, attempt+1), make([]byte, presenceBytes+1)); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	for _, kind := range []struct {
		most int
		key  func(k int) string
	}{
		{limit.Sums + spare, func(k int) string { return PartKey(1, 1000+k, 0) }},
		{limit.attempts() + spare - attempt, func(k int) string { return PresenceKey(1, 1000+k) }},
		{limit.attempts()*limit.Sums + spare, func(k int) string { return StopKey(1, 1000+k, 0) }},
	} {
		if strings.Contains(kind.key(0), "part") {
			kind.most-- // the part of the last attempt is still there
		}
		for k := 0; ; k++ {
			_, err := hostile.Put(t.Context(), kind.key(k), []byte{1})
			if errors.Is(err, ErrFull) && k == kind.most {
				break
			}
			if err != nil || k > kind.most {
				t.Fatalf("%s: message %d of %d: %v", kind.key(0), k, kind.most, err)
			}
		}
	}
	texts, err := s.hub.Full(t.Context())
	if err != nil || len(texts) != 3 {
		t.Errorf("%q, %v", texts, err)
	}
	for _, text := range texts {
		if !strings.HasPrefix(text, "storage full, by owner 2: ") {
			t.Errorf("found %q", text)
		}
	}
	if seen, err := FullStores(t.Context(), clients[0], n); len(seen) != 3 || err != nil {
		t.Errorf("the others read %q, %v", seen, err)
	}
	// The others can still ask for an end.
	arrive(t, clients[0], s.config, attempt, s.all[0])
	if err := PutStop(t.Context(), clients[0], s.all[0], s.config, attempt, 0); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patient)
	defer stop()
	if _, err := clients[2].Get(ctx, OutcomeKey(0, 0)); err != nil {
		t.Errorf("the hub no longer answers: %v", err)
	}
}

// A network says its mode: it needs keys of the owners' own and limits of sums, it is another network, and no cluster replaces its hub.
func TestModeOfNetworks(t *testing.T) {
	s, _, _ := ownKeysFor(t, 3, sums(5, 1, 10))
	n := s.Network
	if n.Mode != ModeSum {
		t.Fatalf("the mode is %q", n.Mode)
	}
	config := func(n Network) Config {
		c, err := n.Config()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for want, change := range map[string]func(n *Network){
		`mode: found "mean"`:      func(n *Network) { n.Mode = "mean" },
		"limits.sums: belongs":    func(n *Network) { n.Mode = "" },
		"limits.sums: belongs to": func(n *Network) { n.Limits = nil },
		"own_keys":                func(n *Network) { n.OwnKeys = false },
		"limits.sums.attempts":    func(n *Network) { n.Limits.Sums.Attempts = 0 },
		"limits.sums.numbers":     func(n *Network) { n.Limits.Sums.Numbers = MaxSum + 1 },
		"limits.sums: found":      func(n *Network) { *n.Limits.Sums = SumLimits{1 << 24, 1 << 8, MaxSum} },
		"limits: found those":     func(n *Network) { n.Limits.Rounds = 3 },
		"a network of mode sum":   func(n *Network) { n.Owners = make([]Member, mostAdded+1) },
	} {
		other := n
		limits, of := *n.Limits, *n.Limits.Sums
		other.Limits = &limits
		other.Limits.Sums = &of
		change(&other)
		if err := other.validate(); err == nil || !strings.HasPrefix(err.Error(), want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if config(other) == config(n) {
			t.Errorf("%s: has the digits of the other network", want)
		}
	}
	if _, err := NewNetwork("", names(3), nil, sums(5, 1, 10)); err == nil || !strings.Contains(err.Error(), "own_keys") {
		t.Errorf("the organizer makes all keys: %v", err)
	}
	keys, err := s.Hub()
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Configure(t.TempDir()); !errors.Is(err, ErrAdds) {
		t.Errorf("the configuration of a cluster: %v", err)
	}
	if _, err := Found(t.Context(), keys, "tls://127.0.0.1:1", 1); !errors.Is(err, ErrAdds) {
		t.Errorf("a cluster: %v", err)
	}
}
