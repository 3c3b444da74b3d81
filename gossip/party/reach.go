package party

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
)

// A reacher keeps the owner's ledger ahead of what the owner publishes: no activation is published before
// the ledger has recorded its charge. The charges of the next activations follow from the plan, so it
// records them in blocks, concurrently with the activations, which wait only if a block is used up before
// the next one is recorded. If an owner gives up, the rest of its last block counts as charged. An owner
// that returns with less than was recorded settles for its whole plan, since a restored older journal
// would draw published activations again. Then only the hub prevents up to a block of activations beyond
// the plan: at the start the owner asks it whether it has the next activation already.
type reacher struct {
	record      func(ctx context.Context, batches int, charged []ledger.Charges) error
	plan        privacy.Event
	activations int
	durable     atomic.Int64  // batches in the journal
	known       atomic.Int64  // batches that the ledger has recorded
	block       atomic.Int64  // batches of the last block
	wake        chan struct{} // asks for the next block
	more        chan struct{} // says that the ledger has recorded one
}

const (
	reachEvery = 2 * time.Second // longest time between two blocks
	blockTime  = time.Second     // of activations that a block is for
	leastBlock = 16
	mostBlocks = 10 // a block is at most a tenth of all activations, which an owner that gives up loses
)

// startReach records the first block after the batches of the journal, and the following ones until the
// context ends; then it closes the channel. It passes errors to stop, also the one that another process
// has taken over the run.
func (s *session) startReach(ctx context.Context, stop func(error), batches int) (*reacher, <-chan struct{}, error) {
	r := &reacher{
		record: s.keeper.Reach, plan: s.Job.Plan, activations: s.Job.Owner.Activations, wake: make(chan struct{}, 1),
		more: make(chan struct{}, 1),
	}
	over := make(chan struct{})
	if s.Info.Lab {
		r.known.Store(int64(r.activations))
		close(over)
		return r, over, nil
	}
	r.durable.Store(int64(batches))
	r.known.Store(int64(batches))
	if err := r.next(ctx, leastBlock); err != nil {
		return nil, nil, err
	}
	go func() {
		defer close(over)
		last, at := batches, time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.wake:
			case <-time.After(reachEvery):
			}
			done, now := int(r.durable.Load()), time.Now()
			each := now.Sub(at) / time.Duration(max(1, done-last))
			block := min(int(blockTime/max(1, each)), r.activations/mostBlocks)
			if err := r.next(ctx, max(leastBlock, block)); err != nil {
				stop(err)
				return
			}
			last, at = done, now
		}
	}()
	return r, over, nil
}

// next records that many batches beyond those of the journal.
func (r *reacher) next(ctx context.Context, block int) error {
	n, known := int(r.durable.Load()), int(r.known.Load())
	to := max(known, min(r.activations, n+block))
	if err := r.record(ctx, n, chargesOf(r.plan, known, to)); err != nil {
		return err
	}
	r.block.Store(int64(block))
	r.known.Store(int64(to))
	select {
	case r.more <- struct{}{}:
	default:
	}
	return nil
}

// charged waits until the ledger has recorded that many batches, which are in the journal.
func (r *reacher) charged(ctx context.Context, batches int) error {
	r.durable.Store(int64(batches))
	for {
		known := int(r.known.Load())
		if known < r.activations && known-batches <= int(r.block.Load())/4 {
			select {
			case r.wake <- struct{}{}:
			default:
			}
		}
		if batches <= known {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.more:
		}
	}
}

// chargesOf returns a range of the batches of an owner's plan, which has one for each activation: as
// repetitions, or one by one.
func chargesOf(plan privacy.Event, from, to int) []ledger.Charges {
	if from >= to {
		return nil
	}
	switch p := plan.(type) {
	case privacy.Repeated:
		return []ledger.Charges{{First: from, Count: to - from, Event: p.Of}}
	case privacy.Composed:
		var all []ledger.Charges
		for k := from; k < to; k++ {
			all = append(all, ledger.Charges{First: k, Count: 1, Event: p[k]})
		}
		return all
	}
	return []ledger.Charges{{First: from, Count: to - from, Event: plan}}
}
