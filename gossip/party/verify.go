package party

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/score"
)

// Verify verifies a finished run directory as run.Verify does. For an owner's run in a network it checks that
// run.json says what the owners agreed on, that the charges are those of the plan, and that every published
// vector follows from what was charged and from what the peers sent.
func Verify(ctx context.Context, dir string, l *ledger.Ledger) ([]record.Finding, error) {
	if info, err := runlog.ReadInfo(dir); err == nil && info.Network == "" {
		return run.Verify(ctx, dir, l)
	}
	v, err := run.Examine(dir)
	if err != nil {
		return nil, err
	}
	fail := func(err error) ([]record.Finding, error) { return nil, &run.InputError{Where: dir, Err: err} }
	entry, err := gossip.Lookup(v.Info.Method)
	if err != nil {
		return fail(runlog.OtherBuild(v.Info, "method", v.Info.Method))
	}
	m, err := entry.Decode(v.Info.Config)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", runlog.InfoFile, err))
	}
	var facts oracle.Public
	if err := json.Unmarshal(v.Info.Public, &facts); err != nil {
		return fail(fmt.Errorf("%s: public: %w", runlog.InfoFile, err))
	}
	v.Job.Facts.Rows = facts.Rows // the owner's own; the rest follows from schema and model
	schedule, err := ReadSchedule(dir)
	if err != nil {
		return fail(err)
	}
	journal, err := runlog.ReadJournal(filepath.Join(dir, runlog.JournalFile))
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	head := journal.Head
	at := gossip.Node{Schedule: schedule, Index: head.Owner}
	if at.Index < 0 || at.Index >= schedule.Graph.N {
		return fail(fmt.Errorf("%s: found owner %d of %d", runlog.JournalFile, at.Index, schedule.Graph.N))
	}
	steps := schedule.Counts()[at.Index]
	v.Job.Owner = &job.Owner{Index: at.Index, Activations: steps, Method: m}
	plan, planErr := m.Plan(v.Job.Facts, steps)
	if err := agreed(v, entry, m, facts, at, head.Config); err != nil {
		return nil, err
	}
	v.Charged(plan, planErr, steps, m.NoiseMultiplier())
	v.Say("journal", head.Run == v.Info.ID && head.Dim == v.Job.Facts.Dim,
		"%s is that of run %s, of owner %d with vectors of %d numbers", runlog.JournalFile, head.Run, head.Owner+1, head.Dim)
	if err := sent(ctx, v, m, at, journal); err != nil {
		return nil, err
	}
	return v.FinishOwner(ctx, l)
}

// ReadSchedule reads the schedule of an owner's directory.
func ReadSchedule(dir string) (*gossip.Schedule, error) {
	b, err := readfile.All(filepath.Join(dir, runlog.ScheduleFile), readfile.JSON)
	if err != nil {
		return nil, err
	}
	s := &gossip.Schedule{}
	if err = runlog.Strict(b, s); err == nil {
		err = s.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", runlog.ScheduleFile, err)
	}
	return s, nil
}

// sent checks that each published vector follows from what was charged and from what peers sent.
func sent(ctx context.Context, v *run.Verification, m gossip.Method, at gossip.Node,
	journal *runlog.JournalReader) error {
	past := &past{Replay: transport.Replay{Journal: journal, Same: v.Near}}
	at.Mixer = past
	x, err := m.Run(ctx, at, past.Oracle(v.Job.Facts, nil, nil), v.Job.Objective, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	detail := fmt.Sprintf("%s, replayed from %s through %d activations, without data, sends every vector that was published", v.Info.Method, runlog.JournalFile, past.activations)
	if err != nil {
		detail = err.Error()
	}
	v.Say("replay", err == nil && v.Info.Result != nil && past.activations == v.Info.Result.Steps, "%s", detail)
	if err != nil || v.Info.Result == nil {
		return nil
	}
	return outcome(v, x, at.Schedule.Graph.N)
}

// past is the mixer of a replay, all of whose activations have ended.
type past struct {
	transport.Replay
	activations int
}

// Mix implements gossip.Mixer.
func (p *past) Mix(_ context.Context, _ int, act gossip.Activation, m []float64) error {
	held, err := p.Replay.Mix(act, m)
	switch {
	case err != nil:
		return err
	case held == nil:
		return replay.ErrEnd
	case !held.Done:
		return fmt.Errorf("round %d: %s does not hold how it ended", act.T, runlog.JournalFile)
	case len(held.Committed) != len(act.Peers):
		return fmt.Errorf("round %d: %s holds %d exchanges; the schedule has %d", act.T, runlog.JournalFile,
			len(held.Committed), len(act.Peers))
	}
	p.activations++
	return nil
}

// outcome checks the outcome of the run. The model is the mean of several owners' parameters, and the
// directory does not hold those of the others.
func outcome(v *run.Verification, x []float64, owners int) error {
	r := v.Info.Result
	finite := score.Finite(x...)
	holds := r.Owners >= 1 && r.Owners <= owners
	detail := fmt.Sprintf("the model is the mean of %d of %d owners' parameters; the others' are in no file here, so neither their number nor the mean can be checked", r.Owners, owners)
	switch {
	case v.Diverged():
		holds, detail = holds && !finite, "the run diverged and made no model"
		if finite {
			detail = "found a run that diverged; the owner's own parameters are finite"
		}
	case r.Outcome != method.Done.String() || !finite:
		holds, detail = false,
			fmt.Sprintf("found %q beside a model; the owner's own parameters are finite: %v", r.Outcome, finite)
	case r.Owners == 1:
		file, err := model.Read(filepath.Join(v.Dir, runlog.ModelFile))
		if err != nil {
			return &run.InputError{Err: err}
		}
		holds, detail = v.Near(x, file.W), "the model is of this owner's parameters alone, which the replay gives"
	}
	v.Say("outcome", holds, "%s", detail)
	return nil
}
