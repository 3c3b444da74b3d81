package pool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/gossip/mask"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// A liar is a hub as one owner sees it: what it shows under a key is another value than the store has.
type liar struct {
	*transport.Memory
	shows map[string]func(stored []byte) []byte
}

func (l *liar) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	k, b, err := l.Memory.Await(ctx, keys...)
	if lie := l.shows[keys[k]]; err == nil && lie != nil {
		b = lie(bytes.Clone(b))
	}
	return k, b, err
}

// batches asks a pool for the sums of batches, of so many numbers each, that it asks for in the same way. It returns the plain parts.
func batches(ctx context.Context, o *owner, times int, lengths ...int) (plain map[string][]int64, err error) {
	plain = map[string][]int64{}
	p, err := o.pool()
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for range times {
		if _, err := p.Meet(ctx); err != nil {
			return plain, err
		}
		for k := 0; k < len(lengths); {
			_, err := p.Sum(ctx, [sha256.Size]byte{byte(k)}, lengths[k], func() ([]int64, error) {
				v := make([]int64, lengths[k])
				for j := range v {
					v[j] = o.rng.Int64N(1000)
				}
				plain[transport.PartKey(o.c.Owner, p.attempt, p.sum)] = slices.Clone(v)
				return v, nil
			})
			if errors.Is(err, sum.ErrGivenUp) {
				_, err = p.Meet(ctx)
			} else {
				k++
			}
			if err != nil {
				return plain, err
			}
		}
	}
	return plain, nil
}

// atHub runs all owners, each at the hub as it sees it, until each has ended.
func (c *crowd) atHub(ctx context.Context, times int, lengths ...int) (plain map[string][]int64, errs []error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	plain, errs = map[string][]int64{}, make([]error, len(c.owners))
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, o := range c.owners {
		all.Go(func() {
			own, err := batches(ctx, o, times, lengths...)
			mu.Lock()
			defer mu.Unlock()
			for key, v := range own {
				plain[key] = v
			}
			if errs[i] = err; errors.Is(err, transport.ErrForged) {
				stop() // the others would wait for it
			}
		})
	}
	all.Wait()
	return plain, errs
}

// numbersOf are an owner's masked numbers as the store has them, below one message.
func numbersOf(t *testing.T, m *transport.Memory, key string, n int) []int64 {
	t.Helper()
	b, err := m.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]int64, n)
	runlog.AddNumbers(v, b[len(b)-8*n:])
	return v
}

// A hub that shows owners different totals, presences or ends ends the run at all of them, with an error that names who signed another
// context, and the honest owners' parts of that sum do not add up: nobody reads more than was released before.
func TestLyingHubs(t *testing.T) {
	const n = 50
	changed := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	for name, c := range map[string]struct {
		shows        func(all []*owner) map[string]func([]byte) []byte // to the second owner
		attempt, sum int                                               // that fail
	}{
		"another total": {shows: func([]*owner) map[string]func([]byte) []byte {
			return map[string]func([]byte) []byte{transport.OutcomeKey(0, 0): changed}
		}, sum: 1},
		"another total of the batch before": {shows: func([]*owner) map[string]func([]byte) []byte {
			return map[string]func([]byte) []byte{transport.OutcomeKey(0, 1): changed}
		}, attempt: 1},
		// The third owner colludes with the hub, and signs a second key.
		"another presence": {shows: func(all []*owner) map[string]func([]byte) []byte {
			return map[string]func([]byte) []byte{transport.PresencesKey(0): func(list []byte) []byte {
				second, err := mask.NewKey()
				if err != nil {
					t.Error(err)
					return list
				}
				third := all[2].c
				config, err := third.Network.Config()
				if err != nil {
					t.Error(err)
				}
				public := second.Public()
				each := len(list) / 3
				return append(list[:2*each], third.Sign(config, transport.PresenceKey(2, 0), public[:])...)
			}}
		}},
		// An attempt that is over for one owner only: it goes on with the sum that it lacks, the others with the next batch.
		"an end": {shows: func([]*owner) map[string]func([]byte) []byte {
			return map[string]func([]byte) []byte{transport.OutcomeKey(0, 1): func([]byte) []byte {
				return binary.LittleEndian.AppendUint64([]byte{'G'}, 2)
			}}
		}, attempt: 1},
	} {
		t.Run(name, func(t *testing.T) {
			all := newCrowd(t, 3)
			all.owners[1].store = &liar{all.store, c.shows(all.owners)}
			plain, errs := all.atHub(t.Context(), 3, n, n)
			for i, err := range errs {
				want := "hospital-2 signed another one than hospital-" + fmt.Sprint(i+1)
				if i == 1 {
					want = "hospital-1, hospital-3 signed another one than hospital-2"
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("owner %d: %v", i+1, err)
				}
			}
			// Not even those who know the third owner's part read the sum of the others'.
			same := 0
			for _, others := range [][]int{{0, 1, 2}, {0, 1}} {
				masked, want := make([]int64, n), make([]int64, n)
				for _, i := range others {
					key := transport.PartKey(i, c.attempt, c.sum)
					for k, x := range numbersOf(t, all.store, key, n) {
						masked[k] += x
						want[k] += plain[key][k]
					}
				}
				for k := range want {
					if masked[k] == want[k] {
						same++
					}
				}
			}
			if same > 0 { // by chance about once in 10¹⁷ runs
				t.Errorf("%d numbers of the honest owners' sum can be read", same)
			}
		})
	}
}

// A hub that shows an owner another last total is found by the sum that ends the run, by all owners and also by their next processes; where all
// retries are used up, too. Nothing more is masked or charged.
func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		crashes []string
		last    string // outcome of the last total
		end     int    // the attempt that ends the run
	}{
		"all batches":  {nil, transport.OutcomeKey(2, 2), 3},
		"used up":      {[]string{"charged 1"}, transport.OutcomeKey(0, 2), 2},
		"an end shown": {nil, transport.OutcomeKey(2, 2), 3},
	} {
		all := newCrowd(t, 3)
		for _, o := range all.owners {
			o.retries = 0
		}
		all.owners[2].crashes = c.crashes
		shows := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
		if name == "an end shown" { // while the others have the total
			shows = func([]byte) []byte { return binary.LittleEndian.AppendUint64([]byte{'G'}, 2) }
		}
		all.owners[1].store = &liar{all.store, map[string]func([]byte) []byte{c.last: shows}}
		for round := range 2 { // the second reads what is in journal and store
			for i, err := range all.run(t.Context(), 3) {
				want := "hospital-2 signed another one than hospital-" + fmt.Sprint(i+1)
				if i == 1 {
					want = "hospital-1, hospital-3 signed another one than hospital-2"
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, round %d, owner %d: %v", name, round, i+1, err)
				}
			}
		}
		for i, o := range all.owners {
			if j := all.journal(t, i); len(j.Attempts) != c.end+1 || !j.Attempts[c.end].Last() {
				t.Errorf("%s, owner %d: %d attempts", name, i+1, len(j.Attempts))
			}
			if n := bytes.Count(o.events, []byte("c")); n > c.end {
				t.Errorf("%s, owner %d: charged %d times", name, i+1, n)
			}
		}
	}
	// A pool that has ended takes no more, and another process of a run that has ended needs no store.
	all := newCrowd(t, 2)
	if err := errors.Join(all.run(t.Context(), 1)...); err != nil {
		t.Fatal(err)
	}
	all.owners[0].store = nil
	p, err := all.owners[0].pool()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.End(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := p.Meet(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("it meets after its end: %v", err)
	}
}

// Owners whose rosters differ never mask: each finds that another has not signed for its network, and is told which.
func TestOtherRosters(t *testing.T) {
	all := newCrowd(t, 3)
	for _, o := range all.owners {
		o.retries = 1
	}
	other := *all.owners[1].c
	other.Network.Owners = slices.Clone(other.Network.Owners)
	other.Network.Owners[2] = transport.Member{Name: "hospital-3", Key: other.Network.Owners[0].Key[2:] + "00"}
	all.owners[1].c = &other
	_, errs := all.atHub(t.Context(), 1, 5)
	// The hub has the others' roster, by which the second owner's presence is signed by nobody.
	for _, i := range []int{0, 2} {
		if err := errs[i]; !errors.Is(err, privacy.ErrExhausted) || !strings.Contains(err.Error(), "hospital-2") {
			t.Errorf("owner %d: %v", i+1, err)
		}
	}
	if err := errs[1]; !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("owner 2: %v", err)
	}
	// A hub that shows the second owner what the others signed.
	all = newCrowd(t, 3)
	all.owners[1].c = &other
	honest := newCrowd(t, 3)
	all.owners[1].store = &liar{honest.store, nil}
	if _, errs := honest.atHub(t.Context(), 1, 5); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	all.owners[1].store = seen{all.owners[1].store}
	if _, err := batches(t.Context(), all.owners[1], 1, 5); !errors.Is(err, transport.ErrForged) || !strings.Contains(err.Error(), "hospital-1") {
		t.Errorf("owner 2: %v", err)
	}
	if len(all.owners[1].parts) > 0 {
		t.Error("owner 2 masked a part")
	}
}

// seen takes every value as stored and says so.
type seen struct{ transport.Store }

func (seen) Put(_ context.Context, _ string, value []byte) ([]byte, error) { return value, nil }

// The digest that owners sign depends on each thing that they must agree on.
func TestDigest(t *testing.T) {
	const n = 5
	digests := map[[sha256.Size]byte]string{}
	for name, change := range map[string]func(p *Pool) (asked [sha256.Size]byte, n int){
		"none":       func(p *Pool) ([sha256.Size]byte, int) { return [sha256.Size]byte{}, n },
		"network":    func(p *Pool) ([sha256.Size]byte, int) { p.config[0]++; return [sha256.Size]byte{}, n },
		"presences":  func(p *Pool) ([sha256.Size]byte, int) { p.present[0]++; return [sha256.Size]byte{}, n },
		"attempt":    func(p *Pool) ([sha256.Size]byte, int) { p.attempt++; return [sha256.Size]byte{}, n },
		"sum":        func(p *Pool) ([sha256.Size]byte, int) { p.sum++; return [sha256.Size]byte{}, n },
		"query":      func(p *Pool) ([sha256.Size]byte, int) { return [sha256.Size]byte{1}, n },
		"length":     func(p *Pool) ([sha256.Size]byte, int) { return [sha256.Size]byte{}, n + 1 },
		"transcript": func(p *Pool) ([sha256.Size]byte, int) { p.transcript[0]++; return [sha256.Size]byte{}, n },
	} {
		p := &Pool{}
		asked, n := change(p)
		d := p.digest(asked, n)
		if other, ok := digests[d]; ok {
			t.Errorf("the digests with another %s and another %s are equal", name, other)
		}
		digests[d] = name
	}
}

// The transcript depends on each total, and on the place of each.
func TestTranscript(t *testing.T) {
	c := newCrowd(t, 2)
	for i, err := range c.run(t.Context(), 2) {
		if err != nil {
			t.Fatalf("owner %d: %v", i+1, err)
		}
	}
	o := c.owners[0]
	o.disk.Start(nil)
	p, err := o.pool()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	known := map[[sha256.Size]byte]bool{}
	for _, a := range p.journal.Attempts {
		for _, total := range a.Totals {
			if known[total.Transcript] {
				t.Error("two sums have one transcript")
			}
			known[total.Transcript] = true
		}
	}
	if len(known) != 2*len(lengths)+1 { // with that of the sum that ends the run
		t.Errorf("found %d transcripts", len(known))
	}
}
