package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sottodp/sotto/run/runlog"
)

// The hub's sums are those of the parts; an owner that asks for an end gets one, and the next attempt begins.
func TestAdder(t *testing.T) {
	_, all := owners(t, 3)
	n := &all[0].Network
	config, err := n.Config()
	if err != nil {
		t.Fatal(err)
	}
	store := &Memory{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Adder{Store: store, Network: n, Config: config}).Run(ctx) }()
	defer func() { stop(); <-ended }()
	outcome := func(attempt, sum int) Outcome {
		_, b, err := store.Await(ctx, OutcomeKey(attempt, sum))
		if err != nil {
			t.Fatal(err)
		}
		o, err := ReadOutcome(ctx, store, n, config, attempt, sum, b)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for attempt := range 2 {
		for i, c := range all {
			key := PresenceKey(i, attempt)
			if _, err := store.Put(ctx, key, c.Sign(config, key, make([]byte, 32))); err != nil {
				t.Fatal(err)
			}
		}
		for sum, length := range []int{0, 5, sumFloats, 2*sumFloats + 1} {
			want := make([]int64, length)
			for i, c := range all {
				v := make([]int64, length)
				for k := range v {
					v[k] = int64(k*i) - 1<<62
				}
				runlog.AddNumbers(want, runlog.Numbers(v))
				if ok, err := PutPart(ctx, store, c, config, attempt, sum, [32]byte{9}, runlog.Numbers(v)); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			if o := outcome(attempt, sum); o.Lacks != -1 || len(o.Claims) != 3 || !slices.Equal(o.Total, runlog.Numbers(want)) {
				t.Errorf("attempt %d, sum %d: another total of %d numbers", attempt, sum, length)
			}
		}
		if _, err := PutPart(ctx, store, all[0], config, attempt, 4, [32]byte{}, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		if err := PutStop(ctx, store, all[2], config, attempt, 4); err != nil {
			t.Fatal(err)
		}
		if o := outcome(attempt, 4); o.Lacks != 2 {
			t.Errorf("attempt %d is given up for owner %d; want 3", attempt, o.Lacks+1)
		}
	}
}

// arrive stores the presences of owners for an attempt.
func arrive(t *testing.T, r Store, config Config, attempt int, all ...*Credentials) {
	t.Helper()
	for _, c := range all {
		key := PresenceKey(c.Owner, attempt)
		if _, err := r.Put(t.Context(), key, c.Sign(config, key, make([]byte, 32))); err != nil {
			t.Fatal(err)
		}
	}
}

// add stores the owner's part: n numbers, all of them the owner's place plus one.
func add(t *testing.T, r Store, config Config, attempt, sum, n int, digest [32]byte, c *Credentials) {
	t.Helper()
	v := make([]int64, n)
	for k := range v {
		v[k] = int64(c.Owner + 1)
	}
	if ok, err := PutPart(t.Context(), r, c, config, attempt, sum, digest, runlog.Numbers(v)); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

// outcomeOf waits for an outcome.
func outcomeOf(t *testing.T, r Store, n *Network, config Config, attempt, sum int) Outcome {
	t.Helper()
	_, b, err := r.Await(t.Context(), OutcomeKey(attempt, sum))
	if err != nil {
		t.Fatal(err)
	}
	o, err := ReadOutcome(t.Context(), r, n, config, attempt, sum, b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var errCrash = errors.New("crash")

// crashing is a store that fails once, before or after it stores a value under key.
type crashing struct {
	*Memory
	key   string
	after bool
	done  bool
}

func (s *crashing) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	if key != s.key || s.done {
		return s.Memory.Put(ctx, key, value)
	}
	s.done = true
	if s.after {
		if _, err := s.Memory.Put(ctx, key, value); err != nil {
			return nil, err
		}
	}
	return nil, errCrash
}

// A hub that dies before or after each of its messages and starts again stores what it would have stored.
func TestAdderStartsAgain(t *testing.T) {
	_, all := owners(t, 3)
	n := &all[0].Network
	config, err := n.Config()
	if err != nil {
		t.Fatal(err)
	}
	long := sumFloats + 1
	for _, key := range []string{PresencesKey(0), OutcomeKey(0, 0), chunkKey(OutcomeKey(0, 1), 1, 2), OutcomeKey(0, 1), OutcomeKey(0, 2), PresencesKey(1), OutcomeKey(1, 0)} {
		for _, after := range []bool{false, true} {
			store := &crashing{Memory: &Memory{}, key: key, after: after}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan int, 1)
			go func() {
				starts := 1
				for errors.Is((&Adder{Store: store, Network: n, Config: config}).Run(ctx), errCrash) {
					starts++
				}
				ended <- starts
			}()
			var totals []Outcome
			arrive(t, store.Memory, config, 0, all...)
			for sum, length := range []int{3, long} {
				for _, c := range all {
					add(t, store.Memory, config, 0, sum, length, [32]byte{}, c)
				}
				totals = append(totals, outcomeOf(t, store.Memory, n, config, 0, sum))
			}
			for _, c := range all { // one alone has to wait for a part
				if err := PutStop(ctx, store.Memory, c, config, 0, 2); err != nil {
					t.Fatal(err)
				}
			}
			if o := outcomeOf(t, store.Memory, n, config, 0, 2); o.Lacks < 0 {
				t.Errorf("%s: the hub made a sum without parts", key)
			}
			arrive(t, store.Memory, config, 1, all...)
			for _, c := range all {
				add(t, store.Memory, config, 1, 0, 2, [32]byte{}, c)
			}
			totals = append(totals, outcomeOf(t, store.Memory, n, config, 1, 0))
			for k, length := range []int{3, long, 2} {
				want := make([]int64, length)
				for i := range want {
					want[i] = 1 + 2 + 3
				}
				if totals[k].Lacks != -1 || !slices.Equal(totals[k].Total, runlog.Numbers(want)) {
					t.Errorf("%s: total %d is another after a crash", key, k)
				}
			}
			arrive(t, store.Memory, config, 2, all...) // so that the hub has passed all that it was to store
			if _, _, err := store.Memory.Await(ctx, PresencesKey(2)); err != nil {
				t.Fatal(err)
			}
			stop()
			if starts := <-ended; starts != 2 {
				t.Errorf("%s: the hub started %d times; want 2", key, starts)
			}
		}
	}
}

// What an owner signed wrongly or not at all ends the attempt in its name, and the next one begins.
func TestAdderOfWrongParts(t *testing.T) {
	_, all := owners(t, 3)
	n := &all[0].Network
	config, err := n.Config()
	if err != nil {
		t.Fatal(err)
	}
	other := *all[1]
	other.Seed = all[2].Seed
	put := func(t *testing.T, r Store, key string, value []byte) {
		if _, err := r.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	// part returns what owner 2 would store as its part.
	part := func(t *testing.T, sum, n int, c *Credentials) []byte {
		var scratch Memory
		add(t, &scratch, config, 0, sum, n, [32]byte{}, c)
		b, err := scratch.Get(t.Context(), PartKey(1, 0, sum))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key := PartKey(1, 0, 0)
	for name, wrong := range map[string]func(t *testing.T, r Store){
		"presence signed by another": func(t *testing.T, r Store) {
			put(t, r, PresenceKey(1, 0), other.Sign(config, PresenceKey(1, 0), make([]byte, 32)))
		},
		"presence of another length": func(t *testing.T, r Store) {
			put(t, r, PresenceKey(1, 0), all[1].Sign(config, PresenceKey(1, 0), make([]byte, 31)))
		},
		"part signed by another":    func(t *testing.T, r Store) { put(t, r, key, part(t, 0, 5, &other)) },
		"part of another sum":       func(t *testing.T, r Store) { put(t, r, key, part(t, 1, 5, all[1])) },
		"part without a claim":      func(t *testing.T, r Store) { put(t, r, key, []byte{1}) },
		"part of fewer numbers":     func(t *testing.T, r Store) { add(t, r, config, 0, 0, 4, [32]byte{}, all[1]) },
		"part without its last one": func(t *testing.T, r Store) { b := part(t, 0, 5, all[1]); put(t, r, key, b[:len(b)-8]) },
		"part of other numbers": func(t *testing.T, r Store) {
			b := slices.Clone(part(t, 0, 5, all[1]))
			b[len(b)-1]++
			put(t, r, key, b)
		},
		"part without its second message": func(t *testing.T, r Store) { put(t, r, key, part(t, 0, sumFloats+5, all[1])) },
	} {
		t.Run(name, func(t *testing.T) {
			store := &Memory{}
			wrong(t, store)
			if _, err := store.Get(t.Context(), PresenceKey(1, 0)); errors.Is(err, ErrNone) {
				arrive(t, store, config, 0, all[1])
			}
			arrive(t, store, config, 0, all[0], all[2])
			add(t, store, config, 0, 0, 5, [32]byte{}, all[0])
			add(t, store, config, 0, 0, 5, [32]byte{}, all[2])
			arrive(t, store, config, 1, all...)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- (&Adder{Store: store, Network: n, Config: config}).Run(ctx) }()
			defer func() { stop(); <-ended }()
			if o := outcomeOf(t, store, n, config, 0, 0); o.Lacks != 1 || o.Total != nil {
				t.Errorf("found owner %d named and %d bytes of a total; want owner 2 and none", o.Lacks+1, len(o.Total))
			}
			if _, _, err := store.Await(ctx, PresencesKey(1)); err != nil {
				t.Error(err)
			}
		})
	}
}

// The hub knows no contexts: it adds what an owner masked in another one, and repeats what that owner signed, so that all can name it.
func TestAdderRepeatsClaims(t *testing.T) {
	_, all := owners(t, 3)
	n := &all[0].Network
	config, err := n.Config()
	if err != nil {
		t.Fatal(err)
	}
	store := &Memory{}
	arrive(t, store, config, 0, all...)
	for _, c := range all {
		add(t, store, config, 0, 0, 5, [32]byte{byte(c.Owner / 2)}, c)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Adder{Store: store, Network: n, Config: config}).Run(ctx) }()
	defer func() { stop(); <-ended }()
	o := outcomeOf(t, store, n, config, 0, 0)
	for i, want := range []byte{0, 0, 1} {
		if o.Claims[i].Context != [32]byte{want} {
			t.Errorf("owner %d signed another context than the outcome says", i+1)
		}
	}
	// A hub that repeats another claim is found by its signature.
	b, err := store.Get(ctx, OutcomeKey(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	forged := slices.Clone(b)
	forged[1+2*claimBytes+8] = 0
	if _, err := ReadOutcome(ctx, store, n, config, 0, 0, forged); !errors.Is(err, ErrForged) {
		t.Errorf("another claim is read: %v", err)
	}
	if _, err := ReadOutcome(ctx, store, n, config, 0, 1, b); !errors.Is(err, ErrForged) {
		t.Errorf("the outcome of another sum is read: %v", err)
	}
}

// Only a stop that its owner has signed ends an attempt, in that owner's name. None ends the sum of no numbers with which a run ends.
func TestStopsAreSigned(t *testing.T) {
	_, all := owners(t, 3)
	n := &all[0].Network
	config, err := n.Config()
	if err != nil {
		t.Fatal(err)
	}
	thief := *all[1]
	thief.Seed = all[2].Seed
	put := func(r Store, key string, value []byte) {
		if _, err := r.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	stop := func(r Store, c *Credentials) {
		if err := PutStop(t.Context(), r, c, config, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	key := StopKey(1, 0, 0)
	for name, c := range map[string]struct {
		do      func(r Store)
		numbers int
		parts   []int // owners who store theirs
		lacks   int
		notice  string
	}{
		"a byte":                {func(r Store) { put(r, key, []byte{1}) }, 5, []int{0, 1, 2}, -1, "not signed by it"},
		"nothing":               {func(r Store) { put(r, key, nil) }, 5, []int{0, 1, 2}, -1, "not signed by it"},
		"signed by another":     {func(r Store) { put(r, key, thief.Sign(config, key, nil)) }, 5, []int{0, 1, 2}, -1, "not signed by it"},
		"signed for another":    {func(r Store) { put(r, key, all[1].Sign(config, StopKey(1, 0, 1), nil)) }, 5, []int{0, 1, 2}, -1, "not signed by it"},
		"signed with a text":    {func(r Store) { put(r, key, all[1].Sign(config, key, []byte{1})) }, 5, []int{0, 1, 2}, -1, "not signed by it"},
		"its own":               {func(r Store) { stop(r, all[1]) }, 5, []int{0, 2}, 1, "owner 2 asked for the end"},
		"after another's byte":  {func(r Store) { put(r, key, []byte{1}); stop(r, all[1]) }, 5, []int{0, 2}, 1, "owner 2 stored as its part"},
		"of all":                {func(r Store) { stop(r, all[0]); stop(r, all[1]); stop(r, all[2]) }, 5, nil, 0, "owner 1 asked for the end"},
		"at the end":            {func(r Store) { stop(r, all[1]) }, 0, []int{0, 2, 1}, -1, ""},
		"at the end, by a byte": {func(r Store) { put(r, key, []byte{1}) }, 0, []int{0, 2, 1}, -1, "not signed by it"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &Memory{}
			arrive(t, store, config, 0, all...)
			c.do(store)
			told := make(chan string, 10)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- (&Adder{Store: store, Network: n, Config: config, Notice: func(text string) { told <- text }}).Run(ctx)
			}()
			var texts []string
			for k, i := range c.parts {
				if k == 2 && c.notice != "" { // what counts for nothing is said before the sum is made
					texts = append(texts, <-told)
				}
				add(t, store, config, 0, 0, c.numbers, [32]byte{}, all[i])
			}
			if o := outcomeOf(t, store, n, config, 0, 0); o.Lacks != c.lacks {
				t.Errorf("found owner %d named; want %d", o.Lacks+1, c.lacks+1)
			}
			arrive(t, store, config, 1, all...) // so that the hub has said what it says
			if _, _, err := store.Await(ctx, PresencesKey(1)); err != nil {
				t.Fatal(err)
			}
			cancel()
			<-ended
			close(told)
			for text := range told {
				texts = append(texts, text)
			}
			if all := strings.Join(texts, "\n"); !strings.Contains(all, c.notice) || c.notice == "" && all != "" {
				t.Errorf("the hub says %q", texts)
			}
		})
	}
}

// What an owner says of its old directory is told to each other once, if the owner has signed it.
func TestBehindIsTold(t *testing.T) {
	_, all := owners(t, 3)
	config, err := all[0].Network.Config()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		store := &Memory{}
		ctx, stop := context.WithCancel(t.Context())
		var told []string
		go WatchBehind(ctx, store, all[0], config, func(text string) { told = append(told, text) })
		if _, err := store.Put(ctx, ownKey(2, behind), []byte("x")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, c := range all[:2] { // and its own
			if err := SayBehind(ctx, store, c, config); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		if len(told) != 1 || !strings.HasPrefix(told[0], all[1].Network.Owners[1].Name+" has said that its run directory is older") {
			t.Errorf("told %q", told)
		}
	})
}

// A certificate that does not hold today is told apart from a stranger's.
func TestWrongClock(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, ErrClock},
		{fmt.Errorf("connect: %w", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}), ErrClock},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}}, ErrStranger},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, ErrStranger},
		{errors.New("no route"), nil},
	} {
		if got := unwelcome(c.err); got != c.want {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
}
