package needs

import (
	"os"
	"path/filepath"
	"testing"
)

// Home runs the tests of a package with separate data and state directories,
// which are removed at the end, and returns the exit code. It is for TestMain of
// every package whose tests open ledgers or tables:
//
//	func TestMain(m *testing.M) { os.Exit(needs.Home(m)) }
func Home(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sotto-test-home-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"XDG_DATA_HOME", "XDG_STATE_HOME"} {
		os.Setenv(name, filepath.Join(dir, name))
	}
	return m.Run()
}
