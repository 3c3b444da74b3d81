package method

import (
	"context"
	"fmt"
	"iter"

	"github.com/sottodp/sotto/oracle"
)

// A Checkpoint is where a method stands after T steps: all that its later steps depend on, besides its configuration and what
// is public. It is made of released values only.
type Checkpoint struct {
	T       int
	Vectors [][]float64
}

// Checkpointer is a method that can go on from a Checkpoint. Its Steps say so, by Kept, once all is asked that was paid for.
type Checkpointer interface {
	Method
	// RunFrom is Run from a Checkpoint on: it yields the steps behind it as Run would have, to the bit. No Checkpoint is the beginning.
	RunFrom(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint) iter.Seq2[Step, error]
}

// into sets a method's vectors to those of s, in the order of Step.Kept, and says how many steps are done; of no Checkpoint it leaves them.
func (s *Checkpoint) into(vectors ...[]float64) (t int, err error) {
	if s == nil {
		return 0, nil
	}
	if len(s.Vectors) != len(vectors) {
		return 0, fmt.Errorf("method: a state of %d vectors; this method has %d", len(s.Vectors), len(vectors))
	}
	for i, v := range vectors {
		if len(s.Vectors[i]) != len(v) {
			return 0, fmt.Errorf("method: a state with %d numbers in a vector; this method has %d", len(s.Vectors[i]), len(v))
		}
		copy(v, s.Vectors[i])
	}
	return s.T, nil
}
