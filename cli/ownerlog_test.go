package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
)

// A cluster is a coordinator and workers as processes on the loopback, each with an owner's log.
type cluster struct {
	t   *testing.T
	dir string
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// newCluster writes the clinic's table in two parts, the second with one more row.
func newCluster(t *testing.T, row string) *cluster {
	c := &cluster{t, t.TempDir()}
	c.must(os.CopyFS(c.dir, os.DirFS("../examples/clinic")))
	c.must(os.WriteFile(c.file("key"), []byte("the key of a test, of 32 bytes.."), 0o600))
	schema, err := os.ReadFile(c.file("schema.yaml"))
	c.must(err)
	c.must(os.WriteFile(c.file("schema.yaml"), append(schema, "\non_bad_row: drop\n"...), 0o600))
	b, err := os.ReadFile(c.file("patients.csv"))
	c.must(err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	c.must(os.WriteFile(c.file("part1.csv"), bytes.Join(lines[:1801], nil), 0o600))
	c.must(os.WriteFile(c.file("part2.csv"), slices.Concat(lines[0], bytes.Join(lines[1801:], nil), []byte(row)), 0o600))
	return c
}

// run fits and returns what each process printed, standard output and errors together, coordinator first, and the exit codes.
func (c *cluster) run(fit []string, worker ...string) (said []string, codes []int) {
	t := c.t
	coordinator := sotto(t, append([]string{"fit", c.file("sotto.yaml"), "--out", c.file("run"), "--workers", "127.0.0.1:0", "--shards", "2", "--key", c.file("key"), "--owner-log", c.file("owner0.log"),
		"--set", "method={name: sgd, steps: 40, batch: 64}"}, fit...)...)
	var out [3]bytes.Buffer
	coordinator.Stdout, coordinator.Stderr = &out[0], nil
	pipe, err := coordinator.StderrPipe()
	c.must(err)
	c.must(coordinator.Start())
	t.Cleanup(func() { coordinator.Process.Kill(); coordinator.Wait() })
	words := bufio.NewReader(pipe)
	line, err := words.ReadString('\n')
	c.must(err)
	url := regexp.MustCompile(`^waiting for the workers of 2 shards at (\S+)\n$`).FindStringSubmatch(line)
	if url == nil {
		rest, _ := io.ReadAll(words)
		t.Fatalf("the coordinator says %q", line+string(rest))
	}
	var workers []*exec.Cmd
	for i, part := range []string{"part1.csv", "part2.csv"} {
		w := sotto(t, append([]string{"worker", c.file("sotto.yaml"), "--hub", url[1], "--key", c.file("key"), "--index", string(rune('0' + i)), "--shards", "2",
			"--data", c.file(part), "--owner-log", c.file("owner" + string(rune('1'+i)) + ".log")}, worker...)...)
		w.Stdout, w.Stderr = &out[i+1], &out[i+1]
		c.must(w.Start())
		t.Cleanup(func() { w.Process.Kill(); w.Wait() })
		workers = append(workers, w)
	}
	rest, err := io.ReadAll(words)
	c.must(err)
	coordinator.Wait()
	said = []string{out[0].String() + strings.ReplaceAll(line+string(rest), url[1], "ADDRESS")}
	codes = []int{coordinator.ProcessState.ExitCode()}
	for i, w := range workers {
		w.Wait()
		said = append(said, strings.ReplaceAll(out[i+1].String(), url[1], "ADDRESS"))
		codes = append(codes, w.ProcessState.ExitCode())
	}
	return said, codes
}

// A row that does not fit the schema changes nothing of what coordinator and workers print: its message is in the owner's log.
func TestOwnerLog(t *testing.T) {
	t.Parallel()
	whole, codes := newCluster(t, "").run(nil)
	neighbor := newCluster(t, "94,13,many,16,25,former,oncology,none,no\n")
	neighbor.must(os.WriteFile(neighbor.file("owner2.log"), nil, 0o644)) // a file that was there, and open to all
	said, others := neighbor.run(nil)
	want := []string{"waiting for the workers of 2 shards at ADDRESS\ndone\n", "shard 1/2: connected to ADDRESS\nshard 1/2: has its rows\ndone\n", "shard 2/2: connected to ADDRESS\nshard 2/2: has its rows\ndone\n"}
	if !slices.Equal(whole, want) || !slices.Equal(said, want) || !slices.Equal(codes, []int{0, 0, 0}) || !slices.Equal(others, codes) {
		t.Errorf("one table: %v %q\nits neighbor: %v %q\nwant %q", codes, whole, others, said, want)
	}
	told, err := os.ReadFile(neighbor.file("owner2.log"))
	if err != nil || !strings.Contains(string(told), "rows do not fit the schema and are left out (column systolic 1)") {
		t.Errorf("the owner's log holds %q, %v", told, err)
	}
	if info, err := os.Stat(neighbor.file("owner2.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the owner's log: %v, %v", info, err)
	}

	// An error about a row, too: the command says only how it ended.
	neighbor.must(os.WriteFile(neighbor.file("schema.yaml"), bytes.Replace(must(os.ReadFile(neighbor.file("schema.yaml"))), []byte("on_bad_row: drop"), []byte("on_bad_row: stop"), 1), 0o600))
	coordinator := sotto(t, "fit", neighbor.file("sotto.yaml"), "--out", neighbor.file("again"), "--workers", "127.0.0.1:0", "--shards", "2", "--key", neighbor.file("key"))
	coordinator.Stderr = nil
	pipe, err := coordinator.StderrPipe()
	neighbor.must(err)
	neighbor.must(coordinator.Start())
	t.Cleanup(func() { coordinator.Process.Kill(); coordinator.Wait() })
	line, err := bufio.NewReader(pipe).ReadString('\n')
	neighbor.must(err)
	url := strings.TrimSpace(strings.TrimPrefix(line, "waiting for the workers of 2 shards at "))
	w := sotto(t, "worker", neighbor.file("sotto.yaml"), "--hub", url, "--quiet", "--key", neighbor.file("key"), "--index", "1", "--shards", "2", "--data", neighbor.file("part2.csv"), "--owner-log", neighbor.file("owner2.log"))
	var out bytes.Buffer
	w.Stdout, w.Stderr = &out, &out
	w.Run()
	if code := w.ProcessState.ExitCode(); code != 2 || out.String() != "sotto: ended with exit code 2; the owner's log says why\n" {
		t.Errorf("exit code %d: %q", code, &out)
	}
	if told := must(os.ReadFile(neighbor.file("owner2.log"))); !bytes.Contains(told, []byte("part2.csv:2202:7")) && !bytes.Contains(told, []byte("part2.csv:2202")) {
		t.Errorf("the owner's log holds %q", told)
	}
}

// A crash is no end: the public line does not say done.
func TestOwnerLogOfACrash(t *testing.T) {
	var out bytes.Buffer
	l := ownerLog{out: &out}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the crash went no further")
			}
		}()
		l.around(nil, func(error) bool { return false }, func() error { panic("a row") })
	}()
	if out.String() != "sotto: crashed; the owner's log says why\n" {
		t.Errorf("said %q", &out)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestOrResume: the command that began a run does nothing more when it is finished, continues it when its process was killed, and
// is refused where the directory holds another spec's.
func TestOrResume(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	fit := func(more ...string) (string, int) {
		c := sotto(t, append([]string{"fit", "../examples/clinic/sotto.yaml", "--or-resume", "--quiet", "--ledger", file("ledger.db"), "--set", "method={name: sgd, steps: 20, batch: 64}"}, more...)...)
		var out bytes.Buffer
		c.Stderr = &out
		c.Run()
		return out.String(), c.ProcessState.ExitCode()
	}
	for i := range 2 {
		if text, code := fit("--out", file("run")); code != 0 {
			t.Fatalf("start %d: exit code %d: %s", i+1, code, text)
		}
	}
	for flag, field := range map[string]string{"--epsilon=2": "privacy", "--model=linear": "schema", "--holdout=0.2": "holdout", "--output=last": "output"} {
		if text, code := fit("--out", file("run"), flag); code != 2 || flag != "--model=linear" && !strings.Contains(text, "holds a run with another "+field+" than this spec") {
			t.Errorf("%s: exit code %d: %s", flag, code, text)
		}
	}
	if text, code := fit(); code != 2 || !strings.Contains(text, `field "out" is missing`) {
		t.Errorf("without --out: exit code %d: %s", code, text)
	}
	// Of a process that died before it wrote run.json nothing is left; what is not of a run stays.
	if err := os.MkdirAll(file("died"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".lock", "events.jsonl", "resume.token", ".run.json.123"} {
		if err := os.WriteFile(filepath.Join(file("died"), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, code := fit("--out", file("died")); code != 0 {
		t.Errorf("exit code %d: %s", code, text)
	}
	if err := errors.Join(os.MkdirAll(file("other"), 0o700), os.WriteFile(file("other/notes"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if text, code := fit("--out", file("other")); code != 2 || !strings.Contains(text, "not empty") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
