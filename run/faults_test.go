package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/simdisk"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

var (
	schedules = flag.Int("schedules", 100, "so many random schedules of disk faults; planted bugs are then searched for from the first one on")
	first     = flag.Int("first", 0, "the first random schedule of disk faults")
	every     = flag.Bool("every", false, "every fault of the disk at every call, in place of one at most of them, and an error with a power cut soon after")
	only      = flag.String("schedule", "", "run this one schedule of disk faults, as a failure prints it")
	share     = flag.String("share", "", "set by the test for its processes: i/n takes every n-th schedule, from the i-th on")
)

// A schedule is one life of a run directory on a simulated disk: the faults of each process that works on it. More
// processes follow, without faults, until the run is over.
type schedule struct {
	seed   uint64
	states int // StateEvery of the run; -1: an owner of a network, with a journal
	plans  []map[int]simdisk.Fault
}

// String is what -schedule reads.
func (s schedule) String() string {
	text := fmt.Sprintf("%d:%d", s.seed, s.states)
	for _, plan := range s.plans {
		text += ":"
		for i, n := range slices.Sorted(maps.Keys(plan)) {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprintf("%d=%d", n, plan[n])
		}
	}
	return text
}

func parseSchedule(text string) (s schedule, err error) {
	for i, field := range strings.Split(text, ":") {
		switch i {
		case 0:
			_, err = fmt.Sscan(field, &s.seed)
		case 1:
			_, err = fmt.Sscan(field, &s.states)
		default:
			plan := map[int]simdisk.Fault{}
			for _, at := range strings.FieldsFunc(field, func(r rune) bool { return r == ',' }) {
				var n int
				var f simdisk.Fault
				if _, err = fmt.Sscanf(at, "%d=%d", &n, &f); err == nil {
					plan[n] = f
				}
			}
			s.plans = append(s.plans, plan)
		}
	}
	return s, err
}

// has reports whether a fault is in a schedule.
func (s schedule) has(f simdisk.Fault) bool {
	return slices.ContainsFunc(s.plans, func(p map[int]simdisk.Fault) bool { return slices.Contains(slices.Collect(maps.Values(p)), f) })
}

// A world is a disk with a run directory and a ledger, and what was visible of the run.
type world struct {
	t     *testing.T
	s     schedule
	sim   simulation
	disk  *simdisk.Disk
	wrap  func(vfs.FS) vfs.FS // plants a bug in the order of calls; nil: none
	told  int                 // the last step that was told
	seen  map[string][]byte   // files of releases as they were when a step was told
	hub   map[int][]byte      // what an owner published, by activation
	twice error               // what an owner published twice
	calls []int               // of each process
	trace []string            // what each process said at its end
	ways  []string            // how it was settled
}

const (
	simDir    = "/disk/runs/run"
	simLedger = "/disk/ledger.db"
)

func newWorld(t *testing.T, sim simulation, s schedule) *world {
	w := &world{t: t, s: s, sim: sim, disk: simdisk.New(s.seed), seen: map[string][]byte{}, hub: map[int][]byte{}}
	w.disk.MkdirAll("/disk", 0o700)
	w.disk.SyncDir("/")
	pace := []time.Duration{200, 60, 0}[s.seed%3] * time.Millisecond
	w.disk.Synced = func() { time.Sleep(pace) } // so that groups end: after each batch, after some, or only at states
	return w
}

// on is where the world's run is; d is its disk or a copy.
func (w *world) on(d *simdisk.Disk) *disk {
	w.sim.mount.Disk = d
	files := vfs.FS(d)
	if w.wrap != nil {
		files = w.wrap(d)
	}
	return &disk{runlog.Disk{FS: files}, ledger.Disk{FS: d, SQLite: w.sim.mount.Name, Every: int64(w.s.seed / 3 % 3)}} // entries between checkpoints; 0: the usual number
}

func (w *world) env() Env {
	d := w.disk
	on := w.on(d)
	return Env{disk: on, Workers: 1,
		Progress: func(p Progress) {
			if d.Dead() != nil {
				return
			}
			w.told = max(w.told, p.Step)
			for _, name := range d.Names(simDir) {
				if strings.HasPrefix(name, "releases") {
					w.seen[name] = d.Peek(filepath.Join(simDir, name))
				}
			}
		},
		Report: func(dir string, _ *ledger.History) error {
			return newfile.ReplaceOn(on.FS, filepath.Join(dir, runlog.ReportFile), 0o600, []byte("report\n"))
		},
	}
}

// job is a copy of the prepared job, for one process.
func (w *world) job() *Job {
	job := *w.sim.jobs[w.s.states]
	job.StateEvery = max(0, w.s.states)
	return &job
}

// process does what a user does next: begin, or go on with what is there.
func (w *world) process(plan map[int]simdisk.Fault) error {
	ctx := context.Background()
	w.disk.Start(plan)
	env := w.env()
	err := func() error {
		if w.s.states < 0 {
			return w.owner(ctx, env)
		}
		if w.disk.Peek(filepath.Join(simDir, runlog.InfoFile)) != nil {
			_, err := Resume(ctx, simDir, env)
			return err
		}
		for _, name := range w.disk.Names(simDir) { // killed before there was a run
			w.disk.Remove(filepath.Join(simDir, name))
		}
		_, _, err := Fit(ctx, w.job(), env)
		return err
	}()
	w.calls = append(w.calls, w.disk.Calls())
	w.trace = append(w.trace, fmt.Sprintf("%v (%v)", err, w.disk.Dead()))
	return err
}

// inspect checks what a crash left, on a copy.
func (w *world) inspect() error {
	d := w.disk.Clone()
	on := w.on(d)
	ctx := context.Background()
	info, err := on.ReadInfo(simDir)
	if err != nil {
		return nil // nothing yet; the end checks that nothing is reserved
	}
	rec, err := on.Record(info, simDir)
	if err != nil {
		return nil // recovery says whether there is a way on
	}
	l, err := on.ledgers.Find(ctx, simLedger)
	if err != nil {
		return nil
	}
	defer l.Close()
	known, err := l.Run(ctx, info.ID)
	if err != nil || known.State != ledger.StateOpen {
		return nil
	}
	recorded, err := l.Recorded(ctx, info.ID)
	if err != nil {
		return err
	}
	if w.s.states < 0 { // the ledger is told ahead of the journal, and the hub after it
		if len(w.hub) > recorded || len(w.hub) > rec.Released {
			return fmt.Errorf("%d activations are published, %d in the journal, %d batches in the ledger's progress", len(w.hub), rec.Released, recorded)
		}
		return nil
	}
	if rec.Released > recorded || recorded > rec.Charged() {
		return fmt.Errorf("%d releases, %d batches in the ledger's progress, %d charges", rec.Released, recorded, rec.Charged())
	}
	return nil
}

// run lives the schedule to its end. The error names the invariant that does not hold.
func (w *world) run() error {
	for _, plan := range w.s.plans {
		w.process(plan)
		if err := cmp.Or(w.twice, w.inspect()); err != nil {
			return err
		}
	}
	return w.recover()
}

// recover ends the run without faults, as a user would, and checks what is there then.
func (w *world) recover() error {
	err := w.process(nil)
	if w.twice != nil {
		return w.twice
	}
	if err != nil {
		w.ways = append(w.ways, err.Error())
		w.disk.Start(nil)
		if _, _, worse := abandon(context.Background(), simDir, w.env()); worse != nil {
			return fmt.Errorf("no way on: resume says %q, settle says %q", err, worse)
		}
	}
	if err := w.check(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if w.disk.Durable() {
		return nil
	}
	w.disk.Cut(false)
	w.disk.Start(nil)
	if err := w.check(); err != nil {
		return fmt.Errorf("at the end, after a power cut: %w", err)
	}
	return nil
}

func (w *world) check() error {
	ctx := context.Background()
	on := w.on(w.disk)
	l, err := on.ledgers.Find(ctx, simLedger)
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := l.Verify(ctx); err != nil {
		return err
	}
	info, err := on.ReadInfo(simDir)
	if err != nil {
		return err
	}
	runs, err := l.Runs(ctx, "small")
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.State != ledger.StateSettled {
			return fmt.Errorf("run %s holds budget, and the directory is of %s", r.ID, info.ID)
		}
	}
	entries, err := l.Entries(ctx, "")
	if err != nil {
		return err
	}
	count := map[string]int{}
	for _, e := range entries {
		if e.Run == info.ID {
			count[string(e.Kind)]++
		}
	}
	if count["reserve"] != 1 || count["settle"] != 1 {
		return fmt.Errorf("run %s has %d reservations and %d settlements", info.ID, count["reserve"], count["settle"])
	}
	rec, err := on.Record(info, simDir)
	if err != nil {
		return err
	}
	w.told = max(w.told, len(w.hub))
	if w.told > rec.Released || rec.Released > rec.Charged() {
		return fmt.Errorf("step %d was visible, %d batches are released, %d charged", w.told, rec.Released, rec.Charged())
	}
	for name, before := range w.seen {
		if now := w.disk.Peek(filepath.Join(simDir, name)); now != nil && !bytes.HasPrefix(now, before) {
			return fmt.Errorf("%s holds other releases than were visible", name)
		}
	}
	known, err := l.Run(ctx, info.ID)
	if err != nil {
		return err
	}
	seal, err := on.Seal(simDir)
	if err != nil {
		return err
	}
	if !maps.Equal(seal, known.Settlement.Seal) {
		return fmt.Errorf("the sealed files are not those that the settlement names: %v, %v", seal, known.Settlement.Seal)
	}
	return nil
}

// tally counts outcomes.
type tally struct {
	Calls                     [len(kinds)]int // of a run of each kind without faults
	Single, Random, Unnoticed int
	Pairs                     int            // schedules of an error and a power cut
	Ways                      map[string]int // how runs were settled that did not resume
}

func (c *tally) add(other tally) {
	c.Calls = other.Calls
	c.Single += other.Single
	c.Pairs += other.Pairs
	c.Random += other.Random
	c.Unnoticed += other.Unnoticed
	for way, n := range other.Ways {
		c.Ways[way] += n
	}
}

// play runs one schedule with all randomness and time fixed. plant, if set, plants a bug.
func play(t *testing.T, sim simulation, s schedule, plant func(*world)) (w *world, err error) {
	cryptotest.SetGlobalRandom(t, s.seed)
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, sim, s)
		if plant != nil {
			plant(w)
		}
		err = w.run()
	})
	return w, err
}

// A simulation plays schedules on one mount. The jobs are prepared once: Prepare reads no simulated disk.
type simulation struct {
	mount *simdisk.Mount
	jobs  map[int]*Job // by kind of run
}

// newSimulation writes a table of 6 synthetic rows, and prepares runs over it on the simulated disk.
func newSimulation(t *testing.T) simulation {
	t.Helper()
	// A release spans sectors. Schema and accountant are such that a process spends its time on files.
	const wide = 100
	dir := t.TempDir()
	var rows strings.Builder
	for i := range 6 {
		fmt.Fprint(&rows, i%2)
		for j := range wide {
			fmt.Fprintf(&rows, " %d:%d", j+1, (i+j)%2)
		}
		rows.WriteString("\n")
	}
	for name, text := range map[string]string{
		"rows.txt": rows.String(),
		"schema.yaml": fmt.Sprintf("dataset: small\nrows: 6\nformat: {kind: libsvm}\nfeatures: %d\n"+
			"columns:\n  - {name: y, source: synthetic, type: label, classes: [\"0\", \"1\"]}\n", wide),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Witnesses of ledgers are on the simulated disk, where this is a directory. Sketches of tables are not, and there are none.
	t.Setenv("XDG_STATE_HOME", "/dev/null/state")
	sim := simulation{simdisk.NewMount(), map[int]*Job{}}
	for _, kind := range kinds {
		method := "{name: gd, steps: 4, rate: 0.5}"
		if kind > 0 { // gd saves no states
			method = "{name: sgd, steps: 5, batch: 0, rate: 0.5}"
		}
		path := filepath.Join(dir, fmt.Sprintf("spec%d.yaml", kind))
		text := fmt.Sprintf("data: %[1]s/rows.txt\nschema: %[1]s/schema.yaml\nmodel: {name: logistic}\nledger: %[2]s\nout: %[3]s\n"+
			"privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove, accountant: gdp}\nmethod: %[4]s\n", dir, simLedger, simDir, method)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, err := LoadSpec(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if sim.jobs[kind], err = Prepare(spec); err != nil {
			t.Fatal(err)
		}
	}
	return sim
}

// judge reports a schedule that broke an invariant. A lying disk and a damaged read may do so.
func (c *tally) judge(t *testing.T, w *world, s schedule, err error) {
	for _, way := range w.ways {
		c.Ways[way+" ("+s.String()+")"]++
	}
	switch {
	case err == nil:
	case s.has(simdisk.Lie) && w.disk.Lies() > 0 || s.has(simdisk.Corrupt):
		c.Unnoticed++
	default:
		t.Errorf("%v\n  %s\n  repeat with: go test ./run -run TestDiskFaults -schedule %s", err, strings.Join(w.trace, "\n  "), s)
	}
}

// The schedules are shared among a process for each core: the source of random numbers is one for a process.
func TestDiskFaults(t *testing.T) {
	race.Skip(t) // its checks of pointers know no memory of SQLite's
	switch {
	case *only != "":
		s, err := parseSchedule(*only)
		if err != nil {
			t.Fatal(err)
		}
		w, err := play(t, newSimulation(t), s, nil)
		t.Log(strings.Join(w.trace, "\n"), w.calls, w.ways)
		if err != nil {
			t.Error(err)
		}
		return
	case *share != "":
		b, err := json.Marshal(playShare(t))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", tallied, b)
		return
	}
	began := time.Now()
	total := tally{Ways: map[string]int{}}
	n := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		args := []string{"-test.run=^TestDiskFaults$", fmt.Sprintf("-schedules=%d", *schedules), fmt.Sprintf("-first=%d", *first), fmt.Sprintf("-every=%t", *every), fmt.Sprintf("-share=%d/%d", i, n)}
		if at, ok := t.Deadline(); ok {
			args = append(args, fmt.Sprintf("-test.timeout=%v", time.Until(at)))
		}
		c := exec.CommandContext(t.Context(), os.Args[0], args...)
		c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=256MiB") // one goroutine works at a time, and little memory is in use
		group.Go(func() {
			out, err := c.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			text, part := "", tally{}
			for line := range strings.Lines(string(out)) {
				if counts, ok := strings.CutPrefix(line, tallied); ok {
					err = errors.Join(err, json.Unmarshal([]byte(counts), &part))
				} else {
					text += line
				}
			}
			if err != nil || part.Calls[0] == 0 {
				t.Errorf("%v\n%s", err, text)
			}
			total.add(part)
		})
	}
	group.Wait()
	t.Logf("%d calls of a run, %d with states, %d of an owner; %d schedules of one fault, %d of an error and a power cut, and %d random ones from number %d on, in %v; %d unnoticed",
		total.Calls[0], total.Calls[1], total.Calls[2], total.Single, total.Pairs, total.Random, *first, time.Since(began).Round(time.Second), total.Unnoticed)
	for way, n := range total.Ways {
		t.Logf("settled, not resumed (%d times): %s", n, way)
	}
}

const tallied = "tally of disk faults: "

// playShare plays every n-th schedule. It stops at a failure.
func playShare(t *testing.T) tally {
	var mine, of, n int
	if _, err := fmt.Sscanf(*share, "%d/%d", &mine, &of); err != nil {
		t.Fatal(err)
	}
	sim := newSimulation(t)
	c := tally{Ways: map[string]int{}}
	turn := func() bool { // whether the next schedule is of this share
		n++
		return !t.Failed() && n%of == mine
	}
	for i := range c.Calls {
		w, err := play(t, sim, schedule{states: kinds[i]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Calls[i] = w.calls[0]
	}
	// One fault at each call of a run, another at the next; at every third of a run with states, at every second of an owner.
	sparse := [len(kinds)]int{len(simdisk.All()), 3 * len(simdisk.All()), 2 * len(simdisk.All())}
	for i, calls := range c.Calls {
		for at := range calls {
			for k, f := range simdisk.All() {
				if !*every && (at+k)%sparse[i] != 0 || !turn() {
					continue
				}
				s := schedule{seed: uint64(at), states: kinds[i], plans: []map[int]simdisk.Fault{{at: f}}}
				if f == simdisk.Lie {
					s.plans[0][at+1+int(rand.New(rand.NewPCG(uint64(at), 1)).IntN(40))] = simdisk.Drop
				}
				w, err := play(t, sim, s, nil)
				c.judge(t, w, s, err)
				c.Single++
			}
		}
	}
	// An error that the program or SQLite ignores shows at the next power cut: at each call an error, at every fourth of the next 40 a torn cut.
	if *every {
		errs := []simdisk.Fault{simdisk.EIO, simdisk.ENOSPC, simdisk.EINTR, simdisk.Short}
		for i, calls := range c.Calls {
			for at := range calls {
				for n := range 10 {
					if !turn() {
						continue
					}
					cut := at + 1 + at%4 + 4*n
					s := schedule{seed: uint64(at), states: kinds[i], plans: []map[int]simdisk.Fault{{at: errs[(at+n)%len(errs)], cut: simdisk.Torn}}}
					w, err := play(t, sim, s, nil)
					c.judge(t, w, s, err)
					c.Pairs++
				}
			}
		}
	}
	for i := range *schedules {
		if !turn() {
			continue
		}
		s := randomSchedule(uint64(*first+i), mostCalls)
		w, err := play(t, sim, s, nil)
		c.judge(t, w, s, err)
		c.Random++
	}
	return c
}

// mostCalls is about the calls of a run with states. Random schedules do not depend on their exact number.
const mostCalls = 750

// kinds are those of runs: without and with saved states, and of an owner of a network.
var kinds = [3]int{0, 2, -1}

// unsynced plants the bug that what match says is never synced. The disk forgets the syncs.
func unsynced(match func(path string) bool) func(*world) {
	return func(w *world) { w.disk.Ignore = match }
}

// named matches files, also while they have a temporary name.
func named(names ...string) func(path string) bool {
	return func(path string) bool {
		base := strings.TrimPrefix(filepath.Base(path), ".")
		return slices.ContainsFunc(names, func(name string) bool { return base == name || strings.HasPrefix(base, name+".") })
	}
}

// late makes a file appear only when it is renamed away: a token that is written after the ledger knows it, or with
// the next change of the directory.
type late struct {
	vfs.FS
	to    string
	after func(name string) bool // the change that it waits for
	held  *string
}

func (l late) Rename(from, to string) error {
	if filepath.Base(to) == l.to {
		*l.held = from
		return nil
	}
	if *l.held != "" && l.after(filepath.Base(from)) {
		if err := l.FS.Rename(*l.held, filepath.Join(filepath.Dir(to), l.to)); err != nil {
			return err
		}
		*l.held = ""
	}
	return l.FS.Rename(from, to)
}

// Bugs that are planted in the disk or in the order of calls are found by one of the first 10,000 random schedules.
func TestPlantedDiskBugs(t *testing.T) {
	race.Skip(t)
	sim := newSimulation(t)
	token := runlog.TokenFile + pending
	for _, bug := range []struct {
		name  string
		kind  int
		first uint64 // the schedule that finds it, unless calls have moved since
		plant func(*world)
	}{
		{"no sync of charges", 0, 1, unsynced(named(runlog.EventsFile))},
		{"no sync of releases", 0, 1, unsynced(named("releases.bin"))},
		{"no sync of a saved state", 2, 1, unsynced(named("releases-1.bin"))},
		{"no sync of the journal", -1, 1, unsynced(named(runlog.JournalFile))},
		{"no sync of the token", 0, 3, unsynced(named(runlog.TokenFile))},
		{"no sync of the run directory's names", 0, 1, unsynced(func(path string) bool { return path == simDir })},
		{"no sync of the ledger", 0, 1, unsynced(named(filepath.Base(simLedger)))},
		{"no sync of the ledger's journal", 0, 119, unsynced(named(filepath.Base(simLedger) + "-journal"))},
		{"no sync of the ledger's directory", 0, 1, unsynced(func(path string) bool { return path == filepath.Dir(simLedger) })},
		{"the token is written late", 0, 66, func(w *world) {
			held := ""
			w.wrap = func(disk vfs.FS) vfs.FS {
				return late{disk, token, func(name string) bool { return name == token }, &held}
			}
		}},
		{"settled before the sealed files are synced", 0, 1, unsynced(named(runlog.InfoFile, runlog.ModelFile, runlog.ReportFile))},
	} {
		find := func(n uint64) (err error) {
			s := randomSchedule(n, 500)
			s.states = bug.kind
			if _, err = play(t, sim, s, bug.plant); err == nil {
				return nil
			}
			if _, own := play(t, sim, s, nil); own != nil {
				t.Errorf("fails without a planted bug, too: %v: %s", own, s)
			}
			return err
		}
		found, err := bug.first, error(nil)
		if *schedules > 100 {
			found = 0
		} else if err = find(found); err == nil {
			found = 0
		}
		for n := uint64(1); found == 0 && n <= 10_000; n++ {
			if err = find(n); err != nil {
				found = n
			}
		}
		if found == 0 {
			t.Errorf("%s: not found by 10,000 schedules", bug.name)
			continue
		}
		t.Logf("%s: schedule %d: %.150v", bug.name, found, err)
	}
}

// randomSchedule has one to three processes with up to three faults each.
func randomSchedule(seed uint64, calls int) schedule {
	r := rand.New(rand.NewPCG(seed, 25))
	s := schedule{seed: seed, states: kinds[r.IntN(len(kinds))]}
	for range 1 + r.IntN(3) {
		plan := map[int]simdisk.Fault{}
		for range 1 + r.IntN(3) {
			plan[r.IntN(calls)] = simdisk.All()[r.IntN(len(simdisk.All())-2)]
		}
		s.plans = append(s.plans, plan)
	}
	return s
}
