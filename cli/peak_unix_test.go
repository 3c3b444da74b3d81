//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// measured lets a command write down its peak of memory, and returns what reads it in bytes once the command has ended.
// Linux counts what the parent had when it started a process as the process's own peak, too: here these tests, which may
// have more than the command.
func measured(t *testing.T, c *exec.Cmd) func() int64 {
	file := filepath.Join(t.TempDir(), "peak")
	c.Env = append(c.Env, peakVariable+"="+file)
	return func() int64 {
		if runtime.GOOS != "linux" {
			peak := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
			if runtime.GOOS != "darwin" {
				peak <<= 10
			}
			return peak
		}
		status, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
		var kilobytes int64
		if _, err := fmt.Sscan(string(rest), &kilobytes); !found || err != nil {
			t.Fatalf("no peak in the status of a process: %v", err)
		}
		return kilobytes << 10
	}
}
