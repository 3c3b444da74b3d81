package page

import (
	"math"
	"strings"

	"github.com/sottodp/sotto/run/runlog"
)

// worse marks a figure that a constant would beat.
const worse = " (worse than a constant)"

// widest is the width of an interval, of a figure from 0 to 1, from which on the figure is not written.
const widest = 0.4

// prior is the accuracy and the log loss of the best constant on rows of classes in these numbers. NaN stands for
// numbers of which none is above 0.
func prior(counts []float64) (accuracy, logLoss float64) {
	all, most := 0.0, 0.0
	for _, n := range counts {
		all, most = all+max(0, n), max(most, n)
	}
	for _, n := range counts {
		if n > 0 {
			logLoss -= n / all * math.Log(n/all)
		}
	}
	return most / all, logLoss
}

// of are the rows of each true class.
func of[T int | float64](confusion [][]T) (counts []float64) {
	for _, row := range confusion {
		n := 0.0
		for _, v := range row {
			n += float64(v)
		}
		counts = append(counts, n)
	}
	return counts
}

// Constant is what the best constant would reach on the same rows: the most frequent class, the shares of classes as
// probabilities, or the mean label. It is nil where that is not known. It is computed from the rows of the scores alone.
func Constant(s *runlog.Scores) *runlog.Scores {
	c := &runlog.Scores{Rows: s.Rows}
	switch {
	case s.R2 != nil && s.RMSE != nil && *s.R2 < 1:
		rmse, r2 := *s.RMSE/math.Sqrt(1-*s.R2), 0.0
		c.RMSE, c.R2 = &rmse, &r2
	case len(s.Confusion) > 0:
		accuracy, logLoss := prior(of(s.Confusion))
		if math.IsNaN(accuracy) {
			return nil
		}
		c.Accuracy = &accuracy
		if s.LogLoss != nil {
			c.LogLoss = &logLoss
		}
	default:
		return nil
	}
	return c
}

// beaten says that the constant is better in that score.
func beaten(s, constant *runlog.Scores, f scoreForm) bool {
	v, c := f.value(s), (*float64)(nil)
	if constant != nil {
		c = f.value(constant)
	}
	return v != nil && c != nil && (f.more && *v < *c || !f.more && *v > *c)
}

// constantWords is what the best constant reaches, in words.
func constantWords(c *runlog.Scores) string {
	var parts []string
	for _, f := range scoresOf(c, lineScores) {
		parts = append(parts, f.Name+" "+f.Value)
	}
	return "the best constant on these rows: " + strings.Join(parts, ", ")
}

// privateConstant is what the best constant reaches by the noisy counts of the classes.
func privateConstant(p *runlog.Private) (accuracy, logLoss float64, words string) {
	accuracy, logLoss = prior(of(p.Confusion))
	if p.Accuracy == nil || p.Accuracy.Value == nil || math.IsNaN(accuracy) {
		return 0, math.Inf(1), ""
	}
	words = "By the same noisy counts, the best constant would reach accuracy " + decimals(accuracy)
	if p.LogLoss != nil {
		words += ", log loss " + decimals(logLoss)
	}
	return accuracy, logLoss, words + "."
}
