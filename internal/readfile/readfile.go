// Package readfile opens files that others may have written. A file in a run
// directory or a table may be a named pipe, which blocks the program that opens it, a link
// to /dev/zero, or a sparse file of terabytes. So it opens without waiting, takes
// regular files only, and reads no more than a limit.
//
// Descriptors that the process inherited (-, /dev/stdin, /dev/fd/3) are exempt: the
// person who started the command chose them. The content of a pipe is kept in memory,
// so that it can be opened again like a file.
package readfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/sottodp/sotto/internal/vfs"
)

// Limits of the files that Sotto writes, far above what it writes.
const (
	JSON  = 64 << 20 // run.json and other single JSON files
	Spec  = 1 << 20  // a spec
	Page  = 64 << 20 // a page or a figure
	Lines = 1 << 30  // a file of lines: events.jsonl, steps.jsonl
	Line  = 1 << 20  // one of its lines
	Count = 10e6     // of its lines, each of which a reader may keep
	Short = 64 << 10 // a token, a key

	piped = 4 << 30 // what comes through a pipe
)

// An Error says why a file is not read: because of what it is or how large it is.
// It comes within an [*fs.PathError].
type Error struct{ Found, Allowed string }

func (e *Error) Error() string { return fmt.Sprintf("found %s; expected %s", e.Found, e.Allowed) }

// Refuse is the error for a file with a property that is not allowed.
func Refuse(path, found, allowed string) error {
	return &fs.PathError{Op: "read", Path: path, Err: &Error{found, allowed}}
}

// A File is a regular file, what came through a pipe, or an object of a store. Its size is that at the
// time when it was opened; it ends there.
type File struct {
	*io.SectionReader
	OS     *os.File     // nil in memory, and for an object
	Failed func() error // of an object: why it cannot be read further; nil for others

	open io.Closer // nil in memory, and for an object
}

// Err is why an object cannot be read further, however a reader between has wrapped that error; nil if it can.
func (f *File) Err() error {
	if f.Failed == nil {
		return nil
	}
	return f.Failed()
}

// Close closes the file.
func (f *File) Close() error {
	if f.open == nil {
		return nil
	}
	return f.open.Close()
}

// Open opens the file at path for reading.
func Open(path string) (*File, error) {
	if n, ok := inherited(path); ok {
		return openInherited(path, n)
	}
	return OpenOn(vfs.OS{}, path)
}

// OpenOn is Open on a file system, where no path names a descriptor.
func OpenOn(disk vfs.FS, path string) (*File, error) {
	f, err := OpenFileOn(disk, path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	of, _ := f.(*os.File)
	return &File{SectionReader: io.NewSectionReader(f, 0, st.Size()), OS: of, open: f}, nil
}

// OpenFile is [os.OpenFile] for regular files: it does not wait for the other end
// of a pipe, and refuses everything else. A file that is not there can be made.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := OpenFileOn(vfs.OS{}, path, flag, mode)
	if err != nil {
		return nil, err
	}
	return f.(*os.File), nil
}

// Lock opens a regular file, which it creates if necessary, and locks it as [vfs.FS] does.
func Lock(disk vfs.FS, path string, mode fs.FileMode, wait bool) (unlock func(), err error) {
	f, err := OpenFileOn(disk, path, os.O_CREATE|os.O_RDWR, mode)
	if err != nil {
		return nil, err
	}
	if err := disk.Lock(f, wait); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// OpenFileOn is OpenFile on a file system.
func OpenFileOn(disk vfs.FS, path string, flag int, mode fs.FileMode) (vfs.File, error) {
	// Opening a device may do something, so it is not even opened. It may still
	// take the file's place afterward, so the open file is checked, too.
	if st, err := disk.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, irregular(path, st.Mode())
	}
	f, err := disk.OpenFile(path, flag|nonblock, mode)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = irregular(path, st.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func irregular(path string, mode fs.FileMode) error {
	kind := "a special file"
	switch {
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return Refuse(path, kind, "a regular file")
}

// All returns the content of the file at path, which has limit bytes or fewer.
func All(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.All(path, limit)
}

// AllOn is All on a file system.
func AllOn(disk vfs.FS, path string, limit int64) ([]byte, error) {
	f, err := OpenOn(disk, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.All(path, limit)
}

// All returns what is left of f, limit bytes or fewer. The path is for the error.
func (f *File) All(path string, limit int64) ([]byte, error) {
	if err := f.Most(path, limit); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// Most refuses a file of more than limit bytes.
func (f *File) Most(path string, limit int64) error {
	if f.Size() > limit {
		return tooLarge(path, limit)
	}
	return nil
}

func tooLarge(path string, limit int64) error {
	return Refuse(path, "a file of more than "+size(limit), "a smaller one")
}

// size writes a limit, which is a whole number of some unit.
func size(n int64) string {
	for _, unit := range []string{"bytes", "KiB", "MiB"} {
		if n < 1<<10 || n%(1<<10) != 0 {
			return fmt.Sprint(n, " ", unit)
		}
		n >>= 10
	}
	return fmt.Sprint(n, " GiB")
}

// A LineReader reads lines of at most [Line] bytes.
type LineReader struct {
	path string
	in   *bufio.Reader
	long []byte
	n    int
}

// NewLineReader reads lines from r. The path is for errors.
func NewLineReader(path string, r io.Reader) *LineReader {
	return &LineReader{path: path, in: bufio.NewReaderSize(r, 64<<10)}
}

// Next is the next line, its end included, as [bufio.Reader.ReadBytes] returns it:
// with io.EOF comes what follows the last end. It is valid until the next call.
func (l *LineReader) Next() ([]byte, error) {
	if l.n++; l.n > Count {
		return nil, Refuse(l.path, fmt.Sprintf("more than %d lines", int(Count)), "fewer")
	}
	line, err := l.in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	l.long = l.long[:0]
	for err == bufio.ErrBufferFull {
		if l.long = append(l.long, line...); len(l.long) > Line {
			return nil, Refuse(fmt.Sprintf("%s:%d", l.path, l.n), "a line of more than "+size(Line), "a shorter one")
		}
		line, err = l.in.ReadSlice('\n')
	}
	l.long = append(l.long, line...)
	return l.long, err
}

// Inherited says whether a path names a descriptor that the process inherited.
func Inherited(path string) bool {
	_, ok := inherited(path)
	return ok
}

func inherited(path string) (fd uintptr, ok bool) {
	switch path {
	case "-", "/dev/stdin":
		return 0, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if text, found := strings.CutPrefix(path, dir); found {
			n, err := strconv.ParseUint(text, 10, 31)
			return uintptr(n), err == nil
		}
	}
	return 0, false
}

// pipes keeps what came through pipes, which can be read once only, by descriptor.
var pipes struct {
	sync.Mutex
	content map[uintptr][]byte
}

func openInherited(path string, fd uintptr) (*File, error) {
	pipes.Lock()
	defer pipes.Unlock()
	if b, ok := pipes.content[fd]; ok {
		return memory(b), nil
	}
	in, err := duplicate(path, fd)
	if err != nil {
		return nil, err
	}
	st, err := in.Stat()
	if err == nil && st.Mode().IsRegular() && reopens {
		return &File{SectionReader: io.NewSectionReader(in, 0, st.Size()), OS: in, open: in}, nil
	}
	defer in.Close()
	if err == nil && st.IsDir() {
		err = irregular(path, st.Mode())
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(in, piped+1))
	if err != nil {
		return nil, err
	}
	if len(b) > piped {
		return nil, Refuse(path, "more than "+size(piped)+" through a pipe", "a regular file for so much")
	}
	if pipes.content == nil {
		pipes.content = map[uintptr][]byte{}
	}
	pipes.content[fd] = b
	return memory(b), nil
}

func memory(b []byte) *File {
	return &File{SectionReader: io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))}
}

// Refused says whether err is about a file that is not read because of what it is.
func Refused(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
