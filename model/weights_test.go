package model_test

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
)

// unweighted are the models with classes that take no class weights, and why.
var unweighted = map[string]string{}

// TestClassWeights: figures of a weighted model are those of the plain one times the weight of the record's class over the largest,
// so that none is larger; predictions do not see the weights. Other tests draw weighted models among theirs.
func TestClassWeights(t *testing.T) {
	weights := []float64{2, 0.5, 8}
	for _, name := range model.Names() {
		classes := classesOf(name, 3)
		if classes == 0 {
			continue
		}
		const n = 30
		p := newProblem(t, name, n, 6, classes, 1, 4) // without weights of its own
		opt := model.Options{Dim: p.dense.Dim, Classes: classes, NormBound: 1, Weights: weights[:classes], Config: smallOf(name, p.dense.Dim)}
		switch net := opt.Config.(type) {
		case model.MLP:
			net.Compute = "float64"
			opt.Config = net
		case model.CNN:
			net.Compute = "float64"
			opt.Config = net
		}
		m, err := model.New(name, opt)
		if why, without := unweighted[name]; without != (err != nil) {
			t.Errorf("%s: New with class weights says %v, and the map unweighted, model/weights_test.go, %q. A model with "+
				"classes takes them by a case of weigh, model/weights.go, or stands there with the reason", name, err, why)
		}
		if err != nil {
			continue
		}
		opt.Weights = nil
		plain, err := model.New(name, opt)
		if err != nil {
			t.Fatal(err)
		}
		want := m.Facts()
		want.Lipschitz, want.Smooth, want.Start = plain.Facts().Lipschitz, plain.Facts().Smooth, math.Inf(1)
		sameFacts(t, "the model without class weights, with Start +Inf,", m, want)
		w, v := p.vector(m.Dim(), 0.7), data.View{Block: p.dense, To: n}
		most, factor := 0.0, make([]float64, n)
		for _, a := range weights[:classes] {
			most = max(most, a)
		}
		for i := range factor {
			factor[i] = weights[int(p.dense.Y[i])] / most
		}
		near := func(what string, got, want float64) {
			t.Helper()
			if math.Abs(got-want) > 1e-12*math.Abs(want)+1e-300 {
				t.Errorf("%s: with class weights %s is %v, want %v: weight over the largest weight times that without; a "+
					"prediction without the factor. The wrapper in model/weights.go multiplies losses and gradients", name, what, got,
					want)
			}
		}
		figures := func(m model.Model, c []float64) (loss, norm, sum, out []float64) {
			loss, norm, sum, out = make([]float64, n), make([]float64, n), make([]float64, m.Dim()), make([]float64, n*m.Outputs())
			ws := new(model.Workspace)
			pass := m.Eval(w, v, ws)
			pass.Loss(loss)
			pass.GradNorm(norm, 2)
			pass.AddGrad(sum, c, 0)
			m.Predict(out, w, v, ws)
			return
		}
		ones := make([]float64, n)
		for i := range ones {
			ones[i] = 1
		}
		loss, norm, sum, out := figures(m, ones)
		wantLoss, wantNorm, wantSum, wantOut := figures(plain, factor)
		for i := range n {
			near("loss", loss[i], factor[i]*wantLoss[i])
			near("norm", norm[i], factor[i]*wantNorm[i])
		}
		for j := range sum {
			if math.Abs(sum[j]-wantSum[j]) > 1e-12*n {
				t.Errorf("%s: with class weights AddGrad gives parameter %d %v; that without, each row times its weight over the "+
					"largest, is %v", name, j, sum[j], wantSum[j])
			}
		}
		for i := range out {
			near("prediction", out[i], wantOut[i])
		}
	}
}

// TestDecide: a threshold names its class; without one the first of the largest is predicted.
func TestDecide(t *testing.T) {
	classes := []string{"no", "yes"}
	for _, c := range []struct {
		p         []float64
		threshold map[string]float64
		want      int
	}{
		{[]float64{0.5, 0.5}, nil, 0},
		{[]float64{0.4, 0.6}, nil, 1},
		{[]float64{0.8, 0.2}, map[string]float64{"yes": 0.2}, 1},
		{[]float64{0.9, 0.1}, map[string]float64{"yes": 0.2}, 0},
		{[]float64{0.9, 0.1}, map[string]float64{"no": 0.95}, 1},
		{[]float64{0.96, 0.04}, map[string]float64{"no": 0.95}, 0},
	} {
		if got := model.Decide(c.p, c.threshold, classes); got != c.want {
			t.Errorf("Decide(%v, %v) = %d, want %d", c.p, c.threshold, got, c.want)
		}
	}
	facts := model.Facts{Probabilities: true}
	for _, bad := range []struct {
		threshold map[string]float64
		classes   []string
		facts     model.Facts
	}{
		{map[string]float64{"yes": 0}, classes, facts},
		{map[string]float64{"yes": 1}, classes, facts},
		{map[string]float64{"yes": math.NaN()}, classes, facts},
		{map[string]float64{"maybe": 0.5}, classes, facts},
		{map[string]float64{"yes": 0.5, "no": 0.5}, classes, facts},
		{map[string]float64{"yes": 0.5}, []string{"no", "yes", "maybe"}, facts},
		{map[string]float64{"yes": 0.5}, nil, facts},
		{map[string]float64{"yes": 0.5}, classes, model.Facts{}},
	} {
		if model.CheckThreshold(bad.threshold, bad.classes, bad.facts) == nil {
			t.Errorf("a threshold of %v for the classes %v is taken", bad.threshold, bad.classes)
		}
	}
	if err := model.CheckThreshold(map[string]float64{"yes": 0.2}, classes, facts); err != nil {
		t.Error(err)
	}
}
