package gossip

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/sottodp/sotto/internal/registry"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// A Method is what each owner does, with its configuration.
type Method interface {
	// Configure returns the method with every free (zero) field set, for an owner with that many
	// activations in the schedule: its noise is calibrated to the owner's own terms. It accesses no data.
	// Its errors begin with the field's name.
	Configure(pub oracle.Public, obj method.Objective, s *Schedule, activations int, terms method.Terms) (Method, error)
	// Plan is what a configured method asks of an owner in that many activations.
	Plan(pub oracle.Public, activations int) (privacy.Event, error)
	// NoiseMultiplier is the noise of one query (R8); 0 if there is none, or if it differs between
	// queries.
	NoiseMultiplier() float64
	// Run runs the node's activations and returns its parameters. What it gives to the mixer and to watch
	// is public.
	Run(ctx context.Context, at Node, o oracle.Oracle, obj method.Objective, watch Watch) ([]float64, error)
}

// A Node is one owner in the network. Its fields are the same for all nodes except Index.
type Node struct {
	Schedule *Schedule
	Index    int
	Mixer    Mixer
}

// even is the mean number of activations over the node's own.
func (n Node) even() float64 {
	activations := n.Schedule.Counts()
	sum := 0
	for _, k := range activations {
		sum += k
	}
	return float64(sum) / float64(len(activations)) / float64(max(1, activations[n.Index]))
}

// Watch is called after each activation with its round, from 0. out, valid until Watch returns,
// sets dst to the parameters that the node would return. Watch may be nil.
type Watch func(t int, out func(dst []float64))

// An Entry of the registry.
type Entry struct {
	Name, About string
	Method      Method // the zero value
}

var methods = registry.New("gossip method", func(e Entry) (string, any) { return e.Name, e.Method },
	Entry{"dda", "distributed dual averaging (P3 Algorithm 1), conventional or private", DDA{}},
	Entry{"dgd", "distributed gradient descent with noisy gradients", DGD{}},
	Entry{"laplace-dgd", "distributed gradient descent with geometric steps and Laplace noise on what is shared",
		LaplaceDGD{}},
)

// Register adds a method as method.Register does: before anything reads the registry.
func Register(e Entry) { methods.Register(e) }

// Registry lists the methods, in the order of the documentation.
func Registry() []Entry { return methods.All() }

// Lookup finds a method by its name.
func Lookup(name string) (Entry, error) { return methods.Lookup(name) }

// Fields lists the fields of a method as a spec has them, each with what it means.
func (e Entry) Fields() (names, docs []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(e.Method)) {
		if name := f.Tag.Get("yaml"); name != "" && name != "-" {
			names, docs = append(names, name), append(docs, f.Tag.Get("doc"))
		}
	}
	return names, docs
}

// DecodeBy reads a method of e's type with a strict decoder.
func (e Entry) DecodeBy(decode func(any) error) (Method, error) {
	v := reflect.New(reflect.TypeOf(e.Method))
	if err := decode(v.Interface()); err != nil {
		return nil, err
	}
	return v.Elem().Interface().(Method), nil
}

// Decode reads a method of e's type from its JSON, strictly.
func (e Entry) Decode(config []byte) (Method, error) {
	dec := json.NewDecoder(bytes.NewReader(config))
	dec.DisallowUnknownFields()
	m, err := e.DecodeBy(dec.Decode)
	if err != nil {
		return nil, fmt.Errorf("method %s: %w", e.Name, err)
	}
	return m, nil
}

// Rows is what every method with Gaussian noise asks of its rows in an activation.
type Rows struct {
	Batch    int     `yaml:"batch" json:"batch" doc:"an owner's rows in an activation: expected number with Poisson sampling, exact number with fixed; 0 means all"`
	Sampling string  `yaml:"sampling" json:"sampling,omitempty" doc:"poisson (default under add-or-remove) or fixed (replace-one)"`
	Clip     float64 `yaml:"clip" json:"clip" doc:"clip norm of one row's subgradient (default the loss's Lipschitz bound)"`
	Noise    float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier (default: the smallest that the budget allows)"`
	Off      bool    `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// sgd returns an SGD with the same queries in that many activations.
func (r Rows) sgd(activations int) method.SGD {
	return method.SGD{Steps: activations, Rate: 1,
		Gradient: method.Gradient{Batch: r.Batch, Sampling: r.Sampling, Clip: r.Clip, Noise: r.Noise, Off: r.Off}}
}

func (r *Rows) fit(pub oracle.Public, obj method.Objective, activations int, terms method.Terms) error {
	if activations < 1 {
		return errors.New("rounds: an owner has no activation in this schedule; choose enough rounds for each")
	}
	if r.Clip == 0 && !terms.Off && pub.Lipschitz.Finite() {
		r.Clip = float64(pub.Lipschitz)
	}
	m, err := r.sgd(activations).Configure(pub, obj, terms)
	if err != nil {
		return err
	}
	g := m.(method.SGD).Gradient
	*r = Rows{g.Batch, g.Sampling, g.Clip, g.Noise, g.Off}
	return nil
}

// Plan is that many sampled Gaussians.
func (r Rows) Plan(pub oracle.Public, activations int) (privacy.Event, error) {
	return r.sgd(activations).Plan(pub)
}

// NoiseMultiplier is the noise of one activation.
func (r Rows) NoiseMultiplier() float64 { return r.Noise }

// grad asks for one activation's noisy subgradient at w.
func (r Rows) grad(ctx context.Context, o oracle.Oracle, w []float64) ([]float64, error) {
	g := r.sgd(1).Gradient
	q := g.Query(o.Public())
	b, err := o.Batch(ctx, g.Sampler(o.Public()), q)
	if err != nil {
		return nil, err
	}
	return b.Grad(q, w)
}

// positive returns what is wrong with a number that must be above 0, or 0 if it was left out.
func positive(field string, v float64) error {
	if !(v >= 0) || math.IsInf(v, 1) {
		return fmt.Errorf("%s: found %v; choose a number above 0", field, v)
	}
	return nil
}
