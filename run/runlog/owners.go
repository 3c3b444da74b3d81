package runlog

import (
	"fmt"
	"slices"
)

// MostRetries is how many attempts at a batch a network may give up at most.
const MostRetries = 1000

// A Sum is the place of a run in a network whose owners add up masked sums (network.mode: sum).
type Sum struct {
	Owner     int      `json:"owner"` // whose run it is, an index of Names; −1: none's, as of a plan
	Names     []string `json:"names"` // of the owners
	Rows      []int    `json:"rows"`  // declared, of each owner
	Colluders int      `json:"colluders"`
	Retries   int      `json:"retries"` // attempts at a batch that may be given up, of the whole run
}

// Total is the declared number of rows of all owners.
func (s *Sum) Total() (rows int) {
	for _, n := range s.Rows {
		rows += n
	}
	return rows
}

// Own is the declared number of rows of the owner whose run it is.
func (s *Sum) Own() int { return s.Rows[s.Owner] }

// Name is the name of that owner.
func (s *Sum) Name() string { return s.Names[s.Owner] }

// Check returns an error that names the field of run.json that cannot be an owner's.
func (s *Sum) Check() error {
	of := len(s.Names)
	fail := func(field string, found any, allowed string, args ...any) error {
		return fmt.Errorf("%s: sum.%s: found %v; expected %s", InfoFile, field, found, fmt.Sprintf(allowed, args...))
	}
	names := slices.Sorted(slices.Values(s.Names))
	switch {
	case of < 2:
		return fail("names", of, "2 owners or more")
	case names[0] == "" || len(slices.Compact(names)) != of:
		return fail("names", fmt.Sprintf("%q", s.Names), "a name for each owner, which no other has")
	case len(s.Rows) != of || slices.Min(s.Rows) < 1:
		return fail("rows", s.Rows, "a number from 1 for each of %d owners", of)
	case s.Owner < 0 || s.Owner >= of:
		return fail("owner", s.Owner, "0 to %d", of-1)
	case s.Colluders < 0 || s.Colluders > of-2:
		return fail("colluders", s.Colluders, "0 to %d", of-2)
	case s.Retries < 0 || s.Retries > MostRetries:
		return fail("retries", s.Retries, "0 to %d", MostRetries)
	}
	return nil
}
