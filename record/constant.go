package record

import (
	"math"

	"github.com/sottodp/sotto/run/runlog"
)

// Constant is what the best constant would reach on the rows of other figures, and computed from those figures alone:
// the most frequent class, the shares of classes as probabilities, or the mean label.
type Constant struct {
	Accuracy *float64 `json:"accuracy,omitempty" unit:"share"`
	LogLoss  *float64 `json:"log_loss,omitempty" unit:"nats"`
	RMSE     *float64 `json:"rmse,omitempty" unit:"label"`
	R2       *float64 `json:"r2,omitempty" unit:"share"`
}

// Scores are those of the constant as scores of a model.
func (c *Constant) Scores() *runlog.Scores {
	return &runlog.Scores{Accuracy: c.Accuracy, LogLoss: c.LogLoss, RMSE: c.RMSE, R2: c.R2}
}

// ConstantOf is that of exact scores; nil where they do not say it.
func ConstantOf(s *runlog.Scores) *Constant {
	if s.R2 != nil && s.RMSE != nil && *s.R2 < 1 {
		rmse, r2 := *s.RMSE/math.Sqrt(1-*s.R2), 0.0
		return &Constant{RMSE: &rmse, R2: &r2}
	}
	return classConstant(s.Confusion, s.LogLoss != nil)
}

// PrivateConstantOf is that of private figures of classes, by their noisy counts; nil where they do not say it.
func PrivateConstantOf(p *runlog.Private) *Constant {
	if p.Accuracy == nil || p.Accuracy.Value == nil {
		return nil
	}
	return classConstant(p.Confusion, p.LogLoss != nil)
}

// classConstant is that of a confusion table. Its counts may be noisy; those below 0 count as 0.
func classConstant[T int | float64](confusion [][]T, logLoss bool) *Constant {
	all, most, counts := 0.0, 0.0, make([]float64, len(confusion))
	for k, row := range confusion {
		for _, v := range row {
			counts[k] += float64(v)
		}
		all, most = all+max(0, counts[k]), max(most, counts[k])
	}
	if all == 0 {
		return nil
	}
	share, loss := most/all, 0.0
	for _, n := range counts {
		if n > 0 {
			loss -= n / all * math.Log(n/all)
		}
	}
	c := &Constant{Accuracy: &share}
	if logLoss {
		c.LogLoss = &loss
	}
	return c
}
