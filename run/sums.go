package run

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/run/runlog"
)

// A Pool is that of an owner's run, whose journal is in the run directory (network.mode: sum). Package gossip/pool has it.
type Pool interface {
	private.Pool
	// End compares the totals that this owner was shown with those of all others. It is called when the method asks for no more, before the
	// run has a result, and again by a resume. After an error the run has none: it stays charged, and is not settled.
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

// errNoPool refuses the job of an owner without the others.
var errNoPool = errors.New("run: found an owner's job in a network of mode sum, and no pool of the owners (Env.Pool)")

// openPool opens the pool of a run with that run log. A part leaves this process once it is in the pool's journal, so its charge is
// durable and in the ledger before it is made (runlog.Writer.AtOnce).
func (s *Session) openPool(rec *runlog.Record) error {
	if s.env.Pool == nil {
		return nil
	}
	p, err := s.env.Pool(PoolState{
		Disk: s.disk().Disk, Path: filepath.Join(s.Dir, runlog.SumsFile), Run: s.Info.ID, Charged: rec.Charged(), Released: rec.Released,
	})
	if err != nil {
		return err
	}
	s.pool = p
	return nil
}

func (s *Session) closePool() error {
	if s.pool == nil {
		return nil
	}
	p := s.pool
	s.pool = nil
	return p.Close()
}

// ready waits until the other owners have reserved, too.
func (s *Session) ready(ctx context.Context) error {
	if s.env.Ready == nil {
		return nil
	}
	return s.env.Ready(ctx)
}

// own is how many records the table of this run has, as declared. The facts of owners who add up their sums count those of all.
func (j *Job) own() int {
	if j.Sum != nil {
		return j.Sum.Own()
	}
	return j.whole().Rows
}
