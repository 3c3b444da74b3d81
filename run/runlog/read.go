package runlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"math"
	"path/filepath"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/privacy"
)

// A Record is the record of a run without the answers, which Open reads.
type Record struct {
	Events   []Charges
	Released int // batches released, of which the last are kept
	Steps    []Step
	States   []*State // those that were saved and are kept, at most two
	Torn     bool     // a tail was cut off: the run was killed during a write

	disk          Disk
	dir           string
	first, newest int // files of releases that are kept
	last          int // the batch last released, -1 without one
	events, steps lines
	releaseBytes  int64
}

// Charged counts the batches that were charged.
func (r *Record) Charged() int {
	n := 0
	for _, c := range r.Events {
		n += c.Count
	}
	return n
}

// Batches yields what was charged, batch by batch.
func (r *Record) Batches() iter.Seq[privacy.Event] {
	return func(yield func(privacy.Event) bool) {
		for _, c := range r.Events {
			for range c.Count {
				if !yield(c.Event) {
					return
				}
			}
		}
	}
}

// Newest returns the state saved last; nil without one.
func (r *Record) Newest() *State {
	if len(r.States) == 0 {
		return nil
	}
	return r.States[len(r.States)-1]
}

// Oldest returns the state after which all releases are kept; nil: from the beginning.
func (r *Record) Oldest() *State {
	if r.first == 0 {
		return nil
	}
	return r.States[0]
}

// Event returns all charges as one event.
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

// Read reads a run's record. It leaves out what a crash tore at the end of a file and sets Torn: all from the first
// line that is no JSON or the first record without its checksum on. If the steps show that this was durable, and
// anywhere else, what does not fit is an error that names file and line.
func (d Disk) Read(dir string) (*Record, error) {
	rec := &Record{disk: d, dir: dir, last: -1}
	torn, err := rec.events.read(d, filepath.Join(dir, EventsFile), math.MaxInt64, chargesTo(&rec.Events))
	if err != nil {
		return nil, err
	}
	tornStep, err := rec.steps.read(d, filepath.Join(dir, StepsFile), math.MaxInt64, stepsTo(&rec.Steps))
	if err != nil {
		return nil, err
	}
	rec.Torn = torn || tornStep
	if damage := rec.events.damage; damage != nil && rec.durable(rec.Charged()) {
		return nil, damage
	}
	if err := rec.readReleases(rec.Charged()); err != nil {
		return nil, err
	}
	return rec, nil
}

// durable reports whether more than the first n batches were durable: the steps that follow from them are.
func (r *Record) durable(n int) bool { return len(r.Steps) > n }

// chargesTo adds a line of events.jsonl to a list.
func chargesTo(to *[]Charges) func(line []byte) error {
	charged := (&Record{Events: *to}).Charged()
	return func(line []byte) error {
		var l chargesLine
		if err := Strict(line, &l); err != nil {
			return err
		}
		e, err := privacy.UnmarshalEvent(l.Event)
		if err != nil {
			return err
		}
		if l.First != charged || l.Count < 1 || l.Count > math.MaxInt-charged {
			return fmt.Errorf("counts %d batches from number %d after %d", l.Count, l.First, charged)
		}
		charged += l.Count
		*to = append(*to, Charges{l.First, l.Count, e})
		return nil
	}
}

// stepsTo adds a line of steps.jsonl to a list.
func stepsTo(to *[]Step) func(line []byte) error {
	return func(line []byte) error {
		var s Step
		err := Strict(line, &s)
		if err == nil {
			*to = append(*to, s)
		}
		return err
	}
}

// Strict reads one JSON value, with no other fields than those of v, and nothing after it.
func Strict(line []byte, v any) error {
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

// lines counts the whole lines of a file that were read, and their bytes.
type lines struct {
	at     int64
	n      int
	damage error // says which line is no JSON
}

// read gives the following lines, up to size, to take. torn says that the last line has no end, or that a line is
// no JSON: its writer has not finished it, or was killed.
func (l *lines) read(d Disk, path string, size int64, take func(line []byte) error) (torn bool, err error) {
	file, err := readfile.OpenOn(d.FS, path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if err := file.Most(path, readfile.Lines); err != nil {
		return false, err
	}
	in := readfile.NewLineReader(path, io.NewSectionReader(file, l.at, size-l.at))
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			return len(line) > 0, nil
		}
		if err != nil {
			return false, err
		}
		if !json.Valid(line) {
			l.damage = fmt.Errorf("%s:%d: is damaged", path, l.n+1)
			return true, nil
		}
		if err := take(line); err != nil {
			return false, fmt.Errorf("%s:%d: %w", path, l.n+1, err)
		}
		l.at += int64(len(line))
		l.n++
	}
}

// readReleases checks the files of releases, and that each continues the one before.
func (r *Record) readReleases(charged int) error {
	parts, err := r.disk.partsIn(r.dir)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		r.newest = parts[len(parts)-1]
	}
	if r.newest > 0 {
		// A crash interrupted the saving of a state: the file before holds everything.
		switch _, err := r.open(r.newest, nil, false); {
		case errors.Is(err, errTorn), errors.Is(err, errDamaged) && r.newest > parts[0]:
			r.Torn = true
			r.newest--
		case err != nil:
			return err
		}
	}
	r.first = max(0, r.newest-1)
	sum := sha256.New()
	for n := r.first; n <= r.newest; n++ {
		if err := r.readPart(n, charged, sum); err != nil {
			return err
		}
	}
	return nil
}

// open opens a file of releases after its state.
func (r *Record) open(n int, sum hash.Hash, vectors bool) (*part, error) {
	p, err := r.disk.openPart(r.dir, n, sum)
	if err != nil {
		return nil, err
	}
	if p.state, err = p.begin(n, vectors); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (r *Record) readPart(n, charged int, sum hash.Hash) error {
	before := hex.EncodeToString(sum.Sum(nil))
	sum.Reset()
	p, err := r.open(n, sum, false)
	if n == 0 && n == r.newest && errors.Is(err, errDamaged) && !r.durable(0) {
		r.Torn = true
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	if s := p.state; s != nil {
		if n == r.first {
			r.Released, r.last = s.Released, s.Batch
		}
		if s.Batch >= charged || s.Released != r.Released || s.Batch != r.last || n > r.first && s.Before != before {
			return fmt.Errorf("%s: its state, after step %d, does not follow from what was charged and the file before", p.path,
				s.Step)
		}
		r.States = append(r.States, s)
	}
	var rel Release
	for {
		switch err := p.next(&rel, false); {
		case err == io.EOF:
			r.releaseBytes = p.taken
			return nil
		case n == r.newest && (errors.Is(err, errTorn) || errors.Is(err, errDamaged) && !r.durable(r.Released)):
			r.Torn = true
			r.releaseBytes = p.taken
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if rel.Batch <= r.last || rel.Batch >= charged {
			return fmt.Errorf("%s: the record at byte %d releases batch %d, which was not charged or stands before", p.path,
				p.at, rel.Batch)
		}
		r.last = rel.Batch
		r.Released++
	}
}

// Load reads the vectors of a state.
func (r *Record) Load(s *State) error {
	p, err := r.open(s.part, nil, true)
	if err != nil {
		return err
	}
	defer p.close()
	s.Vectors = p.state.Vectors
	return nil
}

// A Reader reads the kept releases, one batch in memory at a time.
type Reader struct {
	rec  *Record
	next int // file to be opened
	part *part
	rel  Release
}

// Open reads the releases after a state; nil is the beginning.
func (r *Record) Open(from *State) *Reader {
	if from == nil {
		return &Reader{rec: r}
	}
	return &Reader{rec: r, next: from.part}
}

// Next returns the next release, valid until the next call; io.EOF after the last.
func (r *Reader) Next() (Release, error) {
	for {
		if r.part == nil {
			if r.next > r.rec.newest {
				return Release{}, io.EOF
			}
			var err error
			switch r.part, err = r.rec.open(r.next, nil, false); {
			case errors.Is(err, errDamaged): // no release was durable
				return Release{}, io.EOF
			case err != nil:
				return Release{}, err
			}
			r.next++
		}
		switch err := r.part.next(&r.rel, true); {
		case err == nil:
			return r.rel, nil
		case err != io.EOF && !errors.Is(err, errTorn) && !errors.Is(err, errDamaged):
			return Release{}, err
		}
		r.Close()
	}
}

// Close closes the file that is open.
func (r *Reader) Close() {
	if r.part != nil {
		r.part.close()
		r.part = nil
	}
}
