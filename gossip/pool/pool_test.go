package pool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/simdisk"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

var errCrash = errors.New("crash")

// crowd is the owners of one network in one process, their store and its adder.
type crowd struct {
	store  *transport.Memory
	owners []*owner
}

// owner is one of them: what it keeps over its processes, and the points at which these crash.
type owner struct {
	c     *transport.Credentials
	store transport.Store
	disk  *simdisk.Disk
	rng   *rand.Rand

	retries int
	events  []byte // the run's log: 'c' for an attempt charged, 'r' for a batch released
	loses   []int  // how many events at the end of the log each crash takes
	crashes []string
	plan    map[int]simdisk.Fault // of its first process

	parts   map[string][]byte        // by key, as stored
	plain   map[[2]int][]int64       // by attempt and sum, before masks
	totals  map[int][][]int64        // by batch
	at      map[int][]int            // the attempts of a batch's sums
	another func() [sha256.Size]byte // what it asks, if not as all

	twice     bool // it stored two parts of one sum
	processes int
}

// networks are those of so many owners, each made once: certificates take their time.
var networks = map[int][]*transport.Credentials{}

func network(t *testing.T, n int) []*transport.Credentials {
	t.Helper()
	if networks[n] != nil {
		return networks[n]
	}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("hospital-", i+1))
	}
	o, err := transport.NewNetwork("", names, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		c, err := o.Invite(i, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		networks[n] = append(networks[n], c)
	}
	return networks[n]
}

func newCrowd(t *testing.T, n int) *crowd {
	t.Helper()
	c := &crowd{store: &transport.Memory{}}
	all := network(t, n)
	for i, credentials := range all {
		c.owners = append(c.owners, newOwner(i, credentials, c.store))
	}
	config, err := all[0].Network.Config()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&transport.Adder{Store: c.store, Network: &all[0].Network, Config: config}).Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return c
}

func newOwner(i int, credentials *transport.Credentials, store transport.Store) *owner {
	return &owner{
		c: credentials, store: store, disk: simdisk.New(uint64(i)), rng: rand.New(rand.NewPCG(7, uint64(i))), retries: 3,
		parts: map[string][]byte{}, plain: map[[2]int][]int64{}, totals: map[int][][]int64{}, at: map[int][]int{},
	}
}

// crash ends the process if it is to crash at that point.
func (o *owner) crash(point string) error {
	if k := slices.Index(o.crashes, point); k >= 0 {
		o.crashes = slices.Delete(slices.Clone(o.crashes), k, k+1)
		return errCrash
	}
	return nil
}

// An owner is its own way to the store.

func (o *owner) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	if err := o.crash("before " + key); err != nil {
		return nil, err
	}
	if strings.Contains(key, ".part.") {
		if earlier, ok := o.parts[key]; ok && !bytes.Equal(earlier, value) {
			o.twice = true
		}
		o.parts[key] = bytes.Clone(value)
	}
	b, err := o.store.Put(ctx, key, value)
	return b, errors.Join(err, o.crash("after "+key))
}

func (o *owner) Get(ctx context.Context, key string) ([]byte, error) { return o.store.Get(ctx, key) }

func (o *owner) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	if err := o.crash(fmt.Sprint("await ", len(keys), " ", keys[0])); err != nil {
		return 0, nil, err
	}
	return o.store.Await(ctx, keys...)
}

const journalPath = "/pool"

func (o *owner) pool() (*Pool, error) {
	return Open(Options{
		Store: o, Credentials: o.c, Disk: runlog.Disk{FS: o.disk}, Path: journalPath, Run: "run", Retries: o.retries,
		Charged: bytes.Count(o.events, []byte("c")), Released: bytes.Count(o.events, []byte("r")),
	})
}

// lengths are those of the sums of a batch.
var lengths = []int{5, 1, 300}

// train releases batches, as the private oracle would, over as many processes as it takes.
func (o *owner) train(ctx context.Context, batches int) error {
	o.disk.Start(o.plan)
	for {
		o.processes++
		err := o.process(ctx, batches)
		if !errors.Is(err, errCrash) && o.disk.Dead() == nil {
			return err
		}
		o.disk.Cut(true)
		o.disk.Start(nil)
		if len(o.loses) > 0 {
			o.events, o.loses = o.events[:max(0, len(o.events)-o.loses[0])], o.loses[1:]
		}
	}
}

func (o *owner) process(ctx context.Context, batches int) error {
	p, err := o.pool()
	if err != nil {
		return err
	}
	defer p.Close()
	for {
		batch := bytes.Count(o.events, []byte("r"))
		if batch == batches {
			return p.End(ctx)
		}
		err := o.meet(ctx, p)
		var all [][]int64
		var made []int
		if err == nil {
			all, made, err = o.batch(ctx, p, batch)
		}
		if errors.Is(err, privacy.ErrExhausted) {
			err = cmp.Or(p.End(ctx), err)
		}
		if err != nil {
			return err
		}
		if earlier, ok := o.totals[batch]; ok && !slices.EqualFunc(earlier, all, slices.Equal) {
			return fmt.Errorf("batch %d has another total after a restart", batch)
		}
		o.totals[batch], o.at[batch] = all, made
		o.events = append(o.events, 'r')
	}
}

// meet begins an attempt, which it charges unless it is held.
func (o *owner) meet(ctx context.Context, p *Pool) error {
	held, err := p.Meet(ctx)
	if err != nil {
		return err
	}
	if !held {
		o.events = append(o.events, 'c')
	}
	return o.crash(fmt.Sprint("charged ", p.attempt))
}

// batch makes the sums of a batch. After an attempt that was given up it goes on at the sum that it lacks.
func (o *owner) batch(ctx context.Context, p *Pool, batch int) (all [][]int64, made []int, err error) {
	for len(all) < len(lengths) {
		n := lengths[len(all)]
		asked := sha256.Sum256([]byte{byte(batch), byte(len(all))})
		if o.another != nil {
			asked = o.another()
		}
		v, err := p.Sum(ctx, asked, n, func() ([]int64, error) {
			if err := o.crash(fmt.Sprintf("part %d.%d", p.attempt, p.sum)); err != nil {
				return nil, err
			}
			v := make([]int64, n)
			for k := range v {
				v[k] = int64(o.rng.Uint64())
			}
			o.plain[[2]int{p.attempt, p.sum}] = slices.Clone(v)
			return v, nil
		})
		if errors.Is(err, sum.ErrGivenUp) {
			err = o.meet(ctx, p)
			if err != nil {
				return nil, nil, err
			}
			continue
		} else if err != nil {
			return nil, nil, err
		}
		all, made = append(all, slices.Clone(v)), append(made, p.attempt)
		if err := o.crash(fmt.Sprintf("total %d.%d", p.attempt, p.sum-1)); err != nil {
			return nil, nil, err
		}
	}
	return all, made, nil
}

// run trains all owners and returns their errors.
func (c *crowd) run(ctx context.Context, batches int) []error {
	errs := make([]error, len(c.owners))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for i, o := range c.owners {
		all.Go(func() {
			if errs[i] = o.train(ctx, batches); errors.Is(errs[i], ErrBehind) {
				stop() // the others would wait for it
			}
		})
	}
	all.Wait()
	return errs
}

// check holds what the owners released against the sums of what they had before masks.
func (c *crowd) check(t *testing.T, batches int) {
	t.Helper()
	for b := range batches {
		made := c.owners[0].at[b]
		for s, n := range lengths {
			if len(made) != len(lengths) {
				t.Fatalf("batch %d has %d sums", b, len(made))
			}
			place := s - slices.Index(made, made[s]) // in its attempt
			want := make([]int64, n)
			for _, o := range c.owners {
				for k, x := range o.plain[[2]int{made[s], place}] {
					want[k] += x
				}
			}
			for i, o := range c.owners {
				if !slices.Equal(o.at[b], made) || len(o.totals[b]) != len(lengths) || !slices.Equal(o.totals[b][s], want) {
					t.Errorf("owner %d: sum %d of batch %d is not that of all parts", i+1, s, b)
				}
			}
		}
	}
	for i, o := range c.owners {
		if o.twice {
			t.Errorf("owner %d stored two parts of one sum", i+1)
		}
		if len(o.crashes) > 0 {
			t.Errorf("owner %d did not reach %v", i+1, o.crashes)
		}
		o.disk.Start(nil)
		p, err := o.pool()
		if err != nil {
			t.Fatal(err)
		}
		masked := 0
		for a, at := range p.journal.Attempts {
			if len(at.Parts) > 0 && !at.Last() {
				masked++
			}
			for s := range at.Parts {
				if o.parts[transport.PartKey(i, a, s)] == nil && !at.GivenUp {
					t.Errorf("owner %d never stored part %d of attempt %d", i+1, s, a)
				}
			}
		}
		if charged := bytes.Count(o.events, []byte("c")); charged < masked {
			t.Errorf("owner %d charged %d attempts and masked parts of %d", i+1, charged, masked)
		}
		p.Close()
	}
}

// Owners release the sums of their parts, and no part goes out as it is.
func TestSums(t *testing.T) {
	for _, n := range []int{2, 5} {
		c := newCrowd(t, n)
		for i, err := range c.run(t.Context(), 4) {
			if err != nil {
				t.Fatalf("owner %d: %v", i+1, err)
			}
		}
		c.check(t, 4)
		for i, o := range c.owners {
			if !slices.Equal(o.at[3], []int{3, 3, 3}) || string(o.events) != "crcrcrcr" {
				t.Errorf("owner %d of %d: log %s, last attempts %d", i+1, n, o.events, o.at[3])
			}
			for at, plain := range o.plain {
				if b := o.parts[transport.PartKey(i, at[0], at[1])]; len(plain) > 0 && bytes.Contains(b, runlog.Numbers(plain[:1])) {
					t.Errorf("owner %d: a number went out without a mask", i+1)
				}
			}
		}
	}
}

// A process that ends at any point is followed by another that releases the same or, where its key is gone, by another attempt. The
// run's log may have lost its end with it.
func TestRestarts(t *testing.T) {
	for point, again := range map[string]bool{ // whether the attempt is given up
		"before sum.1.here.1":   false,
		"after sum.1.here.1":    true,
		"await 2 all.sum.1.0":   true,
		"charged 1":             true,
		"part 1.0":              true,
		"before sum.1.part.1.0": true, // the others end the next sum: no key of it is left
		"after sum.1.part.1.0":  true,
		"await 1 all.sum.1.0":   true,
		"total 1.0":             true,
		"part 1.1":              true,
		"before sum.1.part.1.2": false, // the last sum
		"after sum.1.part.1.2":  false,
		"await 1 all.sum.1.2":   false,
		"total 1.2":             false,
		// The sum that ends the run needs no key.
		"before sum.1.here.3":   false,
		"after sum.1.here.3":    false,
		"await 2 all.sum.3.0":   false,
		"before sum.1.part.3.0": false,
		"after sum.1.part.3.0":  false,
		"await 1 all.sum.3.0":   false,
	} {
		for _, loses := range []int{0, 1, 2, 4} {
			if race.Enabled && (loses == 1 || loses == 2) {
				continue
			}
			t.Run(fmt.Sprint(point, ", events lost ", loses), func(t *testing.T) {
				c := newCrowd(t, 3)
				o := c.owners[1]
				o.crashes, o.loses = []string{point}, []int{loses}
				for i, err := range c.run(t.Context(), 3) {
					if err != nil {
						t.Fatalf("owner %d: %v", i+1, err)
					}
				}
				c.check(t, 3)
				if got := o.at[1][len(lengths)-1] == 2; got != again {
					t.Errorf("batch 2 is of attempts %d", o.at[1])
				}
				attempts := 4 // with the one that ends the run
				if again {
					attempts++
				}
				if n := len(c.journal(t, 1).Attempts); n != attempts {
					t.Errorf("%d attempts; want %d", n, attempts)
				}
			})
		}
	}
}

// journal is an owner's journal of sums, closed.
func (c *crowd) journal(t *testing.T, owner int) *runlog.Sums {
	t.Helper()
	p, err := c.owners[owner].pool()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.journal
}

// A process that ends in the attempt after one that was given up in the middle goes through that one again, and asks what the others ask.
func TestRestartAfterGivenUp(t *testing.T) {
	for _, second := range []string{"before sum.1.here.2", "after sum.1.here.2", "charged 2", "after sum.1.part.2.0", "total 2.0", "total 2.1"} {
		for loses := range 3 {
			c := newCrowd(t, 3)
			o := c.owners[1]
			o.crashes, o.loses = []string{"part 1.1", second}, []int{0, loses}
			for i, err := range c.run(t.Context(), 3) {
				if err != nil {
					t.Fatalf("%s: owner %d: %v", second, i+1, err)
				}
			}
			c.check(t, 3)
		}
	}
}

// An attempt that was given up after its part went out is charged again if the log has lost the charge.
func TestLostCharge(t *testing.T) {
	c := newCrowd(t, 3)
	o := c.owners[1]
	o.crashes, o.loses = []string{"part 1.1", "before sum.1.here.2"}, []int{0, 1}
	for i, err := range c.run(t.Context(), 2) {
		if err != nil {
			t.Fatalf("owner %d: %v", i+1, err)
		}
	}
	c.check(t, 2)
	if string(o.events) != "crccr" {
		t.Errorf("found the log %s", o.events)
	}
}

// A process that ends at any call of the owner's disk, with the power or without, is followed by another that goes on.
func TestRestartsOfTheDisk(t *testing.T) {
	race.Skip(t)
	for _, fault := range []simdisk.Fault{simdisk.Kill, simdisk.Drop, simdisk.Torn} {
		for call := 0; ; call++ {
			c := newCrowd(t, 2)
			o := c.owners[1]
			o.plan, o.retries, c.owners[0].retries = map[int]simdisk.Fault{call: fault}, 1, 1
			for i, err := range c.run(t.Context(), 2) {
				if err != nil {
					t.Fatalf("%v at call %d: owner %d: %v", fault, call, i+1, err)
				}
			}
			c.check(t, 2)
			if o.processes == 1 { // it did not reach the call
				break
			}
		}
	}
}

// A run whose owners give up more attempts than they may ends at all of them, and as a matter of budget.
func TestExhausted(t *testing.T) {
	c := newCrowd(t, 3)
	for _, o := range c.owners {
		o.retries = 1
	}
	c.owners[0].crashes = []string{"charged 1"}
	c.owners[2].crashes = []string{"part 2.0"}
	for i, err := range c.run(t.Context(), 4) {
		if !errors.Is(err, privacy.ErrExhausted) {
			t.Errorf("owner %d: %v", i+1, err)
		}
		// An owner that reads of the end before it charges does not charge.
		if log := string(c.owners[i].events); !strings.HasPrefix("crcc", log) || len(log) < 2 {
			t.Errorf("owner %d has the log %s", i+1, log)
		}
	}
	c.check(t, 1)
}

// An owner that asks something else is named by the others, and names them. Nobody reads a sum.
func TestOtherContexts(t *testing.T) {
	c := newCrowd(t, 3)
	c.owners[2].another = func() [sha256.Size]byte { return [sha256.Size]byte{1} }
	for i, err := range c.run(t.Context(), 1) {
		want := "hospital-3 signed another one than hospital-" + fmt.Sprint(i+1)
		if i == 2 {
			want = "hospital-1, hospital-2 signed another one than hospital-3"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("owner %d: %v", i+1, err)
		}
		if len(c.owners[i].totals) > 0 {
			t.Errorf("owner %d released a sum", i+1)
		}
	}
}

// A journal that is older than what the owner stored, or of another run, is refused, and nothing is masked with it.
func TestOldJournals(t *testing.T) {
	c := newCrowd(t, 2)
	for i, err := range c.run(t.Context(), 2) {
		if err != nil {
			t.Fatalf("owner %d: %v", i+1, err)
		}
	}
	o := c.owners[0]
	whole := o.disk
	o.disk = simdisk.New(1)
	if _, err := o.pool(); !errors.Is(err, ErrBehind) {
		t.Errorf("an empty journal with two releases: %v", err)
	}
	o.disk, o.events = simdisk.New(1), nil
	if err := o.process(t.Context(), 1); !errors.Is(err, ErrBehind) {
		t.Errorf("an empty journal: %v", err)
	}
	o.disk, o.events = whole, nil
	p, err := o.pool()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.pool(); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("two processes: %v", err)
	}
	if held, err := p.Meet(t.Context()); err != nil || held {
		t.Fatal(held, err)
	}
	if _, err := p.Sum(t.Context(), [sha256.Size]byte{3}, lengths[0], nil); err == nil || !strings.Contains(err.Error(), "asked otherwise") {
		t.Errorf("another question: %v", err)
	}
	p.Close()
	if _, err := Open(Options{Store: o, Credentials: o.c, Disk: runlog.Disk{FS: o.disk}, Path: journalPath, Run: "another"}); !errors.Is(err, runlog.ErrOtherJournal) {
		t.Errorf("the journal of another run: %v", err)
	}
	if o.twice {
		t.Error("the owner stored two parts of one sum")
	}
}

// Who has an owner's connection and not its key ends nothing with stops. An owner that asks for the end of every attempt costs all retries: the
// run then ends at all of them, as one of budget, and their last comparison takes place.
func TestStopsOfAnOwner(t *testing.T) {
	for name, c := range map[string]struct {
		stop func(c *crowd, config transport.Config, attempt, sum int) error
		want error
	}{
		"without its key": {func(c *crowd, _ transport.Config, attempt, sum int) error {
			_, err := c.store.Put(t.Context(), transport.StopKey(1, attempt, sum), []byte{1})
			return err
		}, nil},
		"with its key": {func(c *crowd, config transport.Config, attempt, sum int) error {
			return transport.PutStop(t.Context(), c.store, c.owners[1].c, config, attempt, sum)
		}, privacy.ErrExhausted},
	} {
		all := newCrowd(t, 3)
		config, err := all.owners[0].c.Network.Config()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all.owners {
			o.retries = 2
		}
		for attempt := range 20 {
			for sum := range lengths {
				if err := c.stop(all, config, attempt, sum); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, err := range all.run(t.Context(), 2) {
			if !errors.Is(err, c.want) {
				t.Errorf("%s, owner %d: %v", name, i+1, err)
			}
			if c.want != nil && !strings.Contains(fmt.Sprint(err), "given up 3 attempts of 2 that they may, the last because of hospital-2") {
				t.Errorf("%s, owner %d: %v", name, i+1, err)
			}
			if j := all.journal(t, i); len(j.Attempts) == 0 || !j.Attempts[len(j.Attempts)-1].Last() || len(j.Attempts[len(j.Attempts)-1].Totals) != 1 {
				t.Errorf("%s, owner %d did not compare its last sum", name, i+1)
			}
		}
	}
}
