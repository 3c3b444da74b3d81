package cli

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sottodp/sotto/run/runlog"
)

// A coordinator and two workers as processes on the loopback, one worker killed again and again: the run's releases are those of a
// fit on the table in one piece, and the workers go home when it is done.
func TestWorkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.CopyFS(dir, os.DirFS("../examples/clinic")))
	must(os.WriteFile(file("key"), []byte("the key of a test, of 32 bytes.."), 0o600))
	b, err := os.ReadFile(file("patients.csv"))
	must(err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	must(os.WriteFile(file("part1.csv"), bytes.Join(lines[:1801], nil), 0o600))
	must(os.WriteFile(file("part2.csv"), slices.Concat(lines[0], bytes.Join(lines[1801:], nil)), 0o600))

	fit := []string{"fit", file("sotto.yaml"), "--lab", "--seed", "7", "--set", "method={name: sgd, steps: 1500, batch: 64}"}
	must(sotto(t, append(fit, "--out", file("here"), "--quiet")...).Run())

	coordinator := sotto(t, append(fit, "--out", file("away"), "--workers", "127.0.0.1:0", "--shards", "2", "--key", file("key"))...)
	coordinator.Stderr = nil
	stderr, err := coordinator.StderrPipe()
	must(err)
	must(coordinator.Start())
	t.Cleanup(func() { coordinator.Process.Kill(); coordinator.Wait() })
	words := bufio.NewReader(stderr)
	line, err := words.ReadString('\n')
	must(err)
	url := regexp.MustCompile(`^waiting for the workers of 2 shards at (\S+)\n$`).FindStringSubmatch(line)
	if url == nil {
		t.Fatalf("the coordinator says %q", line)
	}
	go io.Copy(io.Discard, words)

	worker := func(shard, data string) *exec.Cmd {
		c := sotto(t, "worker", file("sotto.yaml"), "--hub", url[1], "--key", file("key"), "--shard", shard, "--data", file(data), "--quiet")
		must(c.Start())
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c
	}
	var steady *exec.Cmd // comes when the other has died once
	ended := make(chan error, 1)
	go func() { ended <- coordinator.Wait() }()
	spell := 200 * time.Millisecond // of the mortal's life; longer each time, so that on a busy machine the run goes on, too
	for lives := 1; ; lives++ {
		mortal := worker("1/2", "part1.csv")
		if lives == 2 {
			steady = worker("2/2", "part2.csv")
		}
		select {
		case err := <-ended:
			must(err)
			must(steady.Wait())
			for _, name := range []string{runlog.ReleasesFile, runlog.StepsFile} {
				here, err := os.ReadFile(filepath.Join(file("here"), name))
				must(err)
				away, err := os.ReadFile(filepath.Join(file("away"), name))
				must(err)
				if len(here) == 0 || !bytes.Equal(here, away) {
					t.Errorf("%s: %d bytes of the table in one piece, %d of its shards, and they differ", name, len(here), len(away))
				}
			}
			return
		case <-time.After(spell):
			mortal.Process.Kill()
			mortal.Wait()
			spell = spell * 5 / 4
		}
	}
}
