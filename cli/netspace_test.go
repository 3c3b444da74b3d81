//go:build linux

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A space is a network namespace with one link to the hub's. In it the name localhost, which the hub's certificate has,
// is the hub's end of the link. Cut, nothing comes through, and no connection is closed.
type space struct {
	t    testing.TB
	name string
	near string // the hub's end of the link
}

// newSpace makes the namespace of owner i, which takes root. It is gone when the test ends.
func newSpace(t testing.TB, i int) *space {
	t.Helper()
	s := &space{t: t, name: fmt.Sprintf("sotto-%d-%d", os.Getpid(), i), near: fmt.Sprintf("so%d-%d", os.Getpid()%100_000, i)}
	etc := filepath.Join("/etc/netns", s.name)
	if err := errors.Join(os.MkdirAll(etc, 0o755), os.WriteFile(filepath.Join(etc, "hosts"), fmt.Appendf(nil, "10.213.%d.1 localhost\n", i), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(etc); os.Remove(filepath.Dir(etc)) })
	s.ip("netns add %s", s.name)
	t.Cleanup(func() { s.ip("netns del %s", s.name) })
	s.ip("link add %s type veth peer name far netns %s", s.near, s.name)
	s.ip("addr add 10.213.%d.1/24 dev %s", i, s.near)
	s.ip("link set %s up", s.near)
	s.ip("-n %s addr add 10.213.%d.2/24 dev far", s.name, i)
	s.ip("-n %s link set far up", s.name)
	return s
}

func (s *space) ip(format string, args ...any) {
	s.t.Helper()
	if out, err := exec.Command("ip", strings.Fields(fmt.Sprintf(format, args...))...).CombinedOutput(); err != nil {
		s.t.Fatalf("ip %s: %v: %s", fmt.Sprintf(format, args...), err, out)
	}
}

// sotto is the command there.
func (s *space) sotto(args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", s.name, "sotto"}, args...)...) // testscript put it on the path
}

// Cut cuts the link or mends it.
func (s *space) Cut(cut bool) {
	s.ip("link set %s %s", s.near, map[bool]string{true: "down", false: "up"}[cut])
}
