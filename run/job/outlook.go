package job

import (
	"fmt"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/schema"
)

// foresee sets the job's Outlook if noise will decide what a model of this table predicts under
// this budget. It uses the plan of method auto. If the model's loss has no bounds, it uses the
// usual model for the label, whose noise is the smallest known.
func (j *Job) foresee() {
	if j.Spec.MethodName == majority || j.Spec.Privacy.Off {
		return
	}
	of := j
	if f := j.Facts; len(f.Initial) > 0 || !f.Lipschitz.Finite() && !f.Smooth.Finite() {
		spec := *j.Spec
		spec.Model = ModelSpec{Name: UsualModel(j.Schema)}
		spec.MethodName, spec.Method = method.Default, method.Auto{}
		of = &Job{Spec: &spec, Schema: j.Schema, Accountant: j.Accountant}
		if of.setModel() != nil {
			return
		}
	}
	given, _ := of.Spec.Method.(method.Auto)
	outlook, err := given.Foresee(of.Facts, of.Objective, j.MethodTerms())
	if err != nil || outlook == nil { // the run's method may have a plan where auto has none
		return
	}
	if outlook.Rows > 0 && j.Spec.Holdout > 0 { // rows held out are not trained on
		outlook.Rows = int(float64(outlook.Rows) * float64(j.Whole().Rows) / float64(of.Facts.Rows))
	}
	if of != j {
		outlook.Model = of.Spec.Model.Name
	}
	j.Outlook = outlook
}

// bleak is an outlook in words.
func (j *Job) bleak() string {
	o := j.Outlook
	what := "noise in a margin"
	switch classes := j.Schema.Classes(); {
	case classes > 2:
		what = "noise in the difference of two classes' margins"
	case classes == 0:
		what = "noise in a prediction"
	}
	if o.Model != "" {
		what = fmt.Sprintf("with the model %s, which needs the least, %s", o.Model, what)
	}
	text := fmt.Sprintf("%s is about %s", what, chart.Number(o.Noise, 2))
	if b := j.Schema.LabelBounds(); b != nil {
		text += fmt.Sprintf(", for labels from %s to %s", chart.Full(b.Min), chart.Full(b.Max))
	}
	text += fmt.Sprintf(": at this ε the table is too small for %s, and a constant may predict better", features(o.Features))
	var ways []string
	if o.Epsilon > 0 {
		ways = append(ways, "ε ≥ "+chart.Number(o.Epsilon, 2))
	}
	if o.Rows > 0 {
		ways = append(ways, fmt.Sprintf("at least %s %s", chart.Integer(o.Rows), j.Facts.Counted()))
	}
	if o.Fewer > 0 {
		ways = append(ways, "at most "+features(o.Fewer))
	}
	switch n := len(ways); n {
	case 0:
		return text
	case 1, 2:
		return text + "; choose " + strings.Join(ways, " or ")
	default:
		return text + "; choose " + strings.Join(ways[:n-1], ", ") + ", or " + ways[n-1]
	}
}

func features(n int) string {
	if n == 1 {
		return "1 feature"
	}
	return chart.Integer(n) + " features"
}

// UsualModel is the model for the label of a schema, where a person names none.
func UsualModel(s *schema.Schema) string {
	switch s.Classes() {
	case 0:
		return "linear"
	case 2:
		return "logistic"
	}
	return "softmax"
}
