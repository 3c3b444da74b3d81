package party

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/run/runlog"
)

// A schedule of the simulated network is everything that happens in it, from one seed.
var (
	schedules = flag.Int("schedules", 0, "simulate so many schedules of a network, in place of a few hundred")
	firstSeed = flag.Uint64("seed", 1, "of the first simulated schedule")
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
		n := transport.Network{Format: "sotto-network/3", ID: s.id, Agreed: s.agreed.Parts.Hashes()}
		var seeds []string
		for i, o := range s.plan.Owners {
			seed := make([]byte, ed25519.SeedSize)
			seed[0], seed[1] = byte(k), byte(i)
			seeds = append(seeds, hex.EncodeToString(seed))
			n.Owners = append(n.Owners, transport.Member{Name: o.Name, Key: hex.EncodeToString(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))})
		}
		if s.config, err = n.Config(); err == nil {
			s.agreed.Network, err = n.Agreement()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range n.Owners {
			s.all = append(s.all, &transport.Credentials{Network: n, Owner: i, Seed: seeds[i]})
		}
		all = append(all, s)
	}
	return all
}

// A world is one schedule.
type world struct {
	seed uint64
	bug  string
	dir  string
	spec *simSpec

	// What happens until quiet, each with its probability: messages are lost, sent twice, or take seconds; a process
	// crashes at a point, or at any time; a directory is put back from an older copy; the hub lies.
	quiet                                             time.Duration
	loss, twice, slow, crashes, kills, restores, lies float64
	about                                             string // kinds of keys that hub and owners lie about
	cuts                                              []cut
	join, wait                                        time.Duration

	id          string
	credentials []*transport.Credentials
	began       time.Time
	ctx         context.Context
	over        chan struct{}
	hub         *simHub
	owners      []*simOwner

	committed, aborted int // exchanges, of each owner
	apart              int // of which a lying hub has told its owners different ends

	mu     sync.Mutex
	seeds  []uint64 // of the owners' schedules
	who    []int
	found  []string // violations
	events int
	trace  []string
	traced bool
}

// A cut separates some owners from the hub for a time.
type cut struct {
	owners   uint
	from, to time.Duration
}

// faulty says whether faults may still happen.
func (w *world) faulty() bool { return time.Since(w.began) < w.quiet }

// liesAbout says whether the hub lies about keys of a kind now.
func (w *world) liesAbout(kind string) bool {
	return w.lies > 0 && strings.Contains(w.about, kind) && w.faulty()
}

// draw chooses what a schedule has in store.
func (w *world) draw(specs []*simSpec) {
	r := w.dice("world")
	w.spec = specs[r.IntN(len(specs))]
	if w.bug != "" { // a network whose seed is agreed on
		w.spec = specs[r.IntN(len(specs)-1)]
	}
	w.id, w.credentials = w.spec.id, w.spec.all
	pick := func(most float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return most * r.Float64()
	}
	w.quiet = 5*time.Second + upTo(r, 60*time.Second)
	w.loss, w.twice, w.slow = pick(.4), pick(.5), pick(.3)
	w.crashes, w.kills = pick(.05), pick(.8)
	w.about = []string{"rel", "dec", "rel dec", "own", "rel dec own"}[r.IntN(5)]
	w.join, w.wait = 30*time.Second+upTo(r, time.Minute), 500*time.Millisecond+upTo(r, 4*time.Second)
	n := len(w.credentials)
	for range r.IntN(4) {
		from := upTo(r, w.quiet)
		w.cuts = append(w.cuts, cut{uint(r.IntN(1<<n-1) + 1), from, from + upTo(r, 15*time.Second)})
	}
	for i := range n {
		w.owners = append(w.owners, &simOwner{w: w, index: i, honest: true, out: map[int]string{}})
	}
	if w.bug != "" {
		return
	}
	switch r.IntN(8) {
	case 0, 1, 2: // nobody lies
	case 3:
		w.restores = r.Float64()
	case 4: // the hub
		w.lies = .5 * r.Float64()
	case 5: // an owner
		w.owners[r.IntN(n)].honest = false
	case 6: // both
		w.lies = .3 * r.Float64()
		w.owners[r.IntN(n)].honest = false
	case 7: // all others together
		w.lies = .3 * r.Float64()
		alone := r.IntN(n)
		for i, o := range w.owners {
			o.honest = i == alone
		}
	}
}

// note counts an event, and keeps it for a trace.
func (w *world) note(owner int, what, about string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	if w.traced {
		w.trace = append(w.trace, fmt.Sprintf("%12v owner %d %s %s %d", time.Since(w.began), owner, what, about, n))
	}
}

// fail records a violation.
func (w *world) fail(owner int, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if owner >= 0 && !w.owners[owner].honest {
		return
	}
	w.found = append(w.found, fmt.Sprintf("%v: owner %d: ", time.Since(w.began), owner)+fmt.Sprintf(format, args...))
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
	for act := range s.plan.Schedule.Activations(o.index) {
		all = append(all, act.T)
	}
	return all
}

// begins checks that all honest owners that access rows have the same schedule.
func (w *world) begins(o *simOwner, s *session) {
	w.note(o.index, "begins", "", 0)
	o.began = true
	w.mu.Lock()
	var other []int
	if o.honest {
		for k, seed := range w.seeds {
			if seed != s.plan.Schedule.Seed {
				other = append(other, w.who[k])
			}
		}
		w.seeds, w.who = append(w.seeds, s.plan.Schedule.Seed), append(w.who, o.index)
	}
	w.mu.Unlock()
	if len(other) > 0 {
		w.fail(o.index, "it accesses rows under another schedule than owners %d", other)
	}
}

// draws checks that no activation is drawn that is in the journal or has left the owner.
func (w *world) draws(l *life, batch int, rounds []int) {
	w.note(l.owner, "draws", "", batch)
	if batch >= len(rounds) {
		w.fail(l.owner, "it draws batch %d of a plan of %d", batch, len(rounds))
		return
	}
	if n := len(l.journal()); n != batch {
		w.fail(l.owner, "it draws batch %d; the journal holds %d", batch, n)
	}
	w.mu.Lock()
	_, left := l.of().out[rounds[batch]]
	w.mu.Unlock()
	if left && !l.of().back {
		w.fail(l.owner, "it draws round %d again, of which a vector has left", rounds[batch])
	}
}

// leaves checks what leaves an owner: a vector is in its journal, its charge in its ledger, and it is the only
// one of its round.
func (w *world) leaves(l *life, subject string, body []byte) {
	o := l.of()
	_, key, ok := strings.Cut(subject, ".rel.in.")
	if !ok || strings.HasPrefix(subject, "$JS") || !o.honest {
		return
	}
	var from, to, round int
	fmt.Sscanf(key, "%d.%d.%d", &from, &to, &round)
	v := string(vectorOf(body, w.spec.plan.Job.Facts.Dim))
	w.note(l.owner, "publishes", key, len(body))
	at := slices.IndexFunc(l.journal(), func(a *runlog.Activation) bool { return a.Round == round })
	switch {
	case v == "" || from != l.owner:
		w.fail(l.owner, "what leaves under %s is no vector of its own", key)
	case at < 0:
		w.fail(l.owner, "the vector of round %d leaves before it is in the journal", round)
	case bytesOf(l.journal()[at].Sent) != v || len(l.journal()[at].Batches) != 1:
		w.fail(l.owner, "another vector of round %d leaves than the journal charged", round)
	case o.books.reached <= at:
		w.fail(l.owner, "activation %d leaves; the ledger knows of %d", at+1, o.books.reached)
	}
	w.mu.Lock()
	before, again := o.out[round]
	o.out[round] = v
	w.mu.Unlock()
	if again && before != v && !o.back {
		w.fail(l.owner, "two different vectors of round %d leave", round)
	}
}

// run simulates the schedule.
func (w *world) run(t *testing.T, specs []*simSpec) {
	w.draw(specs)
	cryptotest.SetGlobalRandom(t, w.seed)
	w.began, w.over = time.Now(), make(chan struct{})
	var stop context.CancelFunc
	w.ctx, stop = context.WithCancel(context.Background())
	w.hub = newSimHub(w)
	var all sync.WaitGroup
	for _, o := range w.owners {
		all.Go(o.work)
	}
	all.Wait()
	w.check()
	stop()
	close(w.over)
	synctest.Wait()
}

// simPatience is how long after the last fault an owner has to finish.
const simPatience = 20 * time.Minute

// work runs the owner's processes, as a person would who starts it again after each crash.
func (o *simOwner) work() {
	w := o.w
	time.Sleep(upTo(w.dice("start", o.index), 5*time.Second))
	for time.Since(w.began) < w.quiet+simPatience {
		died, err := o.live()
		switch {
		case died:
		case err == nil:
			o.ended = true
			w.note(o.index, "ends", "", 0)
			return
		case errors.Is(err, transport.ErrBehind), errors.Is(err, transport.ErrElsewhere), errors.Is(err, transport.ErrForged), errors.Is(err, transport.ErrApart), errors.Is(err, errStale),
			strings.Contains(err.Error(), "another seed"):
			o.err, o.stopped = err, true
			w.note(o.index, "stops", "", 0)
			return
		default:
			o.err = err
			w.note(o.index, "fails", "", o.lives)
			if !w.faulty() && slices.ContainsFunc(w.owners, func(o *simOwner) bool { return o.stopped }) {
				return // what it waits for never comes
			}
		}
		time.Sleep(100*time.Millisecond + upTo(w.dice("restart", o.index, o.lives), 8*time.Second))
	}
}

// check checks what the owners hold when all have ended.
func (w *world) check() {
	liars := 0
	held := make([]map[int]*runlog.Activation, len(w.owners))
	for i, o := range w.owners {
		if !o.honest {
			liars++
			continue
		}
		// A lying owner may keep a training from beginning, before rows are accessed, but not from ending.
		if !o.ended && w.lies == 0 && w.restores == 0 && (o.began || !w.liar()) {
			w.fail(i, "it has not finished: %v", o.err)
		}
		held[i] = map[int]*runlog.Activation{}
		if o.lives == 0 {
			continue
		}
		for _, a := range w.activations(filepath.Join(o.dir, runlog.JournalFile)) {
			held[i][a.Round] = a
		}
		if o.back && !o.ended { // the ledger may be older than the directory, and refuses it
			continue
		}
		if n := len(held[i]); n > 0 && (o.books.reached < n || n > o.books.plan) {
			w.fail(i, "the journal holds %d activations; the ledger knows of %d of %d", n, o.books.reached, o.books.plan)
		}
		if n := len(held[i]); o.ended && n != o.books.plan {
			w.fail(i, "it has finished after %d of %d activations", n, o.books.plan)
		}
	}
	w.oneVector()
	w.outcomes(held)
}

func (w *world) liar() bool {
	return slices.ContainsFunc(w.owners, func(o *simOwner) bool { return !o.honest })
}

// oneVector checks that of each round of an honest owner the hub holds one vector, to all receivers, also
// where directory and ledger were put back from copies.
func (w *world) oneVector() {
	if w.lies > 0 {
		return
	}
	seen := map[string]string{}
	for key, b := range w.hub.values {
		var from, to, round int
		if n, _ := fmt.Sscanf(key, "rel.%d.%d.%d", &from, &to, &round); n == 3 && w.owners[from].honest {
			name, v := fmt.Sprint(from, " ", round), string(vectorOf(b, w.spec.plan.Job.Facts.Dim))
			if old, ok := seen[name]; ok && old != v {
				w.fail(from, "the hub holds two vectors of round %d", round)
			}
			seen[name] = v
		}
	}
}

// outcomes checks that both owners of an edge made the exchange or neither did, and that what one added is what
// the other had sent.
func (w *world) outcomes(held []map[int]*runlog.Activation) {
	for i, o := range w.owners {
		if !o.honest || o.job == nil {
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
					w.committed++
				} else {
					w.aborted++
				}
				if w.owners[peer].honest && b != nil && b.Done && !o.back && !w.owners[peer].back {
					for theirs := range s.Activations(peer) {
						switch {
						case theirs.T != act.T || b.Committed[slices.Index(theirs.Peers, i)] == committed:
						case w.lies > 0: // it costs accuracy
							w.apart++
						default:
							w.fail(i, "round %d: it says %v of the exchange with owner %d, which says the contrary", act.T, committed, peer)
						}
					}
				}
				if !committed {
					continue
				}
				if !w.owners[peer].honest || b == nil || w.owners[peer].back {
					known = false
					continue
				}
				for j, x := range b.Sent {
					want[j] += act.Weight[k] * (x - a.Sent[j])
				}
			}
			if known && bytesOf(want) != bytesOf(a.State) {
				w.fail(i, "round %d: its vector is not what it and its peers had sent", act.T)
			}
		}
	}
}

// scheduleOf returns the schedule by which an owner trains.
func (w *world) scheduleOf(o *simOwner) *gossip.Schedule {
	s := *w.spec.plan.Schedule
	for k, who := range w.who {
		if who == o.index {
			s.Seed = w.seeds[k]
		}
	}
	return &s
}

// simulate runs one schedule, and returns it.
func simulate(t *testing.T, specs []*simSpec, dir string, seed uint64, bug string, traced bool) *world {
	w := &world{seed: seed, bug: bug, traced: traced, dir: filepath.Join(dir, fmt.Sprint(seed))}
	synctest.Test(t, func(t *testing.T) { w.run(t, specs) })
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	return w
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

// counted sums up what happened in schedules, so that a test can see that they were not idle.
type counted struct {
	events, processes, crashes, restored, stopped, ended, committed, aborted, apart int
}

func (c *counted) add(w *world) {
	c.events += w.events
	for _, o := range w.owners {
		c.processes += o.lives
		c.crashes += o.crashes
		for _, it := range []struct {
			is  bool
			all *int
		}{{o.back, &c.restored}, {o.stopped, &c.stopped}, {o.ended, &c.ended}} {
			if it.is {
				*it.all++
			}
		}
	}
	c.committed += w.committed
	c.aborted += w.aborted
	c.apart += w.apart
}

// repeat is the command that repeats a schedule.
func repeat(seed uint64) string {
	return fmt.Sprintf("go test ./gossip/party -run '^TestSimulatedNetwork$' -schedules 1 -seed %d -v", seed)
}

// Owners whose messages are delayed, lost, repeated, reordered and cut off, who crash anywhere and come back, also
// with an older copy, at a hub that may lie, with owners that may lie: none draws or charges an activation twice, nothing
// leaves one before it is charged, owners agree on each exchange if the hub does not lie, and when faults end, those
// who are there finish.
func TestSimulatedNetwork(t *testing.T) {
	n := cmp.Or(*schedules, 200)
	if race.Enabled {
		n = cmp.Or(*schedules, 40)
	}
	specs, dir := simSpecs(t), simDir(t)
	start, all := time.Now(), counted{}
	say := func(n int) {
		t.Logf("%d schedules, %.0f in a second: %+v", n, float64(n)/time.Since(start).Seconds(), all)
	}
	for k := range n {
		if k > 0 && k%1000 == 0 {
			say(k)
		}
		w := simulate(t, specs, dir, *firstSeed+uint64(k), "", *schedules == 1)
		all.add(w)
		if *schedules == 1 {
			t.Log(strings.Join(w.trace, "\n"))
		}
		if len(w.found) > 0 {
			t.Fatalf("seed %d:\n%s\nrepeat: %s", w.seed, strings.Join(w.found, "\n"), repeat(w.seed))
		}
	}
	say(n)
	if n >= 40 && (all.crashes < n || all.ended < n || all.committed < n || all.aborted < n/10 || all.stopped < n/10) {
		t.Errorf("%d schedules in which too little happens: %+v", n, all)
	}
}

// A schedule is the same each time, event by event.
func TestSimulatedNetworkRepeats(t *testing.T) {
	specs, dir := simSpecs(t), simDir(t)
	seeds := []uint64{27, 34, 56, 75, 195, 358, 2, 3, 5, 7}
	if race.Enabled {
		seeds = seeds[:3]
	}
	for _, seed := range seeds {
		first, again := simulate(t, specs, dir, seed, "", true), simulate(t, specs, dir, seed, "", true)
		slices.Sort(first.trace) // of one instant, any order
		slices.Sort(again.trace)
		if !slices.Equal(first.trace, again.trace) {
			t.Errorf("seed %d: %d events, then %d", seed, len(first.trace), len(again.trace))
		}
	}
}

// Bugs of an owner's protocol are found. They are planted around it.
func TestSimulatedNetworkFindsBugs(t *testing.T) {
	specs, dir := simSpecs(t), simDir(t)
	for bug, within := range map[string]int{lateCharge: 20, byNumber: 200, blindCommit: 200} {
		n, found := 0, ""
		for ; n < within && found == ""; n++ {
			if w := simulate(t, specs, dir, *firstSeed+uint64(n), bug, false); len(w.found) > 0 {
				found = w.found[0]
			}
		}
		if found == "" {
			t.Errorf("%s: not found in %d schedules", bug, n)
		}
		t.Logf("%s: found in schedule %d: %s", bug, n, found)
	}
}
