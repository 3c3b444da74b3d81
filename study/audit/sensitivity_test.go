package audit

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

func sensed(t *testing.T, name string, m method.Method, tables int, fault Fault) *Sensitivities {
	t.Helper()
	s, err := sense(t.Context(), name, m, tables, Options{Streams: noise.SeededStreams(1)}, fault)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noSums are the methods without sums of records to compare, and why.
var noSums = map[string]string{"amp": "it perturbs an objective: its privacy rests on the minimum"}

// No record moves an exact sum by more than is charged: of each method of the registry, with each model that it supports. Moves come near
// to the bound. Nothing here is left to chance.
func TestSensitivities(t *testing.T) {
	race.Skip(t)
	pairs, queries, models := 0, map[string]bool{}, map[string]bool{}
	check := func(name string, m method.Method) {
		s := sensed(t, name, m, 2, "")
		t.Logf("%s: %d pairs of %v with %v, the largest move %.6f of the bound", name, s.Pairs, s.Queries, s.Models, s.Most)
		for _, alarm := range s.Alarms {
			t.Errorf("%s: one record moves a sum by more than its clip norm, which the noise is scaled by; correct GradNorm, "+
				"AddGrad or the bounds in Facts of that model, or the clip bound that the method asks for", alarm)
		}
		if s.Pairs > 0 && s.Most < 0.5 {
			t.Errorf("%s: no record moves a sum by more than %.2g of its clip norm; at least half of it should be reached, or "+
				"the method adds more noise than it needs", name, s.Most)
		}
		why, none := noSums[name]
		if none != (s.Pairs == 0) || none != (s.Missing != "") {
			t.Errorf("%s: %d pairs of sums were compared, and the map noSums, study/audit/sensitivity_test.go, says %q; a "+
				"method whose privacy is no bound on a sum stands there with the reason, and no other", name, s.Pairs, why)
		}
		pairs += s.Pairs
		for _, q := range s.Queries {
			queries[q] = true
		}
		for _, m := range s.Models {
			models[m] = true
		}
	}
	for _, e := range method.Registry() {
		if unclaimed[e.Name] == "" {
			check(e.Name, e.Method)
		}
	}
	for _, clipping := range []string{method.ByValue, method.PerLayer} {
		check("sgd", method.SGD{Gradient: method.Gradient{Clipping: clipping}})
	}
	for _, q := range []string{"gradients", "curvature", "decreases", "neighbors", "classes", "minimizers"} {
		if !queries[q] {
			t.Errorf("no method of the registry asked for a sum of %s, so none was compared", q)
		}
	}
	for _, name := range model.Names() {
		if !models[name] {
			t.Errorf("no sums of the model %s were compared: no method of the registry takes it with its Entry.Small", name)
		}
	}
	t.Logf("%d pairs", pairs)
}

// scorer asks for scores at random parameters, in place of a method's queries.
type scorer struct{ method.SGD }

func (m scorer) Configure(p oracle.Public, obj method.Objective, terms method.Terms) (method.Method, error) {
	c, err := m.SGD.Configure(p, obj, terms)
	if err != nil {
		return nil, err
	}
	return scorer{c.(method.SGD)}, nil
}

func (m scorer) Run(ctx context.Context, o oracle.Oracle, _ method.Objective) iter.Seq2[method.Step, error] {
	return func(yield func(method.Step, error) bool) {
		p, rnd := o.Public(), rand.New(rand.NewPCG(23, 7))
		w := make([]float64, p.Dim)
		for range 2 * twinSums {
			for j := range w {
				w[j] = 3 * rnd.NormFloat64()
			}
			q := oracle.Score{Noise: mech.Gaussian{Sigma: 1}}
			if p.Classes == 0 {
				q.High, q.Error = 9, 0.5+5*rnd.Float64()
			} else if q.Bins = 6 * rnd.IntN(2); q.Bins > 0 {
				q.Step = 0.5
			}
			b, err := o.Batch(ctx, sample.Full{}, q)
			if err == nil {
				_, err = b.Score(q, w)
			}
			if err != nil {
				yield(method.Step{}, err)
				return
			}
		}
	}
}

// No record moves the numbers of a score by more than is charged, of any model, networks and images included, and some by as much.
func TestSensitivityOfScores(t *testing.T) {
	race.Skip(t)
	s := sensed(t, "sgd", scorer{method.SGD{Rate: 0.1}}, 6, "")
	t.Logf("%d pairs of %v with %v, the largest move %.6f of the bound", s.Pairs, s.Queries, s.Models, s.Most)
	for _, alarm := range s.Alarms {
		t.Error(alarm)
	}
	if s.Most < 0.999 || !slices.Equal(s.Queries, []string{"scores"}) {
		t.Errorf("the largest move is %g of the bound, of sums of %v; want 0.999 or more, of scores alone", s.Most, s.Queries)
	}
	for _, name := range model.Names() {
		if !slices.Contains(s.Models, name) {
			t.Errorf("no scores of the model %s were compared: sgd with a step size refuses it with its Entry.Small", name)
		}
	}
	if s := sensed(t, "sgd", scorer{}, 1, FaultTwice); len(s.Alarms) == 0 {
		t.Error("rows that stand twice in their table raise no alarm")
	}
}

// Where records count up to twice the bound that is charged, or are in the table twice, an alarm names method, model and query.
func TestSensitivityFaults(t *testing.T) {
	race.Skip(t)
	for _, c := range []struct {
		name    string
		fault   Fault
		model   string
		queries []string
	}{
		{"sgd", FaultClip, "logistic", []string{"gradients"}},
		{"agd", FaultClip, "logistic", []string{"gradients", "decreases"}},
		{"privgene", FaultClip, "logistic", []string{"neighbors"}},
		{"newton", FaultTwice, "logistic", []string{"gradients", "curvature"}}, // clip norms of Hessians are the models' own bounds
		{"majority", FaultTwice, "logistic", []string{"classes"}},
		{"outpert-sgd", FaultTwice, "huber-svm", []string{"minimizers"}}, // of logistic the bound is twice what was seen
	} {
		entry, err := method.Lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		s := sensed(t, c.name, entry.Method, 2, c.fault)
		for _, q := range c.queries {
			if alarm := fmt.Sprintf("sensitivity of %s, model %s: %s", c.name, c.model, q); !slices.Contains(s.Alarms, alarm) {
				t.Errorf("%s: no alarm %q; %+v", c.fault, alarm, *s)
			}
		}
		if !(s.Most > 1.3 && s.Most <= 2) {
			t.Errorf("%s, %s: the largest move is %v of the bound", c.name, c.fault, s.Most)
		}
	}
}
