// Package paper is the harness of the reproductions: an experiment with its command, its runs, its claims, its
// figures with their data, and the page that shows them. Packages p0 to p4 hold settings, claims and figures.
package paper

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"sync"
)

// An Experiment is the reproduction of one paper.
type Experiment struct {
	Name, Short, Long, Example string // of its command

	Of       Publication // the paper
	Contents []Item      // of the paper
	Record   []byte      // of the full run whose verdicts stand in docs/measurements/papers.md, in JSON

	Small, Full string // what the sizes are
	Data        string // what the folder of the datasets holds; "" where no dataset is read
	Needed      bool   // without Data there is no run
	Seeds       string // what they are, for the record
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
	Judge    bool                // judge what another build ran, by the results in Dir; nothing runs
	Progress func(done, all int) // may be nil

	keeper *keeper
}

// Results are what an experiment found.
type Results struct {
	R       any // of the experiment's own type, for its page and its tests
	Tables  []Table
	Claims  Claims
	Figures []Figure
	Data    []File // written besides the figures' data

	Record *Record  // made by Reproduce
	Files  []string // written by Reproduce, by name
}

// Sized is the Run of an experiment with two sizes.
func Sized[S any](small, full S,
	run func(context.Context, *Lab, S) (*Results, error)) func(context.Context, *Lab) (*Results, error) {
	return func(ctx context.Context, l *Lab) (*Results, error) {
		s := small
		if l.Full {
			s = full
		}
		if l.keeper != nil {
			l.keeper.id.Settings = fmt.Sprintf("%+v", s)
		}
		if err := l.keeper.same(); err != nil {
			return nil, err
		}
		return run(ctx, l, s)
	}
}

// Reproduce runs the experiment and writes its tables, figures, record and page to l.Dir, which it makes. It continues
// the experiment in l.Dir, whose jobs are not run again.
func (e Experiment) Reproduce(ctx context.Context, l *Lab) (r *Results, err error) {
	own := *l
	if own.keeper, err = keep(e, l); err != nil {
		return nil, err
	}
	r, err = e.Run(context.WithValue(ctx, keeperKey{}, own.keeper), &own)
	if err == nil {
		err = own.Begin()
	}
	if ended := own.keeper.end(); err == nil {
		err = ended
	}
	if err != nil {
		return nil, err
	}
	r.Record = own.keeper.record(e, l, r)
	v := view{Results: r, E: e, Full: e.Recorded(), Command: e.Command(l)}
	return r, v.write(l.Dir)
}

// Command is the command that runs the experiment in a lab; DIR stands for the folder of the datasets.
func (e Experiment) Command(l *Lab) string {
	c := "sotto paper " + e.Name + map[bool]string{true: " --full", false: " --small"}[l.Full]
	if l.Data != "" {
		c += " --data DIR"
	}
	return c
}

// Recorded is the record of the full run that is kept with the program; nil if none is.
func (e Experiment) Recorded() *Record {
	var r Record
	if len(e.Record) == 0 || json.Unmarshal(e.Record, &r) != nil {
		return nil
	}
	return &r
}

// Each runs the jobs, as many at once as l.Jobs says, and returns their results in the order of the jobs. The first
// error stops it. Results are plain data. They are kept as they come, and a job whose result is kept is not run: the
// jobs of an experiment are the same, in the same order, whenever it runs with the same settings.
func Each[J, R any](ctx context.Context, l *Lab, jobs []J, run func(context.Context, J) (R, error)) ([]R, error) {
	k, call := l.keeper, 0
	if k != nil {
		k.calls++
		call = k.calls
		if err := plain(reflect.TypeFor[R]()); err != nil {
			return nil, err
		}
		if err := l.Begin(); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]R, len(jobs))
	queue := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range cmp.Or(l.Jobs, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range queue {
				if ctx.Err() != nil {
					continue
				}
				name := fmt.Sprintf("%d: %d of %d", call, i+1, len(jobs))
				var result R
				kept, err := k.taken(name, &result)
				if err == nil && !kept {
					if result, err = run(ctx, jobs[i]); err == nil {
						err = k.keep(name, &result)
					}
				}
				if err != nil {
					stop(err)
					continue
				}
				mu.Lock()
				results[i] = result
				if done++; l.Progress != nil {
					l.Progress(done, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	for i := range jobs {
		queue <- i
	}
	close(queue)
	wg.Wait()
	return results, context.Cause(ctx)
}
