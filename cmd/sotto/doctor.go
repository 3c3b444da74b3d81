package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/ledger"
)

// What came of an examination.
const (
	well     = "well"
	doubtful = "doubtful" // a run works, and something should be known
	broken   = "broken"   // a run fails, or should not be trusted
)

// An examination is one thing that doctor looked at.
type examination struct {
	What    string `json:"what"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
}

func doctorCommand() *cobra.Command {
	var where, dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this machine can run Sotto: randomness, kernels, disk, ledger",
		Long: `Doctor checks what every run rests on: that the system gives random bits, that the
float kernels of this machine give the bits of plain Go, that the directory of runs
can be written, synced and locked, and that the ledger can be read and its chain of
entries holds. It looks at no table and changes nothing: what it writes to the
directory it takes away again, and it makes no ledger.

Exit code 0: all is well, or doubtful; 1: something is broken.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			found := []examination{examineRandomness(), examineKernels(), examineDisk(dir), examineLedger(c.Context(), where)}
			count := map[string]int{}
			for _, e := range found {
				count[e.Verdict]++
			}
			verdict := well
			switch {
			case count[broken] > 0:
				verdict = broken
			case count[doubtful] > 0:
				verdict = doubtful
			}
			w := c.OutOrStdout()
			if asJSON {
				if err := writeJSON(w, map[string]any{"verdict": verdict, "examinations": found}); err != nil {
					return err
				}
			} else {
				for _, e := range found {
					fmt.Fprintf(w, "%-11s %-9s %s\n", e.What, e.Verdict, e.Detail)
				}
				fmt.Fprintf(w, "\n%s\n", map[string]string{well: "All is well.", doubtful: "Runs work; see what is doubtful.", broken: "Do not run Sotto here before what is broken is mended."}[verdict])
			}
			if verdict == broken {
				return fmt.Errorf("doctor: %d of %d are broken", count[broken], len(found))
			}
			return nil
		},
	}
	c.Flags().StringVar(&where, "ledger", "", "a file or postgres://… (default: the user's own)")
	c.Flags().StringVar(&dir, "dir", ".", "the directory that runs are to be written to")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// examineRandomness draws twice from the source that noise comes from. A source that
// works fails this once in 10⁹ times.
func examineRandomness() examination {
	e := examination{What: "randomness", Verdict: broken}
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
		e.Verdict, e.Detail = well, fmt.Sprintf("two draws of %d bytes look independent and balanced", n)
	}
	return e
}

func examineKernels() examination {
	set, _ := kern.Level()
	if err := kern.Check(); err != nil {
		return examination{"kernels", broken, fmt.Sprintf("%v; %s=go avoids them", err, kern.Variable)}
	}
	return examination{"kernels", well, fmt.Sprintf("%s give the same bits as plain Go", set)}
}

const (
	slowSync  = 50 * time.Millisecond // a group of records is written each half second
	smallDisk = 1 << 30               // bytes
)

// examineDisk writes, syncs, locks and takes away again.
func examineDisk(dir string) examination {
	e := examination{What: "disk", Verdict: broken}
	fail := func(err error) examination {
		e.Detail = fmt.Sprintf("%s: %v", dir, err)
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
	e.Verdict, e.Detail = well, fmt.Sprintf("%s can be written and locked; a sync takes %v", dir, best.Round(10*time.Microsecond))
	free, known := freeBytes(own)
	if known {
		e.Detail += fmt.Sprintf("; %.1f GB are free", float64(free)/1e9)
	}
	if best > slowSync || known && free < smallDisk {
		e.Verdict = doubtful
	}
	return e
}

func examineLedger(ctx context.Context, where string) examination {
	e := examination{What: "ledger", Verdict: broken}
	l, err := ledger.View(ctx, where)
	if errors.Is(err, fs.ErrNotExist) {
		if where != "" {
			return examination{e.What, doubtful, fmt.Sprintf("%s is not there; the first run makes it", where)}
		}
		return examination{e.What, well, "there is none yet; the first run makes it"}
	}
	if err != nil {
		e.Detail = err.Error()
		return e
	}
	defer l.Close()
	n, err := l.Verify(ctx)
	if err != nil {
		e.Detail = err.Error()
		return e
	}
	return examination{e.What, well, fmt.Sprintf("%s: %s entries, the chain holds", l.Where(), count(n))}
}
