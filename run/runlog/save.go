package runlog

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/internal/readfile"
)

// SaveStates prepares the writer for Save: from now on it hashes what it writes.
func (w *Writer) SaveStates() error {
	f, err := readfile.OpenOn(w.disk.FS, filepath.Join(w.dir, partFile(w.part)))
	if err != nil {
		return err
	}
	defer f.Close()
	w.sum = sha256.New()
	_, err = io.Copy(w.sum, f)
	return err
}

// Save keeps a state with its Step, Fold and Vectors: all that a run needs to go on. It flushes
// what was noted and begins a new file of releases with the state; then it removes all but the
// newest two files, so that the step before the newest state can be replayed. A crash leaves the
// new file torn, or one file too many; Continue repairs either.
func (w *Writer) Save(s State) error {
	if err := w.Flush(); err != nil {
		return err
	}
	w.err = w.save(s)
	return w.err
}

func (w *Writer) save(s State) error {
	s.Batch, s.Released, s.Before = w.last, w.released, hex.EncodeToString(w.sum.Sum(nil))
	b, err := appendState(nil, &s)
	if err != nil {
		return err
	}
	f, err := w.disk.FS.OpenFile(filepath.Join(w.dir, partFile(w.part+1)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w.releases.Close() // synced
	w.releases = f
	w.part++
	w.sum.Reset()
	if err := w.writeReleases(b); err != nil {
		return err
	}
	if err := w.disk.FS.SyncDir(w.dir); err != nil {
		return err
	}
	if w.part < 2 {
		return nil
	}
	return w.disk.FS.Remove(filepath.Join(w.dir, partFile(w.part-2)))
}

// writeReleases writes to the file of releases, and hashes what it writes.
func (w *Writer) writeReleases(b []byte) error {
	if w.sum == nil || len(b) == 0 {
		return writeSync(w.releases, b)
	}
	summed := make(chan struct{})
	go func() {
		w.sum.Write(b)
		close(summed)
	}()
	err := writeSync(w.releases, b)
	<-summed
	return err
}

// tidy removes the files that a crash during Save left.
func (r *Record) tidy() error {
	parts, err := r.disk.partsIn(r.dir)
	if err != nil {
		return err
	}
	for _, n := range parts {
		if n < r.first || n > r.newest {
			if err := r.disk.FS.Remove(filepath.Join(r.dir, partFile(n))); err != nil {
				return err
			}
		}
	}
	return nil
}
