package run

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
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
	own.Warnings = own.cautions()
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

// A Pool is that of an owner's run, whose journal is in the run directory (network.mode: sum). Package gossip/pool has
// it.
type Pool interface {
	private.Pool
	// End compares the totals that this owner was shown with those of all others. It is called when the method asks for no
	// more, before the run has a result, and again by a resume. After an error the run has none: it stays charged, and is
	// not settled.
	End(context.Context) error
	io.Closer
}

// A PoolState says whose pool a session opens, and how far its run is.
type PoolState struct {
	Disk              runlog.Disk
	Path              string // of the pool's journal
	Run               string
	Charged, Released int // attempts and batches in the run log
}

// Owners are those whose run this is together (network.mode: sum); package gossip/party has them.
type Owners interface {
	// Come waits for the others in a new run whose table is one, before anything is written or reserved.
	Come(context.Context) error
	// Ready waits for them after the budget is reserved, and before the run has the rows.
	Ready(context.Context) error
	// Pool opens the pool, in which their sums are added up.
	Pool(PoolState) (Pool, error)
}

// alone is the owner of a run that releases its own sums.
type alone struct{}

func (alone) Come(context.Context) error { return nil }

func (alone) Ready(context.Context) error { return nil }

func (alone) Pool(PoolState) (Pool, error) { return nil, nil }

// errAlone refuses the run of an owner without the others.
var errAlone = errors.New("is the run of an owner who adds up sums with others, and goes on only with all of them: repeat `sotto node` with the same --dir")

// together checks that the job of one of several owners has the others.
func (e *Env) together(j *Job) error {
	_, single := e.Owners.(alone)
	switch {
	case !single || j.Sum == nil:
		return nil
	case j.Sum.Owner < 0: // the job of all
		return errAlone
	}
	return fmt.Errorf("is the run of %s, one of %d owners: %w", j.Sum.Name(), len(j.Sum.Names), errAlone)
}

// openPool opens the pool of a run with that run log. A part leaves this process once it is in the pool's journal, so
// its charge is durable and in the ledger before it is made (runlog.Writer.AtOnce).
func (s *Session) openPool(log *runlog.Record) error {
	p, err := s.env.Owners.Pool(PoolState{
		Disk: s.disk().Disk, Path: filepath.Join(s.Dir, runlog.SumsFile), Run: s.Info.ID, Charged: log.Charged(),
		Released: log.Released,
	})
	if err != nil { // beside it p may be a nil pointer
		return err
	}
	s.pool, s.writer.AtOnce = p, p != nil
	return nil
}

// endPool ends what the owners release together.
func (s *Session) endPool(ctx context.Context) error {
	if s.pool == nil {
		return nil
	}
	return s.pool.End(ctx)
}

func (s *Session) closePool() error {
	if s.pool == nil {
		return nil
	}
	p := s.pool
	s.pool = nil
	return p.Close()
}

// test is the table that the run scores its model on; "": none. In mode gossip an owner scores none: the model is the
// mean of all owners'.
func (j *Job) test() string {
	if j.Owner != nil {
		return ""
	}
	return j.Spec.Test
}

// own is how many records the table of this run has, as declared. The facts of owners who add up their sums count those
// of all.
func (j *Job) own() int {
	if j.Sum != nil {
		return j.Sum.Own()
	}
	return j.whole().Rows
}

// TakeOver proves the right of an owner whose run in a network of mode gossip goes on. Its log is a journal.
func (s *Session) TakeOver(ctx context.Context) error {
	log, err := s.disk().Record(s.Info, s.Dir)
	if err != nil {
		return err
	}
	s.setRight(s.Info.Lab)
	if err := s.right.takeOver(ctx, log); err != nil {
		return err
	}
	s.Info.Ledger = s.ledger.Where()
	return s.disk().WriteInfo(s.Dir, s.Info)
}

// Reach records charges of such a run in the ledger before its releases are published.
func (s *Session) Reach(ctx context.Context, batches int, charged []ledger.Charges) error {
	return s.right.reach(ctx, batches, charged)
}

// Finish ends such a run, whose model has parameters w.
func (s *Session) Finish(ctx context.Context, w []float64, steps int, outcome string,
	seconds float64) (*runlog.Record, error) {
	return s.finish(ctx, ending{w: w, steps: steps, outcome: outcome}, seconds)
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

// notSummed refuses the job's method.
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

// join takes the pace out of the record of a run that ends. An owner's journal has none.
func (s *Session) join(rec *runlog.Record) error {
	if s.Info.Network != "" {
		return nil
	}
	return s.disk().Join(s.Dir, rec)
}
