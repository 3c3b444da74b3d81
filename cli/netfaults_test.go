//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/gossip/demo"
	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/relay"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

var long = flag.Bool("long", false, "run the long form of the network faults: more owners, rounds and crashes; kill 300 processes: some minutes")

// A place to crash at, as in journaled:3: there, the third time, the process kills itself.
const crashVariable = "SOTTO_TEST_CRASH"

func crashFrom(place string) func(string) {
	at, count, ok := strings.Cut(place, ":")
	left, err := strconv.Atoi(count)
	if !ok || err != nil {
		return nil
	}
	var mu sync.Mutex
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if point != at {
			return
		}
		if left--; left == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// A village is a network of processes, which the test may hurt.
type village struct {
	t    testing.TB
	d    demo.Demo
	hub  *exec.Cmd
	said *bytes.Buffer // by the hub, to be read when it has ended
	url  string
	more []string           // flags of every owner
	ways map[int]*relay.Way // of owners that reach the hub by a way that can be cut
	away map[int]*space     // owners in network namespaces of their own
}

// newVillage prepares a network of the clinic's rows; the hub is not running yet.
func newVillage(t testing.TB, block string, wait time.Duration) *village {
	t.Helper()
	clinic, err := filepath.Abs("../examples/clinic")
	if err != nil {
		t.Fatal(err)
	}
	return villageOf(t, fmt.Sprintf("data: %s/patients.csv\nschema: %s/schema.yaml\nmodel: {name: logistic, l2: 0.0005}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\nnetwork: {%s}\n", clinic, clinic, block), wait)
}

// villageOf is the same of any spec.
func villageOf(t testing.TB, spec string, wait time.Duration) *village {
	t.Helper()
	dir := t.TempDir()
	v := &village{t: t, d: demo.Demo{Spec: filepath.Join(dir, "net.yaml"), Dir: filepath.Join(dir, "all"), Wait: wait}}
	if err := errors.Join(os.WriteFile(v.d.Spec, []byte(spec), 0o600), os.Mkdir(v.d.Dir, 0o700), v.d.Settle()); err != nil {
		t.Fatal(err)
	}
	tables, _, err := v.d.Plan.Tables(t.Context(), "run", "test", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.d.Prepare(tables); err != nil {
		t.Fatal(err)
	}
	return v
}

// startHub starts the hub, from the second time on at the address that it had.
func (v *village) startHub() {
	v.t.Helper()
	port := "0"
	if v.url != "" {
		port = v.url[strings.LastIndex(v.url, ":")+1:]
	}
	host := "127.0.0.1"
	if v.away != nil {
		host = "0.0.0.0"
	}
	v.hub = sotto(v.t, "hub", filepath.Join(v.d.Dir, transport.HubFile), "--dir", filepath.Join(v.d.Dir, "hub"), "--host", host, "--port", port)
	v.said = &bytes.Buffer{}
	v.hub.Stderr = v.said
	out, err := v.hub.StdoutPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := v.hub.Start(); err != nil {
		v.t.Fatal(err)
	}
	hub := v.hub
	v.t.Cleanup(func() { hub.Process.Kill(); hub.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		v.t.Fatalf("the hub did not start: %v", err)
	}
	if v.url == "" { // started again it has the same, which owners read meanwhile
		v.url = strings.Replace(strings.TrimSpace(line), host, "127.0.0.1", 1)
	}
}

// at is where the hub listens.
func (v *village) at() string { return v.url[strings.Index(v.url, "//")+2:] }

func (v *village) killHub() {
	v.hub.Process.Kill()
	v.hub.Wait()
}

// owner is the process of an owner, which crashes there.
func (v *village) owner(i int, crash string) (*exec.Cmd, *bytes.Buffer) {
	url := v.url
	if way := v.ways[i]; way != nil {
		url = strings.Replace(url, v.at(), way.Addr, 1)
	}
	c := sotto(v.t, append(v.d.Arguments(i, url), v.more...)...)
	if s := v.away[i]; s != nil {
		c = s.sotto(append(v.d.Arguments(i, strings.Replace(url, "127.0.0.1", "localhost", 1)), v.more...)...)
	}
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+v.d.Owner(i, "state"), crashVariable+"="+crash)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	return c, &stderr
}

// live starts an owner again and again until it ends well. Each of its lives is hurt in the way that hurt says, and told to started.
func (v *village) live(i int, hurt func(life int) (crash string), started func(*exec.Cmd)) (lives int) {
	for {
		c, stderr := v.owner(i, hurt(lives))
		if err := c.Start(); err != nil {
			v.t.Error(err)
			return lives
		}
		if started != nil {
			started(c)
		}
		err := c.Wait()
		lives++
		var exit *exec.ExitError
		switch {
		case err == nil:
			return lives
		case errors.As(err, &exit) && !exit.Exited(): // killed
		case strings.Contains(stderr.String(), "this owner's run is finished"): // killed after its last act
			return lives
		default:
			v.t.Errorf("owner %d ended by itself: %v\n%s", i+1, err, stderr)
			return lives
		}
	}
}

func (v *village) journal(i int) string {
	return filepath.Join(v.d.Owner(i, "part"), runlog.JournalFile)
}

// check says what must be true at the end: every activation of every owner is in its journal once and paid, every byte that was published is the journal's,
// the ledger is settled, and the sum over all owners is that of what they added.
func (v *village) check(owners ...int) {
	t := v.t
	t.Helper()
	if err := v.d.Resettle(); err != nil {
		t.Fatal(err)
	}
	activations := 0
	var sum, size []float64
	for _, i := range owners {
		dir := v.d.Owner(i, "part")
		info, err := runlog.ReadInfo(dir)
		if err != nil || info.Status != runlog.Finished {
			t.Fatalf("owner %d: %+v, %v", i+1, info, err)
		}
		c, err := transport.ReadCredentials(v.d.Owner(i, "credentials.json"))
		if err != nil {
			t.Fatal(err)
		}
		hub, err := transport.Dial(t.Context(), c, v.url)
		if err != nil {
			t.Fatal(err)
		}
		r, err := runlog.ReadJournal(v.journal(i))
		if err != nil {
			t.Fatal(err)
		}
		z := make([]float64, r.Head.Dim)
		if sum == nil {
			sum, size = make([]float64, len(z)), make([]float64, len(z))
		}
		for act := range v.d.Plan.Schedule.Activations(i) {
			held, err := r.Next()
			if err != nil {
				t.Fatalf("owner %d, round %d: %v", i+1, act.T, err)
			}
			if held.Round != act.T || len(held.Batches) != 1 || !held.Done {
				t.Errorf("owner %d, round %d: the journal holds round %d with %d charges, done %v", i+1, act.T, held.Round, len(held.Batches), held.Done)
			}
			for _, peer := range act.Peers {
				out, err := hub.Get(t.Context(), fmt.Sprintf("rel.%d.%d.%d", i, peer, act.T))
				sent, _ := binary.Append(nil, binary.LittleEndian, held.Sent)
				if err != nil || !bytes.Equal(out[64:len(out)-ed25519.SignatureSize], sent) { // between header and signature
					t.Errorf("owner %d, round %d: what was published is not the journal's: %v", i+1, act.T, err)
				}
			}
			for j := range z {
				sum[j] += held.Sent[j] - z[j]
			}
			z = held.State
			activations++
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("owner %d: the journal holds more than its activations: %v", i+1, err)
		}
		for j, x := range z {
			sum[j] -= x
			size[j] += math.Abs(x)
		}
		r.Close()
		hub.Close()
		l, err := ledger.Open(t.Context(), v.d.Owner(i, "ledger.db"))
		if err != nil {
			t.Fatal(err)
		}
		known, err := l.Run(t.Context(), info.ID)
		d, err2 := l.Dataset(t.Context(), info.Dataset)
		if err != nil || err2 != nil || known.State != ledger.StateSettled || d.Runs != 1 {
			t.Errorf("owner %d: the ledger says %+v, %+v, %v, %v", i+1, known, d, err, err2)
		}
		found, err := party.Verify(t.Context(), dir, l)
		if err != nil || len(found) < 8 {
			t.Errorf("owner %d: verified %v, %v", i+1, found, err)
		}
		for _, f := range found {
			if !f.Holds {
				t.Errorf("owner %d: does not hold: %v", i+1, f)
			}
		}
		l.Close()
	}
	if len(owners) == len(v.d.Plan.Owners) {
		worst := 0.0
		for j, x := range sum {
			worst = max(worst, math.Abs(x)/max(1, size[j]))
		}
		if !(worst < 1e-9) {
			t.Errorf("the owners' sum has drifted by %v", worst)
		}
		t.Logf("%d activations, drift %.1e", activations, worst)
	}
}

// nothingSpent is that an owner's ledger knows of no dataset yet, and so of no reservation.
func (v *village) nothingSpent(i int) {
	l, err := ledger.Open(v.t.Context(), v.d.Owner(i, "ledger.db"))
	if err != nil {
		v.t.Error(err)
		return
	}
	defer l.Close()
	if known, err := l.Datasets(v.t.Context()); err != nil || len(known) > 0 {
		v.t.Errorf("owner %d: its ledger knows %d datasets: %v", i+1, len(known), err)
	}
}

func (v *village) all() (owners []int) {
	for i := range v.d.Plan.Owners {
		owners = append(owners, i)
	}
	return owners
}

// Owners die at every named place and by kill -9, one is stopped for a while, the hub is killed: all finish, and nothing is wrong.
func TestFaults(t *testing.T) {
	t.Parallel()
	n, rounds, crashes, hubs := 4, 24, 2, 1
	if *long {
		n, rounds, crashes, hubs = 8, 300, 13, 6
	}
	v := newVillage(t, fmt.Sprintf("owners: %d, rows: %d, schedule: edges, edges: 2, rounds: %d, seed: 5", n, 4000/n, rounds), 2*time.Second)
	v.startHub()
	src := rand.New(rand.NewPCG(7, 7))
	points := []string{"charged", "torn", "journaled", "published", "decided", "mixed"}
	plans := make([][]string, n) // of each owner, where its lives end
	for i := range plans {
		for k := range crashes {
			plans[i] = append(plans[i], fmt.Sprintf("%s:%d", points[(i+k)%len(points)], 1+src.IntN(max(2, rounds/2/crashes))))
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	lives, running := 0, make([]*exec.Cmd, n)
	for i := range n {
		all.Go(func() {
			k := v.live(i, func(life int) string {
				if life < len(plans[i]) {
					return plans[i][life]
				}
				return ""
			}, func(c *exec.Cmd) {
				mu.Lock()
				running[i] = c
				mu.Unlock()
			})
			mu.Lock()
			lives += k
			running[i] = nil
			mu.Unlock()
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	signal := func(s syscall.Signal) (*exec.Cmd, bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, i := range src.Perm(n) {
			if c := running[i]; c != nil {
				return c, c.Process.Signal(s) == nil
			}
		}
		return nil, false
	}
	// Outside: kill -9, a stop of longer than a peer waits, and the hub.
	for k := 0; k < max(hubs, crashes); k++ {
		select {
		case <-done:
		case <-time.After(time.Duration(500+src.IntN(1000)) * time.Millisecond):
		}
		signal(syscall.SIGKILL)
		if k == 0 {
			if c, ok := signal(syscall.SIGSTOP); ok {
				time.AfterFunc(2500*time.Millisecond, func() { c.Process.Signal(syscall.SIGCONT) })
			}
		}
		if k < hubs {
			v.killHub()
			time.Sleep(300 * time.Millisecond)
			v.startHub()
		}
	}
	<-done
	t.Logf("%d owners, %d rounds, %d lives", n, rounds, lives)
	if lives <= n {
		t.Errorf("%d lives of %d owners: nobody was hurt", lives, n)
	}
	v.check(v.all()...)
}

// Owners are cut off from the hub, longer than their peers wait: these go on among each other, those stand still and then adopt what was decided.
// In the long form they are in network namespaces of their own, which takes root, and again behind a relay, as in the short form.
func TestPartition(t *testing.T) {
	t.Parallel()
	t.Run("relay", func(t *testing.T) { partition(t, false) })
	if *long {
		t.Run("namespace", func(t *testing.T) { partition(t, true) })
	}
}

func partition(t *testing.T, namespaces bool) {
	n, away, cuts, lasts := 4, 1, 1, 3*time.Second
	if *long {
		n, away, cuts, lasts = 7, 2, 2, 8*time.Second
	}
	v := newVillage(t, fmt.Sprintf("owners: %d, rows: %d, schedule: edges, edges: 2, rounds: 120, seed: 3", n, 4000/n), 500*time.Millisecond)
	cut := make([]interface{ Cut(bool) }, away)
	if namespaces {
		v.away = map[int]*space{}
		for i := range away {
			v.away[i] = newSpace(t, i)
			cut[i] = v.away[i]
		}
	}
	v.startHub()
	if !namespaces {
		v.ways = map[int]*relay.Way{}
		for i := range away {
			v.ways[i] = relay.New(t, v.at())
			cut[i] = v.ways[i]
		}
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { v.live(i, func(int) string { return "" }, nil) })
	}
	activations := func() (cut, others int) {
		for i := range n {
			st, err := party.ReadStatus(v.d.Owner(i, "part"))
			switch {
			case err != nil: // not begun
			case i < away:
				cut += st.Done
			default:
				others += st.Done
			}
		}
		return cut, others
	}
	for k := range cuts {
		needs.Until(t, "an activation", func() bool { cut, _ := activations(); return cut > 4*k })
		for _, way := range cut {
			way.Cut(true)
		}
		time.Sleep(lasts / 10) // what was on its way
		before, others := activations()
		given := v.givenUp(away, n)
		time.Sleep(lasts)
		if now, _ := activations(); now > before+away {
			t.Errorf("owners that were cut off took %d activations", now-before)
		}
		needs.Until(t, "the others to go on", func() bool { _, now := activations(); return now > others })
		needs.Until(t, "the others to give an exchange up", func() bool { return v.givenUp(away, n) > given })
		for _, way := range cut {
			way.Cut(false)
		}
	}
	all.Wait()
	v.check(v.all()...)
	aborted := v.givenUp(0, away)
	if aborted == 0 {
		t.Error("no exchange of the owners that were cut off was given up")
	}
	t.Logf("%d activations of the owners that were cut off had an exchange that was given up", aborted)
}

// givenUp counts the activations of the owners from one to before another, at work or not, in which an exchange was given up.
func (v *village) givenUp(from, to int) (activations int) {
	for i := from; i < to; i++ {
		r, err := runlog.ReadJournal(v.journal(i))
		if err != nil {
			continue // not begun
		}
		for act, err := r.Next(); err == nil; act, err = r.Next() {
			if slices.Contains(act.Committed, false) {
				activations++
			}
		}
		r.Close()
	}
	return activations
}

// An owner dies at each point of its end: started again, it ends, and is settled once.
func TestEndAgain(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 2, rows: 2000, schedule: all, rounds: 2", time.Second)
	v.startHub()
	plans := [][]string{{"trained:1", "shared:1", "modelled:1", "finished:1"}, {"settled:1"}}
	var both sync.WaitGroup
	for i, plan := range plans {
		both.Go(func() {
			if lives := v.live(i, func(life int) string { return append(plan, "")[life] }, nil); lives != len(plan)+1 {
				t.Errorf("owner %d: %d lives", i+1, lives)
			}
		})
	}
	both.Wait()
	v.check(v.all()...)

	// What run.json says otherwise than the owners agreed on, or than its journal, is found.
	dir := v.d.Owner(0, "part")
	broken := func() (names []string) {
		t.Helper()
		found, err := party.Verify(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if !f.Holds {
				names = append(names, f.What)
			}
		}
		return names
	}
	path := filepath.Join(dir, runlog.InfoFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, what string }{
		{`"clip": `, `"clip": 1`, "agreed"},
		{`"lipschitz": `, `"lipschitz": 1`, "agreed"},
		{`"rows": 4000`, `"rows": 4001`, "agreed"},
		{`rows is 2000;`, `rows is 20000;`, "agreed"},
		{`"network": "`, `"network": "0`, "agreed"},
		{`"rows": 2000`, `"rows": 2001`, "agreed"},
		{`"outcome": "done"`, `"outcome": "diverged"`, "outcome"},
		{`"outcome": "done"`, `"outcome": "converged"`, "outcome"},
		{`"owners": 2`, `"owners": 3`, "outcome"},
	} {
		text := bytes.Replace(good, []byte(c.old), []byte(c.new), 1)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if names := broken(); bytes.Equal(text, good) || !slices.Contains(names, c.what) {
			t.Errorf("%s instead of %s: found %v", c.new, c.old, names)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if names := broken(); names != nil {
		t.Errorf("the part as it was: found %v", names)
	}

	// What was published and does not follow from what was paid for is found.
	past, err := runlog.ReadJournal(v.journal(0))
	if err != nil {
		t.Fatal(err)
	}
	defer past.Close()
	if err := os.Remove(v.journal(0)); err != nil {
		t.Fatal(err)
	}
	other, err := runlog.CreateJournal(v.journal(0), past.Head)
	if err != nil {
		t.Fatal(err)
	}
	for act, err := past.Next(); err != io.EOF; act, err = past.Next() {
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range act.Batches {
			if err := errors.Join(other.Charge(b.Event), other.Release(b.Answers)); err != nil {
				t.Fatal(err)
			}
		}
		act.Sent[0] += float64(act.Round) // of the second activation
		if err := other.Send(act.Round, act.Sent); err != nil {
			t.Fatal(err)
		}
		other.Done(act.Round, act.Committed, act.State)
	}
	if err := errors.Join(other.Flush(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if names := broken(); !slices.Equal(names, []string{"files", "replay"}) {
		t.Errorf("another vector in the journal: found %v", names)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from)), os.Chmod(filepath.Join(to, "credentials.json"), 0o600), os.Chmod(filepath.Join(to, "owner.key"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// An owner whose directory and ledger are put back from a copy releases nothing more; the others finish without it.
func TestRestored(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 3, rows: 1300, graph: path, schedule: all, rounds: 8", time.Second)
	v.more = []string{"--join", "30s"} // so long the others wait for its model at the end
	v.startHub()
	var others sync.WaitGroup
	for _, i := range []int{0, 2} {
		others.Go(func() { v.live(i, func(int) string { return "" }, nil) })
	}
	home := filepath.Dir(v.d.Owner(1, "part"))
	for _, crash := range []string{"mixed:2", "mixed:3"} {
		c, stderr := v.owner(1, crash)
		if err := c.Run(); err == nil || c.ProcessState.Exited() {
			t.Fatalf("%v\n%s", err, stderr)
		}
		if crash == "mixed:2" {
			copyTree(t, home, home+".old")
		}
	}
	copyTree(t, home, home+".new")
	copyTree(t, home+".old", home)
	c, stderr := v.owner(1, "")
	if c.Run(); c.ProcessState.ExitCode() != exitBudget || !strings.Contains(stderr.String(), transport.ErrBehind.Error()) {
		t.Errorf("a restored journal: %v\n%s", c.ProcessState, stderr)
	}
	// The journal alone, in a block of activations that the ledger recorded ahead: the hub finds out.
	copyTree(t, home+".new", home)
	old, err := os.ReadFile(filepath.Join(home+".old", "part", runlog.JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(v.journal(1), old, 0o600); err != nil {
		t.Fatal(err)
	}
	c, stderr = v.owner(1, "")
	if c.Run(); c.ProcessState.ExitCode() != exitBudget || !strings.Contains(stderr.String(), transport.ErrBehind.Error()) {
		t.Errorf("a restored journal beside the newest ledger: %v\n%s", c.ProcessState, stderr)
	}
	others.Wait()
	v.check(0, 2)
}

// A disk that is full stops an owner, whose peers go on; with room again it goes on, too.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 2, rows: 2000, schedule: all, rounds: 60", time.Second)
	v.startHub()
	c, stderr := v.owner(0, "")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var other sync.WaitGroup
	other.Go(func() { v.live(1, func(int) string { return "" }, nil) })
	size := uint64(0)
	needs.Until(t, "some activations", func() bool {
		if st, err := os.Stat(v.journal(0)); err == nil {
			size = uint64(st.Size())
		}
		return size >= 1000
	})
	if err := unix.Prlimit(c.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size + 100, Max: 1 << 40}, nil); err != nil {
		t.Fatal(err)
	}
	if c.Wait(); c.ProcessState.ExitCode() != exitFailed {
		t.Errorf("a full disk: %v\n%s", c.ProcessState, stderr)
	} else {
		t.Logf("a full disk: %s", stderr)
	}
	v.live(0, func(int) string { return "" }, nil)
	other.Wait()
	v.check(v.all()...)
}

// An owner stores what it likes, by its own credentials, while all train: the hub refuses it and says so to everybody; the others
// finish, and the model is theirs.
func TestD4HonestOwnersFinish(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 3, rows: 1300, schedule: all, rounds: 12", time.Second)
	v.more = []string{"--join", "30s"} // so long the others wait for its model at the end
	v.startHub()
	credentials := v.d.Owner(2, "credentials.json")
	c, err := transport.ReadCredentials(credentials)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	said := make([]*bytes.Buffer, 3)
	var third *exec.Cmd
	for i := range 3 {
		c, stderr := v.owner(i, "")
		if said[i] = stderr; i == 2 {
			third = c
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := c.Wait(); (err == nil) != (i < 2) {
				t.Errorf("owner %d: %v\n%s", i+1, err, stderr)
			}
		})
	}
	needs.Until(t, "the training to begin", func() bool {
		st, err := party.ReadStatus(v.d.Owner(2, "part"))
		return err == nil && st.Done > 0
	})
	// Its process stands still until its storage is full: else a fast machine trains to the end before.
	if err := third.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer third.Process.Signal(unix.SIGCONT)
	flooder, err := transport.Dial(t.Context(), c, v.url)
	if err != nil {
		t.Fatal(err)
	}
	defer flooder.Close()
	for _, key := range []string{"rel.2.0.x%d", "dec.x%d.0.2", "dec.x%d.1.2"} {
		for k := 0; err == nil && k < 10_000; k++ {
			_, err = flooder.Put(t.Context(), fmt.Sprintf(key, k), []byte("C"))
		}
		if !errors.Is(err, transport.ErrFull) {
			t.Fatalf("%s: %v", key, err)
		}
		err = nil
	}
	full := "storage full, by owner 3: "
	status := func() string {
		out, err := sotto(t, "net", "status", v.d.Owner(0, "part"), "--credentials", v.d.Owner(0, "credentials.json"), "--hub", v.url).Output()
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	needs.Until(t, "net status to name the owner", func() bool { return strings.Contains(status(), full) })
	if err := third.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	v.check(0, 1)
	if s := status(); !strings.Contains(s, "owner 1: done\nowner 2: done\nowner 3: training\n") || !strings.Contains(s, full) {
		t.Errorf("status: %s", s)
	}
	for i := range 2 {
		if !strings.Contains(said[i].String(), full) {
			t.Errorf("owner %d says %s", i+1, said[i])
		}
	}
	v.killHub()
	if !strings.Contains(v.said.String(), full) || !strings.Contains(v.said.String(), "storage full, by owner 1 or owner 3: ") {
		t.Errorf("the hub says %s", v.said)
	}
}

// An owner that never comes: the others say so, and have spent nothing.
func TestNobodyComes(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 3, rows: 1300, schedule: all, rounds: 4", time.Second)
	v.startHub()
	v.more = []string{"--join", "15s"}
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			c, stderr := v.owner(i, "")
			if c.Run(); c.ProcessState.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "owner 3; no row was accessed") {
				t.Errorf("%v\n%s", c.ProcessState, stderr)
			}
			v.nothingSpent(i)
		})
	}
	both.Wait()
	status := func() string {
		out, err := sotto(t, "net", "status", v.d.Owner(0, "part"), "--credentials", v.d.Owner(0, "credentials.json"), "--hub", v.url).Output()
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	if s := status(); !strings.Contains(s, ": waiting for all owners\n") || !strings.HasSuffix(s, "owner 1: has come\nowner 2: has come\nowner 3: not seen\n") {
		t.Errorf("status: %s", s)
	}
	// It comes after all.
	v.more = nil
	for i := range 3 {
		both.Go(func() { v.live(i, func(int) string { return "" }, nil) })
	}
	both.Wait()
	v.check(v.all()...)
	if s := status(); !strings.HasSuffix(s, "owner 1: done\nowner 2: done\nowner 3: done\n") {
		t.Errorf("status: %s", s)
	}
}
