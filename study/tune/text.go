package tune

import (
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/run/runlog"

	"github.com/sottodp/sotto/method"
)

// scored describes the winner's score.
func (r *Result) scored() string {
	switch score := r.Score; {
	case r.By == runlog.ByLoss:
		return fmt.Sprintf("mean loss %.3g ± %.2g by a charged noisy query (known noise, 95 %%), lower by chance since it is the best", -score, 1.96*r.Noise)
	case score < 0:
		return fmt.Sprintf("root mean squared error %.4g on the test rows", -score)
	default:
		return fmt.Sprintf("accuracy %.4g ± %.2g on the test rows (95 %%), higher by chance since it is the best", score,
			1.96*math.Sqrt(score*(1-score)/float64(r.info.Result.Test.Rows)))
	}
}

// Text states the cost of the search and what it leaves each candidate.
func (p *Plan) Text(w io.Writer) {
	b := p.Budget
	fmt.Fprintf(w,
		"Search     ε = %s at δ = %s, %v, for any %s; about %.4g trainings, of which the best is released alone\n",
		chart.Full(b.Epsilon), chart.Full(b.Delta), b.Adjacency, p.Whom(), p.Mean)
	fmt.Fprintf(w, "Each       ε = %s, scored by %s\n", chart.Short(p.Each),
		map[string]string{runlog.ByTest: "the test rows", runlog.ByLoss: "a noisy mean loss"}[p.Score])
	for _, c := range p.Candidates {
		fmt.Fprintf(w, "           %-24s noise %.4g\n", c.Name, method.NoiseMultiplier(c.Job.Method))
	}
	if p.Score == runlog.ByLoss {
		fmt.Fprintf(w,
			"Noise      a score has a standard deviation of %.2g: methods whose mean losses differ by less than %.2g look alike\n", p.Noise(), p.alike())
	}
	if u := p.Uncharged(); !math.IsInf(u, 1) {
		fmt.Fprintf(w,
			"Uncharged  %.0f trainings at ε = %s each, if the best were kept without a charge for the choice: only ε = %s together is proven\n", p.Mean, chart.Full(b.Epsilon), chart.Upper(u))
	}
}

// Text prints the result for people.
func (r *Result) Text(w io.Writer) {
	fmt.Fprintf(w, "Winner     %s, of the %d in the list; %s\n", r.Winner, len(r.Among), r.scored())
	fmt.Fprintf(w,
		"Guarantee  ε = %s at δ = %s, %v, for any %s and the search as a whole; each candidate was trained at ε = %s\n",
		chart.Full(r.Budget.Epsilon), chart.Full(r.Budget.Delta), r.Budget.Adjacency, r.info.Whom(), chart.Short(r.Each))
	fmt.Fprintf(w, "Model      %s\nReport     %s\n", filepath.Join(r.dir, runlog.ModelFile),
		filepath.Join(r.dir, runlog.ReportFile))
}
