// Package paper is the harness of the reproductions: an experiment with its command, its runs, its claims, its
// figures with their data, and the page that shows them. Packages p0 to p4 hold settings, claims and figures.
package paper

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"strings"
	"sync"
)

// An Experiment is the reproduction of one paper.
type Experiment struct {
	Name, Short, Long, Example string // of its command

	Small, Full string // what the sizes are
	Data        string // what the folder of the datasets holds; "" where no dataset is read
	Needed      bool   // without Data there is no run
	Resumes     bool   // a directory with an unfinished run is continued
	Parallel    bool   // the number of trainings at once can be chosen

	Page string // what the page says of the experiment, a template that gets Results; tables, claims and figures follow
	Run  func(ctx context.Context, l *Lab) (*Results, error)
}

// A Lab is where an experiment runs.
type Lab struct {
	Full     bool                // the size of the paper
	Data     string              // folder of the datasets; "" for none
	Dir      string              // of the results
	Version  string              // of Sotto
	Jobs     int                 // trainings at once; 0: one for each core
	Progress func(done, all int) // may be nil
}

// Results are what an experiment found.
type Results struct {
	R       any // of the experiment's own type, for its page and its tests
	Tables  []Table
	Claims  Claims
	Figures []Figure
	Data    []File // written besides the figures' data

	Files []string // written by Reproduce, by name
}

// Sized is the Run of an experiment with two sizes.
func Sized[S any](small, full S, run func(context.Context, *Lab, S) (*Results, error)) func(context.Context, *Lab) (*Results, error) {
	return func(ctx context.Context, l *Lab) (*Results, error) {
		if l.Full {
			return run(ctx, l, full)
		}
		return run(ctx, l, small)
	}
}

// Reproduce runs the experiment and writes its tables, figures and page to l.Dir, which it makes.
func (e Experiment) Reproduce(ctx context.Context, l *Lab) (*Results, error) {
	r, err := e.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return nil, err
	}
	return r, r.write(l.Dir, strings.ToUpper(e.Name)+", reproduced", e.Page)
}

// Each runs the jobs, as many at once as l.Jobs says, and returns their results in the order of the jobs. The first error
// stops it. A result should be plain data: what it takes to continue an experiment is that results can be stored.
func Each[J, R any](ctx context.Context, l *Lab, jobs []J, run func(context.Context, J) (R, error)) ([]R, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]R, len(jobs))
	queue := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range cmp.Or(l.Jobs, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for k := range queue {
				if ctx.Err() != nil {
					continue
				}
				result, err := run(ctx, jobs[k])
				if err != nil {
					stop(err)
					continue
				}
				mu.Lock()
				results[k] = result
				if done++; l.Progress != nil {
					l.Progress(done, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	for k := range jobs {
		queue <- k
	}
	close(queue)
	wg.Wait()
	return results, context.Cause(ctx)
}
