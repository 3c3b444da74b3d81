package gossip

import (
	"context"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
)

// Train runs all owners as goroutines of one process and returns the parameters of each. Every owner has
// its own oracle with its own meter; methods are configured. The first error stops all. Each node's
// goroutine calls its watch, which may be nil. The result does not depend on the scheduling of
// goroutines.
func Train(ctx context.Context, s *Schedule, mixer Mixer, methods []Method, oracles []oracle.Oracle,
	obj method.Objective, watch func(node int) Watch) ([][]float64, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	found := make([][]float64, s.Graph.N)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() {
			var w Watch
			if watch != nil {
				w = watch(i)
			}
			x, err := methods[i].Run(ctx, Node{s, i, mixer}, oracles[i], obj, w)
			if err != nil {
				stop(err)
			}
			found[i] = x
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return found, nil
}

// Mean returns the mean of the nodes' parameters, the model that P3 evaluates. Like them it is public.
func Mean(nodes [][]float64) []float64 {
	mean := make([]float64, len(nodes[0]))
	for _, x := range nodes {
		floats.AddScaled(mean, 1/float64(len(nodes)), x)
	}
	return mean
}
