package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/registry"
	"github.com/sottodp/sotto/internal/vfs"
)

// FileFormat is the first field of every model file. Its meaning never changes;
// a new meaning is a new format.
const FileFormat = "sotto-model/1"

// MaxFileBytes is the most that Read takes: some 25 million parameters.
const MaxFileBytes = 512 << 20

// A File is a trained model with what its user needs to apply it and to know
// what it promises. Everything in it is public: it follows from what the private oracle released.
type File struct {
	Format    string    `json:"format"`             // FileFormat
	Model     string    `json:"model"`              // a name that New knows
	Dim       int       `json:"dim"`                // features per encoded row, intercept included
	NormBound float64   `json:"norm_bound"`         // every row is brought to ‖x‖₂ ≤ NormBound
	Config    Config    `json:"-"`                  // its fields stand here in the file; nil: all are left free
	Shape     []int     `json:"shape,omitempty"`    // of rows that are images, where the model needs it
	Classes   []string  `json:"classes,omitempty"`  // by class index; none for a numeric label
	Features  []string  `json:"features,omitempty"` // names of the encoded features; none, or Dim of them
	W         []float64 `json:"w"`                  // parameters, all finite
	// is added to margins: of the center of rows, the mean label, a class that stands in
	Offset    Offset          `json:"offset,omitempty"`
	Schema    json.RawMessage `json:"schema,omitempty"`    // the schema that encodes a record
	Guarantee json.RawMessage `json:"guarantee,omitempty"` // what training promised
	Lab       bool            `json:"lab,omitempty"`       // from a lab run: no guarantee whatever Guarantee says
	Created   string          `json:"created,omitempty"`   // RFC 3339
	Run       string          `json:"run,omitempty"`       // identity of the run that made it

	// Threshold names one of two classes, and from which probability on it is predicted; none: the more probable one is.
	Threshold map[string]float64 `json:"threshold,omitempty"`

	// MarginFactor is what predictions multiply margins by, where a model of two classes has one, above 0 and at most 1;
	// none: 1.
	MarginFactor float64 `json:"margin_factor,omitempty"`
	// Noise is at most the standard deviation of the noise of training in each number of W, where it is known; 0: it is
	// not.
	Noise float64 `json:"noise,omitempty"`
}

// trainsOnly says that a field of a Config is for training alone, so that the file does not hold it.
func trainsOnly(f reflect.StructField) bool { return f.Tag.Get("file") == "-" }

// afterNorm is the field behind which those of the Config stand.
const afterNorm = "NormBound"

// joined is f as encoders see it.
func (f *File) joined() (any, error) {
	e, err := Lookup(f.Model)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	own := f.Config
	if own == nil {
		own = e.Config
	}
	return registry.Join(f, own, afterNorm, trainsOnly), nil
}

// MarshalJSON writes the fields of the configuration among those of the file.
func (f *File) MarshalJSON() ([]byte, error) {
	j, err := f.joined()
	if err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown field is an error.
func (f *File) UnmarshalJSON(text []byte) error {
	var head struct {
		Model   string          `json:"model"`
		Classes []*string       `json:"classes"`
		W       json.RawMessage `json:"w"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	// of null in a list json makes "" and 0
	if slices.Contains(head.Classes, nil) {
		return errors.New("classes: found null; write a name for each class")
	}
	if bytes.Contains(head.W, []byte("null")) {
		return errors.New("w: found null; write a number for each parameter")
	}
	e, err := Lookup(head.Model)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	j := registry.Join(&File{}, e.Config, afterNorm, trainsOnly)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(j); err != nil {
		return err
	}
	own := reflect.New(reflect.TypeOf(e.Config))
	registry.Part(j, f, own.Interface(), afterNorm, trainsOnly)
	f.Config = own.Elem().Interface().(Config)
	return nil
}

// New makes the model whose parameters are f.Weights, after checking all of f.
func (f *File) New() (Model, error) {
	if f.Format != FileFormat {
		return nil, fmt.Errorf("format is %q, want %q", f.Format, FileFormat)
	}
	m, err := New(f.Model,
		Options{Dim: f.Dim, Classes: len(f.Classes), NormBound: f.NormBound, Shape: f.Shape, Config: f.Config})
	if err != nil {
		return nil, err
	}
	if f.Dim > MaxFileBytes || len(f.W) != m.Dim() {
		return nil, fmt.Errorf("w has %d parameters, but %s with %d features and %d classes needs %d", len(f.W), f.Model,
			f.Dim, len(f.Classes), m.Dim())
	}
	for i, v := range f.W {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("w[%d] is %v; parameters must be finite", i, v)
		}
	}
	if a := f.MarginFactor; a != 0 && (!m.Facts().OneMargin || len(f.Classes) == 0 || !(a > 0 && a <= 1)) {
		return nil, fmt.Errorf("margin_factor is %v for %s; expected a number above 0 and at most 1, for models of two classes with one margin", a, f.Model)
	}
	if !(f.Noise >= 0) || math.IsInf(f.Noise, 0) {
		return nil, fmt.Errorf("noise is %v; expected a finite number of 0 or more", f.Noise)
	}
	if err := CheckThreshold(f.Threshold, f.Classes, m.Facts()); err != nil {
		return nil, fmt.Errorf("threshold: %w", err)
	}
	offset := f.Offset
	if f.MarginFactor != 0 {
		offset = offset.Times(f.MarginFactor)
	}
	if m, err = WithOffset(m, offset...); err != nil {
		return nil, err
	}
	if len(f.Features) != 0 && len(f.Features) != f.Dim {
		return nil, fmt.Errorf("features has %d names, want %d or none", len(f.Features), f.Dim)
	}
	seen := map[string]bool{}
	for _, c := range f.Classes {
		if seen[c] {
			return nil, fmt.Errorf("classes names %q twice", c)
		}
		seen[c] = true
	}
	if f.Created != "" {
		if _, err := time.Parse(time.RFC3339, f.Created); err != nil {
			return nil, fmt.Errorf("created is %q, want a time like 2006-01-02T15:04:05Z", f.Created)
		}
	}
	return m, nil
}

// CheckThreshold says what is wrong with a threshold; none is right.
func CheckThreshold(t map[string]float64, classes []string, facts Facts) error {
	if len(t) == 0 {
		return nil
	}
	if len(classes) != 2 || !facts.Probabilities {
		return errors.New("found one; only a model that gives probabilities of two classes takes one")
	}
	for name, at := range t {
		if len(t) > 1 || !slices.Contains(classes, name) || !(at > 0 && at < 1) {
			return fmt.Errorf("found %v for %q; write a number above 0 and below 1, for one of the classes %s and %s", at, name,
				classes[0], classes[1])
		}
	}
	return nil
}

// Decide returns the index of the class that is predicted for a record with the probabilities p: by the threshold, or
// else of the largest, the first among equals.
func Decide(p []float64, threshold map[string]float64, classes []string) int {
	for name, at := range threshold {
		return DecideAt(p, slices.Index(classes, name), at)
	}
	return DecideAt(p, 0, 0)
}

// DecideAt is Decide by the threshold at of the class k of two; at 0 there is none.
func DecideAt(p []float64, k int, at float64) int {
	if at > 0 {
		if p[k] >= at {
			return k
		}
		return 1 - k
	}
	best := 0
	for k, v := range p {
		if v > p[best] {
			best = k
		}
	}
	return best
}

// Weights are the parameters that predictions use: margins are linear in them.
func (f *File) Weights() []float64 {
	if f.MarginFactor == 0 {
		return f.W
	}
	w := make([]float64, len(f.W))
	for i, v := range f.W {
		w[i] = f.MarginFactor * v
	}
	return w
}

// Read reads and checks a model file. Unknown fields, and anything after the
// model, are errors.
func Read(path string) (*File, error) {
	f, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("model file %s: %w", path, err)
	}
	return f, nil
}

func read(path string) (*File, error) {
	raw, err := readfile.All(path, MaxFileBytes)
	if err != nil {
		return nil, cause(err)
	}

	// Check the format first, so that the error for another kind of file names the format, not a
	// field.
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, malformed(raw, err)
	}
	if head.Format != FileFormat {
		return nil, fmt.Errorf("not a model file of this version: format is %q, want %q", head.Format, FileFormat)
	}
	f := new(File)
	if err := json.Unmarshal(raw, f); err != nil {
		return nil, malformed(raw, err)
	}
	if _, err := f.New(); err != nil {
		return nil, err
	}
	return f, nil
}

// malformed says in words what the JSON decoder found.
func malformed(raw []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return errors.New("the file is empty")
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(raw)):
		return errors.New("the file ends too early: it is truncated, or no model file")
	case errors.As(err, &syntax):
		return fmt.Errorf("not a model file: at byte %d: %w", syntax.Offset, err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("not a model file: a JSON %s where an object should be", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("field %q: a JSON %s where a %v should be", kind.Field, kind.Value, kind.Type)
	}
	return err
}

// Write checks f and writes it to path as a whole: after a failure or a crash
// path holds what it held before.
func Write(path string, f *File) error { return WriteOn(vfs.OS{}, path, f) }

// WriteOn is Write on a file system.
func WriteOn(disk vfs.FS, path string, f *File) error {
	if err := write(disk, path, f); err != nil {
		return fmt.Errorf("model file %s: %w", path, err)
	}
	return nil
}

func write(disk vfs.FS, path string, f *File) error {
	m, err := f.New()
	if err != nil {
		return err
	}
	with := *f
	f, with.Shape = &with, ShapeOf(m)
	var buf bytes.Buffer
	j, err := f.joined()
	if err != nil {
		return err
	}
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(j); err != nil {
		return err
	}
	if buf.Len() > MaxFileBytes {
		return fmt.Errorf("%d bytes are more than a model file may have (%d MiB)", buf.Len(), MaxFileBytes>>20)
	}
	return cause(newfile.ReplaceOn(disk, path, 0o600, buf.Bytes()))
}

// cause is err without its path, which the caller's message has already.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
