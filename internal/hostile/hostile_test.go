//go:build linux

// Package hostile is a test: it gives every reader of files that others may have written many thousands of
// broken and hostile files. A child process, which is the test binary itself, reads them with at most 256 MB of
// memory; the parent ends it when one input takes more than 5 s of processor time. A panic, a crash, a lack of
// memory, and an error that shows a cell of the data are failures. Each is repeated by the command that it prints.
package hostile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
)

const (
	memory      = 256 << 20       // of a child: its heap, its stacks and all other private memory that may be written
	threadStack = 256 << 10       // of each thread
	cpu         = 5 * time.Second // of processor time for one input
	wall        = 5 * time.Minute // without the next input; only a reader that waits forever takes as long
	faults      = 3               // of a reader, after which it gets no more inputs
)

var (
	inputs = flag.Int("inputs", 40_000, "inputs of all readers together")
	seed   = flag.Uint64("seed", 1, "of all mutations")
	only   = flag.Int("input", -1, "the one input to read, of each reader that -run names")
)

// childOf, in the environment of a child, is what it reads: reader, seed, first input and the one after the last.
const childOf = "SOTTO_HOSTILE_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childOf); what != "" {
		child(what)
	}
	os.Exit(needs.Home(m))
}

// TestHostile gives each reader its share of the inputs.
func TestHostile(t *testing.T) {
	race.Skip(t)
	all := 0
	for _, r := range readers {
		all += r.share
	}
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			first, end := 0, 1+*inputs*r.share/all
			if *only >= 0 {
				first, end = *only, *only+1
			}
			found := 0
			for first < end {
				at, err := watch(t, r.name, first, end, cpu)
				if err == nil {
					break
				}
				t.Errorf("%v\nIt is repeated by: go test ./internal/hostile -run '^TestHostile$/^%s$' -seed %d -input %d", err, r.name, *seed, at)
				if found++; found == faults {
					t.Fatalf("no more inputs after %d faults", faults)
				}
				first = at + 1
			}
		})
	}
}

// TestLimits: each kind of failure is noticed, with the input that caused it.
func TestLimits(t *testing.T) {
	race.Skip(t)
	for _, c := range []struct{ name, want string }{
		{"memory", "memory"},
		{"time", "more than 200ms of processor time"},
		{"panic", "planted panic"},
		{"goroutine", "planted panic"},
		{"leak", "shows a cell"},
		{"exit", "exit status 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at, err := watch(t, c.name, 0, 5, 200*time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), c.want) || at != 3 {
				t.Errorf("input %d: %v; want input 3 and %q", at, err, c.want)
			}
		})
	}
	if at, err := watch(t, "nothing", 0, 5, 200*time.Millisecond); err != nil {
		t.Errorf("input %d: %v", at, err)
	}
}

// planted are readers with faults.
var planted = map[string]func() error{
	"memory": func() error {
		b := make([]byte, memory+1)
		b[len(b)-1] = 1
		return fmt.Errorf("%d bytes", len(b))
	},
	"time": func() error {
		for i := 0; ; i++ {
			if i < 0 {
				return nil
			}
		}
	},
	"panic": func() error { panic("planted panic") },
	"goroutine": func() error {
		go panic("planted panic")
		select {}
	},
	"leak":    func() error { return fmt.Errorf("row 1: found %s", secret) },
	"exit":    func() error { os.Exit(7); return nil },
	"nothing": func() error { return nil },
}

// watch runs a child from the first input to the one before end. It returns the input at which the child failed.
func watch(t *testing.T, reader string, first, end int, limit time.Duration) (at int, err error) {
	t.Helper()
	c := exec.Command(os.Args[0])
	home := t.TempDir()
	c.Dir = home
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d", childOf, reader, *seed, first, end), "SOTTO_HOSTILE_FILES="+files(t),
		"HOME="+home, "XDG_DATA_HOME="+filepath.Join(home, "data"), "XDG_STATE_HOME="+filepath.Join(home, "state"), "TMPDIR="+home, "MALLOC_ARENA_MAX=1")
	var said bytes.Buffer
	c.Stderr = &said
	begun, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var input atomic.Int64
	input.Store(int64(first) - 1)
	ended := make(chan struct{})
	slow := make(chan error, 1)
	go func() { slow <- ends(c, &input, ended, limit) }()
	for n := make([]byte, 8); ; {
		if _, err := io.ReadFull(begun, n); err != nil {
			break
		}
		input.Store(int64(binary.LittleEndian.Uint64(n)))
	}
	err = c.Wait()
	close(ended)
	took := <-slow
	use := c.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%d inputs, %v of processor time, at most %d MB resident", int(input.Load())+1-first, (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Round(time.Millisecond), use.Maxrss>>10)
	at = int(input.Load())
	switch {
	case took != nil:
		err = took
	case err == nil && at != end: // its last word
		err = errors.New("the child ended early")
	}
	if err != nil {
		text := said.String()
		if len(text) > 6000 {
			text = text[:6000]
		}
		return at, fmt.Errorf("reader %s, seed %d, input %d: %w\n%s", reader, *seed, at, err, text)
	}
	return at, nil
}

// ends ends a child that spends more than limit on one input, and says so.
func ends(c *exec.Cmd, input *atomic.Int64, ended <-chan struct{}, limit time.Duration) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, spent, since := int64(-2), time.Duration(0), time.Now()
	for {
		select {
		case <-ended:
			return nil
		case <-tick.C:
		}
		now := processorTime(c.Process.Pid)
		if n := input.Load(); n != last {
			last, spent, since = n, now, time.Now()
		}
		switch {
		case last < 0: // it makes the corpus
		case now-spent > limit:
			c.Process.Kill()
			return fmt.Errorf("more than %v of processor time", limit)
		case time.Since(since) > wall:
			c.Process.Signal(syscall.SIGQUIT) // prints where it waits
			return fmt.Errorf("no end within %v", wall)
		}
	}
}

// processorTime is what a process has used; 0 if it has ended.
func processorTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	all := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(all) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(all[11])
	system, _ := strconv.Atoi(all[12])
	return time.Duration(user+system) * (time.Second / 100) // in ticks, of which Linux counts 100 a second
}

// child reads inputs in a process of its own, and ends it.
func child(what string) {
	debug.SetTraceback("single")
	// The stacks of threads count, too; a program that was started under a limit gives each no more.
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		panic(err)
	}
	if stack.Cur != threadStack {
		stack.Cur = threadStack
		err := unix.Setrlimit(unix.RLIMIT_STACK, &stack)
		if err == nil {
			err = unix.Exec("/proc/self/exe", os.Args, os.Environ())
		}
		panic(err)
	}
	// Linux counts private memory that may be written, so neither the program nor mapped files. The collector tries to
	// remain below its own limit, and 70 MB are not the heap's; what is live above the limit of the system ends the process.
	debug.SetMemoryLimit(memory * 5 / 8)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}); err != nil {
		panic(err)
	}
	var name string
	var seed uint64
	var first, end int
	if _, err := fmt.Sscan(what, &name, &seed, &first, &end); err != nil {
		panic(err)
	}
	begin := func(n int) { os.Stdout.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	if f := planted[name]; f != nil {
		for n := first; n < end; n++ {
			begin(n)
			if n == 3 {
				check(f())
			}
			within()
		}
		begin(end)
		os.Exit(0)
	}
	dir, err := os.MkdirTemp(".", "files")
	if err != nil {
		panic(err)
	}
	for _, r := range readers {
		if r.name != name {
			continue
		}
		corpus := r.corpus()
		w := writer{dir: dir}
		for n := first; n < end; n++ {
			begin(n)
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			w.put(r.input(rng, corpus, n))
			check(r.read(dir, rng))
			within()
		}
	}
	begin(end)
	os.Exit(0)
}

// within ends the child if the Go runtime ever mapped more memory than it may have. The limit of the system alone does not find
// that at once: memory within an address range that is already reserved passes it, and only the next mapping fails.
func within() {
	mapped := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(mapped)
	if n := mapped[0].Value.Uint64(); n > memory {
		fmt.Fprintf(os.Stderr, "an input took the memory to %d bytes, of %d that are allowed\n", n, memory)
		os.Exit(1)
	}
}

// Cells of the corpora, which no error may show.
const (
	secret = "SECRET-4711"
	number = "471147.1147"
)

// check ends the child if an error shows a cell.
func check(err error) {
	if err == nil {
		return
	}
	text := err.Error()
	for _, cell := range []string{"SECRET", "471147.1", "4.711471"} {
		if strings.Contains(text, cell) {
			fmt.Fprintf(os.Stderr, "an error shows a cell: %s\n", text)
			os.Exit(1)
		}
	}
}

// A writer writes the files of one input after the other.
type writer struct {
	dir string
	was map[string][]byte
}

func (w *writer) put(s sample) {
	now := map[string][]byte{}
	for _, f := range s {
		now[f.name] = f.content
		if was, ok := w.was[f.name]; ok && bytes.Equal(was, f.content) {
			continue
		}
		path := filepath.Join(w.dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			panic(err)
		}
		if err := os.WriteFile(path, f.content, 0o600); err != nil {
			panic(err)
		}
	}
	for name := range w.was {
		if _, ok := now[name]; !ok {
			os.Remove(filepath.Join(w.dir, name))
		}
	}
	w.was = now
}
