package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run/runlog"
)

const deployDir = "../deploy"

// A batchJob is what is used of an object of the rendered chart.
type batchJob struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct{ Args []string }
			}
		}
	}
}

// jobs are the arguments of coordinator and workers in a rendered chart.
func jobs(t *testing.T, file string) (coordinator, worker []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deployDir, "check", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
		var j batchJob
		if err := d.Decode(&j); err == io.EOF {
			return coordinator, worker
		} else if err != nil {
			t.Fatal(err)
		}
		switch {
		case j.Kind != "Job":
		case strings.HasSuffix(j.Metadata.Name, "-coordinator"):
			coordinator = j.Spec.Template.Spec.Containers[0].Args
		default:
			worker = j.Spec.Template.Spec.Containers[0].Args
		}
	}
}

// TestChartIsChecked: deploy/check, which takes a minute to compile and runs in .ci/long, has seen the chart as it is, and this
// build has the flags that the chart uses.
func TestChartIsChecked(t *testing.T) {
	h := sha256.New()
	chart := os.DirFS(filepath.Join(deployDir, "sotto"))
	err := fs.WalkDir(chart, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(chart, name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"clinic.rendered.yaml", "metrics.rendered.yaml"} {
		b, err := os.ReadFile(filepath.Join(deployDir, "check", "testdata", file))
		if err != nil || !bytes.Contains(b, fmt.Appendf(nil, "SHA-256 %x,", h.Sum(nil))) {
			t.Errorf("%s is of another chart (%v); run `go run . -update` in deploy/check", file, err)
		}
		one, other := jobs(t, file)
		for _, args := range [][]string{one, other} {
			c, rest, err := root().Find(args)
			if err == nil {
				err = c.ParseFlags(strings.Split(strings.ReplaceAll(strings.Join(rest, "\n"), "$(SHARD)", "0"), "\n"))
			}
			if err != nil {
				t.Errorf("%s: %q: %v", file, args, err)
			}
		}
	}
}

// The commands of the chart, with files in place of mounted volumes: a coordinator that is stopped goes on when it is started again,
// and the run ends with a ledger in PostgreSQL that knows it.
func TestChart(t *testing.T) {
	t.Parallel()
	where, _, _ := needs.Schema(t)
	url := where.String()
	c := newCluster(t, "")
	part, err := os.ReadFile(c.file("part2.csv"))
	c.must(err)
	lines := bytes.SplitAfter(part, []byte("\n"))
	c.must(os.WriteFile(c.file("shard-0.csv"), must(os.ReadFile(c.file("part1.csv"))), 0o600))
	c.must(os.WriteFile(c.file("shard-1.csv"), bytes.Join(lines[:1001], nil), 0o600))
	c.must(os.WriteFile(c.file("shard-2.csv"), bytes.Join(append([][]byte{lines[0]}, lines[1001:]...), nil), 0o600))
	spec := must(os.ReadFile(c.file("sotto.yaml")))
	c.must(os.WriteFile(c.file("sotto.yaml"), append(bytes.ReplaceAll(spec, []byte("test: heldout.csv"), []byte("#")), "method: {name: sgd, steps: 6000, batch: 64}\n"...), 0o600))
	coordinator, worker := jobs(t, "clinic.rendered.yaml")
	hub := ""
	started := func(args []string, shard string) (*exec.Cmd, *bufio.Reader) {
		t.Helper()
		args = append([]string{}, args...)
		for i, a := range args {
			if strings.HasPrefix(a, "--ledger=") {
				a = "--ledger=" + url
			}
			args[i] = strings.NewReplacer("/spec/", c.dir+"/", "/key/", c.dir+"/", "/runs/", c.dir+"/", "/owner/", c.dir+"/", "/data/", c.dir+"/", ".parquet", ".csv",
				"0.0.0.0:4222", "127.0.0.1:0", "0.0.0.0:8080", "127.0.0.1:0", "clinic-readmission-coordinator:4222", hub, "$(SHARD)", shard).Replace(a)
		}
		p := sotto(t, args...)
		p.Stderr = nil
		out, err := p.StderrPipe()
		c.must(err)
		c.must(p.Start())
		t.Cleanup(func() { p.Process.Kill(); p.Wait() })
		return p, bufio.NewReader(out)
	}
	first, out := started(coordinator, "")
	line, err := out.ReadString('\n')
	c.must(err)
	hub = strings.TrimSpace(strings.TrimPrefix(line, "waiting for the workers of 3 shards at "))
	// The coordinator comes again at the address that workers know.
	for i, a := range coordinator {
		coordinator[i] = strings.ReplaceAll(a, "0.0.0.0:4222", hub)
	}
	var workers []*exec.Cmd
	for _, shard := range []string{"0", "1", "2"} {
		w, out := started(worker, shard)
		go io.Copy(io.Discard, out)
		workers = append(workers, w)
	}
	needs.Until(t, "steps on disk", func() bool {
		b, err := os.ReadFile(filepath.Join(c.file("readmission"), runlog.StepsFile))
		return err == nil && len(b) > 0
	})
	first.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(out)
	first.Wait()
	if code := first.ProcessState.ExitCode(); code != 130 || !strings.HasSuffix(string(rest), "sotto: stopped\n") {
		t.Fatalf("exit code %d: %q", code, rest)
	}
	for i := range 2 { // it goes on; then it is done
		again, out := started(coordinator, "")
		rest, _ := io.ReadAll(out)
		again.Wait()
		if code := again.ProcessState.ExitCode(); code != 0 || !strings.HasSuffix(string(rest), "\ndone\n") {
			log, _ := os.ReadFile(c.file("coordinator.log"))
			t.Fatalf("start %d: exit code %d: %q\n%s", i+2, code, rest, log)
		}
	}
	for i, w := range workers {
		if err := w.Wait(); err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	info, err := runlog.ReadInfo(c.file("readmission"))
	if err != nil || info.Status != runlog.Finished || info.Shards != 3 || !info.Resumed() {
		t.Errorf("%+v, %v", info, err)
	}
}
