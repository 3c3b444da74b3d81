package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/run/runlog"
)

// A program of another module with one method more fits and verifies; this build says which one can.
func TestOutside(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	dir := t.TempDir()
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	copied := func(from, to string) string {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		return writeText(t, dir, to, string(b))
	}
	copied(filepath.Join(repo, "go.sum"), "go.sum")
	parts, err := filepath.Glob("testdata/outside/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		copied(part, filepath.Base(part))
	}
	// It requires what Sotto does, also indirectly: then go needs no file of a module that a build of Sotto has not read.
	own, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod := strings.Replace(string(own), "module github.com/sottodp/sotto\n", "module example.com/mine\n", 1)
	mod = regexp.MustCompile(`(?m)^tool .*`).ReplaceAllString(mod, "")
	writeText(t, dir, "go.mod", mod+"\nrequire github.com/sottodp/sotto v0.0.0\n\nreplace github.com/sottodp/sotto => "+repo+"\n")
	build := exec.Command("go", "build", "-o", "mine", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -buildvcs=false", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	mine := func(args ...string) string {
		c := exec.Command(filepath.Join(dir, "mine"), args...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("mine %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run := filepath.Join(dir, "run")
	mine("fit", "../examples/clinic/sotto.yaml", "--method", "sign", "--out", run, "--ledger", filepath.Join(dir, "l.db"), "--quiet")
	if out := mine("verify", run); !strings.Contains(out, "All that was checked holds") {
		t.Errorf("its own verify: %s", out)
	}
	if out := mine("help", "sign"); !strings.Contains(out, "signs of noisy gradients") || !strings.Contains(out, "clip") {
		t.Errorf("its help: %s", out)
	}
	const maker = "example.com/mine (devel)"
	if info, err := runlog.ReadInfo(run); err != nil || info.Build != maker || info.Version != "(devel)" {
		t.Errorf("run.json has the build %q, version %q (%v)", info.Build, info.Version, err)
	}
	if out := mine("version"); !strings.Contains(out, "Program    "+maker) {
		t.Errorf("its version: %s", out)
	}
	before, err := os.ReadDir(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"verify", "report"} {
		c := sotto(t, command, run)
		c.Stderr = nil
		out, err := c.CombinedOutput()
		want := `method "sign" is not in this build of Sotto; the run was made by ` + maker
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitInput || !strings.Contains(string(out), want) {
			t.Errorf("%s of this build: %v, %s", command, err, out)
		}
	}
	if after, err := os.ReadDir(run); err != nil || len(after) != len(before) {
		t.Errorf("this build wrote into the run: %v (%v)", after, err)
	}

	// Its model, on a table in its format; its method of a network.
	patients, err := os.ReadFile("../examples/clinic/patients.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(patients)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	fixed := "fixed\n"
	for _, row := range rows[1:] {
		for _, cell := range row {
			fixed += fmt.Sprintf("%-16s", cell)
		}
		fixed += "\n"
	}
	run = filepath.Join(dir, "rare")
	mine("fit", "../examples/clinic/sotto.yaml", "--data", writeText(t, dir, "patients.txt", fixed), "--model", "rare", "--method", "sign", "--out", run, "--ledger", filepath.Join(dir, "l.db"), "--quiet")
	if out := mine("verify", run); !strings.Contains(out, "All that was checked holds") {
		t.Errorf("its own verify: %s", out)
	}
	spec, err := os.ReadFile("../examples/network/sotto.yaml")
	if err != nil {
		t.Fatal(err)
	}
	clinic, err := filepath.Abs("../examples/clinic")
	if err != nil {
		t.Fatal(err)
	}
	net := strings.NewReplacer("../clinic", clinic, "name: dda", "name: heavy-ball", "rounds: 100", "rounds: 20").Replace(string(spec))
	if out := mine("net", "simulate", writeText(t, dir, "net.yaml", net)); !strings.Contains(out, "heavy-ball") {
		t.Errorf("its network: %s", out)
	}

	// The page shows nothing that is not compiled here.
	page, err := os.ReadFile("../docs/how-to/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, part := range parts {
		b, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		code += string(b)
	}
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range shown {
		if !strings.Contains(code, block[1]) && !strings.Contains(code, "\t"+strings.TrimSuffix(strings.ReplaceAll(block[1], "\n", "\n\t"), "\t")) {
			t.Errorf("docs/how-to/extending.md shows what is in no file of testdata/outside:\n%s", block[1])
		}
	}
	if len(shown) < 5 {
		t.Errorf("docs/how-to/extending.md has %d blocks of Go", len(shown))
	}
}
