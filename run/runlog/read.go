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
	"path/filepath"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/privacy"
)

// A Record is what a run directory says of a run. Its memory does not grow with the answers of the run: Open reads them.
type Record struct {
	Events   []Charges
	Released int // batches released, of which the last are kept
	Steps    []Step
	States   []*State // those that were saved and are kept, at most two
	Torn     bool     // a tail was cut off: the run was broken in the middle of a write

	dir           string
	first, newest int // files of releases that are kept

	last                                int // the batch last released, -1 without one
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

// Newest is the state saved last, nil without one.
func (r *Record) Newest() *State {
	if len(r.States) == 0 {
		return nil
	}
	return r.States[len(r.States)-1]
}

// Oldest is the state behind which all releases are kept; nil: all are, from the beginning.
func (r *Record) Oldest() *State {
	if r.first == 0 {
		return nil
	}
	return r.States[0]
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
func Read(dir string) (*Record, error) {
	rec := &Record{dir: dir, last: -1}
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
	if err := rec.readReleases(charged); err != nil {
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
	file, err := readfile.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := file.Most(path, readfile.Lines); err != nil {
		return 0, err
	}
	in := readfile.NewLineReader(path, file)
	var taken int64
	for n := 1; ; n++ {
		line, err := in.Next()
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

// readReleases checks the files of releases, and that each begins where the one before ends.
func (r *Record) readReleases(charged int) error {
	parts, err := partsIn(r.dir)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		r.newest = parts[len(parts)-1]
	}
	if r.newest > 0 {
		// A crash while a state was saved: nothing comes behind it, and the file before holds all.
		switch _, err := r.open(r.newest, nil, false); {
		case errors.Is(err, errTorn):
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

// open opens a file of releases behind its state.
func (r *Record) open(n int, sum hash.Hash, vectors bool) (*part, error) {
	p, err := openPart(r.dir, n, sum)
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
	if err != nil {
		return err
	}
	defer p.close()
	if s := p.state; s != nil {
		if n == r.first {
			r.Released, r.last = s.Released, s.Batch
		}
		if s.Batch >= charged || s.Released != r.Released || s.Batch != r.last || n > r.first && s.Before != before {
			return fmt.Errorf("%s: its state, after step %d, does not follow from what was charged and the file before", p.path, s.Step)
		}
		r.States = append(r.States, s)
	}
	var rel Release
	for {
		switch err := p.next(&rel, false); {
		case err == io.EOF:
			r.releaseBytes = p.taken
			return nil
		case errors.Is(err, errTorn) && n == r.newest:
			r.Torn = true
			r.releaseBytes = p.taken
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if rel.Batch <= r.last || rel.Batch >= charged {
			return fmt.Errorf("%s: the record at byte %d releases batch %d, which was not charged or stands before", p.path, p.at, rel.Batch)
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

// A Reader reads the releases that are kept, in memory for one batch.
type Reader struct {
	rec  *Record
	next int // file to be opened
	part *part
	rel  Release
}

// Open reads the releases behind a state; nil is the beginning.
func (r *Record) Open(from *State) *Reader {
	if from == nil {
		return &Reader{rec: r}
	}
	return &Reader{rec: r, next: from.part}
}

// Next is the next release, valid until the call after; io.EOF comes behind the last.
func (r *Reader) Next() (Release, error) {
	for {
		if r.part == nil {
			if r.next > r.rec.newest {
				return Release{}, io.EOF
			}
			var err error
			if r.part, err = r.rec.open(r.next, nil, false); err != nil {
				return Release{}, err
			}
			r.next++
		}
		switch err := r.part.next(&r.rel, true); {
		case err == nil:
			return r.rel, nil
		case err != io.EOF && !errors.Is(err, errTorn):
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
