package runlog

import (
	"os"
	"path/filepath"
	"time"
)

// settled is the time after which a file that no longer grows counts as synced.
const settled = 5 * time.Second

// A Follower reads the charges and steps of a run that another process may be writing, each line
// once. It takes only what is durable (R5): a step's line is written after its group is synced, and
// the charges of a group are taken after its steps.
type Follower struct {
	Events  []Charges
	Steps   []Step
	Written time.Time // when the last step was
	Ended   bool      // set it if run.json says so: then the whole record is durable

	dir           string
	events, steps lines
	file          os.FileInfo // of the charges that were read
}

// Follow follows the record in dir.
func Follow(dir string) *Follower { return &Follower{dir: dir} }

// Read takes what is new since the last call, and reports whether there was anything.
func (f *Follower) Read() (news bool, err error) {
	events, err := os.Stat(filepath.Join(f.dir, EventsFile)) // before the steps: what comes later belongs to a later group
	if err != nil {
		return false, err
	}
	steps, err := os.Stat(filepath.Join(f.dir, StepsFile))
	if err != nil {
		return false, err
	}
	// the same charges, on fewer lines (Disk.Join)
	joined := f.file != nil && !os.SameFile(f.file, events)
	if !joined && events.Size() < f.events.at || steps.Size() < f.steps.at { // another run's files
		*f = Follower{dir: f.dir, Ended: f.Ended}
		joined = false
	}
	f.Written = steps.ModTime()
	before := f.events.n + f.steps.n
	old := time.Since(events.ModTime())
	// the clock was set back
	if f.Ended || !steps.ModTime().Before(events.ModTime()) || old > settled || old < -24*time.Hour {
		if joined {
			f.events, f.Events = lines{}, nil
		}
		f.file = events
		if events.Size() > f.events.at {
			if _, err := f.events.read(machine, filepath.Join(f.dir, EventsFile), events.Size(),
				chargesTo(&f.Events)); err != nil {
				return false, err
			}
		}
	}
	if steps.Size() > f.steps.at {
		_, err = f.steps.read(machine, filepath.Join(f.dir, StepsFile), steps.Size(), stepsTo(&f.Steps))
	}
	return f.events.n+f.steps.n != before, err
}

// Record returns what was read, without the releases.
func (f *Follower) Record() *Record { return &Record{Events: f.Events, Steps: f.Steps} }
