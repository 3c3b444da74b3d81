//go:build unix

package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/study/audit"
	"github.com/sottodp/sotto/study/compare"
)

// D1: a named pipe or a device instead of any file that the dashboard reads
// stops neither the list nor the pages of other runs.
func TestD1SpecialFiles(t *testing.T) {
	root := t.TempDir()
	good := fit(t, root, "good")
	pipe := func(dir string, names ...string) {
		t.Helper()
		dir = filepath.Join(root, "runs", dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			os.Remove(path)
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe("piped", runlog.InfoFile)
	pipe("audit", audit.DataFile)
	pipe("comparison", compare.HeadFile, compare.CellsCSV, compare.Chart)
	os.MkdirAll(filepath.Join(root, "runs", "zero"), 0o755)
	if err := os.Symlink("/dev/zero", filepath.Join(root, "runs", "zero", runlog.InfoFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(root, "runs", "record"), os.DirFS(good)); err != nil {
		t.Fatal(err)
	}
	pipe("record", runlog.EventsFile, runlog.StepsFile, runlog.ReleasesFile, runlog.ModelFile, runlog.ReportFile)

	s := open(t, root).enter()
	status, text := s.get("/")
	if status != 200 || strings.Count(text, "damaged") < 2 {
		t.Errorf("the list: %d: %.2000s", status, text)
	}
	if status, text := s.get("/runs/" + placeOf(good).Key); status != 200 {
		t.Errorf("the good run: %d: %.500s", status, text)
	}
	for _, dir := range []string{"piped", "zero", "record"} {
		if status, _ := s.get("/runs/" + placeOf(filepath.Join(root, "runs", dir)).Key); status != 200 && status/100 != 4 && status/100 != 5 {
			t.Errorf("%s: %d", dir, status)
		}
	}
	for _, page := range []string{"/audits/", "/comparisons/"} {
		s.get(page + placeOf(filepath.Join(root, "runs", strings.TrimSuffix(strings.Trim(page, "/"), "s"))).Key) // answers
	}
	s.get("/comparisons/" + placeOf(filepath.Join(root, "runs", "comparison")).Key + "/figure.svg")
}

// A run is stalled when its process is gone and its files are silent.
func TestStalled(t *testing.T) {
	root := t.TempDir()
	like := fit(t, root, "first")
	dir := filepath.Join(root, "runs", "killed")
	killed(t, like, dir)
	s := open(t, root).enter()
	state := func(want string) {
		t.Helper()
		for end := time.Now().Add(needs.Patience); ; time.Sleep(10 * time.Millisecond) { // a scan may have begun before
			dirs := s.server.dirs
			dirs.mu.Lock()
			dirs.last = nil
			dirs.mu.Unlock()
			e, err := dirs.list().run(s.keyIn("killed"))
			if err == nil && e.State == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("found %+v, %v; want %s", e, err, want)
			}
		}
	}
	state(stalled)
	for path, want := range map[string]string{"/runs?status=stalled": "1 to 1 of 1 runs", "/": `class="verdict warn">stalled`, "/runs/" + s.keyIn("killed"): "sotto fit --resume " + dir} {
		if _, text := s.get(path); !strings.Contains(text, want) || !strings.Contains(text, `class="step">7</b> of 40`) || !strings.Contains(text, "its process is gone") {
			t.Errorf("%s lacks %q:\n%s", path, want, text)
		}
	}
	unlock, err := run.LockDir(dir) // a process resumes it
	if err != nil {
		t.Fatal(err)
	}
	state(runlog.Running)
	unlock()
	state(stalled)
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, runlog.StepsFile), now, now); err != nil { // one on another machine
		t.Fatal(err)
	}
	state(runlog.Running)
	later := now.AddDate(1, 0, 0)
	if err := os.Chtimes(filepath.Join(dir, runlog.StepsFile), later, later); err != nil { // then the clock was set back
		t.Fatal(err)
	}
	state(stalled)
	if err := os.Chtimes(filepath.Join(dir, runlog.StepsFile), now, now); err != nil {
		t.Fatal(err)
	}
	state(runlog.Running)
}
