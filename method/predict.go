package method

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// A Forecast is what theory says of a method before a run: a bound on the error of its
// last iterate for numbers of steps, at the step size and momentum with which it gets
// smallest. It is made from public facts and costs nothing.
type Forecast struct {
	Mu    float64      `json:"mu"`       // strong convexity of the objective
	L     float64      `json:"smooth"`   // its smoothness
	Start float64      `json:"start"`    // E_0, the error of w = 0 at most
	Clip  float64      `json:"clip"`     // clip norm of the rows' gradients
	Trust []string     `json:"on_trust"` // assumptions of the bound; none: it is a theorem
	Best  Prediction   `json:"best"`
	Curve []Prediction `json:"curve"` // by steps
}

// A Prediction is a bound on E F(w_T) − F*, and its two parts.
type Prediction struct {
	Steps    int     `json:"steps"`
	Rate     float64 `json:"rate"`     // α; of the first stage
	Momentum float64 `json:"momentum"` // β
	Start    float64 `json:"start"`    // what is left of the error of w = 0
	Noise    float64 `json:"noise"`
	Error    float64 `json:"error"`
}

// Predict returns the theoretical bound of a method under the terms. It keeps the fields that are set and
// searches for step size, momentum and number of steps. Methods without a
// bound are an error.
func Predict(m Method, pub oracle.Public, obj Objective, terms Terms) (*Forecast, error) {
	p, ok := m.(interface {
		bound() bound
		forecast(oracle.Public, Objective, Terms, bound) (*Forecast, error)
	})
	switch {
	case !ok:
		return nil, errors.New("this method has no bound on its error; those of P1 have (gd, shb, nag, nag-opt, masg, masg-opt), and P4's state the rows that they need (opt, opt-ls, 2opt, 2opt-ls)")
	case terms.Off:
		return nil, errors.New("without noise there is no budget to plan for")
	}
	out, err := p.forecast(pub, obj, terms, p.bound())
	if err == nil && len(out.Curve) == 0 {
		err = errors.New("the theory has no bound for these numbers")
	}
	return out, err
}

// forecast searches the step sizes for the least bound of the method.
func (m P1) forecast(pub oracle.Public, obj Objective, terms Terms, of bound) (*Forecast, error) {
	out, price, err := m.prepare(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	f := m.convex()
	f.Mu, f.L = out.Mu, out.L
	for _, rate := range m.rates(out.L, 13) {
		m.Rate = rate
		out.offer(m.predictions(pub, price, of.weights(m, f), of))
	}
	return out, nil
}

// rates are the step sizes to try: 1/L, 1/√2L, 1/2L, …, or the one that is set.
func (m P1) rates(smooth float64, n int) []float64 {
	if m.Rate > 0 {
		return []float64{m.Rate}
	}
	var all []float64
	for i := range n {
		all = append(all, math.Pow(2, -float64(i)/2)/smooth)
	}
	return all
}

// offer keeps a curve if its least error is below that of the curve so far.
func (o *Forecast) offer(curve []Prediction) {
	if best := least(curve); len(curve) > 0 && (o.Curve == nil || best.Error < o.Best.Error) {
		o.Best, o.Curve = best, curve
	}
}

// prepare sets the constants of the objective from public facts, m's clip norm and its
// price, and lists the assumptions.
func (m *P1) prepare(pub oracle.Public, obj Objective, terms Terms) (*Forecast, *price, error) {
	m.Gradient.Laplace = terms.Budget.Delta == 0
	if err := m.check(pub, false); err != nil {
		return nil, nil, err
	}
	out := &Forecast{L: float64(pub.Smooth) + obj.smooth(), Mu: obj.convex(), Start: startError(pub)}
	if !pub.Smooth.Finite() {
		return nil, nil,
			errors.New("the loss has no bound on its curvature, and so none on the error; choose a model that has one, as huber-svm instead of svm")
	}
	trust := func(format string, args ...any) { out.Trust = append(out.Trust, fmt.Sprintf(format, args...)) }
	if m.Mu > 0 {
		if m.Mu > out.Mu {
			trust("μ = %.4g, from mu; the objective is known to have %.4g", m.Mu, out.Mu)
		}
		out.Mu = m.Mu
	}
	if out.Mu == 0 {
		out.Mu = out.L / p1Kappa
		trust("μ = %.4g: the objective has no strong convexity that is known; model.l2 gives it some", out.Mu)
	}
	m.Mu = out.Mu
	if m.Rate*out.Mu > 1 {
		return nil, nil, fmt.Errorf("rate: found %v; with μ = %v, choose at most %v", m.Rate, out.Mu, 1/out.Mu)
	}
	if m.Rate*out.L > 1 {
		trust("a step size above 1/L = %.4g: L is a bound over all tables, and a table may be flatter", 1/out.L)
	}
	norm := 2
	if m.Gradient.Laplace {
		norm = 1
	}
	whole := m.freeClip(pub)
	if pub.Lipschitz.Finite() {
		whole /= p1Clip // clips nothing
	}
	if m.Gradient.Clip == 0 {
		m.Gradient.Clip = whole
	}
	out.Clip = m.Gradient.Clip
	if whole > m.Gradient.Clip || !pub.Lipschitz.Finite() {
		trust("clipping at %.4g in the L%d norm changes the objective; the bound is for one without", m.Gradient.Clip, norm)
	}
	if pub.Adjacency == privacy.AddRemove {
		trust("the table has the nominal %d rows", pub.Rows)
	}
	price, err := m.price(pub, terms)
	return out, price, err
}
