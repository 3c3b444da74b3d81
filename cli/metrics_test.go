package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// names are those of the numbers in a text.
func names(text []byte) (found []string) {
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+)[ {]`).FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// schedule are the numbers of a fit that follow from its schedule.
var scheduleNames = []string{"sotto_delta", "sotto_epsilon", "sotto_epsilon_spent", "sotto_info", "sotto_noise_multiplier", "sotto_state", "sotto_steps", "sotto_steps_max"}

var spent = regexp.MustCompile(`(?m)^sotto_epsilon_spent .*$`)

// On two neighboring tables, here of 4,000 rows and one more, the texts are the same bytes at equal steps. With timings they have
// times, and the report names them.
func TestMetricsOfNeighbors(t *testing.T) {
	dir := t.TempDir()
	table, err := os.ReadFile("../examples/clinic/patients.csv")
	if err != nil {
		t.Fatal(err)
	}
	more := filepath.Join(dir, "more.csv")
	if err := os.WriteFile(more, append(bytes.Clone(table), "94,13,126,16,25,former,oncology,none,no\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	scrapes := func(data, out string, timings bool) map[int]string {
		t.Helper()
		spec, err := run.LoadSpec("../examples/clinic/sotto.yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		spec.Data, spec.Test, spec.Ledger, spec.Out, spec.MetricsTimings = data, "", filepath.Join(dir, out+".db"), filepath.Join(dir, out), timings
		job, err := run.Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		m := &meters{timings: timings, address: "127.0.0.1:0"}
		if err := m.begin("fit", runStates...); err != nil {
			t.Fatal(err)
		}
		progress, err := m.schedule(job, "")
		if err != nil {
			t.Fatal(err)
		}
		texts := map[int]string{0: string(m.text())}
		_, _, err = run.Fit(t.Context(), job, run.Env{Report: page.Write, Progress: func(p run.Progress) {
			progress(p)
			texts[p.Step] = string(m.text())
		}})
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}
	one, other := scrapes("../examples/clinic/patients.csv", "one", false), scrapes(more, "other", false)
	equal := 0
	for step, text := range one {
		if other[step] == "" {
			continue
		}
		equal++
		// Whether the release behind the last step is in the last group of durable records is a matter of time alone.
		if spent.ReplaceAllString(other[step], "") != spent.ReplaceAllString(text, "") {
			t.Errorf("after step %d:\n%s\nand of its neighbor\n%s", step, text, other[step])
		}
		if found := names([]byte(text)); !slices.Equal(found, scheduleNames) {
			t.Errorf("found the numbers %q; want %q", found, scheduleNames)
		}
	}
	if equal < 2 { // the first and the last are there
		t.Errorf("%d equal steps of %d and %d", equal, len(one), len(other))
	}

	timed := scrapes(more, "timed", true)
	for step, text := range timed {
		if !strings.Contains(text, "process_cpu_seconds_total") || !strings.Contains(text, "process_resident_memory_bytes") {
			t.Errorf("after step %d, with timings:\n%s", step, text)
		}
	}
	info, err := runlog.ReadInfo(filepath.Join(dir, "timed"))
	page, worse := os.ReadFile(filepath.Join(dir, "timed", runlog.ReportFile))
	if err = errors.Join(err, worse); err != nil || !slices.Contains(info.Assertions, runlog.MetricsTimings) || !bytes.Contains(page, []byte("were served as metrics while the run went")) {
		t.Errorf("the report does not name the timings: %v", err)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "one", runlog.ReportFile)); err != nil || bytes.Contains(page, []byte("served as metrics")) {
		t.Errorf("the report of a run without timings names them: %v", err)
	}
}

// get returns what an address serves, once it serves something with the word in it.
func get(t *testing.T, url, word string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var text []byte
		r, err := http.Get(url)
		if err == nil {
			text, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		if err == nil && strings.Contains(string(text), word) {
			return string(text)
		}
		if time.Now().After(end) {
			t.Fatalf("%s serves %q, %v", url, text, err)
		}
	}
}

// start starts a command, and returns what gives the rest of a line of its standard error.
func start(t *testing.T, c *exec.Cmd) (said func(line string) string) {
	t.Helper()
	c.Stderr = nil
	pipe, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	lines, seen := make(chan string, 1000), []string{}
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(pipe); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return func(line string) string {
		t.Helper()
		for {
			for _, s := range seen {
				if rest, ok := strings.CutPrefix(s, line); ok {
					return rest
				}
			}
			select {
			case s, ok := <-lines:
				if !ok {
					t.Fatalf("the command said %q, and not %q", seen, line)
				}
				seen = append(seen, s)
			case <-time.After(time.Minute):
				t.Fatalf("the command says %q, and not %q", seen, line)
			}
		}
	}
}

// Coordinator and worker serve the same bytes for a table and its neighbor, here one with a row that does not fit.
func TestMetricsOfWorkers(t *testing.T) {
	t.Parallel()
	var texts [2][]string
	for i, row := range []string{"", "94,13,many,16,25,former,oncology,none,no\n"} {
		c := newCluster(t, row)
		coordinator := sotto(t, "fit", c.file("sotto.yaml"), "--out", c.file("run"), "--workers", "127.0.0.1:0", "--shards", "2", "--key", c.file("key"), "--metrics", ":0", "--health", "127.0.0.1:0")
		said := start(t, coordinator)
		metrics, health := said("metrics at "), said("health at ")
		if text := get(t, health, "ok"); text != "ok\n" {
			t.Errorf("health is %q", text)
		}
		hub := said("waiting for the workers of 2 shards at ")
		w := sotto(t, "worker", c.file("sotto.yaml"), "--hub", hub, "--key", c.file("key"), "--index", "1", "--shards", "2", "--data", c.file("part2.csv"), "--metrics", ":0")
		worker := start(t, w)("metrics at ")
		texts[i] = []string{get(t, worker, `sotto_state{state="connected"} 1`), get(t, metrics, "sotto_shards_connected 1")}
	}
	if !slices.Equal(texts[0], texts[1]) {
		t.Errorf("a table: %s\nits neighbor: %s", texts[0], texts[1])
	}
	for i, want := range [][]string{{"sotto_connections_total", "sotto_info", "sotto_shard", "sotto_shards", "sotto_state"}, slices.Sorted(slices.Values(append([]string{"sotto_connections_total", "sotto_shards", "sotto_shards_connected"}, scheduleNames...)))} {
		if found := names([]byte(texts[0][i])); !slices.Equal(found, want) {
			t.Errorf("found the numbers %q; want %q", found, want)
		}
	}
}
