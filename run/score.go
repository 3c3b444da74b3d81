package run

import (
	"cmp"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/runlog"
)

const scoreRows = 256 // rows predicted at once

// predictions calls f for each row in order, with the model's outputs (nil for a dropped row) and the
// row's label (0 if there is none), until f returns false. The slice is reused.
func predictions(m model.Model, w []float64, t *data.Table, f func(out []float64, label float32) bool) {
	var ws model.Workspace
	k := m.Outputs()
	out := make([]float64, scoreRows*k)
	for _, b := range t.Blocks {
		for from := 0; from < b.N; from += scoreRows {
			v := data.View{Block: b, From: from, To: min(b.N, from+scoreRows)}
			m.Predict(out[:v.Len()*k], w, v, &ws)
			for i := range v.Len() {
				row, label := out[i*k:(i+1)*k], float32(0)
				if b.Y != nil {
					label = b.Y[from+i]
				}
				if b.Drop != nil && b.Drop[from+i] {
					row = nil
				}
				if !f(row, label) {
					return
				}
			}
		}
	}
}

// Score compares a model's predictions, by that threshold if there is one, with the labels of a table. The figures
// are computed without noise: they are not private.
func Score(m model.Model, w []float64, t *data.Table, classes []string, threshold map[string]float64) *runlog.Scores {
	if t.Classes == 0 {
		return scoreValues(m, w, t)
	}
	s := &runlog.Scores{Classes: classes, Confusion: make([][]int, t.Classes)}
	for i := range s.Confusion {
		s.Confusion[i] = make([]int, t.Classes)
	}
	var right int
	var loss float64
	var ranks []ranked
	predictions(m, w, t, func(p []float64, label float32) bool {
		if p == nil {
			return true
		}
		y := int(label)
		guess := model.Decide(p, threshold, classes)
		s.Confusion[y][guess]++
		s.Rows++
		if guess == y {
			right++
		}
		loss -= math.Log(max(p[y], 1e-15))
		if len(p) == 2 {
			ranks = append(ranks, ranked{p[1], y == 1})
		}
		return true
	})
	if s.Rows == 0 {
		return s
	}
	accuracy := float64(right) / float64(s.Rows)
	s.Accuracy = &accuracy
	if m.Facts().Probabilities {
		mean := loss / float64(s.Rows)
		s.LogLoss = &mean
	}
	if a := auc(ranks); !math.IsNaN(a) {
		s.AUC = &a
	}
	return s
}

func scoreValues(m model.Model, w []float64, t *data.Table) *runlog.Scores {
	s := &runlog.Scores{}
	var square, sum, sumSquare float64
	predictions(m, w, t, func(p []float64, y float32) bool {
		if p == nil {
			return true
		}
		s.Rows++
		e := p[0] - float64(y)
		square += e * e
		sum += float64(y)
		sumSquare += float64(y) * float64(y)
		return true
	})
	if s.Rows == 0 {
		return s
	}
	s.ClampedLabels = t.Clamped
	n := float64(s.Rows)
	rmse := math.Sqrt(square / n)
	s.RMSE = &rmse
	if spread := sumSquare - sum*sum/n; spread > 0 {
		r2 := 1 - square/spread
		s.R2 = &r2
	}
	return s
}

// Finite reports whether no value is NaN or infinite.
func Finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

type ranked struct {
	score    float64
	positive bool
}

// auc returns the probability that a positive row ranks above a negative one, ties counting half
// (Mann–Whitney); NaN without rows of both classes.
func auc(r []ranked) float64 {
	slices.SortFunc(r, func(a, b ranked) int { return cmp.Compare(a.score, b.score) })
	var rankSum, positives float64
	for i := 0; i < len(r); {
		j := i
		for j < len(r) && r[j].score == r[i].score {
			j++
		}
		mean := float64(i+j+1) / 2 // mean rank of the tied rows, from 1
		for ; i < j; i++ {
			if r[i].positive {
				rankSum += mean
				positives++
			}
		}
	}
	negatives := float64(len(r)) - positives
	if positives == 0 || negatives == 0 {
		return math.NaN()
	}
	return (rankSum - positives*(positives+1)/2) / (positives * negatives)
}
