package run

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/simdisk"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/page/disclosure"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// A sumNetwork is owners of one network who add up their sums, each a run of its own on its own disk.
type sumNetwork struct {
	before  int // batches of a run before its steps
	t       *testing.T
	members []*sumMember
	store   *transport.Memory
}

// A sumMember is one owner: what it keeps over its processes, and where these die.
type sumMember struct {
	net   *sumNetwork
	index int
	c     *transport.Credentials
	spec  string
	mount *simdisk.Mount
	disk  *simdisk.Disk
	dies  []string                // at these points, in this order
	plans []map[int]simdisk.Fault // faults of the disk of its first processes
	cut   bool                    // the power goes with a process
	stops bool                    // a person interrupts the process instead
	stop  context.CancelFunc      // of the process

	lies string // a key under which the hub shows this owner another value

	retries   int
	published map[string][]byte // parts, by key
	processes int
	calls     []int // of the disk, by process
}

// sumCredentials are those of three owners, made once.
var sumCredentials = sync.OnceValues(func() (all []*transport.Credentials, err error) {
	o, err := transport.NewNetwork("", []string{"a", "b", "c"}, nil, nil)
	if err != nil {
		return nil, err
	}
	for i := range o.Network.Owners {
		c, err := o.Invite(i, time.Hour)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
})

// sumSpecs writes tables and specs of three owners, of 4, 5 and 6 rows, who may give up so many attempts.
func sumSpecs(t *testing.T, adjacency, method string, retries int, models ...string) (specs []string) {
	t.Helper()
	models = append(models, "logistic")
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", "/dev/null/state") // no sketches of tables
	for i := range 3 {
		var rows strings.Builder
		for r := range 4 + i {
			fmt.Fprintf(&rows, "%d %d:1 %d:0.5\n", r%2, 1+(r+i)%4, 5+r%2)
		}
		own := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"rows.txt": rows.String(),
			"schema.yaml": "dataset: small\nrows: 5\nformat: {kind: libsvm}\nfeatures: 6\n" +
				"columns:\n  - {name: y, source: synthetic, type: label, classes: [\"0\", \"1\"]}\n",
			"spec.yaml": fmt.Sprintf("schema: %[1]s/schema.yaml\nmodel: {name: %[6]s}\nledger: %[2]s\n"+
				"privacy: {epsilon: 8, delta: 1e-5, adjacency: %[3]s}\nmethod: %[4]s\noutput: last\n"+
				"network: {mode: sum, owners: 3, rows: [4, 5, 6], colluders: 1, retries: %[5]d}\n", own, simLedger, adjacency, method, retries, models[0]),
		} {
			if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		specs = append(specs, filepath.Join(own, "spec.yaml"))
	}
	return specs
}

func newSumNetwork(t *testing.T, specs []string, mounts []*simdisk.Mount) *sumNetwork {
	t.Helper()
	n := &sumNetwork{t: t, store: &transport.Memory{}}
	all, err := sumCredentials()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		m := &sumMember{net: n, index: i, c: c, spec: specs[i], mount: mounts[i], disk: simdisk.New(uint64(i)), published: map[string][]byte{}}
		m.disk.MkdirAll("/disk", 0o700)
		m.disk.SyncDir("/")
		n.members = append(n.members, m)
	}
	config, err := all[0].Network.Config()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&transport.Adder{Store: n.store, Network: &all[0].Network, Config: config}).Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return n
}

var errDies = errors.New("the process dies")

// at is a point where the process may die.
func (m *sumMember) at(point string) error {
	if m.disk.Dead() != nil {
		return errDies
	}
	if len(m.dies) > 0 && m.dies[0] == point {
		m.dies = m.dies[1:]
		if m.stops {
			m.stop()
			return nil
		}
		m.disk.Kill()
		return errDies
	}
	return nil
}

// A member is its own way to the store.

func (m *sumMember) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	if err := m.at("before " + key); err != nil {
		return nil, err
	}
	if strings.Contains(key, ".part.") {
		if was, ok := m.published[key]; ok && !bytes.Equal(was, value) {
			m.net.t.Errorf("owner %d published two parts of %s", m.index, key)
		}
		m.published[key] = bytes.Clone(value)
	}
	b, err := m.net.store.Put(ctx, key, value)
	return b, errors.Join(err, m.at("after "+key))
}

func (m *sumMember) Get(ctx context.Context, key string) ([]byte, error) {
	return m.net.store.Get(ctx, key)
}

func (m *sumMember) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	point := keys[0]
	if len(keys) > 1 { // all presences, or the attempt's end
		point = "meeting " + keys[0]
	}
	if err := m.at("await " + point); err != nil {
		return 0, nil, err
	}
	k, b, err := m.net.store.Await(ctx, keys...)
	if err == nil && keys[k] == m.lies {
		b = bytes.Clone(b)
		b[len(b)-1] ^= 1
	}
	return k, b, errors.Join(err, m.at("awaited "+point))
}

// job is the owner's job.
func (m *sumMember) job() (*Job, error) {
	var n struct { // what gossip/netplan reads
		Mode      string `yaml:"mode"`
		Owners    int    `yaml:"owners"`
		Rows      []int  `yaml:"rows"`
		Colluders int    `yaml:"colluders"`
		Retries   int    `yaml:"retries"`
	}
	if _, _, err := job.LoadBlock(m.spec, "network", &n); err != nil {
		return nil, err
	}
	spec, err := LoadSpec(m.spec, nil)
	if err != nil {
		return nil, err
	}
	job, err := job.PrepareSum(spec, &Sum{Owner: -1, Names: []string{"owner 1", "owner 2", "owner 3"}, Rows: n.Rows, Colluders: n.Colluders, Retries: n.Retries})
	if err != nil {
		return nil, err
	}
	job = job.OfOwner(m.index, filepath.Join(filepath.Dir(m.spec), "rows.txt"))
	job.Spec.Out, m.retries = simDir, job.Sum.Retries
	return job, nil
}

func (m *sumMember) on(d *simdisk.Disk) *disk {
	m.mount.Disk = d
	return &disk{runlog.Disk{FS: d}, ledger.Disk{FS: d, SQLite: m.mount.Name}}
}

func (m *sumMember) env() Env {
	on := m.on(m.disk)
	return Env{disk: on, Workers: 1, Crash: func(point string) { m.at(point) },
		Report: func(dir string, _ *ledger.History) error {
			return newfile.ReplaceOn(on.FS, filepath.Join(dir, runlog.ReportFile), 0o600, []byte("report\n"))
		},
		Owners: m,
	}
}

// Pool implements Owners.
func (m *sumMember) Pool(s PoolState) (Pool, error) {
	return pool.Open(pool.Options{Store: m, Credentials: m.c, Disk: s.Disk, Path: s.Path, Run: s.Run, Retries: m.retries, Charged: s.Charged, Released: s.Released})
}

// Come implements Owners.
func (m *sumMember) Come(context.Context) error { return nil }

// Ready implements Owners.
func (m *sumMember) Ready(ctx context.Context, _ string) error {
	if _, err := m.Put(ctx, fmt.Sprint("ready ", m.index), []byte{1}); err != nil {
		return err
	}
	for i := range m.net.members {
		if _, _, err := m.Await(ctx, fmt.Sprint("ready ", i)); err != nil {
			return err
		}
	}
	return nil
}

// process does what a person does next: begin, or go on with what is there.
func (m *sumMember) process(ctx context.Context) error {
	m.processes++
	ctx, m.stop = context.WithCancel(ctx)
	defer m.stop()
	var plan map[int]simdisk.Fault
	if len(m.plans) > 0 {
		plan, m.plans = m.plans[0], m.plans[1:]
	}
	m.disk.Start(plan)
	defer func() { m.calls = append(m.calls, m.disk.Calls()) }()
	if m.disk.Peek(filepath.Join(simDir, runlog.InfoFile)) != nil {
		_, err := Resume(ctx, simDir, m.env())
		return err
	}
	for _, name := range m.disk.Names(simDir) { // killed before there was a run
		m.disk.Remove(filepath.Join(simDir, name))
	}
	job, err := m.job()
	if err != nil {
		return err
	}
	_, _, err = Fit(ctx, job, m.env())
	return err
}

// live is the owner's processes until its run is over.
func (m *sumMember) live(ctx context.Context) error {
	for {
		err := m.process(ctx)
		if m.disk.Dead() == nil && !(m.stops && errors.Is(err, ErrInterrupted) && ctx.Err() == nil) {
			return err
		}
		if m.cut {
			m.disk.Cut(true)
		}
		if err := m.inspect(); err != nil {
			return err
		}
	}
}

const signedClaim = 8 + 2*sha256.Size + ed25519.SignatureSize

// attempts counts those of which a part was published.
func (m *sumMember) attempts() int {
	known := map[int]bool{}
	for key := range m.published {
		var owner, attempt int
		fmt.Sscanf(key, "sum.%d.part.%d", &owner, &attempt)
		known[attempt] = known[attempt] || len(m.published[key]) > signedClaim // the sum that ends a run has no numbers
	}
	maps.DeleteFunc(known, func(_ int, numbers bool) bool { return !numbers })
	return len(known)
}

// inspect checks what a process left behind: run log and ledger have a charge for each attempt of which something was published.
func (m *sumMember) inspect() error {
	d := m.disk.Clone()
	on := m.on(d)
	ctx := context.Background()
	info, err := on.ReadInfo(simDir)
	if err != nil {
		if n := m.attempts(); n > 0 {
			return fmt.Errorf("%d attempts are published, and there is no run: %v", n, err)
		}
		return nil
	}
	rec, err := on.Record(info, simDir)
	if err != nil {
		return err
	}
	if n := m.attempts(); rec.Charged() < n {
		return fmt.Errorf("%d attempts are published, and %d charged in the run log", n, rec.Charged())
	}
	l, err := on.ledgers.Find(ctx, simLedger)
	if err != nil {
		if n := m.attempts(); n > 0 {
			return fmt.Errorf("%d attempts are published, and there is no ledger: %v", n, err)
		}
		return nil
	}
	defer l.Close()
	recorded := 0
	known, err := l.Run(ctx, info.ID)
	switch {
	case errors.Is(err, ledger.ErrUnknownRun):
	case err != nil:
		return err
	case known.State == ledger.StateSettled: // what the settlement shows, the run log has
		if ok, err := known.Settlement.Shows(rec.Event()); err != nil || !ok {
			return fmt.Errorf("settled for other charges than those of the run log (%v)", err)
		}
		return nil
	default:
		if recorded, err = l.Recorded(ctx, info.ID); err != nil {
			return err
		}
	}
	if n := m.attempts(); recorded < n {
		return fmt.Errorf("%d attempts are published, and %d charged in the ledger", n, recorded)
	}
	return nil
}

// run lives all owners' runs to their ends, and returns their errors.
func (n *sumNetwork) run() []error {
	ctx, stop := context.WithCancel(n.t.Context())
	defer stop()
	errs := make([]error, len(n.members))
	var all sync.WaitGroup
	for i, m := range n.members {
		all.Go(func() {
			if errs[i] = m.live(ctx); errs[i] != nil {
				stop() // the others would wait for it
			}
		})
	}
	all.Wait()
	return errs
}

// check holds what the owners have at the end against each other, and each against its ledger.
func (n *sumNetwork) check() error { return n.checkEnd(method.Done.String(), 0) }

// checkEnd is check of runs that ended so, so many steps before the last.
func (n *sumNetwork) checkEnd(outcome string, missing int) error {
	ctx := context.Background()
	var models [][]float64
	var released [][][]float64
	for _, m := range n.members {
		m.disk.Start(nil)
		on := m.on(m.disk)
		if len(m.dies) > 0 {
			return fmt.Errorf("owner %d never came to %v", m.index, m.dies)
		}
		if err := m.inspect(); err != nil {
			return fmt.Errorf("owner %d: %w", m.index, err)
		}
		m.on(m.disk)
		info, err := on.ReadInfo(simDir)
		if err != nil {
			return err
		}
		rec, err := on.Record(info, simDir)
		if err != nil {
			return err
		}
		steps := info.MaxSteps - missing
		if info.Status != runlog.Finished || info.Result.Outcome != outcome || info.Result.Steps != steps || rec.Released != n.before+steps {
			return fmt.Errorf("owner %d: %s (%s) after %d steps, %d batches released", m.index, info.Status, info.Result.Outcome, info.Result.Steps, rec.Released)
		}
		if c := rec.Charged(); c > n.before+info.MaxSteps+m.retries || c < m.attempts() {
			return fmt.Errorf("owner %d: %d attempts charged, %d published; the plan has %d batches and %d retries", m.index, c, m.attempts(), n.before+info.MaxSteps, m.retries)
		}
		var answers [][]float64
		in := rec.Open(nil)
		for {
			r, err := in.Next()
			if err != nil {
				break
			}
			for _, a := range r.Answers {
				answers = append(answers, slices.Clone(a))
			}
		}
		in.Close()
		released = append(released, answers)
		var file struct {
			W      []float64
			Offset model.Offset
		}
		if err := json.Unmarshal(m.disk.Peek(filepath.Join(simDir, runlog.ModelFile)), &file); err != nil {
			return err
		}
		models = append(models, append(file.W, file.Offset...))
		l, err := on.ledgers.Find(ctx, simLedger)
		if err != nil {
			return err
		}
		_, broken := l.Verify(ctx)
		known, err := l.Run(ctx, info.ID)
		l.Close()
		if err := errors.Join(broken, err); err != nil {
			return err
		}
		if known.State != ledger.StateSettled {
			return fmt.Errorf("owner %d: the run is %s in the ledger", m.index, known.State)
		}
	}
	for i := range n.members {
		if len(models[i]) == 0 || !slices.Equal(models[i], models[0]) || !slices.EqualFunc(released[i], released[0], slices.Equal) {
			return fmt.Errorf("owner %d has another model or other releases than owner 0: %v, %v", i, models[i], models[0])
		}
	}
	return nil
}

func sumMounts() (all []*simdisk.Mount) {
	for range 3 {
		all = append(all, simdisk.NewMount())
	}
	return all
}

const sumMethod = "{name: sgd, steps: 3, batch: 0, rate: 0.5, noise_multiplier: 3}"

// Owners who add up their sums have one model, bit for bit, and each has charged its own ledger.
func TestSumOfOwners(t *testing.T) {
	race.Skip(t) // its checks of pointers know no memory of SQLite's
	mounts := sumMounts()
	for adjacency, method := range map[string]string{
		"add-or-remove": "{name: sgd, steps: 3, batch: 3, rate: 0.5, noise_multiplier: 3}",
		"replace-one":   sumMethod,
	} {
		n := newSumNetwork(t, sumSpecs(t, adjacency, method, 0), mounts)
		for i, err := range n.run() {
			if err != nil {
				t.Fatalf("%s: owner %d: %v", adjacency, i, err)
			}
		}
		if err := n.check(); err != nil {
			t.Errorf("%s: %v", adjacency, err)
		}
		t.Log(n.members[0].calls)
	}
}

// sumPoints are those at which an owner's process may die beside its disk: around the reservation, the meeting, each part, each total and the
// end of the run.
func sumPoints(batches, sums int) (all []string) {
	all = []string{"reserved", "before ready 1", "after ready 1", "await ready 2", "awaited ready 2"}
	for attempt := range batches + 1 {
		if attempt == batches { // the one that ends a run
			sums = 1
		}
		all = append(all, "before "+transport.PresenceKey(1, attempt), "after "+transport.PresenceKey(1, attempt),
			"await meeting "+transport.OutcomeKey(attempt, 0), "awaited meeting "+transport.OutcomeKey(attempt, 0))
		for sum := range sums {
			all = append(all, "before "+transport.PartKey(1, attempt, sum), "after "+transport.PartKey(1, attempt, sum),
				"await "+transport.OutcomeKey(attempt, sum), "awaited "+transport.OutcomeKey(attempt, sum))
		}
	}
	return append(all, "modelled", "finished", "settled")
}

// An owner whose process dies at any point goes on with what it has. All owners end with one model, nothing is masked or published twice, and
// what was published was charged before, in run log and ledger, at every death.
func TestSumOfOwnersWhoDie(t *testing.T) {
	race.Skip(t)
	mounts := sumMounts()
	for _, c := range []struct {
		model, method string
		batches, sums int // of which one dies within; sums of a batch
		before        int // batches before the steps
		stride        int // of the points that are tried
	}{
		{"logistic", "{name: sgd, steps: 3, batch: 3, rate: 0.5, noise_multiplier: 6}", 3, 1, 0, 1},
		{"logistic", "{name: newton, steps: 4, hessians: 2, noise_multiplier: 30}", 3, 2, 0, 2}, // a Hessian in every second batch
		{"softmax", "{name: auto, steps: 2, center: mean, last: none}", 3, 1, 1, 2},             // a mean row, with fewer numbers than a gradient
	} {
		specs := sumSpecs(t, "add-or-remove", c.method, 2, c.model)
		points := sumPoints(c.batches, c.sums)
		for k := 0; k < len(points); k += c.stride {
			for _, how := range []string{"killed", "power cut", "interrupted"} {
				n := newSumNetwork(t, specs, mounts)
				n.before = c.before
				m := n.members[1]
				m.dies, m.cut, m.stops = []string{points[k]}, how == "power cut", how == "interrupted"
				if c.sums > 1 && strings.HasSuffix(points[k], ".1.1") { // of the second batch, which has no Hessian
					continue
				}
				if k%3 == 0 && how == "killed" && c.sums == 1 { // another one dies, too
					n.members[2].dies = []string{strings.NewReplacer("sum.1", "sum.2", "ready 1", "ready 2").Replace(points[(k+7)%len(points)])}
				}
				if err := errors.Join(append(n.run(), n.check())...); err != nil {
					t.Errorf("%s: %s %s, %v: %v", c.method, how, points[k], n.members[2].dies, err)
				}
			}
		}
	}
}

// The same with every call of the owner's disk: the process is killed, or the power goes.
func TestSumOfOwnersWhoseDisksDie(t *testing.T) {
	race.Skip(t)
	mounts, specs := sumMounts(), sumSpecs(t, "add-or-remove", sumMethod, 2)
	stride, tried := 29, 0
	if *every {
		stride = 1
	}
	for call := 0; ; call += stride {
		for k, f := range []simdisk.Fault{simdisk.Kill, simdisk.Drop, simdisk.Torn} {
			n := newSumNetwork(t, specs, mounts)
			m := n.members[1]
			m.plans, m.cut = []map[int]simdisk.Fault{{call + k: f}}, f != simdisk.Kill
			if err := errors.Join(append(n.run(), n.check())...); err != nil {
				t.Errorf("%v at call %d: %v", f, call+k, err)
			}
			if tried++; m.processes == 1 {
				if tried < 50 {
					t.Errorf("%d calls of a process", call)
				}
				return
			}
		}
	}
}

// When all retries are used up, every owner's run ends with the last iterate that all have.
func TestSumOfOwnersWithoutRetries(t *testing.T) {
	race.Skip(t)
	mounts, specs := sumMounts(), sumSpecs(t, "add-or-remove", sumMethod, 0)
	for _, point := range []string{"after sum.1.here.2", "after sum.1.part.1.0"} {
		n := newSumNetwork(t, specs, mounts)
		n.members[1].dies = []string{point}
		errs := n.run()
		missing, outcome := 1, method.OutOfBudget.String()
		if strings.Contains(point, "part") { // its part was published, so the attempt goes on
			missing, outcome = 0, method.Done.String()
		}
		if err := errors.Join(append(errs, n.checkEnd(outcome, missing))...); err != nil {
			t.Errorf("%s: %v", point, err)
		}
	}
}

// A hub that shows one owner another last total: no owner settles, and each says who was shown another. What was charged stays charged.
func TestSumOfOwnersAtLyingHub(t *testing.T) {
	race.Skip(t)
	n := newSumNetwork(t, sumSpecs(t, "add-or-remove", sumMethod, 0), sumMounts())
	n.members[1].lies = transport.OutcomeKey(2, 0)
	for round := range 2 { // also on a resume
		errs := make([]error, len(n.members))
		var all sync.WaitGroup
		for i, m := range n.members {
			all.Go(func() { errs[i] = m.live(t.Context()) })
		}
		all.Wait()
		for i, m := range n.members {
			want := "b signed another one than " + string("abc"[i])
			if i == 1 {
				want = "a, c signed another one than b"
			}
			if errs[i] == nil || !strings.Contains(errs[i].Error(), want) {
				t.Errorf("round %d, owner %d: %v; want %q", round, i, errs[i], want)
			}
			if err := m.inspect(); err != nil {
				t.Errorf("owner %d: %v", i, err)
			}
			on := m.on(m.disk.Clone())
			info, err := on.ReadInfo(simDir)
			if err != nil {
				t.Fatal(err)
			}
			l, err := on.ledgers.Find(t.Context(), simLedger)
			if err != nil {
				t.Fatal(err)
			}
			known, err := l.Run(t.Context(), info.ID)
			recorded, worse := l.Recorded(t.Context(), info.ID)
			l.Close()
			if err := errors.Join(err, worse); err != nil {
				t.Fatal(err)
			}
			if info.Status == runlog.Finished || known.State == ledger.StateSettled || recorded != 3 || m.disk.Peek(filepath.Join(simDir, runlog.ModelFile)) != nil {
				t.Errorf("owner %d: %s, %s in the ledger, %d charges", i, info.Status, known.State, recorded)
			}
		}
	}
}

// onMachine copies the owner's run directory from its simulated disk.
func (m *sumMember) onMachine(dir string) error {
	for _, name := range m.disk.Names(simDir) {
		if err := os.WriteFile(filepath.Join(dir, name), m.disk.Peek(filepath.Join(simDir, name)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// failing are the findings of a verification of the directory that do not hold, by what they are of; the ledger is not at hand.
func failing(t *testing.T, dir string) map[string]string {
	t.Helper()
	found, err := Verify(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	failing, all := map[string]string{}, map[string]bool{}
	for _, f := range found {
		if all[f.What] = true; !f.Holds && f.Detail != WithoutLedger {
			failing[f.What] = f.Detail
		}
	}
	for _, what := range []string{"files", "plan", "budget", "charges", "releases", "sums", "replay", runlog.InfoFile} {
		if !all[what] && len(failing) == 0 {
			t.Errorf("%s: nothing was said of %q", dir, what)
		}
	}
	return failing
}

// A verification finds an owner's releases in the sums of its journal, without rows, after retries and where the retries were used up; it
// finds a sum or a release that is another. With all journals anybody can add up the parts.
func TestVerifySums(t *testing.T) {
	race.Skip(t)
	mounts := sumMounts()
	for _, c := range []struct {
		dies    string
		retries int
		end     string
	}{
		{"awaited all.sum.0.0", 1, method.Done.String()}, // the second sum of the first batch is of another attempt
		{"after sum.1.here.2", 0, method.OutOfBudget.String()},
	} {
		specs := sumSpecs(t, "add-or-remove", "{name: newton, steps: 4, hessians: 2, noise_multiplier: 30}", c.retries)
		n := newSumNetwork(t, specs, mounts)
		n.members[1].dies = []string{c.dies}
		if err := errors.Join(n.run()...); err != nil {
			t.Fatal(err)
		}
		var dirs []string
		for i, m := range n.members {
			dir := t.TempDir()
			if err := m.onMachine(dir); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
			if info, err := runlog.ReadInfo(dir); err != nil || info.Result.Outcome != c.end {
				t.Fatalf("owner %d: %+v, %v", i, info.Result, err)
			}
			if found := failing(t, dir); len(found) > 0 {
				t.Errorf("%s: owner %d: %v", c.dies, i, found)
			}
		}
		if added, err := pool.Verify(dirs...); err != nil || !added.Whole || added.Sums < 3 {
			t.Errorf("%s: all journals: %+v, %v", c.dies, added, err)
		}
		if added, err := pool.Verify(dirs[1:]...); err != nil || added.Whole {
			t.Errorf("%s: two journals of three: %+v, %v", c.dies, added, err)
		}
		if _, err := pool.Verify(dirs[0], dirs[0]); err == nil {
			t.Errorf("%s: one journal twice was taken", c.dies)
		}
		short := t.TempDir()
		rewriteSums(t, dirs[1], short, 1, func(byte, []byte) {})
		if _, err := pool.Verify(dirs[0], short, dirs[2]); err == nil || !strings.Contains(err.Error(), short+": its part of sum 1 of attempt") {
			t.Errorf("%s: without the last attempt of one: %v", c.dies, err)
		}
		// Another total, and another part, in a journal that is whole.
		for k, change := range []func(kind byte, b []byte){
			func(kind byte, b []byte) {
				if kind == 'T' && len(b) > 0 {
					b[5]++ // the lowest bits are below the grid
				}
			},
			func(kind byte, b []byte) {
				if kind == 'P' && len(b) > 0 {
					b[0]++
				}
			},
		} {
			other := t.TempDir()
			if err := os.CopyFS(other, os.DirFS(dirs[1])); err != nil {
				t.Fatal(err)
			}
			rewriteSums(t, dirs[1], other, 0, change)
			if _, found := failing(t, other)["sums"]; found != (k == 0) { // a part is checked with those of others
				t.Errorf("change %d: found %v", k, found)
			}
			if _, err := pool.Verify(dirs[0], other, dirs[2]); err == nil {
				t.Errorf("change %d was not found", k)
			}
		}
	}
}

// A verification finds that run.json or sums.bin is not that of the run: a plan with fewer retries than run.json
// says, other retries, other colluders, the journal of another owner.
func TestVerifyOwner(t *testing.T) {
	race.Skip(t)
	n := newSumNetwork(t, sumSpecs(t, "replace-one", sumMethod, 2), sumMounts())
	if err := errors.Join(n.run()...); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(dir string, info *runlog.Info) error{
		"nothing": func(string, *runlog.Info) error { return nil },
		"plan": func(_ string, info *runlog.Info) error { // more retries than the plan pays for
			info.Sum.Retries = 3
			return nil
		},
		"plan of fewer": func(_ string, info *runlog.Info) error {
			plan, err := info.PlanEvent()
			if err == nil {
				info.Plan, err = privacy.MarshalEvent(privacy.Retried{Of: plan.(privacy.Retried).Of, Retries: 1})
			}
			return err
		},
		"plan for no colluder": func(_ string, info *runlog.Info) error {
			var facts oracle.Public
			err := json.Unmarshal(info.Public, &facts)
			info.Sum.Colluders, facts.Colluders = 0, 0
			if err == nil {
				info.Public, err = json.Marshal(facts)
			}
			return err
		},
		"sums of another": func(dir string, _ *runlog.Info) error {
			return os.WriteFile(filepath.Join(dir, runlog.SumsFile), n.members[2].disk.Peek(filepath.Join(simDir, runlog.SumsFile)), 0o600)
		},
		"sums of its owner": func(_ string, info *runlog.Info) error {
			info.Sum.Owner, info.Sum.Rows[0], info.Sum.Rows[1] = 0, info.Sum.Rows[1], info.Sum.Rows[0]
			return nil
		},
		"sums without their end": func(dir string, _ *runlog.Info) error {
			whole := t.TempDir()
			rewriteSums(t, dir, whole, 1, func(byte, []byte) {})
			b, err := os.ReadFile(filepath.Join(whole, runlog.SumsFile))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, runlog.SumsFile), b, 0o600))
		},
	} {
		dir := t.TempDir()
		if err := n.members[1].onMachine(dir); err != nil {
			t.Fatal(err)
		}
		info, err := runlog.ReadInfo(dir)
		if err == nil {
			err = change(dir, info)
		}
		if err == nil {
			info.Hashes, err = runlog.Hashes(dir)
		}
		if err := errors.Join(err, runlog.WriteInfo(dir, info)); err != nil {
			t.Fatal(err)
		}
		found := failing(t, dir)
		if word, _, _ := strings.Cut(what, " "); word == "nothing" {
			if len(found) > 0 {
				t.Errorf("an honest run: %v", found)
			}
		} else if found[word] == "" {
			t.Errorf("%s: found %v", what, found)
		}
	}
}

// A verification finds that the ledger holds another assumption than the run's plan gives, or one where the other has none.
func TestVerifyShares(t *testing.T) {
	race.Skip(t)
	n := newSumNetwork(t, sumSpecs(t, "replace-one", sumMethod, 2), sumMounts())
	if err := errors.Join(n.run()...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := n.members[1].onMachine(dir); err != nil {
		t.Fatal(err)
	}
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	shares := func(l *ledger.Ledger) (found record.Finding) {
		t.Helper()
		all, err := Verify(t.Context(), dir, l)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if f.What == "budget" && !strings.Contains(f.Detail, "; this is against the hub and any one other owner, while masks hold; at the same δ, against all other owners together, or if masks were broken, ε = ") {
				t.Errorf("its budget is against nobody: %s", f.Detail)
			}
			if f.What == "shares" {
				found = f
			}
		}
		return found
	}
	own, err := n.members[1].on(n.members[1].disk).ledgers.Find(t.Context(), simLedger)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if f := shares(own); !f.Holds || !strings.Contains(f.Detail, "noise that 3 owners share (retries: 2); this is against") {
		t.Errorf("its own ledger: %+v", f)
	}
	// Another ledger says of the same run what it was told.
	reserved := func(change func(r *ledger.Reservation)) record.Finding {
		t.Helper()
		l, err := OpenLedger(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r, err := ReservationOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		if own := info.Shares(); own == nil || !sameShares(r.Shares, own) {
			t.Fatalf("the reservation assumes %+v; the plan gives %+v", r.Shares, own)
		}
		r.Run = info.ID
		change(&r)
		if _, err := l.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return shares(l)
	}
	for what, c := range map[string]struct {
		change func(r *ledger.Reservation)
		says   string
	}{
		"nothing":          {func(*ledger.Reservation) {}, ""},
		"the last digits":  {func(r *ledger.Reservation) { r.Shares.Alone = new(*r.Shares.Alone * (1 + 1e-9)) }, ""},
		"a smaller ε":      {func(r *ledger.Reservation) { r.Shares.Alone = new(*r.Shares.Alone * 0.999) }, "noise that 3 owners share"},
		"no finite ε":      {func(r *ledger.Reservation) { r.Shares.Alone = nil }, "if masks were broken, no finite ε is proven"},
		"other owners":     {func(r *ledger.Reservation) { r.Plan, r.Shares.Owners = nil, 4 }, "noise that 4 owners share"},
		"fewer colluders":  {func(r *ledger.Reservation) { r.Plan, r.Shares.Colluders = nil, 0 }, "against the hub and everybody who is no owner"},
		"fewer retries":    {func(r *ledger.Reservation) { r.Plan, r.Shares.Retries = nil, 1 }, "(retries: 1)"},
		"no owners at all": {func(r *ledger.Reservation) { r.Plan, r.Shares = nil, nil }, "noise that no owners share; by the plan in run.json it is noise that 3 owners share"},
	} {
		if f := reserved(c.change); f.What == "" || f.Holds != (c.says == "") || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %+v", what, f)
		}
	}
	// Of a run whose noise nobody shares the ledger may say nothing of the kind.
	plan, err := privacy.MarshalEvent(privacy.Gaussian{Sigma: 30})
	if err != nil {
		t.Fatal(err)
	}
	alone := &Verification{Info: &runlog.Info{Budget: info.Budget, Accountant: info.Accountant, Plan: plan}}
	alone.shares("the ledger", nil)
	alone.shares("the ledger", info.Shares())
	if f := alone.Findings; len(f) != 1 || f[0].Holds || !strings.Contains(f[0].Detail, "by the plan in run.json it is noise that no owners share") {
		t.Errorf("an ordinary run: %+v", f)
	}
}

// An owner's directory whose run.json cannot be an owner's is refused, by a resume and by a verification.
func TestOwnerInfo(t *testing.T) {
	race.Skip(t)
	n := newSumNetwork(t, sumSpecs(t, "replace-one", sumMethod, 2), sumMounts())
	if err := errors.Join(n.run()...); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(s *Sum){
		"sum.names: found 1; expected 2 owners or more":                 func(s *Sum) { s.Names, s.Rows = s.Names[:1], s.Rows[:1] },
		"sum.names: found [\"owner 1\" \"owner 1\" \"owner 3\"]":        func(s *Sum) { s.Names[1] = s.Names[0] },
		"sum.rows: found [4 5]; expected a number from 1 for each of 3": func(s *Sum) { s.Rows = s.Rows[:2] },
		"sum.rows: found [4 0 6]":                                       func(s *Sum) { s.Rows[1] = 0 },
		"sum.rows: found 16 rows in all; the schema has 15":             func(s *Sum) { s.Rows[0]++ },
		"sum.owner: found 3; expected 0 to 2":                           func(s *Sum) { s.Owner = 3 },
		"sum.owner: found -1":                                           func(s *Sum) { s.Owner = -1 },
		"sum.colluders: found 2; expected 0 to 1":                       func(s *Sum) { s.Colluders = 2 },
		"sum.retries: found -1; expected 0 to 1000":                     func(s *Sum) { s.Retries = -1 },
		"public: found 3 owners, 1 of whom may collude":                 func(s *Sum) { s.Colluders = 0 },
	} {
		dir := t.TempDir()
		if err := n.members[1].onMachine(dir); err != nil {
			t.Fatal(err)
		}
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			t.Fatal(err)
		}
		change(info.Sum)
		if err := runlog.WriteInfo(dir, info); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("verified: %v; want %q", err, want)
		}
		info.Status = runlog.Interrupted
		if err := runlog.WriteInfo(dir, info); err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(t.Context(), dir, Env{}); !isInput(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("resumed: %v; want %q", err, want)
		}
	}
	// An honest one goes on with the others only.
	dir := t.TempDir()
	if err := n.members[1].onMachine(dir); err != nil {
		t.Fatal(err)
	}
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	info.Status = runlog.Interrupted
	if err := runlog.WriteInfo(dir, info); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(t.Context(), dir, Env{}); !isInput(err) || !strings.Contains(err.Error(), "owner 2, one of 3 owners") {
		t.Errorf("resumed alone: %v", err)
	}
	job, err := n.members[1].job()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Fit(t.Context(), job, Env{}); !errors.Is(err, errAlone) {
		t.Errorf("trained alone: %v", err)
	}
	all := *job
	all.Sum = new(*job.Sum)
	all.Sum.Owner = -1
	if _, _, err := Fit(t.Context(), &all, Env{}); !errors.Is(err, errAlone) {
		t.Errorf("trained as all: %v", err)
	}
	// The directory is of that owner's run of that spec.
	info.Data = job.Spec.Data
	if err := runlog.WriteInfo(dir, info); err != nil {
		t.Fatal(err)
	}
	job.Spec.Out = dir
	if begun, err := Began(job); !begun || err != nil {
		t.Errorf("its own run: %v, %v", begun, err)
	}
	info.Sum.Names[0] = "another"
	if err := runlog.WriteInfo(dir, info); err != nil {
		t.Fatal(err)
	}
	if _, err := Began(job); !isInput(err) || !strings.Contains(err.Error(), "another network") {
		t.Errorf("a run with others: %v", err)
	}
}

// withoutPool are owners whose pool does not open.
type withoutPool struct{ *sumMember }

func (withoutPool) Ready(context.Context, string) error { return nil }

func (withoutPool) Pool(PoolState) (Pool, error) {
	var none *pool.Pool
	return none, errWithoutPool
}

var errWithoutPool = errors.New("no pool")

// A pool that does not open ends the run; its budget stays reserved.
func TestPoolThatDoesNotOpen(t *testing.T) {
	race.Skip(t)
	n := newSumNetwork(t, sumSpecs(t, "add-or-remove", "{name: sgd, steps: 2}", 0), sumMounts())
	m := n.members[0]
	job, err := m.job()
	if err != nil {
		t.Fatal(err)
	}
	env := m.env()
	env.Owners = withoutPool{m}
	if _, dir, err := Fit(t.Context(), job, env); !errors.Is(err, errWithoutPool) || dir != simDir {
		t.Errorf("%s: %v", dir, err)
	}
}

func isInput(err error) bool { return errors.As(err, new(*InputError)) }

// Report, disclosure, model and exported model of an owner's run say both ε, in the same words.
func TestSumOfOwnersIsDisclosed(t *testing.T) {
	race.Skip(t)
	n := newSumNetwork(t, sumSpecs(t, "add-or-remove", "{name: newton, steps: 4, hessians: 2, noise_multiplier: 30}", 2), sumMounts())
	m := n.members[1]
	m.dies = []string{"awaited all.sum.0.0"} // the second sum of the first batch is of another attempt
	if err := errors.Join(n.run()...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.onMachine(dir); err != nil {
		t.Fatal(err)
	}
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	job, err := m.job()
	if err != nil {
		t.Fatal(err)
	}
	const hub, all = "the hub and any one other owner", "all other owners together, or if masks were broken"
	alone := job.Alone()
	if plan := job.Cost(job.Plan); !(alone > plan) {
		t.Fatalf("ε alone is %v, of the sum %v", alone, plan)
	}

	page, err := page.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("\u00a0", " ", "&nbsp;", " ").Replace(string(page))
	l, err := m.on(m.disk).ledgers.Find(t.Context(), simLedger)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	made := disclosure.Made{At: info.Finished.UTC().Format(time.RFC3339), Version: info.Version, Platform: info.Platform, Kernels: info.Kernels, Go: info.Go}
	d, err := disclosure.Make(t.Context(), dir, l, disclosure.Options{Made: made})
	if err != nil {
		t.Fatal(err)
	}
	s := d.Facts.Guarantee.Shares
	if s == nil || s.Owners != 3 || s.Colluders != 1 || s.Retries != 2 || s.EpsilonAlone == nil || *s.EpsilonAlone < alone || *s.EpsilonAlone > 1.001*alone {
		t.Fatalf("disclosed: %+v; ε alone is %v", s, alone)
	}
	b, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := d.Render(b)
	if err != nil {
		t.Fatal(err)
	}
	model, err := LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	promised := fmt.Sprint(model.Promised())
	for _, said := range []struct{ of, text, want string }{
		{"report", text, "against " + hub + ", while masks hold"},
		{"report", text, "against " + all + "</th><td><b>" + "ε = " + chart.NumberUp(alone, 4)},
		{"report", text, "At least 2 of the 3 owners have to be honest"},
		{"report", text, "1 charged attempt has no answer in the log: given up"},
		{"disclosure", string(b), fmt.Sprintf("\"epsilon_alone\": %v", *s.EpsilonAlone)},
		{"disclosure", d.Facts.Guarantee.Words, ", against " + hub + ", while masks hold"},
		{"disclosure", d.Facts.Protection.Trusted, "At least 2 of the 3 owners have to be honest"},
		{"page of the disclosure", string(sheet), "at the same δ against " + all},
		{"page of the disclosure", string(sheet), "this is against " + hub},
		{"lifetime", d.Facts.Lifetime.Words, "every ε and δ said here holds against " + hub + ", while masks hold. Against " + all + ", all runs so far are together private with ε = 8"},
		{"model", string(model.File.Guarantee), "\"against\":\"" + hub + ", while masks hold\""},
		{"exported model", promised, "[sotto.guarantee (8, 1e-05)-differentially private, neighbours add-or-remove, against " + hub},
		{"exported model", promised, "[sotto.epsilon_alone " + chart.AtMost(alone, 5) + "]"},
	} {
		if !strings.Contains(said.text, said.want) {
			t.Errorf("the %s does not say %q", said.of, said.want)
		}
	}
	file := filepath.Join(t.TempDir(), disclosure.File)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := disclosure.Check(t.Context(), dir, l, file, nil, made)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !f.Holds {
			t.Errorf("%s: %s", f.What, f.Detail)
		}
	}
}

// rewriteSums writes the journal of a directory to another, without its last attempts, with changed numbers.
func rewriteSums(t *testing.T, from, to string, without int, change func(kind byte, numbers []byte)) {
	t.Helper()
	old, err := runlog.ReadSums(filepath.Join(from, runlog.SumsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	path := filepath.Join(to, runlog.SumsFile)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	s, err := machine.OpenSums(path, old.Head)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for k, a := range old.Attempts[:len(old.Attempts)-without] {
		for i, p := range a.Parts {
			b, err := old.PartNumbers(p)
			if err != nil {
				t.Fatal(err)
			}
			change('P', b)
			if err := s.Part(k, i, p, b); err != nil {
				t.Fatal(err)
			}
			if i < len(a.Totals) {
				if b, err = old.TotalNumbers(a.Totals[i]); err != nil {
					t.Fatal(err)
				}
				change('T', b)
				if err := s.Total(k, i, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		if a.GivenUp {
			if err := s.GiveUp(k, len(a.Totals)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The distance of the sampler counts for each owner's share and sample.
func TestSamplerOfShares(t *testing.T) {
	j, _ := begin(t, t.TempDir(), "run", "method: {name: sgd, steps: 3, batch: 0, rate: 0.5}")
	bound := func() (delta float64) {
		text := job.Numerics(j, 3)
		if _, err := fmt.Sscanf(text[strings.Index(text, "at most ")+len("at most "):], "%g", &delta); err != nil {
			t.Fatal(err)
		}
		return delta
	}
	alone := bound()
	j.Facts.Owners = 10
	if all := bound(); all < 9.9*alone || all > 10.1*alone {
		t.Errorf("found %g of ten owners, %g of one", all, alone)
	}
	if text := job.Numerics(j, 3); !strings.Contains(text, "of each of 10 owners; that each share is rounded by itself adds less than") {
		t.Errorf("nothing of the rounded shares: %s", text)
	}
}
