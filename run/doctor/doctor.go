// Package doctor examines what every run rests on: randomness, kernels, disk and ledger of this
// machine. It reads no table, and removes what it writes.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/redact"
	"github.com/sottodp/sotto/internal/state"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
)

// Verdicts of an examination, from the best to the worst.
const (
	Well     = "well"
	Doubtful = "doubtful" // a run works, and something should be known
	Broken   = "broken"   // a run fails, or should not be trusted
)

// An Examination is one thing that was examined.
type Examination struct {
	What    string `json:"what"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
}

// A Report is the result of an examination of the machine; its verdict is the worst of all.
type Report struct {
	Examinations []Examination `json:"examinations"`
	Verdict      string        `json:"verdict"`
}

// Examine examines the machine, the directory for runs and the ledger.
func Examine(ctx context.Context, dir, where string) *Report {
	r := &Report{[]Examination{examineRandomness(), examineKernels(), examineDisk(dir), examineState(),
		examineLedger(ctx, where)}, Well}
	for i, e := range r.Examinations {
		r.Examinations[i].Detail = redact.Text(e.Detail)
		if e.Verdict == Broken || e.Verdict == Doubtful && r.Verdict == Well {
			r.Verdict = e.Verdict
		}
	}
	return r
}

// Text prints the report for people.
func (r *Report) Text(w io.Writer) {
	for _, e := range r.Examinations {
		fmt.Fprintf(w, "%-11s %-9s %s\n", e.What, e.Verdict, e.Detail)
	}
	fmt.Fprintf(w, "\n%s\n",
		map[string]string{Well: "All is well.", Doubtful: "Runs work; see what is doubtful.",
			Broken: "Do not run Sotto here before what is broken is repaired."}[r.Verdict])
}

// Err counts what is broken.
func (r *Report) Err() error {
	broken := 0
	for _, e := range r.Examinations {
		if e.Verdict == Broken {
			broken++
		}
	}
	if broken == 0 {
		return nil
	}
	return fmt.Errorf("doctor: %d of %d are broken", broken, len(r.Examinations))
}

// examineRandomness draws twice from the source that noise comes from. A source that
// works fails this once in 10⁹ times.
func examineRandomness() Examination {
	e := Examination{What: "randomness", Verdict: Broken}
	const n = 1 << 16
	var draws [2][n]byte
	for i := range draws {
		src, err := noise.SecureStreams().Stream("doctor", 0)
		if err == nil {
			_, err = src.Read(draws[i][:])
		}
		if err != nil {
			e.Detail = err.Error()
			return e
		}
	}
	ones, same := 0, 0
	for i, b := range draws[0] {
		ones += bits.OnesCount8(b)
		if b == draws[1][i] {
			same++
		}
	}
	// Ones: mean 4n, variance 2n. Equal bytes: about a Poisson law of mean n/256. Both
	// at more than six standard deviations.
	switch {
	case math.Abs(float64(ones)-4*n) > 6.2*math.Sqrt(2*n):
		e.Detail = fmt.Sprintf("of %d bits from the system's source %d are ones", 8*n, ones)
	case math.Abs(float64(same)-n/256) > 7*math.Sqrt(n/256):
		e.Detail = fmt.Sprintf("two draws of %d bytes agree in %d", n, same)
	default:
		e.Verdict, e.Detail = Well, fmt.Sprintf("two draws of %d bytes look independent and balanced", n)
	}
	return e
}

func examineKernels() Examination {
	set, _ := kern.Level()
	if err := kern.Check(); err != nil {
		return Examination{"kernels", Broken, fmt.Sprintf("%v; %s=go avoids them", err, kern.Variable)}
	}
	return Examination{"kernels", Well, fmt.Sprintf("%s give the same bits as plain Go", set)}
}

const (
	slowSync  = 50 * time.Millisecond // a group of records is written each half second
	smallDisk = 1 << 30               // bytes
)

// examineDisk writes, syncs, locks and cleans up.
func examineDisk(dir string) Examination {
	e := Examination{What: "disk", Verdict: Broken}
	fail := func(err error) Examination {
		e.Detail = fmt.Sprintf("%s: %v", redact.Path(dir), err)
		return e
	}
	own, err := os.MkdirTemp(dir, ".sotto-doctor-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(own)
	f, err := os.Create(filepath.Join(own, "file"))
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	best := time.Duration(math.MaxInt64)
	for range 5 {
		if _, err := f.Write(make([]byte, 1<<12)); err != nil {
			return fail(err)
		}
		begin := time.Now()
		if err := f.Sync(); err != nil {
			return fail(err)
		}
		best = min(best, time.Since(begin))
	}
	unlock, err := run.LockDir(own)
	if err != nil {
		return fail(err)
	}
	unlock()
	e.Verdict, e.Detail = Well,
		fmt.Sprintf("%s can be written and locked; a sync takes %v", dir, best.Round(10*time.Microsecond))
	free, known := freeBytes(own)
	if known {
		e.Detail += fmt.Sprintf("; %.1f GB are free", float64(free)/1e9)
	}
	if best > slowSync || known && free < smallDisk {
		e.Verdict = Doubtful
	}
	return e
}

// tryDir makes what is missing of a directory, tries to write there, and removes what it made.
func tryDir(dir string) error {
	made := ""
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		made = at
	}
	if made != "" {
		defer os.RemoveAll(made)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	own, err := os.MkdirTemp(dir, ".sotto-doctor-")
	if err != nil {
		return err
	}
	return os.Remove(own)
}

// examineState tries the directory of what is known of this user's ledgers and tables. Without it a fit warns, and goes
// on.
func examineState() Examination {
	dir, err := state.Dir()
	if err != nil {
		return Examination{"state", Doubtful, err.Error()}
	}
	if err := tryDir(dir); err != nil {
		return Examination{"state", Doubtful,
			fmt.Sprintf("%s cannot be made or written (%v), so a replaced ledger or a table under another name would not be noticed; set XDG_STATE_HOME", dir, err)}
	}
	return Examination{"state", Well, dir + " can be written"}
}

func examineLedger(ctx context.Context, where string) Examination {
	e := Examination{What: "ledger", Verdict: Broken}
	l, err := ledger.View(ctx, where)
	missing := errors.Is(err, fs.ErrNotExist)
	n := 0
	if err == nil {
		n, err = l.Verify(ctx)
		l.Close()
	}
	if err != nil && !missing {
		e.Detail = err.Error()
		return e
	}
	path, err := ledger.Path(where)
	if err == nil && path != "" {
		err = tryLedger(path, where == "", missing)
	}
	switch {
	case err != nil:
		e.Detail = err.Error()
		return e
	case missing && where != "":
		return Examination{e.What, Doubtful, fmt.Sprintf("%s is not there; the first run makes it", redact.Path(where))}
	case missing:
		return Examination{e.What, Well, "there is none yet; the first run makes it"}
	}
	return Examination{e.What, Well, fmt.Sprintf("%s: %s entries, the chain holds", l.Where(), chart.Integer(n))}
}

// tryLedger tries what a fit needs of a ledger's file: to write it, and to make files beside it. Only the user's own
// ledger has a directory that a fit makes.
func tryLedger(path string, own, missing bool) error {
	dir := filepath.Dir(path)
	if !own {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the directory %s does not exist", dir)
		}
	}
	if err := tryDir(dir); err != nil {
		return fmt.Errorf("%s: its directory cannot be made or written: %w; set XDG_DATA_HOME to a directory that you can write to, or name a ledger with --ledger", path, err)
	}
	if missing {
		return nil
	}
	f, err := readfile.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("it cannot be written: %w", err)
	}
	return f.Close()
}
