package job

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/runlog"
)

// ModeSum is the mode of a network whose owners add up masked sums, each with a share of the noise (ADR 66, 69), and
// train as one process on all their rows. In the other mode, gossip, every vector that an owner gives away has all its
// noise (package gossip).
const ModeSum = "sum"

// A Sum is the place of a job in a network whose owners add up masked sums, as run.json has it.
type Sum = runlog.Sum

// An Owner is the place of a job in a network of mode gossip.
type Owner struct {
	Index       int                                    // in the network
	Activations int                                    // in the schedule
	Method      interface{ NoiseMultiplier() float64 } // configured, of package gossip; run.json has it
}

// As returns the job of one owner in a network of mode gossip, who pays for that plan.
func (j *Job) As(o Owner, methodName, rows string, facts oracle.Public, plan privacy.Event) *Job {
	own, spec := *j, *j.Spec
	spec.MethodName, spec.Data = methodName, rows
	own.Spec, own.Facts, own.Plan, own.Owner = &spec, facts, plan, &o
	own.Warnings = own.Cautions()
	return &own
}

// PrepareSum settles a spec as the one job of all owners who add up their sums.
func PrepareSum(spec *Spec, s *Sum) (*Job, error) {
	all := *spec
	all.sum = s
	return prepare(&all)
}

// OfOwner is the part of one of them in that job, whose rows are in a file.
func (j *Job) OfOwner(index int, rows string) *Job {
	own, spec, s := *j, *j.Spec, *j.Sum
	s.Owner, spec.Data, spec.Test = index, rows, ""
	spec.sum, own.Spec, own.Sum = &s, &spec, &s
	return &own
}

// TestTable is the table that the run scores its model on; "": none. In mode gossip an owner scores none: the model is
// the mean of all owners'.
func (j *Job) TestTable() string {
	if j.Owner != nil {
		return ""
	}
	return j.Spec.Test
}

// Own is how many records the table of this run has, as declared. The facts of owners who add up their sums count those
// of all.
func (j *Job) Own() int {
	if j.Sum != nil {
		return j.Sum.Own()
	}
	return j.Whole().Rows
}

// Streams returns the randomness of the run's samples and noise: secure, or from the spec's seed, which
// gives each owner in a network a stream of its own.
func (j *Job) Streams() noise.Streams {
	seed := j.Spec.Seed
	owner := 0
	switch {
	case seed == nil:
		return noise.SecureStreams()
	case j.Owner != nil:
		owner = j.Owner.Index
	case j.Sum != nil:
		owner = j.Sum.Owner
	default:
		return noise.SeededStreams(*seed)
	}
	text := binary.LittleEndian.AppendUint64(nil, *seed)
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(text, uint64(owner)))
	return noise.SeededStreams(binary.LittleEndian.Uint64(sum[:]))
}

// summed is a method's plan as owners release it together. It refuses plans that no owner can make a share of: of
// searches, choices and sums whose noise is not Gaussian.
func (j *Job) summed(plan privacy.Event) (privacy.Event, error) {
	plan = privacy.InShares(plan, j.Facts.Owners, j.Facts.Colluders)
	shared := privacy.Fold(plan, func(e privacy.Event, inside []bool) bool {
		switch e.(type) {
		case privacy.Shared:
			return true
		case privacy.FixedSampled, privacy.Allocated, privacy.Parallel, privacy.Tuned:
			return false
		}
		return len(inside) > 0 && !slices.Contains(inside, false)
	})
	if shared && j.Sum.Retries > 0 {
		plan = privacy.Retried{Of: plan, Retries: j.Sum.Retries}
	}
	if shared {
		return plan, nil
	}
	return nil, j.notSummed()
}

// notSummed is the error for a method whose plan owners cannot share.
func (j *Job) notSummed() error {
	return &InputError{j.Spec.Place("method.name"),
		fmt.Errorf("method.name: found %q beside network.mode: sum; choose a method that asks for nothing but sums with Gaussian noise, of all rows or a Poisson sample, as many as its plan says: searches, choices and other noise have no theorem for shares", j.Spec.MethodName)}
}

// Alone is the ε of the plan against all other owners together, or if masks were broken, at the spec's δ.
func (j *Job) Alone() float64 {
	return account.Alone(j.Plan, j.Accountant, j.Facts.Adjacency, j.Spec.Privacy.Budget().Delta)
}

// SumSizes are the most that owners who add up ask of their hub: batches of the plan, without retries, and numbers of a
// sum.
func (j *Job) SumSizes() (batches, numbers int) {
	batches = privacy.Fold(privacy.WithoutRetries(j.Plan), func(e privacy.Event, inside []int) (n int) {
		switch e := e.(type) {
		case privacy.Shared, privacy.PoissonSampled:
			return 1
		case privacy.Repeated:
			return e.Count * inside[0]
		}
		for _, k := range inside {
			n += k
		}
		return n
	})
	return batches, method.MostNumbers(j.Method, j.Facts)
}
