package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/sottodp/sotto/internal/race"
)

// unpack writes the files of an archive into dir.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var z io.Reader
	if filepath.Ext(archive) == ".zst" {
		z, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	} else {
		z, err = gzip.NewReader(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		var b []byte
		if err == nil {
			b, err = io.ReadAll(r)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
		}
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
	}
}

// passing are the fields of a JSON file that differ from one run to the next, that hold prose, or that older builds do not write.
var passing = map[string][]string{
	"run.json": {"id", "started", "finished", "version", "binary", "go", "platform", "kernels", "spec_file", "data", "ledger", "ledger_head", "warnings",
		"assumptions", "hashes", "result.train_seconds", "result.numerics", "gdp",
		"outlook", "public.presence"}, // of runs on Poisson samples the event says it, too
	"model.json": {"run", "created", "guarantee.run", "guarantee.gdp", "margin_factor", "noise"},
	"net":        {"id", "seconds", "rounds_per_second", "unpaid"},
	"comparison": {"seconds"},
	"audit":      {},
	"plan":       {"gdp", "attacks", "warnings"},
}

// facts is what a JSON text says apart from passing fields, with numbers as they are written.
func facts(t *testing.T, text []byte, kind string) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v\n%s", kind, err, text)
	}
	for _, p := range passing[kind] {
		in, path := v, strings.Split(p, ".")
		for _, key := range path[:len(path)-1] {
			in, _ = in[key].(map[string]any)
		}
		delete(in, path[len(path)-1])
	}
	return v
}

// charges are the lines of an events.jsonl, with the lines joined that hold one event. How many batches a line counts depends on when
// the disk took them.
func charges(t *testing.T, events []byte) []byte {
	t.Helper()
	type line struct {
		First, Count int
		Event        json.RawMessage
	}
	var joined []line
	for text := range bytes.Lines(events) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		if n := len(joined); n > 0 && bytes.Equal(joined[n-1].Event, l.Event) && joined[n-1].First+joined[n-1].Count == l.First {
			joined[n-1].Count += l.Count
		} else {
			joined = append(joined, l)
		}
	}
	var b []byte
	for _, l := range joined {
		b = fmt.Appendf(b, "%d %d %s\n", l.First, l.Count, l.Event)
	}
	return b
}

// A goldenCase is a line of testdata/golden/cases.
type goldenCase struct {
	name, spec string
	flags      []string
}

func goldenCases(t *testing.T) (cases []goldenCase) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden", "cases"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] != "#" {
			cases = append(cases, goldenCase{f[0], f[1], f[2:]})
		}
	}
	return cases
}

// Seeded runs give the bits that the build of testdata/golden gave: plans, configurations, charges, releases, steps, models and
// figures. Go compilers for other processors may fuse a product and a sum, which gives other bits.
func TestGolden(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the bits are those of amd64")
	}
	dir, in := earlierFiles(t, "golden")
	command := func(args ...string) ([]byte, error) {
		c := in(args...)
		c.Env = append(c.Env, "SOTTO_KERN=go")
		var said bytes.Buffer
		c.Stderr = &said
		out, err := c.Output()
		if err != nil {
			err = fmt.Errorf("sotto %s: %w\n%s", strings.Join(args, " "), err, said.Bytes())
		}
		return out, err
	}
	read := func(t *testing.T, path ...string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, filepath.Join(path...)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := func(t *testing.T, what, kind string, want, got []byte) {
		t.Helper()
		if d := cmp.Diff(facts(t, want, kind), facts(t, got, kind)); d != "" {
			t.Errorf("%s differs (- was, + is):\n%s", what, d)
		}
	}
	cases := goldenCases(t)
	kept, err := os.ReadDir(filepath.Join(dir, "runs"))
	if err != nil || len(kept) != len(cases) || len(cases) == 0 {
		t.Fatalf("%d runs are kept, %d are in cases: %v", len(kept), len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join("again", c.name)
			if _, err := command(append([]string{"fit", c.spec, "--quiet", "--lab", "--seed", "7", "--ledger", c.name + ".db", "--out", out}, c.flags...)...); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"events.jsonl", "steps.jsonl", "releases.bin"} {
				want, got := read(t, "runs", c.name, file), read(t, out, file)
				if file == "events.jsonl" {
					want, got = charges(t, want), charges(t, got)
				}
				if bytes.Equal(want, got) {
					continue
				}
				if file == "releases.bin" {
					t.Errorf("%s differs: %d bytes, were %d", file, len(got), len(want))
				} else {
					t.Errorf("%s differs: is\n%swas\n%s", file, got, want)
				}
			}
			for _, file := range []string{"run.json", "model.json"} {
				same(t, file, file, read(t, "runs", c.name, file), read(t, out, file))
			}
			if c.name == "optimum" { // costs no ε
				return
			}
			plan, err := command(append([]string{"plan", c.spec, "--json"}, c.flags...)...)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "plan", "plan", read(t, "runs", c.name, "plan.json"), plan)
			if _, err := command("verify", filepath.Join("runs", c.name)); err != nil {
				t.Error(err)
			}
		})
	}
	// What the build before gave for a run whose bits changed since verifies.
	earlier, err := os.ReadDir(filepath.Join(dir, "earlier"))
	if err != nil || len(earlier) == 0 {
		t.Fatalf("no earlier runs are kept: %v", err)
	}
	for _, run := range earlier {
		t.Run("earlier "+run.Name(), func(t *testing.T) {
			t.Parallel()
			if _, err := command("verify", filepath.Join("earlier", run.Name())); err != nil {
				t.Error(err)
			}
		})
	}
	// A run that was killed goes on to the bits of the unbroken one.
	t.Run("resume", func(t *testing.T) {
		t.Parallel()
		if _, err := command("fit", "--quiet", "--resume", "broken"); err != nil {
			t.Fatal(err)
		}
		for sum := range strings.Lines(string(read(t, "unbroken", "sums"))) {
			want, file, _ := strings.Cut(strings.TrimSpace(sum), "  ")
			if got := fmt.Sprintf("%x", sha256.Sum256(read(t, "broken", file))); got != want {
				t.Errorf("%s of the resumed run differs from the unbroken one's", file)
			}
		}
		same(t, "model.json", "model.json", read(t, "unbroken", "model.json"), read(t, "broken", "model.json"))
		if _, err := command("verify", "broken", "--ledger", "broken.db"); err != nil {
			t.Error(err)
		}
	})
	figures := map[string][]string{
		"net-dda.json":         {"net", "net", "simulate", "net-dda.yaml", "--seed", "4", "--json"},
		"net-dgd.json":         {"net", "net", "simulate", "net-dgd.yaml", "--seed", "4", "--json"},
		"net-laplace-dgd.json": {"net", "net", "simulate", "net-laplace-dgd.yaml", "--seed", "4", "--json"},
		"audit-canaries.json":  {"audit", "audit", "clinic.yaml", "--json", "--seed", "4", "--canaries", "400", "--epsilon", "8", "--method", "sgd", "--set", "method.steps=5"},
		"audit-runs.json":      {"audit", "audit", "clinic.yaml", "--json", "--seed", "4", "--runs", "300", "--epsilon", "4", "--method", "majority"},
	}
	for file, args := range figures {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got, err := command(args[1:]...)
			if err != nil {
				t.Fatal(err)
			}
			same(t, file, args[0], read(t, "figures", file), got)
		})
	}
	t.Run("compare", func(t *testing.T) {
		t.Parallel()
		if _, err := command("compare", "clinic.yaml", "--quiet", "--methods", "sgd,nag", "--epsilon", "0.5,2", "--seeds", "2", "--split", "0.8", "--set", "method.steps=5", "--out", "compared"); err != nil {
			t.Fatal(err)
		}
		// Cells end in any order.
		want := slices.Sorted(strings.Lines(string(read(t, "figures", "compare.jsonl"))))
		got := slices.Sorted(strings.Lines(string(read(t, "compared", "runs.jsonl"))))
		if len(want) != len(got) {
			t.Fatalf("%d lines, were %d", len(got), len(want))
		}
		for i := range want {
			same(t, fmt.Sprintf("cell %d", i+1), "comparison", []byte(want[i]), []byte(got[i]))
		}
	})
}
