//go:build unix

package readfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// D1: what is no regular file is refused without waiting, by its name.
func TestD1SpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, link, sock := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "sock")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	if l, err := net.Listen("unix", sock); err == nil {
		defer l.Close()
	}
	for path, found := range map[string]string{pipe: "a named pipe", link: "a device", sock: "a socket", dir: "a directory"} {
		for name, open := range map[string]func() error{
			"Open":     func() error { _, err := Open(path); return err },
			"All":      func() error { _, err := All(path, 10); return err },
			"OpenFile": func() error { _, err := OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); return err },
		} {
			err := open()
			var at *fs.PathError
			if !Refused(err) || !errors.As(err, &at) || at.Path != path || !strings.Contains(err.Error(), found) {
				t.Errorf("%s(%s): %v, want that it is %s", name, path, err, found)
			}
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// D1: a sparse file of 4 GB is refused by its size, before a byte is read; a line
// by the limit.
func TestD1Limits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4<<30); err != nil {
		t.Fatal(err)
	}
	if _, err := All(path, Lines); !Refused(err) || !strings.Contains(err.Error(), "more than 1 GiB") {
		t.Errorf("All: %v", err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := &counted{r: f}
	if _, err := NewLineReader(path, in).Next(); !Refused(err) || !strings.Contains(err.Error(), path+":1: found a line of more than 1 MiB") {
		t.Errorf("Next: %v", err)
	}
	if in.n > 2*Line {
		t.Errorf("read %d bytes of a line that is refused after %d", in.n, Line)
	}
}

// D1: a file of empty lines is refused by their number.
func TestD1Lines(t *testing.T) {
	in := NewLineReader("f", endless{})
	for n := range int(Count) {
		if _, err := in.Next(); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
	}
	if _, err := in.Next(); !Refused(err) || !strings.Contains(err.Error(), "more than 10000000 lines") {
		t.Errorf("one more: %v", err)
	}
}

// endless is a file of nothing but ends of lines.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '\n'
	}
	return len(b), nil
}

type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	in := NewLineReader("f", strings.NewReader("a\n\n"+long+"\nend"))
	for _, want := range []string{"a\n", "\n", long + "\n"} {
		if got, err := in.Next(); err != nil || string(got) != want {
			t.Fatalf("found %.20q, %v; want %.20q", got, err, want)
		}
	}
	if got, err := in.Next(); err != io.EOF || string(got) != "end" {
		t.Errorf("the end: %q, %v", got, err)
	}
}

// What a process inherited is exempt: a pipe is read once and opened often, a file
// without a name is a file.
func TestInherited(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := bytes.Repeat([]byte("row\n"), 100_000) // more than a pipe holds
	go func() {
		w.Write(want)
		w.Close()
	}()
	unnamed, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer unnamed.Close()
	unnamed.Write(want)
	os.Remove(unnamed.Name())
	for _, f := range []*os.File{r, unnamed} {
		path := fmt.Sprintf("/dev/fd/%d", f.Fd())
		for range 3 {
			got, err := All(path, JSON)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %d bytes, %v; want %d", path, len(got), err, len(want))
			}
		}
	}
	for path, want := range map[string]bool{"-": true, "/dev/stdin": true, "/proc/self/fd/7": true, "/dev/fd/x": false, "/dev/zero": false, "a/-": false} {
		if Inherited(path) != want {
			t.Errorf("Inherited(%s) is %t", path, !want)
		}
	}
}
