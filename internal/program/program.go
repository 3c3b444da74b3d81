// Package program builds the sotto command for a platform, for what ships it.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build is the static command for a platform: no C library, no paths of this machine,
// no tables of names for a debugger, the commit in it where there is one. Equal sources
// and an equal Go give equal bytes. It is made from the module in the directory; more is
// added to the environment of go.
func Build(module, goos, arch string, more ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "sotto-program-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "sotto")
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", out, "./cmd/sotto")
	c.Dir = module
	c.Env = append(os.Environ(),
		append([]string{"GOFLAGS=-buildvcs=auto", "CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + arch, "GOAMD64=v1",
			"GOARM64=v8.0", "GOEXPERIMENT="}, more...)...)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go build for %s/%s: %w", goos, arch, err)
	}
	return os.ReadFile(out)
}
