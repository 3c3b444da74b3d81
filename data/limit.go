package data

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// loadFactor is how many times the declared rows a table may have (R9). So a small file that repeats a row without end
// is refused before it fills the memory, and the owner learns that the declaration, or the file, is wrong.
const loadFactor = 8

// A rowLimit is how many rows, and units, a table may have. The error comes before anything is written or joined, and
// is for the owner's terminal only: it depends on the number of rows.
type rowLimit struct {
	units, rows int           // rows: of all units together
	grouped     bool          // rows belong to units; otherwise each is one
	err         *config.Error // nil: no limit
}

// limitOf returns the limit of a table that is read under the schema. One that is only predicted or scored has none:
// the schema declares the rows of another.
func limitOf(s *schema.Schema, opt Options, path string) rowLimit {
	l := rowLimit{grouped: s.UnitRows > 0, rows: math.MaxInt}
	if n := s.Rows; n > 0 && !opt.ByRow && !opt.Unlabeled && !opt.unlimited {
		l.units, l.rows = loadFactor*n, loadFactor*loadFactor*n*s.UnitRows // below 2⁵⁴
		l.err = &config.Error{File: Public(path),
			Err: fmt.Errorf("the table has more than %d times the %d %s that the schema declares; correct %s in the schema, which is public, if the table is right", loadFactor, n, s.Counted(), s.Counted())}
	}
	if opt.Rows > 0 {
		l.units, l.err = opt.Rows, rowsError(Public(path), s.Counted(), "more "+s.Counted(), opt.Rows)
	}
	return l
}

// over returns the error if there are more rows or units.
func (l *rowLimit) over(rows, units int) error {
	if !l.grouped {
		units = rows
	}
	switch {
	case l.err == nil:
		return nil
	case units > l.units:
		return l.err
	case l.grouped && rows > l.rows:
		return &config.Error{File: l.err.File,
			Err: fmt.Errorf("the table has more than %d times the rows of a unit that the schema declares, on average; correct unit.rows in the schema, which is public, if the table is right", loadFactor)}
	}
	return nil
}

// TooMany is for formats that know how many rows they have before they read them. It returns the error of a table with
// more rows than it may have.
func (in *Input) TooMany(rows int64) error {
	return in.limit.over(int(min(rows, math.MaxInt)), 0)
}
