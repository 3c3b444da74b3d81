// Package trace reads and writes the record of a run: which events were charged,
// what was released, and a line for each step.
//
//	events.jsonl   what was charged, run-length coded: {"first":0,"count":37,"event":{…}}
//	releases.bin   the answers of each batch, exactly as they left the door
//	steps.jsonl    one line a step, made from released values only
//
// All three only grow while a run lives. They are written and synced in groups,
// about every half second, events before the releases that they pay (R5); what
// watches a run is told of a step only after its group is durable. A group that
// a crash tore is cut off when the record is opened again.
package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/privacy"
)

// Names of the files in a run directory.
const (
	EventsFile   = "events.jsonl"
	ReleasesFile = "releases.bin"
	StepsFile    = "steps.jsonl"
)

// GroupEvery is how long records wait for the group that makes them durable.
const GroupEvery = 500 * time.Millisecond

const (
	groupBytes = 4 << 20 // a group is written earlier when it has grown to this
	largeGroup = 1 << 20 // from here on the system need not keep what it has written
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

// A Writer appends to a run's record. It implements oracle.Journal. It is for
// one goroutine.
type Writer struct {
	// Guard, when set, is asked between the charges of a group and its releases,
	// with the number of batches whose charges are durable now. Its error stops the
	// run before a release of the group has left (R7).
	Guard func(charged int) error
	// Durable, when set, is told of the steps of a group after it is durable. The
	// slice is the writer's again after the call.
	Durable func(steps []Step)

	events, releases, steps *os.File
	charged                 int       // batches charged, durable or pending
	batch                   int       // number of the batch last bought, -1 before the first
	all                     []Charges // all charges, for Spent
	pendingEvents           []Charges
	pendingReleases         []byte
	pendingSteps            []Step
	line                    []byte
	last                    time.Time
	err                     error
}

// Create starts the record of a new run in dir. The files must not exist.
func Create(dir string) (*Writer, error) {
	w, err := open(dir, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	if err := SyncDir(dir); err != nil { // the files' names are part of the record
		w.closeFiles()
		return nil, err
	}
	return w, nil
}

func open(dir string, flag int) (*Writer, error) {
	w := &Writer{last: time.Now(), batch: -1}
	for _, f := range []struct {
		name string
		dst  **os.File
	}{{EventsFile, &w.events}, {ReleasesFile, &w.releases}, {StepsFile, &w.steps}} {
		file, err := os.OpenFile(filepath.Join(dir, f.name), flag, 0o600)
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

// Continue opens the record of a run that was broken off, cuts torn tails away
// and returns what is there. The writer goes on behind it.
//
// Batches at the end may have been charged without their release having become
// durable. With secure noise they are spent. A seeded run draws the very same
// numbers again, which tells nothing new: with redo, those batches are bought
// again without a second charge, and the run ends as if it had not been broken.
func Continue(dir string, redo bool) (*Writer, *Record, error) {
	rec, err := Read(dir)
	if err != nil {
		return nil, nil, err
	}
	for name, size := range map[string]int64{EventsFile: rec.eventBytes, ReleasesFile: rec.releaseBytes, StepsFile: rec.stepBytes} {
		if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
			return nil, nil, err
		}
	}
	w, err := open(dir, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, nil, err
	}
	if rec.releaseBytes == 0 {
		w.pendingReleases = append(w.pendingReleases, magic...)
	}
	w.charged = rec.Charged()
	w.all = append(w.all, rec.Events...)
	w.batch = w.charged - 1
	if redo {
		w.batch = rec.lastRelease()
	}
	return w, rec, nil
}

// Charge notes the cost of the next batch.
func (w *Writer) Charge(e privacy.Event) error {
	if w.err != nil {
		return w.err
	}
	if time.Since(w.last) > GroupEvery || len(w.pendingReleases) > groupBytes {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	w.batch++
	if w.batch < w.charged {
		return nil // bought again after a crash, charged before it
	}
	first := len(w.pendingEvents) == 0
	w.pendingEvents = extend(w.pendingEvents, e)
	if first {
		w.pendingEvents[0].First = w.charged
	}
	w.all = extend(w.all, e)
	w.charged++
	return nil
}

// extend adds one charge to a run-length coded list.
func extend(list []Charges, e privacy.Event) []Charges {
	if n := len(list); n > 0 && privacy.Equal(list[n-1].Event, e) {
		list[n-1].Count++
		return list
	}
	first := 0
	if n := len(list); n > 0 {
		first = list[n-1].First + list[n-1].Count
	}
	return append(list, Charges{First: first, Count: 1, Event: e})
}

// Release notes the answers of the batch last charged: one record.
func (w *Writer) Release(answers [][]float64) error {
	if w.err != nil {
		return w.err
	}
	w.pendingReleases = appendRelease(w.pendingReleases, w.batch, answers)
	return nil
}

// Step notes a line of steps.jsonl. It leaves with the next durable group.
func (w *Writer) Step(s Step) { w.pendingSteps = append(w.pendingSteps, s) }

// Spent is everything charged so far, before a resume too, as one event.
func (w *Writer) Spent() privacy.Event { return (&Record{Events: w.all}).Event() }

// Flush makes all that was noted durable: events, then releases, then steps.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	w.last = time.Now()
	var buf bytes.Buffer
	for _, c := range w.pendingEvents {
		if w.err = writeCharges(&buf, c); w.err != nil {
			return w.err
		}
	}
	if w.err = writeSync(w.events, buf.Bytes()); w.err != nil {
		return w.err
	}
	if w.Guard != nil && len(w.pendingEvents)+len(w.pendingReleases) > 0 {
		if w.err = w.Guard(w.charged); w.err != nil {
			return w.err
		}
	}
	if w.err = writeSync(w.releases, w.pendingReleases); w.err != nil {
		return w.err
	}
	w.line = w.line[:0]
	for _, s := range w.pendingSteps {
		w.line = appendStep(w.line, s)
	}
	if w.err = writeSync(w.steps, w.line); w.err != nil {
		return w.err
	}
	if w.Durable != nil && len(w.pendingSteps) > 0 {
		w.Durable(w.pendingSteps)
	}
	w.pendingEvents, w.pendingReleases, w.pendingSteps = w.pendingEvents[:0], w.pendingReleases[:0], w.pendingSteps[:0]
	return nil
}

// Close flushes and closes the files.
func (w *Writer) Close() error {
	err := w.Flush()
	if closeErr := w.closeFiles(); err == nil {
		err = closeErr
	}
	return err
}

func (w *Writer) closeFiles() error {
	var errs []error
	for _, f := range []*os.File{w.events, w.releases, w.steps} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

func writeSync(f *os.File, b []byte) error {
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

func writeCharges(buf *bytes.Buffer, c Charges) error {
	event, err := privacy.MarshalEvent(c.Event)
	if err != nil {
		return err
	}
	line, err := json.Marshal(chargesLine{c.First, c.Count, event})
	if err != nil {
		return err
	}
	buf.Write(line)
	return buf.WriteByte('\n')
}

// parseCharges reads a line of events.jsonl that follows that many charged batches.
func parseCharges(line []byte, charged int) (Charges, error) {
	var l chargesLine
	if err := strictJSON(line, &l); err != nil {
		return Charges{}, err
	}
	e, err := privacy.UnmarshalEvent(l.Event)
	if err != nil {
		return Charges{}, err
	}
	if l.First != charged || l.Count < 1 || l.Count > math.MaxInt-charged {
		return Charges{}, fmt.Errorf("counts %d batches from number %d after %d", l.Count, l.First, charged)
	}
	return Charges{l.First, l.Count, e}, nil
}

func appendStep(dst []byte, s Step) []byte {
	for _, v := range []*float64{&s.Rate, &s.GradNorm, &s.Moved} {
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			*v = -1 // not a norm; JSON has no infinity
		}
	}
	line, _ := json.Marshal(s) // four finite numbers cannot fail
	return append(append(dst, line...), '\n')
}

// releases.bin: magic, then records of
//
//	uint32 length of what follows up to the checksum | uint64 batch | uint32 answers |
//	for each answer: uint32 values, values as float64 | uint32 CRC-32C of all before
//
// all little-endian.
var (
	magic      = []byte("sotto releases 1\n")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func appendRelease(dst []byte, batch int, answers [][]float64) []byte {
	start := len(dst)
	length := 12
	for _, a := range answers {
		length += 4 + 8*len(a)
	}
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(length))
	dst = le.AppendUint64(dst, uint64(batch))
	dst = le.AppendUint32(dst, uint32(len(answers)))
	for _, a := range answers {
		dst = le.AppendUint32(dst, uint32(len(a)))
		for _, v := range a {
			dst = le.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// A Release is the answers of one batch.
type Release struct {
	Batch   int
	Answers [][]float64
}

// A Record is what a run directory says of a run.
type Record struct {
	Events   []Charges
	Releases []Release
	Steps    []Step
	Torn     bool // a tail was cut off: the run was broken in the middle of a write

	eventBytes, releaseBytes, stepBytes int64
}

// Charged counts the batches that were charged.
func (r *Record) Charged() int {
	n := 0
	for _, c := range r.Events {
		n += c.Count
	}
	return n
}

// lastRelease is the number of the last batch that was released, -1 without one.
func (r *Record) lastRelease() int {
	if n := len(r.Releases); n > 0 {
		return r.Releases[n-1].Batch
	}
	return -1
}

// Event is everything that was charged, as one event.
func (r *Record) Event() privacy.Event {
	all := privacy.Composed{}
	for _, c := range r.Events {
		if n := len(all); n > 0 {
			if prev, ok := all[n-1].(privacy.Repeated); ok && privacy.Equal(prev.Of, c.Event) {
				all[n-1] = privacy.Repeated{Count: prev.Count + c.Count, Of: c.Event}
				continue
			}
		}
		all = append(all, privacy.Repeated{Count: c.Count, Of: c.Event})
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// Read reads a run's record. A torn last line or record is left out and noted;
// anything else that does not fit is an error that names file and place.
func Read(dir string) (*Record, error) { return readRecord(dir, true) }

// Check reads like Read, but of each release it keeps the number of the batch
// alone. It holds the answers of one batch at a time, so its memory does not grow
// with the answers of a run.
func Check(dir string) (*Record, error) { return readRecord(dir, false) }

func readRecord(dir string, answers bool) (*Record, error) {
	rec := &Record{}
	charged := 0
	var err error
	rec.eventBytes, err = readLines(filepath.Join(dir, EventsFile), rec, func(line []byte) error {
		c, err := parseCharges(line, charged)
		if err == nil {
			charged += c.Count
			rec.Events = append(rec.Events, c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	rec.stepBytes, err = readLines(filepath.Join(dir, StepsFile), rec, func(line []byte) error {
		var s Step
		if err := strictJSON(line, &s); err != nil {
			return err
		}
		rec.Steps = append(rec.Steps, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := rec.readReleases(filepath.Join(dir, ReleasesFile), answers); err != nil {
		return nil, err
	}
	return rec, nil
}

func strictJSON(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more follows the object")
	}
	return nil
}

// readLines calls f for each whole line and returns the length of what it took.
// A last line without its end is a torn one.
func readLines(path string, rec *Record, f func([]byte) error) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	in := bufio.NewReader(file)
	var taken int64
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			rec.Torn = rec.Torn || len(line) > 0
			return taken, nil
		}
		if err != nil {
			return 0, err
		}
		if err := f(line); err != nil {
			return 0, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		taken += int64(len(line))
	}
}

// readReleases reads the file record by record. It keeps the answers if answers
// says so.
func (r *Record) readReleases(path string, answers bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return err
	}
	size := stat.Size() // what comes later was not there
	in := bufio.NewReaderSize(io.LimitReader(file, size), 1<<16)
	head := make([]byte, min(size, int64(len(magic))))
	if _, err := io.ReadFull(in, head); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !bytes.HasPrefix(magic, head) {
		return fmt.Errorf("%s: is not a file of releases", path)
	}
	if len(head) < len(magic) {
		r.Torn = r.Torn || size > 0
		return nil
	}
	le := binary.LittleEndian
	at := int64(len(magic))
	r.releaseBytes = at
	charged := r.Charged()
	var b []byte
	for at < size {
		left := size - at
		claimed := left // where there is no whole length, the record is torn
		if left >= 8 {
			w, err := in.Peek(4)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			claimed = int64(le.Uint32(w)) + 8
		}
		torn := left < 8 || claimed > left
		if torn {
			claimed = left
		}
		if int64(cap(b)) < claimed {
			b = make([]byte, claimed)
		}
		b = b[:claimed]
		if _, err := io.ReadFull(in, b); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if torn {
			if left >= 8 && wholeRelease(b) {
				return fmt.Errorf("%s: the record at byte %d has another length than it says", path, at)
			}
			r.Torn = true
			return nil
		}
		body := b[:claimed-4]
		if crc32.Checksum(body, castagnoli) != le.Uint32(b[claimed-4:]) {
			if claimed == left {
				r.Torn = true // the last record: a write that was cut
				return nil
			}
			return fmt.Errorf("%s: the record at byte %d does not have its checksum", path, at)
		}
		rel, err := parseRelease(body[4:], answers)
		if err != nil {
			return fmt.Errorf("%s: the record at byte %d %w", path, at, err)
		}
		if rel.Batch <= r.lastRelease() || rel.Batch >= charged {
			return fmt.Errorf("%s: the record at byte %d releases batch %d, which was not charged or stands before", path, at, rel.Batch)
		}
		r.Releases = append(r.Releases, rel)
		at += claimed
		r.releaseBytes = at
	}
	return nil
}

// wholeRelease says whether b begins with a record that is all there, whatever
// length it claims: its answers end within b. A write that was cut is no such.
func wholeRelease(b []byte) bool {
	le := binary.LittleEndian
	if len(b) < 16 {
		return false
	}
	n := int64(le.Uint32(b[12:]))
	b = b[16:]
	for ; n > 0; n-- {
		if len(b) < 4 || (int64(len(b))-4)/8 < int64(le.Uint32(b)) {
			return false
		}
		b = b[4+8*int(le.Uint32(b)):]
	}
	return len(b) >= 4
}

// parseRelease checks a record, and keeps its answers if answers says so.
func parseRelease(b []byte, answers bool) (Release, error) {
	le := binary.LittleEndian
	short := errors.New("is shorter than it says")
	if len(b) < 12 {
		return Release{}, short
	}
	rel := Release{Batch: int(le.Uint64(b))}
	n := int(le.Uint32(b[8:]))
	b = b[12:]
	for range n {
		if len(b) < 4 || (len(b)-4)/8 < int(le.Uint32(b)) {
			return Release{}, short
		}
		size := int(le.Uint32(b))
		b = b[4:]
		if answers {
			a := make([]float64, size)
			for i := range a {
				a[i] = math.Float64frombits(le.Uint64(b[8*i:]))
			}
			rel.Answers = append(rel.Answers, a)
		}
		b = b[8*size:]
	}
	if len(b) != 0 {
		return Release{}, errors.New("is longer than it says")
	}
	return rel, nil
}
