//go:build unix

package runlog

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

type owned struct {
	mode fs.FileMode
	uid  uint32
}

func (o owned) Name() string       { return "key" }
func (o owned) Size() int64        { return 32 }
func (o owned) Mode() fs.FileMode  { return o.mode }
func (o owned) ModTime() time.Time { return time.Time{} }
func (o owned) IsDir() bool        { return false }
func (o owned) Sys() any           { return &syscall.Stat_t{Uid: o.uid} }

// TestSecretModes: a key may be its owner's alone, or root's with a group that reads it, as Kubernetes mounts a secret.
func TestSecretModes(t *testing.T) {
	for _, c := range []struct {
		owned
		user int
		open bool
	}{
		{owned{0o400, 1000}, 1000, false}, {owned{0o600, 1000}, 1000, false}, {owned{0o440, 1000}, 1000, true}, {owned{0o604, 1000}, 1000, true},
		{owned{0o440, 0}, 1000, false}, {owned{0o640, 0}, 1000, false}, {owned{0o460, 0}, 1000, true}, {owned{0o444, 0}, 1000, true},
		{owned{0o400, 0}, 0, false}, {owned{0o640, 0}, 0, true},
	} {
		if got := open(c.owned, c.user); got != c.open {
			t.Errorf("mode %04o of user %d, for user %d: open is %v", c.mode, c.uid, c.user, got)
		}
	}
	file := t.TempDir() + "/key"
	if err := os.WriteFile(file, nil, 0o604); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o604); err != nil {
		t.Fatal(err)
	}
	if Secret(file) == nil {
		t.Error("a key that all may read is accepted")
	}
}
