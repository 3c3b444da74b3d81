package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/state"
	"github.com/sottodp/sotto/internal/vfs"
)

// A witness is what the owner's state directory knows of ledgers: which one was last used under
// each path or URL, and the last entry of each. It detects a ledger that is missing, emptied, older
// or forked (R25; docs/adr/0026-witness-of-a-ledger.md).
//
// The chain is written before the witness, and the witness read before the chain. So after a crash,
// or with other processes and machines, a witness may be behind but never ahead.
type witness struct {
	disk   vfs.FS
	dir    string   // "" where nothing can be kept
	places []string // names of the ledger's place; a path also without symbolic links
	id     string   // the ledger's identity, once it is open
}

// The two kinds of files in the directory.
type (
	placeSeen struct {
		Place  string `json:"place"`
		Ledger string `json:"ledger"` // the identity of the ledger that was last used there
	}
	headSeen struct {
		Ledger string    `json:"ledger"`
		Head   Head      `json:"head"`
		Time   time.Time `json:"time"` // of the head's entry, or of the ledger's making
	}
)

// Warn, if set, is told once in a process why ledgers cannot be witnessed. Other faults of the
// state directory are errors of Open.
var Warn func(text string)

var warned sync.Once

func warn(err error) {
	if Warn != nil {
		warned.Do(func() {
			Warn(fmt.Sprintf("the last entry of the ledger cannot be noted in the state directory, so a ledger that is lost or put back from an old copy may go unnoticed: %v", err))
		})
	}
}

func newWitness(s *store) *witness {
	w := &witness{disk: s.disk.FS, places: []string{s.where}}
	dir, err := state.Dir()
	if err != nil {
		warn(err)
		return w
	}
	w.dir = filepath.Join(dir, "ledgers")
	if s.path != "" {
		real, err := filepath.EvalSymlinks(s.path)
		if err != nil { // the file is missing
			if real, err = filepath.EvalSymlinks(filepath.Dir(s.path)); err == nil {
				real = filepath.Join(real, filepath.Base(s.path))
			}
		}
		if err == nil && real != s.path {
			w.places = append(w.places, real)
		}
	}
	return w
}

// identify sets the ledger's public identity, which does not reveal the key.
func (w *witness) identify(key []byte) {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("sotto: identity of a ledger"))
	w.id = hex.EncodeToString(h.Sum(nil)[:16])
}

func (w *witness) placeFile(place string) string {
	sum := sha256.Sum256([]byte(place))
	return filepath.Join(w.dir, "place-"+hex.EncodeToString(sum[:16])+".json")
}

func (w *witness) headFile(id string) string { return filepath.Join(w.dir, "ledger-"+id+".json") }

// read reads a file of the directory into v, which stays as it is if there is none. A file that
// cannot be read counts as none; a damaged one is an error.
func (w *witness) read(path string, v any) error {
	if w.dir == "" {
		return nil
	}
	b, err := readfile.AllOn(w.disk, path, readfile.JSON)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil && !readfile.Refused(err) {
		warn(err)
		return nil
	}
	if err != nil || json.Unmarshal(b, v) != nil {
		return &WitnessError{Found: Unreadable, file: path}
	}
	return nil
}

// write replaces a file of the directory. Its content is durable, its name need not be: a witness
// may be behind.
func (w *witness) write(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	made, err := newfile.TemporaryOn(w.disk, path, 0o600, append(text, '\n'))
	if err != nil {
		return err
	}
	defer w.disk.Remove(made)
	return w.disk.Rename(made, path)
}

// at lists the ledgers that were last used here.
func (w *witness) at() ([]string, error) {
	var ids []string
	for _, place := range w.places {
		var seen placeSeen
		if err := w.read(w.placeFile(place), &seen); err != nil {
			return nil, err
		}
		if seen.Ledger != "" && !slices.Contains(ids, seen.Ledger) {
			ids = append(ids, seen.Ledger)
		}
	}
	return ids, nil
}

// last is what was last seen of a ledger; the zero value if nothing.
func (w *witness) last(id string) (seen headSeen, err error) {
	err = w.read(w.headFile(id), &seen)
	return seen, err
}

// settle records that the ledger is at its place.
func (w *witness) settle() {
	if w.dir == "" {
		return
	}
	for _, place := range w.places {
		var seen placeSeen
		if err := w.read(w.placeFile(place), &seen); err == nil && seen.Ledger == w.id {
			continue
		}
		if err := errors.Join(w.disk.MkdirAll(w.dir, 0o700),
			w.write(w.placeFile(place), placeSeen{place, w.id})); err != nil {
			warn(err)
		}
	}
}

// forget removes, durably, what was noted of a ledger that never had an entry and goes. After an error some of it may
// be there.
func (w *witness) forget() error {
	if w.dir == "" {
		return nil
	}
	files := []string{w.headFile(w.id)}
	for _, place := range w.places {
		var seen placeSeen
		if err := w.read(w.placeFile(place), &seen); err != nil {
			return err
		}
		switch _, err := w.disk.Lstat(w.placeFile(place)); {
		case seen.Ledger == w.id:
			files = append(files, w.placeFile(place))
		case seen.Ledger == "" && !errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%s cannot be read", w.placeFile(place))
		}
	}
	for _, file := range files {
		if err := w.disk.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return w.disk.SyncDir(w.dir)
}

// note records that the ledger has this entry. The later of two entries stays; with force, the
// given one.
func (w *witness) note(h Head, at time.Time, force bool) {
	if w == nil || w.dir == "" {
		return
	}
	behind := func() bool {
		seen, err := w.last(w.id)
		return force || err != nil || seen.Ledger == "" || seen.Head.Seq < h.Seq
	}
	if !behind() {
		return
	}
	if err := w.disk.MkdirAll(w.dir, 0o700); err != nil {
		warn(err)
		return
	}
	// Without the lock a witness may fall behind for a moment, which is allowed. So wait for a
	// stopped holder for about a second only.
	for range 20 {
		unlock, err := readfile.Lock(w.disk, w.headFile(w.id)+".lock", 0o600, false)
		if err == nil {
			defer unlock()
		}
		if err != vfs.ErrHeld {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if behind() {
		if err := w.write(w.headFile(w.id), headSeen{w.id, h, at}); err != nil {
			warn(err)
		}
	}
}

// What was found instead of the ledger that was used last.
const (
	Missing    = "missing"        // there is nothing
	Emptied    = "no ledger"      // there is something else
	Another    = "another ledger" // not a copy of it
	Older      = "older"          // a copy without its last entries
	Forked     = "forked"         // a copy that went on by itself
	Unreadable = "unreadable"     // what was noted of it is damaged
)

// ErrWitness: this is not the ledger that was last used here, or it lacks entries. It comes as a
// [*WitnessError].
var ErrWitness = errors.New("the ledger lacks what was recorded")

// A WitnessError says what was found instead of the ledger that was used last.
type WitnessError struct {
	Found string    // Missing, Emptied …
	Last  Head      // the last entry that was seen, if any was
	Time  time.Time // of that entry
	file  string    // of the witness
	what  error     // what Emptied found
}

func (e *WitnessError) Unwrap() error { return ErrWitness }

func (e *WitnessError) Error() string {
	had := "when it was last used it had no entries"
	if e.Last.Seq > 0 {
		had = fmt.Sprintf("when it was last used it had %d entries, the last of %s", e.Last.Seq, day(e.Time))
	}
	var what string
	switch e.Found {
	case Missing:
		what = "the ledger is missing; " + had + ". A new one would forget what was charged"
	case Emptied:
		what = fmt.Sprintf("the ledger was emptied or overwritten (%s); %s. A new one would forget what was charged",
			strings.TrimSuffix(e.what.Error(), ": "+ErrNotLedger.Error()), had)
	case Another:
		what = "this is another ledger than the one that was used here last; " + had +
			". This one does not know what was charged there"
	case Older:
		what = "this is an older copy of the ledger; " + had + ". What was charged since is not in it"
	case Forked:
		what = "this is a copy of the ledger that went on by itself; " + had +
			", and here another entry is in its place. Each of the two misses charges of the other"
	case Unreadable:
		return fmt.Sprintf("what was noted of the ledger's last entry is damaged (%s). Put that file back, or run `sotto ledger accept`, which records that the ledger could not be compared", e.file)
	}
	return what + ". Put the file back, or run `sotto ledger accept` after a deliberate restoration, which records it"
}
