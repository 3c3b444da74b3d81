package party

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/gossip/transport/transporttest"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/run/runlog"
)

type objective = method.Objective

// A simSpec is what the owners of a simulated network agreed on.
type simSpec struct {
	file   string
	plan   *netplan.Plan
	agreed agreement.File
	config transport.Config
	id     string
	all    []*transport.Credentials
}

// The networks. Where no seed is named the owners draw one.
var simBlocks = []string{
	"owners: 3, graph: complete, schedule: all, rounds: 2, seed: 1",
	"owners: 3, graph: path, schedule: all, rounds: 3, seed: 1",
	"owners: 4, graph: ring, schedule: all, rounds: 2, seed: 1",
	"owners: 4, graph: complete, schedule: matching, edges: 2, rounds: 4, seed: 5",
	"owners: 5, graph: complete, schedule: edges, edges: 3, rounds: 4, seed: 3",
	"owners: 3, graph: complete, schedule: all, rounds: 2",
}

// simSpecs makes the networks in a directory.
func simSpecs(t testing.TB) (all []*simSpec) {
	t.Helper()
	dir := t.TempDir()
	const schema = "dataset: simulated\nrows: 400\nauthor: nobody\nsource: nothing\nformat: {kind: csv, header: true}\ncolumns:\n" +
		"  - {name: x, source: none, type: numeric, min: 0, max: 1}\n  - {name: y, source: none, type: label, classes: [no, yes]}\n"
	if err := os.WriteFile(filepath.Join(dir, "schema.yaml"), []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	for k, block := range simBlocks {
		s := &simSpec{file: filepath.Join(dir, fmt.Sprint(k, ".yaml")), id: fmt.Sprintf("%016x", k+1)}
		text := "schema: schema.yaml\nmodel: {name: logistic, l2: 0.01}\nprivacy: {epsilon: 50, delta: 1e-5, adjacency: add-or-remove}\nnetwork: {" + block +
			", rows: 100, method: {name: dda, batch: 10, noise_multiplier: 2}}\n"
		err := os.WriteFile(s.file, []byte(text), 0o600)
		if err == nil {
			s.plan, err = netplan.Prepare(s.file, netplan.Options{Apart: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		agreed, err := s.plan.Agreement()
		if err == nil {
			s.agreed.Parts, err = agreed.Parts(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range s.plan.Owners {
			names = append(names, o.Name)
		}
		s.all = transporttest.Credentials(transport.Network{Format: "sotto-network/3", ID: s.id, Agreed: s.agreed.Parts.Hashes()}, byte(k), names...)
		n := s.all[0].Network
		if s.config, err = n.Config(); err == nil {
			s.agreed.Network, err = n.Agreement()
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// A world is one schedule.
type world struct {
	*transporttest.Schedule
	dir        string
	spec       *simSpec
	join, wait time.Duration
	owners     []*simOwner

	mu    sync.Mutex
	seeds []uint64 // of the owners' schedules
	who   []int
}

// draw chooses what a schedule has in store.
func (w *world) draw(specs []*simSpec) {
	r := w.Dice("world")
	if w.Bug != "" { // a network whose seed is agreed on
		specs = specs[:len(specs)-1]
	}
	w.spec = specs[r.IntN(len(specs))]
	w.Draw(r, w.spec.all)
	w.Config = w.spec.config
	w.About = []string{"rel", "dec", "rel dec", "own", "rel dec own"}[r.IntN(5)]
	w.join, w.wait = 30*time.Second+transporttest.UpTo(r, time.Minute), 500*time.Millisecond+transporttest.UpTo(r, 4*time.Second)
	for _, o := range w.Owners {
		w.owners = append(w.owners, &simOwner{Owner: o, w: w, out: map[int]string{}})
	}
	if w.Bug == "" {
		w.Deceive(r, transporttest.Trust(r.IntN(transporttest.Trusts)))
	}
}

func (w *world) must(err error) {
	if err != nil {
		panic(err)
	}
}

// activations reads a journal; none where there is no file.
func (w *world) activations(path string) (all []*runlog.Activation) {
	j, err := runlog.ReadJournal(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	w.must(err)
	defer j.Close()
	for {
		a, err := j.Next()
		if err == io.EOF {
			return all
		}
		w.must(err)
		all = append(all, a)
	}
}

// rounds are those in which an owner is active.
func (w *world) rounds(o *simOwner, s *session) (all []int) {
	o.job = s.Job
	for act := range s.plan.Schedule.Activations(o.Index) {
		all = append(all, act.T)
	}
	return all
}

// begins checks that all honest owners that access rows have the same schedule.
func (w *world) begins(o *simOwner, s *session) {
	w.Note("owner %d begins", o.Index)
	o.began = true
	w.mu.Lock()
	var other []int
	if o.Honest {
		for k, seed := range w.seeds {
			if seed != s.plan.Schedule.Seed {
				other = append(other, w.who[k])
			}
		}
		w.seeds, w.who = append(w.seeds, s.plan.Schedule.Seed), append(w.who, o.Index)
	}
	w.mu.Unlock()
	if len(other) > 0 {
		w.Fail(o.Index, "it accesses rows under another schedule than owners %d", other)
	}
}

// draws checks that no activation is drawn that is in the journal or has left the owner.
func (w *world) draws(l *life, batch int, rounds []int) {
	w.Note("owner %d draws batch %d", l.Index, batch)
	if batch >= len(rounds) {
		w.Fail(l.Index, "it draws batch %d of a plan of %d", batch, len(rounds))
		return
	}
	if n := len(l.journal()); n != batch {
		w.Fail(l.Index, "it draws batch %d; the journal holds %d", batch, n)
	}
	w.mu.Lock()
	_, left := l.o.out[rounds[batch]]
	w.mu.Unlock()
	if left && !l.o.back {
		w.Fail(l.Index, "it draws round %d again, of which a vector has left", rounds[batch])
	}
}

// Leaves checks what leaves an owner: a vector is in its journal, its charge in its ledger, and it is the only
// one of its round.
func (w *world) Leaves(l *transporttest.Life, key string, body []byte) {
	var from, to, round int
	if n, _ := fmt.Sscanf(key, "rel.%d.%d.%d", &from, &to, &round); n < 3 || !l.Honest {
		return
	}
	o := w.owners[l.Index]
	v := string(vectorOf(body, w.spec.plan.Job.Facts.Dim))
	at := slices.IndexFunc(o.life.journal(), func(a *runlog.Activation) bool { return a.Round == round })
	switch {
	case v == "" || from != l.Index:
		w.Fail(l.Index, "what leaves under %s is no vector of its own", key)
	case at < 0:
		w.Fail(l.Index, "the vector of round %d leaves before it is in the journal", round)
	case bytesOf(o.life.journal()[at].Sent) != v || len(o.life.journal()[at].Batches) != 1:
		w.Fail(l.Index, "another vector of round %d leaves than the journal charged", round)
	case o.books.reached <= at:
		w.Fail(l.Index, "activation %d leaves; the ledger knows of %d", at+1, o.books.reached)
	}
	w.mu.Lock()
	before, again := o.out[round]
	o.out[round] = v
	w.mu.Unlock()
	if again && before != v && !o.back {
		w.Fail(l.Index, "two different vectors of round %d leave", round)
	}
}

// Final implements transporttest.World.
func (w *world) Final(err error) bool {
	return strings.Contains(err.Error(), "another seed") || slices.ContainsFunc(
		[]error{transport.ErrBehind, transport.ErrElsewhere, transport.ErrForged, transport.ErrApart, errStale},
		func(final error) bool { return errors.Is(err, final) })
}

// Check checks what the owners hold when all have ended.
func (w *world) Check() {
	held := make([]map[int]*runlog.Activation, len(w.owners))
	for i, o := range w.owners {
		if !o.Honest {
			continue
		}
		// A lying owner may keep a training from beginning, before rows are accessed, but not from ending.
		if !o.Ended && w.Lies == 0 && w.Restores == 0 && (o.began || w.Liar() < 0) {
			w.Fail(i, "it has not finished: %v", o.Err)
		}
		held[i] = map[int]*runlog.Activation{}
		if o.Lives == 0 {
			continue
		}
		for _, a := range w.activations(filepath.Join(o.life.dir, runlog.JournalFile)) {
			held[i][a.Round] = a
		}
		if o.back && !o.Ended { // the ledger may be older than the directory, and refuses it
			continue
		}
		if n := len(held[i]); n > 0 && (o.books.reached < n || n > o.books.plan) {
			w.Fail(i, "the journal holds %d activations; the ledger knows of %d of %d", n, o.books.reached, o.books.plan)
		}
		if n := len(held[i]); o.Ended && n != o.books.plan {
			w.Fail(i, "it has finished after %d of %d activations", n, o.books.plan)
		}
	}
	w.oneVector()
	w.outcomes(held)
}

// oneVector checks that of each round of an honest owner the hub holds one vector, to all receivers, also
// where directory and ledger were put back from copies.
func (w *world) oneVector() {
	if w.Lies > 0 {
		return
	}
	seen := map[string]string{}
	for key, b := range w.Hub.Values() {
		var from, to, round int
		if n, _ := fmt.Sscanf(key, "rel.%d.%d.%d", &from, &to, &round); n == 3 && w.owners[from].Honest {
			name, v := fmt.Sprint(from, " ", round), string(vectorOf(b, w.spec.plan.Job.Facts.Dim))
			if old, ok := seen[name]; ok && old != v {
				w.Fail(from, "the hub holds two vectors of round %d", round)
			}
			seen[name] = v
		}
	}
}

// outcomes checks that both owners of an edge made the exchange or neither did, and that what one added is what
// the other had sent.
func (w *world) outcomes(held []map[int]*runlog.Activation) {
	for i, o := range w.owners {
		if !o.Honest || o.job == nil {
			continue
		}
		s := w.scheduleOf(o)
		for act := range s.Activations(i) {
			a := held[i][act.T]
			if a == nil || !a.Done {
				continue
			}
			want, known := slices.Clone(a.Sent), true
			for k, peer := range act.Peers {
				b := held[peer][act.T]
				committed := a.Committed[k]
				if committed {
					w.Count("committed", 1)
				} else {
					w.Count("aborted", 1)
				}
				if w.owners[peer].Honest && b != nil && b.Done && !o.back && !w.owners[peer].back {
					for theirs := range s.Activations(peer) {
						switch {
						case theirs.T != act.T || b.Committed[slices.Index(theirs.Peers, i)] == committed:
						case w.Lies > 0: // it costs accuracy
							w.Count("apart", 1)
						default:
							w.Fail(i, "round %d: it says %v of the exchange with owner %d, which says the contrary", act.T, committed, peer)
						}
					}
				}
				if !committed {
					continue
				}
				if !w.owners[peer].Honest || b == nil || w.owners[peer].back {
					known = false
					continue
				}
				for j, x := range b.Sent {
					want[j] += act.Weight[k] * (x - a.Sent[j])
				}
			}
			if known && bytesOf(want) != bytesOf(a.State) {
				w.Fail(i, "round %d: its vector is not what it and its peers had sent", act.T)
			}
		}
	}
}

// scheduleOf returns the schedule by which an owner trains.
func (w *world) scheduleOf(o *simOwner) *gossip.Schedule {
	s := *w.spec.plan.Schedule
	for k, who := range w.who {
		if who == o.Index {
			s.Seed = w.seeds[k]
		}
	}
	return &s
}

// simulator returns what runs one schedule.
func simulator(t *testing.T) func(seed uint64, bug string) *transporttest.Schedule {
	specs, dir := simSpecs(t), simDir(t)
	return func(seed uint64, bug string) *transporttest.Schedule {
		w := &world{dir: filepath.Join(dir, fmt.Sprint(seed))}
		s := transporttest.Simulate(t, seed, bug, func(s *transporttest.Schedule) (transporttest.World, func(context.Context)) {
			w.Schedule = s
			w.draw(specs)
			return w, nil
		})
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// simDir is a directory for journals, in memory where there is such a place: they are synced for each activation.
func simDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sotto-simulated-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Owners whose messages are delayed, lost, repeated, reordered and cut off, who crash anywhere and come back, also
// with an older copy, at a hub that may lie, with owners that may lie: none draws or charges an activation twice, nothing
// leaves one before it is charged, owners agree on each exchange if the hub does not lie, and when faults end, those
// who are there finish.
func TestSimulatedNetwork(t *testing.T) {
	n := 200
	if race.Enabled {
		n = 40
	}
	simulate := simulator(t)
	transporttest.Schedules(t, n, func(seed uint64) *transporttest.Schedule { return simulate(seed, "") },
		map[string]float64{"died": 1, "ended": 1, "committed": 1, "aborted": .1, "stopped": .1})
}

// A schedule is the same each time, event by event.
func TestSimulatedNetworkRepeats(t *testing.T) {
	seeds := []uint64{27, 34, 56, 75, 195, 358, 2, 3, 5, 7}
	if race.Enabled {
		seeds = seeds[:3]
	}
	simulate := simulator(t)
	transporttest.Repeats(t, seeds, func(seed uint64) *transporttest.Schedule { return simulate(seed, "") })
}

// Bugs of an owner's protocol are found. They are planted around it.
func TestSimulatedNetworkFindsBugs(t *testing.T) {
	transporttest.Finds(t, map[string]int{lateCharge: 20, byNumber: 200, blindCommit: 200}, simulator(t))
}
