package pool

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/run/runlog"
)

// Added says what a verification of several owners' journals has added up.
type Added struct {
	Owners   int  // whose journals were read
	Whole    bool // they are all of the network's: every sum is that of the parts
	Attempts int
	Sums     int // that at least two of the journals have
}

// Verify compares the journals of sums in the run directories of owners of one network, and, where those of all owners
// are there, adds up their parts again. It needs no keys: parts are masked, and masks cancel in the sum. An error names
// the directory and the sum that does not fit.
func Verify(dirs ...string) (*Added, error) {
	out := &Added{Owners: len(dirs)}
	var all []*runlog.Sums
	defer func() {
		for _, s := range all {
			s.Close()
		}
	}()
	owners := map[int]string{}
	for _, dir := range dirs {
		s, err := runlog.ReadSums(filepath.Join(dir, runlog.SumsFile))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		if h := all[0].Head; s.Head.Config != h.Config || s.Head.Owners != h.Owners {
			return nil, fmt.Errorf("%s: is of another network than %s", dir, dirs[0])
		}
		if other, ok := owners[s.Head.Owner]; ok {
			return nil, fmt.Errorf("%s: is of the same owner as %s", dir, other)
		}
		owners[s.Head.Owner] = dir
		out.Attempts = max(out.Attempts, len(s.Attempts))
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("found %d journals; give 2 or more", len(all))
	}
	out.Whole = len(owners) == all[0].Head.Owners
	for k := range out.Attempts {
		sums := 0
		for _, s := range all {
			sums = max(sums, len(s.Of(k).Totals))
		}
		for i := range sums {
			if err := out.add(all, dirs, k, i); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// add checks one sum. A journal may end before it, or have no part of an attempt that its owner's process lost.
func (out *Added) add(all []*runlog.Sums, dirs []string, attempt, sum int) error {
	var total []byte
	var first, masked string
	var parts [][]byte
	var missing []string
	var digest [sha256.Size]byte
	known := 0
	for j, s := range all {
		a := s.Of(attempt)
		if sum < len(a.Parts) {
			b, err := s.PartNumbers(a.Parts[sum])
			if err != nil {
				return err
			}
			if parts = append(parts, b); len(parts) == 1 {
				digest, masked = a.Parts[sum].Digest, dirs[j]
			} else if a.Parts[sum].Digest != digest {
				return fmt.Errorf("%s: sum %d of attempt %d has a part in another context than in %s", dirs[j], sum+1, attempt+1,
					masked)
			}
		} else {
			missing = append(missing, dirs[j])
		}
		if sum >= len(a.Totals) {
			continue
		}
		b, err := s.TotalNumbers(a.Totals[sum])
		if err != nil {
			return err
		}
		if known++; known == 1 {
			total, first = b, dirs[j]
		} else if !bytes.Equal(b, total) {
			return fmt.Errorf("%s: sum %d of attempt %d is another than in %s", dirs[j], sum+1, attempt+1, first)
		}
	}
	if known > 1 {
		out.Sums++
	}
	if !out.Whole {
		return nil
	}
	if missing != nil {
		return fmt.Errorf("%s: its part of sum %d of attempt %d is missing; all owners' parts were in that sum",
			strings.Join(missing, ", "), sum+1, attempt+1)
	}
	again := make([]int64, len(total)/8)
	for _, b := range parts {
		if len(b) != len(total) {
			return fmt.Errorf("%s: sum %d of attempt %d has a part of another length", strings.Join(dirs, ", "), sum+1,
				attempt+1)
		}
		runlog.AddNumbers(again, b)
	}
	if !bytes.Equal(runlog.Numbers(again), total) {
		return fmt.Errorf("%s: sum %d of attempt %d is not that of the %d parts in these journals", strings.Join(dirs, ", "),
			sum+1, attempt+1, len(parts))
	}
	return nil
}
