package arch

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestModulesOfAConsumer: the go.mod of a program that imports run names at most 25 modules,
// Sotto's own among them, whatever system it is built for. PostgreSQL, browser and network parts come
// by imports of their own.
func TestModulesOfAConsumer(t *testing.T) {
	modules := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		c := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "../../run")
		c.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range strings.Fields(string(out)) {
			modules[m] = true
		}
	}
	if len(modules) < 5 || len(modules) > 25 {
		t.Errorf("package run needs %d modules; allowed are 25: %s", len(modules), strings.Join(slices.Sorted(maps.Keys(modules)), ", "))
	}
	for m := range modules {
		for _, word := range []string{"pgx", "nats", "chromedp", "cobra"} {
			if strings.Contains(m, word) {
				t.Errorf("package run needs %s", m)
			}
		}
	}
}

// TestTools: what lies in modules of its own below tools follows the packages that it uses, has the versions of the
// modules that they have, and passes its own tests.
func TestTools(t *testing.T) {
	tools, err := filepath.Glob("../../tools/*/go.mod")
	if err != nil || len(tools) == 0 {
		t.Fatalf("found no tools: %v", err)
	}
	for _, mod := range tools {
		for _, do := range []string{"vet", "test"} {
			c := exec.Command("go", do, ".")
			c.Dir = filepath.Dir(mod)
			c.Env = append(os.Environ(), "CGO_ENABLED=0", // with the flags of the test, whose packages are compiled
				"GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false -mod=readonly")
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("go %s in %s: %v; if versions changed, run go mod tidy there\n%s", do, c.Dir, err, out)
			}
		}
	}
}
