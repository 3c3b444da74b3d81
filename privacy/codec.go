package privacy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// wire is the stored form of an event: one object whose "event" says the type.
// Golden files hold it; fields are only ever added, with new types.
type wire struct {
	Event     string            `json:"event"`
	Sigma     *float64          `json:"sigma,omitempty"`
	Scale     *float64          `json:"scale,omitempty"`
	Threshold *float64          `json:"threshold,omitempty"`
	Query     *float64          `json:"query,omitempty"`
	Max       *int              `json:"max,omitempty"`
	Epsilon   *float64          `json:"epsilon,omitempty"`
	Delta     *float64          `json:"delta,omitempty"`
	Rate      *float64          `json:"rate,omitempty"`
	M         *int              `json:"m,omitempty"`
	N         *int              `json:"n,omitempty"`
	Count     *int              `json:"count,omitempty"`
	Of        json.RawMessage   `json:"of,omitempty"`
	Parts     []json.RawMessage `json:"parts,omitempty"`
	Why       *string           `json:"why,omitempty"`
	Currency  *Currency         `json:"currency,omitempty"`
	Order     *float64          `json:"order,omitempty"`
	Eta       *float64          `json:"eta,omitempty"`
	Gamma     *float64          `json:"gamma,omitempty"`
	Presence  *float64          `json:"presence,omitempty"`
	Replaced  *float64          `json:"replacement,omitempty"`
	Batches   *int              `json:"batches,omitempty"`
	Part      *string           `json:"part,omitempty"`
	Owners    *int              `json:"owners,omitempty"`
	Colluders *int              `json:"colluders,omitempty"`
	Retries   *int              `json:"retries,omitempty"`
}

// A form is the stored form of one event while it is written or read.
type form struct {
	wire
	read    bool
	missing error    // read: the last field of the type that the wire lacks
	inner   *Event   // where the event holds what Of stores
	among   *[]Event // where it holds what Parts stores
}

// field is a field that all events of a type have, on the wire and in the event. Writing points the wire to
// it. Reading moves it from the wire to the event, so that fields of other types remain.
func field[T any](f *form, name string, stored **T, own *T) {
	switch {
	case !f.read:
		*stored = own
	case *stored == nil:
		f.missing = fmt.Errorf("event %q: field %q is missing", f.Event, name)
	default:
		*own, *stored = **stored, nil
	}
}

// A kind is a type of event under its stored name.
type kind struct {
	name string
	of   reflect.Type
	// visit visits the fields of e, or of a new event if e is nil, and returns where that event is.
	visit func(e Event, f *form) func() Event
}

func kindOf[E Event](name string, fields func(f *form, e *E)) kind {
	return kind{name, reflect.TypeFor[E](), func(e Event, f *form) func() Event {
		own, _ := e.(E)
		fields(f, &own)
		return func() Event { return own }
	}}
}

// kinds lists every type of event: the one place that says how it is written and read.
var kinds = []kind{
	kindOf("gaussian", func(f *form, e *Gaussian) { field(f, "sigma", &f.Sigma, &e.Sigma) }),
	kindOf("gaussian-sum", func(f *form, e *GaussianSum) {
		field(f, "presence", &f.Presence, &e.Presence)
		field(f, "replacement", &f.Replaced, &e.Replacement)
	}),
	kindOf("laplace", func(f *form, e *Laplace) { field(f, "scale", &f.Scale, &e.Scale) }),
	kindOf("pure", func(f *form, e *PureDP) { field(f, "epsilon", &f.Epsilon, &e.Epsilon) }),
	kindOf("above-threshold", func(f *form, e *AboveThreshold) {
		field(f, "threshold", &f.Threshold, &e.Threshold)
		field(f, "query", &f.Query, &e.Query)
		field(f, "max", &f.Max, &e.Max)
	}),
	kindOf("select", func(f *form, e *Select) { field(f, "epsilon", &f.Epsilon, &e.Epsilon) }),
	kindOf("approximate", func(f *form, e *ApproxDP) {
		field(f, "epsilon", &f.Epsilon, &e.Epsilon)
		field(f, "delta", &f.Delta, &e.Delta)
	}),
	kindOf("poisson", func(f *form, e *PoissonSampled) {
		field(f, "rate", &f.Rate, &e.Rate)
		f.inner = &e.Of
	}),
	kindOf("fixed", func(f *form, e *FixedSampled) {
		field(f, "m", &f.M, &e.M)
		field(f, "n", &f.N, &e.N)
		f.inner = &e.Of
	}),
	kindOf("allocated", func(f *form, e *Allocated) {
		field(f, "batches", &f.Batches, &e.Batches)
		f.inner = &e.Of
	}),
	kindOf("parallel", func(f *form, e *Parallel) {
		name := e.Name()
		field(f, "part", &f.Part, &name)
		*e = parallel(name, e.Of)
		f.inner = &e.Of
	}),
	kindOf("shared", func(f *form, e *Shared) {
		field(f, "owners", &f.Owners, &e.Owners)
		field(f, "colluders", &f.Colluders, &e.Colluders)
		f.inner = &e.Of
	}),
	kindOf("retried", func(f *form, e *Retried) {
		field(f, "retries", &f.Retries, &e.Retries)
		f.inner = &e.Of
	}),
	kindOf("continued", func(f *form, e *Continued) {}),
	kindOf("repeated", func(f *form, e *Repeated) {
		field(f, "count", &f.Count, &e.Count)
		f.inner = &e.Of
	}),
	kindOf("composed", func(f *form, e *Composed) { f.among = (*[]Event)(e) }),
	kindOf("tuned", func(f *form, e *Tuned) {
		field(f, "eta", &f.Eta, &e.Eta)
		field(f, "gamma", &f.Gamma, &e.Gamma)
		f.among = &e.Among
	}),
	kindOf("not-private", func(f *form, e *NonPrivate) {
		if !f.read || f.Why != nil { // a reason may be missing
			field(f, "why", &f.Why, &e.Why)
		}
	}),
	kindOf("filtered", func(f *form, e *Filtered) {
		field(f, "epsilon", &f.Epsilon, &e.Epsilon)
		field(f, "delta", &f.Delta, &e.Delta)
		field(f, "currency", &f.Currency, &e.Currency)
		if e.Currency == InRDP {
			field(f, "order", &f.Order, &e.Order)
		}
	}),
}

// MarshalEvent writes the canonical form of a valid event: equal events give
// equal bytes.
func MarshalEvent(e Event) ([]byte, error) {
	if e == nil {
		return nil, fmt.Errorf("event: none given")
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return marshalEvent(e, 0)
}

func marshalEvent(e Event, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("event: nested deeper than %d", maxDepth)
	}
	if parts, ok := e.(Composed); ok {
		var b bytes.Buffer
		err := writeComposed(&b, parts, depth+1)
		return b.Bytes(), err
	}
	if e, ok := e.(NonPrivate); ok && !utf8.ValidString(e.Why) {
		return nil, fmt.Errorf("event \"not-private\": why is not valid UTF-8")
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.of == reflect.TypeOf(e) })
	if i < 0 {
		return nil, fmt.Errorf("event: %T has no stored form", e)
	}
	f := form{wire: wire{Event: kinds[i].name}}
	kinds[i].visit(e, &f)
	var err error
	if f.inner != nil {
		f.Of, err = marshalEvent(*f.inner, depth+1)
	}
	if f.among != nil {
		f.Parts, err = marshalEvents(*f.among, depth+1)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(&f.wire)
}

func marshalEvents(events []Event, depth int) (parts []json.RawMessage, err error) {
	parts = make([]json.RawMessage, len(events))
	for i, e := range events {
		if parts[i], err = marshalEvent(e, depth); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// WriteEvent writes what [MarshalEvent] returns, and holds one part of a composition at
// a time: a run can be composed of hundreds of thousands.
func WriteEvent(w io.Writer, e Event) error {
	parts, ok := e.(Composed)
	if !ok {
		b, err := MarshalEvent(e)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	if err := e.Validate(); err != nil {
		return err
	}
	return writeComposed(w, parts, 1)
}

// writeComposed writes json.Marshal of a wire with these parts.
func writeComposed(w io.Writer, parts Composed, depth int) error {
	before := `{"event":"composed","parts":[`
	for _, e := range parts {
		part, err := marshalEvent(e, depth)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		before = ","
	}
	end := "]}"
	if len(parts) == 0 {
		end = `{"event":"composed"}`
	}
	_, err := io.WriteString(w, end)
	return err
}

// maxDepth bounds the nesting of a stored event, so that a hostile file cannot
// exhaust the stack.
const maxDepth = 32

// UnmarshalEvent reads the stored form. An unknown type, an unknown or missing
// field and an impossible number are errors.
func UnmarshalEvent(data []byte) (Event, error) { return unmarshalEvent(data, 0) }

func unmarshalEvent(data []byte, depth int) (Event, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("event: nested deeper than %d", maxDepth)
	}
	f := form{read: true}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f.wire); err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("event: more follows the object")
	}
	if err := exactFields(data); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == f.Event })
	if i < 0 {
		return nil, fmt.Errorf("event: type %q is not known to this version", f.Event)
	}
	event := kinds[i].visit(nil, &f)
	if f.among != nil {
		parts := make([]Event, len(f.Parts))
		for i := range f.Parts {
			var err error
			if parts[i], err = unmarshalEvent(f.Parts[i], depth+1); err != nil {
				return nil, err
			}
		}
		*f.among, f.Parts = parts, nil
	}
	if f.missing != nil {
		return nil, f.missing
	}
	if f.inner != nil {
		of, err := unmarshalEvent(f.Of, depth+1)
		if err != nil {
			return nil, err
		}
		*f.inner, f.Of = of, nil
	}
	f.Event = ""
	if !f.empty() {
		return nil, fmt.Errorf("event %q: holds a field of another type", kinds[i].name)
	}
	e := event()
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e, nil
}

// empty reports whether no field holds anything; a list of no parts is nothing.
func (w *wire) empty() bool {
	if len(w.Parts) == 0 {
		w.Parts = nil
	}
	return reflect.ValueOf(w).Elem().IsZero()
}

// wireFields are the names in wire.
var wireFields = func() (names []string) {
	for field := range reflect.TypeFor[wire]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// exactFields refuses what encoding/json accepts: a field given twice, in other case, or as null.
func exactFields(object []byte) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("event: not an object")
	}
	var seen []string
	var value json.RawMessage // its memory serves every field
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return fmt.Errorf("event: %w", err)
		}
		name, _ := token.(string)
		if err := dec.Decode(&value); err != nil {
			return fmt.Errorf("event: %w", err)
		}
		switch {
		case !slices.Contains(wireFields, name):
			return fmt.Errorf("event: unknown field %q", name)
		case slices.Contains(seen, name):
			return fmt.Errorf("event: field %q is given twice", name)
		case string(value) == "null":
			return fmt.Errorf("event: field %q is null", name)
		}
		seen = append(seen, name)
	}
	return nil
}
