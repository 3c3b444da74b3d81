// Package quality computes private figures of how well a model predicts: accuracy, recall, precision, AUC, log loss and
// a calibration curve, or the errors of a regression, each with an interval, for all records and by the levels of a
// public column.
//
// A Plan says which scores are asked of the private oracle (oracle.Score), and so what they cost. Figures follow from
// the noisy numbers alone: the package sees no rows, and computing costs nothing more.
package quality

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// Of the bins of a predicted probability: they end at the log-odds ±reach, where it is .0025 and .9975. Between, 24 are
// half a unit wide; of many rows, twice as many half as wide, as then the widths of bins are more than the noise of
// their numbers.
const (
	reach    = 6
	bins     = 12
	manyRows = 5000
)

// errorScales is how many times label_scale an error may be before it is clipped.
const errorScales = 4

// A Subject is what is public of a model and of the rows on which it is scored.
type Subject struct {
	Schema        *schema.Schema
	Threshold     map[string]float64 // from which probability on a class is predicted; none: the likelier one is
	Probabilities bool               // the model predicts probabilities (model.Facts)
	Adjacency     privacy.Adjacency
	Rows          int    // about how many rows, or units, are scored
	By            string // a categorical column by whose levels figures are split; "": none
}

// A Plan says what is asked, and what figures need to know. All of it is public.
type Plan struct {
	Classes       []string          `json:"classes,omitempty"` // of the label; none of a numeric one
	Probabilities bool              `json:"probabilities,omitempty"`
	Adjacency     privacy.Adjacency `json:"adjacency"`
	By            string            `json:"by,omitempty"`
	Levels        []string          `json:"levels,omitempty"`
	// Scores are the queries: of classes the records by true and predicted class, then, but where more than two classes
	// have no probabilities, the bins; of a numeric label the errors. Last come the first again, by levels.
	Scores []oracle.Score `json:"scores"`
}

// New plans the scores of a subject, with noise still to be set.
func New(s Subject) (Plan, error) {
	p := Plan{Classes: s.Schema.ClassNames(), Probabilities: s.Probabilities, Adjacency: s.Adjacency, By: s.By}
	var first oracle.Score
	label := s.Schema.Label()
	if len(p.Classes) == 0 {
		if label.Bounds == nil {
			return p, errors.New("the schema has no label, so nothing can be scored")
		}
		first.Low, first.High = label.Bounds.Min, label.Bounds.Max
		first.Error = first.High - first.Low
		if label.Scale > 0 {
			first.Error = min(first.Error, errorScales*label.Scale)
		}
	}
	for class, at := range s.Threshold {
		first.Class, first.Threshold = slices.Index(p.Classes, class), at
	}
	p.Scores = []oracle.Score{first}
	if len(p.Classes) == 2 || len(p.Classes) > 2 && p.Probabilities {
		binned := first
		if binned.Bins = bins; s.Rows >= manyRows {
			binned.Bins *= 2
		}
		binned.Step = reach / float64(binned.Bins)
		p.Scores = append(p.Scores, binned)
	}
	if s.By != "" {
		grouped := first
		if grouped.Group.First, p.Levels = s.Schema.Levels(s.By); p.Levels == nil {
			return p, fmt.Errorf("found %q; choose a categorical column of the schema: %s", s.By, columns(s.Schema))
		}
		grouped.Group.Count = len(p.Levels)
		p.Scores = append(p.Scores, grouped)
	}
	for _, q := range p.Scores {
		if err := q.Fits(len(p.Classes)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// columns names the columns by which figures can be split.
func columns(s *schema.Schema) string {
	var names []string
	for _, c := range s.Columns {
		if c.Type == schema.TypeCategorical {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return "it has none"
	}
	return strings.Join(names, ", ")
}

// WithNoise is the plan at that noise multiplier of all its scores together, of which each has the same share.
func (p Plan) WithNoise(sigma float64) Plan {
	p.Scores = slices.Clone(p.Scores)
	for k := range p.Scores {
		p.Scores[k].Noise = mech.Gaussian{Sigma: sigma * math.Sqrt(float64(len(p.Scores)))}
	}
	return p
}

// Calibrate is the plan with the least noise that the budget covers.
func (p Plan) Calibrate(a account.Accountant, b privacy.Budget) (Plan, error) {
	if b.Delta == 0 {
		return p, errors.New("private figures have Gaussian noise, which needs a δ above 0")
	}
	sigma, err := account.Calibrate(a, b, func(sigma float64) privacy.Event { return p.WithNoise(sigma).Event() })
	return p.WithNoise(sigma), err
}

// Queries are the scores as one batch.
func (p Plan) Queries() []oracle.Query {
	var queries []oracle.Query
	for _, q := range p.Scores {
		queries = append(queries, q)
	}
	return queries
}

// Event is what the batch costs.
func (p Plan) Event() privacy.Event {
	return oracle.Public{Adjacency: p.Adjacency}.Cost(sample.Full{}, p.Queries())
}

// Ask asks for the scores at the parameters w, in one batch. The oracle's facts have the classes and the adjacency of
// the plan.
func (p Plan) Ask(ctx context.Context, o oracle.Oracle, w []float64) ([][]float64, error) {
	b, err := o.Batch(ctx, sample.Full{}, p.Queries()...)
	if err != nil {
		return nil, err
	}
	return p.Answers(b, w)
}

// Answers asks for the scores that a batch was charged for.
func (p Plan) Answers(b oracle.Batch, w []float64) (answers [][]float64, err error) {
	for _, q := range p.Scores {
		a, err := b.Score(q, w)
		if err != nil {
			return nil, err
		}
		answers = append(answers, slices.Clone(a))
	}
	return answers, nil
}

// Check says what is wrong with a plan that was read from a file: other scores than those of New, from which no figures
// follow.
func (p Plan) Check() error {
	if len(p.Scores) == 0 {
		return errors.New("scores: found none")
	}
	bad := func(i int, what string) error { return fmt.Errorf("scores[%d]: found %s", i, what) }
	binned := 0
	for i, q := range p.Scores {
		if err := errors.Join(q.Validate(), q.Fits(len(p.Classes))); err != nil {
			return fmt.Errorf("scores[%d]: %w", i, err)
		}
		split := p.By != "" && i == len(p.Scores)-1
		switch {
		case len(p.Classes) == 1:
			return bad(i, "one class; a numeric label has none, others have two or more")
		case split && (i == 0 || q.Group.Count != len(p.Levels) || q.Group.Count == 0):
			return bad(i,
				fmt.Sprintf("%d levels; expected, behind a score of all records, one by the %d levels of the plan", q.Group.Count,
					len(p.Levels)))
		case !split && q.Group != (oracle.Levels{}):
			return bad(i, "levels; expected those of the plan's column, in the last score")
		case q.Bins > 0 && (i == 0 || split):
			return bad(i, "bins; expected a score without them where figures of classes are computed")
		case q.Bins > 0:
			binned++
		}
	}
	if binned > 1 {
		return bad(len(p.Scores)-1, "a second score with bins")
	}
	return nil
}

// Figures are what the answers say.
func (p Plan) Figures(answers [][]float64) (*runlog.Private, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("quality: %w", err)
	}
	k := len(p.Classes)
	for i, q := range p.Scores {
		if len(answers) != len(p.Scores) || len(answers[i]) != q.Len(k) {
			return nil, errors.New("quality: found other answers than those to the plan's scores")
		}
	}
	f := &runlog.Private{Level: level, By: p.By}
	first, noise := p.Scores[0], func(i int) float64 { return p.Scores[i].Deviation(0, k, p.Adjacency) }
	if k == 0 {
		e := p.errors(0, answers[0])
		f.Records, f.MAE, f.RMSE, f.R2, f.Error = e.Records, e.MAE, e.RMSE, e.R2, &first.Error
	} else {
		c := p.confusion(answers[0], noise(0))
		f.Records, f.Accuracy, f.Classes, f.Confusion, f.Deviation = c.Records, c.Accuracy, c.Classes, table(answers[0], k),
			runlog.Rounded(noise(0))
	}
	if i := slices.IndexFunc(p.Scores, func(q oracle.Score) bool { return q.Bins > 0 }); i >= 0 {
		p.binned(f, p.Scores[i], answers[0], answers[i], noise(0), noise(i))
	}
	if p.By == "" {
		return f, nil
	}
	last := len(p.Scores) - 1
	cells := p.Scores[last].Cells(k)
	for g := range len(p.Levels) + 1 {
		a, e := answers[last][g*cells:][:cells], runlog.PrivateGroup{}
		if k == 0 {
			e = p.errors(last, a)
		} else {
			e = p.confusion(a, noise(last))
		}
		if g < len(p.Levels) {
			e.Level = p.Levels[g]
		} else if e.Records.TooFew {
			break
		}
		f.Groups = append(f.Groups, e)
	}
	return f, nil
}

// table is a list of k rows.
func table(a []float64, k int) (rows [][]float64) {
	for ; len(a) > 0; a = a[k:] {
		rows = append(rows, a[:k])
	}
	return rows
}

// confusion has the figures of a confusion table, true class after true class.
func (p Plan) confusion(a []float64, noise float64) (g runlog.PrivateGroup) {
	k := len(p.Classes)
	whole := part{noise: noise}
	for y := range k {
		row, column := part{noise: noise}, part{noise: noise}
		for j := range k {
			row.add(a[y*k+j], j == y)
			column.add(a[j*k+y], j == y)
			whole.add(a[y*k+j], j == y)
		}
		g.Classes = append(g.Classes,
			runlog.PrivateClass{Class: p.Classes[y], Records: row.count(), Recall: row.share(), Precision: column.share()})
	}
	accuracy := whole.share()
	g.Records, g.Accuracy = whole.count(), &accuracy
	return g
}

// binned sets what follows from bins of probabilities. Of two classes, the bins on each side of the threshold are
// records of the confusion table, too, which has the noise of the first deviation.
func (p Plan) binned(f *runlog.Private, q oracle.Score, confusion, a []float64, other, noise float64) {
	edges, decision := q.Edges(len(p.Classes))
	n := len(edges) + 1
	g := grid{counts: slices.Clone(a), noise: noise}
	if len(p.Classes) == 2 {
		for y := range 2 {
			g.tie(y*n, y*n+decision+1, confusion[2*y], other)
			g.tie(y*n+decision+1, (y+1)*n, confusion[2*y+1], other)
		}
	}
	// Between low and high, the probabilities of a bin, none of which counts as nearer to an end than the outer edges of
	// the grid.
	clip := 1 / (1 + math.Exp(float64(q.Bins)*q.Step))
	low := func(k int) float64 {
		if k == 0 {
			return clip
		}
		return min(max(edges[k-1], clip), 1-clip)
	}
	high := func(k int) float64 {
		if k == n-1 {
			return 1 - clip
		}
		return min(max(edges[k], clip), 1-clip)
	}
	if p.Probabilities {
		least, most := make([]float64, len(a)), make([]float64, len(a))
		for i := range a {
			l, h := low(i%n), high(i%n)
			if len(p.Classes) == 2 && i < n { // the probability of the other class
				l, h = 1-h, 1-l
			}
			least[i], most[i] = -math.Log(h), -math.Log(l)
		}
		loss := between(g.mean(least), g.mean(most))
		outer := runlog.Rounded(clip)
		f.LogLoss, f.Clip = &loss, &outer
	}
	if len(p.Classes) > 2 {
		return
	}
	auc := g.auc()
	f.AUC = &auc
	if !p.Probabilities {
		return
	}
	// A point for each unit of log-odds: a curve of all bins would be of noise.
	bin, from := part{noise: noise}, 0.0
	for k := range n {
		bin.add(g.counts[k], false)
		bin.add(g.counts[n+k], true)
		to := 1.0
		if k < n-1 {
			to = edges[k]
			if odds := math.Log(to / (1 - to)); math.Abs(odds-math.Round(odds)) > 1e-9 {
				continue
			}
		}
		f.Calibration = append(f.Calibration,
			runlog.PrivateBin{From: runlog.Rounded(from), To: runlog.Rounded(to), Records: bin.count(), Share: bin.share()})
		bin, from = part{noise: noise}, to
	}
}

// errors has the figures of the sums of errors that score i says.
func (p Plan) errors(i int, a []float64) runlog.PrivateGroup {
	q := p.Scores[i]
	s := sums{unit: q.Error, span: q.High - q.Low}
	copy(s.a[:], a)
	for k := range s.noise {
		s.noise[k] = q.Deviation(k, 0, p.Adjacency)
	}
	mae, rmse, r2 := s.mae(), s.rmse(), s.r2()
	return runlog.PrivateGroup{Records: s.count(), MAE: &mae, RMSE: &rmse, R2: &r2}
}
