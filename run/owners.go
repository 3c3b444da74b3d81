package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/run/runlog"
)

// A Pool adds up the sums of all owners in one owner's run (network.mode: sum); its journal is in
// the run directory. Package gossip/pool implements it.
type Pool interface {
	sum.Pool
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
	// Come waits for the other owners of a new run whose rows are in one table, before anything is
	// written or reserved.
	Come(context.Context) error
	// Ready waits for them after the budget is reserved, and before this one's run, of that name, has the rows.
	Ready(ctx context.Context, run string) error
	// Pool opens the pool, in which their sums are added up.
	Pool(PoolState) (Pool, error)
}

// alone is the owner of a run that releases its own sums.
type alone struct{}

func (alone) Come(context.Context) error { return nil }

func (alone) Ready(context.Context, string) error { return nil }

func (alone) Pool(PoolState) (Pool, error) { return nil, nil }

// errAlone refuses to continue an owner's run without the other owners.
var errAlone = errors.New("an owner who adds up sums with others can continue only together with them: repeat `sotto node` with the same --dir")

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

// join takes the pace out of the record of a run that ends. An owner's journal has none.
func (s *Session) join(rec *runlog.Record) error {
	if s.Info.Network != "" {
		return nil
	}
	return s.disk().Join(s.Dir, rec)
}
