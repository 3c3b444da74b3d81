//go:build linux

package cli

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

var makeFixtures = flag.String("fixtures", "", "make those of testdata/fixtures whose names match this `regexp` and that are not there")

// fixturesAt is where fixtures are made. Sealed run.json files name it.
const fixturesAt = "/tmp/sotto-fixtures"

// A maker makes the files of one fixture, in the working directory.
type maker struct{ *testing.T }

// TestMakeFixtures makes fixtures with the build at hand: testdata/fixtures/README.md.
func TestMakeFixtures(t *testing.T) {
	if *makeFixtures == "" {
		t.Skip("-fixtures REGEXP makes fixtures")
	}
	wanted, err := regexp.Compile(*makeFixtures)
	if err != nil {
		t.Fatal(err)
	}
	testdata, err := filepath.Abs(filepath.Join("testdata", "fixtures"))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	for name, files := range fixtures {
		packed := filepath.Join(testdata, name, "files.tar.zst")
		if _, err := os.Stat(packed); err == nil || !wanted.MatchString(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
			m := maker{t}
			m.must(errors.Join(os.RemoveAll(fixturesAt), os.Mkdir(fixturesAt, 0o700)))
			defer os.RemoveAll(fixturesAt)
			t.Chdir(fixturesAt)
			m.tables()
			files(m)
			m.must(os.MkdirAll(filepath.Dir(packed), 0o755))
			m.pack(packed)
		})
	}
}

func (m maker) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m maker) write(name, text string) {
	m.Helper()
	m.must(os.WriteFile(name, []byte(text), 0o600))
}

// try runs the command in this process.
func (m maker) try(ctx context.Context, args ...string) (string, error) {
	var said bytes.Buffer
	c := root()
	c.SetArgs(args)
	c.SetOut(&said)
	c.SetErr(&said)
	err := c.ExecuteContext(ctx)
	return said.String(), err
}

func (m maker) sotto(args ...string) {
	m.Helper()
	if said, err := m.try(m.Context(), args...); err != nil {
		m.Fatalf("sotto %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

// fit trains a run into out with the spec, the ledger and flags that a line names, as in "sgd clinic-spec.yaml l.db --method sgd". In an
// argument · stands for a space.
func (m maker) fit(lines string) {
	m.Helper()
	for line := range strings.Lines(lines) {
		if f := strings.Fields(line); len(f) > 0 {
			m.sotto(fitting(f)...)
		}
	}
}

// fitting is the command of such a line.
func fitting(f []string) []string {
	args := []string{"fit", f[1], "--quiet", "--out", f[0], "--ledger", f[2]}
	for _, a := range f[3:] {
		args = append(args, strings.ReplaceAll(a, "·", " "))
	}
	return args
}

// A halt is a context that ends when it was asked a number of times whether it has ended.
type halt struct {
	context.Context
	left atomic.Int64
	slow bool   // lets records become durable before it ends
	end  func() // called then
	done chan struct{}
}

func (h *halt) Done() <-chan struct{} { return h.done }

func (h *halt) Err() error {
	switch left := h.left.Add(-1); {
	case left == 4 && h.slow:
		time.Sleep(700 * time.Millisecond) // the next record closes a group, which makes those before it durable
	case left == 0:
		h.end()
		close(h.done)
		fallthrough
	case left < 0:
		return context.Canceled
	}
	return nil
}

// reset makes the working directory a copy of another.
func (m maker) reset(from string) {
	m.Helper()
	all, err := os.ReadDir(".")
	m.must(err)
	for _, e := range all {
		m.must(os.RemoveAll(e.Name()))
	}
	m.must(os.CopyFS(".", os.DirFS(from)))
	m.must(os.RemoveAll(os.Getenv("XDG_STATE_HOME"))) // the witness knows of what was reset
}

// broken fits a run as fit does, and stops it in the midst of its training: as Ctrl-C does, or by a power cut. Of a run without
// steps charged, or with all of them, it tries again at another time.
func (m maker) broken(line string, cut bool, fit func(ctx context.Context, args []string) error) {
	m.Helper()
	f := strings.Fields(line)
	if fit == nil {
		fit = func(ctx context.Context, args []string) error {
			_, err := m.try(ctx, args...)
			return err
		}
	}
	args := fitting(f)
	before, after := m.TempDir(), m.TempDir()
	m.must(os.CopyFS(before, os.DirFS(".")))
	var asked int64
	count := &halt{Context: m.Context(), done: make(chan struct{})}
	const most = 1 << 40
	count.left.Store(most)
	m.must(fit(count, args))
	asked = most - count.left.Load()
	whole, err := runlog.Read(f[0])
	m.must(err)
	for _, at := range []float64{.5, .6, .7, .8, .4, .9, .95, .3, .2} {
		m.reset(before)
		at := int64(at * float64(asked))
		ctx := &halt{Context: m.Context(), done: make(chan struct{}), end: func() {}}
		ctx.left.Store(at)
		from, snapshot := ".", error(nil)
		if cut {
			from = after
			ctx.slow, ctx.end = true, func() {
				time.Sleep(100 * time.Millisecond) // the group is on disk by then
				snapshot = errors.Join(os.RemoveAll(after), os.CopyFS(after, os.DirFS(".")))
			}
		}
		err := fit(ctx, args)
		rec, wrong := runlog.Read(filepath.Join(from, f[0]))
		_, done := os.Stat(filepath.Join(from, f[0], runlog.ModelFile))
		if err == nil || snapshot != nil || wrong != nil || done == nil || rec.Released == 0 || rec.Released >= whole.Released-1 {
			continue
		}
		if cut {
			m.reset(after)
		}
		m.Logf("%s: %d charged, %d released of %d (%v)", f[0], rec.Charged(), rec.Released, whole.Released, err)
		return
	}
	m.Fatalf("%s was not stopped in its midst", f[0])
}

// crash fits a run that a power cut ends at a point of run.Env.Crash. every is how many steps lie between two saved states; 0: the
// run's choice.
func (m maker) crash(line, point string) {
	m.Helper()
	f := strings.Fields(line)
	after, reached := m.TempDir(), false
	m.must(m.embedded(m.Context(), fitting(f), 0, func(at string) {
		if at == point {
			reached = true
			m.must(os.CopyFS(after, os.DirFS(".")))
		}
	}))
	if !reached {
		m.Fatalf("%s: does not come to %s", f[0], point)
	}
	m.reset(after)
}

// embedded is the command fit with what the command line has no flag for.
func (m maker) embedded(ctx context.Context, args []string, every int, crash func(string)) error {
	var job *run.Job
	c := fitCommand()
	m.must(c.ParseFlags(args[1:]))
	spec, err := specOf(c, c.Flags().Args())
	m.must(err)
	job, err = run.Prepare(spec)
	m.must(err)
	if every > 0 {
		job.StateEvery = every
	}
	_, _, err = run.Fit(ctx, job, run.Env{Version: runlog.Version(), Report: page.Write, Crash: crash})
	return err
}

// states is a fit that saves a state after so many steps.
func (m maker) states(every int) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error { return m.embedded(ctx, args, every, nil) }
}

// shards is a fit whose rows two workers hold, part1.csv and part2.csv beside the spec's schema.
func (m maker) shards(parts ...string) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		m.must(err)
		at := l.Addr().String()
		m.must(l.Close())
		working, stop := context.WithCancel(m.Context())
		defer stop()
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		args = append(args, "--workers", at, "--shards", fmt.Sprint(len(parts)), "--key", "key")
		for i, part := range parts {
			work := []string{"worker", args[1], "--hub", at, "--key", "key", "--shard", fmt.Sprintf("%d/%d", i+1, len(parts)), "--data", part, "--quiet"}
			for j, a := range args {
				if a == "--adjacency" {
					work = append(work, a, args[j+1])
				}
			}
			if strings.Contains(strings.Join(args, " "), "--lab") {
				work = append(work, "--lab")
			}
			all.Go(func() {
				if said, err := m.try(working, work...); err != nil && working.Err() == nil {
					m.Errorf("%v: %v\n%s", work, err, said)
				}
			})
		}
		said, err := m.try(ctx, args...)
		if err != nil {
			m.Logf("%v\n%s", err, said)
		} else {
			all.Wait()
		}
		return err
	}
}

// sharded fits as fit does, with shards.
func (m maker) sharded(lines string, parts ...string) {
	m.Helper()
	for line := range strings.Lines(lines) {
		if f := strings.Fields(line); len(f) > 0 {
			m.must(m.shards(parts...)(m.Context(), fitting(f)))
		}
	}
}

// network trains with the owners of net.yaml, each with its rows, as processes. If cut is above 0, all die once a file of the first
// owner's run directory has more bytes, and the hub's store is kept. So it is if one dies by itself: the owner north=modelled:1 does
// at that point (crashFrom).
func (m maker) network(spec, file string, cut int64, owners ...string) {
	m.Helper()
	m.write("net.yaml", spec)
	crash := map[string]string{}
	for i, owner := range owners {
		if name, at, dies := strings.Cut(owner, "="); dies {
			owners[i], crash[name] = name, at
		}
	}
	found := []string{"net", "init", "net.yaml", "--dir", "net", "--hub", "tls://127.0.0.1:4222"}
	for _, owner := range owners {
		m.must(os.Mkdir(owner, 0o700))
		m.sotto("net", "key", owner, "--out", owner+"/owner.key")
		found = append(found, owner+"/owner.key.pub")
	}
	m.sotto(found...)
	hub := sotto(m.T, "hub", "net/hub.json", "--dir", "hub", "--port", "0")
	out, err := hub.StdoutPipe()
	m.must(err)
	m.must(hub.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	m.must(err)
	all := []*exec.Cmd{}
	for _, owner := range owners {
		m.must(os.Rename(owner+".csv", owner+"/rows.csv"))
		m.sotto("net", "invite", owner, "--dir", "net", "--out", owner+"/credentials.json", "--days", "1825")
		digits, err := m.try(m.Context(), "net", "fingerprint", owner+"/credentials.json")
		m.must(err)
		c := sotto(m.T, "node", "net.yaml", "--credentials", owner+"/credentials.json", "--key", owner+"/owner.key", "--fingerprint", strings.Split(digits, "\n")[1],
			"--data", owner+"/rows.csv", "--dir", owner+"/part", "--ledger", owner+"/ledger.db", "--hub", strings.TrimSpace(line), "--quiet")
		c.Env = append(c.Env, crashVariable+"="+crash[owner])
		m.must(c.Start())
		all = append(all, c)
	}
	if cut > 0 {
		needs.Until(m, "the midst of the training", func() bool {
			st, err := os.Stat(filepath.Join(owners[0], "part", file))
			return err == nil && st.Size() > cut
		})
		for _, c := range append(all, hub) {
			c.Process.Kill()
			c.Wait()
		}
		if _, err := os.Stat(filepath.Join(owners[0], "part", runlog.ModelFile)); err == nil {
			m.Fatal("the training was over")
		}
	} else {
		for i, c := range all {
			if err := c.Wait(); (err != nil) != (crash[owners[i]] != "") {
				m.Fatalf("%s: %v", owners[i], err)
			}
		}
		hub.Process.Kill()
		hub.Wait()
	}
	if cut > 0 || len(crash) > 0 {
		m.must(os.Rename("net/hub.json", "hub.json"))
	} else {
		m.must(os.RemoveAll("hub"))
	}
	m.must(os.RemoveAll("net"))
}

// pack writes the files of the working directory into an archive. Runs that are not finished go on where it is unpacked.
func (m maker) pack(archive string) {
	m.Helper()
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	m.must(err)
	w := tar.NewWriter(z)
	m.must(filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".lock" || strings.HasSuffix(path, ".db-queue") || strings.HasSuffix(path, ".new") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sealed := bytes.Contains(b, []byte(`"status": "finished"`))
		if bytes.Contains(b, []byte(`"sum": {`)) { // its owner compares the paths when it comes again
			_, err := os.Stat(filepath.Join(filepath.Dir(path), runlog.ReportFile))
			sealed = sealed && err == nil
		}
		if d.Name() == runlog.InfoFile && !sealed {
			b = bytes.ReplaceAll(b, []byte(fixturesAt), []byte("@DIR@"))
		}
		err = w.WriteHeader(&tar.Header{Name: path, Mode: 0o600, Size: int64(len(b))})
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}))
	m.must(errors.Join(w.Close(), z.Close()))
	m.must(os.WriteFile(archive, packed.Bytes(), 0o644))
	m.Logf("%s: %d bytes", archive, packed.Len())
}

// tables writes tables of synthetic rows, which have something to learn, and specs of them.
func (m maker) tables() {
	m.Helper()
	src := rand.New(rand.NewPCG(42, 1))
	wards := []string{"cardiology", "general", "oncology"}
	rows := func(n int) (lines []string) {
		for range n {
			age, ward := 18+src.IntN(83), src.IntN(3)
			label := "no"
			if float64(age-60)/20+float64(ward-1)+src.NormFloat64() > 0 {
				label = "yes"
			}
			lines = append(lines, fmt.Sprintf("%d,%s,%s\n", age, wards[ward], label))
		}
		return lines
	}
	const head = "age,ward,readmitted\n"
	lines := rows(300)
	m.write("patients.csv", head+strings.Join(lines, ""))
	m.write("part1.csv", head+strings.Join(lines[:140], ""))
	m.write("part2.csv", head+strings.Join(lines[140:], ""))
	m.write("heldout.csv", head+strings.Join(rows(60), ""))
	m.write("key", "the key of a test, of 32 bytes..")

	visits := "patient_id,age,ward,readmitted\n"
	halves := [2]string{visits, visits}
	ids := src.Perm(400)
	for i := range 150 {
		for range 1 + src.IntN(4) {
			line := fmt.Sprintf("%d,%s", 1000+ids[i], rows(1)[0])
			visits += line
			halves[i/75] += line
		}
	}
	m.write("visits.csv", visits)
	m.write("visits1.csv", halves[0])
	m.write("visits2.csv", halves[1])

	const n, side = 150, 8
	images, labels := []byte{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, side, 0, 0, 0, side}, []byte{0, 0, 8, 1, 0, 0, 0, n}
	for i := range n {
		for y := range side {
			for range side {
				bright := 0
				if y%3 == i%3 {
					bright = 150
				}
				images = append(images, byte(bright+src.IntN(100)))
			}
		}
		labels = append(labels, byte(i%3))
	}
	m.write("shapes-images-idx3-ubyte", string(images))
	m.write("shapes-labels-idx1-ubyte", string(labels))

	columns := "columns:\n  - {name: age, type: numeric, min: 18, max: 100}\n  - {name: ward, type: categorical, levels: [cardiology, general, oncology]}\n  - {name: readmitted, type: label, classes: [\"no\", \"yes\"]}\n"
	m.write("schema.yaml", "dataset: clinic\nrows: 300\nauthor: A. Example\nsource: made up\n"+columns)
	m.write("visits.yaml", "dataset: visits\nunit: {name: patient, rows: 4}\nunits: 150\n"+strings.Replace(columns, "columns:\n", "columns:\n  - {name: patient_id, type: unit}\n", 1))
	m.write("ages.yaml", "dataset: clinic\nrows: 300\ncolumns:\n  - {name: age, type: label, min: 18, max: 100}\n  - {name: ward, type: categorical, levels: [cardiology, general, oncology]}\n  - {name: readmitted, type: categorical, levels: [\"no\", \"yes\"]}\n")
	m.write("wards.yaml", "dataset: clinic\nrows: 300\ncolumns:\n  - {name: age, type: numeric, min: 18, max: 100}\n  - {name: ward, type: label, classes: [cardiology, general, oncology]}\n  - {name: readmitted, type: categorical, levels: [\"no\", \"yes\"]}\n")
	m.write("shapes.yaml", "dataset: shapes\nrows: 150\nintercept: false\nformat: {kind: idx}\nimage: {shape: [8, 8], center: 32, scale: 255}\ncolumns: [{name: shape, type: label, classes: [\"0\", \"1\", \"2\"]}]\n")
	for name, s := range map[string]struct{ data, schema, model string }{
		"clinic": {"patients.csv", "schema.yaml", "{name: logistic}"},
		"visit":  {"visits.csv", "visits.yaml", "{name: logistic}"},
		"age":    {"patients.csv", "ages.yaml", "{name: linear}"},
		"ward":   {"patients.csv", "wards.yaml", "{name: softmax}"},
		"shape":  {"shapes-images-idx3-ubyte", "shapes.yaml", "{name: softmax}"},
	} {
		m.write(name+"-spec.yaml", fmt.Sprintf("data: %s\nschema: %s\nmodel: %s\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n", s.data, s.schema, s.model)+
			"disclosure: {purpose: a test, recipients: nobody, reviewer: B. Example}\n")
	}
}

// fixtures are how the files of each fixture are made: runs with their ledgers and tables.
var fixtures = map[string]func(maker){
	// A family of methods each, and what method auto chooses.
	"methods": func(m maker) {
		m.fit(`
			auto clinic-spec.yaml l.db --test heldout.csv
			auto-bumps clinic-spec.yaml l.db --epsilon 20 --set hats=4
			auto-uncentered clinic-spec.yaml l.db --set method.center=none --set method.steps=6
			auto-fallback clinic-spec.yaml l.db --epsilon 0.01 --set method.fallback=class
			sgd clinic-spec.yaml l.db --method sgd --set method.steps=6
			momentum clinic-spec.yaml l.db --method momentum --set method.steps=6
			gd clinic-spec.yaml l.db --method gd --set method.steps=6
			nag clinic-spec.yaml l.db --method nag --set method.steps=6
			masg clinic-spec.yaml l.db --method masg
			adam clinic-spec.yaml l.db --method adam --set method.steps=6 --output last
			adagrad clinic-spec.yaml l.db --method adagrad --set method.steps=6
			agd clinic-spec.yaml l.db --method agd --set method.splits=4
			privgene clinic-spec.yaml l.db --method privgene
			majority clinic-spec.yaml l.db --method majority
			newton clinic-spec.yaml l.db --method newton --set method.steps=4
			gd-2ns clinic-spec.yaml l.db --method gd-2ns
			pure clinic-spec.yaml l.db --delta 0 --set method.steps=4`)
	},
	// Samples and output perturbation under replace-one.
	"replace-one": func(m maker) {
		const flags = " --adjacency replace-one"
		m.fit(`
			auto clinic-spec.yaml l.db` + flags + ` --test heldout.csv --set method.steps=6
			sgd-fixed clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=6 --set method.sampling=fixed` + flags + `
			sgd-poisson clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=6 --set method.sampling=poisson` + flags + `
			outpert clinic-spec.yaml l.db --method outpert` + flags + `
			outpert-sgd clinic-spec.yaml l.db --method outpert-sgd` + flags + `
			amp clinic-spec.yaml l.db --method amp` + flags + `
			newton clinic-spec.yaml l.db --method newton --set method.steps=4` + flags + `
			masg-pure clinic-spec.yaml l.db --method masg --delta 0` + flags + `
			units visit-spec.yaml l.db --method sgd --set method.steps=6` + flags + `
			units-outpert visit-spec.yaml l.db --method outpert-sgd` + flags + `
			bytes shape-spec.yaml l.db --method sgd --set method.steps=6` + flags + `
			holdout clinic-spec.yaml l.db --holdout 0.2 --set method.steps=6` + flags + `
			holdout-units visit-spec.yaml l.db --holdout 0.2 --set method.steps=6` + flags)
	},
	// Samples, accountants and outputs under add-or-remove.
	"samples": func(m maker) {
		m.fit(`
			auto clinic-spec.yaml l.db --set method.batch=60 --set method.steps=6
			sgd clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=6
			allocation clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.sampling=allocation --set method.steps=10
			agd clinic-spec.yaml l.db --method agd --set method.splits=4
			adam clinic-spec.yaml l.db --method adam --set method.batch=60 --set method.steps=6
			rdp clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=6 --accountant rdp --output random
			pld clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=6 --accountant pld --output ema
			gdp clinic-spec.yaml l.db --method sgd --set method.steps=6 --accountant gdp --output average
			value clinic-spec.yaml l.db --method sgd --set method.steps=6 --set method.clipping=value
			holdout clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=6 --holdout 0.2
			units visit-spec.yaml l.db --method sgd --set method.batch=40 --set method.steps=6
			network clinic-spec.yaml l.db --model mlp --set model.layers=[3] --method sgd --set method.batch=60 --set method.steps=6
			svm clinic-spec.yaml l.db --model svm --method sgd --set method.batch=60 --set method.steps=6`)
	},
	// Plans that are filters, since costs depend on releases; private line search.
	"filter": func(m maker) {
		const opt = " --epsilon 100 --set method.gradient=0.01 --set method.steps=6"
		m.fit(`
			blsgd clinic-spec.yaml l.db --method blsgd --set method.steps=6
			adaptive clinic-spec.yaml l.db --method blsgd --set method.steps=12 --set method.growth=adaptive --epsilon 2
			must clinic-spec.yaml l.db --method blsgd --set method.steps=6 --set method.growth=must --set method.batch=60 --epsilon 2
			opt clinic-spec.yaml l.db --method opt` + opt + `
			opt-poisson clinic-spec.yaml l.db --method opt --set method.batch=80` + opt + `
			opt-ls clinic-spec.yaml l.db --method opt-ls` + opt + `
			opt-plan clinic-spec.yaml l.db --method opt --set method.costs=plan` + opt + `
			2opt clinic-spec.yaml l.db --method 2opt` + opt + `
			2opt-ls clinic-spec.yaml l.db --method 2opt-ls` + opt + `
			tr clinic-spec.yaml l.db --method tr` + opt + `
			softmax ward-spec.yaml l.db --method blsgd --set method.steps=6 --set method.growth=adaptive --epsilon 2
			units visit-spec.yaml l.db --method blsgd --set method.steps=6 --set method.growth=adaptive --epsilon 2
			bytes shape-spec.yaml l.db --method blsgd --set method.steps=6 --set method.growth=adaptive --epsilon 2
			linear age-spec.yaml l.db --method tr --set method.steps=4
			replace-one clinic-spec.yaml r.db --method opt --adjacency replace-one` + opt)
	},
	// Ledgers that count in a filter's currency, and one with a budget in caps.
	"currencies": func(m maker) {
		for _, currency := range []string{"caps", "zcdp", "gdp", "rdp"} {
			l := currency + ".db"
			for _, dataset := range []string{"clinic", "visits"} {
				unit := map[string]string{"clinic": "record", "visits": "patient"}[dataset]
				m.sotto("ledger", "budget", dataset, "--ledger", l, "--epsilon", "20", "--delta", "1e-3", "--adjacency", "add-or-remove", "--currency", currency, "--unit", unit)
			}
			m.fit(currency + " clinic-spec.yaml " + l + " --set method.steps=6")
			m.fit(currency + "-units visit-spec.yaml " + l + " --method sgd --set method.steps=6")
			if currency != "gdp" {
				m.fit(currency + "-filter clinic-spec.yaml " + l + " --method blsgd --set method.steps=12 --set method.growth=adaptive --epsilon 2")
			}
			m.fit(currency + "-holdout clinic-spec.yaml " + l + " --holdout 0.2 --set method.steps=6")
		}
		m.fit("rdp-poisson clinic-spec.yaml rdp.db --method sgd --set method.batch=60 --set method.steps=6")
	},
	"holdout": func(m maker) {
		m.fit(`
			auto clinic-spec.yaml l.db --holdout 0.2
			tested clinic-spec.yaml l.db --holdout 0.2 --test heldout.csv --method sgd --set method.steps=6
			units visit-spec.yaml l.db --holdout 0.2 --set method.steps=6
			bytes shape-spec.yaml l.db --holdout 0.2 --set method.steps=6
			softmax ward-spec.yaml l.db --holdout 0.2 --set method.steps=6
			linear age-spec.yaml l.db --holdout 0.2 --set method.steps=6
			newton clinic-spec.yaml l.db --holdout 0.2 --method newton --set method.steps=4
			bumps clinic-spec.yaml l.db --holdout 0.2 --set hats=4 --epsilon 8
			fallback clinic-spec.yaml l.db --holdout 0.2 --epsilon 0.01 --set method.fallback=class`)
	},
	// Units of several rows, in text and packed.
	"units": func(m maker) {
		m.sotto("data", "pack", "--schema", "visits.yaml", "--data", "visits.csv", "--out", "visits.pack")
		m.fit(`
			auto visit-spec.yaml l.db
			packed visit-spec.yaml l.db --data visits.pack --set method.steps=6
			agd visit-spec.yaml l.db --method agd --set method.splits=4
			bumps visit-spec.yaml l.db --set hats=4 --epsilon 8
			network visit-spec.yaml l.db --model mlp --set model.layers=[3] --method sgd --set method.steps=6`)
	},
	// Images as bytes, rows of 16 bits, networks.
	"images": func(m maker) {
		m.sotto("data", "pack", "--schema", "shapes.yaml", "--data", "shapes-images-idx3-ubyte", "--out", "bytes.pack")
		m.sotto("data", "pack", "--schema", "schema.yaml", "--data", "patients.csv", "--bits", "16", "--out", "short.pack")
		m.sotto("data", "pack", "--schema", "wards.yaml", "--data", "patients.csv", "--bits", "16", "--out", "short-wards.pack")
		m.sotto("data", "pack", "--schema", "schema.yaml", "--data", "patients.csv", "--out", "float.pack")
		m.fit(`
			bytes shape-spec.yaml l.db --set method.steps=6
			bytes-sgd shape-spec.yaml l.db --method sgd --set method.batch=30 --set method.steps=6
			bytes-packed shape-spec.yaml l.db --data bytes.pack --method sgd --set method.steps=6
			bytes-agd shape-spec.yaml l.db --method agd --set method.splits=4
			cnn shape-spec.yaml l.db --model cnn --set model.layers=[conv·2·3x3·tanh,·3·relu] --method sgd --set method.batch=30 --set method.steps=4
			short clinic-spec.yaml l.db --data short.pack --set method.steps=6 --set method.center=none
			short-center clinic-spec.yaml l.db --data short.pack --set method.steps=6
			short-sgd clinic-spec.yaml l.db --data short.pack --method sgd --set method.batch=60 --set method.steps=6
			short-holdout clinic-spec.yaml l.db --data short.pack --method sgd --holdout 0.2 --set method.steps=6
			short-filter clinic-spec.yaml l.db --data short.pack --method blsgd --set method.steps=6 --set method.growth=adaptive --epsilon 2
			short-softmax ward-spec.yaml l.db --data short-wards.pack --method sgd --set method.steps=6
			float clinic-spec.yaml l.db --data float.pack --set method.steps=6`)
	},
	// Models with labels that are numbers or many classes, weights and thresholds.
	"models": func(m maker) {
		m.fit(`
			linear age-spec.yaml l.db --set method.steps=6
			linear-newton age-spec.yaml l.db --method newton --set method.steps=4
			adassp age-spec.yaml l.db --method adassp
			statistics age-spec.yaml l.db --set method.solve=statistics
			softmax ward-spec.yaml l.db --set method.steps=6
			huber-svm clinic-spec.yaml l.db --model huber-svm --set model.width=0.3 --method nag --set method.steps=6
			l2 clinic-spec.yaml l.db --set model.l2=0.01 --set method.steps=6
			l1 clinic-spec.yaml l.db --set model.l1=0.01 --method gd --set method.steps=6
			nonconvex clinic-spec.yaml l.db --set model.nonconvex=0.01 --method opt --epsilon 100 --set method.gradient=0.01 --set method.steps=6
			weights clinic-spec.yaml l.db --set model.class_weights={yes:·2} --method sgd --set method.steps=6
			threshold clinic-spec.yaml l.db --set model.threshold={yes:·0.3} --set method.steps=6
			mlp clinic-spec.yaml l.db --model mlp --set model.layers=[4] --method adam --set method.steps=4 --set method.clipping=per-layer`)
	},
	// Seeded noise, no noise; no ledger knows of these runs but for the access.
	"lab": func(m maker) {
		m.fit(`
			seeded clinic-spec.yaml l.db --lab --seed 7 --test heldout.csv
			unseeded clinic-spec.yaml l.db --lab --method sgd --set method.steps=6
			off clinic-spec.yaml l.db --lab --set privacy=none --set method.steps=6
			off-seeded clinic-spec.yaml l.db --lab --seed 7 --set privacy=none --method sgd --set method.batch=60 --set method.steps=6
			optimum clinic-spec.yaml l.db --lab --set privacy=none --method optimum
			holdout clinic-spec.yaml l.db --lab --seed 7 --holdout 0.2 --set method.steps=6
			filter clinic-spec.yaml l.db --lab --seed 7 --method opt --epsilon 100 --set method.gradient=0.01 --set method.steps=6
			units visit-spec.yaml l.db --lab --seed 7 --set method.steps=6
			units-off visit-spec.yaml l.db --lab --set privacy=none --set method.steps=6
			bytes shape-spec.yaml l.db --lab --seed 7 --set method.steps=6
			bytes-off shape-spec.yaml l.db --lab --set privacy=none --method sgd --set method.steps=6
			outpert clinic-spec.yaml l.db --lab --seed 7 --method outpert --adjacency replace-one
			bumps clinic-spec.yaml l.db --lab --seed 7 --set hats=4 --set method.steps=6
			linear age-spec.yaml l.db --lab --seed 7 --set method.steps=6`)
	},
	// Searches of each kind that there is.
	"search": func(m maker) {
		tune := func(spec, methods string) string {
			b, err := os.ReadFile(spec + "-spec.yaml")
			m.must(err)
			name := spec + "-tune.yaml"
			m.write(name, string(b)+"tune:\n  mean: 2\n  methods: ["+methods+"]\n")
			return name
		}
		search := func(name, spec, ledger string, flags ...string) {
			m.Helper()
			m.sotto(append([]string{"tune", spec, "--quiet", "--out", name, "--ledger", ledger}, flags...)...)
		}
		m.sotto("ledger", "budget", "clinic", "--ledger", "rdp.db", "--epsilon", "20", "--delta", "1e-3", "--adjacency", "add-or-remove", "--currency", "rdp")
		spec := tune("clinic", "{label: short, name: sgd, steps: 6}, {name: nag, steps: 6}")
		search("caps", spec, "l.db", "--epsilon", "8")
		search("tested", spec, "l.db", "--test", "heldout.csv")
		search("replace-one", spec, "r.db", "--epsilon", "8", "--adjacency", "replace-one")
		search("rdp", spec, "rdp.db", "--epsilon", "8")
		spec = tune("visit", "{name: sgd, steps: 6, batch: 30}, {name: auto, steps: 6}")
		search("units", spec, "l.db", "--epsilon", "30")
		spec = tune("shape", "{name: sgd, steps: 6}, {name: auto, steps: 6}")
		search("bytes", spec, "l.db", "--epsilon", "30")
		spec = tune("clinic", "{name: opt, steps: 6, costs: plan, gradient: 0.01}, {name: newton, steps: 4}")
		search("second-order", spec, "l.db", "--epsilon", "100")
	},
	// Private figures of protected rows.
	"evaluation": func(m maker) {
		m.fit("model clinic-spec.yaml l.db --set method.steps=6")
		m.fit("units-model visit-spec.yaml l.db --set method.steps=6")
		m.fit("shapes-model shape-spec.yaml l.db --set method.steps=6")
		m.fit("linear-model age-spec.yaml l.db --set method.steps=6")
		evaluate := func(out, model, data, epsilon string, more ...string) {
			m.Helper()
			m.sotto(append([]string{"evaluate", "--model", model, "--data", data, "--epsilon", epsilon, "--delta", "1e-5", "--out", out, "--ledger", "l.db"}, more...)...)
		}
		evaluate("record", "model", "patients.csv", "1")
		evaluate("by", "model", "patients.csv", "1", "--by", "ward")
		evaluate("units", "units-model", "visits.csv", "1")
		evaluate("bytes", "shapes-model", "shapes-images-idx3-ubyte", "1")
		evaluate("linear", "linear-model", "patients.csv", "1")
	},
	// Private statistics of tables.
	"description": func(m maker) {
		describe := func(out, schema, data, ledger, adjacency string, more ...string) {
			m.Helper()
			m.sotto(append([]string{"describe", data, "--schema", schema, "--epsilon", "1", "--delta", "1e-6", "--adjacency", adjacency, "--out", out, "--ledger", ledger}, more...)...)
		}
		describe("plain", "schema.yaml", "patients.csv", "l.db", "add-or-remove")
		describe("pairs", "schema.yaml", "patients.csv", "l.db", "add-or-remove", "--pair", "ward,readmitted", "--pair", "age,ward", "--bins", "5")
		describe("replace-one", "schema.yaml", "patients.csv", "r.db", "replace-one")
	},
	// Rows that two workers hold.
	"shards": func(m maker) {
		m.sharded(`
			sgd clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=6
			auto clinic-spec.yaml l.db --set method.steps=6
			filter clinic-spec.yaml l.db --method blsgd --set method.steps=12 --set method.growth=adaptive --epsilon 2
			newton clinic-spec.yaml l.db --method newton --set method.steps=4
			replace-one clinic-spec.yaml r.db --adjacency replace-one --method sgd --set method.steps=6
			seeded clinic-spec.yaml lab.db --lab --seed 7 --method sgd --set method.steps=6`, "part1.csv", "part2.csv")
		m.sharded("units visit-spec.yaml l.db --method sgd --set method.batch=40 --set method.steps=6", "visits1.csv", "visits2.csv")
	},
	// Runs that Ctrl-C stopped in the midst of their training, and those that a power cut ended there.
	"stopped": func(m maker) {
		for _, currency := range []string{"zcdp", "rdp"} {
			m.sotto("ledger", "budget", "clinic", "--ledger", currency+".db", "--epsilon", "20", "--delta", "1e-3", "--adjacency", "add-or-remove", "--currency", currency)
		}
		for _, line := range []string{
			"plain clinic-spec.yaml l.db --set method.steps=30 --test heldout.csv",
			"sampled clinic-spec.yaml rdp.db --method sgd --set method.batch=60 --set method.steps=30",
			"filter clinic-spec.yaml zcdp.db --method blsgd --set method.steps=60 --set method.growth=adaptive --epsilon 2",
			"second-order clinic-spec.yaml l.db --method opt --epsilon 100 --set method.gradient=0.01 --set method.steps=20",
			"search-line clinic-spec.yaml l.db --method opt-ls --epsilon 100 --set method.gradient=0.01 --set method.steps=20",
			"agd clinic-spec.yaml l.db --method agd --set method.splits=12",
			"holdout clinic-spec.yaml l.db --holdout 0.2 --set method.steps=30",
			"holdout-units visit-spec.yaml l.db --holdout 0.2 --set method.steps=30",
			"holdout-zcdp clinic-spec.yaml zcdp.db --holdout 0.2 --set method.steps=30",
			"units visit-spec.yaml l.db --method sgd --set method.batch=40 --set method.steps=30",
			"bytes shape-spec.yaml l.db --set method.steps=10",
			"replace-one clinic-spec.yaml r.db --adjacency replace-one --method sgd --set method.batch=60 --set method.steps=30",
		} {
			m.broken("int-"+line, false, nil)
			m.broken("cut-"+line, true, nil)
		}
	},
	// Runs that a power cut ended at the points of package run.
	"cut": func(m maker) {
		for _, point := range []string{"reserved", "modelled", "finished", "settled"} {
			m.crash(point+" clinic-spec.yaml l.db --set method.steps=6", point)
			m.crash(point+"-holdout visit-spec.yaml l.db --holdout 0.2 --set method.steps=6", point)
			m.crash(point+"-filter clinic-spec.yaml l.db --method blsgd --set method.steps=12 --set method.growth=adaptive --epsilon 2", point)
			if point == "reserved" {
				continue
			}
			m.crash(point+"-lab clinic-spec.yaml lab.db --lab --seed 7 --set method.steps=6", point)
		}
	},
	// Runs that keep states of their method, broken off between two states.
	"states": func(m maker) {
		for _, line := range []string{
			"plain clinic-spec.yaml l.db --method sgd --set method.steps=30",
			"holdout clinic-spec.yaml l.db --method sgd --set method.steps=30 --holdout 0.2",
			"units visit-spec.yaml l.db --method adam --set method.batch=40 --set method.steps=30",
			"seeded clinic-spec.yaml lab.db --lab --seed 7 --method momentum --set method.steps=30",
		} {
			m.must(m.states(4)(m.Context(), fitting(strings.Fields("done-"+line))))
			m.broken("int-"+line, false, m.states(4))
			m.broken("cut-"+line, true, m.states(4))
		}
	},
	// Seeded runs, which go on to the bits of the unbroken ones.
	"stopped-lab": func(m maker) {
		for _, line := range []string{
			"plain clinic-spec.yaml l.db --set method.steps=30",
			"filter clinic-spec.yaml l.db --method blsgd --set method.steps=60 --set method.growth=adaptive --epsilon 2",
			"second-order clinic-spec.yaml l.db --method opt --epsilon 100 --set method.gradient=0.01 --set method.steps=20",
			"holdout clinic-spec.yaml l.db --holdout 0.2 --set method.steps=30",
			"units visit-spec.yaml l.db --method sgd --set method.batch=40 --set method.steps=30",
			"bytes shape-spec.yaml l.db --set method.steps=10",
			"off clinic-spec.yaml l.db --set privacy=none --method sgd --set method.batch=60 --set method.steps=30",
		} {
			m.broken("int-"+line+" --lab --seed 7", false, nil)
			m.broken("cut-"+line+" --lab --seed 7", true, nil)
		}
	},
	// Coordinators that were stopped.
	"stopped-shards": func(m maker) {
		for _, line := range []string{
			"plain clinic-spec.yaml l.db --method sgd --set method.batch=60 --set method.steps=30",
			"filter clinic-spec.yaml l.db --method blsgd --set method.steps=30 --set method.growth=adaptive --epsilon 2",
			"seeded clinic-spec.yaml lab.db --lab --seed 7 --set method.steps=30",
		} {
			m.broken("int-"+line, false, m.shards("part1.csv", "part2.csv"))
			m.broken("cut-"+line, true, m.shards("part1.csv", "part2.csv"))
		}
	},
	"stopped-shards-units": func(m maker) {
		m.must(errors.Join(os.Rename("visits1.csv", "part1.csv"), os.Rename("visits2.csv", "part2.csv")))
		line := "units visit-spec.yaml l.db --method sgd --set method.batch=40 --set method.steps=30"
		m.broken("int-"+line, false, m.shards("part1.csv", "part2.csv"))
		m.broken("cut-"+line, true, m.shards("part1.csv", "part2.csv"))
	},
	// Owners who gossip, and owners who add up masked sums.
	"gossip": func(m maker) {
		m.owners("patients.csv", "north", "south")
		m.network(gossips+"network: {files: [north.csv, south.csv], rows: 150, schedule: all, rounds: 6}\n", "", 0, "north", "south")
	},
	"gossip-cut": func(m maker) {
		m.owners("patients.csv", "north", "south")
		m.network(gossips+"network: {files: [north.csv, south.csv], rows: 150, schedule: all, rounds: 100}\n", runlog.JournalFile, 2000, "north", "south")
	},
	"sum": func(m maker) {
		m.owners("patients.csv", "north", "south", "west")
		m.network(gossips+"network: {mode: sum, files: [north.csv, south.csv, west.csv], rows: 100, colluders: 1, retries: 4}\nmethod: {name: auto, steps: 6}\n", "", 0, "north", "south", "west")
	},
	"gossip-crashed": func(m maker) {
		m.owners("patients.csv", "north", "south")
		m.network(gossips+"network: {files: [north.csv, south.csv], rows: 150, schedule: all, rounds: 6}\n", "", 0, "north=shared:1", "south=modelled:1")
	},
	"sum-crashed": func(m maker) {
		m.owners("patients.csv", "north", "south", "west")
		m.network(gossips+"network: {mode: sum, files: [north.csv, south.csv, west.csv], rows: 100, colluders: 1, retries: 4}\nmethod: {name: auto, steps: 6}\n", "", 0, "north=modelled:1", "south=finished:1", "west")
	},
	"sum-softmax": func(m maker) {
		m.owners("patients.csv", "north", "south")
		m.network(strings.NewReplacer("schema.yaml", "wards.yaml", "logistic", "softmax").Replace(gossips)+"network: {mode: sum, files: [north.csv, south.csv], rows: 150, colluders: 0, retries: 2}\nmethod: {name: sgd, steps: 6, batch: 60}\n", "", 0, "north", "south")
	},
	"gossip-units": func(m maker) {
		m.owners("visits.csv", "north", "south")
		m.network(strings.Replace(gossips, "schema.yaml", "visits.yaml", 1)+"network: {files: [north.csv, south.csv], rows: 75, schedule: all, rounds: 6}\n", "", 0, "north", "south")
	},
	"sum-cut": func(m maker) {
		m.owners("patients.csv", "north", "south", "west")
		m.network(gossips+"network: {mode: sum, files: [north.csv, south.csv, west.csv], rows: 100, colluders: 1, retries: 12}\nmethod: {name: sgd, steps: 60, batch: 60}\n", runlog.SumsFile, 4000, "north", "south", "west")
	},
}

// gossips is the spec of a network, but for the block network.
const gossips = "schema: schema.yaml\nmodel: {name: logistic, l2: 0.0005}\nprivacy: {epsilon: 2, delta: 1e-5, adjacency: add-or-remove}\n"

// owners divides a table, sorted by its units, among owners.
func (m maker) owners(table string, names ...string) {
	m.Helper()
	b, err := os.ReadFile(table)
	m.must(err)
	lines := strings.SplitAfter(string(b), "\n")
	head, lines := lines[0], lines[1:len(lines)-1]
	units := [][]string{}
	for i, line := range lines {
		if id, _, _ := strings.Cut(line, ","); i == 0 || table != "visits.csv" || !strings.HasPrefix(lines[i-1], id+",") {
			units = append(units, nil)
		}
		units[len(units)-1] = append(units[len(units)-1], line)
	}
	for i, name := range names {
		text := head
		for _, unit := range units[i*len(units)/len(names) : (i+1)*len(units)/len(names)] {
			text += strings.Join(unit, "")
		}
		m.write(name+".csv", text)
	}
}
