package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/journal"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/trace"
)

// WriteSchedule puts a training's schedule into an owner's directory, where Verify needs it.
func WriteSchedule(dir string, s *gossip.Schedule) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return trace.WriteFile(filepath.Join(dir, trace.ScheduleFile), append(b, '\n'))
}

// owner verifies an owner's part of a training among owners. Its model is the mean of all owners' parameters, of which the part
// holds the owner's own alone: of the model the hash is checked and what it promises.
func (v *verifier) owner(ctx context.Context, l *ledger.Ledger) ([]Finding, error) {
	fail := func(err error) ([]Finding, error) { return nil, &InputError{v.dir, err} }
	entry, err := gossip.Lookup(v.info.Method)
	if err != nil {
		return fail(fmt.Errorf("%s: method: %w", trace.InfoFile, err))
	}
	m, err := entry.Decode(v.info.Config)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", trace.InfoFile, err))
	}
	if v.job, err = jobWith(v.info, nil); err != nil {
		return fail(err)
	}
	var facts oracle.Public
	if err := json.Unmarshal(v.info.Public, &facts); err != nil {
		return fail(fmt.Errorf("%s: public: %w", trace.InfoFile, err))
	}
	v.job.Facts.Rows = facts.Rows // the owner's own; the rest follows from schema and model
	schedule, err := ReadSchedule(v.dir)
	if err != nil {
		return fail(err)
	}
	turns, err := journal.Read(filepath.Join(v.dir, trace.JournalFile))
	if err != nil {
		return nil, err
	}
	defer turns.Close()
	at := gossip.Node{Schedule: schedule, Index: turns.Head.Owner}
	if at.Index < 0 || at.Index >= schedule.Graph.N {
		return fail(fmt.Errorf("%s: found owner %d of %d", trace.JournalFile, at.Index, schedule.Graph.N))
	}
	if err := v.files(); err != nil {
		return nil, err
	}
	steps := schedule.Activations()[at.Index]
	plan, err := m.Plan(v.job.Facts, steps)
	if err := v.agreed(entry, m, facts, at, turns.Head.Config); err != nil {
		return nil, err
	}
	v.planned(plan, err, steps, m.NoiseMultiplier())
	v.charges()
	v.say("journal", turns.Head.Run == v.info.ID && turns.Head.Dim == v.job.Facts.Dim, "%s is that of run %s, of owner %d with vectors of %d numbers", trace.JournalFile, turns.Head.Run, turns.Head.Owner+1, turns.Head.Dim)
	if err := v.sent(ctx, m, at, turns); err != nil {
		return nil, err
	}
	if err := v.ownerWrote(m, steps, m.NoiseMultiplier()); err != nil {
		return nil, err
	}
	if !v.diverged() {
		file, err := model.Read(filepath.Join(v.dir, trace.ModelFile))
		if err != nil {
			return nil, &InputError{"", err}
		}
		v.promise(file)
	}
	return v.found, v.ledger(ctx, l)
}

// ReadSchedule reads the schedule of an owner's directory.
func ReadSchedule(dir string) (*gossip.Schedule, error) {
	b, err := readfile.All(filepath.Join(dir, trace.ScheduleFile), readfile.JSON)
	if err != nil {
		return nil, err
	}
	s := &gossip.Schedule{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", trace.ScheduleFile, err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", trace.ScheduleFile, err)
	}
	return s, nil
}

// sent: what was published follows from what was paid for and from what peers sent, turn by turn.
func (v *verifier) sent(ctx context.Context, m gossip.Method, at gossip.Node, turns *journal.Reader) error {
	past := &past{journal.Replay{Turns: turns, Same: func(sent, now []float64) bool { return v.near(apart(sent, now)) }}, 0}
	at.Mixer = past
	x, err := m.Run(ctx, at, past.Over(v.job.Facts, nil, nil), v.job.Objective, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	detail := fmt.Sprintf("%s, replayed from %s through %d turns, without data, sends every vector that was published", v.info.Method, trace.JournalFile, past.turns)
	if err != nil {
		detail = err.Error()
	}
	v.say("replay", err == nil && v.info.Result != nil && past.turns == v.info.Result.Steps, "%s", detail)
	if err != nil || v.info.Result == nil {
		return nil
	}
	return v.outcome(x, at.Schedule.Graph.N)
}

// past answers a method from the turns of a journal, all of which are done.
type past struct {
	journal.Replay
	turns int
}

// Mix is gossip.Mixer's.
func (p *past) Mix(_ context.Context, _ int, turn gossip.Turn, m []float64) error {
	held, err := p.Replay.Mix(turn, m)
	switch {
	case err != nil:
		return err
	case held == nil:
		return replay.ErrEnd
	case !held.Done:
		return fmt.Errorf("round %d: %s does not hold how it ended", turn.T, trace.JournalFile)
	case len(held.Committed) != len(turn.Peers):
		return fmt.Errorf("round %d: %s holds %d exchanges; the schedule has %d", turn.T, trace.JournalFile, len(held.Committed), len(turn.Peers))
	}
	p.turns++
	return nil
}
