package shards_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/shards"
)

var (
	specs    = flag.Int("specs", 5, "how many random specs TestSameBits runs in each way")
	specSeed = flag.Uint64("spec-seed", 1, "of the first random spec")
)

// The test binary is also the process with other kernels, and a worker in a process of its own.
func TestMain(m *testing.M) {
	if spec := os.Getenv("SOTTO_SAME_CHILD"); spec != "" {
		if err := fit(context.Background(), spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if worker := os.Getenv("SOTTO_WORKER_CHILD"); worker != "" {
		if err := childWork(context.Background(), worker); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(needs.Home(m))
}

// A child is a worker in a process of its own.
type child struct {
	Spec, Data, URL, Key string
	Index, Count         int
}

func childWork(ctx context.Context, what string) error {
	var c child
	if err := json.Unmarshal([]byte(what), &c); err != nil {
		return err
	}
	spec, err := run.LoadSpec(c.Spec, nil)
	if err != nil {
		return err
	}
	spec.Data = c.Data
	key, err := shards.ReadKey(c.Key)
	if err != nil {
		return err
	}
	return shards.Work(ctx, shards.Options{Spec: spec, Key: key, URL: c.URL, Index: c.Index, Count: c.Count, Cores: 1})
}

func fit(ctx context.Context, file string) error {
	spec, err := run.LoadSpec(file, nil)
	if err != nil {
		return err
	}
	job, err := run.Prepare(spec)
	if err != nil {
		return err
	}
	_, _, err = run.Fit(ctx, job, run.Env{Workers: 1})
	return err
}

// randomSpec is a spec of some method, with settings that matter for how its sums are made.
func randomSpec(random *rand.Rand) (name, more string) {
	methods := method.Registry()
	var b strings.Builder
	for name == "" || name == "optimum" || name == "adassp" { // these need another budget, or another label
		name = methods[random.IntN(len(methods))].Name
	}
	if name == "sgd" && random.IntN(2) == 0 {
		fmt.Fprintf(&b, "method: {name: sgd, steps: %d, batch: %d}\n", 5+random.IntN(60), 1+random.IntN(500))
	} else {
		fmt.Fprintf(&b, "method: {name: %s}\n", name)
	}
	if name == "outpert" || name == "outpert-sgd" || name == "amp" {
		b.WriteString("replace-one\n")
	}
	if name == method.Default && random.IntN(2) == 0 {
		fmt.Fprintf(&b, "columns: %d\n", 2+random.IntN(6))
	}
	return name, fmt.Sprintf("lab: true\nseed: %d\n%s", random.IntN(1000), b.String())
}

// A run gives the same bits however it is carried out: from the table with its columns in another order, compressed or
// packed, on one core or two, with the kernels of this machine or plain Go, stopped and resumed, on few shards or many. Each
// random spec is run in all of these ways. -specs N -spec-seed S runs others.
func TestSameBits(t *testing.T) {
	race.Skip(t)
	s := newSite(t, 900, 2500)
	s.otherForms()
	c := s.listen()
	s.workers(c.URL)
	wide := newMany(t, 17)
	all := wide.listen()
	wide.workers(all.URL)
	stopped := 0
	for n := range uint64(*specs) {
		random := rand.New(rand.NewPCG(*specSeed+n, 2))
		name, more := randomSpec(random)
		t.Logf("-spec-seed %d: %s", *specSeed+n, strings.ReplaceAll(more, "\n", "; "))
		out := func(way string) string { return fmt.Sprint(way, n) }
		job := func(way string, change func(*run.Spec)) *run.Job {
			spec := s.spec(out(way), more)
			change(spec)
			job, err := run.Prepare(spec)
			s.must(err)
			return job
		}
		as := func(way string, env run.Env, change func(*run.Spec)) {
			_, _, err := run.Fit(t.Context(), job(way, change), env)
			s.must(err)
			if way != "plain" {
				s.same(name+" "+way, out("plain"), out(way))
			}
		}
		none := func(*run.Spec) {}
		one := run.Env{Workers: 1}
		as("plain", one, none)
		as("cores", run.Env{Workers: 2}, none)
		as("columns", one, func(spec *run.Spec) { spec.Data = s.file("columns.csv.gz") })
		if !strings.Contains(more, "columns:") { // a packed table has all of its columns
			as("packed", one, func(spec *run.Spec) { spec.Data = s.file("patients.pack") })
		}

		_, file := s.spec(out("kernels"), more), s.file(out("kernels")+".yaml")
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "SOTTO_SAME_CHILD="+file, "SOTTO_KERN=go")
		if text, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		s.same(name+" kernels", out("plain"), out("kernels"))

		ctx, cancel := context.WithCancel(t.Context())
		ends := &ending{Context: ctx, end: cancel}
		ends.left.Store(3 + random.Int64N(40))
		_, _, err := run.Fit(ends, job("resumed", none), one)
		if errors.Is(err, run.ErrInterrupted) {
			stopped++
			_, err = run.Resume(t.Context(), s.file(out("resumed")), one)
		} else if err != nil && ctx.Err() != nil { // before the run began: there is nothing to resume
			_, _, err = run.Fit(t.Context(), job("resumed", none), one)
		}
		cancel()
		s.must(err)
		s.same(name+" resumed", out("plain"), out("resumed"))

		if name == "outpert" || name == "outpert-sgd" || name == "amp" || name == method.Default {
			continue // TestEveryMethodOnShards: refused, or only without its center
		}
		as("shards", run.Env{Workers: 1, Rows: &run.Shards{Secret: s.key.Secret, Carrier: c}}, none)
		as("many", run.Env{Workers: 1, Rows: &run.Shards{Secret: wide.key.Secret, Carrier: all}}, none)
	}
	if stopped == 0 {
		t.Error("no run was stopped before its end")
	}
}

// ending is a context that ends when it is asked for the n-th time whether it has.
type ending struct {
	context.Context
	left atomic.Int64
	end  func()
}

func (e *ending) Err() error {
	if e.left.Add(-1) == 0 {
		e.end()
	}
	return e.Context.Err()
}

// otherForms writes the site's table with its columns in another order, compressed, and packed.
func (s *site) otherForms() {
	s.t.Helper()
	b, err := os.ReadFile(s.file("patients.csv"))
	s.must(err)
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	s.must(err)
	var text bytes.Buffer
	zipped := gzip.NewWriter(&text)
	w := csv.NewWriter(zipped)
	for _, row := range rows {
		s.must(w.Write(append(row[3:len(row):len(row)], row[:3]...)))
	}
	w.Flush()
	s.must(errors.Join(w.Error(), zipped.Close(), os.WriteFile(s.file("columns.csv.gz"), text.Bytes(), 0o600)))
	schema, err := data.LoadSchema(s.file("schema.yaml"))
	s.must(err)
	gate := access.Gate{Dropped: run.Dropped(nil, false)}
	_, err = gate.Pack(s.t.Context(), schema, s.file("patients.csv"), s.file("patients.pack"), data.Options{})
	s.must(err)
}
