package runlog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
)

// settled is after how long a file that no longer grows counts as synced.
const settled = 5 * time.Second

// A Follower reads the charges and steps of a run that another process may be writing,
// again and again, each line once. It takes only what is durable (R5): a step's line is
// written after its group is synced, and charges are taken when the steps of their
// group are there. It opens files for reading alone.
type Follower struct {
	Events  []Charges
	Steps   []Step
	Written time.Time // when the last step was
	Ended   bool      // set it where run.json says so: then all that is there is durable

	dir                   string
	eventBytes, stepBytes int64
}

// Follow follows the record in dir.
func Follow(dir string) *Follower { return &Follower{dir: dir} }

// Read takes what has come since the last call, and says whether anything has.
func (f *Follower) Read() (news bool, err error) {
	events, err := os.Stat(filepath.Join(f.dir, EventsFile)) // before the steps: what is larger later is a later group's
	if err != nil {
		return false, err
	}
	steps, err := os.Stat(filepath.Join(f.dir, StepsFile))
	if err != nil {
		return false, err
	}
	if events.Size() < f.eventBytes || steps.Size() < f.stepBytes { // another run's files
		*f = Follower{dir: f.dir, Ended: f.Ended}
	}
	f.Written = steps.ModTime()
	before := f.eventBytes + f.stepBytes
	if f.Ended || !steps.ModTime().Before(events.ModTime()) || time.Since(events.ModTime()) > settled {
		charged := (&Record{Events: f.Events}).Charged()
		err = follow(filepath.Join(f.dir, EventsFile), &f.eventBytes, events.Size(), func(line []byte) error {
			c, err := parseCharges(line, charged)
			if err == nil {
				charged += c.Count
				f.Events = append(f.Events, c)
			}
			return err
		})
		if err != nil {
			return false, err
		}
	}
	err = follow(filepath.Join(f.dir, StepsFile), &f.stepBytes, steps.Size(), func(line []byte) error {
		var s Step
		err := strictJSON(line, &s)
		if err == nil {
			f.Steps = append(f.Steps, s)
		}
		return err
	})
	return f.eventBytes+f.stepBytes != before, err
}

// Record is what was read, without the releases.
func (f *Follower) Record() *Record { return &Record{Events: f.Events, Steps: f.Steps} }

// follow gives the whole lines between the offset and the size to take and moves the offset.
func follow(path string, at *int64, size int64, take func([]byte) error) error {
	if size <= *at {
		return nil
	}
	file, err := readfile.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Most(path, readfile.Lines); err != nil {
		return err
	}
	in := readfile.NewLineReader(path, io.NewSectionReader(file, *at, size-*at))
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil // a line without its end is not written yet
		}
		if err != nil {
			return err
		}
		if err := take(line); err != nil {
			return &os.PathError{Op: "read", Path: path, Err: err}
		}
		*at += int64(len(line))
	}
}
