package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/study/audit"
	"github.com/sottodp/sotto/study/compare"
)

const (
	depth     = 4           // of directories below the given ones
	scanEvery = time.Second // the greatest age of a listing
)

// A runEntry is a run in a list.
type runEntry struct {
	place
	ID, Dataset, Method    string
	State                  string // of run.json, stalled or damaged
	Started                time.Time
	Budget                 privacy.Budget
	Off, Lab               bool
	MaxSteps, Steps        int
	Outcome, Score, Ledger string // Score is not private
	Quality                string // private
	Warnings               int
	Network                string // NETWORK/OWNER where this is an owner's run directory
	Against                string // where owners add up masked sums: whom ε is against, while masks hold
	Search                 bool   // sotto tune
	Damage                 string // why run.json cannot be read
}

// States that run.json does not record.
const (
	stalled = "stalled" // its process is gone before the end
	damaged = "damaged"
)

// Running says whether the run may be training, Open whether it has begun and not ended, so that it may be resumed.
func (e *runEntry) Running() bool { return e.State == runlog.Running }

func (e *runEntry) Open() bool { return e.Running() || e.State == stalled }

// alive returns the run as stalled if its process is gone and its files are silent. A file system may not share locks
// between machines, so the lock alone does not tell.
func (e *runEntry) alive() *runEntry {
	if !e.Running() || !run.Abandoned(e.Dir) {
		return e
	}
	if quiet := time.Since(lastWrite(e)); quiet >= 0 && quiet < silence { // below 0 the clock was set back since
		return e
	}
	gone := *e
	gone.State = stalled
	return &gone
}

// lastWrite is the time of the last step that is durable, or of the start.
func lastWrite(e *runEntry) time.Time {
	name := runlog.StepsFile
	if e.Network != "" {
		name = runlog.JournalFile
	}
	info, err := os.Stat(filepath.Join(e.Dir, name))
	if err != nil {
		return e.Started
	}
	return info.ModTime()
}

// A place is a directory, under the key that names it in addresses.
type place struct{ Key, Dir, Name string }

func (p place) key() string { return p.Key }

// A listing is the content of the directories, the newest run first.
type listing struct {
	Runs        []*runEntry
	Comparisons []place
	Audits      []place
	Described   []place // private statistics (sotto describe)
	state       string  // changes when a run is added, removed, started or ended
}

func find[T interface{ key() string }](list []T, key string) (found T, err error) {
	i := slices.IndexFunc(list, func(e T) bool { return e.key() == key })
	if i < 0 {
		return found, missing("it is not in the directories that `sotto serve` shows; it may have been moved or removed")
	}
	return list[i], nil
}

func (l *listing) run(key string) (*runEntry, error) { return find(l.Runs, key) }

// stamped is an entry with the time and size of its run.json.
type stamped struct {
	at    time.Time
	size  int64
	entry *runEntry
}

// A scanner lists the content of the directories. It reads again only what has changed.
type scanner struct {
	roots []string

	known map[string]stamped // used only by scan

	mu       sync.Mutex    // not held while files are read
	scanning chan struct{} // closed when the scan in progress ends; nil without one
	last     *listing
	scanned  time.Time
}

func newScanner(roots []string) *scanner { return &scanner{roots: roots, known: map[string]stamped{}} }

func readable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("%s: is not there", dir)
	case !info.IsDir():
		return fmt.Errorf("%s: is a file; give a run directory, or a directory that holds some", dir)
	}
	_, err = os.ReadDir(dir)
	return err
}

// found is a run directory.
type found struct {
	dir  string
	info os.FileInfo // of run.json
}

// list returns the content of the directories. One caller scans when the last listing is older than scanEvery;
// meanwhile others get that listing, or wait for the first one.
func (s *scanner) list() *listing {
	s.mu.Lock()
	for s.last == nil && s.scanning != nil {
		scanning := s.scanning
		s.mu.Unlock()
		<-scanning
		s.mu.Lock()
	}
	if s.last != nil && (s.scanning != nil || time.Since(s.scanned) < scanEvery) {
		defer s.mu.Unlock()
		return s.last
	}
	s.scanning = make(chan struct{})
	s.mu.Unlock()
	var l *listing
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l != nil { // unless scan panicked
			s.last, s.scanned = l, time.Now()
		}
		close(s.scanning)
		s.scanning = nil
	}()
	l = s.scan()
	return l
}

// scan reads the directories, for one caller at a time.
func (s *scanner) scan() *listing {
	l := &listing{}
	var dirs []found
	seen := map[string]bool{}
	for _, root := range s.roots {
		if abs, err := filepath.Abs(root); err == nil {
			walk(abs, depth, seen, l, &dirs)
		}
	}
	for _, e := range s.read(dirs) {
		l.Runs = append(l.Runs, e.alive())
	}
	slices.SortFunc(l.Runs, func(a, b *runEntry) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Name, a.Name), cmp.Compare(a.Dir, b.Dir))
	})
	sum := sha256.New()
	for _, e := range l.Runs {
		fmt.Fprintf(sum, "%s %s\n", e.Key, e.State)
	}
	fmt.Fprintln(sum, l.Comparisons, l.Audits, l.Described)
	l.state = hex.EncodeToString(sum.Sum(nil)[:8])
	return l
}

// walk finds runs, comparisons and audits in dir and below.
func walk(dir string, deep int, seen map[string]bool, l *listing, runs *[]found) {
	if seen[dir] {
		return
	}
	seen[dir] = true
	if info, err := os.Stat(filepath.Join(dir, runlog.InfoFile)); err == nil {
		*runs = append(*runs, found{dir, info})
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == compare.HeadFile:
			l.Comparisons = append(l.Comparisons, placeOf(dir))
			return
		case name == runlog.DescriptionFile:
			l.Described = append(l.Described, placeOf(dir))
			return
		case name == audit.DataFile:
			l.Audits = append(l.Audits, placeOf(dir))
			return
		case strings.HasPrefix(name, ".") || deep == 0:
		case e.IsDir() || e.Type()&os.ModeSymlink != 0:
			walk(filepath.Join(dir, name), deep-1, seen, l, runs)
		}
	}
}

func placeOf(dir string) place {
	sum := sha256.Sum256([]byte(dir))
	return place{hex.EncodeToString(sum[:6]), dir, filepath.Base(dir)}
}

// read makes the entries of runs; it reads only those that have changed.
func (s *scanner) read(runs []found) []*runEntry {
	entries, known := make([]*runEntry, len(runs)), make(map[string]stamped, len(runs))
	var fresh []int
	for i, f := range runs {
		if old, ok := s.known[f.dir]; ok && old.at.Equal(f.info.ModTime()) && old.size == f.info.Size() {
			entries[i] = old.entry
			continue
		}
		fresh = append(fresh, i)
	}
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for n := range workers {
		wait.Go(func() {
			for k := n; k < len(fresh); k += workers {
				entries[fresh[k]] = entryOf(runs[fresh[k]].dir)
			}
		})
	}
	wait.Wait()
	for i, f := range runs {
		known[f.dir] = stamped{f.info.ModTime(), f.info.Size(), entries[i]}
	}
	s.known = known
	return entries
}

// entryOf reads run.json.
func entryOf(dir string) *runEntry {
	e := &runEntry{place: placeOf(dir)}
	i, err := runlog.ReadInfo(dir)
	if err != nil {
		e.State, e.Damage = damaged, err.Error()
		return e
	}
	e.ID, e.Dataset, e.Method, e.State, e.Started = i.ID, i.Dataset, i.Method, i.Status, i.Started
	e.Budget, e.Off, e.Lab, e.MaxSteps, e.Ledger = i.Budget, i.Off, i.Lab, i.MaxSteps, i.Ledger
	e.Network, e.Search, e.Warnings = i.Network, i.Search != nil, len(i.Warnings)
	if i.Sum != nil {
		e.Against = text.Against(i.Sum.Colluders)
	}
	if r := i.Result; r != nil {
		e.Steps, e.Outcome = r.Steps, r.Outcome
		e.Score, e.Quality = score(r.Test), quality(r.Private)
	}
	return e
}

// than names the figures in which a model is worse than a constant.
func than(beaten []string) string {
	if len(beaten) == 0 {
		return ""
	}
	return "; worse than a constant in " + strings.Join(beaten, ", ")
}

// score returns the main figure of a test, in words, and in which figures a constant would be better.
func score(s *runlog.Scores) string {
	switch {
	case s == nil:
	case s.Accuracy != nil:
		return fmt.Sprintf("accuracy %.4f", *s.Accuracy) + than(page.Beaten(s))
	case s.RMSE != nil:
		text := "RMSE " + chart.Number(*s.RMSE, 4)
		if s.R2 != nil {
			text += fmt.Sprintf(", R² %.4f", *s.R2)
		}
		return text + than(page.Beaten(s))
	}
	return ""
}
