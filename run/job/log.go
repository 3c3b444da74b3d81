package job

import (
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// keepAll is the largest size in bytes of releases that a run keeps whole. A run that may release more
// saves the state of the method after each half of that size, and keeps the releases since the last state
// but one.
const keepAll = 64 << 20

// StateEvery returns the number of steps from one saved state to the next, from public sizes alone. It is
// 0 if every release is kept: the releases are small, the method cannot continue from a state, or its
// queries depend on all releases.
func StateEvery(m method.Method, plan privacy.Event, dim int) int {
	_, keeps := m.(method.Checkpointer)
	_, filtered := plan.(privacy.Filtered)
	step := runlog.ReleaseBytes(dim)
	if !keeps || filtered || method.MaxSteps(m) <= keepAll/step {
		return 0
	}
	return max(1, keepAll/2/step)
}

// Redraws says whether a run that goes on draws samples and noise of unreleased batches once more, as a seed gives
// them. Otherwise they are lost, and its plan has gaps. A part that owners have masked is never drawn again.
func (j *Job) Redraws() bool { return j.Spec.Seed != nil && j.Sum == nil }

// Reservation returns what a run of the job reserves in the ledger.
func (j *Job) Reservation(run string) ledger.Reservation {
	b := j.Spec.Privacy.Budget()
	return ledger.Reservation{Dataset: j.Schema.Dataset, Unit: j.Schema.Unit, Adjacency: j.Facts.Adjacency, Run: run,
		Epsilon: b.Epsilon, Delta: b.Delta, Plan: j.Plan,
		Shares: account.SharesOf(j.Plan, j.Accountant, j.Facts.Adjacency, b.Delta)}
}
