// Package newfile writes files as a whole: a reader finds the old one or the new one, never a part.
// For the files and directories that flags of a command name, it refuses to write over others.
package newfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/internal/vfs"
)

// Replace writes a file durably.
func Replace(path string, mode fs.FileMode, b []byte) error {
	return ReplaceOn(vfs.OS{}, path, mode, b)
}

// ReplaceOn is Replace on a file system.
func ReplaceOn(disk vfs.FS, path string, mode fs.FileMode, b []byte) error {
	made, err := TemporaryOn(disk, path, mode, b)
	if err != nil {
		return err
	}
	if err := disk.Rename(made, path); err != nil {
		disk.Remove(made)
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// JSON writes a value durably as JSON and a line break, for the owner alone to read. An indent sets fields on lines
// of their own.
func JSON(path, indent string, v any) error { return JSONOn(vfs.OS{}, path, indent, v) }

// JSONOn is JSON on a file system.
func JSONOn(disk vfs.FS, path, indent string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := bytes.NewBuffer(text)
	if indent != "" {
		b = &bytes.Buffer{}
		json.Indent(b, text, "", indent) // cannot fail on what Marshal wrote
	}
	b.WriteByte('\n')
	return ReplaceOn(disk, path, 0o600, b.Bytes())
}

// Temporary writes a file beside path, durably but for its name.
func Temporary(path string, mode fs.FileMode, b []byte) (name string, err error) {
	return TemporaryOn(vfs.OS{}, path, mode, b)
}

// TemporaryOn is Temporary on a file system.
func TemporaryOn(disk vfs.FS, path string, mode fs.FileMode, b []byte) (name string, err error) {
	f, err := disk.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		disk.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// SyncDir makes the names in a directory durable, where the system can.
func SyncDir(dir string) error { return vfs.OS{}.SyncDir(dir) }

// An Error says why a flag's file or directory cannot be written.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

func fail(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Write writes to the file that a flag names, or to w where it names none. A file appears as a
// whole or not at all. Who may read it follows from the umask.
func Write(w io.Writer, flag, path string, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return buffered(w, write)
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // a pipe, a device
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fail("--%s: %v", flag, err)
		}
		return errors.Join(buffered(f, write), f.Close())
	}
	f, err := createShared(path)
	if err != nil { // no name was given
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return fail("--%s: %s: found a folder that takes no file: %v", flag, filepath.Dir(path), err)
	}
	return putShared(f, path, write)
}

// ReplaceShared is Replace for a file that a person named. Who may read it follows from the umask.
func ReplaceShared(path string, b []byte) error {
	f, err := createShared(path)
	if err != nil {
		return err
	}
	return putShared(f, path, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// createShared makes a temporary file beside path, under the umask, which os.CreateTemp does not leave to decide.
func createShared(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return nil, err
	}
	return os.OpenFile(f.Name(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
}

// putShared fills the temporary file f and gives it its name.
func putShared(f *os.File, path string, write func(io.Writer) error) error {
	defer os.Remove(f.Name()) // does nothing after the rename
	if err := errors.Join(buffered(f, write), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	buf := bufio.NewWriter(w)
	if err := write(buf); err != nil {
		return err
	}
	return buf.Flush()
}

// Check refuses to write a packed table over what it is made of, in a place
// that is no file, or, unless forced, over another file.
func Check(out string, force bool, from ...string) error {
	if strings.Contains(out, "://") {
		return fail("--out: found a URL; give a file of this machine, which another program may copy, as aws s3 cp does")
	}
	st, err := os.Stat(out)
	if err != nil {
		if st, err := os.Stat(filepath.Dir(out)); err != nil || !st.IsDir() {
			return fail("--out: %s: found no such folder", filepath.Dir(out))
		}
		return nil
	}
	if !st.Mode().IsRegular() {
		return fail("--out: %s: found something that is no file; a packed table needs a file of its own", out)
	}
	for _, f := range from {
		f, _, _ = strings.Cut(strings.TrimPrefix(f, "sqlite:"), "?table=")
		if in, err := os.Stat(f); err == nil && os.SameFile(st, in) {
			return fail("--out: %s: found the file that is read; give another one", out)
		}
	}
	if !force {
		return fail("--out: %s exists; give a new file, or --force", out)
	}
	return nil
}

// EmptyDir refuses a directory in which something is.
func EmptyDir(dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 || err != nil && !os.IsNotExist(err) {
		return fail("--out: found %s, which is not an empty directory; give a new or an empty one",
			strings.TrimSuffix(dir, "/"))
	}
	return nil
}

// MakeDir makes the directory of --dir.
func MakeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	var why *os.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrExist):
		return fail("--dir: found %s; give a new directory", dir)
	case errors.As(err, &why):
		err = why.Err
	}
	return fail("--dir: found %s, where no directory can be made (%s: %w)", dir, filepath.Dir(dir), err)
}
