package simulate

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
)

// Text prints the result for people.
func (r *Result) Text(w io.Writer) {
	if r.Sum != nil {
		r.sumText(w)
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "owner\tdeclared rows\tactivations\tnoise\tε\ttest\n")
	number := func(v *float64, verb string) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf(verb, *v)
	}
	most := 0.0
	for _, o := range r.Owners {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.4g\t%s\t%s\n", o.Name, o.Rows, o.Activations, o.Noise, number(o.Epsilon, "%.4f"),
			number(o.Test, "%.4f"))
		if o.Epsilon != nil {
			most = max(most, *o.Epsilon)
		}
	}
	t.Flush()
	fmt.Fprintln(w)
	if r.Off {
		fmt.Fprintln(w, "Guarantee  none: no noise")
	} else {
		fmt.Fprintf(w, "Guarantee  ε = %s at δ = %s, %v, for any %s against all owners but its own\n", chart.Upper(most),
			chart.Full(r.Delta), r.Adjacency, text.Whom(r.Unit, r.UnitRows))
		if r.UnitRows > 0 { // R22
			fmt.Fprintf(w, "           The ε of owners add up for a %s who has rows at several\n", r.Unit)
		}
	}
	r.testText(w, "the mean of all owners' models")
	fmt.Fprintf(w, "Rounds     %d of %s, %.3g of the owners in each; disagreement falls by a factor of %.3g a round\n",
		r.Rounds, r.Method, r.Share, r.Beta)
	fmt.Fprintf(w, "Time       %.2f s, %.0f rounds a second\n\n%s\n", r.Seconds, r.PerSecond, text.Wrap(r.Notice, 100))
}

// testText prints the score of what became the model.
func (r *Result) testText(w io.Writer, of string) {
	if s := r.Test; s != nil {
		for name, v := range map[string]*float64{"accuracy": s.Accuracy, "rmse": s.RMSE} {
			if v != nil {
				fmt.Fprintf(w, "Test       %s %.4f of %s\n", name, *v, of)
			}
		}
	}
}

// sumText prints the result of owners who add up masked sums.
func (r *Result) sumText(w io.Writer) {
	s := r.Sum
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "owner\tdeclared rows\n")
	for _, o := range r.Owners {
		fmt.Fprintf(t, "%s\t%d\n", o.Name, o.Rows)
	}
	t.Flush()
	fmt.Fprintf(w, "\nGuarantee  for any %s, at δ = %s, %v:\n", text.Whom(r.Unit, r.UnitRows), chart.Full(r.Delta),
		r.Adjacency)
	fmt.Fprintf(w, "           ε = %s against %s\n", chart.Upper(s.Epsilon), text.Against(s.Colluders))
	fmt.Fprintf(w, "           ε = %s against %s\n", chart.Upper(s.Alone), text.AgainstAll)
	r.testText(w, "the model of all owners")
	fmt.Fprintf(w, "Steps      %d of %s, and up to %d attempts more\n", r.Rounds, r.Method, s.Retries)
	fmt.Fprintf(w, "Time       %.2f s, %.0f steps a second\n\n%s\n", r.Seconds, r.PerSecond, text.Wrap(r.Notice, 100))
}
