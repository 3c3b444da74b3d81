package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/relay"
)

// hubDir is the variable of a test process that is a hub, with its directory.
const hubDir = "SOTTO_TEST_HUB"

func TestMain(m *testing.M) {
	if dir := os.Getenv(hubDir); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve is a hub at the port that it has written down, until its standard input ends.
func serve(dir string) error {
	keys, err := transport.ReadHubKeys(filepath.Join(dir, transport.HubFile))
	if err != nil {
		return err
	}
	o := transport.HubOptions{Dir: filepath.Join(dir, "store")}
	if b, err := os.ReadFile(filepath.Join(dir, "port")); err == nil {
		fmt.Sscan(string(b), &o.Port)
	}
	h, err := transport.StartHub(context.Background(), keys, o)
	if err != nil {
		return err
	}
	defer h.Close()
	u, err := url.Parse(h.URL)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "port"), []byte(u.Port()), 0o600)
	}
	if err != nil {
		return err
	}
	fmt.Println(h.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A hubProcess is a hub in a process of its own, and the owners of its network.
type hubProcess struct {
	t           testing.TB
	dir, url    string
	credentials []*transport.Credentials
	end         func() // kills it
}

// newHub founds a network of owners for sums of some length, and starts its hub.
func newHub(t testing.TB, owners int, limits transport.SumLimits) *hubProcess {
	t.Helper()
	h := &hubProcess{t: t, dir: t.TempDir()}
	var keys []*transport.OwnerKey
	var requests []*transport.Request
	for i := range owners {
		k, err := transport.NewOwnerKey(fmt.Sprint("hospital-", i+1))
		if err != nil {
			t.Fatal(err)
		}
		keys, requests = append(keys, k), append(requests, k.Request())
	}
	o, err := transport.NewNetworkWithKeys("", requests, nil, &transport.Limits{Dim: limits.Numbers, Sums: &limits})
	if err == nil {
		err = o.WriteDir(h.dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range owners {
		c, err := o.Invite(i, time.Hour)
		if err == nil {
			err = c.Take(keys[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		h.credentials = append(h.credentials, c)
	}
	h.start()
	return h
}

func (h *hubProcess) start() {
	h.t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), hubDir+"="+h.dir)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe() // it ends with this process
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.end = sync.OnceFunc(func() { c.Process.Kill(); c.Wait(); in.Close() })
	h.t.Cleanup(h.end)
	text, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatalf("the hub did not start: %v", err)
	}
	h.url = strings.TrimSpace(text)
}

// killed ends the hub by kill -9 and starts another one in its directory.
func (h *hubProcess) killed() {
	h.end()
	h.start()
}

// dial connects an owner to a URL, or to the hub's.
func (h *hubProcess) dial(owner int, url string) *transport.Client {
	h.t.Helper()
	if url == "" {
		url = h.url
	}
	c, err := transport.Dial(h.t.Context(), h.credentials[owner], url)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return c
}

// crowd is the owners of the network over real connections.
func (h *hubProcess) crowd() *crowd {
	c := &crowd{}
	for i, credentials := range h.credentials {
		c.owners = append(c.owners, newOwner(i, credentials, h.dial(i, "")))
	}
	return c
}

func (c *crowd) trains(t *testing.T, batches int) {
	t.Helper()
	for i, err := range c.run(t.Context(), batches) {
		if err != nil {
			t.Fatalf("owner %d: %v", i+1, err)
		}
	}
	c.check(t, batches)
}

// few are limits of the sums of these tests.
func few(attempts int) transport.SumLimits {
	return transport.SumLimits{Attempts: attempts, Sums: len(lengths), Numbers: 300}
}

// Owners add up over the real hub, and start again as over a store in memory.
func TestSumsOverHub(t *testing.T) {
	c := newHub(t, 5, few(8)).crowd()
	c.owners[1].crashes = []string{"charged 1", "total 3.0"}
	c.owners[4].crashes = []string{"after sum.4.part.2.2"}
	c.trains(t, 4)
}

// at is a store that calls do once, before it stores a value under key or after.
type at struct {
	transport.Store
	key    string
	before func()
	after  func()
}

func (s *at) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	if key != s.key {
		return s.Store.Put(ctx, key, value)
	}
	if s.before != nil {
		s.before()
		s.before = nil
	}
	b, err := s.Store.Put(ctx, key, value)
	if s.after != nil {
		s.after()
		s.after = nil
	}
	return b, err
}

// The hub is killed while owners are on their way to an attempt, between their parts, and after the last one. Another one goes on with what is
// on its disk, and no attempt is lost.
func TestHubIsKilled(t *testing.T) {
	h := newHub(t, 3, few(5))
	c := h.crowd()
	var kill sync.Mutex
	killed := 0
	for i, place := range []string{transport.PresenceKey(0, 1), transport.PartKey(1, 2, 0), transport.PartKey(2, 3, 2)} {
		do := func() {
			kill.Lock()
			defer kill.Unlock()
			killed++
			h.killed()
		}
		s := &at{Store: c.owners[i].store, key: place}
		if i == 0 {
			s.before = do
		} else {
			s.after = do
		}
		c.owners[i].store = s
	}
	c.trains(t, 5)
	if killed != 3 {
		t.Errorf("the hub was killed %d times; want 3", killed)
	}
	for i, o := range c.owners {
		if string(o.events) != strings.Repeat("cr", 5) {
			t.Errorf("owner %d has the log %s", i+1, o.events)
		}
	}
}

// An owner that is cut off costs no attempt: the others wait, and it goes on where it was, also with a total that it did not hear of.
func TestOwnerIsCutOff(t *testing.T) {
	h := newHub(t, 3, few(5))
	u, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	way := relay.New(t, u.Host)
	c := h.crowd()
	witness := h.dial(0, "")
	until := func(key string) { // the hub stores a value under the key
		if _, _, err := witness.Await(t.Context(), key); err != nil {
			t.Error(err)
		}
		way.Cut(false)
	}
	late := c.owners[2]
	last := &at{Store: h.dial(2, "tls://"+way.Addr), key: transport.PartKey(2, 2, 2), after: func() {
		way.Cut(true)
		go until(transport.OutcomeKey(2, 2))
	}}
	late.store = &at{Store: last, key: transport.PartKey(2, 1, 0), before: func() {
		way.Cut(true)
		go until(transport.PartKey(0, 1, 0))
	}}
	c.trains(t, 3)
	for i, o := range c.owners {
		if string(o.events) != "crcrcr" {
			t.Errorf("owner %d has the log %s", i+1, o.events)
		}
	}
}

// What an owner says under another's key is refused, and the others add up without it.
func TestAnothersPart(t *testing.T) {
	h := newHub(t, 3, few(2))
	liar := h.dial(2, "")
	if _, err := liar.Put(t.Context(), transport.PartKey(0, 0, 0), []byte{1}); !errors.Is(err, transport.ErrRefused) {
		t.Errorf("an owner stores another's part: %v", err)
	}
	h.crowd().trains(t, 2)
}
