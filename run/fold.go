package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/score"
)

// A walk folds the steps of a job's method into its output, from the beginning or from a saved
// state. Fit, Resume and Verify all fold over a run log: it is empty in Fit, ends early in Resume,
// and is complete in Verify.
type walk struct {
	job  *Job
	from *method.Checkpoint // nil: the beginning
	mean *method.Averager
	// factor finds that on the model's margins; nil: it has none.
	factor *method.MarginFactor
	last   method.Step
}

// newWalk begins a walk at a state; nil is the beginning.
func newWalk(j *Job, from *method.Checkpoint) *walk {
	w := &walk{job: j, from: from, mean: j.Spec.Output.Averager(method.MaxSteps(j.Method), j.Facts.Dim)}
	if m, ok := j.Method.(method.Auto); ok && from == nil && j.Spec.Output == method.TailAverage {
		w.factor = m.MarginFactor(j.Facts, j.Objective)
	}
	return w
}

// margins are what a walk knows of the margins of its output.
type margins struct {
	factor float64      // on them; 0: none
	offset model.Offset // of them: of the center of rows, the mean label, a class that stands in
	noise  float64      // in each parameter; 0: not known
}

// output is the model: what the steps are folded into, with its bumps smoothed where the method does that.
func (w *walk) output() []float64 {
	if made := w.last.Made; made != nil {
		return made.W
	}
	out := w.mean.W()
	if auto, ok := w.job.Method.(method.Auto); ok && auto.SmoothBumps {
		out = slices.Clone(out)
		auto.Smooth(out, w.job.Facts, w.job.Objective, w.last)
	}
	return out
}

func (w *walk) margins(out []float64) margins {
	m := margins{offset: w.last.Offset(out)}
	if made := w.last.Made; made != nil {
		m.noise = made.Noise
		return m
	}
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

// fallback names the class that the output predicts for every row; "" if predictions vary.
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
func walkFrom(j *Job, rec *runlog.Record, at *runlog.State) (*walk, error) {
	if at == nil {
		return newWalk(j, nil), nil
	}
	if err := rec.Load(at); err != nil {
		return nil, err
	}
	w := newWalk(j, &method.Checkpoint{T: at.Step})
	if err := json.Unmarshal(at.Fold, &w.mean.AveragerState); err != nil {
		return nil, fmt.Errorf("the state after step %d: %w", at.Step, err)
	}
	if n := len(at.Vectors); n < 2 || len(at.Vectors[0]) != len(w.mean.Out) {
		return nil, fmt.Errorf("the state after step %d: found %d vectors of another form; this method has others", at.Step,
			n)
	}
	copy(w.mean.Out, at.Vectors[0])
	w.from.Vectors = at.Vectors[1:]
	return w, nil
}

// state returns the state of the walk after st.
func (w *walk) state(st method.Step) (runlog.State, error) {
	fold, err := json.Marshal(w.mean.AveragerState)
	return runlog.State{Step: st.T, Fold: fold, Vectors: append([][]float64{w.mean.Out}, st.Kept...)}, err
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
				w.mean.Add(st)
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

// An ending is what the walk of a run gave: all of its result that follows from its releases.
type ending struct {
	steps   int
	outcome string
	class   string             // that the output predicts for every row; "" if predictions vary
	claim   *secondorder.Claim // of a converged run
	choice  oracle.Choice      // of the encoding of rows
	w       []float64          // the parameters, and what the walk knows of their margins
	margins margins
	answers [][]float64 // of the score on what is held out; nil: there is none
}

// finite says whether the parameters make a model.
func (e ending) finite() bool { return score.Finite(e.w...) && score.Finite(e.margins.offset...) }

// fold walks over the oracle to the end, and hands each step to see. If the answers end before the method does, with
// replay.ErrEnd, the ending is that of the steps until then.
func (w *walk) fold(ctx context.Context, o oracle.Oracle, see func(method.Step) error) (e ending, err error) {
	e.outcome = method.Running.String()
	var st method.Step
	chooser := &oracle.Chooser{Oracle: o}
	for st, err = range w.steps(ctx, chooser) {
		if err == nil && see != nil {
			err = see(st)
		}
		if err != nil {
			break
		}
		e.steps = st.T
		if st.Status != method.Running {
			e.outcome = st.Status.String()
		}
		if st.Claim != nil {
			e.claim = st.Claim
		}
	}
	if err != nil && !errors.Is(err, replay.ErrEnd) {
		return e, err
	}
	e.w, e.class, e.choice = w.output(), w.fallback(), chooser.Choice
	e.margins = w.margins(e.w)
	return e, err
}

// resultOf is what run.json says of a run that ended so, after so many charges.
func resultOf(j *Job, e ending, charged int) (r *runlog.Result, err error) {
	r = &runlog.Result{Steps: e.steps, Charged: charged, Outcome: e.outcome, Fallback: e.class, Lines: e.choice.Lines}
	if e.claim != nil {
		c := runlog.Claim(*e.claim)
		r.Claim = &c
	}
	r.SampleBound = job.Numerics(j, charged)
	if !e.finite() {
		r.Outcome = Diverged
	}
	for _, p := range j.ChosenPairs(e.choice) {
		r.Pairs = append(r.Pairs, p.String())
	}
	r.Private, err = j.PrivateFigures(e.answers)
	return r, err
}

// given copies to r the fields of a result that do not follow from releases.
func given(r, of *runlog.Result) {
	r.TrainSeconds, r.Owners, r.Test, r.LabCounts, r.TrainLoss, r.SinceResumed = of.TrainSeconds, of.Owners, of.Test,
		of.LabCounts, of.TrainLoss, of.SinceResumed
}

// modelFile is the model file of a run that ended so.
func modelFile(j *Job, e ending, g job.Guarantee) (*model.File, error) {
	e.w = narrow(j, e)
	return modelFileOf(j, e, g)
}

// narrow returns the parameters of an ending as the model file holds them: without features that the rows lack.
func narrow(j *Job, e ending) []float64 { return j.Facts.Narrow(e.w, e.choice) }

// modelFileOf is the model file with parameters as it has them.
func modelFileOf(j *Job, e ending, g job.Guarantee) (*model.File, error) {
	with, err := j.Chosen(e.choice)
	if err != nil {
		return nil, err
	}
	file, err := with.File(e.w, g)
	if err == nil {
		e.margins.describe(file)
	}
	return file, err
}

// A history is what a run log holds: a training, and behind it the score of what is held out.
type history struct {
	*runlog.Record
	charged, released int // batches of the training
	scored            bool
	answers           [][]float64 // of the score; nil where a crash lost them
}

// historyOf reads it.
func historyOf(rec *runlog.Record) (h history, err error) {
	h = history{Record: rec, charged: rec.Charged(), released: rec.Released}
	n := len(rec.Events)
	if n == 0 || !runlog.InHoldout(rec.Events[n-1].Event) {
		return h, nil
	}
	h.charged, h.scored = rec.Events[n-1].First, true
	releases := rec.Open(rec.Newest())
	defer releases.Close()
	for {
		r, err := releases.Next()
		switch {
		case err == io.EOF:
			return h, nil
		case err != nil:
			return h, err
		case r.Batch >= h.charged:
			h.released--
			h.answers = [][]float64{}
			for _, a := range r.Answers {
				h.answers = append(h.answers, slices.Clone(a))
			}
		}
	}
}

// oracle answers as in the training from a state on, nil being the beginning, and then as the next oracle does; nil:
// the answers end there. It charges the meter, if there is one, for all of the training. done closes the log.
func (h history) oracle(j *Job, at *runlog.State, meter account.Meter,
	then oracle.Oracle) (o *replay.Oracle, done func()) {
	next, done := h.releases(at)
	return &replay.Oracle{Facts: j.Facts, Part: j.Part(), Next: next, Meter: meter, Then: then}, done
}

// releases yields those of the training after a state, each with its charge. Charges before the state count as lost,
// like those of a crash.
func (h history) releases(at *runlog.State) (next func() (replay.Released, error), done func()) {
	if h.Charged() == 0 { // of a run that begins
		return replay.Each(nil), func() {}
	}
	releases := h.Open(at)
	charge, stop := iter.Pull(h.Batches())
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
		if err == nil && r.Batch >= h.charged {
			err = io.EOF
		}
		if err == io.EOF {
			return replay.Released{Lost: upTo(h.charged)}, err
		}
		if err != nil {
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
