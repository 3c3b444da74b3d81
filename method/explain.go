package method

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/sottodp/sotto/oracle"
)

// A Reason is one field of a configured method and why it has its value.
type Reason struct {
	Field string `json:"field"`
	Value string `json:"value"`
	Given bool   `json:"given"` // a person wrote it
	Why   string `json:"why"`
}

// An Explanation says what Configure would choose and why, from public facts alone.
type Explanation struct {
	Rests  []string `json:"rests_on"` // what the choices have in common
	Fields []Reason `json:"fields"`
}

// Explain configures m, and says of each field that can be set what became of it.
func Explain(m Method, pub oracle.Public, obj Objective, terms Terms) (*Explanation, error) {
	set, err := m.Configure(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	out, why, quad := &Explanation{}, map[string]string{}, true
	if a, ok := m.(Auto); ok {
		c, err := a.choose(pub, obj, terms)
		if err != nil {
			return nil, err
		}
		out.Rests, why = c.reasons(pub)
		quad = c.quad
	}
	before, after := reflect.ValueOf(m), reflect.ValueOf(set)
	for _, f := range slots(before.Type()) {
		name := f.field.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		r := Reason{Field: name, Value: shown(after.FieldByIndex(f.index)), Why: why[name]}
		switch {
		case (name == "center" || name == "fallback" || name == "last") && r.Value == "":
			r.Value = CenterNone
		case name == "solve" && !quad:
			continue
		case name == "solve" && r.Value == "":
			r.Value = SolveGradients
		}
		switch r.Given = !before.FieldByIndex(f.index).IsZero(); {
		case r.Given:
			r.Why = "given"
		case r.Why == "":
			r.Why = f.field.Tag.Get("doc")
		}
		out.Fields = append(out.Fields, r)
	}
	return out, nil
}

func shown(v reflect.Value) string {
	if v.Kind() == reflect.Float64 {
		return strconv.FormatFloat(v.Float(), 'g', 6, 64)
	}
	return fmt.Sprint(v.Interface())
}

// reasons are the rule of Auto in words, with its numbers.
func (c *autoChoice) reasons(pub oracle.Public) (rests []string, why map[string]string) {
	why = map[string]string{}
	if c.Solve == SolveStatistics {
		return c.exactly(pub)
	}
	if c.Gradient.Off {
		rests = []string{"there is no noise, so the run has the maximum length and clips nothing"}
		why["clip"] = "without noise nothing is clipped"
		why["center"] = "without noise nothing is gained"
		why["fallback"] = "without noise nothing is charged"
		why["noise_multiplier"] = "no noise (lab)"
	} else {
		law := "Gaussian noise, since the budget has a δ"
		if c.Gradient.Laplace {
			law = "Laplace noise, since δ is 0"
		}
		whole := "the whole"
		if left := c.left(); left < 1 {
			whole = fmt.Sprintf("%.3g of the", left)
		}
		rests = []string{
			fmt.Sprintf("%s; %d rows, d = %d, rows of norm up to %.4g", law, pub.Rows, pub.Dim, c.row),
			fmt.Sprintf("noise: one mean gradient of clip norm C with %s budget would have noise ν·C in each coordinate, ν = %.3g", whole, c.nu/c.wide),
			fmt.Sprintf("length: τ = rate × steps/(1 − momentum) = %.4g, over which noise moves a margin by %.3g in directions without curvature",
				c.Rate*float64(c.Steps)/(1-c.Momentum), c.nu/c.wide*c.Gradient.Clip*c.row*c.Rate*float64(c.Steps)/(1-c.Momentum)),
		}
		if c.Gradient.Laplace {
			rests[1] = fmt.Sprintf("noise: the mean of %d mean gradients of clip norm C, each with its share of ε, has noise ν·C in each coordinate, ν = %.3g", c.Steps, c.nu/c.wide)
		}
		why["clip"] = fmt.Sprintf("%.3g of the largest possible gradient; smaller with more noise", c.Gradient.Clip/c.whole)
		why["noise_multiplier"] = "the smallest that the budget allows for these steps"
		why["center"] = "rows cannot be centered here: that is for linear models over rows of numbers, with Gaussian noise and without batch"
		switch {
		case c.FirstNoise > 0:
			rests = append(rests, c.atStart(pub))
			why["center"] = "rows less their noisy mean, which follows from the first release"
		case c.long > 0:
			rests = append(rests,
				fmt.Sprintf("center: the mean row, released with %g of the budget, would have noise of length %.3g, over the bound on a row", c.centerPart, c.long))
			why["center"] = "rows are not centered by default for this loss"
			if most := c.longestCenter(pub); most > 0 {
				why["center"] = fmt.Sprintf("rows less their noisy mean, if its noise is at most %g of the bound on a row long; %g of the budget pays for it; rate and clip then follow the shorter rows", most, c.centerPart)
			}
		}
		if c.ShareNoise > 0 {
			rests = append(rests, c.atShare(pub))
			why["center"] = fmt.Sprintf("rows less their noisy mean, as predictions begin at a share; %g of the budget pays for it; rate and clip then follow the shorter rows", c.centerPart)
			why["fallback"] = "a model that noise decides is drawn toward the share of a class"
		}
	}
	rests = append(rests, c.ofLabels()...)
	if c.quad {
		why["solve"] = fmt.Sprintf("the ridge that the noise of XᵀX needs, × d/R², is %.3g; statistics are taken up to %g",
			c.ridge, autoExact)
		if c.ridge == 0 {
			why["solve"] = "XᵀX cannot be asked for here, or a field is set that it has no use for"
		}
	}
	if pub.OneMargin && pub.Classes == 2 && c.expected > 0 {
		rests = append(rests,
			fmt.Sprintf("expected: noise of %.2g in the margin of a row of norm R (one standard deviation, for rows that spread evenly over all directions); above %g it is large beside margins", c.expected, outlookLoud))
	}
	if why["fallback"] == "" {
		why["fallback"] = "wrong answers cannot be counted here: that is for two classes by one margin over rows of numbers, with Gaussian noise, without batch and without class weights"
		if c.counts > 0 {
			rests = append(rests,
				fmt.Sprintf("fallback: two counts of wrong answers, released with %.3g of the budget, would have a difference with noise of %.3g of the rows", c.countShare, c.counts))
			why["fallback"] = fmt.Sprintf("the more frequent class, if counts at the end show that it gets fewer rows wrong; asked if the noise in a margin is at least %g and that of the difference at most %g of the rows; %.3g of the budget pays for it", fallbackNoise, fallbackLoud, c.countShare)
		}
	}
	rests = append(rests, c.atEnd(why)...)
	rests = append(rests, "this read no record and charged nothing")
	why["steps"] = "as many as the length needs at this step size and momentum"
	why["rate"] = fmt.Sprintf("near the largest that is stable at curvature %.4g; smaller for a short run", c.smooth)
	if c.given.Rate == 0 && c.Rate > c.longest() && !c.Metric {
		why["rate"] = fmt.Sprintf("%.3g of what is stable at curvature %.4g, since so many products a step allow few steps",
			c.Rate/c.longest(), c.smooth)
	}
	why["momentum"] = "stretches the steps to the length; its memory is a small part of the run"
	if c.Metric {
		why["steps"] = fmt.Sprintf("%d, since %d would take more than %g products", metricSteps, autoMaxSteps, metricWork)
		why["rate"] = "takes that many steps over the length; they are shorter where the first release shows that the loss bends"
	}
	why["raw_margins"] = "predictions multiply margins by a factor, at most 1, that corrects for clipping and noise"
	switch {
	case c.LastNoise > 0:
		why["raw_margins"] = "the last release sets the size of margins"
	case c.Factor > 0:
		why["raw_margins"] = fmt.Sprintf("margins, offset apart, are multiplied by %.3g: less with more noise", c.Factor)
	case !c.Auto.RawMargins && c.Auto.MarginFactor(pub, Objective{}) == nil:
		why["raw_margins"] = "this model has no factor on its margins"
	}
	why["raw_bumps"] = "bumps and waves of three columns or more are brought closer to 0 by what the known noise adds to them"
	why["batch"] = "all rows: with noise, samples of them cost more than they save"
	return rests, why
}

// exactly is reasons where statistics solve the squared loss.
func (c *autoChoice) exactly(pub oracle.Public) ([]string, map[string]string) {
	none := "statistics take no steps"
	return []string{
			fmt.Sprintf("squared loss, solved by XᵀX and Xᵀy of %d rows with noise, d = %d, rows of norm up to %.4g", pub.Rows,
				pub.Dim, c.row),
			fmt.Sprintf("budget: %g of it for the mean label, %g for XᵀX, the rest for Xᵀy", labelShare, c.MatrixShare),
			"this read no record and charged nothing",
		}, map[string]string{
			"solve": fmt.Sprintf("the ridge that the noise of XᵀX needs, × d/R², is %.3g; statistics are taken up to %g",
				c.ridge, autoExact),
			"steps": none, "rate": none, "momentum": none, "center": "labels are taken relative to their mean instead",
			"clip":             "R × the width of labels: nothing is clipped, unless the label has a scale",
			"noise_multiplier": "of Xᵀy, the smallest that the budget allows",
			"raw_margins":      "this model has no factor on its margins",
			"raw_bumps":        "statistics are not smoothed", "batch": "all rows",
		}
}

// atEnd says what ends the run.
func (c *autoChoice) atEnd(why map[string]string) (rests []string) {
	why["last"] = "the size of margins cannot be asked for here: that is for logistic and softmax models without class weights, with Gaussian noise and without batch"
	if c.off > 0 {
		rests = []string{fmt.Sprintf("last: what probabilities are off in sum, released with %g of the budget, would have noise of %.3g of the rows", lastShare, c.off)}
		if c.LastNoise > 0 {
			why["fallback"] = "the last release brings a model that knows nothing near one probability for all rows"
		}
		why["last"] = fmt.Sprintf("how far probabilities are off sets the size of margins, if the noise of that sum is at most %g of the rows; %g of the budget pays for it", lastLoud, lastShare)
	}
	return rests
}
