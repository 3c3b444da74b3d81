package shards_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/shards"
)

const sgd = "method: {name: sgd, steps: 40, batch: 100}"

// A site is an owner's directory: a table, whole and in parts, a spec and a key.
type site struct {
	t     testing.TB
	dir   string
	parts []string
	key   *shards.Key
}

// newSite cuts the clinic's table behind these rows.
func newSite(t testing.TB, cuts ...int) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	s.must(os.CopyFS(s.dir, os.DirFS("../../examples/clinic")))
	b, err := os.ReadFile(s.file("patients.csv"))
	s.must(err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	head, rows := lines[0], lines[1:]
	if len(rows[len(rows)-1]) == 0 {
		rows = rows[:len(rows)-1]
	}
	from := 0
	for i, to := range append(cuts, len(rows)) {
		part := s.file(fmt.Sprintf("part%d.csv", i+1))
		s.must(os.WriteFile(part, slices.Concat(head, bytes.Join(rows[from:to], nil)), 0o600))
		s.parts, from = append(s.parts, part), to
	}
	s.must(os.WriteFile(s.file("key"), []byte("the key of a test, of 32 bytes.."), 0o600))
	s.key, err = shards.ReadKey(s.file("key"))
	s.must(err)
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

// spec reads the spec of a run in a directory of that name.
func (s *site) spec(out, more string) *run.Spec {
	s.t.Helper()
	adjacency := "add-or-remove"
	if strings.Contains(more, "replace-one") {
		adjacency = "replace-one"
	}
	model := "logistic"
	numeric := strings.Contains(more, "adassp") // which is for a label of numbers
	if numeric {
		model = "linear"
	}
	text := fmt.Sprintf("data: patients.csv\ntest: heldout.csv\nschema: schema.yaml\nmodel: {name: %s}\nprivacy: {epsilon: 1, delta: 1e-6, adjacency: %s}\nledger: %s.db\nout: %s\n%s\n",
		model, adjacency, out, out, strings.ReplaceAll(more, "replace-one\n", ""))
	file := s.file(out + ".yaml")
	s.must(os.WriteFile(file, []byte(text), 0o600))
	spec, err := run.LoadSpec(file, nil)
	s.must(err)
	if numeric {
		spec.Label = "systolic"
	}
	return spec
}

func (s *site) job(out, more string) *run.Job {
	s.t.Helper()
	job, err := run.Prepare(s.spec(out, more))
	s.must(err)
	return job
}

// listen opens a coordinator.
func (s *site) listen() *shards.Coordinator {
	s.t.Helper()
	c, err := shards.Listen("nats://127.0.0.1:0", len(s.parts), s.key, nil)
	s.must(err)
	s.t.Cleanup(func() { c.Close(false) })
	return c
}

// ask lets workers read without a run.
func (s *site) ask(c *shards.Coordinator) {
	s.t.Helper()
	var gate access.Gate
	r, err := gate.Request(s.t.Context())
	s.must(err)
	c.Request(r)
}

// worker starts one with a shard; stop ends it and waits.
func (s *site) worker(url string, shard int, data string) (stop func(), ended chan error) {
	spec := s.spec(fmt.Sprintf("worker%d", shard), "")
	return s.working(shards.Options{Spec: spec, Key: s.key, URL: url, Index: shard, Count: len(s.parts), Cores: 1}, data)
}

func (s *site) working(o shards.Options, data string) (stop func(), ended chan error) {
	o.Spec.Data = data
	ctx, cancel := context.WithCancel(s.t.Context())
	ended = make(chan error, 1)
	over := make(chan struct{})
	go func() {
		ended <- shards.Work(ctx, o)
		close(over)
	}()
	stop = func() { cancel(); <-over }
	s.t.Cleanup(stop)
	return stop, ended
}

func (s *site) workers(url string) {
	for i, part := range s.parts {
		s.worker(url, i, part)
	}
}

// same holds the record and the model of two runs against each other.
func (s *site) same(name string, a, b string) {
	s.t.Helper()
	for _, file := range []string{runlog.ReleasesFile, runlog.StepsFile} {
		x, err := os.ReadFile(filepath.Join(s.file(a), file))
		s.must(err)
		y, err := os.ReadFile(filepath.Join(s.file(b), file))
		s.must(err)
		if !bytes.Equal(x, y) || len(x) == 0 && file == runlog.ReleasesFile {
			s.t.Errorf("%s: %s has %d bytes of the table, %d of shards, and they differ", name, file, len(x), len(y))
		}
	}
	var w [2]struct{ W json.RawMessage }
	for i, dir := range []string{a, b} {
		text, err := os.ReadFile(filepath.Join(s.file(dir), runlog.ModelFile))
		s.must(err)
		s.must(json.Unmarshal(text, &w[i]))
	}
	if len(w[0].W) < 10 || !bytes.Equal(w[0].W, w[1].W) {
		s.t.Errorf("%s: parameters %s of the table, %s of shards", name, w[0].W, w[1].W)
	}
}

// hooked is a carrier that does something before it asks.
type hooked struct {
	*shards.Coordinator
	asked int
	hook  func(n int, questions [][]byte)
}

func (h *hooked) Ask(ctx context.Context, questions [][]byte, take func(int, []byte) error) error {
	h.asked++
	h.hook(h.asked, questions)
	return h.Coordinator.Ask(ctx, questions, take)
}

// Every method either trains on shards to the same bits as on the table in one piece, or is refused before anything is written.
func TestEveryMethodOnShards(t *testing.T) {
	race.Skip(t)
	s := newSite(t, 700, 701, 2900)
	c := s.listen()
	s.workers(c.URL)
	refused := []string{"outpert", "outpert-sgd", "amp", "optimum", "adassp"} // they do not ask for sums of rows alone
	for _, e := range method.Registry() {
		more := "lab: true\nseed: 5\nmethod: {name: " + e.Name + "}"
		if e.Name == method.Default {
			more = "lab: true\nseed: 5\nmethod: {name: auto, center: none, last: none}"
		}
		if e.Name == "optimum" {
			continue // without a budget, see TestRefusals
		}
		if slices.Contains(refused, e.Name) {
			more = "replace-one\n" + more
		}
		env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}}
		_, _, err := run.Fit(t.Context(), s.job("away-"+e.Name, more), env)
		if !slices.Contains(refused, e.Name) && err != nil {
			t.Fatalf("method %s does not train on shards: %v. One that cannot stands in the list refused of "+
				"TestEveryMethodOnShards, run/shards/shards_test.go", e.Name, err)
		}
		if slices.Contains(refused, e.Name) {
			s.refused(e.Name, err, "method.name: found", "away-"+e.Name)
			continue
		}
		env.Rows = nil
		_, _, err = run.Fit(t.Context(), s.job("here-"+e.Name, more), env)
		s.must(err)
		s.same(e.Name, "here-"+e.Name, "away-"+e.Name)
	}
}

func (s *site) refused(name string, err error, text, out string) {
	s.t.Helper()
	var input *run.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), text) {
		s.t.Errorf("%s: found error %v; want one of input that says %q", name, err, text)
	}
	if _, err := os.Stat(s.file(out)); !errors.Is(err, os.ErrNotExist) {
		s.t.Errorf("%s: %s is there", name, out)
	}
}

// Workers die and come back, come late, have spares; a run whose coordinator is stopped goes on. The record is that of an unbroken run on
// the table. At the end all workers go home.
func TestShardsThatFail(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1500)
	const more = "lab: true\nseed: 5\n" + sgd
	_, _, err := run.Fit(t.Context(), s.job("here", more), run.Env{Workers: 1})
	s.must(err)

	c := s.listen()
	stop, ended := s.worker(c.URL, 0, s.parts[0])
	ctx, interrupt := context.WithCancel(t.Context())
	var late sync.Once
	h := &hooked{Coordinator: c, hook: func(n int, _ [][]byte) {
		late.Do(func() { s.worker(c.URL, 1, s.parts[1]) })
		switch n {
		case 6:
			stop()
			stop, ended = s.worker(c.URL, 0, s.parts[0])
		case 11:
			s.worker(c.URL, 1, s.parts[1]) // a spare
		case 26:
			interrupt()
		}
	}}
	env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: h}}
	_, dir, err := run.Fit(ctx, s.job("away", more), env)
	if !errors.Is(err, run.ErrInterrupted) {
		t.Fatalf("found %v, want an interrupted run", err)
	}
	if _, err := run.Resume(t.Context(), dir, run.Env{}); err == nil || !strings.Contains(err.Error(), "--workers") {
		t.Errorf("resumed without workers: %v", err)
	}

	three, err := shards.Listen("127.0.0.1:0", 3, s.key, nil)
	s.must(err)
	env.Rows = &run.Shards{Secret: s.key.Secret, Carrier: three}
	_, err = run.Resume(t.Context(), dir, env)
	three.Close(false)
	if err == nil || !strings.Contains(err.Error(), "its rows are in 2 shards; --key names 3 shards") {
		t.Errorf("resumed with another number of shards: %v", err)
	}

	// Another coordinator at the same address, as a process that was started again; its workers are still there.
	url := c.URL
	c.Close(false)
	c, err = shards.Listen(url, 2, s.key, nil)
	s.must(err)
	env.Rows = &run.Shards{Secret: s.key.Secret, Carrier: c}
	_, err = run.Resume(t.Context(), dir, env)
	s.must(err)
	c.Close(true)
	s.must(<-ended)
	s.same("through failures", "here", "away")
}

// newMany is a site with the clinic's table in so many parts.
func newMany(t testing.TB, parts int) *site {
	var cuts []int
	for i := 1; i < parts; i++ {
		cuts = append(cuts, i*4000/parts)
	}
	return newSite(t, cuts...)
}

// Of many workers three die after they have computed a sum and before they send it, and others take their place; a spare comes. The record is
// that of the table in one piece.
func TestManyShardsThatFail(t *testing.T) {
	t.Parallel()
	s := newMany(t, 22)
	const more = "lab: true\nseed: 5\n" + sgd
	_, _, err := run.Fit(t.Context(), s.job("here", more), run.Env{Workers: 1})
	s.must(err)

	c := s.listen()
	dies := map[int]int{0: 6, 4: 11, 21: 17} // shard, and the question at which it does
	var mu sync.Mutex
	now, died := 0, map[int]bool{}
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
	h := &hooked{Coordinator: c, hook: func(n int, _ [][]byte) {
		mu.Lock()
		now = n
		mu.Unlock()
		if n == 23 {
			s.worker(c.URL, 3, s.parts[3]) // a spare
		}
	}}
	_, _, err = run.Fit(t.Context(), s.job("away", more), run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: h}})
	s.must(err)
	s.same("through failures", "here", "away")
	mu.Lock()
	defer mu.Unlock()
	if len(died) != 3 {
		t.Errorf("workers %v died", died)
	}
}

// A coordinator of an earlier version tells its many workers, by a byte after its request, to listen for each other. A worker of this version says
// that it listens nowhere, and that coordinator asks it directly.
func TestEarlierCoordinator(t *testing.T) {
	t.Parallel()
	s := newMany(t, 16)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	defer l.Close()
	s.worker(l.Addr().String(), 6, s.parts[6])
	conn, err := l.Accept()
	s.must(err)
	defer conn.Close()
	if index, said, err := shards.Greet(conn, s.key, len(s.parts), 1); index != 6 || len(said) > 0 || err != nil {
		t.Errorf("the worker says shard %d and %q, error %v", index, said, err)
	}
}

// While a worker does not answer, another one with the same shard gets the same bytes, and its answer counts.
func TestStraggler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const more = "lab: true\nseed: 5\nmethod: {name: sgd, steps: 3, batch: 100}"
	_, _, err := run.Fit(t.Context(), s.job("here", more), run.Env{Workers: 1})
	s.must(err)
	notices := make(chan string, 9)
	c, err := shards.Listen("127.0.0.1:0", 1, s.key, func(text string) { notices <- text })
	s.must(err)
	defer c.Close(false)
	var stop func()
	var third []byte // the question
	heard, told := make(chan []byte, 1), make(chan string, 1)
	h := &hooked{Coordinator: c, hook: func(n int, questions [][]byte) {
		if n != 3 {
			return
		}
		stop()
		third = bytes.Clone(questions[0])
		go func() {
			heard <- shards.Silent(t.Context(), shards.Options{Key: s.key, URL: c.URL, Index: 0, Count: 1})
			told <- <-notices
			s.worker(c.URL, 0, s.parts[0])
		}()
	}}
	stop, _ = s.worker(c.URL, 0, s.parts[0])
	env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: h}}
	_, _, err = run.Fit(t.Context(), s.job("away", more), env)
	s.must(err)
	s.same("straggler", "here", "away")
	if q := <-heard; len(q) == 0 || !bytes.Equal(q, third) {
		t.Errorf("the silent worker heard %d bytes; the question has %d", len(q), len(third))
	}
	if text := <-told; text != "shard 1 of 1 is slow to answer" {
		t.Errorf("the terminal is told: %s", text)
	}

	// One that is not there is told, too.
	ctx, stopWaiting := context.WithCancel(t.Context())
	defer stopWaiting()
	empty, err := shards.Listen("127.0.0.1:0", 1, s.key, func(text string) {
		if text == "shard 1 of 1 is not there; waiting for its worker" {
			stopWaiting()
		}
	})
	s.must(err)
	defer empty.Close(false)
	if err := empty.Ask(ctx, [][]byte{{1}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody is there: %v", err)
	}
}

// A worker whose coordinator is not there says whom it waits for.
func TestNoCoordinator(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.listen()
	c.Close(false) // a port where nobody listens any more
	notices := make(chan string, 9)
	s.working(shards.Options{Spec: s.spec("worker", ""), Key: s.key, URL: c.URL, Index: 0, Count: 1, Notice: func(text string) { notices <- text }}, s.parts[0])
	if text := <-notices; text != "waiting for the coordinator at "+c.URL {
		t.Errorf("the terminal is told: %s", text)
	}
}

// A run with a budget: it is charged as a local one, verify finds its record to hold, and after a stop it goes on with
// the same rows alone.
func TestPaidRunOnShards(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1000)
	c := s.listen()
	stop, _ := s.worker(c.URL, 0, s.parts[0])
	s.worker(c.URL, 1, s.parts[1])
	ctx, interrupt := context.WithCancel(t.Context())
	h := &hooked{Coordinator: c, hook: func(n int, _ [][]byte) {
		if n == 16 {
			interrupt()
		}
	}}
	env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: h}}
	info, dir, err := run.Fit(ctx, s.job("away", sgd), env)
	if !errors.Is(err, run.ErrInterrupted) {
		t.Fatalf("found %v, want an interrupted run", err)
	}
	if info.Data != "" || info.Shards != 2 {
		t.Errorf("run.json says data %q in %d shards", info.Data, info.Shards)
	}

	// Other rows are not those that the budget was reserved for.
	stop()
	rows, err := os.ReadFile(s.parts[0])
	s.must(err)
	fewer := s.file("fewer.csv")
	s.must(os.WriteFile(fewer, rows[:bytes.LastIndexByte(rows[:len(rows)-1], '\n')+1], 0o600))
	stop, _ = s.worker(c.URL, 0, fewer)
	if _, err := run.Resume(t.Context(), dir, env); err == nil || !strings.Contains(err.Error(), "the workers' rows: is not the table that this run began with") {
		t.Errorf("other rows: %v", err)
	}
	stop()
	s.worker(c.URL, 0, s.parts[0])
	_, err = run.Resume(t.Context(), dir, env)
	s.must(err)
	l, err := ledger.Open(t.Context(), s.file("away.db"))
	s.must(err)
	defer l.Close()
	found, err := run.Verify(t.Context(), dir, l)
	s.must(err)
	for _, f := range found {
		if !f.Holds {
			t.Errorf("%s does not hold: %s", f.What, f.Detail)
		}
	}
}

// A worker with other rows than those of its shard is told so and ends, whether it comes back with them in the middle of a run or is a
// spare. The run waits for the right one.
func TestOtherRowsInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1000)
	notices := make(chan string, 99)
	c, err := shards.Listen("nats://127.0.0.1:0", len(s.parts), s.key, func(text string) { notices <- text })
	s.must(err)
	t.Cleanup(func() { c.Close(false) })
	stop, _ := s.worker(c.URL, 0, s.parts[0])
	s.worker(c.URL, 1, s.parts[1])
	ended := make(chan error, 1)
	var last []byte // question to shard 2
	h := &hooked{Coordinator: c, hook: func(n int, questions [][]byte) {
		switch n {
		case 6:
			stop()
			_, back := s.worker(c.URL, 0, s.parts[1])
			go func() {
				ended <- <-back
				s.worker(c.URL, 0, s.parts[0])
			}()
		case 21:
			_, spare := s.worker(c.URL, 1, s.file("heldout.csv"))
			for len(spare) == 0 && t.Context().Err() == nil { // until it has heard a question
				c.Ask(t.Context(), [][]byte{nil, last}, func(int, []byte) error { return nil })
				time.Sleep(10 * time.Millisecond)
			}
			s.refused("a spare", <-spare, "--shard 2/2: found other rows", "none")
		}
		last = append(last[:0], questions[1]...)
	}}
	env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: h}}
	_, _, err = run.Fit(t.Context(), s.job("away", sgd), env)
	s.must(err)
	s.refused("came back", <-ended, "--shard 1/2: found other rows, or another schema", "none")
	for text := range notices {
		if strings.HasPrefix(text, `shard 1 of 2: its worker is sent away: "found other rows`) {
			break
		}
	}
}

// What cannot be is refused as input, with nothing on disk.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1000)
	c := s.listen()
	env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}}
	fit := func(name, more, want string) {
		_, _, err := run.Fit(t.Context(), s.job(name, more), env)
		s.refused(name, err, want, name)
	}
	_, _, err := run.Fit(t.Context(), s.offJob("off"), env)
	s.refused("off", err, "privacy: found none", "off")

	stop, _ := s.worker(c.URL, 0, s.parts[0])
	other := s.spec("worker", "")
	other.Model.L2 = 0.5
	_, ended := s.working(shards.Options{Spec: other, Key: s.key, URL: c.URL, Index: 1, Count: 2}, s.parts[1])
	ctx, stopWaiting := context.WithCancel(t.Context())
	go func() {
		s.refused("model", <-ended, "--shard 2/2: found another model than the coordinator's", "model")
		stopWaiting() // nobody with the right one comes
	}()
	if _, _, err := run.Fit(ctx, s.job("model", sgd), env); !errors.Is(err, run.ErrNotBegun) {
		t.Errorf("a worker with another model: %v", err)
	}
	_, ended = s.worker(c.URL, 1, s.parts[1])
	ctx, stopWaiting = context.WithCancel(t.Context())
	go func() {
		s.refused("relation", <-ended, "found another adjacency than the coordinator's", "relation")
		stopWaiting()
	}()
	if _, _, err := run.Fit(ctx, s.job("relation", "replace-one\n"+sgd), env); !errors.Is(err, run.ErrNotBegun) {
		t.Errorf("a worker with another adjacency: %v", err)
	}
	text, err := os.ReadFile(s.file("schema.yaml"))
	s.must(err)
	s.must(os.WriteFile(s.file("other.yaml"), bytes.Replace(text, []byte("max: 100"), []byte("max: 101"), 1), 0o600))
	other = s.spec("worker", "")
	other.Schema = s.file("other.yaml")
	_, ended = s.working(shards.Options{Spec: other, Key: s.key, URL: c.URL, Index: 1, Count: 2}, s.parts[1])
	ctx, stopWaiting = context.WithCancel(t.Context())
	go func() {
		s.refused("schema", <-ended, "--shard 2/2: found another schema than the coordinator's", "schemas")
		stopWaiting()
	}()
	if _, _, err := run.Fit(ctx, s.job("schemas", sgd), env); !errors.Is(err, run.ErrNotBegun) {
		t.Errorf("a worker with another schema: %v", err)
	}
	stop()
	_, first := s.worker(c.URL, 0, s.parts[0])
	_, second := s.worker(c.URL, 1, s.parts[0]) // the other's file
	const twice = "shards 1 and 2 of 2: found the same rows in both"
	fit("twice", sgd, twice)
	s.refused("first of twice", <-first, "--shard 1/2: "+twice, "twice")
	s.refused("second of twice", <-second, "--shard 2/2: "+twice, "twice")

	one := newSite(t)
	c = one.listen()
	spec := one.spec("worker", "replace-one\n"+sgd)
	two := newSite(t, 3999)
	one.working(shards.Options{Spec: spec, Key: one.key, URL: c.URL, Index: 0, Count: 1}, two.parts[0])
	env.Rows = &run.Shards{Secret: one.key.Secret, Carrier: c}
	_, _, err = run.Fit(t.Context(), one.job("few", "replace-one\n"+sgd), env)
	one.refused("few rows", err, "rows: found 3999 in 1 shard together; under replace-one there must be exactly 4000", "few")

	// The key.
	for name, c := range map[string]struct {
		bytes int
		mode  os.FileMode
		want  string
	}{
		"short": {31, 0o600, "found a key of 31 bytes; expected 32"},
		"open":  {32, 0o640, "found mode 0640"},
	} {
		s.must(os.WriteFile(s.file(name), make([]byte, c.bytes), c.mode))
		s.must(os.Chmod(s.file(name), c.mode))
		_, err := shards.ReadKey(s.file(name))
		s.refused(name, err, c.want, "none")
	}
	_, err = shards.ReadKey(s.file("absent"))
	s.refused("absent", err, "head -c 32 /dev/urandom", "absent")
	s.must(os.WriteFile(s.file("another"), make([]byte, 32), 0o600))
	another, err := shards.ReadKey(s.file("another"))
	s.must(err)
	_, ended = s.working(shards.Options{Spec: s.spec("worker", ""), Key: another, URL: c.URL, Index: 0, Count: 1}, s.parts[0])
	s.refused("another key", <-ended, "has another key", "none")
	if err := shards.Greeted(c.URL, one.key); err != nil {
		t.Errorf("the key: %v", err)
	}
	for name, key := range map[string]*shards.Key{"another key": another, "no key": nil} {
		if shards.Greeted(c.URL, key) == nil {
			t.Errorf("%s: the coordinator greets a worker", name)
		}
	}
	old, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	defer old.Close()
	go func() {
		conn, err := old.Accept()
		if err == nil {
			conn.Write([]byte("INFO {}\r\n")) // as coordinators of earlier builds did
		}
	}()
	_, ended = s.working(shards.Options{Spec: s.spec("worker", ""), Key: s.key, URL: old.Addr().String(), Index: 0, Count: 1}, s.parts[0])
	s.refused("another version", <-ended, "where no coordinator of this version of Sotto listens", "none")

	_, err = shards.Listen(c.URL, 1, s.key, nil)
	s.refused("taken", err, "where nothing can listen", "none")
	for _, o := range []shards.Options{{Index: 0, Count: 2}, {Index: 1, Count: 2}} {
		o.Spec, o.Key, o.URL = one.spec("worker", ""), one.key, c.URL
		_, ended := one.working(o, one.parts[0])
		one.refused("another number of shards", <-ended, "write I/1, the number of shards that the coordinator has", "none")
	}
	for _, address := range []string{"", "here", "127.0.0.1", "127.0.0.1:99999", "nats://127.0.0.1:x"} {
		_, err := shards.Listen(address, 1, s.key, nil)
		s.refused(address, err, "--workers: found", "none")
		_, ended := s.working(shards.Options{Spec: s.spec("worker", ""), Key: s.key, URL: address, Index: 0, Count: 1}, s.parts[0])
		s.refused(address, <-ended, "--hub: found", "none")
	}
}

// A file that is another's in another order, or has many of its rows, is refused for a second shard: both workers are told, and the run
// writes nothing.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	for name, overlap := range map[string][2]int{"in another order": {0, 1500}, "many rows": {1400, 2900}} {
		s := newSite(t, 1500)
		b, err := os.ReadFile(s.file("patients.csv"))
		s.must(err)
		lines := bytes.SplitAfter(b, []byte("\n"))
		rows := lines[1:][overlap[0]:overlap[1]]
		slices.Reverse(rows)
		s.must(os.WriteFile(s.parts[1], slices.Concat(lines[0], bytes.Join(rows, nil)), 0o600))
		c := s.listen()
		_, first := s.worker(c.URL, 0, s.parts[0])
		_, second := s.worker(c.URL, 1, s.parts[1])
		env := run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}}
		_, _, err = run.Fit(t.Context(), s.job("away", sgd), env)
		const want = "shards 1 and 2 of 2: found more than 5 % of the rows of one in the other"
		s.refused(name, err, want, "away")
		s.refused(name, <-first, "--shard 1/2: "+want, "none")
		s.refused(name, <-second, "--shard 2/2: "+want, "none")
	}
}

// offJob is a job of the lab without noise.
func (s *site) offJob(out string) *run.Job {
	s.t.Helper()
	file := s.file(out + ".yaml")
	s.must(os.WriteFile(file, fmt.Appendf(nil, "data: patients.csv\nschema: schema.yaml\nmodel: {name: logistic}\nprivacy: none\nlab: true\nout: %s\nmethod: {name: sgd, steps: 3}\n", out), 0o600))
	spec, err := run.LoadSpec(file, nil)
	s.must(err)
	job, err := run.Prepare(spec)
	s.must(err)
	return job
}

// The ledger knows rows again that are in other shards and in another order: under their own name they are trained on, under another
// name they are refused.
func TestOtherDivision(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1000)
	fit := func(out, dataset string, change func(part []byte) []byte) error {
		c := s.listen()
		for _, part := range s.parts {
			b, err := os.ReadFile(part)
			s.must(err)
			s.must(os.WriteFile(part, change(b), 0o600))
		}
		schema, err := os.ReadFile(s.file("schema.yaml"))
		s.must(err)
		s.must(os.WriteFile(s.file("schema.yaml"), regexp.MustCompile(`dataset: .*`).ReplaceAll(schema, []byte("dataset: "+dataset)), 0o600))
		s.workers(c.URL)
		spec := s.spec(out, sgd)
		spec.Ledger = s.file("all.db")
		job, err := run.Prepare(spec)
		s.must(err)
		_, _, err = run.Fit(t.Context(), job, run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}})
		c.Close(true)
		return err
	}
	s.must(fit("first", "clinic", func(b []byte) []byte { return b }))
	all, err := os.ReadFile(s.file("patients.csv"))
	s.must(err)
	lines := bytes.SplitAfter(bytes.TrimSuffix(all, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(bytes.Clone(lines[len(lines)-1]), '\n')
	rows := lines[1:]
	slices.Reverse(rows)
	at := 0
	s.parts = append(s.parts, s.file("part3.csv"))
	s.must(os.WriteFile(s.parts[2], nil, 0o600))
	third := func([]byte) []byte { // of the rows in reverse
		some := rows[at*len(rows)/3 : (at+1)*len(rows)/3]
		at = (at + 1) % 3
		return slices.Concat(lines[0], bytes.Join(some, nil))
	}
	if err := fit("second", "other", third); !errors.Is(err, access.ErrProtected) {
		t.Errorf("the same rows under another name: %v", err)
	}
	s.must(fit("third", "clinic", third))
	rows[0] = rows[1] // as if a person had left and another had come
	slices.Reverse(rows)
	if err := fit("fourth", "other", third); !errors.Is(err, access.ErrProtected) {
		t.Errorf("almost the same rows under another name: %v", err)
	}
}
