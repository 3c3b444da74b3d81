// Package score computes the exact figures of a model on the rows of a table. They have no noise; private figures are
// those of run/quality.
package score

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/quality"
	"github.com/sottodp/sotto/run/runlog"
)

const scoreRows = 256 // rows predicted at once

// A Predictor applies a model to blocks of rows.
type Predictor struct {
	Model model.Model
	W     []float64
	out   []float64
	ws    model.Workspace
	wide  data.Widener
}

// Block calls f for each row in order, with the model's outputs (nil for a dropped row) and the row's label (0 if there
// is none), until f returns an error. The slice is reused.
func (p *Predictor) Block(b *data.Block, f func(out []float64, label float32) error) error {
	k := p.Model.Outputs()
	if p.out == nil {
		p.out = make([]float64, scoreRows*k)
	}
	for from := 0; from < b.N; from += scoreRows {
		v := p.wide.View(b, from, min(b.N, from+scoreRows))
		p.Model.Predict(p.out[:v.Len()*k], p.W, v, &p.ws)
		for i := range v.Len() {
			row, label := p.out[i*k:(i+1)*k], float32(0)
			if b.Y != nil {
				label = b.Y[from+i]
			}
			if b.Drop != nil && b.Drop[from+i] {
				row = nil
			}
			if err := f(row, label); err != nil {
				return err
			}
		}
	}
	return nil
}

// Exact compares a model's predictions, by that threshold if there is one, with the labels of a table. The figures
// are computed without noise: they are not private.
func Exact(m model.Model, w []float64, t *data.Table, classes []string, threshold map[string]float64) *runlog.Scores {
	s := NewScorer(m, w, t.Classes, classes, threshold)
	for _, b := range t.Blocks {
		s.Block(b)
	}
	return s.Scores(t.Clamped)
}

// A Scorer scores a model block after block.
type Scorer struct {
	Predictor
	classes   []string // nil: the labels are numbers
	threshold map[string]float64
	rows      int

	// labels that are classes
	confusion [][]int // true label × prediction
	right     int
	loss      float64
	ranks     [2][]float64 // of two classes: the outputs for the second, by label

	// labels that are numbers
	square, sum, sumSquare float64
}

// NewScorer scores a model with parameters w on labels of k classes, 0 for numbers.
func NewScorer(m model.Model, w []float64, k int, classes []string, threshold map[string]float64) *Scorer {
	s := &Scorer{Predictor: Predictor{Model: m, W: w}, threshold: threshold}
	if k > 0 {
		s.classes, s.confusion = classes, make([][]int, k)
	}
	for i := range s.confusion {
		s.confusion[i] = make([]int, k)
	}
	return s
}

// Block counts the rows of a block.
func (s *Scorer) Block(b *data.Block) error {
	return s.Predictor.Block(b, func(p []float64, label float32) error {
		switch {
		case p == nil:
			return nil
		case s.confusion != nil:
			s.class(p, int(label))
		default:
			s.number(p[0], float64(label))
		}
		s.rows++
		return nil
	})
}

func (s *Scorer) class(p []float64, y int) {
	guess := model.Decide(p, s.threshold, s.classes)
	s.confusion[y][guess]++
	if guess == y {
		s.right++
	}
	s.loss -= math.Log(max(p[y], 1e-15))
	if len(p) == 2 {
		s.ranks[y] = append(s.ranks[y], p[1])
	}
}

func (s *Scorer) number(p, y float64) {
	e := p - y
	s.square += e * e
	s.sum += y
	s.sumSquare += y * y
}

// Scores returns the figures of all blocks. clamped is the number of numeric labels outside of their bounds.
func (s *Scorer) Scores(clamped int) *runlog.Scores {
	out := &runlog.Scores{Rows: s.rows}
	if s.confusion != nil {
		out.Classes, out.Confusion = s.classes, s.confusion
	}
	if s.rows == 0 {
		return out
	}
	n := float64(s.rows)
	if s.confusion == nil {
		out.ClampedLabels = clamped
		rmse := math.Sqrt(s.square / n)
		out.RMSE = &rmse
		if spread := s.sumSquare - s.sum*s.sum/n; spread > 0 {
			r2 := 1 - s.square/spread
			out.R2 = &r2
		}
		return out
	}
	accuracy := float64(s.right) / n
	out.Accuracy = &accuracy
	if s.Model.Facts().Probabilities {
		mean := s.loss / n
		out.LogLoss = &mean
	}
	if a := quality.AUC(s.ranks[0], s.ranks[1]); !math.IsNaN(a) {
		out.AUC = &a
	}
	return out
}

// Finite reports whether no value is NaN or infinite.
func Finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
