package p1

import (
	"context"
	"fmt"
	"math"

	"github.com/sottodp/sotto/paper"
)

// Why the curves of Figure 3 end elsewhere than ours. The paper prints none of their values; those of its authors are
// read off outputfiles/errors_n_100000_m_100000_c_01_various_T.eps and …_c_10_… of
// github.com/sibirbil/DPAccGradMethods, whose first points are at 29.1.

// similarTable is the number of a table with F(x_0) − F* = 29.0, that is with as many labels of one class as the
// authors' seems to have.
const similarTable = 40

// Drawn is the end of a curve of Figure 3, and ours beside it.
type Drawn struct {
	C       float64
	Method  string
	T       int
	Authors float64
	Here    float64 // our table
	Similar float64 // the table similarTable
	Half    float64 // the table similarTable, noise of half the variance
}

// authors are the ends of the curves of the authors' files.
var authors = []Drawn{
	{C: 0.1, Method: "DP-NAG", T: 500, Authors: 0.101},
	{C: 0.1, Method: "DP-NAG", T: 1000, Authors: 0.419},
	{C: 0.1, Method: "DP-MASG", T: 500, Authors: 2.07},
	{C: 0.1, Method: "DP-MASG", T: 1000, Authors: 1.19},
	{C: 1, Method: "DP-GD", T: 500, Authors: 0.0433},
	{C: 1, Method: "DP-GD", T: 1000, Authors: 0.148},
	{C: 1, Method: "DP-NAG", T: 100, Authors: 0.0132},
}

// drawn runs the curves of authors again: on the similar table, with all noise and with half its variance.
func (r *Report) drawn(ctx context.Context, l *paper.Lab, similar *problem) ([]Drawn, error) {
	half := *similar
	half.spread = math.Sqrt(0.5)
	m := r.Size.Rows
	var all []Drawn
	for _, d := range authors {
		i := r.index(m, d.T, d.C, d.Method)
		if i < 0 {
			continue // a smaller size has fewer steps
		}
		d.Here = r.Curves[i].Final()
		for k, p := range []*problem{similar, &half} {
			curve := &Curve{M: m, T: d.T, C: d.C, Method: d.Method}
			fitted, err := p.fitted(curve)
			if err != nil {
				return nil, err
			}
			var jobs []job
			for run := range r.Size.Runs {
				jobs = append(jobs, job{curve, fitted, run})
			}
			gaps, err := paper.Each(ctx, l, jobs, p.one)
			if err != nil {
				return nil, err
			}
			*[]*float64{&d.Similar, &d.Half}[k] = paper.MeanOf(gaps, func(gap []float64) float64 {
				return gap[len(gap)-1]
			}).Value
		}
		all = append(all, d)
	}
	return all, nil
}

// beside is the table of Drawn.
func (r *Report) beside(similar *problem) paper.Table {
	t := paper.Table{Title: "Where the authors' curves end, and why elsewhere than ours",
		Note: fmt.Sprintf("m = n. The paper draws these curves and prints no number; theirs are read off the figures' files beside the authors' code. Two causes, each by itself: "+
			"(1) the table. F(x₀) − F* is 29.1 there and %.1f here: it follows from the share of labels of one class, which the random w decides. On a table with %.1f DP-MASG ends near theirs: "+
			"at c = 0.1 its first stage of 89 steps is too short, and what it leaves depends on the table. "+
			"(2) the noise. The authors' laprnd takes a standard deviation and is given the scale b_t, so that theirs has half the variance of Laplace(b_t), and a run spends √2·ε; so do the weights α/2 of their (4.6). "+
			"With that noise DP-NAG ends near theirs. The start, the step size, the momentum and the averaging (none) are the same in both.",
			r.Start, similar.value(first)-similar.least),
		Head: []string{"c", "method", "T", "authors' curve", "ours", "ours, similar table",
			"similar table, half the variance"}}
	for _, d := range r.Drawn {
		t.Add(d.C, d.Method, d.T, d.Authors, d.Here, d.Similar, d.Half)
	}
	return t
}
