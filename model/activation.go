package model

import (
	"math"

	"github.com/sottodp/sotto/internal/kern"
)

// The names of activations; the last is none.
const (
	relu  = "relu"
	tanh  = "tanh"
	ident = "linear"
)

func isActivation(name string) bool { return name == relu || name == tanh || name == ident }

// heGain is three times the variance of an initial weight times the number of inputs: variance 2/n for relu (He,
// Zhang, Ren and Sun 2015), and half of that for others.
func heGain(name string) float64 {
	if name == relu {
		return 6
	}
	return 3
}

// An activation applies relu or tanh to each number.
type activation struct {
	name string
	dims shape
}

func (a *activation) in() int              { return a.dims.size() }
func (a *activation) out() shape           { return a.dims }
func (a *activation) params() int          { return 0 }
func (a *activation) start(float64) []Span { return nil }
func (a *activation) inPlace() bool        { return true }

type activationWorker[T number] struct {
	*activation
	rows []T
	line []float64
}

func (a *activationWorker[T]) load([]float64) {}

// forward sets z to φ(z). NaN stays NaN.
func (a *activationWorker[T]) forward(z, _ []T, _ int) {
	a.rows = z
	if a.name == relu {
		kern.Rectify(z)
		return
	}
	a.line = grow(a.line, len(z)) // tanh is 2σ(2z) − 1
	for i, v := range z {
		a.line[i] = 2 * float64(v)
	}
	kern.Sigmoid(a.line, a.line)
	for i, v := range a.line {
		z[i] = T(2*v - 1)
	}
}

// backward multiplies by φ′, a function of φ.
func (a *activationWorker[T]) backward(d, _ []T) {
	if a.name == relu {
		kern.Mask(d, a.rows)
		return
	}
	for i, v := range a.rows {
		d[i] *= 1 - v*v
	}
}

func (a *activationWorker[T]) addNorm([]float64, int)            {}
func (a *activationWorker[T]) addGrad(_, _ []float64, _ float64) {}
func (a *activationWorker[T]) addBound(_, _ []float64)           {}

// reach: no φ has a slope above 1; that of tanh is computed and its product rounded.
func (a *activationWorker[T]) reach(d []float64) {
	if a.name == relu {
		return
	}
	relative, least := rounding[T]()
	grow := 1 + 4*relative
	for i := range d {
		d[i] = up(d[i], grow) + least*math.Sqrt(float64(a.in()))
	}
}
