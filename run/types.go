// Package run runs a job: only here table, model, method, meter, oracle, run log and ledger meet. Package run/job says
// what a job is.
package run

import (
	"fmt"

	"github.com/sottodp/sotto/run/job"
)

// What a run is made of, under the names that those who start one need. Package run/job has the rest.
type (
	Spec        = job.Spec
	ModelSpec   = job.ModelSpec
	PrivacySpec = job.PrivacySpec
	Override    = job.Override
	Job         = job.Job
	Sum         = job.Sum
	InputError  = job.InputError
)

// LoadSpec reads a spec file, if one is named, and applies the overrides.
func LoadSpec(file string, overrides []Override) (*Spec, error) { return job.LoadSpec(file, overrides) }

// Prepare settles a spec of one table.
func Prepare(spec *Spec) (*Job, error) { return job.Prepare(spec) }

func inputError(where, format string, args ...any) error {
	return &InputError{Where: where, Err: fmt.Errorf(format, args...)}
}
