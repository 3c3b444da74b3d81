package privacy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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
	var w wire
	var err error
	switch e := e.(type) {
	case Gaussian:
		w = wire{Event: "gaussian", Sigma: &e.Sigma}
	case GaussianSum:
		w = wire{Event: "gaussian-sum", Presence: &e.Presence, Replaced: &e.Replacement}
	case Laplace:
		w = wire{Event: "laplace", Scale: &e.Scale}
	case PureDP:
		w = wire{Event: "pure", Epsilon: &e.Epsilon}
	case AboveThreshold:
		w = wire{Event: "above-threshold", Threshold: &e.Threshold, Query: &e.Query, Max: &e.Max}
	case Select:
		w = wire{Event: "select", Epsilon: &e.Epsilon}
	case ApproxDP:
		w = wire{Event: "approximate", Epsilon: &e.Epsilon, Delta: &e.Delta}
	case PoissonSampled:
		w = wire{Event: "poisson", Rate: &e.Rate}
		w.Of, err = marshalEvent(e.Of, depth+1)
	case FixedSampled:
		w = wire{Event: "fixed", M: &e.M, N: &e.N}
		w.Of, err = marshalEvent(e.Of, depth+1)
	case Allocated:
		w = wire{Event: "allocated", Batches: &e.Batches}
		w.Of, err = marshalEvent(e.Of, depth+1)
	case Parallel:
		name := e.Name()
		w = wire{Event: "parallel", Part: &name}
		w.Of, err = marshalEvent(e.Of, depth+1)
	case Shared:
		w = wire{Event: "shared", Owners: &e.Owners, Colluders: &e.Colluders}
		w.Of, err = marshalEvent(e.Of, depth+1)
	case Retried:
		w = wire{Event: "retried", Retries: &e.Retries}
		w.Of, err = marshalEvent(e.Of, depth+1)
	case Continued:
		w = wire{Event: "continued"}
	case Repeated:
		w = wire{Event: "repeated", Count: &e.Count}
		w.Of, err = marshalEvent(e.Of, depth+1)
	case Composed:
		var b bytes.Buffer
		err = writeComposed(&b, e, depth+1)
		return b.Bytes(), err
	case Tuned:
		w = wire{Event: "tuned", Eta: &e.Eta, Gamma: &e.Gamma}
		w.Parts, err = marshalEvents(e.Among, depth+1)
	case NonPrivate:
		if !utf8.ValidString(e.Why) {
			return nil, fmt.Errorf("event \"not-private\": why is not valid UTF-8")
		}
		w = wire{Event: "not-private", Why: &e.Why}
	case Filtered:
		w = wire{Event: "filtered", Currency: &e.Currency, Epsilon: &e.Epsilon, Delta: &e.Delta}
		if e.Currency == InRDP {
			w.Order = &e.Order
		}
	default:
		return nil, fmt.Errorf("event: %T has no stored form", e)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(w)
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
	var w wire
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("event: more follows the object")
	}
	if err := exactFields(data); err != nil {
		return nil, err
	}
	var e Event
	var err error
	used := wire{Event: w.Event}
	number := func(field string, v *float64) float64 {
		if v == nil {
			err = fmt.Errorf("event %q: field %q is missing", w.Event, field)
			return 0
		}
		return *v
	}
	whole := func(field string, v *int) int {
		if v == nil {
			err = fmt.Errorf("event %q: field %q is missing", w.Event, field)
			return 0
		}
		return *v
	}
	inner := func() Event {
		of, innerErr := unmarshalEvent(w.Of, depth+1)
		if innerErr != nil && err == nil {
			err = innerErr
		}
		return of
	}
	switch w.Event {
	case "gaussian":
		e, used.Sigma = Gaussian{number("sigma", w.Sigma)}, w.Sigma
	case "gaussian-sum":
		e = GaussianSum{number("presence", w.Presence), number("replacement", w.Replaced)}
		used.Presence, used.Replaced = w.Presence, w.Replaced
	case "laplace":
		e, used.Scale = Laplace{number("scale", w.Scale)}, w.Scale
	case "pure":
		e, used.Epsilon = PureDP{number("epsilon", w.Epsilon)}, w.Epsilon
	case "above-threshold":
		e = AboveThreshold{number("threshold", w.Threshold), number("query", w.Query), whole("max", w.Max)}
		used.Threshold, used.Query, used.Max = w.Threshold, w.Query, w.Max
	case "select":
		e, used.Epsilon = Select{number("epsilon", w.Epsilon)}, w.Epsilon
	case "approximate":
		e = ApproxDP{number("epsilon", w.Epsilon), number("delta", w.Delta)}
		used.Epsilon, used.Delta = w.Epsilon, w.Delta
	case "fixed":
		e = FixedSampled{whole("m", w.M), whole("n", w.N), inner()}
		used.M, used.N, used.Of = w.M, w.N, w.Of
	case "poisson":
		e, used.Rate, used.Of = PoissonSampled{number("rate", w.Rate), inner()}, w.Rate, w.Of
	case "allocated":
		e, used.Batches, used.Of = Allocated{whole("batches", w.Batches), inner()}, w.Batches, w.Of
	case "parallel":
		if w.Part == nil {
			return nil, fmt.Errorf("event %q: field %q is missing", w.Event, "part")
		}
		e, used.Part, used.Of = parallel(*w.Part, inner()), w.Part, w.Of
	case "shared":
		e = Shared{whole("owners", w.Owners), whole("colluders", w.Colluders), inner()}
		used.Owners, used.Colluders, used.Of = w.Owners, w.Colluders, w.Of
	case "retried":
		e, used.Retries, used.Of = Retried{Retries: whole("retries", w.Retries), Of: inner()}, w.Retries, w.Of
	case "continued":
		e = Continued{}
	case "repeated":
		e, used.Count, used.Of = Repeated{whole("count", w.Count), inner()}, w.Count, w.Of
	case "composed", "tuned":
		parts := make([]Event, len(w.Parts))
		for i := range w.Parts {
			if parts[i], err = unmarshalEvent(w.Parts[i], depth+1); err != nil {
				return nil, err
			}
		}
		if e, used.Parts = Composed(parts), w.Parts; w.Event == "tuned" {
			e, used.Eta, used.Gamma = Tuned{parts, number("eta", w.Eta), number("gamma", w.Gamma)}, w.Eta, w.Gamma
		}
	case "not-private":
		why := ""
		if w.Why != nil {
			why = *w.Why
		}
		e, used.Why = NonPrivate{why}, w.Why
	case "filtered":
		f := Filtered{Epsilon: number("epsilon", w.Epsilon), Delta: number("delta", w.Delta)}
		if w.Currency == nil {
			return nil, fmt.Errorf("event %q: field %q is missing", w.Event, "currency")
		}
		f.Currency = *w.Currency
		if f.Currency == InRDP {
			f.Order, used.Order = number("order", w.Order), w.Order
		}
		e, used.Currency, used.Epsilon, used.Delta = f, w.Currency, w.Epsilon, w.Delta
	default:
		return nil, fmt.Errorf("event: type %q is not known to this version", w.Event)
	}
	if err != nil {
		return nil, err
	}
	if w.Sigma != used.Sigma || w.Scale != used.Scale || w.Epsilon != used.Epsilon || w.Rate != used.Rate ||
		w.Threshold != used.Threshold || w.Query != used.Query || w.Max != used.Max || w.Delta != used.Delta ||
		w.M != used.M || w.N != used.N || w.Count != used.Count || w.Why != used.Why || w.Currency != used.Currency || w.Order != used.Order || w.Eta != used.Eta || w.Gamma != used.Gamma ||
		w.Presence != used.Presence || w.Replaced != used.Replaced || w.Batches != used.Batches || w.Part != used.Part || w.Owners != used.Owners || w.Colluders != used.Colluders || w.Retries != used.Retries || len(w.Of) != len(used.Of) || len(w.Parts) != len(used.Parts) {
		return nil, fmt.Errorf("event %q: holds a field of another type", w.Event)
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e, nil
}

// wireFields are the names in wire.
var wireFields = []string{"event", "sigma", "scale", "threshold", "query", "max", "epsilon", "delta", "rate", "m", "n", "count", "of", "parts", "why", "currency", "order", "eta", "gamma", "presence", "replacement", "batches", "part", "owners", "colluders", "retries"}

// exactFields refuses what encoding/json forgives: a field given twice, in other
// letters, or as null.
func exactFields(object []byte) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("event: not an object")
	}
	seen := map[string]bool{}
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
		case seen[name]:
			return fmt.Errorf("event: field %q is given twice", name)
		case string(value) == "null":
			return fmt.Errorf("event: field %q is null", name)
		}
		seen[name] = true
	}
	return nil
}
