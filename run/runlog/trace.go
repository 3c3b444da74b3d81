// Package runlog reads and writes the record of a run: which events were charged,
// what was released, and a line for each step.
//
//	events.jsonl   what was charged, run-length coded: {"first":0,"count":37,"event":{…}}
//	releases.bin   the answers of each batch, exactly as they were released
//	steps.jsonl    one line a step, made from released values only
//
// All three only grow while a run lives. A run that saves states begins a new file of releases with
// each, releases-1.bin and so on, and keeps the newest two. The files are written and synced in
// groups, about every half second, charged events before their releases (R5). A step is announced
// only after its group is durable. Opening the record again cuts off a group that a crash tore. Any part of a
// group may have reached the disk, so the cut is at its first damaged line or record.
package runlog

import (
	"cmp"
	"encoding/json"
	"errors"
	"hash"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/privacy"
)

// Names of the files in a run directory.
const (
	EventsFile   = "events.jsonl"
	ReleasesFile = "releases.bin"
	StepsFile    = "steps.jsonl"
)

// MostSteps is the most steps of a run: steps.jsonl, with lines of at most 119 bytes, is then one that readers accept
// (readfile.Lines, readfile.Count).
const MostSteps = 9_000_000

// GroupEvery is how long records wait for their group.
const GroupEvery = 500 * time.Millisecond

const (
	groupBytes = 4 << 20 // a group is written earlier when it has grown to this
	largeGroup = 1 << 20 // above this size the system need not keep what it has written
)

// A Step is one line of steps.jsonl: public facts and released values only.
type Step struct {
	T        int     `json:"t"`         // steps done
	Rate     float64 `json:"rate"`      // step size used
	GradNorm float64 `json:"grad_norm"` // ℓ2 norm of the released gradient
	Moved    float64 `json:"moved"`     // ℓ2 distance of this iterate from the one before
}

// Charges is a run of equal events: Count batches, the first of which has number First.
type Charges struct {
	First int
	Count int
	Event privacy.Event
}

// A Writer appends to a run's record. It implements oracle.Journal. It is for one goroutine.
type Writer struct {
	// Guard, if set, is called after the charges of a group are durable and before its releases,
	// with the number of charged batches and the group's own charges. Its error stops the run
	// before a release of the group leaves (R7).
	Guard func(charged int, group []Charges) error
	// AtOnce makes each charge durable, and gives it to Guard, before Charge returns: what follows from it leaves this
	// process before the log does, as an owner's masked part. No charge is withdrawn then.
	AtOnce bool
	// Durable, if set, is told the steps of a group after it is durable. The slice is valid during
	// the call.
	Durable func(steps []Step)

	disk                    Disk
	dir                     string
	events, releases, steps vfs.File
	part                    int       // number of the file of releases
	sum                     hash.Hash // of that file, for a run that saves states
	charged                 int       // batches charged, durable or pending
	batch                   int       // number of the batch last charged, -1 before the first
	released, last          int       // batches released, and the last of them
	all                     []Charges // all charges, for Spent
	pendingEvents           []Charges
	pendingReleases         []byte
	pendingSteps            []Step
	line                    []byte
	flushed                 time.Time
	err                     error
}

// Create starts the record of a new run in dir. The files must not exist.
func (d Disk) Create(dir string) (*Writer, error) {
	w, err := d.open(dir, 0, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	if err := d.FS.SyncDir(dir); err != nil { // the files' names are part of the record
		w.closeFiles()
		return nil, err
	}
	return w, nil
}

func (d Disk) open(dir string, part, flag int) (*Writer, error) {
	w := &Writer{disk: d, dir: dir, part: part, flushed: time.Now(), batch: -1, last: -1}
	for _, f := range []struct {
		name string
		dst  *vfs.File
	}{{EventsFile, &w.events}, {partFile(part), &w.releases}, {StepsFile, &w.steps}} {
		file, err := readfile.OpenFileOn(d.FS, filepath.Join(dir, f.name), flag, 0o600)
		if err != nil {
			w.closeFiles()
			return nil, err
		}
		*f.dst = file
	}
	if flag&os.O_CREATE != 0 {
		w.pendingReleases = append(w.pendingReleases, magic...)
	}
	return w, nil
}

// Continue opens the record of an interrupted run, cuts torn tails off and returns what is durable.
// The writer goes on after it.
//
// The last batches may have been charged without a durable release. With secure noise they are
// spent. A seeded run draws the same numbers again, which tells nothing new: with redo those
// batches are asked again without a second charge, and the run ends as if it had not been
// interrupted.
func (d Disk) Continue(dir string, redo bool) (*Writer, *Record, error) {
	if err := d.Sync(dir); err != nil {
		return nil, nil, err
	}
	rec, err := d.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	for name, size := range map[string]int64{EventsFile: rec.events.at, partFile(rec.newest): rec.releaseBytes,
		StepsFile: rec.steps.at} {
		if err := d.truncate(filepath.Join(dir, name), size); err != nil {
			return nil, nil, err
		}
	}
	if err := rec.tidy(); err != nil {
		return nil, nil, err
	}
	w, err := d.open(dir, rec.newest, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, nil, err
	}
	if rec.releaseBytes == 0 {
		w.pendingReleases = append(w.pendingReleases, magic...)
	}
	w.charged, w.released, w.last = rec.Charged(), rec.Released, rec.last
	w.all = append(w.all, rec.Events...)
	w.batch = w.charged - 1
	if redo {
		w.batch = rec.last
	}
	return w, rec, nil
}

// Sync makes a run's record durable. A killed process may have left writes that are not; nothing
// that follows from them may be published before (R5). After a failed sync, systems mark unwritten
// pages as clean, and a second sync does nothing, so Sync rewrites every file.
func (d Disk) Sync(dir string) error {
	names, err := d.withParts(dir, EventsFile, StepsFile, JournalFile, SumsFile)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := readfile.OpenFileOn(d.FS, filepath.Join(dir, name), os.O_RDWR, 0)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(vfs.Rewrite(f), f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return d.FS.SyncDir(dir)
}

// truncate cuts a file off, durably, before anything is written after its end. The file must exist.
func (d Disk) truncate(path string, size int64) error {
	f, err := readfile.OpenFileOn(d.FS, path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// Charge notes the cost of the next batch.
func (w *Writer) Charge(e privacy.Event) error {
	if w.err != nil {
		return w.err
	}
	// At once, the release of the batch before is in the log ahead of the charge, so that a release stands by its own
	// charge.
	if w.AtOnce || time.Since(w.flushed) > GroupEvery || len(w.pendingReleases) > groupBytes {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	w.batch++
	if w.batch < w.charged {
		return nil // asked again after a crash, charged before it
	}
	first := len(w.pendingEvents) == 0
	w.pendingEvents = extend(w.pendingEvents, e)
	if first {
		w.pendingEvents[0].First = w.charged
	}
	w.all = extend(w.all, e)
	w.charged++
	if w.AtOnce {
		return w.Flush()
	}
	return nil
}

// Join rewrites the charges of a record with one line for each series of equal batches. Lines for
// each group would reveal how many batches took half a second, and so how large they were.
func (d Disk) Join(dir string, rec *Record) error {
	var joined []Charges
	for _, c := range rec.Events {
		if n := len(joined); n > 0 && privacy.Equal(joined[n-1].Event, c.Event) {
			joined[n-1].Count += c.Count
		} else {
			joined = append(joined, c)
		}
	}
	if len(joined) == len(rec.Events) {
		return nil
	}
	text, err := appendCharges(nil, joined)
	if err != nil {
		return err
	}
	return newfile.ReplaceOn(d.FS, filepath.Join(dir, EventsFile), 0o600, text)
}

// appendCharges appends the lines of charges.
func appendCharges(text []byte, list []Charges) ([]byte, error) {
	for _, c := range list {
		event, err := privacy.MarshalEvent(c.Event)
		if err != nil {
			return nil, err
		}
		line, err := json.Marshal(chargesLine{c.First, c.Count, event})
		if err != nil {
			return nil, err
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}

// extend adds one charge to a run-length coded list.
func extend(list []Charges, e privacy.Event) []Charges {
	first := 0
	if n := len(list); n > 0 {
		last := &list[n-1]
		if privacy.Equal(last.Event, e) {
			last.Count++
			return list
		}
		first = last.First + last.Count
	}
	return append(list, Charges{First: first, Count: 1, Event: e})
}

// Release notes the answers of the batch last charged.
func (w *Writer) Release(answers [][]float64) error {
	if w.err != nil {
		return w.err
	}
	w.pendingReleases = appendRelease(w.pendingReleases, w.batch, answers)
	w.released, w.last = w.released+1, w.batch
	return nil
}

// Withdraw takes back the batch last charged if nothing of it was released and its charge is not durable:
// a run stopped there ends like a run killed there, and later draws the batch again (R5).
func (w *Writer) Withdraw() {
	if w.AtOnce || w.last == w.batch || w.batch != w.charged-1 || len(w.pendingEvents) == 0 {
		return
	}
	w.pendingEvents, w.all = shorten(w.pendingEvents), shorten(w.all)
	w.batch, w.charged = w.batch-1, w.charged-1
}

// shorten takes the last charge from a run-length coded list.
func shorten(list []Charges) []Charges {
	last := &list[len(list)-1]
	if last.Count--; last.Count == 0 {
		return list[:len(list)-1]
	}
	return list
}

// Step notes a line of steps.jsonl, which the next durable group contains.
func (w *Writer) Step(s Step) { w.pendingSteps = append(w.pendingSteps, s) }

// Spent is everything charged so far as one event, including before a resume.
func (w *Writer) Spent() privacy.Event { return (&Record{Events: w.all}).Event() }

// Flush makes all that was noted durable: events, then releases, then steps.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.flush()
	}
	return w.err
}

func (w *Writer) flush() error {
	w.flushed = time.Now()
	text, err := appendCharges(nil, w.pendingEvents)
	if err != nil {
		return err
	}
	if err := writeSync(w.events, text); err != nil {
		return err
	}
	if w.Guard != nil && (len(w.pendingEvents) > 0 || len(w.pendingReleases) > 0 && !w.AtOnce) {
		if err := w.Guard(w.charged, w.pendingEvents); err != nil {
			return err
		}
	}
	if err := w.writeReleases(w.pendingReleases); err != nil {
		return err
	}
	w.line = w.line[:0]
	for _, s := range w.pendingSteps {
		line, _ := json.Marshal(s.Finite()) // four finite numbers cannot fail
		w.line = append(append(w.line, line...), '\n')
	}
	if err := writeSync(w.steps, w.line); err != nil {
		return err
	}
	if w.Durable != nil && len(w.pendingSteps) > 0 {
		w.Durable(w.pendingSteps)
	}
	w.pendingEvents, w.pendingReleases, w.pendingSteps = w.pendingEvents[:0], w.pendingReleases[:0], w.pendingSteps[:0]
	return nil
}

// Close flushes and closes the files.
func (w *Writer) Close() error {
	return cmp.Or(w.Flush(), w.closeFiles())
}

func (w *Writer) closeFiles() error {
	var errs []error
	for _, f := range []vfs.File{w.events, w.releases, w.steps} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

func writeSync(f vfs.File, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if len(b) >= largeGroup {
		forget(f)
	}
	return nil
}

type chargesLine struct {
	First int             `json:"first"`
	Count int             `json:"count"`
	Event json.RawMessage `json:"event"`
}

// Finite returns the step as its line holds it: −1 replaces numbers that are not finite, since JSON has
// no infinity.
func (s Step) Finite() Step {
	for _, v := range []*float64{&s.Rate, &s.GradNorm, &s.Moved} {
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			*v = -1
		}
	}
	return s
}
