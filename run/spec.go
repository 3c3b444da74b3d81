package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/yamltree"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// A Spec says what to train, on what, and under which guarantee. It is read from
// a file, from flags, or from both; a flag overrides the file's field.
type Spec struct {
	File string // the spec file; "" when there is none

	// Paths; those of the file are relative to it, those of flags to the working directory.
	Data       string // required to fit
	Test       string // optional: rows that need no protection, scored without noise
	Labels     string // of Data, where they are in a file of their own that does not have the usual name
	TestLabels string // of Test, likewise
	// TestOverlaps asserts that test rows which equal training rows are other people's.
	TestOverlaps bool
	Schema       string // required
	Label        string // the column to predict, where it is not the schema's label

	Model      ModelSpec
	MethodName string
	Method     method.Method
	Privacy    PrivacySpec
	Output     method.Output
	Lab        bool    // allows what a real run must not do, and watermarks the results
	Seed       *uint64 // seeds noise and samples: lab only
	Void       bool    // ends the guarantee of protected rows that are accessed without charge; never in a file
	Ledger     string  // where the budget is kept; "" is the user's own ledger
	Out        string  // run directory; "" makes one under runs/

	AcceptDelta   bool // trains with a δ of 1/rows or more
	AcceptDropped bool // trains where more than one row in a hundred is dropped

	places map[string]string // where each field was written
}

// ModelSpec is the block `model`.
type ModelSpec struct {
	Name      string  `yaml:"name" json:"name"`
	L2        float64 `yaml:"l2" json:"l2,omitempty"`               // λ of λ/2‖w‖²
	L1        float64 `yaml:"l1" json:"l1,omitempty"`               // λ of λ‖w‖₁
	NonConvex float64 `yaml:"nonconvex" json:"nonconvex,omitempty"` // λ of λΣw²/(1+w²)
	Width     float64 `yaml:"width" json:"width,omitempty"`         // of the Huberised hinge; 0 means 0.5
	// Hidden layers of an mlp, first to last, as in "128 relu"; of a cnn, as in "conv 16 8x8 stride 2 pad 3 relu".
	Layers  []string `yaml:"layers" json:"layers,omitempty"`
	Compute string   `yaml:"compute" json:"compute,omitempty"` // of a network: float32, the default, or float64
	Shape   []int    `yaml:"shape" json:"shape,omitempty"`     // of the images of a cnn: rows, columns, channels; default the schema's
}

// PrivacySpec is the block `privacy`, or the word none.
type PrivacySpec struct {
	Off        bool              `yaml:"-"` // `privacy: none`
	Epsilon    float64           `yaml:"epsilon"`
	Delta      *float64          `yaml:"delta"` // required; 0 asks for pure ε
	Adjacency  privacy.Adjacency `yaml:"adjacency"`
	Accountant string            `yaml:"accountant"` // default best
}

// Budget is the block as a budget.
func (p PrivacySpec) Budget() privacy.Budget {
	b := privacy.Budget{Epsilon: p.Epsilon, Adjacency: p.Adjacency}
	if p.Delta != nil {
		b.Delta = *p.Delta
	}
	return b
}

// An Override is a field given outside the spec file.
type Override struct {
	Path  string // like "method.steps"
	Value string // YAML
	From  string // how it was given, for errors: "--epsilon", "--set method.steps"
}

// An InputError is a mistake in what a person gave. The command ends with exit
// code 2 and has changed nothing.
type InputError struct {
	Where string // file:line:column or the flag; may be ""
	Err   error
}

func (e *InputError) Error() string {
	if e.Where == "" {
		return e.Err.Error()
	}
	return e.Where + ": " + e.Err.Error()
}

func (e *InputError) Unwrap() error { return e.Err }

func inputError(where, format string, args ...any) error {
	return &InputError{where, fmt.Errorf(format, args...)}
}

var topKeys = []string{"data", "test", "labels", "test_labels", "schema", "model", "method", "privacy", "output", "lab", "seed", "ledger", "out", "accept_delta", "accept_dropped", "test_overlaps", compareKey, networkKey, tuneKey}

// LoadSpec reads a spec file, if one is named, and applies the overrides.
func LoadSpec(file string, overrides []Override) (*Spec, error) {
	var src []byte
	if file != "" {
		var err error
		if src, err = readSpec(file); err != nil {
			return nil, err
		}
	}
	return parseSpec(file, src, overrides)
}

// readSpec reads the text of a spec file.
func readSpec(file string) ([]byte, error) {
	src, err := readfile.All(file, readfile.Spec)
	switch {
	case readfile.Refused(err):
		return nil, &InputError{file, reason(err)}
	case err != nil:
		return nil, inputError(file, "found no file to read (%v); allowed is a spec in YAML", reason(err))
	}
	return src, nil
}

// parser state: the tree, and where its pieces come from.
type specReader struct {
	file      string
	root      *ast.MappingNode
	overrides []Override // tokens of the k-th stand on line -(k+1)
}

// reason is what the system says, without the path.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func parseSpec(file string, src []byte, overrides []Override) (*Spec, error) {
	r := &specReader{file: file, overrides: overrides}
	root, err := parseMapping(src)
	if err != nil {
		return nil, r.located(err)
	}
	r.root = root
	for k, o := range overrides {
		if err := r.apply(k, o); err != nil {
			return nil, err
		}
	}
	return r.spec()
}

func parseMapping(src []byte) (*ast.MappingNode, error) {
	f, err := yamltree.Parse(src)
	if err != nil {
		return nil, err
	}
	if len(f.Docs) > 1 {
		return nil, errors.New("found more than one document; allowed is one")
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		f, _ = yamltree.Parse([]byte("{}"))
	}
	m, ok := f.Docs[0].Body.(*ast.MappingNode)
	if !ok {
		if _, text := f.Docs[0].Body.(*ast.StringNode); text { // perhaps a data file: what stands in it is not for a message
			return nil, fmt.Errorf("found text that is no spec (a data file?); allowed is a block of the fields %s", strings.Join(topKeys, ", "))
		}
		return nil, fmt.Errorf("found %s; allowed is a block of the fields %s", found(f.Docs[0].Body), strings.Join(topKeys, ", "))
	}
	return m, nil
}

// apply puts an override into the tree.
func (r *specReader) apply(k int, o Override) error {
	keys := strings.Split(o.Path, ".")
	if len(keys) > 2 || !slices.Contains(topKeys, keys[0]) {
		return inputError(o.From, "field %q is not known; the fields are %s, and those of the blocks as in method.steps", o.Path, strings.Join(topKeys, ", "))
	}
	if keys[0] == compareKey {
		return inputError(o.From, "field %q: found it outside a spec file; allowed are the flags of `sotto compare`", o.Path)
	}
	if keys[0] == networkKey || keys[0] == tuneKey {
		return inputError(o.From, "field %q: found it outside a spec file; allowed is the block %s of one", o.Path, keys[0])
	}
	target := r.root
	if len(keys) == 2 {
		block := lookup(r.root, keys[0])
		if block == nil {
			v, err := r.entry(k, Override{Value: "{}", From: o.From}, keys[0])
			if err != nil {
				return err
			}
			r.root.Values = append(r.root.Values, v)
			block = v
		}
		m, ok := block.Value.(*ast.MappingNode)
		if !ok {
			v, err := r.entry(k, Override{Value: "{}", From: o.From}, keys[0]) // a block takes the place of a word, as of `privacy: none`
			if err != nil {
				return err
			}
			block.Value = v.Value
			m = v.Value.(*ast.MappingNode)
		}
		target = m
	}
	v, err := r.entry(k, o, keys[len(keys)-1])
	if err != nil {
		return err
	}
	if len(keys) == 2 && keys[1] == "name" {
		// Naming another method or model replaces the whole block, if it had a name.
		before := ""
		if old := lookup(target, "name"); old != nil {
			before, _ = scalar(old.Value)
		}
		if name, _ := scalar(v.Value); before != "" && before != name {
			target.Values = nil
		}
	}
	if old := lookup(target, keys[len(keys)-1]); old != nil {
		*old = *v
		return nil
	}
	target.Values = append(target.Values, v)
	return nil
}

// entry is the k-th override as a field of that key.
func (r *specReader) entry(k int, o Override, key string) (*ast.MappingValueNode, error) {
	m, err := parseMapping([]byte(key + ": " + o.Value))
	if err != nil || len(m.Values) != 1 {
		return nil, inputError(o.From, "found a value that is not YAML")
	}
	for t := m.Values[0].GetToken(); t != nil; t = t.Next {
		t.Position.Line = -(k + 1)
	}
	for t := m.Values[0].GetToken(); t != nil; t = t.Prev {
		t.Position.Line = -(k + 1)
	}
	return m.Values[0], nil
}

func lookup(m *ast.MappingNode, key string) *ast.MappingValueNode {
	for _, v := range m.Values {
		if fieldName(v) == key {
			return v
		}
	}
	return nil
}

// place says where a token stands: in the file or in a flag.
func (r *specReader) place(line, column int) string {
	if line < 0 {
		return r.overrides[-line-1].From
	}
	return fmt.Sprintf("%s:%d:%d", r.file, line, column)
}

// located turns an error of the YAML library into ours.
func (r *specReader) located(err error) error {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		p := y.GetToken().Position
		return &InputError{r.place(p.Line, p.Column), fmt.Errorf("found text that is not YAML (%s); allowed is a spec in YAML", y.GetMessage())}
	}
	var refused *yamltree.Error
	if errors.As(err, &refused) {
		return inputError(r.place(refused.Line, refused.Column), "found %s; allowed is %s", refused.Found, refused.Allowed)
	}
	return &InputError{r.file, err}
}

func (r *specReader) spec() (*Spec, error) {
	s := &Spec{File: r.file, MethodName: method.Default, places: map[string]string{}}
	text := map[string]*string{"data": &s.Data, "test": &s.Test, "labels": &s.Labels, "test_labels": &s.TestLabels, "schema": &s.Schema, "ledger": &s.Ledger, "out": &s.Out}
	var output string
	var methodNode *ast.MappingNode
	for _, v := range r.root.Values {
		key, p := fieldName(v), v.Key.GetToken().Position
		s.places[key] = r.place(p.Line, p.Column)
		if !slices.Contains(topKeys, key) {
			return nil, inputError(s.places[key], "unknown field %q; the fields are %s", key, strings.Join(topKeys, ", "))
		}
		block, isBlock := v.Value.(*ast.MappingNode)
		if isBlock {
			for _, f := range block.Values {
				p := f.Key.GetToken().Position
				s.places[key+"."+fieldName(f)] = r.place(p.Line, p.Column)
			}
		}
		var err error
		switch dst := text[key]; {
		case dst != nil:
			if err = r.decode(v.Value, dst, key); err == nil && *dst == "" {
				err = inputError(s.places[key], "%s: found nothing; allowed is a path", key)
			}
			if key != "ledger" || !strings.Contains(*dst, "://") {
				*dst = r.path(*dst, p.Line)
			}
		case key == "output":
			err = r.decode(v.Value, &output, key)
		case key == "lab":
			err = r.decode(v.Value, &s.Lab, key)
		case key == "accept_delta":
			err = r.decode(v.Value, &s.AcceptDelta, key)
		case key == "accept_dropped":
			err = r.decode(v.Value, &s.AcceptDropped, key)
		case key == "test_overlaps":
			err = r.decode(v.Value, &s.TestOverlaps, key)
		case key == "seed":
			s.Seed = new(uint64)
			err = r.decode(v.Value, s.Seed, key)
		case key == "privacy" && isWord(v.Value, "none"):
			s.Privacy.Off = true
		case key == "privacy" && !isBlock:
			err = inputError(s.places[key], "privacy: found %s; allowed is a block of fields, or in the lab the word none", found(v.Value))
		case key == compareKey, key == networkKey, key == tuneKey: // LoadComparison, LoadNetwork and LoadTuning read them
		case !isBlock:
			err = inputError(s.places[key], "%s: found %s; allowed is a block of fields, as in {name: …}", key, found(v.Value))
		case key == "privacy":
			err = r.decode(block, &s.Privacy, key)
		case key == "model":
			err = r.decode(block, &s.Model, key)
		case key == "method":
			methodNode = block
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.setMethod(r, methodNode); err != nil {
		return nil, err
	}
	var err error
	if s.Output, err = method.ParseOutput(output); err != nil {
		return nil, &InputError{s.places["output"], err}
	}
	return s, s.check()
}

func isWord(n ast.Node, word string) bool {
	text, _ := scalar(n)
	return text == word
}

func (s *Spec) setMethod(r *specReader, block *ast.MappingNode) error {
	if block != nil {
		if name := lookup(block, "name"); name != nil {
			if err := r.decode(name.Value, &s.MethodName, "method.name"); err != nil {
				return err
			}
		}
	}
	entry, err := method.Lookup(s.MethodName)
	if err != nil {
		return &InputError{s.Place("method.name"), fmt.Errorf("method.name: %s", strings.TrimPrefix(err.Error(), "method: "))}
	}
	s.Method = entry.Method
	if block != nil {
		rest := *block
		rest.Values = slices.DeleteFunc(slices.Clone(block.Values), func(v *ast.MappingValueNode) bool { return fieldName(v) == "name" })
		if s.Method, err = entry.DecodeBy(func(into any) error { return r.decode(&rest, into, "method") }); err != nil {
			return err
		}
		for _, f := range entry.Fields() {
			if v := lookup(&rest, f.Name); v != nil && f.Free && isZero(v.Value) {
				return inputError(s.Place("method."+f.Name), "method.%s: found 0; allowed is another number, or to leave the field out: the method then chooses", f.Name)
			}
		}
	}
	return nil
}

// isZero says whether n is the number 0, in whatever form.
func isZero(n ast.Node) bool {
	text, plain := scalar(n)
	number, err := strconv.ParseFloat(text, 64)
	return plain && err == nil && number == 0
}

// path resolves a path against the file or, for a flag, the working directory.
func (r *specReader) path(p string, line int) string {
	if p == "" || filepath.IsAbs(p) || line < 0 || r.file == "" {
		return p
	}
	return data.Join(filepath.Dir(r.file), p)
}

// Place says where a field was written, or where it is missing.
func (s *Spec) Place(field string) string {
	if p, ok := s.places[field]; ok {
		return p
	}
	if block, _, ok := strings.Cut(field, "."); ok {
		if p, ok := s.places[block]; ok {
			return p
		}
	}
	if s.File != "" {
		return s.File + ":1:1"
	}
	return ""
}

// missing is the error of a field that nobody gave.
func (s *Spec) missing(field, hint string) error {
	return inputError(s.Place(field), "field %q is missing: %s", field, hint)
}

// check says what is wrong with a spec before any file is opened.
func (s *Spec) check() error {
	if s.Schema == "" {
		return s.missing("schema", "the public description of the table; `sotto schema init` makes a skeleton")
	}
	if s.TestLabels != "" && s.Test == "" {
		return s.missing("test", "the table that test_labels are of")
	}
	if s.Model.Name == "" {
		return s.missing("model.name", "which model to train")
	}
	if err := s.labOnly(); err != nil {
		return err
	}
	if s.Privacy.Off {
		return nil
	}
	p := s.Privacy
	switch {
	case s.places["privacy.epsilon"] == "":
		return s.missing("privacy.epsilon", "Sotto has no default for it")
	case p.Delta == nil:
		return s.missing("privacy.delta", "Sotto has no default for it; 0 asks for pure ε")
	case s.places["privacy.adjacency"] == "":
		return s.missing("privacy.adjacency", "add-or-remove or replace-one")
	}
	if err := p.Budget().Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), ":")
		return &InputError{s.Place("privacy." + field), fmt.Errorf("privacy.%w", err)}
	}
	if _, err := s.Accountant(); err != nil {
		return &InputError{s.Place("privacy.accountant"), fmt.Errorf("privacy.%w", err)}
	}
	return nil
}

// Accountant is the accountant named, by default the best of those that have a theorem.
func (s *Spec) Accountant() (account.Accountant, error) {
	if s.Privacy.Accountant == "" {
		return account.ByName("best")
	}
	return account.ByName(s.Privacy.Accountant)
}

// labOnly refuses what only a lab run may do.
func (s *Spec) labOnly() error {
	switch {
	case s.Lab:
		return nil
	case s.Seed != nil:
		return inputError(s.Place("seed"), "seed: seeded noise protects nobody; it is allowed only with `lab: true`")
	case s.Privacy.Off:
		return inputError(s.Place("privacy"), "privacy: `none` is allowed only with `lab: true`")
	}
	return nil
}
