package runlog

import (
	"os"
	"path/filepath"
	"sync"
)

// Devel is the version of a program whose version is not known.
const Devel = "(devel)"

// ReleasedAs is the version of Sotto where the module system does not know it, as in a program that is built outside of
// a repository: go build -ldflags "-X github.com/sottodp/sotto/run/runlog.ReleasedAs=v0.1.0".
var ReleasedAs string

// Binary is the SHA-256 of the running program in hex; empty: its file cannot be read. The file is read once.
var Binary = sync.OnceValue(func() string {
	path := "/proc/self/exe" // the program that runs, even if another took its name
	if _, err := os.Stat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			return ""
		}
	}
	dir, name := filepath.Split(path)
	sum, err := Hash(dir, name)
	if err != nil {
		return ""
	}
	return sum
})

// ReadBinary begins to read the program for Binary, and does not wait.
func ReadBinary() { go Binary() }
