package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// keepAll is the largest size in bytes of releases that a run keeps whole. A run that may release more
// saves the state of the method after each half of that size, and keeps the releases since the last state
// but one.
const keepAll = 64 << 20

// stateEvery returns the number of steps from one saved state to the next, from public sizes alone. It is
// 0 if every release is kept: the releases are small, the method cannot continue from a state, or its
// queries depend on all releases.
func stateEvery(m method.Method, plan privacy.Event, dim int) int {
	_, keeps := m.(method.Checkpointer)
	_, filtered := plan.(privacy.Filtered)
	step := runlog.ReleaseBytes(dim)
	if !keeps || filtered || method.MaxSteps(m) <= keepAll/step {
		return 0
	}
	return max(1, keepAll/2/step)
}

// A walk runs a method from its beginning or from a saved state, and folds its steps into the output.
type walk struct {
	job  *Job
	from *method.Checkpoint // nil: the beginning
	fold *method.Averager
	// factor finds that on the model's margins; nil: it has none.
	factor *method.MarginFactor
	last   method.Step
}

func (j *Job) walk(from *method.Checkpoint) *walk {
	w := &walk{job: j, from: from, fold: j.Spec.Output.Averager(method.MaxSteps(j.Method), j.Facts.Dim)}
	if m, ok := j.Method.(method.Auto); ok && from == nil && j.Spec.Output == method.TailAverage {
		w.factor = m.MarginFactor(j.Facts, j.Objective)
	}
	return w
}

// margins are what a walk knows of the margins of its output.
type margins struct {
	factor float64 // on them; 0: none
	offset float64 // of them: of the center of rows, the mean label, a class that stands in
	noise  float64 // in each parameter; 0: not known
}

// output is the model: what the steps are folded into, with its bumps smoothed where the method does that.
func (w *walk) output() []float64 {
	out := w.fold.W()
	if auto, ok := w.job.Method.(method.Auto); ok && auto.SmoothBumps {
		out = slices.Clone(out)
		auto.Smooth(out, curves(w.job.Schema), w.job.Facts, w.job.Objective, w.last)
	}
	return out
}

// curves are where the bumps of the schema's columns are among the features.
func curves(s *schema.Schema) (found []method.Curve) {
	for first, c := range s.Places() {
		if c.Hats > 0 { // the linear feature is first
			found = append(found, method.Curve{At: first + 1, Bumps: c.Hats})
		}
	}
	return found
}

func (w *walk) margins(out []float64) margins {
	m := margins{offset: w.last.Offset(out)}
	if w.factor != nil {
		m.factor = w.factor.Of(out)
	}
	if auto, ok := w.job.Method.(method.Auto); ok && w.job.Spec.Output == method.TailAverage {
		m.noise = auto.ParameterNoise(w.job.Facts, w.job.Objective, w.last)
	}
	return m
}

// describe says it in a model file.
func (m margins) describe(f *model.File) {
	f.MarginFactor, f.Offset, f.Noise = m.factor, m.offset, m.noise
}

// fallback names the class that the output predicts for every row; "": it tells rows apart.
func (w *walk) fallback() string {
	classes := w.job.Schema.ClassNames()
	switch lean := w.last.Lean; {
	case lean > 0:
		return classes[1]
	case lean < 0:
		return classes[0]
	}
	return ""
}

// walkFrom returns a walk from a state of a run log; nil is the beginning.
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

// state returns the state of the walk after st.
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
				if w.factor != nil {
					w.factor.Add(st)
				}
				w.last = st
			}
			if !yield(st, err) {
				return
			}
		}
	}
}

// released yields the releases after a state of a run log, nil being the beginning, each with its charge, up to
// the number of batches charged, of those that there are. Charges before the state count as lost, like those of a crash.
func released(rec *runlog.Record, at *runlog.State, charged int) (next func() (replay.Released, error), done func()) {
	releases := rec.Open(at)
	charge, stop := iter.Pull(rec.Batches())
	taken := 0
	upTo := func(batch int) (events []privacy.Event) {
		for ; taken < batch; taken++ {
			e, _ := charge()
			events = append(events, e)
		}
		return events
	}
	next = func() (replay.Released, error) {
		r, err := releases.Next()
		if err != nil {
			if err == io.EOF {
				return replay.Released{Lost: upTo(charged)}, err
			}
			return replay.Released{}, err
		}
		if r.Batch >= charged {
			return replay.Released{Lost: upTo(charged)}, io.EOF
		}
		lost := upTo(r.Batch)
		return replay.Released{Event: upTo(r.Batch + 1)[0], Answers: r.Answers, Lost: lost}, nil
	}
	return next, func() {
		stop()
		releases.Close()
	}
}
