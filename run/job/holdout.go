package job

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/quality"
	"github.com/sottodp/sotto/run/runlog"
)

// mostHeldOut is the largest share that is held out.
const mostHeldOut = 0.5

// methodShare is the method's share of ε and δ under replace-one, where the costs of both parts add up. The score gets
// what is left of the whole: more than a tenth, as costs add up like squares.
const methodShare = 0.9

// HeldOut describes the rows kept out of training and scored.
type HeldOut struct {
	Rows  int          // nominal, as those of the training part
	Score quality.Plan // what is asked of all of them, in one batch
	Split string       // identifies the rule by which they are held out; "" before a run begins
	Key   []byte       // of that rule; nil before a run begins
}

// part is the name of a part in events. The plan that is reserved in the ledger has it, so a run goes on with no other
// split.
func (h *HeldOut) part(name string) string {
	if h.Split == "" {
		return name
	}
	return name + " of split " + h.Split
}

// Part is the part that is scored.
func (h *HeldOut) Part() string { return h.part(runlog.HoldoutPart) }

// event is the cost of the score.
func (h *HeldOut) event() privacy.Event { return privacy.InPart(h.Part(), h.Score.Event()) }

// heldOut is how many of that many records are held out, nominally or, where the number is public, exactly.
func (s *Spec) heldOut(rows int) int { return int(math.Round(s.Holdout * float64(rows))) }

// Part is the part of the table that the method's queries are of; "": the whole.
func (j *Job) Part() string {
	if j.Held == nil {
		return ""
	}
	return j.Held.part(runlog.TrainingPart)
}

// Whole are the facts with the number of all records, also those that are held out.
func (j *Job) Whole() oracle.Public {
	facts := j.Facts
	if j.Held != nil {
		facts.Rows += j.Held.Rows
	}
	return facts
}

// Replan makes the plan, the most that the run releases: what its method asks, and the score.
func (j *Job) Replan() (privacy.Event, error) {
	plan, err := j.Method.Plan(j.Facts)
	if err == nil && j.Sum != nil {
		plan, err = j.summed(plan)
	}
	if err != nil || j.Held == nil {
		return plan, err
	}
	return privacy.Composed{privacy.InPart(j.Part(), plan), j.Held.event()}, nil
}

// checkHoldout refuses a share outside its range.
func (s *Spec) checkHoldout() error {
	place := s.Place("holdout")
	switch {
	case !s.Has("holdout") && s.Holdout == 0:
		return nil
	case !(s.Holdout > 0 && s.Holdout <= mostHeldOut):
		return inputError(place, "holdout: found %v; write a share above 0 and up to %v, as in holdout: 0.2", s.Holdout,
			mostHeldOut)
	}
	return nil
}

// methodBudget is the budget of the method of a run: with a holdout under replace-one a share of the whole.
func (s *Spec) methodBudget() privacy.Budget {
	b := s.Privacy.Budget()
	if s.Holdout > 0 && b.Adjacency == privacy.ReplaceOne {
		b.Epsilon, b.Delta = methodShare*b.Epsilon, methodShare*b.Delta
	}
	return b
}

// holdOut sets what a run that holds records out scores them by, and adds that to the plan of its method.
func (j *Job) holdOut() error {
	place, b := j.Spec.Place("holdout"), j.Spec.Privacy.Budget()
	j.Held = &HeldOut{Rows: j.Spec.heldOut(j.Schema.Rows)}
	switch {
	case j.Held.Rows < 1 || j.Facts.Rows < 1:
		return inputError(place, "holdout: %v of %d %s leaves one part empty; choose a share that leaves at least one in each",
			j.Spec.Holdout, j.Schema.Rows, j.Facts.Counted())
	}
	training := privacy.InPart(runlog.TrainingPart, j.Plan)
	score, err := quality.New(quality.Subject{
		Schema: j.Schema, Threshold: j.Spec.Model.Threshold, Probabilities: j.Model.Facts().Probabilities,
		Adjacency: b.Adjacency, Rows: j.Held.Rows,
	})
	if err != nil {
		return &InputError{place, fmt.Errorf("holdout: %w", err)}
	}
	noise, err := account.Calibrate(j.Accountant, b, func(noise float64) privacy.Event {
		score := privacy.InPart(runlog.HoldoutPart, score.WithNoise(noise).Event())
		if b.Adjacency == privacy.ReplaceOne {
			return privacy.Composed{training, score}
		}
		return score // parts are disjoint, so both together cost as much as the costlier one
	})
	if err != nil {
		return &InputError{place, fmt.Errorf("holdout: its score: %w", err)}
	}
	j.Held.Score = score.WithNoise(noise)
	j.Plan = privacy.Composed{training, j.Held.event()}
	return nil
}

// info is what run.json says of it; nil for a run that holds nothing out.
func (h *HeldOut) info(share float64) (*runlog.Holdout, error) {
	if h == nil {
		return nil, nil
	}
	score, err := json.Marshal(h.Score)
	return &runlog.Holdout{Share: share, Rows: h.Rows, Score: score, Split: h.Split}, err
}

// setHeldOut reads it from there.
func (j *Job) setHeldOut(info *runlog.Holdout) error {
	if info == nil {
		return nil
	}
	if !(info.Share > 0 && info.Share <= mostHeldOut) {
		return fmt.Errorf("%s: holdout.share: found %v; write a share above 0 and up to %v", runlog.InfoFile, info.Share,
			mostHeldOut)
	}
	j.Spec.Holdout = info.Share
	j.Held = &HeldOut{Rows: j.Spec.heldOut(j.Schema.Rows), Split: info.Split}
	if err := runlog.Strict(info.Score, &j.Held.Score); err != nil {
		return fmt.Errorf("%s: holdout.score: %w", runlog.InfoFile, err)
	}
	return nil
}

// holdoutFacts are the public facts about what is held out.
func (j *Job) holdoutFacts() []string {
	if j.Held == nil {
		return nil
	}
	return []string{fmt.Sprintf("A keyed hash of each %s, of nothing else, decides whether it is held out of training, as about %s in %s are; the key does not depend on the table.",
		j.Schema.Unit, chart.Integer(j.Held.Rows), chart.Integer(j.Whole().Rows))}
}

// holdoutKey makes the key by which records are held out. It has nothing to do with the table: in a seeded lab run it
// follows from the seed, as noise and samples do.
func (j *Job) holdoutKey() []byte {
	if seed := j.Spec.Seed; seed != nil {
		key := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("sotto holdout"), *seed))
		return key[:]
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
}

// FixSplit fixes the rule by which a new run holds records out, once it is known in which form its table is read.
func (j *Job) FixSplit() (err error) {
	if j.Held == nil {
		return nil
	}
	j.Held.Key = j.holdoutKey()
	if j.Held.Split, err = j.SplitBy(j.Held.Key); err == nil {
		j.Plan, err = j.Replan()
	}
	return err
}

// SplitBy identifies the rule: the key, the share, and how rows are encoded. It does not tell the key.
func (j *Job) SplitBy(key []byte) (string, error) {
	schema, err := j.Schema.Marshal()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "sotto split/1\n%x %v %v %v\n%s", key, j.Spec.Holdout, j.Facts.Bytes, j.Facts.Short, schema)
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// PrivateFigures are what the answers to the score say; nil of a run that has none.
func (j *Job) PrivateFigures(answers [][]float64) (*runlog.Private, error) {
	if answers == nil {
		return nil, nil
	}
	f, err := j.Held.Score.Figures(answers)
	if err != nil {
		return nil, err
	}
	loss, err := j.Accountant.Loss(j.Held.Score.Event(), j.Facts.Adjacency)
	if err != nil {
		return nil, err
	}
	f.On, f.Delta = runlog.OnHoldout, j.Spec.Privacy.Budget().Delta
	f.Epsilon = math.Min(loss.Epsilon(f.Delta), j.Spec.Privacy.Epsilon)
	return f, nil
}
