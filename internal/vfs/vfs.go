// Package vfs is the file system below what holds budget: run logs, journals, tokens, ledgers and
// their witnesses. A program uses [OS]; tests put a simulated disk in its place, which fails.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is a file system. Its methods are those of package os with these names, except SyncDir and Lock.
type FS interface {
	OpenFile(name string, flag int, mode fs.FileMode) (File, error)
	CreateTemp(dir, pattern string) (File, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	SameFile(a, b fs.FileInfo) bool
	MkdirAll(path string, mode fs.FileMode) error
	Rename(from, to string) error
	Link(from, to string) error
	Remove(name string) error
	// SyncDir makes the names in a directory durable, where the system can.
	SyncDir(dir string) error
	// Lock locks an open file until it is closed. While another open file has the lock, Lock waits or
	// returns ErrHeld. The lock goes with the process, also when it is killed. Where the system has no
	// such locks, the error is errors.ErrUnsupported.
	Lock(f File, wait bool) error
}

// File is an open file; an *os.File is one.
type File interface {
	io.ReadWriteCloser
	io.ReaderAt
	io.WriterAt
	io.Seeker
	Name() string
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	Truncate(size int64) error
	Sync() error
}

// ErrHeld says that another open file has the lock, of this process or another.
var ErrHeld = errors.New("the lock is held")

// OS is the machine's file system.
type OS struct{}

func (OS) OpenFile(name string, flag int, mode fs.FileMode) (File, error) {
	return file(os.OpenFile(name, flag, mode))
}

func (OS) CreateTemp(dir, pattern string) (File, error) { return file(os.CreateTemp(dir, pattern)) }

// file keeps a nil *os.File from becoming a File that is not nil.
func file(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (OS) ReadDir(name string) ([]fs.DirEntry, error)   { return os.ReadDir(name) }
func (OS) Stat(name string) (fs.FileInfo, error)        { return os.Stat(name) }
func (OS) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (OS) SameFile(a, b fs.FileInfo) bool               { return os.SameFile(a, b) }
func (OS) MkdirAll(path string, mode fs.FileMode) error { return os.MkdirAll(path, mode) }
func (OS) Rename(from, to string) error                 { return os.Rename(from, to) }
func (OS) Link(from, to string) error                   { return os.Link(from, to) }
func (OS) Remove(name string) error                     { return os.Remove(name) }

func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	var cause *fs.PathError
	if err := d.Sync(); errors.As(err, &cause) && cause.Err.Error() != "invalid argument" &&
		cause.Err.Error() != "Access is denied." {
		return err
	}
	return nil
}

// MkdirAll is disk.MkdirAll, and makes the names of the directory and of those above it durable, as far up as this user
// may and the system can. A directory that exists may have been made by a process that was killed before it did so.
func MkdirAll(disk FS, dir string, mode fs.FileMode) error {
	if err := disk.MkdirAll(dir, mode); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for d := filepath.Dir(dir); ; d = filepath.Dir(d) {
		switch err := disk.SyncDir(d); {
		case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported):
			return nil
		case err != nil:
			return err
		case filepath.Dir(d) == d:
			return nil
		}
	}
}

// Rewrite writes the content of a file where it stands. After a sync that failed, systems take pages for written that
// are not, and another sync does nothing for them: a file that another process wrote is durable after Rewrite and Sync.
func Rewrite(f File) error {
	b := make([]byte, 1<<16)
	for at := int64(0); ; {
		n, err := f.ReadAt(b, at)
		if _, err := f.WriteAt(b[:n], at); err != nil {
			return err
		}
		if at += int64(n); err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
