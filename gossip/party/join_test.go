package party

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// joining is an owner's session of the example that has come as far as to say hello, and all owners' credentials.
func joining(t *testing.T) (*session, []*transport.Credentials) {
	t.Helper()
	s := &session{o: Options{Spec: "../../examples/network/sotto.yaml", Dir: t.TempDir(), Join: defaultJoin, Plan: netplan.Options{Apart: true}}}
	var err error
	if s.plan, err = netplan.Prepare(s.o.Spec, s.o.Plan); err != nil {
		t.Fatal(err)
	}
	if !s.plan.Drawn() {
		t.Fatal("the example names a seed")
	}
	var names []string
	for _, o := range s.plan.Owners {
		names = append(names, o.Name)
	}
	organizer, err := transport.NewNetwork("", names, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*transport.Credentials
	for i := range names {
		c, err := organizer.Invite(i, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	s.c = all[0]
	s.Session = run.NewSession(s.plan.JobOf(0, ""), run.Env{}, s.o.Dir, false)
	if s.config, err = s.c.Network.Config(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.enter(); err != nil {
		t.Fatal(err)
	}
	return s, all
}

// say puts a word of an owner into the store.
func (s *session) say(t *testing.T, r transport.Store, c *transport.Credentials, what string, text []byte) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go (&transport.Node{Store: r, Credentials: c, Config: s.config}).Meet(ctx, what, text)
	if _, _, err := r.Await(t.Context(), fmt.Sprintf("own.%d.%s", c.Owner, what)); err != nil {
		t.Fatal(err)
	}
}

func newShare(t *testing.T) transport.Share {
	t.Helper()
	share, err := transport.NewShare()
	if err != nil {
		t.Fatal(err)
	}
	return share
}

// A hub that has seen this owner's share, and then shows it other commitments, chosen by all others together, does not choose the seed.
func TestCommitmentsAreKept(t *testing.T) {
	s, all := joining(t)
	synctest.Test(t, func(t *testing.T) { commitmentsAreKept(t, s, all) }) // a wait takes no time
}

func commitmentsAreKept(t *testing.T, s *session, all []*transport.Credentials) {
	hub := func() (*transport.Memory, *transport.Node) { // it forgets what it likes
		m := &transport.Memory{}
		return m, &transport.Node{Store: m, Credentials: s.c, Config: s.config}
	}
	network := &s.c.Network
	first, node := hub()
	for i, c := range all[1:] {
		s.say(t, first, c, transport.Hello, newShare(t).Commitment(network, i+1))
	}
	if err := s.join(t.Context(), node); err == nil || !strings.Contains(err.Error(), "does not show its share") {
		t.Fatal(err)
	}
	if _, err := first.Get(t.Context(), "own.0.share"); err != nil {
		t.Fatal(err) // it is shown
	}
	var err error
	if s.place, err = readPlace(s.o.Dir); err != nil { // the process begins again
		t.Fatal(err)
	}
	second, node := hub()
	for i, c := range all[1:] {
		chosen := newShare(t)
		s.say(t, second, c, transport.Hello, chosen.Commitment(network, i+1))
		s.say(t, second, c, transport.Show, chosen[:])
	}
	if err := s.join(t.Context(), node); !errors.Is(err, transport.ErrForged) {
		t.Errorf("the seed is %d, by others: %v", s.plan.Schedule.Seed, err)
	}
}

// Owners whose hub has told them different shares find out before a row is drawn.
func TestAllTrainByOneSchedule(t *testing.T) {
	s, all := joining(t)
	s.Info = &runlog.Info{ID: "r1"}
	for _, theirs := range []string{"r2 7", "r2"} {
		m := &transport.Memory{}
		for _, c := range all[1:] {
			s.say(t, m, c, transport.Ready, []byte(theirs))
		}
		if err := s.ready(t.Context(), &transport.Node{Store: m, Credentials: s.c, Config: s.config}); err == nil || !strings.Contains(err.Error(), "a schedule of another seed") {
			t.Errorf("%q: %v", theirs, err)
		}
	}
}

// Of two processes that begin in one directory, the later works with what the first wrote: never with a share of its own
// after the other may have shown one.
func TestEnterAtOnce(t *testing.T) {
	first, _ := joining(t)
	dir := t.TempDir()
	enter := func(crash func(string)) transport.Share {
		t.Helper()
		s := &session{o: first.o, Session: first.Session, plan: first.plan, c: first.c}
		s.o.Dir, s.o.Crash = dir, crash
		unlock, err := s.enter()
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		return s.place.Share
	}
	var earlier transport.Share
	if later := enter(func(string) { earlier = enter(nil) }); later != earlier {
		t.Error("found two shares in one directory")
	}
}

// deaf is a hub that takes what is said and then answers no more.
type deaf struct{ transport.Memory }

func (*deaf) Await(ctx context.Context, _ ...string) (int, []byte, error) {
	<-ctx.Done()
	return 0, nil, ctx.Err()
}

func (*deaf) Get(context.Context, string) ([]byte, error) { return nil, context.DeadlineExceeded }

// A hub that is gone at the end of a wait says nothing of who has come.
func TestNobodyIsMissedByADeafHub(t *testing.T) {
	s, _ := joining(t)
	s.o.Join = 10 * time.Millisecond
	err := s.join(t.Context(), &transport.Node{Store: &deaf{}, Credentials: s.c, Config: s.config})
	if err == nil || !strings.Contains(err.Error(), "the hub does not answer") || strings.Contains(err.Error(), s.plan.Owners[0].Name) {
		t.Error(err)

	}
}
