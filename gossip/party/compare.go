package party

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/sottodp/sotto/gossip/pool"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// VerifySums compares the sums in the directories of several owners of one network of mode sum.
// With the directories of all owners it also adds up their parts again, which exposes a hub that
// added them wrongly.
func VerifySums(dirs ...string) (f record.Finding, err error) {
	f.What = "owners"
	var all []string
	seen := map[string]string{}
	for _, dir := range dirs {
		info, err := runlog.ReadInfo(dir)
		switch {
		case err != nil:
			return f, &run.InputError{Err: err}
		case info.Sum == nil:
			return f, inputError("%s: is not an owner's run in a network of mode sum; give only such runs together", dir)
		}
		if err := info.Sum.Check(); err != nil {
			return f, &run.InputError{Where: dir, Err: err}
		}
		name := info.Sum.Name()
		if other := seen[name]; other != "" {
			return f, inputError("%s: is of the same owner as %s, %s", dir, other, name)
		}
		seen[name], all = dir, info.Sum.Names
	}
	added, err := pool.Verify(dirs...)
	unreadable := (*fs.PathError)(nil)
	switch {
	case errors.As(err, &unreadable):
		return f, &run.InputError{Err: err}
	case err != nil:
		f.Detail = err.Error()
	case added.Whole:
		f.Holds, f.Detail = true,
			fmt.Sprintf("%d sums in %d attempts, each that of the parts of all %d owners", added.Sums, added.Attempts,
				added.Owners)
	default:
		f.Holds, f.Detail = true,
			fmt.Sprintf("%d sums, the same in all of these directories; with the directories of all %d owners (%d are here) the parts can be added up again", added.Sums, len(all), added.Owners)
	}
	return f, nil
}
