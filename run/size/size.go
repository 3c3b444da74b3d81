// Package size says how much memory and disk a run needs, from public facts alone: the rows that the schema declares,
// the encoding, the model and the plan. The number of rows in the file has no part in it (rules.md, R9).
package size

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/plan"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

const (
	perRow  = 4 + 4 // bytes of a row's label and norm
	perLine = 4 + 8 // bytes of a row that is made of a stored one: its norm and factor
	perStep = 80    // bytes of a line of steps.jsonl
)

// Of is what a run of the job needs, with rows at this machine. Packed rows are mapped from their file; what curves of
// theirs take beside it is in memory.
func Of(j *run.Job, packed bool) plan.Needs {
	n := plan.Needs{Steps: product(perStep, method.MaxSteps(j.Method))}
	if !packed {
		n.RowBytes = rowBytes(j)
	}
	if j.Facts.Snapped && (packed || n.RowBytes > 0) {
		n.RowBytes = curvedBytes(j, packed)
	}
	n.Rows = product(n.RowBytes, j.Schema.Rows)
	kept := method.MaxSteps(j.Method)
	if j.StateEvery > 0 { // the releases since the last saved state but one
		kept = min(kept, 2*j.StateEvery)
	}
	n.Releases = product(runlog.ReleaseBytes(j.Facts.Dim), kept)
	return n
}

// product is a size in bytes, at most the largest number.
func product(bytes, count int) int64 {
	if bytes > 0 && int64(count) > math.MaxInt64/int64(bytes) {
		return math.MaxInt64
	}
	return int64(bytes) * int64(count)
}

// rowBytes is how much memory an encoded row takes; 0 for rows that are on several machines, or that have as many
// features as the file says.
func rowBytes(j *run.Job) int {
	s := j.Schema
	switch {
	case j.Owner != nil || j.Sum != nil, s.Format.Kind == schema.KindLIBSVM:
		return 0
	case j.Coding().Bytes:
		return s.Image.Pixels() + 8 + perRow
	case !s.Sparse():
		return 4*s.Dim() + perRow
	}
	for _, c := range s.Columns {
		if c.Type == schema.TypeText {
			return 0
		}
	}
	return 8*s.Predictors() + 4 + perRow // each column gives one number at least, with its place
}

// curvedBytes is how much memory a row takes whose curves follow from a stored one.
func curvedBytes(j *run.Job, packed bool) int {
	n := perLine
	if lines, ok := j.Schema.Lines(); ok && !packed {
		n += 4*lines.Dim() + perRow
	}
	if !j.RowOptions().Narrow {
		n += 4 * j.Schema.Dim()
	}
	return n
}

// A MemoryError says that the rows of a run do not fit in memory. It follows from public facts and from the machine.
type MemoryError struct {
	Needs   plan.Needs
	Rows    int
	Machine int64 // bytes that the machine, or the control group of the process, has
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the run needs %s of memory for the %d rows that the schema declares, at %d bytes each encoded, and this machine gives %s: pack the table (sotto data pack), which then stays on disk, or let numeric columns have fewer bumps (hats in the schema)",
		plan.Bytes(e.Needs.Rows), e.Rows, e.Needs.RowBytes, plan.Bytes(e.Machine))
}

// Check refuses a run whose rows do not fit in the memory of the machine, if that is known.
func Check(j *run.Job, packed bool) error { return check(j, packed, memory()) }

func check(j *run.Job, packed bool, machine int64) error {
	if n := Of(j, packed); machine > 0 && n.Rows > machine {
		return &MemoryError{n, j.Schema.Rows, machine}
	}
	return nil
}
