package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/run/runlog"
)

// makeDir makes and locks the run directory. undo removes it, with its content and the directories above it
// that were made.
func (s *Session) makeDir() (undo func(), err error) {
	dir := s.Job.Spec.Out
	if dir == "" {
		dir = filepath.Join("runs", s.Info.ID)
	}
	fail := func(format string, args ...any) (func(), error) {
		return nil, inputError(s.Job.Spec.Place("out"), "out: "+format, args...)
	}
	missing := missingDirs(s.disk().FS, dir)
	if len(missing) == 0 {
		if entries, err := s.disk().FS.ReadDir(dir); err != nil {
			return fail("%v", err)
		} else if slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return e.Name() == lockFile || !mayBegin(s.Job, e.Name())
		}) {
			return fail("%s exists and is not empty; give a new or an empty directory", dir)
		}
	}
	removeDirs := func() { // those that are still empty
		for _, d := range missing {
			s.disk().FS.Remove(d)
		}
	}
	undo = func() {
		// run.json goes first, durably, so that after a power cut it never names files that are
		// gone. If it stays, so does the rest, and a resume reserves.
		err := s.disk().FS.Remove(filepath.Join(dir, runlog.InfoFile))
		if err == nil {
			err = s.disk().FS.SyncDir(dir)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.unlockDir()
			return
		}
		// This process holds the lock, and removes its file last, so no other process is in the directory
		// yet.
		for _, name := range beginning {
			s.disk().FS.Remove(filepath.Join(dir, name))
		}
		s.unlockDir()
		removeDirs()
	}
	if err := vfs.MkdirAll(s.disk().FS, dir, 0o700); err != nil {
		removeDirs()
		return fail("%v", err)
	}
	s.Dir = dir
	if s.unlock, err = s.disk().lockDir(dir); err != nil {
		removeDirs() // not those with files, which are another run's
		return fail("%v", err)
	}
	// Another run may have begun and ended here before this process got the lock.
	if entries, err := s.disk().FS.ReadDir(dir); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !mayBegin(s.Job, e.Name())
	}) {
		s.unlockDir()
		return fail("%s is another run's; give a new or an empty directory", dir)
	}
	return undo, nil
}

// mayBegin reports whether a run may begin in a directory with a file of that name: its lock, or
// what an owner of a network stores before its run.
func mayBegin(j *Job, name string) bool {
	return name == lockFile || name == runlog.PlaceFile && j.Sum != nil
}

// beginning are the files in a run directory before it has run.json. The lock file is last.
var beginning = []string{runlog.EventsFile, runlog.ReleasesFile, runlog.StepsFile, runlog.TokenFile, runlog.HoldoutFile,
	lockFile}

// missingDirs are the directories that have to be made for dir, deepest first.
func missingDirs(disk vfs.FS, dir string) (missing []string) {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := disk.Lstat(d); err == nil || filepath.Dir(d) == d { // never remove a link to nothing
			return missing
		}
		missing = append(missing, d)
	}
}

func (s *Session) unlockDir() {
	if s.unlock != nil {
		s.unlock()
		s.unlock = nil
	}
}
