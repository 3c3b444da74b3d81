package size

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

func TestMain(m *testing.M) { os.Exit(needs.Home(m)) }

// job prepares a spec of the clinic whose schema is changed.
func job(t *testing.T, spec string, change ...string) *run.Job {
	t.Helper()
	dir, clinic := t.TempDir(), filepath.Join("..", "..", "examples", "clinic")
	text, err := os.ReadFile(filepath.Join(clinic, "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "schema.yaml"), []byte(strings.NewReplacer(change...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	spec += "\ndata: " + filepath.Join(dir, "patients.csv") + "\nschema: schema.yaml\nprivacy: {epsilon: 1, delta: 1e-10, adjacency: add-or-remove}\n"
	path := filepath.Join(dir, "spec.yaml")
	if err := os.WriteFile(path, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := run.LoadSpec(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := run.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// The sizes are those of the blocks that rows are kept in and of the files that the run log writes.
func TestOf(t *testing.T) {
	sgd := "model: {name: logistic}\nmethod: {name: sgd, steps: 50, batch: 20}"
	j := job(t, sgd)
	n := Of(j, false)
	if want := 4*j.Schema.Dim() + 8; n.RowBytes != want || n.Rows != int64(want)*4000 {
		t.Errorf("rows are %+v; want %d bytes each", n, want)
	}
	if n.Releases != int64(50*runlog.ReleaseBytes(j.Facts.Dim)) || n.Steps != 50*80 || n.Large() {
		t.Errorf("the files are %+v", n)
	}
	// Only what is declared counts, and no file needs to be there.
	more := Of(job(t, sgd, "rows: 4000 ", "rows: 400000000 "), false)
	if more.Rows != 100_000*n.Rows || !more.Large() || !strings.Contains(more.Words(), " GB of memory for the declared rows, ") {
		t.Errorf("of 400,000,000 rows: %+v, %s", more, more.Words())
	}
	// Bumps are features in memory.
	bumps := job(t, sgd, "max: 100", "max: 100, hats: 64")
	if wide := Of(bumps, false); wide.RowBytes != n.RowBytes+4*64 {
		t.Errorf("with bumps a row has %d bytes, %d features; without %d", wide.RowBytes, bumps.Schema.Dim(), n.RowBytes)
	}
}

// Of columns that auto gives bumps a row is kept whole where the declared rows are few, and otherwise without them.
func TestCurves(t *testing.T) {
	for rows, narrow := range map[int]bool{20_000: false, 2_000_000: true} {
		j := job(t, "model: {name: logistic}", "rows: 4000 ", fmt.Sprintf("rows: %d ", rows))
		lines, ok := j.Schema.Lines()
		if !ok || !j.Facts.Snapped || data.Narrows(j.Schema) != narrow {
			t.Fatalf("%d rows: narrow %t; %s", rows, data.Narrows(j.Schema), j.Encoding)
		}
		whole := 4 * j.Schema.Dim()
		if narrow {
			whole = 0
		}
		if n, packed := Of(j, false).RowBytes, Of(j, true).RowBytes; n != whole+4*lines.Dim()+20 || packed != whole+12 {
			t.Errorf("%d rows: %d bytes, packed %d, of %d features", rows, n, packed, j.Schema.Dim())
		}
	}
}

// A run that saves states keeps the releases since the last one but one.
func TestReleasesOfAWideModel(t *testing.T) {
	j := job(t, "model: {name: logistic}\nmethod: {name: sgd, steps: 2000000, batch: 20}")
	if j.StateEvery == 0 {
		t.Fatal("the run keeps every release")
	}
	if n := Of(j, false); n.Releases != int64(2*j.StateEvery*runlog.ReleaseBytes(j.Facts.Dim)) || n.Steps != 160_000_000 || !n.Large() {
		t.Errorf("found %+v for states every %d steps", n, j.StateEvery)
	}
}

// Rows that are mapped from a file take no memory, and those of formats without a number of features are not known.
func TestRowsThatAreNotKnown(t *testing.T) {
	j := job(t, "model: {name: logistic}\nmethod: {name: sgd, steps: 5}", "rows: 4000 ", "rows: 400000000 ")
	if err := check(j, false, 1<<30); err == nil {
		t.Error("rows of a CSV file are not counted")
	}
	if n := Of(j, true); n.Rows != 0 || n.RowBytes != 0 || check(j, true, 1<<20) != nil || strings.Contains(n.Words(), "declared rows") {
		t.Errorf("packed rows are %+v", n)
	}
	s := *j.Schema
	s.Format.Kind, j.Schema = schema.KindLIBSVM, &s
	if n := Of(j, false); n.Rows != 0 {
		t.Errorf("rows of LIBSVM are %+v", n)
	}
}

// The refusal says what to do, and names declared rows only.
func TestCheck(t *testing.T) {
	j := job(t, "model: {name: logistic}\nmethod: {name: sgd, steps: 5}", "rows: 4000 ", "rows: 400000000 ")
	n := Of(j, false)
	for machine, refused := range map[int64]bool{0: false, n.Rows: false, n.Rows - 1: true, 1 << 20: true, math.MaxInt64: false} {
		err := check(j, false, machine)
		var memory *MemoryError
		if errors.As(err, &memory) != refused {
			t.Errorf("with %d bytes: %v", machine, err)
		}
		for _, says := range []string{"400000000 rows that the schema declares", "sotto data pack", "hats"} {
			if refused && !strings.Contains(err.Error(), says) {
				t.Errorf("the error does not say %q: %v", says, err)
			}
		}
	}
	if product(1<<40, 1<<40) != math.MaxInt64 || product(0, 5) != 0 {
		t.Error("a size overflows")
	}
}

// On Linux the machine has some memory, and a limit is no larger.
func TestMemory(t *testing.T) {
	if n := memory(); runtime.GOOS == "linux" && (n < 64<<20 || n > 1<<50) {
		t.Errorf("the machine has %d bytes", n)
	}
}

// The least of the machine's memory and the limits of all control groups above the process counts.
func TestMemoryOf(t *testing.T) {
	const meminfo = "MemTotal:       16000000 kB\nMemFree: 1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"another system": {nil, 0},
		"no groups":      {map[string]string{"/proc/meminfo": meminfo}, 16_000_000 << 10},
		"version 2": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "max\n",
			"/sys/fs/cgroup/a/memory.max": "1000000000\n"}, 1e9},
		"version 2, a container": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "2000000000\n"}, 2e9},
		"version 1": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "5:cpu,memory:/x\n1:cpu:/y\n", "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "3000000000\n",
			"/sys/fs/cgroup/memory/y/memory.limit_in_bytes": "1\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 3e9},
		"more than there is": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "90000000000000\n"}, 16_000_000 << 10},
		"odd lines":          {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "x\n\n0::relative\n", "/sys/fs/cgroup/memory.max": "?\n"}, 16_000_000 << 10},
	} {
		if got := memoryOf(func(path string) string { return c.files[path] }); got != c.want {
			t.Errorf("%s: %d bytes; want %d", name, got, c.want)
		}
	}
}
