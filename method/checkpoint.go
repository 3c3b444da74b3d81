package method

import (
	"context"
	"fmt"
	"iter"

	"github.com/sottodp/sotto/oracle"
)

// A Checkpoint is where a method stands after T steps: all that its later steps depend on, besides its configuration
// and what is public. It holds released values only.
type Checkpoint struct {
	T       int
	Vectors [][]float64
}

// Checkpointer is a method that can continue from a Checkpoint. Its Steps hold the vectors of one in Kept.
type Checkpointer interface {
	Method
	// RunFrom is Run from a Checkpoint on: it yields the later steps as Run would have, to the bit. A nil Checkpoint is
	// the beginning.
	RunFrom(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint) iter.Seq2[Step, error]
}

// Into sets a method's vectors to those of c, in the order of Step.Kept, and returns the number of steps done. A nil
// Checkpoint leaves them.
func (c *Checkpoint) Into(vectors ...[]float64) (t int, err error) {
	if c == nil {
		return 0, nil
	}
	if len(c.Vectors) != len(vectors) {
		return 0, fmt.Errorf("method: a checkpoint of %d vectors; this method has %d", len(c.Vectors), len(vectors))
	}
	for i, v := range vectors {
		if len(c.Vectors[i]) != len(v) {
			return 0, fmt.Errorf("method: a checkpoint with %d numbers in a vector; this method has %d", len(c.Vectors[i]),
				len(v))
		}
		copy(v, c.Vectors[i])
	}
	return c.T, nil
}
