package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// keepAll is the most bytes of releases that a run keeps as a whole. Of a run that may make more, the state of the method is saved
// whenever there are half as many, and the releases behind the last state but one are kept.
const keepAll = 64 << 20

// stateEvery is how many steps lie between two saved states, by public sizes alone; 0 where every release is kept: there are few bytes of them, the method
// cannot go on from a state, or what it may ask depends on all that was released.
func stateEvery(m method.Method, plan privacy.Event, dim int) int {
	_, keeps := m.(method.Checkpointer)
	_, filtered := plan.(privacy.Filtered)
	step := runlog.ReleaseBytes(dim)
	if !keeps || filtered || method.MaxSteps(m) <= keepAll/step {
		return 0
	}
	return max(1, keepAll/2/step)
}

// A walk is a method on its way, from the beginning or from a state, and the output that its steps make.
type walk struct {
	job  *Job
	from *method.Checkpoint // nil: the beginning
	fold *method.Averager
}

func (j *Job) walk(from *method.Checkpoint) *walk {
	return &walk{j, from, j.Spec.Output.Averager(method.MaxSteps(j.Method), j.Facts.Dim)}
}

// walkFrom is a walk from a state of a record; nil is the beginning.
func (j *Job) walkFrom(rec *runlog.Record, at *runlog.State) (*walk, error) {
	if at == nil {
		return j.walk(nil), nil
	}
	if err := rec.Load(at); err != nil {
		return nil, err
	}
	w := j.walk(&method.Checkpoint{T: at.Step})
	if err := json.Unmarshal(at.Fold, &w.fold.AveragerState); err != nil {
		return nil, fmt.Errorf("the state after step %d: %w", at.Step, err)
	}
	if n := len(at.Vectors); n < 2 || len(at.Vectors[0]) != len(w.fold.Out) {
		return nil, fmt.Errorf("the state after step %d: found %d vectors of another form; this method has others", at.Step, n)
	}
	copy(w.fold.Out, at.Vectors[0])
	w.from.Vectors = at.Vectors[1:]
	return w, nil
}

// state is where the walk stands after st.
func (w *walk) state(st method.Step) (runlog.State, error) {
	fold, err := json.Marshal(w.fold.AveragerState)
	return runlog.State{Step: st.T, Fold: fold, Vectors: append([][]float64{w.fold.Out}, st.Kept...)}, err
}

// steps runs the method over o.
func (w *walk) steps(ctx context.Context, o oracle.Oracle) iter.Seq2[method.Step, error] {
	steps := func(yield func(method.Step, error) bool) {
		yield(method.Step{}, fmt.Errorf("%s cannot go on from a saved state", w.job.Spec.MethodName))
	}
	if w.from == nil {
		steps = w.job.Method.Run(ctx, o, w.job.Objective)
	} else if keeper, ok := w.job.Method.(method.Checkpointer); ok {
		steps = keeper.RunFrom(ctx, o, w.job.Objective, w.from)
	}
	return func(yield func(method.Step, error) bool) {
		for st, err := range steps {
			if err == nil {
				w.fold.Add(st)
			}
			if !yield(st, err) {
				return
			}
		}
	}
}

// released yields the releases behind a state of a record, nil being the beginning, each with what was charged for it, of the first batches that were
// paid. What was charged up to the state is lost to it, as the batches of a crash are.
func released(rec *runlog.Record, at *runlog.State, paid int) (next func() (replay.Released, error), done func()) {
	releases := rec.Open(at)
	charge, stop := iter.Pull(rec.Batches())
	charged := 0
	upTo := func(batch int) (events []privacy.Event) {
		for ; charged < batch; charged++ {
			e, _ := charge()
			events = append(events, e)
		}
		return events
	}
	next = func() (replay.Released, error) {
		r, err := releases.Next()
		if err != nil {
			if err == io.EOF {
				return replay.Released{Lost: upTo(paid)}, err
			}
			return replay.Released{}, err
		}
		lost := upTo(r.Batch)
		return replay.Released{Event: upTo(r.Batch + 1)[0], Answers: r.Answers, Lost: lost}, nil
	}
	return next, func() {
		stop()
		releases.Close()
	}
}
