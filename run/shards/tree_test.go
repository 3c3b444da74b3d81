package shards_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/shards"
)

// gathering is a carrier that counts the trees that it plants and the questions to them, and does something before each.
type gathering struct {
	*shards.Coordinator
	planted, asked int
	hook           func(n int)
}

func (g *gathering) Plant(ctx context.Context) bool {
	planted := g.Coordinator.Plant(ctx)
	if planted {
		g.planted++
	}
	return planted
}

func (g *gathering) Gather(ctx context.Context, question []byte, take func([]byte)) error {
	g.asked++
	if g.hook != nil {
		g.hook(g.asked)
	}
	return g.Coordinator.Gather(ctx, question, take)
}

// newMany is a site with the clinic's table in so many parts.
func newMany(t testing.TB, parts int) *site {
	var cuts []int
	for i := 1; i < parts; i++ {
		cuts = append(cuts, i*4000/parts)
	}
	return newSite(t, cuts...)
}

// Workers of a tree die in the middle of a sum, after they have computed their own part and before they pass it on: one at the top, one in the
// middle and one at the end. Others take their place, a spare comes, and the record is that of the table in one piece.
func TestTreeThatBreaks(t *testing.T) {
	t.Parallel()
	s := newMany(t, 22)
	const more = "lab: true\nseed: 5\n" + sgd
	_, _, err := run.Fit(t.Context(), s.job("here", more), run.Env{Workers: 1})
	s.must(err)

	c := s.listen()
	dies := map[int]int{0: 5, 4: 11, 21: 17} // shard, and the question to the tree at which it does
	var mu sync.Mutex
	now := 0
	died := map[int]bool{}
	for i, part := range s.parts {
		o := shards.Options{Spec: s.spec("worker"+string(rune('a'+i)), ""), Key: s.key, URL: c.URL, Index: i, Count: len(s.parts), Cores: 1}
		if dies[i] == 0 {
			s.working(o, part)
			continue
		}
		again, ended := o, make(chan error, 1)
		o.Spec.Data = part
		ctx, kill := context.WithCancel(t.Context())
		o.Answered = func(time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if now == dies[i] {
				died[i] = true
				kill()
			}
		}
		go func() {
			ended <- shards.Work(ctx, o)
			if t.Context().Err() == nil {
				s.working(again, part)
			}
		}()
		t.Cleanup(func() { kill(); <-ended })
	}
	g := &gathering{Coordinator: c, hook: func(n int) {
		mu.Lock()
		now = n
		mu.Unlock()
		if n == 23 {
			s.worker(c.URL, 3, s.parts[3]) // a spare
		}
	}}
	env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: g}}
	_, _, err = run.Fit(t.Context(), s.job("away", more), env)
	s.must(err)
	s.same("through failures", "here", "away")
	mu.Lock()
	defer mu.Unlock()
	if len(died) != 3 || g.planted < 4 || g.asked < 24 {
		t.Errorf("workers %v died; %d trees were planted and asked %d times", died, g.planted, g.asked)
	}
}

// Workers that cannot connect to each other send their sums to the coordinator, and the terminal is told why, once.
func TestNoTree(t *testing.T) {
	t.Parallel()
	s := newMany(t, 16)
	const more = "lab: true\nseed: 5\nmethod: {name: sgd, steps: 5, batch: 100}"
	_, _, err := run.Fit(t.Context(), s.job("here", more), run.Env{Workers: 1})
	s.must(err)
	notices := make(chan string, 99)
	c, err := shards.Listen("127.0.0.1:0", len(s.parts), s.key, func(text string) { notices <- text })
	s.must(err)
	defer c.Close(false)
	for i, part := range s.parts[:15] {
		s.worker(c.URL, i, part)
	}
	o := shards.Options{Spec: s.spec("unreachable", ""), Key: s.key, URL: c.URL, Index: 15, Count: len(s.parts), Cores: 1}
	s.working(shards.Unreachable(o), s.parts[15])
	g := &gathering{Coordinator: c}
	_, _, err = run.Fit(t.Context(), s.job("away", more), run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: g}})
	s.must(err)
	s.same("no tree", "here", "away")
	const want = `workers cannot connect to each other, so each sends its sums to the coordinator: a worker says "shard 3 of 16: `
	if text := <-notices; g.asked > 0 || len(notices) > 0 || !strings.HasPrefix(text, want) {
		t.Errorf("the tree is asked %d times; the terminal is told: %s, and %d more", g.asked, text, len(notices))
	}
}

// A worker of a tree answers only those who have the key, and them only by masked sums: what a coordinator may ask it does not answer to
// others.
func TestWhoIsAbove(t *testing.T) {
	t.Parallel()
	s := newMany(t, 16)
	c := s.listen()
	s.workers(c.URL)
	g := &gathering{Coordinator: c}
	g.hook = func(n int) {
		if n != 3 {
			return
		}
		for _, i := range []int{0, 7} {
			if number, err := shards.Above(c, i, s.key, 1, 0, 2, shards.Gathering|5); err != nil || number != shards.Gathering|5 {
				t.Errorf("a holder of the key: the answer has the number %x, error %v", number, err)
			}
			s.must(os.WriteFile(s.file("another"), make([]byte, 32), 0o600))
			another, err := shards.ReadKey(s.file("another"))
			s.must(err)
			for name, key := range map[string]*shards.Key{"another key": another, "no key": nil} {
				if _, err := shards.Above(c, i, key, 1); err == nil {
					t.Errorf("%s: a worker answers", name)
				}
			}
		}
	}
	_, _, err := run.Fit(t.Context(), s.job("away", "lab: true\nseed: 5\n"+sgd), run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: g}})
	s.must(err)
	if g.planted != 1 || g.asked < 30 {
		t.Errorf("%d trees were planted and asked %d times", g.planted, g.asked)
	}
}

// What a worker says that it listens at is an address, or nothing.
func TestListens(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:4000": "127.0.0.1:4000", "[fe80::1%eth0]:4000": "[fe80::1%eth0]:4000", "": "", "host:4000": "", "127.0.0.1": "",
		"127.0.0.1:4000\n127.0.0.2:4000": "", "127.0.0.1:70000": "", "\x1b[2J": "", "[fe80::1%a\nb]:4000": "",
	} {
		if got := shards.Listens([]byte(text)); got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
}
